"""Mistakes that a type checker must find: each line says with which code. Never called."""

from __future__ import annotations

import numpy as np

from cgmm import ENGINES, ConstrainedGaussianMixture, COPKMeans, Parameters, SideInformation
from cgmm.inference.gibbs import gibbs
from cgmm.mixture import POOLINGS, Posterior, closed_form, e_step, m_step
from cgmm.network import Graph, Marginals
from cgmm.numerics import FloatArray


def mistakes(X: FloatArray, theta: Parameters, posterior: Posterior) -> None:
    """One a line."""
    ConstrainedGaussianMixture(n_components="two")  # wrong: arg-type
    ConstrainedGaussianMixture(components=2)  # wrong: call-arg
    ConstrainedGaussianMixture(2, "full")  # wrong: call-arg
    model = ConstrainedGaussianMixture(2)
    model.fit(X, must_links=[[0, 1]])  # wrong: call-arg
    model.fitt(X)  # wrong: attr-defined
    print(model.label_)  # wrong: attr-defined
    print(model.labels_.shap)  # wrong: attr-defined
    COPKMeans(2, inference="auto")
    COPKMeans(2).fit(X, preferences=[[0, 1, 2.0]])  # wrong: call-arg

    side = SideInformation.build("4")  # wrong: arg-type
    infer = ENGINES["auto"](side.graph)
    e_step(X, theta, side, ENGINES["auto"])  # wrong: arg-type
    e_step(X, X, side, infer)  # wrong: arg-type
    e_step("X", theta, side, infer)  # wrong: arg-type
    e_step(X, theta, infer, side)  # wrong: arg-type arg-type
    m_step(X, theta, posterior, "full", closed_form)  # wrong: arg-type
    m_step(X, theta, posterior, POOLINGS["full"])  # wrong: call-arg
    print(posterior.responsibility)  # wrong: attr-defined
    sampled = gibbs(Graph(2, np.zeros((0, 2), int), np.zeros(0)))
    print(sampled.best_assignment)  # wrong: attr-defined
    theta.weights = np.ones(2)  # wrong: misc
    answer: int = posterior.log_evidence  # wrong: assignment
    Marginals([[0.5]], answer, exact=True)  # wrong: arg-type
