"""A user's script with the types that a type checker must find, line by line.

``make lint`` checks this file with the package, and that it finds the mistakes of
``typing_mistakes.py``; ``test_typing.py`` runs it, so that the types are those of the values.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
from scipy.sparse import csr_array

from cgmm import (
    ENGINES,
    RCA,
    ConstrainedGaussianMixture,
    COPKMeans,
    Parameters,
    Posterior,
    SemiSupervisedGaussianClassifier,
    SideInformation,
)
from cgmm.inference.junction_tree import junction_tree
from cgmm.mixture import (
    POOLINGS,
    CategoricalParameters,
    Categories,
    Pooling,
    closed_form,
    e_step,
    em,
    m_step,
    one_hot,
)
from cgmm.network import Engine, Graph, Inference, Marginals
from cgmm.numerics import FloatArray, IntArray

X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
THETA = Parameters(np.array([0.5, 0.5]), np.array([[-1.5], [1.5]]), np.ones((2, 1, 1)))


def estimators() -> None:
    """Fit, and read the results."""
    mixture = ConstrainedGaussianMixture(2, random_state=0).fit(X, must_link=[[0, 1]])
    assert_type(mixture, ConstrainedGaussianMixture)
    assert_type(mixture.labels_, IntArray)
    assert_type(mixture.log_evidence_, float)
    assert_type(mixture.predict_proba([[0.0]]), FloatArray)
    assert_type(COPKMeans(2).fit(X, cannot_link=[(0, 3)]).labels_, IntArray)
    assert_type(RCA().fit(X, [0, 0, 1, 1]).transform(X), FloatArray)
    classifier = SemiSupervisedGaussianClassifier().fit(X, [0, -1, -1, 1])
    assert_type(classifier.mixture_, ConstrainedGaussianMixture)


def core() -> None:
    """Run the same loop by hand for either family."""
    side = SideInformation.build(4, must_link=[[0, 1]], preferences=[[1, 2, -0.5]])
    assert_type(side, SideInformation)
    infer = ENGINES["auto"](side.graph)
    assert_type(infer, Inference)
    posterior = e_step(X, THETA, side, infer)
    assert_type(posterior, Posterior)
    pool = POOLINGS["full"]
    assert_type(pool, Pooling)
    after = m_step(X, THETA, posterior, pool, closed_form, reg_covar=1e-6)
    assert_type(after, Parameters)
    theta, _ = next(em(X, after, side, infer, pool, closed_form))
    assert_type(theta, Parameters)

    table = one_hot(np.array([[0], [1], [1], [0]]), (2,))
    assert isinstance(table, csr_array)
    assert_type(e_step(table, answers(), side, infer), Posterior)
    survey = m_step(table, answers(), posterior, Categories((2,)), closed_form)
    assert_type(survey, CategoricalParameters)


def answers() -> CategoricalParameters:
    """Return the parameters of two components with different answers."""
    return CategoricalParameters(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]]))


def engines() -> None:
    """Use an exact engine's most probable joint assignment, and an engine of one's own."""
    graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    exact = junction_tree(graph)
    assert_type(exact, Inference)
    assert_type(exact(np.zeros((2, 2))), Marginals)
    assert_type(exact.most_probable(np.zeros((2, 2))), IntArray)

    def uniform(graph: Graph) -> Inference:
        def infer(unary: FloatArray) -> Marginals:
            return Marginals(np.full(unary.shape, 1 / unary.shape[1]), float("nan"), exact=False)

        return Inference(infer)

    own: Engine = uniform
    ConstrainedGaussianMixture(2, inference=own, weights="ignore", random_state=0).fit(X)
