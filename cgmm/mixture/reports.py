"""What a fit reports about the engine: who answered what, and whether it was at ease. Chapter 10.

Engines warn with each answer, and EM asks them a hundred times. What matters is the answer that is
kept, the last of a run.
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference import effective_sample_size, engine_name, r_hat
from cgmm.inference.convergence import FEWEST_DRAWS
from cgmm.inference.gibbs import Chains
from cgmm.network import (
    Answer,
    ApproximationWarning,
    Engine,
    Infer,
    Inference,
    Marginals,
    SideInformation,
    connected_components,
)
from cgmm.numerics import FloatArray, WarnedOnce, warn_caller

# Above this R-hat chains have not mixed (Gelman and Rubin, 1992).
NOT_MIXED = 1.1


def answers_of(
    side: SideInformation, ready: Inference | None, inference: str | Engine, n_components: int
) -> tuple[Answer, ...]:
    """Who answered what: the engine's own report if it makes one, else that it answered all."""
    if ready is None:
        return (Answer("independent", side.n_nodes, side.n_nodes, 0, 0),)
    graph = side.graph
    n_parts = len(np.unique(connected_components(graph)))
    itself = Answer(engine_name(inference), n_parts, graph.n_nodes, len(graph.edges))
    return tuple(ready.answered(evidence(side, n_components))) or (itself,)


def evidence(side: SideInformation, n_components: int) -> FloatArray:
    """(n_nodes, K) unaries that say what is possible and nothing else; read-only."""
    # Where nothing ties nodes nobody asks which are decided: no table of all of them is made.
    mask = side.mask(n_components) if len(side.graph.edges) else None
    nothing = np.broadcast_to(0.0, (side.n_nodes, n_components))
    return nothing if mask is None else np.where(mask, 0.0, -np.inf)


class LastWords:
    """An engine at work in a run, of whose warnings only those of its last answer matter.

    Messages may not settle in the first iterations and do so in the last: what an engine says about
    an answer that is not kept is not worth a warning.
    """

    def __init__(self, infer: Infer):
        self.infer = infer
        self.words: list[tuple[str, type[Warning]]] = []

    def __call__(self, unary: FloatArray) -> Marginals:
        """The engine's answer, its warnings held back."""
        with WarnedOnce() as told:
            marginals = self.infer(unary)
            self.words = [words for words in told.held if words[1] is not ApproximationWarning]
            told.held[:] = [words for words in told.held if words[1] is ApproximationWarning]
        return marginals


def say_last_words(engines: list[LastWords]) -> None:
    """Give the warnings of the last answer of each engine, but of several alike only one."""
    with WarnedOnce(ConvergenceWarning):
        for text, category in [words for engine in engines for words in engine.words]:
            warn_caller(text, category)


def warn_about_chains(chains: Chains) -> None:
    """Say if the chains of a sampler, in the last E-step, disagreed about where they were.

    Parameters
    ----------
    chains : Chains
        From the last E-step of the run that is kept.

    Warns
    -----
    ConvergenceWarning
        If R-hat of their log-weights, or of the number of nodes in a state, is above 1.1.
    """
    if chains.log_weights.shape[1] < FEWEST_DRAWS:
        return
    traces = [chains.log_weights, *chains.counts]
    worst = max(traces, key=r_hat)
    if r_hat(worst) > NOT_MIXED:
        n_chains, n_sweeps = worst.shape
        warn_caller(
            f"the chains of the last E-step had not mixed: R-hat is {r_hat(worst):.2f} (1 if they "
            f"had), and their {n_chains * n_sweeps} states are worth "
            f"{effective_sample_size(worst):.0f} independent ones. Use more sweeps, inference="
            f"functools.partial(cgmm.inference.gibbs, n_sweeps={5 * n_sweeps}, "
            f"burn_in={n_sweeps}), or another engine.",
            ConvergenceWarning,
        )
