"""Rewind: remove the last turns of a session.

The transcript loses the lines from the first removed turn on, and nothing else: the lines before them stay
byte for byte, damaged ones too. The event log loses the events of those turns (see `event_cut`), and
metadata.json gets the new count. The backup of the transcript is moved away as well, since it has the removed
turns; the next append creates a new one. Sub-sessions that those turns started stay.

Everything that is removed is kept in `<session>/.undo/`, and `undo` restores it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from sessionary.codec import read_lines, reencode_document
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
    """The result of a rewind, or with `dry_run` of a simulated one.

    Attributes:
        session_id: the session.
        to_turn: its last turn after the rewind.
        turns_before: number of turns before.
        messages_kept: number of messages that stay.
        messages_dropped: number of removed messages.
        events_dropped: number of removed events.
        events_dropped_by_time: number of those matched by time or place alone.
        events_told: False if there is a log whose events cannot be assigned to turns; it is then unchanged.
        turn_count: the new count in metadata.json; None if it has no such field, or nothing changes.
        rewritten: bytes that were (or would be) written: the rest of the transcript, the removed and the
        remaining part of the end of the log, metadata.
        changed: False if the session had no later turn; then nothing was written.
        dry_run: nothing was written.
        kept_in: the folder with the removed data; None if nothing was written.
    """

    session_id: str
    to_turn: int
    turns_before: int
    messages_kept: int
    messages_dropped: int = 0
    events_dropped: int = 0
    events_dropped_by_time: int = 0
    events_told: bool = True
    turn_count: int | None = None
    rewritten: int = 0
    changed: bool = False
    dry_run: bool = False
    kept_in: str | None = None


class TurnCut(NamedTuple):
    """The start of the removed turns in a transcript.

    Attributes:
        turns: number of turns.
        byte: the offset of the first removed line; the size of the file if none is removed.
        kept: number of messages that stay.
        last_kept: those of the last turn that stays; not read if nothing is removed.
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
    """Rewind a session to the end of a turn, 0 meaning before the first one.

    Durability: when this returns, the shorter session survives a power cut; if it does not return, the next
    writer finds the old session or the new one: transcript, metadata and events together.

    Raises:
        NotFound: the session or its transcript does not exist (FileNotFoundError).
        Invalid: the turn does not exist (ValueError).
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
                hint="0 is the state before the first turn",
            )
        found = cut_behind(fs, path, marks, to_turn)
        if not found.dropped:
            return Rewound(session.session_id, to_turn, found.turns, found.kept, dry_run=dry_run)
        return _rewind(session, to_turn, found, dry_run, now)


def cut_behind(fs: Fs, path: str, marks: Marks, turn: int) -> TurnCut:
    """The start of the turns after `turn`; only these and the last kept turn are read."""
    turns = len(marks.starts)
    if turn == turns:
        return TurnCut(turns, marks.size, marks.messages, (), ())
    # Lines before the first turn are its preamble.
    byte, kept = marks.starts[turn] if turn else (0, 0)
    before = marks.starts[turn - 1][0] if turn else 0
    with LineFile(path, fs) as file:
        last_kept = read_lines(file.read(before, byte - before), path, byte=before).values
        dropped = read_lines(file.read(byte, marks.size - byte), path, byte=byte).values
    return TurnCut(turns, byte, kept, last_kept, dropped)


def find_event_cut(fs: Fs, path: str, found: TurnCut) -> tuple[EventCut | None, bool]:
    """The events of the removed turns, and whether they could be determined; (None, True) without a log."""
    ties = ties_of(found.last_kept, found.dropped)
    is_known = bool(ties.dropped_prompts or ties.dropped_ids or ties.since)
    try:
        with LineFile(path, fs) as log:
            return find_cut(log, ties), is_known
    except NotFound:
        return None, True


def _rewind(session: Session, to_turn: int, found: TurnCut, dry_run: bool, now: Clock) -> Rewound:
    fs, folder = session.fs, session.folder
    events = os.path.join(folder, EVENTS)
    event_cut, is_known = find_event_cut(fs, events, found)
    document = _with_turn_count(session, to_turn)
    kept = content(fs, session.transcript.path, 0, found.byte) if found.byte else (b"\n",)
    facts = {
        "to_turn": to_turn,
        "turns_before": found.turns,
        "messages_kept": found.kept,
        "messages_dropped": len(found.dropped),
        "events_dropped": event_cut.dropped if event_cut else 0,
        "events_dropped_by_time": event_cut.by_time if event_cut else 0,
        "events_told": is_known,
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
    """The bytes of the log that are written: its end, moved away; the rest of that, prepared and put back."""
    return 0 if cut is None else cut.size - cut.offset + 2 * cut.kept_bytes


def _with_turn_count(session: Session, turns: int) -> bytes | None:
    """metadata.json with the new count; None if it has none, or the same, or cannot be read."""
    stored = read_metadata(session.fs, session.folder, recovery_time="", to_write=True)
    count = stored.value.get("turn_count")
    if not stored.readable or stored.data is None or count is None or count == turns:
        return None
    return reencode_document({**stored.value, "turn_count": turns})


def _cut(fs: Fs, path: str, cut: EventCut) -> Cut:
    stays = chain.from_iterable(content(fs, path, start, end) for start, end in cut.stays)
    return Cut(EVENTS, cut.offset, cut.size, stays)
