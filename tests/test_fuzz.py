"""Every estimator gives sound results or a clear refusal for random problems."""

import os
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from fuzz import contract
from fuzz.contract import examine
from fuzz.problems import MAKERS, make
from hypothesis import given, settings
from hypothesis import strategies as st

import cgmm
from cgmm import ConstrainedGaussianMixture

# Gaussian mixtures have the most ways to go wrong. `make fuzz` tries a hundred times as many.
PROBLEMS = dict.fromkeys(MAKERS, 8) | {"ConstrainedGaussianMixture": 50}
TIMES = 100 if "CGMM_EXPLORE" in os.environ else 1


@pytest.mark.parametrize("kind", MAKERS)
def test_random_problems_are_solved_or_clearly_refused(kind):
    found = []

    @settings(max_examples=TIMES * PROBLEMS[kind], deadline=timedelta(minutes=1))
    @given(st.builds(partial(make, kind), st.integers(0, 2**31 - 1)), st.booleans())
    def honours_the_contract(problem, again):
        found.append(examine(problem, again=again))

    honours_the_contract()
    # An estimator that refuses everything would never be wrong, so refusals are limited.
    assert np.mean(found) > 0.2


def test_every_public_estimator_is_fuzzed():
    estimators = {name for name in cgmm.__all__ if hasattr(getattr(cgmm, name), "fit")}
    assert MAKERS.keys() == estimators == contract.CHECKS.keys()


# ---------------------------------------------------------------------------- what it has found


@pytest.mark.parametrize("sampling", ["points", "chunklets"])
@pytest.mark.parametrize("engine", ["independent", "mean_field"])
def test_engines_that_refuse_a_relation_name_its_points(engine, sampling):
    # Must-links shift node numbers, but messages name points.
    known = {"must_link": [[0, 1], [1, 2]], "cannot_link": [[4, 5]]}
    X = np.array([0.0, 1.0, 2.0, 8.0, 9.0, 11.0])[:, None]
    model = ConstrainedGaussianMixture(2, random_state=0, inference=engine, sampling=sampling)
    with pytest.raises(ValueError, match="points 4 and 5") as caught:
        model.fit(X, **known)
    assert "node" not in str(caught.value)
