"""Mistakes that a type checker must find in a user's script: ``make lint`` expects each error."""

from __future__ import annotations

import numpy as np

from cgmm import ENGINES, ConstrainedGaussianMixture, COPKMeans, Parameters, SideInformation
from cgmm.mixture import Posterior, closed_form, e_step, m_step
from cgmm.network import Marginals
from cgmm.numerics import FloatArray


def mistakes(X: FloatArray, theta: Parameters, posterior: Posterior) -> None:
    """Make one mistake on each line."""
    ConstrainedGaussianMixture(n_components="two")  # type: ignore[arg-type]
    ConstrainedGaussianMixture(components=2)  # type: ignore[call-arg]
    model = ConstrainedGaussianMixture(2)
    model.fit(X, must_links=[[0, 1]])  # type: ignore[call-arg]
    print(model.label_)  # type: ignore[attr-defined]
    COPKMeans(2).fit(X, preferences=[[0, 1, 2.0]])  # type: ignore[call-arg]

    side = SideInformation.build("4")  # type: ignore[arg-type]
    infer = ENGINES["auto"](side.graph)
    e_step(X, theta, side, ENGINES["auto"])  # type: ignore[arg-type]
    e_step(X, theta, infer, side)  # type: ignore[arg-type]
    m_step(X, theta, posterior, "full", closed_form)  # type: ignore[arg-type]
    theta.weights = np.ones(2)  # type: ignore[misc]
    answer: int = posterior.log_evidence  # type: ignore[assignment]
    Marginals([[0.5]], answer, exact=True)  # type: ignore[arg-type]
