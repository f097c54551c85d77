"""Test fetched tables: valid and damaged files, and answers or failures of OpenML."""

from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.utils import Bunch

from cgmm.datasets import fetch, tables

TABLE = "a,b,label\n1,2.5,yes\n-3,0,no\n4e2,1,yes\n"


def put(home, name, text):
    home.mkdir(exist_ok=True)
    (home / f"{name}.csv").write_text(text, encoding="utf-8")
    return home


def test_fetch_reads_the_file_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "fetch_openml", None)  # not asked for
    data = fetch("ionosphere", put(tmp_path, "ionosphere", TABLE))
    assert data.X.tolist() == [[1, 2.5], [-3, 0], [400, 1]]
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    assert data.y.tolist() == [1, 0, 1]
    assert data.feature_names == ("a", "b")
    assert data.target_names == ("no", "yes")
    assert data.name == "ionosphere"
    assert "UCI" in data.source


# As OpenML spells them: the name there, and the labels of three points.
AT_OPENML = {
    "ionosphere": ("ionosphere", ["g", "b", "g"], [1, 0, 1]),
    "pima": ("diabetes", ["tested_positive", "tested_negative", "tested_positive"], [1, 0, 1]),
    "balance-scale": ("balance-scale", ["B", "R", "L"], [0, 2, 1]),
    "pendigits": ("pendigits", ["8", "10", "0"], [1, 2, 0]),
}


@pytest.mark.parametrize("name", AT_OPENML)
def test_fetch_stores_the_table_of_openml(name, tmp_path, monkeypatch):
    there, labels, y = AT_OPENML[name]
    X = np.array([[1.0, -0.5], [0.0, 0.1], [1e-9, 4e2]])
    answer = Bunch(data=X, target=np.array(labels), feature_names=["a", "b"])
    openml = Mock(return_value=answer)
    monkeypatch.setattr(tables, "fetch_openml", openml)
    home = tmp_path / "new" / "home"
    for data in (fetch(name, home), fetch(name, str(home))):
        assert data.X.tolist() == X.tolist()
        assert data.y.tolist() == y
        assert data.feature_names == ("a", "b")
    assert openml.call_args.args == (there,)
    assert openml.call_args.kwargs["version"] == openml.call_count == 1
    assert [path.name for path in home.iterdir()] == [f"{name}.csv"]


@pytest.mark.parametrize("error", [OSError("no network"), ValueError("it was withdrawn")])
def test_fetch_says_where_to_put_the_file_if_openml_fails(error, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "fetch_openml", Mock(side_effect=error))
    message = rf"(?s)could not be downloaded \({error}\).*Put the file there.*UCI"
    with pytest.raises(OSError, match=message):
        fetch("ionosphere", tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_faces_are_not_at_openml(tmp_path):
    where = r"(?s)faces is not at .*faces\.csv.*OpenML does not have it.*Put .*Yale.*label"
    with pytest.raises(OSError, match=where):
        fetch("faces", tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must have a header row"),
        ("label\n1\n", "must have a header row"),
        ("a,b,label\n1,2,x\n1,x\n", "line 3: 2 entries under a header of 3"),
        ("a,b,label\n1,?,x\n", r"line 2: could not convert string to float: '\?'"),
        ("a,b,label\n1,nan,x\n", "line 2: a missing or infinite value"),
    ],
)
def test_fetch_names_what_is_wrong_with_a_file(tmp_path, text, complaint):
    with pytest.raises(ValueError, match=complaint):
        fetch("pima", put(tmp_path, "pima", text))


def test_fetch_knows_its_names():
    with pytest.raises(ValueError, match="no data set 'iris' to fetch; known are balance-scale"):
        fetch("iris")
