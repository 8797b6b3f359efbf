"""A conversation put right: every rule by an example, and what holds for all of them."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.errors import Invalid
from sessionary.transcript.diagnosis import diagnose, diagnosis_of
from sessionary.transcript.matching import match, unanswered
from sessionary.transcript.repair import mend
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


def done(messages: list[Any], **choice: Any) -> tuple[list[Any], list[tuple[int, str, tuple[str, ...]]]]:
    mended = mend(messages, **choice)
    return mended.messages, [(each.index, each.code, each.ids) for each in mended.changes]


def test_what_is_right_stays_as_it_is() -> None:
    talk = [
        user(REMINDER),
        user(),
        amplifier("a"),
        tool("a"),
        said(),
        user("and"),
        anthropic("b"),
        answered("b"),
    ]
    mended = mend(talk)
    assert mended.messages == talk
    assert all(one is other for one, other in zip(mended.messages, talk, strict=True))
    assert mended.changes == []


@pytest.mark.parametrize("call", [amplifier, openai])
def test_an_open_call_gets_an_error_for_a_result(call: Any) -> None:
    messages, changes = done([user(), call("a", "b"), tool("b"), said()])
    assert [each.get("tool_call_id") for each in messages] == [None, None, "b", "a", None]
    assert json.loads(messages[3]["content"])["error"] == "unknown_error"
    assert changes == [(1, "completed_call", ("a",))]


def test_an_open_call_in_a_block_gets_a_block() -> None:
    messages, changes = done([user(), anthropic("a", "b"), answered("a"), said()])
    assert [each["tool_use_id"] for each in messages[2]["content"]] == ["a", "b"]
    assert messages[2]["content"][1]["is_error"] is True
    assert changes == [(1, "completed_call", ("b",))]


def test_a_block_joins_the_last_message_of_its_siblings() -> None:
    messages, _ = done([user(), anthropic("a", "b", "c"), answered("a"), answered("b"), said()])
    assert messages[2] == answered("a")
    assert [each["tool_use_id"] for each in messages[3]["content"]] == ["b", "c"]


def test_the_shape_of_a_sibling_goes_before_that_of_the_conversation() -> None:
    talk = [user(), amplifier("z"), tool("z"), amplifier("a", "b"), answered("a"), said()]
    messages, _ = done(talk)
    assert [each["tool_use_id"] for each in messages[4]["content"]] == ["a", "b"]


def test_a_call_that_is_stored_twice_is_answered_by_a_message() -> None:
    both = {**anthropic("a"), "tool_calls": openai("a")["tool_calls"]}
    messages, _ = done([user(), both, said()])
    assert messages[2]["tool_call_id"] == "a"
    assert len(messages) == 4


def test_a_made_up_result_comes_before_the_words_beside_a_result_that_goes() -> None:
    messages, _ = done([user(), openai("a"), answered("x", text="stop"), said()])
    assert [each["role"] for each in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert messages[4] == user([{"type": "text", "text": "stop"}])


def test_a_message_that_brings_a_result_and_makes_a_call() -> None:
    strange = {"role": "agent", "content": [block("a"), *anthropic("b")["content"]]}
    messages, changes = done([user(), anthropic("a"), strange, said()])
    assert messages[2] == answered("a")
    assert messages[3] == {**anthropic("b"), "role": "agent"}
    assert messages[4]["content"][0]["tool_use_id"] == "b"
    assert changes == [(2, "moved_result", ("a",)), (2, "completed_call", ("b",))]


def test_a_result_in_the_agents_message_becomes_one_of_the_user() -> None:
    talk = [user(), anthropic("a"), {**answered("a"), "role": "assistant"}, said()]
    assert mend(talk).messages == [user(), anthropic("a"), answered("a"), said()]


def test_what_the_agent_says_is_not_a_result_whatever_keys_it_has() -> None:
    words = {**said("hm"), "tool_call_id": "a"}
    messages, changes = done([user(), openai("a"), words])
    assert messages[2]["role"] == "tool"
    assert messages[3] is words
    assert changes == [(1, "completed_call", ("a",))]


def test_an_empty_result_is_a_result() -> None:
    messages, _ = done([user(), openai("a"), tool("a", ""), openai("a"), tool("a", ""), said()])
    assert messages == [user(), openai("a"), tool("a", ""), openai("a_2"), tool("a_2", ""), said()]


def test_an_open_call_is_dropped_if_that_is_wanted() -> None:
    talk = [user(), amplifier("a"), user("so?"), anthropic("b", "c"), answered("b"), said()]
    messages, changes = done(talk, orphans="drop")
    assert messages == [user(), user("so?"), anthropic("b"), answered("b"), said()]
    assert changes == [
        (1, "dropped_call", ("a",)),
        (1, "dropped_message", ()),
        (3, "dropped_call", ("c",)),
    ]


def test_a_turn_that_was_interrupted_gets_an_end_before_a_user_continues() -> None:
    talk = [user(), amplifier("a"), tool("a"), user(REMINDER), user("so?"), amplifier("b")]
    messages, changes = done(talk)
    assert [each["role"] for each in messages] == [
        *("user", "assistant", "tool", "user", "assistant", "user", "assistant", "tool"),
    ]
    assert "interrupted" in messages[4]["content"][0]["text"]
    assert changes == [(2, "closed_turn", ()), (5, "completed_call", ("b",))]


def test_the_last_turn_gets_an_end_only_if_that_is_wanted() -> None:
    talk = [user(), amplifier("a"), tool("a")]
    assert mend(talk).messages == talk
    messages, changes = done(talk, close_last=True)
    assert messages[:3] == talk
    assert messages[3]["role"] == "assistant"
    assert changes == [(2, "closed_turn", ())]
    assert diagnosis_of(messages)["status"] == "healthy"


def test_a_user_text_beside_results_needs_no_closing_message() -> None:
    talk = [user(), anthropic("a"), answered("a", text="stop"), user("and"), said()]
    assert mend(talk).changes == []


def test_a_result_without_a_call_goes() -> None:
    messages, changes = done([user(), tool("x"), answered("y"), answered("z", text="hello"), said()])
    assert messages == [user(), user([{"type": "text", "text": "hello"}]), said()]
    assert changes == [
        (1, "dropped_result", ("x",)),
        (2, "dropped_result", ("y",)),
        (3, "dropped_result", ("z",)),
    ]


def test_a_second_result_is_removed_and_the_first_kept() -> None:
    messages, changes = done([user(), amplifier("a"), tool("a", "one"), tool("a", "two"), said()])
    assert messages == [user(), amplifier("a"), tool("a", "one"), said()]
    assert changes == [(3, "dropped_result", ("a",))]


def test_a_result_that_came_late_moves_back_whole() -> None:
    late = tool("a")
    messages, changes = done([user(), amplifier("a", "b"), tool("b"), user("hurry"), late, said()])
    assert messages == [user(), amplifier("a", "b"), tool("b"), late, messages[4], user("hurry"), said()]
    assert messages[3] is late
    assert messages[4]["role"] == "assistant"
    assert changes == [(4, "moved_result", ("a",)), (4, "closed_turn", ())]


def test_a_result_that_came_early_moves_as_well() -> None:
    messages, changes = done([user(), tool("a"), amplifier("a"), said()])
    assert messages == [user(), amplifier("a"), tool("a"), said()]
    assert changes == [(1, "moved_result", ("a",))]


def test_a_late_block_leaves_the_words_beside_it() -> None:
    talk = [user(), anthropic("a", "b"), answered("b"), said("hm"), answered("a", text="stop"), said()]
    messages, changes = done(talk)
    assert messages == [
        user(),
        anthropic("a", "b"),
        answered("b", "a"),
        said("hm"),
        user([{"type": "text", "text": "stop"}]),
        said(),
    ]
    assert messages[2]["content"][1] is talk[4]["content"][0]
    assert changes == [(4, "moved_result", ("a",))]


def test_late_blocks_for_two_calls_go_to_each() -> None:
    messages, _ = done([user(), anthropic("a"), anthropic("b"), said("hm"), answered("a", "b"), said()])
    assert messages == [
        user(),
        anthropic("a"),
        answered("a"),
        anthropic("b"),
        answered("b"),
        said("hm"),
        said(),
    ]


def test_a_whole_message_of_late_blocks_keeps_what_else_it_has() -> None:
    late = {**answered("a"), "timestamp": "2026-03-01T09:00:00Z"}
    messages, _ = done([user(), anthropic("a"), said("hm"), late, said()])
    assert messages[2] is late


def test_a_result_behind_a_reminder_moves_before_it() -> None:
    messages, changes = done([user(), amplifier("a"), user(REMINDER), tool("a"), said()])
    assert messages == [user(), amplifier("a"), tool("a"), user(REMINDER), said()]
    assert changes == [(3, "moved_result", ("a",))]


def test_a_second_call_of_an_id_gets_its_own_and_its_result_too() -> None:
    messages, changes = done(
        [
            user(),
            amplifier("a"),
            tool("a", "one"),
            anthropic("a_2"),
            answered("a_2"),
            amplifier("a"),
            tool("a", "two"),
        ]
    )
    assert messages[:5] == [user(), amplifier("a"), tool("a", "one"), anthropic("a_2"), answered("a_2")]
    assert messages[5:] == [amplifier("a_3"), tool("a_3", "two")]
    assert changes == [(5, "renamed_call", ("a",))]


def test_two_calls_of_one_id_in_one_message() -> None:
    messages, changes = done([user(), openai("a", "a"), tool("a", "one"), tool("a", "two"), said()])
    assert messages == [user(), openai("a", "a_2"), tool("a", "one"), tool("a_2", "two"), said()]
    assert changes == [(1, "renamed_call", ("a",))]


def test_a_repeated_id_that_is_open_gets_a_result_of_its_new_name() -> None:
    messages, _ = done([user(), anthropic("a"), answered("a"), anthropic("a"), answered("b"), said()])
    assert messages[3] == anthropic("a_2")
    assert [each["tool_use_id"] for each in messages[4]["content"]] == ["a_2"]


@pytest.mark.parametrize("value", [None, "a", 5, {}, [None, 3]])
def test_calls_that_are_not_a_list_of_calls_go(value: Any) -> None:
    messages, changes = done([user(), {**said(), "tool_calls": value}])
    assert messages == [user(), said()]
    assert changes == [(1, "removed_tool_calls", ())]


def test_calls_among_other_entries_stay() -> None:
    broken = openai("a")
    broken["tool_calls"].append(None)
    messages, changes = done([user(), broken, tool("a"), said()])
    assert messages == [user(), openai("a"), tool("a"), said()]
    assert changes == [(1, "removed_tool_calls", ())]


@pytest.mark.parametrize(
    "rest", [[], [None], ["  "], [{"type": "text", "text": " "}], [{"type": "output_text"}]]
)
def test_a_message_without_text_goes_with_its_call(rest: list[Any]) -> None:
    call = {"role": "assistant", "content": [*rest, *anthropic("a")["content"]]}
    assert mend([user(), call], orphans="drop").messages == [user()]


@pytest.mark.parametrize(
    "rest", ["text", {"type": "text", "text": "hm"}, {"type": "image"}, {"type": ["x"]}, 5]
)
def test_a_message_that_holds_anything_more_stays_without_its_call(rest: Any) -> None:
    call = {"role": "assistant", "content": [rest, *anthropic("a")["content"]]}
    assert mend([user(), call], orphans="drop").messages == [user(), {"role": "assistant", "content": [rest]}]


def test_a_call_without_an_id_stays_beside_one_that_is_dropped() -> None:
    nameless = {"tool": "bash", "arguments": {}}
    call = {"role": "assistant", "tool_calls": [nameless, {"id": "a", "tool": "bash", "arguments": {}}]}
    kept = mend([user(), call], orphans="drop").messages[1]
    assert kept == {"role": "assistant", "tool_calls": [nameless]}


@pytest.mark.parametrize("value", [None, 5, "text", ["list"]])
def test_what_is_not_a_message_goes(value: Any) -> None:
    messages, changes = done([user(), amplifier("a"), value, tool("a"), said()])
    assert messages == [user(), amplifier("a"), tool("a"), said()]
    assert changes == [(2, "dropped_value", ())]


def test_a_speaker_who_can_only_be_one_is_named() -> None:
    whole = [user(), amplifier("a"), tool("a"), anthropic("b"), answered("b"), said()]
    nameless = [{key: value for key, value in each.items() if key != "role"} for each in whole[1:5]]
    messages, changes = done([user(), *nameless, said()])
    assert messages == whole
    assert [code for _index, code, _ids in changes] == ["named_role"] * 4


def test_a_speaker_who_can_be_anyone_is_not_made_up() -> None:
    messages, changes = done([user(), {"content": "who?"}, said()])
    assert messages == [user(), said()]
    assert changes == [(1, "dropped_message", ())]


def test_notes_are_left_alone() -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": "s"}
    talk = [user(), user("and"), {"role": "assistant", "content": [thinking, {"type": "text", "text": "hi"}]}]
    assert mend(talk).messages == talk


def test_a_change_says_what_and_why() -> None:
    (change,) = mend([user(), amplifier("a")]).changes
    assert change.as_dict() == {
        "index": 1,
        "code": "completed_call",
        "ids": ["a"],
        "what": "added an error result",
        "why": "it has no result",
    }


def test_no_such_choice() -> None:
    with pytest.raises(Invalid, match="Unknown orphans value: 'remove'"):
        mend([], orphans="remove")  # type: ignore[arg-type]


choices = st.fixed_dictionaries(
    {"orphans": st.sampled_from(["complete", "drop"]), "close_last": st.booleans()}
)
NOT_MENDED = {"consecutive_users", "empty_thinking", "no_call_id"}


@given(conversations(), choices)
def test_what_comes_out_can_be_resumed(messages: list[Any], choice: dict[str, Any]) -> None:
    mended = mend(messages, **choice)
    left = diagnose(mended.messages)
    assert [each for each in left if each.stops or each.code == "late_result"] == []
    assert unanswered(mended.messages) == []
    if choice["close_last"]:
        assert diagnosis_of(mended.messages)["status"] == "healthy"


@given(conversations(), choices)
def test_mending_twice_changes_nothing_more(messages: list[Any], choice: dict[str, Any]) -> None:
    once = mend(messages, **choice)
    twice = mend(once.messages, **choice)
    assert twice.changes == []
    assert len(twice.messages) == len(once.messages)
    assert all(one is other for one, other in zip(twice.messages, once.messages, strict=True))


@given(conversations(), choices)
def test_something_changes_if_and_only_if_something_was_found(
    messages: list[Any], choice: dict[str, Any]
) -> None:
    before = copy.deepcopy(messages)
    mended = mend(messages, **choice)
    assert repr(messages) == repr(before)
    found = [each for each in diagnose(messages) if each.code not in NOT_MENDED]
    wanted = [each for each in found if each.stops or each.code != "incomplete_turn" or choice["close_last"]]
    assert bool(mended.changes) == bool(wanted)
    assert [each.index for each in mended.changes] == sorted(each.index for each in mended.changes)
    assert all(0 <= each.index < len(messages) for each in mended.changes)


@given(conversations(), choices)
def test_untouched_messages_are_the_same_objects_in_the_same_order(
    messages: list[Any], choice: dict[str, Any]
) -> None:
    mended = mend(messages, **choice)
    matching = match(messages)
    touched = {each.index for each in mended.changes}
    touched |= {matching.answer[call].index for call in matching.answer if call.index in touched}
    # A result in a block may be joined by one that was moved or made up, or share its message with one that left.
    known = {id(each): place for place, each in enumerate(mended.messages)}
    kept = [known.get(id(each)) for index, each in enumerate(messages) if index not in touched]
    hosts = [index for index, each in enumerate(messages) if index not in touched and id(each) not in known]
    assert all(bears_a_block(messages[index]) for index in hosts)
    places = [place for place in kept if place is not None]
    assert places == sorted(places)


@given(conversations(), choices)
def test_no_result_of_a_call_is_lost(messages: list[Any], choice: dict[str, Any]) -> None:
    matching = match(messages)
    marked = [copy.deepcopy(each) for each in messages]
    for number, answer in enumerate(matching.answer.values()):
        message = marked[answer.index]
        place = message if answer.block is None else message["content"][answer.block]
        place["content"] = f"<result {number}>"
    text = repr(mend(marked, **choice).messages)
    for number in range(len(matching.answer)):
        assert text.count(f"<result {number}>") == 1


def bears_a_block(message: Any) -> bool:
    return any(
        isinstance(each, dict) and each.get("type") == block("a")["type"]
        for each in message.get("content") or ()
    )
