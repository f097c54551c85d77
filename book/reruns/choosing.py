"""Further simulations, for chapter 14 on choosing a method: fourteen methods on five truths.

The papers' experiments differ in data, amounts and methods, so that no two of their figures can be
laid over each other. Here everything is crossed with everything, on truths of which we know why a
method should win: each shape breaks one assumption and keeps the others.

Letters, as in the book:

=======  ==================================================================
N, D, K  points; dimensions; classes, and as many components
P        number of answers: relations, or labels
q        probability that an answer is wrong
γ, w     certainty that the methods with soft relations believe in; its log-odds
=======  ==================================================================

What is settled here: N = 300 points in four dimensions, of which two tell the classes apart, turned
at random; classes of equal size. Relations are those of P random pairs, no point in two of them
[lu2007, sect. 5.1.1]; the method with labels is told as many classes, of one point of each pair.
Nobody knows q: soft relations, and names that are weighed, are believed to be right with γ = 0.9,
whatever it is. Each method is
the best of the same five starts, drawn by k-means++ from the points alone; behind a learnt metric,
by the same random numbers from the points in that metric. What counts is the share of 1000 new
points that fall into the cluster of their class, so that no method is praised for repeating what it
was told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from cgmm.datasets import Dataset
from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metric_learning import MMC, RCA
from cgmm.metrics import matched_accuracy
from cgmm.mixture import ConstrainedGaussianMixture
from cgmm.numerics import FloatArray, IntArray
from cgmm.scenarios import Relations, flip, preferences, random_pairs
from reruns.design import Results, Setting, attempt_each, make_experiment

__all__ = ["EXPERIMENTS", "SHAPES", "Known", "Truth", "ask", "methods", "sample_truth"]

N_POINTS, N_NEW, N_DIMS = 300, 1000, 4
CERTAINTY = 0.9
SHAPES = ("spherical", "elongated", "different", "overlapping", "split")


class Truth(NamedTuple):
    """Gaussian clumps of equal weight, and the class of each."""

    means: FloatArray
    """(C, D)"""
    covariances: FloatArray
    """(C, D, D)"""
    class_of: IntArray
    """(C,) int; with "split" two clumps make a class, else each is one."""

    def sample(self, n_points: int, rng: Generator) -> tuple[FloatArray, IntArray]:
        """Draw points and their classes.

        Parameters
        ----------
        n_points : int
            N; clumps get as many as each other, up to one.
        rng : Generator
            Source of the points.

        Returns
        -------
        X : (N, D) array
            The points.
        y : (N,) int array
            Their classes.
        """
        clump = rng.permutation(np.arange(n_points) % len(self.means))
        noise = rng.normal(size=(n_points, self.means.shape[1]))
        factors = np.linalg.cholesky(self.covariances)[clump]
        return self.means[clump] + np.einsum("ide,ie->id", factors, noise), self.class_of[clump]


def sample_truth(shape: str, n_classes: int, rng: Generator) -> Truth:
    """A truth of the given shape.

    Parameters
    ----------
    shape : str
        "spherical": round clumps of variance one, whose nearest means are 4.5 apart.
        "overlapping": the same, 2.5 apart. "elongated": the same as spherical, but two directions
        that say nothing of the class have a standard deviation of 8. "different": each class has
        the standard deviations 0.3, 0.6, 1.5 and 3 along the axes in an order of its own.
        "split": twice as many round clumps, and a class is two of them, drawn by lot.
    n_classes : int
        K.
    rng : Generator
        Source of the truth.

    Returns
    -------
    Truth
        K clumps, or 2 K.

    Examples
    --------
    >>> truth = sample_truth("split", 3, np.random.default_rng(0))
    >>> truth.means.shape, np.bincount(truth.class_of)
    ((6, 4), array([2, 2, 2]))
    """
    n_clumps = n_classes * (2 if shape == "split" else 1)
    gap = 2.5 if shape == "overlapping" else 4.5
    means = np.zeros((n_clumps, N_DIMS))
    means[:, :2] = _apart(n_clumps, gap, rng)
    spread = np.ones((n_clumps, N_DIMS))
    if shape == "elongated":
        spread[:, 2:] = 8.0
    if shape == "different":
        spread = rng.permuted(np.tile([0.3, 0.6, 1.5, 3.0], (n_clumps, 1)), axis=1)
    turn = np.linalg.qr(rng.normal(size=(N_DIMS, N_DIMS)))[0]
    return Truth(
        means @ turn.T,
        np.einsum("de,ke,fe->kdf", turn, spread**2, turn),
        rng.permutation(np.arange(n_clumps) % n_classes),
    )


def _apart(n: int, gap: float, rng: Generator) -> FloatArray:
    """(n, 2) random places in the plane, the two nearest of which are ``gap`` apart."""
    draws = rng.normal(size=(50, n, 2))
    distances = np.linalg.norm(draws[:, :, None] - draws[:, None], axis=-1)
    nearest = (distances + np.diag(np.full(n, np.inf))).min(axis=(1, 2))
    best = nearest.argmax()
    return draws[best] * gap / nearest[best]


# ---------------------------------------------------------------------------- what is known


class Known(NamedTuple):
    """As many answers of either kind: relations, or labels."""

    relations: Relations
    """P pairs of points."""
    labels: IntArray
    """(N,) the classes, as they are said, of one point of each pair; -1 elsewhere."""


def ask(y: IntArray, n_answers: int, q: float, rng: Generator) -> Known:
    """Relations between random pairs, and as many labels; each wrong with probability q.

    Parameters
    ----------
    y : (N,) int array
        True classes, 0 to K - 1, at least two.
    n_answers : int
        P, at most N / 2.
    q : float
        Probability that a relation is turned into its opposite, or that a label becomes that of
        another class.
    rng : Generator
        Source of the pairs and of the errors.

    Returns
    -------
    Known
        What is said.

    Examples
    --------
    >>> y = np.repeat([0, 1], 10)
    >>> known = ask(y, 5, 0.0, np.random.default_rng(0))
    >>> sum(map(len, known.relations)), int((known.labels == y).sum())
    (5, 5)
    """
    true = random_pairs(y, n_answers, random_state=rng)
    shown = np.concatenate(true)[:, 0]
    n_classes = int(y.max()) + 1
    wrong = rng.random(n_answers) < q
    labels = np.full(len(y), -1)
    labels[shown] = (y[shown] + wrong * rng.integers(1, n_classes, n_answers)) % n_classes
    return Known(flip(true, q, random_state=rng), labels)


# ---------------------------------------------------------------------------- the methods


Transform = Callable[[FloatArray], FloatArray]
Predict = Callable[[FloatArray], IntArray]
Methods = dict[str, Callable[[], Predict]]
Model = COPKMeans | ConstrainedGaussianMixture


def methods(X: FloatArray, n_classes: int, known: Known, seed: int) -> Methods:
    """The methods, by name: each a function without arguments to a ``predict``.

    Parameters
    ----------
    X : (N, D) array
        The points.
    n_classes : int
        K.
    known : Known
        What is said beside them.
    seed : int
        Of the starts.

    Returns
    -------
    dict of str to callable
        Each fits when called, and returns a function from points (M, D) to clusters (M,).
    """
    must, cannot = known.relations
    soft = preferences(must, cannot, certainty=CERTAINTY)
    # By default relations and labels have starts of their own; then the map would compare starts.
    runs: dict[str, Any] = {"n_init": 5, "random_state": seed}
    kmeans = partial(COPKMeans, n_classes, init="k-means++", **runs)
    runs_of_em = runs | {"init_params": "k-means++", "reg_covar": 1e-3, "max_iter": 300}
    mixture = partial(ConstrainedGaussianMixture, n_classes, **runs_of_em)
    both = {"must_link": must, "cannot_link": cannot}
    rca, mmc = partial(_rca, X, must), partial(_mmc, X, must, cannot)
    return {
        "K-means": lambda: kmeans().fit(X).predict,
        "COP-KMeans": lambda: kmeans().fit(X, **both).predict,
        "PCKMeans": lambda: _pck_means(X, kmeans(), soft).predict,
        "RCA + K-means": lambda: _after(rca(), kmeans(), X),
        "MMC + K-means": lambda: _after(mmc(), kmeans(), X),
        "mixture": lambda: mixture().fit(X).predict,
        "must-links": lambda: mixture().fit(X, must_link=must).predict,
        "both": lambda: mixture().fit(X, **both).predict,
        "preferences": lambda: mixture().fit(X, preferences=soft).predict,
        "labels": lambda: mixture().fit(X, labels=known.labels).predict,
        "RCA + mixture": lambda: _after(rca(), mixture(covariance_type="spherical"), X),
        "spherical": lambda: mixture(covariance_type="spherical").fit(X, preferences=soft).predict,
        "tied": lambda: mixture(covariance_type="tied").fit(X, preferences=soft).predict,
        "names, weighed": lambda: _named(X, known.labels, mixture()),
    }


def _named(X: FloatArray, labels: IntArray, model: ConstrainedGaussianMixture) -> Predict:
    """Names that may be wrong: preferences to be with an anchor whose name is certain.

    The anchor of a class is one point more, at the mean of those that were given its name. If a
    name is right with γ and else any of the others, it weighs log γ (K - 1) / (1 - γ).
    """
    told = np.flatnonzero(labels >= 0)
    given = np.unique(labels[told])
    anchors = np.array([X[labels == k].mean(axis=0) for k in given]).reshape(-1, X.shape[1])
    weight = np.log(CERTAINTY * (model.n_components - 1) / (1 - CERTAINTY))
    to = len(X) + np.searchsorted(given, labels[told])
    soft = np.column_stack([told, to, np.full(len(told), weight)])
    names = np.append(np.full(len(X), -1), given)
    return model.fit(np.concatenate([X, anchors]), labels=names, preferences=soft).predict


def _pck_means(X: FloatArray, plain: COPKMeans, soft: FloatArray) -> PCKMeans:
    """PCKMeans with weights in units of the variance that plain K-means finds in its clusters.

    The limit of small variances [lu2007, eq. 4.1] has σ² w for a weight.
    """
    variance = plain.fit(X).inertia_ / X.size
    model = PCKMeans(**plain.get_params())
    return model.fit(X, preferences=soft * [1, 1, variance])


def _rca(X: FloatArray, must_link: IntArray) -> Transform:
    """The metric of RCA; without a must-link, that of the data."""
    return RCA().fit(X, must_link=must_link).transform if len(must_link) else np.asarray


def _mmc(X: FloatArray, must_link: IntArray, cannot_link: IntArray) -> Transform:
    """The metric of Xing et al., a full matrix; without one of the two kinds, that of the data."""
    if not (len(must_link) and len(cannot_link)):
        return np.asarray
    model = MMC(diagonal=False)
    return model.fit(X, must_link=must_link, cannot_link=cannot_link).transform


def _after(transform: Transform, model: Model, X: FloatArray) -> Predict:
    """``predict`` of a model that is fitted to the transformed points."""
    predict = model.fit(transform(X)).predict
    return lambda X_new: predict(transform(X_new))


# ---------------------------------------------------------------------------- the experiments


def compare(
    data: Dataset, shape: str, n_classes: int, n_answers: int, q: float, rng: Generator
) -> Results:
    """All methods on one sample of one truth, told the same."""
    truth = sample_truth(shape, n_classes, rng)
    X, y = truth.sample(N_POINTS, rng)
    X_new, y_new = truth.sample(N_NEW, rng)
    known = ask(y, n_answers, q, rng)
    seed = int(rng.integers(2**31))

    def measure(predict: Predict) -> dict[str, float]:
        return {"accuracy": matched_accuracy(y_new, predict(X_new))}

    yield from attempt_each(methods(X, n_classes, known, seed), ("accuracy",), measure)


# Every shape without answers, and with every amount of answers at every rate of errors.
AMOUNTS = [(0, 0), *product((15, 45, 120), (0, 0.05, 0.15, 0.3))]
MAP = tuple(Setting("none", (shape, 3, *amount)) for shape in SHAPES for amount in AMOUNTS)
MANY = tuple(Setting("none", ("elongated", K, 45, 0)) for K in (2, 3, 5, 10))
QUICK = (Setting("none", ("spherical", 3, 0, 0)), Setting("none", ("elongated", 3, 45, 0.15)))

# Name, function, realisations, design, and a part of it that runs in seconds.
EXPERIMENTS = (
    make_experiment("choosing-map", compare, 12, MAP, QUICK, paper="book"),
    make_experiment("choosing-classes", compare, 24, MANY, MANY[2:3], paper="book"),
)
