"""Rebuilding of a conversation with a few changes; unchanged messages stay the same objects.

Changes are collected in a plan, by position, and carried out in one pass. Only this module decides where a result
goes: directly behind the message with the call, after the results that are there already. A result block is added to
the last message with such blocks, because providers expect all answers of one message together. A result message goes
before a message that also contains user text, because behind that it would come too late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessionary.transcript.messages import (
    TEXT,
    Message,
    bears_results,
    block_calls,
    entry_calls,
    holds_more,
    is_result,
    is_result_block,
    listed,
)
from sessionary.transcript.synthetic import Words, closing
from sessionary.transcript.turn_boundaries import open_ends

_THINKING = ("thinking", "redacted_thinking", "reasoning")


@dataclass(frozen=True, slots=True)
class Row:
    """A message of the conversation being built, and the index of its source, or of the message that it belongs to.

    `made` is True for synthetic messages, and for messages that contain a synthetic result.
    """

    index: int
    message: Message
    made: bool = False


@dataclass(slots=True)
class Edit:
    """The changes of one message.

    Attributes:
        gone: remove the whole message.
        results_out: indexes of the blocks to remove.
        result_ids: new ids of answers, by block; None is the message itself.
        call_ids: new ids of calls, by old id and `Call.nth`; None removes the call.
    """

    gone: bool = False
    results_out: set[int] = field(default_factory=set)
    result_ids: dict[int | None, str] = field(default_factory=dict)
    call_ids: dict[tuple[str, int], str | None] = field(default_factory=dict)

    @property
    def removes(self) -> bool:
        """True if a part of the message is removed."""
        return bool(self.results_out) or None in self.call_ids.values()


@dataclass(slots=True)
class Additions:
    """Results to insert behind one message: as messages, and as blocks."""

    rows: list[Row] = field(default_factory=list)
    blocks: list[tuple[dict[str, Any], bool]] = field(default_factory=list)  # True: synthetic


@dataclass(slots=True)
class Plan:
    """All changes, by index of the message."""

    edits: dict[int, Edit] = field(default_factory=dict)
    additions: dict[int, Additions] = field(default_factory=dict)

    def edit(self, index: int) -> Edit:
        """Return the changes of a message, to be extended."""
        return self.edits.setdefault(index, Edit())

    def behind(self, index: int) -> Additions:
        """Return the results behind a message, to be extended."""
        return self.additions.setdefault(index, Additions())


def rebuild(messages: Sequence[Any], ends: Mapping[int, int], plan: Plan) -> tuple[list[Row], list[int]]:
    """Carry out the plan.

    Args:
        ends: `Matching.ends` of it.
        plan: the changes.

    Returns:
        The new conversation, and the indexes of the messages that were removed because nothing was left of them.
    """
    rows: list[Row] = []
    emptied: list[int] = []
    index = 0
    while index < len(messages):
        run = range(index + 1, ends.get(index, index + 1))
        kept = []
        for place in (index, *run):
            edit = plan.edits.get(place)
            if edit is None:
                kept.append(Row(place, messages[place]))
            elif not edit.gone:
                message = edited(messages[place], edit)
                if edit.removes and says_nothing(message):
                    emptied.append(place)
                else:
                    kept.append(Row(place, message))
        head = kept[:1] if kept and kept[0].index == index else []
        rows += head + _joined(index, kept[len(head) :], plan.additions.get(index))
        index = run.stop
    return rows, emptied


def _joined(index: int, run: list[Row], additions: Additions | None) -> list[Row]:
    """Merge the results behind message `index` with the additional ones."""
    if additions is None:
        return run
    run, more = list(run), list(additions.rows)
    if additions.blocks:
        blocks = [block for block, _made in additions.blocks]
        made = any(made for _block, made in additions.blocks)
        host = next((at for at in reversed(range(len(run))) if _hosts_blocks(run[at].message)), None)
        if host is None:
            more.append(Row(index, {"role": "user", "content": blocks}, made))
        else:
            run[host] = Row(run[host].index, _with_blocks(run[host].message, blocks), made)
    end = (
        len(run) - 1
        if run and (holds_more(run[-1].message) or not bears_results(run[-1].message))
        else len(run)
    )
    return [*run[:end], *more, *run[end:]]


def _hosts_blocks(message: Message) -> bool:
    return not is_result(message) and any(map(is_result_block, listed(message.get("content"))))


def _with_blocks(message: Message, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    content = message["content"]
    behind = 1 + max(number for number, block in enumerate(content) if is_result_block(block))
    return {**message, "content": [*content[:behind], *blocks, *content[behind:]]}


def edited(message: Message, edit: Edit) -> dict[str, Any]:
    """Return the message with the changes; a list that loses its last call is removed."""
    changed = dict(message)
    if None in edit.result_ids:
        changed["tool_call_id"] = edit.result_ids[None]
    if isinstance(content := message.get("content"), list):
        changed["content"] = _edited_blocks(content, edit)
    if edit.call_ids and isinstance(calls := message.get("tool_calls"), list):
        changed["tool_calls"] = _edited_calls(calls, edit)
        if not changed["tool_calls"]:
            del changed["tool_calls"]
    return changed


def _edited_blocks(content: list[Any], edit: Edit) -> list[Any]:
    seen: Counter[str] = Counter()
    kept = []
    for number, block in enumerate(content):
        if number in edit.results_out:
            continue
        call_id = block_calls(block)
        if call_id is not None:
            new = edit.call_ids.get((call_id, seen[call_id]), call_id)
            seen[call_id] += 1
            if new is not None:
                kept.append(block if new == call_id else {**block, "id": new})
        elif number in edit.result_ids:
            kept.append({**block, "tool_use_id": edit.result_ids[number]})
        else:
            kept.append(block)
    return kept


def _edited_calls(calls: list[Any], edit: Edit) -> list[Any]:
    seen: Counter[str] = Counter()
    kept = []
    for entry in calls:
        call_id = entry_calls(entry)
        if call_id is None:
            kept.append(entry)
            continue
        new = edit.call_ids.get((call_id, seen[call_id]), call_id)
        seen[call_id] += 1
        if new is not None:
            kept.append(entry if new == call_id else {**entry, "id": new})
    return kept


def says_nothing(message: Message) -> bool:
    """True if a message has neither calls nor text left; thinking alone does not count."""
    if message.get("tool_calls"):
        return False
    content = message.get("content")
    if isinstance(content, list):
        return all(map(_is_silent, content))
    return content is None or (isinstance(content, str) and not content.strip())


def _is_silent(block: Any) -> bool:
    if isinstance(block, str):
        return not block.strip()
    if not isinstance(block, dict):
        return block is None
    text = block.get("text")
    if block.get("type") in TEXT:
        return text is None or (isinstance(text, str) and not text.strip())
    return block.get("type") in _THINKING


def closed(
    rows: list[Row], words: Words, *, made_only: bool = False, at_end: bool = False
) -> tuple[list[Row], list[int]]:
    """Add a closing text to every turn that ends with tool results before the next user message.

    Args:
        rows: the conversation.
        words: the text.
        made_only: only where the last result is synthetic.
        at_end: also at the end of the conversation.

    Returns:
        The conversation, and `Row.index` of each result that got a closing text.
    """
    ends: dict[int, int] = {}
    for last, following in open_ends([row.message for row in rows]):
        if (following is not None or at_end) and (rows[last].made or not made_only):
            ends[len(rows) if following is None else following] = rows[last].index
    out: list[Row] = []
    for place in range(len(rows) + 1):
        if place in ends:
            out.append(Row(ends[place], closing(words), True))
        out += rows[place : place + 1]
    return out, list(ends.values())
