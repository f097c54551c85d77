"""The experiments of lu2007 on images: an ice sheet, and four textures. Figures 11 and 12.

Chapters 10 and 13. Letters, as in the book:

====  =====================================================================
N, D  blocks of an image, and the features of each
X, y  these features; what the blocks show, a row of blocks a row
z     components that blocks are assigned to
====  =====================================================================

The paper's images are a satellite's picture and photographs; ours are made up, and cut into blocks
of the same size. The features of a block are principal components of its pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.ndimage import gaussian_filter

from cgmm.datasets import Dataset
from cgmm.inference.gibbs import gibbs
from cgmm.mixture import ConstrainedGaussianMixture
from cgmm.network import Engine
from cgmm.numerics import BoolArray, FloatArray, IntArray
from cgmm.scenarios import class_set_stars, estimate_flip_rate, grid_neighbours, preferences
from reruns.barhillel2005 import principal
from reruns.design import Result, Results, attempt_each, cross, from_starts, make_experiment
from reruns.lu2007 import accuracy, mixture

Segmenters = dict[str, Callable[[], IntArray]]

# ---------------------------------------------------------------------------- an ice sheet

# For each terrain, in the paper's seven channels: reflectance, contrast of its grain, and size of
# the grain in pixels. Terrains with snow come first.
TERRAINS = {
    "dry snow": ((0.92, 0.88, 0.95, 0.94, 0.60, 0.12, 0.08), 0.08, 0.7),
    "melting snow": ((0.78, 0.64, 0.84, 0.82, 0.34, 0.07, 0.05), 0.12, 2.0),
    "ice": ((0.52, 0.42, 0.62, 0.58, 0.20, 0.05, 0.04), 0.20, 1.2),
    "land": ((0.34, 0.36, 0.36, 0.36, 0.28, 0.14, 0.10), 0.20, 3.0),
    "cloud": ((0.84, 0.80, 0.86, 0.85, 0.58, 0.20, 0.14), 0.10, 1.5),
}

N_SNOW = 3  # number of terrains with snow
SHARE_WITHOUT_SNOW = 0.12  # each block without snow needs six blocks with snow
SNOW_BLOCK, N_SNOW_FEATURES = 5, 50  # side of a block in pixels; features of a block

BLACK = ("without_snow_found", "snow_taken_for_none")


class Scene(NamedTuple):
    """An image in seven channels, with the terrain of its blocks."""

    image: FloatArray
    """(120, 400, 7) reflectance."""
    terrain: IntArray
    """(24, 80) int, the index in ``TERRAINS`` of each block."""
    X: FloatArray
    """(1920, 50) first principal components of the 175 numbers of each block."""

    @property
    def snow(self) -> BoolArray:
        """(24, 80) bool: True for blocks with snow."""
        return self.terrain < N_SNOW


def snow_scene(rng: Generator) -> Scene:
    """Draw an ice sheet from above, as [lu2007, Fig. 11] describes it.

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


def _field(shape: tuple[int, int], smoothing: tuple[float, float], rng: Generator) -> FloatArray:
    """Draw smooth noise of variance one."""
    smooth = gaussian_filter(rng.normal(size=shape), smoothing, mode="nearest")
    return smooth / smooth.std()


