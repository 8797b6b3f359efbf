"""The page of `sessionary serve` in a real browser."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_serve import line, serving

pytestmark = pytest.mark.lane("chromium")

HOSTILE = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'><svg onload='window.owned = 3'></svg>"
    "[x](javascript:window.owned=4) \u202ebidi\u202c"
)


def turn(number: int, text: str = "Please fix it") -> list[dict[str, Any]]:
    time = f"2026-11-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    call = {"id": f"c{number}", "tool": "bash", "arguments": {"command": f"pytest -q t{number}.py"}}
    return [
        {"role": "user", "content": f"{text} {number}", "timestamp": time},
        {
            "role": "assistant",
            "content": f"I run **test {number}**.",
            "tool_calls": [call],
            "timestamp": time,
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"out {number}", "timestamp": time},
        {"role": "assistant", "content": f"Fixed {number}.", "timestamp": time},
    ]


def write(home: Path, session: str, title: str, messages: list[dict[str, Any]], tail: bytes = b"") -> Path:
    folder = home / "projects" / "-work-app" / "sessions" / session
    folder.mkdir(parents=True)
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in messages)
    (folder / "transcript.jsonl").write_bytes(lines + tail)
    (folder / "metadata.json").write_text(json.dumps({"session_id": session, "name": title}))
    return folder / "transcript.jsonl"


def expect(found: Any) -> Any:
    """Assertions that wait: rows are drawn in the next frame, texts when the server has answered."""
    from playwright.sync_api import expect as waiting

    waiting.set_options(timeout=15_000)
    return waiting(found)


def until(page: Any, expression: str) -> None:
    """Wait for an expression to be true. Playwright waits with `eval`, which the policy of the page forbids."""
    end = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def opened(page: Any, link: str) -> None:
    """Open the page, and wait until all rows are here: until then the list and the start are drawn anew."""
    page.goto("about:blank")  # a link that differs in its fragment alone would not load the page
    page.goto(link)
    page.wait_for_selector("body.ready.complete #list :is(.row, .empty)")


def press(page: Any, label: str) -> None:
    """Press a control of the toolbar of a session, which may be in its menu."""
    page.wait_for_selector(".session-head .bar")
    if page.locator(".more-controls").is_visible():
        page.locator(".more-controls").click()
    page.locator(".session-head .bar :is(a, button)", has_text=label).first.click()


def test_a_session_is_found_read_and_followed(tmp_path: Path, page: Any) -> None:
    home = tmp_path / "home"
    for number in range(60):
        write(home, f"s{number:03}", f"Session {number}", turn(number))
    running = write(home, "running", "The running one", [one for at in range(100) for one in turn(at)])
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        assert "#token" not in page.url
        assert page.context.cookies() == []
        expect(page.locator("#count")).to_have_text("61 sessions")
        assert page.locator("a.session").count() < 40  # only those near the screen are in the page

        page.fill("#search", "fix it 57")
        page.wait_for_selector("a.hit mark")
        page.locator("a.hit", has_text="fix it 57").first.click()
        page.wait_for_selector("article.message.person")
        expect(page.locator(".session-head h2")).to_have_text(re.compile("^(Session 57|The running one)$"))
        page.press("#search", "Escape")

        page.locator("a.session", has_text="The running one").first.click()
        page.wait_for_selector(".live:text('following')")
        page.locator(".transcript").focus()
        page.keyboard.press("G")
        page.wait_for_selector("text=Fixed 99.")
        assert page.locator("article.message").count() < 80
        with running.open("ab") as file:
            file.write(b'{"role": "user", "content": "written by another process"}\n')
        page.wait_for_selector("text=written by another process")
        page.keyboard.press("g")
        page.wait_for_selector("text=Please fix it 0")


def test_a_deep_link_opens_at_its_message(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "long", "Long", [one for at in range(200) for one in turn(at)])
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.locator("a.session").click()
        page.wait_for_selector("article")
        page.evaluate("location.hash += '/600'")
        page.wait_for_selector(".marked")
        expect(page.locator(".marked")).to_contain_text("Please fix it 150")
        assert page.locator(".marked").bounding_box()["y"] < 700


def test_a_hostile_transcript_does_nothing(tmp_path: Path, page: Any) -> None:
    messages = [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": HOSTILE}]
    write(tmp_path / "home", "bad", HOSTILE, messages)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with serving(tmp_path, "--no-open") as process:
        link = line(process)
        opened(page, link)
        page.locator("a.session").click()
        page.wait_for_selector("article.agent .text:not(.plain)")
        assert page.evaluate("window.owned") is None
        expect(page.locator("article img, article script, article svg, article a")).to_have_count(0)
        expect(page.locator("article.agent")).to_contain_text("<script>")
        assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {link.split("/")[2]}


def test_what_is_damaged_is_seen_explained_repaired_and_undone(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "torn", "Torn", turn(1), tail=b'{"role": "us')
    write(tmp_path / "home", "well", "Well", turn(2))
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.select_option("[aria-label=Health]", "damaged")
        expect(page.locator("#count")).to_have_text("1 session · 1 filtered out")
        page.locator("a.session").click()
        page.wait_for_selector(".problem")
        page.locator(".transcript").focus()
        page.keyboard.press("d")
        page.wait_for_selector("#drawer .found")
        expect(page.locator("#drawer")).to_contain_text("torn_tail")
        page.click("#drawer button:text('Repair')")
        page.click("#drawer button:text('Repair now')")
        page.wait_for_selector("#panel .done:has-text('Repaired.')")
        page.wait_for_selector(".session-head .health.well")
        page.click("#drawer button:text('Undo')")
        page.wait_for_selector("#panel .done:has-text('undone')")
        page.wait_for_selector(".session-head .health.lost_data")


@pytest.mark.parametrize("width", [360, 1000])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, page: Any, width: int) -> None:
    long = "x" * 3000 + " " + "| a | b |\n|---|---|\n" + "| " + "y" * 500 + " | z |"
    write(tmp_path / "home", "wide", "w" * 300, [{"role": "user", "content": long}, *turn(1)])
    page.set_viewport_size({"width": width, "height": 700})
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("a.session").click()
        page.wait_for_selector("article.person .text:not(.plain)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("?")
        page.locator("dialog dt").nth(10).wait_for()
