"""Test that the code of the how-to page runs as printed."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "book/howto.md"


def test_code_of_the_howto_page_runs_as_printed():
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest("\n".join(snippets), {}, "howto", str(PAGE), 0)
    assert len(test.examples) > 80
    assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0
