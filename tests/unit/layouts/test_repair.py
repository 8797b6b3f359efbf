"""Repair: restored content, quarantined content, and untouched healthy lines."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionary.codec import read_lines
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.repairing import repair
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.transactions import undo
from sessionary.model import Problem, Severity
from tests.lanes import shared_folder
from tests.support.original import load_transcript
from tests.unit.layouts.surgery_samples import ID, MESSAGES, METADATA, lines, read, write_session

FOREIGN = b'{"type":"user","message":{"role":"user","content":"hi"}}\n{"type":"x"}\n'


def test_a_transcript_without_any_message_is_refused_and_stays(session: Path) -> None:
    (session / "transcript.jsonl").write_bytes(FOREIGN)
    before = {path.name: path.read_bytes() for path in session.iterdir() if path.is_file()}
    for dry_run in (True, False):
        with pytest.raises(Corrupt, match="None of the 2 records") as caught:
            repair(session, dry_run=dry_run)
        assert "sessionary show" in str(caught.value.hint)
    after = {path.name: path.read_bytes() for path in session.iterdir() if path.is_file()}
    assert {name: data for name, data in after.items() if name in before} == before


LINES = lines(MESSAGES).split(b"\n")[:-1]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "sessions" / ID)


def put(session: Path, *parts: bytes) -> bytes:
    data = b"\n".join(parts) + b"\n"
    (session / "transcript.jsonl").write_bytes(data)
    return data


def check(session: Path) -> list[Problem]:
    layout = AmplifierLayout(session.parent)
    ref = layout.ref_for_path(session)
    assert ref is not None
    ours = (".corrupt-", "kept_copy")
    return [
        problem
        for problem in layout.check(ref)
        if problem.severity > Severity.note and not any(word in problem.path for word in ours)
    ]


def transcript(session: Path) -> list[bytes]:
    return (session / "transcript.jsonl").read_bytes().split(b"\n")[:-1]


def test_a_healthy_session_is_not_touched(session: Path) -> None:
    before = read(session)
    done = repair(session)
    assert not done.changed
    assert (done.problems, done.remaining, done.diff, done.kept_in) == ([], [], "", None)
    assert (done.messages_before, done.messages_after) == (12, 12)
    assert read(session) == before
    assert not (session / ".undo").exists()


def test_two_records_on_one_line_are_parted(session: Path) -> None:
    put(session, LINES[0], LINES[1] + LINES[2], *LINES[3:])
    done = repair(session)
    assert transcript(session) == LINES
    assert [fix.code for fix in done.fixes] == ["glued_records"]
    assert done.set_aside == 0
    assert done.remaining == []
    assert done.messages_before == 10
    assert done.messages_after == 12


def test_a_torn_piece_before_a_record_is_set_aside(session: Path) -> None:
    torn = LINES[1][:20]
    put(session, LINES[0], torn + LINES[1], *LINES[2:])
    done = repair(session)
    assert transcript(session) == LINES
    assert done.set_aside_in is not None
    assert Path(done.set_aside_in).read_bytes() == torn + b"\n"
    assert done.set_aside == 21


def test_a_raw_newline_and_raw_control_characters_become_escapes(session: Path) -> None:
    spread = json.dumps({"role": "user", "content": "a\nb", "timestamp": "t"}).encode().replace(b"\\n", b"\n")
    control = b'{"role": "assistant", "content": "a\x01\tb", "timestamp": "t"}'
    put(session, *LINES[:4], spread, control, *LINES[4:])
    done = repair(session)
    found = transcript(session)
    assert found[:4] + found[6:] == LINES
    assert [json.loads(line)["content"] for line in found[4:6]] == ["a\nb", "a\x01\tb"]
    assert sorted(fix.code for fix in done.fixes) == ["control_characters", "raw_newline"]
    assert done.set_aside == 0


def test_zeros_and_a_torn_tail_go(session: Path) -> None:
    put(session, *LINES[:4], b"\0" * 50, b"\0" * 9 + LINES[4], *LINES[5:])
    with (session / "transcript.jsonl").open("ab") as file:
        file.write(b'{"role": "us')
    done = repair(session)
    assert transcript(session) == LINES
    assert done.set_aside_in is not None
    assert Path(done.set_aside_in).read_bytes() == b'{"role": "us\n'


def test_a_list_of_messages_becomes_lines(session: Path) -> None:
    put(session, b"[" + LINES[0] + b", " + LINES[1] + b"]", *LINES[2:])
    repair(session)
    assert list(map(json.loads, transcript(session))) == MESSAGES


def test_a_byte_order_mark_goes(session: Path) -> None:
    put(session, b"\xef\xbb\xbf" + LINES[0], *LINES[1:])
    assert [fix.code for fix in repair(session).fixes] == ["bom"]
    assert transcript(session) == LINES


def test_a_gap_is_filled_from_the_backup(session: Path) -> None:
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES[:8]))
    put(session, *LINES[:2], LINES[2][:30], *LINES[3:])
    done = repair(session)
    assert transcript(session) == LINES
    assert "filled_from_backup" in [fix.code for fix in done.fixes]


@pytest.mark.parametrize("main", [None, b"", b"\0" * 400, b"garbage\n"])
def test_a_transcript_that_says_nothing_comes_from_the_backup(session: Path, main: bytes | None) -> None:
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES))
    path = session / "transcript.jsonl"
    path.unlink() if main is None else path.write_bytes(main)
    done = repair(session)
    assert transcript(session) == LINES
    assert done.fixes[0].code == "recovered_backup"
    if main:
        assert done.set_aside_in is not None
        assert main in Path(done.set_aside_in).read_bytes()
    assert undo(session).operation == "repair"
    assert (path.read_bytes() if path.exists() else None) == main


def test_an_empty_conversation_is_not_damage(session: Path) -> None:
    (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES))
    (session / "transcript.jsonl").write_bytes(b"\n")
    assert not repair(session).changed


def test_what_says_nothing_at_all_is_left_as_it_is(session: Path) -> None:
    (session / "transcript.jsonl").write_bytes(b"garbage\n")
    with pytest.raises(Corrupt):
        repair(session)
    assert (session / "transcript.jsonl").read_bytes() == b"garbage\n"
    (session / "transcript.jsonl").unlink()
    with pytest.raises(NotFound):
        repair(session)


def test_open_calls_are_completed(session: Path) -> None:
    put(session, *LINES[:6])
    done = repair(session)
    found = list(map(json.loads, transcript(session)))
    assert found[:6] == MESSAGES[:6]
    assert found[6]["tool_call_id"] == "toolu_2"
    assert all("timestamp" in message or "metadata" in message for message in found)
    assert done.mends
    assert done.remaining == []
    assert "+{" in done.diff
    assert transcript(session)[:6] == LINES[:6]


def test_open_calls_are_dropped(session: Path) -> None:
    put(session, *LINES[:6])
    repair(session, orphans="drop")
    assert b"toolu_2" not in (session / "transcript.jsonl").read_bytes()
    with pytest.raises(Invalid):
        repair(session, orphans="guess")


def test_a_dry_run_reports_the_same_and_writes_nothing(session: Path) -> None:
    put(session, *LINES[:6], b"torn")
    before = read(session)
    planned = repair(session, dry_run=True)
    assert read(session) == before
    assert not (session / ".undo").exists()
    done = repair(session)
    assert planned.diff == done.diff
    assert planned.fixes == done.fixes
    assert planned.kept_in is None
    assert "-torn" in done.diff


def test_a_second_repair_does_nothing(session: Path) -> None:
    put(session, LINES[0], LINES[1] + LINES[2], *LINES[3:6], b"\0\0", b"torn")
    (session / "metadata.json").write_bytes(b"{")
    assert repair(session).changed
    before = read(session)
    assert not repair(session).changed
    assert read(session) == before
    assert check(session) == []


def test_undo_brings_the_damage_back(session: Path) -> None:
    data = put(session, LINES[0], LINES[1] + LINES[2], b"torn", *LINES[3:])
    done = repair(session)
    assert done.set_aside_in is not None
    undo(session)
    assert (session / "transcript.jsonl").read_bytes() == data
    assert not Path(done.set_aside_in).exists()


@pytest.mark.parametrize(("backup", "source"), [(True, "backup"), (False, "nothing")])
def test_metadata_comes_from_its_backup(session: Path, backup: bool, source: str) -> None:
    document = (session / "metadata.json").read_bytes()
    (session / "metadata.json").write_bytes(document[:-9])
    if backup:
        (session / "metadata.json.backup").write_bytes(document)
    done = repair(session)
    assert done.metadata_from == source
    found = json.loads((session / "metadata.json").read_bytes())
    assert found == METADATA if backup else (found["session_id"], found["recovered"]) == (ID, True)
    undo(session)
    assert (session / "metadata.json").read_bytes() == document[:-9]


def test_a_torn_event_is_sealed(session: Path) -> None:
    with (session / "events.jsonl").open("ab") as file:
        file.write(b'{"ts": "20')
    before = (session / "events.jsonl").read_bytes()
    done = repair(session)
    assert done.event_sealed
    assert done.changed
    assert (session / "events.jsonl").read_bytes() == before + b"\n"
    assert not repair(session).changed


DAMAGE = st.sampled_from(["flip", "cut", "zeros", "insert", "glue", "split"])
SPOTS = st.lists(st.tuples(DAMAGE, st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4)


def damaged(data: bytes, spots: list[tuple[str, float, int]]) -> bytes:
    for kind, where, byte in spots:
        at = int(where * (len(data) - 1))
        newline = data.find(b"\n", at)
        if kind == "flip":
            data = data[:at] + bytes([data[at] ^ (byte or 1)]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at] + data[at + byte :]
        elif kind == "zeros":
            data = data[:at] + bytes(byte) + data[at + byte :]
        elif kind == "insert":
            data = data[:at] + bytes([byte]) * 3 + data[at:]
        elif kind == "glue" and newline >= 0:
            data = data[:newline] + data[newline + 1 :]
        else:
            data = data[:at] + b"\n" + data[at:]
        if not data:
            return b"\n"
    return data


def is_record(line: bytes) -> bool:
    """By the original's rule, which strips any blank of Unicode before it reads (a vertical tab, say)."""
    try:
        return isinstance(json.loads(line.decode().strip()), dict)
    except ValueError:
        return False


