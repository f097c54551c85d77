"""Replace ``cgmm/__init__.py`` where solutions are graded, so that they can import only the primer.

The checks use the rest of the package to test solutions, so solutions must not import it.
"""

__version__ = "1.0.0"


class SideInformation:
    """Empty class, by which the first cell of an assignment checks that cgmm is installed."""


def __getattr__(name: str) -> object:
    raise AttributeError(f"solutions cannot use cgmm.{name}: where they are graded, only "
                         "cgmm.primer can be imported")  # fmt: skip
