"""The page of a session in a real browser: the drawer, the actions, branches, images, find, and the live stream."""

import json
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_browser import expect, opened, press, turn, until, write
from tests.e2e.test_serve import line, serving
from tests.unit.layouts.agents.test_opencode import Store
from tests.unit.layouts.agents.test_opencode import text as words
from tests.unit.viewer.test_details import CLAUDE, TREE, block, claude, said

pytestmark = pytest.mark.lane("chromium")


def opened_at(page: Any, process: Any, title: str) -> None:
    """Open the page and a session in it."""
    opened(page, line(process))
    page.locator("a.session", has_text=title).first.click()
    page.wait_for_selector(".live:text('following')")
    page.locator(".transcript").focus()


def test_someone_finds_a_damaged_session_repairs_it_and_follows_a_running_one(
    tmp_path: Path, page: Any
) -> None:
    home = tmp_path / "home"
    for number in range(5):
        write(home, f"s{number}", f"Session {number}", turn(number))
    torn = write(home, "torn", "Torn by a crash", turn(7, "The needle"), tail=b'{"role": "us')
    running = write(home, "running", "Running", turn(8))
    before = torn.read_bytes()
    with serving(tmp_path, "--no-open") as process:
        opened(page, line(process))
        page.fill("#search", "needle")
        page.locator("a.hit").first.click()
        page.wait_for_selector(".session-head h2:text('Torn by a crash')")
        page.press("#search", "Escape")

        page.wait_for_selector(".problem.lost_data")
        page.click(".session-head button.health")
        page.wait_for_selector("#drawer .found")
        expect(page.locator("#panel")).to_contain_text("torn_tail")
        page.wait_for_selector("#panel .hex .damage")
        assert "7b 22 72 6f 6c 65 22" in page.inner_text("#panel .hex").replace("  ", " ")
        expect(page.locator("#panel .preview")).to_contain_text("line 5")
        page.click("#panel .preview button.go")
        page.click("#panel button:text('Repair now')")
        page.wait_for_selector("#panel .done:has-text('Repaired.')")
        page.wait_for_selector(".session-head .health.well")
        page.wait_for_selector(".problem", state="detached")  # the transcript follows the repair
        page.click("#panel button:text('Undo')")
        page.wait_for_selector("#panel .done:has-text('undone')")
        page.wait_for_selector(".session-head .health.lost_data")
        assert torn.read_bytes() == before

        page.locator("a.session", has_text="Running").first.click()
        page.wait_for_selector(".live:text('following')")
        with running.open("ab") as file:
            file.write(b'{"role": "user", "content": "written by another process"}\n')
        page.wait_for_selector("article:has-text('written by another process')")


def test_a_line_of_another_process_is_visible_within_300_ms(tmp_path: Path, page: Any) -> None:
    running = write(tmp_path / "home", "running", "Running", turn(1))
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "Running")
        page.evaluate(
            "window.seen = {}; new MutationObserver(() => { for (const one of document.querySelectorAll('article'))"
            " for (const [word] of one.textContent.matchAll(/sign-\\d+/g)) window.seen[word] ??= Date.now(); })"
            ".observe(document.querySelector('.transcript'), {childList: true, subtree: true})"
        )
        took = []
        for number in range(8):
            written = time.time()
            with running.open("ab") as file:
                file.write(json.dumps({"role": "assistant", "content": f"sign-{number}"}).encode() + b"\n")
            until(page, f"window.seen['sign-{number}']")
            took.append(page.evaluate(f"window.seen['sign-{number}']") / 1000 - written)
        assert sorted(took)[len(took) // 2] < 0.3, took


def test_a_lost_connection_is_said_and_the_page_continues_after_it(tmp_path: Path, page: Any) -> None:
    running = write(tmp_path / "home", "running", "Running", turn(1))
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "Running")
        failing = [True]

        def route(found: Any) -> None:
            if failing[0]:
                found.abort()
            else:
                found.continue_()

        page.route("**/stream?**", route)
        page.keyboard.press("w")
        page.wait_for_selector(".live:text('paused')")
        page.keyboard.press("w")
        page.wait_for_selector(".notice:text('The connection is lost')")
        with running.open("ab") as file:
            file.write(b'{"role": "user", "content": "written meanwhile"}\n')
        failing[0] = False
        page.wait_for_selector("article:has-text('written meanwhile')")
        page.wait_for_selector(".notice:text('Connected again.')")
        expect(page.locator("article:has-text('Please fix it')")).to_have_count(1)


