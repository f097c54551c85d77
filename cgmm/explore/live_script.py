"""The scripts of a live figure: the files of each mode, and the code that starts them.

``live.py`` puts them into the page or the widget.
"""

from __future__ import annotations

import re
from importlib.resources import files

_EM = ("live_network.js", "live_mixture.js", "live_em.js")
_DRAWING = ("live_address.js", "live_figure.js", "live_panels.js")
_RIVALS = (*_EM, *_DRAWING, "live_rivals.js")
_STEPS = (*_EM, "live_lloyd.js", *_DRAWING, "live_steps.js")
# These files make up each mode; the last one defines an object with the name of the mode.
MODES = {
    "em": _STEPS,
    "relations": _STEPS,
    "rivals": _RIVALS,
    "weights": (*_RIVALS, "live_weights.js"),
    "kmeans": ("live_network.js", "live_lloyd.js", *_DRAWING, "live_shrink.js"),
    "metric": ("live_network.js", "live_rca.js", *_DRAWING, "live_metric.js"),
    "cut": ("live_network.js", "live_mixture.js", *_DRAWING, "live_cut.js"),
    "duel": (*_EM, *_DRAWING, "live_cut.js", "live_duel.js"),
    "companion": (*_EM, "live_rca.js", *_DRAWING, "live_rivals.js", "live_companion.js"),
}
PAGE = """(() => {{
"use strict";
{script}
for (const root of document.querySelectorAll(".cgmm-live[data-mode={mode}]:not([data-ready])")) {{
const data = root.querySelector("script[type='application/json']");
liveFigure(root, JSON.parse(data.textContent), {name});
}}
}})();
"""
MODULE = """{script}
export default {{
render({{ model, el }}) {{
el.innerHTML = model.get("html");
const root = el.querySelector(".cgmm-live"), data = root.querySelector("script");
liveFigure(root, JSON.parse(data.textContent), {name}, model);
}}
}};
"""


def page_script(mode: str) -> str:
    """Return the script of a page without a kernel."""
    return PAGE.format(script=script(mode), mode=mode, name=mode.upper())


def live_module(mode: str) -> str:
    """Return the module of the widget."""
    return MODULE.format(script=script(mode), name=mode.upper())


def script(mode: str) -> str:
    """Return the functions of a mode without comments and indentation."""
    whole = "".join(_read(name) for name in MODES[mode])
    bare = re.sub(r"^\s*//.*$", "", whole, flags=re.MULTILINE)
    return "\n".join(line.strip() for line in bare.splitlines() if line.strip())


def _read(name: str) -> str:
    return files("cgmm.explore").joinpath(name).read_text(encoding="utf8")
