"""Where EM starts, compared: points alone, or the relations as well.

For each problem and kind of side information: the mean over seeds of the log-evidence that one run
reaches, and of the share of points that end in the right component. No times: run it again when
a start changes, and see that ``init_params="auto"`` still deserves its order.

    python benchmarks/starts.py
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.datasets import load
from cgmm.metrics import matched_accuracy

STARTS = ("k-means++", "random", "random_from_data", "chunklets")
PROBLEMS = ("iris", "wine", "two_models", "vertical_classes")
SEEDS = range(20)


def relations(y: np.ndarray, kind: str, seed: int) -> scenarios.Relations:
    """Sixty pairs that do not overlap, or ten teachers with eight points each."""
    if kind == "pairs":
        return scenarios.random_pairs(y, 60, random_state=seed)
    return scenarios.teachers(y, 10, 8, random_state=seed)


def one_fit(data, kind: str, start: str, seed: int) -> tuple[float, float]:
    """Evidence and accuracy of one run; NaN where a component collapsed."""
    must_link, cannot_link = relations(data.y, kind, seed)
    model = ConstrainedGaussianMixture(
        len(data.target_names), init_params=start, random_state=seed, max_iter=300, reg_covar=1e-4
    )
    try:
        model.fit(data.X, must_link=must_link, cannot_link=cannot_link)
    except ValueError as error:
        if "not positive definite" not in str(error):
            raise
        return np.nan, np.nan
    return model.log_evidence_, matched_accuracy(data.y, model.labels_)


def main() -> None:
    """Print one line a problem, kind and start."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'problem':18}{'relations':11}{'start':18}{'evidence':>10}{'accuracy':>10}")
    for name in PROBLEMS:
        data = load(name)
        for kind in ("pairs", "teachers"):
            for start in STARTS:
                results = np.array([one_fit(data, kind, start, seed) for seed in SEEDS])
                evidence, accuracy = np.nanmean(results, axis=0)
                print(f"{name:18}{kind:11}{start:18}{evidence:10.1f}{accuracy:10.3f}", flush=True)


if __name__ == "__main__":
    main()
