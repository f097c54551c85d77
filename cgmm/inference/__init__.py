"""Inference engines: one per file, all with the same signature, listed in ``ENGINES``.

An engine takes a :class:`~cgmm.network.Graph`, does the work that depends only on its structure,
and returns a function from unary log-potentials to :class:`~cgmm.network.Marginals`. Estimators
call this function at every E-step. ``cgmm.inference.gibbs`` is a file; its engine is
``cgmm.inference.gibbs.gibbs``, or ``ENGINES["gibbs"]``. Chapters 7 and 10 explain the engines.
"""

from collections.abc import Callable
from functools import partial
from inspect import signature

from cgmm.inference import (
    auto, belief_propagation, clique, closed_forms, gibbs, junction_tree, mean_field,
    tree_reweighted,
)  # fmt: skip
from cgmm.inference.auto import exact, inference_cost
from cgmm.inference.clique_tree import elimination_order, min_fill
from cgmm.inference.enumerate import enumerate_assignments
from cgmm.inference.feasible import colour_nodes, feasible_assignment, require_colourable
from cgmm.inference.gibbs import by_colour, effective_sample_size, r_hat
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
    "independent": closed_forms.independent,
    "pairs": closed_forms.pairs,
    "clique": clique.clique,
    "junction_tree": junction_tree.junction_tree,
    "belief_propagation": belief_propagation.belief_propagation,
    "tree_reweighted": tree_reweighted.tree_reweighted,
    "mean_field": mean_field.mean_field,
    "gibbs": gibbs.gibbs,
    "enumerate": enumerate_assignments,
}
"""Dict of all engines; its keys are the names that estimators accept as ``inference``."""


def named_engine(inference: str | Engine) -> Engine:
    """Return the engine for an argument ``inference``.

    Parameters
    ----------
    inference : str or callable
        A name in ENGINES, or an engine. If an engine returns a plain function, this function
        computes marginals only, and is marked as stateful because it may depend on earlier calls.

    Returns
    -------
    callable
        The engine.

    Examples
    --------
    >>> named_engine("exact") is exact
    True
    """
    return ENGINES[inference] if isinstance(inference, str) else partial(_apply_engine, inference)


def _apply_engine(engine: Callable[[Graph], Infer], graph: Graph) -> Inference:
    """Apply an engine to a graph; wrap a plain function that it returns as an ``Inference``."""
    infer = engine(graph)
    return infer if isinstance(infer, Inference) else Inference(infer, is_stateful=True)


def needs_seed(engine: Engine) -> bool:
    """Return True if an engine has a parameter ``random_state`` that is not set yet.

    Parameters
    ----------
    engine : callable
        An engine. ``functools.partial`` may have set its ``random_state`` already.

    Returns
    -------
    bool
        True if an estimator should pass a seed to the engine.

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
    """Return the name of an engine; for ``functools.partial``, the name of its function.

    Parameters
    ----------
    inference : str or callable
        The argument ``inference`` of an estimator.

    Returns
    -------
    str
        The name of the engine, for messages.

    Examples
    --------
    >>> engine = named_engine(partial(ENGINES["gibbs"], n_sweeps=50))
    >>> engine_name(engine)
    'gibbs'
    """
    if isinstance(inference, str):
        return inference
    if isinstance(inference, partial):
        return engine_name(inference.args[0] if inference.func is _apply_engine else inference.func)
    return str(getattr(inference, "__name__", type(inference).__name__))
