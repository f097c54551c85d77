"""Write the "guess first" boxes of a chapter as a quiz in GIFT, which Moodle imports.

Each box becomes an essay question. Its feedback is the answer that the book folds below the box, or
a word on where the chapter gives it. A weekly quiz then asks, before the session, what the chapter
will answer.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

BOOK = Path(__file__).resolve().parents[1] / "book"
BOX = re.compile(
    r"^(:{3,})\{admonition\} Guess first\n(?P<asked>.*?)^\1$"
    r"(?:\s*^(:{3,})\{dropdown\} Our answers?\n(?P<answer>.*?)^\3$)?", re.M | re.S
)  # fmt: skip
ELSEWHERE = "The chapter gives the answer in the text after this question."
ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*?) *<[^`>]*>|([^`]*))`")


def boxes(chapter: Path) -> list[tuple[str, str]]:
    """Return question and answer of each guess box of a chapter's notebook."""
    cells = json.loads(chapter.read_text(encoding="utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    text = "\n\n".join(texts)
    return [(_plain(match["asked"]), _plain(match["answer"] or ELSEWHERE))
            for match in BOX.finditer(text)]  # fmt: skip


def _plain(text: str) -> str:
    """Return Markdown without options, nested directives and roles."""
    lines = [line for line in text.splitlines() if not re.match(r":\w+:|:{3,}|%", line)]
    return ROLE.sub(lambda match: match[1] or match[2], "\n".join(lines)).strip()


def gift(chapter: str, questions: list[tuple[str, str]]) -> str:
    """Return a file in GIFT: an essay question for each pair of question and answer."""
    found = [f"$CATEGORY: {chapter}"]
    for number, (asked, answer) in enumerate(questions, start=1):
        feedback = f"{{####{_escaped(answer)}}}"
        found.append(f"::{chapter}-{number}::[markdown]{_escaped(asked)} {feedback}")
    return "\n\n".join(found) + "\n"


def _escaped(text: str) -> str:
    """Return text with GIFT's own characters escaped, and formulas as Moodle's MathJax knows them.

    GIFT reads a backslash before n as the end of a line, so that of ``\\nu`` becomes an entity.
    """
    text = re.sub(r"(?<!\$)\$(?!\$)([^$]+)\$", r"\\\\(\1\\\\)", text)
    text = re.sub(r"([~=#{}:])", r"\\\1", text)
    return re.sub(r"\n\s*\n", r"\\n\\n", text.replace("\\n", r"&\#92;n"))


def write_quizzes(chapters: list[str], out: Path) -> list[Path]:
    """Write the quiz of each chapter, by its number or name; all chapters if none is named."""
    known = {path.stem: path for path in sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))}
    for one in chapters:
        if not any(one in (name, name[:2]) for name in known):
            raise ValueError(f"there is no chapter {one!r}; there are {', '.join(known)}.")
    written = []
    for name, path in known.items():
        questions = boxes(path)
        if questions and (not chapters or name in chapters or name[:2] in chapters):
            out.mkdir(parents=True, exist_ok=True)
            written.append(out / f"quiz_{name}.gift.txt")
            written[-1].write_text(gift(name, questions), encoding="utf8")
    return written
