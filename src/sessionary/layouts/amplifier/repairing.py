"""Repair: a session that the agent will take again, with every message that can still be read.

    repair(session_dir, *, orphans="complete", close_last=False, dry_run=False) -> Repaired

The transcript is salvaged (see `salvage`), then the conversation is mended (`turns.mend`): tool calls without a result
get one that says so, or are dropped, results without a call go. Lines that are not damaged stay byte for byte.
metadata.json is written anew from its backup if it cannot be read, and a torn last event gets its newline. Where
there is nothing to mend nothing is written, so a second repair does nothing.

The old bytes are kept in `<session>/.undo/`, and `undo` brings them back. What was torn out of the transcript is laid
beside it as `transcript.jsonl.corrupt-<time>` as well, where people look for it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessionary.codec import Undecodable, decode, encode_document, encode_line, read_lines
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.line_reader import tail_heads
from sessionary.disk.transaction import Whole
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.messages import stamp
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.salvage import Fix, Salvaged, needs_salvage, salvage
from sessionary.layouts.amplifier.session import Session
from sessionary.layouts.amplifier.transactions import REPAIR, Clock, carry_out, operating, utc_now
from sessionary.model import Problem, Severity
from sessionary.turns import Change, diagnose, mend

CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did, or with `dry_run` would do.

    Attributes:
        session_id: the session.
        changed: False if there was nothing to do; then nothing was written.
        dry_run: nothing was written.
        problems: what was wrong, without notes.
        remaining: what still is.
        fixes: what was done to lines of the transcript.
        mends: what was done to the conversation; `index` counts the messages that could be read.
        diff: a unified diff of the lines of the transcript; "" if they stay.
        messages_before: messages that could be read.
        messages_after: messages that there are now.
        set_aside: bytes that are no longer in the transcript.
        set_aside_in: the file beside it that has them; None if there are none, or nothing was written.
        metadata_from: where metadata.json was written anew from: ``conflict`` for both sides of a merge conflict,
            ``backup``, or ``nothing`` where the id is all that is known; None if it was left as it is.
        event_sealed: a torn last event got its newline.
        kept_in: the folder with the old bytes; None if neither transcript nor metadata were written.

    What could not be brought back is `lost` of the fixes.
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
    """What is to be done about the transcript: `new` is None if nothing is."""

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
    """Put a session right.

    Args:
        session_dir: its folder.
        orphans: what becomes of a tool call that nobody answered: ``complete`` adds an error result, ``drop`` takes
            the call away.
        close_last: add a closing text at the end, too, if the last word there is a tool's; see `turns.mend`.
        bad_bytes: what becomes of a message with bytes that are not UTF-8: ``replace`` keeps it with U+FFFD in their
            place, ``drop`` sets it aside.
        dry_run: tell what would be done, and write nothing.
        fs: the file system.
        now: the clock.

    Durability: when this returns, the repaired session survives a power cut; if it does not return, the next
    writer finds the damaged session or the repaired one.

    Raises:
        NotFound: no such session, or neither a transcript nor a backup of one.
        Invalid: `orphans` or `bad_bytes` is neither.
        Corrupt: nothing in it or its backup can be read, or no record is a message; it was left as it is.
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
    """What stops an agent, or hides something, in a transcript: damaged lines, and what `turns.diagnose` finds."""
    reading = read_lines(data, path)
    found = [
        problem for problem in reading.problems if problem.severity > Severity.note or problem.code == "bom"
    ]
    stopping = [finding for finding in diagnose(reading.values) if finding.stops]
    places = [(record.line, record.byte) for record in reading.records()] if stopping else []
    found += [
        Problem(
            finding.code, finding.severity, path, *places[finding.index], finding.message, "sessionary repair"
        )
        for finding in stopping
    ]
    return sorted(found, key=lambda problem: problem.byte or 0)


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
    """The transcript put right; where nothing of it can be read, its backup put right.

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
        if done.values or data.startswith(
            b"\n"
        ):  # one newline is an empty conversation, whatever is torn behind it
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
    words = f"nothing could be read; {len(from_backup.values)} message(s) come from the backup"
    from_backup.fixes.insert(0, Fix(1, "recovered_backup", words))
    return from_backup


def _nothing(path: str) -> Corrupt:
    return Corrupt(
        f"Nothing can be read of {path}, nor of a backup",
        operation=REPAIR,
        path=path,
        hint="the file was left as it is; `sessionary check` tells what it holds instead",
    )


def _no_messages(path: str, records: int) -> Corrupt:
    return Corrupt(
        f"None of the {records:,} records in {path} is a message: no speaker can be told of any",
        operation=REPAIR,
        path=path,
        hint="the file was left as it is; another agent may have written it: `sessionary show FILE` reads it",
    )


def _lines_of(messages: Sequence[Any], salvaged: Salvaged, now: Clock) -> list[bytes]:
    """Messages that were not changed keep their lines; new ones get a time like all that are stored."""
    raws = {id(value): line for value, line in zip(salvaged.values, salvaged.lines, strict=True)}
    lines: list[bytes] = []
    time: str | None = None
    for message in messages:
        told = timestamp_of(message)
        line = raws.get(id(message))
        if line is None:
            made = message if told is not None else {**message, "timestamp": time or stamp(now())}
            line = encode_line(made)
        lines.append(line)
        time = told if told is not None and parse_time(told) else time
    return lines


def _metadata(session: Session, now: Clock) -> tuple[bytes | None, str | None, list[Problem]]:
    """metadata.json as it is to be, where it comes from, and what is wrong with it; (None, None, []) if nothing is."""
    fs, path = session.fs, os.path.join(session.folder, METADATA)
    stored = read_metadata(fs, session.folder, recovery_time=now().isoformat(), to_write=True)
    problems = [problem for problem in stored.problems if problem.severity > Severity.note]
    if not problems:
        return None, None, []
    if stored.data is not None and not any(one.code == "recovered_metadata" for one in problems):
        return encode_document(stored.value), "conflict", problems  # the fields of both sides
    backup = read_bytes(fs, path + BACKUP) or b""
    try:
        if isinstance(decode(backup), dict):
            return backup, "backup", problems
    except Undecodable:
        pass
    return encode_document(stored.value), "nothing", problems


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
