"""K-means with relations, the limit of zero variance. Chapter 11.

======  ==================================================================
X, μ    points (N, D) and centres (K, D)
c       (N, K) cost of assigning point i to cluster k, ½ ‖x_i - μ_k‖²
z       (N,) cluster of each point
edges   (E, 2) pairs of points, with weights w (E,), -inf for cannot-links
======  ==================================================================
"""

import numpy as np

from cgmm.primer.networks import most_probable
from cgmm.primer.sampling import around


def costs(X, mu):
    """Return (N, K) costs c_ik = ½ ‖x_i - μ_k‖²."""
    return 0.5 * ((X[:, None] - mu) ** 2).sum(axis=2)


def objective(c, z, edges, w):
    """Return the objective J(z): costs, plus abs(w) of broken preferences."""
    together = z[edges[:, 0]] == z[edges[:, 1]]
    broken = np.where(together, w < 0, w > 0)
    # [lu2007, eq. 4.1]
    return c[range(len(z)), z].sum() + abs(w[broken]).sum()


def cheapest(c, edges, w):
    """Return (N,) the z with minimal J, by exact inference."""
    # [lu2007, eqs. C.8 and C.16]
    return most_probable(-c, edges, w)


def cop_rule(c, cannot_links, order):
    """Assign points in order to the nearest allowed cluster; -1 if none."""
    c, z = c.copy(), np.full(len(c), -1)
    a, b = np.transpose(cannot_links)
    for i in order:
        if c[i].min() == np.inf:
            break
        z[i] = c[i].argmin()
        for others in b[a == i], a[b == i]:
            c[others, z[i]] = np.inf
    return z


def pck_rule(c, z, edges, w, n_sweeps):
    """Move each point in turn to its cheapest cluster, given all others."""
    z = z.copy()
    for _ in range(n_sweeps):
        for i in range(len(c)):
            local = c[i].copy()
            for b, x in around(i, edges, w):
                local[z[b]] -= x
            z[i] = local.argmin()
    return z


def lloyd(X, mu, rule, n_iter):
    """Yield centres and the assignment to them in each iteration."""
    for _ in range(n_iter):
        z = rule(costs(X, mu))
        yield mu, z
        mu = np.array([X[z == k].mean(axis=0) for k in range(len(mu))])
