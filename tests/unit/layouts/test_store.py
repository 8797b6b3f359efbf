"""SessionStore: the drop-in face, the cost of a save, recovery, two writers, taking away."""

import errno
import gc
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sessionary import SessionStore
from sessionary.disk.fs import OsFs
from sessionary.errors import (
    AlreadyExists,
    AmbiguousId,
    Conflict,
    Invalid,
    InvalidId,
    Locked,
    NotFound,
    StorageFailed,
)
from sessionary.layouts.amplifier.ids import is_top_level_session
from sessionary.layouts.amplifier.store import BUNDLE_PREFIX, extract_session_mode
from tests.in_place import change_in_place
from tests.support.original import load_transcript

META = {"session_id": "s", "created": "2025-01-31T12:00:00.000Z", "bundle": "bundle:foundation"}
WHEN = "2025-01-31T12:00:00.000+00:00"


def say(text: Any, role: Any = "user", **more: Any) -> Any:
    return {"role": role, "content": text, **more}


@pytest.fixture
def base(tmp_path: Any) -> Any:
    return tmp_path / "project" / "sessions"


@pytest.fixture
def store(base: Any) -> Any:
    return SessionStore(base)


def path_of(base: Any, name: Any = "transcript.jsonl", session: Any = "s") -> Any:
    return base / session / name


def texts(store: Any, session: Any = "s") -> Any:
    return [message["content"] for message in store.load(session)[0]]


def elsewhere(base: Any, code: Any) -> None:
    """Run code in another process, with `store` over the same folder."""
    program = f"from sessionary import SessionStore; store = SessionStore({str(base)!r})\n{code}"
    subprocess.run([sys.executable, "-c", program], check=True)


# -- the face of the original


