"""Configure pytest for all tests: random examples, slow tests, their order, and the browser."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator

import chromium
import pytest
from combinations import select_covering_cases
from hypothesis import settings
from notebooks import SINGLE_THREAD
from playwright.sync_api import Browser, sync_playwright

# Kernels of notebooks inherit the environment, so it must be set before the first one starts.
for name, n_threads in SINGLE_THREAD.items():
    os.environ.setdefault(name, n_threads)

# There is no deadline, because a busy machine would exceed it. The examples are the same in every
# run, except with CGMM_EXPLORE=1, which `make fuzz` sets.
settings.register_profile("cgmm", deadline=None, derandomize="CGMM_EXPLORE" not in os.environ)
settings.load_profile("cgmm")
# A third of Hypothesis' default of 100 examples, for tests that set no number of their own.
settings.register_profile("quick", settings.get_profile("cgmm"), max_examples=33)


def pytest_configure(config: pytest.Config) -> None:
    """Load the Hypothesis profile before tests are imported, because decorators copy it."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")
        # With this variable, notebooks run shorter versions of slow cells (see tools/drafts.py).
        os.environ["CGMM_DRAFT"] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark as slow the combinations of an ``each_value`` test that cover no new value."""
    groups = defaultdict(list)
    for item in items:
        if item.get_closest_marker("each_value"):
            groups[item.parent.nodeid, item.originalname].append(item)
    for group in groups.values():
        # Values are compared by identity, because some of them cannot be hashed.
        values = [{(name, id(v)) for name, v in item.callspec.params.items()} for item in group]
        for i in set(range(len(group))) - set(select_covering_cases(values)):
            group[i].add_marker(pytest.mark.slow)
    _sort_tests(items)


def _sort_tests(items: list[pytest.Item]) -> None:
    """Sort tests: test_pages.py, chapters, other tests, and last files that need the built site."""
    need_site = {item.path for item in items if "site" in getattr(item, "fixturenames", ())}

    def rank(item: pytest.Item) -> int:
        if item.path.name == "test_pages.py":
            return 0
        if item.path in need_site:
            return 3
        return 1 if item.path.suffix == ".ipynb" else 2

    items.sort(key=rank)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each reason for skipping once, with the number of tests and what to install."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return the path of Chromium, or skip the test if there is none; in CI fail it."""
    if found := chromium.find():
        return found
    if os.environ.get("CGMM_REQUIRE_BROWSER") == "1":
        pytest.fail(chromium.MISSING)
    pytest.skip(chromium.MISSING)


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    """Yield a headless browser without network access, one for each test module."""
    with sync_playwright() as engine:
        browser = chromium.launch(engine)
        yield browser
        browser.close()
