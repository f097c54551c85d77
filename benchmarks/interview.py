"""Measure the accuracy of the interview after 10, 20 and 40 questions, and of other strategies.

The results are in ``book/_data/asking/interview.csv``, with one row per fit and the columns

- ``dataset``, ``strategy``, ``draw``: all strategies get the same draws of 150 points, those of
  ``asking.py``;
- ``wrong``, ``unsure``: share of questions whose answer is wrong, or "unsure";
- ``questions``: number of questions asked, including those answered by "unsure";
- ``accuracy``: share of points in the right group, with groups matched to classes.

*interview* is ``cgmm.decide.Interview``. *interview at random* is the same class with answers about
random pairs, so it differs from *random* only by its fits and by the choice between them. *random*,
*uncertainty*, *farthest* and *in order* are strategies of ``asking.py``. They do not support
"unsure", so if a share u of answers is unsure, they get (1 - u) times as many answers. *AIPC*,
*NPU* and *MinMax* are strategies of scikit-query 0.4.2; NPU gets the partition of a new fit after
every ten questions. Answers to all other strategies than the interview are fitted as in
``asking.py``.

scikit-query requires older versions of numpy, scipy and matplotlib than the locked ones, but these
strategies run with both. Install it with the packages that it imports:

    pip install --no-deps scikit-query==0.4.2 active-semi-supervised-clustering cvxopt \\
        scikit-fuzzy metric-learn

    python benchmarks/interview.py --draws 24

This takes about ten minutes of processor time for each share of wrong answers. A curve is written
once it is finished, so an interrupted run can be resumed. ``--wrong 0,0.05`` and ``--unsure 0``
change the simulated person; ``--datasets``, ``--strategies`` and ``--results`` are those of
``asking.py``; ``--smoke`` measures one curve of the interview.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asking
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.decide import Answer, Interview
from cgmm.decide.answer_file import AnswerFile
from cgmm.metrics import matched_accuracy

FILE = asking.FILE.with_name("interview.csv")
COLUMNS = ("dataset", "strategy", "draw", "wrong", "unsure", "questions", "accuracy")
DATASETS = "iris,wine,breast_cancer,digits,vertical_classes,lu_set_3"
AT = (10, 20, 40)


class Person:
    """Simulated person, who always gives the same reply about a pair."""

    def __init__(self, name: str, draw: int, wrong: float, unsure: float) -> None:
        self.problem = asking.draw_problem(name, draw)
        n, rng = len(self.problem.X), np.random.default_rng([draw, 10])
        self.problem = self.problem._replace(wrong=rng.random((n, n)) < wrong)
        self.is_unsure = rng.random((n, n)) < unsure

    def reply(self, i: int, j: int) -> str:
        """Return the reply about two points: "same", "different" or "unsure"."""
        if self.is_unsure[min(i, j), max(i, j)]:
            return "unsure"
        return "same" if self.problem.ask(i, j) else "different"


class Oracle:
    """Adapter of a simulated person to scikit-query, with a budget of questions.

    It raises an error instead of the reply "unsure".
    """

    def __init__(self, person: Person, budget: int, rows: list[tuple[int, int, bool]]) -> None:
        self.person, self.budget, self.rows, self.queries = person, budget, rows, 0

    def query(self, i: int, j: int) -> bool:
        """Return True for the reply "same" and False for "different", and store the answer."""
        from skquery.exceptions import EmptyBudgetError, NoAnswerError

        if self.queries == self.budget:
            raise EmptyBudgetError
        self.queries += 1
        reply = self.person.reply(int(i), int(j))
        if reply == "unsure":
            raise NoAnswerError
        self.rows.append((int(i), int(j), reply == "same"))
        return reply == "same"


def run_interview(person: Person) -> Iterator[np.ndarray]:
    """Yield the labels of an interview after 10, 20 and 40 questions."""
    problem = person.problem
    interview = Interview(problem.X, problem.n_classes, random_state=problem.seed)
    for n in range(max(AT)):
        if (question := interview.next_question()) is not None:
            interview.answer(person.reply(question.i, question.j))
        if n + 1 in AT:
            yield interview.labels_


def run_interview_at_random(person: Person) -> Iterator[np.ndarray]:
    """Yield the labels of an interview with answers about 10, 20 and 40 random pairs."""
    X, K, seed = person.problem.X, person.problem.n_classes, person.problem.seed
    rng = np.random.default_rng([seed, 9])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        file = AnswerFile(path, X)
        for n in range(max(AT)):
            i, j = rng.choice(len(X), 2, replace=False).tolist()
            file.add_answer(Answer(i, j, person.reply(i, j), None, "", "check", 0.5))
            if n + 1 in AT:
                yield Interview(X, K, path=path, random_state=seed).labels_


def run_strategy(name: str, person: Person, unsure: float) -> Iterator[np.ndarray]:
    """Yield the labels of a strategy of ``asking.py``, with fewer answers if some are unsure."""
    fit_of = {len(rows): fit for rows, fit in asking.STRATEGIES[name](person.problem, max(AT))}
    for n in AT:
        rows = fit_of[max(k for k in fit_of if k <= n)].rows[: round((1 - unsure) * n)]
        yield asking.fit(person.problem, rows.astype(float)).model.labels_


def run_scikit_query(name: str, person: Person) -> Iterator[np.ndarray]:
    """Yield the labels of fits to answers that a strategy of scikit-query asks for."""
    import skquery.pairwise

    problem, rows = person.problem, list[tuple[int, int, bool]]()
    np.random.seed(problem.seed)  # noqa: NPY002
    strategy, fitted = getattr(skquery.pairwise, name)(), asking.fit(problem, np.empty((0, 3)))
    for n, before in zip(AT, (0, *AT), strict=False):
        if name == "AIPC":
            # AIPC chooses all its questions at once, so begin again for each number of questions.
            rows, before = [], 0
            strategy = skquery.pairwise.AIPC()
        for budget in [10] * ((n - before) // 10) if name == "NPU" else [n - before]:
            known = {"partition": fitted.model.labels_, "n_clusters": problem.n_classes}
            strategy.fit(problem.X, Oracle(person, budget, rows), **known)
            fitted = asking.fit(problem, np.array(rows, dtype=float).reshape(-1, 3))
        yield fitted.model.labels_


def measure_curve(task: tuple[str, str, int, float, float]) -> list[tuple[Any, ...]]:
    """Return the rows of one curve: accuracies of a strategy after 10, 20 and 40 questions."""
    name, strategy, draw, wrong, unsure = task
    person = Person(name, draw, wrong, unsure)
    if strategy == "interview":
        labels = run_interview(person)
    elif strategy == "interview at random":
        labels = run_interview_at_random(person)
    elif strategy in asking.STRATEGIES:
        labels = run_strategy(strategy, person, unsure)
    else:
        labels = run_scikit_query(strategy, person)
    y = person.problem.y
    return [(*task, n, f"{matched_accuracy(y, z):.4f}") for n, z in zip(AT, labels, strict=True)]


def read_finished_curves(path: Path) -> set[tuple[str, ...]]:
    """Return the first five columns of each curve in a file of results."""
    if not path.exists():
        return set()
    with open(path, newline="", encoding="utf-8") as file:
        return {tuple(row[c] for c in COLUMNS[:5]) for row in csv.DictReader(file)}


def main() -> None:
    """Measure all curves that the file of results does not contain yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--strategies", default="interview,random,uncertainty,farthest,in order")
    parser.add_argument("--wrong", default="0,0.05,0.1")
    parser.add_argument("--unsure", default="0.1")
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--smoke", action="store_true", help="one curve of iris")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, strategies = options.datasets.split(","), options.strategies.split(",")
    shares = ([float(q) for q in text.split(",")] for text in (options.wrong, options.unsure))
    tasks = [
        (name, strategy, draw, *rates)
        for draw, rates, name, strategy in product(
            range(options.draws), list(product(*shares)), names, strategies
        )
    ]
    finished = read_finished_curves(options.results)
    for i, task in enumerate(tasks[:1] if options.smoke else tasks, start=1):
        if tuple(map(str, task)) not in finished:
            asking.append_curve(options.results, measure_curve(task), COLUMNS)
            print(f"{i}/{len(tasks)} {' '.join(map(str, task))}", file=sys.stderr)


if __name__ == "__main__":
    main()
