"""Measure the accuracy of strategies for choosing questions, by the number of answers.

The results are in ``book/_data/asking/answers.csv``, with one row per fit and the columns

- ``dataset``, ``strategy``, ``draw``: the table, the strategy, and the number of the draw; all
  strategies get the same draws;
- ``answers``: number of answers used in the fit; with 0 answers all strategies have the same fit;
- ``ari``: adjusted Rand index of all points of the draw;
- ``log_score``: mean log-probability of the true relations of 300 random pairs, in nats, if these
  were reported with the error rate of answers; guessing with probability ½ gives -0.693.

A draw consists of 150 standardised points of a data set; real data sets are reduced to the first
five principal components. After every ten answers, a mixture with one component per class is fitted
by the joint likelihood (``weights="ignore"``), from the default initialisation with the number of
the draw as its seed. Answers are wrong with probability 0.05, always in the same way for a pair,
and enter the fit with the corresponding log-odds.

- *random*: random pairs;
- *information*: the ten pairs with the highest expected information, in ten different connected
  components of the answers so far;
- *uncertainty*: the points whose class is least certain, each with the most certain point of its
  class;
- *farthest*, *min-max*: build neighbourhoods farthest first, then add random points (*farthest*) or
  again the farthest points (*min-max*); once each class has a neighbourhood, fits are initialised
  at the centres of neighbourhoods;
- *in order*: farthest first until each class has a neighbourhood; then *uncertainty*, with one pair
  in three at random; with *own start* all later fits are initialised at the centres of these
  neighbourhoods.

``answers.csv`` contains 24 draws of seven data sets with the first five strategies. ``order.csv``
contains 24 draws of three data sets with *random*, *uncertainty*, *farthest* and both variants of
*in order*:

    python benchmarks/asking.py \\
        --strategies "random;information;uncertainty;farthest;min-max"
    python benchmarks/asking.py --datasets iris,wine,breast_cancer \\
        --results .../order.csv \\
        --strategies "random;uncertainty;farthest;in order;in order, own start"

The first command takes about half an hour. A curve is appended once it is finished, so an
interrupted run can be resumed. Other options are ``--draws N``, ``--answers N`` and ``--smoke``,
which measures one curve of each strategy on one data set.
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
    """Draw of points, with the pairs whose answers are wrong, and pairs for scoring fits."""

    X: np.ndarray
    """(N, D) points."""
    y: np.ndarray
    """(N,) classes."""
    wrong: np.ndarray
    """(N, N) True above the diagonal if the answer about a pair is wrong."""
    tested: np.ndarray
    """(300, 2) random pairs for the log score."""
    seed: int
    """Number of the draw."""

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(np.unique(self.y))

    def ask(self, i: int, j: int) -> bool:
        """Return the answer of a simulated person: True if the points belong together."""
        return bool((self.y[i] == self.y[j]) ^ self.wrong[min(i, j), max(i, j)])


class Fit(NamedTuple):
    """Fitted mixture, and the answers used in the fit."""

    model: ConstrainedGaussianMixture
    """The fitted mixture."""
    rows: np.ndarray
    """(n, 3) answers: rows i, j, said."""
    side: SideInformation
    """The answers as side information."""

    def compute_probabilities(self, problem: Problem, pairs: np.ndarray) -> np.ndarray:
        """Return p(z_i = z_j) for each pair."""
        infer = ENGINES["auto"](self.side.graph)
        return pair_probabilities(problem.X, self.model.parameters_, self.side, pairs, infer)


# ---------------------------------------------------------------------------- problems


def draw_problem(name: str, draw: int) -> Problem:
    """Draw 150 points of a data set, wrong answers, and random pairs for scoring fits."""
    rng = np.random.default_rng([draw, 8])
    data = load(name, random_state=draw) if name in TOYS else load(name)
    X, y = data.X, data.y
    if REAL.get(name):
        is_kept = np.isin(y, REAL[name])
        X, y = X[is_kept], y[is_kept]
    rows = rng.permutation(len(X))[:N_POINTS]
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    if X.shape[1] > 5:
        X = PCA(5, random_state=0).fit_transform(X)
    wrong = rng.random((len(X), len(X))) < Q
    tested = np.array([rng.choice(len(X), 2, replace=False) for _ in range(N_TESTED)])
    return Problem(X, y, wrong, tested, draw)


def fit(problem: Problem, rows: np.ndarray, neighbourhoods: np.ndarray | None = None) -> Fit:
    """Fit the mixture to the points and to (n, 3) answers, rows i, j, said.

    If the (N,) neighbourhoods of points include all K classes, initialise at their centres.
    """
    weights = np.where(rows[:, 2] == 1, 1, -1) * -logit(Q)
    preferences = np.column_stack([rows[:, :2], weights])
    centres = None
    if neighbourhoods is not None and neighbourhoods.max() == problem.n_classes - 1:
        centres = [problem.X[neighbourhoods == k].mean(axis=0) for k in range(problem.n_classes)]
    model = ConstrainedGaussianMixture(
        problem.n_classes, weights="ignore", reg_covar=1e-2, random_state=problem.seed,
        means_init=centres,
    )  # fmt: skip
    model.fit(problem.X, preferences=preferences)
    return Fit(model, rows, SideInformation.build(len(problem.X), preferences=preferences))


def score_fit(problem: Problem, fitted: Fit) -> tuple[float, float]:
    """Return the adjusted Rand index, and the log score of the 300 random pairs."""
    p_same = fitted.compute_probabilities(problem, problem.tested)
    is_same = problem.y[problem.tested[:, 0]] == problem.y[problem.tested[:, 1]]
    p = np.where(is_same, p_same, 1 - p_same)
    score = np.log((1 - Q) * p + Q * (1 - p)).mean()
    return adjusted_rand_score(problem.y, fitted.model.labels_), float(score)


# ---------------------------------------------------------------------------- strategies

Strategy = Callable[[Problem, int], Iterator[tuple[np.ndarray, Fit]]]


def list_open_pairs(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Return all pairs of points without an answer."""
    n = len(problem.X)
    is_open = np.triu(np.ones((n, n), dtype=bool), 1)
    asked = np.sort(rows[:, :2].astype(int), axis=1)
    is_open[tuple(asked.T)] = False
    return np.argwhere(is_open)


