"""Compare strategies of asking: accuracy by the number of answers.

Writes ``book/_data/asking/answers.csv``, a row for each fit, with the columns

- ``dataset``, ``strategy``, ``draw``: the table, the strategy, and the number of the draw; all
  strategies get the same draws;
- ``answers``: number of answers in the fit; with 0 it is the same fit for all strategies of a draw;
- ``ari``: adjusted Rand index of all points of the draw;
- ``log_score``: mean over 300 random pairs of the log-probability of the true relation, in nats, if
  it were reported with the error rate of answers; a coin has -0.693.

A draw is 150 points of the data set, standardised, of real data sets the first five principal
components. A mixture of as many components as classes is fitted anew after each ten answers, from
the default start with the draw's seed, by the joint likelihood (``weights="ignore"``). Answers err
with probability 0.05, the same pair always in the same way, and enter with the log-odds of that.

- *random*: random pairs;
- *information*: the pairs with the largest expected information, ten at a time, no two of which
  touch the same connected component of the answers so far;
- *uncertainty*: the points whose class is least certain, each beside the most certain point of its
  class;
- *farthest*, *min-max*: neighbourhoods, farthest first, and then random points, or again the
  farthest; as soon as each class has a neighbourhood, fits start at their centres;
- *in order*: farthest first until each class has a neighbourhood; then *uncertainty*, and every
  third pair at random; with *own start* all later fits start at the centres of those
  neighbourhoods.

``answers.csv`` has 24 draws of seven data sets with the first five strategies, ``order.csv`` 24
draws of three tables with *farthest* and both orders:

    python benchmarks/asking.py \\
        --strategies "random;information;uncertainty;farthest;min-max"
    python benchmarks/asking.py --datasets iris,wine,breast_cancer \\
        --results .../order.csv \\
        --strategies "random;uncertainty;farthest;in order;in order, own start"

The first takes about half an hour. Each resumes where it was left, since a curve is appended when
it is finished. ``--draws N``, ``--datasets iris,wine``, ``--strategies 'random;farthest'``,
``--answers N``, ``--results FILE``; ``--smoke`` is a curve of each strategy on one data set.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from scipy.special import entr, logit
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import load
from cgmm.decide import answer_information, choose_pairs, farthest_first
from cgmm.diagnose import pair_probabilities
from cgmm.inference import ENGINES
from cgmm.network import SideInformation, related_groups

FILE = common.RESULTS.parent / "asking" / "answers.csv"
COLUMNS = ("dataset", "strategy", "draw", "answers", "ari", "log_score")
N_POINTS, BATCH, N_TESTED, Q = 150, 10, 300, 0.05
TOYS = ("vertical_classes", "three_classes", "lu_set_3")
REAL: dict[str, list[int] | None] = {
    "iris": None, "wine": None, "breast_cancer": None, "digits": [3, 5, 8, 9]
}  # fmt: skip


class Problem(NamedTuple):
    """A draw: points, classes, wrong answers, and pairs by which fits are judged."""

    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    tested: np.ndarray
    seed: int

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(np.unique(self.y))

    def ask(self, i: int, j: int) -> bool:
        """Return whether two points belong together, according to a person who may err."""
        return bool((self.y[i] == self.y[j]) ^ self.wrong[min(i, j), max(i, j)])


class Fit(NamedTuple):
    """A fit with the answers that it was given."""

    model: ConstrainedGaussianMixture
    rows: np.ndarray
    side: SideInformation

    def together(self, problem: Problem, pairs: np.ndarray) -> np.ndarray:
        """Return p(z_i = z_j)."""
        infer = ENGINES["auto"](self.side.graph)
        return pair_probabilities(problem.X, self.model.parameters_, self.side, pairs, infer)


# ---------------------------------------------------------------------------- problems


def draw_problem(name: str, draw: int) -> Problem:
    """Draw 150 points of a data set, and random pairs by which fits are judged."""
    rng = np.random.default_rng([draw, 8])
    data = load(name, random_state=draw) if name in TOYS else load(name)
    X, y = data.X, data.y
    if REAL.get(name):
        kept = np.isin(y, REAL[name])
        X, y = X[kept], y[kept]
    rows = rng.permutation(len(X))[:N_POINTS]
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    if X.shape[1] > 5:
        X = PCA(5, random_state=0).fit_transform(X)
    wrong = rng.random((len(X), len(X))) < Q
    tested = np.array([rng.choice(len(X), 2, replace=False) for _ in range(N_TESTED)])
    return Problem(X, y, wrong, tested, draw)


def fit(problem: Problem, rows: np.ndarray, known: np.ndarray | None = None) -> Fit:
    """Fit the mixture to the points and the answers so far, (n, 3) rows i, j, said.

    Where there are K neighbourhoods ``known`` (N,), it starts at their centres.
    """
    weights = np.where(rows[:, 2] == 1, 1, -1) * -logit(Q)
    preferences = np.column_stack([rows[:, :2], weights])
    centres = None
    if known is not None and known.max() == problem.n_classes - 1:
        centres = [problem.X[known == k].mean(axis=0) for k in range(problem.n_classes)]
    model = ConstrainedGaussianMixture(
        problem.n_classes, weights="ignore", reg_covar=1e-2, random_state=problem.seed,
        means_init=centres,
    )  # fmt: skip
    model.fit(problem.X, preferences=preferences)
    return Fit(model, rows, SideInformation.build(len(problem.X), preferences=preferences))


def judge(problem: Problem, found: Fit) -> tuple[float, float]:
    """Return ARI, and the log score of the pairs kept for judging."""
    together = found.together(problem, problem.tested)
    same = problem.y[problem.tested[:, 0]] == problem.y[problem.tested[:, 1]]
    p = np.where(same, together, 1 - together)
    score = np.log((1 - Q) * p + Q * (1 - p)).mean()
    return adjusted_rand_score(problem.y, found.model.labels_), float(score)


# ---------------------------------------------------------------------------- strategies

Ask = Callable[[Problem, int], Iterator[tuple[np.ndarray, Fit]]]


def all_pairs(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Return the pairs that have not been asked."""
    n = len(problem.X)
    open_ = np.triu(np.ones((n, n), dtype=bool), 1)
    asked = np.sort(rows[:, :2].astype(int), axis=1)
    open_[tuple(asked.T)] = False
    return np.argwhere(open_)


