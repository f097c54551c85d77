"""Compute the message from one end of an edge to the other, in O(K).

The potential of an edge depends only on whether two assignments are equal, so a message needs no
K × K table. Belief propagation, contraction and the closed forms for pairs call this file. Chapters
7 and 9 explain messages.

=======  ====================================================================
e, w_e   edge and its log-weight, e.g. w_4 = -1.5
h        (E, K) log-values of the sender's states, e.g. h[4] = [-0.1, -2.3]
k, l     state of the receiver and of the sender, e.g. 0 and 1
=======  ====================================================================
"""

from __future__ import annotations

import numpy as np

from cgmm.numerics import BoolArray, FloatArray

# Beyond these bounds plain floats underflow or overflow; such messages are computed in logarithms.
SMALLEST_SUM, LARGEST_WEIGHT = 1e-290, 600.0


def edge_message(h: FloatArray, weights: FloatArray, *, largest: bool = False) -> FloatArray:
    """Compute the message from one end of each edge to the other, in O(K).

    Parameters
    ----------
    h : (E, K) array
        Log-values of the states of the sending end.
    weights : (E,) array
        Log-weights in [-inf, inf).
    largest : bool, default=False
        Take the largest term instead of the sum, as the most probable assignment needs it.

    Returns
    -------
    (E, K) array
        ``log Σ_l exp(h[e, l] + w_e [k = l])`` for every state k of the receiving end.

    Notes
    -----
    Subtracting the term of state k from the total would cancel digits if that term dominates, so
    the sum over the other states is computed without this subtraction.

    Examples
    --------
    >>> np.exp(edge_message(np.log([[0.7, 0.2, 0.1]]), np.array([-np.inf]))).round(12)
    array([[0.3, 0.8, 0.9]])
    """
    if largest:
        return np.maximum(h + weights[:, None], _largest_of_others(h))
    message, beyond = _messages_by_sums(np.ascontiguousarray(h.T), weights)
    if beyond.any():
        h, weights = h[beyond], weights[beyond]
        message[beyond] = np.logaddexp(h + weights[:, None], _log_sum_of_others(h))
    return message


def _messages_by_sums(h: FloatArray, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return messages (E, K) from log-values (K, E), and (E,) booleans that mark unreliable ones.

    The terms are scaled so that the largest is one. Ones are counted separately from the rest, so
    removing the term of a state loses no digits even if that term dominates.
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
    """Return (E, K) max_{l ≠ k} h[e, l]: the largest value, or the second largest at its state."""
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
    # For all states but the best, the sum contains the best term, which is one: nothing cancels.
    own = terms[rows, best]
    terms[rows, best] = 0
    total = terms.sum(axis=1)
    with np.errstate(divide="ignore"):
        others = top[:, None] + np.log(own[:, None] + (total[:, None] - terms))
        # For the best state, the sum over the others is computed again with its own scale.
        without_best = h.copy()
        without_best[rows, best] = -np.inf
        second = _finite(without_best.max(axis=1))
        total = np.exp(without_best - second[:, None]).sum(axis=1)
        others[rows, best] = second + np.log(total)
    return others


def _finite(top: FloatArray) -> FloatArray:
    """Return the shifts with -inf replaced by zero, so that they can be subtracted."""
    return np.where(top == -np.inf, 0.0, top)
