"""Had the chains of a sampler mixed in the last E-step of a fit? Chapter 10.

A sampler is judged once a fit, not once an iteration: early in EM nobody needs precise marginals.
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from cgmm.inference import effective_sample_size, r_hat
from cgmm.inference.convergence import FEWEST_DRAWS
from cgmm.inference.gibbs import Chains
from cgmm.numerics import warn_caller

# Above this R-hat chains have not mixed (Gelman and Rubin, 1992).
NOT_MIXED = 1.1


def warn_about_chains(chains: Chains | None) -> None:
    """Say if the chains of a sampler, in the last E-step, disagreed about where they were.

    Parameters
    ----------
    chains : Chains or None
        From the last E-step of the run that is kept; None where none were at work.

    Warns
    -----
    ConvergenceWarning
        If R-hat of their log-weights, or of the number of nodes in a state, is above 1.1.
    """
    if chains is None or chains.log_weights.shape[1] < FEWEST_DRAWS:
        return
    traces = [chains.log_weights, *chains.counts]
    worst = max(traces, key=r_hat)
    if r_hat(worst) > NOT_MIXED:
        n_chains, n_sweeps = worst.shape
        warn_caller(
            f"the chains of the last E-step had not mixed: R-hat is {r_hat(worst):.2f} (1 if they "
            f"had), and their {n_chains * n_sweeps} states are worth "
            f"{effective_sample_size(worst):.0f} independent ones. Use more sweeps, inference="
            f"functools.partial(cgmm.inference.gibbs.gibbs, n_sweeps={5 * n_sweeps}, "
            f"burn_in={n_sweeps}), or another engine.",
            ConvergenceWarning,
        )
