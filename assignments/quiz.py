"""Write the "guess first" boxes of a chapter as a quiz in the format GIFT, which Moodle imports.

Each box becomes an essay question. Its feedback is the answer that the book shows below the box, or
says where the chapter answers it. Students can take the quiz before they read the chapter.
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


def read_guess_boxes(chapter: Path) -> list[tuple[str, str]]:
    """Return (question, answer) of each "guess first" box in a chapter."""
    cells = json.loads(chapter.read_text(encoding="utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    text = "\n\n".join(texts)
    return [(_strip_markup(match["asked"]), _strip_markup(match["answer"] or ELSEWHERE))
            for match in BOX.finditer(text)]  # fmt: skip


def _strip_markup(text: str) -> str:
    """Return MyST Markdown without options, nested directives and roles."""
    lines = [line for line in text.splitlines() if not re.match(r":\w+:|:{3,}|%", line)]
    return ROLE.sub(lambda match: match[1] or match[2], "\n".join(lines)).strip()


def write_gift(chapter: str, questions: list[tuple[str, str]]) -> str:
    """Return the text of a GIFT file with an essay question per (question, answer)."""
    found = [f"$CATEGORY: {chapter}"]
    for number, (asked, answer) in enumerate(questions, start=1):
        feedback = f"{{####{_escape(answer)}}}"
        found.append(f"::{chapter}-{number}::[markdown]{_escape(asked)} {feedback}")
    return "\n\n".join(found) + "\n"


def _escape(text: str) -> str:
    r"""Return text with special characters of GIFT escaped, and formulas in Moodle's notation.

    GIFT reads ``\n`` as the end of a line, so the backslash of ``\nu`` is written as an entity.
    """
    text = re.sub(r"(?<!\$)\$(?!\$)([^$]+)\$", r"\\\\(\1\\\\)", text)
    text = re.sub(r"([~=#{}:])", r"\\\1", text)
    return re.sub(r"\n\s*\n", r"\\n\\n", text.replace("\\n", r"&\#92;n"))


def write_quizzes(chapters: list[str], out: Path) -> list[Path]:
    """Write the quizzes of the chapters with the given numbers or names, or of all chapters."""
    known = {path.stem: path for path in sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))}
    for one in chapters:
        if not any(one in (name, name[:2]) for name in known):
            raise ValueError(f"there is no chapter {one!r}; there are {', '.join(known)}.")
    written = []
    for name, path in known.items():
        questions = read_guess_boxes(path)
        if questions and (not chapters or name in chapters or name[:2] in chapters):
            out.mkdir(parents=True, exist_ok=True)
            written.append(out / f"quiz_{name}.gift.txt")
            written[-1].write_text(write_gift(name, questions), encoding="utf8")
    return written
