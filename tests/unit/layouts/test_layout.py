"""The read side of an amplifier home: what is found, what is said of it, and that nothing hides anything."""

import errno
import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS, OsFs
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts import jsonl
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Layout
from sessionary.layouts.files import PartKind
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Cursor, Item, Message, Problem, Reset, SessionRef, Severity, Summary
from sessionary.workspace import Workspace

ROOT = "3f0c81d2-0000-4000-8000-000000000001"
SPAWNED = "0000000000000000-9c1d2e3f4a5b6c7d_explorer"
HELLO = {"role": "user", "content": "Fix the\n  login  race", "timestamp": "2026-03-01T09:00:00.000+00:00"}
ANSWER = {"role": "assistant", "content": "Done.", "timestamp": "2026-03-01T09:00:05.000+00:00"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "bash", "input": {}}]}
THIRD = {"role": "assistant", "tool_calls": [{"id": "t3", "tool": "grep", "arguments": {}}]}
RESULT = {"role": "tool", "tool_call_id": "t1", "content": "ok"}
AGAIN = {"role": "user", "content": "And?", "timestamp": "2026-03-01T09:00:07.000+00:00"}
LATER = {"role": "assistant", "content": "Well.", "timestamp": "2026-03-01T09:00:09.000+00:00"}
HOOK = {"role": "user", "content": "<system-reminder>Two todos are left.</system-reminder>"}
EMPTY = {"type": "thinking", "thinking": "", "signature": "s"}


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def metadata(session_id: str = ROOT, **more: Any) -> bytes:
    fields = {"session_id": session_id, "created": "2026-03-01T09:00:00+00:00", "bundle": "bundle:foundation"}
    return json.dumps({**fields, "turn_count": 1, **more}).encode()


UNDATED = lines({"role": "user", "content": "Hello"})
Make = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def make(home: Path) -> Make:
    """Write a session folder: the two documents of a healthy session, unless `bare`, and whatever files are given."""

    def make(
        session_id: str = ROOT,
        project: str = "-home-u-app",
        files: Mapping[str, bytes] | None = None,
        *,
        bare: bool = False,
    ) -> Path:
        folder = home / "projects" / project / "sessions" / session_id
        folder.mkdir(parents=True)
        healthy = (
            {} if bare else {"transcript.jsonl": lines(HELLO, ANSWER), "metadata.json": metadata(session_id)}
        )
        for name, data in {**healthy, **(files or {})}.items():
            (folder / name).write_bytes(data)
        return folder

    return make


def only(layout: AmplifierLayout) -> Summary:
    (summary,) = summaries(layout)
    return summary


def check(home: Path, session_id: str = ROOT) -> list[Problem]:
    layout = AmplifierLayout(home)
    (ref,) = [ref for ref in layout.discover() if ref.session_id == session_id]
    return list(layout.check(ref))


def codes(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.code, problem.severity.name) for problem in problems]