@settings(max_examples=60, deadline=None)
@given(SPOTS, st.booleans(), st.sampled_from(["complete", "drop"]))
def test_any_damage_is_reported_and_repaired_and_nothing_whole_is_lost(
    tmp_path_factory: pytest.TempPathFactory, spots: list[tuple[str, float, int]], backup: bool, orphans: str
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    session = write_session(folder / ID)
    data = damaged(lines(MESSAGES), spots)
    (session / "transcript.jsonl").write_bytes(data)
    if backup:
        (session / "transcript.jsonl.backup").write_bytes(lines(MESSAGES[:6]))
    messages, _, report = SessionStore(folder).load_with_report(ID)
    whole = [line for line in data.split(b"\n") if line in LINES]
    shown = [json.dumps(message, ensure_ascii=False).encode() for message in messages]
    assert all(line in shown for line in whole)
    if any(line.strip() and not is_record(line) for line in data.split(b"\n")):
        assert [problem for problem in report.problems if problem.severity > Severity.note]
    try:
        done = repair(session, orphans=orphans)
    except Corrupt:
        assert not whole
        assert (session / "transcript.jsonl").read_bytes() == data
    else:
        assert done.remaining == []
        assert check(session) == []
        # The last line may be whole without its newline: that is not damage, and left as it is.
        after = (session / "transcript.jsonl").read_bytes().split(b"\n")
        if orphans == "complete":
            kept = [line for line in whole if line in after]
            dropped = {change.index for change in done.mends}
            assert len(whole) - len(kept) <= len(dropped)
        assert load_transcript(session) == [
            json.loads(line.decode().strip()) for line in after if line.strip()
        ]
        assert not repair(session, orphans=orphans).changed
        if done.kept_in:
            undo(session)
            assert (session / "transcript.jsonl").read_bytes() == data
    finally:
        shutil.rmtree(folder)


CASES = shared_folder() / "cases"


def cases() -> list[str]:
    return sorted(path.name for path in CASES.glob("A*-plain"))


@pytest.mark.lane("samples")
@pytest.mark.parametrize("name", cases())
def test_a_damaged_file_is_repaired_as_its_case_states(name: str, tmp_path: Path) -> None:
    case: dict[str, Any] = json.loads((CASES / name / "CASE.json").read_text("utf-8"))
    session = tmp_path / "s"
    session.mkdir()
    shutil.copy(CASES / name / case["files"][0], session / "transcript.jsonl")
    before = (session / "transcript.jsonl").read_bytes()
    expect = case["expect"]
    try:
        repair(session)
    except Corrupt:
        assert not isinstance(expect["keep"], list)
        assert (session / "transcript.jsonl").read_bytes() == before
        return
    found = (session / "transcript.jsonl").read_text("utf-8")
    for number in expect.get("salvage") or []:
        assert re.search(rf"R0*{number}\b", found)
    if isinstance(expect["keep"], list):
        values = read_lines(found.encode()).values
        assert len(values) >= len(set(expect["keep"]))
    assert not repair(session).changed
