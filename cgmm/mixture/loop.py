"""Expectation maximisation: one E-step, one M-step, one loop, for every kind of mixture here.

Chapters change two things only: the engine that answers the E-step's question (which component does
each group of points belong to, given everything?) and the update of the weights. The class-
conditional densities come with the family (:mod:`cgmm.mixture.family`). Chapter 2; with relations,
chapters 6 and 7.

=====  ==================================================================
θ      :class:`~cgmm.mixture.Parameters`: π_k, μ_k, Σ_k
j      node: a chunklet of points that share one assignment; n_j its multiplicity
r_ik   responsibilities, p(z_i = k | X, θ, what is known)
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

# Responsibilities of a sampler never stop moving. If they only fluctuate, their distance after LAG
# iterations is at most STEPS mean steps, and no step is larger than LARGEST.
LAG, STEPS, LARGEST = 5, 1.5, 0.05


class Posterior(NamedTuple):
    """Posterior of the assignments at given parameters, the result of an E-step."""

    responsibilities: FloatArray
    """(N, K) r_ik = p(z_i = k | X, θ, side information); None where blocks have forgotten them."""
    expected_counts: FloatArray
    """(K,) Σ_j n_j p(z_j = k | ...), which the weights' update matches."""
    log_evidence: float
    """log p(X, labels | θ, relations) = log Z_posterior - log Z_prior, in nats."""
    size: float | None = None
    """N, each point as often as it counts; None: as many as there are responsibilities."""

    @property
    def n_points(self) -> float:
        """N."""
        return len(self.responsibilities) if self.size is None else self.size


class Run(NamedTuple):
    """One run of EM, as far as it went."""

    parameters: Any
    """θ at the end."""
    posterior: Posterior
    """The posterior of exactly these parameters."""
    history: list[float]
    """Log-evidence of the parameters that entered each iteration."""
    converged: bool
    """Whether an iteration gained less than asked."""
    interrupted: bool = False
    """Whether the keyboard ended it."""
    stand_in: float = np.nan
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
        return self.posterior.log_evidence if np.isnan(self.stand_in) else self.stand_in


