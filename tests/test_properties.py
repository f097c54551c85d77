"""Test public functions with random problems: colourings, one-hot codes, stopping and warnings."""

import itertools
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import mixture
from cgmm.inference import require_colourable
from cgmm.network import SideInformation

FORTY_EXAMPLES = settings(max_examples=40)
SEEDS = st.integers(0, 2**31 - 1)
N_COMPONENTS = st.integers(1, 5)


@FORTY_EXAMPLES
@given(SEEDS, st.integers(2, 7), st.integers(1, 4))
def test_cliques_of_cannot_links_larger_than_n_components_are_refused(seed, n, K):
    """Only cannot-links form cliques: finite preferences can be broken, so they must not count."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    pairs = pairs[rng.random(len(pairs)) < 0.5]
    is_hard = rng.random(len(pairs)) < 0.7
    weights = np.where(is_hard, -np.inf, 2 * rng.normal(size=len(pairs)))
    side = SideInformation.build(n, preferences=np.column_stack([pairs, weights]))
    cannot_links = nx.empty_graph(n)
    cannot_links.add_edges_from(pairs[is_hard].tolist())
    largest = max(map(len, nx.find_cliques(cannot_links)))
    if largest <= K:
        require_colourable(side, K)
    else:
        with pytest.raises(ValueError, match=f"need {K + 1} components, and there are {K}"):
            require_colourable(side, K)


@FORTY_EXAMPLES
@given(SEEDS, st.integers(1, 20), st.lists(st.integers(1, 5), min_size=1, max_size=4), N_COMPONENTS)
def test_one_hot_rows_can_be_decoded_and_sampled_tables_encoded(seed, N, sizes, K):
    rng = np.random.default_rng(seed)
    X = rng.integers(sizes, size=(N, len(sizes)))
    rows = mixture.one_hot(X, sizes).toarray()
    parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    np.testing.assert_array_equal(np.column_stack([p.argmax(axis=1) for p in parts]), X)
    assert (rows.sum(axis=1) == len(sizes)).all()
    p = [rng.dirichlet(np.ones(size), K) for size in sizes]
    theta = mixture.CategoricalParameters(rng.dirichlet(np.ones(K)), np.concatenate(p, axis=1))
    drawn, z = mixture.categorical.sample(theta, mixture.Categories(tuple(sizes)), N, rng)
    assert drawn.shape == X.shape
    assert ((drawn >= 0) & (drawn < sizes)).all()
    # The drawn table must be possible under the parameters.
    assert (theta.log_density(mixture.one_hot(drawn, sizes))[np.arange(N), z] > -np.inf).all()


def iterate_posteriors(evidences):
    """Yield posteriors with the given log-evidences, and repeat the last one."""
    for evidence in itertools.chain(evidences, itertools.repeat(evidences[-1])):
        yield None, mixture.Posterior(np.eye(2), np.ones(2), evidence)


@FORTY_EXAMPLES
@given(st.lists(st.floats(-100, 0), min_size=1, max_size=9), st.integers(1, 12), st.floats(0, 5))
def test_em_ends_one_iteration_after_the_first_small_gain(evidences, max_iter, tol):
    run = mixture.follow(lambda number: iterate_posteriors(evidences), tol=tol, max_iter=max_iter)
    values = evidences + [evidences[-1]] * (max_iter + 2)
    small = [t for t in range(1, max_iter) if abs(values[t] - values[t - 1]) / 2 < tol]
    length = small[0] + 1 if small else max_iter
    assert run.history == values[:length]
    assert run.posterior.log_evidence == values[length]
    assert run.converged == bool(small)
    assert run.n_iter == length


@FORTY_EXAMPLES
@given(st.lists(st.booleans(), min_size=1, max_size=5), st.booleans(), st.integers(1, 99))
def test_warnings_name_empty_components_and_missing_convergence(is_empty, converged, max_iter):
    weights, K = np.where(is_empty, 0.0, 1.0), len(is_empty)
    theta = mixture.Parameters(weights, np.zeros((K, 1)), np.ones((K, 1, 1)))
    run = mixture.Run(theta, mixture.Posterior(np.eye(2), np.ones(2), 0.0), [0.0], converged)
    expected = [f"{max_iter} iterations"] * (not converged)
    expected += [f"component {k} " for k in np.flatnonzero(is_empty)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        mixture.warn_about(run, max_iter)
    messages = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    assert len(messages) == len(expected)
    assert all(part in message for part, message in zip(expected, messages, strict=True))
