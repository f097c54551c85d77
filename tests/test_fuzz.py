"""Test that every estimator solves random problems or refuses them with a clear error.

The checks of results and errors are in tests/fuzz/contract.py.
"""

import os
import re
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from fuzz import contract
from fuzz.contract import examine
from fuzz.problems import MAKERS, make_problem
from hypothesis import given, settings
from hypothesis import strategies as st

import cgmm
from cgmm import ConstrainedGaussianMixture

# Numbers of random problems: Gaussian mixtures have the most options, and the last four are fast.
# `make fuzz` multiplies these numbers by 100.
N_PROBLEMS = dict.fromkeys(MAKERS, 8) | {"ConstrainedGaussianMixture": 50}
N_PROBLEMS |= dict.fromkeys(["COPKMeans", "RCA", "OnlineRCA", "MMC"], 16)
FACTOR = 100 if "CGMM_EXPLORE" in os.environ else 1


@pytest.mark.parametrize("kind", MAKERS)
def test_random_problems_are_solved_or_clearly_refused(kind):
    is_solved = []

    @settings(max_examples=FACTOR * N_PROBLEMS[kind], deadline=timedelta(minutes=1))
    @given(st.builds(partial(make_problem, kind), st.integers(0, 2**31 - 1)), st.booleans())
    def examine_problem(problem, fit_twice):
        is_solved.append(examine(problem, fit_twice=fit_twice))

    examine_problem()
    # An estimator that refuses every problem would otherwise pass. About 30 % of the problems can
    # be solved, so a sample of eight may contain a single one of them.
    assert np.mean(is_solved) > 0.1


def test_every_public_estimator_is_fuzzed():
    estimators = {name for name in cgmm.__all__ if hasattr(getattr(cgmm, name), "fit")}
    assert MAKERS.keys() == estimators == contract.CHECKS.keys()


# ---------------------------------------------------------------------------- a former mistake


@pytest.mark.parametrize("sampling", ["points", "chunklets"])
@pytest.mark.parametrize("engine", ["independent", "mean_field"])
def test_error_of_an_engine_names_the_points_of_the_relation(engine, sampling):
    """Must-linked points share a node, so an error must translate node indices to points."""
    known = {"must_link": [[0, 1], [1, 2]], "cannot_link": [[4, 5]]}
    X = np.array([0.0, 1.0, 2.0, 8.0, 9.0, 11.0])[:, None]
    model = ConstrainedGaussianMixture(2, random_state=0, inference=engine, sampling=sampling)
    with pytest.raises(ValueError, match="points 4 and 5") as caught:
        model.fit(X, **known)
    assert not re.search(r"node \d", str(caught.value))
