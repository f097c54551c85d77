"""The experiments of lu2007: its Figures 1 and 2, and 5 to 12.

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

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from cgmm.datasets import Dataset, load
from cgmm.inference.gibbs import gibbs
from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metrics import match_labels, matched_accuracy
from cgmm.mixture import ConstrainedGaussianMixture, Parameters
from cgmm.network import Engine
from cgmm.numerics import BoolArray, FloatArray, IntArray
from cgmm.replicate.design import Experiment, Result, Setting, attempt
from cgmm.scenarios import (
    Relations,
    class_set_stars,
    estimate_flip_rate,
    flip,
    grid_neighbours,
    preferences,
    random_pairs,
)

TOY = ("lu_set_1", "lu_set_2", "lu_set_3")

UCI = ("iris", "waveform", "pendigits-0689")

# How many relations: up to nearly all that can be had without overlap, 0.45 N.
N_TOY = (0, 10, 30, 50, 70, 100, 130, 160)

N_UCI = {
    "iris": (0, 10, 20, 30, 40, 50, 60),
    "waveform": (0, 100, 400, 800, 1600),
    "pendigits-0689": (0, 50, 100, 200, 400, 800, 1200),
}


def named_accuracy(
    y_train: IntArray, z_train: IntArray, y_test: IntArray, z_test: IntArray
) -> dict[str, float]:
    """Accuracy on both parts, with the clusters named by the best matching on the first.

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


GMM_START: dict[str, Any] = {"n_init": 10, "init_params": "random_from_data", "max_iter": 300}

KMEANS_START: dict[str, Any] = {"n_init": 10, "init": "random"}


def _gmm(n_components: int, seed: int, **options: Any) -> ConstrainedGaussianMixture:
    return ConstrainedGaussianMixture(n_components, random_state=seed, **GMM_START, **options)


def figure_5(data: Dataset, rng: np.random.Generator) -> Iterator[Result]:
    """What the toy problems are made for, in a new sample of each.

    "bic_gain" is by how much two Gaussians explain one class better than one does. Without
    relations a mixture and K-means are to fail; "Gaussians" and "centres" are those of the true
    classes: what each model could do if it were told everything.
    """
    X, y, *_ = load(data.name, random_state=int(rng.integers(2**31)))
    seed = int(rng.integers(2**31))
    for k in (0, 1):
        bic = [_gmm(m, seed).fit(X[y == k]).bic(X[y == k]) for m in (1, 2)]
        yield Result(f"class {k + 1}", "bic_gain", float(bic[0] - bic[1]))
    models = {
        "GMM": lambda: _gmm(2, seed).fit(X).labels_,
        "K-means": lambda: COPKMeans(2, random_state=seed, **KMEANS_START).fit(X).labels_,
        "Gaussians": lambda: QuadraticDiscriminantAnalysis().fit(X, y).predict(X),
        "centres": lambda: NearestCentroid().fit(X, y).predict(X),
    }
    for name, labels in models.items():
        yield from attempt(name, ("accuracy",), partial(_accuracy, y, labels))


def _accuracy(y: IntArray, labels: Callable[[], IntArray]) -> dict[str, float]:
    return {"accuracy": matched_accuracy(y, labels())}


