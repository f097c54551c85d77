"""Small experiments, data sets and result files for the tests of this folder."""

from pathlib import Path

import numpy as np

from cgmm.datasets import Dataset
from reruns import EXPERIMENTS, Experiment, Result, Setting, replicate

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "book" / "_data" / "replication"

# This experiment draws sizes of chunklets, so it is fast and random and needs no data.
FAST = EXPERIMENTS["barhillel2005-fig3"]


def make_experiment(run, **changes) -> Experiment:
    """Build an experiment of four realisations in two settings with the data set iris."""
    settings = (Setting("iris", (2,)), Setting("iris", (10,)))
    fields = {"name": "toy-fig1", "paper": "toy", "figure": "1", "columns": ("n",)}
    fields |= {"design": settings, "quick": settings[:1], "realisations": 4, "run": run}
    return Experiment(**fields | changes)


def draw(data, n, rng):
    """Yield one result for each of two methods; the second sometimes fails."""
    value = float(rng.normal())
    yield Result("mean", "score", value * n)
    yield Result("rash", "score", None if value > 0 else value, "why, exactly" if value > 0 else "")


class InterruptedDraw:
    """Function that draws results, records its calls, and is interrupted at one of them."""

    def __init__(self, at: int | None = None):
        self.at, self.calls = at, []

    def __call__(self, data, n, rng):
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        self.calls.append(n)
        return draw(data, n, rng)


def run_and_read(experiment: Experiment, folder: Path, **options) -> bytes:
    """Run an experiment, check that no temporary file remains, and return the result file."""
    assert replicate(experiment, folder, **options) == []
    assert not list(folder.glob("*.partial"))
    assert not list(folder.glob("*.new"))
    return (folder / f"{experiment.name}.csv").read_bytes()


def fail_to_download(*args, **kwargs):
    """Raise an error as a download does when there is no network."""
    raise OSError("no route to host")


def make_dataset(X, y) -> Dataset:
    """Turn points and classes into a data set."""
    return Dataset(X, y, "stand-in", "A stand-in", "made for this test", "none", ("x",), ("k",))


def draw_separated_classes() -> Dataset:
    """Draw three classes ten standard deviations apart, which every method finds."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 30)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    return make_dataset(centres[y] + rng.normal(size=(90, 2)), y)


def group_by_method(results) -> dict[str, dict[str, float]]:
    """Return {method: {quantity: value}}; raise an error if a method failed."""
    values: dict[str, dict[str, float]] = {}
    for result in results:
        assert result.value is not None, result
        values.setdefault(result.method, {})[result.quantity] = result.value
    return values
