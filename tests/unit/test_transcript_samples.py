"""The rules over conversations that the original programs have written, and over those that people reported broken."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.transcript.diagnosis import diagnose
from sessionary.transcript.matching import unanswered
from sessionary.transcript.messages import count_turns, tool_calls
from sessionary.transcript.repair import mend
from sessionary.transcript.slicing import slice_to_turn
from sessionary.transcript.turn_boundaries import boundaries

pytestmark = pytest.mark.lane("samples")


def samples(shared: Path) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """Each sample session: what is known of it, and its messages."""
    base = shared / "samples" / "amplifier"
    expected = json.loads((base / "EXPECTED.json").read_text("utf-8"))
    assert len(expected) > 5
    return {
        key: (known, records(base / known["dir"] / "transcript.jsonl")) for key, known in expected.items()
    }


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def case(shared: Path, name: str) -> list[Any]:
    """The messages of one reported case, out of the records that hold them."""
    (folder,) = (shared / "cases").glob(f"{name}-*")
    (path,) = folder.rglob("*.jsonl")
    return [record["message"] for record in records(path) if "message" in record]


def test_transcript_and_calls_are_counted_right(shared: Path) -> None:
    for key, (known, messages) in samples(shared).items():
        assert count_turns(messages) == known["person_turns"], key
        assert len(boundaries(messages)) == known["person_turns"], key
        assert len(boundaries(messages, every_user=True)) == known["role_user_messages"], key
        assert sum(len(tool_calls(message)) for message in messages) == known["tool_calls"], key


def test_open_calls_are_found_and_nothing_else_stops(shared: Path) -> None:
    for key, (known, messages) in samples(shared).items():
        open_calls = known["tool_calls_without_result"]
        assert unanswered(messages) == open_calls, key
        stops = [each for each in diagnose(messages) if each.stops]
        assert [call_id for each in stops for call_id in each.ids] == open_calls, key
        assert {each.code for each in stops} <= {"orphaned_call"}, key


def test_mending_touches_only_what_is_open(shared: Path) -> None:
    for key, (known, messages) in samples(shared).items():
        for orphans in ("complete", "drop"):
            mended = mend(messages, orphans=orphans)
            assert unanswered(mended.messages) == [], key
            assert bool(mended.changes) == bool(known["tool_calls_without_result"]), key


def test_every_turn_can_be_sliced(shared: Path) -> None:
    for key, (known, messages) in samples(shared).items():
        for turn in range(1, known["person_turns"] + 1):
            kept = slice_to_turn(messages, turn)
            assert count_turns(kept) == turn, key
            assert unanswered(kept) == [], key


def test_the_open_call_of_a_killed_agent(shared: Path) -> None:
    messages = case(shared, "S01")
    (finding,) = diagnose(messages)
    assert (finding.code, finding.index, finding.ids) == ("orphaned_call", 1, ("toolu_a",))
    answer = mend(messages).messages[2]
    assert (answer["role"], answer["content"][0]["tool_use_id"]) == ("user", "toolu_a")
    assert mend(messages, orphans="drop").messages == messages[:1]


def test_the_result_whose_call_is_gone(shared: Path) -> None:
    messages = case(shared, "S02")
    (finding,) = diagnose(messages)
    assert (finding.code, finding.index, finding.ids) == ("orphaned_result", 1, ("toolu_missing",))
    assert mend(messages).messages == [messages[0], messages[2]]


def test_three_calls_and_two_results(shared: Path) -> None:
    messages = case(shared, "S03")
    assert unanswered(messages) == ["toolu_c"]
    (finding,) = [each for each in diagnose(messages) if each.stops]
    assert (finding.code, finding.index, finding.ids) == ("orphaned_call", 1, ("toolu_c",))
    (answers,) = mend(messages).messages[2:]
    assert [each["tool_use_id"] for each in answers["content"]] == ["toolu_a", "toolu_b", "toolu_c"]


def test_two_calls_of_one_id(shared: Path) -> None:
    messages = case(shared, "S04")
    (finding,) = [each for each in diagnose(messages) if each.stops]
    assert (finding.code, finding.index, finding.ids) == ("repeated_call", 3, ("toolu_a",))
    mended = mend(messages).messages
    assert mended[:3] == messages[:3]
    assert mended[3]["content"][0]["id"] == "toolu_a_2"
    assert mended[4]["content"][0]["tool_use_id"] == "toolu_a_2"


def test_empty_thinking_is_noted_and_left(shared: Path) -> None:
    messages = case(shared, "S06")
    assert [(each.code, each.stops) for each in diagnose(messages)] == [("empty_thinking", False)]
    assert mend(messages).messages == messages
