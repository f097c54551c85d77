"""Project "The lamp": which pairs teach a ruler to ignore the light?"""

import numpy as np
from sklearn.decomposition import PCA

from cgmm import RCA
from cgmm.datasets import load
from cgmm.metrics import cumulative_neighbour_purity, paired_difference
from cgmm.scenarios import equal_chunklets

digits = load("digits")


def add_lamp_light(X, angles):
    """Return images with light from a lamp at the given angle beside each image."""
    x = np.linspace(-1, 1, 8)
    slope = np.cos(angles)[:, None, None] * x[:, None] + np.sin(angles)[:, None, None] * x
    return X + 12 * slope.reshape(len(X), 64)


def neighbour_purity(seed, pairs):
    """Return the share of the right class among five neighbours of images not used for learning."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(digits.X))[:800]
    angles, y = rng.uniform(0, 2 * np.pi, 800), digits.y[rows]
    X = add_lamp_light(digits.X[rows], angles)
    axes = PCA(20, random_state=0).fit(X)
    new = axes.transform(X[400:])
    if pairs != "none":
        chunklet = equal_chunklets(y[:400], 2, 400, random_state=seed)
        if pairs == "one lamp":  # Both images of a pair get light from the same angle.
            firsts = {j: np.flatnonzero(chunklet == j)[0] for j in chunklet}
            angles[:400] = angles[[firsts[j] if j >= 0 else i for i, j in enumerate(chunklet)]]
            X = add_lamp_light(digits.X[rows], angles)
        new = RCA().fit(axes.transform(X[:400]), chunklet).transform(new)
    return cumulative_neighbour_purity(new, y[400:], 5)[-1]


def run(draws):
    """Return purities with a row per draw: no metric, pairs under two lamps, pairs under one."""
    return np.array(
        [[neighbour_purity(s, k) for k in ("none", "two lamps", "one lamp")] for s in draws]
    )


def finding(values):
    """Check that a metric learnt from pairs under two lamps helps, and under one lamp harms."""
    none, two, one = values.T
    assert paired_difference(two, none).ahead
    assert paired_difference(one, none).behind
