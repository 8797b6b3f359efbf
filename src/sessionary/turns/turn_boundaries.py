"""Where turns begin and end, and what one of them holds.

A turn is counted from 1. It begins where a person speaks and goes on to the next time. What stands before the first
word of a person (a system message, a hook's reminder) belongs to the front of turn 1: it has no turn of its own,
and whoever keeps or drops the first turn keeps or drops that with it.

The original counts every message of role ``user``, reminders and Anthropic-shaped results included.
`every_user=True` counts so, for those who were told turn numbers by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessionary.errors import Invalid
from sessionary.turns.messages import (
    REMINDER,
    Message,
    bears_results,
    is_real_user,
    listed,
    text_of,
    tool_calls,
)


def boundaries(messages: Sequence[Any], *, every_user: bool = False) -> list[int]:
    """The index of the user message that begins each turn."""
    return [
        index
        for index, message in enumerate(messages)
        if isinstance(message, Mapping)
        and message.get("role") == "user"
        and (every_user or is_real_user(message))
    ]


def turn_range(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> range:
    """The indices of the messages of a turn, with those before the first turn at the front of turn 1.

    Raises:
        Invalid: there is no such turn.
    """
    starts = _checked(messages, turn, every_user)
    stop = starts[turn] if turn < len(starts) else len(messages)
    return range(starts[turn - 1] if turn > 1 else 0, stop)


def slice_end(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> int:
    """How many messages a conversation has up to the end of that turn.

    Raises:
        Invalid: there is no such turn.
    """
    return turn_range(messages, turn, every_user=every_user).stop


def cut_before(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> list[Any]:
    """The conversation as it was before that turn; of turn 1 nothing is left.

    Raises:
        Invalid: there is no such turn.
    """
    return list(messages[: turn_range(messages, turn, every_user=every_user).start])


def user_text(messages: Sequence[Any], turn: int, *, every_user: bool = False) -> str:
    """What the person said to begin that turn, without the reminders that hooks put beside it.

    Raises:
        Invalid: there is no such turn.
    """
    return _said(messages[_checked(messages, turn, every_user)[turn - 1]])


def turn_summary(
    messages: Sequence[Any], turn: int, max_length: int = 100, *, every_user: bool = False
) -> dict[str, Any]:
    """One turn in a few words, with the fields of the original's `get_turn_summary`.

    Args:
        messages: the conversation.
        turn: which turn, from 1.
        max_length: how many characters of each text; what is longer is cut there and ends in ``...``.
        every_user: count turns as the original does.

    Returns:
        ``turn``, ``user_content``, ``assistant_content`` (the first words of the agent, "" if it said none),
        ``tool_count`` (a call that is stored in a block and in the list counts once), ``message_count``.

    Raises:
        Invalid: there is no such turn.
    """
    starts = boundaries(messages, every_user=every_user)
    if not 1 <= turn <= len(starts):
        raise Invalid(f"Turn {turn} out of range (1-{len(starts)})", hint=_hint(len(starts)))
    within = [messages[index] for index in turn_range(messages, turn, every_user=every_user)]
    answers = [message for message in within if isinstance(message, Mapping)]
    texts = (text_of(message) for message in answers if message.get("role") == "assistant")
    return {
        "turn": turn,
        "user_content": _short(_said(messages[starts[turn - 1]]), max_length),
        "assistant_content": _short(next(filter(None, texts), ""), max_length),
        "tool_count": sum(len(tool_calls(message)) for message in answers),
        "message_count": len(within),
    }


def open_ends(messages: Sequence[Any]) -> list[tuple[int, int | None]]:
    """Where tools have answered and the agent has not: the index of the last result, and of the person who spoke next.

    The second is None at the end of the conversation, where the agent may still be at work. Reminders and
    system messages in between change nothing. A person who speaks in the very message that brings the results
    has answered in the agent's place, as providers allow.
    """
    ends: list[tuple[int, int | None]] = []
    last: int | None = None
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        if message.get("role") == "assistant":
            last = None
        elif bears_results(message):
            last = None if is_real_user(message) else index
        elif last is not None and is_real_user(message):
            ends.append((last, index))
            last = None
    return ends if last is None else [*ends, (last, None)]


def _checked(messages: Sequence[Any], turn: int, every_user: bool) -> list[int]:
    """The boundaries, of which one is that of the turn."""
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
    return f"a person spoke {turns} times; reminders and tool results begin no turn"


def _said(message: Message) -> str:
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
