"""Ctrl-C: what is done is kept and said, nothing is swallowed, and no half of a fit is left.

Real signals go to processes of their own (``interrupted_fits.py``, ``python -m cgmm.replicate``).
Where in the code an interrupt strikes is then varied in this process, by raising KeyboardInterrupt
at chosen calls and lines.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from threading import Timer

import numpy as np
import psutil
import pytest
from interrupted_fits import CASES, Outcome, clouds, pairs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture

import cgmm.kmeans.base
import cgmm.metric_learning.mmc_ascent
import cgmm.metric_learning.online
from cgmm import (
    ENGINES,
    MMC,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    OnlineRCA,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
    SideInformation,
)
from cgmm.decide.workers import deaf_to_interrupts
from cgmm.inference.auto import auto
from cgmm.kmeans import nearest_rule
from cgmm.metric_learning import objective
from cgmm.mixture import best_of, e_step, last_of, one_hot
from cgmm.network import Inference
from cgmm.replicate import EXPERIMENTS, replicate
from cgmm.replicate.__main__ import main as replicate_command

SECONDS = 120
ALONE = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal on Windows")


# ---------------------------------------------------------------------------- real signals


def let_sigint_through():
    """Where tests run in the background, a shell has told their children to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, Outcome]:
    """Every case, interrupted by SIGINT where its line appears; one process for all of them."""
    folder = tmp_path_factory.mktemp("interrupted")
    script = Path(__file__).with_name("interrupted_fits.py")
    process = subprocess.Popen(
        [sys.executable, "-u", script, folder],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=let_sigint_through,
    )  # fmt: skip
    watch = Timer(SECONDS, process.kill)
    watch.start()
    awaited = None
    for line in process.stdout:
        if line.startswith("begin "):
            awaited = CASES[line.split()[1]].line
        elif awaited and line.startswith(awaited):
            process.send_signal(signal.SIGINT)
            awaited = None
    watch.cancel()
    complaints = process.stderr.read()
    assert (process.wait(), complaints) == (0, "")
    return {name: pickle.loads((folder / f"{name}.pickle").read_bytes()) for name in CASES}


def the_warning(outcome: Outcome) -> str:
    """The one thing that was said."""
    assert not outcome.interrupted
    (warned,) = outcome.warned
    assert warned.startswith("ConvergenceWarning: ")
    return warned


@ALONE
@pytest.mark.parametrize("name", ["gaussian", "gaussian-restarts", "categorical"])
def test_sigint_leaves_the_mixture_so_far(outcomes, name):
    model, X, known, *_ = outcomes[name]
    assert f"interrupted; the best fit so far, of {model.n_iter_} iter" in the_warning(
        outcomes[name]
    )
    belongs_together(model, X, known)
    assert not model.converged_ or name == "gaussian-restarts"
    assert model.n_iter_ >= (19 if name != "gaussian-restarts" else 2)


def belongs_together(model, X, known):
    """Parameters, evidence, responsibilities and labels are those of one iteration."""
    side = SideInformation.build(len(X), **known)
    data = one_hot(X, model.n_categories_) if hasattr(model, "n_categories_") else X
    posterior = e_step(data, model._parameters(), side, auto(side.graph))
    np.testing.assert_allclose(model.responsibilities_, posterior.responsibilities, atol=1e-10)
    assert model.log_evidence_ == pytest.approx(posterior.log_evidence, rel=1e-12)
    assert len(model.history_) == model.n_iter_
    rises = np.append(np.diff(model.history_), model.log_evidence_ - model.history_[-1])
    assert isinstance(model, ConstrainedCategoricalMixture) or rises.min() > -1e-9 * len(X)
    assert model.predict(X).shape == model.labels_.shape == (len(X),)
    honours(model.labels_, known)


def honours(labels, known):
    """No relation is broken."""
    assert all(labels[i] == labels[j] for i, j in known.get("must_link", ()))
    assert all(labels[i] != labels[j] for i, j in known.get("cannot_link", ()))


@ALONE
def test_sigint_in_a_sampler_leaves_the_mixture_so_far(outcomes):
    model, X, *_ = outcomes["gibbs"]
    assert f"interrupted; the best fit so far, of {model.n_iter_} iter" in the_warning(
        outcomes["gibbs"]
    )
    assert len(model.history_) == model.n_iter_ >= 2
    assert np.isfinite(model.predict_proba(X)).all()


