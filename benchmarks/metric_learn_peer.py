"""Adapt metric-learn 0.7.0 to the current scikit-learn, for the benchmarks ``mmc`` and ``rca``.

metric-learn passes the argument force_all_finite, which scikit-learn has renamed to
ensure_all_finite. This module renames the argument and changes nothing else. ``metric_learn`` is
None if the package is not installed.
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


def accept_old_name(check: Callable) -> Callable:
    """Return a version of scikit-learn's check that accepts the old name of the argument."""

    def call(*args, **kwargs):
        if "force_all_finite" in kwargs:
            kwargs["ensure_all_finite"] = kwargs.pop("force_all_finite")
        return check(*args, **kwargs)

    return call


def adapt_metric_learn() -> None:
    """Make metric-learn work with the current scikit-learn, or print that it is not installed."""
    if metric_learn is None:
        common.report_missing_package("metric-learn")
        return
    # Hide warnings about functions that future versions of scikit-learn will remove.
    warnings.simplefilter("ignore", FutureWarning)
    for check in ("check_array", "check_X_y"):
        setattr(metric_learn._util, check, accept_old_name(getattr(metric_learn._util, check)))
