"""The chats of Aider: several in one file, headings and prompts within fenced code, folders of projects."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.catalog import Unread
from sessionary.cli import main
from sessionary.errors import StorageFailed
from sessionary.layouts import registry
from sessionary.layouts.agents import aider
from sessionary.layouts.agents.aider import NAME, AiderLayout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Message, SessionRef, Summary, Usage
from sessionary.testing.cursors import Reader
from sessionary.testing.layout_suite import CountingFs
from sessionary.workspace import Workspace
from tests.lanes import shared_folder
from tests.support import agent_stores
from tests.support.agent_files import messages, require_read_only, words

BEGIN = "\n# aider chat started at 2026-03-01 09:00:00\n\n"
NEXT = "\n# aider chat started at 2026-03-02 10:30:00\n\n"
STARTED = datetime(2026, 3, 1, 9).astimezone(UTC)


def prompt(*lines: str) -> str:
    return "".join(f"#### {line}  \n" for line in lines).join(("\n", ""))


def notice(*lines: str) -> str:
    return "".join(f"> {line}  \n" for line in lines)


def answer(text: str) -> str:
    return f"\n{text}\n\n"


FIRST = (
    BEGIN
    + notice("/usr/bin/aider --model x", "Aider v0.86.1", "Main model: gpt-5 with diff edit format")
    + prompt("/add a.py")
    + notice("Added a.py to the chat")
    + prompt("Fix the login race", "in a.py")
    + answer("Use a lock:\n\n```python\n#### not a prompt\n> not a notice\n```\n\nDone.")
    + notice("Tokens: 3.2k sent, 150 received. Cost: $0.01 message, $0.02 session.", "Applied edit to a.py")
)
SECOND = NEXT + prompt("And the logout?") + answer("Same.")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "projects"


def write(home: Path, text: str | bytes, folder: str = "app") -> Path:
    path = home / folder / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_folder_is_known_before_a_chat_is_read(home: Path) -> None:
    header = Unread(AiderLayout(home), only(home, FIRST), b"", None).header()
    assert header is not None
    assert (header.cwd, header.unread) == (str(home / "app"), True)


def refs(home: Path) -> list[SessionRef]:
    return list(AiderLayout(home).discover())


def only(home: Path, text: str | bytes) -> SessionRef:
    write(home, text)
    (ref,) = refs(home)
    return ref


def read(home: Path, ref: SessionRef) -> list[Message]:
    return messages(AiderLayout(home), ref)


def summary(home: Path, ref: SessionRef) -> Summary:
    return summary_of(AiderLayout(home), ref)


def reported(home: Path, text: str) -> list[tuple[str | None, str]]:
    return [(one.origin, one.text) for one in read(home, only(home, text))]


def test_a_conversation(home: Path) -> None:
    found = read(home, only(home, FIRST))
    assert [(one.role, one.origin) for one in found] == [
        ("system", "harness"),
        ("user", "harness"),
        ("system", "harness"),
        ("user", "person"),
        ("assistant", "agent"),
        ("system", "harness"),
    ]
    assert found[3].text == "Fix the login race\nin a.py"
    assert found[4].text == "Use a lock:\n\n```python\n#### not a prompt\n> not a notice\n```\n\nDone."
    assert (found[4].model, found[0].time, found[4].time) == ("gpt-5", STARTED, None)
    assert (found[3].place.line, found[4].place.line) == (11, 14)


def test_what_a_list_shows(home: Path) -> None:
    found = summary(home, only(home, FIRST))
    assert (found.messages, found.turns, found.title, found.health) == (
        6,
        1,
        "Fix the login race in a.py",
        "ok",
    )
    assert (found.cwd, found.version, found.created) == (str(home / "app"), "0.86.1", STARTED)
    assert found.usage_by_model() == {"gpt-5": Usage(input=3200, output=150, cost=0.01)}
    assert found.size == len(FIRST) - len(BEGIN) + 1


def test_the_chats_of_a_file_are_sessions_with_lasting_ids(home: Path) -> None:
    path = write(home, FIRST + SECOND)
    first, second = refs(home)
    assert {len(one.session_id) for one in (first, second)} == {16}, "a list shows the first eight"
    assert [summary(home, one).title for one in (first, second)] == [
        "Fix the login race in a.py",
        "And the logout?",
    ]
    assert [one.origin for one in read(home, second)] == ["person", "agent"]
    with path.open("a") as file:
        file.write(NEXT + prompt("Started in the same second"))
    again = refs(home)
    assert again[:2] == [first, second]
    assert len({one.session_id for one in again}) == 3
    assert [one.text for one in read(home, again[2])] == ["Started in the same second"]


def test_a_project_that_was_moved_keeps_its_ids(home: Path) -> None:
    write(home, FIRST + SECOND)
    before = [one.session_id for one in refs(home)]
    (home / "group").mkdir()
    (home / "app").rename(home / "group" / "app")
    assert [one.session_id for one in refs(home)] == before


def test_the_same_chat_in_two_folders_is_two_sessions(home: Path) -> None:
    write(home, FIRST)
    write(home, FIRST, "other")
    assert len({one.session_id for one in refs(home)}) == 2


def test_what_is_before_the_first_heading_is_a_session_too(home: Path) -> None:
    write(home, prompt("Lost its heading") + SECOND)
    first, _ = refs(home)
    assert [(one.text, one.time) for one in read(home, first)] == [("Lost its heading", None)]


@pytest.mark.parametrize("text", ["", "\n\n", "\n \n"])
def test_an_empty_file_holds_no_session(home: Path, text: str) -> None:
    path = write(home, text)
    assert refs(home) == []
    assert AiderLayout(home).ref_for_path(path) is None


def test_a_heading_counts_in_fenced_code_that_was_not_closed(home: Path) -> None:
    write(home, BEGIN + prompt("Go") + answer("```python\nx = 1") + notice("^C again to exit") + SECOND)
    first, second = refs(home)
    assert [one.origin for one in read(home, first)] == ["person", "agent", "harness"]
    assert summary(home, second).title == "And the logout?"


@pytest.mark.parametrize(
    "line",
    [
        "# aider chat started at fake",
        "# aider chat started at 2026-03-02 10:30",
        "#  aider chat started at 2026-03-02 10:30:00",
        " # aider chat started at 2026-03-02 10:30:00",
        "# aider chat started at 2026-03-02 10:30:00\nnext line",
    ],
)
def test_a_line_that_is_like_a_heading_begins_no_chat(home: Path, line: str) -> None:
    assert "aider chat" in reported(home, BEGIN + prompt("Go") + answer(line))[-1][1]


def test_headings_and_quotes_of_the_model_are_not_prompts(home: Path) -> None:
    text = "#### Step one\n\n> a quote\n\n#### Step two"
    assert reported(home, BEGIN + prompt("Go") + answer(text) + prompt("Thanks")) == [
        ("person", "Go"),
        ("agent", text),
        ("person", "Thanks"),
    ]


def test_lines_whose_spaces_an_editor_removed(home: Path) -> None:
    text = (FIRST + prompt("Thanks")).replace("  \n", "\n")
    assert [origin for origin, _ in reported(home, text)] == [
        "harness", "harness", "harness", "person", "agent", "harness", "person",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("opening", "closing", "is_open"),
    [
        ("```", "```", False),
        ("````md", "````", False),
        ("~~~", "~~~~", False),
        ("````", "```", True),
        ("```", "~~~", True),
        ("```", "```py", True),
    ],
)
def test_fences(home: Path, opening: str, closing: str, is_open: bool) -> None:
    text = BEGIN + f"#### Go\n\n{opening}\ncode\n{closing}\n\n#### Next\n"
    assert len(reported(home, text)) == (2 if is_open else 3)


def test_prompts_that_follow_each_other_are_turns_of_their_own(home: Path) -> None:
    assert summary(home, only(home, BEGIN + prompt("One", "still one") + prompt("Two"))).turns == 2


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("/add a.py", 0),
        ("/exit", 0),
        ("!make", 0),
        ("<blank>", 0),
        ("/ask why?", 1),
        ("/ask", 0),
        ("/home/u/app is broken", 1),
        ("Why?", 1),
    ],
)
def test_commands_begin_no_turn(home: Path, text: str, turns: int) -> None:
    assert summary(home, only(home, BEGIN + prompt(text))).turns == turns


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("Tokens: 812 sent, 1,024 received.", Usage(input=812, output=1024)),
        (
            "Tokens: 12k sent, 2.0k cache write, 8.5k cache hit, 30 received. Cost: $0.0034 message, $1 session.",
            Usage(input=1500, output=30, cache_read=8500, cache_write=2000, cost=0.0034),
        ),
        ("Tokens: 1M sent, 0 received.", Usage(input=1_000_000)),
        ("Tokens: . sent, , received.", Usage()),
    ],
)
def test_what_a_response_cost(home: Path, line: str, usage: Usage) -> None:
    found = summary(home, only(home, BEGIN + notice("Model: m with whole edit format", line)))
    assert found.usage_by_model() == {"m": usage}
    assert [one.quarter for one in found.usage] == [int(STARTED.timestamp()) // 900]


def test_the_bytes_of_a_message(home: Path) -> None:
    path = write(home, FIRST + SECOND)
    first, second = refs(home)
    layout = AiderLayout(home)
    found = read(home, first)
    assert layout.raw(first, found[3].place).decode() == prompt("Fix the login race", "in a.py")[1:] + "\n"
    last = read(home, second)[-1]
    assert layout.raw(second, last.place) == b"Same.\n\n"
    assert [(one.name, one.path) for one in layout.parts(first)] == [(NAME, str(path))]


def test_an_older_chat_keeps_its_time_and_fingerprint(home: Path) -> None:
    path = write(home, FIRST + SECOND)
    first, second = refs(home)
    before = [AiderLayout(home).fingerprint(one) for one in (first, second)]
    with path.open("a") as file:
        file.write(prompt("More"))
    after = [AiderLayout(home).fingerprint(one) for one in (first, second)]
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    assert summary(home, first).updated == STARTED
    assert (summary(home, second).updated or STARTED) > STARTED
    path.unlink()
    assert AiderLayout(home).fingerprint(first) == b""


@pytest.mark.parametrize("stamp", ["2026-13-01 09:00:00", "0000-01-01 00:00:00", "0001-01-01 00:00:00"])
def test_a_heading_with_an_impossible_time_begins_a_chat(home: Path, stamp: str) -> None:
    found = summary(home, only(home, f"# aider chat started at {stamp}\n\n#### Go\n"))
    assert found.title == "Go"


# -- damage


def test_damaged_text_is_reported_with_its_place(home: Path) -> None:
    text = (BEGIN + prompt("Go")).encode() + b"\nbad \xff byte\n\0\0\0\nfine\n"
    found = summary(home, only(home, text))
    assert [(one.code, one.line, one.byte) for one in found.problems] == [
        ("bad_utf8", 7, text.index(b"\xff")),
        ("nul_run", 8, text.index(b"\0")),
    ]
    assert found.health == "lost_data"
    assert "fine" in words(AiderLayout(home), refs(home)[0])


def test_any_damage_ends_no_reader_and_hides_no_line(home: Path) -> None:
    data, chance = (FIRST + SECOND).encode(), random.Random(5)
    for _ in range(300):
        at, length = chance.randrange(len(data)), chance.choice((0, 1, 3))
        spoilt = data[:at] + bytes(chance.randrange(256) for _ in range(2)) + data[at + length :]
        write(home, spoilt)
        layout = AiderLayout(home)
        text = "\n".join(words(layout, ref) for ref in refs(home))
        for line in ("Use a lock:", "Done.", "And the logout?", "Same."):
            begin = data.index(line.encode())
            near = begin - 60 <= at <= begin + len(line) + 4
            assert near or line in text
        assert list(summaries(layout))


def test_a_line_of_any_length_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aider, "WINDOW", 512)
    long = "x" * 5_000
    write(home, FIRST + prompt(long) + answer(long) + SECOND + FIRST + SECOND)
    found = refs(home)
    assert len({one.session_id for one in found}) == 4
    assert [one.text for one in read(home, found[0])][-2:] == [long, long]
    monkeypatch.undo()
    assert refs(home) == found


# -- from a cursor


def test_what_is_added_is_read_alone(home: Path) -> None:
    ref = only(home, FIRST)
    path = home / "app" / NAME
    reader = Reader(AiderLayout(home), ref)
    reader.go_on()
    for added in (
        prompt("And?"),
        answer("Yes.") + notice("Tokens: 5 sent, 6 received."),
        prompt("Two") + prompt("3"),
    ):
        with path.open("a") as file:
            file.write(added)
        reader.go_on()
    with path.open("a") as file:
        file.write(SECOND)
    reader.go_on()
    assert reader.resets == 0


@pytest.mark.parametrize("added", [notice("Commit 1234"), "x\n" + notice("y")])
def test_what_continues_the_last_message_begins_anew(home: Path, added: str) -> None:
    text = FIRST if added.startswith(">") else FIRST + prompt("Go") + answer("Yes")
    ref = only(home, text)
    reader = Reader(AiderLayout(home), ref)
    reader.go_on()
    with (home / "app" / NAME).open("a") as file:
        file.write(added)
    reader.go_on()
    assert reader.resets == 1


def test_a_file_that_was_written_anew_begins_anew(home: Path) -> None:
    ref = only(home, FIRST)
    reader = Reader(AiderLayout(home), ref)
    reader.go_on()
    write(home, FIRST.replace("Done.", "Gone.") + prompt("More"))
    reader.go_on()
    assert reader.resets == 1


@pytest.mark.parametrize("seed", range(60))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, seed: int) -> None:
    choose = random.Random(seed)
    path = write(home, BEGIN)
    (ref,) = refs(home)
    reader, half = Reader(AiderLayout(home), ref), ""
    for number in range(40):
        half += choose.choice(
            [
                prompt(f"prompt {number}", "more"),
                prompt(f"prompt {number}").replace("  \n", "\n"),
                answer(f"answer {number}"),
                answer(f"```\n#### {number}\n> x\n```"),
                answer("```"),
                notice(f"notice {number}", "Model: m with x", "Tokens: 1 sent, 2 received."),
                "\n",
                NEXT if number > 30 else "\n",
            ]
        )
        cut = len(half) if choose.random() < 0.8 else choose.randint(0, len(half))
        with path.open("a") as file:
            file.write(half[:cut])
        half = half[cut:]
        reader.go_on()


# -- where chats are


def test_folders_are_searched_two_levels_deep(home: Path) -> None:
    for folder in (".", "app", "group/app", "group/sub/app", ".hidden"):
        write(home, FIRST, folder)
    (home / "link").symlink_to(home / "app")
    assert {one.project for one in refs(home)} == {
        str(home),
        str(home / "app"),
        str(home / "group" / "app"),
    }


def test_the_folders_that_are_given_are_searched(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, FIRST)
    write(home, FIRST, "group/other")
    elsewhere = tmp_path / "named.md"
    elsewhere.write_text(SECOND)
    monkeypatch.setenv("AIDER_CHAT_HISTORY_FILE", str(elsewhere))
    layout = AiderLayout(home)
    layout.look_in(lambda: [str(home / "group" / "other"), "relative", "/nothing", "/nul\0"])
    assert {one.locator.partition("#")[0] for one in layout.discover()} == {
        str(elsewhere),
        str(home / "group" / "other" / NAME),
    }
    assert sorted(one.path for one in layout.locations()) == [
        str(elsewhere),
        str(home / "group" / "other" / NAME),
    ]


def test_a_file_that_cannot_be_read_hides_no_other(home: Path) -> None:
    write(home, FIRST, "zz")
    write(home, FIRST, "app")
    fs = CountingFs()
    opened, fs.open = fs.open, lambda path, *rest: _refused(path, "app", opened, *rest)  # type: ignore[method-assign]
    found = AiderLayout(home, fs).discover()
    assert next(found).project == str(home / "zz")
    with pytest.raises(StorageFailed):
        next(found)


def _refused(path: str, name: str, opened: Any, *rest: Any) -> Any:
    if f"/{name}/" in path:
        raise PermissionError(path)
    return opened(path, *rest)


def test_a_path_names_the_last_chat_of_a_file(home: Path) -> None:
    path = write(home, FIRST + SECOND)
    layout = AiderLayout(home)
    first, second = refs(home)
    assert layout.ref_for_path(path) == second
    assert layout.ref_for_path(Path(first.locator)) == first
    assert layout.ref_for_path(home / "app") is None
    assert list(AiderLayout(home / "nothing").discover()) == []
    assert [one.state for one in AiderLayout(home / "nothing").locations()] == ["missing"]
    assert AiderLayout in registry.AGENTS


def test_nothing_is_written(home: Path) -> None:
    write(home, FIRST + SECOND)
    (home / "app" / ".aider.input.history").write_text("# 2026\n+x\n")
    require_read_only(AiderLayout, home)


# -- through the commands


def test_every_reading_command_reads_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("AIDER_CHAT_HISTORY_FILE", raising=False)
    write(home, FIRST + SECOND)
    (home / "app" / "src").mkdir()
    monkeypatch.chdir(home / "app" / "src")
    first, second = refs(home)
    for given, expected in (
        (["list"], "Fix the login race"),
        (["show", first.session_id], "Use a lock"),
        (["search", "logout"], second.session_id[:8]),
        (["stats", "--json"], '"gpt-5"'),
        (["doctor"], "2 sessions"),
        (["open", second.session_id], "aider --restore-chat-history"),
    ):
        assert main(given) == 0, given
        assert expected in capsys.readouterr().out, given
    rows: Any = json.loads(run(capsys, "list", "--json"))
    assert {(one["kind"], one["cwd"]) for one in rows} == {("aider", str(home / "app"))}
    assert len(json.loads(run(capsys, "list", "--json", "--home", str(home)))) == 2


def run(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    assert main(list(given)) == 0
    return capsys.readouterr().out


def test_the_folders_of_other_agents_are_searched(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIDER_CHAT_HISTORY_FILE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    for variable in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    write(home, FIRST)
    claude = tmp_path / "user" / ".claude" / "projects" / "app" / "c1.jsonl"
    claude.parent.mkdir(parents=True)
    said = {
        "type": "user",
        "uuid": "u",
        "cwd": str(home / "app"),
        "message": {"role": "user", "content": "Hi"},
    }
    claude.write_text(json.dumps(said) + "\n")
    workspace = Workspace(cache=str(tmp_path / "cache"))
    assert {one.ref.kind for one in workspace.summaries()} == {"claude_code", "aider"}


def test_chats_are_archived_and_read_from_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_stores.enter(tmp_path / "user", monkeypatch)
    monkeypatch.delenv("AIDER_CHAT_HISTORY_FILE", raising=False)
    path = write(home, FIRST + SECOND, ".config")
    monkeypatch.chdir(path.parent)
    agent_stores.age(home)
    report = Workspace().archive().run()
    assert (report.failed, len(report.pushed)) == ([], 2)
    before = {one.ref.session_id: (one.title, one.cwd, one.messages) for one in Workspace().list()}
    path.unlink()
    workspace = Workspace()
    found = workspace.list()
    assert {one.ref.session_id: (one.title, one.cwd, one.messages) for one in found} == before
    texts = {
        message.text for one in found for message in workspace.read(one.ref) if isinstance(message, Message)
    }
    assert {"And the logout?", "Fix the login race\nin a.py"} <= texts
    archive = workspace.archive()
    archive.restore(archive.find(found[0].ref.session_id), tmp_path / "out")
    assert (tmp_path / "out" / "config" / NAME).read_text() == FIRST + SECOND


@pytest.mark.lane("samples")
def test_the_public_case() -> None:
    (folder,) = (shared_folder() / "cases").glob("D01-*")
    expected = json.loads((folder / "CASE.json").read_text())["expect"]
    found = list(summaries(AiderLayout(folder)))
    assert len(found) == expected["sessions"]
    assert [one.turns for one in found] == expected["user_turns"]
