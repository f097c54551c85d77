"""Project "The photograph": a smooth prior compared with a prior that depends on contrast."""

import numpy as np
from sklearn.datasets import load_sample_image

from cgmm import ENGINES, ConstrainedGaussianMixture, SideInformation
from cgmm.mixture import log_joint
from cgmm.scenarios import grid_neighbours

blocks = load_sample_image("china.jpg")[::8, ::8] / 255.0
X, edges = blocks.reshape(-1, 3), grid_neighbours(blocks.shape[:2])
contrast = ((X[edges[:, 0]] - X[edges[:, 1]]) ** 2).sum(axis=1)


def find_block_kinds(u, w):
    """Return the most probable component of each block, found by mean field."""
    ties = SideInformation.build(len(X), preferences=np.column_stack([edges, w]))
    return ENGINES["mean_field"](ties.graph)(u).nodes.argmax(axis=1)


def share_of_lonely_blocks(z):
    """Return the share of blocks whose component differs from that of all neighbours."""
    same = z[edges[:, 0]] == z[edges[:, 1]]
    return (np.bincount(edges.ravel(), np.repeat(same, 2), len(X)) == 0).mean()


def share_of_borders_on_contrast(z):
    """Return the share of the strongest tenth of all contrasts that have a border."""
    cut = z[edges[:, 0]] != z[edges[:, 1]]
    return cut[contrast > np.quantile(contrast, 0.9)].mean()


def run(draws):
    """Return shares of lonely blocks and of borders, with a row per random start.

    The pairs of columns are: without ties, with equal ties, with ties that depend on contrast.
    """
    rows = []
    careful = np.exp(-contrast / (2 * contrast.mean()))
    for seed in draws:
        model = ConstrainedGaussianMixture(4, reg_covar=1e-3, random_state=seed).fit(X)
        u = log_joint(X, model.parameters_)
        ties = np.full(len(edges), 1e-9), np.full(len(edges), 2.0), 2 * careful / careful.mean()
        maps = [find_block_kinds(u, w) for w in ties]
        rows.append(
            [f(z) for z in maps for f in (share_of_lonely_blocks, share_of_borders_on_contrast)]
        )
    return np.array(rows)


def finding(values):
    """Check that ties remove lonely blocks and borders, but fewer borders with careful ties."""
    grain, kept = values[:, ::2], values[:, 1::2]
    assert (grain[:, 1] < 0.5 * grain[:, 0]).all()
    assert (kept[:, 1] < kept[:, 0]).all()
    assert (kept[:, 2] > kept[:, 1]).all()