class Closed(OsFs):
    """The file system, with one path that may not be looked into."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def _refuse(self, path: str) -> None:
        if path == self.path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:  # type: ignore[override]
        self._refuse(path)
        return OS_FS.open(path, flags, mode)

    def listdir(self, path: str) -> list[str]:  # type: ignore[override]
        self._refuse(path)
        return OS_FS.listdir(path)


# What is found


def test_a_missing_home_has_no_sessions(home: Path) -> None:
    layout: Layout = AmplifierLayout(home)
    assert list(layout.discover()) == []
    assert list(summaries(layout)) == []
    assert not home.exists()


def test_discover_finds_sessions_and_passes_over_strangers(home: Path, make: Make) -> None:
    make()
    make(SPAWNED)
    make("one", "-tmp")
    make("only-events", files={"events.jsonl": b"{}\n"}, bare=True)
    make("only-hidden-files", files={".lock": b""}, bare=True)
    make("empty", bare=True)
    make(".trash", files={"transcript.jsonl": lines(HELLO)}, bare=True)
    make("folders-only", bare=True).joinpath("inner").mkdir()
    sessions = home / "projects" / "-home-u-app" / "sessions"
    (sessions / "a-file").write_bytes(b"")
    (home / "projects" / "no-sessions").mkdir()
    (home / "projects" / "a-file").write_bytes(b"")
    make(ROOT, ".hidden-project")
    found = {(ref.project, ref.session_id): ref for ref in AmplifierLayout(home).discover()}
    assert set(found) == {
        ("-home-u-app", ROOT),
        ("-home-u-app", SPAWNED),
        ("-home-u-app", "only-events"),
        ("-tmp", "one"),
    }
    assert found["-home-u-app", ROOT] == SessionRef("amplifier", ROOT, str(sessions / ROOT), "-home-u-app")
    assert {summary.ref.session_id for summary in summaries(AmplifierLayout(home))} == {
        ROOT, SPAWNED, "only-events", "one",
    }  # fmt: skip


@pytest.mark.parametrize(
    "session_id", ["..x", " x ", "a\nb", "*", "-rf", "日本", "a:b", "x" * 255, "\x1b[2J"]
)
def test_any_name_of_a_folder_is_a_session(home: Path, make: Make, session_id: str) -> None:
    make(session_id if not session_id.startswith(".") else f"x{session_id}")
    assert only(AmplifierLayout(home)).ref.session_id in (session_id, f"x{session_id}")


def test_a_name_that_is_not_utf8_is_a_session_too(home: Path, make: Make) -> None:
    make(os.fsdecode(b"caf\xe9"))
    (ref,) = AmplifierLayout(home).discover()
    assert os.fsencode(ref.session_id) == b"caf\xe9"
    assert only(AmplifierLayout(home)).health == "ok"


def test_a_time_beyond_all_calendars_is_none(home: Path, make: Make) -> None:
    folder = make()

    class Far(OsFs):
        def stat(self, path: str) -> os.stat_result:  # type: ignore[override]
            found = OS_FS.stat(path)
            return os.stat_result([*found[:7], 10**15, 10**15, 10**15]) if path == str(folder) else found

    (folder / "transcript.jsonl").write_bytes(UNDATED)
    found = only(AmplifierLayout(home, Far()))
    assert found.updated == datetime.fromtimestamp((folder / "transcript.jsonl").stat().st_mtime, UTC)
    assert [problem.code for problem in found.problems] == ["future_time"]


def test_a_linked_session_folder_is_followed(home: Path, make: Make, tmp_path: Path) -> None:
    folder = make()
    (tmp_path / "elsewhere").mkdir()
    folder.rename(tmp_path / "elsewhere" / ROOT)
    folder.symlink_to(tmp_path / "elsewhere" / ROOT)
    assert only(AmplifierLayout(home)).messages == 2


def test_at_knows_a_session_folder_anywhere(home: Path, make: Make, tmp_path: Path) -> None:
    folder = make()
    layout = AmplifierLayout(tmp_path / "other")
    assert layout.ref_for_path(folder) == SessionRef("amplifier", ROOT, str(folder), "-home-u-app")
    copied = tmp_path / "copy"
    folder.rename(copied)
    assert layout.ref_for_path(copied) == SessionRef("amplifier", "copy", str(copied), None)
    assert layout.ref_for_path(tmp_path) is None
    assert layout.ref_for_path(tmp_path / "gone") is None


@pytest.mark.parametrize(
    ("session_id", "handle"),
    [
        (ROOT, ROOT),
        ("my_fix", "my_fix"),
        (SPAWNED, "9c1d2e3f4a5b6c7d_explorer"),
        (f"{ROOT}-9c1d2e3f4a5b6c7d_zen", "9c1d2e3f4a5b6c7d_zen"),
        (f"{ROOT}-9c1d2e3f4a5b6c7d_zen_x-3452b4fa24eb4837_a:b", "3452b4fa24eb4837_a:b"),
    ],
)
def test_sub_sessions_are_distinguished_by_their_own_span(home: Path, session_id: str, handle: str) -> None:
    assert AmplifierLayout(home).short_key(SessionRef("amplifier", session_id, str(home))) == handle


# What is said of a session


def test_the_summary_of_a_healthy_session(home: Path, make: Make) -> None:
    folder = make(files={"events.jsonl": b"x" * 1000})
    os.utime(folder / "transcript.jsonl", (1_750_000_000, 1_750_000_000))
    for path in (folder / "metadata.json", folder / "events.jsonl", folder):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert only(AmplifierLayout(home)) == Summary(
        ref=SessionRef("amplifier", ROOT, str(folder), "-home-u-app"),
        agent="amplifier",
        title="Fix the login race",
        parent=None,
        messages=2,
        turns=1,
        turn_count=1,
        created=datetime(2026, 3, 1, 9, tzinfo=UTC),
        updated=datetime(2026, 3, 1, 9, 0, 5, tzinfo=UTC),
        size=size,
        health="ok",
    )


@pytest.mark.parametrize("name", ["metadata.json", ".", "transcript.jsonl"])
def test_without_a_message_with_a_time_the_newest_of_folder_and_files_counts(
    home: Path, make: Make, name: str
) -> None:
    folder = make(files={"transcript.jsonl": UNDATED})
    for path in (folder / "transcript.jsonl", folder / "metadata.json", folder):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    os.utime(folder / name, (1_750_000_000, 1_750_000_000))
    assert only(AmplifierLayout(home)).updated == datetime.fromtimestamp(1_750_000_000, UTC)


def test_the_newest_message_counts_whatever_the_times_of_the_files_are(home: Path, make: Make) -> None:
    undated = [{"role": "tool", "tool_call_id": "t1", "content": "ok"}] * 9
    folder = make(files={"transcript.jsonl": lines(HELLO, ANSWER, *undated)})
    for at in (1_700_000_000, 4_000_000_000):
        for path in (*folder.iterdir(), folder):
            os.utime(path, (at, at))
        found = only(AmplifierLayout(home))
        assert found.updated == datetime(2026, 3, 1, 9, 0, 5, tzinfo=UTC)
        assert "future_time" not in [problem.code for problem in found.problems]


def test_times_are_read_wherever_writers_put_them(home: Path, make: Make) -> None:
    for place in ({"ts": LATER["timestamp"]}, {"metadata": {"timestamp": LATER["timestamp"]}}):
        name = "s" + next(iter(place))
        make(name, files={"transcript.jsonl": lines(HELLO, {"role": "assistant", "content": "x", **place})})
    found = summaries(AmplifierLayout(home))
    assert {one.updated for one in found} == {datetime(2026, 3, 1, 9, 0, 9, tzinfo=UTC)}


def test_a_message_after_the_clock_is_a_note_and_the_files_count(home: Path, make: Make) -> None:
    late = {**ANSWER, "timestamp": "2099-01-01T00:00:00+00:00"}
    folder = make(files={"transcript.jsonl": lines(HELLO, late)})
    for path in (*folder.iterdir(), folder):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (found,) = summaries(AmplifierLayout(home))
    assert found.updated == datetime.fromtimestamp(1_700_000_000, UTC)
    [problem] = [one for one in found.problems if one.code == "future_time"]
    assert problem.severity is Severity.note
    assert "2099-01-01" in problem.message


def test_files_after_the_clock_count_by_the_time_of_their_inodes(home: Path, make: Make) -> None:
    folder = make(files={"transcript.jsonl": UNDATED})
    for path in (*folder.iterdir(), folder):
        os.utime(path, (4_000_000_000, 4_000_000_000))
    found = only(AmplifierLayout(home))
    assert found.updated is not None
    assert found.updated <= datetime.now(UTC)
    assert "future_time" in [problem.code for problem in found.problems]


@pytest.mark.parametrize(
    ("name", "messages", "title"),
    [
        ("Fix login", [HELLO], "Fix login"),
        ("two\nlines", [HELLO], "two lines"),
        ("", [HELLO], "Fix the login race"),
        ("  ", [HELLO], "Fix the login race"),
        (None, [HELLO], "Fix the login race"),
        (7, [HELLO], "Fix the login race"),
        (None, [{"role": "user", "content": "<system-reminder>x"}, ANSWER], None),
        (None, [{"role": "user", "content": ""}, HELLO], "Fix the login race"),
        (None, [{"role": "user", "content": "\n\n" + "x" * 500}], "x" * 200 + "…"),
        (None, [], None),
    ],
)
def test_the_title(
    home: Path, make: Make, name: Any, messages: list[dict[str, Any]], title: str | None
) -> None:
    make(files={"transcript.jsonl": lines(*messages) or b"\n", "metadata.json": metadata(name=name)})
    assert only(AmplifierLayout(home)).title == title


def test_size_counts_every_file_hidden_ones_and_those_in_folders_too(home: Path, make: Make) -> None:
    folder = make(files={".lock": b"12345"})
    (folder / ".undo").mkdir()
    (folder / ".undo" / "old").write_bytes(b"1234567")
    documents = sum((folder / name).stat().st_size for name in ("transcript.jsonl", "metadata.json"))
    assert only(AmplifierLayout(home)).size == documents + 12


@pytest.mark.parametrize("count", [True, "4", 4.0, None, [4]])
def test_a_turn_count_that_is_not_a_number_is_left_out(home: Path, make: Make, count: Any) -> None:
    make(files={"metadata.json": metadata(turn_count=count)})
    assert only(AmplifierLayout(home)).turn_count is None


def test_parent_and_times_come_from_metadata_in_any_spelling(home: Path, make: Make) -> None:
    make(
        SPAWNED,
        files={"metadata.json": metadata(SPAWNED, parent_id=ROOT, created="2026-03-01T10:00:00+01:00")},
    )
    summary = only(AmplifierLayout(home))
    assert summary.parent == ROOT
    assert summary.created == datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_summaries_never_look_into_an_event_log(home: Path, make: Make) -> None:
    folder = make(files={"events.jsonl": b"torn"})
    layout = AmplifierLayout(home, Closed(folder / "events.jsonl"))
    assert only(layout).health == "ok"


def test_a_summary_agrees_with_the_check(home: Path, make: Make) -> None:
    make(
        files={
            "transcript.jsonl": lines(HELLO, CALL) + b'{"torn',
            "metadata.json": b"{",
            "transcript.jsonl.backup": b"",
        }
    )
    layout = AmplifierLayout(home)
    (ref,) = layout.discover()
    assert only(layout).problems == summary_of(layout, ref).problems == list(layout.check(ref))


# Nothing hides anything


def test_a_session_that_cannot_be_looked_into_is_shown_and_hides_no_other(home: Path, make: Make) -> None:
    closed = make("closed")
    make("open")
    layout = AmplifierLayout(home, Closed(closed))
    assert {ref.session_id for ref in layout.discover()} == {"closed", "open"}
    found = {summary.ref.session_id: summary for summary in summaries(layout)}
    assert found["open"].health == "ok"
    assert codes(found["closed"].problems) == [("unreadable_file", "stops_resume")]
    assert summary_of(layout, found["closed"].ref) == found["closed"]


@pytest.mark.parametrize("name", ["transcript.jsonl", "metadata.json"])
def test_a_file_that_cannot_be_read_is_a_problem_of_its_session(home: Path, make: Make, name: str) -> None:
    folder = make("closed")
    make("open")
    found = {
        summary.ref.session_id: summary for summary in summaries(AmplifierLayout(home, Closed(folder / name)))
    }
    assert found["open"].health == "ok"
    assert ("unreadable_file", "stops_resume") in codes(found["closed"].problems)


def test_what_cannot_be_read_at_all_is_an_error_for_its_callers(home: Path, make: Make) -> None:
    folder = make()
    (ref,) = AmplifierLayout(home).discover()
    with pytest.raises(StorageFailed, match="Failed to read"):
        list(AmplifierLayout(home, Closed(folder / "transcript.jsonl")).read(ref))
    (folder / "events.jsonl").write_bytes(b"{}")
    problems = list(AmplifierLayout(home, Closed(folder / "events.jsonl")).check(ref))
    assert codes(problems) == [("unreadable_file", "cosmetic")]


def test_a_project_that_cannot_be_looked_into_is_reported_after_all_the_others(
    home: Path, make: Make
) -> None:
    make("one", "-a")
    make("two", "-b")
    make("three", "-c")
    layout = AmplifierLayout(home, Closed(home / "projects" / "-b" / "sessions"))
    found: list[Summary] = []
    with pytest.raises(StorageFailed) as caught:
        found.extend(summaries(layout))
    assert sorted(summary.ref.session_id for summary in found) == ["one", "three"]
    assert caught.value.details["folders"] == [str(home / "projects" / "-b" / "sessions")]


def test_a_session_that_is_gone(home: Path) -> None:
    layout = AmplifierLayout(home)
    ref = SessionRef("amplifier", ROOT, str(home / ROOT))
    with pytest.raises(NotFound, match=f"Session '{ROOT}' not found"):
        summary_of(layout, ref)
    with pytest.raises(NotFound):
        list(layout.read(ref))
    with pytest.raises(StorageFailed):
        list(layout.parts(ref))


# What is wrong


DAMAGE = [
    ({}, []),
    ({"transcript.jsonl": lines(HELLO) + b'{"role": "user", "con'}, [("torn_tail", "lost_data")]),
    ({"transcript.jsonl": lines(HELLO) + b"{no}\n" + lines(ANSWER)}, [("bad_json", "lost_data")]),
    ({"transcript.jsonl": b"\xef\xbb\xbf" + lines(HELLO)}, [("bom", "note")]),
    ({"transcript.jsonl": b""}, [("turn_count_differs", "note"), ("empty_file", "note")]),
    ({"transcript.jsonl": b"\n", "metadata.json": metadata(turn_count=0)}, []),
    ({"transcript.jsonl": b"\n\n", "metadata.json": metadata(turn_count=0)}, [("blank_lines", "note")]),
    (
        {
            "transcript.jsonl": b"",
            "transcript.jsonl.backup": lines(HELLO),
            "metadata.json": metadata(turn_count=0),
        },
        [("zero_bytes", "lost_data")],
    ),
    ({"transcript.jsonl": lines(HELLO, CALL)}, [("orphaned_call", "stops_resume")]),
    ({"transcript.jsonl": lines(HELLO, CALL, ANSWER)}, [("orphaned_call", "stops_resume")]),
    ({"transcript.jsonl": lines(HELLO, RESULT, ANSWER)}, [("orphaned_result", "stops_resume")]),
    ({"transcript.jsonl": lines(HELLO, CALL, RESULT, RESULT, ANSWER)}, [("repeated_result", "stops_resume")]),
    ({"transcript.jsonl": lines(HELLO, CALL, RESULT, ANSWER)}, []),
    ({"transcript.jsonl": lines(HELLO, CALL, RESULT)}, [("incomplete_turn", "note")]),
    (
        {"transcript.jsonl": lines(HELLO, CALL, RESULT, AGAIN), "metadata.json": metadata(turn_count=2)},
        [("incomplete_turn", "stops_resume")],
    ),
    (
        {"transcript.jsonl": lines(HELLO, AGAIN), "metadata.json": metadata(turn_count=2)},
        [("consecutive_users", "note")],
    ),
    ({"transcript.jsonl": lines(HELLO, CALL, ANSWER, RESULT, LATER)}, [("misplaced_result", "stops_resume")]),
    ({"transcript.jsonl": lines(HELLO, CALL, HOOK, RESULT, ANSWER)}, [("late_result", "note")]),
    (
        {"transcript.jsonl": lines(HELLO, CALL, RESULT, CALL, RESULT, ANSWER)},
        [("repeated_call", "stops_resume")],
    ),
    (
        {"transcript.jsonl": lines(HELLO, {**ANSWER, "tool_calls": None})},
        [("null_tool_calls", "stops_resume")],
    ),
    ({"transcript.jsonl": lines(HELLO, {**ANSWER, "tool_calls": 5})}, [("bad_tool_calls", "stops_resume")]),
    ({"transcript.jsonl": lines(HELLO, {"content": "who?"})}, [("no_role", "stops_resume")]),
    (
        {"transcript.jsonl": lines(HELLO, {**ANSWER, "tool_calls": [{"tool": "bash"}]})},
        [("no_call_id", "note")],
    ),
    ({"transcript.jsonl": lines(HELLO, {**ANSWER, "content": [EMPTY]})}, [("empty_thinking", "note")]),
    ({"metadata.json": b"{"}, [("bad_metadata", "hides_data"), ("recovered_metadata", "lost_data")]),
    ({"metadata.json": b"[1]"}, [("bad_metadata", "hides_data"), ("recovered_metadata", "lost_data")]),
    ({"metadata.json": metadata("another")}, [("id_differs", "note")]),
    ({"metadata.json": metadata(turn_count=4)}, [("turn_count_differs", "note")]),
    ({"metadata.json": b'{"profile": "x"}'}, [("missing_field", "note")] * 2),
    ({"metadata.json": b"{}"}, [("missing_field", "note")] * 3),
    (
        {"transcript.jsonl.conflict-20260301T090000.000000Z": lines(HELLO)},
        [("conflict_kept", "hides_data")],
    ),
    ({"transcript.jsonl.corrupt-20260301T090000.000000Z": b"x"}, [("kept_copy", "note")]),
    ({"transcript.jsonl.torn-20260301T090000.000000Z-1": b"x"}, [("kept_copy", "note")]),
    ({"events.jsonl": b'{"ts": 1}\n'}, []),
    ({"events.jsonl": b'{"ts": 1}'}, []),
    ({"events.jsonl": b'{"ts": 1}\n{"ts'}, [("torn_event", "note")]),
    ({"config.md": b"---", "config.md.backup": b"--", "metadata.json.backup": b"{}"}, []),
]


@pytest.mark.parametrize(
    ("files", "expected"), DAMAGE, ids=lambda value: " ".join(value) if isinstance(value, dict) else ""
)
def test_every_kind_of_damage(
    home: Path, make: Make, files: dict[str, bytes], expected: list[tuple[str, str]]
) -> None:
    make(files=files)
    problems = check(home)
    assert codes(problems) == expected
    for problem in problems:
        assert problem.path.startswith(str(home))
        assert problem.message


def test_every_problem_of_ours_has_a_remedy(home: Path, make: Make) -> None:
    for number, (files, _) in enumerate(DAMAGE):
        make(f"s{number}", files=files)
    layout = AmplifierLayout(home)
    found = [problem for ref in layout.discover() for problem in layout.check(ref)]
    silent = {"bom", "blank_lines", "bad_metadata"}  # those of other rooms, which need none
    assert {problem.code for problem in found if not problem.repair} <= silent


def test_the_place_of_an_orphaned_call(home: Path, make: Make) -> None:
    make(files={"transcript.jsonl": lines(HELLO, ANSWER, CALL, HELLO)})
    (problem,) = [problem for problem in check(home) if problem.code == "orphaned_call"]
    assert (problem.line, problem.byte) == (3, len(lines(HELLO, ANSWER)))
    assert "t1" in problem.message


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_places_are_right_in_a_file_that_is_odd(home: Path, make: Make, newline: bytes) -> None:
    before = newline + lines(HELLO)
    make(files={"transcript.jsonl": before + lines(CALL) + b"{no}\n"})
    places = {problem.code: (problem.line, problem.byte) for problem in check(home)}
    assert places["orphaned_call"] == (3, len(before))
    assert places["bad_json"] == (4, len(before + lines(CALL)))


def test_a_session_without_its_documents(home: Path, make: Make) -> None:
    make(files={"events.jsonl": b""}, bare=True)
    assert codes(check(home)) == [("no_transcript", "note"), ("no_metadata", "note")]


def test_a_backup_without_its_transcript_stops_a_resume(home: Path, make: Make) -> None:
    make(files={"transcript.jsonl.backup": lines(HELLO), "metadata.json": metadata(turn_count=0)}, bare=True)
    assert codes(check(home)) == [("no_transcript", "stops_resume")]


def test_metadata_from_its_backup_still_names_the_session(home: Path, make: Make) -> None:
    folder = make(files={"metadata.json": b"{", "metadata.json.backup": metadata(name="kept")})
    assert only(AmplifierLayout(home)).title == "kept"
    (folder / "metadata.json").unlink()
    assert only(AmplifierLayout(home)).title == "kept"


def test_a_backup_that_is_the_same_file_is_not_a_backup(home: Path, make: Make) -> None:
    folder = make()
    os.link(folder / "transcript.jsonl", folder / "transcript.jsonl.backup")
    assert codes(check(home)) == [("backup_shares_file", "note")]


@pytest.mark.parametrize("name", [".transcript_ab12cd34.tmp", ".transcript.jsonl.0123456789abcdef.tmp"])
def test_leftovers_of_a_killed_writer(home: Path, make: Make, name: str) -> None:
    folder = make()
    (folder / name).write_bytes(lines(HELLO)[:-9])
    old = folder.joinpath(name).stat().st_mtime
    layout = AmplifierLayout(home, now=lambda: old + 10)
    assert only(layout).problems == [], "its writer may still be alive"
    layout = AmplifierLayout(home, now=lambda: old + 3600)
    assert codes(only(layout).problems) == [("orphan_temp", "cosmetic")]
    (folder / name).write_bytes(lines(HELLO, ANSWER, HELLO) + b"{")
    assert codes(only(layout).problems) == [("orphan_temp", "hides_data")], (
        "it holds more than the transcript"
    )


def test_duplicate_records_are_reported_only_by_check(home: Path, make: Make) -> None:
    make(files={"transcript.jsonl": lines(HELLO, ANSWER, ANSWER)})
    assert only(AmplifierLayout(home)).problems == []
    assert codes(check(home)) == [("duplicate_record", "note")]


def test_what_the_owner_refuses_stops_a_resume(home: Path, make: Make) -> None:
    make(files={"transcript.jsonl": lines(HELLO) + b"<<<<<<< HEAD\n"})
    assert codes(check(home)) == [("conflict_marker", "stops_resume")]


def test_a_tail_that_still_grows_is_looked_at_again(home: Path, make: Make) -> None:
    data = lines(HELLO, ANSWER)
    make(files={"transcript.jsonl": data})

    class Growing(OsFs):
        """A writer is in the middle of its second line until a reader has read half of it."""

        size = len(data) - 10
        reads = 0

        def fstat(self, fd: int) -> os.stat_result:
            found = OS_FS.fstat(fd)
            cut = found.st_size == len(data) and self.reads < 1
            return os.stat_result([*found[:6], self.size, *found[7:10]]) if cut else found

        def pread(self, fd: int, length: int, offset: int) -> bytes:
            if OS_FS.fstat(fd).st_size != len(data):
                return OS_FS.pread(fd, length, offset)
            self.reads += 1
            end = self.size if self.reads <= 1 else len(data)
            return OS_FS.pread(fd, min(length, max(end - offset, 0)), offset)

    fs = Growing()
    summary = only(AmplifierLayout(home, fs))
    assert (summary.messages, summary.problems) == (2, [])
    assert fs.reads == 3, "half of it, all of it, and its end for the cursor"


# Sessions outside of any home


@pytest.mark.parametrize("name", ["transcript.jsonl", "metadata.json", "events.jsonl"])
@pytest.mark.parametrize("suffix", ["", ".backup"])
def test_a_folder_anywhere_with_a_file_of_a_session_is_one(tmp_path: Path, name: str, suffix: str) -> None:
    folder = tmp_path / "copied"
    folder.mkdir()
    folder.joinpath(name + suffix).write_bytes(b"\n")
    assert AmplifierLayout(tmp_path).ref_for_path(folder) == SessionRef(
        "amplifier", "copied", str(folder), None
    )


def test_not_every_folder_is_a_session(tmp_path: Path) -> None:
    tmp_path.joinpath("passwd").write_bytes(b"root\n")
    tmp_path.joinpath("my-transcript.jsonl").write_bytes(b"\n")
    assert AmplifierLayout(tmp_path).ref_for_path(tmp_path) is None
    assert AmplifierLayout(tmp_path).ref_for_path(tmp_path / "passwd") is None
    with pytest.raises(NotFound, match="there is no session in") as caught:
        Workspace(tmp_path).ref_for_path(tmp_path)
    assert "name the file or folder of one session" in str(caught.value.hint)


# Entries and parts


def texts(items: Iterable[Item]) -> list[str]:
    return [item.text for item in items if isinstance(item, Message)]


def test_messages_come_with_their_places_and_the_damage_between_them(home: Path, make: Make) -> None:
    data = lines(HELLO) + b"{no}\n\n" + lines(CALL, RESULT) + json.dumps(ANSWER).encode()
    make(files={"transcript.jsonl": data})
    layout = AmplifierLayout(home)
    (ref,) = layout.discover()
    items = list(layout.read(ref))
    messages = [item for item in items if isinstance(item, Message)]
    assert [message.place.line for message in messages] == [1, 4, 5, 6]
    for message, record in zip(messages, (HELLO, CALL, RESULT, ANSWER), strict=True):
        assert json.loads(layout.raw(ref, message.place)) == record
    codes = [item.code if isinstance(item, Problem) else item.__class__.__name__ for item in items]
    assert codes == ["Message", "bad_json", "blank_lines", "Message", "Message", "missing_newline", "Message"]


def test_after_a_cursor_comes_what_was_appended_since(home: Path, make: Make) -> None:
    folder = make()
    layout = AmplifierLayout(home)
    (ref,) = layout.discover()
    *_, last = layout.read(ref)
    assert isinstance(last, Cursor)
    assert list(layout.read(ref, last)) == [last]
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(lines(CALL)[:20])
    assert texts(layout.read(ref, last)) == [], "half a record is none"
    with (folder / "transcript.jsonl").open("ab") as file:
        file.write(lines(CALL)[20:] + lines(RESULT))
    call, result, after = layout.read(ref, last)
    assert isinstance(call, Message)
    assert isinstance(result, Message)
    assert (len(call.calls), len(result.results)) == (1, 1)
    assert list(layout.read(ref, after if isinstance(after, Cursor) else None)) == [after]


def test_a_cursor_into_a_file_that_was_replaced_starts_over(home: Path, make: Make) -> None:
    folder = make()
    layout = AmplifierLayout(home)
    (ref,) = layout.discover()
    *_, last = layout.read(ref)
    assert isinstance(last, Cursor)
    (folder / "new").write_bytes(lines(CALL))
    (folder / "new").replace(folder / "transcript.jsonl")
    reset, call, _ = layout.read(ref, last)
    assert reset == Reset()
    assert isinstance(call, Message)
    assert call.place.byte == 0
    (folder / "transcript.jsonl").unlink()
    assert list(layout.read(ref, last)) == [Reset()]


def test_a_file_of_many_windows_reads_as_one(home: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"role": "assistant", "content": "x" * 700}
    data = lines(HELLO, long, CALL) + b"{no}\n" + lines(RESULT, RESULT, THIRD) + b'{"torn'
    make(files={"transcript.jsonl": data})
    layout = AmplifierLayout(home)
    (ref,) = layout.discover()
    whole, messages, problems = summary_of(layout, ref), texts(layout.read(ref)), list(layout.check(ref))
    for window in (1, 64, 100, 256, len(data)):
        monkeypatch.setattr(jsonl, "WINDOW", window)
        monkeypatch.setattr(jsonl, "WIDE_WINDOW", window)
        assert summary_of(layout, ref) == whole
        assert texts(layout.read(ref)) == messages
        assert list(layout.check(ref)) == problems


def test_parts_are_the_files_of_the_session_and_nothing_of_ours(home: Path, make: Make) -> None:
    make(
        files={
            "events.jsonl": b"{}\n",
            "config.md": b"-",
            "transcript.jsonl.backup": b"",
            ".lock": b"",
            ".x.tmp": b"",
        }
    )
    layout = AmplifierLayout(home)
    (ref,) = layout.discover()
    assert [(part.name, part.kind) for part in layout.parts(ref)] == [
        ("config.md", PartKind.DOCUMENT),
        ("events.jsonl", PartKind.LOG),
        ("metadata.json", PartKind.DOCUMENT),
        ("transcript.jsonl", PartKind.JOURNAL),
        ("transcript.jsonl.backup", PartKind.KEPT),
    ]
    assert all(part.size == Path(part.path).stat().st_size for part in layout.parts(ref))


def test_reading_changes_nothing(home: Path, make: Make) -> None:
    make(files={"transcript.jsonl": lines(HELLO) + b"{no", "metadata.json": b"{"})

    def state() -> list[tuple[str, int, int]]:
        return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in home.rglob("*"))

    before = state()
    layout = AmplifierLayout(home)
    for summary in summaries(layout):
        list(layout.check(summary.ref))
        list(layout.read(summary.ref))
        list(layout.parts(summary.ref))
    assert state() == before


def test_severities_are_ordered() -> None:
    assert [severity.name for severity in sorted(Severity)] == [
        "note", "cosmetic", "hides_data", "stops_resume", "lost_data",
    ]  # fmt: skip
