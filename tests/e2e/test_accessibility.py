"""Every page of `sessionary serve` by the rules of axe-core: nothing serious or critical, light and dark.

Nor is any page wider than a telephone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.orchestrator.store import FeatureStore
from tests.e2e.test_browser import opened, press, turn, write
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


def tab(page: Any, name: str) -> None:
    drawer(page)
    page.click(f"#tab-{name}")
    page.wait_for_selector("#panel :text('reading…')", state="detached")


def files(page: Any) -> None:
    tab(page, "files")
    page.wait_for_selector("#panel button.file")


def stored_records(page: Any) -> None:
    tab(page, "records")
    page.wait_for_selector("#panel .record[open] pre")


def rewinding(page: Any) -> None:
    tab(page, "actions")
    page.click("#panel button:text('Rewind')")
    page.fill("#panel input", "0")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel .go")


def exporting(page: Any) -> None:
    tab(page, "actions")
    page.click("#panel button:text('Export')")
    page.click("#panel .export button")
    page.wait_for_selector("#panel .go")


def resuming(page: Any) -> None:
    tab(page, "resume")
    page.wait_for_selector("#panel pre.command")


def finding_here(page: Any) -> None:
    a_session(page)
    page.fill("input.find", "it")
    page.wait_for_selector(".found-count:text('of')")


def keys(page: Any) -> None:
    page.locator("#help").click()
    page.wait_for_selector("dialog dt")


def overview(page: Any) -> None:
    page.evaluate("location.hash = '#/overview'")
    page.wait_for_selector("figure:has-text('EMS of')")


def charts(page: Any) -> None:
    a_session(page)
    press(page, "Charts")
    page.wait_for_selector(".overview figure")


def board(page: Any) -> None:
    page.locator("a.session", has_text="Hello").click()
    press(page, "Charts")
    page.wait_for_selector(".board .task.completed")


def work(page: Any) -> None:
    page.locator("a.session", has_text="Sort").click()
    press(page, "Charts")
    page.wait_for_selector("figure:has-text('Work over time')")


def choice(page: Any) -> None:
    a_session(page)
    press(page, "Compare")
    page.wait_for_selector(".choices a")


def diff(page: Any) -> None:
    choice(page)
    page.locator(".choices a", has_text="Well").click()
    page.wait_for_selector(".pair")


PAGES: list[Callable[[Any], None]] = [
    a_list,
    hits,
    a_session,
    drawer,
    files,
    stored_records,
    rewinding,
    exporting,
    resuming,
    finding_here,
    keys,
    overview,
    charts,
    board,
    work,
    choice,
    diff,
]


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
    project(tmp_path / "home")
    return tmp_path


def project(home: Path) -> None:
    """A feature, a brainstorm with a branch, and work with work below it."""
    features = FeatureStore(home)
    feature = features.create("hello-2025-01-09", name="Hello")
    tasks = [{"task_id": one, "description": f"Do {one}", "agent": "coder", "artifacts": []} for one in "ABC"]
    features.save_plan(feature, [{"phase_id": "p", "name": "First", "tasks": tasks}])
    for task, state in (("A", "in_progress"), ("A", "completed"), ("B", "in_progress")):
        features.task(feature, task, state)
    features.append(feature, {"command": "test", "status": "failure", "error": "no", "duration_ms": 1200})
    (home / ".ai-session" / feature / ".state.lock").write_text("999999999\n")
    brainstorms = BrainstormStore(home)
    brainstorms.create("auth")
    for ems in (40, 55, 70):
        brainstorms.answer("auth", ["yes"])
        brainstorms.continue_("auth", ems=ems)
    brainstorms.back("auth", 2)
    brainstorms.answer("auth", ["no"])
    work = WorkStore(home / "docs" / "sessions")
    top = work.create("work_track", purpose="Sort the imports").session_id
    child = work.create("work_task", top, purpose="Move one").session_id
    work.write_breadcrumb(create_breadcrumb("ask", "answer", [], [], None, 0, "m", {}), child)
    work.complete(child)


@pytest.mark.parametrize("show", PAGES, ids=lambda one: one.__name__)
def test_nothing_serious_is_found_and_it_fits_a_telephone(
    home: Path, page: Any, show: Callable[[Any], None]
) -> None:
    with serving(home, "--no-open") as process:
        opened(page, line(process))
        show(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert (scheme, faults(page)) == (scheme, [])
        page.set_viewport_size({"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_fault_would_be_found(home: Path, page: Any) -> None:
    with serving(home, "--no-open") as process:
        opened(page, line(process))
        page.evaluate("document.getElementById('main').append(document.createElement('button'))")
        assert [fault.partition(":")[0] for fault in faults(page)] == ["critical button-name"]
