"""Read the settings of the course from course.toml; CONTRACT.md explains each setting."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import NamedTuple

PROGRAM = Path(__file__).resolve().parent
COURSE = Path(os.environ.get("MARKAPART_COURSE", ".")).resolve()


class Settings(NamedTuple):
    """Settings in course.toml."""

    imports: list[str]
    """Modules that a box imports once, before it runs any notebook, e.g. ``scipy.stats``."""
    package: str = ""
    """The package whose functions judge solutions; boxes hide it."""
    shown: tuple[str, ...] = ()
    """Parts of the package that students' code may import."""
    stub: str = ""
    """The file that stands in place of the package's ``__init__.py`` in a box."""
    project: str = ""
    """The folder that the package is installed from, in containers."""
    project_files: tuple[str, ...] = ()
    """The files and folders of the project that an installation needs."""


def load_settings() -> Settings:
    """Read course.toml; raise ValueError if it is missing or has an unknown entry."""
    path = COURSE / "course.toml"
    if not path.is_file():
        raise ValueError(
            f"{path} is missing: set MARKAPART_COURSE to the folder of a course, see CONTRACT.md."
        )
    try:
        return Settings(**tomllib.loads(path.read_text(encoding="utf8")))
    except TypeError as error:
        raise ValueError(
            f"{path}: {error}; the entries are {', '.join(Settings._fields)}."
        ) from None
