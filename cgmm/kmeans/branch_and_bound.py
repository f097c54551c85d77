"""The cheapest assignment of a component, by branch and bound. Chapter 11."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cgmm.kmeans.loop import ROUNDING, cost_of
from cgmm.numerics import FloatArray, IntArray

# Branch and bound is tried on components of at most so many nodes, for so many steps beyond them.
BOUNDED_NODES, BOUNDED_STEPS = 200, 200


def branch_and_bound(
    losses: FloatArray, neighbours: list[IntArray], z: IntArray, max_steps: int
) -> tuple[IntArray, bool]:
    """The cheapest assignment of a component, and whether the search was complete.

    ``losses`` are costs less the smallest of each node. A step gives one node, in a clash, a
    cluster; where the first choices that are left clash no more, they are the best that is left.
    """
    bound, tiny = cost_of(losses, z), ROUNDING * losses.max()
    ends = ends_of(neighbours)
    blockers = np.zeros(losses.shape, dtype=np.intp)
    trail: list[tuple[int, Iterator[int]]] = []
    placed: list[tuple[int, int]] = []
    n_steps = 0
    while True:
        free = np.where(blockers > 0, np.inf, losses)
        choice, lower, node = _outlook(free, ends, bound - tiny)
        if lower < bound - tiny and node < 0:
            z, bound = choice, lower
        elif lower < bound - tiny:
            order = np.argsort(free[node], kind="stable")
            trail.append((node, iter(order[: np.isfinite(free[node]).sum()].tolist())))
        # The next choice of the last node that has one.
        while trail:
            if len(placed) == len(trail):
                _place(blockers, neighbours, *placed.pop(), -1)
            node, choices = trail[-1]
            k = next(choices, -1)
            if k >= 0:
                break
            trail.pop()
        if not trail:
            return z, True
        if n_steps == max_steps:
            return z, False
        n_steps += 1
        placed.append((node, k))
        _place(blockers, neighbours, node, k, 1)


def _place(blockers: IntArray, neighbours: list[IntArray], j: int, k: int, sign: int) -> None:
    """Give node j cluster k, or take it back: its neighbours lose k, itself all others."""
    blockers[neighbours[j], k] += sign
    blockers[j] += sign
    blockers[j, k] -= sign


def ends_of(neighbours: list[IntArray]) -> IntArray:
    """(2, E) the edges of a component, each once."""
    first = np.repeat(np.arange(len(neighbours)), [len(others) for others in neighbours])
    second = np.concatenate(neighbours)
    return np.array([first, second])[:, first < second]


def _outlook(free: FloatArray, ends: IntArray, bound: float) -> tuple[IntArray, float, int]:
    """First choices, a lower bound on the loss, and a node to branch on (-1: no clash).

    Of two neighbours with one first choice, one must take another: over edges that share no node,
    the smaller of the two regrets (what the second choice costs more) adds to the bound.
    """
    choice = free.argmin(axis=1)
    best, second = np.partition(free, 1, axis=1)[:, :2].T
    lower = float(best.sum())
    a, b = ends[:, choice[ends[0]] == choice[ends[1]]]
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
