"""The experiments of shental2003, on stand-ins where data must be fetched."""

from __future__ import annotations

import numpy as np
import pytest
from toy_experiments import by_method, dataset, three_clumps

from cgmm.datasets import load
from cgmm.mixture import ConstrainedMixture
from cgmm.network import TooCostlyError
from cgmm.replicate import shental2003
from cgmm.replicate.shental2003 import standardised


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


def test_relations_find_the_classes_whose_likelihood_is_the_lower_one():
    data = load("overlapping_classes")
    found = by_method(shental2003.figure_1(data, 150, np.random.default_rng(0)))
    # [shental2003, Fig. 1]
    assert found["EM"]["accuracy_unconstrained"] < 0.6
    assert found["EM both"]["accuracy_unconstrained"] > 0.9
    assert found["EM"]["log_likelihood"] > found["EM both"]["log_likelihood"] + 200


def test_where_exactness_costs_too_much_a_spanning_tree_is_kept_and_said(monkeypatch):
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


def test_units_reach_k_means_and_the_starts_and_nothing_else():
    """With features of one scale both readings of Figure 5 are the same."""
    data = three_clumps()
    scaled = data._replace(X=standardised(data.X))
    read = [
        list(run(scaled, 0.3, np.random.default_rng(0)))
        for run in (shental2003.figure_5, shental2003.figure_5_as_they_are)
    ]
    assert read[0] == read[1]
    stretched = data._replace(X=scaled.X * [1.0, 1000.0])
    units = by_method(shental2003.figure_5_as_they_are(stretched, 0.3, np.random.default_rng(0)))
    same = by_method(shental2003.figure_5(stretched, 0.3, np.random.default_rng(0)))
    assert units["K-means"] != same["K-means"]
