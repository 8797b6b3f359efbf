"""The summary of a conversation, folded from its messages: counts, title, times, usage, calls without a result."""

from __future__ import annotations

from datetime import datetime

from sessionary.model import PERSON, Message, Problem, Severity, Usage

TITLE = 200
_NO_MODEL = "(not named)"


class Fold:
    """What the messages of one conversation add up to.

    Attributes:
        messages: how many there are.
        turns: how many turns, each begun by the user.
        title: the first words of the user, on one line; None without any.
        created: the time of the first message that bears one.
        updated: the latest time of a message.
        usage: the usage by model; of messages with one id the last one counts.
    """

    def __init__(self) -> None:
        self.messages = 0
        self.turns = 0
        self.title: str | None = None
        self.created: datetime | None = None
        self.updated: datetime | None = None
        self.usage: dict[str, Usage] = {}
        self._calls: dict[str, Message] = {}
        self._last: Message | None = None

    def take(self, message: Message) -> None:
        """Add the next message."""
        self.messages += 1
        self._last = message
        if message.origin == PERSON:
            self.turns += 1
            self.title = self.title or short_title(message.text)
        if message.time is not None:
            self.created = self.created or message.time
            self.updated = max(self.updated or message.time, message.time)
        if message.usage is not None:
            model = message.model or _NO_MODEL
            self.usage[model] = self.usage.get(model, Usage()).plus(message.usage)
        for result in message.results:
            self._calls.pop(result.call_id or "", None)
        for call in message.calls:
            if call.call_id:
                self._calls[call.call_id] = message

    def unanswered(self) -> list[Problem]:
        """A problem for each call without a result, but those of the last message: its tools may be at work."""
        return [
            Problem(
                "orphaned_call",
                Severity.stops_resume,
                message.place.path or "",
                message.place.line,
                message.place.byte,
                f"the call {call_id} has no result: some agents refuse to go on from there",
                "resume the session in its agent, which may add a result",
            )
            for call_id, message in self._calls.items()
            if message is not self._last
        ]


def short_title(text: str | None) -> str | None:
    """A text as a title: on one line, with an ellipsis for what is more than anybody reads; None for an empty one."""
    words = " ".join((text or "")[:TITLE].split())
    return words + ("…" if len(text or "") > TITLE else "") if words else None
