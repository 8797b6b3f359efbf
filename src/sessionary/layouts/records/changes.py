"""Repair, rewind, undo and fork of the sessions of agent frameworks.

A rewind appends a record that drops items and sets the tables back to what they were before these were added; nothing
is erased, and an undo appends a record that brings them back. A repair moves damaged lines, which no reader uses, into
a file beside the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from sessionary.disk import atomic
from sessionary.disk.fs import Fs
from sessionary.disk.journal import is_json_text
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Invalid, NotFound, Unsupported
from sessionary.layouts.changing import Forked, MovedAside, Rewinding
from sessionary.layouts.records.journal import LOCK_SUFFIX, Change, RecordJournal, decoded
from sessionary.layouts.records.messages import message_from
from sessionary.layouts.records.names import CLAUDE, IMPORT, LANGGRAPH, PYDANTIC, framework_of, parts_of
from sessionary.layouts.records.relabel import begin_of
from sessionary.layouts.records.state import SNAPSHOT, Ranges, State
from sessionary.layouts.records.undoing import renumbered, rewinding, stored_lines, tables_between, undoing
from sessionary.layouts.records.values import decode_value
from sessionary.layouts.records.view import shown_in
from sessionary.model import Place, SessionRef
from sessionary.transcript.history_messages import begins_turn

_OWN_WAY = {
    (
        "rewind",
        LANGGRAPH,
    ): "run the graph from an earlier checkpoint: pass its checkpoint_id in the configuration",
    ("rewind", PYDANTIC): "continue from an earlier entry: pass its id as the head of the conversation",
    ("fork", LANGGRAPH): "`DurableSaver.copy_thread` copies a thread",
    ("fork", PYDANTIC): "fork the conversation in the program: `DurableConversationStore` stores the fork",
    ("fork", CLAUDE): "resume it with `fork_session=True`: the SDK gives all entries their new ids",
}
"""The framework's own operation, by operation and framework; ours would leave its records inconsistent."""


def rewind(fs: Fs, ref: SessionRef, turn: int, *, dry_run: bool) -> Rewinding:
    """As `Reverts.rewind`."""
    journal = _opened(fs, ref, "rewind")
    found: list[Rewinding] = []

    def decide(state: State) -> Change | None:
        messages, starts = _conversation(fs, ref, state)
        cut = _cut(ref, starts, turn, state)
        kept = sum(number < cut for number in messages)
        done = Rewinding(min(turn, len(starts)), len(starts), kept, len(messages) - kept)
        found.append(done)
        if dry_run or not done.messages_dropped:
            return None
        return _dropped(fs, ref, state, cut, done.to_turn)

    with journal:
        if dry_run:
            journal.read(decide)
        else:
            journal.change(decide)
    return found[0]


def fork(fs: Fs, ref: SessionRef, turn: int | None, session_id: str | None, *, dry_run: bool) -> Forked:
    """As `Changes.fork`."""
    with _opened(fs, ref, "fork") as source:
        state = source.state()
    messages, starts = _conversation(fs, ref, state)
    to_turn = len(starts) if turn is None else turn
    cut = _cut(ref, starts, to_turn, state)
    taken = {number: item for number, item in state.items.items() if number < cut}
    tables = renumbered(
        _tables_before(fs, ref, state, cut), set(), {number: index for index, number in enumerate(taken)}
    )
    count = sum(number < cut for number in messages)
    target = RecordJournal.with_fs(
        fs, *_place(fs, ref), session_id or str(uuid4()), _scope(fs, ref), parent=ref.session_id
    )
    done = Forked(target.session_id, target.path, to_turn, len(starts), count)
    if dry_run:
        return done
    names = {number: key for key, number in state.keys.items()}

    def decide(there: State) -> Change:
        if there.exists:
            raise AlreadyExists(f"Session '{target.session_id}' exists already", path=target.path)
        keys = [names.get(number) for number in taken] if names else ()
        return Change(list(taken.values()), keys, set=tables)

    with target:
        target.change(decide)
    return done


def refused(fs: Fs, ref: SessionRef) -> frozenset[str]:
    """As `Reverts.refused`."""
    framework = _framework(fs, ref)
    return frozenset(operation for operation, named in _OWN_WAY if named == framework)


def repair(fs: Fs, ref: SessionRef, *, dry_run: bool) -> MovedAside:
    """As `Changes.repair`."""
    lock = FileLock(ref.locator + LOCK_SUFFIX, fs)
    with lock.held(note="repair"):
        damaged = [
            (number, line)
            for number, line in enumerate(stored_lines(fs, ref.locator), 1)
            if not _is_whole(line)
        ]
        if dry_run or not damaged:
            return MovedAside([(number, len(line)) for number, line in damaged], None)
        data = b"".join(line + b"\n" for _, line in damaged)
        aside = atomic.save_aside(ref.locator, "corrupt", data, fs=fs)
        atomic.replace(ref.locator, _whole_lines(fs, ref.locator), fs=fs)
    lock.close()
    return MovedAside([(number, len(line)) for number, line in damaged], aside)


