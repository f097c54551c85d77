"""Run the script whose types ``make lint`` checks, so that the values must have these types."""

import pytest
from typing_example import core, engines, estimators


@pytest.mark.parametrize("part", [core, engines, estimators])
def test_typing_example_runs(part):
    part()
