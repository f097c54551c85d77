"""The types that a user's checker is told, ``make lint``, are those of the values."""

import pytest
from typing_example import core, engines, estimators


@pytest.mark.parametrize("part", [core, engines, estimators])
def test_the_example_runs(part):
    part()
