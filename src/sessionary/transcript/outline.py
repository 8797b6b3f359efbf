"""Outline of a conversation: roles, calls and results without texts, in bounded memory per message.

A check of a gigabyte of messages can neither hold them nor run `diagnose` on each. So of each message only what the
diagnosis needs is kept, usually an id or nothing. While messages follow each other regularly (user, agent, calls,
results, agent), nothing else is checked. `diagnose` runs only on the messages after the last regular turn, and its
findings equal those for the whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sessionary.transcript.messages import CALLS, REMINDER, RESULT, Message, is_real_user, text_of

if TYPE_CHECKING:
    from sessionary.transcript.diagnosis import Finding

Kept = str | tuple[str, ...] | Message
"""The id that a tool message answers, the ids that the agent calls, or a message without its texts."""

THINKING = "thinking"
_TRAFFIC = (RESULT, THINKING, *CALLS)  # blocks that do not belong into a user message

_PERSON: Final[Message] = {"role": "user", "content": "…"}
_HOOK: Final[Message] = {"role": "user", "content": REMINDER}


class Outline:
    """The data that decides whether a conversation can be resumed, in a few bytes per message.

    Attributes:
        turns: number of user messages.
        title: text of the first user message, not shortened; None without one.
    """

    __slots__ = ("_answered", "_called", "_kept", "_open", "_regular", "_spoke", "_start", "title", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self.title: str | None = None
        self._kept: list[Kept] = []
        self._start = 0  # start of the last turn before which everything is regular
        self._regular = True
        self._spoke = False  # a user message is unanswered
        self._answered = False  # a tool result is unanswered by the agent
        self._open: set[str] = set()  # ids of the calls whose results are expected next
        self._called: set[str] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, messages: Iterable[Message]) -> None:
        """Process the next messages. They must consist of plain JSON types, and are not kept."""
        for message in messages:
            role = message.get("role")
            if role == "tool":
                self._tool(message)
            elif role == "assistant":
                self._agent(message)
            elif role == "user":
                self._user(message)
            else:
                self._otherwise(message)

    def findings(self) -> list[Finding]:
        """Return the findings of `diagnose` for the messages so far."""
        if self._regular and not self._open and not self._answered:
            return []
        from sessionary.transcript.diagnosis import diagnose  # imported late: rarely needed

        start = self._start
        if not _ids(self._kept[:start]).isdisjoint(_ids(self._kept[start:])):
            start = 0  # an earlier call is called or answered again
        found = diagnose([_message(kept) for kept in self._kept[start:]])
        return [replace(finding, index=finding.index + start) for finding in found] if start else found

    def _user(self, message: Message) -> None:
        content = message.get("content")
        if "tool_call_id" in message or "tool_calls" in message:
            self._otherwise(message)
        elif type(content) is str:
            if content.lstrip().startswith(REMINDER):
                self._hook()
            else:
                self._person(message)
        elif type(content) is not list:
            self._otherwise(message)
        elif any(type(block) is dict and block.get("type") in _TRAFFIC for block in content):
            self._results(message, content)
        elif is_real_user(message):
            self._person(message)
        else:
            self._hook()

    def _hook(self) -> None:
        self._kept.append(_HOOK)
        if self._open:
            self._regular = False

    def _person(self, message: Message) -> None:
        if self._open or self._answered or self._spoke:
            self._regular = False
        elif self._regular:
            self._start = len(self._kept)
        self._spoke = True
        self._kept.append(_PERSON)
        self._count(message)

    def _count(self, message: Message) -> None:
        self.turns += 1
        if self.title is None:
            self.title = text_of(message).lstrip() or None

    def _agent(self, message: Message) -> None:
        called = _called_in_blocks(message.get("content")) if "tool_call_id" not in message else None
        if called is not None and "tool_calls" in message:
            listed = _called_in_list(message["tool_calls"])
            # Amplifier stores a call in both. Where these differ, `diagnose` sorts out which are one.
            called = listed if not called or called == listed else None
        if called is None:
            self._otherwise(message)
            return
        if self._open:
            self._regular = False
        self._spoke = self._answered = False
        ids = tuple(called)
        self._kept.append(ids)
        if ids:
            self._open = set(ids)
            if len(self._open) < len(ids) or not self._called.isdisjoint(ids):
                self._regular = False
            self._called.update(ids)

    def _tool(self, message: Message) -> None:
        call_id = message.get("tool_call_id")
        if type(call_id) is str and type(message.get("content")) is str and "tool_calls" not in message:
            self._kept.append(call_id)
            self._answer(call_id)
        else:
            self._otherwise(message)

    def _results(self, message: Message, blocks: list[Any]) -> None:
        if not all(map(_is_result, blocks)):
            self._otherwise(message)
            return
        self._kept.append(without_words(message))
        for block in blocks:
            self._answer(block["tool_use_id"])

    def _answer(self, call_id: str) -> None:
        if call_id in self._open:
            self._open.remove(call_id)
        else:
            self._regular = False
        self._spoke = False
        self._answered = True

    def _otherwise(self, message: Message) -> None:
        """Process a message that needs more than its role."""
        self._regular = False
        self._kept.append(without_words(message))
        if is_real_user(message):
            self._count(message)


def _called_in_blocks(content: Any) -> list[str] | None:
    """Return the ids of the calls among an agent's blocks; None if a block needs a closer look."""
    called: list[str] = []
    for block in content if type(content) is list else ():
        if type(block) is not dict:
            continue
        kind = block.get("type")
        if kind in CALLS:
            if type(block.get("id")) is not str:
                return None
            called.append(block["id"])
        elif kind == RESULT or (kind == THINKING and not block.get("thinking")):
            return None
    return called


