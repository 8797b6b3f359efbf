"""The abandoned branches of a conversation as a tree, each with its start.

Stores state the parent of a message, and not all by the id of a message. So two messages with one parent are
taken for the beginnings of two branches; a message outside of the conversation whose parent is unknown follows the one
before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sessionary.export.wording import one_line
from sessionary.model import PERSON, TOOL
from sessionary.transcript.ranges import spans_of
from sessionary.transcript.typed import Numbered


@dataclass(slots=True)
class Branch:
    """Messages outside of the conversation that follow one another.

    Attributes:
        number: from 1; 0 is the conversation.
        after: the number of the message that it follows; None for the beginning of the session.
        turn: the turn of the conversation in which it begins.
        messages: the numbers of its messages.
        title: its first prompt, else its first words.
        time: that of its first message.
    """

    number: int
    parent: int
    after: int | None
    turn: int
    messages: list[int] = field(default_factory=list)
    title: str = ""
    time: Any = None
    has_prompt: bool = False


def branches_of(found: Iterable[Numbered]) -> list[Branch]:
    """The branches of a session, in the order in which they are stored; the first is the conversation itself.

    Args:
        found: all messages, in the order of the store.
    """
    growing = _Growing()
    for at, one in enumerate(found):
        growing.take(at, one)
    return growing.branches


class _Growing:
    def __init__(self) -> None:
        self.branches = [Branch(0, 0, None, 0)]
        self._owner: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._before: dict[str, int | None] = {}
        self._line: int | None = None
        self._aside: int | None = None

    def take(self, at: int, one: Numbered) -> None:
        if not one.outside:
            after, self._line, self._aside, branch = self._line, at, None, self.branches[0]
        elif one.message.role is None and self._aside is None:
            return  # a record that is not a message begins no branch
        else:
            after = self._after(one)
            branch = self._branch(after, one)
            self._aside = at
        message = one.message
        branch.messages.append(at)
        self._owner[at] = branch.number
        if message.parent is not None:
            self._before.setdefault(message.parent, after)
        if message.id is not None:
            self._by_id[message.id] = at
        speaks = message.origin == PERSON
        if message.text and (not branch.title or (speaks and not branch.has_prompt)):
            branch.title, branch.has_prompt = one_line(message.text), speaks
        branch.time = branch.time or message.time

    def _after(self, one: Numbered) -> int | None:
        """The number of the message that one outside of the conversation follows."""
        message, latest = one.message, self._line if self._aside is None else self._aside
        if message.parent is None or message.origin == TOOL:
            return latest
        return self._by_id.get(message.parent, self._before.get(message.parent, latest))

    def _branch(self, after: int | None, one: Numbered) -> Branch:
        """The branch that a message outside of the conversation continues, or a new one."""
        owner = 0 if after is None else self._owner[after]
        branch = self.branches[owner]
        if owner and branch.messages[-1] == after:
            return branch
        made = Branch(len(self.branches), owner, after, one.turn)
        self.branches.append(made)
        return made


def shown_by(branches: list[Branch], number: int) -> list[tuple[int, int]]:
    """The messages from the beginning of the session to the end of a branch, as ranges of their numbers."""
    wanted: list[int] = []
    limit: int | None = None
    while True:
        branch = branches[number]
        wanted += (
            branch.messages if limit is None else branch.messages[: bisect_right(branch.messages, limit)]
        )
        if not number:
            break
        number, limit = branch.parent, -1 if branch.after is None else branch.after
    return spans_of(sorted(wanted))


def document_of(branches: list[Branch]) -> list[dict[str, Any]]:
    """The branches as JSON; of each what it shows."""
    return [
        {
            "number": one.number,
            "parent": one.parent if one.number else None,
            "after": one.after,
            "turn": one.turn,
            "messages": len(one.messages),
            "title": one.title,
            "time": one.time,
            "shown": shown_by(branches, one.number),
        }
        for one in branches
    ]
