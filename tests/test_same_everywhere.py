"""The same seed gives the same result with every BLAS kernel that this processor can run."""

import json
import os
import subprocess
import sys

import pytest
from portable import KERNELS, ROOT, kernel_of

# Unscaled wines, whose starts end in different places; blobs for which all starts are equal; groups
# and separations that only a search can satisfy.
ASK = """
import json, warnings
import numpy as np
from cgmm import COPKMeans, ConstrainedGaussianMixture, PCKMeans
from cgmm.datasets import lu_set_2, three_classes, wine

warnings.simplefilter("ignore")
rng, found = np.random.default_rng(0), {}
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
        for told in ({}, known):
            model.set_params(n_init=3, random_state=0)
            found[f"{name}, {model}, {len(told)}"] = model.fit(X, **told).labels_.tolist()
print(json.dumps(found))
"""


def labels(environment: dict[str, str]) -> dict[str, list[int]]:
    command, settings = [sys.executable, "-c", ASK], os.environ | environment
    run = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def own() -> dict[str, list[int]]:
    return labels({})


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "Nehalem")) for n in KERNELS]
)  # Nehalem is the oldest, without AVX: the least like what others run.
def test_every_kernel_gives_the_same_labels(own, name):
    if not kernel_of(KERNELS[name]):
        pytest.skip(f"this processor has no {name}")
    there = labels(KERNELS[name])
    assert [case for case in own if own[case] != there[case]] == []
