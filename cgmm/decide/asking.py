"""What to ask next: pairs by what their answer tells, and batches that do not ask twice.

An answer tells of the assignments only what it tells of its own pair: given whether z_i = z_j it is
independent of the rest. So what it is expected to tell follows from p(z_i = z_j), which
:func:`cgmm.diagnose.pair_probabilities` gives exactly, and from how often answers are wrong.

=======  ======================================================================
p        p(z_i = z_j | everything known)
S        the answer, "together" or "apart"
α, β     p("apart" | z_i = z_j), p("together" | z_i ≠ z_j)
h(p)     entropy of a coin, in nats
=======  ======================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cgmm.numerics import FloatArray, IntArray, check_integer, check_labels, check_pairs


def answer_information(
    together: ArrayLike, *, false_apart: float = 0.0, false_together: float = 0.0
) -> FloatArray:
    """What the answer on a pair is expected to tell of all assignments: mutual information.

    Parameters
    ----------
    together : (P,) array_like
        p(z_i = z_j), as of :func:`cgmm.diagnose.pair_probabilities`.
    false_apart, false_together : float, default=0
        α and β, how often whoever is asked parts what belongs together and joins what does not;
        :func:`error_rates` estimates them.

    Returns
    -------
    (P,) array
        I(S; z) in nats, from 0 to log 2.

    Raises
    ------
    ValueError
        If a number is no probability.

    Notes
    -----
    ``I(S; z) = h(p(S)) - p h(α) - (1 - p) h(β)``, since S is independent of z given whether
    z_i = z_j. Where α = β the most informative pairs are those with p nearest ½, whatever the rate:
    *uncertainty sampling* asks the same, ``values=-abs(together - 0.5)``. Where they differ the
    best p is another. Information is what the model expects: where the model is wrong, so is it.

    Pairs that were chosen by looking at the points say nothing of how pairs were drawn:
    :func:`fit_answers` takes their answers as data, and not as a condition.

    Examples
    --------
    >>> answer_information([0.5, 0.9, 1.0]).round(4)
    array([0.6931, 0.3251, 0.    ])
    >>> answer_information([0.5, 0.9, 1.0], false_apart=0.2, false_together=0.2).round(4)
    array([0.1927, 0.0727, 0.    ])
    """
    p = probability("together", together)
    alpha = probability("false_apart", false_apart)
    beta = probability("false_together", false_together)
    says = p * (1 - alpha) + (1 - p) * beta
    gained = _entropy(says) - p * _entropy(alpha) - (1 - p) * _entropy(beta)
    # What tells nothing may come out a rounding error below zero.
    return np.asarray(np.maximum(gained, 0.0))


def choose_pairs(pairs: ArrayLike, values: ArrayLike, n_pairs: int, groups: ArrayLike) -> IntArray:
    """A batch of pairs to ask: the most valuable, no two of which speak of the same group.

    Parameters
    ----------
    pairs : (P, 2) int array_like
        Candidates, pairs of points.
    values : (P,) array_like
        What each is worth: :func:`answer_information`, or ``rng.random(P)`` for random pairs. What
        is not worth more than 0 is not asked.
    n_pairs : int
        How many to ask at once.
    groups : (N,) int array_like
        The group of each point: those that relations tie have one, which
        :func:`cgmm.network.related_groups` finds.

    Returns
    -------
    (n,) int array
        Rows of ``pairs``, the best first; n is below ``n_pairs`` where no more can be had.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN, or ``n_pairs`` is not positive.

    Notes
    -----
    Given θ, points of different components of the network are independent. So are the answers of
    such a batch, and the information of all of them is the sum of theirs: nothing is asked twice.
    The best pair first, then the best of those left, comes to half of the best such sum at
    least; a smaller batch that is asked and learnt from more often gets more.

    Korte and Hausmann (1978), An analysis of the greedy heuristic for independence systems.

    Examples
    --------
    The second best pair shares a point with the best:

    >>> choose_pairs([[0, 1], [1, 2], [2, 3]], [0.6, 0.5, 0.2], 2, groups=[0, 1, 2, 3])
    array([0, 2])
    """
    group = check_labels("groups", groups, least=0)
    ends = group[check_pairs("pairs", pairs, len(group))]
    left = np.array(values, dtype=float)
    if left.shape != (len(ends),) or np.isnan(left).any():
        raise ValueError(
            f"values have the shape {left.shape}, {int(np.isnan(left).sum())} of them NaN; there "
            f"must be a number for each of {len(ends)} pairs."
        )
    check_integer("n_pairs", n_pairs, 1)
    left[left <= 0] = -np.inf
    chosen = list[int]()
    while len(chosen) < n_pairs and left.max(initial=-np.inf) > -np.inf:
        chosen.append(int(left.argmax()))
        left[np.isin(ends, ends[chosen[-1]]).any(axis=1)] = -np.inf
    return np.array(chosen, dtype=np.intp)


def _entropy(p: FloatArray) -> FloatArray:
    """h(p)."""
    return np.asarray(entr(p) + entr(1 - p))


def probability(name: str, value: ArrayLike) -> FloatArray:
    """Numbers from 0 to 1, or an error that names what is none."""
    p = np.asarray(value, dtype=float)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        raise ValueError(
            f"{name} has {p[wrong].flat[0]:g}, which is no probability; give numbers from 0 to 1."
        )
    return p
