"""The conversation up to a turn: calls that the cut leaves open are completed, removed or refused."""

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sessionary.errors import Invalid
from sessionary.transcript.matching import match
from sessionary.transcript.rebuilding import says_nothing
from sessionary.transcript.slicing import slice_to_turn
from sessionary.transcript.turn_boundaries import boundaries
from tests.unit.conversations import (
    REMINDER,
    amplifier,
    answered,
    anthropic,
    block,
    conversations,
    openai,
    said,
    tool,
    user,
)

LAST = [user("later"), said("yes")]


def made(message: Any) -> dict[str, Any]:
    """What a made-up result says, whichever shape it has."""
    return dict(json.loads(message["content"]))


def test_nothing_is_open() -> None:
    talk = [user(REMINDER), user("q"), amplifier("a"), tool("a"), said(), *LAST]
    kept = slice_to_turn(talk, 1)
    assert kept == talk[:5]
    assert all(one is other for one, other in zip(kept, talk, strict=False))
    assert slice_to_turn(talk, 2) == talk


@pytest.mark.parametrize("call", [amplifier, openai])
def test_a_call_in_the_list_is_answered_by_a_message(call: Any) -> None:
    kept = slice_to_turn([user(), call("a")], 1)
    assert kept[:2] == [user(), call("a")]
    (answer,) = kept[2:]
    assert (answer["role"], answer["tool_call_id"], answer["name"]) == ("tool", "a", "bash")
    assert made(answer)["error"] == "Tool execution interrupted by session fork"
    assert made(answer)["forked"] is True


def test_a_call_in_a_block_is_answered_in_a_block() -> None:
    answer = slice_to_turn([user(), anthropic("a", "b")], 1)[2]
    assert answer["role"] == "user"
    assert [(each["type"], each["tool_use_id"], each["is_error"]) for each in answer["content"]] == [
        ("tool_result", "a", True),
        ("tool_result", "b", True),
    ]


def test_amplifiers_own_blocks_are_answered_by_a_message() -> None:
    alone = {"role": "assistant", "content": [{"type": "tool_call", "id": "a", "name": "bash"}]}
    assert slice_to_turn([user(), alone], 1)[2]["role"] == "tool"


def test_the_shape_is_that_of_the_conversation() -> None:
    blocks = [user(), amplifier("a"), answered("a"), amplifier("b")]
    assert slice_to_turn(blocks, 1)[4]["content"][0]["tool_use_id"] == "b"
    messages = [user(), anthropic("a"), tool("a"), anthropic("b")]
    assert slice_to_turn(messages, 1)[4]["tool_call_id"] == "b"
    later = [user(), anthropic("b"), said(), anthropic("a"), tool("a")]
    assert slice_to_turn(later, 1)[2]["tool_call_id"] == "b"


def test_a_synthetic_result_follows_those_of_its_siblings() -> None:
    kept = slice_to_turn([user(), amplifier("a", "b", "c"), tool("c"), tool("a")], 1)
    assert [each.get("tool_call_id") for each in kept[2:]] == ["c", "a", "b"]


def test_a_made_up_block_joins_those_of_its_siblings() -> None:
    talk = [user(), anthropic("a", "b"), answered("a", text="stop that")]
    kept = slice_to_turn(talk, 2)
    assert [each.get("tool_use_id") for each in kept[2]["content"]] == ["a", "b", None]
    assert kept[2]["content"][0] is talk[2]["content"][0]
    assert len(kept) == 3


def test_a_made_up_message_does_not_come_behind_a_user() -> None:
    mixed = answered("a", text="stop that")
    talk = [user(), amplifier("z"), tool("z"), amplifier("a", "b"), tool("a", "x"), mixed]
    kept = slice_to_turn(talk, 2)
    assert [each["role"] for each in kept[4:]] == ["tool", "tool", "user"]
    assert kept[5]["tool_call_id"] == "b"


def test_where_a_user_continues_the_turn_gets_an_end() -> None:
    talk = [user(), amplifier("a"), user(REMINDER), user("so?"), said()]
    kept = slice_to_turn(talk, 2)
    assert [each["role"] for each in kept] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert "forked" in kept[4]["content"][0]["text"]
    assert [each["role"] for each in slice_to_turn(talk, 1)] == ["user", "assistant", "tool", "user"]


