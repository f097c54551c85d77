"""Project "Ask me something": questions chosen by a strategy compared with random questions."""

import numpy as np
from sklearn.decomposition import PCA

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import load
from cgmm.decide import farthest_first
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.scenarios import random_pairs

digits = load("digits")
below_four = digits.y < 4
X, y = PCA(5, random_state=0).fit_transform(digits.X[below_four]), digits.y[below_four]


def accuracy(seed, *, chosen, n_answers=10):
    """Return the accuracy of a fit with ``n_answers`` answers, chosen or drawn at random."""
    if chosen:
        asked = farthest_first(
            X, lambda a, b: y[a] == y[b], n_answers, 4, then="min_max", random_state=seed
        )
        known = {"labels": asked.neighbourhoods}
    else:
        known = random_pairs(y, n_answers, random_state=seed)._asdict()
    model = ConstrainedGaussianMixture(4, covariance_type="tied", random_state=seed).fit(X, **known)
    return matched_accuracy(y, model.predict(X))


def run(draws):
    """Return accuracies with a row per draw and two columns: chosen, drawn at random."""
    return np.array([[accuracy(s, chosen=True), accuracy(s, chosen=False)] for s in draws])


def finding(values):
    """Check that ten chosen answers help more than ten random answers."""
    assert paired_difference(values[:, 0], values[:, 1]).ahead
