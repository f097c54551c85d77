"""Test that Ctrl-C keeps and reports finished work, and leaves no inconsistent model.

Fits are interrupted at random lines of the package. A replication, which has worker processes,
runs in a separate process.
"""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from answers import draw_clouds
from fuzz.contract import CHECKS
from fuzz.problems import Problem
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import cgmm
from cgmm import ENGINES, MMC, ConstrainedGaussianMixture, COPKMeans, OnlineRCA
from cgmm.network import Inference
from reruns import EXPERIMENTS, replicate
from reruns import __main__ as reruns_command
from reruns.runner import deaf_to_interrupts

BOOK = Path(reruns_command.__file__).parents[1]
SECONDS = 120
NEEDS_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal on Windows")
auto = ENGINES["auto"]


# ---------------------------------------------------------------------------- workers


@pytest.fixture(autouse=True)
def _enable_interrupts():
    """Restore the default handler, because shells make background jobs ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@NEEDS_SIGNALS
def test_interrupted_replication_keeps_finished_rows_and_resumes(tmp_path, capsys):
    """Signal all processes, as a terminal does on Ctrl-C; a second run must finish the rest."""
    experiment, n = EXPERIMENTS["barhillel2005-fig3"], 10
    replicate(experiment, tmp_path / "whole", realisations=n)
    expected = (tmp_path / "whole" / f"{experiment.name}.csv").read_bytes()
    results = tmp_path / "interrupted"
    options = ["--realisations", str(n), "--jobs", "2", "--results", str(results)]
    process = subprocess.Popen(
        [sys.executable, "-m", "reruns", experiment.name, *options], cwd=BOOK,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    rows = results / f"{experiment.name}.partial"
    n_before = wait_for_rows(rows, process, at_least=2)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, output) == (130, ""), errors
    assert f"what is finished is in {rows}" in errors
    assert "Traceback" not in errors
    kept = rows.read_text(encoding="utf-8").count("]]\n")
    assert n_before <= kept < n * len(experiment.design)
    assert not rows.with_suffix(".csv").exists()

    # A single job is faster than starting workers, and must write the same file.
    assert reruns_command.main([experiment.name, *options, "--jobs", "1"]) == 0
    remaining = n * len(experiment.design) - kept
    assert f" {remaining}/{remaining}\n" in capsys.readouterr().err
    assert rows.with_suffix(".csv").read_bytes() == expected
    assert not rows.exists()


def test_interrupts_are_ignored_in_the_main_thread_only_and_restored():
    def get_handler_within():
        with deaf_to_interrupts():
            return signal.getsignal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    assert get_handler_within() is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before
    # Python allows only the main thread to set a handler.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(get_handler_within).result() is before


def wait_for_rows(rows: Path, process: subprocess.Popen, *, at_least: int) -> int:
    """Wait until some realisations are written, and return their number."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        n = rows.read_text(encoding="utf-8").count("]]\n") if rows.exists() else 0
        if n >= at_least:
            return n
        time.sleep(0.005)
    process.kill()
    pytest.fail(f"the replication wrote no rows: {process.communicate()[1]}")


# ---------------------------------------------------------------------------- fits


X, Z = draw_clouds(24, 2, 3, spread=2)
KNOWN = {"cannot_link": [[0, 1], [1, 2], [2, 3]], "must_link": [[4, 7], [5, 8]]}
# A greedy assignment breaks some of these cannot-links, so a search is needed.
DENSE = np.argwhere((np.random.default_rng(0).random((24, 24)) < 0.25) & (Z[:, None] != Z))
SHORT = {"max_iter": 4, "random_state": 0}
FITS = {
    "em": (ConstrainedGaussianMixture(3, n_init=2, reg_covar=0.1, **SHORT), X, KNOWN),
    "k-means": (COPKMeans(3, n_init=2, random_state=0), X, KNOWN),
    "search": (COPKMeans(3, init="random", random_state=0), X, {"cannot_link": DENSE}),
    "mmc": (MMC(max_iter=9, random_state=0), X, {"y": Z}),
    "online": (OnlineRCA(n_epochs=3, random_state=0), X, {"y": Z}),
}
PACKAGE = str(Path(cgmm.__file__).parent)


@contextmanager
def count_lines(interrupt_at: int | None = None):
    """Count the executed lines of the package, and send SIGINT at line number ``interrupt_at``."""
    counter, before = SimpleNamespace(lines=0), sys.gettrace()

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            counter.lines += 1
            if counter.lines == interrupt_at:
                signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    try:
        yield counter
    finally:
        sys.settrace(before)


