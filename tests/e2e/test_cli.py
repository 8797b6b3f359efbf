"""The command line for users and scripts: what is printed where, in which format, and the exit code."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.cli.text import cells
from sessionary.disk.fs import OsFs
from sessionary.errors import StorageFailed
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.workspace import Workspace
from tests.e2e.driving import (
    COMMAND,
    ROOT,
    SPAWNED,
    Make,
    Result,
    Run,
    documented,
    lines,
    put,
    undated,
)

OTHER = "3f0c99aa-0000-4000-8000-000000000002"
NESTED = "9c1d2e3f4a5b6c7d-1111222233334444_file-ops"

SPOKEN = "2026-03-01T09:00:00.000+00:00"
HELLO = {"role": "user", "content": "Fix the login race", "timestamp": SPOKEN}
CALL = {
    "role": "assistant",
    "content": [{"type": "thinking", "thinking": "Let me look."}, {"type": "text", "text": "Looking."}],
    "tool_calls": [{"id": "t1", "tool": "bash", "arguments": {"command": "pytest -q\n", "timeout": 60}}],
    "metadata": {"timestamp": "2026-03-01T09:00:05.000+00:00"},
}
RESULT = {
    "role": "tool",
    "tool_call_id": "t1",
    "name": "bash",
    "content": '{"stdout": "1 failed\\n", "returncode": 1}',
}
DONE = {"role": "assistant", "content": "Done.", "timestamp": "2026-03-01T09:00:09.000+00:00"}
REMINDER = {"role": "user", "content": "<system-reminder>be brief</system-reminder>"}

# Everything that a terminal might obey: screen, title, clipboard, links, C1 controls, reordering, half a pair.
HOSTILE = (
    "R\x1b[2J\x1b]0;t\x07\x1b]52;c;eA==\x07\x9b31m\x08\r\u202eabc\u2066\u200b\ufeff\U000e0041 \ud83d 日本 ✓"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def make(home: Path) -> Make:
    def make(
        session_id: str = ROOT,
        *messages: Mapping[str, Any],
        project: str = "-home-u-app",
        age: timedelta = timedelta(0),
        files: Mapping[str, bytes] | None = None,
        **fields: Any,
    ) -> Path:
        stored = {"session_id": session_id, "created": SPOKEN, "bundle": "bundle:x", **fields}
        said = lines(*(messages or (HELLO, CALL, RESULT, DONE)))
        mine = {"transcript.jsonl": said, "metadata.json": json.dumps(stored).encode(), **(files or {})}
        return put(home, session_id, project, mine, age)

    return make


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, over the test's home."""

    def run(command: str, *arguments: str, bare: bool = False) -> Result:
        where = [] if bare else ["--home", str(home)]
        code = main([command, *where, *arguments])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return run


def real(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    everything = {**os.environ, **environment}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, check=False, env=everything)


# list


def test_list_is_a_table_newest_first(make: Make, run: Run) -> None:
    make(ROOT, *undated(HELLO, CALL, RESULT, DONE), age=timedelta(hours=3), name="The older one")
    make(OTHER, *undated(HELLO), age=timedelta(minutes=5), project="-home-u-web")
    result = run("list")
    assert (result.code, result.err) == (0, "")
    header, newest, oldest = result.out.splitlines()
    assert header.split() == ["ID", "WHEN", "PROJECT", "MSGS", "TURNS", "SIZE", "HEALTH", "TITLE"]
    assert newest.split()[:6] == ["3f0c99aa", "5", "min", "-home-u-web", "1", "1"]
    assert newest.endswith("B  ✓ ok    Fix the login race")
    assert oldest.split()[:6] == ["3f0c81d2", "3", "h", "-home-u-app", "4", "1"]
    assert oldest.endswith("✓ ok    The older one")


def test_a_list_shows_what_has_changed_since_it_was_remembered(
    make: Make, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # What was written a moment ago is remembered, too.
    defaults = fingerprint_of.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "settled", -60)
    old = undated(HELLO, CALL, RESULT, DONE)
    make(ROOT, *old, name="The older one", age=timedelta(hours=3))
    folder = make(OTHER, *undated(HELLO), project="-home-u-web", age=timedelta(minutes=5))
    first = run("list")
    again = run("list")
    assert (again.out, again.err) == (first.out, first.err)

    with (folder / "transcript.jsonl").open("ab") as transcript:
        transcript.write(lines(*undated(HELLO)))
    changed = run("list")
    assert changed.out.splitlines()[1].split()[3:5] == ["-home-u-web", "2"]
    assert changed.out.splitlines()[2].split() == again.out.splitlines()[2].split()
    make(ROOT.replace("3f", "4a", 1), *old, name="A new one", project="-home-u-new", age=timedelta(hours=9))
    assert run("list").out.splitlines()[3].endswith("A new one")

    # A project that is not remembered exists all the same, and one that is gone does not.
    make(NESTED, project="-home-u-late")
    assert [one["id"] for one in run("list", "--project", "late", "--json").json] == [NESTED]
    shutil.rmtree(folder)
    gone = run("list", "--project", "web")
    assert (gone.code, gone.out) == (10, "")
    assert "no project named web" in gone.err


