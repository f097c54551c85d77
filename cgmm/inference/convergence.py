"""Diagnose the chains of a sampler: convergence (R-hat) and effective sample size.

Mixtures call it after a fit with the Gibbs sampler. Chapter 10 explains it. If chains explore the
same distribution, the variance between them is no larger than the variance within each; *R-hat*
compares the two. Successive draws of a chain are correlated, so n draws contain less information
than n independent ones; the *effective sample size* is the number of independent draws with the
same information. Both use normal scores of *ranks*, which exist even if the variance does not, and
which limit the influence of outliers (Vehtari, Gelman, Simpson, Carpenter and Bürkner, 2021).

=======  ====================================================================
m, n     number of half-chains and of draws in each, e.g. 8 and 100
z        normal quantiles of the ranks of all m n draws, e.g. -0.7
W, B/n   variance within chains; variance of the chains' means, e.g. 1.0 and 0.01
ρ_t      autocorrelation of draws that are t steps apart, e.g. ρ_1 = 0.6
=======  ====================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from cgmm.numerics import FloatArray

# Fewer draws per chain leave half-chains without a variance.
FEWEST_DRAWS = 4


def r_hat(draws: ArrayLike) -> float:
    """Return the rank-normalised split R-hat: one if chains agree, larger if they have not mixed.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        A number computed after each step of each chain, such as the log-weight of its assignment.

    Returns
    -------
    float
        One if chains agree or all draws are equal; above 1.1 if chains have not mixed; infinite if
        every half-chain is constant but not all have the same value.

    Raises
    ------
    ValueError
        If there are fewer than four draws per chain, or if a draw is not finite.

    Notes
    -----
    This is the statistic of Gelman and Rubin (1992) for ranks, with each chain split in two halves,
    which also detects a trend within a chain. It is computed once for the ranks of the draws, and
    once for the ranks of distances to the median, which detects chains with equal medians and
    different spreads. The larger value is returned (Vehtari et al., 2021, sect. 4).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(4, 1000))
    >>> round(r_hat(draws), 2)
    1.0
    >>> round(r_hat(draws + np.arange(4)[:, None]), 1)
    1.6
    """
    halves = _halves(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_split_r_hat(_normal_ranks(halves)), _split_r_hat(_normal_ranks(folded)))


def _split_r_hat(halves: FloatArray) -> float:
    """Return the ratio of the standard deviation of all draws to that within chains."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    if within <= 0:
        return 1.0 if between <= 0 else np.inf
    # R-hat squared is the total variance (n - 1)/n W + B/n, divided by W.
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(draws: ArrayLike) -> float:
    """Return the number of independent draws that would estimate the centre equally well.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        See :func:`r_hat`.

    Returns
    -------
    float
        The effective sample size, at most m n log10(m n) as Vehtari et al. recommend. It may exceed
        m n if draws alternate about the mean. NaN if all draws are equal.

    Raises
    ------
    ValueError
        See :func:`r_hat`.

    Notes
    -----
    The value is m n / (1 + 2 Σ_t ρ_t). The sum ends at the first pair of successive ρ whose sum is
    not positive, and sums of pairs are forced to decrease (the initial monotone sequence of Geyer,
    1992). ρ_t is the mean over half-chains, computed by fast Fourier transform, with the variance
    between chains counted as correlation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(3600 < effective_sample_size(rng.normal(size=(4, 1000))) < 4400)
    True
    """
    halves = _normal_ranks(_halves(draws))
    m, n = halves.shape
    covariances = _autocovariances(halves).mean(axis=0)
    within = covariances[0] * n / (n - 1)
    spread = within * (n - 1) / n + halves.mean(axis=1).var(ddof=1)
    if spread <= 0:
        return np.nan
    rho = 1 - (within - covariances * n / (n - 1)) / spread
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    stop = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: stop[0] if len(stop) else None])
    time = max(2 * float(pairs.sum()) - 1, 1 / np.log10(m * n))
    return m * n / time


def _halves(draws: ArrayLike) -> FloatArray:
    """Return (2 n_chains, n_draws // 2) halves of the chains; a middle draw is left out."""
    array = np.asarray(draws, dtype=float)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"draws have shape {array.shape}; they must be (n_chains, n_draws), with at least "
            f"{FEWEST_DRAWS} draws a chain."
        )
    if not np.isfinite(array).all():
        chain, t = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"draw {t} of chain {chain} is {array[chain, t]}; draws must be finite.")
    half = array.shape[1] // 2
    return np.concatenate([array[:, :half], array[:, -half:]])


def _normal_ranks(halves: FloatArray) -> FloatArray:
    """Return (m, n) normal scores (Blom's) of the ranks; equal draws get their mean rank."""
    ranks = rankdata(halves).reshape(halves.shape)
    return np.asarray(ndtri((ranks - 3 / 8) / (ranks.size + 1 / 4)))


def _autocovariances(chains: FloatArray) -> FloatArray:
    """Return (m, n) biased autocovariances of each chain at lags 0 .. n - 1."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    # Padding with zeros is needed because the transform treats a chain as periodic.
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariances: FloatArray = np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n] / n
    return covariances
