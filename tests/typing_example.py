"""Script of a user, with the types that a type checker must infer.

``make lint`` checks it with the package, and finds the mistakes of ``typing_mistakes.py``.
``test_typing.py`` runs it, to see that the values have these types.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
from scipy.sparse import csr_array

import cgmm
from cgmm import mixture
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Engine, Graph, Inference, Marginals
from cgmm.numerics import FloatArray, IntArray

X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
THETA = cgmm.Parameters(np.array([0.5, 0.5]), np.array([[-1.5], [1.5]]), np.ones((2, 1, 1)))


def check_estimators() -> None:
    """Fit estimators, and check the types of their results."""
    mixture = cgmm.ConstrainedGaussianMixture(2, random_state=0).fit(X, must_link=[[0, 1]])
    assert_type(mixture, cgmm.ConstrainedGaussianMixture)
    assert_type(mixture.labels_, IntArray)
    assert_type(mixture.log_evidence_, float)
    assert_type(mixture.predict_proba([[0.0]]), FloatArray)
    assert_type(cgmm.COPKMeans(2).fit(X, cannot_link=[(0, 3)]).labels_, IntArray)
    assert_type(cgmm.RCA().fit(X, [0, 0, 1, 1]).transform(X), FloatArray)
    classifier = cgmm.SemiSupervisedGaussianClassifier().fit(X, [0, -1, -1, 1])
    assert_type(classifier.mixture_, cgmm.ConstrainedGaussianMixture)


def check_core_functions() -> None:
    """Run steps of EM for a Gaussian and for a categorical mixture."""
    side = cgmm.SideInformation.build(4, must_link=[[0, 1]], preferences=[[1, 2, -0.5]])
    assert_type(side, cgmm.SideInformation)
    infer = cgmm.ENGINES["auto"](side.graph)
    assert_type(infer, Inference)
    posterior = mixture.e_step(X, THETA, side, infer)
    assert_type(posterior, cgmm.Posterior)
    pool = mixture.POOLINGS["full"]
    assert_type(pool, mixture.Pooling)
    after = mixture.m_step(X, THETA, posterior, pool, mixture.closed_form, reg_covar=1e-6)
    assert_type(after, cgmm.Parameters)
    theta, _ = next(mixture.em(X, after, side, infer, pool, mixture.closed_form))
    assert_type(theta, cgmm.Parameters)

    table = mixture.one_hot(np.array([[0], [1], [1], [0]]), (2,))
    assert isinstance(table, csr_array)
    assert_type(mixture.e_step(table, make_survey(), side, infer), cgmm.Posterior)
    survey = mixture.m_step(
        table, make_survey(), posterior, mixture.Categories((2,)), mixture.closed_form
    )
    assert_type(survey, mixture.CategoricalParameters)


def make_survey() -> mixture.CategoricalParameters:
    """Return parameters of two components for a single question with two answers."""
    return mixture.CategoricalParameters(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]]))


def check_engines() -> None:
    """Use the most probable assignment of an exact engine, and an engine written by the user."""
    graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    exact = junction_tree(graph)
    assert_type(exact, Inference)
    assert_type(exact(np.zeros((2, 2))), Marginals)
    assert_type(exact.most_probable(np.zeros((2, 2))), IntArray)

    def make_uniform_engine(graph: Graph) -> Inference:
        def infer(unary: FloatArray) -> Marginals:
            return Marginals(np.full(unary.shape, 1 / unary.shape[1]), float("nan"), exact=False)

        return Inference(infer)

    engine: Engine = make_uniform_engine
    cgmm.ConstrainedGaussianMixture(2, inference=engine, weights="ignore", random_state=0).fit(X)
