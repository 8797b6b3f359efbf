"""The commands that change sessions: fork, rewind, repair, restore-backup, trash and undo, each with its way back."""

import errno
import io
import json
import os
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.cli.text import cells
from sessionary.disk.fs import OsFs
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.workspace import Workspace
from tests.e2e.driving import ROOT, SPAWNED, Make, Result, Run, lines, put

OTHER = "3f0c99aa-0000-4000-8000-000000000002"
HOSTILE = "R\x1b[2J\x1b]0;t\x07\x9b31m\u202eabc\u200b"


Tree = dict[str, bytes | None]


def turn(number: int, *, answered: bool = True) -> list[dict[str, Any]]:
    """Question, call, result and answer; without a result where the call was not answered."""
    time = {"timestamp": f"2026-03-01T09:0{number}:00.000+00:00"}
    call = {"id": f"t{number}", "tool": "bash", "arguments": {"command": f"make step-{number}"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": f"Question {number}", **time},
        {"role": "assistant", "content": "I look.", "tool_calls": [call], **time},
        {"role": "tool", "tool_call_id": f"t{number}", "name": "bash", "content": "out", **time},
        {"role": "assistant", "content": f"Answer {number}", **time},
    ]
    return said if answered else said[:2]


def events(turns: int, session_id: str) -> bytes:
    return lines(
        *(
            {
                "ts": f"2026-03-01T09:0{number}:00.000+00:00",
                "event": name,
                "session_id": session_id,
                "data": data,
            }
            for number in range(1, turns + 1)
            for name, data in (
                ("prompt:submit", {"prompt": f"Question {number}"}),
                ("tool:post", {"tool_call_id": f"t{number}"}),
            )
        )
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def make(home: Path) -> Make:
    def make(
        session_id: str = ROOT,
        messages: list[dict[str, Any]] | None = None,
        *,
        project: str = "-home-u-app",
        transcript: bytes | None = None,
        files: Mapping[str, bytes] | None = None,
        **fields: Any,
    ) -> Path:
        said = [*turn(1), *turn(2), *turn(3)] if messages is None else messages
        stored = {"session_id": session_id, "created": "2026-03-01T09:00:00Z", "turn_count": 3, **fields}
        mine = {
            "transcript.jsonl": lines(*said) if transcript is None else transcript,
            "metadata.json": json.dumps(stored).encode(),
            "events.jsonl": events(3, session_id),
        }
        return put(home, session_id, project, {**mine, **(files or {})})

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

    def run(command: str, *arguments: str) -> Result:
        code = main([command, "--home", str(home), *arguments])
        return Result(code, *capsys.readouterr())

    return run


def tree(folder: Path) -> Tree:
    """Every file and folder below, byte for byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def content(folder: Path) -> Tree:
    """The files that make up the session: neither locks nor what is kept for undoing."""
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")
    }


def follow(result: Result, label: str, capsys: pytest.CaptureFixture[str]) -> Result:
    """Run the command that a result has named."""
    (line,) = [one for one in result.err.splitlines() if one.startswith(f"{label}: ")]
    program, *words = shlex.split(line.removeprefix(f"{label}: "))
    assert program == "sessionary"
    return Result(main(words), *capsys.readouterr())


BROKEN = (
    lines(*turn(1))
    + lines(*turn(2))[:-1]  # two records on one line
    + lines(*turn(3, answered=False))
    + b'{"role": "assi'
)
DAMAGED = {"transcript": BROKEN}


# fork


def test_fork_prints_the_new_id_and_leaves_the_parent_alone(
    make: Make, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(name="Login")
    before = content(folder)
    done = run("fork", "3f0c", "--turn", "2")
    new_id, *reported = done.out.splitlines()
    assert reported == [f"  the first 2 turns of {ROOT}", "  8 messages, 4 events"]
    assert done.code == 0
    assert content(folder) == before
    assert (folder.parent / new_id / "transcript.jsonl").read_bytes() == lines(*turn(1), *turn(2))
    assert json.loads((folder.parent / new_id / "metadata.json").read_text())["name"] == "Login"
    assert "Answer 2" in follow(done, "show it", capsys).out
    assert follow(done, "undo", capsys).code == 0
    assert not (folder.parent / new_id).exists()


def test_fork_as_json_with_every_option(make: Make, run: Run) -> None:
    folder = make()
    done = run(
        "fork", ROOT, "--turn", "1", "--id", "other-way", "--name", "Other way", "--no-events", "--json"
    )
    path = folder.parent / "other-way"
    assert done.json == {
        "id": "other-way",
        "path": str(path),
        "parent": ROOT,
        "turn": 1,
        "messages": 4,
        "events": 0,
        "dry_run": False,
        "problems": [],
        "undo": f"sessionary trash --home {folder.parents[3]} other-way",
    }
    assert (done.code, done.err) == (0, "")
    assert not (path / "events.jsonl").exists()
    assert json.loads((path / "metadata.json").read_text())["name"] == "Other way"


def test_fork_treats_open_calls_as_the_option_says(make: Make, run: Run) -> None:
    folder = make(messages=[*turn(1), *turn(2, answered=False)])

    def forked(rule: str) -> list[dict[str, Any]]:
        assert run("fork", ROOT, "--id", rule, "--on-incomplete", rule).code == 0
        return [
            json.loads(line) for line in (folder.parent / rule / "transcript.jsonl").read_text().splitlines()
        ]

    assert [one["role"] for one in forked("complete")] == [
        "user", "assistant", "tool", "assistant", "user", "assistant", "tool",
    ]  # fmt: skip
    assert not any("tool_calls" in one for one in forked("remove")[4:])
    refused = run("fork", ROOT, "--id", "error", "--on-incomplete", "error")
    assert refused.code == 12
    assert not (folder.parent / "error").exists()


def test_a_fork_that_the_original_will_not_list_says_so(make: Make, run: Run) -> None:
    make()
    assert "does not list it" in run("fork", ROOT, "--id", "my_fix").err
    assert "does not list it" not in run("fork", ROOT, "--id", "my-fix").err


def test_a_fork_reports_what_of_its_parent_could_not_be_read(make: Make, run: Run) -> None:
    make(**DAMAGED)
    done = run("fork", ROOT)
    assert "could not be read, and were not copied:" in done.out
    assert "torn_tail" in done.out
    assert [one["code"] for one in run("fork", ROOT, "--json").json["problems"]].count("torn_tail") == 1


# rewind


def test_rewind_and_back(make: Make, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make()
    before = content(folder)
    done = run("rewind", ROOT, "1")
    assert done.out.splitlines() == [
        f"✓ {ROOT} now ends with turn 1",
        "  2 turns of 3 removed: 8 messages, 4 events",
        "  4 messages stay",
    ]
    assert (folder / "transcript.jsonl").read_bytes() == lines(*turn(1))
    assert (folder / "events.jsonl").read_bytes() == events(1, ROOT)
    assert json.loads((folder / "metadata.json").read_text())["turn_count"] == 1
    undone = follow(done, "undo", capsys)
    assert content(folder) == before
    assert undone.code == 0
    assert follow(undone, "undo", capsys).code == 0
    assert (folder / "transcript.jsonl").read_bytes() == lines(*turn(1))


def test_rewind_as_json(make: Make, run: Run) -> None:
    folder = make()
    done = run("rewind", ROOT, "0", "--json").json
    kept_in = Path(done.pop("kept_in"))
    assert kept_in.parent == folder / ".undo"
    assert done.pop("rewritten") > 0
    assert done == {
        "id": ROOT,
        "path": str(folder),
        "to_turn": 0,
        "turns_before": 3,
        "messages_kept": 0,
        "messages_dropped": 12,
        "events_dropped": 6,
        "events_dropped_by_time": 0,
        "events_told": True,
        "turn_count": 0,
        "changed": True,
        "dry_run": False,
        "undo": f"sessionary undo --home {folder.parents[3]} {ROOT}",
    }
    again = run("rewind", ROOT, "0", "--json").json
    assert (again["changed"], again["undo"], again["kept_in"]) == (False, None, None)
    assert run("rewind", ROOT, "0").out == "✓ already ends with turn 0: nothing to do\n"


def test_a_dry_rewind_shows_the_turns_that_would_go(make: Make, run: Run) -> None:
    make()
    done = run("rewind", ROOT, "1", "--dry-run")
    assert done.out.splitlines() == [
        f"Would rewind {ROOT} to turn 1",
        "  2 turns of 3 would be removed: 8 messages, 4 events",
        "       2  Mar 1 09:02  Question 2",
        "       3  Mar 1 09:03  Question 3",
        "  4 messages would stay",
    ]
    assert done.err == "Nothing was written.\n"
    reported = run("rewind", ROOT, "1", "--dry-run", "--json").json
    assert [(one["turn"], one["index"], one["text"]) for one in reported["would_go"]] == [
        (2, 4, "Question 2"),
        (3, 8, "Question 3"),
    ]
    assert (reported["undo"], reported["dry_run"]) == (None, True)


# repair


def test_repair_and_back(make: Make, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(**DAMAGED)
    assert run("check", ROOT).code == 13
    before = content(folder)
    done = run("repair", ROOT)
    assert done.code == 0
    assert done.out.startswith("--- transcript.jsonl\n+++ transcript.jsonl (repaired)\n@@ ")
    assert "line 8  glued_records" in done.out
    assert "completed_call" in done.out
    (aside,) = folder.glob("transcript.jsonl.corrupt-*")
    assert f"  quarantined: 15 B, in {aside.name}" in done.out.splitlines()
    assert aside.read_bytes() == b'{"role": "assi\n'
    assert run("check", ROOT).code == 0
    stored = (folder / "transcript.jsonl").read_bytes().splitlines(keepends=True)
    assert set(lines(*turn(1), *turn(2), *turn(3, answered=False)).splitlines(keepends=True)) < set(stored)
    undone = follow(done, "undo", capsys)
    assert undone.code == 0
    assert content(folder) == before


def test_a_healthy_session_is_left_alone(make: Make, run: Run) -> None:
    folder = make()
    before = content(folder)
    done = run("repair", ROOT)
    assert (done.code, done.out, done.err) == (0, f"✓ {ROOT}: nothing to repair\n", "")
    assert content(folder) == before
    assert not (folder / ".undo").exists()


def test_a_second_repair_finds_nothing_to_do(make: Make, run: Run) -> None:
    folder = make(**DAMAGED)
    assert run("repair", ROOT, "--json").json["changed"] is True
    before = content(folder)
    again = run("repair", ROOT, "--json")
    assert (again.code, again.json["changed"], again.json["fixes"], again.json["undo"]) == (
        0,
        False,
        [],
        None,
    )
    assert content(folder) == before


@pytest.mark.parametrize(("rule", "roles"), [("complete", ["user", "assistant", "tool"]), ("drop", ["user"])])
def test_open_calls_are_completed_or_dropped(make: Make, run: Run, rule: str, roles: list[str]) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "x", "tool": "bash", "arguments": {}}]}
    folder = make(messages=[{"role": "user", "content": "go"}, call])
    done = run("repair", ROOT, "--orphans", rule, "--json").json
    stored = [json.loads(line)["role"] for line in (folder / "transcript.jsonl").read_text().splitlines()]
    assert stored == roles
    assert done["mends"][0]["ids"] == ["x"]
    assert done["remaining"] == []


def test_the_last_turn_is_closed_when_asked_for(make: Make, run: Run) -> None:
    folder = make(messages=turn(1)[:3])
    assert run("repair", ROOT, "--json").json["changed"] is False
    assert run("repair", ROOT, "--close-last", "--json").json["changed"] is True
    stored = [json.loads(line)["role"] for line in (folder / "transcript.jsonl").read_text().splitlines()]
    assert stored == ["user", "assistant", "tool", "assistant"]


def test_repair_reports_what_it_took_metadata_from(make: Make, run: Run) -> None:
    folder = make(files={"metadata.json.backup": b'{"session_id": "x", "name": "Old"}'})
    (folder / "metadata.json").write_bytes(b"{")
    done = run("repair", ROOT)
    assert "  metadata.json is rebuilt from its backup" in done.out.splitlines()
    assert run("undo", ROOT).code == 0
    assert (folder / "metadata.json").read_bytes() == b"{"
    assert run("repair", ROOT, "--json").json["metadata_from"] == "backup"


def test_long_lines_of_a_diff_are_cut_unless_asked_for(make: Make, run: Run) -> None:
    long = {"role": "assistant", "content": "x" * 5000}
    make(transcript=lines(turn(1)[0])[:-1] + lines(long))
    assert max(map(len, run("repair", ROOT, "--dry-run").out.splitlines())) <= 200
    assert max(map(len, run("repair", ROOT, "--dry-run", "--json").json["diff"].splitlines())) <= 200
    assert "x" * 5000 in run("repair", ROOT, "--dry-run", "--full").out
    assert "x" * 5000 in run("repair", ROOT, "--dry-run", "--full", "--json").json["diff"]


def test_what_cannot_be_read_at_all_is_refused_and_left(make: Make, run: Run) -> None:
    folder = make(transcript=b"\0" * 64)
    before = content(folder)
    refused = run("repair", ROOT, "--json")
    assert (refused.code, json.loads(refused.err)["error"]) == (13, "Corrupt")
    assert content(folder) == before


# restore-backup


def test_restore_backup_and_back(make: Make, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    old = lines(*turn(1))
    folder = make(files={"transcript.jsonl.backup": old})
    before = content(folder)
    assert run("restore-backup", ROOT, "--dry-run").out.splitlines() == [
        f"Would restore transcript.jsonl of {ROOT}",
        "  4 messages would be in it; 12 could be read before",
    ]
    done = run("restore-backup", ROOT)
    assert done.out.splitlines() == [
        f"✓ {ROOT}: transcript.jsonl is restored",
        "  4 messages are in it; 12 could be read before",
    ]
    assert (folder / "transcript.jsonl").read_bytes() == old
    assert run("restore-backup", ROOT).out == ("✓ transcript.jsonl equals its backup: nothing to do\n")
    assert follow(done, "undo", capsys).code == 0
    assert content(folder) == before


def test_restore_metadata_as_json(make: Make, run: Run) -> None:
    folder = make(files={"metadata.json.backup": b'{"name": "Old"}'})
    done = run("restore-backup", ROOT, "--metadata", "--json").json
    assert Path(done.pop("kept_in")).parent == folder / ".undo"
    assert done == {
        "id": ROOT,
        "path": str(folder),
        "which": "metadata",
        "changed": True,
        "dry_run": False,
        "messages_before": 0,
        "messages_after": 0,
        "undo": f"sessionary undo --home {folder.parents[3]} {ROOT}",
    }
    assert (folder / "metadata.json").read_bytes() == b'{"name": "Old"}'


def test_without_a_backup_there_is_nothing_to_restore(make: Make, run: Run) -> None:
    make()
    refused = run("restore-backup", ROOT)
    assert refused.code == 10
    assert refused.err.startswith(f"sessionary: Session '{ROOT}' has no transcript.jsonl.backup")


# trash


def test_trash_and_back(make: Make, run: Run, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(name="Login")
    before = content(folder)
    done = run("trash", "3f0c")
    assert done.out == f"✓ {ROOT} moved to the trash\n"
    assert not folder.exists()
    (row,) = run("trash", "--list", "--json").json
    assert (row["id"], row["project"], row["title"]) == (ROOT, "-home-u-app", "Login")
    assert row["size"] == sum(map(len, before.values()))  # type: ignore[arg-type]
    assert content(Path(row["path"])) == before
    listed = run("trash", "--list").out.splitlines()
    assert listed[0].split() == ["ID", "WHEN", "SIZE", "TITLE"]
    assert listed[1].endswith("Login")
    assert follow(done, "undo", capsys).out == f"✓ {ROOT} is restored from the trash\n"
    assert content(folder) == before
    assert run("trash", "--list").err == "The trash is empty.\n"


def test_several_sessions_or_none(make: Make, run: Run, home: Path) -> None:
    make()
    make(OTHER, project="-home-u-web")
    before = tree(home)
    assert run("trash", ROOT, "nobody").code == 10
    assert tree(home) == before
    done = run("trash", ROOT, OTHER, ROOT, "--json")
    assert [one["id"] for one in done.json] == [ROOT, OTHER]
    assert done.code == 0
    assert len(run("trash", "--list", "--json").json) == 2


def test_one_session_that_cannot_be_moved_keeps_no_other(make: Make, run: Run) -> None:
    stuck = make()
    (stuck.parent / ".trash").write_text("in the way")
    moved = make(OTHER, project="-home-u-web")
    done = run("trash", ROOT, OTHER, "--json")
    assert (done.code, [one["id"] for one in done.json]) == (3, [OTHER])
    assert json.loads(done.err)["exit_code"] in (11, 16)
    assert (stuck.exists(), moved.exists()) == (True, False)
    assert run("trash", ROOT).code in (11, 16)


def test_emptying_the_trash_asks_and_spares_what_is_young(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    young, old = make(), make(OTHER)
    sessions = young.parent
    then = datetime.now(UTC) - timedelta(days=40)
    SessionStore.with_fs(SessionStore(sessions)._fs, sessions, now=lambda: then).delete(OTHER)
    assert run("trash", ROOT).code == 0
    assert [one["id"] for one in run("trash", "--list", "--older-than", "30d", "--json").json] == [OTHER]
    before = tree(home)
    refused = run("trash", "--empty", "--older-than", "30d")
    assert (refused.code, tree(home) == before) == (2, True)

    monkeypatch.setattr(sys, "stdin", Answer("n\n"))
    declined = run("trash", "--empty", "--older-than", "30d")
    assert (declined.code, tree(home) == before) == (1, True)
    assert "Permanently delete 1 session, " in declined.err
    assert declined.err.endswith("Nothing was changed.\n")
    assert "interrupted" not in declined.err
    done = run("trash", "--empty", "--older-than", "30d", "--yes", "--json")
    assert done.json["destroyed"] == [OTHER]
    assert not old.exists()
    assert [one["id"] for one in run("trash", "--list", "--json").json] == [ROOT]
    assert run("trash", "--empty", "--yes").out.startswith("✓ permanently deleted: 1 session, ")
    assert run("trash", "--empty", "--yes").err == "Nothing to delete.\n"
    assert sorted(path.name for path in (sessions / ".trash").iterdir()) == []


# undo


class Answer(io.StringIO):
    """Input of a user at a terminal."""

    def isatty(self) -> bool:
        return True


def test_undo_without_an_id_names_the_last_change_of_all_and_asks(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make(), make(OTHER, project="-home-u-web")
    before = content(first), content(second)
    assert run("rewind", ROOT, "1").code == 0
    assert run("trash", OTHER).code == 0
    listed = run("undo", "--list", "--json").json
    assert [(one["id"], one["operation"], one["next"]) for one in listed] == [
        (OTHER, "trash", True),
        (ROOT, "rewind", True),
    ]
    assert listed[1]["facts"]["messages_dropped"] == 8
    after = content(first), (home / "projects").exists()
    for words in (
        [],
        ["--json"],
    ):  # no user can be asked, and the change may be of another session than is meant
        refused = run("undo", *words)
        assert (refused.code, refused.out) == (2, "")
        assert f"the last change is the trash of {OTHER}, undone by `sessionary undo" in refused.err
    assert (content(first), (home / "projects").exists()) == after

    asked: list[str] = []
    for answer, code in (("n\n", 1), ("y\n", 0), ("y\n", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Answer(answer))
            done = run("undo")
        assert done.code == code
        asked.append(done.err.splitlines()[0])
        assert ("Nothing was changed." in done.err) == (code == 1)
    assert asked == [
        f"Last change: trash of {OTHER}",
        f"Last change: trash of {OTHER}",
        f"Last change: rewind to turn 1 of {ROOT}",
    ]
    assert (content(first), content(second)) == before


def test_an_undo_that_is_taken_back_leads_to_where_one_was(make: Make, run: Run) -> None:
    folder = make()
    before = content(folder)["transcript.jsonl"]
    assert run("rewind", ROOT, "1").code == 0
    rewound = content(folder)["transcript.jsonl"]
    for expected in (before, rewound, before):
        assert run("undo", ROOT).code == 0
        assert content(folder)["transcript.jsonl"] == expected


def test_undo_lists_what_could_be_undone(make: Make, run: Run) -> None:
    make()
    assert run("undo", "--list").err == "Nothing to undo.\n"
    run("rewind", ROOT, "2")
    run("undo", ROOT)
    head, last, first = run("undo", "--list").out.splitlines()
    assert head.split() == ["ID", "WHEN", "WHAT", "SIZE"]
    assert last.startswith("▶ ")
    assert "undo of rewind" in last
    assert first.startswith("  ")
    assert "rewind to turn 2" in first


def test_what_came_after_a_rewind_is_kept_by_its_undo(make: Make, run: Run) -> None:
    folder = make()
    before = (folder / "transcript.jsonl").read_bytes()
    run("rewind", ROOT, "1")
    SessionStore(folder.parent).append(ROOT, [{"role": "user", "content": "Something else"}])
    done = run("undo", ROOT)
    assert "  kept separately, since it is newer than the change: 1 message" in done.out
    assert (folder / "transcript.jsonl").read_bytes() == before
    run("undo", ROOT)
    assert b"Something else" in (folder / "transcript.jsonl").read_bytes()


def test_undo_puts_a_displaced_version_back_and_swaps_again(make: Make, run: Run) -> None:
    folder = make()
    store = SessionStore(folder.parent)
    mine, metadata = store.load(ROOT)
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(lines({"role": "user", "content": "Theirs"}))  # another program, unseen by this one
    theirs = (folder / "transcript.jsonl").read_bytes()
    store.save(ROOT, [*mine, {"role": "user", "content": "Mine"}], metadata)
    ours = (folder / "transcript.jsonl").read_bytes()
    assert store.last_report.conflicts
    done = run("undo", ROOT, "--json").json
    assert (done["operation"], (folder / "transcript.jsonl").read_bytes()) == ("conflict", theirs)
    assert Path(done["kept_in"]).read_bytes() == ours
    assert run("undo", ROOT).code == 0
    assert (folder / "transcript.jsonl").read_bytes() == ours


def test_a_trashed_session_counts_when_an_id_is_ambiguous(make: Make, run: Run, home: Path) -> None:
    make()
    make(OTHER)
    run("trash", OTHER)
    run("rewind", ROOT, "1")
    before = tree(home)
    refused = run("undo", "3f0c")
    assert refused.code == 12
    assert f"  {ROOT}  -home-u-app" in refused.err.splitlines()
    assert f"  {OTHER}  -home-u-app" in refused.err.splitlines()
    assert tree(home) == before
    assert run("undo", "3f0c9").out == f"✓ {OTHER} is restored from the trash\n"


def test_undo_does_not_put_a_session_over_another(make: Make, run: Run) -> None:
    folder = make()
    run("trash", ROOT)
    make(messages=turn(1))
    assert run("undo", ROOT).code == 11
    assert (folder / "transcript.jsonl").read_bytes() == lines(*turn(1))


def test_nothing_to_undo(make: Make, run: Run) -> None:
    make()
    for words in ([], [ROOT], ["nobody"]):
        assert run("undo", *words).code == 10


# dry runs


@pytest.mark.parametrize(
    "words",
    [
        ["fork", ROOT],
        ["fork", ROOT, "--turn", "1", "--id", "new", "--json"],
        ["rewind", ROOT, "1"],
        ["rewind", ROOT, "1", "--json"],
        ["repair", ROOT],
        ["repair", ROOT, "--json"],
        ["restore-backup", ROOT],
        ["restore-backup", ROOT, "--metadata", "--json"],
    ],
)
def test_a_dry_run_writes_nothing(make: Make, run: Run, home: Path, words: list[str]) -> None:
    backups = {"transcript.jsonl.backup": lines(*turn(1)), "metadata.json.backup": b'{"name": "Old"}'}
    make(**DAMAGED, files=backups)
    before = tree(home)
    done = run(words[0], *words[1:], "--dry-run")
    assert done.code == 0, done
    assert tree(home) == before
    if "--json" in words:
        assert done.json["dry_run"] is True
        assert done.json["undo"] is None


def test_a_dry_fork_reports_what_it_would_hold_and_refuses_what_it_would(make: Make, run: Run) -> None:
    make(messages=[*turn(1), *turn(2, answered=False)])
    make("taken")
    assert run("fork", ROOT, "--dry-run").out.splitlines() == [
        "Would create a new session from turns 1 to 2 of 2",
        f"  of {ROOT}: 6 messages",
        "  You: Question 2",
        "  Agent: I look.",
        "  1 tool call without a result would get one",
    ]
    reported = run("fork", ROOT, "--dry-run", "--turn", "1", "--json").json
    assert (reported["turn"], reported["turns"], reported["messages"], reported["incomplete"]) == (1, 2, 4, 0)
    assert run("fork", ROOT, "--dry-run", "--id", "taken").code == 11
    assert run("fork", ROOT, "--dry-run", "--on-incomplete", "error").code == 12
    assert run("fork", ROOT, "--dry-run", "--turn", "3").code == 12


# misuse


@pytest.mark.parametrize("command", [["fork"], ["rewind"], ["repair"], ["restore-backup"], ["trash"]])
def test_what_is_not_a_session_is_refused_and_nothing_changes(
    make: Make, run: Run, home: Path, tmp_path: Path, command: list[str]
) -> None:
    make()
    make(OTHER)
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "thesis.txt").write_text("Years of work")
    (papers / "metadata.json").write_text("{}")
    more = ["1"] if command == ["rewind"] else []

    def code(word: str) -> int:
        return run(*command, word, *more).code

    before = tree(tmp_path)
    assert code("nobody") == 10
    assert code("3f0c") == 12
    assert code(str(papers)) == 10
    assert code(str(papers / "thesis.txt")) == 12
    assert code(f"{home}/projects/-home-u-app/sessions") == 10
    assert code("../../etc") == 10
    assert code("") == 12
    after = tree(tmp_path)
    for derived in [name for name in after if name.startswith("person")]:  # what lists remember
        del after[derived]
    assert after == before


def test_candidates_are_shown_for_an_ambiguous_id(make: Make, run: Run) -> None:
    make()
    make(OTHER, project="-home-u-web")
    refused = run("rewind", "3f0c", "1")
    assert refused.err.splitlines()[:3] == [
        "sessionary: 2 sessions match 3f0c",
        f"  {ROOT}  -home-u-app",
        f"  {OTHER}  -home-u-web",
    ]
    as_json = json.loads(run("rewind", "3f0c", "1", "--json").err)
    assert (as_json["error"], as_json["exit_code"]) == ("AmbiguousId", 12)


def test_a_name_that_two_sessions_bear_is_ambiguous(make: Make, run: Run) -> None:
    make(name="Login")
    make(OTHER, name="login", project="-home-u-web")
    refused = run("trash", "Login")
    assert refused.code == 12
    assert {f"  {ROOT}  -home-u-app", f"  {OTHER}  -home-u-web"} < set(refused.err.splitlines())


@pytest.mark.parametrize("new_id", ["../../out", "a/b", ".hidden", "x\x1b[2J", "CON", " x"])
def test_an_id_that_could_not_be_found_again_is_refused(
    make: Make, run: Run, home: Path, new_id: str
) -> None:
    folder = make()
    before = content(folder)
    refused = run("fork", ROOT, f"--id={new_id}")
    assert refused.code == 12
    assert "\x1b" not in refused.err
    assert run("fork", ROOT, f"--id={new_id}", "--dry-run").code == 12
    assert content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == [ROOT]


def test_an_id_that_is_taken_is_refused(make: Make, run: Run) -> None:
    make()
    other = make(OTHER)
    before = content(other)
    assert run("fork", ROOT, "--id", OTHER).code == 11
    assert content(other) == before


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_fork_does_not_take_the_id_of_a_session_of_another_project(
    make: Make, run: Run, home: Path, more: list[str]
) -> None:
    """Neither could be named by its id afterwards; that of a parent that is named by its path is its own affair."""
    folder, other = make(), make(OTHER, project="-home-u-web")
    refused = run("fork", ROOT, "--id", OTHER, *more)
    assert (refused.code, refused.out) == (11, "")
    assert OTHER in refused.err
    assert json.loads((other / "metadata.json").read_text())["session_id"] == OTHER
    assert run("show", OTHER).code == 0
    assert run("fork", str(folder), "--id", OTHER, *more).code == 0


@pytest.mark.parametrize("words", [["rewind", ROOT, "4"], ["fork", ROOT, "--turn", "4"]])
def test_a_missing_turn(make: Make, run: Run, words: list[str]) -> None:
    folder = make()
    before = content(folder)
    refused = run(*words)
    assert refused.code == 12
    assert "Valid range: " in refused.err
    assert content(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        ["rewind", ROOT],
        ["rewind", ROOT, "-1"],
        ["rewind", ROOT, "two"],
        ["fork", ROOT, "--turn", "0"],
        ["fork", ROOT, "--name", " "],
        ["fork"],
        ["repair", ROOT, "--orphans", "keep"],
        ["trash"],
        ["trash", ROOT, "--list"],
        ["trash", ROOT, "--empty", "--yes"],
        ["trash", ROOT, "--older-than", "3d"],
        ["trash", "--list", "--yes"],
    ],
)
def test_a_command_line_that_makes_no_sense(make: Make, run: Run, home: Path, words: list[str]) -> None:
    make()
    before = tree(home)
    assert run(*words).code == 2
    assert tree(home) == before


def test_sessions_are_named_by_path_and_by_name_and_across_projects(make: Make, run: Run) -> None:
    folder = make(project="-home-u-web", name="The slow build")
    make(OTHER)
    make(SPAWNED, messages=turn(1))
    by_path = run("rewind", f"{folder.parent}/../sessions/{ROOT}/", "2", "--json").json
    assert by_path["undo"].endswith(f" {folder}")
    assert run("undo", str(folder)).code == 0
    assert run("rewind", "the slow  BUILD", "1", "--json").json["id"] == ROOT
    assert run("rewind", "9c1d2e3f", "0", "--json").json["id"] == SPAWNED
    assert run("trash", str(folder)).code == 0
    assert run("undo", str(folder)).out == f"✓ {ROOT} is restored from the trash\n"


def test_control_sequences_are_not_sent_to_the_terminal(make: Make, run: Run) -> None:
    evil = {"role": "user", "content": HOSTILE}
    call = {"role": "assistant", "content": HOSTILE, "tool_calls": [{"id": HOSTILE, "tool": HOSTILE}]}
    raw = json.dumps(evil, ensure_ascii=False).encode() + b"\n"
    make(transcript=raw + raw[:-1] + lines(call) + raw[:12], name=HOSTILE)
    for words in (
        ["fork", ROOT, "--dry-run"],
        ["rewind", ROOT, "0", "--dry-run"],
        ["repair", ROOT, "--dry-run", "--full"],
        ["repair", ROOT],
        ["fork", ROOT],
        ["rewind", ROOT, "0"],
        ["undo", "--list"],
        ["undo", ROOT],
        ["trash", ROOT],
        ["trash", "--list"],
        ["undo", HOSTILE],
    ):
        done = run(*words)
        for sign in ("\x1b", "\x07", "\x9b", "\u202e", "\u200b"):
            assert sign not in done.out + done.err, (words, sign)


@pytest.mark.parametrize("columns", [60, 80])
def test_nothing_is_wider_than_the_terminal(
    make: Make, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    wide = {"role": "user", "content": "日本 " * 200}
    raw = json.dumps(wide, ensure_ascii=False).encode() + b"\n"
    make(transcript=raw + lines(turn(1)[1])[:-1] + raw + b'{"ro', name="長い " * 60)
    for words in (
        ["fork", ROOT, "--dry-run"],
        ["rewind", ROOT, "0", "--dry-run"],
        ["repair", ROOT],
        ["undo", "--list"],
        ["trash", ROOT],
        ["trash", "--list"],
    ):
        done = run(*words)
        assert done.code == 0, done
        assert [line for line in done.out.splitlines() if cells(line) > columns] == [], words


def test_a_diff_is_coloured_only_on_a_terminal_that_wants_it(
    make: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(**DAMAGED)
    assert "\x1b" not in run("repair", ROOT, "--dry-run").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", "")
    assert "\x1b[32m+" in run("repair", ROOT, "--dry-run").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("repair", ROOT, "--dry-run").out


@pytest.mark.skipif(os.geteuid() == 0, reason="root is refused nothing")
def test_a_folder_that_may_only_be_read(make: Make, run: Run) -> None:
    folder = make()
    folder.chmod(0o500)
    try:
        assert run("rewind", ROOT, "1", "--dry-run").code == 0
        assert run("rewind", ROOT, "1").code == 16
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("name", ["fork", "rewind", "repair", "restore-backup", "trash", "undo"])
def test_the_help_has_an_example(run: Run, name: str) -> None:
    reported = run(name, "-h")
    assert reported.code == 0
    assert f"Examples:\n    sessionary {name}" in reported.out


class Shut(OsFs):
    """A system on which one folder may not be looked into."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def listdir(self, path: str) -> list[str]:  # type: ignore[override]
        if path == self._folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return os.listdir(path)


SHUT = "5b1d0000-0000-4000-8000-000000000005"


@pytest.mark.parametrize("what", ["project", "session", "trash"])
def test_what_is_closed_keeps_nothing_else_from_being_undone(
    make: Make, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    folder, other = make(), make(OTHER)
    shut = make(SHUT, project="-home-u-shut")
    before = content(folder)
    assert run("rewind", ROOT, "1").code == 0
    assert run("trash", OTHER).code == 0
    place = {"project": shut.parent, "session": shut, "trash": shut.parent / ".trash"}[what]
    fs = Shut(place)
    monkeypatch.setattr("sessionary.cli.homes.Workspace", partial(Workspace, fs=fs))
    listed = run("undo", "--list", "--json")
    assert [one["id"] for one in listed.json] == [OTHER, ROOT]
    assert (listed.code, str(place) in listed.err) == (3, True)
    trash = run("trash", "--list", "--json")
    assert [one["id"] for one in trash.json] == [OTHER]
    assert trash.code == (0 if what == "session" else 3)

    last = run("undo")  # it may be there
    assert (last.code, str(place) in last.err, "undo ID" in last.err) == (16, True, True)
    assert run("undo", OTHER).code == 0
    assert other.exists()
    assert run("undo", ROOT).code == 0
    assert content(folder)["transcript.jsonl"] == before["transcript.jsonl"]


def test_a_strangers_file_among_the_projects_keeps_nothing_from_being_undone(
    make: Make, run: Run, home: Path
) -> None:
    make()
    (home / "projects" / "notes.txt").write_text("mine")
    (home / "projects" / "-home-u-flat").mkdir()
    (home / "projects" / "-home-u-flat" / "sessions").write_text("mine too")
    assert run("trash", ROOT).code == 0
    listed = run("undo", "--list", "--json")
    assert [one["id"] for one in listed.json] == [ROOT]
    assert (listed.code, listed.err) == (0, "")
    assert run("undo", ROOT).code == 0


def test_what_the_list_called_a_session_brings_it_back_although_sub_agents_carry_its_id(
    make: Make, run: Run
) -> None:
    folder = make()
    for number in (1, 2):
        make(f"{ROOT}-{number:016x}_builder", parent_id=ROOT)
    assert run("trash", ROOT[:8]).code == 0
    assert not folder.exists()
    assert run("undo", ROOT[:8]).code == 0
    assert folder.exists()
    # A session in its place is meant before one in the trash; where there are both, the person must say which.
    assert run("rewind", ROOT[:8], "1").code == 0
    make(OTHER)
    assert run("trash", OTHER).code == 0
    assert run("undo", "3f0c").code == 12
    assert run("undo", ROOT[:8], "--json").json["operation"] == "rewind"
