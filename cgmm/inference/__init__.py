"""Inference engines: one a file, all of one signature, listed in ``ENGINES``.

An engine takes a :class:`~cgmm.network.Graph`, does once what depends on the structure alone, and
returns a function from unary log-potentials to :class:`~cgmm.network.Marginals`.
"""

from cgmm.inference.enumerate import enumerate_assignments
from cgmm.inference.independent import independent
from cgmm.network import Engine

__all__ = ["ENGINES", "enumerate_assignments", "independent"]

ENGINES: dict[str, Engine] = {
    "independent": independent,
    "enumerate": enumerate_assignments,
}
"""Every engine by the name under which estimators accept it."""
