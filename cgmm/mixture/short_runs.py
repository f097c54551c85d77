"""Which start a run takes: that of K-means, unless another is better by more than chance gains.

Evidence alone cannot choose: fitting a parameter to noise gains evidence too, half a nat on average
(Wilks, 1938). What is known beside the points is fitted by no parameter. So EM starts from K-means
with the relations; seeds are tried for a few iterations each (Biernacki, Celeux and Govaert, 2003),
and the best of them takes the place of K-means if its evidence is higher, and either by more than
half a nat for each free parameter or by odds of twenty to one in what is known beside the points.
That is so where classes are no balls. Chapters 3 and 6.

=====  ==================================================================
θ      parameters, of any family
N, K   points and components
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from cgmm.mixture.assignments import AssignmentModel
from cgmm.mixture.blocks import Blocks, Points
from cgmm.mixture.loop import Run, em, no_prior
from cgmm.mixture.weights import closed_form, kept_alive
from cgmm.network import NetworkError, SideInformation
from cgmm.numerics import FloatArray, best_first, log_normalise

# Iterations of each round, and how many starts it leaves at most. The last one goes far: where
# groups overlap a poor start may lead for long, and what the best is given here, its run is spared.
ROUNDS = ((3, 4), (4, 2), (10, 1))
# Starts that agree, per point, within the gain at which a run ends by default, are as good as one.
AGREE = 1e-3
# What a free parameter gains by chance, in nats: half of a χ² variable of one degree of freedom.
GAIN = 0.5
# Odds of twenty to one.
SURE = np.log(20)


def choose_start(
    starts: Sequence[Any], X: Points, data: Blocks, model: AssignmentModel, pool: Any,
    **options: float,
) -> Any:  # fmt: skip
    """θ of the first start, unless another is better by more than chance gains; after short runs.

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
        The first start as it is if the engine approximates, if it is too dear to be asked so often
        (the update of the weights is then "cautious"), or if all starts fail: the run that begins
        there will say why.

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

    def alive(counts: FloatArray) -> FloatArray:
        return kept_alive(closed_form(counts), n_points)

    def short_run(theta: Any, n_iter: int) -> Run | None:
        """θ after a few iterations, with its evidence; None if it fails, as collapsed ones do."""
        steps = em(data, theta, data.side, None, pool, alive, log_z_prior=no_prior, **options)
        try:
            theta, posterior = next(islice(steps, n_iter, None))
        except NetworkError:
            raise
        except ValueError:
            return None
        # Only the last evidence is asked for, so the prior's normaliser is computed once.
        log_evidence = posterior.log_evidence - model.log_z_prior(theta.weights)
        return Run(theta, posterior._replace(log_evidence=log_evidence), [], converged=False)

    leader = short_run(first, sum(n_iter for n_iter, _ in ROUNDS))
    for n_iter, n_most in ROUNDS:
        runs = [run for theta in others if (run := short_run(theta, n_iter)) is not None]
        order = best_first([run.score for run in runs])[: min(n_most, (len(others) + 1) // 2)]
        best = [runs[i] for i in order]
        if best and best[0].score - best[-1].score < AGREE * n_points:
            del best[1:]
        others = [run.parameters for run in best]
    if leader and best and not _is_ahead(best[0], leader, X, data.side, pool):
        return leader.parameters
    found = [run for run in (*best, leader) if run is not None]
    return found[0].parameters if found else first


def _is_ahead(run: Run, of: Run, X: Points, side: SideInformation, pool: Any) -> bool:
    """Whether a run is ahead in what is known beside the points, or by more than chance gains."""
    lead, weights = run.score - of.score, side.sample_weight
    if lead > GAIN * pool.n_free(*run.parameters.means.shape):
        return True
    # log p(X, known) = log p(X) + log p(known | X)
    gains = [log_normalise(one.parameters.log_joint(X))[1] for one in (run, of)]
    of_points = [gain.sum() if weights is None else weights @ gain for gain in gains]
    return bool(lead > 0 and lead - (of_points[0] - of_points[1]) > SURE)