@ALONE
def test_sigint_leaves_the_classifier_so_far(outcomes):
    model, X, known, *_ = outcomes["classifier"]
    assert f"so far, of {model.n_iter_} iterations" in the_warning(outcomes["classifier"])
    belongs_together(model.mixture_, X, {"labels": known["y"]})
    known_rows = known["y"] >= 0
    assert model.n_iter_ >= 19
    assert (model.transduction_[known_rows] == known["y"][known_rows]).all()
    assert set(model.predict(X)) == {0, 1, 2}


@ALONE
@pytest.mark.parametrize("name", ["cop", "pck", "cop-restarts", "pck-restarts"])
def test_sigint_leaves_the_centres_so_far(outcomes, name):
    model, X, known, *_ = outcomes[name]
    assert f"interrupted; the best run so far, of {model.n_iter_} iter" in the_warning(
        outcomes[name]
    )
    one_run_of_kmeans(model, X, known)
    assert model.n_iter_ >= (4 if name in ("cop", "pck") else 1)


def one_run_of_kmeans(model, X, known):
    """Centres, labels and history are those of one run."""
    labels, centres = model.labels_, model.cluster_centers_
    inertia = np.square(X - centres[labels]).sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-12)
    if isinstance(model, COPKMeans):
        assert model.objective_ == pytest.approx(inertia, rel=1e-9)
        honours(labels, known)
    assert model.objective_ == model.history_[-1]
    assert len(model.history_) - model.n_iter_ in (0, 1)
    assert (np.diff(model.history_) <= 1e-12 * model.history_[0]).all()
    assert model.predict(X[:5]).shape == (5,)


@ALONE
def test_sigint_leaves_the_metric_so_far(outcomes):
    model, X, known, *_ = outcomes["mmc"]
    assert f"the best of {model.n_iter_ - 1} iterations is kept" in the_warning(outcomes["mmc"])
    assert not model.converged_
    assert len(model.history_) == model.n_iter_ >= 3
    assert model.objective_ >= model.history_[-1]
    assert model.objective_ == pytest.approx(objective(model.components_, X, **known), rel=1e-6)
    assert model.gap_ > 0
    assert model.transform(X).shape == X.shape


@ALONE
def test_sigint_leaves_what_a_stream_has_taught(outcomes):
    model, X, *_ = outcomes["online-rca"]
    assert f"is kept, of {model.n_steps_} steps" in the_warning(outcomes["online-rca"])
    assert model.n_steps_ >= 3 * 4
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)


@ALONE
def test_sigint_in_the_middle_of_a_stream_takes_back_that_part(outcomes):
    stream, X, *_, interrupted, seconds = outcomes["online-rca-partial"]
    assert interrupted
    assert seconds > 0.3
    before, after = pickle.loads(stream.before), stream.model
    assert vars(before).keys() == vars(after).keys()
    for name, value in vars(before).items():
        np.testing.assert_array_equal(getattr(after, name), value)
    assert after.partial_fit(X[:100], np.arange(100) // 2).n_steps_ == before.n_steps_ + 50


@ALONE
def test_sigint_stops_at_once(outcomes):
    """Well before the end, where there is one: nothing waits for a run to be over."""
    assert max(outcome.seconds for outcome in outcomes.values()) < SECONDS / 2


# ---------------------------------------------------------------------------- replication


@pytest.mark.slow  # below, workers alone are struck
@ALONE
def test_sigint_in_a_replication_with_two_jobs_loses_nothing(tmp_path, capsys):
    """As a terminal does, the signal goes to the workers too."""
    experiment, n = EXPERIMENTS["barhillel2005-fig3"], 10
    replicate(experiment, tmp_path / "whole", realisations=n)
    whole = (tmp_path / "whole" / f"{experiment.name}.csv").read_bytes()
    results = tmp_path / "interrupted"
    options = ["--realisations", str(n), "--jobs", "2", "--results", str(results)]
    process = replication(experiment.name, *options)
    rows = results / f"{experiment.name}.partial"
    n_before = finished(rows, process, at_least=2)
    os.killpg(process.pid, signal.SIGINT)
    output, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, said
    assert f"what is finished is in {rows}" in said
    assert output == ""
    assert "Traceback" not in said
    kept = rows.read_text(encoding="utf-8").count("]]\n")
    assert n_before <= kept < n * len(experiment.design)
    assert not rows.with_suffix(".csv").exists()

    # The rest in this process, which costs less than workers; files do not depend on them.
    assert replicate_command([experiment.name, *options, "--jobs", "1"]) == 0
    left = n * len(experiment.design) - kept
    assert f" {left}/{left}\n" in capsys.readouterr().err
    assert rows.with_suffix(".csv").read_bytes() == whole
    assert not rows.exists()


@ALONE
@pytest.mark.slow
def test_workers_leave_an_interrupt_to_the_process_that_started_them(tmp_path):
    """Struck again and again, while they start and while they work, they complain of nothing."""
    process = replication("barhillel2005-fig3", "--quick", "--jobs", "2", "--results", tmp_path)
    struck = set()
    while process.poll() is None:
        for worker in psutil.Process(process.pid).children():
            with suppress(psutil.Error):
                if any("LokyProcess" in word for word in worker.cmdline()):
                    worker.send_signal(signal.SIGINT)
                    struck.add(worker.pid)
        time.sleep(0.01)
    said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 0, said
    assert len(struck) == 2
    assert "Traceback" not in said
    assert (tmp_path / "barhillel2005-fig3.csv").exists()


def test_the_handler_of_ctrl_c_comes_back_and_other_threads_leave_it_alone():
    def within():
        with deaf_to_interrupts():
            return signal.getsignal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    assert within() is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(within).result() is before


def replication(*arguments) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "cgmm.replicate", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=let_sigint_through,
    )  # fmt: skip


