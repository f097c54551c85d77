"""Project "The photograph": what a smooth prior costs, and a prior that looks at the picture."""

import numpy as np
from sklearn.datasets import load_sample_image

from cgmm import ENGINES, ConstrainedGaussianMixture, SideInformation
from cgmm.mixture import log_joint
from cgmm.scenarios import grid_neighbours

blocks = load_sample_image("china.jpg")[::8, ::8] / 255.0
X, edges = blocks.reshape(-1, 3), grid_neighbours(blocks.shape[:2])
contrast = ((X[edges[:, 0]] - X[edges[:, 1]]) ** 2).sum(axis=1)


def segment(u, w):
    """The most probable kind of each block, by mean field."""
    ties = SideInformation.build(len(X), preferences=np.column_stack([edges, w]))
    return ENGINES["mean_field"](ties.graph)(u).nodes.argmax(axis=1)


def lonely(z):
    """Share of blocks that agree with none of their neighbours."""
    same = z[edges[:, 0]] == z[edges[:, 1]]
    return (np.bincount(edges.ravel(), np.repeat(same, 2), len(X)) == 0).mean()


def borders(z):
    """Share of the strongest tenth of all contrasts on which there is a border."""
    cut = z[edges[:, 0]] != z[edges[:, 1]]
    return cut[contrast > np.quantile(contrast, 0.9)].mean()


def run(draws):
    """A row a start: lonely blocks and borders without ties, with equal ones, with careful ones."""
    rows = []
    careful = np.exp(-contrast / (2 * contrast.mean()))
    for seed in draws:
        model = ConstrainedGaussianMixture(4, reg_covar=1e-3, random_state=seed).fit(X)
        u = log_joint(X, model.parameters_)
        maps = [segment(u, w) for w in (np.full(len(edges), 1e-9), np.full(len(edges), 2.0),
                                        2 * careful / careful.mean())]  # fmt: skip
        rows.append([f(z) for z in maps for f in (lonely, borders)])
    return np.array(rows)


def finding(values):
    """Ties remove grain and borders; ties that heed contrast keep more of the borders."""
    grain, kept = values[:, ::2], values[:, 1::2]
    assert (grain[:, 1] < 0.5 * grain[:, 0]).all()
    assert (kept[:, 1] < kept[:, 0]).all()
    assert (kept[:, 2] > kept[:, 1]).all()
