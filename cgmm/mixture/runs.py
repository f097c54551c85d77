"""Runs of EM: followed until they converge, restarted, compared, and kept when interrupted.

Pairs from :func:`cgmm.mixture.em` go in, the last pair of parameters and posterior comes out. Other
loops, such as that of K-means, are kept and compared by the same two functions,
:func:`~cgmm.mixture.last_of` and :func:`~cgmm.mixture.best_of`. Chapter 3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.mixture.fold import Folded
from cgmm.mixture.gaussian import Parameters
from cgmm.mixture.loop import Posterior
from cgmm.network import NetworkError
from cgmm.numerics import FloatArray, warn_caller

# Where an engine samples, responsibilities tremble for ever. What goes anywhere is after so many
# iterations that many steps away; what trembles not much more than one. Larger steps go somewhere.
LAG, STEPS, LARGEST = 5, 1.5, 0.05


class _AnyRun(Protocol):
    """What is kept and compared: a run of EM, or of another loop."""

    @property
    def n_iter(self) -> int: ...
    @property
    def score(self) -> float: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def _replace(self) -> Callable[..., Any]: ...


AnyRun = TypeVar("AnyRun", bound=_AnyRun)


class Run(NamedTuple):
    """One run of EM, as far as it went."""

    parameters: Parameters
    """θ at the end."""
    posterior: Posterior | Folded
    """The posterior of exactly these parameters."""
    history: list[float]
    """Log-evidence of the parameters that entered each iteration."""
    converged: bool
    """Whether an iteration gained less than asked."""
    interrupted: bool = False
    """Whether the keyboard ended it."""
    stand_in: float = np.nan
    """What the run is compared by if the engine reports no evidence."""

    @property
    def n_iter(self) -> int:
        """Iterations that are complete."""
        return len(self.history)

    @property
    def score(self) -> float:
        """By what runs are compared: the log-evidence, or what stands in for it."""
        evidence = self.posterior.log_evidence
        return self.stand_in if np.isnan(evidence) else evidence


def follow(
    begin: Callable[[int], Iterator[tuple[Any, Posterior | Folded]]],
    number: int = 0,
    *,
    tol: float,
    max_iter: int,
    verbose: int = 0,
    rate: Callable[[Run], float] | None = None,
) -> Run:
    """Take pairs from the loop until an iteration gains too little; then one more, and stop.

    Parameters
    ----------
    begin : callable
        From the run's number to its pairs of parameters and posterior, as :func:`cgmm.mixture.em`
        yields them.
    number : int, default=0
        The run's number.
    tol : float
        Smallest gain that is worth going on for: in log-evidence per point, in nats. Where an
        engine reports no evidence (NaN), the mean over points of the responsibility that moves from
        one component to another; there a run ends, too, when five iterations have led no further
        than one and a half do on average: what moves is the sampler's noise.
    max_iter : int
        Most iterations.
    verbose : int, default=0
        1: a line at the end; 2: a line an iteration too.
    rate : callable, default=None
        By what the run is compared with others where the engine reports no evidence.

    Returns
    -------
    Run
        As far as it went; ``interrupted`` if the keyboard ended it.

    Raises
    ------
    KeyboardInterrupt
        If no iteration is complete that could be kept.

    Examples
    --------
    >>> r = np.eye(2)
    >>> pairs = [(None, Posterior(r, r.sum(0), evidence)) for evidence in (-9.0, -5.0, -5.0, -5.0)]
    >>> run = follow(lambda number: iter(pairs), tol=1e-3, max_iter=10)
    >>> run.history, run.converged
    ([-9.0, -5.0, -5.0], True)
    """
    run: Run | None = None
    gain, path = np.inf, deque[FloatArray](maxlen=LAG + 1)
    try:
        for parameters, posterior in begin(number):
            before, history = run, [] if run is None else [*run.history, run.score]
            run = Run(parameters, posterior, history, converged=gain < tol)
            if verbose > 1 and history:
                print(f"  iteration {run.n_iter:4d}   log-evidence {history[-1]:.6f}")
            if run.converged or run.n_iter == max_iter:
                break
            if before is not None:
                gain = _gain(before.posterior, posterior)
            if np.isnan(posterior.log_evidence):
                path.append(posterior.responsibilities)
                gain = 0.0 if _only_trembles(path) else gain
    except KeyboardInterrupt:
        if run is None or run.n_iter == 0:
            raise
        return run._replace(interrupted=True)
    run = cast("Run", run)
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, log-evidence {run.score:.6f}")
    if rate is not None and np.isnan(run.posterior.log_evidence):
        run = run._replace(stand_in=rate(run))
    return run


def _gain(before: Posterior | Folded, after: Posterior | Folded) -> float:
    """Log-evidence gained per point; without evidence, the responsibility that changed hands."""
    if np.isnan(after.log_evidence):
        return _moved(before.responsibilities, after.responsibilities)
    return abs(after.log_evidence - before.log_evidence) / after.n_points


def _moved(before: FloatArray, after: FloatArray) -> float:
    """Mean over points of what changed hands."""
    return float(np.abs(after - before).sum(axis=1).mean() / 2)


def _only_trembles(path: deque[FloatArray]) -> bool:
    """Whether what moves from iteration to iteration is a sampler's noise."""
    steps = [_moved(path[t], path[t + 1]) for t in range(len(path) - 1)]
    if len(steps) < LAG or max(steps) > LARGEST:
        return False
    return _moved(path[0], path[-1]) <= STEPS * float(np.mean(steps))


