"""Forks: a new session that begins with the first turns of another one.

Names of arguments, fields of results and texts of errors are those of the original store, for compatibility.
Deliberate differences: user turns are counted, not reminders and tool results; an id that exists, or that
leads out of the folder, is refused; name, working directory and the configuration of the agent are copied;
damaged parents are read as by `SessionStore.load`; events are assigned as in `event_cut`.

A fork is built in a hidden folder beside its place and renamed after everything in it is flushed, so a
partial fork never exists. The hidden folder of a killed fork is removed by the next one; its free lock shows
that it is abandoned. The parent is only read, under its lock, so that messages and events are of one moment.
"""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from sessionary.codec import encode_document, reencode_line
from sessionary.disk import atomic
from sessionary.disk.fs import (
    OS_FS,
    Fs,
    expanded,
    make_dirs,
    read_bytes,
    stat_or_none,
    storage_errors,
    sync_dir,
)
from sessionary.disk.line_reader import LineFile
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Invalid, Locked, NotFound
from sessionary.layouts.amplifier.event_fork import ForkedEvents
from sessionary.layouts.amplifier.files import CONFIG, EVENTS, LOCK, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import check_new_id
from sessionary.layouts.amplifier.lineage import id_of
from sessionary.layouts.amplifier.messages import redact
from sessionary.layouts.amplifier.recovery import StoredTranscript, read_metadata, read_transcript
from sessionary.layouts.amplifier.rewinding import TurnCut, find_event_cut
from sessionary.layouts.amplifier.transactions import Clock, operating, utc_now
from sessionary.model import Problem
from sessionary.transcript.matching import unanswered
from sessionary.transcript.messages import text_of
from sessionary.transcript.slicing import slice_to_turn, without_orphans
from sessionary.transcript.turn_boundaries import boundaries

BUILDING = ".fork-"
PREVIEW = 100

_OWN = frozenset(
    "session_id parent_id forked_from_turn forked_at created turn_count last_updated"
    " trace_id child_span recovered recovery_time".split()
)
"""The metadata of the session itself; all other metadata is copied to a fork."""


@dataclass
class ForkResult:
    """A fork.

    Attributes:
        session_id: its id.
        session_dir: its folder; None in memory.
        parent_id: its parent.
        forked_from_turn: the last turn taken from the parent.
        message_count: number of its messages.
        messages: its messages; only in memory.
        events_count: lines of its event log; only on disk.
        problems: what could not be read of the parent, and was not copied.
    """

    session_id: str
    session_dir: Path | None
    parent_id: str
    forked_from_turn: int
    message_count: int
    messages: list[dict[str, Any]] | None = None
    events_count: int = 0
    problems: list[Problem] = field(default_factory=list)


