"""Test `fetch`: files that are present, damaged or missing, and downloads from OpenML."""

from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.utils import Bunch

from cgmm.datasets import fetch, tables

TABLE = "a,b,label\n1,2.5,yes\n-3,0,no\n4e2,1,yes\n"


def write_table(home, name, text):
    """Write the CSV file of a data set, and return the folder."""
    home.mkdir(exist_ok=True)
    (home / f"{name}.csv").write_text(text, encoding="utf-8")
    return home


def test_fetch_reads_a_file_that_is_present(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "fetch_openml", None)  # An attempt to download would now fail.
    data = fetch("ionosphere", write_table(tmp_path, "ionosphere", TABLE))
    assert data.X.tolist() == [[1, 2.5], [-3, 0], [400, 1]]
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    assert data.y.tolist() == [1, 0, 1]
    assert data.feature_names == ("a", "b")
    assert data.target_names == ("no", "yes")
    assert data.name == "ionosphere"
    assert "UCI" in data.source


# For each data set: its name at OpenML, three labels as spelt there, and their class numbers.
AT_OPENML = {
    "ionosphere": ("ionosphere", ["g", "b", "g"], [1, 0, 1]),
    "pima": ("diabetes", ["tested_positive", "tested_negative", "tested_positive"], [1, 0, 1]),
    "balance-scale": ("balance-scale", ["B", "R", "L"], [0, 2, 1]),
    "pendigits": ("pendigits", ["8", "10", "0"], [1, 2, 0]),
}


@pytest.mark.parametrize("name", AT_OPENML)
def test_fetch_downloads_a_table_from_openml_once_and_stores_it(name, tmp_path, monkeypatch):
    openml_name, labels, y = AT_OPENML[name]
    X = np.array([[1.0, -0.5], [0.0, 0.1], [1e-9, 4e2]])
    openml = Mock(return_value=Bunch(data=X, target=np.array(labels), feature_names=["a", "b"]))
    monkeypatch.setattr(tables, "fetch_openml", openml)
    home = tmp_path / "new" / "home"
    for data in (fetch(name, home), fetch(name, str(home))):
        assert data.X.tolist() == X.tolist()
        assert data.y.tolist() == y
        assert data.feature_names == ("a", "b")
    assert openml.call_args.args == (openml_name,)
    assert openml.call_args.kwargs["version"] == openml.call_count == 1
    assert [path.name for path in home.iterdir()] == [f"{name}.csv"]


@pytest.mark.parametrize("error", [OSError("no network"), ValueError("it was withdrawn")])
def test_fetch_explains_where_to_put_the_file_if_openml_fails(error, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "fetch_openml", Mock(side_effect=error))
    message = rf"(?s)could not be downloaded \({error}\).*Put the file there.*UCI"
    with pytest.raises(OSError, match=message):
        fetch("ionosphere", tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_fetch_explains_that_faces_are_not_at_openml(tmp_path):
    message = r"(?s)faces is not at .*faces\.csv.*OpenML does not have it.*Put .*Yale.*label"
    with pytest.raises(OSError, match=message):
        fetch("faces", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a header row"),
        ("label\n1\n", "must have a header row"),
        ("a,b,label\n1,2,x\n1,x\n", "line 3: 2 entries under a header of 3"),
        ("a,b,label\n1,?,x\n", r"line 2: could not convert string to float: '\?'"),
        ("a,b,label\n1,nan,x\n", "line 2: a missing or infinite value"),
    ],
)
def test_fetch_refuses_damaged_files_by_line_and_reason(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        fetch("pima", write_table(tmp_path, "pima", text))


def test_fetch_refuses_unknown_names():
    with pytest.raises(ValueError, match="no data set 'iris' to fetch; known are balance-scale"):
        fetch("iris")
