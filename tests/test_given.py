"""Test input in undocumented forms: it is accepted, or an error names a remedy that works.

The remedies in messages are extracted and executed as printed.
"""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn.preprocessing
from sklearn.base import clone

import cgmm
from cgmm import decide, diagnose, mixture
from cgmm.scenarios import Relations, flip, preferences, preferences_from_answers
from cgmm.scenarios.answers import check_answers

# ---------------------------------------------------------------------------- relations

PAIRS = [[0, 1], [2, 4]]
ODDS = [[0, 1, 1.5], [2, 4, -2.0]]
POINT_NAMES = ["a", "b", "c", "d", "e"]
NAMESPACE = {"np": np, "scipy": scipy, "cgmm": cgmm, "names": POINT_NAMES}
MATRIX = np.zeros((5, 5))
MATRIX[[0, 2, 1, 4], [1, 4, 0, 2]] = [1.5, -2.0, 1.5, -2.0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("must_link", {(0, 1), (2, 4)}, "must_link is of type set"),
        ("must_link", zip([0, 2], [1, 4], strict=True), "must_link is of type zip"),
        ("must_link", {(0, 1): 1, (2, 4): 1}, "must_link is of type dict"),
        ("must_link", scipy.sparse.csr_array(np.triu(MATRIX)), "must_link is of type csr_array"),
        ("must_link", MATRIX != 0, r"must_link has shape \(5, 5\) and type bool"),
        ("must_link", pd.DataFrame([["a", "b"], ["c", "e"]]), r"must_link\[0\] holds 'a'"),
        ("must_link", np.array(ODDS), r"shape \(2, 3\).*Three columns are for preferences"),
        ("must_link", np.transpose([*PAIRS, [1, 0]]), r"shape \(2, 3\).*Pairs in columns"),
        ("must_link", np.transpose([*PAIRS, [3, 0], [1, 3]]), r"shape \(2, 4\).*transposed"),
        ("must_link", [0, 1], r"shape \(2,\)"),
        ("preferences", scipy.sparse.csr_array(MATRIX), "preferences is of type csr_array"),
        ("preferences", {(0, 1): 1.5, (2, 4): -2.0}, "preferences is of type dict"),
        ("preferences", [("a", "b", 1.5), ("c", "e", -2.0)], r"preferences\[0\] holds 'a'"),
    ],
)
def test_remedies_for_relations_in_another_form_work(name, value, message):
    with pytest.raises(ValueError, match=message) as info:
        cgmm.SideInformation.build(5, **{name: value})
    remedy = re.search(rf"{name}=(.*?)(\.$|, where)", str(info.value))[1]
    relations = eval(remedy, {**NAMESPACE, name: value})
    cgmm.SideInformation.build(5, **{name: relations})
    table = np.asarray(relations)
    if len(table) == 2:
        assert sorted(table[:, :2].tolist()) == PAIRS
    if name == "preferences":
        assert sorted(table.tolist()) == ODDS


def test_relations_tuple_without_unpacking_is_refused():
    relations = flip(Relations(np.array([[0, 1], [2, 3]]), np.array([[1, 4]])), 0.0)
    for call in (
        lambda: preferences(relations, certainty=0.9),
        lambda: cgmm.SideInformation.build(5, must_link=relations),
        lambda: cgmm.SideInformation.build(5, preferences=relations),
    ):
        with pytest.raises(ValueError, match=r"is Relations, .*preferences\(\*relations, cert"):
            call()
    assert len(preferences(*relations, certainty=0.9)) == 3


def test_relations_of_type_object_are_accepted():
    """Tables with columns of several types become arrays of objects."""
    side = cgmm.SideInformation.build(5, must_link=np.array(PAIRS, dtype=object))
    np.testing.assert_array_equal(side.must_link, PAIRS)


# ---------------------------------------------------------------------------- missing values