def said(at: str) -> dict[str, Any]:
    return {"role": "user", "content": f"said at {at}", "timestamp": at}


def test_order_and_times_go_by_the_newest_message_and_none_after_the_clock_leads(
    make: Make, run: Run
) -> None:
    make("b-old", said("2026-03-01T09:00:00Z"), age=timedelta(minutes=1))
    make("c-new", said("2026-03-02T09:00:00Z"), age=timedelta(days=99))
    make("a-late", said("2099-01-01T00:00:00Z"), age=timedelta(days=900))
    make("d-none", *undated(HELLO), age=timedelta(days=600))
    assert [one["id"] for one in run("list", "--json").json] == ["c-new", "b-old", "d-none", "a-late"]
    since = run("list", "--since", "2026-03-02T00:00Z", "--json").json
    until = run("list", "--until", "2026-03-01", "--json").json
    assert [one["id"] for one in since] == ["c-new"]
    assert [one["id"] for one in until] == ["b-old", "d-none", "a-late"]
    assert run("show", "latest", "--json").json["id"] == "c-new"
    assert "future_time" in run("check", "a-late", "--notes").out + run("check", "--json").out


def test_a_search_shows_the_session_with_the_newest_message_first(make: Make, run: Run) -> None:
    make("b-old", said("2026-03-01T09:00:00Z"), age=timedelta(minutes=1))
    make("c-new", said("2026-03-02T09:00:00Z"), age=timedelta(days=99))
    make("a-late", said("2099-01-01T00:00:00Z"), age=timedelta(days=900))
    found = [hit["locator"] for hit in run("search", "said", "--jsonl").rows]
    assert found == ["c-new:0", "b-old:0", "a-late:0"]
    since = run("search", "said", "--since", "2026-03-02T00:00Z", "--until", "2026-03-03", "--jsonl").rows
    assert [hit["locator"] for hit in since] == ["c-new:0"], "though its file is older than that"


def test_list_json_has_the_fixed_words(make: Make, run: Run) -> None:
    folder = make(ROOT, name="Login", turn_count=7, parent_id="p")
    (row,) = run("list", "--json").json
    assert row == {
        "id": ROOT,
        "kind": "amplifier",
        "agent": "amplifier",
        "project": "-home-u-app",
        "title": "Login",
        "parent": "p",
        "messages": 4,
        "turns": 1,
        "turn_count": 7,
        "created": "2026-03-01T09:00:00Z",
        "updated": "2026-03-01T09:00:09Z",
        "size": sum(path.stat().st_size for path in folder.iterdir()),
        "health": "note",
        "path": str(folder),
        "cwd": None,
        "branch": None,
        "models": [],
        "tokens": None,
        "cost": None,
        "unpriced": None,
        "stated_cost": None,
        "archived": False,
        "starred": False,
        "tags": [],
    }


def test_list_counts_what_it_leaves_out(make: Make, run: Run) -> None:
    make(ROOT)
    make(SPAWNED, parent_id=ROOT)
    make(NESTED, parent_id=SPAWNED)
    result = run("list")
    assert [line.split()[0] for line in result.out.splitlines()] == ["ID", "3f0c81d2"]
    assert result.err == "2 sessions of sub-agents not shown; --all shows them\n"
    everything = run("list", "--all")
    assert [line.split()[0] for line in everything.out.splitlines()] == [
        "ID",
        "3f0c81d2",
        "9c1d2e3f",
        "11112222",
    ]
    assert everything.err == ""
    assert {row["id"] for row in run("list", "--json").json} == {ROOT, SPAWNED, NESTED}
    assert [row["id"] for row in run("list", "--json", "--top-level").json] == [ROOT]


def test_list_all_shows_children_below_parents_and_loses_none(make: Make, run: Run) -> None:
    make(SPAWNED, {"role": "user", "content": "child"}, parent_id=ROOT)
    make(NESTED, {"role": "user", "content": "grandchild"}, parent_id=SPAWNED)
    make(
        "x-aaaabbbbccccdddd_orphan",
        {"role": "user", "content": "orphan"},
        parent_id="gone",
        age=timedelta(days=2),
    )
    make(
        "x-aaaabbbbccccddde_self",
        {"role": "user", "content": "self"},
        parent_id="x-aaaabbbbccccddde_self",
        age=timedelta(days=3),
    )
    make(ROOT, age=timedelta(days=9))
    titles = [line.split("ok  ", 1)[1].rstrip() for line in run("list", "--all").out.splitlines()[1:]]
    assert [title.strip() for title in titles] == [
        "Fix the login race",
        "└ child",
        "└ grandchild",
        "orphan (from gone)",
        "self",
    ]
    assert titles[2].index("└") == titles[1].index("└") + 2