def interrupt_at_line(name: str, at: int | None):
    """Fit a model, and interrupt the fit at the executed line number ``at``.

    Return the model, whether ``fit`` raised the interrupt, the warnings about the interrupt, and
    the number of executed lines.
    """
    model, X, known = FITS[name]
    model, raised = pickle.loads(pickle.dumps(model)), False
    recorded = warnings.catch_warnings(record=True, action="always")
    with recorded as caught, count_lines(at) as counter:
        try:
            model.fit(X, **known)
        except KeyboardInterrupt:
            raised = True
    messages = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    return model, raised, [text for text in messages if "interrupted" in text], counter.lines


def describe_kept_work(model) -> str:
    """Return the part of the warning that counts the finished steps or iterations."""
    if isinstance(model, OnlineRCA):
        return f"after {model.n_steps_} steps"
    return f"of {len(model.history_) - 1 if isinstance(model, MMC) else model.n_iter_} iterations"


@pytest.mark.parametrize("name", FITS)
def test_an_interrupt_at_any_line_is_raised_or_reported(name):
    expected, raised, messages, n_lines = interrupt_at_line(name, None)
    assert not raised
    assert not messages
    _, X, known = FITS[name]
    drawn = np.random.default_rng(0).choice(np.arange(41, n_lines + 1), 12, replace=False)
    models = {}
    for at in [40, *np.sort(drawn)]:
        model, raised, messages, _ = interrupt_at_line(name, at)
        assert raised != bool(messages), at
        models[raised] = model
        if not raised:
            assert describe_kept_work(model) in messages[0] or "choice of a start" in messages[0]
            CHECKS[type(model).__name__](model, Problem(model, X, known))
        elif at == 40:
            with pytest.raises(NotFittedError):
                (model.predict if hasattr(model, "predict") else model.transform)(X)
    # In the case "search" the interrupt may always come before the first fit is complete.
    assert models.keys() == {True, False} or name == "search"
    # The next fit of an interrupted model must equal that of a new one.
    for model in models.values():
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(X, **known)
        for attribute, value in vars(expected).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(model, attribute), value)


def test_a_second_interrupt_is_raised():
    calls = []

    def engine(graph):
        def infer(unary):
            calls.append(1)
            if len(calls) == 20:
                raise KeyboardInterrupt("first")
            return auto(graph)(unary)

        def most_probable(unary):
            raise KeyboardInterrupt("second")

        return Inference(infer, most_probable)

    model = ConstrainedGaussianMixture(
        3, inference=engine, init_params="k-means++", tol=0, reg_covar=0.1, random_state=0
    )
    with pytest.raises(KeyboardInterrupt, match="second"):
        model.fit(X, **KNOWN)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_an_interrupted_partial_fit_leaves_the_model_unchanged():
    model = OnlineRCA(n_epochs=50, random_state=0)
    before = pickle.dumps(model.fit(X, Z))
    copy = pickle.loads(before)
    with count_lines() as counter:
        copy.partial_fit(X, Z)
    for method, points, at in ((model.fit, X[:, :1], 60), (model.partial_fit, X, counter.lines)):
        with count_lines(at), pytest.raises(KeyboardInterrupt):
            method(points, Z)
        assert pickle.dumps(model) == before
    assert model.partial_fit(X, Z).n_steps_ > pickle.loads(before).n_steps_


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "attribute", "message"),
    [
        (ConstrainedGaussianMixture(3, tol=0, reg_covar=0.1, max_iter=2), "weights_", "in 2 iter"),
        (COPKMeans(3, max_iter=1, init="random", random_state=0), "inertia_", "in 1 iterations"),
        (MMC(tol=1e-12, max_iter=2), "gap_", "in 2 .* fraction of"),
        (OnlineRCA("constant", eta=1e-4, n_epochs=1), "mean_", "1 epochs .* variance .* off by"),
    ],
)
def test_warnings_turned_into_errors_keep_the_fit(model, attribute, message):
    X, z = draw_clouds(300, 2, 3, spread=2)
    known = {"must_link": KNOWN["must_link"]} if hasattr(model, "predict") else {"y": z}
    with pytest.raises(ConvergenceWarning, match=message):
        model.fit(X, **known)
    assert hasattr(model, attribute)
    assert not getattr(model, "converged_", False)


# ---------------------------------------------------------------------------- progress


@pytest.mark.parametrize("name", FITS)
def test_verbose_prints_progress(capsys, name):
    model, X, known = FITS[name]
    outputs = []
    for verbose in (0, 1, 2):
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.set_params(verbose=verbose).fit(X, **known)
        streams = capsys.readouterr()
        assert streams.err == ""
        # Remove times, which differ between runs.
        outputs.append([re.sub(r", [\d.]+ s$", "", line) for line in streams.out.splitlines()])
    model.set_params(verbose=0)
    assert outputs[0] == []
    assert outputs[1]
    assert set(outputs[1]) <= set(outputs[2])
