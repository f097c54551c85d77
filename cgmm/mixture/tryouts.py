"""Several starts, each tried for a few iterations: the one that gets furthest is run to its end.

One start in four, of groups that overlap, leaves a group without a seed, and no iteration of EM
mends that. A few iterations tell such a start from a good one, at a fraction of the price of a run
(Biernacki, Celeux and Govaert, 2003). Chapters 3 and 6.

=====  ==================================================================
θ      parameters, of any family
N, K   points and components
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from cgmm.inference.independent import independent
from cgmm.mixture.arranged import Arranged
from cgmm.mixture.chunks import Chunks
from cgmm.mixture.fold import fold
from cgmm.mixture.initialise import kept_alive
from cgmm.mixture.loop import FamilyPooling, Points
from cgmm.mixture.prepare import Prepared
from cgmm.mixture.prior import Prior
from cgmm.mixture.reports import LastWords, evidence
from cgmm.mixture.runs import Run
from cgmm.mixture.seeding import Rng
from cgmm.mixture.weights import closed_form
from cgmm.network import NetworkError, SideInformation, edgeless
from cgmm.numerics import FloatArray, IntArray

# Iterations of each round, and how many starts it leaves at most. The last one goes far: where
# groups overlap a poor start may lead for long, and what the best is given here, its run is spared.
ROUNDS = ((3, 4), (4, 2), (10, 1))
# Starts that agree, per point, within the gain at which a run ends by default, are as good as one.
AGREE = 1e-3
# Points of which a start is made where more lie on a disk or on the workers of a cluster.
MOST = 100_000


def few_of(
    X: Points | Chunks, side: SideInformation, rng: Rng, *, whole: bool
) -> tuple[Points, SideInformation]:
    """The points that starts are made of and tried on, and what is known of them.

    All of them where they are at hand or the ``whole`` is asked for. Of more than are to be fetched
    from a disk or from the workers of a cluster, a sample.
    """
    few = whole or X.shape[0] <= MOST
    if not isinstance(X, Chunks) and (few or not isinstance(X, np.memmap)):
        return X, side
    rows = np.arange(X.shape[0]) if few else sample_of(side, rng)
    points = X.take(rows) if isinstance(X, Chunks) else X[rows]
    return np.asfortranarray(points, dtype=float), side if few else side.restrict(rows)


def sample_of(side: SideInformation, rng: Rng) -> IntArray:
    """Rows of a sample, rising: half of it points of which something is known, if there are any.

    What is tied comes together, so that chunklets and classes can seed a start.
    """
    sizes = np.bincount(side.node_of)
    told = sizes > 1
    told[side.graph.edges] = True
    if side.allowed is not None:
        told |= ~side.allowed.all(axis=1)
    nodes = rng.permutation(np.flatnonzero(told))
    chosen = np.zeros_like(told)
    chosen[nodes[np.cumsum(sizes[nodes]) <= MOST // 2]] = True
    known = np.flatnonzero(side.spread(chosen))
    others = rng.randint(len(side.node_of), size=MOST - len(known))
    return np.union1d(known, others)


class Network(NamedTuple):
    """What starts are tried on."""

    data: Arranged
    log_z_prior: Callable[[FloatArray], float]
    rate: Callable[[Run], float]
    """By what the last ones are compared."""


def most_promising(
    starts: Sequence[Any],
    data: Arranged,
    prepared: Prepared,
    pool: FamilyPooling,
    options: dict[str, float],
) -> Any:
    """θ of the start that a few iterations bring to the highest evidence, after these iterations.

    Parameters
    ----------
    starts : sequence of Parameters
        At least one; a single one is returned as it is.
    data : Arranged
        The points.
    prepared : Prepared
        What is known beside them. If its engine is exact it is at work here too; if not, relations
        that are edges of the network count only when the last starts are compared.
    pool : Pooling
        What maximises the bound.
    options : dict
        What ``pool.maximise`` takes besides.

    Returns
    -------
    Parameters
        The first start as it is if all of them fail: the run that begins there will say why.

    Notes
    -----
    Each round leaves half of the starts or less, and ends the trial if what it leaves agrees: then
    the problem is easy. The weights are those of the closed form, whatever the network. The exact
    update takes most of an iteration's time where there are relations, and hardly changes the order
    of starts.
    """
    if len(starts) == 1:
        return starts[0]
    network = _network_of(prepared, data, len(starts[0].weights))
    going = list(starts)
    for n_iter, n_most in ROUNDS:
        runs = [_tried(theta, n_iter, network, pool, options) for theta in going]
        n_kept = min(n_most, (len(going) + 1) // 2)
        rate = network.rate if n_kept == 1 else attrgetter("score")
        best = sorted(filter(None, runs), key=rate, reverse=True)[:n_kept]
        going = [run.parameters for run in best]
        if not best or best[0].score - best[-1].score < AGREE * data.side.n_points:
            break
    return going[0] if going else starts[0]


def _network_of(prepared: Prepared, data: Arranged, n_components: int) -> Network:
    """The network with its engine if that is exact, else the network without its edges."""
    unary = evidence(prepared.side, n_components)
    # What an engine has to say about answers that are not kept, is not said.
    infer = LastWords(data.infer)
    nothing_tied = prepared.finds_best and len(prepared.graph.edges) == 0
    if nothing_tied or (prepared.answers_exactly(unary) and LastWords(prepared.ready)(unary).exact):
        return Network(data._replace(infer=infer), prepared.log_z_prior, attrgetter("score"))
    X, side = data.given, prepared.side._replace(graph=edgeless(prepared.side.n_nodes))
    without = Arranged.of(X, side, independent, data.height, over=data.over)
    return Network(without, Prior(side, independent).log_z, partial(prepared.rate, X))


def _tried(
    theta: Any, n_iter: int, network: Network, pool: FamilyPooling, options: dict[str, float]
) -> Run | None:  # fmt: skip
    """θ after a few iterations, with its evidence; None if it fails, as a collapsed one does."""
    steps = fold(
        network.data, theta, pool,
        lambda counts: kept_alive(closed_form(counts), network.data.side.n_points), options,
        log_z_prior=lambda weights: 0.0,
    )  # fmt: skip
    try:
        theta, posterior = next(islice(steps, n_iter, None))
    except NetworkError:
        raise
    except ValueError:
        return None
    # Only the last evidence is asked for, so the prior's normaliser is computed once.
    log_evidence = posterior.log_evidence - network.log_z_prior(theta.weights)
    return Run(theta, posterior._replace(log_evidence=log_evidence), [], converged=False)
