"""Measure default fits with many relations: engines used, time, and quality.

    python benchmarks/dense.py                all of it, about an hour
    python benchmarks/dense.py --smoke        the smallest sizes, once, in seconds

``--repeats N`` for other than twelve draws; heavy cases are drawn a quarter as often. Points are
those of ``reruns.choosing``: round clumps in four dimensions, the nearest two so many
standard deviations apart; relations are answered truthfully.

*random pairs*: P pairs, both ends drawn at random, which the answers make must-links and
cannot-links. *weak points*: the same, with clumps one deviation apart. *teachers*: T teachers sort
twenty points each out of 900 into ten classes, and their piles overlap. *grid*: cannot-links
between all neighbours of a square grid whose classes are a colouring drawn at random. *hubs*:
8,000 cannot-links, one end of each among ten points.

Each fit has the same start, the first of those that a default fit would try, with *no relations* as
well; COP-KMeans has ten starts of its own, and so has *default, ten starts*. *Gibbs* stops when it
has had twenty times the time of the default fit of the same draw; it takes part in some cases only.

*marginals* and *messages* are one call of an engine, with the densities of the true components as
unaries: *marginals* where the exact answer can be had, of 900 points with P random pairs and of
sixty with as many relations as the size says; *messages* of 900. There *cannot-links* are true, and
*preferences* are answers about random pairs with log-odds of ±2, of which a share is wrong.

``quality/dense.csv`` has what is not a time: adjusted Rand index (ARI), number of relations that
``labels_`` break, number of nodes that were approximated, greatest width of the network, whether
the messages of the last E-step had not settled, the residual, and the mean absolute error of
marginals against the exact ones.
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
APART, WEAK, WEAKER = 2.5, 1.0, 0.5  # deviations between the nearest means
N_SMALL, N_LARGE = 60, 900  # points in direct calls of engines
TIMES_DEFAULT = 20  # longest Gibbs fit, in times of the default fit
LOG_ODDS = 2.0  # of a preference


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
        """Return whether engines are called directly and nothing is fitted."""
        return self.case.startswith(("marginals", "messages"))

    def repeats(self, asked: int) -> int:
        """Return the number of draws: fewer than asked for heavy problems."""
        return -(-asked // 4) if self.n_points >= 10_000 else asked


def _fitted() -> Iterator[Problem]:
    for k in CLASSES:
        for p in (90, 450, 1000, 2000, 9000):
            both, starts = (k in ks and p in (1000, 2000) for ks in ((3,), (3, 10)))
            case = f"random pairs, N = 900, K = {k}"
            yield Problem(case, p, N_LARGE, k, with_gibbs=both, with_starts=starts)
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


def _called() -> Iterator[Problem]:
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


PROBLEMS = [*_fitted(), *_called()]
CASES = {(p.case, p.size) for p in PROBLEMS}


# ------------------------------------------------------------------------------ draws


class Drawn(NamedTuple):
    """Points, their classes, and relations."""

    X: np.ndarray
    y: np.ndarray
    relations: Relations
    log_densities: np.ndarray
    """(N, K) of the points under the true components, which are equally likely."""

    @property
    def known(self) -> dict[str, np.ndarray]:
        """Return the side information as arguments of ``fit``."""
        return self.relations._asdict()

    @property
    def side(self) -> SideInformation:
        """Return the side information as the network that engines take."""
        return SideInformation.build(len(self.X), **self.known)

    def preferred(self, wrong: float, rng: np.random.Generator) -> SideInformation:
        """Return the same pairs as preferences, some of them wrong."""
        flipped = scenarios.flip(self.relations, wrong, random_state=rng)
        rows = [(pairs, sign) for pairs, sign in zip(flipped, (LOG_ODDS, -LOG_ODDS), strict=True)]
        soft = np.concatenate([np.column_stack([p, np.full(len(p), w)]) for p, w in rows])
        return SideInformation.build(len(self.X), preferences=soft)


def draw(problem: Problem, seed: int) -> Drawn:
    """Draw points of round classes, and true relations."""
    rng = np.random.default_rng(seed)
    truth = sample_truth("overlapping", problem.n_classes, rng)
    truth = truth._replace(means=truth.means * problem.gap / APART)
    if problem.kind == "grid":
        y = _coloured_grid(round(problem.size**0.5), problem.n_classes, rng)
        X = truth.means[np.argsort(truth.class_of)][y] + rng.normal(size=(len(y), 4))
    else:
        X, y = truth.sample(problem.n_points, rng)
    means = truth.means[np.argsort(truth.class_of)]
    squares = ((X[:, None] - means) ** 2).sum(axis=-1)
    return Drawn(X, y, RELATIONS[problem.kind](problem, y, rng), -0.5 * squares)


def _coloured_grid(side: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw classes on a square grid row by row, so that no two neighbours are alike."""
    z = np.full((side + 1, side + 1), -1)
    for i in range(side):
        for j in range(side):
            z[i, j] = rng.choice(np.setdiff1d(np.arange(n_classes), [z[i - 1, j], z[i, j - 1]]))
    return z[:side, :side].ravel()


