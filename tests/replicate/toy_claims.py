"""A claim of a paper and rows of a result file, to be changed by a test."""

from __future__ import annotations

from cgmm.replicate.verdicts import Comparison


def claim(**changes) -> Comparison:
    fields = {"paper": "p", "figure": "1", "quantity": "score", "printed": "high", "file": "f"}
    fields |= {"by": ["data"], "where": {"quantity": "score"}, "ours": {"method": "a"}}
    fields |= {
        "claim": "above",
        "bound": 0.5,
        "tolerance": 0.0,
        "verdict": "reproduced",
        "data": "identity",
    }
    return Comparison(**fields | changes)


def row(value, data="iris", method="a", realisation=0, quantity="score") -> dict[str, str]:
    value = "" if value is None else str(value)
    return {
        "data": data, "method": method, "realisation": str(realisation), "quantity": quantity,
        "value": value,
    }  # fmt: skip
