"""Rewind: a session as it was when a turn had ended.

    rewind(session_dir, to_turn, *, dry_run=False) -> Rewound

The transcript loses the lines from the first turn that goes on, and nothing else: the lines before them stay byte
for byte, damaged ones too. The event log loses the events of those turns (`event_cut` says how they are known), and
metadata.json its count of them. The backup of the transcript is put away as well, since it holds turns that are to be
gone; the next append makes a new one. Sub-sessions that those turns began stay where they are.

Everything that goes is kept in `<session>/.undo/`, and `undo` brings it back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from sessionary.codec import encode_document, read_lines
from sessionary.disk.fs import OS_FS, Fs, stat_or_none
from sessionary.disk.line_reader import LineFile
from sessionary.disk.transaction import Cut, Whole
from sessionary.disk.truncate import content
from sessionary.errors import Invalid, NotFound
from sessionary.layouts.amplifier.event_cut import EventCut, find_cut, ties_of
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.session import Session
from sessionary.layouts.amplifier.transactions import REWIND, Clock, carry_out, operating, utc_now
from sessionary.layouts.amplifier.turn_marks import Marks, read_marks


@dataclass(frozen=True, slots=True)
class Rewound:
    """What a rewind did, or with `dry_run` would do.

    Attributes:
        session_id: the session.
        to_turn: the last turn that it has now.
        turns_before: how many it had.
        messages_kept: messages that stay.
        messages_dropped: those that go.
        events_dropped: events that go with them.
        events_dropped_by_time: how many of those are known by their time or place alone.
        events_told: False if there is a log and nothing in it says which turns its events belong to; it then
            stays as it is.
        turn_count: what metadata.json says now; None where it has no such field, or there is nothing to change.
        rewritten: bytes that were (or would be) written: what stays of the transcript, what goes and what stays
            of the end of the log, metadata.
        changed: False if the session had no later turn; then nothing was written.
        dry_run: nothing was written.
        kept_in: the folder with what went; None if nothing was written.
    """

    session_id: str
    to_turn: int
    turns_before: int
    messages_kept: int
    messages_dropped: int
    events_dropped: int
    events_dropped_by_time: int
    events_told: bool
    turn_count: int | None
    rewritten: int
    changed: bool
    dry_run: bool
    kept_in: str | None


class TurnCut(NamedTuple):
    """Where the turns that go begin in a transcript.

    Attributes:
        turns: how many there are.
        byte: the offset of the first line that goes; the size of the file if none does.
        kept: how many messages stay.
        last_kept: those of the last turn that stays; none are read where nothing goes.
        dropped: the messages that go.
    """

    turns: int
    byte: int
    kept: int
    last_kept: Sequence[Mapping[str, Any]]
    dropped: Sequence[Mapping[str, Any]]


def rewind(
    session_dir: str | os.PathLike[str],
    to_turn: int,
    *,
    dry_run: bool = False,
    fs: Fs = OS_FS,
    now: Clock = utc_now,
) -> Rewound:
    """Take a session back to the end of a turn, 0 meaning before the first one.

    Durability: when this returns, the shorter session survives a power cut; if it does not return, the next
    writer finds the session as it was or as it is to be: transcript, metadata and events together.

    Raises:
        NotFound: no such session, or it has no transcript (FileNotFoundError).
        Invalid: it has no such turn (ValueError).
        Locked, StorageFailed: as every write.
    """
    with operating(session_dir, REWIND, fs, now, dry_run=dry_run) as session:
        path = session.transcript.path
        try:
            marks = read_marks(fs, path)
        except FileNotFoundError:
            message = f"Session '{session.session_id}' has no {TRANSCRIPT}"
            hint = "restore its backup first, if it has one"
            raise NotFound(message, path=path, session=session.session_id, hint=hint) from None
        if not 0 <= to_turn <= len(marks.starts):
            raise Invalid(
                f"Turn {to_turn} out of range. Valid range: 0-{len(marks.starts)}",
                operation=REWIND,
                path=path,
                hint="0 is the session before its first turn",
            )
        found = cut_behind(fs, path, marks, to_turn)
        if not found.dropped:
            return _unchanged(session, to_turn, found, dry_run)
        return _rewind(session, to_turn, found, dry_run, now)


def cut_behind(fs: Fs, path: str, marks: Marks, turn: int) -> TurnCut:
    """Where the turns behind `turn` begin; of the file only they and the last one that stays are read.

    Raises:
        StorageFailed: it cannot be read.
    """
    turns = len(marks.starts)
    if turn == turns:
        return TurnCut(turns, marks.size, marks.messages, (), ())
    # What stands before the first turn is the front of it.
    byte, kept = marks.starts[turn] if turn else (0, 0)
    before = marks.starts[turn - 1][0] if turn else 0
    with LineFile(path, fs) as file:
        last_kept = read_lines(file.read(before, byte - before), path, byte=before).values
        dropped = read_lines(file.read(byte, marks.size - byte), path, byte=byte).values
    return TurnCut(turns, byte, kept, last_kept, dropped)


def find_event_cut(fs: Fs, path: str, found: TurnCut) -> tuple[EventCut | None, bool]:
    """The events of the turns that go, and whether that could be told; (None, True) without a log.

    Raises:
        StorageFailed: the log cannot be read.
    """
    ties = ties_of(found.last_kept, found.dropped)
    told = bool(ties.dropped_prompts or ties.dropped_ids or ties.since)
    try:
        with LineFile(path, fs) as log:
            return find_cut(log, ties), told
    except NotFound:
        return None, True


def _unchanged(session: Session, to_turn: int, found: TurnCut, dry_run: bool) -> Rewound:
    return Rewound(
        session_id=session.session_id,
        to_turn=to_turn,
        turns_before=found.turns,
        messages_kept=found.kept,
        messages_dropped=0,
        events_dropped=0,
        events_dropped_by_time=0,
        events_told=True,
        turn_count=None,
        rewritten=0,
        changed=False,
        dry_run=dry_run,
        kept_in=None,
    )


def _rewind(session: Session, to_turn: int, found: TurnCut, dry_run: bool, now: Clock) -> Rewound:
    fs, folder = session.fs, session.folder
    events = os.path.join(folder, EVENTS)
    event_cut, told = find_event_cut(fs, events, found)
    document = _with_turn_count(session, to_turn)
    kept = content(fs, session.transcript.path, 0, found.byte) if found.byte else (b"\n",)
    facts = {
        "to_turn": to_turn,
        "turns_before": found.turns,
        "messages_kept": found.kept,
        "messages_dropped": len(found.dropped),
        "events_dropped": event_cut.dropped if event_cut else 0,
        "events_dropped_by_time": event_cut.by_time if event_cut else 0,
        "events_told": told,
        "turn_count": to_turn if document else None,
        "rewritten": (found.byte or 1) + len(document or b"") + _moved(event_cut),
    }
    kept_in = None
    if not dry_run:
        wholes = [Whole(TRANSCRIPT, kept)]
        if document is not None:
            wholes.append(Whole(METADATA, (document,)))
        if stat_or_none(fs, session.transcript.backup) is not None:
            wholes.append(Whole(TRANSCRIPT + BACKUP, None))
        cut = None if event_cut is None else _cut(fs, events, event_cut)
        kept_in = carry_out(session, REWIND, wholes, cut, facts=facts, now=now())
    return Rewound(session.session_id, changed=True, dry_run=dry_run, kept_in=kept_in, **facts)  # type: ignore[arg-type]


def _moved(cut: EventCut | None) -> int:
    """The bytes of the log that are written: its end, put aside; what stays of it, laid ready and put back."""
    return 0 if cut is None else cut.size - cut.offset + 2 * cut.kept_bytes


def _with_turn_count(session: Session, turns: int) -> bytes | None:
    """metadata.json with the new count; None if it has none, or the same, or cannot be read."""
    stored = read_metadata(session.fs, session.folder, recovery_time="", to_write=True)
    count = stored.value.get("turn_count")
    if not stored.readable or stored.data is None or count is None or count == turns:
        return None
    return encode_document({**stored.value, "turn_count": turns})


def _cut(fs: Fs, path: str, cut: EventCut) -> Cut:
    stays = chain.from_iterable(content(fs, path, start, end) for start, end in cut.stays)
    return Cut(EVENTS, cut.offset, cut.size, stays)
