"""Project "The matched hospital": estimate a share when some samples came in pairs."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import load
from cgmm.metrics import paired_difference

tissue = load("breast_cancer")
X = PCA(4, random_state=0).fit_transform(StandardScaler().fit_transform(tissue.X))
malignant = tissue.y == 0


def estimated_share(seed, weights):
    """Return the error of the estimated share of malignant samples, without labels.

    There are 200 single samples and 80 pairs of a malignant and a benign sample.
    """
    rows = np.random.default_rng(seed).permutation(len(X))
    alone, rest = rows[:200], rows[200:]
    pairs = np.column_stack([rest[malignant[rest]][:80], rest[~malignant[rest]][:80]])
    links = np.arange(200, 360).reshape(80, 2)
    model = ConstrainedGaussianMixture(
        2, sampling="points", weights=weights, n_init=2, random_state=seed
    ).fit(X[np.r_[alone, pairs.ravel()]], cannot_link=links)
    which = np.bincount(model.predict(X[malignant]), minlength=2).argmax()
    return model.weights_[which] - malignant[alone].mean()


def run(draws):
    """Return errors with a row per draw and two columns: matched counts, normaliser ignored."""
    return np.array([[estimated_share(s, w) for w in ("exact", "ignore")] for s in draws])


def finding(values):
    """Check that matched counts have a smaller error than weights that ignore the normaliser."""
    size = np.abs(values)
    assert paired_difference(size[:, 0], size[:, 1]).behind
    assert values[:, 1].mean() > 0.05
