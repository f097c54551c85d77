"""Threads change nothing: those of linear algebra, those of a pool, those of joblib, and copies.

Fits are compared to the last bit, except where the number of threads inside linear algebra changes:
there ``DIGITS`` says how close they are.
"""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from cgmm import (
    ENGINES,
    MMC,
    RCA,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    OnlineRCA,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
    SideInformation,
)
from cgmm.inference.clique import _sets, _transitions, clique
from cgmm.inference.gibbs import gibbs
from cgmm.replicate import Experiment, Setting, attempt, realise, tasks_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # scipy silences its own line search through filters that all threads share.
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
    """Of n points two by two: each tied to one of its class, and kept from its neighbour."""
    first = np.arange(0, n, 2 * n_classes)
    return {
        "must_link": np.column_stack([first, first + n_classes]),
        "cannot_link": np.column_stack([first, first + 1]),
    }


def outcome(model) -> dict[str, np.ndarray]:
    """Everything that a fit has left, by name."""
    found = {}
    for name, value in vars(model).items():
        if name == "mixture_":
            found |= outcome(value)
        elif name.endswith("_") and name != "classes_":
            parts = value if isinstance(value, list) else [value]
            found |= {f"{name}{i}": in_bytes(part) for i, part in enumerate(parts)}
    return found


def in_bytes(value: object) -> np.ndarray:
    """The numbers, or, of the report of the engine, its words."""
    return np.asarray(repr(value) if isinstance(value, tuple) else value)


def is_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Byte for byte."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


def fitted(fit: Fit) -> dict[str, np.ndarray]:
    model, X, known = fit
    return outcome(clone(model).fit(X, **known))


# ---------------------------------------------------------------------------- linear algebra


def large(name: str) -> Fit:
    """A problem whose matrix products are worth a second thread, where there are any."""
    settings = {"tol": 0, "max_iter": 4, "random_state": 0}
    if name in ("rca", "rca_components", "online_rca", "mmc"):
        # A thread's time is booked from tick to tick; with few points RCA is over before one.
        X, z = clouds(15_000 if name == "rca" else 1500, 100, 10)
        model = {
            "rca": RCA(),
            "rca_components": RCA(n_components=3),
            "online_rca": OnlineRCA(n_epochs=1, random_state=0),
            "mmc": MMC(max_iter=3, max_cannot_links=3000, random_state=0),
        }[name]
        return model, X, {"y": z}
    X, z = clouds(4000, 24, 12)
    known = pairs(400, 12)
    if name == "categorical":
        return ConstrainedCategoricalMixture(12, **settings), (X > 0).astype(int), known
    if name == "classifier":
        model = SemiSupervisedGaussianClassifier(tol=0, max_iter=4)
        return model, X, {"y": np.where(np.arange(len(z)) < 400, z, -1)}
    if name in ("cop", "pck"):
        return {"cop": COPKMeans, "pck": PCKMeans}[name](12, max_iter=4, random_state=0), X, known
    if name == "gibbs":
        settings |= {"inference": partial(gibbs, n_sweeps=20), "weights": "ignore", "max_iter": 2}
        return ConstrainedGaussianMixture(12, **settings), X, known
    return ConstrainedGaussianMixture(12, covariance_type=name, **settings), X, known


# Whether BLAS has enough to do for a second thread; blocks for the cache keep the others small.
WITH_BLAS = {
    # Mixtures keep linear algebra to the thread that calls it.
    "full": False,
    "tied": False,
    "diag": False,
    "spherical": False,
    "gibbs": False,
    "categorical": False,
    "classifier": False,
    "cop": False,
    "pck": False,
    "rca": True,
    "rca_components": True,
    "online_rca": True,
    "mmc": True,
}


