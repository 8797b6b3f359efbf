"""One write to one session, under its lock: shared by `save`, `append` and the metadata calls.

The order is fixed: everything is encoded before the disk is changed, the transcript is written and flushed
before metadata is replaced, and replaced or damaged data is kept under another name first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct

from sessionary.codec import encode_document, encode_line
from sessionary.codec.times import timestamp_of
from sessionary.disk.flush_policy import COMMITTER, Durability
from sessionary.errors import Conflict, StorageFailed
from sessionary.layouts.amplifier.alignment import align
from sessionary.layouts.amplifier.files import METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.messages import DROPPED_ROLES, as_dict, clean_dict, is_kept, redact, stamp
from sessionary.layouts.amplifier.recovery import (
    StoredMetadata,
    StoredTranscript,
    one_line,
    read_metadata,
    read_transcript,
)
from sessionary.layouts.amplifier.session import Baseline, Session, lines_known
from sessionary.layouts.amplifier.transactions import Undone
from sessionary.layouts.fingerprints import identity_of
from sessionary.model import Problem, Severity

OnConflict = Literal["keep_both", "raise"]


# Structs, not dataclasses: they are created in C, and every write needs one of each.


class Report(Struct):
    """Details of the last call of a store besides its return value.

    Attributes:
        operation: the method.
        session: the id.
        problems: what was skipped, recovered or odd.
        recovered_from: ``backup`` if the transcript came from there.
        appended: number of messages appended.
        replaced: the transcript was rewritten.
        metadata_written: metadata.json was written.
        conflicts: files with content of another writer that this save replaced.
        quarantined: files with damaged content that was replaced.
        torn: the file with truncated bytes that were removed.
        undone: the result of an `undo`; None if it restored a session from the trash.
    """

    operation: str = ""
    session: str = ""
    problems: list[Problem] = []
    recovered_from: str | None = None
    appended: int = 0
    replaced: bool = False
    metadata_written: bool = False
    conflicts: list[str] = []
    quarantined: list[str] = []
    torn: str | None = None
    undone: Undone | None = None


def kept_of(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The messages to store, as dicts, without system and developer prompts.

    Raises:
        AttributeError, Invalid: one cannot be converted to a dict, see `as_dict`.
    """
    kept = []
    for message in messages:
        given = message if type(message) is dict else as_dict(message)
        role = given.get("role")
        if role not in DROPPED_ROLES if type(role) is str else is_kept(given):
            kept.append(given)
    return kept


