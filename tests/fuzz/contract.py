"""Check that a problem gets a result that satisfies the contract, or a clear refusal.

An answer is finite, has the shapes and sums that it should, breaks no hard relation, and agrees
with brute force where that is possible. A refusal is a ValueError raised on purpose, in cgmm or by
scikit-learn's validation: an error out of the middle of a computation is a failure, and so is a
warning of any class but those that estimators document, and a fit that does not come to an end.
"""

import dis
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import cgmm
from cgmm.kmeans import SearchBudgetError
from cgmm.mixture.weights import NO_MAXIMUM
from cgmm.network import ApproximationWarning, DoubtWarning

from .claims import (
    BrokenContractError,
    check_categorical,
    check_classifier,
    check_gaussian,
    check_k_means,
    check_linear_map,
    check_mixed,
    check_mmc,
    check_rca,
    require,
)
from .problems import Problem

EXPECTED = (ConvergenceWarning, UserWarning, ApproximationWarning, DoubtWarning)
AUTHORS = tuple(str(Path(package.__file__).parent) for package in (cgmm, sklearn))
CHECKS: dict[str, Callable[[Any, Problem], None]] = {
    "ConstrainedGaussianMixture": check_gaussian,
    "ConstrainedCategoricalMixture": check_categorical,
    "MixedMixture": check_mixed,
    "SemiSupervisedGaussianClassifier": check_classifier,
    "COPKMeans": check_k_means,
    "PCKMeans": check_k_means,
    "RCA": check_rca,
    "OnlineRCA": check_linear_map,
    "MMC": check_mmc,
}


def examine(problem: Problem, *, again: bool = False) -> bool:
    """Fit and check the outcome; return True for a result and False for a refusal.

    Parameters
    ----------
    problem : Problem
        From ``problems.make``.
    again : bool
        Whether to fit twice, and ask for the same answer.

    Raises
    ------
    BrokenContractError
        If the contract is broken; the message says how.
    """
    try:
        with _only_expected_warnings():
            fitted = clone(problem.estimator).fit(problem.X, **problem.arguments)
            CHECKS[type(fitted).__name__](fitted, problem)
            if again:
                _check_repeats(fitted, problem)
        return True
    except BrokenContractError:
        raise
    except (ValueError, SearchBudgetError) as error:
        _check_refusal(error)
        return False
    except Exception as error:
        raise BrokenContractError(f"{type(error).__name__}: {error}") from error


def _check_repeats(model, problem: Problem) -> None:
    """Check that the same seed gives the same result to the last bit."""
    second = clone(problem.estimator).fit(problem.X, **problem.arguments)
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray | float | int):
            message = f"{name} differs between two fits of the same seed"
            np.testing.assert_equal(getattr(second, name), value, message)


@contextmanager
def _only_expected_warnings() -> Iterator[None]:
    """Raise an error for any class of warning that no estimator documents."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for warning in caught:
        # The warning that the updates of the weights document; its text is tested, too.
        known = str(warning.message).startswith(NO_MAXIMUM.partition("{")[0])
        require(
            known or warning.category in EXPECTED,
            f"{warning.category.__name__} at {warning.filename}:{warning.lineno}: "
            f"{warning.message}",
        )


def _check_refusal(error: Exception) -> None:
    """Check that the error comes from a ``raise`` statement in cgmm or scikit-learn."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code, line = trace.tb_frame.f_code, trace.tb_lineno
    file = code.co_filename
    # Compare the instruction itself, because the source may be edited during a long run.
    raises = code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    on_purpose = file.startswith(AUTHORS) and raises
    require(
        on_purpose and not isinstance(error, np.linalg.LinAlgError),
        f"{type(error).__name__} at {file}:{line}, not raised on purpose: {error}",
    )
    inner = re.search(r"\bnodes? \d+", str(error))
    require(inner is None, f"a refusal that names what users cannot see: {error}")
    require(len(str(error)) > 20, f"a refusal that says little: {error}")
