"""The searchable texts of a message, whatever shape it is stored in.

Only texts are searched, not the keys around them: a search for "user" does not mean the role. Tool arguments and
results are often JSON; only the texts in them are searched, so "stdout" does not match their keys either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sessionary.codec import Undecodable, decode
from sessionary.model import Message, Text, ToolResult
from sessionary.transcript.messages import text_of

TEXT, THINKING, CALL, RESULT, TITLE = PARTS = ("text", "thinking", "call", "result", "title")


class Piece(NamedTuple):
    """A text of a message.

    Attributes:
        part: ``text``, ``thinking``, ``call`` (tool arguments), ``result`` (tool result) or ``title`` (of the session).
        tool: the name of the called tool; None for other parts.
        text: the text.
    """

    part: str
    tool: str | None
    text: str


def pieces(message: Message, *, failed: bool = False) -> Iterator[Piece]:
    """Yield the texts of a message in reading order. Only tool arguments and failed results may be empty.

    Args:
        message: the message.
        failed: only the results of tools that failed.
    """
    if failed:
        yield from (Piece(RESULT, None, _result(one)) for one in message.results if one.is_error)
        return
    for thought in message.thoughts:
        yield Piece(THINKING, None, thought)
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text) and part.text)
    if text:
        yield Piece(TEXT, None, text)
    for call in message.calls:
        yield Piece(CALL, call.name, _inner(call.arguments))
    for answer in message.results:
        if text := _result(answer):
            yield Piece(RESULT, None, text)


def _result(answer: ToolResult) -> str:
    stored = answer.stored
    # Not `answer.text`: it contains placeholders such as "[image]".
    return _inner(stored if isinstance(stored, dict) else text_of({"content": stored}))


def _inner(value: Any) -> str:
    """Return all texts in a value, joined; a text that is JSON itself counts as its texts."""
    if isinstance(value, str):
        if not value.lstrip().startswith(("{", "[")):
            return value
        try:
            value = decode(value.encode("utf-8", "surrogatepass"))
        except Undecodable:
            return str(value)
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, in order. Not recursive: values may be nested to any depth."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo += reversed(value.values())
        elif isinstance(value, list):
            todo += reversed(value)