def e_step(
    X: Points, parameters: Theta, side: SideInformation, infer: Infer, *,
    log_z_prior: Callable[[FloatArray], float] | None = None,
) -> Posterior:  # fmt: skip
    """Return the posterior of the assignments, and the evidence, at given parameters.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    side : SideInformation
        What is known beside the data.
    infer : callable
        An engine applied to ``side.graph``.
    log_z_prior : callable, default=None
        From weights (K,) to log Z_prior, as ``weights.Prior(side, engine).log_z``. By default
        ``infer`` is asked about the network without the data.

    Returns
    -------
    Posterior
        Responsibilities, expected counts and log-evidence of exactly these parameters. With an
        engine that is not exact the evidence is as good as the engine's log Z.

    Raises
    ------
    ValueError
        If a covariance is not positive definite, a point has no density under any component, or no
        assignment satisfies all that is known.

    Notes
    -----
    [schmidt2016, sect. 3.1] and green's expectation step, as inference in the network of ``side``:
    [shental2003, eq. 9].

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

    With a cannot-link between the two, the E-step is surer of both:

    >>> side = SideInformation.build(2, cannot_link=[[0, 1]])
    >>> e_step(X, theta, side, ENGINES["auto"](side.graph)).responsibilities.round(3)
    array([[0.982, 0.018],
           [0.018, 0.982]])
    """
    log_z_prior = log_z_prior or _log_z_without_data(side, infer)
    r, counts, log_z, _ = expectation(parameters, Block(X, slice(None), side, infer))
    # [shental2003, eq. 9] in logs: the same network with the data, and without them.
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
        The parameters that the posterior belongs to; a component that no point is assigned to any
        more (N_k = 0: the bound does not depend on it) keeps its mean and covariance from here.
    posterior : Posterior
        From :func:`e_step`.
    family : Family
        An entry of ``POOLINGS``, or another family.
    update_weights : callable
        From expected counts (K,) to weights (K,).
    **settings
        Settings of the family to use in place of its own, such as ``reg_covar``.

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
    """Run EM for as long as the caller wants: parameters and the posterior that belongs to them.

    Parameters
    ----------
    X : (N, D) array
        The points; or ``Blocks`` (:mod:`cgmm.large.blocks`) of them, each with its own part of the
        network and its own engine.
    parameters : Parameters
        The start.
    side, infer, log_z_prior
        As in :func:`e_step`.
    family, update_weights, **settings
        As in :func:`m_step`.

    Yields
    ------
    (Parameters, Posterior)
        The start first; the log-evidence in the second is that of the first.

    Notes
    -----
    The bound's ascent of [green, "The EM algorithm"] and [schmidt2016, sect. 1].

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
        # Results add up over blocks; r_ik are kept only if one block has all points.
        one_block = partial(expectation, parameters, family=family, keep=X.is_whole)
        r, counts, log_z, statistics = reduce(add_statistics, X.each(one_block))
        log_evidence = log_z - log_z_prior(parameters.weights)
        yield parameters, Posterior(r, counts, log_evidence, X.side.n_points)
        parameters = family.maximise(statistics, parameters)
        parameters = parameters.with_weights(update_weights(counts))


def expectation(
    parameters: Theta, block: Block, *, family: Family[Any] | None = None, keep: bool = True,
    about: Any = None,
) -> tuple[Any, FloatArray, float, Any]:  # fmt: skip
    """Return the E-step of a block: r_ik if kept, expected counts, log Z_posterior, statistics.

    With a family its sufficient statistics as well, for an M-step from these parameters or, if the
    moments of earlier batches are ``about`` others, from those.
    """
    X, side = block.X, block.side
    unary, n = node_unaries(X, parameters, side), side.multiplicity
    if block.infer is None:  # nothing is known: points are independent, and each counts once
        r, log_totals = log_normalise(unary, names=side.first_points)
        counts, log_z, counted = n @ r, float(log_totals.sum()), r
    else:
        nodes, log_z, *_ = block.infer(unary)
        r = side.spread(nodes)
        counts = (n if side.copies is None else n * side.copies) @ nodes
        counted = side.counted(r)
    statistics = None
    if family is not None:
        statistics = family.statistics(X, counted, parameters if about is None else about)
    return r if keep else None, counts, log_z, statistics


def assigned(parameters: Theta, keep: bool, block: Block) -> Any:
    """Return (B, K) responsibilities of a block, or only (B,) labels."""
    r = expectation(parameters, block)[0]
    return r if keep else most_probable(r)


def no_prior(weights: FloatArray) -> float:
    """Return 0, the log Z_prior where no relations and chunklets are known."""
    return 0.0


# ---------------------------------------------------------------------------- runs


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


# ---------------------------------------------------------------------------- the network's unaries


def node_unaries(X: Points, parameters: Theta, side: SideInformation) -> FloatArray:
    """Return the unary log-potentials of the posterior's network.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    side : SideInformation
        What is known beside the data.

    Returns
    -------
    (n_nodes, K) array
        ``n_j log π_k + Σ_{i ∈ j} log p(x_i | z_i = k, θ)``; ``-inf`` where π_k = 0 or what is known
        of node j excludes class k.

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
    """Return n_j log π_k, the unary log-potentials of the prior's network.

    Parameters
    ----------
    weights : (K,) array
        π_k.
    side : SideInformation
        What is known beside the data. Labels are evidence and do not enter here.

    Returns
    -------
    (n_nodes, K) array
        ``-inf`` where π_k = 0.

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
    """Return a function from weights to log Z_prior by the posterior's engine."""
    if side.is_trivial:
        return lambda weights: 0.0
    return lambda weights: infer(prior_unaries(weights, side)).log_z