def test_a_server_that_was_started_again_is_said(tmp_path: Path, browser: Any) -> None:
    page = browser.new_page()  # of its own: that it is refused stands in its console
    write(tmp_path / "home", "one", "One", turn(1))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with serving(tmp_path, "--no-open", "--port", port) as process:
        opened(page, line(process))
        page.locator("a.session").click()
        page.wait_for_selector(".live:text('following')")
        process.send_signal(signal.SIGINT)
        process.wait(60)
        page.wait_for_selector(".notice:text('The connection is lost')")
    with serving(tmp_path, "--no-open", "--port", port) as process:
        assert line(process)
        page.wait_for_selector(".notice:text('The server was restarted')")
        page.wait_for_selector("article")  # what was read stays
    page.close()


def test_a_branch_is_chosen_in_the_tree_and_shown(tmp_path: Path, page: Any) -> None:
    claude(tmp_path / "home", TREE)
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "begin")
        texts = page.locator("article .text")
        expect(texts).to_have_text(["begin", "begun", "second way", "yes"])
        press(page, "Details")
        page.click("#tab-branches")
        page.click("#panel button.branch:has-text('deeper, otherwise')")
        page.wait_for_selector(".branch-line:has-text('Branch 2')")
        page.wait_for_selector("article:has-text('still no')")
        expect(texts).to_have_text(["begin", "begun", "first way", "no", "deeper, otherwise", "still no"])
        expect(page.locator("#panel button.branch:has-text('otherwise')").first).to_have_attribute(
            "aria-pressed", "true"
        )
        page.keyboard.press("Escape")
        page.click("button:text('Back to the conversation')")
        page.wait_for_selector("article:has-text('yes')")
        page.click(".forks button:has-text('first way')")
        page.wait_for_selector("article:has-text('no again')")
        page.keyboard.press("b")  # all of them
        page.wait_for_selector("article:has-text('second way')")
        expect(page.locator("article")).to_have_count(len(TREE))
        link = page.evaluate("document.querySelector('article.outside').dataset.at")
        page.evaluate("location.hash = location.hash.split('/').slice(0, 3).join('/') + '/m6'")
        page.wait_for_selector("article.marked:has-text('deeper, otherwise')")
        assert link is not None


def test_images_are_shown_from_memory_and_only_when_they_are_near(tmp_path: Path, page: Any) -> None:
    records = [said("u", None, "user", [{"type": "text", "text": "see"}, block()], 1)]
    for number in range(80):
        parent = "u" if not number else f"a{number - 1}"
        records.append(said(f"a{number}", parent, "assistant", f"answer {number}\n\n" * 4, 2))
    records.append(said("v", "a79", "user", [{"type": "text", "text": "last"}, block()], 3))
    claude(tmp_path / "home", records)
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request) if "/image/" in request.url else None)
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "see")
        until(page, "document.querySelector('.image img')?.naturalWidth === 2")
        assert page.get_attribute(".image img", "src").startswith("blob:")
        assert len(asked) == 1
        assert asked[0].headers["authorization"].startswith("Bearer ")
        assert "token" not in asked[0].url
        page.keyboard.press("G")
        until(page, "document.querySelector('.image img')?.naturalWidth === 2")
        assert len(asked) == 2


def test_find_counts_moves_opens_and_marks(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "one", "One", [one for at in range(60) for one in turn(at)])
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "One")
        page.keyboard.press("f")
        page.keyboard.type("t41.py")
        page.wait_for_selector(".found-count:text('1 of 1')")
        page.wait_for_selector("article.marked details[open]:has-text('pytest -q t41.py')")
        page.fill("input.find", "please fix it 2")
        page.wait_for_selector(".found-count:text('of 11')")
        first = page.inner_text("article.marked")
        page.press("input.find", "Enter")
        until(page, f"document.querySelector('article.marked').innerText !== {json.dumps(first)}")
        shown = "[...CSS.highlights.get('find')].filter((one) => one.startContainer.isConnected).length"
        page.wait_for_selector("article.marked .text:not(.plain)")  # as Markdown
        until(page, f"{shown} > 0 && {shown} === CSS.highlights.get('find').size")
        until(page, "document.activeElement.className === 'find'")
        page.press("input.find", "Escape")
        until(page, "!CSS.highlights.has('find')")
        page.keyboard.press("j")
        until(page, "document.activeElement.tagName === 'ARTICLE'")


