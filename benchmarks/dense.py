"""Measure default fits with many relations: engines used, time, and quality.

    python benchmarks/dense.py                all cases, about an hour
    python benchmarks/dense.py --smoke        the smallest sizes, once, in seconds

``--repeats N`` changes the number of draws, which is twelve; large problems have a quarter as many.
Points are those of ``reruns.choosing``: round clusters in four dimensions, with a given distance
between the nearest means, in standard deviations. Relations are true.

*random pairs*: P random pairs of points, as must-links and cannot-links. *weak points*: the same,
with means one standard deviation apart. *teachers*: each of T teachers sorts twenty of 900 points
into ten classes, and several teachers sort the same point. *grid*: cannot-links between all
neighbours in a square grid whose classes are a random colouring. *hubs*: 8,000 cannot-links, each
to one of ten points.

All fits of a draw have the same initialisation, the first one that a default fit would try. The
exceptions are COP-KMeans and *default, ten starts*, which have ten restarts. *no relations* is the
default fit without relations. *Gibbs* stops after twenty times the time of the default fit of the
same draw; it is measured in some cases only.

*marginals* and *messages* are single calls of an engine, with the log-densities of the true
components as unaries. *marginals* are problems for which exact inference is possible: 900 points
with P random pairs, or sixty points. *messages* are problems with 900 points. In these cases
*cannot-links* are true, and *preferences* are answers about random pairs with log-odds of ±2, of
which a given share is wrong.

``quality/dense.csv`` contains all quantities that are not times: adjusted Rand index (ARI), number
of relations that ``labels_`` break, number of nodes with approximate inference, largest width of
the network, if the messages of the last E-step had not converged, the residual, and the mean
absolute error of marginals compared with exact ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from cgmm import ConstrainedGaussianMixture, COPKMeans, scenarios
from cgmm.inference import ENGINES
from cgmm.inference.gibbs import gibbs
from cgmm.metrics import broken_relations
from cgmm.mixture.initialise import named_start
from cgmm.network import Engine, Graph, Marginals, SideInformation, spanning_forest
from cgmm.scenarios import Relations
from reruns.choosing import sample_truth

CLASSES = (2, 3, 5, 10)
# These are distances between the nearest means, in standard deviations.
APART, WEAK, WEAKER = 2.5, 1.0, 0.5
# These are numbers of points in direct calls of engines.
N_SMALL, N_LARGE = 60, 900
# A Gibbs fit takes at most this many times the time of the default fit.
TIMES_DEFAULT = 20
# These are the log-odds of a preference.
LOG_ODDS = 2.0


class Problem(NamedTuple):
    """One size of one case."""

    case: str
    size: int
    n_points: int
    n_classes: int
    kind: str = "random pairs"
    gap: float = APART
    wrong: float = 0.0
    with_gibbs: bool = False
    with_starts: bool = False

    @property
    def is_call(self) -> bool:
        """True if an engine is called directly and no mixture is fitted."""
        return self.case.startswith(("marginals", "messages"))

    def get_n_draws(self, n_repeats: int) -> int:
        """Return the number of draws: a quarter of ``n_repeats`` for large problems."""
        return -(-n_repeats // 4) if self.n_points >= 10_000 else n_repeats


def _yield_fit_problems() -> Iterator[Problem]:
    """Yield the problems in which mixtures are fitted."""
    for k in CLASSES:
        for p in (90, 450, 1000, 2000, 9000):
            with_gibbs, with_starts = (k in ks and p in (1000, 2000) for ks in ((3,), (3, 10)))
            case = f"random pairs, N = 900, K = {k}"
            yield Problem(case, p, N_LARGE, k, with_gibbs=with_gibbs, with_starts=with_starts)
    for k in CLASSES:
        for p in (1000, 10_000, 100_000):
            yield Problem(f"random pairs, N = 10,000, K = {k}", p, 10_000, k)
    for p in (1000, 2000):
        yield Problem("weak points, N = 900, K = 3", p, N_LARGE, 3, gap=WEAK, with_gibbs=True)
    case = "weak points, cannot-links, N = 900, K = 3"
    yield Problem(case, 1800, N_LARGE, 3, "cannot-links", WEAK)
    for t in (20, 50, 100):
        yield Problem("teachers, N = 900, K = 10", t, N_LARGE, 10, "teachers")
    for k in (2, 3, 5):
        for n in (100, 1600):
            yield Problem(f"grid, K = {k}", n, n, k, "grid")
    yield Problem("hubs, N = 100,000, K = 3", 8000, 100_000, 3, "hubs")


def _yield_call_problems() -> Iterator[Problem]:
    """Yield the problems in which engines are called directly."""
    for k, sizes in ((3, (600, 700)), (5, (600,))):
        for p in sizes:
            yield Problem(f"marginals, random pairs, N = 900, K = {k}", p, N_LARGE, k)
    for gap in (WEAKER, WEAK, APART):
        for n in (30, 60, 90):
            yield Problem(
                f"marginals, cannot-links, {gap} apart", n, N_SMALL, 3, "cannot-links", gap
            )
    for what, n, densities in (
        ("marginals", N_SMALL, (1.0, 1.5)),
        ("messages", N_LARGE, (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)),
    ):
        for wrong, gap in ((0.2, WEAKER), (0.4, WEAKER), (0.4, APART)):
            case = f"{what}, preferences, {wrong:.0%} wrong, {gap} apart"
            for size in (round(n * density) for density in densities):
                yield Problem(case, size, n, 3, "preferences", gap, wrong)
    for n in (450, 900, 1350, 1800, 2700, 4500, 7200):
        case = f"messages, cannot-links, {WEAKER} apart"
        yield Problem(case, n, N_LARGE, 3, "cannot-links", WEAKER)


PROBLEMS = [*_yield_fit_problems(), *_yield_call_problems()]
CASES = {(p.case, p.size) for p in PROBLEMS}


# ------------------------------------------------------------------------------ draws


class Drawn(NamedTuple):
    """Points, their classes, and relations."""

    X: np.ndarray
    """(N, 4) points."""
    y: np.ndarray
    """(N,) classes."""
    relations: Relations
    """True relations."""
    log_densities: np.ndarray
    """(N, K) log-densities of the points under the true components, up to a constant."""

    @property
    def known(self) -> dict[str, np.ndarray]:
        """Relations as keyword arguments of ``fit``."""
        return self.relations._asdict()

    @property
    def side(self) -> SideInformation:
        """Relations as side information for engines."""
        return SideInformation.build(len(self.X), **self.known)

    def build_preferences(self, wrong: float, rng: np.random.Generator) -> SideInformation:
        """Return the relations as preferences, of which a share is wrong."""
        flipped = scenarios.flip(self.relations, wrong, random_state=rng)
        rows = [(pairs, sign) for pairs, sign in zip(flipped, (LOG_ODDS, -LOG_ODDS), strict=True)]
        soft = np.concatenate([np.column_stack([p, np.full(len(p), w)]) for p, w in rows])
        return SideInformation.build(len(self.X), preferences=soft)


def draw_data(problem: Problem, seed: int) -> Drawn:
    """Draw points of round classes, and true relations."""
    rng = np.random.default_rng(seed)
    truth = sample_truth("overlapping", problem.n_classes, rng)
    truth = truth._replace(means=truth.means * problem.gap / APART)
    if problem.kind == "grid":
        y = _draw_grid_colouring(round(problem.size**0.5), problem.n_classes, rng)
        X = truth.means[np.argsort(truth.class_of)][y] + rng.normal(size=(len(y), 4))
    else:
        X, y = truth.sample(problem.n_points, rng)
    means = truth.means[np.argsort(truth.class_of)]
    squares = ((X[:, None] - means) ** 2).sum(axis=-1)
    return Drawn(X, y, RELATIONS[problem.kind](problem, y, rng), -0.5 * squares)


def _draw_grid_colouring(side: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw classes on a square grid, row by row, such that neighbours have different classes."""
    z = np.full((side + 1, side + 1), -1)
    for i in range(side):
        for j in range(side):
            z[i, j] = rng.choice(np.setdiff1d(np.arange(n_classes), [z[i - 1, j], z[i, j - 1]]))
    return z[:side, :side].ravel()


