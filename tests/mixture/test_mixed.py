"""Test mixtures of tables with columns of numbers and of categories, and with empty cells."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refused
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cgmm import ConstrainedCategoricalMixture, ConstrainedGaussianMixture, MixedMixture, plot
from cgmm.diagnose import judge

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

K = 3


def draw_penguins(seed=0, n=240, share=0.1):
    """Draw a table with two columns of numbers and two of categories; return it and the groups."""
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=n)
    length, depth = (rng.normal(scale=2.0, size=K)[z] + rng.normal(size=n) for _ in range(2))
    island, sex = rng.choice(["A", "B", "C"], n), rng.choice(["f", "m"], n)
    island = np.where(rng.uniform(size=n) < 0.8, np.array(["A", "B", "C"])[z], island)
    columns = {"length": length, "island": island, "depth": depth, "sex": sex}
    table = pd.DataFrame({name: column.astype(object) for name, column in columns.items()})
    is_empty = rng.uniform(size=table.shape) < share
    is_empty[is_empty.all(axis=1), 0] = False
    return table.mask(is_empty, None), z


def compute_log_joint(model, table):
    """Return log π_k plus the log-densities of the observed cells, shape (N, K)."""
    log_joint = np.tile(np.log(model.weights_), (len(table), 1))
    for i, (length, island, depth, sex) in enumerate(table.itertuples(index=False)):
        x = np.array([length, depth], dtype=float)
        o = ~np.isnan(x)
        for k in range(len(model.weights_)):
            if o.any():
                covariance = model.covariances_[k][np.ix_(o, o)]
                log_joint[i, k] += multivariate_normal(model.means_[k, o], covariance).logpdf(x[o])
            for entry, column in ((island, 0), (sex, 1)):
                if isinstance(entry, str):
                    code = model.categories_[column].index(entry)
                    log_joint[i, k] += np.log(model.probabilities_[column][k, code])
    return log_joint


def test_density_is_the_product_over_observed_cells():
    table, _ = draw_penguins()
    model = MixedMixture(K, random_state=0).fit(table)
    expected = logsumexp(compute_log_joint(model, table), axis=1)
    np.testing.assert_allclose(model.score_samples(table), expected, rtol=1e-9)
    assert model.log_evidence_ == pytest.approx(expected.sum())
    assert model.bic(table) == pytest.approx(-2 * model.log_evidence_ + (2 + 15 + 9) * np.log(240))


def test_fits_of_columns_of_one_kind_equal_the_other_mixtures():
    table, z = draw_penguins(share=0)
    r, options = np.eye(K)[z], {"tol": 1e-10, "max_iter": 500}
    numbers = table[["length", "depth"]].astype(float)
    ours = MixedMixture(K, init_params=r, **options).fit(numbers)
    theirs = ConstrainedGaussianMixture(K, init_params=r, **options).fit(numbers)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-9)
    codes = np.column_stack([pd.factorize(table[name], sort=True)[0] for name in ("island", "sex")])
    ours = MixedMixture(K, init_params=r, categorical_features=[0, 1], **options).fit(codes)
    theirs = ConstrainedCategoricalMixture(K, init_params=r, **options).fit(codes)
    np.testing.assert_allclose(ours.probabilities_[0], theirs.probabilities_[0], atol=2e-3)


@pytest.mark.parametrize("kind", ["numbers", "names", "mask", "categories", "polars", "array"])
def test_fit_does_not_depend_on_the_type_of_table(kind):
    table, z = draw_penguins()
    expected = MixedMixture(K, init_params=np.eye(K)[z]).fit(table)
    arguments = {"numbers": [1, 3], "names": ["island", "sex"], "mask": [False, True, False, True]}
    model = MixedMixture(
        K, init_params=np.eye(K)[z], categorical_features=arguments.get(kind, "from_dtype")
    )
    if kind == "categories":
        table = table.astype({"island": "category", "length": "Float64", "depth": float})
    if kind == "polars":
        table = pl.DataFrame({
            name: [None if pd.isna(entry) else entry for entry in table[name]] for name in table
        })  # fmt: skip
    table = table.to_numpy() if kind == "array" else table
    model.fit(table)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-10)
    assert model.categories_ == [["A", "B", "C"], ["f", "m"]]
    complete = model.impute(table)
    assert type(complete) is type(table)
    assert not pd.isna(np.array(complete, dtype=object)).any()
    assert list(getattr(complete, "columns", [])) == list(getattr(table, "columns", []))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_default_fit_of_a_mixed_table_reaches_the_maximum_at_the_truth(share):
    table, z = draw_penguins(2, 300, share)
    truth = MixedMixture(K, init_params=np.eye(K)[z]).fit(table)
    model = MixedMixture(K, random_state=0).fit(table)
    assert model.log_evidence_ > truth.log_evidence_ - 1


def test_labels_and_relations_are_satisfied():
    table, z = draw_penguins(1, 120)
    labels = np.where(np.arange(120) < 30, z, -1)
    model = MixedMixture(K, random_state=0).fit(table, labels=labels, cannot_link=[[40, 41]])
    assert (model.labels_[:30] == z[:30]).all()
    assert model.labels_[40] != model.labels_[41]
    new = table[40:43].reset_index(drop=True)
    assert len(set(model.predict(new, cannot_link=[[0, 1], [1, 2], [0, 2]]))) == 3


def test_unknown_categories_are_refused_or_treated_as_missing():
    table, _ = draw_penguins()
    model = MixedMixture(K, random_state=0).fit(table)
    unknown, missing = table.head(3).copy(), table.head(3).copy()
    unknown.loc[1, "island"], missing.loc[1, "island"] = "D", None
    with pytest.raises(ValueError, match="column 'island' of X holds 'D' in row 1, a category"):
        model.predict(unknown)
    model.set_params(handle_unknown="missing")
    np.testing.assert_array_equal(model.predict_proba(unknown), model.predict_proba(missing))


def test_samples_and_imputed_draws_follow_the_mixture():
    table, _ = draw_penguins(share=0)
    model = MixedMixture(K, random_state=0).fit(table)
    X, z = model.sample(20_000)
    refit = MixedMixture(K, init_params=np.eye(K)[z], max_iter=1).fit(X)
    np.testing.assert_allclose(refit.means_, model.means_, atol=0.15)
    np.testing.assert_allclose(refit.probabilities_[0], model.probabilities_[0], atol=0.05)
    row = table.head(1).mask([[False, True, False, True]], None)
    draws = model.impute(pd.concat([row] * 5000), draw=True)
    expected = model.predict_proba(row)[0] @ model.probabilities_[0]
    np.testing.assert_allclose([(draws["island"] == c).mean() for c in "ABC"], expected, atol=0.03)


def test_partial_fit_accepts_batches_of_complete_rows_only():
    table, _ = draw_penguins(share=0, n=600)
    model = MixedMixture(K, random_state=0)
    for rows in np.split(np.arange(600), 6):
        model.partial_fit(table.iloc[rows])
    assert model.score(table) > MixedMixture(K, random_state=0).fit(table).score(table) - 0.2
    table.iloc[3, 0] = None
    with pytest.raises(ValueError, match="which partial_fit cannot use"):
        model.partial_fit(table)


TABLE = draw_penguins()[0]
EMPTY_ROW = TABLE.mask(np.arange(240)[:, None] == [0] * 4, None)
test_unreadable_tables_and_columns_are_refused = refused(
    lambda table, columns="from_dtype": MixedMixture(2, categorical_features=columns).fit(table),
    (TABLE.assign(length=np.inf), "'length' of X holds inf in row 0, but a number must not be inf"),
    (TABLE.assign(island=None), [1, 3], "column 'island' of X is empty"),
    (TABLE, None, "column 'island' of X holds '.' in row ., which is not a number"),
    (
        TABLE.assign(depth=[{}] * 240),
        "column 'depth' of X holds {} in row 0, which is not a number",
    ),
    (TABLE, ["colour"], "names 'colour', but the columns of X are"),
    (TABLE, [False, True], "names False, but the columns of X are"),
    (EMPTY_ROW, "row 0 of X is empty"),
)


def test_judge_and_summary_accept_a_mixed_table():
    table, z = draw_penguins()
    pairs = np.argsort(z, kind="stable").reshape(-1, 2)[:20]
    model = MixedMixture(K, random_state=0).fit(table, must_link=pairs)
    wrong = [[np.flatnonzero(z == 0)[0], np.flatnonzero(z == 1)[0]]]
    judgement = judge(model, table, must_link=np.concatenate([pairs, wrong]))
    assert judgement.order[0] == 20
    assert "mean length  mean depth" in str(model.summary())


def test_plots_show_the_columns_of_numbers():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=(40, 2)).astype(object), ["a", "b"] * 20])
    model = MixedMixture(2, random_state=0).fit(table)
    ax = plot.fit(model, table[:, :2].astype(float))
    assert len(ax.patches) >= 2
    gaps = table[:, :1].astype(float)
    gaps[3] = np.nan
    plot.density_1d(ConstrainedGaussianMixture(2, random_state=0).fit(gaps[4:]), X=gaps)
