"""Points and witnesses at once: what classes are like, and how often each witness errs.

Both are EM on one likelihood, that of the points and of the answers, p(X, answers | θ, rates). With
the rates as they are, answers are preferences, and a fit finds θ; with θ as it is,
:func:`~cgmm.decide.error_rates` finds the rates. Each climbs, in turns.

=====  ====================================================================
θ      parameters of the mixture
q_0    the rate of errors that is most probable a priori
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from cgmm.decide.witnesses import Witnesses, error_rates, name_witnesses, read_rows
from cgmm.mixture import Parameters
from cgmm.network import Engine, SideInformation
from cgmm.numerics import FloatArray, IntArray


class Learnt(NamedTuple):
    """θ and the rates, each found with the other."""

    parameters: Parameters
    """θ of the last fit."""
    witnesses: Witnesses
    """The rates at this θ; ``preferences`` has the answers with the weights that they deserve."""
    history: FloatArray
    """(R,) log p(X, answers | θ, rates) + log prior of the rates after each round, in nats."""
    converged: bool
    """Whether the last round moved no rate by more than ``tol``."""


def learn_from_witnesses(
    X: FloatArray,
    fit: Callable[[FloatArray], Parameters],
    side: SideInformation,
    answers: ArrayLike,
    engine: Engine,
    *,
    prior: tuple[float, float] = (2.0, 5.0),
    tol: float = 1e-3,
    max_rounds: int = 50,
    n_init: int = 1,
    random_state: int | np.random.Generator | None = 0,
    **options: Any,
) -> Learnt:
    """Fit a mixture to answers of unknown reliability, and learn how reliable they are.

    Parameters
    ----------
    X : (N, D) array
        The points.
    fit : callable
        From preferences (P, 3) to θ: ``lambda rows: model.fit(X, preferences=rows).parameters_``,
        together with all that is in ``side``. The mixture has ``weights="ignore"``, since answers
        are data and no condition on the prior; with ``warm_start=True`` each round goes on from the
        last, which is quicker, and stays where a wrong first maximum lies: where answers decide
        between maxima, begin each round afresh.
    side : SideInformation
        What is known for certain, without the answers.
    answers : (P, 3) array_like
        Rows ``i, j, said``: 1 if "together" was said, 0 if "apart".
    engine : callable
        An exact engine, as of :data:`cgmm.inference.ENGINES`.
    prior : (float, float), default=(2, 5)
        As in :func:`error_rates`. The first fit takes its mode for every witness.
    tol : float, default=1e-3
        The rounds end when no rate moves by more.
    max_rounds : int, default=50
        How many fits from one beginning.
    n_init : int, default=1
        Beginnings. The first takes the prior's mode for every witness, the others believe one of
        them, drawn by lot, and nobody else; kept is the end with the highest likelihood. EM may end
        where the points are described in another way and the witnesses blamed for it.
    random_state : int, Generator or None, default=0
        Whom the later beginnings believe.
    **options
        ``witness``, ``kinds`` and others of :func:`error_rates`.

    Returns
    -------
    Learnt
        θ, rates, and their common likelihood round by round, which never falls where fits go on
        from the last and are not regularised.

    Raises
    ------
    ValueError
        As :func:`error_rates`, and as ``fit``.

    Notes
    -----
    A mixture that is wrong about the classes learns from witnesses who share its error, and takes
    those who do not for liars. Look at the rates before believing them.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> from cgmm.inference import ENGINES
    >>> X = np.random.default_rng(0).normal(size=(40, 1)) + np.repeat([[-4.0], [4.0]], 20, axis=0)
    >>> true = [[i, i + 1, 1] for i in range(0, 18, 2)] + [[i, 39 - i, 0] for i in range(1, 18, 2)]
    >>> answers = [*true, [20, 21, 0], [22, 23, 0], [24, 25, 0]]
    >>> model = ConstrainedGaussianMixture(2, weights="ignore", warm_start=True, random_state=0)
    >>> learnt = learn_from_witnesses(
    ...     X, lambda rows: model.fit(X, preferences=rows).parameters_, SideInformation.build(40),
    ...     answers, ENGINES["auto"], witness=["ann"] * 18 + ["bob"] * 3,
    ... )
    >>> learnt.witnesses.false_apart.round(2), learnt.converged
    (array([0.04, 0.5 ]), True)
    """
    rows = read_rows(answers, side, prior)
    if max_rounds < 1 or n_init < 1:
        raise ValueError(
            f"max_rounds is {max_rounds} and n_init {n_init}; there must be one at least: "
            "max_rounds=50, n_init=1."
        )

    def climb(preferences: FloatArray) -> Learnt:
        found, history, converged = None, list[float](), False
        while not converged and len(history) < max_rounds:
            theta, before = fit(preferences), found
            found = error_rates(X, theta, side, rows, engine, prior=prior, start=before, **options)
            preferences = found.preferences
            history.append(float(found.history[-1]))
            converged = before is not None and _moved(before, found) <= tol
            # A fit that begins afresh may end lower than the last: the best round is kept.
            if history[-1] >= max(history):
                best = theta, found
        return Learnt(*best, np.array(history), converged)

    ends = [climb(first) for first in _beginnings(rows, prior, n_init, random_state, options)]
    return max(ends, key=lambda learnt: learnt.history.max())


def _beginnings(
    rows: IntArray,
    prior: tuple[float, float],
    n_init: int,
    random_state: int | np.random.Generator | None,
    options: dict[str, Any],
) -> list[FloatArray]:
    """The answers as preferences: all witnesses alike, or one of them and nobody else."""
    alike = _at_first(rows, prior)
    names, of = name_witnesses(options.get("witness"), len(rows))
    order = np.random.default_rng(random_state).permutation(len(names))
    believed = [np.column_stack([rows[:, :2], alike[:, 2] * (of == g)]) for g in order]
    return [alike, *believed][:n_init]


def _at_first(rows: IntArray, prior: tuple[float, float]) -> FloatArray:
    """The answers as preferences, all witnesses alike."""
    a, b = prior
    weight = -logit((a - 1) / (a + b - 2))
    return np.column_stack([rows[:, :2], np.where(rows[:, 2] == 1, weight, -weight)])


def _moved(before: Witnesses, after: Witnesses) -> float:
    """The largest change of a rate."""
    changes = np.subtract(before[:2], after[:2])
    return float(np.abs(changes).max())
