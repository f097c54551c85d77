"""Inference engines: one a file, all of one signature, listed in ``ENGINES``.

An engine takes a :class:`~cgmm.network.Graph`, does once what depends on the structure alone, and
returns a function from unary log-potentials to :class:`~cgmm.network.Marginals`.
Each is the function of its file: ``cgmm.inference.gibbs.gibbs``. Chapters 7 and 10 read this room.
"""

from cgmm.inference import (
    auto, belief_propagation, clique, exact, gibbs, independent, junction_tree, mean_field, pairs,
    tree_reweighted,
)  # fmt: skip
from cgmm.inference.colour_search import forbidden_clique, list_colouring
from cgmm.inference.colouring import adjacency, by_colour, colour_nodes
from cgmm.inference.convergence import effective_sample_size, r_hat
from cgmm.inference.elimination import eliminate, elimination_order, min_fill
from cgmm.inference.enumerate import enumerate_assignments
from cgmm.inference.exact import inference_cost
from cgmm.inference.feasible import feasible_assignment, require_colourable
from cgmm.inference.mean_field import mean_field_ascent
from cgmm.network import Engine

__all__ = [
    "ENGINES", "adjacency", "by_colour", "colour_nodes", "effective_sample_size", "eliminate",
    "elimination_order", "enumerate_assignments", "feasible_assignment", "forbidden_clique",
    "inference_cost", "list_colouring", "mean_field_ascent", "min_fill", "r_hat",
    "require_colourable",
]  # fmt: skip

ENGINES: dict[str, Engine] = {
    "auto": auto.auto,
    "exact": exact.exact,
    "independent": independent.independent,
    "pairs": pairs.pairs,
    "clique": clique.clique,
    "junction_tree": junction_tree.junction_tree,
    "belief_propagation": belief_propagation.belief_propagation,
    "tree_reweighted": tree_reweighted.tree_reweighted,
    "mean_field": mean_field.mean_field,
    "gibbs": gibbs.gibbs,
    "enumerate": enumerate_assignments,
}
"""Every engine by the name under which estimators accept it."""
