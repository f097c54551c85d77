"""The types that a user's checker is told, ``make lint``, are those of the values."""

import typing_example


def test_the_example_runs():
    assert typing_example.run() == ["estimators", "core", "engines"]
