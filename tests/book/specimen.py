"""A notebook with one of everything that a chapter may hold.

The browser tests add it to the book that they build, so that each of their checks has something to
check whatever the chapters contain.
"""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

PROSE = r"""# Specimen of a chapter

The zymurgist {cite:t}`shental2003` writes $p(x \mid \theta) = \sum_k \pi_k\, p_k(x)$,
and {eq}`specimen` is longer:

```{math}
:label: specimen
\log p(X \mid \theta) = \sum_{i=1}^N \log \sum_{k=1}^K \pi_k (2\pi)^{-D/2}
|\boldsymbol{\Sigma}_k|^{-1/2} \exp\bigl(-\tfrac12 (x_i - \mu_k)^{\mathsf T} \Sigma_k^{-1}
(x_i - \mu_k)\bigr) + \text{a tail that runs on and on and on and on}
```

In a line, $p(x_1, \dots, x_N \mid \theta) = \prod_{i=1}^N \sum_{k=1}^K \pi_k p_k(x_i)
= \exp \sum_i \log \sum_k \exp(\log \pi_k + \log p_k(x_i)) = \exp \log p(X \mid \theta)$.

:::{prf:theorem} Something rises
:label: specimen-theorem
$F(q, \theta) \le \log p(X \mid \theta)$.
:::

::::{dropdown} Proof
:::{prf:proof}
By the concavity of the logarithm.
:::
::::

:::{dropdown} Guess first
The hidden answer to the guess.
:::

:::{exercise}
:label: specimen-exercise
Show it, using {prf:ref}`specimen-theorem`.
:::

:::{solution} specimen-exercise
:class: dropdown
The hidden solution.
:::

| | |
|---|---|
| **Needs** | a table without a head |

| one | two | three | four | five | six | seven |
|---|---|---|---|---|---|---|
| 0.123456789 | 0.123456789 | 0.123456789 | 0.123456789 | 0.123456789 | 0.123456789 | 0.123456789 |
"""

DRAW = """import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7.2, 2), facecolor="#fdfdfb")
ax.plot([0, 1, 2], [0, 1, 0], "o-")
plt.show()"""

PRINT = 'print("a line of output that is too long for a telephone, " * 4)'

EXPLORE = """from cgmm.explore import Explorer, Slider


def draw(step):
    fig, ax = plt.subplots(figsize=(7.2, 2))
    ax.set_xlim(-1, 4)
    ax.plot([step], [0], "o")
    return fig


Explorer(
    draw,
    {"step": Slider("step", range(4))},
    title="A point that moves",
    describe=lambda step: f"A point at {step}.",
)"""

FIGURE = {
    "image": {"alt": "A line that rises from zero to one and falls again."},
    "figure": {"caption": "A line, $K = 1$.", "name": "specimen-figure"},
}


def specimen() -> NotebookNode:
    """The specimen, not yet executed."""
    cells = [
        new_markdown_cell(PROSE),
        new_code_cell(DRAW, metadata={"mystnb": FIGURE}),
        new_code_cell(PRINT, metadata={"tags": ["hide-input"]}),
        new_code_cell(EXPLORE),
    ]
    return new_notebook(cells=cells)
