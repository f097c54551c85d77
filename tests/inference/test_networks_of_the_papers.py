"""Check corrections of the papers' statements about networks, listed in book/_data/errata.toml."""

import networkx as nx
import numpy as np
from networkx.algorithms.approximation import treewidth_min_fill_in

from cgmm.inference import ENGINES
from cgmm.network import Graph
from cgmm.scenarios import class_set_stars

AUTO, INF = ENGINES["auto"], np.inf


def make_cannot_links(graph: nx.Graph) -> Graph:
    """Turn the edges of a networkx graph into cannot-links."""
    edges = np.array(sorted(sorted(edge) for edge in graph.edges))
    return Graph(len(graph), edges, np.full(len(edges), -INF))


def compute_treewidth(graph: nx.Graph) -> int:
    """Return an upper bound of the treewidth, by the minimum fill-in heuristic."""
    return treewidth_min_fill_in(graph)[0]


def test_cost_grows_with_the_treewidth_and_not_with_the_number_of_cannot_links():
    """[shental2003, sect. 2.2] claims that O(N) cannot-links are tractable; treewidth decides.

    Random cubic graphs have 1.5 N edges and a growing treewidth. Groups of five connected points
    have more edges, but a treewidth of 4.
    """
    widths = []
    for n in (20, 40, 80, 160):
        cubic, groups = nx.random_regular_graph(3, n, seed=0), nx.caveman_graph(n // 5, 5)
        widths.append(compute_treewidth(cubic))
        assert cubic.size() == 1.5 * n < groups.size()
        assert compute_treewidth(groups) == 4
    assert widths == sorted(widths)
    assert widths[-1] > 20


def test_the_prior_of_a_cannot_linked_point_differs_from_its_weights():
    """[shental2003, sect. 2.2] equates α_l with p(z_i = l) given that the relations hold."""
    for alpha, prior in (([0.6, 0.3, 0.1], [0.44, 0.39, 0.17]), ([0.85, 0.15], [0.5, 0.5])):
        linked = AUTO(make_cannot_links(nx.path_graph(2)))(np.log([alpha, alpha])).nodes[0]
        np.testing.assert_allclose(linked, prior, atol=0.005)


def test_the_cannot_links_of_seven_blocks_are_a_star():
    """[lu2007, sect. 5.2.1] links a block of bare ground to six of snow: a star, no cliques."""
    blocks = np.repeat([1, 0], [6, 1])
    star = class_set_stars(blocks, centre=0, random_state=0)
    assert len(star) == 6
    assert np.all(star[:, 0] == 6)
    snow = nx.convert_node_labels_to_integers(nx.Graph(star.tolist()))
    assert nx.is_connected(snow)
    assert {len(clique) for clique in nx.find_cliques(snow)} == {2}


def test_inference_on_a_star_and_a_path_of_fifty_nodes_is_cheap():
    """[lu2007, sect. 3] gives M^|T| as the cost of a component T; the treewidth decides."""
    assert compute_treewidth(nx.star_graph(6)) == compute_treewidth(nx.path_graph(50)) == 1
    log_z = AUTO(make_cannot_links(nx.path_graph(50)))(np.zeros((50, 3))).log_z
    assert np.isclose(log_z, np.log(3) + 49 * np.log(2), rtol=1e-12)


def compute_c_given_a(weights: list[float], unary_b: list[float]) -> list[np.ndarray]:
    """Return p(c | a = k) for each k, in a triangle with log-weights of edges ab, bc and ac."""
    triangle = Graph(3, np.array([[0, 1], [1, 2], [0, 2]]), np.array(weights))
    given = [[[0, -INF], unary_b, [0, 0]], [[-INF, 0], unary_b, [0, 0]]]
    infer = ENGINES["enumerate"](triangle)
    return [infer(np.array(unary)).nodes[2] for unary in given]


def test_dependence_is_no_equivalence_relation():
    """[lu2007, sect. 3] claims that R_a is reflexive, transitive and the closure of R_d.

    Two nodes depend on each other only if no certain node separates them, and if a third edge
    does not cancel the dependence: tanh(w/2) of a path is the product of that of its edges.
    """
    assert not np.allclose(*compute_c_given_a([1, 1, 0], [0, 0]))
    np.testing.assert_allclose(*compute_c_given_a([1, 1, 0], [0, -INF]))  # Node b is certain.
    for ab, bc in ((1.0, 1.0), (1.0, 1.5)):
        ac = 2 * np.arctanh(-np.tanh(ab / 2) * np.tanh(bc / 2))
        np.testing.assert_allclose(*compute_c_given_a([ab, bc, ac], [0, 0]), atol=1e-12)
        # With the edges permuted, b depends on a, and c on b: dependence is not transitive.
        assert not np.allclose(*compute_c_given_a([ac, bc, ab], [0, 0]))
        assert not np.allclose(*compute_c_given_a([ab, ac, bc], [0, 0]))
