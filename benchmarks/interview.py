"""Measure the interview after 10, 20 and 40 questions, beside other rules of asking.

Writes ``book/_data/asking/interview.csv``, a row for each fit, with the columns

- ``dataset``, ``strategy``, ``draw``: the same draw of 150 points for all strategies, as in
  ``asking.py``;
- ``wrong``, ``unsure``: shares of questions whose answer is wrong, or "unsure";
- ``questions``: number of questions asked, "unsure" included;
- ``accuracy``: share of points in the right group, groups matched to classes.

*interview* is ``cgmm.decide.Interview``. With *interview at random* it is given answers about
random pairs, so only its fits and its choice among them are its own. *random*, *uncertainty*,
*farthest* and *in order* are strategies of ``asking.py``; they know no "unsure", so with a share u
of unsure answers they get (1 - u) as many answers. *AIPC*, *NPU* and *MinMax* are those of
scikit-query 0.4.2; NPU gets the partition of a new fit after every ten questions. Their answers,
too, are fitted as in ``asking.py``.

scikit-query requires older versions of numpy, scipy and matplotlib than the locked ones, but these
strategies run with both. Install it with the packages that it imports:

    pip install --no-deps scikit-query==0.4.2 active-semi-supervised-clustering cvxopt \\
        scikit-fuzzy metric-learn

    python benchmarks/interview.py --draws 24

takes some ten minutes of processor time for each share of wrong answers. It resumes where it was
left, since a curve is written when it is finished. ``--wrong 0,0.05`` and ``--unsure 0`` change the
person; ``--datasets``, ``--strategies`` and ``--results`` are those of ``asking.py``; ``--smoke``
is one curve of the interview.
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
    """A simulated person, who always answers the same pair in the same way."""

    def __init__(self, name: str, draw: int, wrong: float, unsure: float) -> None:
        self.problem = asking.draw_problem(name, draw)
        n, rng = len(self.problem.X), np.random.default_rng([draw, 10])
        self.problem = self.problem._replace(wrong=rng.random((n, n)) < wrong)
        self.is_unsure = rng.random((n, n)) < unsure

    def reply(self, i: int, j: int) -> str:
        """Return one of the interview's three replies."""
        if self.is_unsure[min(i, j), max(i, j)]:
            return "unsure"
        return "same" if self.problem.ask(i, j) else "different"


class Oracle:
    """The person in the form of scikit-query: with a budget, and an error for "unsure"."""

    def __init__(self, person: Person, budget: int, rows: list[tuple[int, int, bool]]) -> None:
        self.person, self.budget, self.rows, self.queries = person, budget, rows, 0

    def query(self, i: int, j: int) -> bool:
        """Answer, and store the answer."""
        from skquery.exceptions import EmptyBudgetError, NoAnswerError

        if self.queries == self.budget:
            raise EmptyBudgetError
        self.queries += 1
        reply = self.person.reply(int(i), int(j))
        if reply == "unsure":
            raise NoAnswerError
        self.rows.append((int(i), int(j), reply == "same"))
        return reply == "same"


def by_interview(person: Person) -> Iterator[np.ndarray]:
    """Return the labels after 10, 20 and 40 questions."""
    problem = person.problem
    interview = Interview(problem.X, problem.n_classes, random_state=problem.seed)
    for n in range(max(AT)):
        if (question := interview.next_question()) is not None:
            interview.answer(person.reply(question.i, question.j))
        if n + 1 in AT:
            yield interview.labels_


def by_random_pairs(person: Person) -> Iterator[np.ndarray]:
    """Return the labels of an interview that is given answers about random pairs."""
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


def by_strategy(name: str, person: Person, unsure: float) -> Iterator[np.ndarray]:
    """Return labels of a strategy of ``asking.py``, which gets the answers that are not unsure."""
    found = {len(rows): fit for rows, fit in asking.STRATEGIES[name](person.problem, max(AT))}
    for n in AT:
        n_given = min(len(found[max(k for k in found if k <= n)].rows), round((1 - unsure) * n))
        rows = found[max(k for k in found if k <= n)].rows[:n_given]
        yield asking.fit(person.problem, rows.astype(float)).model.labels_


def by_peer(name: str, person: Person) -> Iterator[np.ndarray]:
    """Return labels from the answers that a strategy of scikit-query asks for."""
    import skquery.pairwise

    problem, rows = person.problem, list[tuple[int, int, bool]]()
    np.random.seed(problem.seed)  # noqa: NPY002
    rule, fitted = getattr(skquery.pairwise, name)(), asking.fit(problem, np.empty((0, 3)))
    for n, before in zip(AT, (0, *AT), strict=False):
        if name == "AIPC":
            # It chooses all its questions at once.
            rows, before = [], 0
            rule = skquery.pairwise.AIPC()
        for budget in [10] * ((n - before) // 10) if name == "NPU" else [n - before]:
            known = {"partition": fitted.model.labels_, "n_clusters": problem.n_classes}
            rule.fit(problem.X, Oracle(person, budget, rows), **known)
            fitted = asking.fit(problem, np.array(rows, dtype=float).reshape(-1, 3))
        yield fitted.model.labels_


def curve(task: tuple[str, str, int, float, float]) -> list[tuple[Any, ...]]:
    """Return the rows of one curve."""
    name, strategy, draw, wrong, unsure = task
    person = Person(name, draw, wrong, unsure)
    if strategy == "interview":
        found = by_interview(person)
    elif strategy == "interview at random":
        found = by_random_pairs(person)
    elif strategy in asking.STRATEGIES:
        found = by_strategy(strategy, person, unsure)
    else:
        found = by_peer(strategy, person)
    y = person.problem.y
    return [(*task, n, f"{matched_accuracy(y, z):.4f}") for n, z in zip(AT, found, strict=True)]


def finished(path: Path) -> set[tuple[str, ...]]:
    """Return the curves that a file has."""
    if not path.exists():
        return set()
    with open(path, newline="", encoding="utf-8") as file:
        return {tuple(row[c] for c in COLUMNS[:5]) for row in csv.DictReader(file)}


def main() -> None:
    """Run all curves, draw by draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--strategies", default="interview,random,uncertainty,farthest,in order")
    parser.add_argument("--wrong", default="0,0.05,0.1")
    parser.add_argument("--unsure", default="0.1")
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--smoke", action="store_true", help="one curve of iris")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, ways = given.datasets.split(","), given.strategies.split(",")
    rates = product(*([float(q) for q in text.split(",")] for text in (given.wrong, given.unsure)))
    tasks = [
        (name, way, draw, *rate)
        for draw, rate, name, way in product(range(given.draws), list(rates), names, ways)
    ]
    there = finished(given.results)
    for i, task in enumerate(tasks[:1] if given.smoke else tasks, start=1):
        if tuple(map(str, task)) not in there:
            asking.append(given.results, curve(task), COLUMNS)
            print(f"{i}/{len(tasks)} {' '.join(map(str, task))}", file=sys.stderr)


if __name__ == "__main__":
    main()
