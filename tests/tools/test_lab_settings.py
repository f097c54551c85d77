"""Test that `make lab` hides build files and buttons for teachers, and needs no network."""

import asyncio

import pytest
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupyterlab_server.config import get_page_config
from pages import ROOT
from traitlets.config import Config, PyFileConfigLoader

SETTINGS = ROOT / "tools/lab"


@pytest.fixture
def settings() -> Config:
    """Return the settings with which `make lab` starts JupyterLab."""
    return PyFileConfigLoader("jupyter_server_config.py", path=str(SETTINGS)).load_config()


def test_the_extension_nbgrader_is_disabled(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(SETTINGS))
    assert "@jupyter/nbgrader" in get_page_config([])["disabledExtensions"]


def test_files_of_the_build_are_hidden_and_chapters_are_listed(settings):
    manager = AsyncLargeFileManager(root_dir=str(ROOT / "book"), config=settings)
    listed = {one["name"] for one in asyncio.run(manager.get("", content=True))["content"]}
    assert {"01_mixtures.ipynb", "using.md"} <= listed
    assert not {"_ext", "_static", "_templates", "conftest.py"} & listed


def test_jupyterlab_does_not_fetch_news_or_check_for_updates(settings):
    assert settings.LabApp.news_url is None
    assert "NeverCheckForUpdate" in settings.LabApp.check_for_updates_class
