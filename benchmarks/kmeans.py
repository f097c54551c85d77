"""Compare the time and quality of constrained K-means with active-semi-supervised-clustering 0.0.1.

The book does not require this package (see benchmarks/requirements.txt); if it is not installed,
only cgmm is measured. ``--repeats N`` sets the number of sets of pairs (at most three for digits);
``--smoke`` measures one set for wine. Each fit is one restart, with the package's own
initialisation and defaults. The ratio is peer / cgmm, so cgmm is faster if it is above one. The
packages need different numbers of iterations, so a second ratio compares the times per iteration,
in which the time of the initialisation is distributed over the iterations. Times are processor
times of this process, so other programs do not count.

Pairs are drawn with their true relations. *apart*: no point is in two pairs [lu2007, sect. 5.1.1].
*overlapping*: both points are drawn independently, so chains of relations occur. All problems are
feasible, since the true classes satisfy all relations. A fit that raises an error has failed, and
has no time.

The package is used without changes. Three of its defects affect the table. It ignores must-links to
points of cluster 0, so relations are broken. COP-KMeans assigns points in a new random order in
each iteration, so on digits it seldom converges and runs until its limit of 100 iterations. If an
order leads to a dead end, it tries another one, up to 1000 times.
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
    """Data set, number and kind of pairs, and method."""

    name: str
    n_pairs: int
    kind: str
    method: str

    @property
    def case(self) -> str:
        """Name of the case in the file of results."""
        return f"{self.method}, {self.name}, {self.kind}"


PEER = "active-semi-supervised-clustering"
PROBLEMS = [
    Problem(*data, method)
    for data in (
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


def draw_relations(y: np.ndarray, problem: Problem, seed: int) -> Relations:
    """Draw random pairs with their true relations."""
    if problem.kind == "apart":
        return random_pairs(y, problem.n_pairs, random_state=seed)
    pairs = np.random.default_rng(seed).integers(len(y), size=(problem.n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


class Fit(NamedTuple):
    """Time and quality of one fit; NaN if the fit failed."""

    seconds: float = np.nan
    n_iterations: int = 1
    broken: int = 0
    inertia: float = np.nan


def fit_cgmm(name: str, X, n_clusters: int, relations: Relations, seed: int) -> Fit:
    """Measure one fit of cgmm."""
    model = OURS[name](n_clusters, random_state=seed)
    known = {"must_link": relations.must_link, "cannot_link": relations.cannot_link}
    seconds = common.measure_seconds(lambda: model.fit(X, **known))
    broken = sum(broken_relations(model.labels_, *relations))
    return Fit(seconds, len(model.history_), broken, model.inertia_)


def fit_peer(name: str, X, n_clusters: int, relations: Relations, seed: int) -> Fit:
    """Measure one fit of the other package, and count its iterations."""
    model = THEIRS[name](n_clusters=n_clusters)
    calls = []
    assign = model._assign_clusters
    model._assign_clusters = lambda *args: (calls.append(1), assign(*args))[1]
    np.random.seed(seed)  # noqa: NPY002
    known = {"ml": relations.must_link.tolist(), "cl": relations.cannot_link.tolist()}
    try:
        seconds = common.measure_seconds(lambda: model.fit(X, **known))
    except Exception:
        return Fit()
    broken = sum(broken_relations(model.labels_, *relations))
    inertia = float(np.square(X - model.cluster_centers_[model.labels_]).sum())
    return Fit(seconds, len(calls), broken, inertia)


def compare(problem: Problem, n_repeats: int) -> Iterator[common.Row]:
    """Measure both packages in turn on the same pairs, print a line, and yield the rows."""
    X, y = DATA[problem.name](return_X_y=True)
    functions = {"cgmm": fit_cgmm} if peer is None else {"cgmm": fit_cgmm, PEER: fit_peer}
    fits: dict[str, list[Fit]] = {name: [] for name in functions}
    for seed in range(n_repeats):
        relations = draw_relations(y, problem, seed)
        for name, fit in functions.items():
            fits[name].append(fit(problem.method, X, len(np.unique(y)), relations, seed))
    per_fit = {name: [fit.seconds for fit in of] for name, of in fits.items()}
    per_iteration = {
        name: [fit.seconds / fit.n_iterations for fit in of] for name, of in fits.items()
    }
    report(problem, fits, per_fit, per_iteration)
    times = per_fit | {f"{name}, an iteration": of for name, of in per_iteration.items()}
    yield from common.yield_rows("kmeans", problem.case, problem.n_pairs, times)


def report(problem: Problem, fits: dict, per_fit: dict, per_iteration: dict) -> None:
    """Print the line of a problem in the table."""
    line = f"{problem.case:<34}{problem.n_pairs:4d} pairs "
    line += "".join(f"{1e3 * np.nanmedian(times):9.1f}" for times in per_fit.values()) + " ms"
    if peer is not None:
        of_fit, of_iteration = (
            common.compute_ratios(times[PEER], of=times["cgmm"])
            for times in (per_fit, per_iteration)
        )
        failed = sum(np.isnan(per_fit[PEER]))
        broken = [sum(fit.broken for fit in of) for of in fits.values()]
        ours, theirs = (np.array([fit.inertia for fit in of]) for of in fits.values())
        line += f"  {common.format_quartiles(of_fit, 0):<18} {np.median(of_iteration):5.0f}   "
        line += f"{failed:3d}   {broken[0]:4d} {broken[1]:4d}   "
        line += f"{np.nanmedian(ours / theirs):6.3f}"
    print(line, flush=True)


def main() -> None:
    """Measure all problems, print the table and write the file."""
    options = common.parse_options(__doc__, repeats=10)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.format_machine())
    if peer is None:
        common.report_missing_package(PEER)
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
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