def _draw_pairs(problem: Problem, y: np.ndarray, rng: np.random.Generator) -> Relations:
    """Draw ``problem.size`` random pairs, with their true relations."""
    i, j = rng.integers(len(y), size=(2, 2 * problem.size))
    return _relate_truly(y, np.column_stack([i, j])[i != j][: problem.size])


def _draw_cannot_links(problem: Problem, y: np.ndarray, rng: np.random.Generator) -> Relations:
    """Draw ``problem.size`` cannot-links between random points of different classes."""
    i, j = rng.integers(len(y), size=(2, 4 * problem.size))
    return _relate_truly(y, np.column_stack([i, j])[y[i] != y[j]][: problem.size])


def _draw_hubs(problem: Problem, y: np.ndarray, rng: np.random.Generator) -> Relations:
    """Draw ``problem.size`` cannot-links, each to one of the first ten points."""
    i, j = rng.integers(10, size=2 * problem.size), rng.integers(10, len(y), size=2 * problem.size)
    return _relate_truly(y, np.column_stack([i, j])[y[i] != y[j]][: problem.size])


def _relate_truly(y: np.ndarray, pairs: np.ndarray) -> Relations:
    """Return the true relations of pairs of points."""
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


RELATIONS: dict[str, Callable[[Problem, np.ndarray, np.random.Generator], Relations]] = {
    "random pairs": _draw_pairs,
    "preferences": _draw_pairs,
    "cannot-links": _draw_cannot_links,
    "hubs": _draw_hubs,
    "grid": lambda problem, y, rng: _relate_truly(
        y, scenarios.grid_neighbours([round(problem.size**0.5)] * 2)
    ),
    "teachers": lambda problem, y, rng: scenarios.teachers(y, problem.size, 20, random_state=rng),
}