def figures_6_to_9(data: Dataset, n_relations: int, rng: np.random.Generator) -> Iterator[Result]:
    """Hard PPC, constrained EM and hard-constrained K-means; 90 % of the points to train.

    [lu2007, sect. 5.1.3]. PPC and constrained EM are the two sampling assumptions.
    """
    X, y, K = data.X, data.y, len(np.unique(data.y))
    order = rng.permutation(len(y))
    test, train = np.split(order, [len(y) // 10])
    relations = random_pairs(y[train], n_relations, random_state=rng)
    seed = int(rng.integers(2**31))

    models: dict[str, ConstrainedGaussianMixture | COPKMeans] = {
        "hard PPC": _gmm(K, seed),
        "constrained EM": _gmm(K, seed, sampling="chunklets"),
        "hard CKmeans": COPKMeans(K, random_state=seed, **KMEANS_START),
    }

    def measure(model: ConstrainedGaussianMixture | COPKMeans) -> dict[str, float]:
        model.fit(X[train], **relations._asdict())
        return named_accuracy(y[train], model.labels_, y[test], model.predict(X[test]))

    for name, model in models.items():
        quantities = ("accuracy_train", "accuracy_test")
        yield from attempt(name, quantities, partial(measure, model))


# ---------------------------------------------------------------------------- noise


def figure_10(data: Dataset, q: float, rng: np.random.Generator) -> Iterator[Result]:
    """Six methods where a relation is wrong with probability q, and half of the points are in one.

    [lu2007, sect. 5.1.4]. The best of ten starts (the paper: of a hundred) by likelihood, or by
    cost; the weight of soft-constrained K-means is, as in the paper, the one
    that turns out best.
    """
    X, y, K = data.X, data.y, len(np.unique(data.y))
    true = random_pairs(y, len(y) // 4, random_state=rng)
    must_link, cannot_link = flip(true, q, random_state=rng)
    hard = {"must_link": must_link, "cannot_link": cannot_link}
    # [lu2007, eq. 5.1]
    soft = {"preferences": preferences(must_link, cannot_link, certainty=1 - q)}
    seed = int(rng.integers(2**31))
    gmm, kmeans = _gmm(K, seed), COPKMeans(K, random_state=seed, **KMEANS_START)

    def accuracy(
        model: ConstrainedGaussianMixture | COPKMeans | PCKMeans, known: dict[str, Any]
    ) -> float:
        return matched_accuracy(y, model.fit(X, **known).labels_)

    def best_soft() -> float:
        scale = X.var(axis=0).sum()
        weights = scale * 2.0 ** np.arange(-6, 5, 2)
        model = PCKMeans(K, random_state=seed, **KMEANS_START)
        return max(accuracy(model.set_params(w=w), hard) for w in weights)

    methods = {
        "GMM": lambda: accuracy(gmm, {}),
        "soft PPC": lambda: accuracy(gmm, soft),
        "hard PPC": lambda: accuracy(gmm, hard),
        "K-means": lambda: accuracy(kmeans, {}),
        "soft CKmeans": best_soft,
        "hard CKmeans": lambda: accuracy(kmeans, hard),
    }
    for name, measure in methods.items():
        yield from attempt(name, ("accuracy",), _alone("accuracy", measure))


def _alone(quantity: str, measure: Callable[[], float]) -> Callable[[], dict[str, float]]:
    return lambda: {quantity: measure()}


# ---------------------------------------------------------------------------- one start


def figure_2(data: Dataset, w: float, rng: np.random.Generator) -> Iterator[Result]:
    """EM from the poor start of the toy problem; the paper's w counts each pair twice.

    [lu2007, sect. 2.4.1]: twenty iterations.
    """

    must_link, cannot_link = cast("Relations", (data.must_link, data.cannot_link))
    start = cast("Parameters", data.start)

    def fit() -> dict[str, float]:
        pairs = np.concatenate([must_link, cannot_link])
        sign = np.repeat([1.0, -1.0], [len(must_link), len(cannot_link)])
        model = ConstrainedGaussianMixture(
            2,
            weights_init=start.weights,
            means_init=start.means,
            covariances_init=start.covariances,
            max_iter=20,
            tol=0.0,
        )
        model.fit(data.X, preferences=np.column_stack([pairs, 2 * w * sign]) if w else None)
        return {"accuracy": matched_accuracy(data.y, model.predict(data.X))}

    yield from attempt("soft PPC" if w else "GMM", ("accuracy",), fit)


# ---------------------------------------------------------------------------- an ice sheet

# Of each terrain, in the paper's seven channels: reflectance; then the contrast of its grain, and
# the grain in pixels. Those with snow first.
TERRAINS = {
    "dry snow": ((0.92, 0.88, 0.95, 0.94, 0.60, 0.12, 0.08), 0.08, 0.7),
    "melting snow": ((0.78, 0.64, 0.84, 0.82, 0.34, 0.07, 0.05), 0.12, 2.0),
    "ice": ((0.52, 0.42, 0.62, 0.58, 0.20, 0.05, 0.04), 0.20, 1.2),
    "land": ((0.34, 0.36, 0.36, 0.36, 0.28, 0.14, 0.10), 0.20, 3.0),
    "cloud": ((0.84, 0.80, 0.86, 0.85, 0.58, 0.20, 0.14), 0.10, 1.5),
}

N_SNOW = 3

SHARE_WITHOUT_SNOW = 0.12  # six blocks with snow for each without must be at hand

SNOW_BLOCK, N_SNOW_FEATURES = 5, 50

BLACK = ("without_snow_found", "snow_taken_for_none")


class Scene(NamedTuple):
    """An image in seven channels, and what its blocks show."""

    image: FloatArray
    """(120, 400, 7) reflectance."""
    terrain: IntArray
    """(24, 80) int, the index in ``TERRAINS`` of each block."""
    X: FloatArray
    """(1920, 50) first principal components of the 175 numbers of each block."""

    @property
    def snow(self) -> BoolArray:
        """(24, 80) bool, what the expert tells."""
        return self.terrain < N_SNOW


def snow_scene(rng: np.random.Generator) -> Scene:
    """An ice sheet from above, as [lu2007, Fig. 11] describes it.

    The paper's is a satellite's image of Greenland; this one is made up, of the same size, channels
    and blocks. Its terrains differ in their spectra, but the mixture of three Gaussians that
    explains it best spends them on the kinds of snow.

    Parameters
    ----------
    rng : Generator
        Source of everything; a realisation of Figure 11 takes its scene first.

    Returns
    -------
    Scene
        120 x 400 pixels in 24 x 80 blocks.

    Examples
    --------
    >>> scene = snow_scene(np.random.default_rng(0))
    >>> scene.image.shape, scene.X.shape, float(scene.snow.mean().round(2))
    ((120, 400, 7), (1920, 50), 0.88)
    """
    where, kind, other = (_field((24, 80), (3, 6), rng) for _ in range(3))
    snow = where > np.quantile(where, SHARE_WITHOUT_SNOW)
    terrain = np.where(snow, np.digitize(kind, [-0.6, 0.6]), N_SNOW + (other > 0))
    at_pixels = np.kron(terrain, np.ones((SNOW_BLOCK, SNOW_BLOCK), dtype=int))
    light = 1 + 0.15 * _field(at_pixels.shape, (6, 6), rng)
    grains = [c * _field(at_pixels.shape, (g, g), rng) for _, c, g in TERRAINS.values()]
    light += np.choose(at_pixels, grains)
    image = np.array([spectrum for spectrum, *_ in TERRAINS.values()])[at_pixels]
    image = image * light[..., None] + 0.04 * rng.normal(size=image.shape)
    return Scene(image, terrain, _block_features(image, SNOW_BLOCK, N_SNOW_FEATURES))


def _field(
    shape: tuple[int, int], smoothing: tuple[float, float], rng: np.random.Generator
) -> FloatArray:
    """Smooth noise of variance one."""
    smooth = gaussian_filter(rng.normal(size=shape), smoothing, mode="nearest")
    return smooth / smooth.std()


def snow_segmenters(
    scene: Scene, n_components: int, rng: np.random.Generator
) -> dict[str, Callable[[], IntArray]]:
    """Three ways to segment an ice sheet; half of the blocks train, both halves are labelled.

    [lu2007, sect. 5.2.1]. Each training block without snow has cannot-links to six with snow. The
    third way, not of the paper, starts where the expert's word leads: it tells whether a failure is
    the model's, or that of ten random starts.

    Parameters
    ----------
    scene : Scene
        The image.
    n_components : int
        Components of either mixture.
    rng : Generator
        Which half, which links, and the starts.

    Returns
    -------
    dict of str to callable
        Each returns the (24, 80) components of the blocks. Component 0 is made the one that holds
        most of the training blocks without snow.
    """
    train, test = np.array_split(rng.permutation(scene.terrain.size), 2)
    snow = scene.snow.ravel()
    stars = class_set_stars(snow[train].astype(int), centre=0, random_state=rng)
    model = _gmm(n_components, int(rng.integers(2**31)))
    start = _told_start(scene.X[train], snow[train], n_components)
    told = ConstrainedGaussianMixture(n_components, init_params=start, max_iter=300)

    def segment(model: ConstrainedGaussianMixture, **known: Any) -> IntArray:
        model.fit(scene.X[train], **known)
        z = np.empty(len(snow), dtype=np.int64)
        z[train], z[test] = model.labels_, model.predict(scene.X[test])
        black = np.bincount(z[train][~snow[train]], minlength=n_components).argmax()
        return ((z - black) % n_components).reshape(scene.terrain.shape)

    return {
        "GMM": lambda: segment(model),
        "hard PPC": lambda: segment(model, cannot_link=stars),
        "hard PPC, told start": lambda: segment(told, cannot_link=stars),
    }


def _told_start(X: FloatArray, snow: BoolArray, n_components: int) -> FloatArray:
    """Responsibilities: one component without snow, the others share the snow by brightness."""
    component = np.zeros(len(X), dtype=np.int64)
    by_brightness = np.flatnonzero(snow)[np.argsort(X[snow, 0], kind="stable")]
    for k, part in enumerate(np.array_split(by_brightness, n_components - 1), start=1):
        component[part] = k
    return np.eye(n_components)[component]


def figure_11(data: Dataset, n_components: int, rng: np.random.Generator) -> Iterator[Result]:
    """Do-not-links from an expert who tells blocks with snow from those without.

    [lu2007, sect. 5.2.1]. "Black" is the component of most blocks without snow: how many of these
    it gets, and how many of those with snow.
    """
    scene = snow_scene(rng)

    def measure(segment: Callable[[], IntArray]) -> dict[str, float]:
        black = segment() == 0
        return dict(zip(BLACK, (black[~scene.snow].mean(), black[scene.snow].mean()), strict=True))

    for name, segment in snow_segmenters(scene, n_components, rng).items():
        yield from attempt(name, BLACK, partial(measure, segment))


# ---------------------------------------------------------------------------- segmentation

# Of each texture: mean brightness, contrast, smoothing in pixels along rows and along columns.
TEXTURES = ((-0.5, 1.0, 0.5, 4.0), (0.0, 0.6, 1.5, 1.5), (0.5, 1.0, 4.0, 0.5), (0.2, 1.6, 0.7, 0.7))

BLOCK, N_FEATURES = 7, 5


def textured_image(n_blocks: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """An image of four textures [lu2007, Fig. 12].

    The paper's textures are photographs (Brodatz); ours are noise of four brightnesses, contrasts
    and grains.

    Parameters
    ----------
    n_blocks : int
        Blocks of 7 x 7 pixels along each side.
    rng : Generator
        Source of the noise; a realisation of Figure 12 takes its image first.

    Returns
    -------
    image : (7 n_blocks, 7 n_blocks) array
        Brightness of each pixel.
    y : (n_blocks, n_blocks) int array
        Texture of each block.
    """
    row, column = np.indices((n_blocks, n_blocks)) / n_blocks
    inside = (row - 0.5) ** 2 + (column - 0.5) ** 2 < 0.07
    y: IntArray = np.where(inside, 3, np.minimum((row + 0.2 * column) * 2.5, 2).astype(int))
    noise = rng.normal(size=(n_blocks * BLOCK, n_blocks * BLOCK))
    textures = np.stack([_texture(noise, *look) for look in TEXTURES])
    at_pixels: Any = np.kron(y, np.ones((BLOCK, BLOCK), dtype=int))
    return np.take_along_axis(textures, at_pixels[None], axis=0)[0], y


def textured_blocks(n_blocks: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """The image of :func:`textured_image`, cut into blocks of 7 x 7 pixels.

    Parameters
    ----------
    n_blocks : int
        Blocks along each side.
    rng : Generator
        Source of the noise.

    Returns
    -------
    X : (n_blocks², 5) array
        First principal components of the 49 pixels of each block.
    y : (n_blocks, n_blocks) int array
        Texture of each block.
    """
    image, y = textured_image(n_blocks, rng)
    return _block_features(image[..., None], BLOCK, N_FEATURES), y


def _texture(noise: FloatArray, mean: float, contrast: float, *smoothing: float) -> FloatArray:
    smooth = gaussian_filter(noise, smoothing)
    return mean + contrast * smooth / smooth.std()


def _block_features(image: FloatArray, side: int, n_features: int) -> FloatArray:
    """(rows x columns of blocks, n_features) principal components of the blocks of an image."""
    height, width, n_channels = image.shape
    cut = image.reshape(height // side, side, width // side, side, n_channels).swapaxes(1, 2)
    vectors = cut.reshape(-1, side**2 * n_channels)
    centred = vectors - vectors.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:n_features].T


def texture_segmenters(
    X: FloatArray, y: IntArray, rng: np.random.Generator
) -> dict[str, Callable[[], IntArray]]:
    """Three ways to segment an image: a mixture, and soft links between neighbouring blocks.

    [lu2007, sect. 5.2.2]. All start where the mixture without links ended.

    Parameters
    ----------
    X : (N, D) array
        Features of the blocks, as :func:`textured_blocks` returns them.
    y : (rows, columns) int array
        Texture of each block; the strength of the links is estimated from it, as in the paper.
    rng : Generator
        Source of the starts.

    Returns
    -------
    dict of str to callable
        Each returns the (N,) components of the blocks.
    """
    links = grid_neighbours(y.shape)
    # [lu2007, eq. 5.2]
    soft = preferences(links, certainty=1 - estimate_flip_rate(y.ravel(), links))
    seed = int(rng.integers(2**31))
    plain = _gmm(4, seed).fit(X)

    def fit(inference: str | Engine) -> IntArray:
        model = ConstrainedGaussianMixture(
            4,
            inference=inference,
            weights="pseudo-likelihood",
            init_params=plain.responsibilities_,
            max_iter=30,
            tol=0.0,
            random_state=seed,
        )
        return model.fit(X, preferences=soft).labels_

    sampler = partial(gibbs, n_chains=1, n_sweeps=450, burn_in=50, random_state=seed)
    return {
        "GMM": lambda: plain.labels_,
        "soft PPC, mean field": lambda: fit("mean_field"),
        "soft PPC, Gibbs": lambda: fit(sampler),
    }


def figure_12(data: Dataset, n_blocks: int, rng: np.random.Generator) -> Iterator[Result]:
    """Segmentation by soft links between neighbouring blocks: Gibbs sampling and mean field.

    Times are no part of the result, since they are never twice the same:
    ``benchmarks/segmentation.py`` measures them.
    """
    X, y = textured_blocks(n_blocks, rng)
    for name, segment in texture_segmenters(X, y, rng).items():
        yield from attempt(name, ("accuracy",), partial(_accuracy, y.ravel(), segment))


EXPERIMENTS = (
    Experiment(
        name="lu2007-fig5",
        paper="lu2007",
        figure="5",
        columns=(),
        design=tuple(Setting(name) for name in TOY),
        quick=(Setting("lu_set_1"),),
        realisations=20,
        run=figure_5,
    ),
    Experiment(
        name="lu2007-fig6",
        paper="lu2007",
        figure="6 and 7",
        columns=("n_relations",),
        design=tuple(Setting(name, (n,)) for name in TOY for n in N_TOY),
        quick=(Setting("lu_set_1", (0,)), Setting("lu_set_1", (70,))),
        realisations=100,
        run=figures_6_to_9,
    ),
    Experiment(
        name="lu2007-fig8",
        paper="lu2007",
        figure="8 and 9",
        columns=("n_relations",),
        design=tuple(Setting(name, (n,)) for name in UCI for n in N_UCI[name]),
        quick=(Setting("iris", (0,)), Setting("iris", (40,))),
        realisations=100,
        run=figures_6_to_9,
    ),
    Experiment(
        name="lu2007-fig10",
        paper="lu2007",
        figure="10",
        columns=("q",),
        design=tuple(Setting(name, (q,)) for name in TOY + UCI for q in (0.15, 0.3)),
        quick=(Setting("lu_set_1", (0.15,)), Setting("iris", (0.3,))),
        realisations=20,
        run=figure_10,
    ),
    Experiment(
        name="lu2007-fig2",
        paper="lu2007",
        figure="1 and 2",
        columns=("w",),
        design=tuple(Setting("two_models", (w,)) for w in (0, 1.3, 3)),
        quick=(Setting("two_models", (0,)), Setting("two_models", (3,))),
        realisations=1,
        run=figure_2,
    ),
    Experiment(
        name="lu2007-fig11",
        paper="lu2007",
        figure="11",
        columns=("n_components",),
        design=(Setting("none", (3,)),),
        quick=(Setting("none", (3,)),),
        realisations=20,
        run=figure_11,
    ),
    Experiment(
        name="lu2007-fig12",
        paper="lu2007",
        figure="12",
        columns=("n_blocks",),
        design=(Setting("none", (72,)),),
        quick=(Setting("none", (24,)),),
        realisations=5,
        run=figure_12,
    ),
)
