"""Result files as arrays, verdicts as sentences, methods as colours."""

from __future__ import annotations

import statistics
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from cgmm import plot
from cgmm.replicate.drawing import curves, ladder
from cgmm.replicate.reading import (
    BARS,
    LOOKS,
    by_realisation,
    line,
    realisations_needed,
    series,
    spread,
    statement,
    wrong_order,
)
from cgmm.replicate.store import read_rows
from cgmm.replicate.verdicts import Comparison, judge, read_comparisons

DATA = Path(__file__).resolve().parents[2] / "book" / "_data"
STORED = sorted((DATA / "replication").glob("*.csv"))
NUMBERS = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))


def row(method="EM", realisation=0, value="0.5", **more) -> dict[str, str]:
    return {"method": method, "realisation": str(realisation), "value": value, **more}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# ---------------------------------------------------------------------------- rows to arrays


def test_values_stand_at_the_place_of_their_realisation():
    rows = [row(realisation=3, value="3"), row(realisation=0, value="0.25"), row("K-means", 1, "")]
    found = by_realisation(rows)
    np.testing.assert_array_equal(found["EM"], [0.25, np.nan, np.nan, 3])
    np.testing.assert_array_equal(found["K-means"], [np.nan] * 4)


def test_where_takes_numbers_texts_and_lists():
    rows = [row(realisation=r, q=q, data="iris") for r, q in enumerate(["0.15", "0.3", "3"])]
    assert by_realisation(rows, q=0.30)["EM"].tolist()[1:] == [0.5]
    assert np.isnan(by_realisation(rows, q=0.3)["EM"][0])
    np.testing.assert_array_equal(by_realisation(rows, q=[0.15, "3"])["EM"], [0.5, np.nan, 0.5])
    assert by_realisation(rows, q=3.0, data="iris")["EM"].size == 3


def test_several_columns_name_a_group():
    rows = [row(data="iris"), row(data="wine", value="0.7"), row("K-means", data="iris")]
    found = by_realisation(rows, ("method", "data"))
    assert list(found) == [("EM", "iris"), ("EM", "wine"), ("K-means", "iris")]
    assert found["EM", "wine"].tolist() == [0.7]


def test_two_values_of_one_realisation_are_refused():
    rows = [row(quantity="a"), row(quantity="b", value="0.9")]
    with pytest.raises(ValueError, match=r"'EM'.*realisation 0.*0\.9.*in by or where"):
        by_realisation(rows)
    assert by_realisation(rows, quantity="b")["EM"].tolist() == [0.9]


def test_a_failure_that_comes_twice_is_refused_as_well():
    with pytest.raises(ValueError, match="several values"):
        by_realisation([row(value=""), row(value="")])


def test_unknown_columns_and_empty_choices_are_named():
    with pytest.raises(ValueError, match=r"no column colour, shape.*it has method"):
        by_realisation([row()], "colour", shape="round")
    with pytest.raises(ValueError, match=r"no row .*\{'method': 'SVM'\}"):
        by_realisation([row()], method="SVM")
    with pytest.raises(ValueError, match="it has no rows"):
        by_realisation([])


def test_series_sorts_levels_as_numbers_and_fills_gaps():
    rows = [row(n=n, value=n) for n in ("100", "20", "3")] + [row("K-means", n="20")]
    levels, found = series(rows, "n")
    assert levels.tolist() == [3, 20, 100]
    assert [v.tolist() for v in found["EM"]] == [[3], [20], [100]]
    assert np.isnan(found["K-means"][0]).all()
    assert found["K-means"][1].tolist() == [0.5]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_arrays_hold_every_value_of_a_stored_file(path):
    rows = read_rows(path)
    settings = [c for c in rows[0] if c not in ("realisation", "seed", "value", "reason")]
    found = by_realisation(rows, settings)
    stored = np.sort([float(r["value"]) for r in rows if r["value"]])
    values = np.concatenate(list(found.values()))
    np.testing.assert_array_equal(np.sort(values[~np.isnan(values)]), stored)


# ---------------------------------------------------------------------------- numbers


@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_spread_agrees_with_the_standard_library(values):
    found = spread(np.array([*values, np.nan]))
    assert (found.n, found.n_failed) == (len(values), 1)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    expected = statistics.stdev(values) / len(values) ** 0.5
    assert found.standard_error == pytest.approx(expected, abs=1e-9)


def test_spread_of_one_and_of_none():
    one, none = spread(np.array([2.0])), spread(np.array([np.nan]))
    assert one.mean == 2
    assert np.isnan(one.standard_error)
    assert one.n == 1
    assert np.isnan(none.mean)
    assert (none.n, none.n_failed) == (0, 1)