def _block_features(image: FloatArray, side: int, n_features: int) -> FloatArray:
    """Return (rows x columns, n_features) principal components of the blocks of an image."""
    height, width, n_channels = image.shape
    cut = image.reshape(height // side, side, width // side, side, n_channels).swapaxes(1, 2)
    return principal(cut.reshape(-1, side**2 * n_channels), n_features)


def snow_segmenters(scene: Scene, n_components: int, rng: Generator) -> Segmenters:
    """Return three segmenters of an ice sheet; half of the blocks train, all are labelled.

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
    model = mixture(n_components, random_state=int(rng.integers(2**31)))
    start = _labelled_start(scene.X[train], snow[train], n_components)
    given = ConstrainedGaussianMixture(n_components, init_params=start, max_iter=300)

    def segment(model: ConstrainedGaussianMixture, **known: Any) -> IntArray:
        model.fit(scene.X[train], **known)
        z = np.empty(len(snow), dtype=np.int64)
        z[train], z[test] = model.labels_, model.predict(scene.X[test])
        black = np.bincount(z[train][~snow[train]], minlength=n_components).argmax()
        return ((z - black) % n_components).reshape(scene.terrain.shape)

    return {
        "GMM": lambda: segment(model),
        "hard PPC": lambda: segment(model, cannot_link=stars),
        "hard PPC, told start": lambda: segment(given, cannot_link=stars),
    }


def _labelled_start(X: FloatArray, snow: BoolArray, n_components: int) -> FloatArray:
    """Return responsibilities: one component without snow, the others by brightness."""
    component = np.zeros(len(X), dtype=np.int64)
    by_brightness = np.flatnonzero(snow)[np.argsort(X[snow, 0], kind="stable")]
    for k, part in enumerate(np.array_split(by_brightness, n_components - 1), start=1):
        component[part] = k
    return np.eye(n_components)[component]


def figure_11(data: Dataset, n_components: int, rng: Generator) -> Results:
    """Compare segmenters with do-not-links of an expert who recognises snow.

    [lu2007, sect. 5.2.1]. "Black" is the component of most blocks without snow: how many of these
    it gets, and how many of those with snow.
    """
    scene = snow_scene(rng)

    def measure(z: IntArray) -> dict[str, float]:
        black = z == 0
        return dict(zip(BLACK, (black[~scene.snow].mean(), black[scene.snow].mean()), strict=True))

    yield from attempt_each(snow_segmenters(scene, n_components, rng), BLACK, measure)


def figure_11_starts(data: Dataset, n_components: int, rng: Generator) -> Results:
    """Compare ten random starts, the default start, and the expert's labels.

    "Truth" is the start that the expert's word leads to: blocks without snow in one component.
    """
    scene = snow_scene(rng)
    train, test = np.array_split(rng.permutation(scene.terrain.size), 2)
    snow = scene.snow.ravel()
    stars = class_set_stars(snow[train].astype(int), centre=0, random_state=rng)
    model = mixture(n_components, random_state=int(rng.integers(2**31)))
    given = _labelled_start(scene.X[train], snow[train], n_components).argmax(axis=1)

    def measure(model: ConstrainedGaussianMixture) -> dict[str, float]:
        z = np.empty(len(snow), dtype=np.int64)
        z[train], z[test] = model.labels_, model.predict(scene.X[test])
        black = z == np.bincount(z[train][~snow[train]], minlength=n_components).argmax()
        found = (black[~snow].mean(), black[snow].mean(), model.log_evidence_)
        return dict(zip((*BLACK, "log_evidence"), found, strict=True))

    known: dict[str, dict[str, Any]] = {"GMM": {}, "hard PPC": {"cannot_link": stars}}
    fits = {
        name: partial(again.fit, scene.X[train], **relations)
        for method, relations in known.items()
        for name, again in from_starts(method, model, given).items()
    }
    yield from attempt_each(fits, (*BLACK, "log_evidence"), measure)


# ---------------------------------------------------------------------------- four textures

# For each texture: mean brightness, contrast, smoothing in pixels along rows and columns.
TEXTURES = ((-0.5, 1.0, 0.5, 4.0), (0.0, 0.6, 1.5, 1.5), (0.5, 1.0, 4.0, 0.5), (0.2, 1.6, 0.7, 0.7))
BLOCK, N_FEATURES = 7, 5  # the same of textures


def textured_image(n_blocks: int, rng: Generator) -> tuple[FloatArray, IntArray]:
    """Draw an image of four textures [lu2007, Fig. 12].

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


def textured_blocks(n_blocks: int, rng: Generator) -> tuple[FloatArray, IntArray]:
    """Return the image of :func:`textured_image` in blocks of 7 x 7 pixels.

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
    """Draw the noise of one texture, as ``TEXTURES`` describes it."""
    smooth = gaussian_filter(noise, smoothing)
    return mean + contrast * smooth / smooth.std()


def texture_segmenters(
    X: FloatArray, y: IntArray, rng: Generator, plain: ConstrainedGaussianMixture | None = None
) -> Segmenters:
    """Return three segmenters: a mixture, and two with soft links between neighbours.

    [lu2007, sect. 5.2.2]. All start where the mixture without links ended.

    Parameters
    ----------
    X : (N, D) array
        Features of the blocks, as :func:`textured_blocks` returns them.
    y : (rows, columns) int array
        Texture of each block; the strength of the links is estimated from it, as in the paper.
    rng : Generator
        Source of the starts.
    plain : ConstrainedGaussianMixture, default=None
        The mixture without links; None: the best of ten random starts.

    Returns
    -------
    dict of str to callable
        Each returns the (N,) components of the blocks.
    """
    links = grid_neighbours(y.shape)
    # [lu2007, eq. 5.2]
    soft = preferences(links, certainty=1 - estimate_flip_rate(y.ravel(), links))
    seed = int(rng.integers(2**31))
    plain = (plain or mixture(4, random_state=seed)).fit(X)
    settings: dict[str, Any] = {"weights": "pseudo-likelihood", "max_iter": 30, "tol": 0.0}
    settings |= {"init_params": plain.responsibilities_, "random_state": seed}

    def fit(inference: str | Engine) -> IntArray:
        model = ConstrainedGaussianMixture(4, inference=inference, **settings)
        return model.fit(X, preferences=soft).labels_

    sampler = partial(gibbs, n_chains=1, n_sweeps=450, burn_in=50, random_state=seed)
    return {
        "GMM": lambda: plain.labels_,
        "soft PPC, mean field": lambda: fit("mean_field"),
        "soft PPC, Gibbs": lambda: fit(sampler),
    }


def figure_12(data: Dataset, n_blocks: int, rng: Generator) -> Results:
    """Compare Gibbs sampling and mean field with soft links between neighbouring blocks.

    Times are no part of the result, since they are never twice the same:
    ``benchmarks/segmentation.py`` measures them.
    """
    X, y = textured_blocks(n_blocks, rng)
    segmenters = texture_segmenters(X, y, rng)
    yield from attempt_each(segmenters, ("accuracy",), partial(accuracy, y.ravel()))


def figure_12_starts(data: Dataset, n_blocks: int, rng: Generator) -> Results:
    """Compare mean field with the mixture, both from the default start and from the truth.

    Gibbs sampling takes a minute a realisation and begins where the mixture ends, so it is left to
    :func:`figure_12`.
    """
    X, y = textured_blocks(n_blocks, rng)
    models = from_starts(
        "", mixture(4, random_state=int(rng.integers(2**31))), y.ravel(), own=False
    )
    for start, model in models.items():
        segmenters = texture_segmenters(X, y, rng, model)
        yield Result(f"GMM{start}", "log_evidence", model.log_evidence_)
        methods = {f"{name}{start}": segmenters[name] for name in ("GMM", "soft PPC, mean field")}
        yield from attempt_each(methods, ("accuracy",), partial(accuracy, y.ravel()))


# Name, function, realisations in the paper, design, and a part of it that runs in seconds.
EXPERIMENTS = (
    make_experiment("lu2007-fig11", figure_11, 20, cross(["none"], [3]), cross(["none"], [3])),
    make_experiment("lu2007-fig12", figure_12, 5, cross(["none"], [72]), cross(["none"], [24])),
    make_experiment(
        "lu2007-fig11-starts", figure_11_starts, 24, cross(["none"], [3]), cross(["none"], [3])
    ),
    make_experiment(
        "lu2007-fig12-starts", figure_12_starts, 24, cross(["none"], [72]), cross(["none"], [72])
    ),
)
