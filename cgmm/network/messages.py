"""Messages from one end of an edge to the other, in O(K). Chapters 7 and 9.

An edge says only whether two assignments are equal, so the message needs no K × K table.

=======  ======================================================
e, w_e   edge and its log-weight
h        log-values of the states of the end that speaks, a row each
k, l     state of the end that listens, of the end that speaks
=======  ======================================================
"""

from __future__ import annotations

import numpy as np

from cgmm.numerics import BoolArray, FloatArray

# A sum below the one, or a weight above the other, leaves the range of plain numbers: by logs.
SMALLEST_SUM, LARGEST_WEIGHT = 1e-290, 600.0


def edge_message(h: FloatArray, weights: FloatArray, *, largest: bool = False) -> FloatArray:
    """Compute the message from one end of each edge to the other, in O(K).

    Parameters
    ----------
    h : (E, K) array
        Log-values of the states of the one end.
    weights : (E,) array
        Log-weights in [-inf, inf).
    largest : bool, default=False
        The largest term instead of the sum: for the most probable assignment.

    Returns
    -------
    (E, K) array
        ``log Σ_l exp(h[e, l] + w_e [k = l])`` for every state k of the other end.

    Notes
    -----
    Subtracting the own term from the sum of all would cancel where it dominates; the sum of the
    others is formed without doing so.

    Examples
    --------
    >>> np.exp(edge_message(np.log([[0.7, 0.2, 0.1]]), np.array([-np.inf]))).round(12)
    array([[0.3, 0.8, 0.9]])
    """
    if largest:
        return np.maximum(h + weights[:, None], _largest_of_others(h))
    message, beyond = _by_sums(np.ascontiguousarray(h.T), weights)
    if beyond.any():
        h, weights = h[beyond], weights[beyond]
        message[beyond] = np.logaddexp(h + weights[:, None], _log_sum_of_others(h))
    return message


def _by_sums(h: FloatArray, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return messages (E, K) from log-values (K, E), and (E,) whether they are unreliable.

    The terms are scaled so that the largest is one. Ones are counted, not added to the rest: what
    is left without the own term is exact where the own term dominates.
    """
    top = _finite(h.max(axis=0))
    terms = np.exp(h - top)
    is_one = terms == 1
    rest = np.where(is_one, 0.0, terms)
    sums = (is_one.sum(axis=0) - is_one) + (rest.sum(axis=0) - rest)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        sums += np.exp(weights) * terms
        message = np.log(sums) + top
    return message.T, (sums.min(axis=0) < SMALLEST_SUM) | (weights > LARGEST_WEIGHT)


def _largest_of_others(h: FloatArray) -> FloatArray:
    """Return (E, K) max_{l ≠ k} h[e, l]: the largest value, or for its state the second largest."""
    rows, best = np.arange(len(h)), h.argmax(axis=1)
    without_best = h.copy()
    without_best[rows, best] = -np.inf
    others = np.repeat(h[rows, best, None], h.shape[1], axis=1)
    others[rows, best] = without_best.max(axis=1)
    return others


def _log_sum_of_others(h: FloatArray) -> FloatArray:
    """Return (E, K) log Σ_{l ≠ k} exp(h[e, l])."""
    rows, best = np.arange(len(h)), h.argmax(axis=1)
    top = _finite(h[rows, best])
    terms = np.exp(h - top[:, None])
    # States other than the best: their sum keeps the best, a term of one, so nothing cancels.
    own = terms[rows, best]
    terms[rows, best] = 0
    total = terms.sum(axis=1)
    with np.errstate(divide="ignore"):
        others = top[:, None] + np.log(own[:, None] + (total[:, None] - terms))
        # The best state: the sum over all others is formed anew, scaled by its own largest term.
        without_best = h.copy()
        without_best[rows, best] = -np.inf
        second = _finite(without_best.max(axis=1))
        total = np.exp(without_best - second[:, None]).sum(axis=1)
        others[rows, best] = second + np.log(total)
    return others


def _finite(top: FloatArray) -> FloatArray:
    """Return a shift that is safe to subtract: zero where everything is impossible."""
    return np.where(top == -np.inf, 0.0, top)
