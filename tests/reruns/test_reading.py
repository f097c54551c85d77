"""Test the conversion of result files to arrays, standard errors, and the order of means."""

import statistics
from operator import call

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from reruns.reading import by_realisation, realisations_needed, series, spread, wrong_order

NUMBERS = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))


def make_row(method="EM", realisation=0, value="0.5", **columns) -> dict[str, str]:
    """Return a row of a result file."""
    return {"method": method, "realisation": str(realisation), "value": value, **columns}


def test_by_realisation_puts_each_value_at_the_index_of_its_realisation():
    rows = [make_row(realisation=r, value=str(value)) for r, value in ((3, 3), (0, 0.25))]
    rows.append(make_row("K-means", 1, ""))
    result = by_realisation(rows)
    np.testing.assert_array_equal(result["EM"], [0.25, np.nan, np.nan, 3])
    np.testing.assert_array_equal(result["K-means"], [np.nan] * 4)
    rows = [make_row(realisation=r, q=q) for r, q in enumerate(["0.15", "0.3", "3"])]
    np.testing.assert_array_equal(by_realisation(rows, q=[0.15, "3"])["EM"], [0.5, np.nan, 0.5])


test_by_realisation_refuses_rows_that_make_no_array = refused(
    by_realisation,
    ([make_row(quantity="a"), make_row(quantity="b")], {}, "'EM'.*realisation 0.*in by or where"),
    ([make_row()], {"colour": "red"}, "no column colour.*it has method"),
    ([make_row()], {"method": "SVM"}, r"no row .*\{'method': 'SVM'\}"),
    ([], {}, "it has no rows"),
)


def test_series_sorts_levels_as_numbers_and_fills_gaps():
    rows = [make_row(n=n, value=n) for n in ("100", "20", "3")] + [make_row("K-means", n="20")]
    levels, result = series(rows, "n")
    assert levels.tolist() == [3, 20, 100]
    assert [v.tolist() for v in result["EM"]] == [[3], [20], [100]]
    assert np.isnan(result["K-means"][0]).all()
    assert result["K-means"][1].tolist() == [0.5]


# ---------------------------------------------------------------------------- means and their order


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_spread_agrees_with_the_statistics_module(values):
    result = spread(np.array([*values, np.nan]))
    assert (result.n, result.n_failed) == (len(values), 1)
    assert result.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    deviation = statistics.stdev(values) if len(values) > 1 else np.nan
    expected = pytest.approx(deviation / len(values) ** 0.5, abs=1e-9, nan_ok=True)
    assert result.standard_error == expected


def test_probability_of_a_wrong_order_equals_the_proportion_in_simulations():
    """The formula is exact if differences are normal with the estimated mean and deviation."""
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1.0, size=400)
    z = (d - d.mean()) / d.std(ddof=1)
    normal = rng.normal(size=(100_000, 4)) * d.std(ddof=1) + d.mean()
    proportion = np.mean(normal.mean(axis=1) < 0)
    # The standard error of the proportion is at most 0.5 / √100000 = 0.0016.
    assert wrong_order(d, 4) == pytest.approx(proportion, abs=0.006)
    assert wrong_order(z + 2, 1) == pytest.approx(statistics.NormalDist().cdf(-2))
    np.testing.assert_allclose(wrong_order(-d, np.array([1, 9])), wrong_order(d, np.array([1, 9])))
    # With a mean difference of zero no number of realisations suffices.
    assert realisations_needed(np.array([-1.0, 1.0])) == np.inf


test_order_of_means_refuses_invalid_arguments = refused(
    call,
    (lambda: realisations_needed(np.ones(2), 0.6), "between 0 and 1/2"),
    (lambda: wrong_order(np.ones(1), 3), "1 differences"),
)
