"""Expectation maximisation: the E-step, the M-step and the loop for all mixtures of this package.

All methods of the book use this loop. They differ in the family of components
(:mod:`cgmm.mixture.family`), in the engine that computes the posterior of the E-step, and in the
update of the weights. Chapter 2 explains the loop, and chapters 6 and 7 add relations.

=====  ==================================================================
θ      :class:`~cgmm.mixture.Parameters`: π_k, μ_k, Σ_k
j      node: a chunklet of points that share one assignment; n_j its multiplicity
r_ik   responsibilities, p(z_i = k | X, θ, side information)
=====  ==================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.given import as_points
from cgmm.large.batches import add_statistics
from cgmm.large.blocks import Block, Blocks, Points
from cgmm.large.chunks import Cluster
from cgmm.mixture.family import AnyTheta, Family, Theta, with_settings
from cgmm.network import Infer, SideInformation
from cgmm.numerics import (
    FloatArray,
    WarnedOnce,
    log_normalise,
    log_powers,
    most_probable,
    warn_caller,
)  # fmt: skip

# Responsibilities of a sampler never converge exactly. They count as random fluctuations if their
# distance after LAG iterations is at most STEPS mean steps, and no step is larger than LARGEST.
LAG, STEPS, LARGEST = 5, 1.5, 0.05


class Posterior(NamedTuple):
    """Posterior of the assignments at given parameters, the result of an E-step."""

    responsibilities: FloatArray
    """(N, K) r_ik = p(z_i = k | X, θ, side information); None if points are in several blocks."""
    expected_counts: FloatArray
    """(K,) expected counts Σ_j n_j p(z_j = k | ...), the input of the weights' update."""
    log_evidence: float
    """log p(X, labels | θ, relations) = log Z_posterior - log Z_prior, in nats."""
    size: float | None = None
    """Number of points, weighted by ``sample_weight``; None: the number of responsibilities."""

    @property
    def n_points(self) -> float:
        """Number of points, weighted by ``sample_weight``."""
        return len(self.responsibilities) if self.size is None else self.size


class Run(NamedTuple):
    """Result of one run of EM, which may be incomplete."""

    parameters: Any
    """The final θ."""
    posterior: Posterior
    """The posterior at the final θ."""
    history: list[float]
    """Log-evidence of the parameters at the beginning of each iteration."""
    converged: bool
    """Whether an iteration gained less than the tolerance."""
    interrupted: bool = False
    """Whether the user interrupted the run from the keyboard."""
    surrogate: float = np.nan
    """Surrogate of the log-evidence for comparing restarts; NaN if none is needed."""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()
    """Warnings of the engine in its last E-step."""

    @property
    def n_iter(self) -> int:
        """Number of complete iterations."""
        return len(self.history)

    @property
    def score(self) -> float:
        """Score for comparing restarts: the log-evidence, or its surrogate if that is not exact."""
        return self.posterior.log_evidence if np.isnan(self.surrogate) else self.surrogate


def e_step(
    X: Points, parameters: Theta, side: SideInformation, infer: Infer, *,
    log_z_prior: Callable[[FloatArray], float] | None = None,
) -> Posterior:  # fmt: skip
    """Return the posterior of the assignments and the log-evidence at given parameters.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    side : SideInformation
        Labels and relations.
    infer : callable
        An engine applied to ``side.graph``.
    log_z_prior : callable, default=None
        Function from weights (K,) to log Z_prior, e.g. ``weights.Prior(side, engine).log_z``. By
        default ``infer`` computes it in the network without the data.

    Returns
    -------
    Posterior
        Responsibilities, expected counts and log-evidence of these parameters. If the engine is not
        exact, the evidence is as good as the engine's log Z.

    Raises
    ------
    ValueError
        If a covariance is not positive definite, if the density of a point is zero under all
        components, or if no assignment satisfies all hard relations.

    Notes
    -----
    The expectation step of [schmidt2016, sect. 3.1] and green, computed by inference in the network
    of ``side`` [shental2003, eq. 9].

    Examples
    --------
    >>> from cgmm.inference import ENGINES
    >>> from cgmm.mixture import Parameters
    >>> X = np.array([[-1.0], [1.0]])
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(2)
    >>> posterior = e_step(X, theta, side, ENGINES["auto"](side.graph))
    >>> posterior.responsibilities.round(3), round(posterior.log_evidence, 3)
    (array([[0.881, 0.119],
           [0.119, 0.881]]), -2.97)

    A cannot-link between the two points makes the E-step more certain of both:

    >>> side = SideInformation.build(2, cannot_link=[[0, 1]])
    >>> e_step(X, theta, side, ENGINES["auto"](side.graph)).responsibilities.round(3)
    array([[0.982, 0.018],
           [0.018, 0.982]])
    """
    log_z_prior = log_z_prior or _log_z_without_data(side, infer)
    r, counts, log_z, _ = expectation(parameters, Block(X, slice(None), side, infer))
    # [shental2003, eq. 9] in logs: normaliser with the data, minus normaliser without the data.
    return Posterior(r, counts, log_z - log_z_prior(parameters.weights))


