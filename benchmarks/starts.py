"""Where EM starts, compared: points alone, or the relations as well.

For each problem and kind of side information: the mean over seeds of the log-evidence that one run
reaches, and of the share of points that end in the right component. Run it again when a start
changes, and see that ``init_params="auto"`` still deserves its order. The times of the fits are
written, and not printed: they are not what a start is chosen for.

    python benchmarks/starts.py

``--repeats N`` for more seeds, ``--smoke`` for one of iris.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.datasets import load
from cgmm.metrics import matched_accuracy

STARTS = ("k-means++", "random", "random_from_data", "chunklets")
PROBLEMS = ("iris", "wine", "two_models", "vertical_classes")
SIZES = {"iris": 150, "wine": 178, "two_models": 140, "vertical_classes": 600}
CASES = {(f"{name}, {kind}", SIZES[name]) for name in PROBLEMS for kind in ("pairs", "teachers")}


def relations(y: np.ndarray, kind: str, seed: int) -> scenarios.Relations:
    """Sixty pairs that do not overlap, or ten teachers with eight points each."""
    if kind == "pairs":
        return scenarios.random_pairs(y, 60, random_state=seed)
    return scenarios.teachers(y, 10, 8, random_state=seed)


def one_fit(data, kind: str, start: str, seed: int) -> tuple[float, float, float]:
    """Evidence, accuracy and time of one run; NaN where a component collapsed."""
    must_link, cannot_link = relations(data.y, kind, seed)
    model = ConstrainedGaussianMixture(
        len(data.target_names), init_params=start, random_state=seed, max_iter=300, reg_covar=1e-4
    )
    known = {"must_link": must_link, "cannot_link": cannot_link}
    try:
        seconds = common.seconds(lambda: model.fit(data.X, **known))
    except ValueError as error:
        if "not positive definite" not in str(error):
            raise
        return np.nan, np.nan, np.nan
    return model.log_evidence_, matched_accuracy(data.y, model.labels_), seconds


def compare(name: str, kind: str, n_seeds: int) -> Iterator[common.Row]:
    """One line a start."""
    data, times = load(name), {}
    for start in STARTS:
        results = np.array([one_fit(data, kind, start, seed) for seed in range(n_seeds)])
        evidence, accuracy = np.nanmean(results[:, :2], axis=0)
        print(f"{name:18}{kind:11}{start:18}{evidence:10.1f}{accuracy:10.3f}", flush=True)
        times[start] = results[:, 2]
    yield from common.rows("starts", f"{name}, {kind}", len(data.X), times)


def main() -> None:
    """Print one line a problem, kind and start, and write the file."""
    options = common.options(__doc__, repeats=20)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'problem':18}{'relations':11}{'start':18}{'evidence':>10}{'accuracy':>10}")
    measured: list[common.Row] = []
    for name in PROBLEMS[:1] if options.smoke else PROBLEMS:
        for kind in ("pairs", "teachers"):
            measured += compare(name, kind, options.repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
