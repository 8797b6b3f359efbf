"""Repair of messages with bad bytes, and of merge conflicts: what stays, what goes aside, what is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Invalid
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.repairing import repair
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.transactions import undo
from sessionary.model import Problem, Severity


def line(text: str, role: str = "user", **more: Any) -> bytes:
    return json.dumps({"role": role, "content": text, "timestamp": "2026-01-01T00:00:00Z", **more}).encode()


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions" / "one"
    folder.mkdir(parents=True)
    return folder


def put(session: Path, *lines: bytes, name: str = "transcript.jsonl") -> None:
    (session / name).write_bytes(b"".join(one + b"\n" for one in lines))


def texts(session: Path) -> list[str]:
    return [message["content"] for message in SessionStore(session.parent).load(session.name)[0]]


def check(session: Path) -> list[Problem]:
    layout = AmplifierLayout(session.parent)
    ref = layout.ref_for_path(session)
    assert ref is not None
    return list(layout.check(ref))


BAD = line("caf? au lait").replace(b"?", b"\xe9\xff")


def test_a_message_with_bad_bytes_stays_with_a_replacement_in_their_place(session: Path) -> None:
    put(session, line("a"), BAD, line("b"))
    done = repair(session)
    assert texts(session) == ["a", "caf\ufffd\ufffd au lait", "b"]
    assert [(fix.line, fix.code, fix.lost) for fix in done.fixes] == [(2, "bad_utf8", 2)]
    assert done.set_aside_in is not None
    assert Path(done.set_aside_in).read_bytes() == BAD + b"\n"
    assert not repair(session).changed


def test_a_message_with_bad_bytes_can_be_dropped(session: Path) -> None:
    put(session, line("a"), BAD, line("b"))
    done = repair(session, bad_bytes="drop")
    assert texts(session) == ["a", "b"]
    assert [(fix.code, fix.lost) for fix in done.fixes] == [("bad_utf8", len(BAD))]
    with pytest.raises(Invalid):
        repair(session, bad_bytes="keep")


def test_a_bad_byte_that_breaks_the_json_is_not_replaced(session: Path) -> None:
    put(session, line("a"), line("x").replace(b'"role"', b'\xffrole"'), line("b"))
    repair(session)
    assert texts(session) == ["a", "b"]


def test_the_backup_wins_over_a_replacement(session: Path) -> None:
    whole = line("caf\u00e9 au lait")
    damaged = json.dumps(json.loads(whole), ensure_ascii=False).encode().replace(b"\xc3\xa9", b"\xc3\xff")
    put(session, line("a"), damaged, line("b"))
    put(session, line("a"), whole, line("b"), name="transcript.jsonl.backup")
    done = repair(session)
    assert texts(session) == ["a", "caf\u00e9 au lait", "b"]
    assert sum(fix.lost for fix in done.fixes) == 0


def test_what_could_not_be_brought_back_stays_a_note_until_it_is_undone_or_forgotten(session: Path) -> None:
    put(session, line("a"), BAD, line("b"))
    assert "not_recovered" not in {one.code for one in check(session)}
    repair(session)
    (found,) = [one for one in check(session) if one.code == "not_recovered"]
    assert found.severity.name == "note"
    assert "could not recover: 2 (of line 2 " in found.message
    undo(session)
    assert (session / "transcript.jsonl").read_bytes().split(b"\n")[1] == BAD


@pytest.mark.parametrize("zeros", [b"\0" * 40, line("torn")[:30]])
def test_zeros_and_torn_pieces_are_lost_too(session: Path, zeros: bytes) -> None:
    put(session, line("a"), zeros, line("b"))
    done = repair(session)
    assert sum(fix.lost for fix in done.fixes) == len(zeros)


def conflict(ours: list[bytes], base: list[bytes] | None, theirs: list[bytes]) -> list[bytes]:
    middle = [] if base is None else [b"||||||| 0a1b2c3", *base]
    return [b"<<<<<<< HEAD", *ours, *middle, b"=======", *theirs, b">>>>>>> laptop"]


def test_of_lines_that_both_sides_changed_one_side_stays(session: Path) -> None:
    ours, base, theirs = [line("mine")], [line("before")], [line("theirs")]
    put(session, line("a"), *conflict(ours, base, theirs), line("b"))
    done = repair(session)
    assert texts(session) == ["a", "mine", "b"]
    assert [(fix.line, fix.code, fix.lost) for fix in done.fixes] == [(2, "conflict_marker", 0)]
    assert done.set_aside_in is not None
    kept = Path(done.set_aside_in).read_bytes()
    assert base[0] in kept
    assert theirs[0] in kept
    assert done.remaining == []


def test_the_side_that_has_more_stays(session: Path) -> None:
    put(session, *conflict([line("1")], [line("0")], [line("2"), line("3")]), line("b"))
    repair(session)
    assert texts(session) == ["2", "3", "b"]


@pytest.mark.parametrize("base", [None, []])
def test_lines_that_both_sides_added_all_stay(session: Path, base: list[bytes] | None) -> None:
    put(session, line("a"), *conflict([line("mine")], base, [line("theirs")]), line("b"))
    done = repair(session)
    assert texts(session) == ["a", "mine", "theirs", "b"]
    assert {fix.code for fix in done.fixes} == {"conflict_marker"}
    assert sum(fix.lost for fix in done.fixes) == 0


METADATA = b"""{
  "session_id": "one",
<<<<<<< HEAD
  "name": "mine",
=======
  "name": "theirs",
  "bundle": "b",
>>>>>>> laptop
  "turn_count": 1
}
"""


def test_metadata_with_a_conflict_loses_no_field(session: Path) -> None:
    put(session, line("a"))
    (session / "metadata.json").write_bytes(METADATA)
    fields = {"session_id": "one", "name": "mine", "bundle": "b", "turn_count": 1}
    assert SessionStore(session.parent).load("one")[1] == fields
    (found,) = [one for one in check(session) if one.severity > Severity.note]
    assert (found.code, found.line) == ("conflict_marker", 3)
    assert found.message == "a merge conflict marker (<<<<<<< HEAD)"
    done = repair(session)
    assert done.metadata_from == "conflict"
    assert json.loads((session / "metadata.json").read_bytes()) == fields
    assert not repair(session).changed


def test_a_save_over_metadata_with_a_conflict_keeps_the_old_bytes(session: Path) -> None:
    put(session, line("a"))
    (session / "metadata.json").write_bytes(METADATA)
    SessionStore(session.parent).update_metadata("one", {"name": "new"})
    kept = [path.read_bytes() for path in session.glob("metadata.json.*")]
    assert METADATA in kept
