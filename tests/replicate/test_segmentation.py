"""The experiments of lu2007 on images: scenes as described, blocks, components."""

from __future__ import annotations

import numpy as np
import pytest
from toy_experiments import by_method

from cgmm.replicate.segmentation import (
    TERRAINS,
    figure_12,
    snow_scene,
    snow_segmenters,
    textured_blocks,
    textured_image,
)


def test_textured_blocks_are_those_of_the_image():
    image, y = textured_image(6, np.random.default_rng(3))
    X, also_y = textured_blocks(6, np.random.default_rng(3))
    assert image.shape == (42, 42)
    np.testing.assert_array_equal(y, also_y)
    # principal components keep no more than the distances of the blocks' pixels
    block = [
        image[7 * i : 7 * i + 7, 7 * j : 7 * j + 7].ravel() for i in range(6) for j in range(6)
    ]
    scores = np.linalg.svd(block - np.mean(block, axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(X), np.abs(scores[0] * scores[1])[:, :5], atol=1e-9)


def test_a_scene_of_snow_is_as_the_paper_describes_it():
    scene = snow_scene(np.random.default_rng(0))
    assert (scene.image.shape, scene.terrain.shape) == ((120, 400, 7), (24, 80))
    assert scene.X.shape == (1920, 50)
    np.testing.assert_array_equal(scene.snow, scene.terrain < 3)
    # of each block without snow, six partners with snow are at hand in either half
    assert 0.05 < np.mean(~scene.snow) < 1 / 7
    at_pixels = np.kron(scene.terrain, np.ones((5, 5), dtype=int))
    for k, (spectrum, *_) in enumerate(TERRAINS.values()):
        # the light, which varies by about a sixth, is common to all channels
        mean = scene.image[at_pixels == k].mean(axis=0)
        light = mean @ spectrum / np.square(spectrum).sum()
        assert light == pytest.approx(1, abs=0.2)
        np.testing.assert_allclose(mean, light * np.array(spectrum), atol=0.01)


def test_a_segmentation_has_the_component_without_snow_first():
    scene = snow_scene(np.random.default_rng(5))
    segment = snow_segmenters(scene, 3, np.random.default_rng(0))["hard PPC, told start"]
    z = segment()
    assert (z.shape, set(np.unique(z))) == ((24, 80), {0, 1, 2})
    assert np.mean((z == 0) == ~scene.snow) > 0.98


@pytest.mark.slow  # the one above has the same scene
def test_soft_links_between_neighbours_help_to_segment():
    found = by_method(figure_12(None, 24, np.random.default_rng(0)))
    accuracy = {name: values["accuracy"] for name, values in found.items()}
    assert accuracy.keys() == {"GMM", "soft PPC, mean field", "soft PPC, Gibbs"}
    assert 0.25 < accuracy["GMM"] <= max(accuracy.values()) <= 1
