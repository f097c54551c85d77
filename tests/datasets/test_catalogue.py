"""Test that every data set is as described, and that generators depend only on their seed."""

import inspect

import numpy as np
import pytest
from refusals import refused

from cgmm.datasets import DATASETS, load

GENERATORS = [
    n for n, make in DATASETS.items() if "random_state" in inspect.signature(make).parameters
]
PER_CLASS = [n for n in GENERATORS if "n_per_class" in inspect.signature(DATASETS[n]).parameters]


# ---------------------------------------------------------------------------- every data set


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_has_consistent_shapes_names_and_a_source(name):
    data = load(name)
    N, D = data.X.shape
    K = len(data.target_names)
    assert (data.name, data.X.dtype, data.y.dtype, data.y.shape) == (name, float, int, (N,))
    assert np.isfinite(data.X).all()
    assert np.array_equal(np.unique(data.y), np.arange(K))
    assert len(data.feature_names) == len(set(data.feature_names)) == D
    assert len(set(data.target_names)) == K
    assert data.title
    assert data.source
    assert data.licence
    assert repr(data) == f"Dataset({name!r}: {N} points, {D} features, {K} classes)"
    # A second call returns equal data that share no memory with the first.
    kept = data.X.copy()
    data.X[:] = np.nan
    assert np.array_equal(load(name).X, kept)


# ---------------------------------------------------------------------------- real data


@pytest.mark.parametrize(
    ("name", "class_sizes"),
    [
        ("iris", [50, 50, 50]),
        ("wine", [59, 71, 48]),
        ("breast_cancer", [212, 357]),
        ("digits", [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    ],
)
def test_real_data_have_the_published_class_sizes_source_and_licence(name, class_sizes):
    data = load(name)
    assert np.bincount(data.y).tolist() == class_sizes
    assert "doi:10.24432/" in data.source
    assert data.licence.startswith("CC BY 4.0")


# ---------------------------------------------------------------------------- generators


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_data_depend_only_on_the_seed(name):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is tested
    rng = np.random.RandomState(7)
    first, second, advanced = (load(name, random_state=seed) for seed in (7, rng, rng))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b) if isinstance(a, np.ndarray) else repr(a) == repr(b)
    assert not np.array_equal(first.X, advanced.X)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


test_load_refuses_invalid_arguments = refused(
    load,
    *((name, {"n_per_class": n}, f"n_per_class is {n}") for name in PER_CLASS for n in (0, 25.0)),
    ("two_models", {"n_per_class": 19}, "n_per_class is 19"),
    ("waveform", {"n_samples": 0}, "n_samples is 0"),
    *(("shared_axis", {"epsilon": e}, f"epsilon is {e}") for e in (0.0, float("nan"))),
)