def test_skim_shows_prompts_and_last_answers(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "one", "One", [one for at in range(3) for one in turn(at)])
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "One")
        page.keyboard.press("l")
        wanted = [text for at in range(3) for text in (f"Please fix it {at}", f"Fixed {at}.")]
        expect(page.locator("article .text")).to_have_text(wanted)
        page.keyboard.press("l")
        page.wait_for_selector("article:has-text('I run')")


def test_a_compaction_is_a_divider_with_its_sizes_and_a_sub_agent_is_inline(
    tmp_path: Path, page: Any
) -> None:
    big, small = {"input_tokens": 150_000}, {"input_tokens": 12_000}
    records = [
        said("u", None, "user", "begin", 1),
        said("a", "u", "assistant", "long", 2, usage=big),
        said("c", "a", "user", "Summary of it", 5) | {"isCompactSummary": True},
        said("d", "c", "user", "go on", 6),
        said("e", "d", "assistant", "short", 7, usage=small),
    ]
    file = claude(tmp_path / "home", records)
    below = file.with_suffix("") / "subagents" / "agent-1.jsonl"
    below.parent.mkdir(parents=True)
    agent = [said("s", None, "user", "look around", 3), said("t", "s", "assistant", "I looked.", 4)]
    below.write_text("".join(json.dumps(one | {"agentId": "1", "isSidechain": True}) + "\n" for one in agent))
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "begin")
        expect(page.locator(".divider > span")).to_have_text("Compacted here: 150k → 12k tokens")
        page.click(".divider summary")
        page.wait_for_selector(".divider .text:has-text('Summary of it')")
        order = ["message", "message", "sub", "divider", "message", "message"]
        expect(page.locator(".transcript .row")).to_have_class([re.compile(f"^{one} ") for one in order])
        page.click(".sub summary")
        page.wait_for_selector(".sub article:has-text('I looked.')")


def test_files_lead_to_their_calls_and_records_are_paged(tmp_path: Path, page: Any) -> None:
    edit = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "/srv/app/a.py"}}
    records = [said("u", None, "user", "begin", 1)]
    for number in range(70):
        parent = "u" if not number else f"a{number - 1}"
        content: Any = [edit] if number == 60 else f"answer {number}"
        records.append(said(f"a{number}", parent, "assistant", content, 2))
    claude(tmp_path / "home", records)
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "begin")
        page.keyboard.press("i")
        page.click("#panel button.file:text('a.py')")
        page.wait_for_selector(".marked:has-text('/srv/app/a.py')")
        page.click("#tab-records")
        page.wait_for_selector("#panel .record[open] pre:has-text('file_path')")
        page.click("#panel button:text('First') >> nth=0")
        page.wait_for_selector("#panel .record[open] pre:has-text('begin')")
        expect(page.locator("#panel .record")).to_have_count(50)
        page.click("#panel button:text('Later') >> nth=0")
        until(page, "document.querySelectorAll('#panel .record').length === 21")


def test_every_action_of_an_own_session_is_previewed_done_and_undone(tmp_path: Path, page: Any) -> None:
    file = write(tmp_path / "home", "one", "One", [one for at in range(3) for one in turn(at)])
    before = file.read_bytes()
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "One")
        page.keyboard.press("n")
        page.fill("#panel input", "Another name")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel p:has-text('from “One” to “Another name”')")
        page.keyboard.press("Enter")  # the confirmation has the focus
        page.wait_for_selector(".session-head h2:text('Another name')")
        page.keyboard.press("Enter")  # and now the undo
        page.wait_for_selector(".session-head h2:text-is('One')")

        page.keyboard.press("Escape")
        page.keyboard.press("t")
        page.fill("#panel input", "bug login")
        page.keyboard.press("Enter")
        page.click("#panel .go")
        page.wait_for_selector(".session-head .tag:text('#login')")
        page.keyboard.press("Escape")
        page.keyboard.press("s")
        page.wait_for_selector(".session-head [aria-label=Star][aria-pressed=true]")
        page.keyboard.press("U")
        page.wait_for_selector(".session-head [aria-label=Star][aria-pressed=false]")

        page.keyboard.press("Escape")
        page.keyboard.press("W")
        page.fill("#panel input", "1")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel p:has-text('8 messages would be removed, 4 stay')")
        assert file.read_bytes() == before
        page.click("#panel .go")
        page.wait_for_selector("article:has-text('Please fix it 2')", state="detached")
        page.click("#panel button:text('Undo')")
        page.wait_for_selector("article:has-text('Please fix it 2')")
        assert file.read_bytes() == before

        page.click("#panel button:text('Fork')")
        page.fill("#panel input", "2")
        page.keyboard.press("Enter")
        page.click("#panel .go")
        page.wait_for_selector("#panel .done a:text('Open it')")
        until(page, "document.querySelectorAll('a.session').length === 2")
        page.click("#panel button:text('Undo')")
        until(page, "document.querySelectorAll('a.session').length === 1")

        page.click("#panel button:text('Move to trash')")
        page.click("#panel .go")
        until(page, "document.querySelectorAll('a.session').length === 0")
        assert not file.exists()
        page.click("#panel button:text('Undo')")
        until(page, "document.querySelectorAll('a.session').length === 1")
        assert file.read_bytes() == before