def test_a_fork_with_an_underscore_in_its_name_is_a_session_like_any_other(make: Make, run: Run) -> None:
    make("my_fix")
    assert "my_fix" in run("list").out


def test_list_jsonl_is_one_object_per_line(make: Make, run: Run) -> None:
    make(ROOT)
    make(OTHER)
    assert {json.loads(line)["id"] for line in run("list", "--jsonl").out.splitlines()} == {ROOT, OTHER}


def test_list_of_nothing(home: Path, run: Run) -> None:
    (home / "projects").mkdir(parents=True)
    result = run("list")
    assert (result.code, result.out) == (0, "")
    assert run("list").err == f"No sessions in {home}; --home names another folder.\n"
    assert run("list", "--json").json == []


def test_one_bad_session_hides_no_other(make: Make, run: Run, home: Path) -> None:
    make(ROOT)
    make(OTHER, files={"transcript.jsonl": b"\x00" * 50, "metadata.json": b"\xff"})
    rows = {row["id"]: row for row in run("list", "--json").json}
    assert rows[ROOT]["health"] == "ok"
    assert (rows[OTHER]["health"], rows[OTHER]["messages"], rows[OTHER]["title"]) == ("lost_data", 0, None)
    table = run("list")
    assert "✗ lost" in table.out
    assert table.err == f"1 session is damaged; run `sessionary check --home {home}` for details\n"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    long = {"role": "user", "content": "日本語のとても長い題名 🌡️ " * 20 + "x" * 300}
    answer = {"role": "tool", "tool_call_id": "t1", "content": "y" * 999 + "\n\tindented 日本" * 9}
    make(ROOT, *undated(long, CALL, answer, DONE), project="-home-u-" + "long-name-" * 6)
    make(OTHER, *undated(HELLO, CALL), files={"transcript.jsonl.conflict-1": lines(HELLO)}, name="Ж" * 300)
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (
        ["list"],
        ["list", "--all"],
        ["show", ROOT],
        ["show", "--full", OTHER],
        ["check", "--notes"],
    ):
        printed = run(*arguments).out.splitlines()
        assert printed
        wide = [line for line in printed if cells(line) > columns]
        assert [line for line in wide if str(home) not in line] == []  # a place is named whole


def test_nothing_is_cut_where_no_terminal_is(make: Make, run: Run) -> None:
    make(ROOT, name="x" * 190)
    assert "x" * 190 in run("list").out


def test_short_ids_name_their_sessions(make: Make, run: Run) -> None:
    ids = [
        ROOT,
        "3f0c81d2-1111-4000-8000-000000000009",
        SPAWNED,
        NESTED,
        f"{ROOT}-aaaabbbbccccdddd_zen",
        "short",
        "a b",
    ]
    for session_id in ids:
        make(session_id, {"role": "user", "content": f"I am {session_id}"})
    rows = run("list", "--all").out.splitlines()
    at = rows[0].index("WHEN")
    found = {row[:at].rstrip(): row for row in rows[1:]}
    assert len(found) == len(ids)
    for short, row in found.items():
        shown = run("show", short, "--json")
        assert shown.code == 0, shown.err
        assert f"I am {shown.json['id']}" in row


# show


def test_show_reads_like_a_conversation(make: Make, run: Run) -> None:
    folder = make(ROOT, HELLO, REMINDER, CALL, RESULT, DONE, name="Login")
    result = run("show", "3f0c")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "Login",
        ROOT,
        f"-home-u-app · 5 messages · 1 turn · {result.out.splitlines()[2].split(' · ')[3]} · ✓ ok",
        str(folder),
        "",
        "── 1 ── You ───────────────────────────────────────────────────── Mar 1 09:00 ──",
        "Fix the login race",
        "hook: <system-reminder>be brief</system-reminder>",
        "",
        "Agent                                                                   09:00:05",
        "thinking: Let me look.",
        "Looking.",
        "▸ bash  pytest -q  ✗ exit 1",
        "  │ 1 failed",
        "",
        "Done.",
    ]