def _called_in_list(calls: Any) -> list[str] | None:
    """Return the ids of a list of calls; None if it is not a list, or a call has no id."""
    if type(calls) is not list:
        return None
    called: list[str] = []
    for call in calls:
        if type(call) is not dict or type(call.get("id")) is not str:
            return None
        called.append(call["id"])
    return called


def _is_result(block: Any) -> bool:
    return type(block) is dict and block.get("type") == RESULT and type(block.get("tool_use_id")) is str


def _ids(outline: Sequence[Kept]) -> set[str]:
    """Return the ids of all calls and answers in the outline."""
    from sessionary.transcript.matching import parts_of

    ids: set[str] = set()
    for kept in outline:
        if isinstance(kept, str):
            ids.add(kept)
        else:
            ids.update(kept if isinstance(kept, tuple) else [part.call_id for part in parts_of(kept, 0)])
    return ids


def _message(kept: Kept) -> Message:
    """Convert an outline entry to a message."""
    if isinstance(kept, str):
        return {"role": "tool", "tool_call_id": kept}
    if isinstance(kept, tuple):
        return {"role": "assistant", "tool_calls": [{"id": call_id} for call_id in kept]}
    return kept


def without_words(message: Message) -> Message:
    """Return a message that `diagnose` treats like this one, without texts, names and arguments."""
    bare: dict[str, Any] = {key: _word(message[key]) for key in ("role", "tool_call_id") if key in message}
    if "tool_calls" in message:
        bare["tool_calls"] = _bare_calls(message["tool_calls"])
    content = message.get("content")
    if isinstance(content, list):
        bare["content"] = [_bare_block(block) for block in content]
    else:
        bare["content"] = _bare_text(content)
    return bare


def _bare_calls(calls: Any) -> Any:
    """Reduce `tool_calls`: a list of calls, null, or another value, which readers treat differently."""
    if isinstance(calls, list):
        return [_bare_call(call) for call in calls]
    return None if calls is None else False


def _bare_call(call: Any) -> Any:
    return {"id": _word(call.get("id"))} if isinstance(call, dict) else None


def _bare_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return _bare_text(block)
    bare: dict[str, Any] = {key: _word(block[key]) for key in ("type", "id", "tool_use_id") if key in block}
    bare["text"] = _bare_text(block.get("text"))
    bare["thinking"] = "" if block.get("thinking") == "" else None
    bare["signature"] = bool(block.get("signature"))
    return bare


def _bare_text(text: Any) -> str | None:
    """Reduce a text to a reminder or to emptiness, whichever the text is."""
    if not isinstance(text, str):
        return None
    return REMINDER if text.lstrip().startswith(REMINDER) else text[:1] and "…"


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