def test_constructor_takes_text_and_makes_no_folder(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    store = SessionStore("~/x/sessions")
    assert store.base_dir == tmp_path / "x" / "sessions"
    assert not (tmp_path / "x").exists()
    monkeypatch.chdir(tmp_path)
    slug = "-" + str(tmp_path.resolve()).strip("/").replace("/", "-")
    assert SessionStore().base_dir == tmp_path / ".amplifier" / "projects" / slug / "sessions"
    assert store.list_sessions() == []


def test_load_returns_what_was_saved(store: Any) -> None:
    messages = [
        say("hi", timestamp=WHEN),
        say(None, "assistant", timestamp=WHEN, tool_calls=[{"id": 1, "x": [None, 2]}]),
    ]
    store.save("s", messages, META)
    assert store.load("s") == (messages, META)
    assert store.get_metadata("s") == META
    assert store.exists("s")


def test_the_files_are_spelled_as_the_original_spells_them(store: Any, base: Any) -> None:
    store.save("s", [say("é", timestamp=WHEN)], {**META, "n": {"a": 1}})
    assert path_of(base).read_text("utf-8") == f'{{"role": "user", "content": "é", "timestamp": "{WHEN}"}}\n'
    assert path_of(base, "metadata.json").read_text() == json.dumps({**META, "n": {"a": 1}}, indent=2)
    assert path_of(base).stat().st_mode & 0o777 == 0o600
    assert (base / "s").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("bad", ["", "  ", None])
def test_empty_ids(store: Any, bad: Any) -> None:
    calls: tuple[Any, ...] = (
        lambda: store.save(bad, [], {}),
        lambda: store.load(bad),
        lambda: store.get_metadata(bad),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"^session_id cannot be empty$"):
            call()
    assert store.exists(bad) is False


@pytest.mark.parametrize("bad", ["../x", "a/b", "a\\b", ".", ".."])
def test_paths_are_not_ids(store: Any, base: Any, bad: Any) -> None:
    calls: tuple[Any, ...] = (lambda: store.save(bad, [], {}), lambda: store.update_metadata(bad, {}))
    for call in calls:
        with pytest.raises(ValueError, match="Invalid session_id: ") as caught:
            call()
        assert str(caught.value) == f"Invalid session_id: {bad}"
    assert store.exists(bad) is False
    assert not base.exists()


@pytest.mark.parametrize(
    "bad", [" x", "x ", "a\nb", "CON", "aux.txt", ".hidden", "a.", "x" * 300, "a\x1b[2Jb"]
)
def test_ids_that_could_not_be_found_again_are_refused_with_the_reason(
    store: Any, base: Any, bad: Any
) -> None:
    calls: tuple[Any, ...] = (
        lambda: store.save(bad, [say("x")], META),
        lambda: store.append(bad, [say("x")]),
    )
    for call in calls:
        with pytest.raises(InvalidId, match="Invalid session_id") as caught:
            call()
        assert caught.value.hint
    assert not base.exists()


def test_an_existing_odd_id_is_still_readable(store: Any, base: Any) -> None:
    (base / " x").mkdir(parents=True)
    (base / " x" / "transcript.jsonl").write_text('{"role": "user", "content": "old"}\n')
    store.append(" x", [say("new")])
    assert texts(store, " x") == ["old", "new"]


def test_missing_sessions(store: Any) -> None:
    calls: tuple[Any, ...] = (lambda: store.load("nope"), lambda: store.get_metadata("nope"))
    for call in calls:
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert str(caught.value) == "Session 'nope' not found"
    with pytest.raises(NotFound):
        store.update_metadata("nope", {"a": 1})
    with pytest.raises(NotFound):
        store.delete("nope")
    assert not store.exists("nope")


def test_a_folder_of_dot_files_is_not_a_session(store: Any, base: Any) -> None:
    (base / "empty").mkdir(parents=True)
    (base / "empty" / ".lock").touch()
    (base / "events").mkdir()
    (base / "events" / "events.jsonl").touch()
    assert store.list_sessions() == ["events"]
    assert not store.exists("empty")
    assert store.load("events") == ([], {})
    store.save("empty", [say("x")], META)  # and it does not stand in the way of one
    assert store.exists("empty")


def test_list_is_newest_first_by_any_of_the_three_times(store: Any, base: Any) -> None:
    for place, name in enumerate(["a", "b", "c"]):
        store.save(name, [say("x")], META)
        for path in [base / name, *(base / name).iterdir()]:
            os.utime(path, (place, place))
    assert store.list_sessions() == ["c", "b", "a"]
    os.utime(base / "a" / "transcript.jsonl", (50, 50))
    os.utime(base / "b" / "metadata.json", (60, 60))
    assert store.list_sessions() == ["b", "a", "c"]


def test_an_append_moves_the_folder_for_the_originals_list(store: Any, base: Any) -> None:
    store.save("s", [say("x")], META)
    os.utime(base / "s", (1, 1))
    store.append("s", [say("y")])
    assert (base / "s").stat().st_mtime > 1e9


def test_sub_sessions_are_hidden_unless_asked_for(store: Any) -> None:
    for name in ("top", "0000000000000000-35136bd7ef3f4d71_explorer"):
        store.save(name, [say("x")], META)
    assert store.list_sessions() == ["top"]
    assert len(store.list_sessions(top_level_only=False)) == 2
    assert is_top_level_session("top")
    assert not is_top_level_session("a_b")


def test_find_session(store: Any) -> None:
    for name in ("abc", "abcd1", "abcd2", "sub-1_agent"):
        store.save(name, [say("x")], META)
    assert store.find_session(" abc ") == "abc"
    assert store.find_session("abcd1") == "abcd1"
    assert store.find_session("sub", top_level_only=False) == "sub-1_agent"
    with pytest.raises(FileNotFoundError, match=r"^No session found matching 'sub-1_agent'$"):
        store.find_session("sub-1_agent")
    with pytest.raises(ValueError, match=r"^Session ID cannot be empty$"):
        store.find_session("  ")
    with pytest.raises(FileNotFoundError, match=r"^No session found matching 'ABC'$"):
        store.find_session("ABC")
    with pytest.raises(AmbiguousId) as caught:
        store.find_session("ab")
    assert str(caught.value).startswith("Ambiguous session ID 'ab' matches 3 sessions: ")
    assert "more" not in str(caught.value)
    assert sorted(caught.value.details["matches"]) == ["abc", "abcd1", "abcd2"]
    store.save("abx", [], META)
    with pytest.raises(ValueError, match=r"matches 4 sessions: .*\.\.\. and 1 more$"):
        store.find_session("ab")


def test_module_helpers() -> None:
    assert BUNDLE_PREFIX == "bundle:"
    assert extract_session_mode({"bundle": "bundle:foundation"}) == ("foundation", None)
    assert extract_session_mode({"bundle": "plain"}) == ("plain", None)
    for metadata in ({}, {"bundle": ""}, {"bundle": "unknown"}):
        assert extract_session_mode(metadata) == (None, None)
    with pytest.raises(AttributeError):
        extract_session_mode({"bundle": 5})


def test_config_snapshot_is_redacted_and_backed_up(store: Any, base: Any) -> None:
    store.save_config_snapshot("s", {"a": [1], "api_key": "secret"})
    expected = "---\na:\n- 1\napi_key: '[REDACTED]'\n---\n\nConfig snapshot for session s\n"
    assert path_of(base, "config.md").read_text() == expected
    store.save_config_snapshot("s", {"a": Path("/x")})
    assert "a: /x\n" in path_of(base, "config.md").read_text()
    assert path_of(base, "config.md.backup").read_text() == expected


# -- what is stored


def test_system_and_developer_messages_are_left_out(store: Any) -> None:
    store.save("s", [say("a", "system"), say("b"), say("c", "developer"), {"content": "d"}], META)
    assert texts(store) == ["b", "d"]
    store.append("s", [say("e", "system"), say("f")])
    assert texts(store) == ["b", "d", "f"]


def test_messages_may_be_models(store: Any) -> None:
    class Model:
        def __init__(self, **fields: Any) -> None:
            self.fields = fields

        def model_dump(self) -> Any:
            return self.fields

    messages = [Model(role="user", content="a"), Model(role="system", content="b")]
    store.save("s", messages, META)
    messages.append(Model(role="user", content="c"))
    store.save("s", messages, META)
    assert store.last_report.appended == 1
    assert texts(store) == ["a", "c"]
    messages[0].fields["content"] = "edited"
    store.save("s", messages, META)
    assert texts(store) == ["edited", "c"]
    with pytest.raises(AttributeError):
        store.save("s", ["no message"], META)


def test_nothing_that_json_can_hold_is_lost(store: Any, base: Any) -> None:
    message = say(
        "x", nothing=None, big=10**30, nan=float("nan"), half="\ud83d", odd="\u2028\x85\0", d=Decimal("1.5")
    )
    store.save("s", [message], META)
    (loaded,), _ = store.load("s")
    assert loaded["nothing"] is None
    assert loaded["big"] == 10**30
    assert loaded["nan"] == "NaN"
    assert loaded["half"] == "\ud83d"
    assert loaded["odd"] == "\u2028\x85\0"
    assert loaded["d"] == "1.5"
    assert len(path_of(base).read_text("utf-8").splitlines()) == 1
    assert load_transcript(base / "s") == [loaded]


def test_every_message_gets_a_time_and_keeps_it(base: Any) -> None:
    times = iter(datetime(2025, 1, 31, 12, minute, tzinfo=UTC) for minute in range(60))
    store = SessionStore.with_fs(OsFs(), base, now=lambda: next(times))
    own = [say("a"), say("b", timestamp="then"), say("c", metadata={"timestamp": "t"}), say("d", ts="u")]
    store.save("s", own, META)
    first = store.load("s")[0]
    assert first[0]["timestamp"].startswith("2025-01-31T12:")
    assert first[1]["timestamp"] == "then"
    assert "timestamp" not in first[2]
    assert "timestamp" not in first[3]
    own.append(say("e"))
    store.save("s", own, META)
    own[1] = say("edited")
    store.save("s", own, META)
    again = store.load("s")[0]
    assert [m.get("timestamp") for m in (again[0], again[2], again[3])] == [first[0]["timestamp"], None, None]
    assert again[1] == {**say("edited"), "timestamp": "then"}
    assert len(own) == 5
    assert own[0] == say("a")  # the caller's messages are left as they are


def test_a_resumed_process_that_drops_the_times_changes_none(store: Any, base: Any) -> None:
    store.save("s", [say("a"), say("b", "assistant", usage={"n": 1})], META)
    before = path_of(base).read_bytes()
    elsewhere(
        base,
        "m = [{'role': 'user', 'content': 'a'}, {'content': 'b', 'role': 'assistant', 'usage': {'n': 1}}]\n"
        f"store.save('s', [*m, {{'role': 'user', 'content': 'c'}}], {META!r})\n"
        "assert store.last_report.appended == 1, store.last_report",
    )
    assert path_of(base).read_bytes().startswith(before)
    assert texts(store) == ["a", "b", "c"]


def test_a_message_dropped_in_the_middle_changes_no_other_time(store: Any, base: Any) -> None:
    store.save("s", [say("a", timestamp="1"), say("b", timestamp="2"), say("c", timestamp="3")], META)
    store.save("s", [say("a"), say("c")], META)
    assert [m["timestamp"] for m in store.load("s")[0]] == ["1", "3"]


def test_after_a_rewind_a_new_message_takes_no_old_time(store: Any) -> None:
    store.save("s", [say("a", timestamp="1"), say("b", timestamp="2"), say("c", timestamp="3")], META)
    store.save("s", [say("a"), say("new")], META)
    first, second = store.load("s")[0]
    assert first["timestamp"] == "1"
    assert second["timestamp"] not in ("2", "3")


# -- what a save costs


def test_growing_saves_append(store: Any, base: Any) -> None:
    messages = []
    inodes = set()
    for number in range(6):
        messages.append(say(f"m{number}"))
        store.save("s", messages, META)
        inodes.add(path_of(base).stat().st_ino)
    assert len(inodes) == 1
    assert texts(store) == [f"m{n}" for n in range(6)]


def test_an_unchanged_save_writes_nothing(store: Any, base: Any) -> None:
    messages = [say("a")]
    store.save("s", messages, META)
    store.save("s", messages, META)  # the second one sees to it that there are backups
    assert {"transcript.jsonl.backup", "metadata.json.backup"} <= set(os.listdir(base / "s"))
    before = [(p.name, p.stat().st_mtime_ns, p.stat().st_ino) for p in sorted((base / "s").iterdir())]
    store.save("s", messages, META)
    assert [(p.name, p.stat().st_mtime_ns, p.stat().st_ino) for p in sorted((base / "s").iterdir())] == before
    assert not store.last_report.metadata_written


@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (1, 1.0), (0, False), (0.0, -0.0), ("1", 1), (None, "null")]
)
def test_an_edit_that_only_changes_a_type_is_seen(store: Any, base: Any, old: Any, new: Any) -> None:
    messages = [say("a", x={"deep": [old]}), say("b")]
    store.save("s", messages, META)
    messages[0]["x"]["deep"][0] = new
    store.save("s", messages, META)
    assert store.last_report.replaced
    assert json.dumps(store.load("s")[0][0]["x"]) == json.dumps({"deep": [new]})


