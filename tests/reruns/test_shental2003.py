"""Test the experiments of shental2003, on artificial data where data must be fetched."""

import numpy as np
import pytest
from toy_experiments import by_method, dataset, three_clumps

from cgmm.mixture import ConstrainedMixture
from cgmm.network import TooCostlyError
from reruns import shental2003


@pytest.mark.parametrize("seed", range(3))
def test_a_tied_covariance_finds_the_stripes_that_all_classes_are(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], 40)
    # Standardised, they lie close together across, and far apart along.
    X = np.column_stack([8.0 * y, np.zeros(120)]) + rng.normal(size=(120, 2)) * [1, 60]
    stripes = dataset(X @ np.array([[1.0, 1.0], [-1.0, 1.0]]), y)
    found = by_method(shental2003.figure_7(stripes, 0.5, rng))
    assert len(found) == 6
    assert found["EM both"]["f_half"] > 0.95 > found["K-means"]["f_half"]


def test_where_exactness_costs_too_much_a_spanning_tree_is_reported(monkeypatch):
    model = shental2003.ConstrainedGaussianMixture(3, random_state=0)
    fit = ConstrainedMixture.fit

    def refuse(self, X, y=None, **known):
        if self.inference != "spanning_tree":
            raise TooCostlyError("{nodes} cost too much", np.array([0]))
        return fit(self, X, **known)

    monkeypatch.setattr(ConstrainedMixture, "fit", refuse)
    with pytest.warns(UserWarning, match="spanning tree is kept"):
        fitted = shental2003._exact_or_tree(
            model, three_clumps().X, {"cannot_link": np.array([[0, 31]])}
        )
    assert fitted is model
    assert fitted.labels_[0] != fitted.labels_[31]
