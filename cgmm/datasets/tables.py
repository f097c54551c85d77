"""Real tables: those that scikit-learn contains, and others that are downloaded once and stored.

Chapters throughout the book use the former; chapter 13 repeats experiments of the papers on the
latter. Each table names its record in the UCI Machine Learning Repository, which gives the authors,
the measurements and the licence. A downloaded table is a CSV file, which users may also provide
themselves: a header row, then one row per point with the features first and the label last.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import fetch_openml, load_breast_cancer, load_digits, load_iris, load_wine

from cgmm.datasets.dataset import UCI, Dataset
from cgmm.numerics import IntArray

# ------------------------------------------------------------ tables of scikit-learn


def iris() -> Dataset:
    """Return Fisher's irises: 150 flowers of three species, four lengths in cm.

    Returns
    -------
    Dataset
        50 flowers per species. The values are those of Fisher's paper; UCI's copy differs in two.

    Examples
    --------
    >>> iris()
    Dataset('iris': 150 points, 4 features, 3 classes)
    """
    return _build_dataset(
        load_iris(),
        "iris",
        "Irises",
        "R. A. Fisher (1936), The use of multiple measurements in taxonomic problems",
        "C56C76",
    )


def wine() -> Dataset:
    """Return analyses of 178 wines of three cultivars, 13 features of very different scales.

    Returns
    -------
    Dataset
        59, 71 and 48 wines of the three cultivars.

    Examples
    --------
    >>> wine()
    Dataset('wine': 178 points, 13 features, 3 classes)
    """
    return _build_dataset(
        load_wine(), "wine", "Wines", "S. Aeberhard and M. Forina (1992), Wine", "C5PC7J"
    )


def breast_cancer() -> Dataset:
    """Return 30 features of cell nuclei in 569 breast samples, malignant (0) or benign (1).

    Returns
    -------
    Dataset
        212 malignant and 357 benign samples.

    Examples
    --------
    >>> breast_cancer()
    Dataset('breast_cancer': 569 points, 30 features, 2 classes)
    """
    return _build_dataset(
        load_breast_cancer(),
        "breast_cancer",
        "Breast cancer, Wisconsin (diagnostic)",
        "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), "
        "Breast Cancer Wisconsin (Diagnostic)",
        "C5DW2B",
    )


def digits() -> Dataset:
    """Return handwritten digits: 1797 images of 8 x 8 pixels, grey levels 0 to 16.

    Returns
    -------
    Dataset
        The test part of the original collection. Some border pixels are blank in every image, so a
        full covariance of the 64 features is singular.

    Examples
    --------
    >>> digits()
    Dataset('digits': 1797 points, 64 features, 10 classes)
    """
    return _build_dataset(
        load_digits(),
        "digits",
        "Handwritten digits",
        "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits",
        "C50P49",
    )


def _build_dataset(bunch: Any, name: str, title: str, source: str, record: str) -> Dataset:
    """Build a Dataset from the result of one of scikit-learn's loaders."""
    return Dataset(
        X=bunch.data.astype(np.float64),
        y=bunch.target.astype(np.int64),
        name=name,
        title=title,
        source=f"{source}; {UCI}{record}; the copy of scikit-learn",
        # The copies in scikit-learn do not state a licence, but UCI states one for each.
        licence="CC BY 4.0, as the UCI Machine Learning Repository lists it",
        feature_names=tuple(map(str, bunch.feature_names)),
        target_names=tuple(map(str, bunch.target_names)),
    )


# ------------------------------------------------------------ tables to be downloaded


class Remote(NamedTuple):
    """Description of a data set that the package does not contain, and its source."""

    title: str
    source: str
    openml: str | None
    """Name at OpenML, of which version 1 is taken; None if OpenML does not have it."""