def choose_at_random(problem: Problem, fitted: Fit, rng: np.random.Generator) -> np.ndarray:
    """Choose ten random pairs."""
    return rng.choice(list_open_pairs(problem, fitted.rows), BATCH, replace=False)


def choose_by_information(problem: Problem, fitted: Fit, rng: np.random.Generator) -> np.ndarray:
    """Choose ten informative pairs, in different connected components as far as possible."""
    pairs = list_open_pairs(problem, fitted.rows)
    p_same = fitted.compute_probabilities(problem, pairs)
    values = answer_information(p_same, false_apart=Q, false_together=Q)
    relations = np.column_stack([fitted.rows[:, :2], np.ones(len(fitted.rows))])
    groups = related_groups(len(problem.X), preferences=relations)
    chosen = choose_pairs(pairs, values, BATCH, groups)
    others = np.setdiff1d(np.arange(len(pairs)), chosen)
    best_others = others[np.argsort(-values[others], kind="stable")][: BATCH - len(chosen)]
    return pairs[np.concatenate([chosen, best_others])]


def choose_by_uncertainty(problem: Problem, fitted: Fit, rng: np.random.Generator) -> np.ndarray:
    """Choose ten uncertain points, each with the most certain point of its class."""
    r = fitted.model.responsibilities_
    entropy, z = entr(r).sum(axis=1), r.argmax(axis=1)
    open_pairs = {tuple(pair) for pair in list_open_pairs(problem, fitted.rows).tolist()}
    chosen: list[tuple[int, int]] = []
    for i in np.argsort(-entropy, kind="stable").tolist():
        members = np.flatnonzero(z == z[i])
        for j in members[np.argsort(entropy[members], kind="stable")].tolist():
            if (min(i, j), max(i, j)) in open_pairs:
                chosen.append((min(i, j), max(i, j)))
                open_pairs.discard(chosen[-1])
                break
        if len(chosen) == BATCH:
            break
    return np.array(chosen)


def ask_in_batches(choose: Callable[..., np.ndarray]) -> Strategy:
    """Return a strategy that chooses ten pairs at a time, by the fit to all answers so far."""

    def run(problem: Problem, n_answers: int) -> Iterator[tuple[np.ndarray, Fit]]:
        rng = np.random.default_rng([problem.seed, 9])
        rows = np.empty((0, 3))
        fitted = fit(problem, rows)
        yield rows, fitted
        while len(rows) < n_answers:
            rows = add_answers(problem, rows, choose(problem, fitted, rng))
            fitted = fit(problem, rows)
            yield rows, fitted

    return run


