"""The experiments of lu2007 on clustering: what theory says holds."""

from __future__ import annotations

import numpy as np
from toy_experiments import by_method, three_clumps

from cgmm.replicate import EXPERIMENTS, load_data, lu2007
from cgmm.replicate.lu2007 import named_accuracy


def test_clusters_are_named_in_training():
    y, z = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1])
    found = named_accuracy(y, z, np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0]))
    assert found == {"accuracy_train": 0.75, "accuracy_test": 0.5}
    # all of the test part in a cluster that training left empty
    assert named_accuracy(y, z, y, np.full(4, 7))["accuracy_test"] == 0.0


def test_toy_problems_say_which_classes_are_gaussian():
    rows = list(EXPERIMENTS["lu2007-fig5"].run(load_data("lu_set_2"), np.random.default_rng(0)))
    found = {(r.method, r.quantity): r.value for r in rows}
    # One Gaussian: the second costs six parameters, log 200 each, and gains little.
    assert -6 * np.log(200) < found["class 1", "bic_gain"] < 0
    assert found["class 2", "bic_gain"] > 50
    assert found["centres", "accuracy"] < found["Gaussians", "accuracy"] < 0.99


def test_without_noise_all_six_methods_find_clumps_far_apart():
    found = by_method(lu2007.figure_10(three_clumps(), 0.0, np.random.default_rng(0)))
    assert len(found) == 6
    # A relation of certainty one is a hard one, whatever it is called.
    assert {name: v["accuracy"] for name, v in found.items()} == dict.fromkeys(found, 1.0)
