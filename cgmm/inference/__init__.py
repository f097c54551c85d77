"""Inference engines: one a file, all of one signature, listed in ``ENGINES``.

An engine takes a :class:`~cgmm.network.Graph`, does once what depends on the structure alone, and
returns a function from unary log-potentials to :class:`~cgmm.network.Marginals`.
"""

from cgmm.inference.auto import auto
from cgmm.inference.clique import clique
from cgmm.inference.enumerate import enumerate_assignments
from cgmm.inference.gibbs import gibbs
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree
from cgmm.inference.mean_field import mean_field
from cgmm.inference.pairs import pairs
from cgmm.network import Engine

__all__ = [
    "ENGINES",
    "auto",
    "clique",
    "enumerate_assignments",
    "gibbs",
    "independent",
    "junction_tree",
    "mean_field",
    "pairs",
]

ENGINES: dict[str, Engine] = {
    "auto": auto,
    "independent": independent,
    "pairs": pairs,
    "clique": clique,
    "junction_tree": junction_tree,
    "mean_field": mean_field,
    "gibbs": gibbs,
    "enumerate": enumerate_assignments,
}
"""Every engine by the name under which estimators accept it."""
