"""What is no table of relations is called what it is, and the call that is named works."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import cgmm.network
import cgmm.scenarios
from cgmm import ConstrainedGaussianMixture, SideInformation
from cgmm.given import explain_missing
from cgmm.scenarios import Relations, flip, preferences

PAIRS = [[0, 1], [2, 4]]
ODDS = [[0, 1, 1.5], [2, 4, -2.0]]
NAMES = ["a", "b", "c", "d", "e"]
SCOPE = {"np": np, "scipy": scipy, "cgmm": cgmm, "names": NAMES}
MATRIX = np.zeros((5, 5))
MATRIX[[0, 2, 1, 4], [1, 4, 0, 2]] = [1.5, -2.0, 1.5, -2.0]


def refused(name, value, named):
    """What the remedy makes of it, for the error must name one that works."""
    with pytest.raises(ValueError, match=named) as info:
        SideInformation.build(5, **{name: value})
    remedy = re.search(rf"{name}=(.*?)(\.$|, where)", str(info.value))[1]
    table = eval(remedy, {**SCOPE, name: value})
    SideInformation.build(5, **{name: table})
    return np.asarray(table)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({(0, 1), (2, 4)}, "must_link is of type set"),
        (zip([0, 2], [1, 4], strict=True), "must_link is of type zip"),
        (map(list, PAIRS), "must_link is of type map"),
        ((pair for pair in PAIRS), "must_link is of type generator"),
        ({(0, 1): 1, (2, 4): 1}, "must_link is of type dict"),
        (scipy.sparse.triu(MATRIX), "must_link is of type coo_"),
        (scipy.sparse.csr_array(np.triu(MATRIX)), "must_link is of type csr_array"),
        (MATRIX != 0, r"must_link has shape \(5, 5\) and type bool"),
        ([["a", "b"], ["c", "e"]], r"must_link\[0\] holds 'a'"),
        (pd.DataFrame([["a", "b"], ["c", "e"]]), r"must_link\[0\] holds 'a'"),
        (np.array(ODDS), r"must_link has shape \(2, 3\).*Three columns are for preferences"),
        (np.transpose([*PAIRS, [1, 0]]), r"must_link has shape \(2, 3\).*Pairs in columns"),
    ],
)
def test_must_links(value, named):
    table = refused("must_link", value, named)
    if np.shape(value) != (2, 3):
        assert sorted(table.tolist()) == PAIRS


def test_pairs_in_columns():
    columns = np.transpose([*PAIRS, [3, 0], [1, 3]])
    table = refused("must_link", columns, r"shape \(2, 4\).*turned")
    assert table.tolist() == columns.T.tolist()
    assert refused("must_link", [0, 1], r"shape \(2,\)").tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (scipy.sparse.csr_array(MATRIX), "preferences is of type csr_array"),
        ({(0, 1): 1.5, (2, 4): -2.0}, "preferences is of type dict"),
        (zip([0, 2], [1, 4], [1.5, -2.0], strict=True), "preferences is of type zip"),
        ([("a", "b", 1.5), ("c", "e", -2.0)], r"preferences\[0\] holds 'a'"),
    ],
)
def test_preferences(value, named):
    assert sorted(refused("preferences", value, named).tolist()) == ODDS


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("must_link", [[0, 1], [2]], r"must_link\[1\] is \[2\]; it must be \(P, 2\)"),
        ("preferences", [[0, 1, 1.0], [2, 3]], r"preferences\[1\] is \[2, 3\]"),
        ("cannot_link", [[0, None]], r"cannot_link\[0\] holds None"),
        ("preferences", PAIRS, r"shape \(2, 2\).*certainty=0.9"),
        ("preferences", [[0, 1, "x"]], r"preferences\[0\] holds 'x'"),
        ("labels", [0, None, 0, 0, 0], r"labels .*None in row 1.*number_classes\(labels\)\[1\]"),
        ("labels", ["a"] * 5, r"labels .*'a' in row 0.*number_classes\(labels\)\[1\]"),
    ],
)
def test_what_has_no_cure_is_named(name, value, named):
    with pytest.raises(ValueError, match=named):
        SideInformation.build(5, **{name: value})


def test_relations_without_the_star():
    relations = flip(Relations(np.array([[0, 1], [2, 3]]), np.array([[1, 4]])), 0.0)
    for call in (
        lambda: preferences(relations, certainty=0.9),
        lambda: SideInformation.build(5, must_link=relations),
        lambda: SideInformation.build(5, preferences=relations),
    ):
        with pytest.raises(ValueError, match=r"is Relations, .*preferences\(\*relations, cert"):
            call()
    assert len(preferences(*relations, certainty=0.9)) == 3


def test_numbers_as_objects_are_numbers():
    """As the columns of a table of several types are."""
    side = SideInformation.build(5, must_link=np.array(PAIRS, dtype=object))
    np.testing.assert_array_equal(side.must_link, PAIRS)


# ---------------------------------------------------------------------------- missing values


def test_missing_values_are_named_with_a_cure_that_works():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 5])
    X[[7, 9], 1] = np.nan
    must_link, model = [[0, 7], [8, 10]], ConstrainedGaussianMixture(2, random_state=0)
    named = r"Input X contains NaN: first in row 7, column 1, and in 2 of 40 rows"
    with pytest.raises(ValueError, match=named) as info:
        model.fit(X, must_link=must_link)
    # The first cure, word for word.
    cure = re.search(r"(keep = .*?), then (fit\(.*?\)\[keep\]\))", str(info.value))
    scope = {"np": np, "X": X, "cgmm": cgmm, "must_link": must_link, "fit": model.fit}
    exec(cure[1], scope)
    assert len(eval(cure[2], scope).labels_) == 38
    with pytest.raises(ValueError, match=named):
        model.predict(X)
    with pytest.raises(ValueError, match=named):
        model.predict(X, must_link=must_link)


def test_other_errors_pass():
    with pytest.raises(ValueError, match=r"^something else$"), explain_missing(None):
        raise ValueError("something else")
