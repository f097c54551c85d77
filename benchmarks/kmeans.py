"""Constrained K-means: cgmm beside active-semi-supervised-clustering 0.0.1, in turn, in one run.

The peer is no requirement of the book. Make an environment for it and this package, and run there::

    python -m venv .venv-peers
    .venv-peers/bin/python -m pip install -e . active-semi-supervised-clustering==0.0.1
    .venv-peers/bin/python benchmarks/kmeans.py

``--repeats N`` for more sets of pairs, ``--quick`` for three. One thread. Each fit is one run from
each package's own start with its own settings. The ratio is peer / cgmm: above one means that cgmm
is faster. The packages need different numbers of iterations, so the ratio of the times an iteration
stands beside it; the time of the start is spread over the iterations. Times are of the process, so
that other programs do not count.

Pairs are drawn from the true classes. *apart*: no point is in two pairs [lu2007, sect. 5.1.1];
*overlapping*: both ends are drawn independently, so that relations hang together. All problems are
feasible, as the true classes honour all pairs; a fit fails if it raises an error.

Nothing of the peer is changed: its imports and arguments work with today's libraries. Three of its
defects show in the table. A must-link to a point of cluster 0 is not seen, so relations are broken.
COP-KMeans assigns in a new random order at each iteration, so that on digits it seldom settles and
runs to its limit of 100. An order that meets a dead end is tried again, up to 1000 times.
"""

from __future__ import annotations

import os

# Before numpy is imported: its libraries read these once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import platform
import sys
import time
import warnings
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import sklearn
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning

from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metrics import broken_relations
from cgmm.scenarios import Relations, random_pairs

try:
    from active_semi_clustering.semi_supervised import pairwise_constraints as peer
except ImportError as _error:
    sys.exit(
        f"{_error}. This benchmark compares with the package active-semi-supervised-clustering "
        "0.0.1, which is not among the requirements. Install it in an environment of its own:\n\n"
        + "\n".join(__doc__.splitlines()[4:7])
    )


class Problem(NamedTuple):
    """A data set and how many pairs of which kind are known."""

    name: str
    n_pairs: int
    kind: str

    def __str__(self) -> str:
        return f"{self.name:<7}{self.n_pairs:>5} {self.kind:<12}"


PROBLEMS = [
    Problem("digits", 500, "apart"),
    Problem("digits", 500, "overlapping"),
    Problem("wine", 80, "apart"),
    Problem("wine", 300, "overlapping"),
]
DATA = {"digits": load_digits, "wine": load_wine}
OURS = {"COP-KMeans": COPKMeans, "PCKMeans": PCKMeans}
THEIRS = {"COP-KMeans": peer.COPKMeans, "PCKMeans": peer.PCKMeans}


def draw(y: np.ndarray, problem: Problem, seed: int) -> Relations:
    """Pairs, and what they are."""
    if problem.kind == "apart":
        return random_pairs(y, problem.n_pairs, random_state=seed)
    pairs = np.random.default_rng(seed).integers(len(y), size=(problem.n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


class Fit(NamedTuple):
    """What one fit took and gave; of a fit that failed only the time is known."""

    seconds: float
    n_iterations: int
    failed: bool
    broken: int = 0
    inertia: float = np.nan


def fit_ours(name: str, X, n_clusters: int, relations: Relations, seed: int) -> Fit:
    model = OURS[name](n_clusters, random_state=seed)
    began = time.process_time()
    model.fit(X, must_link=relations.must_link, cannot_link=relations.cannot_link)
    seconds = time.process_time() - began
    broken = sum(broken_relations(model.labels_, *relations))
    return Fit(seconds, len(model.history_), False, broken, model.inertia_)


def fit_theirs(name: str, X, n_clusters: int, relations: Relations, seed: int) -> Fit:
    model = THEIRS[name](n_clusters=n_clusters)
    calls = []
    assign = model._assign_clusters
    model._assign_clusters = lambda *args: (calls.append(1), assign(*args))[1]
    np.random.seed(seed)  # noqa: NPY002
    began = time.process_time()
    try:
        model.fit(X, ml=relations.must_link.tolist(), cl=relations.cannot_link.tolist())
    except Exception:
        return Fit(time.process_time() - began, len(calls), True)
    seconds = time.process_time() - began
    broken = sum(broken_relations(model.labels_, *relations))
    inertia = float(np.square(X - model.cluster_centers_[model.labels_]).sum())
    return Fit(seconds, len(calls), False, broken, inertia)


def compare(problem: Problem, name: str, n_repeats: int) -> None:
    """Fit both in turn on the same pairs, and print a line."""
    X, y = DATA[problem.name](return_X_y=True)
    n_clusters = len(np.unique(y))
    fits = []
    for seed in range(n_repeats):
        relations = draw(y, problem, seed)
        args = name, X, n_clusters, relations, seed
        fits.append((fit_ours(*args), fit_theirs(*args)))
    seconds = np.array([[fit.seconds for fit in pair] for pair in fits])
    each = seconds / np.array([[fit.n_iterations for fit in pair] for pair in fits])
    ratios = np.sort(seconds[:, 1] / seconds[:, 0])
    of_iteration = np.median(each[:, 1] / each[:, 0])
    failed, broken = (
        [sum(getattr(pair[k], what) for pair in fits) for k in (0, 1)]
        for what in ("failed", "broken")
    )
    inertias = np.array([[fit.inertia for fit in pair] for pair in fits])
    better = np.nanmedian(inertias[:, 0] / inertias[:, 1])
    middle = 1e3 * np.median(seconds, axis=0)
    print(
        f"{problem} {name:<10} {middle[0]:8.1f} {middle[1]:8.1f} ms "
        f"{np.median(ratios):6.0f} ({ratios[0]:.0f} to {ratios[-1]:.0f}) {of_iteration:6.0f}   "
        f"{failed[0]:3d} {failed[1]:3d}   {broken[0]:4d} {broken[1]:4d}   {better:6.3f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="sets of pairs")
    parser.add_argument("--quick", action="store_true", help="three sets of pairs")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_repeats = 3 if options.quick else options.repeats
    print(
        f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}, "
        f"numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"active-semi-supervised-clustering {version('active-semi-supervised-clustering')}"
    )
    print(
        f"{n_repeats} sets of pairs; of each two columns the first is cgmm\n"
        "problem                              median time         ratio (range)  an iter.   "
        "failed     broken   inertia"
    )
    for problem in PROBLEMS:
        for name in OURS:
            compare(problem, name, n_repeats)


if __name__ == "__main__":
    main()
