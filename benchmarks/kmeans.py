"""Compare constrained K-means with active-semi-supervised-clustering 0.0.1, in turn.

The peer is no requirement of the book, see benchmarks/requirements.txt; without it only cgmm is
measured. ``--repeats N`` for more sets of pairs (of digits at most three), ``--smoke`` for one of
wine. Each fit is one run from each package's own start with its own settings. The ratio is peer /
cgmm: above one means that cgmm is faster. The packages need different numbers of iterations, so the
ratio of the times an iteration stands beside it; the time of the start is spread over the
iterations. Times are of the process, so that other programs do not count.

Pairs are drawn from the true classes. *apart*: no point is in two pairs [lu2007, sect. 5.1.1];
*overlapping*: both ends are drawn independently, so that relations hang together. All problems are
feasible, as the true classes satisfy all pairs; a fit that raises an error has failed, and has no
time.

Nothing of the peer is changed: its imports and arguments work with today's libraries. Three of its
defects show in the table. A must-link to a point of cluster 0 is not seen, so relations are broken.
COP-KMeans assigns in a new random order at each iteration, so that on digits it seldom settles and
runs to its limit of 100. An order that meets a dead end is tried again, up to 1000 times.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import common
import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning

from cgmm.kmeans import COPKMeans, PCKMeans
from cgmm.metrics import broken_relations
from cgmm.scenarios import Relations, random_pairs

try:
    from active_semi_clustering.semi_supervised import pairwise_constraints as peer
except ImportError:
    peer = None


class Problem(NamedTuple):
    """A data set, and the number of pairs of each kind."""

    name: str
    n_pairs: int
    kind: str
    method: str

    @property
    def case(self) -> str:
        return f"{self.method}, {self.name}, {self.kind}"


PEER = "active-semi-supervised-clustering"
PROBLEMS = [
    Problem(*which, method)
    for which in (
        ("digits", 500, "apart"),
        ("digits", 500, "overlapping"),
        ("wine", 80, "apart"),
        ("wine", 300, "overlapping"),
    )
    for method in ("COP-KMeans", "PCKMeans")
]
CASES = {(p.case, p.n_pairs) for p in PROBLEMS}
DATA = {"digits": load_digits, "wine": load_wine}
OURS = {"COP-KMeans": COPKMeans, "PCKMeans": PCKMeans}
THEIRS = {} if peer is None else {"COP-KMeans": peer.COPKMeans, "PCKMeans": peer.PCKMeans}


def draw(y: np.ndarray, problem: Problem, seed: int) -> Relations:
    """Draw pairs with their true relations."""
    if problem.kind == "apart":
        return random_pairs(y, problem.n_pairs, random_state=seed)
    pairs = np.random.default_rng(seed).integers(len(y), size=(problem.n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


class Fit(NamedTuple):
    """Time and result of one fit; empty if the fit failed."""

    seconds: float = np.nan
    n_iterations: int = 1
    broken: int = 0
    inertia: float = np.nan


def fit_ours(name: str, X, n_clusters: int, relations: Relations, seed: int) -> Fit:
    model = OURS[name](n_clusters, random_state=seed)
    known = {"must_link": relations.must_link, "cannot_link": relations.cannot_link}
    seconds = common.seconds(lambda: model.fit(X, **known))
    broken = sum(broken_relations(model.labels_, *relations))
    return Fit(seconds, len(model.history_), broken, model.inertia_)


def fit_theirs(name: str, X, n_clusters: int, relations: Relations, seed: int) -> Fit:
    model = THEIRS[name](n_clusters=n_clusters)
    calls = []
    assign = model._assign_clusters
    model._assign_clusters = lambda *args: (calls.append(1), assign(*args))[1]
    np.random.seed(seed)  # noqa: NPY002
    known = {"ml": relations.must_link.tolist(), "cl": relations.cannot_link.tolist()}
    try:
        seconds = common.seconds(lambda: model.fit(X, **known))
    except Exception:
        return Fit()
    broken = sum(broken_relations(model.labels_, *relations))
    inertia = float(np.square(X - model.cluster_centers_[model.labels_]).sum())
    return Fit(seconds, len(calls), broken, inertia)


def compare(problem: Problem, n_repeats: int) -> Iterator[common.Row]:
    """Fit both in turn on the same pairs, and print a line."""
    X, y = DATA[problem.name](return_X_y=True)
    fitters = {"cgmm": fit_ours} if peer is None else {"cgmm": fit_ours, PEER: fit_theirs}
    fits: dict[str, list[Fit]] = {name: [] for name in fitters}
    for seed in range(n_repeats):
        relations = draw(y, problem, seed)
        for name, fit in fitters.items():
            fits[name].append(fit(problem.method, X, len(np.unique(y)), relations, seed))
    seconds = {name: [fit.seconds for fit in of] for name, of in fits.items()}
    each = {name: [fit.seconds / fit.n_iterations for fit in of] for name, of in fits.items()}
    report(problem, fits, seconds, each)
    each = {f"{name}, an iteration": took for name, took in each.items()}
    yield from common.rows("kmeans", problem.case, problem.n_pairs, seconds | each)


def report(problem: Problem, fits: dict, seconds: dict, each: dict) -> None:
    """One line of the table."""
    line = f"{problem.case:<34}{problem.n_pairs:4d} pairs "
    line += "".join(f"{1e3 * np.nanmedian(took):9.1f}" for took in seconds.values()) + " ms"
    if peer is not None:
        of_fit, of_iteration = (common.ratios(t[PEER], of=t["cgmm"]) for t in (seconds, each))
        failed = sum(np.isnan(seconds[PEER]))
        broken = [sum(fit.broken for fit in of) for of in fits.values()]
        ours, theirs = (np.array([fit.inertia for fit in of]) for of in fits.values())
        line += f"  {common.spread(of_fit, 0):<18} {np.median(of_iteration):5.0f}   {failed:3d}   "
        line += f"{broken[0]:4d} {broken[1]:4d}   {np.nanmedian(ours / theirs):6.3f}"
    print(line, flush=True)


def main() -> None:
    """Print the table and write the file."""
    options = common.options(__doc__, repeats=10)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    if peer is None:
        common.without(PEER)
    print(
        f"at most {options.repeats} sets of pairs; of two columns the first is cgmm\n"
        "problem                                     median time        ratio (quartiles) an iter. "
        "failed    broken   inertia"
    )
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if not (options.smoke and problem.name == "digits"):
            n_repeats = min(options.repeats, 3) if problem.name == "digits" else options.repeats
            measured += compare(problem, n_repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
