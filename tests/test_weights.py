"""The weights' update maximises what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm.weights import closed_form


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_closed_form_beats_every_competitor(seed, n_components):
    rng = np.random.default_rng(seed)
    counts = rng.uniform(0.01, 100, size=n_components)
    weights = closed_form(counts)
    assert weights.sum() == pytest.approx(1, rel=1e-15 * n_components)
    competitors = rng.dirichlet(np.ones(n_components), size=50)
    assert (np.log(competitors) @ counts <= counts @ np.log(weights) + 1e-12 * counts.sum()).all()


def test_component_without_counts_gets_exactly_zero():
    np.testing.assert_array_equal(closed_form(np.array([0.0, 4.0])), [0, 1])


@pytest.mark.parametrize("counts", [[0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(ValueError, match="expected counts"):
        closed_form(np.array(counts))