def _pairs(problem: Problem, y: np.ndarray, rng: np.random.Generator) -> Relations:
    """Return answers to this number of questions about random pairs."""
    i, j = rng.integers(len(y), size=(2, 2 * problem.size))
    return _answers(y, np.column_stack([i, j])[i != j][: problem.size])


def _cannot_links(problem: Problem, y: np.ndarray, rng: np.random.Generator) -> Relations:
    """Return this number of cannot-links between random points of different classes."""
    i, j = rng.integers(len(y), size=(2, 4 * problem.size))
    return _answers(y, np.column_stack([i, j])[y[i] != y[j]][: problem.size])


def _hubs(problem: Problem, y: np.ndarray, rng: np.random.Generator) -> Relations:
    """Return this number of cannot-links, all of ten points."""
    i, j = rng.integers(10, size=2 * problem.size), rng.integers(10, len(y), size=2 * problem.size)
    return _answers(y, np.column_stack([i, j])[y[i] != y[j]][: problem.size])


def _answers(y: np.ndarray, pairs: np.ndarray) -> Relations:
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


RELATIONS: dict[str, Callable[[Problem, np.ndarray, np.random.Generator], Relations]] = {
    "random pairs": _pairs,
    "preferences": _pairs,
    "cannot-links": _cannot_links,
    "hubs": _hubs,
    "grid": lambda problem, y, rng: _answers(
        y, scenarios.grid_neighbours([round(problem.size**0.5)] * 2)
    ),
    "teachers": lambda problem, y, rng: scenarios.teachers(y, problem.size, 20, random_state=rng),
}


# ------------------------------------------------------------------------------- fits


def fits(problem: Problem, seed: int) -> Iterator[tuple[str, common.Measured]]:
    """Run the methods in turn on the same points and from the same start."""
    drawn = draw(problem, seed)
    mixture = partial(ConstrainedGaussianMixture, problem.n_classes, random_state=seed)
    rng = np.random.RandomState(seed)
    start = named_start("kmeans", drawn.X, problem.n_classes, rng, drawn.side)
    default = fit(drawn, mixture(init_params=start))
    yield "default", default
    if problem.with_starts:
        yield "default, ten starts", fit(drawn, mixture(n_init=10))
    yield "no relations", fit(drawn, mixture(init_params=start), is_related=False)
    yield "spanning tree", fit(drawn, mixture(inference="spanning_tree", init_params=start))
    yield "COP-KMeans", fit(drawn, COPKMeans(problem.n_classes, n_init=10, random_state=seed))
    if problem.with_gibbs:
        propagating = mixture(inference="belief_propagation", init_params=start)
        yield "belief propagation", fit(drawn, propagating)
        limit = TIMES_DEFAULT * (default[0] or 1.0)
        sampled = partial(_no_longer_than, limit, random_state=seed)
        sampling = mixture(inference=sampled, weights="ignore", init_params=start)
        yield "Gibbs", fit(drawn, sampling)


def _no_longer_than(limit: float, graph: Graph, *, random_state: int) -> Callable:
    """Return a Gibbs engine whose fit is interrupted after this number of seconds."""
    infer, deadline, n_calls = gibbs(graph, random_state=random_state), None, 0

    def timed(unary: np.ndarray) -> object:
        nonlocal deadline, n_calls
        deadline, n_calls = deadline or time.process_time() + limit, n_calls + 1
        # An interrupt before the first iteration is complete would leave nothing.
        if n_calls > 2 and time.process_time() > deadline:
            raise KeyboardInterrupt
        return infer(unary)

    return timed


