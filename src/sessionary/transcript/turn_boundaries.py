"""Boundaries and content of turns.

Turns are counted from 1. A turn begins with a user message and ends before the next one. Messages before the first
user message (a system message, a hook's reminder) belong to turn 1.

The original counts every message of role ``user``, including reminders and Anthropic-shaped results.
`every_user=True` counts in the same way, for callers that use its turn numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sessionary.errors import Invalid
from sessionary.transcript.messages import (
    REMINDER,
    Message,
    bears_results,
    is_real_user,
    listed,
    text_of,
    tool_calls,
)

T = TypeVar("T")


def boundaries(messages: Sequence[Any], *, every_user: bool = False) -> list[int]:
    """Return the index of the user message that begins each turn."""
    return [
        index
        for index, message in enumerate(messages)
        if (type(message) is dict or isinstance(message, Mapping))
        and message.get("role") == "user"
        and (every_user or is_real_user(message))
    ]


def turn_range(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> range:
    """Return the indexes of the messages of a turn; turn 1 includes the messages before it.

    Raises:
        Invalid: the turn does not exist.
    """
    starts = _checked(messages, turn, every_user)
    stop = starts[turn] if turn < len(starts) else len(messages)
    return range(starts[turn - 1] if turn > 1 else 0, stop)


def slice_end(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> int:
    """Return the number of messages up to the end of a turn. Raises Invalid if the turn does not exist."""
    return turn_range(messages, turn, every_user=every_user).stop


def cut_before(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> list[Any]:
    """Return the messages before a turn; [] for turn 1. Raises Invalid if the turn does not exist."""
    return list(messages[: turn_range(messages, turn, every_user=every_user).start])


def user_text(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> str:
    """Return the user's text at the beginning of a turn, without reminders of hooks.

    Raises:
        Invalid: the turn does not exist.
    """
    return _user_text(messages[_checked(messages, turn, every_user)[turn - 1]])


def turn_summary(
    messages: Sequence[Any], turn: int, max_length: int = 100, *, every_user: bool = False
) -> dict[str, Any]:
    """Summarise a turn, with the fields of the original's `get_turn_summary`.

    Args:
        turn: the turn, from 1.
        max_length: characters of each text; a longer text is cut and ends in ``...``.
        every_user: count turns as the original does.

    Returns:
        ``turn``, ``user_content``, ``assistant_content`` (the agent's first text, or ""), ``tool_count`` (a call
        stored in both a block and the list counts once), ``message_count``.

    Raises:
        Invalid: the turn does not exist.
    """
    starts = boundaries(messages, every_user=every_user)
    if not 1 <= turn <= len(starts):
        raise Invalid(f"Turn {turn} out of range (1-{len(starts)})", hint=_hint(len(starts)))
    within = [messages[index] for index in turn_range(messages, turn, every_user=every_user)]
    answers = [message for message in within if isinstance(message, Mapping)]
    texts = (text_of(message) for message in answers if message.get("role") == "assistant")
    return {
        "turn": turn,
        "user_content": _short(_user_text(messages[starts[turn - 1]]), max_length),
        "assistant_content": _short(next(filter(None, texts), ""), max_length),
        "tool_count": sum(len(tool_calls(message)) for message in answers),
        "message_count": len(within),
    }


def open_ends(messages: Sequence[Any]) -> list[tuple[int, int | None]]:
    """Return turns that end with tool results: index of the last result, and of the next user message.

    The second is None at the end of the conversation, where the agent may still be running. Reminders and system
    messages in between are ignored. User text in the message with the results ends the turn, as providers allow.
    """
    ends: list[tuple[int, int | None]] = []
    last: int | None = None
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        person, answers = is_real_user(message), bears_results(message)
        if last is not None and person and not answers:
            ends.append((last, index))
        last = open_end(last, index, message.get("role"), results=answers, person=person)
    return ends if last is None else [*ends, (last, None)]


def open_end(last: T | None, here: T, role: Any, *, results: bool, person: bool) -> T | None:
    """Return the last result that the agent has not continued from, after one more message.

    Args:
        last: that result before the message.
        here: the message.
        role: its role.
        results: it contains results.
        person: the user wrote it.
    """
    if role == "assistant" or person:
        return None
    return here if results else last


def _checked(messages: Sequence[Any], turn: int, every_user: bool) -> list[int]:
    """Return the boundaries, after checking that the turn exists."""
    if turn < 1:
        raise Invalid(f"Turn must be >= 1, got {turn}", hint="turns are counted from 1")
    starts = boundaries(messages, every_user=every_user)
    if not starts:
        raise Invalid("No user messages found in conversation", hint=_hint(0))
    if turn > len(starts):
        message = f"Turn {turn} exceeds max turns ({len(starts)}). Valid range: 1-{len(starts)}"
        raise Invalid(message, hint=_hint(len(starts)))
    return starts


def _hint(turns: int) -> str:
    return f"there are {turns} user messages; reminders and tool results do not begin a turn"


def _user_text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    kept = [block for block in listed(content) if not _is_reminder(block)]
    return text_of({"content": kept})


def _is_reminder(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else block
    return isinstance(text, str) and text.lstrip().startswith(REMINDER)


def _short(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else text[:max_length] + "..."
