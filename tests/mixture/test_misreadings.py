"""Test the warnings about arguments whose meaning is easily mistaken.

These are relations in cross-validation, tables with an index, certainties given as log-odds, and
labels given as ``y`` where it is ignored.
"""

import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cgmm.network
import cgmm.scenarios
from cgmm import ConstrainedGaussianMixture, SemiSupervisedGaussianClassifier
from cgmm.network import PairsAmong, positions
from cgmm.scenarios import preferences, random_pairs, weight_from_certainty

N = 60
y = np.random.default_rng(0).permutation(np.repeat([0, 1], N // 2))
X = np.random.default_rng(1).normal(size=(N, 2)) + 6 * y[:, None]
MUST, CANNOT = random_pairs(y, 20, random_state=0)
MIXTURE = ConstrainedGaussianMixture(2, random_state=0)


@pytest.fixture(autouse=True)
def _no_other_warning():
    """Turn any UserWarning that a test does not expect into an error."""
    with warnings.catch_warnings(action="error", category=UserWarning):
        yield


# ---------------------------------------------------------------------------- cross-validation

SPLITS = KFold(3, shuffle=True, random_state=0)
PROCEDURES = {
    "search": lambda model, **known: GridSearchCV(model, {}, cv=SPLITS).fit(X, **known),
    "score": lambda model, **known: cross_val_score(model, X, cv=SPLITS, params=known),
    "predict": lambda model, **known: cross_val_predict(model, X, cv=SPLITS, params=known),
    "curve": lambda model, **known: learning_curve(
        model, X, None, cv=SPLITS, train_sizes=[0.5, 1.0], params=known, error_score="raise"
    ),
}


class RecordingMixture(ConstrainedGaussianMixture):
    """Estimator that records if its must-links connect points of one class."""

    is_within_class: list = []

    def fit(self, X, y=None, *, must_link=None):
        first, second = X[np.asarray(must_link)].transpose(1, 0, 2)
        # The classes are six standard deviations apart in every column.
        RecordingMixture.is_within_class += [*(abs(first[:, 0] - second[:, 0]) < 3)]
        return super().fit(X, must_link=must_link)


@pytest.mark.each_value
@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("n_pairs", [len(MUST), N * 2 // 3, N])
def test_cross_validation_needs_pairs_among_instead_of_plain_pairs(procedure, n_pairs):
    """scikit-learn selects rows of the pairs if there are as many as points, else it keeps all."""
    pairs = np.resize(MUST, (n_pairs, 2))
    refusal = pytest.raises(ValueError, match=r"cross-validation fits to some.*PairsAmong")
    with warnings.catch_warnings(action="ignore"), refusal:
        PROCEDURES[procedure](MIXTURE, must_link=pairs)
    RecordingMixture.is_within_class = []
    PROCEDURES[procedure](RecordingMixture(2), must_link=PairsAmong(pairs, N))
    assert len(RecordingMixture.is_within_class) > 5
    assert np.mean(RecordingMixture.is_within_class) > 0.95


@pytest.mark.parametrize(
    "metric", [cgmm.RCA(), cgmm.OnlineRCA(random_state=0), cgmm.MMC(max_iter=3)]
)
def test_pipelines_of_metric_learners_need_pairs_among_in_cross_validation(metric):
    pipeline = make_pipeline(metric, SemiSupervisedGaussianClassifier())
    known = {"must_link": MUST} | ({"cannot_link": CANNOT} if isinstance(metric, cgmm.MMC) else {})
    plain, among = (
        {f"{type(metric).__name__.lower()}__{key}": convert(pairs) for key, pairs in known.items()}
        for convert in (np.array, lambda pairs: PairsAmong(pairs, N))
    )
    with warnings.catch_warnings(action="ignore"):
        with pytest.raises(ValueError, match=r"cross-validation"):
            cross_val_score(pipeline, X, y, cv=SPLITS, params=plain)
        assert (cross_val_score(pipeline, X, y, cv=SPLITS, params=among) > 0.9).all()


def test_cross_validation_with_metadata_routing_needs_pairs_among():
    plain, among = {"must_link": MUST}, {"must_link": PairsAmong(MUST, N)}
    unrouted = cross_val_score(MIXTURE, X, cv=SPLITS, params=among)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(MIXTURE).set_fit_request(must_link=True)
        np.testing.assert_array_equal(cross_val_score(model, X, cv=SPLITS, params=among), unrouted)
        with pytest.raises(ValueError, match="cross-validation"):
            cross_val_score(model, X, cv=SPLITS, params=plain)


@pytest.mark.parametrize("is_mask", [False, True])
def test_plain_pairs_with_selected_rows_give_a_warning(is_mask):
    """In a fold, row numbers of the whole table refer to other points, often without an error."""
    first_pairs, model = MUST[MUST.max(axis=1) < 30], cgmm.COPKMeans(2, random_state=0)
    for split in KFold(3, shuffle=True, random_state=0).split(X):
        rows = np.isin(np.arange(N), split[0]) if is_mask else split[0]
        message = r"the points are X\[rows\], and must_link is"
        with pytest.warns(UserWarning, match=message) as caught:
            model.fit(X[rows], must_link=first_pairs)
        assert [warning.filename for warning in caught] == [__file__]
        # The two calls in the message give no warning, and differ in meaning.
        of_table, of_fold = (
            eval(text, {"cgmm": cgmm, "must_link": first_pairs, "X": X, "rows": rows})
            for text in re.findall(r"must_link=(cgmm\S+ [^ ]+?)\. ", str(caught[0].message) + " ")
        )
        for relations in (of_table, of_fold):
            model.fit(X[rows], must_link=relations)
        kept = first_pairs[np.isin(first_pairs, split[0]).all(axis=1)]
        np.testing.assert_array_equal(np.arange(N)[rows][of_table.pairs], kept)
        np.testing.assert_array_equal(of_fold.pairs, first_pairs)


def test_arrays_that_do_not_select_rows_give_no_warning():
    """Index arrays and labels among the local variables of the caller give no warning."""
    order, part, labels = np.arange(N)[::-1], X[::2].copy(), y.copy()
    MIXTURE.fit(X[order][::-1], must_link=MUST)
    MIXTURE.fit(part, must_link=[[0, 29]])
    MIXTURE.predict(X[order[:5]], must_link=[[0, 1]])
    assert len(labels) == len(order)


def test_cross_validation_runs_in_the_module_that_the_package_looks_for():
    """The package recognises cross-validation by this module, as CONTRIBUTING.md explains."""
    modules = []

    class StackRecorder(ConstrainedGaussianMixture):
        def fit(self, X, y=None):
            frame = sys._getframe()
            while frame := frame.f_back:
                modules.append(frame.f_globals.get("__name__"))
            return super().fit(X)

    for run in PROCEDURES.values():
        modules.clear()
        run(StackRecorder(2))
        assert sklearn.model_selection.cross_validate.__module__ in modules


# ---------------------------------------------------------------------------- an index of X


def test_tables_with_an_integer_index_give_a_warning():
    table = pd.DataFrame(X, index=np.arange(N)[::-1])
    for fit in (MIXTURE.fit, SemiSupervisedGaussianClassifier().fit, MIXTURE.predict):
        message = "index of other integers, .* first is 59"
        with pytest.warns(UserWarning, match=message) as caught:
            fit(table, **({"y": y} if "Semi" in str(fit) else {}), must_link=MUST)
        assert caught[0].filename == __file__
    # The two calls in the message give no warning, and differ in meaning.
    remedies = re.findall(
        r"must_link=(cgmm\S+ [^.]*\)|cgmm[^:]*?\))[. ]", str(caught[0].message) + " "
    )
    scope = {"cgmm": cgmm, "must_link": MUST, "X": table}
    by_name, by_row = (eval(remedy, scope) for remedy in remedies)
    np.testing.assert_array_equal(by_name, N - 1 - MUST)
    np.testing.assert_array_equal(by_row, MUST)
    MIXTURE.fit(table, must_link=by_name, cannot_link=positions(CANNOT, table.index))
    MIXTURE.fit(table, must_link=by_row)


# ---------------------------------------------------------------------------- certainties


def test_certainties_given_as_log_odds_give_a_warning():
    with pytest.warns(UserWarning, match=r"0.9 is a certainty of 0.711.*scenarios.preferences"):
        MIXTURE.fit(X, preferences=[[0, 1, 0.9]])
    with pytest.warns(UserWarning, match="read as log-odds"):
        MIXTURE.predict(X, preferences=[[0, 1, 0.9], [1, 2, 0.7]])


# ---------------------------------------------------------------------------- ignored y

PARTIAL_LABELS = np.where(np.arange(N) % 3 == 0, y, -1)
TEXT_LABELS = [None if k < 0 else "ab"[k] for k in PARTIAL_LABELS]
UNSUPERVISED = [
    make(2, random_state=0)
    for make in (
        ConstrainedGaussianMixture,
        cgmm.COPKMeans,
        cgmm.PCKMeans,
        cgmm.ConstrainedCategoricalMixture,
    )
]


def choose_table(model):
    """Return the points, or codes of categories if the model is a categorical mixture."""
    return (X > 3).astype(int) if isinstance(model, cgmm.ConstrainedCategoricalMixture) else X


@pytest.mark.each_value
@pytest.mark.parametrize(
    "labels",
    [PARTIAL_LABELS, PARTIAL_LABELS.astype(float), TEXT_LABELS, y, y == 1, list("ab") * 30],
)
@pytest.mark.parametrize("model", UNSUPERVISED, ids=repr)
def test_ignored_labels_give_a_warning(model, labels):
    with pytest.warns(UserWarning, match="y is not read here") as caught:
        model.fit(choose_table(model), labels)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    remedy = re.search(r"(labels|must_link)=(cgmm.*\])", str(caught[0].message))
    known = eval(remedy[2] + ")" * (remedy[1] == "must_link"), {"cgmm": cgmm, "y": labels})
    model.fit(choose_table(model), **{remedy[1]: known})


@pytest.mark.parametrize(
    "arguments",
    [
        *[
            {"X": pd.DataFrame(X, index=index), "must_link": MUST}
            for index in (None, [f"p{i}" for i in range(N)], pd.date_range("2020-01-01", periods=N))
        ],
        {"preferences": [[0, 1, 0.9], [1, 2, -0.9]]},
        {"preferences": [[0, 1, 0.9], [1, 2, 0.0]]},
        {"preferences": [[0, 1, weight_from_certainty(0.6)]]},
        # The call that the warning recommends.
        {"preferences": preferences(MUST, CANNOT, certainty=0.512345)},
        {"preferences": []},
        *[{"y": k} for k in (None, X[:, 0], np.arange(N), 0 * y, X, np.full(N, -1), "none", 3)],
        {"y": y, "labels": PARTIAL_LABELS},
    ],
)
def test_unambiguous_input_gives_no_warning(arguments):
    clone(MIXTURE).fit(**{"X": X} | arguments)


def test_pipelines_and_scores_that_use_y_give_no_warning():
    pipeline = make_pipeline(StandardScaler(), ConstrainedGaussianMixture(2, random_state=0))
    pipeline.fit(X, y)
    GridSearchCV(pipeline, {}, scoring="adjusted_rand_score").fit(X, y)
    cross_val_score(pipeline, X, PARTIAL_LABELS)


def test_a_search_with_unknown_labels_warns_once():
    with warnings.catch_warnings(record=True, action="always") as caught:
        GridSearchCV(MIXTURE, {"tol": [1e-3, 1e-4]}, cv=3).fit(X, PARTIAL_LABELS)
    warned = [(str(warning.message)[:19], warning.filename) for warning in caught]
    assert warned == [("y is not read here:", __file__)]
