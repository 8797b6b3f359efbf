"""Repair: make a session acceptable to its agent, with every message that can be read.

    repair(session_dir, *, orphans="complete", close_last=False, dry_run=False) -> Repaired

The transcript is salvaged (see `salvage`), then the conversation is repaired (`transcript.mend`): tool calls
without a result get one that says so, or are dropped; results without a call are removed. Undamaged lines
stay byte for byte. metadata.json is rebuilt from its backup if it cannot be read, and a truncated last event
gets its newline. Without damage nothing is written, so a second repair does nothing.

The old bytes are kept in `<session>/.undo/`, and `undo` restores them. Bytes removed from the transcript are
also stored beside it as `transcript.jsonl.corrupt-<time>`, where users look for them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessionary.codec import decode_object, read_lines, reencode_document, reencode_line
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.line_reader import tail_heads
from sessionary.disk.transaction import Whole
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.messages import stamp
from sessionary.layouts.amplifier.reading import transcript_problems
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.salvage import Fix, Salvaged, needs_salvage, salvage
from sessionary.layouts.amplifier.session import Session
from sessionary.layouts.amplifier.transactions import REPAIR, Clock, carry_out, operating, utc_now
from sessionary.model import Problem, Severity
from sessionary.transcript.repair import Change, mend

CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair, or with `dry_run` of a simulated one.

    Attributes:
        session_id: the session.
        changed: False if nothing had to be done; then nothing was written.
        dry_run: nothing was written.
        problems: the problems before, without notes.
        remaining: the problems after.
        fixes: changes of lines of the transcript.
        mends: changes of the conversation; `index` counts the readable messages.
        diff: a unified diff of the lines of the transcript; "" if unchanged.
        messages_before: number of readable messages before.
        messages_after: number of messages after.
        set_aside: bytes that were removed from the transcript.
        set_aside_in: the file beside it with those bytes; None if there are none, or nothing was written.
        metadata_from: the source of a rebuilt metadata.json: ``conflict`` for both sides of a merge conflict,
        ``backup``, or ``nothing`` if only the id is known; None if unchanged.
        event_sealed: a truncated last event got its newline.
        kept_in: the folder with the old bytes; None if neither transcript nor metadata was written.

    What could not be recovered is `lost` of the fixes.
    """

    session_id: str
    changed: bool
    dry_run: bool
    problems: list[Problem] = field(default_factory=list)
    remaining: list[Problem] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)
    mends: list[Change] = field(default_factory=list)
    diff: str = ""
    messages_before: int = 0
    messages_after: int = 0
    set_aside: int = 0
    set_aside_in: str | None = None
    metadata_from: str | None = None
    event_sealed: bool = False
    kept_in: str | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """The planned change of the transcript: `new` is None if there is none."""

    new: bytes | None
    old: bytes
    problems: list[Problem]
    fixes: list[Fix]
    mends: list[Change]
    left_over: bytes
    before: int
    after: int


