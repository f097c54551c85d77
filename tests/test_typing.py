"""Run the script whose types ``make lint`` checks, so that the values must have these types."""

import pytest
from typing_example import check_core_functions, check_engines, check_estimators


@pytest.mark.parametrize("check", [check_core_functions, check_engines, check_estimators])
def test_typing_example_runs(check):
    check()