def fork_session(
    parent_session_dir: str | os.PathLike[str],
    *,
    turn: int | None = None,
    new_session_id: str | None = None,
    target_dir: str | os.PathLike[str] | None = None,
    include_events: bool = True,
    handle_orphaned_tools: str = "complete",
    name: str | None = None,
    fs: Fs = OS_FS,
    now: Clock = utc_now,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> ForkResult:
    """Create a new session from the first turns of another one.

    Args:
        parent_session_dir: the folder of the session.
        turn: the last turn to take, from 1; None takes all.
        new_session_id: the id of the new session; None generates one.
        target_dir: the folder to create it in; None is that of the parent.
        include_events: copy the events of those turns.
        handle_orphaned_tools: tool calls without a result: ``complete`` adds one that says so, ``remove``
        removes the calls, ``error`` refuses.
        name: the name of the new session; None copies that of its parent.
        new_id: generates an id.

    Durability: when this returns, the fork survives a power cut. If it does not return, the fork is missing
    or complete.

    Raises:
        NotFound: the session or its transcript does not exist (FileNotFoundError).
        Invalid: the turn does not exist, or the session has none (ValueError).
        InvalidId: the id cannot name a session (ValueError).
        AlreadyExists: the id exists; that session is unchanged.
        Locked, StorageFailed: as every write.
    """
    parent = os.path.realpath(expanded(parent_session_dir))
    _want_transcript(
        fs, parent, f"No {TRANSCRIPT} in {parent}. This doesn't appear to be a valid session directory."
    )
    session_id = check_new_id(new_session_id or new_id())
    base = os.path.dirname(parent) if target_dir is None else os.path.realpath(expanded(target_dir))
    target = os.path.join(base, session_id)
    if stat_or_none(fs, target) is not None:
        raise _exists(session_id, target)
    with operating(parent, "fork", fs, now) as session:
        plan = _plan(fs, session.folder, turn, handle_orphaned_tools)
        if name is not None:
            plan.metadata["name"] = name
        with _building(fs, base) as place:
            count = _build(
                fs, session.folder, place, plan, session_id, include_events, now().astimezone(UTC).isoformat()
            )
            try:
                atomic.move_folder(place, target, fs=fs)
            except AlreadyExists:
                raise _exists(session_id, target) from None
    return ForkResult(
        session_id,
        Path(target),
        plan.parent_id,
        plan.turn,
        plan.messages,
        events_count=count,
        problems=plan.problems,
    )


def fork_session_in_memory(
    messages: Sequence[dict[str, Any]],
    *,
    turn: int | None = None,
    parent_id: str | None = None,
    handle_orphaned_tools: str = "complete",
) -> ForkResult:
    """The messages that a fork would have, without any file. Without any turn it is empty.

    Raises:
        Invalid: the turn does not exist (ValueError).
    """
    turns = len(boundaries(messages))
    chosen = turns if turn is None else turn
    kept = slice_to_turn(messages, chosen, handle_orphaned_tools) if turns else []  # type: ignore[arg-type]
    return ForkResult(
        session_id=str(uuid.uuid4()),
        session_dir=None,
        parent_id=parent_id or "unknown",
        forked_from_turn=chosen if turns else 0,
        message_count=len(kept),
        messages=kept,
    )


def get_fork_preview(
    parent_session_dir: str | os.PathLike[str], turn: int | None = None, *, fs: Fs = OS_FS
) -> dict[str, Any]:
    """What a fork after `turn` (None: after the last) would contain.

    Returns:
        ``parent_id``, ``turn``, ``max_turns``, ``message_count``, ``has_orphaned_tools``, ``orphaned_tool_count``,
        and the first 100 characters of ``last_user_message`` and ``last_assistant_message`` ("" without one).

    Raises:
        NotFound: the session or its transcript does not exist (FileNotFoundError).
        Invalid: the turn does not exist (ValueError).
    """
    parent = os.path.realpath(expanded(parent_session_dir))
    _want_transcript(fs, parent, f"No {TRANSCRIPT} in {parent}")
    messages = read_transcript(fs, parent).values
    starts = boundaries(messages)
    if turn is None:
        turn = _chosen(len(starts), None, parent)
    if not 1 <= turn <= len(starts):
        raise Invalid(f"Turn {turn} out of range (1-{len(starts)})", operation="fork", path=parent)
    kept = messages[: starts[turn] if turn < len(starts) else len(messages)]
    orphans = unanswered(kept)
    return {
        "parent_id": id_of(parent, read_metadata(fs, parent, recovery_time="").value),
        "turn": turn,
        "max_turns": len(starts),
        "message_count": len(kept),
        "has_orphaned_tools": bool(orphans),
        "orphaned_tool_count": len(orphans),
        "last_user_message": text_of(kept[starts[turn - 1]])[:PREVIEW],
        "last_assistant_message": _last_answer(kept)[:PREVIEW],
    }


def _last_answer(messages: Sequence[Mapping[str, Any]]) -> str:
    answers = (text_of(message) for message in reversed(messages) if message.get("role") == "assistant")
    return next(filter(None, answers), "")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parent, and what a fork takes from it."""

    parent_id: str
    turn: int
    metadata: dict[str, Any]
    transcript: bytes
    messages: int
    found: TurnCut
    problems: list[Problem] = field(default_factory=list)


def _plan(fs: Fs, folder: str, turn: int | None, orphans: str) -> _Plan:
    metadata = read_metadata(fs, folder, recovery_time="", to_write=True).value
    stored = read_transcript(fs, folder, to_write=True)
    messages = stored.values
    starts = boundaries(messages)
    chosen = _chosen(len(starts), turn, folder)
    end = starts[chosen] if chosen < len(starts) else len(messages)
    kept = without_orphans(messages[:end], orphans)
    found = TurnCut(len(starts), -1, end, messages[starts[chosen - 1] : end], messages[end:])
    data = b"\n".join([*_lines_of(kept, stored), b""])
    return _Plan(id_of(folder, metadata), chosen, metadata, data, len(kept), found, stored.problems)


def _chosen(turns: int, turn: int | None, folder: str) -> int:
    if not turns:
        raise Invalid("Cannot fork: session has no user messages", operation="fork", path=folder)
    chosen = turns if turn is None else turn
    if not 1 <= chosen <= turns:
        message = f"Turn {chosen} out of range. Valid range: 1-{turns}"
        raise Invalid(message, operation="fork", path=folder)
    return chosen


def _lines_of(kept: Sequence[dict[str, Any]], stored: StoredTranscript) -> list[bytes]:
    """Messages of the parent keep the bytes of their lines."""
    raws = dict(zip(map(id, stored.values), stored.raws, strict=True))
    return [raws.get(id(message)) or reencode_line(message) for message in kept]


def _build(
    fs: Fs, parent: str, place: str, plan: _Plan, session_id: str, include_events: bool, time: str
) -> int:
    """Write all files of the fork and flush them; return the number of its events. Raises OSError."""
    atomic.write_new(fs, os.path.join(place, TRANSCRIPT), (plan.transcript,), None)
    document = encode_document(redact(_metadata(plan, session_id, time)))
    atomic.write_new(fs, os.path.join(place, METADATA), (document,), None)
    config = read_bytes(fs, os.path.join(parent, CONFIG))
    if config is not None:
        atomic.write_new(fs, os.path.join(place, CONFIG), (config,), None)
    count = _write_events(fs, parent, place, plan, session_id) if include_events else 0
    sync_dir(fs, place)
    return count


def _write_events(fs: Fs, parent: str, place: str, plan: _Plan, session_id: str) -> int:
    path, target = os.path.join(parent, EVENTS), os.path.join(place, EVENTS)
    if stat_or_none(fs, path) is None:
        atomic.write_new(fs, target, (), None)
        return 0
    cut = find_event_cut(fs, path, plan.found)[0] if plan.found.dropped else None
    with LineFile(path, fs) as log:
        events = ForkedEvents(log, cut, session_id, plan.parent_id)
        atomic.write_new(fs, target, events.blocks(), None)
    return events.count


def _metadata(plan: _Plan, session_id: str, time: str) -> dict[str, Any]:
    carried = {name: value for name, value in plan.metadata.items() if name not in _OWN}
    return {
        "session_id": session_id,
        "parent_id": plan.parent_id,
        "forked_from_turn": plan.turn,
        "forked_at": time,
        "created": time,
        "turn_count": plan.turn,
        "bundle": None,
        "model": None,
        **carried,
    }


@contextmanager
def _building(fs: Fs, base: str) -> Iterator[str]:
    """A hidden folder to build in, with its lock held; removed unless it was moved."""
    place = os.path.join(base, f"{BUILDING}{secrets.token_hex(8)}")
    with storage_errors("fork into", base):
        make_dirs(fs, base)
        _remove_abandoned(fs, base)
    with atomic.building(place, "fork into", fs=fs), FileLock(os.path.join(place, LOCK), fs).once():
        yield place


def _remove_abandoned(fs: Fs, base: str) -> None:
    """Remove the hidden folders of killed forks: their locks are free."""
    for name in fs.listdir(base):
        place = os.path.join(base, name)
        if not name.startswith(BUILDING) or stat_or_none(fs, os.path.join(place, LOCK)) is None:
            continue
        with suppress(OSError, Locked), FileLock(os.path.join(place, LOCK), fs).once(0):
            atomic.erase_tree(place, fs=fs)


def _want_transcript(fs: Fs, parent: str, message: str) -> None:
    if stat_or_none(fs, os.path.join(parent, TRANSCRIPT)) is None:
        raise NotFound(message, operation="fork", path=parent)


def _exists(session_id: str, target: str) -> AlreadyExists:
    return AlreadyExists(
        f"Session '{session_id}' already exists",
        operation="fork",
        path=target,
        session=session_id,
        hint="choose another id, or none to generate one",
    )
