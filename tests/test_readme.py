"""What the first pages claim: the README's example runs, and the numbers of its figure are ours."""

import doctest
import re
from pathlib import Path

import pytest

from cgmm import ConstrainedGaussianMixture
from cgmm.datasets import vertical_classes

ROOT = Path(__file__).resolve().parents[1]


def test_the_example_runs_as_printed():
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0


@pytest.mark.parametrize("page", ["README.md", "book/index.md"])
def test_the_figure_says_what_the_fits_say(page):
    X = vertical_classes().X
    best = ConstrainedGaussianMixture(2, n_init=10, random_state=0).fit(X).log_evidence_
    meant = ConstrainedGaussianMixture(2, means_init=[[-3, 0], [3, 0]]).fit(X).log_evidence_
    text = (ROOT / page).read_text(encoding="utf-8")
    (alt,) = re.findall(r"Three panels of the same 600 points.*", text)
    quoted = [-float(number) for number in re.findall(r"log-likelihood −(\d+)", alt)]
    assert quoted == [round(meant), round(best)]
    for difference in re.findall(r"by (\d+) nats", text):
        assert float(difference) == round(best - meant)


def test_commands_of_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make ([a-z]+)", text))
    assert {"book", "test", "notebooks", "lab", "bench"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