def add_answers(problem: Problem, rows: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the answers so far together with answers about new pairs."""
    replies = [problem.ask(i, j) for i, j in pairs.tolist()]
    return np.concatenate([rows, np.column_stack([pairs, replies])])


def build_neighbourhoods(problem: Problem, n_answers: int, then: str = "random") -> Any:
    """Ask about the farthest points, from a first point that depends on the draw."""
    return farthest_first(
        problem.X, problem.ask, n_answers, problem.n_classes, then=then, random_state=problem.seed
    )


def ask_by_distance(then: str) -> Strategy:
    """Return a strategy that builds neighbourhoods, and initialises fits at their centres."""

    def run(problem: Problem, n_answers: int) -> Iterator[tuple[np.ndarray, Fit]]:
        yield np.empty((0, 3)), fit(problem, np.empty((0, 3)))
        for n in range(BATCH, n_answers + 1, BATCH):
            # Begin again for each n, to get the neighbourhoods that follow from n answers only.
            asked = build_neighbourhoods(problem, n, then)
            yield asked.answers, fit(problem, asked.answers.astype(float), asked.neighbourhoods)

    return run


def ask_in_order(own_start: bool) -> Strategy:
    """Return a strategy that asks about distant, then about uncertain and about random points."""

    def run(problem: Problem, n_answers: int) -> Iterator[tuple[np.ndarray, Fit]]:
        rng, n = np.random.default_rng([problem.seed, 9]), BATCH
        while n < n_answers and build_neighbourhoods(problem, n).neighbourhoods.max() < (
            problem.n_classes - 1
        ):
            n += BATCH
        known = build_neighbourhoods(problem, n).neighbourhoods if own_start else None
        for answers, fitted in ask_by_distance("random")(problem, n):
            rows = answers.astype(float)
            if not own_start and len(rows):
                fitted = fit(problem, rows)
            yield rows, fitted
        while len(rows) < n_answers:
            uncertain = choose_by_uncertainty(problem, fitted, rng)[: BATCH - BATCH // 3]
            asked = np.concatenate([rows, np.insert(uncertain, 2, 0, axis=1)])
            open_pairs = list_open_pairs(problem, asked)
            checks = rng.choice(open_pairs, BATCH - len(uncertain), replace=False)
            rows = add_answers(problem, rows, np.concatenate([uncertain, checks]))
            fitted = fit(problem, rows, known)
            yield rows, fitted

    return run


STRATEGIES: dict[str, Strategy] = {
    "random": ask_in_batches(choose_at_random),
    "information": ask_in_batches(choose_by_information),
    "uncertainty": ask_in_batches(choose_by_uncertainty),
    "farthest": ask_by_distance("random"),
    "min-max": ask_by_distance("min_max"),
    "in order": ask_in_order(False),
    "in order, own start": ask_in_order(True),
}


# ---------------------------------------------------------------------------- main


def measure_curve(name: str, strategy: str, draw: int, n_answers: int) -> list[tuple[Any, ...]]:
    """Return the rows of one curve: the scores of a strategy after every ten answers."""
    problem = draw_problem(name, draw)
    curve = []
    for rows, fitted in STRATEGIES[strategy](problem, n_answers):
        ari, score = score_fit(problem, fitted)
        curve.append((name, strategy, draw, len(rows), f"{ari:.4f}", f"{score:.4f}"))
    return curve


def read_finished_curves(path: Path) -> set[tuple[str, str, int]]:
    """Return data set, strategy and draw of each curve in a file of results."""
    if not path.exists():
        return set()
    with open(path, newline="", encoding="utf-8") as file:
        return {(r["dataset"], r["strategy"], int(r["draw"])) for r in csv.DictReader(file)}


def append_curve(
    path: Path, rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS
) -> None:
    """Append all rows of a curve at once, so that an interrupt leaves no incomplete curve."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([columns, *rows] if is_new else rows)


def main() -> None:
    """Measure all missing curves, draw by draw, so that partial results are comparable."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--answers", type=int, default=80)
    parser.add_argument("--datasets", default=",".join([*REAL, *TOYS]))
    parser.add_argument("--strategies", default=";".join(STRATEGIES))
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--smoke", action="store_true", help="two batches of iris, in seconds")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, draws, n_answers = options.datasets.split(","), options.draws, options.answers
    if options.smoke:
        names, draws, n_answers = ["iris"], 1, 2 * BATCH
    strategies = options.strategies.split(";")
    tasks = [(n, s, d) for d in range(draws) for n in names for s in strategies]
    finished, start = read_finished_curves(options.results), time.monotonic()
    for i, task in enumerate(tasks, start=1):
        if task not in finished:
            append_curve(options.results, measure_curve(*task, n_answers))
            seconds = time.monotonic() - start
            print(f"{i}/{len(tasks)} {' '.join(map(str, task))}, {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
