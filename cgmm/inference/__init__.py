"""Inference engines: one a file, all of one signature, listed in ``ENGINES``.

An engine takes a :class:`~cgmm.network.Graph`, does once what depends on the structure alone, and
returns a function from unary log-potentials to :class:`~cgmm.network.Marginals`.
``cgmm.inference.gibbs`` is the file; the engine in it is ``cgmm.inference.gibbs.gibbs``, or
``ENGINES["gibbs"]``. Chapters 7 and 10 read this room.
"""

from collections.abc import Callable
from functools import partial
from inspect import signature

from cgmm.inference import (
    auto, belief_propagation, clique, gibbs, independent, junction_tree, mean_field, pairs,
    tree_reweighted,
)  # fmt: skip
from cgmm.inference.auto import exact, inference_cost
from cgmm.inference.convergence import effective_sample_size, r_hat
from cgmm.inference.elimination import elimination_order, min_fill
from cgmm.inference.enumerate import enumerate_assignments
from cgmm.inference.feasible import colour_nodes, feasible_assignment, require_colourable
from cgmm.inference.gibbs_sweeps import by_colour
from cgmm.inference.mean_field import mean_field_ascent
from cgmm.network import Engine, Graph, Infer, Inference

__all__ = [
    "ENGINES", "by_colour", "colour_nodes", "effective_sample_size",
    "elimination_order", "engine_name", "enumerate_assignments", "feasible_assignment",
    "inference_cost", "mean_field_ascent", "min_fill", "named_engine",
    "needs_seed", "r_hat", "require_colourable",
]  # fmt: skip

ENGINES: dict[str, Engine] = {
    "auto": auto.auto,
    "exact": exact,
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


def named_engine(inference: str | Engine) -> Engine:
    """Return the engine that an argument ``inference`` stands for.

    Parameters
    ----------
    inference : str or callable
        A name in ENGINES, or an engine. One that returns a plain function has marginals only, and
        may remember earlier calls: its ``Inference`` is stateful.

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
    """Apply an engine; wrap the plain function that a user's engine may return."""
    infer = engine(graph)
    return infer if isinstance(infer, Inference) else Inference(infer, is_stateful=True)


def needs_seed(engine: Engine) -> bool:
    """Return whether an engine draws random numbers: whether it has a ``random_state``.

    Parameters
    ----------
    engine : callable
        An engine. One whose ``random_state`` is already set, by ``functools.partial``, needs none.

    Returns
    -------
    bool
        Whether an estimator should pass a seed of its own.

    Examples
    --------
    >>> [name for name, engine in ENGINES.items() if needs_seed(engine)]
    ['gibbs']
    >>> needs_seed(partial(ENGINES["gibbs"], random_state=3))
    False
    """
    if isinstance(engine, partial) and "random_state" in engine.keywords:
        return False
    return "random_state" in signature(engine).parameters


def engine_name(inference: str | Engine) -> str:
    """Return the name of an engine, or of the function that ``functools.partial`` was applied to.

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
    >>> own = named_engine(partial(ENGINES["gibbs"], n_sweeps=50))
    >>> engine_name(own)
    'gibbs'
    """
    if isinstance(inference, str):
        return inference
    if isinstance(inference, partial):
        return engine_name(inference.args[0] if inference.func is _apply else inference.func)
    return str(getattr(inference, "__name__", type(inference).__name__))
