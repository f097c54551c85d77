"""A run of Lloyd's loop, followed until it converges. Chapter 11.

========  ============================================================
t         iteration: 0 is the start, with its assignment
tol       squared distance by which centres may move and yet stay
========  ============================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cgmm.kmeans.loop import Step


class Run(NamedTuple):
    """One run, as far as it went."""

    step: Step
    """The last step."""
    history: list[float]
    """The objective of every step."""
    n_iter: int
    """Iterations, counted as scikit-learn does."""
    converged: bool
    """Whether centres or assignments stayed where they were."""
    interrupted: bool = False
    """Whether the keyboard ended it."""

    @property
    def score(self) -> float:
        """Runs are compared by their objective: the lower, the better."""
        return -self.step.objective


def growing(
    steps: Iterator[Step], tol: float, max_iter: int, verbose: int = 0, number: int = 0
) -> Iterator[Run]:
    """The run as it stands at each step, until centres or assignments stay."""
    history: list[float] = []
    before = None
    for t, step in enumerate(steps):  # pragma: no branch - Lloyd's loop never ends
        history.append(step.objective)
        if verbose > 1:
            print(f"  iteration {t:4d}   objective {step.objective:.6f}")
        arrived, same = _compared(before, step, tol)
        same = same and not arrived and t < max_iter
        # scikit-learn counts one more where it took a step to see that no assignment changed.
        run = Run(step, history.copy(), t + same, arrived or same)
        yield run
        if run.converged or t == max_iter:
            break
        before = step
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, objective {history[-1]:.6f}")


def _compared(before: Step | None, step: Step, tol: float) -> tuple[bool, bool]:
    """Whether the centres, and whether the assignments, are where they were a step before."""
    if before is None:
        return False, False
    moved = np.square(step.centres - before.centres).sum()
    return bool(moved <= tol), np.array_equal(step.labels, before.labels)
