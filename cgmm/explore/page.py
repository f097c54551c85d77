"""The explorer in a static page: HTML, style and script."""

from __future__ import annotations

from html import escape
from typing import cast

from cgmm.explore.controls import Choice, Control, Slider
from cgmm.explore.frames import Frame, data_uri

# ---------------------------------------------------------------------------- the page


def image_html(frame: Frame) -> str:
    """The picture with its text; decoded before it is shown, so that no blank one flashes up."""
    source, (width, height) = data_uri(frame.image), frame.size
    return (
        f'<img class="cgmm-explorer-frame" src="{source}" alt="{escape(frame.text)}" '
        f'width="{width}" height="{height}" decoding="sync" '
        'style="max-width: min(100%, 46rem); height: auto">'
    )


def control_html(name: str, control: Control) -> str:
    """A control in native elements, disabled until the script takes it over."""
    return (
        _choice_html(name, control)
        if isinstance(control, Choice)
        else _slider_html(cast("Slider", control))
    )


def _slider_html(slider: Slider) -> str:
    # The value stands outside the label: the slider's name must not change as it moves.
    shown = escape(slider.names[slider.start])
    button = f'<button type="button">{escape(slider.button)}</button>' if slider.button else ""
    return (
        '<div class="cgmm-explorer-slider" data-control>'
        f"<label><span>{escape(slider.label)}</span>"
        f'<input type="range" min="0" max="{len(slider.values) - 1}" value="{slider.start}" '
        f'aria-valuetext="{shown}" {_OWN_KEYS}></label>'
        f'<output aria-live="off">{shown}</output>{button}</div>'
    )


def _choice_html(name: str, choice: Choice) -> str:
    buttons = [
        f'<label><input type="radio" name="{escape(name)}" value="{i}" {_OWN_KEYS}'
        f"{' checked' if i == choice.start else ''}> {escape(option)}</label>"
        for i, option in enumerate(choice.names)
    ]
    return (
        '<fieldset class="cgmm-explorer-choice" data-control>'
        f"<legend>{escape(choice.label)}</legend>{''.join(buttons)}</fieldset>"
    )


# JupyterLab's notebook takes the arrow keys from everything that does not carry this.
_OWN_KEYS = "data-lm-suppress-shortcuts"

# No ids: two copies of one explorer may stand on a page. The form keeps their radio buttons apart.
PAGE = """\
<div class="cgmm-explorer" role="group" aria-label="Explorer: {title}">
<style>{style}</style>
<p class="cgmm-explorer-title">{title}</p>
{image}
<form class="cgmm-explorer-controls" autocomplete="off"><fieldset disabled>
{controls}
</fieldset></form>
<p class="cgmm-explorer-status" role="status">{text}</p>
<p class="cgmm-explorer-still">{still}</p>
<script type="application/json">{data}</script>
<script>{script}</script>
</div>"""

# Colours of the book's theme, else of JupyterLab, else of a white page.
PAGE_STYLE = """
.cgmm-explorer {
  --text: var(--pst-color-text-base, var(--jp-content-font-color1, #1d2129));
  --quiet: var(--pst-color-text-muted, var(--jp-content-font-color1, #48566b));
  --page: var(--pst-color-background, var(--jp-layout-color0, #fff));
  --raised: var(--pst-color-surface, var(--jp-layout-color2, #f3f4f5));
  --line: var(--pst-color-border, var(--jp-border-color1, #c9cfd6));
  --accent: var(--pst-color-primary, var(--jp-brand-color1, #0a7d91));
  box-sizing: border-box; max-width: 46rem; margin: 1rem 0; padding: 0.75rem 1rem;
  border: 1px solid var(--line); border-radius: 0.5rem;
  background: var(--page); color: var(--text); line-height: 1.5;
}
.cgmm-explorer p { margin: 0; }
.cgmm-explorer .cgmm-explorer-title { margin-bottom: 0.5rem; font-weight: 600; }
.cgmm-explorer img.cgmm-explorer-frame {
  display: block; box-sizing: border-box; width: 100%; max-width: 100%; height: auto;
  margin: 0; padding: 0 !important; border-radius: 0.25rem;
}
.cgmm-explorer fieldset { min-width: 0; margin: 0; padding: 0; border: 0; }
.cgmm-explorer-controls { margin: 0.75rem 0; }
.cgmm-explorer-controls > fieldset { display: grid; gap: 0.5rem; }
.cgmm-explorer-slider { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem; }
.cgmm-explorer-slider label {
  display: flex; flex: 1 1 14rem; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem;
  margin: 0;
}
.cgmm-explorer input { margin: 0; accent-color: var(--accent); cursor: pointer; }
.cgmm-explorer input[type="range"] { flex: 1 1 9rem; min-width: 0; height: 1.75rem; }
.cgmm-explorer output { min-width: 3ch; font-variant-numeric: tabular-nums; }
.cgmm-explorer button {
  min-height: 2rem; padding: 0.1rem 0.9rem; border: 1px solid var(--quiet); border-radius: 0.3rem;
  background: var(--raised); color: var(--text); font: inherit; cursor: pointer;
}
.cgmm-explorer :disabled { cursor: default; opacity: 0.7; }
.cgmm-explorer fieldset:disabled { opacity: 1; }
.cgmm-explorer legend {
  float: left; width: auto; margin: 0 0.75rem 0 0; padding: 0; font-size: inherit;
  line-height: 1.75rem;
}
.cgmm-explorer-choice label {
  display: inline-flex; align-items: center; gap: 0.35rem; min-height: 1.75rem;
  margin: 0 1rem 0 0; cursor: pointer;
}
.cgmm-explorer :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.cgmm-explorer .cgmm-explorer-status { min-height: 3em; }
.cgmm-explorer .cgmm-explorer-still { color: var(--quiet); font-size: 0.9em; }
.cgmm-explorer[data-ready] .cgmm-explorer-still { display: none; }
html[data-theme="dark"] .cgmm-explorer img.cgmm-explorer-frame {
  background: none !important; filter: invert(0.93) hue-rotate(180deg);
}
@media print { .cgmm-explorer-controls, .cgmm-explorer-still { display: none; } }
"""

PAGE_SCRIPT = """
for (const root of document.querySelectorAll(".cgmm-explorer:not([data-ready])")) {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const image = root.querySelector("img");
  const pictures = data.pictures.map((picture) => picture ?? image.src);
  const controls = [...root.querySelectorAll("[data-control]")];
  const position = (control) =>
    Number(control.querySelector("input[type='range'], input:checked").value);

  const show = () => {
    // The last control runs fastest.
    const at = controls.reduce((at, c, i) => at * data.names[i].length + position(c), 0);
    image.src = pictures[data.frame[at]];
    image.alt = root.querySelector("[role='status']").textContent = data.text[at];
    controls.forEach((control, i) => {
      const slider = control.querySelector("input[type='range']");
      if (!slider) return;
      const name = data.names[i][position(control)];
      slider.setAttribute("aria-valuetext", name);
      control.querySelector("output").textContent = name;
    });
  };

  controls.forEach((control, i) => {
    control.querySelector("button")?.addEventListener("click", () => {
      const slider = control.querySelector("input");
      slider.value = (position(control) + 1) % data.names[i].length;
      show();
    });
  });
  root.querySelector("form").addEventListener("input", show);
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  root.querySelector("fieldset").disabled = false;
  root.dataset.ready = "";
}
"""
