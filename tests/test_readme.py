"""Test README.md: its example runs, and all numbers in its text and figure are recomputed."""

import doctest
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import vertical_classes
from cgmm.metrics import matched_accuracy, paired_difference
from cgmm.scenarios import random_pairs

ROOT = Path(__file__).resolve().parents[1]


def test_example_of_the_readme_runs_as_printed():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0


def test_accuracies_in_the_readme_are_those_of_fits():
    """Compare accuracies on points without relations, over twelve draws of forty answers."""
    X, y = load_wine(return_X_y=True)
    scores = []
    for seed in range(12):
        same, different = random_pairs(y, 40, random_state=seed)
        rest = np.setdiff1d(np.arange(len(y)), np.concatenate([same, different]))
        options = {"covariance_type": "tied", "n_init": 5, "random_state": seed}
        constrained = ConstrainedGaussianMixture(3, **options)
        constrained.fit(X, must_link=same, cannot_link=different)
        plain = GaussianMixture(3, **options).fit_predict(X)
        kmeans = KMeans(3, n_init=10, random_state=seed).fit_predict(scale(X))
        labels = constrained.labels_, plain, kmeans
        scores.append([matched_accuracy(y[rest], z[rest]) for z in labels])
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    printed = re.findall(r"0\.\d\d", text.partition("Over twelve draws")[2].partition("\n\n")[0])
    gain = paired_difference(*np.transpose(scores)[:2])
    *of_mixtures, of_kmeans = np.mean(scores, axis=0)
    expected = [*of_mixtures, gain.mean, gain.standard_error, of_kmeans]
    assert printed == [f"{number:.2f}" for number in expected]


def test_only_the_mixture_with_sixty_answers_separates_vertical_classes():
    X, y, *_ = vertical_classes()
    kmeans = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    assert matched_accuracy(y, kmeans) == pytest.approx(0.5, abs=0.03)
    same, different = random_pairs(y, 60, random_state=0)
    options = {"n_init": 10, "init_params": "random_from_data", "random_state": 0}
    model = ConstrainedGaussianMixture(2, **options)
    labels = model.fit(X, must_link=same, cannot_link=different).labels_
    assert matched_accuracy(y, labels) > 0.99


def test_log_likelihoods_of_the_figure_are_those_of_fits():
    X = vertical_classes().X
    best = ConstrainedGaussianMixture(2, n_init=10, random_state=0).fit(X).log_evidence_
    by_classes = ConstrainedGaussianMixture(2, means_init=[[-3, 0], [3, 0]]).fit(X).log_evidence_
    for page in ("README.md", "book/index.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        (alt,) = re.findall(r"Three panels of the same 600 points.*", text)
        printed = [-float(number) for number in re.findall(r"log-likelihood −(\d+)", alt)]
        assert printed == [round(by_classes), round(best)], page
        for difference in re.findall(r"by (\d+) nats", text):
            assert float(difference) == round(best - by_classes), page


TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_help_lists_every_target():
    command = ["make", "--no-print-directory", "help"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    commands = re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)
    # The line of `make check` describes `make lint`, which it calls.
    assert sorted([*commands, "help", "lint"]) == sorted(TARGETS)


@pytest.mark.parametrize(
    ("pages", "pattern"),
    [
        (["README.md", "CONTRIBUTING.md", "book/using.md"], r"(?:`|^    )make ([a-z][a-z-]+)"),
        ([".ci/run", ".github/workflows/*.yml"], r"(?:run: |^)make ((?:[a-z-]+ ?)+)$"),
    ],
)
def test_make_commands_in_documents_exist(pages, pattern):
    for path in [path for page in pages for path in ROOT.glob(page)]:
        names = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
        assert names, path
        assert set(" ".join(names).split()) <= TARGETS, path
