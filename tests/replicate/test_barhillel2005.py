"""The experiments of barhillel2005 on chunklets and axes: what theory says holds."""

from __future__ import annotations

import numpy as np
import pytest
from toy_experiments import FAST

from cgmm.replicate import EXPERIMENTS, load_data
from cgmm.replicate.barhillel2005 import within_over_between
from cgmm.scenarios import expected_chunklet_size


def test_variance_within_classes_over_variance_between_them():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 3)) + np.array([[0, 0, 0], [3, 0, 0], [0, 5, 0]])[y]
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    within = np.square(X - means[y]).sum() / 90
    between = np.square(means - X.mean(axis=0)).sum() / 3
    assert within_over_between(X, y) == pytest.approx(within / between)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert within_over_between(X @ turn, y) == pytest.approx(within / between)
    # told all labels, whitening leaves one unit of variance a dimension within the classes
    W = np.linalg.inv(np.linalg.cholesky(np.cov((X - means[y]).T, bias=True)))
    white = np.array([(X @ W.T)[y == k].mean(axis=0) for k in range(3)])
    spread = np.square(white - white.mean(axis=0)).sum() / 3
    assert within_over_between(X @ W.T, y) == pytest.approx(3 / spread)


def test_whitened_chunklets_of_the_toy_problem_are_round():
    rows = list(
        EXPERIMENTS["barhillel2005-fig1"].run(
            load_data("three_classes"), 0.3, np.random.default_rng(1)
        )
    )
    found = {(r.method, r.quantity): r.value for r in rows}
    for k in (1, 2):
        assert found["after", f"chunklet_variance_{k}"] == pytest.approx(1, abs=1e-9)
    # standard deviations of 6 and 0.5: the right weights have the ratio 1/12
    assert found["after", "weight_ratio"] == pytest.approx(1 / 12, rel=0.4)
    assert found["before", "chunklet_variance_1"] > 10
    assert found["before", "accuracy"] < 0.6 < 0.95 < found["after", "accuracy"]


def test_chunklets_of_teachers_have_the_size_that_theory_gives_them():
    rng = np.random.default_rng(0)
    rows = [list(FAST.run(None, 30, rng)) for _ in range(50)]
    seen = [
        r.value for row in rows for r in row if (r.method, r.quantity) == ("as seen", "mean_size")
    ]
    # [barhillel2005, App. D]; draws are without replacement, from 64 points a class
    error = np.std(seen) / np.sqrt(len(seen))
    assert np.mean(seen) == pytest.approx(
        expected_chunklet_size(2, n_classes=30), abs=3 * error + 0.02
    )
    joined = [
        r.value for row in rows for r in row if (r.method, r.quantity) == ("joined", "mean_size")
    ]
    assert all(a <= b for a, b in zip(seen, joined, strict=True))