def repair(
    session_dir: str | os.PathLike[str],
    *,
    orphans: str = "complete",
    close_last: bool = False,
    bad_bytes: str = "replace",
    dry_run: bool = False,
    fs: Fs = OS_FS,
    now: Clock = utc_now,
) -> Repaired:
    """Repair a session.

    Args:
        session_dir: its folder.
        orphans: tool calls without a result: ``complete`` adds an error result, ``drop`` removes the call.
        close_last: also add a closing message if the conversation ends with a tool result; see `transcript.mend`.
        bad_bytes: messages with invalid UTF-8: ``replace`` keeps them with U+FFFD in place of the bytes,
        ``drop`` sets them aside.
        dry_run: return what would be done, and write nothing.

    Durability: when this returns, the repaired session survives a power cut; if it does not return, the next
    writer finds the damaged session or the repaired one.

    Raises:
        NotFound: the session, or both its transcript and the backup, do not exist.
        Invalid: `orphans` or `bad_bytes` has another value.
        Corrupt: nothing in it or its backup can be read, or no record is a message; the session is unchanged.
        Locked, StorageFailed: as every write.
    """
    if bad_bytes not in ("replace", "drop"):
        raise Invalid(f"Unknown bad_bytes value: {bad_bytes!r}", hint="use 'replace' or 'drop'")
    with operating(session_dir, REPAIR, fs, now, dry_run=dry_run) as session:
        plan = _plan(session, orphans, close_last, bad_bytes == "replace", now)
        metadata, source, problems = _metadata(session, now)
        torn = _torn_event(session)
        wholes: list[Whole] = []
        aside = None
        if plan.new is not None:
            wholes.append(Whole(TRANSCRIPT, (plan.new,)))
            if plan.left_over:
                aside = atomic.free_name(session.transcript.path, CORRUPT, fs=fs, now=now())
                wholes.append(Whole(os.path.basename(aside), (plan.left_over,)))
        if metadata is not None:
            wholes.append(Whole(METADATA, (metadata,)))
        kept_in = None
        if not dry_run:
            if torn:
                _seal(session, now)
            if wholes:
                kept_in = carry_out(session, REPAIR, wholes, facts=_facts(plan, source), now=now())
        return Repaired(
            session_id=session.session_id,
            changed=bool(wholes) or torn,
            dry_run=dry_run,
            problems=[*plan.problems, *problems],
            remaining=problems_of(plan.old if plan.new is None else plan.new, session.transcript.path),
            fixes=plan.fixes,
            mends=plan.mends,
            diff="" if plan.new is None else diff_of(plan.old, plan.new),
            messages_before=plan.before,
            messages_after=plan.after,
            set_aside=len(plan.left_over),
            set_aside_in=None if dry_run else aside,
            metadata_from=source,
            event_sealed=torn,
            kept_in=kept_in,
        )


def problems_of(data: bytes, path: str) -> list[Problem]:
    """The findings in a transcript that stop an agent, or hide data."""
    found = transcript_problems(data, path)
    return [problem for problem in found if problem.severity > Severity.note or problem.code == "bom"]


def diff_of(old: bytes, new: bytes) -> str:
    """A unified diff of two transcripts, line by line."""
    before, after = (_text_lines(data) for data in (old, new))
    names = (TRANSCRIPT, f"{TRANSCRIPT} (repaired)")
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=1))


def _text_lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n") if data else []


def _facts(plan: _Plan, source: str | None) -> Mapping[str, Any]:
    return {
        "messages_before": plan.before,
        "messages_after": plan.after,
        "fixes": len(plan.fixes),
        "mends": len(plan.mends),
        "set_aside": len(plan.left_over),
        "lost": sum(fix.lost for fix in plan.fixes),
        "lost_lines": [fix.line for fix in plan.fixes if fix.lost],
        "metadata_from": source,
    }


def _plan(session: Session, orphans: str, close_last: bool, replace_bad: bool, now: Clock) -> _Plan:
    fs, path = session.fs, session.transcript.path
    data = read_bytes(fs, path)
    backup = read_bytes(fs, path + BACKUP)
    if data is None and backup is None:
        message = f"Session '{session.session_id}' has no {TRANSCRIPT}"
        raise NotFound(message, operation=REPAIR, path=path, session=session.session_id)
    old = data or b""
    reading = read_lines(old, path)
    salvaged = _salvaged(path, data, backup, replace_bad)
    mended = mend(salvaged.values, orphans=orphans, close_last=close_last)  # type: ignore[arg-type]
    if salvaged.values and not mended.messages:
        raise _no_messages(path, len(salvaged.values))
    lines = _lines_of(mended.messages, salvaged, now)
    untouched = not salvaged.fixes and not mended.changes
    return _Plan(
        None if untouched else b"\n".join(lines) + b"\n",
        old,
        problems_of(old, path),
        salvaged.fixes,
        list(mended.changes),
        b"".join(piece + b"\n" for piece in salvaged.left_over),
        len(reading.values),
        len(lines),
    )


