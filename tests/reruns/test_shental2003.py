"""Test the experiments of shental2003 on artificial data, because the real data need a download."""

import numpy as np
import pytest
from toy_experiments import draw_separated_classes, group_by_method, make_dataset

from cgmm.mixture import ConstrainedMixture
from cgmm.network import TooCostlyError
from reruns import shental2003


@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_with_tied_covariance_finds_classes_that_are_parallel_stripes(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], 40)
    # After standardisation the stripes are close to each other and long.
    X = np.column_stack([8.0 * y, np.zeros(120)]) + rng.normal(size=(120, 2)) * [1, 60]
    stripes = make_dataset(X @ np.array([[1.0, 1.0], [-1.0, 1.0]]), y)
    values = group_by_method(shental2003.figure_7(stripes, 0.5, rng))
    assert len(values) == 6
    assert values["EM both"]["f_half"] > 0.95 > values["K-means"]["f_half"]


def test_a_spanning_tree_is_used_and_reported_if_exact_inference_is_too_costly(monkeypatch):
    model = shental2003.ConstrainedGaussianMixture(3, random_state=0)
    fit = ConstrainedMixture.fit

    def refuse_exact_inference(self, X, y=None, **relations):
        if self.inference != "spanning_tree":
            raise TooCostlyError("{nodes} cost too much", np.array([0]))
        return fit(self, X, **relations)

    monkeypatch.setattr(ConstrainedMixture, "fit", refuse_exact_inference)
    relations = {"cannot_link": np.array([[0, 31]])}
    with pytest.warns(UserWarning, match="spanning tree is kept"):
        fitted = shental2003._exact_or_tree(model, draw_separated_classes().X, relations)
    assert fitted is model
    assert fitted.labels_[0] != fitted.labels_[31]
