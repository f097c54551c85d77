"""Test the warnings about inputs that may be misread: folds, an index, certainties, labels in y."""

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
    cross_validate,
    learning_curve,
)  # fmt: skip
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cgmm.network
import cgmm.scenarios
from cgmm import (
    MMC,
    RCA,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    OnlineRCA,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
)  # fmt: skip
from cgmm.network import PairsAmong, positions
from cgmm.scenarios import preferences, random_pairs, weight_from_certainty

N = 60
y = np.random.default_rng(0).permutation(np.repeat([0, 1], N // 2))
X = np.random.default_rng(1).normal(size=(N, 2)) + 6 * y[:, None]
MUST, CANNOT = random_pairs(y, 20, random_state=0)
MIXTURE = ConstrainedGaussianMixture(2, random_state=0)


@pytest.fixture(autouse=True)
def _no_other_warning():
    with warnings.catch_warnings(action="error", category=UserWarning):
        yield


# ---------------------------------------------------------------------------- cross-validation

SPLITS = KFold(3, shuffle=True, random_state=0)
WAYS = {
    "search": lambda model, **known: GridSearchCV(model, {}, cv=SPLITS).fit(X, **known),
    "score": lambda model, **known: cross_val_score(model, X, cv=SPLITS, params=known),
    "predict": lambda model, **known: cross_val_predict(model, X, cv=SPLITS, params=known),
    "curve": lambda model, **known: learning_curve(
        model, X, None, cv=SPLITS, train_sizes=[0.5, 1.0], params=known, error_score="raise"
    ),
}


class Witness(ConstrainedGaussianMixture):
    """An estimator that records whether its must-links join points of one class."""

    true: list = []

    def fit(self, X, y=None, *, must_link=None):
        first, second = X[np.asarray(must_link)].transpose(1, 0, 2)
        Witness.true += [*(abs(first[:, 0] - second[:, 0]) < 3)]
        return super().fit(X, must_link=must_link)


@pytest.mark.each_value
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_pairs", [len(MUST), N * 2 // 3, N], ids=["P", "as a fold", "as N"])
def test_pairs_among_rows_follow_them_into_every_fold_and_plain_ones_are_refused(way, n_pairs):
    """If there are as many pairs as rows, scikit-learn selects from them; others stay unchanged."""
    pairs = np.resize(MUST, (n_pairs, 2))
    refusal = pytest.raises(ValueError, match=r"cross-validation fits to some.*PairsAmong")
    with warnings.catch_warnings(action="ignore"), refusal:
        WAYS[way](MIXTURE, must_link=pairs)
    Witness.true = []
    WAYS[way](Witness(2), must_link=PairsAmong(pairs, N))
    assert len(Witness.true) > 5
    # Two classes six deviations apart, so the class of a row can be read off its point.
    assert np.mean(Witness.true) > 0.95


@pytest.mark.parametrize("metric", [RCA(), OnlineRCA(random_state=0), MMC(max_iter=3)])
def test_metrics_in_pipelines(metric):
    pipeline = make_pipeline(metric, SemiSupervisedGaussianClassifier())
    known = {"must_link": MUST} | ({"cannot_link": CANNOT} if isinstance(metric, MMC) else {})
    plain, among = (
        {f"{type(metric).__name__.lower()}__{key}": as_(pairs) for key, pairs in known.items()}
        for as_ in (np.array, lambda pairs: PairsAmong(pairs, N))
    )
    with warnings.catch_warnings(action="ignore"):
        with pytest.raises(ValueError, match=r"cross-validation"):
            cross_val_score(pipeline, X, y, cv=SPLITS, params=plain)
        assert (cross_val_score(pipeline, X, y, cv=SPLITS, params=among) > 0.9).all()


def test_routing_of_metadata():
    plain, among = {"must_link": MUST}, {"must_link": PairsAmong(MUST, N)}
    unrouted = cross_val_score(MIXTURE, X, cv=SPLITS, params=among)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(MIXTURE).set_fit_request(must_link=True)
        np.testing.assert_array_equal(cross_val_score(model, X, cv=SPLITS, params=among), unrouted)
        with pytest.raises(ValueError, match="cross-validation"):
            cross_val_score(model, X, cv=SPLITS, params=plain)


@pytest.mark.parametrize("is_mask", [False, True])
def test_plain_pairs_in_a_loop_over_folds_are_warned_of(is_mask):
    """Row numbers below the size of a fold raise no error there, but mean other points."""
    first_pairs, model = MUST[MUST.max(axis=1) < 30], COPKMeans(2, random_state=0)
    for split in KFold(3, shuffle=True, random_state=0).split(X):
        rows = np.isin(np.arange(N), split[0]) if is_mask else split[0]
        with pytest.warns(
            UserWarning, match=r"the points are X\[rows\], and must_link is"
        ) as caught:
            model.fit(X[rows], must_link=first_pairs)
        assert [warning.filename for warning in caught] == [__file__]
        # Both remedies are silent, and mean different things.
        of_table, of_fold = (
            eval(text, {"cgmm": cgmm, "must_link": first_pairs, "X": X, "rows": rows})
            for text in re.findall(r"must_link=(cgmm\S+ [^ ]+?)\. ", str(caught[0].message) + " ")
        )
        for relations in (of_table, of_fold):
            model.fit(X[rows], must_link=relations)
        kept = first_pairs[np.isin(first_pairs, split[0]).all(axis=1)]
        np.testing.assert_array_equal(np.arange(N)[rows][of_table.pairs], kept)
        np.testing.assert_array_equal(of_fold.pairs, first_pairs)


def test_other_arrays_beside_the_points_are_no_selection_of_rows():
    order, part, labels = np.arange(N)[::-1], X[::2].copy(), y.copy()
    MIXTURE.fit(X[order][::-1], must_link=MUST)
    MIXTURE.fit(part, must_link=[[0, 29]])
    MIXTURE.predict(X[order[:5]], must_link=[[0, 1]])
    assert len(labels) == len(order)


def test_the_module_in_which_scikit_learn_selects_rows_is_the_one_that_is_looked_for():
    """CONTRIBUTING.md explains it: if this fails, plain pairs in folds are silently wrong."""
    modules = []

    class Spy(ConstrainedGaussianMixture):
        def fit(self, X, y=None):
            frame = sys._getframe()
            while frame := frame.f_back:
                modules.append(frame.f_globals.get("__name__"))
            return super().fit(X)

    for way in WAYS.values():
        modules.clear()
        way(Spy(2))
        assert cross_validate.__module__ in modules


# ---------------------------------------------------------------------------- an index of X


def test_integer_row_names_give_a_warning():
    table = pd.DataFrame(X, index=np.arange(N)[::-1])
    for fit in (MIXTURE.fit, SemiSupervisedGaussianClassifier().fit, MIXTURE.predict):
        with pytest.warns(UserWarning, match="index of other integers, .* first is 59") as caught:
            fit(table, **({"y": y} if "Semi" in str(fit) else {}), must_link=MUST)
        assert caught[0].filename == __file__
    # Both remedies are silent, and mean different things.
    found = re.findall(
        r"must_link=(cgmm\S+ [^.]*\)|cgmm[^:]*?\))[. ]", str(caught[0].message) + " "
    )
    scope = {"cgmm": cgmm, "must_link": MUST, "X": table}
    by_name, by_row = (eval(remedy, scope) for remedy in found)
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


# ---------------------------------------------------------------------------- y that is ignored

SOME = np.where(np.arange(N) % 3 == 0, y, -1)
TEXTS = [None if k < 0 else "ab"[k] for k in SOME]
KINDS = [ConstrainedGaussianMixture, COPKMeans, PCKMeans, ConstrainedCategoricalMixture]
IGNORES = [make(2, random_state=0) for make in KINDS]


def points_for(model):
    return (X > 3).astype(int) if isinstance(model, ConstrainedCategoricalMixture) else X


@pytest.mark.each_value
@pytest.mark.parametrize("labels", [SOME, SOME.astype(float), TEXTS, y, y == 1, list("ab") * 30])
@pytest.mark.parametrize("model", IGNORES, ids=repr)
def test_ignored_labels_give_a_warning(model, labels):
    with pytest.warns(UserWarning, match="y is not read here") as caught:
        model.fit(points_for(model), labels)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    remedy = re.search(r"(labels|must_link)=(cgmm.*\])", str(caught[0].message))
    known = eval(remedy[2] + ")" * (remedy[1] == "must_link"), {"cgmm": cgmm, "y": labels})
    model.fit(points_for(model), **{remedy[1]: known})


@pytest.mark.parametrize(
    "given",
    [
        *[
            {"X": pd.DataFrame(X, index=index), "must_link": MUST}
            for index in (None, [f"p{i}" for i in range(N)], pd.date_range("2020-01-01", periods=N))
        ],
        {"preferences": [[0, 1, 0.9], [1, 2, -0.9]]},
        {"preferences": [[0, 1, 0.9], [1, 2, 0.0]]},
        {"preferences": [[0, 1, weight_from_certainty(0.6)]]},
        # Following the advice of the warning must not raise it again.
        {"preferences": preferences(MUST, CANNOT, certainty=0.512345)},
        {"preferences": []},
        *[{"y": k} for k in (None, X[:, 0], np.arange(N), 0 * y, X, np.full(N, -1), "none", 3)],
        {"y": y, "labels": SOME},
    ],
)
def test_unambiguous_input_gives_no_warning(given):
    clone(MIXTURE).fit(**{"X": X} | given)


def test_pipelines_and_searches_by_y_are_silent():
    pipeline = make_pipeline(StandardScaler(), ConstrainedGaussianMixture(2, random_state=0))
    pipeline.fit(X, y)
    GridSearchCV(pipeline, {}, scoring="adjusted_rand_score").fit(X, y)
    cross_val_score(pipeline, X, SOME)


def test_a_search_with_unknown_labels_warns_once():
    with warnings.catch_warnings(record=True, action="always") as caught:
        GridSearchCV(MIXTURE, {"tol": [1e-3, 1e-4]}, cv=3).fit(X, SOME)
    found = [(str(warning.message)[:19], warning.filename) for warning in caught]
    assert found == [("y is not read here:", __file__)]