def test_a_large_session_is_shown_before_it_is_counted(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(ROOT, HELLO, CALL, DONE)
    monkeypatch.setattr("sessionary.cli.show_cmd.LARGE", 1)
    first, second = run("show", ROOT), run("show", ROOT, "--json")
    heading = first.out.splitlines()[1]
    assert heading == f"-home-u-app · {heading.split(' · ')[1]} · not counted yet"
    assert "Fix the login race" in first.out.splitlines()
    assert first.err == f"1 problem found; run `sessionary check --home {home} {ROOT}` for details\n"
    assert [one["code"] for one in second.json["problems"]] == ["orphaned_call"]


def test_show_json_has_the_fixed_words(make: Make, run: Run) -> None:
    make(ROOT)
    document = run("show", ROOT, "--json").json
    assert (document["id"], document["problems"]) == (ROOT, [])
    first, second, third, _ = document["messages"]
    assert first == {
        "index": 0, "line": 1, "turn": 1, "role": "user", "text": "Fix the login race",
        "timestamp": "2026-03-01T09:00:00Z", "tools": [], "results": [],
    }  # fmt: skip
    assert second["tools"] == [
        {"id": "t1", "name": "bash", "arguments": {"command": "pytest -q\n", "timeout": 60}}
    ]
    assert (second["text"], second["timestamp"]) == ("Looking.", "2026-03-01T09:00:05Z")
    assert third["results"] == [{"id": "t1", "text": RESULT["content"], "is_error": False}]
    assert (third["timestamp"], third["text"]) == (None, RESULT["content"])
    streamed = [json.loads(line) for line in run("show", ROOT, "--jsonl").out.splitlines()]
    assert streamed == document["messages"]


def test_show_folds_long_results_and_says_by_how_much(make: Make, run: Run) -> None:
    result = {**RESULT, "content": "\n".join(f"line {number}" for number in range(50))}
    make(ROOT, HELLO, CALL, result)
    shown = [
        line.removeprefix("  │ ") for line in run("show", ROOT).out.splitlines() if line.startswith("  │")
    ]
    assert shown == [f"line {n}" for n in range(8)] + ["… 38 more lines"] + [
        f"line {n}" for n in range(46, 50)
    ]
    full = [line for line in run("show", ROOT, "--full").out.splitlines() if line.startswith("  │ line")]
    assert len(full) == 50


def test_show_names_unanswered_calls_and_results_without_a_call(make: Make, run: Run, home: Path) -> None:
    make(ROOT, HELLO, CALL, DONE, {**RESULT, "tool_call_id": "t9"})
    result = run("show", ROOT)
    assert "▸ bash  pytest -q  ✗ no result" in result.out.splitlines()
    assert "▸ ?  the result of a call that is missing  ✗ exit 1" in result.out.splitlines()
    assert result.err == f"2 problems found; run `sessionary check --home {home} {ROOT}` for details\n"


@pytest.mark.parametrize(
    ("turns", "texts"),
    [
        ("2", ["two"]),
        ("2..3", ["two", "three"]),
        ("3..", ["three", "four"]),
        ("..2", ["before", "one", "two"]),
        ("4..9", ["four"]),
        ("-1", ["four"]),
        ("-3..", ["two", "three", "four"]),
        ("-3..-2", ["two", "three"]),
        ("..-3", ["before", "one", "two"]),
        ("2..-2", ["two", "three"]),
        ("-9..1", ["before", "one"]),
    ],
)
def test_show_some_turns(make: Make, run: Run, turns: str, texts: list[str]) -> None:
    spoken = [{"role": "user", "content": word} for word in ("one", "two", "three", "four")]
    make(ROOT, {"role": "assistant", "content": "before"}, *spoken)
    messages = run("show", ROOT, "--turns", turns, "--json").json["messages"]
    assert [message["text"] for message in messages] == texts


def test_show_says_how_many_turns_there_are(make: Make, run: Run) -> None:
    make(ROOT)
    for turns in ("9", "-9"):
        result = run("show", ROOT, "--turns", turns)
        assert (result.code, result.out) == (12, "")
        assert f"no turn {turns}: the session has 1 turn" in result.err
    make(OTHER, *({"role": "user", "content": word} for word in ("one", "two", "three")))
    for turns, words in (("-1..2", "turn -1 comes after turn 2"), ("-9..-7", "no turn -9")):
        assert f"{words}: the session has 3 turns" in run("show", OTHER, "--turns", turns).err


def test_show_the_last_messages(make: Make, run: Run) -> None:
    make(ROOT)
    assert [one["index"] for one in run("show", ROOT, "--tail", "2", "--json").json["messages"]] == [2, 3]
    assert [one["index"] for one in run("show", ROOT, "--tail", "9", "--jsonl").rows] == [0, 1, 2, 3]
    shown = run("show", ROOT, "--tail", "2").out.splitlines()
    assert shown[4:] == [
        "▸ bash  pytest -q  ✗ exit 1",
        "  │ 1 failed",
        "",
        "Agent" + "09:00:09".rjust(75),
        "Done.",
    ]
    assert run("show", ROOT, "--tail", "2", "--turns", "1").code == 2


@pytest.mark.parametrize("turns", ["x", "..", "3..2", "-1..-2", "-", "1.2", ""])
def test_a_range_that_is_none_is_a_usage_error(make: Make, run: Run, turns: str) -> None:
    make(ROOT)
    result = run("show", ROOT, "--turns", turns)
    assert (result.code, result.out) == (2, "")


def test_missing_transcripts(make: Make, run: Run) -> None:
    make(ROOT)
    result = run("show", ROOT, "--turns", "5")
    assert (result.code, result.out) == (12, "")
    assert result.err == "sessionary: no turn 5: the session has 1 turn\n"
    make(OTHER, *({"role": "user", "content": word} for word in ("one", "two", "three")))
    assert run("show", OTHER, "--turns", "0").err.endswith("no turn 0: the session has 3 turns\n")


def test_show_any_file_and_any_folder(make: Make, run: Run, tmp_path: Path) -> None:
    folder = make(ROOT)
    assert run("show", str(folder), "--json", bare=True).json["id"] == ROOT
    file = tmp_path / "copy.jsonl"
    file.write_bytes(lines({"event": "start", "n": 1}, HELLO, {"type": "user", "message": HELLO}, DONE))
    document = run("show", str(file), "--json", bare=True).json
    assert document["id"] == "copy.jsonl"
    assert [(message["role"], message["turn"]) for message in document["messages"]] == [
        (None, 0), ("user", 1), ("user", 2), ("assistant", 2),
    ]  # fmt: skip
    assert 'record: {"event": "start", "n": 1}' in run("show", str(file), bare=True).out.splitlines()


def test_show_a_session_without_a_transcript(make: Make, run: Run) -> None:
    (make(ROOT) / "transcript.jsonl").unlink()
    result = run("show", ROOT, "--json")
    assert (result.code, result.json["messages"]) == (0, [])
    assert [problem["code"] for problem in result.json["problems"]] == ["no_transcript"]


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\x1f\x8b\x08\0" + bytes(range(256)), "gzip"), (b"\x28\xb5\x2f\xfd" + bytes(99), "zstd"),
     ("{}\n".encode("utf-16"), "UTF-16")],
)  # fmt: skip
def test_what_is_not_text_is_named(run: Run, tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(data)
    shown = run("show", str(file), bare=True)
    assert (shown.code, shown.out) == (13, "")
    assert words in shown.err
    checked = run("check", str(file), bare=True)
    assert checked.code == 13
    assert words in checked.out


def test_show_a_session_whose_backup_alone_is_left(make: Make, run: Run) -> None:
    make(ROOT, files={"transcript.jsonl": b"", "transcript.jsonl.backup": lines(HELLO)})
    result = run("show", ROOT)
    assert result.code == 13
    assert "its backup has" in result.err


# check


def test_check_of_healthy_sessions(make: Make, run: Run) -> None:
    make(ROOT)
    make(OTHER)
    result = run("check")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("✓ 2 sessions checked, nothing is damaged")


def test_check_reports_what_where_and_what_to_do(make: Make, run: Run) -> None:
    folder = make(ROOT)
    make(OTHER, HELLO, CALL)
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "los')
    result = run("check", "--json")
    assert result.code == 13
    document = result.json
    assert (document["checked"], document["health"]) == (2, "lost_data")
    worst = next(problem for problem in document["problems"] if problem["code"] == "torn_tail")
    size = len(lines(HELLO, CALL, RESULT, DONE))
    assert worst | {"message": "", "repair": ""} == {
        "session": ROOT, "code": "torn_tail", "severity": "lost_data", "path": str(folder / "transcript.jsonl"),
        "line": 5, "byte": size, "message": "", "repair": "", "span": 32,
    }  # fmt: skip
    text = run("check")
    assert text.code == 13
    assert f"  lost data  torn_tail  transcript.jsonl, line 5, byte {size}" in text.out.splitlines()
    sums = [line for line in text.out.splitlines() if "sessions checked" in line]
    assert [line.partition(", 1 note")[0] for line in sums] == [
        "✗ 2 sessions checked, 0 healthy, 1 lost data, 1 stops resume"
    ]
    (next_,) = [line.strip() for line in text.out.splitlines() if ROOT in line and "next: " in line]
    assert run(*next_.removeprefix("next: sessionary ").split()).code == 0
    streamed = [json.loads(line) for line in run("check", "--jsonl").out.splitlines()]
    assert streamed == document["problems"]


def test_notes_are_counted_and_shown_when_asked_for(make: Make, run: Run) -> None:
    make(ROOT, turn_count=9)
    result = run("check", ROOT[:6])
    assert (result.code, "turn_count_differs" in result.out) == (0, True), (
        "who names a session gets the notes"
    )
    everything = run("check")
    assert (everything.code, "turn_count_differs" in everything.out) == (0, False)
    assert "(--notes prints them)" in everything.out
    assert "turn_count_differs" in run("check", "--notes").out


@pytest.mark.parametrize("columns", range(40, 81, 5))
def test_the_hint_at_notes_is_never_broken(
    make: Make, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    make(ROOT, turn_count=9)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("check").out.splitlines()
    assert lines[-1].endswith("(--notes prints them)")
    assert "(" not in "".join(lines[:-1])
    assert max(map(len, lines)) <= columns


def test_check_files_folders_and_homes(make: Make, run: Run, home: Path, tmp_path: Path) -> None:
    folder = make(ROOT)
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines(HELLO, RESULT, DONE))
    assert run("check", str(folder), str(file), bare=True).code == 13
    assert run("check", str(home), "--json", bare=True).json["checked"] == 1
    document = run("check", str(file), "--json", bare=True).json
    assert [(found["session"], found["code"], found["line"]) for found in document["problems"]] == [
        (None, "orphaned_result", 2)
    ]


# Hostile texts


def test_no_text_reaches_the_terminal_as_a_command(make: Make, run: Run) -> None:
    spoken = {"role": "user", "content": HOSTILE}
    call = {
        "role": "assistant",
        "tool_calls": [{"id": HOSTILE, "tool": HOSTILE, "arguments": {"command": HOSTILE}}],
    }
    result = {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE}
    other = {"role": HOSTILE, "content": HOSTILE}
    make("evil\x1b[2J\u202e", spoken, call, result, other, call, name=HOSTILE, project="-evil\x1b]0;p\x07")
    for arguments in (
        ["list"],
        ["show", "evil"],
        ["show", "evil", "--full"],
        ["check", "--notes"],
        ["show", "ev\x1b"],
    ):
        printed = run(*arguments)
        for char in (printed.out + printed.err).replace("\n", ""):
            assert char.isprintable(), f"{arguments} printed {char!r}"
    assert "\\x1b[2J" in run("show", "evil").out


def test_json_is_harmless_and_still_says_exactly_what_was_stored(make: Make, run: Run) -> None:
    make(ROOT, {"role": "user", "content": HOSTILE}, name="c\x9b\u202e")
    result = run("show", ROOT, "--json")
    assert result.json["messages"][0]["text"] == HOSTILE
    listed = run("list", "--json")
    assert listed.json[0]["title"] == "c\x9b\u202e"
    assert all(char.isprintable() for char in (result.out + listed.out).replace("\n", ""))


@pytest.mark.skipif(sys.platform != "linux", reason="names are text here")
def test_a_name_that_is_not_utf8(make: Make, home: Path) -> None:
    make(os.fsdecode(b"caf\xe9"))
    listed = real("list", "--home", str(home), "--json")
    assert json.loads(listed.stdout)[0]["id"] == "caf\udce9"
    assert b"caf\\udce9" in real("list", "--home", str(home)).stdout
    shown = subprocess.run(
        [*COMMAND, "show", b"caf\xe9", "--home", str(home)], capture_output=True, check=True
    )
    assert b"Fix the login race" in shown.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode(make: Make, home: Path, encoding: str) -> None:
    make(ROOT, {"role": "user", "content": "größer 日本 🙂"}, name="größer 日本 🙂")
    listed = real("list", "--home", str(home), "--json", PYTHONIOENCODING=encoding)
    assert json.loads(listed.stdout.decode(encoding))[0]["title"] == "größer 日本 🙂"
    for command in (["list"], ["show", ROOT]):
        done = real(*command, "--home", str(home), PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (0, b"")
        assert "\\u65e5" in done.stdout.decode(encoding)
    assert real("check", "--home", str(home), PYTHONIOENCODING=encoding).stdout.startswith(
        b"+ 1 session checked"
    )


# Errors and exit codes


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "nothing-like-it"], 10),
        (["show", "./nothing/there.jsonl"], 10),
        (["show", "~nobody-of-that-name"], 10),
        (["show", "x" * 5000], 10),
        (["check", "nothing-like-it"], 10),
        (["show", "3f0c"], 12),
        (["show", "  "], 12),
        (["show"], 2),
        (["list", "--nonsense"], 2),
        (["list", "--json", "--jsonl"], 2),
        (["nonsense"], 2),
    ],
)
def test_exit_codes(make: Make, run: Run, home: Path, arguments: list[str], code: int) -> None:
    make(ROOT)
    make(OTHER)
    result = run(*arguments) if arguments[0] != "nonsense" else run(*arguments, bare=True)
    assert (result.code, result.out) == (code, "")
    assert result.err
    as_json = run(*arguments, *([] if "--json" in arguments else ["--json"]), bare=arguments == ["nonsense"])
    assert json.loads(as_json.err)["exit_code"] == as_json.code == code
    assert {"error", "message"} <= set(json.loads(as_json.err))


