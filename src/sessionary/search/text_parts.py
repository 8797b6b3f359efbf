"""What a message says, piece by piece, whatever shape it is stored in: the text that a search looks into.

Only text is looked at, never the keys around it: nobody who looks for "user" means the role of every other message.
Tools are given objects and answer with JSON more often than not; of those only the texts inside count, so that
"stdout" finds no more than it should either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.turns import results, text_of, tool_calls

TEXT, THINKING, CALL, RESULT = PARTS = ("text", "thinking", "call", "result")


class Piece(NamedTuple):
    """One text of a message.

    Attributes:
        part: ``text`` (what is said), ``thinking``, ``call`` (what a tool is given) or ``result`` (what it answered).
        tool: the name of the tool that is called; None elsewhere.
        text: the words.
    """

    part: str
    tool: str | None
    text: str


def pieces(message: Mapping[str, Any]) -> Iterator[Piece]:
    """The texts of a message in the order in which it is read. Only what a tool is given may be empty."""
    for thought in _thoughts(message):
        yield Piece(THINKING, None, thought)
    answers = results(message)
    is_answer = bool(answers) and (message.get("role") == "tool" or "tool_call_id" in message)
    if not is_answer and (text := text_of(message)):
        yield Piece(TEXT, None, text)
    for call in tool_calls(message):
        yield Piece(CALL, call.name, _inner(call.arguments))
    for answer in answers:
        stored = answer.stored
        # Not `answer.text`: it says "[image]" where there is one, which nobody has written.
        if text := _inner(stored if isinstance(stored, dict) else text_of({"content": stored})):
            yield Piece(RESULT, None, text)


def _thoughts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(block.get("thinking"), str):
            yield block["thinking"]
    if isinstance(message.get("thinking_text"), str):
        yield message["thinking_text"]


def _inner(value: Any) -> str:
    """All texts in a value, one after the other; a text that is JSON itself counts as what it holds."""
    if isinstance(value, str):
        if not value.lstrip().startswith(("{", "[")):
            return value
        try:
            value = decode(value.encode("utf-8", "surrogatepass"))
        except Undecodable:
            return str(value)
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, in order. No recursion: values are nested as deeply as their writer liked."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo += reversed(value.values())
        elif isinstance(value, list):
            todo += reversed(value)