def last_of(runs: Iterator[AnyRun]) -> AnyRun:
    """The last state of a run that grows; at an interrupt from the keyboard, the last so far.

    Parameters
    ----------
    runs : iterator of Run
        The run as it stands after each step: a :class:`Run`, or another NamedTuple with ``n_iter``
        and ``interrupted``.

    Returns
    -------
    Run
        The last; ``interrupted`` if the keyboard ended it.

    Raises
    ------
    KeyboardInterrupt
        If no iteration is complete that could be kept.

    Examples
    --------
    >>> def loop():
    ...     yield Run("the start", None, [], False)
    ...     yield Run("one step on", None, [-3.0], False)
    ...     raise KeyboardInterrupt
    >>> run = last_of(loop())
    >>> run.parameters, run.n_iter, run.interrupted
    ('one step on', 1, True)
    """
    run: AnyRun | None = None
    try:
        for run in runs:  # noqa: B007
            pass
    except KeyboardInterrupt:
        if run is None or run.n_iter == 0:
            raise
        return run._replace(interrupted=True)
    return cast("AnyRun", run)


def best_of(
    one_run: Callable[[int], AnyRun],
    n_init: int,
    *,
    fatal: tuple[type[ValueError], ...] = (NetworkError,),
) -> AnyRun:
    """The run of highest score; one that fails or is interrupted does not lose the others.

    Parameters
    ----------
    one_run : callable
        From the run's number to the run: a :class:`Run`, or another NamedTuple with ``score`` and
        ``interrupted``.
    n_init : int
        How many.
    fatal : tuple of exceptions, default=(NetworkError,)
        What would fail every run, and is raised at once.

    Returns
    -------
    Run
        The best.

    Raises
    ------
    ValueError
        That of the last run, if all failed; at once what is fatal.
    KeyboardInterrupt
        If there is no run yet that could be kept.
    """
    best: AnyRun | None = None
    failure: ValueError | None = None
    try:
        for number in range(n_init):
            try:
                run = one_run(number)
            except fatal:
                raise
            except ValueError as error:
                failure = error
                if n_init > 1:
                    warn_caller(f"run {number} of {n_init} failed: {error}", ConvergenceWarning)
                continue
            if best is None or run.score > best.score:
                best = run
            if run.interrupted:
                return best._replace(interrupted=True)
    except KeyboardInterrupt:
        if best is None:
            raise
        return best._replace(interrupted=True)
    if best is None:
        raise cast("ValueError", failure)
    return best


def warn_about(run: Run, max_iter: int) -> None:
    """Say what the user should know about the run that is kept.

    Parameters
    ----------
    run : Run
        From :func:`best_of`.
    max_iter : int
        Most iterations, to be named.

    Warns
    -----
    ConvergenceWarning
        If it was interrupted or did not converge, or if a component explains no point.
    """
    if run.interrupted:
        warn_caller(
            f"EM was interrupted; the best fit so far, of {len(run.history)} iterations, is kept.",
            ConvergenceWarning,
        )
    elif not run.converged:
        warn_caller(
            f"EM did not converge in {max_iter} iterations; look at history_, and increase "
            "max_iter or tol.",
            ConvergenceWarning,
        )
    for k in np.flatnonzero(run.parameters.weights == 0):
        warn_caller(
            f"component {k} explains no point any more and has weight zero; use fewer components, "
            "or another start.",
            ConvergenceWarning,
        )
