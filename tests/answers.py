"""Make side information for tests of fits: true relations, and relations of copied points."""

import numpy as np


def draw_clouds(n_samples, n_dims, n_classes, spread=1.0):
    """Draw points of classes 0, 1, ..., 0, 1, ...; return them and their classes."""
    rng = np.random.default_rng(0)
    z = np.arange(n_samples) % n_classes
    centres = spread * rng.normal(size=(n_classes, n_dims))
    return rng.normal(size=(n_samples, n_dims)) + centres[z], z


def true_relations(rng, z, n_pairs):
    """Return true must-links and cannot-links of random pairs, some of which share points."""
    pairs = rng.integers(len(z), size=(n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = z[pairs[:, 0]] == z[pairs[:, 1]]
    return {"must_link": pairs[same], "cannot_link": pairs[~same]}


def repeat_answers(known, times):
    """Return side information in which point i is replaced by ``times[i]`` must-linked copies."""
    first, pairs = np.cumsum(times) - times, {}
    for name in known.keys() - {"labels"}:
        pairs[name] = known[name].copy()
        pairs[name][:, :2] = first[known[name][:, :2].astype(int)]
    # Only points with a relation need links between their copies.
    related = {int(i) for name in pairs for i in np.ravel(known[name][:, :2])}
    links = [[first[i], first[i] + c] for i in related for c in range(1, times[i])]
    pairs["must_link"] = [*pairs.get("must_link", []), *links]
    return pairs | {name: np.repeat(known[name], times) for name in known.keys() & {"labels"}}
