"""Which texts of a message are looked into."""

from typing import Any

import pytest

from sessionary.search import Piece, pieces
from sessionary.transcript.typed import message_of


def found(**message: Any) -> list[tuple[str, str | None, str]]:
    return [(piece.part, piece.tool, piece.text) for piece in pieces(message_of(message))]


def test_what_is_said() -> None:
    assert found(role="user", content="Hello") == [("text", None, "Hello")]
    blocks = [
        {"type": "text", "text": "One"},
        {"type": "image", "data": "QUJD"},
        {"type": "text", "text": "two"},
    ]
    assert found(role="assistant", content=blocks) == [("text", None, "One\ntwo")]


def test_thinking() -> None:
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}]
    assert found(role="assistant", content=blocks, thinking_text="Hm, hm.") == [
        ("thinking", None, "Hm."),
        ("thinking", None, "Hm, hm."),
    ]


@pytest.mark.parametrize(
    "call",
    [
        {"id": "1", "tool": "bash", "arguments": {"command": "make", "more": ["a", {"b": "c"}], "n": 5}},
        {
            "id": "1",
            "function": {"name": "bash", "arguments": '{"command": "make", "more": ["a", {"b": "c"}]}'},
        },
    ],
)
def test_what_a_tool_is_given(call: dict[str, Any]) -> None:
    assert found(role="assistant", tool_calls=[call]) == [("call", "bash", "make\na\nc")]


def test_a_call_in_a_block() -> None:
    block = {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a.py"}}
    assert found(role="assistant", content=[block]) == [("call", "read", "a.py")]


def test_a_call_that_is_given_nothing_is_still_a_call() -> None:
    assert found(role="assistant", tool_calls=[{"id": "1", "tool": "ls"}]) == [("call", "ls", "")]


def test_what_a_tool_answers() -> None:
    assert found(role="tool", tool_call_id="1", content="plain") == [("result", None, "plain")]
    json_text = '{"stdout": "1 failed\\n", "returncode": 1}'
    assert found(role="tool", tool_call_id="1", content=json_text) == [("result", None, "1 failed\n")]
    assert found(role="tool", content={"stdout": "x", "stderr": "y"}) == [("result", None, "x\ny")]
    assert found(role="tool", content="{broken") == [("result", None, "{broken")]


def test_an_answer_in_a_block_beside_text() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "done"}]}]
    assert found(role="user", content=[*blocks, {"type": "text", "text": "Go on"}]) == [
        ("text", None, "Go on"),
        ("result", None, "done"),
    ]


def test_a_picture_is_not_text() -> None:
    blocks = [{"type": "image", "source": {"data": "QUJD"}}, {"type": "text", "text": "a mug"}, "blue"]
    assert found(role="tool", tool_call_id="1", content=blocks) == [("result", None, "a mug\nblue")]


def test_empty_input_gives_no_piece() -> None:
    assert found(role="assistant", content=None) == []
    assert found(role="tool", content="") == []


def test_no_depth_is_too_deep() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert list(pieces(message_of({"role": "tool", "content": {"a": deep}}))) == [
        Piece("result", None, "bottom")
    ]