def test_spread_is_what_the_verdicts_find():
    """Of every claim without a difference, on the stored files."""
    for claim in read_comparisons(DATA / "comparisons.toml"):
        if claim.minus is None and claim.by == []:
            rows = read_rows(DATA / "replication" / f"{claim.file}.csv")
            (values,) = by_realisation(rows, "paper", **claim.where, **claim.ours).values()
            (found,) = judge(claim, rows).found
            np.testing.assert_allclose(spread(values), found[1:5], rtol=1e-12)


def test_wrong_order_against_experiments():
    """Normal differences: the formula is exact but for δ and s, here those of the sample."""
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1.0, size=400)
    z = (d - d.mean()) / d.std(ddof=1)
    normal = rng.normal(size=(100_000, 4)) * d.std(ddof=1) + d.mean()
    share = np.mean(normal.mean(axis=1) < 0)
    # The standard error of the share is at most 0.5 / √100000 = 0.0016.
    assert wrong_order(d, 4) == pytest.approx(share, abs=0.006)
    assert wrong_order(z + 2, 1) == pytest.approx(statistics.NormalDist().cdf(-2))
    np.testing.assert_allclose(wrong_order(-d, np.array([1, 9])), wrong_order(d, np.array([1, 9])))


def test_wrong_order_at_the_limits():
    assert wrong_order(np.array([-1.0, 1.0]), 50) == 0.5
    assert wrong_order(np.array([0.0, 0.0]), 50) == 0.5
    np.testing.assert_array_equal(wrong_order(np.array([2.0, 2.0]), np.array([1, 2])), [0, 0])
    assert wrong_order(np.array([1.0, np.nan, 3.0]), 1) == wrong_order(np.array([1.0, 3.0]), 1)
    with pytest.raises(ValueError, match="1 differences"):
        wrong_order(np.array([1.0, np.nan]), 3)


