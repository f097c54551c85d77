"""Source code is shown as it stands in the file, with the docstrings' first lines."""

from __future__ import annotations

import pytest

from cgmm.explore import Explorer, source
from cgmm.plot import looks

pytestmark = pytest.mark.filterwarnings("error")


def test_source_of_a_method_stands_at_the_margin():
    assert repr(source(Explorer.html)).startswith("def html(")


def test_source_is_code_with_its_summary_that_still_runs():
    shown = source(looks.marker, looks.tint)
    assert [word.partition("\n")[0] for word in shown.split('"""')[1::2]] == [
        function.__doc__.partition("\n")[0] for function in (looks.marker, looks.tint)
    ]
    assert shown._repr_markdown_().startswith("```python\ndef marker(")
    assert shown.count("\n\n\ndef tint(") == 1
    namespace = dict(vars(looks))
    exec("from __future__ import annotations\n" + shown, namespace)
    assert namespace["tint"] is not looks.tint
    assert namespace["tint"](looks.INK) == looks.tint(looks.INK)
