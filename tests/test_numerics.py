"""Test ``cgmm.numerics``: blocks, log-normalisation, checks of input, and warnings."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused

from cgmm import numerics

# ---------------------------------------------------------------------------- blocks and logs


@given(st.integers(0, 5000), st.integers(1, 300_000), st.integers(1, 2000))
def test_blocks_cover_every_row_once_in_order(n_rows, width, at_least):
    parts = list(numerics.blocks(n_rows, width, at_least=at_least))
    rows = [row for part in parts for row in range(n_rows)[part]]
    assert rows == list(range(n_rows))
    height = max(at_least, numerics.BLOCK_CELLS // width)
    assert len(parts) == -(-n_rows // height)
    # All blocks have the same height, except for the last one.
    sizes = [part.stop - part.start for part in parts]
    assert all(size == -(-n_rows // len(parts)) for size in sizes[:-1])
    assert max(sizes, default=0) <= height


@example(np.array([[0.0, -600.0, -690.0, -704.0]]))
@given(arrays(float, (3, 4), elements=st.floats(-5000, 5000) | st.just(-np.inf)))
def test_log_normalise_equals_arbitrary_precision(log_values):
    log_values[:, 0] = np.maximum(log_values[:, 0], -5000)
    p, totals = numerics.log_normalise(log_values)
    # Probabilities below the range of normal numbers are exactly zero.
    assert not p[log_values < log_values.max(axis=1, keepdims=True) - 709].any()
    with mpmath.workdps(60):
        for row, (values, total) in enumerate(zip(log_values, totals, strict=True)):
            terms = [mpmath.exp(mpmath.mpf(v)) for v in values]
            # The largest value is rounded once, and the sum of four numbers three times.
            assert total == pytest.approx(float(mpmath.log(sum(terms))), rel=1e-14, abs=1e-14)
            expected = [float(term / sum(terms)) for term in terms]
            np.testing.assert_allclose(p[row], expected, rtol=1e-11, atol=1e-307)


test_log_normalise_refuses_impossible_rows = refused(
    lambda value: numerics.log_normalise(np.array([[0.0, 0.0], [value, value], [0.0, 0.0]])),
    *((value, "row 1") for value in (-np.inf, np.nan, np.inf)),
)


# ---------------------------------------------------------------------------- labels, numbers

NUMBERS = st.one_of(st.integers(-5, 5), st.floats(width=32), st.booleans())


@given(st.lists(NUMBERS, min_size=1), st.sampled_from([-1, 0, None]))
def test_the_first_invalid_label_is_named(labels, least):
    wrong = [
        i for i, k in enumerate(labels)
        if not (np.isfinite(k) and k == int(k) and (least is None or k >= least) and abs(k) < 2**63)
    ]  # fmt: skip
    given_labels = np.array(labels)
    if wrong:
        with pytest.raises(ValueError, match=rf"^y\[{wrong[0]}\] is .* must be an integer"):
            numerics.check_labels("y", given_labels, least=least)
    else:
        checked = numerics.check_labels("y", given_labels, len(labels), least=least)
        assert checked.dtype == np.intp
        assert checked.tolist() == labels
        assert not np.shares_memory(checked, given_labels)


test_labels_of_wrong_shape_or_type_are_refused = refused(
    partial(numerics.check_labels, "y"),
    ([], None, r"y has shape \(0,\); it must be one-dimensional and not empty"),
    ([[0], [1]], 2, r"y has shape \(2, 1\); it must be \(2,\)"),
    (["0", "1"], 2, "y is of type <U1 because of '0' in row 0.*number_classes"),
    ([0, Decimal(1)], 2, "y is of type object"),
    (np.array([0, 1], dtype="timedelta64[s]"), 2, "y is of type timedelta64"),
    (np.array([0, 2**63], dtype=np.uint64), 2, r"y\[1\] is 9223372036854775808"),
)


@given(st.integers(-4, 4), st.integers(-4, 4), st.none() | st.integers(-4, 4))
def test_integers_outside_their_range_are_refused(value, least, most):
    if least <= value and (most is None or value <= most):
        numerics.check_integer("n", value, least, most)
        numerics.check_integer("n", np.int8(value), least, most)
    else:
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        with pytest.raises(ValueError, match=f"^n is {value}; it must be an integer {limits}.$"):
            numerics.check_integer("n", value, least, most)


test_values_of_other_types_than_integers_are_refused = refused(
    lambda value: numerics.check_integer("n", value, 0, 5),
    *((value, r"^n is .*; it must be an integer from 0 to 5\.$")
      for value in (1.0, True, np.True_, "1", None, np.nan, [1], Fraction(1))),
)  # fmt: skip


@pytest.mark.parametrize("kind", [Fraction, Decimal])
def test_fractions_and_decimals_become_floats_and_other_values_stay(kind):
    (convert,) = numerics.in_floats(lambda *, value: value)
    quarter = kind("0.25")
    assert repr(convert(value=quarter)) == "0.25"
    assert repr(convert(value=[(quarter, 1), [quarter]])) == "[(0.25, 1), [0.25]]"
    array = convert(value=np.array([[quarter], [quarter]]))
    assert array.dtype == float
    assert np.array_equal(array, [[0.25], [0.25]])
    for other in (None, {3}, np.arange(2), "text", True):
        assert convert(value=other) is other


# ---------------------------------------------------------------------------- ranges


test_columns_whose_squares_overflow_or_vanish_are_refused = refused(
    lambda X: numerics.check_ranges(np.array(X)),
    # The first column has larger values, but it is constant.
    ([[1e200, 0], [1e200, 1e160]], "column 1 spans 0 to 1e[+]160: its squares overflow"),
    ([[5, 0], [5, 5e-324]], "column 1 spans 4.94e-324: its squares vanish"),
    ([[0, np.nan], [1, 1]], "column 1 spans nan to nan"),
)


# ---------------------------------------------------------------------------- warnings


def make_caller(module: str) -> Callable:
    """Return a function of a module with this name, which calls its argument in line 1."""
    names, path = {"__name__": module}, f"/site-packages/{module.replace('.', '/')}.py"
    exec(compile("def call(inner): return inner()", path, "exec"), names)
    return names["call"]


LIBRARIES = ["cgmm", "cgmm.kmeans.loop", "sklearn", "sklearn.base", "joblib.parallel"]


@given(st.lists(st.sampled_from([*LIBRARIES, "reader"]), max_size=6))
def test_warnings_show_the_innermost_line_outside_of_libraries(modules):
    call = partial(numerics.warn_caller, "not converged", UserWarning)
    for module in modules:
        call = partial(make_caller(module), call)
    caller = lambda: call()  # noqa: E731
    with warnings.catch_warnings(record=True, action="always") as caught:
        caller()
    location = __file__, caller.__code__.co_firstlineno
    assert [str(warning.message) for warning in caught] == ["not converged"]
    assert (caught[0].filename, caught[0].lineno) == (
        ("/site-packages/reader.py", 1) if "reader" in modules else location
    )


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([UserWarning, RuntimeWarning]))))
def test_delayed_warnings_are_shown_once_at_the_end(calls):
    with warnings.catch_warnings(record=True, action="always") as recorded:
        # Warnings must be shown even if the block ends with an error.
        with suppress(ValueError), numerics.WarnedOnce(RuntimeWarning):
            for text, kind in calls:
                numerics.warn_caller(text, kind)
            assert recorded == []
            raise ValueError
        numerics.warn_caller("after", UserWarning)
    messages = [(str(w.message), w.category) for w in recorded]
    others = {call for call in calls if call[1] is UserWarning}
    last = [call for call in calls if call[1] is RuntimeWarning][-1:]
    assert len(messages) == len(set(messages))
    assert set(messages) == others | set(last) | {("after", UserWarning)}


# ---------------------------------------------------------------------------- ties


@given(st.lists(st.tuples(st.integers(-5, 5), st.floats(-1, 1)), min_size=1, max_size=12))
def test_ties_within_rounding_keep_the_first_score(scored):
    """Scores that differ by rounding count as equal, at any scale."""
    for scale in (1e-150, 1.0, 1e150):
        scores = [scale * (level + np.sign(level) * 1e-9 * error) for level, error in scored]
        levels = [level for level, _ in scored]
        expected = sorted(range(len(levels)), key=lambda i: (-levels[i], i))
        assert numerics.best_first(scores) == expected
        assert numerics.is_better(max(scores), min(scores)) == (max(levels) > min(levels))
        # A failed run has the score -inf.
        assert numerics.best_first([*scores, -np.inf]) == [*expected, len(scores)]


@given(st.integers(0, 2**31 - 1))
def test_ties_between_states_go_to_the_first(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 4, size=(50, 4)).astype(float)
    rounded = p * (1 + 1e-10 * rng.uniform(-1, 1, size=p.shape))
    np.testing.assert_array_equal(numerics.most_probable(rounded), p.argmax(axis=1))
