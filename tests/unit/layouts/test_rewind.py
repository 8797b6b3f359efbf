"""Rewind: which lines go, which events go with them, and the way back."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Invalid, NotFound
from sessionary.layouts.amplifier.rewinding import rewind
from sessionary.layouts.amplifier.transactions import undo, undo_entries
from tests.unit.layouts.surgery_samples import (
    EVENTS,
    ID,
    MESSAGES,
    METADATA,
    PROMPTS,
    events_of,
    lines,
    read,
    turn,
    write_session,
)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "sessions" / ID)


def events_up_to(number: int) -> list[dict[str, Any]]:
    return EVENTS[: 1 + 7 * number]


@pytest.mark.parametrize("to_turn", [0, 1, 2])
def test_a_healthy_session_goes_back_to_any_turn(session: Path, to_turn: int) -> None:
    done = rewind(session, to_turn)
    transcript, metadata, events = read(session)
    assert transcript == (lines(MESSAGES[: 4 * to_turn]) or b"\n")
    assert json.loads(metadata) == {**METADATA, "turn_count": to_turn}
    assert events == lines(events_up_to(to_turn))
    assert (done.turns_before, done.messages_kept, done.messages_dropped) == (
        3,
        4 * to_turn,
        12 - 4 * to_turn,
    )
    assert done.events_dropped == 7 * (3 - to_turn)
    assert done.events_told
    assert done.changed
    assert done.kept_in


def test_the_last_turn_is_where_the_session_is(session: Path) -> None:
    before = read(session)
    done = rewind(session, 3)
    assert not done.changed
    assert done.kept_in is None
    assert read(session) == before
    assert not (session / ".undo").exists()


@pytest.mark.parametrize("to_turn", [-1, 4])
def test_a_missing_turn(session: Path, to_turn: int) -> None:
    before = read(session)
    with pytest.raises(Invalid, match=rf"Turn {to_turn} out of range. Valid range: 0-3"):
        rewind(session, to_turn)
    assert read(session) == before


def test_what_is_not_there_is_not_found(tmp_path: Path, session: Path) -> None:
    with pytest.raises(NotFound):
        rewind(tmp_path / "nowhere", 0)
    (session / "transcript.jsonl").unlink()
    with pytest.raises(NotFound):
        rewind(session, 0)


def test_a_dry_run_reports_the_same_and_writes_nothing(session: Path) -> None:
    before = read(session)
    planned = rewind(session, 1, dry_run=True)
    assert read(session) == before
    assert not (session / ".undo").exists()
    done = rewind(session, 1)
    assert planned.dry_run
    assert planned.kept_in is None
    assert planned.rewritten == done.rewritten
    assert (planned.events_dropped, planned.messages_dropped) == (done.events_dropped, done.messages_dropped)


def test_the_bytes_that_are_rewritten_are_reported(session: Path) -> None:
    done = rewind(session, 2)
    transcript, metadata, events = read(session)
    gone = len(lines(EVENTS)) - len(events)
    assert done.rewritten == len(transcript) + len(metadata) + gone


@pytest.mark.parametrize("stamped", ["metadata", "timestamp", "ts", "nowhere"])
@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("times", [True, False])
def test_events_are_known_by_what_there_is(tmp_path: Path, stamped: str, ids: bool, times: bool) -> None:
    messages = [m for n, prompt in enumerate(PROMPTS, 1) for m in turn(n, prompt, stamped=stamped)]
    events = [e for n, prompt in enumerate(PROMPTS, 1) for e in events_of(n, prompt, ids=ids, times=times)]
    session = write_session(tmp_path / ID, messages, events)
    assert rewind(session, 1).events_dropped == 14
    assert read(session)[2] == lines(events[:7])


def test_the_same_words_in_a_turn_that_stays_and_one_that_goes(tmp_path: Path) -> None:
    prompts = ("ok", "ok", "ok")
    messages = [m for n, prompt in enumerate(prompts, 1) for m in turn(n, prompt, stamped="nowhere")]
    events = [e for n, prompt in enumerate(prompts, 1) for e in events_of(n, prompt, times=False)]
    session = write_session(tmp_path / ID, messages, events)
    rewind(session, 1)
    assert read(session)[2] == lines(events[:7])


def test_records_out_of_order_go_with_their_ids(tmp_path: Path) -> None:
    events = list(EVENTS)
    late = events.pop(1 + 4)  # the result of the first turn's tool, logged when the second turn runs
    events.insert(1 + 6 + 3, late)
    session = write_session(tmp_path / ID, events=events)
    rewind(session, 1)
    kept = read(session)[2]
    assert kept == lines([*events[:7], late])


def test_a_call_id_that_every_turn_uses_again_says_nothing(tmp_path: Path) -> None:
    messages = json.loads(
        json.dumps(MESSAGES).replace("toolu_1", "c").replace("toolu_2", "c").replace("toolu_3", "c")
    )
    events = json.loads(
        json.dumps(EVENTS).replace("toolu_1", "c").replace("toolu_2", "c").replace("toolu_3", "c")
    )
    session = write_session(tmp_path / ID, messages, events)
    rewind(session, 2)
    assert read(session)[2] == lines(events[:15])


def test_one_span_over_the_whole_session_says_nothing(tmp_path: Path) -> None:
    events = [{**event, "span_id": "root"} for event in EVENTS]
    session = write_session(tmp_path / ID, events=events)
    rewind(session, 0)
    assert read(session)[2] == lines(events[:1])


def test_an_unsaved_prompt_is_removed_too(tmp_path: Path) -> None:
    lost = events_of(4, "never answered")[:2]
    session = write_session(tmp_path / ID, events=[*EVENTS, *lost])
    assert rewind(session, 2).events_dropped == 9
    assert read(session)[2] == lines(EVENTS[:15])


def test_a_log_without_information_is_left_whole(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "image"}]}, {"role": "assistant"}]
    messages = said * 2
    events: list[dict[str, Any]] = [{"event": "x", "session_id": ID}] * 5
    session = write_session(tmp_path / ID, messages, events)
    done = rewind(session, 1)
    assert done.events_dropped == 0
    assert read(session)[2] == lines(events)


def test_prompts_of_blocks_and_long_lines(tmp_path: Path) -> None:
    long = "word " * 4000
    prompts = ("a", long, "b")
    messages = [m for n, prompt in enumerate(prompts, 1) for m in turn(n, prompt, stamped="nowhere")]
    messages[8]["content"] = [{"type": "text", "text": "b"}]
    events = [e for n, prompt in enumerate(prompts, 1) for e in events_of(n, prompt, times=False)]
    events[14]["data"]["prompt"] = [{"type": "text", "text": "b"}]
    session = write_session(tmp_path / ID, messages, events)
    rewind(session, 1)
    assert read(session)[2] == lines(events[:7])


def test_damage_before_the_cut_stays_byte_for_byte(session: Path) -> None:
    path = session / "transcript.jsonl"
    data = path.read_bytes().split(b"\n")
    data[1] = b'{"torn": '
    path.write_bytes(b"\n".join(data))
    done = rewind(session, 1)
    assert path.read_bytes() == b"\n".join(data[:4]) + b"\n"
    assert done.messages_kept == 3


def test_a_half_event_at_the_end_stays_where_it_is(session: Path) -> None:
    with (session / "events.jsonl").open("ab") as file:
        file.write(b'{"ts": "2026')
    rewind(session, 2)
    assert read(session)[2] == lines(EVENTS[:15]) + b'{"ts": "2026'


def test_a_session_without_events_or_count(tmp_path: Path) -> None:
    session = write_session(tmp_path / ID, metadata={"session_id": ID})
    (session / "events.jsonl").unlink()
    metadata = (session / "metadata.json").read_bytes()
    done = rewind(session, 1)
    assert (session / "metadata.json").read_bytes() == metadata
    assert done.turn_count is None
    assert not (session / "events.jsonl").exists()


def test_the_backup_does_not_restore_dropped_messages(session: Path) -> None:
    backup = session / "transcript.jsonl.backup"
    backup.write_bytes(lines(MESSAGES))
    rewind(session, 1)
    assert not backup.exists()
    undo(session)
    assert backup.read_bytes() == lines(MESSAGES)


def test_undo_brings_all_of_it_back_and_undo_again_takes_it_away(session: Path) -> None:
    before = read(session)
    rewind(session, 1)
    after = read(session)
    undone = undo(session)
    assert (undone.operation, undone.messages_since, undone.events_since) == ("rewind", 0, 0)
    assert not undone.metadata_since
    assert not undone.events_left
    assert read(session) == before
    assert undo(session).operation == "undo"
    assert read(session) == after
    assert [entry.operation for entry in undo_entries(session)] == ["rewind", "undo", "undo"]


def test_sub_sessions_stay(session: Path) -> None:
    child = write_session(session.parent / "0000000000000000-9c1d000000000000_explorer")
    before = read(child)
    rewind(session, 0)
    assert read(child) == before
