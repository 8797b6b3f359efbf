"""Authors, turns, and pairs of calls and results, over every format in which sessions are stored."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.model import ToolCall
from sessionary.transcript.matching import match, unanswered
from sessionary.transcript.messages import count_turns, is_real_user, results, text_of, tool_calls

REMINDER = "<system-reminder>\nThe todo list is empty.\n</system-reminder>"


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def blocks(*kinds: str) -> list[dict[str, Any]]:
    return [{"type": kind, "text": "words", "tool_use_id": "t1", "content": "out"} for kind in kinds]


@pytest.mark.parametrize(
    "message",
    [
        user("hello"),
        user(""),
        user([{"type": "text", "text": "hello"}]),
        user(["hello"]),
        user([{"type": "image", "source": {}}]),
        user([{"type": "text", "text": REMINDER}, {"type": "text", "text": "hello"}]),
        user(blocks("tool_result", "text")),
        {"role": "user"},
        user([]),
        user(7),
    ],
)
def test_a_user_spoke(message: dict[str, Any]) -> None:
    assert is_real_user(message)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "hello"},
        {"content": "hello"},
        {"role": ["user"], "content": "hello"},
        user(REMINDER),
        user(f"\n {REMINDER}"),
        user([{"type": "text", "text": REMINDER}]),
        user([{"type": "text", "text": REMINDER}, *blocks("tool_result")]),
        user(blocks("tool_result")),
        user(blocks("tool_result", "tool_result")),
        user("ok", tool_call_id="t1"),
        user("ok", tool_call_id=None),
    ],
)
def test_no_person_spoke(message: dict[str, Any]) -> None:
    assert not is_real_user(message)


def test_transcript_count_persons_only() -> None:
    messages = [
        user("one"),
        user(REMINDER),
        {"role": "assistant", "content": "a"},
        user(blocks("tool_result")),
        user("two"),
    ]
    assert count_turns(messages) == 2


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (7, ""),
        ([], ""),
        (["bare", {"type": "text", "text": "block"}], "bare\nblock"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "said"}], "said"),
        ([{"type": "output_text", "text": "said"}, {"type": "tool_use", "id": "t", "text": "no"}], "said"),
        ([{"type": "text", "text": 5}, {"type": ["text"], "text": "no"}, None, 3], ""),
    ],
)
def test_the_words_of_a_message(content: Any, text: str) -> None:
    assert text_of({"role": "assistant", "content": content}) == text


def test_a_call_in_the_list_and_in_a_block_counts_once() -> None:
    message = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Looking."},
            {"type": "tool_call", "id": "t1", "name": "bash", "input": {"command": "ls"}},
            {"type": "tool_call", "id": "t2", "name": "grep", "input": {"pattern": "x"}},
        ],
        "tool_calls": [{"id": "t1", "tool": "bash", "arguments": {"command": "ls"}}],
    }
    assert tool_calls(message) == [
        ToolCall("t1", "bash", {"command": "ls"}),
        ToolCall("t2", "grep", {"pattern": "x"}),
    ]


def test_openai_calls_have_their_arguments_decoded() -> None:
    function = {"name": "grep", "arguments": '{"pattern": "x", "n": 12345678901234567890123}'}
    message = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    (call,) = tool_calls(message)
    assert (call.call_id, call.name) == ("c1", "grep")
    assert call.arguments == {"pattern": "x", "n": 12345678901234567890123}


def test_arguments_that_were_never_finished_stay_text() -> None:
    assert ToolCall("c1", "grep", '{"pattern": "x').arguments == '{"pattern": "x'
    assert ToolCall("c1", "grep", "half \ud83d").arguments == "half \ud83d"


def test_anthropic_calls_are_blocks() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
    assert tool_calls({"role": "assistant", "content": [block]}) == [
        ToolCall("t1", "read_file", {"path": "a"})
    ]


def test_results_in_messages_of_their_own_and_in_blocks() -> None:
    tool = {"role": "tool", "tool_call_id": "t1", "name": "bash", "content": "out"}
    assert [(r.call_id, r.text, r.is_error) for r in results(tool)] == [("t1", "out", False)]
    parts = [{"type": "text", "text": "one"}, {"type": "image"}, "two"]
    block = {"type": "tool_result", "tool_use_id": "t2", "content": parts, "is_error": True}
    assert [(r.call_id, r.text, r.is_error) for r in results(user([block]))] == [
        ("t2", "one\n[image]\ntwo", True)
    ]
    assert results(user("hello")) == []


CALLS: dict[str, dict[str, Any]] = {
    "amplifier": {"role": "assistant", "tool_calls": [{"id": "t1", "tool": "bash", "arguments": {}}]},
    "openai": {
        "role": "assistant",
        "tool_calls": [{"id": "t1", "function": {"name": "bash", "arguments": "{}"}}],
    },
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "bash", "input": {}}],
    },
    "block": {
        "role": "assistant",
        "content": [{"type": "tool_call", "id": "t1", "name": "bash", "input": {}}],
    },
}
ANSWERS: dict[str, dict[str, Any]] = {
    "tool": {"role": "tool", "tool_call_id": "t1", "content": "out"},
    "user": user([{"type": "tool_result", "tool_use_id": "t1", "content": "out"}]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_shape_of_result_answers_every_shape_of_call(
    call: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert unanswered([call]) == ["t1"]
    assert unanswered([call, answer]) == []
    assert unanswered([answer, call]) == ["t1"], "a result does not answer a call that comes later"


def test_of_three_calls_two_are_answered() -> None:
    calls: list[dict[str, Any]] = [{"id": name, "tool": "bash", "arguments": {}} for name in ("a", "b", "c")]
    done = [{"role": "tool", "tool_call_id": name, "content": ""} for name in ("c", "a")]
    assert unanswered([{"role": "assistant", "tool_calls": calls}, *done]) == ["b"]


def test_an_id_that_is_used_again_waits_again() -> None:
    call, answer = CALLS["amplifier"], ANSWERS["tool"]
    assert unanswered([call, answer, call]) == ["t1"]
    assert unanswered([call, answer, call, answer]) == []


def test_blocks_within_a_result_are_what_the_tool_said() -> None:
    call, answer = CALLS["openai"], {**ANSWERS["tool"], "content": ANSWERS["user"]["content"]}
    matching = match([call, answer])
    assert (matching.orphans(), matching.strays, matching.repeats) == ([], [], [])


def test_the_agent_answers_no_call_of_its_own() -> None:
    call = CALLS["openai"]
    assert unanswered([call, {"role": "assistant", "tool_call_id": "t1", "content": "out"}]) == ["t1"]


def test_a_list_of_sessions_does_not_wait_for_the_rest() -> None:
    loaded = "sorted(n for n in sys.modules if n.startswith(t.__name__ + '.'))"
    code = f"import sys, sessionary.transcript as t; print({loaded})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_matching_says_where_each_finding_is() -> None:
    surplus = {"role": "assistant", "tool_calls": [{"id": "t9", "tool": "x"}]}
    matching = match([CALLS["openai"], ANSWERS["user"], ANSWERS["tool"], surplus])
    assert [(one.call_id, one.index) for one in matching.repeats] == [("t1", 2)]
    assert [(one.call_id, one.index) for one in matching.orphans()] == [("t9", 3)]
    assert [one.index for one in match([ANSWERS["tool"]]).strays] == [0]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
_words = st.sampled_from(["text", "tool_result", "tool_use", "tool_call", "user", "tool", "t1"]) | _json
_block = st.dictionaries(
    st.sampled_from(["type", "text", "id", "name", "input", "tool_use_id", "content"]), _words
)
_call = st.dictionaries(st.sampled_from(["id", "tool", "function", "arguments", "name"]), _words)
_message = st.dictionaries(st.sampled_from(["role", "tool_call_id", "is_error", "name"]), _words).flatmap(
    lambda base: st.fixed_dictionaries(
        {},
        optional={"content": st.lists(_block | _json) | _json, "tool_calls": st.lists(_call | _json) | _json},
    ).map(lambda rest: base | rest)
)


@given(st.lists(_message, max_size=6))
def test_no_message_whatever_its_shape_raises(messages: list[dict[str, Any]]) -> None:
    count_turns(messages)
    assert all(isinstance(call_id, str) for call_id in unanswered(messages))
    for message in messages:
        assert isinstance(text_of(message), str)
        assert all(isinstance(result.text, str) for result in results(message))
        for call in tool_calls(message):
            assert call.name
            _ = call.arguments
