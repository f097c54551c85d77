"""The experiments of lu2007 on clustering: its Figures 1 and 2, and 5 to 10.

Those on images are in :mod:`reruns.segmentation`. Chapter 13.

Letters, as in the book:

====  =====================================================================
N, K  points; classes, and as many components
P     number of relations
q     probability that a relation is wrong
γ, w  certainty 1 - q of a relation, and its log-odds logit γ
====  =====================================================================

What the paper leaves open is settled so: a method keeps the best of ten starts around random
points, with the same seed for all methods (k-means++ would start in the wrong basin nearly always:
that is what the toy problems were made for); the tenth of the data for testing is drawn anew in
each realisation; clusters get their names on the training part. Real data are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from cgmm.datasets import Dataset, load
from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metrics import match_labels, matched_accuracy
from cgmm.mixture import ConstrainedGaussianMixture, Parameters
from cgmm.numerics import FloatArray, IntArray
from cgmm.scenarios import Relations, flip, preferences, random_pairs
from reruns.design import (
    Result,
    Results,
    Setting,
    attempt,
    attempt_each,
    cross,
    from_starts,
    make_experiment,
)  # fmt: skip

TOY = ("lu_set_1", "lu_set_2", "lu_set_3")

# The sets of Figure 5 were not published. Figure 10 implies for two of them: with 100 relations, 30
# % of them wrong, soft ones can win only if the truth is at most some 17 (set 1) or 13 (set 2) nats
# behind; ours were 184 and 38 [chapter 9, eq-9-price].
NEAR = ("lu_set_1_near", "lu_set_2_near")

N_STARTS_NEAR = 30  # one start in seven finds the truth there, and ten may all miss it

# Numbers of relations, up to nearly all that are possible without overlap, 0.45 N.
N_TOY = (0, 10, 30, 50, 70, 100, 130, 160)

N_UCI = {
    "iris": (0, 10, 20, 30, 40, 50, 60),
    "waveform": (0, 100, 400, 800, 1600),
    "pendigits-0689": (0, 50, 100, 200, 400, 800, 1200),
}

Model = ConstrainedGaussianMixture | COPKMeans | PCKMeans

# Every model gets the best of ten starts around random points.
mixture = partial(
    ConstrainedGaussianMixture, n_init=10, init_params="random_from_data", max_iter=300
)
cop_kmeans = partial(COPKMeans, n_init=10, init="random")
pck_kmeans = partial(PCKMeans, n_init=10, init="random")


def accuracy(y: IntArray, labels: IntArray) -> dict[str, float]:
    """Return the share of points in the cluster of their class."""
    return {"accuracy": matched_accuracy(y, labels)}


def named_accuracy(
    y_train: IntArray, z_train: IntArray, y_test: IntArray, z_test: IntArray
) -> dict[str, float]:
    """Return accuracies on both parts, with clusters matched to classes on the first.

    Examples
    --------
    >>> named_accuracy(np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([1]), np.array([0]))
    {'accuracy_train': 1.0, 'accuracy_test': 1.0}
    """
    names = match_labels(y_train, z_train)
    # A cluster that is empty in training has no name, and is no class.
    called = np.array([names.get(int(k), -1) for k in z_test])
    return {
        "accuracy_train": matched_accuracy(y_train, z_train),
        "accuracy_test": float(np.mean(called == y_test)),
    }


def figure_5(data: Dataset, rng: Generator) -> Results:
    """Check in a new sample of each toy problem the property that it was made for.

    "bic_gain" is by how much two Gaussians explain one class better than one does. Without
    relations a mixture and K-means are to fail; "Gaussians" and "centres" are those of the true
    classes: what each model could do if it were told everything.
    """
    X, y, *_ = load(data.name, random_state=int(rng.integers(2**31)))
    seed = int(rng.integers(2**31))
    for k in (0, 1):
        bic = [mixture(m, random_state=seed).fit(X[y == k]).bic(X[y == k]) for m in (1, 2)]
        yield Result(f"class {k + 1}", "bic_gain", float(bic[0] - bic[1]))
    models = {
        "GMM": lambda: mixture(2, random_state=seed).fit(X).labels_,
        "K-means": lambda: cop_kmeans(2, random_state=seed).fit(X).labels_,
        "Gaussians": lambda: QuadraticDiscriminantAnalysis().fit(X, y).predict(X),
        "centres": lambda: NearestCentroid().fit(X, y).predict(X),
    }
    yield from attempt_each(models, ("accuracy",), partial(accuracy, y))


def figures_6_to_9(data: Dataset, n_relations: int, rng: Generator) -> Results:
    """Compare hard PPC, constrained EM and COP-KMeans; 90 % of the points train.

    [lu2007, sect. 5.1.3]. PPC and constrained EM are the two sampling assumptions.
    """
    X, y, K = data.X, data.y, len(np.unique(data.y))
    order = rng.permutation(len(y))
    test, train = np.split(order, [len(y) // 10])
    relations = random_pairs(y[train], n_relations, random_state=rng)
    seed = int(rng.integers(2**31))
    models: dict[str, Model] = {
        "hard PPC": mixture(K, random_state=seed),
        "constrained EM": mixture(K, sampling="chunklets", random_state=seed),
        "hard CKmeans": cop_kmeans(K, random_state=seed),
    }

    def fit(model: Model) -> Model:
        return model.fit(X[train], **relations._asdict())

    def measure(model: Model) -> dict[str, float]:
        return named_accuracy(y[train], model.labels_, y[test], model.predict(X[test]))

    fits = {name: partial(fit, model) for name, model in models.items()}
    yield from attempt_each(fits, ("accuracy_train", "accuracy_test"), measure)


def figures_6_to_9_starts(data: Dataset, n_relations: int, rng: Generator) -> Results:
    """Compare the same from the best of ten starts, the package's default, and the truth."""
    X, y, K = data.X, data.y, len(np.unique(data.y))
    test, train = np.split(rng.permutation(len(y)), [len(y) // 10])
    relations = random_pairs(y[train], n_relations, random_state=rng)
    seed = int(rng.integers(2**31))
    models = from_starts("hard PPC", mixture(K, random_state=seed), y[train])
    chunklets = mixture(K, sampling="chunklets", random_state=seed)
    models |= from_starts("constrained EM", chunklets, y[train], own=False)

    def measure(model: Model) -> dict[str, float]:
        return named_accuracy(y[train], model.labels_, y[test], model.predict(X[test]))

    def measure_mixture(model: ConstrainedGaussianMixture) -> dict[str, float]:
        return measure(model) | {"log_evidence": model.log_evidence_}

    parts = ("accuracy_train", "accuracy_test")
    fits = {name: partial(m.fit, X[train], **relations._asdict()) for name, m in models.items()}
    yield from attempt_each(fits, (*parts, "log_evidence"), measure_mixture)
    kmeans = partial(cop_kmeans(K, random_state=seed).fit, X[train], **relations._asdict())
    yield from attempt_each({"hard CKmeans": kmeans}, parts, measure)


def _noisy_relations(
    y: IntArray, q: float, rng: Generator
) -> tuple[dict[str, IntArray], dict[str, FloatArray]]:
    """Return relations of half of the points, wrong with probability q, as links and preferences.

    [lu2007, sect. 5.1.4, eq. 5.1]
    """
    true = random_pairs(y, len(y) // 4, random_state=rng)
    must_link, cannot_link = flip(true, q, random_state=rng)
    soft = preferences(must_link, cannot_link, certainty=1 - q)
    return {"must_link": must_link, "cannot_link": cannot_link}, {"preferences": soft}


def _best_soft_kmeans(X: FloatArray, y: IntArray, **options: Any) -> IntArray:
    """Return the labels of soft-constrained K-means with the weight that turns out best.

    The paper chooses the weight in this way, too.
    """
    relations = {name: options.pop(name) for name in ("must_link", "cannot_link")}
    weights = X.var(axis=0).sum() * 2.0 ** np.arange(-6, 5, 2)
    models = (pck_kmeans(len(np.unique(y)), w=w, **options) for w in weights)
    labels = (model.fit(X, **relations).labels_ for model in models)
    return max(labels, key=partial(matched_accuracy, y))


def _six_methods(data: Dataset, q: float, rng: Generator, n_init: int = 10) -> Results:
    """Compare six methods, each from the best of ``n_init`` starts (the paper: of a hundred)."""
    X, y, K = data.X, data.y, len(np.unique(data.y))
    hard, soft = _noisy_relations(y, q, rng)
    starts: dict[str, Any] = {"n_init": n_init, "random_state": int(rng.integers(2**31))}
    gmm, kmeans = mixture(K, **starts), cop_kmeans(K, **starts)

    def labels(model: Model, **known: Any) -> IntArray:
        return model.fit(X, **known).labels_

    methods: dict[str, Callable[[], IntArray]] = {
        "GMM": partial(labels, gmm),
        "soft PPC": partial(labels, gmm, **soft),
        "hard PPC": partial(labels, gmm, **hard),
        "K-means": partial(labels, kmeans),
        "soft CKmeans": partial(_best_soft_kmeans, X, y, **hard, **starts),
        "hard CKmeans": partial(labels, kmeans, **hard),
    }
    yield from attempt_each(methods, ("accuracy",), partial(accuracy, y))


def figure_10(data: Dataset, q: float, rng: Generator) -> Results:
    """Compare six methods with noisy relations, each from the best of ten starts."""
    yield from _six_methods(data, q, rng)


def figure_10_near(data: Dataset, q: float, rng: Generator) -> Results:
    """Compare the same on nearer toy problems, from the best of thirty starts."""
    yield from _six_methods(data, q, rng, N_STARTS_NEAR)


def figure_10_starts(data: Dataset, q: float, rng: Generator) -> Results:
    """Fit the mixtures of Figure 10 from the default start and from the truth, and K-means."""
    X, y, K = data.X, data.y, len(np.unique(data.y))
    hard, soft = _noisy_relations(y, q, rng)
    seed = int(rng.integers(2**31))
    given: dict[str, dict[str, Any]] = {"GMM": {}, "soft PPC": soft, "hard PPC": hard}
    fits = {
        name: partial(model.fit, X, **known)
        for method, known in given.items()
        for name, model in from_starts(method, mixture(K, random_state=seed), y, own=False).items()
    }

    def measure(model: ConstrainedGaussianMixture) -> dict[str, float]:
        return accuracy(y, model.labels_) | {"log_evidence": model.log_evidence_}

    yield from attempt_each(fits, ("accuracy", "log_evidence"), measure)
    best_soft = partial(_best_soft_kmeans, X, y, **hard, n_init=10, random_state=seed)
    yield from attempt_each({"soft CKmeans": best_soft}, ("accuracy",), partial(accuracy, y))


def figure_2(data: Dataset, w: float, rng: Generator) -> Results:
    """Run EM from the poor start of the toy problem; the paper's w counts each pair twice.

    [lu2007, sect. 2.4.1]: twenty iterations.
    """
    must_link, cannot_link = cast("Relations", (data.must_link, data.cannot_link))
    begin = cast("Parameters", data.start)._asdict()
    start = {f"{name}_init": value for name, value in begin.items()}

    def fit() -> dict[str, float]:
        pairs = np.concatenate([must_link, cannot_link])
        sign = np.repeat([1.0, -1.0], [len(must_link), len(cannot_link)])
        model = ConstrainedGaussianMixture(2, max_iter=20, tol=0.0, **start)
        model.fit(data.X, preferences=np.column_stack([pairs, 2 * w * sign]) if w else None)
        return accuracy(data.y, model.predict(data.X))

    yield from attempt("soft PPC" if w else "GMM", ("accuracy",), fit)


UCI = tuple(Setting(name, (n,)) for name, numbers in N_UCI.items() for n in numbers)
RATES = (0.15, 0.3)
QUICK = (Setting("lu_set_1", (0.15,)), Setting("iris", (0.3,)))
LINKS = cross(NEAR, (0, 70, 160))
WEIGHTS = cross(["two_models"], (0, 1.3, 3))

# Name, function, realisations in the paper, design, and a part of it that runs in seconds.
EXPERIMENTS = (
    make_experiment("lu2007-fig5", figure_5, 20, cross(TOY), cross(TOY[:1])),
    make_experiment(
        "lu2007-fig6", figures_6_to_9, 100, cross(TOY, N_TOY), cross(TOY[:1], (0, 70)), "6 and 7"
    ),
    make_experiment("lu2007-fig8", figures_6_to_9, 100, UCI, cross(["iris"], (0, 40)), "8 and 9"),
    make_experiment("lu2007-fig10", figure_10, 20, cross([*TOY, *N_UCI], RATES), QUICK),
    make_experiment("lu2007-fig6-near", figures_6_to_9, 100, LINKS, LINKS[:2], "6 and 7"),
    make_experiment(
        "lu2007-fig10-near", figure_10_near, 20, cross(NEAR, RATES), cross(NEAR[:1], RATES[:1])
    ),
    make_experiment("lu2007-fig2", figure_2, 1, WEIGHTS, WEIGHTS[::2], "1 and 2"),
    *(
        make_experiment(f"{name}-starts", figures_6_to_9_starts, 24, design, design[2:3], figure)
        for name, design, figure in (
            ("lu2007-fig6", cross(TOY, N_TOY), "6 and 7"),
            ("lu2007-fig6-near", LINKS, "6 and 7"),
            ("lu2007-fig8", UCI, "8 and 9"),
        )
    ),
    *(
        make_experiment(f"{name}-starts", figure_10_starts, 24, design, design[:1])
        for name, design in (
            ("lu2007-fig10", cross([*TOY, *N_UCI], RATES)),
            ("lu2007-fig10-near", cross(NEAR, RATES)),
        )
    ),
)
