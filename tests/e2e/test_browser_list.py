"""The list and the search of `sessionary serve` in a real browser: keys, filters, marks, no jumps."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.workspace import Workspace
from tests.e2e.test_browser import expect, opened, turn, until, write
from tests.e2e.test_serve import line, serving

pytestmark = pytest.mark.lane("chromium")

_SHIFTS = """
window.shifts = [];
const noted = (list) => shifts.push(...list.getEntries().filter((one) => !one.hadRecentInput).map((one) => one.value));
new PerformanceObserver(noted).observe({ type: "layout-shift", buffered: true });
"""


@contextmanager
def showing(page: Any, *arguments: Any) -> Iterator[None]:
    """The page of a server; it is left before the server ends, since the next one refuses its token."""
    with serving(*arguments) as process:
        opened(page, line(process))
        yield
        page.goto("about:blank")


_FOCUSED = "document.activeElement.querySelector('.title')?.textContent"


def grow(file: Path, second: int) -> None:
    """Add a message of the next year to a session."""
    later = f"{time.gmtime().tm_year + 1}-01-01T00:00:0{second}Z"
    with file.open("ab") as opened_file:
        added = {"role": "assistant", "content": "more", "timestamp": later}
        opened_file.write(json.dumps(added).encode() + b"\n")


def test_the_list_is_moved_in_by_keys_and_enter_opens(tmp_path: Path, page: Any) -> None:
    for number in range(300):
        write(tmp_path / "home", f"s{number:03}", f"Session {number:03}", turn(number))
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.locator("#list").focus()
        moves = ["ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowUp", "Home"]
        for key, title in zip(moves, ["299", "298", "299", "000", "001", "299"], strict=True):
            page.keyboard.press(key)
            until(page, f"{_FOCUSED} === 'Session {title}'")
        page.keyboard.press("PageDown")
        until(page, f"{_FOCUSED} > 'Session 280' && {_FOCUSED} < 'Session 299'")
        below = page.evaluate(_FOCUSED)
        page.keyboard.press("Enter")
        page.wait_for_selector(f".session-head h2:text('{below}')")
        expect(page.locator("#list a[aria-current=page]").first).to_have_attribute("tabindex", "-1")
        until(page, f"{_FOCUSED} === '{below}'")


def test_hits_are_reached_from_the_search_by_keys(tmp_path: Path, page: Any) -> None:
    for number in range(3):
        write(tmp_path / "home", f"s{number}", f"Session {number}", turn(number))
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.keyboard.press("/")
        page.keyboard.type("please fix")
        page.wait_for_selector("#found:text('3 hits in 3 sessions')", state="attached")
        expect(page.locator("a.hit mark")).to_have_text(["Please", "fix"] * 3)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector(".session-head h2:text('Session 1')")
        page.wait_for_selector(".marked:has-text('Please fix it 1')")


def test_stars_and_tags_are_shown_and_filter_with_counts(tmp_path: Path, page: Any) -> None:
    for number in range(4):
        write(tmp_path / "home", f"s{number}", f"Session {number}", turn(number))
    workspace = Workspace(tmp_path / "home", cache=str(tmp_path / "other-cache"))
    for number, one in enumerate(workspace.list()):
        if number < 2:
            workspace.tag(one.ref, ["bug"] + ["login"] * number)
        if number == 1:
            workspace.star(one.ref)
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        expect(page.locator(".tags")).to_have_text(["#bug", "#bug #login"])
        expect(page.locator("a:has(.star) .title")).to_have_text(["Session 2"])
        expect(page.locator("[aria-label=Tag] option")).to_have_text(
            [
                "Tag: all",
                "bug (2)",
                "login (1)",
            ]
        )
        page.select_option("[aria-label=Tag]", "bug")
        expect(page.locator("#count")).to_have_text("2 sessions · 2 filtered out")
        expect(page.locator("[aria-label=Mark] option")).to_have_text(["Mark: all", "starred (1)"])
        page.select_option("[aria-label=Mark]", "starred")
        expect(page.locator("#count")).to_have_text("1 session · 3 filtered out")
        expect(page.locator("[aria-label=Tag] option")).to_have_text(
            [
                "Tag: all",
                "bug (1)",
                "login (1)",
            ]
        )
        page.select_option("[aria-label=Tag]", "")
        page.select_option("[aria-label=Health]", "ok")
        page.select_option("[aria-label=Mark]", "")
        expect(page.locator("#count")).to_have_text("4 sessions")


def test_what_changed_since_it_was_open_is_unread_at_the_next_start_too(tmp_path: Path, page: Any) -> None:
    files = [write(tmp_path / "home", f"s{number}", f"Session {number}", turn(number)) for number in range(3)]
    titles = page.locator("a.unread .title")
    with showing(page, tmp_path, "--no-open"):
        expect(page.locator("a.session")).to_have_count(3)
        expect(titles).to_have_count(0)
        with page.expect_response("**/read"):
            page.locator("a.session", has_text="Session 0").click()
    grow(files[0], 0)
    grow(files[1], 1)
    with showing(page, tmp_path, "--no-open"):
        expect(titles).to_have_count(2)
        assert sorted(titles.all_inner_texts()) == ["Session 0", "Session 1"]
        expect(page.locator("#count")).to_have_text("3 sessions · 2 unread")
        page.select_option("[aria-label=Mark]", "unread")
        with page.expect_response("**/read"):
            page.locator("a.session", has_text="Session 1").click()
        page.locator("a.session").nth(1).wait_for()  # it is drawn again in the next frame
        expect(titles).to_have_text(["Session 0"])
        expect(page.locator("a.session")).to_have_count(2)  # what is being read stays in the list
        grow(files[2], 2)
        page.keyboard.press("r")
        expect(page.locator("a.session")).to_have_count(3)
    with showing(page, tmp_path, "--no-open", "--read-only"):
        expect(titles).to_have_text(["Session 2", "Session 0"])
        expect(page.locator("#all-read")).to_be_hidden()
    with showing(page, tmp_path, "--no-open"):
        with page.expect_response("**/read"):
            page.click("#all-read")
        titles.first.wait_for(state="detached")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_jumps_while_a_long_list_arrives(tmp_path: Path, page: Any, width: int) -> None:
    for number in range(400):
        tail = b'{"role": "us' if number % 7 == 0 else b""
        write(tmp_path / "home", f"s{number:03}", f"Session {number:03}", turn(number), tail)
    page.set_viewport_size({"width": width, "height": 700})
    page.add_init_script(_SHIFTS)
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.wait_for_timeout(300)
        assert page.evaluate("shifts") == []
        expect(page.locator("#count")).to_have_text("400 sessions")
        expect(page.locator("#count").first).to_have_attribute("role", "status")
        expect(page.locator("#list [role=listitem]").first).to_have_attribute("aria-setsize", "400")


_ONLY_THE_FIRST_ROWS = """
const ask = window.fetch, rest = new Promise((go) => (window.sendTheRest = go));
window.fetch = async (path, options) => {
  if (String(path).startsWith("/api/sessions?since=")) await rest;
  return ask(path, options);
};
"""


def test_a_link_to_a_session_does_not_wait_for_the_list(tmp_path: Path, page: Any) -> None:
    for number in range(100):
        write(tmp_path / "home", f"s{number:03}", f"Session {number:03}", turn(number))
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.click("a.session")
        page.wait_for_selector(".live:text('following')")
        link = page.url
        page.locator("#list").focus()
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        page.wait_for_selector(".session-head h2:text('Session 000')")
        assert page.url != link
        page.add_init_script(_ONLY_THE_FIRST_ROWS)
        page.reload()
        page.wait_for_selector("article:has-text('Fixed 0.')")
        page.wait_for_selector(".live:text('following')")
        expect(page.locator("#count")).to_have_text("reading 100 sessions…")
        expect(page.locator("a.session.current")).to_have_count(0)
        page.evaluate("sendTheRest()")
        page.wait_for_selector("a.session.current:has-text('Session 000')")
        expect(page.locator("#count")).to_have_text(re.compile("^100 sessions"))


def test_the_link_of_the_next_start_works_in_the_same_tab(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "one", "One", turn(1))
    for title in ("One", "Two"):
        with serving(tmp_path, "--no-open") as process:
            with page.expect_response("**/api/refresh"):  # later requests of the first page would be refused
                page.goto(line(process))
            page.wait_for_selector(f"a.session:has-text('{title}')")
            assert "#token" not in page.url
        if title == "One":
            write(tmp_path / "home", "two", "Two", turn(2))


def test_rows_that_are_removed_leave_the_list(tmp_path: Path, page: Any) -> None:
    files = [write(tmp_path / "home", f"s{number}", f"Session {number}", turn(number)) for number in range(3)]
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        files[1].parent.rename(tmp_path / "elsewhere")
        write(tmp_path / "home", "s9", "Session 9", turn(9))
        page.keyboard.press("r")
        page.wait_for_selector("a.session:has-text('Session 9')")
        expect(page.locator("a.session .title")).to_have_text(["Session 9", "Session 2", "Session 0"])


def test_a_day_of_the_year_and_a_bar_choose_what_the_list_shows(tmp_path: Path, page: Any) -> None:
    now = datetime.now(UTC)
    for number, ago in enumerate((0, 0, 3)):
        time = (now - timedelta(days=ago)).isoformat()
        said = [{**one, "timestamp": time} for one in turn(number)]
        said[1]["metadata"] = {"usage": {"input_tokens": 10, "output_tokens": 5}}
        write(tmp_path / "home", f"s{number}", f"Session {number}", said)
    with showing(page, tmp_path, "--no-open"):
        page.evaluate("location.hash = '#/overview'")
        page.wait_for_selector(".days .heat4")
        page.locator(".days .heat4").click()
        expect(page.locator("#count")).to_have_text("2 sessions · 1 filtered out")
        page.click("#filters .day")
        expect(page.locator("#count")).to_have_text("3 sessions")
        page.locator(".days").focus()
        for key in ("ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"):  # the first one marks the last day
            page.keyboard.press(key)
        page.wait_for_selector("figure [role=status]:has-text('1 session')")
        page.keyboard.press("Enter")
        expect(page.locator("a.session .title")).to_have_text(["Session 2"])
        expect(page.locator("#list .empty")).to_have_count(0)
