"""What somebody meets first: names that load when they are used, and ``python -m cgmm``."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cgmm
from cgmm.__main__ import main, where_the_book_is


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True)


LOADS = """
import sys, cgmm
print({'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))
print(cgmm.RCA.__name__, cgmm.scenarios.preferences.__name__)
from cgmm import *
cgmm.datasets
print('matplotlib' in sys.modules)
"""


def test_rooms_load_when_they_are_used_and_figures_when_they_are_drawn():
    said = python("-c", LOADS).stdout.splitlines()
    assert said == ["set()", "RCA preferences", "False"]
    assert {*cgmm.__all__, "__version__", "mixture", "plot", "scenarios"} <= set(dir(cgmm))


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="module 'cgmm' has no attribute 'GMM'"):
        _ = cgmm.GMM
    with pytest.raises(ImportError, match="cannot import name 'GMM'"):
        exec("from cgmm import GMM")


def test_the_tour_says_what_it_fits_and_draws_it(tmp_path, capsys):
    main(["--figure", str(tmp_path / "tour.png")])
    said = capsys.readouterr().out
    assert said.startswith(f"cgmm {cgmm.__version__},")
    shares = [line.split()[-5] for line in said.splitlines() if "log-likelihood" in line]
    assert shares == ["50%", "100%", "100%"]
    assert (tmp_path / "tour.png").read_bytes().startswith(b"\x89PNG")


def test_the_book_is_where_it_can_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(cgmm, "__file__", str(tmp_path / "cgmm/__init__.py"))
    assert f"constrained-mixtures=={cgmm.__version__}" in where_the_book_is()
    (tmp_path / "_toc.yml").touch()
    assert f"make book` in {tmp_path}" in where_the_book_is()
    page = tmp_path / "_build/html/index.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert f"open {page}" in where_the_book_is()


def test_another_package_of_the_same_name_is_told(tmp_path):
    other = tmp_path / "cgmm"
    other.mkdir()
    shutil.copy(Path(cgmm.__file__).with_name("__main__.py"), other)
    (other / "__init__.py").write_text('__version__ = "0.5.1"\n')
    said = python("-m", "cgmm", cwd=tmp_path)
    assert said.returncode == 1
    assert "Another package named cgmm lies over this one" in said.stderr
