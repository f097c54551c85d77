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

# Beyond these bounds, exponentials underflow or overflow, so messages are computed in logarithms.
SMALLEST_SUM, LARGEST_WEIGHT = 1e-290, 600.0


def edge_message(h: FloatArray, weights: FloatArray, *, largest: bool = False) -> FloatArray:
    """Compute the message from one end of each edge to the other, in O(K).

    Parameters
    ----------
    h : (E, K) array
        Log-values of the sender's states.
    weights : (E,) array
        Log-weights in [-inf, inf).
    largest : bool, default=False
        Take the largest term instead of the sum, to find the most probable assignment.

    Returns
    -------
    (E, K) array
        ``log Σ_l exp(h[e, l] + w_e [k = l])`` for every state k of the receiver.

    Notes
    -----
    Subtracting the term of state k from the total would lose digits by cancellation if that term
    dominates, so the sum over the other states is computed without this subtraction.

    Examples
    --------
    >>> np.exp(edge_message(np.log([[0.7, 0.2, 0.1]]), np.array([-np.inf]))).round(12)
    array([[0.3, 0.8, 0.9]])
    """
    if largest:
        return np.maximum(h + weights[:, None], _largest_of_others(h))
    message, is_unreliable = _compute_messages_by_sums(np.ascontiguousarray(h.T), weights)
    if is_unreliable.any():
        h, weights = h[is_unreliable], weights[is_unreliable]
        message[is_unreliable] = np.logaddexp(h + weights[:, None], _log_sum_of_others(h))
    return message


def _compute_messages_by_sums(h: FloatArray, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return messages (E, K) from log-values (K, E), and (E,) booleans that mark unreliable ones.

    The terms are scaled so that the largest is one. Terms of one are counted separately from the
    others, so removing the term of a state loses no digits even if that term dominates.
    """
    top = _replace_minus_inf(h.max(axis=0))
    terms = np.exp(h - top)
    is_one = terms == 1
    rest = np.where(is_one, 0.0, terms)
    sums = (is_one.sum(axis=0) - is_one) + (rest.sum(axis=0) - rest)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        sums += np.exp(weights) * terms
        message = np.log(sums) + top
    return message.T, (sums.min(axis=0) < SMALLEST_SUM) | (weights > LARGEST_WEIGHT)


def _largest_of_others(h: FloatArray) -> FloatArray:
    """Return (E, K) max_{l ≠ k} h[e, l]: for each state, the largest value among all others."""
    rows, best = np.arange(len(h)), h.argmax(axis=1)
    without_best = h.copy()
    without_best[rows, best] = -np.inf
    others = np.repeat(h[rows, best, None], h.shape[1], axis=1)
    others[rows, best] = without_best.max(axis=1)
    return others


def _log_sum_of_others(h: FloatArray) -> FloatArray:
    """Return (E, K) log Σ_{l ≠ k} exp(h[e, l])."""
    rows, best = np.arange(len(h)), h.argmax(axis=1)
    top = _replace_minus_inf(h[rows, best])
    terms = np.exp(h - top[:, None])
    # For all states except the best one, the sum contains the best term, which is one, so the
    # subtraction below loses no digits.
    own = terms[rows, best]
    terms[rows, best] = 0
    total = terms.sum(axis=1)
    with np.errstate(divide="ignore"):
        others = top[:, None] + np.log(own[:, None] + (total[:, None] - terms))
        # For the best state, the sum over the others is computed again with a scale of its own.
        without_best = h.copy()
        without_best[rows, best] = -np.inf
        second = _replace_minus_inf(without_best.max(axis=1))
        total = np.exp(without_best - second[:, None]).sum(axis=1)
        others[rows, best] = second + np.log(total)
    return others


def _replace_minus_inf(top: FloatArray) -> FloatArray:
    """Replace -inf by zero; otherwise subtracting a maximum of -inf from -inf would give NaN."""
    return np.where(top == -np.inf, 0.0, top)