def m_step(
    X: Points, parameters: AnyTheta, posterior: Posterior, family: Family[AnyTheta],
    update_weights: Callable[[FloatArray], FloatArray], **settings: Any,
) -> AnyTheta:  # fmt: skip
    """Return the parameters that maximise the bound for given responsibilities.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        The parameters at which the posterior was computed. A component without points (N_k = 0)
        keeps its mean and covariance, because the bound does not depend on them.
    posterior : Posterior
        From :func:`e_step`.
    family : Family
        An entry of ``POOLINGS``, or another family.
    update_weights : callable
        Function from expected counts (K,) to weights (K,).
    **settings
        Settings that replace those of the family, such as ``reg_covar``.

    Returns
    -------
    Parameters
        The new θ.

    Notes
    -----
    [schmidt2016, sect. 3.2] and [green, "Maximisation step"].

    Examples
    --------
    >>> from cgmm.mixture import POOLINGS, Parameters, closed_form
    >>> X = np.array([[0.0], [2.0], [5.0], [7.0]])
    >>> r = np.repeat(np.eye(2), 2, axis=0)
    >>> start = Parameters(np.full(2, 0.5), np.zeros((2, 1)), np.ones((2, 1, 1)))
    >>> theta = m_step(X, start, Posterior(r, r.sum(axis=0), 0.0), POOLINGS["full"], closed_form)
    >>> theta.weights, theta.means.ravel(), theta.covariances.ravel()
    (array([0.5, 0.5]), array([1., 6.]), array([1., 1.]))
    """
    family = with_settings(family, **settings)
    statistics = family.statistics(as_points(X), posterior.responsibilities, parameters)
    theta = family.maximise(statistics, parameters)
    return theta.with_weights(update_weights(posterior.expected_counts))


def em(
    X: Points | Blocks | Cluster, parameters: AnyTheta, side: SideInformation, infer: Infer | None,
    family: Family[AnyTheta], update_weights: Callable[[FloatArray], FloatArray], *,
    log_z_prior: Callable[[FloatArray], float] | None = None, **settings: Any,
) -> Iterator[tuple[AnyTheta, Posterior]]:  # fmt: skip
    """Yield the parameters and their posterior in each iteration of EM, without end.

    Parameters
    ----------
    X : (N, D) array
        The points; or ``Blocks`` (:mod:`cgmm.large.blocks`) of points, each with its own part of
        the network and its own engine.
    parameters : Parameters
        The initial parameters.
    side, infer, log_z_prior
        As in :func:`e_step`.
    family, update_weights, **settings
        As in :func:`m_step`.

    Yields
    ------
    (Parameters, Posterior)
        θ and the posterior at this θ, beginning with the initial parameters.

    Notes
    -----
    The iterations increase the bound of [green, "The EM algorithm"] and [schmidt2016, sect. 1].

    Examples
    --------
    >>> from itertools import islice
    >>> from cgmm.inference import ENGINES
    >>> from cgmm.mixture import POOLINGS, Parameters, closed_form
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> start = Parameters(np.array([0.5, 0.5]), np.array([[-0.5], [0.5]]), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(4)
    >>> infer = ENGINES["independent"](side.graph)
    >>> steps = em(X, start, side, infer, POOLINGS["tied"], closed_form)
    >>> [round(posterior.log_evidence, 3) for _, posterior in islice(steps, 4)]
    [-8.068, -7.331, -7.098, -6.492]
    """
    if not isinstance(X, Blocks | Cluster):
        X = Blocks(side, [Block(as_points(X), slice(None), side, cast("Infer", infer))])
    if settings:
        family = with_settings(family, **settings)
    log_z_prior = log_z_prior or _log_z_without_data(side, cast("Infer", infer))
    while True:
        # Results are summed over blocks; r_ik are kept only if one block contains all points.
        one_block = partial(expectation, parameters, family=family, keep_r=X.is_whole)
        r, counts, log_z, statistics = reduce(add_statistics, X.each(one_block))
        log_evidence = log_z - log_z_prior(parameters.weights)
        yield parameters, Posterior(r, counts, log_evidence, X.side.n_points)
        parameters = family.maximise(statistics, parameters)
        parameters = parameters.with_weights(update_weights(counts))


