"""Values that other programs write and `json` reads: whatever rewrites a file, they survive, and NaN becomes text."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli.events_cmd import _value
from sessionary.codec import decode, reencode_document, reencode_line
from sessionary.disk.lock import FileLock
from sessionary.layouts.agents.google_parts import json_text
from sessionary.layouts.amplifier.forks import fork_session
from sessionary.layouts.amplifier.project_rename import carry_out, plan
from sessionary.layouts.amplifier.repairing import repair
from sessionary.layouts.amplifier.rewinding import rewind
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.maestro.messages import _result
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox.ledger import Ledger
from tests.unit.layouts.surgery_samples import EVENTS, ID, MESSAGES, METADATA, lines, write_session

NOW = datetime(2026, 3, 2, tzinfo=UTC)
SLUG = "-home-u-app"
DEEP: Any = 1
for _ in range(120):
    DEEP = [DEEP]

FLAT = {
    "nan": ("NaN", "NaN"),
    "infinity": ("Infinity", "Infinity"),
    "overflow": ("[-Infinity, 1e999]", ["-Infinity", "Infinity"]),
    "large": ("123456789012345678901234567890", 123456789012345678901234567890),
    "surrogate": ('"\\ud83d"', "\ud83d"),
    "mixed": ('[NaN, "\\ud83d", 18446744073709551616, null, 0.1]', ["NaN", "\ud83d", 2**64, None, 0.1]),
}
ANY = {**FLAT, "deep": (json.dumps(DEEP), DEEP)}

KINDS = pytest.mark.parametrize(("odd", "kept"), ANY.values(), ids=ANY)
# A save stores deep values as text.
FLAT_KINDS = pytest.mark.parametrize(("odd", "kept"), FLAT.values(), ids=FLAT)


def with_odd(line: bytes, odd: str) -> bytes:
    """The object with one key more."""
    return line.rstrip()[:-1] + b', "odd": ' + odd.encode() + b"}"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "projects" / SLUG / "sessions" / ID)


def spoil(folder: Path, odd: str, name: str = "metadata.json") -> None:
    path = folder / name
    path.write_bytes(with_odd(path.read_bytes(), odd))


def odd_in(folder: Path, name: str = "metadata.json") -> Any:
    return strict((folder / name).read_bytes())["odd"]


def strict(data: bytes) -> Any:
    """The value of JSON that has no NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(data, parse_constant=refuse)


@KINDS
def test_a_decoded_value_is_encoded_again(odd: str, kept: Any) -> None:
    assert strict(reencode_line(decode(odd.encode()))) == kept
    assert strict(reencode_document(decode(odd.encode()))) == kept


@KINDS
def test_rewind(session: Path, odd: str, kept: Any) -> None:
    spoil(session, odd)
    rewind(session, 1)
    assert odd_in(session) == kept
    assert strict((session / "metadata.json").read_bytes()) == {**METADATA, "turn_count": 1, "odd": kept}


@KINDS
def test_rename_of_a_project(session: Path, tmp_path: Path, odd: str, kept: Any) -> None:
    spoil(session, odd)
    carry_out(plan(tmp_path, SLUG, "/home/u/shop"))
    assert odd_in(tmp_path / "projects" / "-home-u-shop" / "sessions" / ID) == kept


@KINDS
def test_parent_of_a_synchronised_session(session: Path, tmp_path: Path, odd: str, kept: Any) -> None:
    (session / "metadata.json").write_bytes(with_odd(b'{"bundle": "b"}', odd))
    layout = AmplifierSyncLayout(tmp_path)
    ref = layout.place(SLUG, ID)
    with layout.lock(ref):
        layout.set_parent(ref, "one", NOW)
    assert odd_in(session) == kept


@KINDS
def test_repair_of_metadata_with_a_merge_conflict(session: Path, odd: str, kept: Any) -> None:
    both = '{\n"odd": ' + odd + ',\n<<<<<<< a\n"x": 1\n=======\n"x": 2\n>>>>>>> b\n}\n'
    (session / "metadata.json").write_text(both)
    assert repair(session).metadata_from == "conflict"
    assert odd_in(session) == kept