def test_an_export_is_saved_after_its_losses_were_shown(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "one", "One", turn(1, "the key is sk-ant-api03-" + "a" * 95))
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "One")
        page.keyboard.press("x")
        page.select_option("#panel select", "md")
        page.check("#panel .check:has-text('Mask') input")
        page.click("#panel button:text-is('Export') >> nth=-1")
        page.wait_for_selector("#panel p:has-text('4 messages')")
        expect(page.locator("#panel")).to_contain_text("Masked")
        with page.expect_download() as waiting:
            page.click("#panel .go")
        saved = waiting.value
        assert saved.suggested_filename == "amplifier-one.md"
        text = Path(saved.path()).read_text("utf-8")
        assert "I run **test 1**" in text
        assert "sk-ant" not in text


def test_a_session_of_another_agent_gets_a_mended_copy(tmp_path: Path, page: Any) -> None:
    file = claude(tmp_path / "home", [said("u", None, "user", "begin", 1)])
    with file.open("a") as added:
        added.write('{"type": "user", "uu')
    before = file.read_bytes()
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "begin")
        expect(page.locator("#panel")).to_be_hidden()
        page.keyboard.press("X")
        page.wait_for_selector("#panel pre:has-text('mended')")
        page.click("#panel .go")
        page.wait_for_selector("#panel .done:has-text('The copy is written')")
        expect(page.locator("#panel .command")).to_contain_text(f"sessionary show {CLAUDE} --home")
        assert file.read_bytes() == before
        page.click("#tab-actions")
        page.wait_for_selector("#panel button:text('Rename')")
        expect(page.locator("#panel button:text-is('Repair')")).to_have_count(0)


def test_a_read_only_server_offers_nothing_that_changes(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "one", "One", turn(1), tail=b'{"role": "us')
    with serving(tmp_path, "--no-open", "--read-only") as process:
        opened_at(page, process, "One")
        page.keyboard.press("a")
        page.wait_for_selector("#panel p:has-text('read-only')")
        expect(page.locator("#panel .bar button")).to_have_text(["Export"])
        page.keyboard.press("Escape")
        page.keyboard.press("s")
        page.wait_for_selector(".notice:has-text('not granted')")


def test_the_drawer_is_used_with_the_keyboard_alone(tmp_path: Path, page: Any) -> None:
    write(tmp_path / "home", "one", "One", turn(1), tail=b'{"role": "us')
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "One")
        page.keyboard.press("j")
        page.keyboard.press("d")
        page.wait_for_selector("#tab-health[aria-selected=true]")
        expect(page.locator("#tab-health")).to_be_focused()
        for name in ("files", "usage", "branches", "records", "actions", "resume"):
            page.keyboard.press("ArrowRight")
            page.wait_for_selector(f"#tab-{name}[aria-selected=true]")
        page.wait_for_selector("#panel pre.command")
        page.keyboard.press("Home")
        page.wait_for_selector("#panel .found")
        page.keyboard.press("Escape")
        expect(page.locator("#drawer")).to_be_hidden()
        until(page, "document.activeElement.classList.contains('marked')")


@pytest.mark.parametrize("width", [360, 1000])
def test_the_drawer_is_not_wider_than_the_screen(tmp_path: Path, page: Any, width: int) -> None:
    write(tmp_path / "home", "one", "w" * 300, [*turn(1)], tail=b'{"role": "' + b"x" * 5000)
    page.set_viewport_size({"width": width, "height": 700})
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "www")
        for name in ("health", "files", "usage", "branches", "records", "actions", "resume"):
            page.locator(".transcript").focus()
            page.keyboard.press("a")
            page.click(f"#tab-{name}")
            page.wait_for_selector("#panel :text('reading…')", state="detached")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            panel = page.locator("#panel").bounding_box()
            assert panel["x"] >= 0
            assert panel["x"] + panel["width"] <= width
            page.click("#drawer .close")