def on_threads(n: int, fit: Fit) -> tuple[dict[str, np.ndarray], float]:
    """The fit with n threads in BLAS, and the time in which others than this one were at work."""
    with threadpool_limits(n, user_api="blas"):
        used = {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
        assert used == {n}
        before = work_of_others()
        result = fitted(fit)
        return result, work_of_others() - before


def work_of_others() -> float:
    """Nanoseconds that the other threads of this process have computed; NaN where unknown."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return np.nan
    mine = str(threading.get_native_id())
    others = [task for task in tasks.iterdir() if task.name != mine]
    return float(sum(int((task / "schedstat").read_text().split()[0]) for task in others))


@pytest.mark.parametrize("name", WITH_BLAS)
def test_one_and_two_threads_of_linear_algebra_agree(name):
    fit = large(name)
    one, _ = on_threads(1, fit)
    two, work = on_threads(2, fit)
    assert one.keys() == two.keys()
    for attribute, value in one.items():
        other = two[attribute]
        if value.dtype.kind == "f":
            scale = abs(value).max(initial=0.0)
            np.testing.assert_allclose(other, value, rtol=0, atol=DIGITS * scale, err_msg=attribute)
        else:
            np.testing.assert_array_equal(other, value, err_msg=attribute)
    # The second thread has really been at work, where the table says so.
    if WITH_BLAS[name] and np.isfinite(work):
        assert work > 0


# ---------------------------------------------------------------------------- a pool of threads


def small_fits() -> dict[str, Fit]:
    """One of each kind, on the same points and with the same things known."""
    X, z = clouds(120, 3, 3)
    known = pairs(60, 3)
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
def hasty():
    """Threads take turns as often as they can, and what is remembered is forgotten."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    _sets.cache_clear()
    _transitions.cache_clear()
    yield
    sys.setswitchinterval(interval)


def together(tasks: list[Callable]) -> list:
    """The results of tasks that are all begun before any is finished."""
    barrier = threading.Barrier(len(tasks))

    def begin(task):
        barrier.wait(timeout=60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(begin, tasks))


def test_fits_side_by_side_are_those_one_after_the_other(hasty):
    tasks = [partial(fitted, fit) for fit in FITS.values()] * 2
    at_once = together(tasks)
    for task, result in zip(tasks, at_once, strict=True):
        assert is_same(result, task()), task.args[0][0]


def test_large_fits_side_by_side_are_those_one_after_the_other(hasty):
    """So large that linear algebra lets other threads run while it writes into its buffers."""
    X, _ = clouds(20_000, 6, 3)
    model = ConstrainedGaussianMixture(3, tol=0, max_iter=3, random_state=0)
    tasks = [partial(fitted, (model, X * scale, {})) for scale in (1.0, 2.0, 3.0, 5.0)]
    for result, task in zip(together(tasks), tasks, strict=True):
        assert is_same(result, task())


def engine_problem(name: str) -> tuple[SideInformation, int]:
    """Relations that the engine can deal with, among twelve points; K."""
    few_nodes = [[i, 11] for i in range(3, 11)]
    all_pairs = [[i, j, (-1.0) ** j] for i, j in combinations(range(7), 2)]
    known = {
        "independent": {"must_link": [[0, 1], [2, 5]]},
        "clique": {"cannot_link": [*combinations(range(5), 2)]},
        "pairs": {"preferences": [[0, 1, -1.0], [2, 5, 1.0]]},
        "mean_field": {"preferences": [[i, i + 1, -1.0] for i in range(11)]},
        "enumerate": {"cannot_link": [[0, 1], [1, 2]], "must_link": few_nodes},
    }.get(name, {"preferences": all_pairs})
    return SideInformation.build(12, **known), 6


@pytest.mark.parametrize("name", ENGINES)
def test_threads_may_share_an_engine_that_is_ready(name, hasty):
    side, n_states = engine_problem(name)
    rng = np.random.default_rng(0)
    unaries = rng.normal(size=(8, side.n_nodes, n_states))

    def ask(infer, unary):
        marginals = infer(unary)
        best = infer.most_probable(unary) if infer.finds_best else 0
        return marginals.nodes.tobytes(), marginals.log_z, np.asarray(best).tobytes()

    alone = [ask(ENGINES[name](side.graph), unary) for unary in unaries]
    _sets.cache_clear()
    _transitions.cache_clear()
    shared = ENGINES[name](side.graph)
    answers = together([partial(ask, shared, unary) for unary in unaries for _ in range(2)])
    for i, answer in enumerate(answers):
        np.testing.assert_equal(answer, alone[i // 2])


def test_a_sampler_that_grows_may_be_shared(hasty, monkeypatch):
    """Which call samples longer is the threads' affair; that each does, once, is not."""
    module = sys.modules["cgmm.inference.gibbs"]
    schedule = module._schedule

    def slow(*settings):
        for wanted in schedule(*settings):
            time.sleep(1e-3)
            yield wanted

    monkeypatch.setattr(module, "_schedule", slow)
    side, n_states = engine_problem("gibbs")
    unary = np.random.default_rng(0).normal(size=(side.n_nodes, n_states))
    settings = {"n_sweeps": 1, "n_chains": 1, "burn_in": 0, "growth": 2.0}
    infer = gibbs(side.graph, **settings)
    alone = sorted(infer(unary).nodes.tobytes() for _ in range(8))
    shared = gibbs(side.graph, **settings)
    at_once = together([partial(shared, unary)] * 8)
    assert sorted(marginals.nodes.tobytes() for marginals in at_once) == alone


def test_what_an_engine_remembers_for_all_is_not_written_to(hasty):
    """The sets of labels are made once for the process."""
    for size in range(4):
        before = _sets(size, 6).copy()
        transitions = copy.deepcopy(_transitions(size, 6))
        side, n_states = engine_problem("clique")
        clique(side.graph)(np.random.default_rng(0).normal(size=(side.n_nodes, n_states)))
        np.testing.assert_array_equal(_sets(size, 6), before)
        for pair, kept in zip(_transitions(size, 6), transitions, strict=True):
            np.testing.assert_array_equal(pair, kept)


def test_threads_may_share_what_is_known_and_a_fitted_model(hasty):
    X, _ = clouds(120, 3, 3)
    model, _, known = FITS["gaussian"]
    model = clone(model).fit(X, **known)
    questions = [model.predict_proba, model.score_samples, model.predict] * 3
    answers = together([partial(question, X) for question in questions])
    for question, answer in zip(questions, answers, strict=True):
        assert question(X).tobytes() == answer.tobytes()


def noisy(data, n, rng):
    """An experiment each of whose realisations warns of something of its own."""

    def measure():
        for k in range(5):
            warnings.warn(f"number {n}, {k}", UserWarning, stacklevel=1)
            time.sleep(1e-3)  # the others' turn
        return {"a": float(rng.normal())}

    return attempt("m", ("a",), measure)


def test_realisations_in_threads_keep_their_own_warnings(hasty):
    settings = tuple(Setting("none", (n,)) for n in range(8))
    experiment = Experiment("toy-fig1", "p", "Fig. 1", ("n",), settings, (), 1, noisy)
    tasks = [partial(realise, task) for task in tasks_of(experiment)]
    assert together(tasks) == [task() for task in tasks]


# ---------------------------------------------------------------------------- joblib


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_by_joblib_are_those_one_after_the_other(backend):
    with parallel_config(backend=backend, n_jobs=2):
        results = Parallel()(delayed(_model_of)(fit) for fit in FITS.values())
    for (name, fit), model in zip(FITS.items(), results, strict=True):
        assert is_same(outcome(model), fitted(fit)), name


def _model_of(fit: Fit):
    model, X, known = fit
    return clone(model).fit(X, **known)


# ---------------------------------------------------------------------------- copies


@pytest.mark.parametrize("name", FITS)
def test_copies_of_a_fit_answer_alike_and_a_clone_fits_alike(name):
    model, X, known = FITS[name]
    model = clone(model).fit(X, **known)
    ask = "predict" if hasattr(model, "predict") else "transform"
    answer = getattr(model, ask)(X)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert is_same(outcome(copied), outcome(model))
        assert getattr(copied, ask)(X).tobytes() == answer.tobytes()
        # It is a model like any other, and may be fitted again.
        assert is_same(outcome(copied.fit(X, **known)), outcome(model))
    again = clone(model)
    assert not outcome(again)
    assert is_same(outcome(again.fit(X, **known)), outcome(model))


def test_a_deep_copy_shares_nothing_with_its_model():
    for model, X, known in FITS.values():
        model = clone(model).fit(X, **known)
        before = {name: value.copy() for name, value in outcome(model).items()}
        for value in outcome(copy.deepcopy(model)).values():
            if value.flags.writeable:
                value.fill(0)
        assert is_same(outcome(model), before)


def test_a_stream_goes_on_after_it_was_stored():
    X, _ = clouds(200, 3, 3)
    whole = OnlineRCA(random_state=0)
    stored = OnlineRCA(random_state=0)
    for start in range(0, 200, 50):
        part = X[start : start + 50], np.arange(50) // 2
        whole.partial_fit(*part)
        stored = pickle.loads(pickle.dumps(stored)).partial_fit(*part)
    assert is_same(outcome(stored), outcome(whole))
