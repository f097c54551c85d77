"""All data sets by name.

The chapters and the experiments load their data through ``load``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cgmm.datasets import tables, toys
from cgmm.datasets.dataset import Dataset


def load(name: str, **kwargs: Any) -> Dataset:
    """Make or read a data set by its name.

    Parameters
    ----------
    name : str
        A key of :data:`~cgmm.datasets.catalogue.DATASETS`.
    **kwargs
        Arguments of the function of that name: ``n_per_class`` or ``n_samples``, and
        ``random_state``, for generators; none for real data.

    Returns
    -------
    Dataset
        Its first two fields are the points and their classes.

    Raises
    ------
    ValueError
        If there is no data set of that name.

    Examples
    --------
    >>> data = load("vertical_classes", n_per_class=50)
    >>> data
    Dataset('vertical_classes': 100 points, 2 features, 2 classes)
    >>> X, y, *_ = load("iris")
    >>> X.shape
    (150, 4)
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; known are {', '.join(sorted(DATASETS))}.")
    return DATASETS[name](**kwargs)


DATASETS: dict[str, Callable[..., Dataset]] = {
    make.__name__: make
    for make in (
        toys.vertical_classes,
        toys.overlapping_classes,
        toys.three_classes,
        toys.shared_axis,
        toys.two_models,
        toys.lu_set_1,
        toys.lu_set_2,
        toys.lu_set_3,
        toys.two_clusters,
        toys.waveform,
        tables.iris,
        tables.wine,
        tables.breast_cancer,
        tables.digits,
    )
} | {
    "lu_set_1_near": partial(toys.lu_set_1, near=True),
    "lu_set_2_near": partial(toys.lu_set_2, near=True),
}
"""Functions by the names under which :func:`~cgmm.datasets.load` offers their data sets."""
