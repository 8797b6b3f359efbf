"""Comparison of two conversations: two sessions, or branches of one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile
from typing import Any

from sessionary.codec import encode_line, sanitize
from sessionary.errors import Invalid
from sessionary.layouts.base import Layout
from sessionary.model import NO_MODEL, Aside, Item, Message, SessionRef, ToolCall
from sessionary.transcript.fold import Fold, short_title
from sessionary.transcript.history_messages import begins_turn
from sessionary.workspace.prices import Prices
from sessionary.workspace.spending import Spending

_FILE_KEYS = frozenset(
    "path file_path filePath file filename notebook_path notebookPath target_file absolute_path".split()
)
_IN_PATCH = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_PATCH = "*** Begin Patch"


@dataclass(slots=True)
class Side:
    """The totals of one conversation.

    Attributes:
        ref: the session.
        branch: 0 for the session; n for its nth branch that was left, from where the session began.
        title: its title.
        turns, messages: their numbers.
        errors: the number of tool results that are errors.
        tools: how often each tool was called.
        files: in how many calls the arguments name each file; relative to the folder that the agent worked in.
        models: the models that answered, sorted.
        spending: tokens and cost; of a session those of all its branches.
    """

    ref: SessionRef
    branch: int
    title: str | None = None
    turns: int = 0
    messages: int = 0
    errors: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    models: list[str] = field(default_factory=list)
    spending: Spending = field(default_factory=Spending)


@dataclass(slots=True)
class Comparison:
    """Two conversations.

    Attributes:
        a, b: what each adds up to.
        equal_turns: how many turns are equal from the beginning.
    """

    a: Side
    b: Side
    equal_turns: int


def compare(
    one: tuple[Layout, SessionRef, int], other: tuple[Layout, SessionRef, int], prices: Prices
) -> Comparison:
    """Compare two conversations; see `Workspace.diff`."""
    (a, turns), (b, others) = _side(*one, prices), _side(*other, prices)
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(turns, others, strict=False))
    return Comparison(a, b, sum(1 for _ in equal))


def _side(layout: Layout, ref: SessionRef, branch: int, prices: Prices) -> tuple[Side, list[bytes]]:
    """The totals of a conversation, and a digest of each of its turns."""
    side, fold, turns = Side(ref, branch), Fold(), _Turns()
    items = layout.read(ref)
    for item in _branch(ref, items, branch) if branch else items:
        fold.take(item)
        if isinstance(item, Message):
            turns.take(item)
            side.tools.update(call.name for call in item.calls)
            for call in item.calls:
                side.files.update(set(files_of(call)))
            side.errors += sum(result.is_error for result in item.results)
    header = layout.header(ref, fold)
    side.title = header.title or short_title(fold.fact("title")) or fold.title
    folder = header.cwd or fold.fact("cwd")
    if folder:
        lead = folder.rstrip("/") + "/"
        side.files = Counter({name.removeprefix(lead): count for name, count in side.files.items()})
    side.turns, side.messages = fold.turns, fold.messages
    for one in fold.timed_usage():
        side.spending.add(one.usage, prices.rates(one.model, one.quarter, one.context))
    side.models = sorted({one.model for one in fold.timed_usage()} - {NO_MODEL})
    return side, turns.digests()


def _branch(ref: SessionRef, items: Iterator[Item], wanted: int) -> Iterator[Item]:
    """The messages of a branch that was left: those before it, and its own; and all other items.

    A branch is a run of messages outside of the conversation. Another one begins with a message that has the parent of
    the first one. A record that is not a message begins none.

    Raises:
        Invalid: there are not so many branches.
    """
    count, first, inside = 0, None, False
    for item in items:
        if isinstance(item, Aside) and (inside or item.message.role is not None):
            parent = item.message.parent
            if not inside or (parent is not None and parent == first):
                count, first, inside = count + 1, parent, True
            if count == wanted:
                yield item.message
        elif isinstance(item, Message):
            inside = False
            if count < wanted:
                yield item
        elif not isinstance(item, Aside):
            yield item
    if count < wanted:
        what = "no branch was" if not count else f"{count} branches were" if count > 1 else "1 branch was"
        hint = f"`sessionary show {ref.session_id} --branches` shows what was left"
        raise Invalid(f"{ref.session_id}: {what} left", operation="diff", session=ref.session_id, hint=hint)


class _Turns:
    """Digests of turns, of what is said and done in them, not of times and ids."""

    def __init__(self) -> None:
        self._done: list[bytes] = []
        self._turn = blake2b(digest_size=16)
        self._any = False

    def take(self, message: Message) -> None:
        if begins_turn(message) and self._any:
            self._done.append(self._turn.digest())
            self._turn = blake2b(digest_size=16)
        self._any = self._any or begins_turn(message)
        calls = [[call.name, call.arguments] for call in message.calls]
        results = [result.stored for result in message.results]
        self._turn.update(encode_line(sanitize([message.role, message.text, calls, results])))

    def digests(self) -> list[bytes]:
        return [*self._done, self._turn.digest()] if self._any else []


def files_of(call: ToolCall) -> Iterator[str]:
    """The files that the arguments of a call name, and those of a patch in them."""
    todo: list[Any] = [call.arguments]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            yield from (
                one for key, one in value.items() if key in _FILE_KEYS and isinstance(one, str) and one
            )
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and _PATCH in value:
            yield from (found[1] or found[2] for found in _IN_PATCH.finditer(value))
