"""Check that each problem has either a correct result or a clear refusal.

A result is correct if it is finite, has the right shapes and sums, breaks no hard relation, and
agrees with enumeration where that is possible. A refusal is a ValueError that cgmm or
scikit-learn's validation raises on purpose. Everything else is a failure: an error from within a
computation, a warning of a class that estimators do not document, and a fit that does not end.
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

from . import claims
from .claims import BrokenContractError, require
from .problems import Problem

DOCUMENTED_WARNINGS = (ConvergenceWarning, UserWarning, ApproximationWarning, DoubtWarning)
SOURCES = tuple(str(Path(package.__file__).parent) for package in (cgmm, sklearn))
CHECKS: dict[str, Callable[[Any, Problem], None]] = {
    "ConstrainedGaussianMixture": claims.check_gaussian,
    "ConstrainedCategoricalMixture": claims.check_categorical,
    "MixedMixture": claims.check_mixed,
    "SemiSupervisedGaussianClassifier": claims.check_classifier,
    "COPKMeans": claims.check_k_means,
    "PCKMeans": claims.check_k_means,
    "RCA": claims.check_rca,
    "OnlineRCA": claims.check_linear_map,
    "MMC": claims.check_mmc,
}


def examine(problem: Problem, *, fit_twice: bool = False) -> bool:
    """Fit a problem and check the outcome; return True for a result and False for a refusal.

    Parameters
    ----------
    problem : Problem
        From ``problems.make_problem``, for example.
    fit_twice : bool
        Whether to fit twice and require the same result.

    Raises
    ------
    BrokenContractError
        If there is neither a correct result nor a clear refusal; the message gives the reason.
    """
    try:
        with refuse_unexpected_warnings():
            fitted = clone(problem.estimator).fit(problem.X, **problem.arguments)
            CHECKS[type(fitted).__name__](fitted, problem)
            if fit_twice:
                check_same_result_again(fitted, problem)
        return True
    except BrokenContractError:
        raise
    except (ValueError, SearchBudgetError) as error:
        check_refusal(error)
        return False
    except Exception as error:
        raise BrokenContractError(f"{type(error).__name__}: {error}") from error


def check_same_result_again(model, problem: Problem) -> None:
    """Check that the same seed gives the same result to the last bit."""
    second = clone(problem.estimator).fit(problem.X, **problem.arguments)
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray | float | int):
            message = f"{name} differs between two fits of the same seed"
            np.testing.assert_equal(getattr(second, name), value, message)


@contextmanager
def refuse_unexpected_warnings() -> Iterator[None]:
    """Raise an error for a warning of a class that no estimator documents."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for warning in caught:
        # Only one RuntimeWarning is documented, by the weight updates; recognise it by its text.
        is_documented = str(warning.message).startswith(NO_MAXIMUM.partition("{")[0])
        kind, place = warning.category, f"{warning.filename}:{warning.lineno}"
        message = f"{kind.__name__} at {place}: {warning.message}"
        require(is_documented or kind in DOCUMENTED_WARNINGS, message)


def check_refusal(error: Exception) -> None:
    """Check that the error comes from a ``raise`` statement in cgmm or scikit-learn."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code, line = trace.tb_frame.f_code, trace.tb_lineno
    file = code.co_filename
    # Look at the byte code, because the source file may be edited during a long run.
    raises = code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    on_purpose = file.startswith(SOURCES) and raises
    message = f"{type(error).__name__} at {file}:{line}, not raised on purpose: {error}"
    require(on_purpose and not isinstance(error, np.linalg.LinAlgError), message)
    node = re.search(r"\bnodes? \d+", str(error))
    require(node is None, f"a refusal names nodes, which users do not know: {error}")
    require(len(str(error)) > 20, f"a refusal gives no reason: {error}")
