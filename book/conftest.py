"""Kernels of the chapters compute on one thread, as in `make notebooks`."""

from __future__ import annotations

import os

from notebooks import SINGLE_THREAD

os.environ.update(SINGLE_THREAD)
