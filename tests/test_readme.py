"""What the first pages claim: the README's example runs, and the numbers of its figure are ours."""

import doctest
import re
import shutil
import subprocess
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


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
class TestCommands:
    """The Makefile is the one source: what documents say of it is what it says of itself."""

    def make(self, *words):
        command = ["make", "--no-print-directory", *words]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    def test_the_readme_lists_what_make_help_lists(self):
        listed = "".join(f"    {line}\n" for line in self.make("help").splitlines())
        assert listed in (ROOT / "README.md").read_text(encoding="utf-8")

    def test_every_target_has_a_line_in_make_help(self):
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        helped = re.findall(r"^make ([a-z-]+)", self.make("help"), re.MULTILINE)
        assert targets == helped

    @pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "book/using.md"])
    def test_commands_that_are_named_exist(self, page):
        text = (ROOT / page).read_text(encoding="utf-8")
        named = set(re.findall(r"(?:`|^    )make ([a-z][a-z-]+)", text, re.MULTILINE))
        assert named
        assert named <= set(re.findall(r"^make ([a-z-]+)", self.make("help"), re.MULTILINE))

    def test_workflows_and_ci_call_targets(self):
        helped = set(re.findall(r"^make ([a-z-]+)", self.make("help"), re.MULTILINE))
        for path in [ROOT / ".ci/run", *(ROOT / ".github/workflows").glob("*.yml")]:
            called = re.findall(
                r"(?:run: |^)make ((?:[a-z-]+ ?)+)$", path.read_text(), re.MULTILINE
            )
            assert called, path
            assert set(" ".join(called).split()) <= helped, path