def at_random(problem: Problem, found: Fit, rng: np.random.Generator) -> np.ndarray:
    """Choose ten random pairs."""
    return rng.choice(all_pairs(problem, found.rows), BATCH, replace=False)


def by_information(problem: Problem, found: Fit, rng: np.random.Generator) -> np.ndarray:
    """Choose ten informative pairs of different groups, filled up with random ones."""
    pairs = all_pairs(problem, found.rows)
    values = answer_information(found.together(problem, pairs), false_apart=Q, false_together=Q)
    groups = related_groups(len(problem.X), preferences=weighted(found.rows))
    chosen = choose_pairs(pairs, values, BATCH, groups)
    rest = np.setdiff1d(np.arange(len(pairs)), chosen)
    more = rest[np.argsort(-values[rest], kind="stable")][: BATCH - len(chosen)]
    return pairs[np.concatenate([chosen, more])]


def by_uncertainty(problem: Problem, found: Fit, rng: np.random.Generator) -> np.ndarray:
    """Choose ten uncertain points, each with the most certain point of its class."""
    r = found.model.responsibilities_
    doubt, z = entr(r).sum(axis=1), r.argmax(axis=1)
    open_ = {tuple(pair) for pair in all_pairs(problem, found.rows).tolist()}
    chosen: list[tuple[int, int]] = []
    for i in np.argsort(-doubt, kind="stable").tolist():
        members = np.flatnonzero(z == z[i])
        for j in members[np.argsort(doubt[members], kind="stable")].tolist():
            if (min(i, j), max(i, j)) in open_:
                chosen.append((min(i, j), max(i, j)))
                open_.discard(chosen[-1])
                break
        if len(chosen) == BATCH:
            break
    return np.array(chosen)


def weighted(rows: np.ndarray) -> np.ndarray:
    """Return rows i, j, 1: one relation each."""
    return np.column_stack([rows[:, :2], np.ones(len(rows))])


def in_batches(choose: Callable[..., np.ndarray]) -> Ask:
    """Yield a fit after every ten answers; the next questions depend on it."""

    def ask(problem: Problem, n_answers: int) -> Iterator[tuple[np.ndarray, Fit]]:
        rng = np.random.default_rng([problem.seed, 9])
        rows = np.empty((0, 3))
        found = fit(problem, rows)
        yield rows, found
        while len(rows) < n_answers:
            pairs = choose(problem, found, rng)
            replies = [problem.ask(i, j) for i, j in pairs.tolist()]
            rows = np.concatenate([rows, np.column_stack([pairs, replies])])
            found = fit(problem, rows)
            yield rows, found

    return ask


