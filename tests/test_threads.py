"""Threads do not change results: those of linear algebra, those of a pool, and copies.

Fits are compared to the last bit, except where the number of threads inside linear algebra changes:
there ``DIGITS`` says how close they are.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from cgmm import (
    ENGINES,
    MMC,
    RCA,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    MixedMixture,
    OnlineRCA,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
    SideInformation,
)
from cgmm.inference.gibbs import gibbs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # scipy silences its own line search through warning filters that all threads share.
    pytest.mark.filterwarnings("ignore:The line search algorithm:RuntimeWarning"),
]

# A library that splits a sum between threads changes its last digit, 1e-16, and a few iterations
# pass that on, at most a thousandfold each here. OpenBLAS splits rows and columns, never a sum, and
# there not a single bit has been seen to change.
DIGITS = 1e-10

Fit = tuple[object, np.ndarray, dict]


def clouds(n_samples: int, n_dims: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = np.arange(n_samples) % n_classes
    return rng.normal(size=(n_samples, n_dims)) + rng.normal(size=(n_classes, n_dims))[z], z


def pairs(n: int, n_classes: int) -> dict[str, np.ndarray]:
    """Return relations of n points: each is linked to one of its class and not to its neighbour."""
    first = np.arange(0, n, 2 * n_classes)
    return {
        "must_link": np.column_stack([first, first + n_classes]),
        "cannot_link": np.column_stack([first, first + 1]),
    }


def outcome(model) -> dict[str, object]:
    """Return everything that a fit has stored, by name."""
    found = {}
    for name, value in vars(model).items():
        if name == "mixture_":
            found |= outcome(value)
        elif name.endswith("_"):
            found[name] = value
    return found


def fit_model(fit: Fit) -> dict[str, np.ndarray]:
    model, X, known = fit
    return outcome(clone(model).fit(X, **known))


# ---------------------------------------------------------------------------- linear algebra


def large() -> dict[str, Fit]:
    """Return problems whose matrix products are large enough for a second thread."""
    X, _ = clouds(4000, 24, 12)
    wide, classes = clouds(1500, 100, 10)
    short = {"max_iter": 2, "random_state": 0}
    return {
        "mixture": (ConstrainedGaussianMixture(12, tol=0, **short), X, pairs(400, 12)),
        "k-means": (COPKMeans(12, **short), X, pairs(400, 12)),
        "mmc": (MMC(max_cannot_links=3000, **short), wide, {"y": classes}),
    }


LARGE = large()


def on_threads(n: int, fit: Fit) -> dict[str, np.ndarray]:
    """Return the fit with n BLAS threads."""
    with threadpool_limits(n, user_api="blas"):
        used = {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
        assert used == {n}
        return fit_model(fit)


@pytest.mark.parametrize("name", LARGE)
def test_one_and_two_threads_of_linear_algebra_agree(name):
    one, two = (on_threads(n, LARGE[name]) for n in (1, 2))
    assert one.keys() == two.keys()
    for attribute, value in one.items():
        if np.asarray(value).dtype.kind == "f":
            atol = DIGITS * np.abs(value).max(initial=0.0)
            np.testing.assert_allclose(two[attribute], value, rtol=0, atol=atol, err_msg=attribute)
        else:
            np.testing.assert_equal(two[attribute], value, err_msg=attribute)


# ---------------------------------------------------------------------------- a pool of threads


def small_fits() -> dict[str, Fit]:
    """Return one fit of each kind with the same points and side information."""
    X, z = clouds(120, 3, 3)
    known, gaps = pairs(60, 3), X.copy()
    gaps[::4, 0], gaps[1::5, 2] = np.nan, np.nan
    texts = np.column_stack([gaps.astype(object), np.where(X[:, 1] > 0, "a", "b")])
    chain = {"preferences": [[i, i + 1, -1.0] for i in range(12)]}
    mixture = partial(ConstrainedGaussianMixture, 3, random_state=0, reg_covar=1e-3)
    return {
        "gaussian": (mixture(n_init=2), X, known),
        "tree": (mixture(max_iter=20), X, chain),
        "clique": (mixture(), X, {"cannot_link": [*combinations(range(3), 2)]}),
        "mean_field": (mixture(inference="mean_field", max_iter=9), X, chain),
        "gibbs": (mixture(inference="gibbs", weights="ignore", max_iter=1), X, chain),
        "own": (
            mixture(inference=partial(gibbs, n_sweeps=20), weights="ignore", max_iter=3), X, chain
        ),
        "categorical": (
            ConstrainedCategoricalMixture(3, random_state=0), (X > 0).astype(int), known
        ),
        "gaps": (mixture(), gaps, known),
        "mixed": (MixedMixture(3, random_state=0, reg_covar=1e-3), texts, known),
        "classifier": (
            SemiSupervisedGaussianClassifier(), X, {"y": np.where(np.arange(120) < 30, z, -1)}
        ),
        "cop": (COPKMeans(3, n_init=3, random_state=0), X, known),
        "pck": (PCKMeans(3, n_init=3, random_state=0), X, known),
        "rca": (RCA(), X, {"y": z}),
        "online_rca": (OnlineRCA(random_state=0, n_epochs=2), X, {"y": np.arange(120) // 4}),
        "mmc": (MMC(), X, {"y": z}),
    }  # fmt: skip


FITS = small_fits()


@pytest.fixture
def quick_fit():
    """Make threads switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run_together(tasks: list[Callable]) -> list:
    """Return the results of tasks that all begin before any ends."""
    barrier = threading.Barrier(len(tasks))

    def begin(task):
        barrier.wait(timeout=60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(begin, tasks))


