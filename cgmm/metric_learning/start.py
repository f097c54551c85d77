"""Initialise a mixture by relevant component analysis (RCA).

EM runs in the original space; only its initial responsibilities are computed in the space of RCA.
The end of chapter 12 compares this with fitting the mixture in the space of RCA.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from cgmm.metric_learning.chunklets import check_chunklets, close_chunklets
from cgmm.metric_learning.rca import RCA
from cgmm.mixture import from_chunklets
from cgmm.numerics import FloatArray, Seed
from cgmm.runs import random_source


def rca_start(
    X: ArrayLike,
    n_components: int,
    y: ArrayLike | None = None,
    *,
    must_link: ArrayLike | None = None,
    rca: RCA | None = None,
    random_state: Seed = None,
) -> FloatArray:
    """Compute initial responsibilities by k-means++ in the space of RCA.

    Parameters
    ----------
    X : (N, D) array-like
        The points.
    n_components : int
        K, the number of components of the mixture.
    y, must_link
        As in :meth:`cgmm.metric_learning.RCA.fit`.
    rca : RCA, default=None
        Estimator with the parameters to use; it is cloned before it is fitted. None: ``RCA()``.
    random_state : int, RandomState, Generator or None, default=None
        Seed for k-means++.

    Returns
    -------
    (N, K) array
        Hard responsibilities for ``ConstrainedGaussianMixture(init_params=...)``, with which EM
        begins in the original space: k-means++ draws K seeds in the space of RCA, and each chunklet
        is assigned as a whole to the nearest seed.

    Raises
    ------
    ValueError
        As in :meth:`cgmm.metric_learning.RCA.fit`.

    Notes
    -----
    This is "RCA as the initial metric" of constrained EM, variant f of [barhillel2005, sect. 8.3].
    The paper could also mean a pipeline of RCA and the mixture. In such a pipeline, fits with
    covariances "full" and "tied" are equivariant, so RCA affects only the initialisation (and
    ``reg_covar``).

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [9.0, 0.1], [0.5, 1.0], [9.5, 1.0]])
    >>> r = rca_start(X, 2, must_link=[[0, 1], [2, 3]], random_state=0)
    >>> r.argmax(axis=1) == r[0].argmax()
    array([ True,  True, False, False])
    """
    model = RCA() if rca is None else clone(rca)
    Y = model.fit(X, y, must_link=must_link).transform(X)
    side = close_chunklets(check_chunklets(y, len(Y)), must_link)
    # Move each point to the centroid of its chunklet, so that all its points get the same seed.
    centroids = side.sum_over_nodes(Y) / np.bincount(side.node_of)[:, None]
    rng = random_source(random_state)
    return from_chunklets(side.spread(centroids), n_components, rng, side)
