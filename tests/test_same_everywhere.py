"""Test that a seed gives the same labels with every BLAS kernel that this processor can run."""

import json
import os
import subprocess
import sys

import pytest
from portable import KERNELS, ROOT, kernel_of

# The data differ in difficulty: restarts on the unscaled wines end at different maxima, restarts on
# the blobs at the same one, and the relations among lu_set_2 need a search.
SCRIPT = """
import json, warnings
import numpy as np
from cgmm import COPKMeans, ConstrainedGaussianMixture, PCKMeans
from cgmm.datasets import lu_set_2, three_classes, wine

warnings.simplefilter("ignore")
rng, labels = np.random.default_rng(0), {}
three, lu = three_classes(random_state=0), lu_set_2(random_state=0)
blobs = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 20, axis=0)
for name, X, y in [*((d.name, d.X, d.y) for d in (wine(), three, lu)),
                   ("blobs", blobs, np.repeat([0, 1, 2], 20))]:
    pairs = rng.integers(len(y), size=(30, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    known = {"must_link": pairs[same], "cannot_link": pairs[~same]}
    K = len(set(y.tolist()))
    for model in [COPKMeans(K), PCKMeans(K), *(
        ConstrainedGaussianMixture(K, covariance_type=c) for c in ("full", "tied", "diag")
    )]:
        for relations in ({}, known):
            model.set_params(n_init=3, random_state=0)
            case = f"{name}, {model}, {len(relations)}"
            labels[case] = model.fit(X, **relations).labels_.tolist()
print(json.dumps(labels))
"""


def fit_with_environment(environment: dict[str, str]) -> dict[str, list[int]]:
    """Run the script with environment variables, and return the labels of its fits."""
    command, settings = [sys.executable, "-c", SCRIPT], os.environ | environment
    run = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def default_labels() -> dict[str, list[int]]:
    """Return the labels with the kernel that OpenBLAS chooses for this processor."""
    return fit_with_environment({})


# Nehalem is the oldest kernel, without AVX instructions, so it differs most from the others.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "Nehalem")) for n in KERNELS]
)
def test_every_kernel_gives_the_same_labels(default_labels, name):
    if not kernel_of(KERNELS[name]):
        pytest.skip(f"this processor has no {name}")
    labels = fit_with_environment(KERNELS[name])
    assert [case for case in labels if labels[case] != default_labels[case]] == []
