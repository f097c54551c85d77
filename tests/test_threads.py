"""Test that results do not depend on threads, neither of linear algebra nor of a pool.

Fits are compared bit by bit, except for different numbers of threads in linear algebra, whose
results may differ by ``RELATIVE_ERROR``.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from answers import draw_clouds
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import cgmm
from cgmm.inference.gibbs import gibbs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # SciPy suppresses this warning by filters that all threads share, so that it may be shown.
    pytest.mark.filterwarnings("ignore:The line search algorithm:RuntimeWarning"),
]

# A library that splits sums between threads changes the last digit, and each of two iterations
# multiplies the error by up to 1000. (OpenBLAS does not split sums and gives equal bits.)
RELATIVE_ERROR = 1e-10

Fit = tuple[object, np.ndarray, dict]


def make_relations(n: int, n_classes: int) -> dict[str, np.ndarray]:
    """Return true must-links and cannot-links among the first n points of ``draw_clouds``."""
    first = np.arange(0, n, 2 * n_classes)
    return {
        "must_link": np.column_stack([first, first + n_classes]),
        "cannot_link": np.column_stack([first, first + 1]),
    }


def collect_attributes(model) -> dict[str, object]:
    """Return all fitted attributes, including those of an inner mixture."""
    attributes = {}
    for name, value in vars(model).items():
        if name == "mixture_":
            attributes |= collect_attributes(value)
        elif name.endswith("_"):
            attributes[name] = value
    return attributes


def fit_model(fit: Fit) -> dict[str, np.ndarray]:
    """Fit a clone of the model, and return its attributes."""
    model, X, known = fit
    return collect_attributes(clone(model).fit(X, **known))


# ---------------------------------------------------------------------------- linear algebra


def make_large_fits() -> dict[str, Fit]:
    """Return problems whose matrix products are large enough for a second thread."""
    X, _ = draw_clouds(4000, 24, 12)
    wide, classes = draw_clouds(1500, 100, 10)
    short, known = {"max_iter": 2, "random_state": 0}, make_relations(400, 12)
    return {
        "mixture": (cgmm.ConstrainedGaussianMixture(12, tol=0, **short), X, known),
        "k-means": (cgmm.COPKMeans(12, **short), X, known),
        "mmc": (cgmm.MMC(max_cannot_links=3000, **short), wide, {"y": classes}),
    }


LARGE_FITS = make_large_fits()


def fit_with_threads(n: int, fit: Fit) -> dict[str, np.ndarray]:
    """Fit with n BLAS threads, and return the attributes."""
    with threadpool_limits(n, user_api="blas"):
        used = {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
        assert used == {n}
        return fit_model(fit)


@pytest.mark.parametrize("name", LARGE_FITS)
def test_fits_with_one_and_two_blas_threads_agree(name):
    with_one, with_two = (fit_with_threads(n, LARGE_FITS[name]) for n in (1, 2))
    assert with_one.keys() == with_two.keys()
    for attribute, value in with_one.items():
        if np.asarray(value).dtype.kind == "f":
            atol = RELATIVE_ERROR * np.abs(value).max(initial=0.0)
            np.testing.assert_allclose(
                with_two[attribute], value, rtol=0, atol=atol, err_msg=attribute
            )
        else:
            np.testing.assert_equal(with_two[attribute], value, err_msg=attribute)


# ---------------------------------------------------------------------------- a pool of threads


def make_small_fits() -> dict[str, Fit]:
    """Return one fit for each kind of estimator and of inference."""
    X, z = draw_clouds(120, 3, 3)
    known, gaps = make_relations(60, 3), X.copy()
    gaps[::4, 0], gaps[1::5, 2] = np.nan, np.nan
    texts = np.column_stack([gaps.astype(object), np.where(X[:, 1] > 0, "a", "b")])
    chain = {"preferences": [[i, i + 1, -1.0] for i in range(12)]}
    mixture = partial(cgmm.ConstrainedGaussianMixture, 3, random_state=0, reg_covar=1e-3)
    return {
        "gaussian": (mixture(n_init=2), X, known),
        "tree": (mixture(max_iter=20), X, chain),
        "clique": (mixture(), X, {"cannot_link": [*combinations(range(3), 2)]}),
        "mean_field": (mixture(inference="mean_field", max_iter=9), X, chain),
        "gibbs": (mixture(inference="gibbs", weights="ignore", max_iter=1), X, chain),
        "function as engine": (
            mixture(inference=partial(gibbs, n_sweeps=20), weights="ignore", max_iter=3), X, chain
        ),
        "categorical": (
            cgmm.ConstrainedCategoricalMixture(3, random_state=0), (X > 0).astype(int), known
        ),
        "gaps": (mixture(), gaps, known),
        "mixed": (cgmm.MixedMixture(3, random_state=0, reg_covar=1e-3), texts, known),
        "classifier": (
            cgmm.SemiSupervisedGaussianClassifier(), X, {"y": np.where(np.arange(120) < 30, z, -1)}
        ),
        "cop": (cgmm.COPKMeans(3, n_init=3, random_state=0), X, known),
        "pck": (cgmm.PCKMeans(3, n_init=3, random_state=0), X, known),
        "rca": (cgmm.RCA(), X, {"y": z}),
        "online_rca": (cgmm.OnlineRCA(random_state=0, n_epochs=2), X, {"y": np.arange(120) // 4}),
        "mmc": (cgmm.MMC(), X, {"y": z}),
    }  # fmt: skip


FITS = make_small_fits()


@pytest.fixture
def _switch_often():
    """Make threads switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run_together(tasks: list[Callable]) -> list:
    """Run all tasks at the same time, and return their results."""
    barrier = threading.Barrier(len(tasks))

    def wait_and_run(task):
        barrier.wait(timeout=60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(wait_and_run, tasks))


