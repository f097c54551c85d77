"""Make a parametrised test from a table of refused calls and the messages of their errors."""

import pytest


def refused(function, *cases, error=ValueError):
    """Return a test that calls the function with each case and expects an error.

    A case is a tuple of positional arguments, an optional dictionary of keyword arguments, and a
    pattern that the error message must match.
    """

    @pytest.mark.parametrize("case", cases)
    def test(case):
        *arguments, message = case
        has_keywords = arguments and isinstance(arguments[-1], dict)
        keywords = arguments.pop() if has_keywords else {}
        with pytest.raises(error, match=message):
            function(*arguments, **keywords)

    return test