@given(st.lists(NUMBERS, min_size=2, max_size=20), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_number_needed_is_the_first_that_suffices(values, risk):
    d = np.array(values)
    n = realisations_needed(d, risk)
    if d.mean() == 0:
        assert n == np.inf
    elif 1 < n < 1e12:
        assert wrong_order(d, n) <= risk * (1 + 1e-6)
        assert wrong_order(d, n - 1) >= risk * (1 - 1e-6)
    elif n == 1:
        assert wrong_order(d, 1) <= risk * (1 + 1e-6)


def test_half_the_difference_needs_four_times_as_many():
    z = np.array([-1.0, 1.0] * 50)
    ratio = realisations_needed(z + 0.01) / realisations_needed(z + 0.02)
    assert ratio == pytest.approx(4, rel=1e-3)


@pytest.mark.parametrize("risk", [0, 0.5, 0.9, -1])
def test_a_risk_is_below_a_coins(risk):
    with pytest.raises(ValueError, match="between 0 and 1/2"):
        realisations_needed(np.array([0.0, 1.0]), risk)


# ---------------------------------------------------------------------------- sentences


def claim(**changes) -> Comparison:
    fields = ("a", "1", "score of ours", "high", "a-fig1", ["data"], {}, {"method": "EM"})
    return Comparison(*fields, "above", 0.9, 0.05, "reproduced", why="Since.")._replace(**changes)


def judged(*values, **changes):
    """The claim, and what follows from a realisation each of so many data sets."""
    rows = [row(data=f"set{i}", value=str(v)) for i, v in enumerate(values)]
    rows += [row(data=f"set{i}", value=str(v), realisation=1) for i, v in enumerate(values)]
    return claim(**changes), judge(claim(**changes), rows)


def test_a_statement_shows_the_extremes_and_how_many_hold():
    text = statement(*judged(0.95, 0.2, 0.99))
    assert "0.2 ± 0 (set1; n = 2) to 0.99 ± 0 (set2; n = 2); 2 of 3 as asked" in " ".join(
        text.split()
    )
    assert "above 0.9, tolerance 0.05" in text
    assert "partly. Since." in text
    assert "printed  high" in text


def test_a_reason_is_given_only_where_something_is_missing():
    assert "Since" not in statement(*judged(0.95))
    assert "tolerance" not in statement(*judged(0.95, tolerance=0.0))
    assert statement(*judged(0.1, why="")).endswith("not")


def test_failures_are_counted_and_lines_are_short():
    rows = [row(data="a", value=""), row(data="a", realisation=1, value="-0.0004")]
    found = judge(claim(), rows)
    text = statement(claim(quantity="word " * 40), found, width=50)
    assert "-0.0004 (a; n = 1, 1 failed)" in text
    assert max(map(len, text.split("\n"))) <= 50


def test_a_group_without_any_value_comes_first():
    rows = [row(data="good"), row(data="bad", value="")]
    assert "nan (bad; n = 0, 1 failed) to 0.5 (good" in statement(claim(), judge(claim(), rows))


def test_short_numbers():
    assert "0.95 ± 0 " in line(*judged(0.95))
    assert line(*judged(-2781.7198)).split()[1] == "-2781.7"
    assert line(*judged(-0.0)).split()[1] == "0"
    assert line(*judged(0.00034)).split()[1] == "0.0003"
    assert line(*judged(-2e-17)).split()[1] == "0"


def test_a_line_counts_groups_and_goes_on_indented():
    assert "1 of 3" in line(*judged(0.95, 0.2, 0.3))
    text = line(*judged(0.95, 0.2, quantity="word " * 20), width=60)
    first, second, *_ = text.split("\n")
    assert first.startswith("partly      1 of 2           word")
    assert second.startswith(" " * 29 + "word")
    assert max(map(len, text.split("\n"))) <= 60


# ---------------------------------------------------------------------------- drawing


def test_every_method_of_the_stored_comparisons_can_be_drawn():
    """Those of the figures of the book: curves and ladders."""
    files = ["shental2003-fig5", "shental2003-fig7", "lu2007-fig6", "lu2007-fig8", "lu2007-fig10"]
    files += ["lu2007-fig11", "lu2007-fig12"]
    files += [f"barhillel2005-fig{k}" for k in (4, 6, 7, 10)]
    rows = [r for name in files for r in read_rows(DATA / "replication" / f"{name}.csv")]
    assert {r["method"] for r in rows} <= set(LOOKS)


def test_methods_of_one_file_look_different():
    for path in STORED:
        methods = {r["method"] for r in read_rows(path)} & set(LOOKS)
        assert len({LOOKS[m][1:] for m in methods}) == len(methods), path


@pytest.mark.parametrize(
    ("bars", "ends"),
    [
        ("quartiles", (1, 3)),
        ("deviation", (2 - np.sqrt(2.5), 2 + np.sqrt(2.5))),
        ("standard error", (2 - np.sqrt(0.5), 2 + np.sqrt(0.5))),
    ],
)
def test_bars(bars, ends):
    v = np.array([0, 1, 2, 3, 4, np.nan])
    np.testing.assert_allclose(BARS[bars](v), ends)
    ax = ladder(plt.subplots()[1], {"EM": [v]}, bars)
    bar, mark = ax.lines[-2:]
    np.testing.assert_allclose(bar.get_xdata(), ends)
    assert mark.get_xdata() == [2]


def test_a_ladder_goes_down_and_its_last_level_is_full():
    v = np.array([0.0, 1.0])
    ax = ladder(plt.subplots()[1], {"EM": [v, v + 1], "K-means": [v, v]})
    marks = [mark for mark in ax.lines if mark.get_marker() == "o"]
    y = [float(mark.get_ydata()[0]) for mark in marks]
    assert y == sorted(y)
    assert ax.yaxis_inverted()
    full = [to_hex(mark.get_markerfacecolor()) != plot.BACKGROUND for mark in marks]
    assert full == [False, True, False, True]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["EM", "K-means"]
    assert to_hex(marks[0].get_markeredgecolor()) == plot.colour(LOOKS["EM"].colour)


def test_a_ladder_without_names():
    ax = ladder(plt.subplots()[1], {"EM": [np.array([0.0, 1.0])]}, names=False)
    assert [text.get_text() for text in ax.get_yticklabels()] == [""]


def test_curves_draw_means_bars_and_names():
    values = {"RCA": [np.array([0.0, 2.0]), np.array([3.0, 5.0])], "original": [np.zeros(2)] * 2}
    ax = curves(plt.subplots()[1], [1, 2], values, "deviation", ls=":", ms=3)
    rca, given_data = ax.lines
    assert rca.get_ydata().tolist() == [1, 4]
    assert rca.get_linestyle() == ":"
    assert [one.get_label() for one in (rca, given_data)] == ["RCA", "as given"]
    assert rca.get_color() == plot.colour(2)
    assert given_data.get_color() == plot.NEUTRAL
    ends = np.array([path.vertices[:, 1] for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(ends, [[1 - 2**0.5, 1 + 2**0.5], [4 - 2**0.5, 4 + 2**0.5]])