def expectation(
    parameters: Theta, block: Block, *, family: Family[Any] | None = None, keep_r: bool = True,
    reference: Any = None,
) -> tuple[Any, FloatArray, float, Any]:  # fmt: skip
    """Return the E-step of a block: r_ik, expected counts, log Z_posterior, and statistics.

    Responsibilities are None unless ``keep_r``, and statistics are None without a ``family``.
    Moments are computed about the means of ``reference``; None means ``parameters``.
    """
    X, side = block.X, block.side
    unary, n = node_unaries(X, parameters, side), side.multiplicity
    # Without side information there is no engine, because points are independent.
    if block.infer is None:
        r, log_totals = log_normalise(unary, names=side.first_points)
        counts, log_z, counted = n @ r, float(log_totals.sum()), r
    else:
        nodes, log_z, *_ = block.infer(unary)
        r = side.spread(nodes)
        counts = (n if side.copies is None else n * side.copies) @ nodes
        counted = side.counted(r)
    statistics = None
    if family is not None:
        statistics = family.statistics(X, counted, parameters if reference is None else reference)
    return r if keep_r else None, counts, log_z, statistics


def assign_block(parameters: Theta, keep_r: bool, block: Block) -> Any:
    """Return (B, K) responsibilities of a block if ``keep_r``, otherwise (B,) labels."""
    r = expectation(parameters, block)[0]
    return r if keep_r else most_probable(r)


def zero_log_z_prior(weights: FloatArray) -> float:
    """Return 0, the log Z_prior of a network without relations and chunklets."""
    return 0.0


# ---------------------------------------------------------------------------- runs


def follow(
    begin: Callable[[int], Iterator[tuple[Any, Posterior]]], number: int = 0, *, tol: float,
    max_iter: int, verbose: int = 0, rate: Callable[[Run], float] | None = None,
    report: Callable[[Run], Run] = lambda run: run,
) -> Run:  # fmt: skip
    """Run EM until an iteration gains less than ``tol``, then once more, and return the run.

    Parameters
    ----------
    begin : callable
        Function from the number of a run to an iterator of pairs (parameters, posterior), as
        :func:`cgmm.mixture.em` yields them.
    number : int, default=0
        The number of this run.
    tol : float
        EM stops when an iteration gains less than this in log-evidence per point (nats). If the
        engine reports no evidence (NaN), EM stops when the responsibility that moves between
        components is below ``tol`` on average over points, or when five iterations have moved
        responsibilities no further than 1.5 average iterations, which means that they only
        fluctuate randomly.
    max_iter : int
        Maximum number of iterations.
    verbose : int, default=0
        1: print a line at the end; 2: also print a line per iteration.
    rate : callable, default=None
        Function from the run to the score that is compared with other runs. None: compare runs by
        their log-evidence.
    report : callable, optional
        Function that corrects the log-evidence of the finished run.

    Returns
    -------
    Run
        The run so far; ``interrupted`` is True if the user interrupted it from the keyboard.

    Raises
    ------
    KeyboardInterrupt
        If the run is interrupted before its first iteration is complete.

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
                stalls: list[Any] = []
                if warned.held:
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
                    gain = _measure_change(path)
                elif before is not None:
                    gained = posterior.log_evidence - before.posterior.log_evidence
                    gain = abs(gained) / posterior.n_points
        except KeyboardInterrupt:
            if run is None or run.n_iter == 0:
                raise
            run = run._replace(interrupted=True)
            # Drop the convergence warnings of the interrupted E-step.
            warned.held[:] = [held for held in warned.held if held[1] is not ConvergenceWarning]
    run = report(cast("Run", run))
    if run.interrupted:
        return run
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, log-evidence {run.score:.6f}")
    return run if rate is None else run._replace(surrogate=rate(run))


def _measure_change(recent_r: Sequence[FloatArray]) -> float:
    """Return the responsibility moved in the last step, or 0 if it only fluctuates randomly."""
    steps = [_mean_change(*pair) for pair in pairwise(recent_r)]
    are_small = len(steps) == LAG and max(steps) <= LARGEST
    if are_small and _mean_change(recent_r[0], recent_r[-1]) <= STEPS * np.mean(steps):
        return 0.0
    return steps[-1] if steps else np.inf


def _mean_change(before: FloatArray, after: FloatArray) -> float:
    """Return the responsibility that moved between components, averaged over points."""
    return float(np.abs(after - before).sum(axis=1).mean() / 2)


def warn_about(run: Run, max_iter: int) -> None:
    """Warn if the best run did not converge, or has components without points.

    Parameters
    ----------
    run : Run
        From :func:`best_of`.
    max_iter : int
        Maximum number of iterations, for the message.

    Warns
    -----
    ConvergenceWarning
        If the run was interrupted or did not converge, if the engine did not converge in the last
        E-step, or if a component explains no point.
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


