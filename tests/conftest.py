"""Fixtures of several test modules: single-threaded kernels, a browser without a network."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator

import chromium
import pytest
from combinations import showing_each_value
from hypothesis import settings
from notebooks import SINGLE_THREAD
from playwright.sync_api import Browser, sync_playwright

# Before a kernel of nbval starts: it inherits the environment of its worker.
for name, one in SINGLE_THREAD.items():
    os.environ.setdefault(name, one)

# A busy machine is no fault of the code, so there is no deadline. Examples are the same in every
# run, except with CGMM_EXPLORE=1, as in `make fuzz`.
settings.register_profile("cgmm", deadline=None, derandomize="CGMM_EXPLORE" not in os.environ)
settings.load_profile("cgmm")
# Run a third of Hypothesis' default of 100 examples, unless a test sets its number.
settings.register_profile("quick", settings.get_profile("cgmm"), max_examples=33)


def pytest_configure(config: pytest.Config) -> None:
    """Load the hypothesis profile before the tests are imported, because decorators copy it."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")
        # Kernels inherit it, too: tools/drafts.py.
        os.environ["CGMM_DRAFT"] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark as slow the combinations of an ``each_value`` test that cover no new value."""
    groups = defaultdict(list)
    for item in items:
        if item.get_closest_marker("each_value"):
            groups[item.parent.nodeid, item.originalname].append(item)
    for group in groups.values():
        # A value is the same object in all combinations that contain it.
        values = [{(name, id(v)) for name, v in item.callspec.params.items()} for item in group]
        for i in set(range(len(group))) - set(showing_each_value(values)):
            group[i].add_marker(pytest.mark.slow)
    _put_in_order(items)


def _put_in_order(items: list[pytest.Item]) -> None:
    """Sort the tests: pages, then chapters, then others, and last those that wait for the site."""
    wait = {item.path for item in items if "site" in getattr(item, "fixturenames", ())}

    def turn(item: pytest.Item) -> int:
        if item.path.name == "test_pages.py":
            return 0
        if item.path in wait:
            return 3
        return 1 if item.path.suffix == ".ipynb" else 2

    items.sort(key=turn)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each reason for skipping once, with the number of tests and what to install."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return the path of Chromium; without it skip the test, or fail it in CI."""
    if found := chromium.find():
        return found
    if os.environ.get("CGMM_REQUIRE_BROWSER") == "1":
        pytest.fail(chromium.MISSING)
    pytest.skip(chromium.MISSING)


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    """Yield one headless browser for each test module, without a network."""
    with sync_playwright() as engine:
        browser = chromium.launch(engine)
        yield browser
        browser.close()
