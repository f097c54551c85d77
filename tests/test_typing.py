"""The types that ``make lint`` shows to a user's checker are those of the values."""

import pytest
from typing_example import core, engines, estimators


@pytest.mark.parametrize("part", [core, engines, estimators])
def test_the_example_runs(part):
    part()
