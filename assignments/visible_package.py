"""The part of cgmm that graded solutions can import: this file and ``cgmm.primer``.

A box shows this file in place of the package's own ``__init__.py``. The rest of the package judges
the solutions, so they cannot import it.
"""

__version__ = "1.0.0"


class SideInformation:
    """The name by which the first cell of an assignment knows the right package."""


def __getattr__(name: str) -> object:
    raise AttributeError(f"solutions cannot use cgmm.{name}: where they are graded, only "
                         "cgmm.primer can be imported")  # fmt: skip
