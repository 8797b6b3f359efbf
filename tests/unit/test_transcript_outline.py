"""An outline says of a conversation what the diagnosis says of it, and holds none of its words."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.transcript import Finding, count_turns, diagnose, text_of
from sessionary.transcript.messages import is_real_user
from sessionary.transcript.outline import Outline, without_words
from tests.unit.conversations import (
    REMINDER,
    amplifier,
    answered,
    anthropic,
    conversations,
    openai,
    said,
    tool,
    user,
)


def outlined(messages: list[Any]) -> Outline:
    outline = Outline()
    for message in messages:
        outline.take([message])
    return outline


def findings(messages: list[Any]) -> list[Finding]:
    return outlined(messages).findings()


def turns_of(*names: str) -> list[Any]:
    """A turn for each name, with calls of that name in one shape after the other, and nothing wrong with any."""
    shapes = [
        lambda name: [amplifier(name, name + "2"), tool(name + "2"), tool(name)],
        lambda name: [openai(name), tool(name)],
        lambda name: [anthropic(name, name + "2"), answered(name), answered(name + "2"), user(REMINDER)],
        lambda name: [said("a word"), user(REMINDER), said(name)],
    ]
    return [
        message
        for number, name in enumerate(names)
        for message in [user([{"type": "text", "text": name}]), *shapes[number % len(shapes)](name), said()]
    ]


def objects() -> st.SearchStrategy[list[Any]]:
    """Tangled conversations, without what is no object: readers have set that aside."""
    return conversations().map(lambda messages: [each for each in messages if isinstance(each, dict)])


@given(objects())
def test_it_finds_what_the_diagnosis_finds(messages: list[Any]) -> None:
    assert findings(messages) == diagnose(messages)


@given(st.lists(st.sampled_from(["p", "q", "r", "a", "a_2"]), max_size=5), objects())
def test_it_finds_the_same_behind_turns_about_which_nothing_is_to_be_said(
    names: list[str], messages: list[Any]
) -> None:
    whole = [*turns_of(*names), *messages]
    assert findings(whole) == diagnose(whole)


@given(objects())
def test_it_counts_turns_and_knows_the_first_words(messages: list[Any]) -> None:
    outline = outlined(messages)
    spoken = [text_of(message).lstrip() for message in messages if is_real_user(message)]
    assert len(outline) == len(messages)
    assert outline.turns == count_turns(messages)
    assert outline.title == next(filter(None, spoken), None)


@given(objects())
def test_a_message_without_its_words_is_diagnosed_as_with_them(messages: list[Any]) -> None:
    assert diagnose([without_words(message) for message in messages]) == diagnose(messages)


@given(objects(), st.integers(0, 9))
def test_it_is_all_one_in_how_many_pieces_the_messages_come(messages: list[Any], cut: int) -> None:
    outline = Outline()
    outline.take(messages[:cut])
    outline.findings()
    outline.take(messages[cut:])
    assert outline.findings() == findings(messages)


@pytest.mark.parametrize("end", [[], [user()], [user(REMINDER)], [user(None)], [said()]])
def test_transcript_that_are_well_are_well(end: list[Any]) -> None:
    messages = [*turns_of("a", "b", "c", "d", "e"), *end]
    assert findings(messages) == diagnose(messages) == []


def test_a_turn_that_is_not_well_is_told_at_its_place() -> None:
    messages = [*turns_of("a", "b", "c"), user(), openai("x"), user("stop")]
    (finding,) = findings(messages)
    assert (finding.code, finding.index, finding.ids) == ("orphaned_call", len(messages) - 2, ("x",))


def test_a_call_from_long_ago_that_is_made_again_is_told() -> None:
    before = turns_of("a", "b", "c")
    (finding,) = findings([*before, *turns_of("a")])
    assert (finding.code, finding.index, finding.ids) == ("repeated_call", len(before) + 1, ("a", "a2"))


def test_words_are_not_held() -> None:
    turns = 200
    tracemalloc.start()
    try:
        outline = Outline()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(turns):
            for message in [*turns_of(f"call_{number}"), said("x" * 20_000), user(["y" * 20_000])]:
                outline.take([message])
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(outline) == 7 * turns
    assert held < 1000 * turns
