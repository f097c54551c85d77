"""Explain how to install packages that only some functions of this subpackage need.

Widgets, the page of an interview and the frames of explorers import their packages in this context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def explain_missing_package(package: str, purpose: str, extra: str) -> Iterator[None]:
    """Replace an ImportError in the block by one that says how to install the package.

    Parameters
    ----------
    package : str
        Name of the package that the block imports.
    purpose : str
        Subject of the error message, for example "a live figure".
    extra : str
        Name of the extra of this package that includes it.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {package}: install it with pip install "
            f"'constrained-mixtures[{extra}]'"
        ) from error