def test_remedy_for_missing_values_works():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 5])
    X[[7, 9], 1] = np.nan
    must_link, model = [[0, 7], [8, 10]], cgmm.COPKMeans(2, random_state=0)
    named = r"Input X contains NaN: first in row 7, column 1, and in 2 of 40 rows"
    with pytest.raises(ValueError, match=named) as info:
        model.fit(X, must_link=must_link)
    # Execute the first remedy in the message.
    remedy = re.search(r"(keep = .*?), then (fit\(.*?\)\[keep\]\))", str(info.value))
    scope = {"np": np, "X": X, "cgmm": cgmm, "must_link": must_link, "fit": model.fit}
    exec(remedy[1], scope)
    assert len(eval(remedy[2], scope).labels_) == 38
    with pytest.raises(ValueError, match=named):
        model.predict(X)


# ---------------------------------------------------------------------------- text and dates

GAUSSIAN = cgmm.ConstrainedGaussianMixture(2, reg_covar=0.1, random_state=0)
NUMBERS = np.random.default_rng(1).normal(size=(20, 2)) + 5 * (np.arange(20) % 2)[:, None]
FRAME = pd.DataFrame(NUMBERS, columns=["u", "v"])
DAYS = pd.date_range("2020-01-01", periods=20)
GAP = FRAME.astype("Float64")
GAP.iloc[3, 1] = pd.NA
ISLANDS = FRAME.assign(island=["Torgersen", "Dream"] * 10)
# For each refused table a pattern of the message, and a pattern that finds the remedy in it.
TABLES = {
    "pd.NA": (GAP, "row 3, column 1, and in 1 of 20 rows", r"(X.notna\(\).all\(axis=1\))"),
    "pd.NA among objects": (GAP.astype(object), "row 3, column 1", r"(X.notna\(\).all\(axis=1\))"),
    "text": (ISLANDS, "'island' of X holds 'Torgersen' in row 0", r": (X.drop\(.*?\))\."),
    "category": (ISLANDS.astype({"island": "category"}), "'island' .* 'Torgersen'",
                 r": (X.drop\(.*?\))\."),
    "datetime": (FRAME.assign(day=DAYS), r"'day' of X holds Timestamp", r": (X.drop\(.*?\))\."),
    "datetime as days": (FRAME.assign(day=DAYS), "'day'", r": (\(X\['day'\].*?days)"),
    "dates alone": (pd.DataFrame({"a": DAYS, "b": DAYS}), "'a'", r": (\(X\['a'\].*?days)"),
    "durations": (FRAME.assign(day=DAYS - DAYS[0]), "Timedelta", r": (X.drop\(.*?\))\."),
    "array of dates": (np.column_stack([DAYS, DAYS]), "column 0", r": (\(X - X.*?'D'\))"),
    "array of objects": (ISLANDS.to_numpy(), "column 2 of X holds 'Torgersen'",
                         r": (np.delete.*?float\))"),
    "list": ([[1.0, "x"], [2.0, "y"], [3.0, "x"]], "column 1 of X holds 'x'",
             r": (np.delete.*?float\))"),
    "polars text": (pl.DataFrame(ISLANDS.to_dict("list")), "'Torgersen'", r": (X.drop\(.*?\))\."),
    "polars dates": (pl.DataFrame({"u": NUMBERS[:, 0], "day": DAYS.to_list()}), "datetime",
                     r": (\(X\['day'\].*?days\(\))"),
}  # fmt: skip


@pytest.mark.parametrize("model", [GAUSSIAN, cgmm.COPKMeans(2), cgmm.RCA()])
@pytest.mark.parametrize("table", TABLES)
def test_remedies_for_columns_without_numbers_work(table, model):
    X, message, pattern = TABLES[table]
    if table == "pd.NA" and model is GAUSSIAN:
        assert len(model.fit(X, must_link=PAIRS).labels_) == len(X)
        return
    with pytest.raises(ValueError, match=message) as info:
        model.fit(X, must_link=PAIRS)
    numbers = eval(re.search(pattern, str(info.value))[1], {"X": X, "np": np})
    # One remedy is a mask of complete rows.
    if "notna" in pattern:
        numbers = X[numbers]
    assert np.isfinite(np.asarray(numbers, dtype=float)).all()
    assert len(numbers) in (len(X), len(X) - 1)