def fit(
    drawn: Drawn, model: ConstrainedGaussianMixture | COPKMeans, is_related: bool = True
) -> common.Measured:
    """Return time and quality of a fit."""
    known = drawn.known if is_related else {}
    with warnings.catch_warnings(record=True) as flipped:
        warnings.simplefilter("always")
        try:
            seconds = common.seconds(lambda: model.fit(drawn.X, **known))
        except (ValueError, RuntimeError):
            return None, {}
    quality = {"ARI": adjusted_rand_score(drawn.y, model.labels_)}
    if is_related:
        quality["broken"] = sum(broken_relations(model.labels_, *drawn.relations))
        unsettled = [w for w in flipped if "a sweep still changes" in str(w.message)]
        quality |= _who(model) | {"unsettled": float(bool(unsettled))}
    return seconds, quality


def _who(model: ConstrainedGaussianMixture | COPKMeans) -> dict[str, float]:
    """Return the number of approximated nodes and the greatest width, if a model knows them."""
    answers = [a for a in getattr(model, "inference_", ()) if a.n_edges]
    approximate = [a for a in answers if a.engine in ("belief_propagation", "gibbs")]
    return {
        "approximated": sum(a.n_nodes for a in approximate),
        "width": max((a.width or 0 for a in answers), default=0),
    }


# ------------------------------------------------------------------------------ calls


def calls(problem: Problem, seed: int) -> Iterator[tuple[str, common.Measured]]:
    """Call each engine once, and measure the errors of its marginals."""
    drawn = draw(problem, seed)
    side = drawn.side
    if problem.kind == "preferences":
        side = drawn.preferred(problem.wrong, np.random.default_rng(seed))
    unary, truth = side.sum_over_nodes(drawn.log_densities), None
    engines = {
        "belief propagation": ENGINES["belief_propagation"],
        "spanning tree": lambda graph: ENGINES["auto"](spanning_forest(graph)),
    }
    if problem.case.startswith("marginals"):
        engines = {"exact": ENGINES["exact"], **engines, "Gibbs": gibbs}
    for name, engine in engines.items():
        seconds, found = call(engine, side.graph, unary)
        truth = found.nodes if name == "exact" else truth
        quality = {} if np.isnan(found.residual) else {"residual": found.residual}
        if truth is not None and name != "exact":
            quality["error"] = float(np.abs(found.nodes - truth).mean())
        yield name, (seconds, quality)


def call(engine: Engine, graph: Graph, unary: np.ndarray) -> tuple[float, Marginals]:
    """Return the time of the first call, including work on the structure, and the result."""
    found: list[Marginals] = []
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        seconds = common.seconds(lambda: found.append(engine(graph)(unary)))
    return seconds, found[0]


# ------------------------------------------------------------------------------- main


def smallest(problems: list[Problem]) -> list[Problem]:
    """Return the first quick problem of each kind, as fit and call, with and without Gibbs."""
    light = [p for p in problems if p.n_points <= N_LARGE and p.size <= 1000]
    first = {(p.kind, p.is_call, p.with_gibbs): p for p in reversed(light)}
    return list(reversed(first.values()))


def report(problem: Problem, measured: dict[str, list[common.Measured]]) -> None:
    """Return medians of the times and means of the qualities."""
    print(f"{problem.case}, {problem.size:,}")
    for method, found in measured.items():
        took = [np.nan if seconds is None else seconds for seconds, _ in found]
        names = dict.fromkeys(name for _, quality in found for name in quality)
        means = {n: np.mean([q[n] for _, q in found if n in q]) for n in names}
        summary = "  ".join(f"{name} {mean:.3g}" for name, mean in means.items())
        print(f"    {method:20} {np.nanmedian(took):8.3f} s  {summary}", flush=True)


def main() -> None:
    """Measure, print the results, and write both files after each problem."""
    options = common.options(__doc__, repeats=12)
    times: list[common.Row] = []
    quality: list[common.Quality] = []
    print(common.head())
    for problem in smallest(PROBLEMS) if options.smoke else PROBLEMS:
        method_of = calls if problem.is_call else fits
        measured: dict[str, list[common.Measured]] = {}
        for repetition in range(problem.repeats(options.repeats)):
            for method, took in method_of(problem, repetition):
                measured.setdefault(method, []).append(took)
        report(problem, measured)
        rows, found = common.tabulate("dense", problem.case, problem.size, measured)
        times, quality = times + rows, quality + found
        # The benchmark takes an hour, so finished measurements are stored at once.
        common.write(options.results, times)
        common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