def neighbourhoods(problem: Problem, n_answers: int, then: str = "random") -> Any:
    """Grow neighbourhoods farthest first; the first point depends on the draw."""
    return farthest_first(
        problem.X, problem.ask, n_answers, problem.n_classes, then=then, random_state=problem.seed
    )


def by_distance(then: str) -> Ask:
    """Yield fits after every ten answers about neighbourhoods, started from these."""

    def ask(problem: Problem, n_answers: int) -> Iterator[tuple[np.ndarray, Fit]]:
        for n in range(0, n_answers + 1, BATCH):
            # The first n of more questions are the same, but not the neighbourhoods after them.
            if n == 0:
                yield np.empty((0, 3)), fit(problem, np.empty((0, 3)))
                continue
            asked = neighbourhoods(problem, n, then)
            yield asked.answers, fit(problem, asked.answers.astype(float), asked.neighbourhoods)

    return ask


def in_order(own_start: bool) -> Ask:
    """Ask about distant points until each class has one, then uncertain points and checks."""

    def ask(problem: Problem, n_answers: int) -> Iterator[tuple[np.ndarray, Fit]]:
        rng, n = np.random.default_rng([problem.seed, 9]), BATCH
        while n < n_answers and neighbourhoods(problem, n).neighbourhoods.max() < (
            problem.n_classes - 1
        ):
            n += BATCH
        known = neighbourhoods(problem, n).neighbourhoods if own_start else None
        for relations, found in by_distance("random")(problem, n):
            rows = relations.astype(float)
            if not own_start and len(rows):
                found = fit(problem, rows)
            yield rows, found
        while len(rows) < n_answers:
            doubt = by_uncertainty(problem, found, rng)[: BATCH - BATCH // 3]
            so_far = np.concatenate([rows, np.column_stack([doubt, np.zeros(len(doubt))])])
            rest = rng.choice(all_pairs(problem, so_far), BATCH - len(doubt), replace=False)
            pairs = np.concatenate([doubt, rest])
            replies = [problem.ask(i, j) for i, j in pairs.tolist()]
            rows = np.concatenate([rows, np.column_stack([pairs, replies])])
            found = fit(problem, rows, known)
            yield rows, found

    return ask


STRATEGIES: dict[str, Ask] = {
    "random": in_batches(at_random),
    "information": in_batches(by_information),
    "uncertainty": in_batches(by_uncertainty),
    "farthest": by_distance("random"),
    "min-max": by_distance("min_max"),
    "in order": in_order(False),
    "in order, own start": in_order(True),
}


# ---------------------------------------------------------------------------- main


def curve(name: str, strategy: str, draw: int, n_answers: int) -> list[tuple[Any, ...]]:
    """Return the rows of one curve."""
    problem = draw_problem(name, draw)
    found = []
    for rows, fitted in STRATEGIES[strategy](problem, n_answers):
        ari, score = judge(problem, fitted)
        found.append((name, strategy, draw, len(rows), f"{ari:.4f}", f"{score:.4f}"))
    return found


def finished(path: Path) -> set[tuple[str, str, int]]:
    """Return the curves that a file has."""
    if not path.exists():
        return set()
    with open(path, newline="", encoding="utf-8") as file:
        return {(r["dataset"], r["strategy"], int(r["draw"])) for r in csv.DictReader(file)}


def append(path: Path, rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS) -> None:
    """Append a whole curve at once, so an interrupt leaves no part of one."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows([columns, *rows] if new else rows)


def main() -> None:
    """Run draw by draw, so the file can be compared at any time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--answers", type=int, default=80)
    parser.add_argument("--datasets", default=",".join([*REAL, *TOYS]))
    parser.add_argument("--strategies", default=";".join(STRATEGIES))
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--smoke", action="store_true", help="two batches of iris, in seconds")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, draws, n_answers = given.datasets.split(","), given.draws, given.answers
    if given.smoke:
        names, draws, n_answers = ["iris"], 1, 2 * BATCH
    ways = given.strategies.split(";")
    tasks = [(n, s, d) for d in range(draws) for n in names for s in ways]
    there, began = finished(given.results), time.monotonic()
    for i, task in enumerate(tasks, start=1):
        if task not in there:
            append(given.results, curve(*task, n_answers))
            took = time.monotonic() - began
            print(f"{i}/{len(tasks)} {' '.join(map(str, task))}, {took:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