def _salvaged(path: str, data: bytes | None, backup: bytes | None, replace_bad: bool) -> Salvaged:
    """The salvaged transcript; if nothing of it can be read, its salvaged backup.

    Raises:
        Corrupt: neither can be read.
    """
    held = read_lines(backup, path + BACKUP) if backup and backup.strip() else None
    if data is not None and data.strip(b"\r\n\t "):
        reading = read_lines(data, path)
        done = (
            salvage(data, held, replace_bad=replace_bad)
            if needs_salvage(reading)
            else Salvaged(reading.raws, reading.values)
        )
        if done.values or data.startswith(b"\n"):  # one newline is an empty conversation, whatever follows it
            return done
        if held is None or not held.values:
            raise _nothing(path)
        from_backup = salvage(backup or b"")
        from_backup.left_over = [data]
    elif held is not None and held.values and not (data or b"").startswith(b"\n"):
        from_backup = salvage(
            backup or b""
        )  # an empty file by accident; one newline is an empty conversation
    elif data is None:
        raise _nothing(path)
    else:
        return Salvaged()
    words = f"nothing could be read; messages read from the backup: {len(from_backup.values)}"
    from_backup.fixes.insert(0, Fix(1, "recovered_backup", words))
    return from_backup


def _nothing(path: str) -> Corrupt:
    return Corrupt(
        f"Neither {path} nor its backup can be read",
        operation=REPAIR,
        path=path,
        hint="the file is unchanged; run `sessionary check` for details",
    )


def _no_messages(path: str, records: int) -> Corrupt:
    return Corrupt(
        f"None of the {records:,} records in {path} is a message: all lack a role",
        operation=REPAIR,
        path=path,
        hint="the file is unchanged; it may be from another agent: try `sessionary show FILE`",
    )


def _lines_of(messages: Sequence[Any], salvaged: Salvaged, now: Clock) -> list[bytes]:
    """Unchanged messages keep their lines; new ones get a time, as all stored ones have."""
    raws = {id(value): line for value, line in zip(salvaged.values, salvaged.lines, strict=True)}
    lines: list[bytes] = []
    time: str | None = None
    for message in messages:
        stored = timestamp_of(message)
        line = raws.get(id(message))
        if line is None:
            made = message if stored is not None else {**message, "timestamp": time or stamp(now())}
            line = reencode_line(made)
        lines.append(line)
        time = stored if stored is not None and parse_time(stored) else time
    return lines


def _metadata(session: Session, now: Clock) -> tuple[bytes | None, str | None, list[Problem]]:
    """The new metadata.json, its source, and the problems of the old one; (None, None, []) if it needs no change."""
    fs, path = session.fs, os.path.join(session.folder, METADATA)
    stored = read_metadata(fs, session.folder, recovery_time=now().isoformat(), to_write=True)
    problems = [problem for problem in stored.problems if problem.severity > Severity.note]
    if not problems:
        return None, None, []
    if stored.data is not None and not any(one.code == "recovered_metadata" for one in problems):
        return reencode_document(stored.value), "conflict", problems  # the fields of both sides
    backup = read_bytes(fs, path + BACKUP) or b""
    if decode_object(backup) is not None:
        return backup, "backup", problems
    return reencode_document(stored.value), "nothing", problems


def _torn_event(session: Session) -> bool:
    path = os.path.join(session.folder, EVENTS)
    try:
        last = tail_heads(session.fs, path, 1)
    except NotFound:
        return False
    return bool(last) and not last[0].whole


def _seal(session: Session, now: Clock) -> None:
    """End the last line of the event log, as its next append would."""
    journal = Journal(os.path.join(session.folder, EVENTS), Tail.SEAL, fs=session.fs, now=now)
    try:
        journal.append(b"", journal.look())
        journal.flush()
    finally:
        journal.close()