def finished(rows: Path, process: subprocess.Popen, *, at_least: int) -> int:
    """Wait until some realisations are written down, and say how many."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        n = rows.read_text(encoding="utf-8").count("]]\n") if rows.exists() else 0
        if n >= at_least:
            return n
        time.sleep(0.005)
    process.kill()
    pytest.fail(f"it wrote nothing to be interrupted at: {process.communicate()[1]}")


# ---------------------------------------------------------------------------- inside an engine


def interrupting(engine, at: int, calls: list):
    """The engine, in which the keyboard strikes at one of its calls."""

    def prepare(graph):
        infer = engine(graph)

        def once(question):
            def ask(unary):
                calls.append(1)
                if len(calls) == at:
                    raise KeyboardInterrupt
                return question(unary)

            return ask

        if not infer.finds_best:
            return once(infer)
        return Inference(once(infer), once(infer.most_probable))

    return prepare


def problem(name: str):
    """Ten points, and something to know about them that the engine can deal with."""
    X, z = clouds(10)
    return X, {
        "independent": {},
        "clique": {"cannot_link": [*combinations(range(3), 2)]},
        "pairs": {"preferences": [[0, 1, -1.0], [2, 5, 1.0]]},
        "mean_field": {"preferences": [[0, 1, -1.0], [1, 2, -1.0], [2, 5, 1.0]]},
    }.get(name, pairs(z))


# Where no edge ties any, nodes are normalised without an engine: a signal strikes there, above.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in {"auto", "mean_field"}))
        for name in sorted(ENGINES.keys() - {"independent"})
    ],
)
def test_an_interrupt_inside_an_engine_ends_the_fit_and_keeps_it(name):
    X, known = problem(name)
    # "ignore" is served by an engine without log Z_prior too.
    settings = {"tol": 0, "max_iter": 4, "random_state": 0, "reg_covar": 0.1, "weights": "ignore"}
    quick = partial(ENGINES[name], n_sweeps=5, burn_in=5) if name == "gibbs" else ENGINES[name]

    def fit(at):
        calls = []
        engine = interrupting(quick, at, calls)
        model = ConstrainedGaussianMixture(3, inference=engine, **settings)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model.fit(X, **known)
            except KeyboardInterrupt:
                return model, "", len(calls)
        return model, str(caught[0].message), len(calls)

    whole, said, n_calls = fit(None)
    assert "did not converge" in said
    kept = []
    for at in range(1, n_calls + 1):
        model, said, _ = fit(at)
        if not said:
            with pytest.raises(NotFittedError):
                model.predict(X)
            continue
        assert f"was interrupted; the best fit so far, of {model.n_iter_} iterations" in said
        np.testing.assert_array_equal(model.history_, whole.history_[: model.n_iter_])
        assert model.responsibilities_.sum(axis=1) == pytest.approx(np.ones(len(X)), abs=1e-12)
        assert model.n_iter_ >= 1
        kept.append(model.n_iter_)
    # The later the interrupt, the more is kept: each iteration but the first is the last of some.
    assert kept == sorted(kept)
    assert set(kept) >= {1, 2, 3}


def test_a_second_interrupt_stops_at_once_and_leaves_no_half_of_a_fit():
    X, z = clouds(30)
    calls = []

    def engine(graph):
        infer = auto(graph)

        def ask(unary):
            calls.append(1)
            if len(calls) == 20:
                raise KeyboardInterrupt("first")
            return infer(unary)

        def most_probable(unary):
            raise KeyboardInterrupt("second")

        return Inference(ask, most_probable)

    model = ConstrainedGaussianMixture(
        3, inference=engine, init_params="k-means++", tol=0, reg_covar=0.1, random_state=0
    )
    with pytest.raises(KeyboardInterrupt, match="second"):
        model.fit(X, **pairs(z))
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize("after", [1, 2, 3, 5])
def test_an_interrupt_inside_the_assignment_of_kmeans_keeps_the_best_run(after):
    X, z = clouds()
    calls = []

    def engine(graph):
        def infer(unary):
            raise AssertionError

        def most_probable(unary):
            calls.append(1)
            if len(calls) > after:
                raise KeyboardInterrupt
            return auto(graph).most_probable(unary)

        return Inference(infer, most_probable)

    model = COPKMeans(3, inference=engine, init="random", n_init=9, random_state=0)
    if after == 1:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, **pairs(z))
        with pytest.raises(NotFittedError):
            model.predict(X)
        return
    with pytest.warns(ConvergenceWarning, match="interrupted; the best run so far, of "):
        model.fit(X, **pairs(z))
    one_run_of_kmeans(model, X, pairs(z))


# ---------------------------------------------------------------------------- anywhere at all


def few_points():
    X, z = clouds(24)
    return X, z, pairs(z)


def fitted_gaussian():
    X, _, known = few_points()
    model = ConstrainedGaussianMixture(3, n_init=2, max_iter=4, reg_covar=0.1, random_state=0)
    return model, X, known


def fitted_categorical():
    X, _, known = few_points()
    model = ConstrainedCategoricalMixture(3, n_init=2, max_iter=4, random_state=0)
    return model, (X > 0).astype(int), known


def fitted_classifier():
    X, z, _ = few_points()
    model = SemiSupervisedGaussianClassifier(max_iter=4, reg_covar=0.1)
    return model, X, {"y": np.where(np.arange(24) < 9, z, -1)}


def fitted_cop():
    X, _, known = few_points()
    return COPKMeans(3, n_init=2, random_state=0), X, known


def fitted_cop_on_a_graph():
    """Cannot-links that greed cannot honour: the search takes a hint, a run of plain K-means."""
    X, z, _ = few_points()
    drawn = np.random.default_rng(0).random((24, 24)) < 0.25
    known = {"cannot_link": np.argwhere(drawn & (z[:, None] != z))}
    return COPKMeans(3, init="random", random_state=0), X, known


def fitted_pck():
    X, _, known = few_points()
    return PCKMeans(3, n_init=2, random_state=0), X, known


def fitted_mmc():
    X, z, _ = few_points()
    return MMC(max_iter=9, random_state=0), X, {"y": z}


def fitted_online_rca():
    X, z, _ = few_points()
    return OnlineRCA(n_epochs=3, random_state=0), X, {"y": z}


FITS = [
    fitted_gaussian,
    fitted_categorical,
    fitted_classifier,
    fitted_cop,
    fitted_cop_on_a_graph,
    fitted_pck,
    fitted_mmc,
    fitted_online_rca,
]
PACKAGE = str(Path(cgmm.__file__).parent)


class Keyboard:
    """Counts the lines of the package that are run, and strikes at one of them."""

    def __init__(self, at: int | None = None):
        self.at, self.lines = at, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.call)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def call(self, frame, event, argument):
        return self.line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def line(self, frame, event, argument):
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self.line


def struck(make, at: int | None):
    """Fit, with an interrupt at a line; whether it came out, what was said, lines in all."""
    model, X, known = make()
    raised = False
    with warnings.catch_warnings(record=True) as caught, Keyboard(at) as keyboard:
        warnings.simplefilter("always")
        try:
            model.fit(X, **known)
        except KeyboardInterrupt:
            raised = True
    return model, raised, " ".join(str(one.message) for one in caught), keyboard.lines


@pytest.mark.parametrize("make", FITS)
def test_wherever_the_interrupt_strikes_it_is_raised_or_told(make):
    whole, raised, said, n_lines = struck(make, None)
    assert not raised
    assert "interrupted" not in said
    _, X, known = make()
    rng = np.random.default_rng(0)
    models = {}
    for at in np.sort(rng.choice(np.arange(1, n_lines + 1), 25, replace=False)):
        model, raised, said, _ = struck(make, at)
        assert raised != ("interrupted" in said), at
        models[raised] = model
        if not raised:
            usable(model, X)
    # Nearly all of the search comes before there is anything to keep.
    assert models.keys() == {True, False} or make is fitted_cop_on_a_graph
    # Nothing of it stays behind: the next fit of these models is that of a new one.
    for model in models.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, **known)
        for name, value in vars(whole).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(model, name), value)


def usable(model, X):
    """New points are answered."""
    answer = model.predict(X) if hasattr(model, "predict") else model.transform(X)
    assert len(answer) == len(X)
    assert np.isfinite(answer).all()


def test_an_interrupt_inside_the_hint_of_a_search_is_not_swallowed(monkeypatch):
    """The hint is a whole run of K-means, but none that anybody asked for."""
    calls = []

    def interrupted(costs, z=None):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return nearest_rule(costs, z)

    monkeypatch.setattr(cgmm.kmeans.base, "nearest_rule", interrupted)
    model, X, known = fitted_cop_on_a_graph()
    X = np.random.default_rng(0).uniform(size=X.shape)  # no clusters: it takes a few iterations
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, **known)
    assert len(calls) == 4


# ---------------------------------------------------------------------------- nothing to keep


@pytest.mark.parametrize("make", FITS)
def test_an_interrupt_at_the_very_beginning_leaves_nothing(make):
    model, raised, _, _ = struck(make, 40)
    assert raised
    with pytest.raises(NotFittedError):
        usable(model, make()[1])


def strike_at_call(monkeypatch, place, name, at):
    """The keyboard strikes when a function is called for the at-th time."""
    original, calls = getattr(place, name), []

    def struck(*arguments):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(place, name, struck)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_start_of_a_metric_is_no_fit(monkeypatch, at):
    """The first value is that of the start, and the first step of the search looks at it again."""
    strike_at_call(monkeypatch, cgmm.metric_learning.mmc_ascent.Ascent, "_look", at)
    model, X, known = fitted_mmc()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, **known)
    with pytest.raises(NotFittedError):
        model.transform(X)


@pytest.mark.parametrize("at", [1, 2])
def test_the_start_of_a_stream_is_no_fit(monkeypatch, at):
    strike_at_call(monkeypatch, cgmm.metric_learning.online, "overshoots", at)
    model, X, known = fitted_online_rca()
    if at == 1:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, **known)
        with pytest.raises(NotFittedError):
            model.transform(X)
        return
    with pytest.warns(ConvergenceWarning, match="is kept, of 1 steps"):
        model.fit(X, **known)
    assert model.n_steps_ == 1


def test_an_early_interrupt_of_a_second_fit_leaves_a_stream_as_it_was():
    model, X, known = fitted_online_rca()
    before = dict(vars(model.set_params(n_epochs=50).fit(X, **known)))
    with Keyboard(60), pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :1], **known)
    assert vars(model) == before
    usable(model, X)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (ConstrainedGaussianMixture(3, tol=0, reg_covar=0.1, max_iter=2), "weights_"),
        (COPKMeans(3, max_iter=1, init="random", random_state=0), "inertia_"),
        (MMC(tol=1e-12, max_iter=2), "gap_"),
        (OnlineRCA("constant", eta=1e-4, n_epochs=1), "mean_"),
    ],
)
def test_a_warning_that_is_an_error_takes_nothing_away(model, kept):
    X, z = clouds()
    known = {"must_link": pairs(z)["must_link"]}
    if not hasattr(model, "predict"):
        known = {"y": z}
    with pytest.raises(ConvergenceWarning):
        model.fit(X, **known)
    assert hasattr(model, kept)
    usable(model, X)


class Stage:
    """A run of another loop, as small as it may be."""

    interrupted = False

    def __init__(self, n_iter, score=0.0):
        self.n_iter, self.score = n_iter, score

    def _replace(self, **changes):
        new = Stage(self.n_iter, self.score)
        vars(new).update(changes)
        return new


def stages(*numbers):
    for n in numbers:
        yield Stage(n)
    raise KeyboardInterrupt


def test_a_run_without_a_complete_iteration_is_not_kept():
    for numbers in [(), (0,), (0, 0)]:
        with pytest.raises(KeyboardInterrupt):
            last_of(stages(*numbers))
    assert (last_of(stages(0, 1)).n_iter, last_of(stages(0, 1)).interrupted) == (1, True)


def test_an_interrupt_between_runs_keeps_the_best():
    def one_run(number):
        if number == 3:
            raise KeyboardInterrupt
        return Stage(number + 1, [1.0, 5.0, 2.0][number])

    best = best_of(one_run, 9)
    assert (best.n_iter, best.score, best.interrupted) == (2, 5.0, True)


# ---------------------------------------------------------------------------- progress


def progress(capsys, model, X, known) -> list[str]:
    """Lines on standard output, where scikit-learn's go; nothing goes elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, **known)
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def test_scikit_learn_reports_progress_on_standard_output(capsys):
    GaussianMixture(2, verbose=2, random_state=0).fit(clouds(24)[0])
    said = capsys.readouterr()
    assert "Initialization" in said.out
    assert said.err == ""