@pytest.mark.usefixtures("_switch_often")
def test_concurrent_fits_equal_sequential_ones():
    tasks = [partial(fit_model, fit) for fit in FITS.values()]
    concurrent = run_together(tasks * 2)
    sequential = {task: task() for task in tasks}
    for task, result in zip(tasks * 2, concurrent, strict=True):
        np.testing.assert_equal(result, sequential[task], repr(task.args[0][0]))


@pytest.mark.usefixtures("_switch_often")
def test_large_concurrent_fits_equal_sequential_ones():
    """These fits are so large that linear algebra releases Python's lock."""
    X, _ = draw_clouds(20_000, 6, 3)
    model = cgmm.ConstrainedGaussianMixture(3, tol=0, max_iter=3, random_state=0)
    tasks = [partial(fit_model, (model, X * scale, {})) for scale in (1.0, 2.0, 3.0, 5.0)]
    with threadpool_limits(2, user_api="blas"):
        sequential, concurrent = [task() for task in tasks], run_together(tasks)
        used = {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
    assert used == {2}, "a fit must restore the number of threads"
    np.testing.assert_equal(concurrent, sequential)


@pytest.mark.parametrize("name", cgmm.ENGINES)
@pytest.mark.usefixtures("_switch_often")
def test_threads_can_share_an_engine(name):
    known = {
        "independent": {"must_link": [[0, 1], [2, 5]]},
        "clique": {"cannot_link": [*combinations(range(5), 2)]},
        "pairs": {"preferences": [[0, 1, -1.0], [2, 5, 1.0]]},
        "enumerate": {"cannot_link": [[0, 1], [1, 2]], "must_link": [[3, 4], [4, 5], [5, 6]]},
    }.get(name, {"preferences": [[i, j, (-1.0) ** j] for i, j in combinations(range(7), 2)]})
    side, n_states = cgmm.SideInformation.build(7, **known), 6
    rng = np.random.default_rng(0)
    unaries = rng.normal(size=(3, side.n_nodes, n_states))

    def infer_bytes(infer, unary):
        marginals = infer(unary)
        best = infer.most_probable(unary) if infer.finds_best else 0
        return marginals.nodes.tobytes(), marginals.log_z, np.asarray(best).tobytes()

    shared = cgmm.ENGINES[name](side.graph)
    tasks = [partial(infer_bytes, shared, unary) for unary in unaries for _ in range(2)]
    results = run_together(tasks)
    for unary, *two in zip(unaries, results[::2], results[1::2], strict=True):
        np.testing.assert_equal(two, [infer_bytes(cgmm.ENGINES[name](side.graph), unary)] * 2)
