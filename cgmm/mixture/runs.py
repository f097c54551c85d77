"""Runs of EM: which start one takes, followed until it converges, and kept when interrupted.

Pairs from :func:`cgmm.mixture.em` go in, the last pair of parameters and posterior comes out. Runs
are compared by :func:`~cgmm.mixture.best_of`. Chapters 3 and 6.

A run takes the start of K-means, unless another is better by more than chance gains. Evidence alone
cannot choose: fitting a parameter to noise gains evidence too, half a nat on average (Wilks, 1938),
and N / (N - P - 1) times as much where N points are few for P parameters (Hurvich and Tsai, 1989).
What is known beside the points is fitted by no parameter. So seeds are tried for a few iterations
each (Biernacki, Celeux and Govaert, 2003), and the best of them takes the place of K-means if its
evidence is higher, and either by more than chance gains or by odds of twenty to one in what is
known beside the points. That is so where classes are no balls.

=====  ==================================================================
θ      parameters, of any family
N, K   points and components; P free parameters
=====  ==================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference.convergence import FEWEST_DRAWS, effective_sample_size, r_hat
from cgmm.inference.gibbs import Chains
from cgmm.mixture.assignments import AssignmentModel
from cgmm.mixture.blocks import Blocks, Points
from cgmm.mixture.loop import Posterior, Run, em, no_prior
from cgmm.mixture.weights import closed_form, kept_alive
from cgmm.network import NetworkError, SideInformation
from cgmm.numerics import FloatArray, WarnedOnce, best_first, log_normalise, warn_caller

# Where an engine samples, responsibilities tremble for ever. What goes anywhere is after so many
# iterations that many steps away; what trembles not much more than one. Larger steps go somewhere.
LAG, STEPS, LARGEST = 5, 1.5, 0.05
# Iterations of each round, and how many starts it leaves at most. The last one goes far: where
# groups overlap a poor start may lead for long, and what the best is given here, its run is spared.
ROUNDS = ((3, 4), (4, 2), (10, 1))
# Starts that agree, per point, within the gain at which a run ends by default, are as good as one.
AGREE = 1e-3
# What a free parameter gains by chance, in nats: half of a χ² variable of one degree of freedom.
GAIN = 0.5
# Above this R-hat chains have not mixed (Gelman and Rubin, 1992).
NOT_MIXED = 1.1
# Odds of twenty to one.
SURE = np.log(20)


def choose_start(
    starts: Sequence[Any], X: Points, data: Blocks, model: AssignmentModel, pool: Any,
    **options: float,
) -> Any:  # fmt: skip
    """The first start, unless another is better by more than chance gains; that after short runs.

    Parameters
    ----------
    starts : sequence of Parameters
        At least one; the first is the one to beat, and is returned as it is if it is alone.
    X, data : (N, D) array, Blocks
        The points, and in blocks.
    model : AssignmentModel
        What is known beside them.
    pool : Pooling
        What maximises the bound; counts free parameters where there are several starts.
    **options
        What ``pool.maximise`` takes besides.

    Returns
    -------
    Parameters
        The first start as it is, also if the engine approximates, if it is too dear to be asked so
        often (the update of the weights is then "cautious"), or if all starts fail: the run that
        begins there will say why. Of another what its short runs made.

    Notes
    -----
    Each round leaves half of the others or less, and one of those that agree: then the problem is
    easy. The weights are those of the closed form, whatever the network. The exact
    update takes most of an iteration's time where there are relations, and hardly changes the order
    of starts.
    """
    first, *others = starts
    if not others or model.update == "cautious" or not model.is_exact:
        return first
    n_points = data.side.n_points

    def short_run(theta: Any, n_iter: int) -> tuple[float, Any]:
        """Evidence and θ after a few iterations; minus infinity if it fails, as by collapse."""
        steps = em(
            data, theta, data.side, None, pool,
            lambda counts: kept_alive(closed_form(counts), n_points),
            log_z_prior=no_prior, **options,
        )  # fmt: skip
        try:
            theta, posterior = next(islice(steps, n_iter, None))
        except NetworkError:
            raise
        except ValueError:
            return -np.inf, theta
        # Only the last evidence is asked for, so the prior's normaliser is computed once.
        return posterior.log_evidence - model.log_z_prior(theta.weights), theta

    for n_iter, n_most in ROUNDS:
        runs = [short_run(theta, n_iter) for theta in others]
        order = best_first([evidence for evidence, _ in runs])[: min(n_most, (len(runs) + 1) // 2)]
        best = [runs[i] for i in order if runs[i][0] > -np.inf]
        if not best:
            return first
        if best[0][0] - best[-1][0] < AGREE * n_points:
            del best[1:]
        others = [theta for _, theta in best]
    as_far = short_run(first, sum(n_iter for n_iter, _ in ROUNDS))
    return best[0][1] if _is_ahead(best[0], as_far, X, data.side, pool) else first


def _is_ahead(
    run: tuple[float, Any], of: tuple[float, Any], X: Points, side: SideInformation, pool: Any
) -> bool:
    """Whether a run is ahead in what is known beside the points, or by more than chance gains."""
    (log_evidence, theta), (behind, other) = run, of
    lead, weights = log_evidence - behind, side.sample_weight
    n_free, n_points = pool.n_free(*theta.means.shape), side.n_points
    # Hurvich and Tsai (1989), half of their correction: of as many parameters all may be chance.
    spare = n_points - n_free - 1
    chance = GAIN * n_free * n_points / spare if spare > 0 else np.inf
    if lead > chance or behind == -np.inf:
        return True
    # log p(X, known) = log p(X) + log p(known | X)
    gain = log_normalise(theta.log_joint(X))[1] - log_normalise(other.log_joint(X))[1]
    of_points = np.sum(gain * (1.0 if weights is None else weights))
    return bool(lead > 0 and lead - of_points > SURE)


def follow(
    begin: Callable[[int], Iterator[tuple[Any, Posterior]]], number: int = 0, *, tol: float,
    max_iter: int, verbose: int = 0, rate: Callable[[Run], float] | None = None,
    report: Callable[[Run], Run] = lambda run: run,
) -> Run:  # fmt: skip
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
        By what the run is compared with others where its evidence will not do.
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
                # What did not settle in this E-step may settle in the next.
                said = [words for words in warned.held if words[1] is ConvergenceWarning]
                warned.held[:] = [words for words in warned.held if words not in said]
                run = Run(parameters, posterior, history, gain < tol, warnings=tuple(said[-1:]))
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
            # An E-step that did not end has no say.
            warned.held[:] = [words for words in warned.held if words[1] is not ConvergenceWarning]
    run = report(cast("Run", run))
    if run.interrupted:
        return run
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, log-evidence {run.score:.6f}")
    return run if rate is None else run._replace(stand_in=rate(run))


def _movement(path: Sequence[FloatArray]) -> float:
    """Responsibility that moved in the last step; none if all that moves is a sampler's noise."""
    steps = [_moved(*pair) for pair in pairwise(path)]
    are_small = len(steps) == LAG and max(steps) <= LARGEST
    if are_small and _moved(path[0], path[-1]) <= STEPS * np.mean(steps):
        return 0.0
    return steps[-1] if steps else np.inf


def _moved(before: FloatArray, after: FloatArray) -> float:
    """Responsibility that changed hands, a mean over points."""
    return float(np.abs(after - before).sum(axis=1).mean() / 2)


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
    """Say if the chains of a sampler, in the last E-step, disagreed about where they were.

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
            f"functools.partial(cgmm.inference.gibbs, n_sweeps={5 * n_sweeps}, "
            f"burn_in={n_sweeps}), or another engine.",
            ConvergenceWarning,
        )