def test_a_turn_whose_results_are_real_is_left_without_an_end() -> None:
    talk = [user(), amplifier("a"), tool("a"), user("so?"), amplifier("b")]
    assert slice_to_turn(talk, 2)[:5] == talk


@pytest.mark.parametrize("call", [amplifier, openai, anthropic])
def test_remove_takes_the_call_and_a_message_that_holds_nothing_then(call: Any) -> None:
    assert slice_to_turn([user(), call("a"), user("so?")], 2, "remove") == [user(), user("so?")]


def test_remove_keeps_words_and_answered_siblings() -> None:
    talking = amplifier("a", "b")
    talking["content"] = [{"type": "text", "text": "Looking."}, *talking["content"]]
    kept = slice_to_turn([user(), talking, tool("b")], 1, handle_orphaned_tools="remove")
    assert kept[1]["content"] == [talking["content"][0], talking["content"][2]]
    assert kept[1]["tool_calls"] == [talking["tool_calls"][1]]
    alone = slice_to_turn([user(), talking], 1, "remove")[1]
    assert alone == {"role": "assistant", "content": [{"type": "text", "text": "Looking."}]}


def test_thinking_alone_is_nothing_to_keep() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    call = {"role": "assistant", "content": [thinking, *anthropic("a")["content"]]}
    assert slice_to_turn([user(), call], 1, "remove") == [user()]


def test_error_names_the_calls_in_their_order() -> None:
    talk = [user(), amplifier("b", "a"), tool("a"), anthropic("c")]
    with pytest.raises(ValueError, match=r"^Orphaned tool calls at fork boundary: \['b', 'c'\]") as caught:
        slice_to_turn(talk, 1, "error")
    assert isinstance(caught.value, Invalid)
    assert caught.value.details == {"ids": ["b", "c"]}


def test_a_result_in_a_later_turn_does_not_answer() -> None:
    talk = [user(), amplifier("a"), user("so?"), tool("a")]
    assert made(slice_to_turn(talk, 1)[2])["forked"] is True
    assert slice_to_turn(talk, 2) == talk


def test_the_originals_way_of_counting() -> None:
    talk = [user(), anthropic("a"), answered("a"), said()]
    assert len(slice_to_turn(talk, 1, every_user=True)) == 3
    assert slice_to_turn(talk, 2, every_user=True) == talk
    with pytest.raises(Invalid, match=r"^Turn 2 exceeds max turns \(1\). Valid range: 1-1$"):
        slice_to_turn(talk, 2)


def test_no_such_rule() -> None:
    with pytest.raises(ValueError, match="Unknown handle_orphaned_tools value: 'drop'"):
        slice_to_turn([user()], 1, "drop")  # type: ignore[arg-type]


@given(conversations(), st.data(), st.sampled_from(["complete", "remove"]), st.booleans())
def test_no_call_is_left_open_and_nothing_else_changes(
    messages: list[Any], data: st.DataObject, rule: Any, every_user: bool
) -> None:
    starts = boundaries(messages, every_user=every_user)
    assume(starts)
    turn = data.draw(st.integers(1, len(starts)))
    before = copy.deepcopy(messages)
    kept = slice_to_turn(messages, turn, rule, every_user=every_user)
    assert repr(messages) == repr(before)
    assert match(kept).orphans() == []
    assert kept == slice_to_turn(messages, turn, rule, every_user=every_user) or "nan" in repr(kept)
    stop = starts[turn] if turn < len(starts) else len(messages)
    touched = {call.index for call in match(messages[:stop]).orphans()}
    known = {id(each) for each in kept}
    for index in range(stop):
        if index not in touched and not is_answered_in_blocks(messages[index]):
            assert id(messages[index]) in known
    if rule == "remove":
        emptied = [index for index in touched if id(messages[index]) not in known]
        assert len(kept) >= stop - len(emptied)
        news = [each for each in kept if not any(each is old for old in messages[:stop])]
        assert not any(map(says_nothing, news))


def is_answered_in_blocks(message: Any) -> bool:
    """A made-up block may have joined it."""
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(each, dict) and each.get("type") == block("a")["type"] for each in content
    )
