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
whatever it is. Mixtures begin where the package's default has them begin, and K-means is the best
of ten starts by k-means++. Beside each mixture with one component a class stands the same one
*started at the truth*, with both log-evidences: where the truth's is higher, the search missed the
maximum; where it is lower, the maximum itself is wrong. The score is the share of 1000 new points
that fall into the cluster of their class, so no method is praised for repeating its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from cgmm.datasets import Dataset
from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metric_learning import MMC, RCA
from cgmm.metrics import matched_accuracy
from cgmm.mixture import ConstrainedGaussianMixture
from cgmm.numerics import FloatArray, IntArray
from cgmm.scenarios import Relations, flip, preferences, random_pairs
from reruns.design import TRUTH, Results, Setting, attempt_each, make_experiment

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
    """Draw a truth of the given shape.

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
    """Return (n, 2) random places in the plane, the two nearest of which are ``gap`` apart."""
    draws = rng.normal(size=(50, n, 2))
    distances = np.linalg.norm(draws[:, :, None] - draws[:, None], axis=-1)
    nearest = (distances + np.diag(np.full(n, np.inf))).min(axis=(1, 2))
    best = nearest.argmax()
    return draws[best] * gap / nearest[best]


# ---------------------------------------------------------------------------- what is known


class Known(NamedTuple):
    """Side information of one kind, relations or labels, from an equal number of answers."""

    relations: Relations
    """P pairs of points."""
    labels: IntArray
    """(N,) the classes, as they are said, of one point of each pair; -1 elsewhere."""


def ask(y: IntArray, n_answers: int, q: float, rng: Generator) -> Known:
    """Return relations between random pairs, and as many labels, wrong with probability q.

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


class Fitted(NamedTuple):
    """The parts of a fit that comparisons use."""

    predict: Callable[[FloatArray], IntArray]
    """(M, D) points to (M,) clusters."""
    log_evidence: float | None = None
    """Log-evidence of a mixture; None for K-means."""


Transform = Callable[[FloatArray], FloatArray]
Methods = dict[str, Callable[[], Fitted]]
Model = COPKMeans | ConstrainedGaussianMixture

MIXTURES = (
    "mixture", "must-links", "both", "preferences", "labels", "RCA + mixture", "spherical", "tied",
    "names, weighed",
)  # fmt: skip


def methods(
    X: FloatArray, n_classes: int, known: Known, seed: int, start: str | IntArray = "auto"
) -> Methods:
    """Return the methods by name, each as a function without arguments that fits.

    Parameters
    ----------
    X : (N, D) array
        The points.
    n_classes : int
        K.
    known : Known
        Answers about the points.
    seed : int
        Seed of the starts.
    start : str or (N,) int array, default="auto"
        Where mixtures begin: a name of ``init_params``, of which five runs are made, or "auto"; an
        array has the component of each point.

    Returns
    -------
    dict of str to callable
        Those of ``MIXTURES`` know their log-evidence.
    """
    must, cannot = known.relations
    soft = preferences(must, cannot, certainty=CERTAINTY)
    # Compare five runs of a mixture with five of K-means, and the default with ten.
    is_five = isinstance(start, str) and start != "auto"
    kmeans = partial(
        COPKMeans, n_classes, init="k-means++", n_init=5 if is_five else 10, random_state=seed
    )
    mixture = partial(
        ConstrainedGaussianMixture, n_classes, reg_covar=1e-3, max_iter=300, random_state=seed,
        init_params=start if isinstance(start, str) else np.eye(n_classes)[start],
        n_init=5 if is_five else 1,
    )  # fmt: skip
    both = {"must_link": must, "cannot_link": cannot}
    rca, mmc = partial(_rca, X, must), partial(_mmc, X, must, cannot)
    return {
        "K-means": lambda: _fit(kmeans(), X),
        "COP-KMeans": lambda: _fit(kmeans(), X, **both),
        "PCKMeans": lambda: Fitted(_pck_means(X, kmeans(), soft).predict),
        "RCA + K-means": lambda: _after(rca(), kmeans(), X),
        "MMC + K-means": lambda: _after(mmc(), kmeans(), X),
        "mixture": lambda: _fit(mixture(), X),
        "must-links": lambda: _fit(mixture(), X, must_link=must),
        "both": lambda: _fit(mixture(), X, **both),
        "preferences": lambda: _fit(mixture(), X, preferences=soft),
        "labels": lambda: _fit(mixture(), X, labels=known.labels),
        "RCA + mixture": lambda: _after(rca(), mixture(covariance_type="spherical"), X),
        "spherical": lambda: _fit(mixture(covariance_type="spherical"), X, preferences=soft),
        "tied": lambda: _fit(mixture(covariance_type="tied"), X, preferences=soft),
        "names, weighed": lambda: _named(X, known.labels, mixture()),
    }


def _fit(model: Model, X: FloatArray, **known: IntArray | FloatArray) -> Fitted:
    """Fit, and return the quantities that are compared."""
    model.fit(X, **known)
    return Fitted(model.predict, getattr(model, "log_evidence_", None))


