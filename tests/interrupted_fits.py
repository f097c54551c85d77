"""Fits that last until somebody presses Ctrl-C, one after the other, in a process of their own.

    python -u interrupted_fits.py FOLDER [case...]

Each case says ``begin``, fits, and leaves what came of it in ``FOLDER/<case>.pickle``. Whoever
started the process sends SIGINT when the line appears that :data:`CASES` names.
"""

from __future__ import annotations

import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import numpy as np

from cgmm import (
    MMC,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    OnlineRCA,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
)

FOR_EVER = 10**9


class Case(NamedTuple):
    """A long fit, and when to interrupt it."""

    fit: Callable[[], tuple]
    """Starts it, and returns the model and what it was fitted to."""
    line: str
    """How the line begins after which SIGINT is sent."""


class Outcome(NamedTuple):
    """What came of an interrupted fit."""

    model: Any
    X: np.ndarray
    known: dict
    warned: list[str]
    interrupted: bool
    """Whether KeyboardInterrupt was raised."""
    seconds: float
    """Of the whole fit."""


def clouds(n_samples: int = 300, n_dims: int = 2, n_classes: int = 3) -> tuple:
    """Points and their classes."""
    rng = np.random.default_rng(0)
    z = np.arange(n_samples) % n_classes
    return rng.normal(size=(n_samples, n_dims)) + 2 * rng.normal(size=(n_classes, n_dims))[z], z


def pairs(z: np.ndarray) -> dict:
    """A chain of cannot-links and two must-links, all of them true."""
    known = {"cannot_link": [[0, 1], [1, 2], [2, 3]], "must_link": [[4, 7], [5, 8]]}
    assert all(z[i] != z[j] for i, j in known["cannot_link"])
    assert all(z[i] == z[j] for i, j in known["must_link"])
    return known


def gaussian(**settings) -> tuple:
    """EM that never finds that an iteration gained too little, unless told otherwise."""
    X, z = clouds()
    settings = {"tol": 0, "max_iter": FOR_EVER, "reg_covar": 0, "verbose": 2} | settings
    return ConstrainedGaussianMixture(3, random_state=0, **settings), X, pairs(z)


def gibbs() -> tuple:
    """The same with an engine that samples."""
    model, X, _ = gaussian(inference="gibbs", weights="ignore")
    return model, X, {"preferences": [[0, 1, -2.0], [4, 7, 2.0]]}


def categorical() -> tuple:
    """Categories instead of coordinates."""
    X, z = clouds()
    model = ConstrainedCategoricalMixture(3, tol=0, max_iter=FOR_EVER, random_state=0, verbose=2)
    return model, (X > 0).astype(int) + (X > 1), pairs(z)


def classifier() -> tuple:
    """Few labels, many points without."""
    X, z = clouds()
    model = SemiSupervisedGaussianClassifier(tol=0, max_iter=FOR_EVER, reg_covar=0, verbose=2)
    return model, X, {"y": np.where(np.arange(len(z)) < 12, z, -1)}


def kmeans(model) -> tuple:
    """Points without clusters, so that centres take long to settle."""
    X = np.random.default_rng(0).uniform(size=(60_000, 2))
    settings = {"init": "random", "tol": 0, "random_state": 0, "verbose": 2}
    return model.set_params(**settings), X, {"cannot_link": [[0, 1], [1, 2]], "must_link": [[3, 4]]}


def restarts(model) -> tuple:
    """Short runs without end."""
    X, z = clouds()
    settings = {"n_init": FOR_EVER, "init": "random", "random_state": 0, "verbose": 1}
    return model.set_params(**settings), X, pairs(z)


def metric() -> tuple:
    """Over a million cannot-links between classes that hardly differ."""
    X, z = clouds(2000, 12)
    noise = np.random.default_rng(1).normal(size=X.shape)
    return MMC(tol=0, verbose=1), 0.1 * X + noise @ np.diag(np.logspace(-2, 2, 12)), {"y": z}


def epochs() -> tuple:
    """The same chunklets again and again."""
    X, z = clouds()
    return OnlineRCA(n_epochs=FOR_EVER, random_state=0, verbose=1), X, {"y": z}


class Stream:
    """A model that has learnt already, and now meets many chunklets at once."""

    def fit(self, X, y):
        """The second of two calls of partial_fit."""
        self.model = OnlineRCA(random_state=0).partial_fit(X[:200], y[:200])
        self.before = pickle.dumps(self.model)
        # It prints nothing itself: this line comes while it is at work.
        Timer(0.4, print, ["now"], {"flush": True}).start()
        self.model.partial_fit(X, y)


def stream() -> tuple:
    """Pairs, half a million of them."""
    X = np.random.default_rng(0).normal(size=(10**6, 2))
    return Stream(), X, {"y": np.arange(len(X)) // 2}


CASES = {
    "gaussian": Case(gaussian, "  iteration   20 "),
    "gaussian-restarts": Case(
        lambda: gaussian(n_init=FOR_EVER, tol=1e-3, max_iter=500, verbose=1), "run 5: "
    ),
    "gibbs": Case(gibbs, "  iteration    3 "),
    "categorical": Case(categorical, "  iteration   20 "),
    "classifier": Case(classifier, "  iteration   20 "),
    "cop": Case(lambda: kmeans(COPKMeans(60)), "  iteration    5 "),
    "cop-restarts": Case(lambda: restarts(COPKMeans(3)), "run 5: "),
    "pck": Case(lambda: kmeans(PCKMeans(60)), "  iteration    5 "),
    "pck-restarts": Case(lambda: restarts(PCKMeans(3, w=9.0)), "run 5: "),
    "mmc": Case(metric, "  iteration    2 "),
    "online-rca": Case(epochs, "epoch 3: "),
    "online-rca-partial": Case(stream, "now"),
}


def attend(case: Case) -> Outcome:
    """Fit, and see what comes of it."""
    model, X, known = case.fit()
    begun, interrupted = time.monotonic(), False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, **known)
        except KeyboardInterrupt:
            interrupted = True
    warned = [f"{one.category.__name__}: {one.message}" for one in caught]
    return Outcome(model, X, known, warned, interrupted, time.monotonic() - begun)


def main(folder: Path, names: list[str]) -> None:
    """Attend to the cases in order."""
    for name in names or CASES:
        print(f"begin {name}", flush=True)
        outcome = attend(CASES[name])
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    # By name, so that what is pickled here can be read elsewhere.
    import interrupted_fits

    interrupted_fits.main(Path(sys.argv[1]), sys.argv[2:])
