"""The update of the mixing weights π.

Without side information the expected counts divided by their sum maximise the bound.
"""

from __future__ import annotations

import numpy as np

__all__ = ["closed_form"]


def closed_form(expected_counts: np.ndarray) -> np.ndarray:
    """π_k = N_k / Σ_l N_l, the maximiser of Σ_k N_k log π_k on the simplex.

    Parameters
    ----------
    expected_counts : (K,) array
        N_k ≥ 0, not all zero.

    Returns
    -------
    (K,) array
        Weights that sum to one; a component without counts gets exactly zero.

    Raises
    ------
    ValueError
        If a count is negative or not finite, or if all are zero.

    Notes
    -----
    [schmidt2016, §3.1]; green derives it with a Lagrange multiplier.

    Examples
    --------
    >>> closed_form(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    total = expected_counts.sum()
    if not (np.isfinite(total) and expected_counts.min() >= 0 and total > 0):
        raise ValueError(
            f"the expected counts are {expected_counts}; they must be finite, none negative, and "
            "not all zero. Check the responsibilities that they are sums of."
        )
    # [schmidt2016, §3.1]
    return expected_counts / total
