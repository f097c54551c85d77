"""Adapt metric-learn 0.7.0 to today's scikit-learn; None if it is not installed.

Its code passes an argument that scikit-learn has renamed since (force_all_finite, now
ensure_all_finite); that is put right here, and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import common

try:
    import metric_learn
    import metric_learn._util
except ImportError:
    metric_learn = None


def renamed(check: Callable) -> Callable:
    """Return scikit-learn's check under the old name of its argument."""

    def call(*args, **kwargs):
        if "force_all_finite" in kwargs:
            kwargs["ensure_all_finite"] = kwargs.pop("force_all_finite")
        return check(*args, **kwargs)

    return call


def prepare() -> None:
    """Make metric-learn importable, or return None."""
    if metric_learn is None:
        common.without("metric-learn")
        return
    # It calls functions that scikit-learn will drop, too.
    warnings.simplefilter("ignore", FutureWarning)
    for check in ("check_array", "check_X_y"):
        setattr(metric_learn._util, check, renamed(getattr(metric_learn._util, check)))