def test_concurrent_fits_equal_sequential_ones(quick_fit):
    tasks = [partial(fit_model, fit) for fit in FITS.values()]
    at_once = run_together(tasks * 2)
    alone = {task: task() for task in tasks}
    for task, result in zip(tasks * 2, at_once, strict=True):
        np.testing.assert_equal(result, alone[task], repr(task.args[0][0]))


def test_large_concurrent_fits_equal_sequential_ones(quick_fit):
    """Fits are so large that linear algebra releases Python's lock while it fills buffers."""
    X, _ = clouds(20_000, 6, 3)
    model = ConstrainedGaussianMixture(3, tol=0, max_iter=3, random_state=0)
    tasks = [partial(fit_model, (model, X * scale, {})) for scale in (1.0, 2.0, 3.0, 5.0)]
    with threadpool_limits(2, user_api="blas"):
        alone, at_once = [task() for task in tasks], run_together(tasks)
        used = {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
    assert used == {2}, "a fit gives back what it took"
    np.testing.assert_equal(at_once, alone)


def engine_problem(name: str) -> tuple[SideInformation, int]:
    """Return relations among twelve points that the engine can handle, and K."""
    to_one_node = [[i, 11] for i in range(3, 11)]
    all_pairs = [[i, j, (-1.0) ** j] for i, j in combinations(range(7), 2)]
    known = {
        "independent": {"must_link": [[0, 1], [2, 5]]},
        "clique": {"cannot_link": [*combinations(range(5), 2)]},
        "pairs": {"preferences": [[0, 1, -1.0], [2, 5, 1.0]]},
        "mean_field": {"preferences": [[i, i + 1, -1.0] for i in range(11)]},
        "enumerate": {"cannot_link": [[0, 1], [1, 2]], "must_link": to_one_node},
    }.get(name, {"preferences": all_pairs})
    return SideInformation.build(12, **known), 6


@pytest.mark.parametrize("name", ENGINES)
def test_threads_can_share_an_engine(name, quick_fit):
    side, n_states = engine_problem(name)
    rng = np.random.default_rng(0)
    unaries = rng.normal(size=(3, side.n_nodes, n_states))

    def ask(infer, unary):
        marginals = infer(unary)
        best = infer.most_probable(unary) if infer.finds_best else 0
        return marginals.nodes.tobytes(), marginals.log_z, np.asarray(best).tobytes()

    shared = ENGINES[name](side.graph)
    answers = run_together([partial(ask, shared, unary) for unary in unaries for _ in range(2)])
    for unary, *two in zip(unaries, answers[::2], answers[1::2], strict=True):
        np.testing.assert_equal(two, [ask(ENGINES[name](side.graph), unary)] * 2)
