"""Small experiments with result files, shared by several test modules."""

from pathlib import Path

import numpy as np

from cgmm.datasets import Dataset
from reruns import EXPERIMENTS, Experiment, Result, Setting, replicate

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "book" / "_data" / "replication"

# Fast, random, and without data: sizes of chunklets.
FAST = EXPERIMENTS["barhillel2005-fig3"]


def toy(run, **changes) -> Experiment:
    """Return an experiment of four realisations in two settings on the irises."""
    settings = (Setting("iris", (2,)), Setting("iris", (10,)))
    fields = {"name": "toy-fig1", "paper": "toy", "figure": "1", "columns": ("n",)}
    fields |= {"design": settings, "quick": settings[:1], "realisations": 4, "run": run}
    return Experiment(**fields | changes)


def draw(data, n, rng):
    """Return a number for each of two methods; the second sometimes fails."""
    value = float(rng.normal())
    yield Result("mean", "score", value * n)
    yield Result("rash", "score", None if value > 0 else value, "why, exactly" if value > 0 else "")


class Interrupted:
    """A version of ``draw`` that counts its calls and is interrupted at one of them."""

    def __init__(self, at: int | None = None):
        self.at, self.calls = at, []

    def __call__(self, data, n, rng):
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        self.calls.append(n)
        return draw(data, n, rng)


def written(experiment: Experiment, folder: Path, **options) -> bytes:
    assert replicate(experiment, folder, **options) == []
    assert not list(folder.glob("*.partial"))
    assert not list(folder.glob("*.new"))
    return (folder / f"{experiment.name}.csv").read_bytes()


def no_network(*args, **kwargs):
    raise OSError("no route to host")


def dataset(X, y) -> Dataset:
    return Dataset(X, y, "stand-in", "A stand-in", "made for this test", "none", ("x",), ("k",))


def three_clumps() -> Dataset:
    """Return clumps ten deviations apart, which every method finds without relations."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 30)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    return dataset(centres[y] + rng.normal(size=(90, 2)), y)


def by_method(results) -> dict[str, dict[str, float]]:
    """Return values by method and quantity; a method that failed has none."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        assert result.value is not None, result
        found.setdefault(result.method, {})[result.quantity] = result.value
    return found
