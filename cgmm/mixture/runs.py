"""Runs of EM: followed until they converge, and kept when interrupted.

Pairs from :func:`cgmm.mixture.em` go in, the last pair of parameters and posterior comes out. Runs
are compared by :func:`~cgmm.mixture.best_of`. Chapters 3 and 6.

=====  ==================================================================
θ      parameters, of any family
N, K   points and components; P free parameters
=====  ==================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference.gibbs import FEWEST_DRAWS, Chains, effective_sample_size, r_hat
from cgmm.mixture.loop import Posterior, Run
from cgmm.numerics import FloatArray, WarnedOnce, warn_caller

# Responsibilities of a sampler never stop moving. If they only fluctuate, their distance after LAG
# iterations is at most STEPS mean steps, and no step is larger than LARGEST.
LAG, STEPS, LARGEST = 5, 1.5, 0.05
# Above this R-hat chains have not mixed (Gelman and Rubin, 1992).
NOT_MIXED = 1.1


def follow(
    begin: Callable[[int], Iterator[tuple[Any, Posterior]]], number: int = 0, *, tol: float,
    max_iter: int, verbose: int = 0, rate: Callable[[Run], float] | None = None,
    report: Callable[[Run], Run] = lambda run: run,
) -> Run:  # fmt: skip
    """Follow EM until an iteration gains too little, then for one more, and return the run.

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
        The score by which the run is compared with others; default: its log-evidence.
    report : callable, optional
        From the run to the one that is reported, which may know more of its evidence.

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
    with WarnedOnce() as warned:
        try:
            for parameters, posterior in begin(number):
                before, history = run, [] if run is None else [*run.history, run.score]
                # Keep only the last convergence warning: the next E-step may converge.
                stalls = [held for held in warned.held if held[1] is ConvergenceWarning]
                warned.held[:] = [held for held in warned.held if held not in stalls]
                run = Run(parameters, posterior, history, gain < tol, warnings=tuple(stalls[-1:]))
                if verbose > 1 and history:
                    print(f"  iteration {run.n_iter:4d}   log-evidence {history[-1]:.6f}")
                if run.converged or run.n_iter == max_iter:
                    break
                if np.isnan(posterior.log_evidence):
                    path.append(posterior.responsibilities)
                    gain = _movement(path)
                elif before is not None:
                    gained = posterior.log_evidence - before.posterior.log_evidence
                    gain = abs(gained) / posterior.n_points
        except KeyboardInterrupt:
            if run is None or run.n_iter == 0:
                raise
            run = run._replace(interrupted=True)
            # Warnings of an unfinished E-step do not count.
            warned.held[:] = [held for held in warned.held if held[1] is not ConvergenceWarning]
    run = report(cast("Run", run))
    if run.interrupted:
        return run
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, log-evidence {run.score:.6f}")
    return run if rate is None else run._replace(stand_in=rate(run))


def _movement(path: Sequence[FloatArray]) -> float:
    """Return the responsibility that moved in the last step, or 0 if it is a sampler's noise."""
    steps = [_moved(*pair) for pair in pairwise(path)]
    are_small = len(steps) == LAG and max(steps) <= LARGEST
    if are_small and _moved(path[0], path[-1]) <= STEPS * np.mean(steps):
        return 0.0
    return steps[-1] if steps else np.inf


def _moved(before: FloatArray, after: FloatArray) -> float:
    """Return the responsibility that changed components, a mean over points."""
    return float(np.abs(after - before).sum(axis=1).mean() / 2)


def warn_about(run: Run, max_iter: int) -> None:
    """Warn about a kept run that did not converge, or has components without points.

    Parameters
    ----------
    run : Run
        From :func:`best_of`.
    max_iter : int
        Most iterations, to be named.

    Warns
    -----
    ConvergenceWarning
        If it was interrupted or did not converge, if the engine did not settle in its last E-step,
        or if a component explains no point.
    """
    for text, kind in run.warnings:
        warn_caller(text, kind)
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
    for k in np.flatnonzero(run.parameters.weights < 1e-9):
        warn_caller(
            f"component {k} explains no point any more and has weight zero; use fewer components, "
            "or another start.",
            ConvergenceWarning,
        )


def warn_about_chains(chains: Chains) -> None:
    """Warn if the chains of a sampler had not mixed in the last E-step.

    Parameters
    ----------
    chains : Chains
        From the last E-step of the run that is kept.

    Warns
    -----
    ConvergenceWarning
        If R-hat of their log-weights, or of the number of nodes in a state, is above 1.1.
    """
    if chains.log_weights.shape[1] < FEWEST_DRAWS:
        return
    worst = max([chains.log_weights, *chains.counts], key=r_hat)
    if r_hat(worst) > NOT_MIXED:
        n_chains, n_sweeps = worst.shape
        warn_caller(
            f"the chains of the last E-step had not mixed: R-hat is {r_hat(worst):.2f} (1 if they "
            f"had), and their {n_chains * n_sweeps} states are worth "
            f"{effective_sample_size(worst):.0f} independent ones. Use more sweeps, inference="
            f"functools.partial(cgmm.inference.gibbs.gibbs, n_sweeps={5 * n_sweeps}, "
            f"burn_in={n_sweeps}), or another engine.",
            ConvergenceWarning,
        )
