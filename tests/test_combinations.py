"""The quick run leaves out combinations of values, and no value."""

from __future__ import annotations

from itertools import product

from combinations import showing_each_value
from hypothesis import given
from hypothesis import strategies as st

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(SIZES)
def test_of_a_product_as_many_as_its_longest_factor(sizes):
    cases = [set(enumerate(values)) for values in product(*map(range, sizes))]
    chosen = list(showing_each_value(cases))
    assert set().union(*(cases[i] for i in chosen)) == set().union(*cases)
    assert len(chosen) == max(sizes)


@given(st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1))
def test_no_value_is_lost_where_a_product_has_holes(cases):
    chosen = [cases[i] for i in showing_each_value(cases)]
    assert set().union(*chosen) == set().union(*cases)
    assert len(chosen) <= len(set().union(*cases))


def test_what_is_left_out_is_slow(pytester, request):
    """By the conftest that all tests have, on a test of three times two cases."""
    pytester.makeconftest((request.config.rootpath / "tests/conftest.py").read_text("utf8"))
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nmarkers = ["slow: s", "each_value: e"]\n'
    )
    pytester.makepyfile("""
        import pytest

        @pytest.mark.each_value
        @pytest.mark.parametrize("a", [1, 2, 3])
        @pytest.mark.parametrize("b", [1, 2])
        def test_thinned(a, b):
            pass

        @pytest.mark.parametrize("a", [1, 2])
        @pytest.mark.parametrize("b", [1, 2])
        def test_whole(a, b):
            pass
    """)
    pytester.runpytest("-m", "not slow", "-p", "no:nbval").assert_outcomes(passed=7, deselected=3)
    pytester.runpytest("-p", "no:nbval").assert_outcomes(passed=10)
