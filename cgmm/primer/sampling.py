"""Gibbs sampling with moves of single nodes and of clusters. Chapter 10.

======  ==================================================================
z       (J,) current joint assignment of the chain
u       (J, K) unary log-potentials; edges (E, 2), weights w (E,)
tied    (J,) cluster of each node: nodes that move together
rng     NumPy's random number generator
======  ==================================================================
"""

import numpy as np
from scipy.special import expit, logsumexp


def around(j, edges, w):
    """Return the neighbours of node j with the log-weights of the edges."""
    first, second = edges[:, 0] == j, edges[:, 1] == j
    ends = np.concatenate([edges[first, 1], edges[second, 0]])
    return list(zip(ends, np.concatenate([w[first], w[second]])))


def given_others(j, z, u, edges, w):
    """Return (K,) p(z_j = k | states of all other nodes)."""
    f = u[j].copy()
    for b, x in around(j, edges, w):
        f[z[b]] += x
    # [lu2007, eq. 3.1]
    return np.exp(f - logsumexp(f))


def single_moves(z, u, edges, w, rng):
    """Redraw each node in turn; return the new (J,) assignment."""
    z = z.copy()
    for j in range(len(z)):
        z[j] = rng.choice(u.shape[1], p=given_others(j, z, u, edges, w))
    return z


def tie(z, states, edges, w, rng):
    """Draw (J,) clusters of nodes that may exchange the two states."""
    tied, inside = np.arange(len(z)), np.isin(z, states)
    for (a, b), x in zip(edges, w):
        content = (z[a] == z[b]) == (x > 0) and inside[a] and inside[b]
        if content and rng.random() < -np.expm1(-abs(x)):
            tied[tied == tied[b]] = tied[a]
    return tied


def cluster_move(z, u, edges, w, rng):
    """Redraw clusters in two random states; return the new (J,) z."""
    states = rng.choice(u.shape[1], size=2, replace=False)
    tied = tie(z, states, edges, w, rng)
    other = np.where(np.isin(z, states), states.sum() - z, z)
    gains = u[range(len(z)), other] - u[range(len(z)), z]
    for c in np.unique(tied):
        if rng.random() < expit(gains[tied == c].sum()):
            z = np.where(tied == c, other, z)
    return z


def gibbs(u, edges, w, z, n_sweeps, rng):
    """Return (J, K) mean over sweeps of p(z_j = k | all other nodes)."""
    q = np.zeros(u.shape)
    for _ in range(n_sweeps):
        z = single_moves(z, u, edges, w, rng)
        z = cluster_move(z, u, edges, w, rng)
        q += [given_others(j, z, u, edges, w) for j in range(len(z))]
    return q / n_sweeps


def r_hat(x):
    """Return R-hat of draws (chains, draws); near 1 if chains agree."""
    halves = np.concatenate(np.split(x, 2, axis=1))
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    return np.sqrt((n - 1) / n + between / within)