# ------------------------------------------------------------------------------- fits


def measure_fits(problem: Problem, seed: int) -> Iterator[tuple[str, common.Measured]]:
    """Fit each method in turn to the same points, and yield its name and measurement."""
    drawn = draw_data(problem, seed)
    mixture = partial(ConstrainedGaussianMixture, problem.n_classes, random_state=seed)
    rng = np.random.RandomState(seed)
    start = named_start("kmeans", drawn.X, problem.n_classes, rng, drawn.side)
    default = measure_fit(drawn, mixture(init_params=start))
    yield "default", default
    if problem.with_starts:
        yield "default, ten starts", measure_fit(drawn, mixture(n_init=10))
    unrelated = measure_fit(drawn, mixture(init_params=start), with_relations=False)
    yield "no relations", unrelated
    tree = mixture(inference="spanning_tree", init_params=start)
    yield "spanning tree", measure_fit(drawn, tree)
    cop = COPKMeans(problem.n_classes, n_init=10, random_state=seed)
    yield "COP-KMeans", measure_fit(drawn, cop)
    if problem.with_gibbs:
        propagation = mixture(inference="belief_propagation", init_params=start)
        yield "belief propagation", measure_fit(drawn, propagation)
        limit = TIMES_DEFAULT * (default[0] or 1.0)
        engine = partial(_limit_gibbs_time, limit, random_state=seed)
        sampling = mixture(inference=engine, weights="ignore", init_params=start)
        yield "Gibbs", measure_fit(drawn, sampling)


def _limit_gibbs_time(limit: float, graph: Graph, *, random_state: int) -> Callable:
    """Return a Gibbs engine that interrupts the fit after this number of seconds."""
    infer, deadline, n_calls = gibbs(graph, random_state=random_state), None, 0

    def infer_until_deadline(unary: np.ndarray) -> object:
        nonlocal deadline, n_calls
        deadline, n_calls = deadline or time.process_time() + limit, n_calls + 1
        # Do not interrupt before the first iteration is complete, or the fit would have no result.
        if n_calls > 2 and time.process_time() > deadline:
            raise KeyboardInterrupt
        return infer(unary)

    return infer_until_deadline


def measure_fit(
    drawn: Drawn, model: ConstrainedGaussianMixture | COPKMeans, with_relations: bool = True
) -> common.Measured:
    """Return time and quality of a fit."""
    known = drawn.known if with_relations else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            seconds = common.measure_seconds(lambda: model.fit(drawn.X, **known))
        except (ValueError, RuntimeError):
            return None, {}
    quality = {"ARI": adjusted_rand_score(drawn.y, model.labels_)}
    if with_relations:
        quality["broken"] = sum(broken_relations(model.labels_, *drawn.relations))
        unsettled = [w for w in caught if "a sweep still changes" in str(w.message)]
        quality |= _summarise_inference(model) | {"unsettled": float(bool(unsettled))}
    return seconds, quality


