"""Project "The expert with an idea": errors that belong together against errors by chance."""

import numpy as np

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import load
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.scenarios import preferences

iris = load("iris")
hers = np.where((iris.y == 1) & (iris.X[:, 2] > 4.4), 2, iris.y)  # her idea of a virginica


def accuracy(seed, *, has_idea):
    """Return the accuracy of a fit that weights sixty answers by their average reliability."""
    rng = np.random.default_rng(seed)
    a, b = rng.permutation(150).reshape(75, 2)[:60].T
    truth, answers = iris.y[a] == iris.y[b], hers[a] == hers[b]
    wrong = (answers != truth).sum()
    if not has_idea:  # as many errors, anywhere
        answers = truth ^ np.isin(np.arange(60), rng.choice(60, wrong, replace=False))
    pairs = np.column_stack([a, b])
    known = preferences(pairs[answers], pairs[~answers], certainty=1 - wrong / 60)
    model = ConstrainedGaussianMixture(3, n_init=3, random_state=seed)
    return matched_accuracy(iris.y, model.fit(iris.X, preferences=known).predict(iris.X))


def run(draws):
    """Accuracies, a row a draw: an idea, chance."""
    return np.array([[accuracy(s, has_idea=True), accuracy(s, has_idea=False)] for s in draws])


def finding(values):
    """At one rate of errors, those with a system do more harm."""
    assert paired_difference(values[:, 0], values[:, 1]).behind
