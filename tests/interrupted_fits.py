"""Fits that last until somebody presses Ctrl-C, one for each loop, in a process of their own.

    python -u interrupted_fits.py FOLDER

Each says ``begin`` and its name, fits, and leaves what came of it in ``FOLDER/<name>.pickle``.
Whoever started the process sends SIGINT when the line appears that :data:`CASES` names.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import numpy as np

from cgmm import MMC, ConstrainedGaussianMixture, COPKMeans, OnlineRCA

FOR_EVER = 10**9


class Outcome(NamedTuple):
    """What came of an interrupted fit."""

    model: Any
    X: np.ndarray
    known: dict
    warned: list[str]
    interrupted: bool
    """Whether KeyboardInterrupt was raised."""


def clouds(n_samples: int = 300, n_dims: int = 2, n_classes: int = 3) -> tuple:
    """Points and their classes."""
    rng = np.random.default_rng(0)
    z = np.arange(n_samples) % n_classes
    return rng.normal(size=(n_samples, n_dims)) + 2 * rng.normal(size=(n_classes, n_dims))[z], z


def pairs(z: np.ndarray) -> dict:
    """A chain of cannot-links and two must-links, all of them true of classes in turn."""
    return {"cannot_link": [[0, 1], [1, 2], [2, 3]], "must_link": [[4, 7], [5, 8]]}


def gaussian() -> tuple:
    """EM that never finds that an iteration gained too little."""
    X, z = clouds()
    model = ConstrainedGaussianMixture(
        3, tol=0, max_iter=FOR_EVER, reg_covar=0, verbose=2, random_state=0
    )
    return model, X, pairs(z)


def kmeans() -> tuple:
    """Points without clusters, so that centres take long to settle."""
    X = np.random.default_rng(0).uniform(size=(60_000, 2))
    model = COPKMeans(60, init="random", tol=0, verbose=2, random_state=0)
    return model, X, {"cannot_link": [[0, 1], [1, 2]], "must_link": [[3, 4]]}


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
    """A model that has learnt already, and now meets half a million pairs at once."""

    def fit(self, X, y):
        """The second of two calls of partial_fit."""
        self.model = OnlineRCA(random_state=0).partial_fit(X[:200], y[:200])
        self.before = pickle.dumps(self.model)
        # It prints nothing itself: this line comes while it is at work.
        Timer(0.4, print, ["now"], {"flush": True}).start()
        self.model.partial_fit(X, y)


def stream() -> tuple:
    """Pairs without end."""
    X = np.random.default_rng(0).normal(size=(10**6, 2))
    return Stream(), X, {"y": np.arange(len(X)) // 2}


# A loop, and how the line begins after which SIGINT is sent.
CASES: dict[str, tuple[Callable[[], tuple], str]] = {
    "gaussian": (gaussian, "  iteration   20 "),
    "kmeans": (kmeans, "  iteration    5 "),
    "metric": (metric, "  iteration    2 "),
    "epochs": (epochs, "epoch 3: "),
    "stream": (stream, "now"),
}


def attend(make: Callable[[], tuple]) -> Outcome:
    """Fit, and see what comes of it."""
    model, X, known = make()
    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, **known)
        except KeyboardInterrupt:
            interrupted = True
    warned = [f"{one.category.__name__}: {one.message}" for one in caught]
    return Outcome(model, X, known, warned, interrupted)


def main(folder: Path) -> None:
    """Attend to the cases in order."""
    for name, (make, _) in CASES.items():
        print(f"begin {name}", flush=True)
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(attend(make)))


if __name__ == "__main__":
    # By name, so that what is pickled here can be read elsewhere.
    import interrupted_fits

    interrupted_fits.main(Path(sys.argv[1]))