def _whole_lines(fs: Fs, path: str) -> Iterator[bytes]:
    return (line + b"\n" for line in stored_lines(fs, path) if _is_whole(line))


def _is_whole(line: bytes) -> bool:
    return decoded(line) is not None or is_json_text(line)


def _opened(fs: Fs, ref: SessionRef, operation: str) -> RecordJournal:
    framework, session_id = _framework(fs, ref), ref.session_id
    if (hint := _OWN_WAY.get((operation, framework))) is not None:
        raise Unsupported(
            f"`sessionary {operation}` does not support sessions of {framework}: {session_id}",
            session=session_id,
            path=ref.locator,
            hint=hint,
        )
    return RecordJournal.with_fs(fs, *_place(fs, ref), _whole_id(fs, ref), _scope(fs, ref))


def _begin(fs: Fs, ref: SessionRef) -> dict[str, Any]:
    return begin_of(fs, ref.locator) or {}


def _framework(fs: Fs, ref: SessionRef) -> str:
    return framework_of(ref.locator) or str(_begin(fs, ref).get("framework") or "")


def _place(fs: Fs, ref: SessionRef) -> tuple[str, str]:
    begin = _begin(fs, ref)
    return os.path.dirname(ref.locator), str(begin.get("framework") or _framework(fs, ref))


def _whole_id(fs: Fs, ref: SessionRef) -> str:
    return str(_begin(fs, ref).get("session") or ref.session_id)


def _scope(fs: Fs, ref: SessionRef) -> list[str]:
    named = parts_of(os.path.basename(ref.locator))
    scope = _begin(fs, ref).get("scope")
    return list(scope) if isinstance(scope, list) else named[0] if named is not None else []


def _conversation(fs: Fs, ref: SessionRef, state: State) -> tuple[list[int], list[int]]:
    """The numbers of the items that are messages of the conversation, and of those that begin a turn."""
    spans = shown_in(state.tables)
    shown = None if spans is None else Ranges(spans)
    framework, place = _framework(fs, ref), Place(ref.locator, None, None)
    messages, starts = [], []
    for number, raw in state.items.items():
        if shown is not None and number not in shown:
            continue
        message = message_from(framework, decode_value(bytes(raw)), place, None)
        if message is not None:
            messages.append(number)
            starts += [number] if begins_turn(message) else []
    return messages, starts


def _cut(ref: SessionRef, starts: list[int], turn: int, state: State) -> int:
    """The number of the first item behind a turn."""
    if turn > len(starts):
        raise Invalid(
            f"there is no turn {turn}: {ref.session_id} has {len(starts)}",
            session=ref.session_id,
            hint=f"give a turn from 0 to {len(starts)}",
        )
    return starts[turn] if turn < len(starts) else state.next_item


def _state_before(fs: Fs, path: str, item: int) -> State:
    """The state before the record that added an item."""
    state = State()
    for raw in stored_lines(fs, path):
        line = decoded(raw)
        if line is None or line.op == SNAPSHOT:
            continue
        if line.add and line.first + len(line.add) > item:
            break
        state.apply(line)
    return state


def _tables_before(fs: Fs, ref: SessionRef, state: State, cut: int) -> Mapping[str, Mapping[str, Any]]:
    """The tables as they were before an item. Those of an imported session were stored with its last item, of all."""
    if cut >= state.next_item or _framework(fs, ref) == IMPORT:
        return state.tables
    return _state_before(fs, ref.locator, cut).tables


def _dropped(fs: Fs, ref: SessionRef, now: State, cut: int, turn: int) -> Change:
    """Drop all items from one on, and set the tables back."""
    tables = tables_between(now.tables, _tables_before(fs, ref, now, cut))
    return Change(drop=[(cut, now.next_item - 1)], cause=rewinding(turn), **tables)


def undo(fs: Fs, ref: SessionRef) -> int:
    """As `Reverts.undo`."""
    since = 0

    def decide(state: State) -> Change:
        nonlocal since
        found = undoing(fs, ref.locator, state)
        if found is None:
            raise NotFound(
                f"nothing to undo of {ref.session_id}",
                session=ref.session_id,
                path=ref.locator,
                hint="`sessionary undo --list` shows all changes",
            )
        change, added = found
        since = sum(number in added for number in _conversation(fs, ref, state)[0])
        return change

    with RecordJournal.with_fs(fs, *_place(fs, ref), _whole_id(fs, ref), _scope(fs, ref)) as journal:
        journal.change(decide)
    return since
