"""Turn a table of refused calls and their messages into a test."""

import pytest


def refused(use, *cases, error=ValueError):
    """A test: used with a case, of which a dictionary has names, it raises what its end says."""

    @pytest.mark.parametrize("case", cases)
    def is_refused(case):
        *given, says = case
        named = given.pop() if given and isinstance(given[-1], dict) else {}
        with pytest.raises(error, match=says):
            use(*given, **named)

    return is_refused