@pytest.mark.parametrize("make", [fitted_gaussian, fitted_categorical, fitted_classifier])
def test_mixtures_report_runs_and_iterations(capsys, make):
    model, X, known = make()
    assert progress(capsys, model, X, known) == []
    lines = progress(capsys, model.set_params(verbose=1), X, known)
    n_runs = getattr(model, "n_init", 1)
    assert [line.split(":")[0] for line in lines] == [f"run {n}" for n in range(n_runs)]
    evidence = getattr(model, "mixture_", model).log_evidence_
    assert any(line.endswith(f"log-evidence {evidence:.6f}") for line in lines)
    assert any(f" after {model.n_iter_} iterations" in line for line in lines)
    more = progress(capsys, model.set_params(verbose=2), X, known)
    assert [line for line in more if line.startswith("run")] == lines
    assert more[0].startswith("  iteration    1   log-evidence -")
    last = getattr(model, "mixture_", model).history_[-1]
    assert any(line.endswith(f"{model.n_iter_:4d}   log-evidence {last:.6f}") for line in more)


@pytest.mark.parametrize("make", [fitted_cop, fitted_pck])
def test_kmeans_reports_runs_and_iterations(capsys, make):
    model, X, known = make()
    assert progress(capsys, model, X, known) == []
    lines = progress(capsys, model.set_params(verbose=1), X, known)
    assert [line.split(":")[0] for line in lines] == ["run 0", "run 1"]
    ending = f"converged after {model.n_iter_} iterations, objective {model.objective_:.6f}"
    assert any(line.endswith(ending) for line in lines)
    more = progress(capsys, model.set_params(verbose=2), X, known)
    assert [line for line in more if line.startswith("run")] == lines
    assert f"  iteration    0   objective {model.history_[0]:.6f}" in more


def test_metrics_report_iterations_and_epochs(capsys):
    model, X, known = fitted_mmc()
    assert progress(capsys, model, X, known) == []
    lines = progress(capsys, model.set_params(verbose=1), X, known)
    starts = [f"  iteration {t:4d}   objective {f:.8g}" for t, f in enumerate(model.history_)]
    assert len(lines) == len(starts)
    assert all(map(str.startswith, lines, starts))
    model, X, known = fitted_online_rca()
    assert progress(capsys, model, X, known) == []
    lines = progress(capsys, model.set_params(verbose=1), X, known)
    assert [line.split(":")[0] for line in lines] == ["epoch 0", "epoch 1", "epoch 2"]
