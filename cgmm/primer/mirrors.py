"""Two components: a cannot-link is a must-link to a mirror image. Chapter 7.

======  ==================================================================
part    (J,) group of each node: nodes that cannot-links tie together
parity  (J,) 0 or 1: whether z_j is the state of its group, or the other
u       (J, 2) unaries; edges (E, 2) of finite weight w (E,)
======  ==================================================================
"""

import numpy as np


def mirror_images(J, cannot_links):
    """(J,) part and (J,) parity of each node, by closure that alternates."""
    part, parity = np.arange(J), np.zeros(J, dtype=int)
    for a, b in cannot_links:
        if part[a] != part[b]:
            joined = part == part[b]
            if parity[a] == parity[b]:
                parity[joined] = 1 - parity[joined]
            part[joined] = part[a]
    return np.unique(part, return_inverse=True)[1], parity


def contract(u, edges, w, part, parity):
    """Unaries, edges and weights of the groups, and a constant of log Z."""
    seen = np.where(parity[:, None] == 1, u[:, ::-1], u)
    v = np.zeros((part.max() + 1, 2))
    np.add.at(v, part, seen)
    same = parity[edges[:, 0]] == parity[edges[:, 1]]
    inside = part[edges[:, 0]] == part[edges[:, 1]]
    constant = w[same == inside].sum()
    signed = np.where(same, w, -w)
    return v, part[edges[~inside]], signed[~inside], constant
