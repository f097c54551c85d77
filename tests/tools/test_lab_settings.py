"""JupyterLab as started by `make lab` hides commands for teachers and for the build."""

import asyncio

import pytest
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyterlab_server.config import get_page_config
from pages import ROOT
from traitlets.config import Config, PyFileConfigLoader

SETTINGS = ROOT / "tools/lab"


@pytest.fixture
def settings() -> Config:
    return PyFileConfigLoader("jupyter_server_config.py", path=str(SETTINGS)).load_config()


def test_the_buttons_for_teachers_are_off(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(SETTINGS))
    assert "@jupyter/nbgrader" in get_page_config([])["disabledExtensions"]


def test_files_of_the_build_are_hidden_and_chapters_are_not(settings):
    manager = AsyncLargeFileManager(root_dir=str(ROOT / "book"), config=settings)
    listed = {one["name"] for one in asyncio.run(manager.get("", content=True))["content"]}
    assert {"01_mixtures.ipynb", "using.md"} <= listed
    assert not {"_ext", "_static", "_templates", "conftest.py"} & listed


def test_lab_asks_for_no_news(settings):
    assert settings.LabApp.news_url is None
    assert "NeverCheckForUpdate" in settings.LabApp.check_for_updates_class
