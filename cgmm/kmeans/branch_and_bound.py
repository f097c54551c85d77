"""The cheapest assignment of a component, by branch and bound. Chapter 11.

Where no two neighbours have the same first choice, all of them take it, and nothing is better.
Where some clash, one node of a clash is given one cluster after the other, best first, and the rest
is the same problem with fewer choices. A branch is left as soon as it cannot become better than the
best assignment so far.

==========  ===================================================================
losses      (M, K) what cluster k costs node j more than its first choice
free        the same, infinite where a neighbour has been given that cluster
regret      what the second choice costs a node more than the first
blockers    (M, K) how many decisions forbid node j cluster k
==========  ===================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cgmm.inference.exchange import ROUNDING
from cgmm.kmeans.loop import cost_of
from cgmm.numerics import FloatArray, IntArray


def branch_and_bound(
    losses: FloatArray, edges: IntArray, neighbours: Sequence[IntArray], z: IntArray, max_steps: int
) -> tuple[IntArray, bool]:
    """The cheapest assignment of a component, and whether the search was complete.

    It begins with ``z``, which breaks nothing, and returns nothing worse. A step gives one node a
    cluster.
    """
    least, tiny, steps_left = cost_of(losses, z), ROUNDING * losses.max(), max_steps
    blockers = np.zeros(losses.shape, dtype=np.intp)

    def explore() -> bool:
        """Improve z by what can be had with the clusters that are not blocked; False: no steps."""
        nonlocal z, least, steps_left
        free = np.where(blockers > 0, np.inf, losses)
        choice, lower, node = _outlook(free, edges, least - tiny)
        if lower >= least - tiny:
            return True
        if node < 0:
            z, least = choice, lower
            return True
        for k in np.argsort(free[node], kind="stable")[: np.isfinite(free[node]).sum()]:
            if steps_left == 0:
                return False
            steps_left -= 1
            _place(blockers, neighbours[node], node, k, 1)
            complete = explore()
            _place(blockers, neighbours[node], node, k, -1)
            if not complete:
                return False
        return True

    complete = explore()
    return z, complete


def _place(blockers: IntArray, neighbours: IntArray, j: int, k: int, sign: int) -> None:
    """Give node j cluster k, or take it back: its neighbours lose k, itself all others."""
    blockers[neighbours, k] += sign
    blockers[j] += sign
    blockers[j, k] -= sign


def _outlook(free: FloatArray, edges: IntArray, bound: float) -> tuple[IntArray, float, int]:
    """First choices, a lower bound on the loss, and a node to branch on (-1: no clash).

    Of two neighbours with one first choice, one must take another: over edges that share no node,
    the smaller of the two regrets adds to the bound.
    """
    choice = free.argmin(axis=1)
    best, second = np.partition(free, 1, axis=1)[:, :2].T
    lower = float(best.sum())
    a, b = edges[choice[edges[:, 0]] == choice[edges[:, 1]]].T
    if lower >= bound or len(a) == 0:
        return choice, lower, -1
    regrets = second - best
    surplus = np.minimum(regrets[a], regrets[b])
    used: set[int] = set()
    for e in np.argsort(-surplus, kind="stable").tolist():
        if a[e] not in used and b[e] not in used:
            used.update((a[e], b[e]))
            lower += surplus[e]
    clashing = np.concatenate([a, b])
    return choice, float(lower), int(clashing[regrets[clashing].argmax()])
