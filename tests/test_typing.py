"""Run ``typing_example.py``, whose types ``make lint`` checks, to compare the types of values."""

import pytest
from typing_example import check_core_functions, check_engines, check_estimators


@pytest.mark.parametrize("check", [check_core_functions, check_engines, check_estimators])
def test_typing_example_runs(check):
    check()
