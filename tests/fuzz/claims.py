"""How a broken claim is told, and the claims that are made of several kinds of answers."""

from __future__ import annotations

from typing import Any

import numpy as np


class BrokenContractError(AssertionError):
    """What came of a problem is neither a sound answer nor a clear refusal."""


def require(holds, complaint: str) -> None:
    """As assert, also under -O, and with a message that is worth reading."""
    if not np.all(holds):
        raise BrokenContractError(complaint)


def require_finite(model, *names: str) -> None:
    for name in names:
        value = np.asarray(getattr(model, name), dtype=float)
        require(np.isfinite(value), f"{name} is not finite: {value.ravel()[:8]}")


def _pairs(arguments: dict[str, Any], name: str) -> np.ndarray:
    pairs = np.asarray(() if arguments.get(name) is None else arguments[name], dtype=float)
    return pairs.reshape(-1, 2).astype(int) if pairs.size else np.empty((0, 2), dtype=int)


def hard_relations(arguments: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Must-links and cannot-links, those among the preferences too."""
    must, cannot = _pairs(arguments, "must_link"), _pairs(arguments, "cannot_link")
    preferences = np.asarray(arguments.get("preferences", ()), dtype=float)
    if preferences.size:
        rows, odds = preferences[:, :2].astype(int), preferences[:, 2]
        must = np.concatenate([must, rows[odds == np.inf]])
        cannot = np.concatenate([cannot, rows[odds == -np.inf]])
    return must, cannot


def require_relations(labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> None:
    broken = must[labels[must[:, 0]] != labels[must[:, 1]]]
    require(len(broken) == 0, f"labels_ breaks the must-links {broken[:3].tolist()}")
    broken = cannot[labels[cannot[:, 0]] == labels[cannot[:, 1]]]
    require(len(broken) == 0, f"labels_ breaks the cannot-links {broken[:3].tolist()}")
