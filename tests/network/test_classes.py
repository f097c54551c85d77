"""Test `number_classes`: classes may have any names, and several values mean "unknown"."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm.network import SideInformation, number_classes

UNKNOWN = (-1, -1.0, None, float("nan"), np.nan, pd.NA, pd.NaT)
NAMES = st.one_of(
    st.lists(st.one_of(st.sampled_from(UNKNOWN), st.sampled_from(["aa", "b", "Ä"])), min_size=1),
    st.lists(st.one_of(st.sampled_from(UNKNOWN), st.integers(0, 5)), min_size=1),
)


def is_unknown(label):
    """Return True if a label is one of the values that mean "unknown"."""
    return any(label is none for none in UNKNOWN) or label == -1


@given(y=NAMES)
def test_number_classes_numbers_the_sorted_names_and_maps_unknown_to_minus_1(y):
    classes, numbers = number_classes(y)
    for label, number in zip(y, numbers, strict=True):
        assert (number == -1) if is_unknown(label) else (classes[number] == label)
    assert classes.tolist() == sorted({label for label in y if not is_unknown(label)})
    SideInformation.build(len(y), labels=numbers)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(["b", None, "a", "b"]),
        pd.Series(["b", np.nan, "a", "b"], dtype="category"),
        pl.Series(["b", None, "a", "b"]),
        pd.Series([2, None, 1, 2]),
        pd.Series([2, pd.NA, 1, 2], dtype="Int64"),
    ],
)
def test_number_classes_accepts_columns_of_tables(y):
    classes, numbers = number_classes(y)
    assert classes.tolist() in (["a", "b"], [1, 2])
    assert numbers.tolist() == [1, -1, 0, 1]


@pytest.mark.parametrize("text", ["-1", "nan", "", "-1.0"])
def test_number_classes_refuses_texts_that_look_like_unknown(text):
    """The remedy in the message is a call of numpy, which must work."""
    y = np.array(["aa", text, "bb"])
    with pytest.raises(ValueError, match=rf"y\[1\] is the text '{text}'.*np\.where") as info:
        number_classes(y)
    remedy = str(info.value).partition("y=")[2].partition(", or give")[0]
    assert number_classes(eval(remedy))[1].tolist() == [0, -1, 1]
