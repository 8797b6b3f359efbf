"""A conversation without its words: who spoke, which calls were made and answered, in which order.

Whoever checks a gigabyte of messages can neither hold them, nor afford to ask of each what `diagnose` asks. So of each
message only that is kept which the diagnosis looks at, mostly an id or nothing. And while a message follows the
last one as it should (a person, the agent, its calls, their results, the agent again) no more than that is asked. The
diagnosis itself is left to `diagnose`, and concerns only what comes after the last turn up to which all was well: what
it says of the outline is what it would say of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sessionary.turns.messages import CALLS, REMINDER, RESULT, Message, is_real_user, text_of

if TYPE_CHECKING:
    from sessionary.turns.diagnosis import Finding

Kept = str | tuple[str, ...] | Message
"""The id that a tool's message answers, the ids that the agent calls, or a message without its words."""

THINKING = "thinking"
_TRAFFIC = (RESULT, THINKING, *CALLS)  # what has no place among a person's words

_PERSON: Final[Message] = {"role": "user", "content": "…"}
_HOOK: Final[Message] = {"role": "user", "content": REMINDER}


class Outline:
    """What decides whether a conversation can be resumed, in some bytes for each message.

    Attributes:
        turns: how often a person spoke.
        title: the first words of a person, not yet shortened; None if nobody spoke.
    """

    __slots__ = ("_answered", "_called", "_kept", "_open", "_regular", "_spoke", "_start", "title", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self.title: str | None = None
        self._kept: list[Kept] = []
        self._start = 0  # where the last turn begins up to which nothing is wrong
        self._regular = True
        self._spoke = False  # a person did, and was not answered
        self._answered = False  # a tool did, and the agent has said nothing to that
        self._open: set[str] = set()  # the calls whose results are awaited here
        self._called: set[str] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, messages: Iterable[Message]) -> None:
        """Take the next messages into account. They must be made of JSON's own types, and are not kept."""
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
        """What `diagnose` finds in the messages so far."""
        if self._regular and not self._open and not self._answered:
            return []
        from sessionary.turns.diagnosis import diagnose  # nearly every list and check does without it

        start = self._start
        if not _ids(self._kept[:start]).isdisjoint(_ids(self._kept[start:])):
            start = 0  # a call from before is called or answered once more
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
        """A message about which there is more to ask than who speaks."""
        self._regular = False
        self._kept.append(without_words(message))
        if is_real_user(message):
            self._count(message)


def _called_in_blocks(content: Any) -> list[str] | None:
    """The ids of the calls among an agent's blocks; None if something there is to be asked about."""
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
    """The ids of the calls in a list of them; None if it is none, or one has no id."""
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
    """The ids of all calls that are made or answered there."""
    from sessionary.turns.matching import parts_of

    ids: set[str] = set()
    for kept in outline:
        if isinstance(kept, str):
            ids.add(kept)
        else:
            ids.update(kept if isinstance(kept, tuple) else [part.call_id for part in parts_of(kept, 0)])
    return ids


def _message(kept: Kept) -> Message:
    """What is kept of a message, as a message."""
    if isinstance(kept, str):
        return {"role": "tool", "tool_call_id": kept}
    if isinstance(kept, tuple):
        return {"role": "assistant", "tool_calls": [{"id": call_id} for call_id in kept]}
    return kept


def without_words(message: Message) -> Message:
    """A message that `diagnose` takes for the same as this one, without its texts, names and arguments."""
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
    """A list of calls, null, or something else, which are three things to a reader."""
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
    """A text that is a reminder, or empty, where the other is."""
    if not isinstance(text, str):
        return None
    return REMINDER if text.lstrip().startswith(REMINDER) else text[:1] and "…"


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
