"""Turn a table of refused calls and their messages into a test."""

import pytest


def refused(use, *cases, error=ValueError):
    """Return a test that calls ``use`` with each case and expects the message at its end."""

    @pytest.mark.parametrize("case", cases)
    def is_refused(case):
        *given, says = case
        named = given.pop() if given and isinstance(given[-1], dict) else {}
        with pytest.raises(error, match=says):
            use(*given, **named)

    return is_refused