@KINDS
def test_repair_of_a_transcript(session: Path, odd: str, kept: Any) -> None:
    """A list of messages, and one that loses a call."""
    said, asked, *_ = lines(MESSAGES).splitlines()
    damaged = b"[" + with_odd(said, odd) + b"]\n" + with_odd(asked, odd) + b"\n"
    (session / "transcript.jsonl").write_bytes(damaged)
    repair(session, orphans="drop")
    found = [strict(line) for line in (session / "transcript.jsonl").read_bytes().splitlines()]
    assert [message["role"] for message in found] == ["user", "assistant"]
    assert [message["odd"] for message in found] == [kept, kept]


@KINDS
def test_repair_of_invalid_utf_8(session: Path, odd: str, kept: Any) -> None:
    (session / "transcript.jsonl").write_bytes(with_odd(b'{"role": "user", "content": "\xff"}', odd) + b"\n")
    repair(session, bad_bytes="replace")
    found = strict((session / "transcript.jsonl").read_bytes().splitlines()[0])
    assert (found["content"], found["odd"]) == ("\ufffd", kept)


@KINDS
def test_fork(session: Path, odd: str, kept: Any) -> None:
    """A message that loses a call, and an event whose key order is unusual."""
    said, asked, *_ = lines(MESSAGES).splitlines()
    (session / "transcript.jsonl").write_bytes(said + b"\n" + with_odd(asked, odd) + b"\n")
    event = {key: value for key, value in EVENTS[0].items() if key != "session_id"}
    (session / "events.jsonl").write_bytes(with_odd(json.dumps(event).encode(), odd) + b"\n")
    fork_session(session, new_session_id="new", handle_orphaned_tools="remove", now=lambda: NOW)
    fork = session.parent / "new"
    last = (fork / "transcript.jsonl").read_bytes().splitlines()[-1]
    assert (strict(last)["role"], strict(last)["odd"]) == ("assistant", kept)
    assert odd_in(fork, "events.jsonl") == kept


@FLAT_KINDS
def test_update_of_metadata(session: Path, odd: str, kept: Any) -> None:
    spoil(session, odd)
    SessionStore(session.parent).update_metadata(ID, {"y": 1})
    assert odd_in(session) == kept


@FLAT_KINDS
def test_save_and_update_of_a_work_session(tmp_path: Path, odd: str, kept: Any) -> None:
    store = WorkStore(tmp_path)
    session_id = store.create("fix").session_id
    folder = tmp_path / session_id
    spoil(folder, odd, "session.json")
    loaded = store.load(session_id)
    assert not store.save(loaded), "nothing has changed"
    loaded.purpose = "new"
    assert store.save(loaded)
    assert odd_in(folder, "session.json") == kept
    spoil(folder, odd, "session.json")
    store.update(session_id, lambda session: session.metadata.update(a=1))
    assert odd_in(folder, "session.json") == kept


def test_a_save_of_a_work_session_keeps_the_number_that_another_stored_instead_of_nan(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session_id = store.create("fix").session_id
    path = tmp_path / session_id / "session.json"
    whole = path.read_bytes()
    path.write_bytes(with_odd(whole, "NaN"))
    mine = store.load(session_id)
    path.write_bytes(with_odd(whole, "0.5"))
    mine.purpose = "new"
    assert store.save(mine)
    assert odd_in(path.parent, "session.json") == 0.5


@KINDS
def test_a_mended_ledger(tmp_path: Path, odd: str, kept: Any) -> None:
    path = tmp_path / "log.jsonl"
    line = b'{"breadcrumb_id": "1", "file": "0/\xff.json", "applied_at": "2026-03-01T00:00:00Z"}'
    path.write_bytes(with_odd(line, odd) + b"\n")
    ledger = Ledger(str(path), FileLock(str(tmp_path / ".lock")))
    ledger.refresh()
    assert ledger.drop_damage(NOW) == 1
    assert strict(path.read_bytes())["odd"] == kept


@FLAT_KINDS
def test_shown_values(odd: str, kept: Any) -> None:
    value = {"a": decode(odd.encode())}
    assert _value(value) == reencode_line(value).decode()
    for text in (json_text(value), _result("1", {"result": value}).text):
        assert strict(str(text).encode()) == {"a": kept}