def _named(X: FloatArray, labels: IntArray, model: ConstrainedGaussianMixture) -> Fitted:
    """Fit uncertain labels as preferences for an anchor point of the labelled class.

    The anchor of a class is one point more, at the mean of those that were given its name. If a
    name is right with γ and else any of the others, it weighs log γ (K - 1) / (1 - γ).
    """
    labelled = np.flatnonzero(labels >= 0)
    given = np.unique(labels[labelled])
    anchors = np.array([X[labels == k].mean(axis=0) for k in given]).reshape(-1, X.shape[1])
    weight = np.log(CERTAINTY * (model.n_components - 1) / (1 - CERTAINTY))
    to = len(X) + np.searchsorted(given, labels[labelled])
    soft = np.column_stack([labelled, to, np.full(len(labelled), weight)])
    names = np.append(np.full(len(X), -1), given)
    if not isinstance(model.init_params, str):
        start = np.concatenate([model.init_params, np.eye(model.n_components)[given]])
        model.set_params(init_params=start)
    return _fit(model, np.concatenate([X, anchors]), labels=names, preferences=soft)


def _pck_means(X: FloatArray, plain: COPKMeans, soft: FloatArray) -> PCKMeans:
    """Fit PCKMeans with weights in units of the variance within clusters of K-means.

    The limit of small variances [lu2007, eq. 4.1] has σ² w for a weight.
    """
    variance = plain.fit(X).inertia_ / X.size
    model = PCKMeans(**plain.get_params())
    return model.fit(X, preferences=soft * [1, 1, variance])


def _rca(X: FloatArray, must_link: IntArray) -> Transform:
    """Return the metric of RCA, or that of the data if there is no must-link."""
    return RCA().fit(X, must_link=must_link).transform if len(must_link) else np.asarray


def _mmc(X: FloatArray, must_link: IntArray, cannot_link: IntArray) -> Transform:
    """Return the full metric of Xing et al., or that of the data if one kind is missing."""
    if not (len(must_link) and len(cannot_link)):
        return np.asarray
    model = MMC(diagonal=False)
    return model.fit(X, must_link=must_link, cannot_link=cannot_link).transform


def _after(transform: Transform, model: Model, X: FloatArray) -> Fitted:
    """Fit a model to the transformed points."""
    fitted = _fit(model, transform(X))
    return fitted._replace(predict=lambda X_new: fitted.predict(transform(X_new)))


# ---------------------------------------------------------------------------- the experiments


class Problem(NamedTuple):
    """One sample of one truth, with answers about it."""

    X: FloatArray
    y: IntArray
    X_new: FloatArray
    y_new: IntArray
    known: Known
    seed: int

    @classmethod
    def draw(cls, shape: str, n_classes: int, n_answers: int, q: float, rng: Generator) -> Problem:
        """Draw everything in the order in which the stored realisations were drawn."""
        truth = sample_truth(shape, n_classes, rng)
        X, y = truth.sample(N_POINTS, rng)
        X_new, y_new = truth.sample(N_NEW, rng)
        return cls(X, y, X_new, y_new, ask(y, n_answers, q, rng), int(rng.integers(2**31)))

    def run(self, start: str | IntArray, suffix: str, *, mixtures_only: bool = False) -> Results:
        """Run the methods from one start, under their names and a suffix."""
        n_classes = int(self.y.max()) + 1
        runs = methods(self.X, n_classes, self.known, self.seed, start)
        others = {name: run for name, run in runs.items() if name not in MIXTURES}
        mixtures = {name + suffix: runs[name] for name in MIXTURES}

        def measure(fitted: Fitted) -> dict[str, float]:
            accuracy = matched_accuracy(self.y_new, fitted.predict(self.X_new))
            return {"accuracy": accuracy, "log_evidence": fitted.log_evidence or np.nan}

        if not mixtures_only:
            yield from attempt_each(others, ("accuracy",), measure)
        yield from attempt_each(mixtures, ("accuracy", "log_evidence"), measure)


def compare(
    data: Dataset, shape: str, n_classes: int, n_answers: int, q: float, rng: Generator
) -> Results:
    """Compare all methods on one sample with the same answers, and started at the truth."""
    problem = Problem.draw(shape, n_classes, n_answers, q, rng)
    yield from problem.run("auto", "")
    yield from problem.run(problem.y, TRUTH, mixtures_only=True)


def compare_starts(
    data: Dataset, shape: str, n_classes: int, n_answers: int, q: float, rng: Generator
) -> Results:
    """Compare the same with the best of five k-means++ starts of each mixture."""
    problem = Problem.draw(shape, n_classes, n_answers, q, rng)
    yield from problem.run("auto", "")
    yield from problem.run("k-means++", FIVE, mixtures_only=True)
    yield from problem.run(problem.y, TRUTH, mixtures_only=True)


FIVE = ", five k-means++"

# Every shape without answers, and with every amount of answers at every rate of errors.
AMOUNTS = [(0, 0), *product((15, 120), (0, 0.3))]
MAP = tuple(Setting("none", (shape, 3, *amount)) for shape in SHAPES for amount in AMOUNTS)
MANY = tuple(Setting("none", ("elongated", K, 45, 0)) for K in (2, 3, 5, 10))
MANY += tuple(Setting("none", (shape, 3, 45, 0)) for shape in SHAPES if shape != "elongated")
QUICK = (Setting("none", ("spherical", 3, 0, 0)), Setting("none", ("elongated", 3, 120, 0.3)))

# Name, function, realisations, design, and a part of it that runs in seconds.
EXPERIMENTS = (
    make_experiment("choosing-map", compare, 24, MAP, QUICK, paper="book"),
    make_experiment("choosing-starts", compare_starts, 24, MANY, MANY[1:2], paper="book"),
)
