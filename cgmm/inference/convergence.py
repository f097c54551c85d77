"""Have the chains of a sampler forgotten their starts, and how much have they seen? Chapter 10.

Chains that explore the same distribution differ no more among each other than each does with
itself; *R-hat* compares the two. Successive draws of a chain resemble each other, so that n of them
say less than n independent ones would; the *effective sample size* says how many those would be.
Both are taken of *ranks*, made normal: a variance need not exist, and no far draw decides alone
(Vehtari, Gelman, Simpson, Carpenter and Bürkner, 2021).

=======  ====================================================================
m, n     half-chains; draws of each
z        normal quantiles of the ranks of all m n draws
W, B/n   variance within chains; variance of the chains' means
ρ_t      autocorrelation of draws that are t steps apart
=======  ====================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from cgmm.numerics import FloatArray

# Fewest draws of half a chain that have a variance and some lags.
FEWEST_DRAWS = 4


def r_hat(draws: ArrayLike) -> float:
    """Return the rank-normalised split R-hat: how much longer chains might shrink the spread.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        A number that each chain gave after each step, such as the log-weight of its assignment.

    Returns
    -------
    float
        One if chains agree; above 1.1, they have not mixed. One where no draw ever differs from
        another; infinite where each chain, or half of one, stays at a value of its own.

    Raises
    ------
    ValueError
        If there are fewer than four draws a chain, or one is not finite.

    Notes
    -----
    Gelman and Rubin (1992), with each chain split in two halves, so that one that is still on its
    way disagrees with itself, and of ranks; also of the ranks of distances to the median, so that
    chains of one middle and different widths disagree. The larger of the two is returned (Vehtari
    et al., 2021, sect. 4).

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
    # The variance of all, (n - 1)/n W + B/n, over that within.
    return float(np.sqrt((n - 1) / n + between / within))


def effective_sample_size(draws: ArrayLike) -> float:
    """Return the number of independent draws that would estimate the centre equally well.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        As in :func:`r_hat`.

    Returns
    -------
    float
        At most m n log10(m n), as Vehtari et al. advise: chains whose draws alternate about the
        mean are better than independent ones. NaN where no draw differs from another.

    Raises
    ------
    ValueError
        As :func:`r_hat`.

    Notes
    -----
    m n / (1 + 2 Σ_t ρ_t). The sum ends where a pair of successive ρ is no longer positive, and
    pairs are made to fall (Geyer, 1992: his initial monotone sequence); ρ_t is the mean over split
    chains, by fast Fourier transform, with the variance between chains counted as correlation.

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
    """Return (2 n_chains, n_draws // 2): both halves of each chain, without a middle draw."""
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
    """Return (m, n) Blom's normal scores of the ranks; equal draws share their mean rank."""
    ranks = rankdata(halves).reshape(halves.shape)
    return np.asarray(ndtri((ranks - 3 / 8) / (ranks.size + 1 / 4)))


def _autocovariances(chains: FloatArray) -> FloatArray:
    """Return (m, n) biased autocovariances of each chain at lags 0 .. n - 1."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    # Zeros up to twice the length: the transform takes a chain for periodic.
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariances: FloatArray = np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n] / n
    return covariances
