"""Test lazy imports of the package, and the command ``python -m cgmm``."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cgmm
from cgmm.__main__ import explain_where_the_book_is, main


def run_python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process, and return its output."""
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True)


IMPORTS = """
import sys, cgmm
print({'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))
print(cgmm.RCA.__name__, cgmm.scenarios.preferences.__name__)
from cgmm import *
cgmm.datasets
print('matplotlib' in sys.modules)
"""


def test_subpackages_load_lazily():
    output = run_python("-c", IMPORTS).stdout.splitlines()
    assert output == ["set()", "RCA preferences", "False"]
    assert {*cgmm.__all__, "__version__", "mixture", "plot", "scenarios"} <= set(dir(cgmm))


def test_unknown_names_of_the_package_raise_errors():
    with pytest.raises(AttributeError, match="module 'cgmm' has no attribute 'GMM'"):
        _ = cgmm.GMM
    with pytest.raises(ImportError, match="cannot import name 'GMM'"):
        exec("from cgmm import GMM")


def test_tour_prints_and_plots_its_fits(tmp_path, capsys):
    main(["--figure", str(tmp_path / "tour.png")])
    output = capsys.readouterr().out
    assert output.startswith(f"cgmm {cgmm.__version__},")
    shares = [line.split()[-5] for line in output.splitlines() if "log-likelihood" in line]
    assert shares == ["50%", "100%", "100%"]
    assert (tmp_path / "tour.png").read_bytes().startswith(b"\x89PNG")


def test_tour_says_where_the_book_is(tmp_path, monkeypatch):
    monkeypatch.setattr(cgmm, "__file__", str(tmp_path / "cgmm/__init__.py"))
    assert f"constrained-mixtures=={cgmm.__version__}" in explain_where_the_book_is()
    (tmp_path / "_toc.yml").touch()
    assert f"make book` in {tmp_path}" in explain_where_the_book_is()
    page = tmp_path / "_build/html/index.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert f"open {page}" in explain_where_the_book_is()


@pytest.fixture
def shadowing_folder(tmp_path):
    """Return a folder named cgmm that contains only the package's ``__main__.py``."""
    folder = tmp_path / "cgmm"
    folder.mkdir()
    shutil.copy(Path(cgmm.__file__).with_name("__main__.py"), folder)
    return folder


def test_another_package_of_the_same_name_is_reported(shadowing_folder):
    (shadowing_folder / "__init__.py").write_text('__version__ = "0.5.1"\n')
    output = run_python("-m", "cgmm", cwd=shadowing_folder.parent)
    assert output.returncode == 1
    assert "Another package named cgmm is installed over this one" in output.stderr


def test_a_folder_that_hides_the_package_is_reported(shadowing_folder):
    """With ``-S`` Python does not find the installed package, so it imports the folder."""
    output = run_python("-S", "-m", "cgmm", cwd=shadowing_folder.parent)
    assert output.returncode == 1
    assert f"imports the folder {shadowing_folder} in place of the package" in output.stderr
    assert "pip uninstall" not in output.stderr


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path):
    """The current directory may contain a clone, but the installed package must be imported."""
    (tmp_path / "cgmm").mkdir()
    code = "from cgmm import ConstrainedGaussianMixture as C; print(C)"
    output = run_python("-c", code, cwd=tmp_path)
    assert "cgmm.mixture" in output.stdout, output.stderr
    version = run_python("-m", "cgmm", "--version", cwd=tmp_path).stdout
    assert version == f"cgmm {cgmm.__version__}\n"
