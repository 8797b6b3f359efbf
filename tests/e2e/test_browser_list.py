"""The list and the search of `sessionary serve` in a real browser: keys, filters, marks, no jumps."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.workspace import Workspace
from tests.e2e.test_browser import turn, write
from tests.e2e.test_serve import line, serving

pytestmark = pytest.mark.lane("chromium")

_SHIFTS = """
window.shifts = [];
const noted = (list) => shifts.push(...list.getEntries().filter((one) => !one.hadRecentInput).map((one) => one.value));
new PerformanceObserver(noted).observe({ type: "layout-shift", buffered: true });
"""


def opened(page: Any, link: str) -> None:
    page.goto("about:blank")  # a link that differs in its fragment alone would not load the page
    page.goto(link)
    page.wait_for_selector("body.ready.complete")


@contextmanager
def showing(page: Any, *arguments: Any) -> Iterator[None]:
    """The page of a server; it is left before the server ends, since the next one refuses its token."""
    with serving(*arguments) as process:
        opened(page, line(process))
        yield
        page.goto("about:blank")


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.querySelector('.title')?.textContent || ''"))


def test_the_list_is_moved_in_by_keys_and_enter_opens(tmp_path: Path, page: Any) -> None:
    for number in range(300):
        write(tmp_path / "home", f"s{number:03}", f"Session {number:03}", turn(number))
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.locator("#list").focus()
        moves = ["ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowUp", "Home"]
        found = []
        for key in moves:
            page.keyboard.press(key)
            found.append(focused(page))
        wanted = ["299", "298", "299", "000", "001", "299"]
        assert found == [f"Session {number}" for number in wanted]
        page.keyboard.press("PageDown")
        below = focused(page)
        assert "Session 280" < below < "Session 299"
        page.keyboard.press("Enter")
        page.wait_for_selector(f".session-head h2:text('{below}')")
        assert page.get_attribute("#list a[aria-current=page]", "tabindex") == "-1"
        assert focused(page) == below


def test_hits_are_reached_from_the_search_by_keys(tmp_path: Path, page: Any) -> None:
    for number in range(3):
        write(tmp_path / "home", f"s{number}", f"Session {number}", turn(number))
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.keyboard.press("/")
        page.keyboard.type("please fix")
        page.wait_for_selector("#found:text('3 hits in 3 sessions')", state="attached")
        assert page.locator("a.hit mark").all_inner_texts() == ["Please", "fix"] * 3
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
        assert page.locator(".tags").all_inner_texts() == ["#bug", "#bug #login"]
        assert page.locator("a:has(.star) .title").all_inner_texts() == ["Session 2"]
        assert page.locator("[aria-label=Tag] option").all_inner_texts() == [
            "Tag: all",
            "bug (2)",
            "login (1)",
        ]
        page.select_option("[aria-label=Tag]", "bug")
        assert page.inner_text("#count") == "2 sessions · 2 filtered out"
        assert page.locator("[aria-label=Mark] option").all_inner_texts() == ["Mark: all", "starred (1)"]
        page.select_option("[aria-label=Mark]", "starred")
        assert page.inner_text("#count") == "1 session · 3 filtered out"
        assert page.locator("[aria-label=Tag] option").all_inner_texts() == [
            "Tag: all",
            "bug (1)",
            "login (1)",
        ]
        page.select_option("[aria-label=Tag]", "")
        page.select_option("[aria-label=Health]", "ok")
        page.select_option("[aria-label=Mark]", "")
        assert page.inner_text("#count") == "4 sessions"


def test_what_changed_since_it_was_open_is_unread_at_the_next_start_too(tmp_path: Path, page: Any) -> None:
    files = [write(tmp_path / "home", f"s{number}", f"Session {number}", turn(number)) for number in range(3)]
    titles = page.locator("a.unread .title")
    with showing(page, tmp_path, "--no-open"):
        assert titles.count() == 0
        with page.expect_response("**/read"):
            page.locator("a.session", has_text="Session 0").click()
    for number, file in enumerate(files[:2]):
        later = f"{time.gmtime().tm_year + 1}-01-01T00:00:0{number}Z"
        with file.open("ab") as opened_file:
            added = {"role": "assistant", "content": "more", "timestamp": later}
            opened_file.write(json.dumps(added).encode() + b"\n")
    with showing(page, tmp_path, "--no-open"):
        assert sorted(titles.all_inner_texts()) == ["Session 0", "Session 1"]
        assert page.inner_text("#count") == "3 sessions · 2 unread"
        page.select_option("[aria-label=Mark]", "unread")
        with page.expect_response("**/read"):
            page.locator("a.session", has_text="Session 1").click()
        page.locator("a.session").nth(1).wait_for()  # it is drawn again in the next frame
        assert titles.all_inner_texts() == ["Session 0"]
        assert page.locator("a.session").count() == 2  # what is being read stays in the list
    with showing(page, tmp_path, "--no-open", "--read-only"):
        assert titles.all_inner_texts() == ["Session 0"]
        assert page.locator("#all-read").is_hidden()
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
        assert page.inner_text("#count") == "400 sessions"
        assert page.get_attribute("#count", "role") == "status"
        assert page.get_attribute("#list [role=listitem]", "aria-setsize") == "400"


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
        assert page.inner_text("#count") == "reading 100 sessions…"
        assert page.locator("a.session.current").count() == 0
        page.evaluate("sendTheRest()")
        page.wait_for_selector("a.session.current:has-text('Session 000')")
        assert page.inner_text("#count").startswith("100 sessions")


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
        titles = page.locator("a.session .title").all_inner_texts()
        assert titles == ["Session 9", "Session 2", "Session 0"]


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
        assert page.inner_text("#count") == "2 sessions · 1 filtered out"
        page.click("#filters .day")
        assert page.inner_text("#count") == "3 sessions"
        page.locator(".days").focus()
        for key in ("ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"):  # the first one marks the last day
            page.keyboard.press(key)
        page.wait_for_selector("figure [role=status]:has-text('1 session')")
        page.keyboard.press("Enter")
        assert page.locator("a.session .title").all_inner_texts() == ["Session 2"]
        assert page.locator("#list .empty").count() == 0
