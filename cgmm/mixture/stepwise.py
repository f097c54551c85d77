"""Stepwise EM: a step after each batch of points, which are then forgotten. Chapter 3.

The statistics of a fold are means over points, so those of a batch are an estimate of them all.
Each step moves the estimate so far a part of the way to that of the new batch, and makes the next θ
of where it has come (Cappé and Moulines, 2009).

=====  ====================================================================
θ      parameters; s statistics a point: counts and moments
t, γ   number of the step, and how far it goes: γ_t = t^-α
=====  ====================================================================
"""

from __future__ import annotations

from functools import partial, reduce
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from cgmm.given import explain_missing
from cgmm.inference.independent import independent
from cgmm.mixture.arranged import named_as_points
from cgmm.mixture.base import ConstrainedMixture
from cgmm.mixture.chunks import is_dask
from cgmm.mixture.fold import Source, Statistics, statistics_of, summary_of
from cgmm.mixture.gaussian_checks import check_sample_weight
from cgmm.mixture.loop import FamilyPooling
from cgmm.mixture.prepare import engine_of, prepare, require_same_shape
from cgmm.mixture.threads import workers
from cgmm.mixture.tryouts import most_promising
from cgmm.mixture.weights import closed_form
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray

# What a fit to all points has, and a step after one batch leaves unknown.
OF_A_FIT = (
    "history_", "n_iter_", "converged_", "log_evidence_", "responsibilities_", "labels_exact_",
    "weights_update_", "inference_",
)  # fmt: skip


class Known(NamedTuple):
    """What is left of the batches so far."""

    summary: Any
    """s, moments or counts of one point."""
    counts: FloatArray
    """(K,) how much of one point each component has."""
    n_steps: int
    """t."""
    n_points: float
    """How many points have been seen."""


def step(
    data: Source, parameters: Any, pool: FamilyPooling, options: dict[str, float],
    before: Known | None, exponent: float,
) -> tuple[Any, Known]:  # fmt: skip
    """θ after one batch more, and what is to be known at the next.

    Parameters
    ----------
    data : Source
        The batch, without edges.
    parameters : Parameters
        θ so far.
    pool, options
        As in :func:`~cgmm.mixture.fold.fold`.
    before : Known or None
        From the last step; None at the first, which goes all the way: an iteration of EM.
    exponent : float
        α, above ½ and at most 1: the steps add up to infinity, their squares do not.

    Returns
    -------
    (Parameters, Known)
        The next θ.
    """
    ready, n_batch = pool.ready(parameters, pool.survey(data.extent)), data.side.n_points
    found = reduce(Statistics.plus, data.each(partial(statistics_of, ready)))
    summary = summary_of(data, ready, found).times(1 / n_batch)
    now = Known(summary, found.expected_counts / n_batch, 1, n_batch)
    if before is not None:
        n_steps = before.n_steps + 1
        # Cappé and Moulines (2009), eq. 12: s_t = (1 - γ_t) s_{t-1} + γ_t s(batch)
        gamma = n_steps**-exponent
        now = Known(
            before.summary.times(1 - gamma).plus(summary.times(gamma)),
            (1 - gamma) * before.counts + gamma * now.counts,
            n_steps,
            before.n_points + n_batch,
        )
    # Pseudo-counts weigh as much as they would among all points seen.
    moved = ready.from_summary(now.summary.times(now.n_points), **options)
    return moved.with_weights(closed_form(now.counts)), now


class StepwiseMixture(ConstrainedMixture):
    """Base of the mixtures that also learn batch by batch."""

    _parameter_constraints = {
        **ConstrainedMixture._parameter_constraints,
        "step_exponent": [Interval(Real, 0.5, 1, closed="right")],
    }

    step_exponent: float
    n_samples_seen_: float
    n_steps_: int
    _known: Known

    def partial_fit(
        self, X: ArrayLike, y: object = None, *, labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Take one step of EM for a batch of points, which may then be forgotten.

        The first call starts as ``fit`` does, from this batch, and makes an iteration of EM of it;
        after ``fit`` it starts from what was fitted. Step t goes the part t^-α of the way to what
        its batch says, with α the ``step_exponent`` (Cappé and Moulines, 2009). A batch should hold
        several points for each number in a component's covariance.

        Parameters
        ----------
        X : (B, D) array-like
            The batch; the first one with B ≥ K.
        y : ignored
            Present for scikit-learn's conventions.
        labels : (B,) int array or (B, K) bool array, default=None
            As in ``fit``. Relations need all that they tie at once: there are none here.
        sample_weight : (B,) array, default=None
            As in ``fit``.

        Returns
        -------
        self
            With ``n_steps_``, ``n_samples_seen_``, and ``labels_`` of this batch.

        Raises
        ------
        ValueError
            If the batch is not finite, has other columns than the first, or leaves a component
            without a covariance; if ``labels`` does not fit.
        """
        self._validate_params()
        before: Known | None = getattr(self, "_known", None)
        started = hasattr(self, "weights_")
        batch: Any = X
        if is_dask(batch):
            batch = batch.compute()
        with explain_missing(batch):
            points: Any = self._read_new(batch) if started else self._read(batch)
        n_points, n_components = points.shape[0], self.n_components
        side = SideInformation.build(n_points, labels=labels, sampling=self.sampling)
        side = side._replace(labels=None, allowed=side.mask(n_components))
        side = side.weighted(check_sample_weight(sample_weight, n_points), self.sampling)
        pool, options, rng = self._pool(), self._options(), check_random_state(self.random_state)
        engine = engine_of(self.inference, rng, self.verbose)
        with named_as_points(side), workers(self.n_jobs) as over:
            prepared = prepare(side, "independent", independent, "auto", n_components)
            data = prepared.arrange(points, pool.height(n_components, points.shape[1]), over)
            if started:
                theta = self._parameters()
                require_same_shape(theta, (n_components, points.shape[1]))
            else:
                starts = self._starts(points, side, rng)
                theta = most_promising(starts, data, prepared, pool, options)
            theta, known = step(data, theta, pool, options, before, self.step_exponent)
        self._keep(theta)
        for name in OF_A_FIT:
            vars(self).pop(name, None)
        joint = theta.log_joint(points)
        joint = joint if side.allowed is None else np.where(side.allowed, joint, -np.inf)
        self.labels_ = joint.argmax(axis=1)
        self._known, self.n_steps_, self.n_samples_seen_ = known, known.n_steps, known.n_points
        self._asked = self.sampling, self.inference, engine
        return self
