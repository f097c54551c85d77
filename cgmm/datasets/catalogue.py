"""All data sets by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cgmm.datasets.dataset import Dataset
from cgmm.datasets.penalised import lu_set_1, lu_set_2, lu_set_3
from cgmm.datasets.real import breast_cancer, digits, iris, wine
from cgmm.datasets.toys import (
    overlapping_classes,
    shared_axis,
    three_classes,
    two_clusters,
    two_models,
    vertical_classes,
    waveform,
)


def load(name: str, **kwargs: Any) -> Dataset:
    """Make or read the data set of that name.

    Parameters
    ----------
    name : str
        A key of :data:`DATASETS`.
    **kwargs
        For the function of that name: ``n_per_class`` or ``n_samples``, and ``random_state``, for
        generators; nothing for the real data.

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
        vertical_classes,
        overlapping_classes,
        three_classes,
        shared_axis,
        two_models,
        lu_set_1,
        lu_set_2,
        lu_set_3,
        two_clusters,
        waveform,
        iris,
        wine,
        breast_cancer,
        digits,
    )
}
"""Every data set by name; :func:`load` looks here."""