class Writing(Struct):
    """One write to one session. All methods except `flush_policy` need the lock of the session.

    Attributes:
        session: the session.
        report: the report for the caller.
        durability: the level.
        on_conflict: that of the store.
        now: the clock.
        must_flush: the transcript has lines that may not have been flushed.
        settled: the appended lines are flushed.
    """

    session: Session
    report: Report
    durability: Durability
    on_conflict: OnConflict
    now: Callable[[], datetime]
    must_flush: bool = False
    settled: bool = False

    @property
    def durable(self) -> bool:
        """False only for the level ``none``."""
        return self.durability != "none"

    # -- the transcript

    def line_of(self, message: dict[str, Any]) -> bytes:
        """The line of a new message: cleaned, with a time."""
        clean = clean_dict(message)
        if timestamp_of(clean) is None:
            clean = {**clean, "timestamp": stamp(self.now())}
        return encode_line(clean)

    def save_transcript(self, kept: list[dict[str, Any]], found: os.stat_result | None) -> None:
        """Store a whole conversation: append if it extends the stored one, else replace.

        Args:
            found: the state of the transcript when the session was entered.

        Raises:
            Conflict: it would drop what another writer stored, and `on_conflict` is ``raise``.
        """
        session = self.session
        baseline = session.baseline
        if (
            found is not None
            and baseline is not None
            and baseline.identity == identity_of(found)
            and not session.transcript.journal.suspect
            and baseline.is_prefix_of(kept)
        ):
            fresh = kept[len(baseline.seen or ()) :]
            raws = [self.line_of(message) for message in fresh]
            if raws:
                self._append(raws, found)
                self._remember(fresh, raws)
            else:
                inode = found.st_dev, found.st_ino
                session.transcript.back_up(inode, found.st_size, durable=self.durable)
        else:
            self._save_compared(kept)

    def append(self, messages: list[dict[str, Any]], raws: list[bytes], found: os.stat_result | None) -> bool:
        """Append lines to the stored ones; True if the session is new.

        Args:
            raws: the line of each.
            found: the state of the transcript when the session was entered.
        """
        session = self.session
        transcript = session.transcript
        known = found is not None and found.st_size > 0 and transcript.journal.size >= 0
        new = found is None and not session.is_there()
        if not known and not new and transcript.needs_recovery(found):
            self._write_back()
            found = transcript.stat()
        if found is None and (raws or new):
            transcript.replace(raws, keep=(), durable=self.durable)
            self.report.appended = len(raws)
        elif raws:
            self._append(raws, found)
        baseline = session.baseline
        if baseline is None:
            session.baseline = Baseline(lines_known(raws))
        elif baseline.seen is not None and found is not None and baseline.identity == identity_of(found):
            self._remember(messages, raws)
        else:
            baseline.known.extend(map(hash, raws))
        return new

    def _save_compared(self, kept: list[dict[str, Any]]) -> None:
        """Save without a baseline: read the file and compare."""
        session = self.session
        session.lock.note("save")
        stored = read_transcript(session.fs, session.folder, to_write=True)
        self.report.problems = [*self.report.problems, *stored.problems]
        plan = align([clean_dict(message) for message in kept], stored, lambda: stamp(self.now()))
        if plan.extends and stored.size >= 0 and stored.intact and not stored.damaged:
            self._extend(stored, kept, plan.raws)
        else:
            self._replace(stored, kept, plan.raws)

    def _extend(self, stored: StoredTranscript, kept: list[dict[str, Any]], raws: list[bytes]) -> None:
        session = self.session
        same = len(stored.raws)
        session.baseline = Baseline(seen=[])
        session.baseline.remember(kept[:same], stored.raws)
        # The process that wrote those lines may have been killed before its flush; we are about to
        # acknowledge them.
        self.must_flush = True
        self._append(raws[same:], session.transcript.stat())
        self._remember(kept[same:], raws[same:])

    def _replace(self, stored: StoredTranscript, kept: list[dict[str, Any]], raws: list[bytes]) -> None:
        session = self.session
        unknown = self._unknown_lines(stored, raws)
        if unknown and self.on_conflict == "raise":
            raise _conflict(unknown, session.transcript.path, self.report.session)
        if stored.torn:
            self.report.torn = session.transcript.heal()
        keep = ["conflict"] if unknown else []
        if stored.damaged:
            keep += ["corrupt"] if stored.size >= 0 else []
        elif stored.size > 0:  # a backup of an empty file would mislead
            keep.append("backup")
        aside = session.transcript.replace(raws, keep=keep, durable=self.durable)
        self.report.conflicts = [path for path in aside if ".conflict-" in path]
        self.report.quarantined = [path for path in aside if ".corrupt-" in path]
        self.report.replaced = True
        session.baseline = Baseline(seen=[])
        self._remember(kept, raws)

    def _append(self, raws: list[bytes], found: os.stat_result | None) -> None:
        transcript = self.session.transcript
        data = b"\n".join(raws) + b"\n" if raws else b""
        transcript.append(data, found, durable=self.durable)
        self.report.appended = len(raws)
        self.report.torn = transcript.journal.torn
        if transcript.trouble is not None:
            self.report.problems = [*self.report.problems, transcript.trouble]

    def _write_back(self) -> None:
        """The transcript has no content but its backup does: restore the messages before anything is added."""
        session = self.session
        stored = read_transcript(session.fs, session.folder, to_write=True)
        self.report.problems = [*self.report.problems, *stored.problems]
        if stored.source == "backup":
            self.report.recovered_from = "backup"
            keep = ["corrupt"] if stored.size >= 0 else []
            raws = [one_line(raw) for raw in stored.raws]
            aside = session.transcript.replace(raws, keep=keep, durable=self.durable)
            self.report.quarantined = aside

    def _unknown_lines(self, stored: StoredTranscript, raws: list[bytes]) -> int:
        """Number of stored lines that this save would drop and that this process has never seen."""
        if self.session.baseline is None:
            return 0
        known = set(self.session.baseline.known)
        kept = set(raws)
        return sum(1 for raw in stored.raws if raw not in kept and hash(raw) not in known)

    def _remember(self, messages: list[dict[str, Any]], raws: list[bytes]) -> None:
        baseline = self.session.baseline
        assert baseline is not None
        baseline.remember(messages, raws)
        found = self.session.transcript.stat()
        baseline.identity = None if found is None else identity_of(found)

    # -- metadata

    def save_metadata(self, document: bytes) -> None:
        """Replace metadata.json if it changes; the transcript is flushed before."""
        if self.session.metadata_is(document):
            self.session.back_up_metadata(durable=self.durable)
        else:
            self._settle()
            readable = self._stored_metadata().readable
            self._write_metadata(document, readable=readable)

    def merge_metadata(self, updates: dict[str, Any], *, create: bool = False) -> dict[str, Any]:
        """Merge fields into metadata.json and return all of it; the transcript is flushed before."""
        self._settle()
        time = self.now().astimezone(UTC).isoformat()
        current = self._stored_metadata(time)
        self.report.problems = [*self.report.problems, *current.problems]
        merged = dict(current.value)
        if create:
            merged = {"session_id": self.report.session, "created": time, **merged}
        merged.update(updates)
        document = encode_document(redact(merged))
        if document != current.data or self.session.is_suspect():
            self._write_metadata(document, readable=current.readable)
        return merged

    def _stored_metadata(self, time: str = "") -> StoredMetadata:
        return read_metadata(self.session.fs, self.session.folder, recovery_time=time, to_write=True)

    def _write_metadata(self, document: bytes, *, readable: bool) -> None:
        path = os.path.join(self.session.folder, METADATA)
        try:
            aside = self.session.write_metadata(path, document, readable=readable, durable=self.durable)
        except StorageFailed as error:
            if self.report.appended or self.report.replaced:
                error.outcome = "unknown"  # of the whole call: the transcript is already stored
                error.details["stored"] = [TRANSCRIPT]
            raise
        self.report.metadata_written = True
        if aside:
            self.report.quarantined.append(aside)

    # -- unfinished operations

    def report_recovered(self) -> None:
        """Report that an operation of a killed writer was finished, or rolled back."""
        recovered, self.session.recovered = self.session.recovered, None
        if recovered is not None:
            what = "was finished" if recovered.finished else "had changed nothing yet, and was cleaned up"
            message = f"an interrupted {recovered.operation or 'change'} {what}"
            problem = Problem.of_file("operation_recovered", Severity.note, self.session.folder, message)
            self.report.problems = [*self.report.problems, problem]

    # -- durability

    def _settle(self) -> None:
        """Flush the transcript under the lock: metadata must never be newer than it."""
        if self.durable and (self.report.appended or self.must_flush):
            self.session.transcript.journal.flush()
            self.must_flush = False
            self.settled = True

    def commit(self) -> None:
        """Flush the appended lines as the level requires. Without the lock, so that others can continue meanwhile."""
        if self.session.recovered is not None:
            self.report_recovered()
        if self.report.appended:
            self.session.transcript.mark_active()
        if (self.report.appended and not self.settled) or self.must_flush:
            COMMITTER.commit(self.session.transcript.journal, self.durability, self.report.appended)


def _conflict(unknown: int, path: str, session_id: str) -> Conflict:
    return Conflict(
        f"another writer has stored messages of session '{session_id}' that are missing in this save: {unknown}",
        operation="save",
        path=path,
        session=session_id,
        hint="load the session again and extend the loaded messages",
    )
