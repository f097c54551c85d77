"""Inference engines: one a file, all of one signature, listed in ``ENGINES``.

An engine takes a :class:`~cgmm.network.Graph`, does once what depends on the structure alone, and
returns a function from unary log-potentials to :class:`~cgmm.network.Marginals`.
Each is the function of its file, and an attribute here: ``cgmm.inference.gibbs`` is the engine.
Chapters 7 and 10 read this room.
"""

from collections.abc import Callable
from functools import partial

from cgmm.inference.auto import auto, exact, inference_cost
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.clique import clique
from cgmm.inference.colouring import adjacency, by_colour, colour_nodes
from cgmm.inference.convergence import effective_sample_size, r_hat
from cgmm.inference.elimination import elimination_order, min_fill
from cgmm.inference.enumerate import enumerate_assignments
from cgmm.inference.feasible import feasible_assignment, forbidden_clique, require_colourable
from cgmm.inference.gibbs import gibbs
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree
from cgmm.inference.mean_field import mean_field, mean_field_ascent
from cgmm.inference.pairs import pairs
from cgmm.inference.tree_reweighted import tree_reweighted
from cgmm.network import Engine, Graph, Infer, Inference

__all__ = [
    "ENGINES", "adjacency", "by_colour", "colour_nodes", "effective_sample_size",
    "elimination_order", "engine_name", "enumerate_assignments", "feasible_assignment",
    "forbidden_clique", "inference_cost", "mean_field_ascent", "min_fill", "named_engine", "r_hat",
    "require_colourable",
]  # fmt: skip

ENGINES: dict[str, Engine] = {
    "auto": auto,
    "exact": exact,
    "independent": independent,
    "pairs": pairs,
    "clique": clique,
    "junction_tree": junction_tree,
    "belief_propagation": belief_propagation,
    "tree_reweighted": tree_reweighted,
    "mean_field": mean_field,
    "gibbs": gibbs,
    "enumerate": enumerate_assignments,
}
"""Every engine by the name under which estimators accept it."""


def named_engine(inference: str | Engine) -> Engine:
    """The engine that an argument ``inference`` stands for.

    Parameters
    ----------
    inference : str or callable
        A name in ENGINES, or an engine; one that returns a plain function tells marginals alone.

    Returns
    -------
    callable
        The engine.

    Examples
    --------
    >>> named_engine("exact") is exact
    True
    """
    return ENGINES[inference] if isinstance(inference, str) else partial(_apply, inference)


def _apply(engine: Callable[[Graph], Infer], graph: Graph) -> Inference:
    """What an engine makes of a graph: of a plain function the marginals alone."""
    infer = engine(graph)
    return infer if isinstance(infer, Inference) else Inference(infer)


def engine_name(inference: str | Engine) -> str:
    """Name of an engine, or of the function that one with other settings was made from.

    Parameters
    ----------
    inference : str or callable
        As an estimator is given it.

    Returns
    -------
    str
        For messages.

    Examples
    --------
    >>> own = named_engine(partial(gibbs, n_sweeps=50))
    >>> engine_name(own)
    'gibbs'
    """
    if isinstance(inference, str):
        return inference
    if isinstance(inference, partial):
        return engine_name(inference.args[0] if inference.func is _apply else inference.func)
    return str(getattr(inference, "__name__", type(inference).__name__))
