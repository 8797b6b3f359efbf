"""Where turns begin and end, and one of them in a few words."""

from typing import Any

import pytest
from hypothesis import given

from sessionary.errors import Invalid
from sessionary.transcript.messages import count_turns
from sessionary.transcript.turn_boundaries import (
    boundaries,
    cut_before,
    slice_end,
    turn_range,
    turn_summary,
    user_text,
)
from tests.unit.conversations import REMINDER, amplifier, answered, anthropic, conversations, said, tool, user

TALK: list[Any] = [
    {"role": "system", "content": "You help."},
    user(REMINDER),
    user("first"),
    anthropic("a"),
    answered("a"),
    said("one"),
    user("second"),
    user(REMINDER),
    said("two"),
]


def test_turns_begin_at_messages_of_the_user() -> None:
    assert boundaries(TALK) == [2, 6]
    assert boundaries([]) == []


def test_the_original_counts_reminders_and_results_too() -> None:
    assert boundaries(TALK, every_user=True) == [1, 2, 4, 6, 7]


def test_what_comes_before_the_first_word_belongs_to_the_first_turn() -> None:
    assert turn_range(TALK, 1) == range(6)
    assert turn_range(TALK, 2) == range(6, 9)
    assert slice_end(TALK, 1) == 6
    assert slice_end(TALK, 2) == 9


def test_transcript_as_the_original_counts_them() -> None:
    assert turn_range(TALK, 3, every_user=True) == range(4, 6)


def test_before_a_turn() -> None:
    assert cut_before(TALK, 2) == TALK[:6]
    assert cut_before(TALK, 1) == []


def test_what_the_person_said() -> None:
    assert user_text(TALK, 2) == "second"
    reminded = [user([{"type": "text", "text": REMINDER}, "hello", {"type": "text", "text": "you"}])]
    assert user_text(reminded, 1) == "hello\nyou"
    assert user_text([user(None)], 1) == ""


@pytest.mark.parametrize("function", [turn_range, slice_end, cut_before, user_text])
@pytest.mark.parametrize(
    ("messages", "turn", "text"),
    [
        (TALK, 0, "Turn must be >= 1, got 0"),
        (TALK, -2, "Turn must be >= 1, got -2"),
        (TALK, 3, "Turn 3 exceeds max turns (2). Valid range: 1-2"),
        ([], 1, "No user messages found in conversation"),
        ([user(REMINDER)], 1, "No user messages found in conversation"),
    ],
)
def test_no_such_turn(function: Any, messages: list[Any], turn: int, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        function(messages, turn)
    assert str(caught.value) == text
    assert isinstance(caught.value, ValueError)
    assert caught.value.hint


def test_one_turn_in_a_few_words() -> None:
    assert turn_summary(TALK, 1) == {
        "turn": 1,
        "user_content": "first",
        "assistant_content": "one",
        "tool_count": 1,
        "message_count": 6,
    }


def test_a_call_that_is_stored_twice_counts_once() -> None:
    talk = [user("q"), amplifier("a", "b"), tool("a"), tool("b")]
    assert turn_summary(talk, 1)["tool_count"] == 2
    assert turn_summary(talk, 1)["assistant_content"] == ""


def test_long_texts_are_cut() -> None:
    summary = turn_summary([user("x" * 101), said("y" * 100)], 1)
    assert summary["user_content"] == "x" * 100 + "..."
    assert summary["assistant_content"] == "y" * 100
    assert turn_summary([user("hello")], 1, 2)["user_content"] == "he..."


@pytest.mark.parametrize("turn", [0, 3])
def test_a_missing_turn_has_no_summary(turn: int) -> None:
    with pytest.raises(Invalid, match=rf"^Turn {turn} out of range \(1-2\)$"):
        turn_summary(TALK, turn)


@given(conversations())
def test_transcript_make_up_the_conversation(messages: list[Any]) -> None:
    starts = boundaries(messages)
    assert len(starts) == count_turns(each for each in messages if isinstance(each, dict))
    ranges = [turn_range(messages, turn + 1) for turn in range(len(starts))]
    if ranges:
        assert [index for each in ranges for index in each] == list(range(len(messages)))
    for turn, start in enumerate(starts, 1):
        assert start in ranges[turn - 1]
        assert cut_before(messages, turn) == messages[: ranges[turn - 1].start]
        assert turn_summary(messages, turn)["message_count"] == len(ranges[turn - 1])
        assert isinstance(user_text(messages, turn), str)
