"""Project "The expert with an idea": systematic errors compared with random errors."""

import numpy as np

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import load
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.scenarios import preferences

iris = load("iris")
hers = np.where(
    (iris.y == 1) & (iris.X[:, 2] > 4.4), 2, iris.y
)  # The expert takes large flowers of class 1 for virginica.


def accuracy(seed, *, has_idea):
    """Return the accuracy of a fit that weights sixty answers by their average reliability."""
    rng = np.random.default_rng(seed)
    a, b = rng.permutation(150).reshape(75, 2)[:60].T
    truth, answers = iris.y[a] == iris.y[b], hers[a] == hers[b]
    wrong = (answers != truth).sum()
    if not has_idea:  # Replace her errors by as many random errors.
        answers = truth ^ np.isin(np.arange(60), rng.choice(60, wrong, replace=False))
    pairs = np.column_stack([a, b])
    known = preferences(pairs[answers], pairs[~answers], certainty=1 - wrong / 60)
    model = ConstrainedGaussianMixture(3, n_init=3, random_state=seed)
    return matched_accuracy(iris.y, model.fit(iris.X, preferences=known).predict(iris.X))


def run(draws):
    """Return accuracies with a row per draw and two columns: systematic, random errors."""
    return np.array([[accuracy(s, has_idea=True), accuracy(s, has_idea=False)] for s in draws])


def finding(values):
    """Check that systematic errors do more harm than as many random errors."""
    assert paired_difference(values[:, 0], values[:, 1]).behind