def test_remedy_for_categories_in_words_works():
    X = np.array([["red", "small"], ["red", "large"], ["blue", "large"]] * 4)
    model = cgmm.ConstrainedCategoricalMixture(2, random_state=0)
    with pytest.raises(ValueError, match="column 0 of X holds 'red'") as info:
        model.fit(X)
    call = re.search(r"sklearn\S*\(X\)", str(info.value))[0]
    codes = eval(call, {"sklearn": sklearn, "X": X})
    assert len(model.fit(codes, must_link=PAIRS).labels_) == 12


def test_remedies_for_masked_entries_work():
    X, pairs = np.ma.array(NUMBERS), np.ma.array([[0, 2], [4, 6]], mask=[[0, 0], [0, 1]])
    fit = GAUSSIAN.fit
    # Masked arrays without a masked entry are accepted.
    fit(X, must_link=np.ma.array(PAIRS))
    labels, weights = np.ma.array(np.zeros(20, int)), np.ma.ones(20)
    labels[1] = weights[2] = np.ma.masked
    known = {"must_link": pairs, "labels": labels, "sample_weight": weights}
    for name, value in known.items():
        with pytest.raises(ValueError, match=f"{name} masks 1 of its entries, first") as info:
            fit(X, **{name: value})
        remedy = re.search(r": ([^:]*)\.$", str(info.value))[1]
        fit(X, **{name: eval(remedy, {"np": np, name: value})})
    X[3, 1] = np.ma.masked
    with pytest.raises(ValueError, match=r"first X\[3, 1\]") as info:
        fit(X)
    filled = eval(re.search(r"X\.astype\S*", str(info.value))[0], {"np": np, "X": X})
    assert np.argwhere(np.isnan(filled)).tolist() == [[3, 1]]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[0, 1, "same"], [2, 3, "other"]], r"answers\[0\] says 'same'"),
        (pd.DataFrame([[0, 1, "same"], [2, 3, "other"]]), r"answers\[0\] says 'same'"),
        ([[0, 1, 1], [2, 3, "same"]], r"answers\[1\] says 'same'"),
        ([["a", "b", 1], ["c", "e", 0]], r"answers\[0\] is about 'a' and 'b'"),
    ],
)
def test_remedies_for_answers_in_words_work(answers, message):
    with pytest.raises(ValueError, match=message) as info:
        check_answers(answers)
    remedy = re.search(r"(?:answers=|: )([\[c].*?(?:\]|\.pairs)), ", str(info.value))[1]
    numbers = check_answers(eval(remedy, NAMESPACE | {"answers": answers}))
    assert numbers[:, :2].tolist() == [[0, 1], [2, 3 if "says" in message else 4]]


def test_answers_of_two_numbers_are_refused():
    with pytest.raises(ValueError, match=r"answers\[1\] is \[2, 3\]; it must be three numbers"):
        check_answers([[0, 1, 1], [2, 3]])


# ---------------------------------------------------------------------------- points

PREFERENCES = [[0, 1, 1.0], [1, 2, -2.0]]
ANSWERS = [[0, 1, 1], [2, 3, 0], [4, 5, 1], [6, 7, 1]]
LINKS = [[0, 2], [1, 3]]
SIDE = cgmm.SideInformation.build(8, preferences=PREFERENCES)
THETA = cgmm.Parameters(
    np.full(2, 0.5), np.array([[0.0, 0.0], [4.0, 4.0]]), np.tile(np.eye(2), (2, 1, 1))
)
AUTO = cgmm.ENGINES["auto"]
INFER = AUTO(SIDE.graph)
FULL = mixture.POOLINGS["full"]
POSTERIOR = mixture.Posterior(np.full((8, 2), 0.5), np.full(2, 4.0), 0.0)