def test_an_edit_in_place_replaces_and_keeps_the_old_file(store: Any, base: Any) -> None:
    messages = [say("a", timestamp="1"), say("b", timestamp="2")]
    store.save("s", messages, META)
    before = path_of(base).read_bytes()
    messages[0]["content"] = "edited"
    store.save("s", messages, META)
    assert path_of(base, "transcript.jsonl.backup").read_bytes() == before
    assert texts(store) == ["edited", "b"]


def test_a_backup_exists_from_the_second_save_on_and_holds_half(store: Any, base: Any) -> None:
    messages = [say("x" * 100)]
    store.save("s", messages, META)
    assert not path_of(base, "transcript.jsonl.backup").exists()
    for _ in range(40):
        messages.append(say("y" * 100))
        store.save("s", messages, META)
        backup = path_of(base, "transcript.jsonl.backup")
        assert path_of(base).read_bytes().startswith(backup.read_bytes())
        assert backup.stat().st_ino != path_of(base).stat().st_ino
        assert 2 * backup.stat().st_size >= path_of(base).stat().st_size
    store.append("s", [say("z" * 90000)])
    assert 2 * backup.stat().st_size >= path_of(base).stat().st_size


def test_metadata_keeps_a_backup_and_merges(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    assert store.update_metadata("s", {"name": "N", "api_key": "k"}) == {**META, "name": "N", "api_key": "k"}
    assert store.get_metadata("s") == {**META, "name": "N", "api_key": "[REDACTED]"}
    assert json.loads(path_of(base, "metadata.json.backup").read_text()) == META
    store.save("s", [say("a")], {**META, "usage": {"token": 5}})
    assert store.get_metadata("s")["usage"] == {"token": 5}


# -- append


def test_append_creates_the_session(store: Any) -> None:
    store.append("s", [say("a")], {"bundle": "bundle:x", "name": "n"})
    messages, metadata = store.load("s")
    assert [m["content"] for m in messages] == ["a"]
    assert metadata["session_id"] == "s"
    assert metadata["bundle"] == "bundle:x"
    assert datetime.fromisoformat(metadata["created"]).tzinfo is not None
    store.append("s", [say("b")], {"turn_count": 2})
    assert store.get_metadata("s") == {**metadata, "turn_count": 2}
    assert "timestamp" in store.load("s")[0][1]


def test_append_without_messages(store: Any) -> None:
    store.append("s", [])
    assert store.load("s")[0] == []
    store.append("s", [], {"a": 1})
    store.append("s", [say("x")])
    assert texts(store) == ["x"]


def test_a_save_after_appends_appends(store: Any) -> None:
    messages = [say("a"), say("b")]
    store.save("s", messages[:1], META)
    store.append("s", messages[1:])
    store.save("s", [*messages, say("c")], META)
    assert store.last_report.appended == 1
    assert texts(store) == ["a", "b", "c"]


# -- an empty conversation


def test_an_empty_transcript_is_one_newline(store: Any, base: Any) -> None:
    store.save("s", [], META)
    assert path_of(base).read_bytes() == b"\n"
    assert store.load("s") == ([], META)
    store.save("s", [say("a")], META)
    assert texts(store) == ["a"]
    assert path_of(base).read_bytes().count(b"\n") == 1
    store.save("s", [], META)
    assert store.load("s") == ([], META)
    assert not store.last_report.problems


def test_zero_bytes_beside_a_backup_is_damage(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    store.save("s", [say("a"), say("b")], META)
    os.truncate(path_of(base), 0)
    messages, _, report = store.load_with_report("s")
    assert [m["content"] for m in messages] == ["a", "b"]
    assert report.recovered_from == "backup"
    store.append("s", [say("c")])
    assert texts(store) == ["a", "b", "c"]
    assert list((base / "s").glob("transcript.jsonl.corrupt-*"))


def test_zero_bytes_alone_is_an_empty_session_with_a_note(store: Any, base: Any) -> None:
    (base / "s").mkdir(parents=True)
    path_of(base).touch()
    messages, _, report = store.load_with_report("s")
    assert messages == []
    assert [(p.code, p.severity.name) for p in report.problems] == [("empty_file", "note")]
    store.save("s", [say("a")], META)
    assert texts(store) == ["a"]
    assert path_of(base, "transcript.jsonl.backup").read_bytes() == path_of(base).read_bytes()


# -- damage


@pytest.fixture
def grown(store: Any, base: Any) -> Any:
    """Four messages, the first three of them in the backup as well."""
    messages = [say(f"m{n}", timestamp=str(n)) for n in range(4)]
    store.save("s", messages[:3], META)
    messages[0]["edited"] = 1
    store.save("s", messages[:3], META)
    messages[0].pop("edited")
    store.save("s", messages[:3], META)  # main: m0 m1 m2, backup: the edited ones
    path_of(base, "transcript.jsonl.backup").write_bytes(path_of(base).read_bytes())
    store.append("s", messages[3:])
    return messages


def spoil(path: Any, line: Any, data: Any) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[line] = data
    path.write_bytes(b"\n".join(lines))


def test_a_torn_last_line_never_hides_what_is_before_it(store: Any, base: Any, grown: Any) -> None:
    with open(path_of(base), "ab") as file:
        file.write(b'{"role": "user", "content": "hal')
    messages, _, report = store.load_with_report("s")
    assert messages == grown
    assert [p.code for p in report.problems] == ["torn_tail"]
    store.append("s", [say("m4", timestamp="4")])
    assert store.last_report.torn
    assert Path(store.last_report.torn).read_bytes() == b'{"role": "user", "content": "hal'
    assert load_transcript(base / "s") == [*grown, say("m4", timestamp="4")]


def test_a_torn_last_line_is_healed_by_a_save(store: Any, base: Any, grown: Any) -> None:
    with open(path_of(base), "ab") as file:
        file.write(b"\0" * 50)
    store.save("s", [*grown, say("m4", timestamp="4")], META)
    assert load_transcript(base / "s") == [*grown, say("m4", timestamp="4")]
    assert list((base / "s").glob("transcript.jsonl.torn-*"))
    assert not store.last_report.replaced


def test_a_damaged_span_is_filled_from_the_backup(store: Any, base: Any, grown: Any) -> None:
    spoil(path_of(base), 1, b'{"role": "us\0\0\0')
    messages, _, report = store.load_with_report("s")
    assert messages == grown
    codes = {p.code for p in report.problems}
    assert codes == {"filled_from_backup", "bad_json", "nul_run"}
    backup = path_of(base, "transcript.jsonl.backup").read_bytes()
    store.save("s", [*grown, say("m4", timestamp="4")], META)
    assert load_transcript(base / "s") == [*grown, say("m4", timestamp="4")]
    assert (
        path_of(base, "transcript.jsonl.backup").read_bytes() == backup
    )  # damage never takes a good backup's place
    (aside,) = (base / "s").glob("transcript.jsonl.corrupt-*")
    assert b"\0\0\0" in aside.read_bytes()


def test_the_first_line_is_filled_too_and_the_last_never_guessed(store: Any, base: Any, grown: Any) -> None:
    spoil(path_of(base), 0, b"garbage")
    spoil(path_of(base), 3, b"garbage")
    messages, _, report = store.load_with_report("s")
    assert messages == grown[:3]
    assert sum(p.code == "bad_json" for p in report.problems) == 2


def test_neighbours_that_disagree_fill_nothing(store: Any, base: Any, grown: Any) -> None:
    path_of(base, "transcript.jsonl.backup").write_text('{"role": "user", "content": "other"}\n' * 3)
    spoil(path_of(base), 1, b"garbage")
    assert texts(store) == ["m0", "m2", "m3"]


def test_repeated_lines_do_not_mislead_the_filling(store: Any, base: Any) -> None:
    lines = [json.dumps({"role": "user", "content": text}).encode() for text in "ABACD"]
    (base / "s").mkdir(parents=True)
    path_of(base, "transcript.jsonl.backup").write_bytes(b"\n".join(lines) + b"\n")
    path_of(base).write_bytes(b"\n".join([*lines[:3], b"damage", lines[4]]) + b"\n")
    assert texts(store) == list("ABACD")
    same = lines[0]
    path_of(base, "transcript.jsonl.backup").write_bytes(b"\n".join([same] * 6) + b"\n")
    path_of(base).write_bytes(b"\n".join([lines[1], same, b"damage", same, lines[3]]) + b"\n")
    messages, _, report = store.load_with_report("s")
    assert len(messages) == 4  # which of the six stood there cannot be known
    assert [p.code for p in report.problems] == ["bad_json"]


def test_lines_removed_by_hand_are_not_restored(store: Any, base: Any, grown: Any) -> None:
    spoil(path_of(base), 1, b"<<<<<<< HEAD")
    assert texts(store) == ["m0", "m2", "m3"]


def test_an_unreadable_backup_does_not_hide_a_readable_main(store: Any, base: Any, grown: Any) -> None:
    spoil(path_of(base), 1, b"garbage")
    for name in ("transcript.jsonl.backup", "metadata.json.backup"):
        path_of(base, name).unlink(missing_ok=True)
        path_of(base, name).mkdir()
    path_of(base, "metadata.json").write_bytes(b"{torn")
    messages, metadata, report = store.load_with_report("s")
    assert [m["content"] for m in messages] == ["m0", "m2", "m3"]
    assert metadata["recovered"] is True
    assert "unreadable_file" in {p.code for p in report.problems}


def test_a_longer_backup_never_wins_over_a_readable_main(store: Any, base: Any, grown: Any) -> None:
    lines = b"".join(json.dumps(say(f"b{n}")).encode() + b"\n" for n in range(100))
    path_of(base, "transcript.jsonl.backup").write_bytes(lines)
    with open(path_of(base), "ab") as file:
        file.write(b"{torn")
    assert store.load("s")[0] == grown


@pytest.mark.parametrize(
    "junk", [b"\0" * 4096, b"\xff\xfe" * 50, b"no json\nat all\n", b"[" * 100_000 + b"\n"]
)
def test_an_unreadable_main_gives_way_to_the_backup(store: Any, base: Any, grown: Any, junk: Any) -> None:
    path_of(base).write_bytes(junk)
    messages, _, report = store.load_with_report("s")
    assert messages == grown[:3]
    assert report.recovered_from == "backup"
    assert max(p.severity for p in report.problems).name == "lost_data"


@pytest.mark.parametrize("junk", [b"\0" * 4096, b"no json\nat all\n"])
def test_append_never_buries_a_backup(store: Any, base: Any, grown: Any, junk: Any) -> None:
    path_of(base).write_bytes(junk)
    elsewhere(base, "store.append('s', [{'role': 'user', 'content': 'new'}])")
    assert texts(store) == ["m0", "m1", "m2", "new"]
    (aside,) = (base / "s").glob("transcript.jsonl.corrupt-*")
    assert aside.read_bytes() == junk


def test_both_copies_unreadable_is_empty_but_nothing_is_buried(store: Any, base: Any, grown: Any) -> None:
    path_of(base).write_bytes(b"junk\n")
    path_of(base, "transcript.jsonl.backup").write_bytes(b"old junk\n")
    messages, _, report = store.load_with_report("s")
    assert messages == []
    assert report.problems
    store.save("s", [say("a")], META)
    assert path_of(base, "transcript.jsonl.backup").read_bytes() == b"old junk\n"
    (aside,) = (base / "s").glob("transcript.jsonl.corrupt-*")
    assert aside.read_bytes() == b"junk\n"


def test_a_carriage_return_within_a_record_is_reported_and_gone_after_a_save(store: Any, base: Any) -> None:
    (base / "s").mkdir(parents=True)
    path_of(base).write_bytes(b'{"role": "user",\r "content": "a", "timestamp": "1"}\r\n')
    messages, _, report = store.load_with_report("s")
    assert messages == [say("a", timestamp="1")]
    assert {p.code for p in report.problems} == {"carriage_return", "crlf"}
    store.save("s", [*messages, say("b", timestamp="2")], META)
    assert load_transcript(base / "s") == [say("a", timestamp="1"), say("b", timestamp="2")]


def test_a_byte_order_mark_is_read_and_gone_after_a_save(store: Any, base: Any) -> None:
    (base / "s").mkdir(parents=True)
    line = json.dumps(say("a", timestamp="1")).encode() + b"\n"
    path_of(base).write_bytes(b"\xef\xbb\xbf" + line)
    messages, _ = store.load("s")
    store.save("s", [*messages, say("b", timestamp="2")], META)
    assert load_transcript(base / "s") == [say("a", timestamp="1"), say("b", timestamp="2")]


def test_the_growing_backup_is_not_refreshed_with_damage(store: Any, base: Any, grown: Any) -> None:
    spoil(path_of(base), 1, b"garbage")
    backup = path_of(base, "transcript.jsonl.backup").read_bytes()
    for number in range(20):
        store.append("s", [say(f"more {number}")])
    assert path_of(base, "transcript.jsonl.backup").read_bytes() == backup
    assert texts(store)[:4] == ["m0", "m1", "m2", "m3"]


def test_metadata_recovery(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    store.update_metadata("s", {"name": "n"})
    path_of(base, "metadata.json").write_bytes(b'{"torn')
    assert store.get_metadata("s") == META
    assert [p.code for p in store.last_report.problems] == ["bad_metadata", "recovered_metadata"]
    store.update_metadata("s", {"name": "m"})
    assert store.get_metadata("s") == {**META, "name": "m"}
    assert json.loads(path_of(base, "metadata.json.backup").read_text()) == META
    assert [p.read_bytes() for p in (base / "s").glob("metadata.json.corrupt-*")] == [b'{"torn']
    for name in ("metadata.json", "metadata.json.backup"):
        path_of(base, name).write_bytes(b"[1]")
    metadata = store.get_metadata("s")
    assert metadata["session_id"] == "s"
    assert metadata["recovered"] is True
    assert datetime.fromisoformat(metadata["recovery_time"]).tzinfo


def test_load_says_nothing_wrong_about_a_good_session(store: Any, caplog: Any) -> None:
    store.save("s", [say("a")], META)
    caplog.clear()  # the first write may have said that this file system keeps no promises
    with caplog.at_level(logging.DEBUG):
        _, _, report = store.load_with_report("s")
    assert report.problems == []
    assert not caplog.records


# -- two writers


def test_lines_of_another_writer_are_kept_aside(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    elsewhere(base, "store.append('s', [{'role': 'user', 'content': 'theirs'}])")
    store.save("s", [say("a"), say("mine")], META)
    assert texts(store) == ["a", "mine"]
    (kept,) = store.last_report.conflicts or list(map(str, (base / "s").glob("*.conflict-*")))
    assert b"theirs" in Path(kept).read_bytes()


def test_a_displaced_version_can_be_restored_and_so_can_the_other(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    elsewhere(base, "store.append('s', [{'role': 'user', 'content': 'theirs'}])")
    store.save("s", [say("a"), say("mine")], META)
    (kept,) = store.last_report.conflicts
    assert store.restore_conflict("s") == kept
    assert texts(store) == ["a", "theirs"]
    assert not Path(kept).exists()
    store.restore_conflict("s")
    assert texts(store) == ["a", "mine"]
    store.append("s", [say("b")])
    assert texts(store) == ["a", "mine", "b"]
    store.delete("s", erase=True)
    store.save("s", [say("x")], META)
    with pytest.raises(NotFound):
        store.restore_conflict("s")


def test_a_conflict_can_be_refused(base: Any) -> None:
    store = SessionStore(base, on_conflict="raise")
    store.save("s", [say("a")], META)
    elsewhere(base, "store.append('s', [{'role': 'user', 'content': 'theirs'}])")
    with pytest.raises(Conflict) as caught:
        store.save("s", [say("a"), say("mine")], {**META, "name": "x"})
    assert caught.value.session == "s"
    assert texts(store) == ["a", "theirs"]
    assert store.get_metadata("s") == META
    store.save("s", [say("a"), say("theirs"), say("mine")], META)
    assert texts(store) == ["a", "theirs", "mine"]
    with pytest.raises(Invalid):
        SessionStore(base, on_conflict="merge")  # type: ignore[arg-type]


def test_what_was_loaded_may_be_dropped(store: Any, base: Any) -> None:
    store.save("s", [say("a"), say("b")], META)
    elsewhere(
        base,
        f"m, _ = store.load('s'); store.save('s', m[:1], {META!r}); assert not store.last_report.conflicts",
    )
    assert texts(store) == ["a"]


def test_without_a_baseline_it_is_a_plain_replace_with_backup(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    elsewhere(
        base,
        f"store.save('s', [{{'role': 'user', 'content': 'b'}}], {META!r})\n"
        "assert store.last_report.replaced and not store.last_report.conflicts",
    )
    assert b'"a"' in path_of(base, "transcript.jsonl.backup").read_bytes()


def test_a_save_that_holds_the_other_writers_lines_is_not_a_conflict(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)
    elsewhere(base, "store.append('s', [{'role': 'user', 'content': 'theirs'}])")
    store.save("s", [say("a"), say("theirs"), say("mine")], META)
    assert store.last_report.appended == 1
    assert not store.last_report.conflicts


def test_metadata_of_many_writers_merges(store: Any, base: Any) -> None:
    store.save("s", [say("a")], META)

    def work(number: Any) -> None:
        mine = SessionStore(base)
        for turn in range(10):
            mine.update_metadata("s", {f"k{number}_{turn}": 1})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.get_metadata("s")) == len(META) + 40


def test_both_payloads_are_encoded_before_a_file_is_touched(store: Any, base: Any) -> None:
    class Hostile:
        def model_dump(self) -> None:
            raise RuntimeError("no")

    store.save("s", [say("a")], META)
    before = path_of(base).read_bytes()
    for messages in ([Hostile()], [say("a"), say("b"), Hostile()]):
        with pytest.raises(RuntimeError):
            store.save("s", messages, {**META, "name": "n"})
        with pytest.raises(RuntimeError):
            store.append("s", messages, {"name": "n"})
    assert store.get_metadata("s") == META
    assert path_of(base).read_bytes() == before


# -- taking away


def test_delete_moves_to_the_trash_and_undo_brings_back(store: Any, base: Any) -> None:
    for name in ("a", "b"):
        store.save(name, [say(name)], META)
    store.delete("a")
    store.delete("b")
    assert store.list_sessions() == []
    assert store.undo() == "b"
    assert store.undo("a") == "a"
    assert texts(store, "a") == ["a"]
    with pytest.raises(NotFound):
        store.undo()
    assert not list((base / ".trash").iterdir())


def test_undo_refuses_to_overwrite(store: Any) -> None:
    store.save("a", [say("old")], META)
    store.delete("a")
    store.save("a", [say("new")], META)
    with pytest.raises(AlreadyExists):
        store.undo("a")
    assert texts(store, "a") == ["new"]


def test_erase_is_permanent_and_the_id_is_free_again(store: Any, base: Any) -> None:
    store.save("a", [say("old")], META)
    store.delete("a", erase=True)
    with pytest.raises(NotFound):
        store.undo("a")
    store.save("a", [say("new")], META)
    assert texts(store, "a") == ["new"]


def test_cleanup_judges_by_the_newest_file_and_spares_parents_and_strangers(store: Any, base: Any) -> None:
    with pytest.raises(ValueError, match=r"^days must be non-negative$"):
        store.cleanup_old_sessions(days=-1)
    for name in ("old", "active", "parent", "grandparent", "young"):
        parent = {"young": "parent", "parent": "grandparent"}.get(name)
        store.save(name, [say("x")], {**META, **({"parent_id": parent} if parent else {})})
    (base / "active" / "events.jsonl").touch()
    (base / "stranger").mkdir()
    past = (datetime.now(UTC) - timedelta(days=40)).timestamp()
    for name in ("old", "active", "parent", "grandparent", "stranger"):
        for path in [*(base / name).iterdir(), base / name]:
            if path.name != "events.jsonl":
                os.utime(path, (past, past))
    assert store.cleanup_old_sessions(days=30) == 1
    assert set(store.list_sessions()) == {"active", "parent", "grandparent", "young"}
    assert (base / "stranger").is_dir()
    assert store.undo() == "old"


def test_cleanup_continues_past_what_it_cannot_name(store: Any, base: Any) -> None:
    (base / "a\\b").mkdir(parents=True)
    (base / "a\\b" / "events.jsonl").touch()
    store.save("old", [say("x")], META)
    for name in ("a\\b", "old"):
        for path in [*(base / name).iterdir(), base / name]:
            os.utime(path, (1, 1))
    (base / ".trash").mkdir()
    (base / ".trash" / "stray").touch()
    assert store.cleanup_old_sessions() == 1
    assert [p.code for p in store.last_report.problems] == ["not_moved"]
    assert store.undo() == "old"


def test_a_held_session_is_reported_and_never_waited_for_for_ever(
    store: Any, base: Any, monkeypatch: Any
) -> None:
    from sessionary.disk import lock

    store.save("s", [say("a")], META)
    monkeypatch.setattr(lock.FileLock.acquire, "__defaults__", (0.05,))
    with lock.FileLock(str(base / "s" / ".lock")).held(), pytest.raises(Locked):
        store.append("s", [say("b")])
    assert texts(store) == ["a"]


# -- the disk refuses


class BadFolderFlush(OsFs):
    """The second flush of a replace, that of the folder, fails: the name is there, and may not survive."""

    def __init__(self) -> None:
        self.failing = False

    def fsync(self, fd: Any) -> None:
        if self.failing and stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(fd)


def test_a_replace_of_unknown_outcome_is_written_anew(base: Any) -> None:
    fs = BadFolderFlush()
    store = SessionStore.with_fs(fs, base)
    store.save("s", [say("a"), say("b")], META)
    for metadata in (META, {**META, "name": "n"}):
        fs.failing = True
        messages = [say("edited"), say(str(len(metadata)))]
        with pytest.raises(StorageFailed) as caught:
            store.save("s", messages, metadata)
        assert caught.value.outcome == "unknown"
        inodes = [path_of(base, name).stat().st_ino for name in ("transcript.jsonl",)]
        fs.failing = False
        store.save("s", messages, metadata)
        assert path_of(base).stat().st_ino not in inodes
        assert texts(store) == [m["content"] for m in messages]
    fs.failing = True
    with pytest.raises(StorageFailed):
        store.update_metadata("s", {"name": "m"})
    inode = path_of(base, "metadata.json").stat().st_ino
    fs.failing = False
    store.update_metadata("s", {"name": "m"})
    assert path_of(base, "metadata.json").stat().st_ino != inode


def test_a_failed_flush_is_unknown_and_the_next_save_replaces(base: Any) -> None:
    class Bad(OsFs):
        failing = False

        def fdatasync(self, fd: Any) -> None:
            if self.failing:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            os.fdatasync(fd)

    fs = Bad()
    store = SessionStore.with_fs(fs, base)
    store.save("s", [say("a")], META)
    store.append("s", [say("b")])
    fs.failing = True
    with pytest.raises(StorageFailed) as caught:
        store.append("s", [say("c")])
    assert caught.value.outcome == "unknown"
    inode = path_of(base).stat().st_ino
    fs.failing = False
    store.append("s", [say("d")])
    assert path_of(base).stat().st_ino != inode
    assert texts(store)[:2] == ["a", "b"]
    assert texts(store)[-1] == "d"


def test_a_session_can_be_saved_in_the_levels(base: Any) -> None:
    for level in ("full", "batch", "none"):
        store = SessionStore(base, durability=level)
        messages = [say("a")]
        store.save(level, messages, META)
        store.save(level, [*messages, say("b")], {**META, "turn_count": 2})
        assert texts(store, level) == ["a", "b"]
    with pytest.raises(Invalid):
        SessionStore(base, durability="maybe")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the table of open files is Linux's")
def test_many_sessions_do_not_use_up_the_descriptors(base: Any) -> None:
    store = SessionStore(base)
    held = []
    for number in range(200):
        store.append(f"s{number}", [say("x")])
        store.append(f"s{number}", [say("y")])
        held.append(len(os.listdir("/proc/self/fd")))
    # So many sessions are kept open at once, and no more with every further one. One that sends holds a few besides.
    assert max(held[100:]) - max(held[:100]) <= 8
    assert texts(store, "s0") == ["x", "y"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the table of open files is Linux's")
def test_a_file_system_that_is_forgotten_takes_its_descriptors_with_it(base: Any) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        SessionStore.with_fs(OsFs(), base).append("s", [say("x")])
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) - before <= 2


def test_every_write_moves_the_time_of_the_folder(store: Any, base: Any) -> None:
    writes: list[Callable[[], Any]] = [
        lambda: store.append("s", [{"role": "user", "content": "one"}]),
        lambda: store.append("s", [{"role": "user", "content": "two"}]),
        lambda: store.update_metadata("s", {"name": "N"}),
        lambda: store.save("s", [*store.load("s")[0], {"role": "user", "content": "three"}], {"name": "N"}),
    ]
    store.save("s", [{"role": "user", "content": "first"}], {})
    for write in writes:
        os.utime(base / "s", (1, 1))
        write()
        assert (base / "s").stat().st_mtime > 1_000_000


def test_a_line_that_was_changed_in_place_is_not_taken_for_the_one_that_was_saved(
    store: Any, base: Any
) -> None:
    store.save("s", [say("first")], META)
    change_in_place(path_of(base), b"first", b"FIRST")
    store.save("s", [say("first"), say("second")], META)
    [kept] = store.last_report.conflicts
    assert b"FIRST" in Path(kept).read_bytes()
    assert texts(store) == ["first", "second"]


def test_metadata_that_were_changed_in_place_are_written_again(store: Any, base: Any) -> None:
    store.save("s", [say("first")], META)
    change_in_place(path_of(base, "metadata.json"), b"foundation", b"FOUNDATION")
    store.save("s", [say("first"), say("second")], META)
    assert store.get_metadata("s")["bundle"] == "bundle:foundation"


def test_metadata_that_are_unchanged_are_not_written_again(base: Any) -> None:
    store = SessionStore(base)
    store.save("s", [say("first")], META)
    store.save("s", [say("first"), say("second")], {**META, "name": "n"})
    before = (store.base_dir / "s" / "metadata.json").stat()
    store.save("s", [say("first"), say("second"), say("third")], {**META, "name": "n"})
    assert (store.base_dir / "s" / "metadata.json").stat() == before