def _summarise_inference(model: ConstrainedGaussianMixture | COPKMeans) -> dict[str, float]:
    """Return the number of nodes with approximate inference, and the largest width."""
    parts = [part for part in getattr(model, "inference_", ()) if part.n_edges]
    approximate = [part for part in parts if part.engine in ("belief_propagation", "gibbs")]
    return {
        "approximated": sum(part.n_nodes for part in approximate),
        "width": max((part.width or 0 for part in parts), default=0),
    }


# ------------------------------------------------------------------------------ calls


def measure_calls(problem: Problem, seed: int) -> Iterator[tuple[str, common.Measured]]:
    """Call each engine once, and yield its name, time and error of marginals."""
    drawn = draw_data(problem, seed)
    side = drawn.side
    if problem.kind == "preferences":
        side = drawn.build_preferences(problem.wrong, np.random.default_rng(seed))
    unary, exact = side.sum_over_nodes(drawn.log_densities), None
    engines = {
        "belief propagation": ENGINES["belief_propagation"],
        "spanning tree": lambda graph: ENGINES["auto"](spanning_forest(graph)),
    }
    if problem.case.startswith("marginals"):
        engines = {"exact": ENGINES["exact"], **engines, "Gibbs": gibbs}
    for name, engine in engines.items():
        seconds, marginals = call_engine(engine, side.graph, unary)
        exact = marginals.nodes if name == "exact" else exact
        quality = {} if np.isnan(marginals.residual) else {"residual": marginals.residual}
        if exact is not None and name != "exact":
            quality["error"] = float(np.abs(marginals.nodes - exact).mean())
        yield name, (seconds, quality)


def call_engine(engine: Engine, graph: Graph, unary: np.ndarray) -> tuple[float, Marginals]:
    """Return the time of the first call, including work on the structure, and the marginals."""
    results: list[Marginals] = []
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        seconds = common.measure_seconds(lambda: results.append(engine(graph)(unary)))
    return seconds, results[0]


# ------------------------------------------------------------------------------- main


def select_small_problems(problems: list[Problem]) -> list[Problem]:
    """Return the first small problem of each kind, of fits and calls, with and without Gibbs."""
    small = [p for p in problems if p.n_points <= N_LARGE and p.size <= 1000]
    first = {(p.kind, p.is_call, p.with_gibbs): p for p in reversed(small)}
    return list(reversed(first.values()))


def report(problem: Problem, measured: dict[str, list[common.Measured]]) -> None:
    """Print the median time and the means of all other quantities, for each method."""
    print(f"{problem.case}, {problem.size:,}")
    for method, draws in measured.items():
        times = [np.nan if seconds is None else seconds for seconds, _ in draws]
        names = dict.fromkeys(name for _, quality in draws for name in quality)
        means = {n: np.mean([q[n] for _, q in draws if n in q]) for n in names}
        summary = "  ".join(f"{name} {mean:.3g}" for name, mean in means.items())
        print(f"    {method:20} {np.nanmedian(times):8.3f} s  {summary}", flush=True)


def main() -> None:
    """Measure all problems, print the results, and write both files after each problem."""
    options = common.parse_options(__doc__, repeats=12)
    times: list[common.Row] = []
    quality: list[common.Quality] = []
    print(common.format_machine())
    for problem in select_small_problems(PROBLEMS) if options.smoke else PROBLEMS:
        measure = measure_calls if problem.is_call else measure_fits
        measured: dict[str, list[common.Measured]] = {}
        for repetition in range(problem.get_n_draws(options.repeats)):
            for method, measurement in measure(problem, repetition):
                measured.setdefault(method, []).append(measurement)
        report(problem, measured)
        new = common.tabulate("dense", problem.case, problem.size, measured)
        times, quality = times + new[0], quality + new[1]
        # Store finished measurements at once, because the benchmark takes an hour.
        common.write_times(options.results, times)
        common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
