"""Fetched tables: files good and bad, and what OpenML answers, or does not."""

from __future__ import annotations

import hashlib
import io
import json
from unittest.mock import Mock
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
from sklearn.datasets import _openml

from cgmm.datasets import DATASETS, FETCHED, fetch, fetched

TABLE = "a,b,label\n1,2.5,yes\n-3,0,no\n4e2,1,yes\n"


def put(home, name, text):
    home.mkdir(exist_ok=True)
    (home / f"{name}.csv").write_text(text, encoding="utf-8")
    return home


def test_fetch_reads_the_file_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(fetched, "fetch_openml", None)  # not asked for
    data = fetch("ionosphere", put(tmp_path, "ionosphere", TABLE))
    assert data.X.tolist() == [[1, 2.5], [-3, 0], [400, 1]]
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    assert data.y.tolist() == [1, 0, 1]
    assert data.feature_names == ("a", "b")
    assert data.target_names == ("no", "yes")
    assert data.name == "ionosphere"
    assert "UCI" in data.source


def test_fetch_orders_classes_that_are_numbers_as_numbers(tmp_path):
    data = fetch("faces", put(tmp_path, "faces", "x,label\n0,10\n1,9\n2,1\n"))
    assert data.target_names == ("1", "9", "10")
    assert data.y.tolist() == [2, 1, 0]


# As OpenML spells them: name and number there, the class column with its values, and rows of which
# the last entry is the class. In files from UCI the classes of "pima" are 1 and 0.
AT_OPENML = {
    "ionosphere": ("ionosphere", 59, "{b,g}", ["1,-0.5,g", "0,0.25,b", "1,1,g"], [1, 0, 1]),
    "pima": (
        "diabetes",
        37,
        "{tested_negative,tested_positive}",
        ["6,33.6,tested_positive", "1,26.6,tested_negative", "8,23.3,tested_positive"],
        [1, 0, 1],
    ),
    "balance-scale": ("balance-scale", 11, "{L,B,R}", ["1,1,B", "1,2,R", "2,1,L"], [0, 2, 1]),
    "pendigits": ("pendigits", 32, "{0,1,2,3,8}", ["47,100,8", "0,89,2", "0,57,0"], [2, 1, 0]),
}


class OpenML:
    """What www.openml.org answers about one table, down to its ARFF file."""

    def __init__(self, name, number, classes, rows):
        columns = ["@attribute a numeric", "@attribute b numeric", f"@attribute class {classes}"]
        self.arff = "\n".join([f"@relation {name}", *columns, "@data", *rows]).encode()
        self.file = f"https://www.openml.org/data/v1/download/{number}/{name}.arff"
        feature = {"is_ignore": "false", "is_row_identifier": "false"}
        feature |= {"number_of_missing_values": "0"}
        features = [
            feature | {"index": str(i), "name": column, "data_type": kind, "is_target": target}
            for i, (column, kind, target) in enumerate(
                [("a", "numeric", "false"), ("b", "numeric", "false"), ("class", "nominal", "true")]
            )
        ]
        description = {"name": name, "version": "1", "status": "active", "format": "ARFF"}
        description |= {"description": "", "url": self.file}
        description["md5_checksum"] = hashlib.md5(self.arff).hexdigest()
        qualities = [{"name": "NumberOfInstances", "value": str(len(rows))}]
        found = {"did": str(number), "name": name, "version": 1}
        listed = f"data/list/data_name/{name}/limit/2/data_version/1"
        self.answers = {
            listed: {"data": {"dataset": [found]}},
            f"{listed}/status/active/": {"data": {"dataset": [found]}},
            f"data/{number}": {"data_set_description": description},
            f"data/features/{number}": {"data_features": {"feature": features}},
            f"data/qualities/{number}": {"data_qualities": {"quality": qualities}},
        }

    def urlopen(self, request, *args, **options):
        url = request.full_url
        if url == self.file:
            return Reply(self.arff)
        path = url.partition("openml.org/api/v1/json/")[2]
        if path not in self.answers:
            raise HTTPError(url, 412, "no such thing", {}, Reply(b"{}"))
        return Reply(json.dumps(self.answers[path]).encode())


class Reply(io.BytesIO):
    def info(self):
        return {}


@pytest.mark.parametrize("name", AT_OPENML)
def test_fetch_understands_what_openml_answers_and_asks_once(name, tmp_path, monkeypatch):
    # scikit-learn's own code runs: names, versions, targets, parser, checksum.
    there, number, classes, rows, y = AT_OPENML[name]
    monkeypatch.setattr(_openml, "urlopen", OpenML(there, number, classes, rows).urlopen)
    home = tmp_path / "new" / "home"
    first = fetch(name, home)
    monkeypatch.setattr(fetched, "fetch_openml", None)
    for data in (first, fetch(name, str(home))):
        assert data.X.tolist() == [[float(x) for x in row.split(",")[:-1]] for row in rows]
        assert data.y.tolist() == y
        assert data.feature_names == ("a", "b")
        # In the order of their names, whatever the order at OpenML, and none that no point has.
        assert data.target_names == tuple(sorted({row.split(",")[-1] for row in rows}))
    assert [path.name for path in home.iterdir()] == [f"{name}.csv"]


@pytest.mark.filterwarnings("ignore")  # scikit-learn says that it tries again
@pytest.mark.parametrize("spoil", ["withdrawn", "damaged", "no network"])
def test_fetch_says_where_to_put_the_file_if_openml_fails(spoil, tmp_path, monkeypatch):
    there, number, classes, rows, _ = AT_OPENML["ionosphere"]
    openml, told = OpenML(there, number, classes, rows), "could not be downloaded"
    if spoil == "withdrawn":
        openml.answers.clear()
    elif spoil == "damaged":
        openml.arff = openml.arff.replace(b"0.25", b"0.52")
    else:
        # What scikit-learn meets where no name resolves.
        told = "Name or service not known"
        monkeypatch.setattr(openml, "urlopen", Mock(side_effect=URLError(told)))
    monkeypatch.setattr(_openml, "urlopen", openml.urlopen)
    monkeypatch.setattr(_openml.time, "sleep", lambda seconds: None)
    with pytest.raises(OSError, match=rf"(?s){told}.*Put the file there.*UCI"):
        fetch("ionosphere", tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_faces_are_not_at_openml(tmp_path):
    where = r"(?s)faces is not at .*faces\.csv.*not to be had from OpenML.*Put .*Yale.*label"
    with pytest.raises(OSError, match=where):
        fetch("faces", tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must have a header row"),
        ("a,label\n", "must have a header row"),
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
    assert not FETCHED.keys() & DATASETS.keys()