@pytest.mark.parametrize(("width", "tab"), [(1280, False), (1280, True), (1000, True), (360, False)])
def test_the_toolbar_is_one_line_and_all_of_it_is_reached_by_keys(
    tmp_path: Path, page: Any, width: int, tab: bool
) -> None:
    write(tmp_path / "home", "torn", "Torn by a crash", turn(7), tail=b'{"role": "us')
    with serving(tmp_path, "--no-open") as process:
        page.set_viewport_size({"width": width, "height": 700})
        opened_at(page, process, "Torn by a crash")
        if tab:
            page.keyboard.press("i")
            page.wait_for_selector("#panel .files, #panel .hint")
        until(page, "document.querySelectorAll('.session-head .menu > *').length > 0")
        bar = page.locator(".session-head .bar")
        assert bar.bounding_box()["height"] < 40
        inside = bar.evaluate(
            "(bar) => [...bar.children].filter((one) => one.offsetWidth && !one.popover)"
            ".every((one) => one.getBoundingClientRect().right <= bar.getBoundingClientRect().right + 1)"
        )
        assert inside
        shown = bar.evaluate("(box) => [...box.querySelectorAll('button, a')].map((one) => one.textContent)")
        wanted = ["Skim", "Follow", "Details", "Change…", "Resume…", "Charts", "Compare with…"]
        assert [one for one in shown if one in wanted] == wanted
        page.locator(".more-controls").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".session-head .menu:popover-open")
        page.keyboard.press("Tab")
        until(page, "document.querySelector('.session-head .menu').contains(document.activeElement)")
        page.keyboard.press("Escape")
        expect(page.locator(".session-head .menu:popover-open")).to_have_count(0)
        assert "#/s/" in page.url
        expect(page.locator("#drawer")).to_be_visible(visible=tab and width > 760)
        if tab:
            page.keyboard.press("Escape")
        page.locator(".transcript").focus()
        page.keyboard.press("f")
        until(page, "document.activeElement.classList.contains('find')")


def test_every_stored_record_is_shown_with_the_message_that_it_is(tmp_path: Path, page: Any) -> None:
    file = claude(
        tmp_path / "home", [said("u", None, "user", "hello", 1), said("a", "u", "assistant", "hi", 2)]
    )
    file.write_bytes(b'{"type": "summary", "summary": "a fact"}\n' + file.read_bytes() + b"\0\0\0\0\n")
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "a fact")
        page.keyboard.press("i")
        page.click("#tab-records")
        page.wait_for_selector("#panel .record")
        page.click("#panel button:text('First')")
        page.wait_for_selector("#panel .record:has-text('a fact')")
        expect(page.locator("#panel .record > summary")).to_have_count(4)
        shown = page.locator("#panel .record > summary").all_inner_texts()
        assert [one.split("·")[0].strip() for one in shown] == ["line 1", "line 2", "line 3", "line 4"]
        assert ["User" in shown[1], "Agent" in shown[2], "NUL" in shown[3]] == [True] * 3
        page.locator("#panel .record > summary").nth(2).click()
        page.click("#panel .record button:text('Show the message')")
        page.wait_for_selector("article.agent.marked")


def test_every_row_of_a_session_in_a_database_is_shown(tmp_path: Path, page: Any) -> None:
    (tmp_path / "home").mkdir()
    store = Store(tmp_path / "home" / "opencode.db")
    store.session("ses_1", title="In a database")
    store.message("ses_1", "m1", "user", words("hello"))
    store.message("ses_1", "m2", "user", words("again"))
    with serving(tmp_path, "--no-open") as process:
        opened_at(page, process, "In a database")
        page.keyboard.press("G")
        page.keyboard.press("i")
        page.click("#tab-records")
        page.wait_for_selector("#panel .record:has-text('row 2 of message')")
        expect(page.locator("#panel .record")).to_have_count(4)  # from the chosen message on
        page.click("#panel button:text('First')")
        page.wait_for_selector("#panel .record:has-text('row 1 of message')")
        expect(page.locator("#panel .record > summary")).to_have_count(5)
        shown = page.locator("#panel .record > summary").all_inner_texts()
        rows = ["row 1 of message", "row 2 of message", "row 3 of part", "row 4 of part", "row 5 of session"]
        assert [one.split("·")[0].strip() for one in shown] == rows
        assert ["User" in one for one in shown] == [True, True, False, False, False]
        page.locator("#panel .record > summary").nth(2).click()
        expect(page.locator("#panel .record pre").nth(1)).to_contain_text('"text": "hello"')