# ---------------------------------------------------------------------------- unary log-potentials


def node_unaries(X: Points, parameters: Theta, side: SideInformation) -> FloatArray:
    """Return the unary log-potentials of the posterior network.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    side : SideInformation
        Labels and relations.

    Returns
    -------
    (n_nodes, K) array
        ``n_j log π_k + Σ_{i ∈ j} log p(x_i | z_i = k, θ)``; ``-inf`` if π_k = 0 or a label excludes
        class k for node j.

    Raises
    ------
    ValueError
        If a label or the mask of allowed classes does not fit K components.

    Notes
    -----
    [lu2007, eq. 4.3] for sampled points, [lu2007, eq. 4.2] for sampled chunklets.

    Examples
    --------
    >>> from cgmm.mixture import Parameters
    >>> theta = Parameters(np.array([0.5, 0.5]), np.zeros((2, 1)), np.ones((2, 1, 1)))
    >>> side = SideInformation.build(3, must_link=[[0, 2]])
    >>> node_unaries(np.zeros((3, 1)), theta, side).round(4)
    array([[-3.2242, -3.2242],
           [-1.6121, -1.6121]])
    """
    unary, weights = parameters.log_density(X), parameters.weights
    if side.is_empty:
        with np.errstate(divide="ignore"):
            unary += np.log(weights)
        return unary
    unary = side.sum_over_nodes(unary)
    unary += prior_unaries(weights, side)
    mask = side.mask(len(weights))
    if mask is not None:
        unary[~mask] = -np.inf
    return unary


def prior_unaries(weights: FloatArray, side: SideInformation) -> FloatArray:
    """Return n_j log π_k, the unary log-potentials of the prior network.

    Parameters
    ----------
    weights : (K,) array
        π_k.
    side : SideInformation
        Labels and relations. Labels are evidence, so they do not affect the prior.

    Returns
    -------
    (n_nodes, K) array
        n_j log π_k; ``-inf`` if π_k = 0.

    Examples
    --------
    >>> prior_unaries(np.array([0.5, 0.5]), SideInformation.build(3, must_link=[[0, 2]])).round(4)
    array([[-1.3863, -1.3863],
           [-0.6931, -0.6931]])
    """
    with np.errstate(divide="ignore"):
        # [lu2007, eq. 2.3] for single points, the numerator of [shental2003, eq. 6] for chunklets
        return log_powers(np.log(weights), side.multiplicity)


def _log_z_without_data(side: SideInformation, infer: Infer) -> Callable[[FloatArray], float]:
    """Return a function that computes log Z_prior of weights with the engine of the posterior."""
    if side.is_trivial:
        return lambda weights: 0.0
    return lambda weights: infer(prior_unaries(weights, side)).log_z
