"""Every page of `sessionary serve` by the rules of axe-core: nothing serious or critical, light and dark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_browser import turn, write
from tests.e2e.test_serve import line, serving
from tests.servers import npm

pytestmark = [pytest.mark.lane("chromium"), pytest.mark.lane("axe")]


def faults(page: Any) -> list[str]:
    """What axe finds that is serious or critical: the rule, and where."""
    page.evaluate(npm.script("axe-core", "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['impact']} {rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def a_list(page: Any) -> None:
    page.wait_for_selector("a.session")


def hits(page: Any) -> None:
    page.fill("#search", "fix it")
    page.wait_for_selector("a.hit mark")


def a_session(page: Any) -> None:
    page.locator("a.session", has_text="Torn").click()
    page.wait_for_selector("article.agent .text:not(.plain)")
    page.wait_for_selector(".problem")


def drawer(page: Any) -> None:
    a_session(page)
    page.locator(".transcript").focus()
    page.keyboard.press("d")
    page.wait_for_selector("#drawer .found")


def keys(page: Any) -> None:
    page.locator("#help").click()
    page.wait_for_selector("dialog dt")


def overview(page: Any) -> None:
    page.evaluate("location.hash = '#/overview'")
    page.wait_for_selector(".overview .facts")


PAGES: list[Callable[[Any], None]] = [a_list, hits, a_session, drawer, keys, overview]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Sessions that show everything: damage, a failed tool, thinking, code, usage."""
    shown = [
        *turn(1, "Please fix it\n\n```python\nimport os  # now\nprint('x', 1)\n```\n\n> said\n\n"),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm " * 40}]},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "e",
                    "name": "edit_file",
                    "input": {"path": "/a", "old_string": "b", "new_string": "c"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "e", "content": "Error: no such file", "is_error": True},
    ]
    write(tmp_path / "home", "torn", "Torn", shown, tail=b'{"role": "us')
    write(tmp_path / "home", "well", "Well", turn(2))
    return tmp_path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("show", PAGES, ids=lambda one: one.__name__)
def test_nothing_serious_is_found(home: Path, page: Any, show: Callable[[Any], None], scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    with serving(home, "--no-open") as process:
        page.goto(line(process))
        page.wait_for_selector("body.ready")
        show(page)
        assert faults(page) == []


def test_a_fault_would_be_found(home: Path, page: Any) -> None:
    with serving(home, "--no-open") as process:
        page.goto(line(process))
        page.wait_for_selector("body.ready")
        page.evaluate("document.getElementById('main').append(document.createElement('button'))")
        assert [fault.partition(":")[0] for fault in faults(page)] == ["critical button-name"]
