"""A conversation as a page: what the odd shapes look like; whole pages are in tests/e2e/test_cli.py."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from sessionary.cli.page import Page
from sessionary.model import AGENT, TOOL, Aside, Item, Message, Other, Place, Text, ToolCall, ToolResult
from sessionary.transcript.typed import Numbered, message_of, numbered

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def page(*records: dict[str, Any], full: bool = False, width: int = 80) -> list[str]:
    messages = [message_of(record, Place(None, at + 1, 0)) for at, record in enumerate(records)]
    return list(Page(width, full=full, now=NOW).lines(numbered(messages)))


def call(arguments: Any, name: str = "tool") -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": "t", "tool": name, "arguments": arguments}]}


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ({"command": "ls -l", "timeout": 5}, "ls -l"),
        ({"path": "src", "pattern": "x  y"}, "x  y  src"),
        ({"file_path": "a", "path": "b", "command": "c"}, "c  a"),
        ({"n": 3, "flag": "on", "deep": {"x": 1}}, "n=3  flag=on"),
        ({"deep": {}}, ""),
        ({}, ""),
        (None, ""),
        ("half {", "half {"),
        ([1, 2], "[1, 2]"),
        ({"command": "one\ntwo"}, "one two"),
    ],
)
def test_a_call_shows_its_most_significant_arguments(arguments: Any, reported: str) -> None:
    (line,) = (line for line in page(call(arguments)) if line.startswith("▸"))
    assert line == f"▸ tool  {reported}".rstrip() + "  ✗ no result"


@pytest.mark.parametrize(
    ("content", "is_error", "lines"),
    [
        ("plain\n", False, ["▸ tool", "  │ plain"]),
        ("", False, ["▸ tool"]),
        ("plain", True, ["▸ tool  ✗ failed", "  │ plain"]),
        ('{"stdout": "a\\nb\\n", "stderr": "", "returncode": 0}', False, ["▸ tool", "  │ a", "  │ b"]),
        (
            '{"stdout": "a\\n", "stderr": "e\\n", "returncode": 2}',
            False,
            ["▸ tool  ✗ exit 2", "  │ a", "  │ e"],
        ),
        ('{"stdout": 5}', False, ["▸ tool", '  │ {"stdout": 5}']),
        ('{"half', False, ["▸ tool", '  │ {"half']),
        ([{"type": "text", "text": "one"}, {"type": "image"}], False, ["▸ tool", "  │ one", "  │ [image]"]),
    ],
)
def test_a_result_is_shown_below_its_call(content: Any, is_error: bool, lines: list[str]) -> None:
    result = {"role": "tool", "tool_call_id": "t", "content": content, "is_error": is_error}
    assert [line for line in page(call({}), result) if line.startswith(("▸", "  │"))] == lines


def test_results_in_another_order_are_shown_below_their_calls() -> None:
    calls: list[dict[str, Any]] = [{"id": name, "tool": name, "arguments": {}} for name in ("a", "b", "c")]
    answers = [{"role": "tool", "tool_call_id": name, "content": f"of {name}"} for name in ("b", "a")]
    lines = page(
        {"role": "assistant", "tool_calls": calls}, *answers, {"role": "assistant", "content": "Done."}
    )
    assert lines[:-1] == ["", "Agent", "▸ b", "  │ of b", "▸ a", "  │ of a", "▸ c", "", "Done."]
    assert lines[-1] == "▸ c  ✗ no result"


def test_a_result_behind_other_messages_is_shown_with_its_call() -> None:
    """As while a sub-agent works, or if a hook writes in between."""
    helped = call({"command": "ls"}, "bash") | {"content": "Looking."}
    inner = {"role": "tool", "tool_call_id": "t", "content": "a.py"}
    records = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "outer", "tool": "task", "arguments": {"command": "look"}}],
        },
        helped,
        inner,
        {"role": "tool", "tool_call_id": "outer", "content": "There is a.py"},
        {"role": "assistant", "content": "Done."},
    ]
    shown = ["Looking.", "▸ bash  ls", "  │ a.py", "▸ task  look", "  │ There is a.py", "", "Done."]
    assert page(*records) == ["", "Agent", "▸ task  look", "", *shown]


def test_a_call_without_a_result_is_marked_when_the_user_speaks_again() -> None:
    records = [call({}), {"role": "assistant", "content": "On."}, {"role": "user", "content": "Stop"}]
    lines = [line for line in page(*records) if not line.startswith("──")]
    assert lines == ["", "Agent", "▸ tool", "", "On.", "▸ tool  ✗ no result", "", "Stop"]


def test_calls_without_an_id_wait_for_no_result() -> None:
    calls = tuple(ToolCall(None, name, {}) for name in ("a", "b", "c"))
    read: list[Item] = [
        Message("assistant", AGENT, calls),
        Message("tool", TOOL, (ToolResult(None, "of a"),)),
    ]
    lines = [line for line in Page(60, full=False, now=NOW).lines(numbered(read)) if line]
    assert lines == ["Agent", "▸ a", "  │ of a", "▸ b", "▸ c"]


def test_results_and_words_in_one_message_of_a_user() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "t", "content": "out"},
        {"type": "text", "text": "Go on."},
    ]
    lines = page(call({}), {"role": "user", "content": content})
    assert lines[2:4] == ["▸ tool", "  │ out"]
    assert lines[-1] == "Go on."


def test_silent_entries_take_one_line_each_unless_all_is_wanted() -> None:
    thoughts = [{"type": "thinking", "thinking": "first\nthought"}, {"type": "thinking"}, "bare"]
    record = {"role": "assistant", "content": thoughts, "thinking_text": "second"}
    reminder = {"role": "user", "content": "<system-reminder>\nbe brief\n</system-reminder>"}
    folded = page(record, reminder)
    assert folded[2:] == [
        "thinking: first thought",
        "thinking: second",
        "bare",
        "hook: <system-reminder> be brief </system-reminder>",
    ]
    full = page(record, reminder, full=True)
    assert full[2:] == [
        "thinking:", "  │ first", "  │ thought", "thinking:", "  │ second", "bare",
        "hook:", "  │ <system-reminder>", "  │ be brief", "  │ </system-reminder>",
    ]  # fmt: skip


def test_a_user_message_without_text_shows_its_parts() -> None:
    assert page({"role": "user", "content": [{"type": "image"}, {"type": "file"}]})[-1] == "[image] [file]"
    assert page({"role": "user"})[-1] == "(no text)"


def test_other_speakers_are_named() -> None:
    lines = page({"role": "system", "content": "Be brief."}, {"role": "critic", "content": "No."})
    assert lines == ["", "System", "Be brief.", "", "critic", "No."]


def test_what_comes_before_the_first_message_shown_is_not_rendered() -> None:
    unread = Message("assistant", AGENT, (Text(cast(str, 7)), ToolCall("t", "bash", {"command": "make"})))
    answer = Message("tool", TOOL, (ToolResult("t", "done"),))
    messages = [Numbered(0, 0, unread, preceding=True), Numbered(1, 0, answer)]
    assert list(Page(80, full=False, now=NOW).lines(messages)) == ["▸ bash  make", "  │ done"]


def test_messages_outside_the_conversation_are_between_two_rules() -> None:
    call = Message("assistant", AGENT, (ToolCall("t1", "bash", {"command": "make"}),))
    left = Message("assistant", AGENT, (ToolCall("t2", "bash", {"command": "ls"}),))
    result = Message("tool", TOOL, (ToolResult("t1", "ok"),))
    read: list[Item] = [call, Aside(left), result]
    page = Page(60, full=False, now=NOW)
    lines = [line for line in page.lines(numbered(read, asides=True)) if line]
    assert [line.strip("╌ ").split("  ")[0] for line in lines] == [
        "Agent", "outside of the conversation", "Agent", "▸ bash", "the conversation continues", "▸ bash", "│ ok",
    ]  # fmt: skip
    assert "✗ no result" in lines[3]
    assert "make" in lines[5]


def drawn(*messages: Message, full: bool = False) -> list[str]:
    items: list[Item] = list(messages)
    return list(Page(80, full=full, now=NOW).lines(numbered(items)))


def test_a_result_in_the_message_of_its_call_belongs_to_it() -> None:
    ran = (ToolCall(None, "bash", {"command": "ls"}), ToolResult(None, "a.txt"))
    found = drawn(Message("assistant", AGENT, (ToolCall("c1", "read", {}),)), Message("user", "harness", ran))
    assert [line for line in found if line.startswith(("▸", "  │"))] == [
        "▸ bash  ls", "  │ a.txt", "▸ read  ✗ no result",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "error",
    [
        "quota is used up",
        {"message": "quota is used up"},
        {"name": "APIError", "data": {"message": "quota is used up"}},
    ],
)
def test_an_error_of_the_model_is_shown(error: Any) -> None:
    assert drawn(Message("assistant", AGENT, (Other("error", error),)))[-1] == "✗ quota is used up"


def test_an_error_of_another_shape_is_shown_as_it_is() -> None:
    assert drawn(Message("assistant", AGENT, (Other("error", {"code": 5}),)))[-1] == '✗ {"code": 5}'


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_long_prompt_of_the_program_is_folded(role: str) -> None:
    prompt = Message(
        role, "harness", (Text("\n".join(f"rule {number} is this one" for number in range(200))),)
    )
    found = drawn(prompt)
    assert "… 188 more lines" in found
    assert len(found) == 15
    assert len(drawn(prompt, full=True)) > 200


def test_parts_of_a_message_that_is_being_written() -> None:
    said = Message("assistant", AGENT, (Text("I look."), ToolCall("t1", "Read", {"path": "a"})))
    more = Message("assistant", AGENT, (ToolCall("t2", "Read", {"path": "b"}),))
    answers = Message("tool", TOOL, (ToolResult("t1", "of a"), ToolResult("t2", "of b")))
    followed = [Numbered(0, 1, said), Numbered(0, 1, more), Numbered(1, 1, answers)]
    shown = list(Page(80, full=False, now=NOW).lines(followed))
    assert shown == ["", "Agent", "I look.", "▸ Read  a", "  │ of a", "▸ Read  b", "  │ of b"]