FETCHED: dict[str, Remote] = {
    "ionosphere": Remote("Radar echoes of the ionosphere", f"{UCI}C5W01B", "ionosphere"),
    "pima": Remote(
        "Diabetes among the Pima",
        "J. W. Smith et al. (1988), Using the ADAP learning algorithm to forecast the onset of "
        "diabetes mellitus",
        "diabetes",
    ),
    "balance-scale": Remote("Balance scale", f"{UCI}C5488X", "balance-scale"),
    "pendigits": Remote("Digits written with a pen", f"{UCI}C5MG6K", "pendigits"),
    "faces": Remote(
        "Faces under 64 lights",
        "Extended Yale Face Database B (A. Georghiades, P. Belhumeur and D. Kriegman, 2001), the "
        "frontal images of ten subjects under 64 lights; the features are the first 60 principal "
        "components of these 640 images, the label is the subject",
        None,
    ),
}
"""Data sets that :func:`~cgmm.datasets.fetch` can read, by name."""


def fetch(name: str, data_home: str | os.PathLike[str] = "data") -> Dataset:
    """Read a data set from a local file; if there is none, download it from OpenML first.

    Parameters
    ----------
    name : str
        A key of :data:`~cgmm.datasets.tables.FETCHED`.
    data_home : path, default="data"
        The folder of ``<name>.csv``, which has a header row, then one row per point with the
        features first and the label last. The folder is created if it does not exist.

    Returns
    -------
    Dataset
        Classes are numbered in the order of their labels, which is numerical if all are numbers.

    Raises
    ------
    ValueError
        If there is no data set of that name, or the file is not such a table.
    OSError
        If there is no file and the download fails; the message says where to put the file.

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> _ = (home / "pima.csv").write_text("age,class\\n50,1\\n31,0\\n")
    >>> data = fetch("pima", home)
    >>> data.X.tolist(), data.y.tolist()
    ([[50.0], [31.0]], [1, 0])
    """
    if name not in FETCHED:
        known = ", ".join(sorted(FETCHED))
        raise ValueError(f"there is no data set {name!r} to fetch; known are {known}.")
    path = Path(data_home) / f"{name}.csv"
    if not path.exists():
        _download(name, path)
    return _read_table(name, path)


def _download(name: str, path: Path) -> None:
    """Download OpenML's table into the file, or leave no file if that fails."""
    remote = FETCHED[name]
    try:
        if remote.openml is None:
            raise OSError("OpenML does not have it")
        bunch = fetch_openml(
            remote.openml, version=1, as_frame=False, parser="liac-arff", cache=False
        )
    # scikit-learn raises ValueError if OpenML rejects the request or delivers damaged data.
    except (OSError, ValueError) as error:
        raise OSError(
            f"{name} is not at {path}, and could not be downloaded ({error}). Put the file there "
            "yourself: a header row, then one row per point, features first and the label last. "
            f"The source: {remote.source}."
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*bunch.feature_names, "label"])
        rows.writerows([*x, label] for x, label in zip(bunch.data, bunch.target, strict=True))
    os.replace(partial, path)


def _read_table(name: str, path: Path) -> Dataset:
    """Read a Dataset from a file with features first and the label last."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if len(header) < 2 or not rows:
        raise ValueError(f"{path} must have a header row, and rows of features and a label.")
    X = np.array([_parse_features(row, header, path, i) for i, row in enumerate(rows, start=2)])
    classes, y = _number_classes([row[-1] for row in rows])
    title, source, _ = FETCHED[name]
    licence = "as its source states it; this package does not contain the data"
    return Dataset(X, y, name, title, source, licence, tuple(header[:-1]), classes)


def _parse_features(row: list[str], header: list[str], path: Path, line: int) -> list[float]:
    """Return the features of one row, or raise an error that names its line."""
    try:
        if len(row) != len(header):
            raise ValueError(f"{len(row)} entries under a header of {len(header)}")
        features = [float(entry) for entry in row[:-1]]
        if not np.isfinite(features).all():
            raise ValueError("a missing or infinite value")
    except ValueError as error:
        raise ValueError(
            f"{path}, line {line}: {error}; features must be finite numbers."
        ) from None
    return features


def _number_classes(labels: list[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the classes, and the number of each point's class."""
    try:
        names = sorted(set(labels), key=float)
    except ValueError:
        names = sorted(set(labels))
    number = {name: k for k, name in enumerate(names)}
    return tuple(names), np.array([number[label] for label in labels], dtype=np.int64)