# Eight points that alternate between two classes.
POINTS = np.random.default_rng(0).normal(size=(8, 2)) + 4 * (np.arange(8) % 2)[:, None]
FUNCTIONS = {
    "judge": lambda X: diagnose.judge(THETA, X, preferences=PREFERENCES).support,
    "pair_probabilities": lambda X: diagnose.pair_probabilities(X, THETA, SIDE, LINKS, INFER),
    "error_rates": lambda X: decide.error_rates(X, THETA, SIDE, ANSWERS, AUTO).wrong,
    "assignment_entropy": lambda X: decide.choosing.assignment_entropy(X, THETA, SIDE, INFER),
    "held_out_scores": lambda X: decide.held_out_scores(
        X, lambda rows: THETA, ANSWERS, [0, 0, 1, 1], AUTO, error_rate=0.1
    ),
    "fit_answers": lambda X: decide.fit_answers(GAUSSIAN, X, ANSWERS, error_rate=0.1).means_,
    "AnnotatorMixture": lambda X: decide.AnnotatorMixture(GAUSSIAN).fit(X, ANSWERS).rates_,
    "AnswerSearch": lambda X: (
        decide.AnswerSearch(GAUSSIAN, {"n_components": [2]}, n_folds=2).fit(X, ANSWERS).predict(X)
    ),
    "e_step": lambda X: mixture.e_step(X, THETA, SIDE, INFER).responsibilities,
    "m_step": lambda X: mixture.m_step(X, THETA, POSTERIOR, FULL, mixture.closed_form).means,
    "em": lambda X: next(mixture.em(X, THETA, SIDE, INFER, FULL, mixture.closed_form))[1][0],
    "node_unaries": lambda X: mixture.node_unaries(X, THETA, SIDE),
    "log_density": lambda X: mixture.log_density(X, THETA),
    "log_joint": lambda X: mixture.log_joint(X, THETA),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_accept_points_as_array_list_or_table(name):
    X, function = POINTS, FUNCTIONS[name]
    with warnings.catch_warnings(action="ignore"):
        expected = function(X)
        for table in (X.tolist(), pd.DataFrame(X, index=list("abcdefgh"), columns=["u", "v"])):
            np.testing.assert_allclose(function(table), expected, rtol=1e-12, atol=1e-12)


def test_functions_do_not_change_the_given_model():
    model = clone(GAUSSIAN)
    before = str(clone(model).get_params())
    decide.fit_answers(model, POINTS, ANSWERS, error_rate=0.1)
    decide.joint(model)
    decide.AnswerSearch(model, {"n_components": [2]}, n_folds=2).fit(POINTS, ANSWERS)
    assert str(model.get_params()) == before
    assert not hasattr(model, "weights_")


# ---------------------------------------------------------------------------- code in messages


def get_message(call, *arguments, **options):
    """Return the message of the error or warning that a call raises."""
    with (
        warnings.catch_warnings(action="error"),
        pytest.raises((ValueError, UserWarning)) as raised,
    ):
        call(*arguments, **options)
    return str(raised.value)


CONNECTED_ANSWERS = [[i, i + 1, 1] for i in range(7)]
SEARCH = decide.AnswerSearch(GAUSSIAN, {"n_components": [2]})
# Refused calls, and values for the names that the code in their messages uses.
MESSAGES = {
    "certainties": (lambda: GAUSSIAN.fit(POINTS, preferences=[[0, 1, 0.91]]),
                    {"must_link": LINKS, "cannot_link": [], "certainties": [0.9]}),
    "index too large": (lambda: GAUSSIAN.fit(POINTS, must_link=[[0, 9]]),
                    {"must_link": [[0, 9]], "n_before": 10, "names": range(10)}),
    "no mixture": (lambda: decide.joint(cgmm.COPKMeans(2)), {}),
}  # fmt: skip
# A call of the package, whose arguments may contain calls without further parentheses.
CALL = re.compile(r"cgmm\.[\w.]+\((?:[^()]|\([^()]*\))*\)")


@pytest.mark.parametrize("case", MESSAGES)
def test_code_in_messages_can_be_executed(case):
    refused_call, names = MESSAGES[case]
    calls = CALL.findall(get_message(refused_call))
    assert calls
    for call in calls:
        assert eval(call, {"cgmm": cgmm, "np": np} | names) is not None


def test_invalid_answers_are_refused_with_a_remedy():
    assert "model.bic()" in get_message(SEARCH.fit, POINTS, CONNECTED_ANSWERS)
    message = get_message(preferences_from_answers, [[0, 1, -1]], 0.9)
    assert re.search(r"answers\[0\] says -1; .*answers_from_preferences", message)