def test_an_ambiguous_id_lists_what_it_may_mean(make: Make, run: Run) -> None:
    make(ROOT)
    make(OTHER, project="-home-u-web")
    result = run("show", "3f0c")
    assert result.err.splitlines() == [
        "sessionary: 2 sessions match 3f0c",
        f"  {ROOT}  -home-u-app",
        f"  {OTHER}  -home-u-web",
        "  give more of the id, or the path of its folder",
    ]


def test_the_same_id_in_two_projects_is_distinguished_by_its_folder(make: Make, run: Run) -> None:
    make(ROOT)
    folder = make(ROOT, HELLO, project="-home-u-web")
    assert run("show", ROOT).code == 12
    assert len(run("show", str(folder), "--json").json["messages"]) == 1


def _close(monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    """Let one folder be closed to us, for root too."""

    class Closed(OsFs):
        def listdir(self, path: str) -> list[str]:  # type: ignore[override]
            if path == closed:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return os.listdir(path)

    for module in ("homes", "check_cmd"):
        monkeypatch.setattr(f"sessionary.cli.{module}.Workspace", partial(Workspace, fs=Closed()))


@pytest.mark.parametrize("command", ["list", "check"])
def test_what_could_not_be_looked_into_is_named_and_the_rest_is_done(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    make(ROOT)
    make(OTHER, project="-closed")
    closed = str(home / "projects" / "-closed" / "sessions")
    _close(monkeypatch, closed)
    result = run(command)
    assert result.code == 3
    assert closed in result.err
    assert "3f0c81d2" in result.out or "1 session checked" in result.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--project", "shut"],
        ["search", "hello", "--project", "shut"],
        ["tree", "--project", "shut"],
        ["stats", "--project", "shut"],
        ["mv", "shut", "/home/u/open"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_unreadable_project_is_not_reported_as_missing(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    make(ROOT)
    make(OTHER, project="-home-u-shut")
    closed = str(home / "projects" / "-home-u-shut" / "sessions")
    _close(monkeypatch, closed)
    result = run(*arguments)
    assert (result.code, result.out) == (StorageFailed.exit_code, "")
    assert closed in result.err
    assert "no project is called" not in result.err


def test_one_closed_home_keeps_no_other_from_being_checked(
    make: Make, run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = make(ROOT, files={"transcript.jsonl": b"\xff\n"})
    closed = tmp_path / "closed" / "projects"
    closed.mkdir(parents=True)

    class Closed(OsFs):
        def listdir(self, path: str) -> list[str]:  # type: ignore[override]
            if path == str(closed):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return os.listdir(path)

    for module in ("homes", "check_cmd"):
        monkeypatch.setattr(f"sessionary.cli.{module}.Workspace", partial(Workspace, fs=Closed()))
    result = run("check", str(closed.parent), str(home), str(damaged), bare=True)
    assert result.code == 13
    assert f"{closed} cannot be read: its sessions are not checked" in result.err
    assert "2 sessions checked" in result.out
    assert run("check", str(closed.parent), bare=True).code == 3


@pytest.mark.parametrize(
    "text", ["# A heading\n\nSome words.\n" * 40, "[1, 2]\n3\n", "no newline at the end"]
)
def test_a_file_that_is_not_json_lines_is_reported_once(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.md"
    file.write_text(text)
    result = run("check", str(file), "--json", bare=True)
    assert [(one["code"], one["line"]) for one in result.json["problems"]] == [("not_text", None)]
    assert result.code == 13


def test_paths_in_json_are_absolute_however_files_are_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_bytes(b'{"role": "user", "content": "x"}\n{"role"\n')
    for command in ("check", "show"):
        problems = run(command, "x.jsonl", "--json", bare=True).json["problems"]
        assert {one["path"] for one in problems} == {f"{tmp_path}/x.jsonl"}
    put(Path("home"), ROOT, "-p", {"transcript.jsonl": lines(HELLO)})
    for words in (["list"], ["tree"]):
        (row,) = run(*words, "--home", "home", "--json", bare=True).json
        assert row["path"] == f"{tmp_path}/home/projects/-p/sessions/{ROOT}"
    made = run("feature", "create", "Login", "--root", ".", "--json", bare=True).json
    assert made["path"] == f"{tmp_path}/.ai-session/{made['feature_id']}"
    started = run("brainstorm", "start", "sign-in", "--root", ".", "--json", bare=True).json
    assert started["path"].startswith(f"{tmp_path}/.project-memory/")


def test_json_lines_that_are_damaged_throughout_are_still_reported_line_by_line(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "transcript.jsonl"
    file.write_bytes(b'{"role": "us\n{"role": "as\n')
    codes = {one["code"] for one in run("check", str(file), "--json", bare=True).json["problems"]}
    assert codes == {"bad_json"}
    file.write_bytes(b"\0" * 50)
    codes = {one["code"] for one in run("check", str(file), "--json", bare=True).json["problems"]}
    assert "not_text" not in codes


def test_a_bug_is_reported_as_one(make: Make, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make(ROOT)
    monkeypatch.setattr("sessionary.workspace.documents.of_summary", lambda *_: 1 / 0)
    result = run("list", "--json")
    assert (result.code, json.loads(result.err)["error"]) == (1, "Bug")
    monkeypatch.setattr("sessionary.cli.list_cmd.columns", lambda *_: 1 / 0)
    result = run("list")
    assert result.code == 1
    assert result.err.startswith("sessionary: bug in Sessionary: ZeroDivisionError")
    assert "Traceback" not in result.err
    assert main(["--debug", "list", "--home", str(make(OTHER).parents[3])]) == 1


def test_an_interrupt_while_the_program_is_being_loaded_is_reported_as_any_other() -> None:
    code = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from sessionary.cli import main
sys.exit(main(["list"]))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"interrupted\n")


def test_an_interrupt_is_130(make: Make, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr("sessionary.workspace.Workspace.summaries", interrupted)
    make(ROOT)
    result = run("list")
    assert (result.code, result.err.strip()) == (130, "interrupted")


@pytest.mark.parametrize("command", [[], ["list"], ["show"], ["check"], ["demo"]], ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_examples(capsys: pytest.CaptureFixture[str], command: list[str], flag: str) -> None:
    assert main([*command, flag]) == 0
    printed = capsys.readouterr().out
    assert "Examples:\n  sessionary " in printed.replace("\n    sessionary", "\n  sessionary").replace(
        "  Examples", "Examples"
    )


def test_the_collector_is_as_it_was(make: Make, run: Run) -> None:
    import gc

    make(ROOT)
    assert gc.isenabled()
    run("list")
    run("show", "nothing")
    assert gc.isenabled()


# Real processes


def test_the_version_from_a_real_process() -> None:
    done = real("--version")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"sessionary ")


def test_exit_codes_of_a_real_process(make: Make, home: Path) -> None:
    make(ROOT, HELLO, CALL)
    assert real("check", "--home", str(home)).returncode == 13
    assert real("show", "nothing", "--home", str(home)).returncode == 10


@pytest.mark.skipif(os.name != "posix", reason="no SIGPIPE")
def test_a_closed_pipe_is_not_an_error(make: Make, home: Path) -> None:
    make(ROOT, *[{"role": "user", "content": "x" * 1000}] * 2000)
    with subprocess.Popen(
        [*COMMAND, "show", ROOT, "--home", str(home)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


@pytest.mark.skipif(os.name != "posix", reason="no pseudo terminals")
@pytest.mark.parametrize(("variable", "coloured"), [("", True), ("NO_COLOR", False), ("TERM", False)])
def test_colour_only_on_a_terminal_that_wants_it(
    make: Make, home: Path, variable: str, coloured: bool
) -> None:
    import pty

    make(ROOT, HELLO, CALL)
    settings = {"NO_COLOR": "1"} if variable == "NO_COLOR" else {"TERM": "dumb" if variable else "xterm"}
    environment = {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}, **settings}
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "list", "--home", str(home)], stdout=follower, env=environment
    ) as process:
        os.close(follower)
        printed = b""
        while chunk := _read(leader):
            printed += chunk
    os.close(leader)
    assert process.returncode == 0
    assert (b"\x1b[31m\xe2\x9c\x97 stops" in printed) == coloured
    assert b"\xe2\x9c\x97 stops" in printed, "the words are there in any case"


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux ends a pseudo terminal with EIO
        return b""


# The contract with scripts


def test_every_field_is_documented_and_every_documented_field_is_there(make: Make, run: Run) -> None:
    make(ROOT, HELLO, CALL)
    (row,) = run("list", "--json").json
    assert set(row) == documented("sessionary list")[0]
    shown = run("show", ROOT, "--json").json
    assert set(shown) == documented("sessionary show")[0]
    assert set(shown["messages"][0]) == documented("sessionary show")[1] - {"outside", "inherited"}  # if true
    checked = run("check", "--json").json
    assert set(checked) == documented("sessionary check")[0]
    assert set(checked["problems"][0]) == documented("sessionary check")[1]
    failed = json.loads(run("show", "gone", "--json").err)
    assert set(failed) <= documented("Failures")[0]
    assert {"error", "message", "exit_code"} <= set(failed)
