"""Project "When points harm": unlabelled points with one or several Gaussians per class."""

import numpy as np
from sklearn.decomposition import PCA

from cgmm import SemiSupervisedGaussianClassifier
from cgmm.datasets import load
from cgmm.metrics import paired_difference

digits = load("digits")
X, y = PCA(8, random_state=0).fit_transform(digits.X), digits.y % 2  # odd or even


def accuracy(seed, n_unlabelled, components_per_class):
    """Return the accuracy on 500 test images of a classifier with a hundred labels."""
    rows = np.random.default_rng(seed).permutation(len(X))
    test, training = rows[:500], rows[500 : 600 + n_unlabelled]
    labels = np.where(np.arange(len(training)) < 100, y[training], -1)
    model = SemiSupervisedGaussianClassifier(
        components_per_class=components_per_class, reg_covar=1.0, random_state=seed
    ).fit(X[training], labels)
    return (model.predict(X[test]) == y[test]).mean()


def run(draws):
    """Return accuracies with a row per draw.

    The columns are one Gaussian per class without and with unlabelled points, then five likewise.
    """
    return np.array([[accuracy(s, u, k) for k in (1, 5) for u in (0, 1000)] for s in draws])


def finding(values):
    """Check that unlabelled points harm a model that is too simple, and help a richer model."""
    assert paired_difference(values[:, 1], values[:, 0]).behind
    assert paired_difference(values[:, 3], values[:, 2]).ahead
