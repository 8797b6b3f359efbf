"""A browser for the tests of the page; the trace of a test that fails is kept."""

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lanes import REPO, chromium

TRACES = REPO / ".traces"
"""Where the trace of a failed browser test is kept; `playwright show-trace FILE` shows one."""

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test failed, for the fixture of its page."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu"]
        made = started.chromium.launch(executable_path=chromium(), args=options)
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page that fails the test if a script fails or the policy of the page was broken.

    Requests that end with the server are not a fault.
    """
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    context.tracing.start(screenshots=True, snapshots=True)
    made = context.new_page()
    made.set_default_timeout(15_000)
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield made
    found = [fault for fault in faults if "net::ERR_" not in fault]
    context.tracing.stop(path=trace_of(request.node) if found or _FAILED in request.node.stash else None)
    context.close()
    assert found == []


def trace_of(item: pytest.Item) -> Path:
    """The file of the trace of a test."""
    name = re.sub(r"[^\w.-]+", "-", item.nodeid.removeprefix("tests/"))
    return TRACES / f"{name}.zip"
