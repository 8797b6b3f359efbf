"""SessionStore: the drop-in store of amplifier sessions.

A session is a folder with `transcript.jsonl` (the conversation, one message a line: the truth on resume) and
`metadata.json`.  The interface, the files and their text are those of the original store, so that its callers and
the tools that grep its files notice nothing.  What differs on purpose is listed with reasons in
docs/formats/amplifier.md; in short: acknowledged means on disk, a save costs what changed, two writers do not
undo each other, and whatever was skipped, recovered or kept aside is told.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from sessionary.codec import encode_document, encode_line, sanitize
from sessionary.disk import atomic
from sessionary.disk.commit import COMMITTER, check_durability
from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import AmbiguousId, Conflict, Invalid, NotFound
from sessionary.layouts.amplifier import trash
from sessionary.layouts.amplifier.alignment import align
from sessionary.layouts.amplifier.ids import check_id, check_new_id, default_base_dir, is_top_level_session
from sessionary.layouts.amplifier.messages import (
    DROPPED_ROLES,
    as_dict,
    clean_message,
    redact,
    stamp,
    timestamp_of,
)
from sessionary.layouts.amplifier.recovery import (
    BACKUP,
    CONFIG,
    METADATA,
    TRANSCRIPT,
    StoredTranscript,
    read_metadata,
    read_transcript,
)
from sessionary.layouts.amplifier.session import Baseline, Session, identity_of, lines_known, pool_of
from sessionary.model import Problem, Severity

BUNDLE_PREFIX = "bundle:"
_log = logging.getLogger("sessionary.amplifier")


def extract_session_mode(metadata: Mapping[str, Any]) -> tuple[str | None, None]:
    """The bundle of a session without its ``bundle:`` prefix; (None, None) when unknown. The second is always None."""
    bundle = metadata.get("bundle")
    if not bundle or bundle == "unknown":
        return None, None
    return bundle.removeprefix(BUNDLE_PREFIX), None


@dataclass(slots=True)
class Report:
    """What the last call of a store did and found, beyond its return value.

    Attributes:
        operation: the method.
        session: the id.
        problems: what was skipped, recovered or odd.
        recovered_from: ``backup`` if the transcript came from there.
        appended: messages added behind the stored ones.
        replaced: the transcript was written anew.
        metadata_written: metadata.json was written.
        conflicts: files that keep what another writer had stored and this save displaced.
        quarantined: files that keep damaged content which was replaced.
        torn: file that keeps torn bytes which were cut off.
    """

    operation: str = ""
    session: str = ""
    problems: list[Problem] = field(default_factory=list)
    recovered_from: str | None = None
    appended: int = 0
    replaced: bool = False
    metadata_written: bool = False
    conflicts: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    torn: str | None = None


class SessionStore:
    """Drop-in replacement for the original amplifier SessionStore.

    Args:
        base_dir: the ``sessions`` folder of a project (str or path, ``~`` is expanded). Default: that of the
            current folder under ``~/.amplifier/projects``. It is made by the first write, not here.
        durability: ``full`` (acknowledged means on disk), ``batch`` (64 lines or 200 ms may be lost to a power cut,
            nothing to a crash of the process) or ``none``.
        on_conflict: what a `save` does that would drop messages which another writer stored and this process never
            saw: ``keep_both`` keeps the displaced file as ``transcript.jsonl.conflict-<time>``, ``raise`` writes
            nothing and raises `Conflict`.

    Attributes:
        base_dir: the folder, as a Path.
        last_report: what the last call did beyond its return value.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str] | None = None,
        *,
        durability: str = "full",
        on_conflict: Literal["keep_both", "raise"] = "keep_both",
    ) -> None:
        if on_conflict not in ("keep_both", "raise"):
            raise Invalid(f"on_conflict is {on_conflict!r}", hint="use 'keep_both' or 'raise'")
        self.base_dir = default_base_dir() if base_dir is None else Path(base_dir).expanduser()
        self.durability = check_durability(durability)
        self.on_conflict = on_conflict
        self.last_report = Report()
        self._root = os.path.realpath(self.base_dir)
        self._fs: Fs = OS_FS
        self._now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._pool = pool_of(self._fs)

    @classmethod
    def over(
        cls,
        fs: Fs,
        base_dir: str | os.PathLike[str],
        *,
        durability: str = "full",
        on_conflict: Literal["keep_both", "raise"] = "keep_both",
        now: Callable[[], datetime] | None = None,
    ) -> Self:
        """A store over another file system seam or clock: for proofs and doubles."""
        store = cls(base_dir, durability=durability, on_conflict=on_conflict)
        store._fs = fs
        store._pool = pool_of(fs)
        store._now = now or store._now
        return store

    # -- writing

    def save(self, session_id: str, transcript: Sequence[Any], metadata: Mapping[str, Any]) -> None:
        """Store a whole conversation and its metadata.

        Messages are dicts, or objects with ``model_dump()``. Those of role ``system`` and ``developer`` are left
        out; every stored one has a time. If the stored messages are a prefix of the new ones, only the rest is
        appended; else the file is replaced and the old one kept as ``.backup``. Metadata is written as given,
        with secrets redacted, if it changed.

        Durability: when this returns under ``full``, both files survive a power cut. The transcript is flushed
        before metadata is touched. After a crash a reader finds the old conversation, the new one, or the old
        one with some of the new messages behind it, in order.

        Raises:
            InvalidId: the id cannot name a session (ValueError).
            Conflict: with ``on_conflict="raise"``, another writer's messages would have been dropped.
            Locked: another process holds the session.
            StorageFailed: the disk refused (OSError); `outcome` says what became of the write.
        """
        session = self._open(session_id)
        report = self.last_report = Report("save", session_id)
        try:
            document = encode_document(redact(metadata))
            kept = [m for message in transcript if (m := as_dict(message)).get("role") not in DROPPED_ROLES]
            session.enter(make=True)
            try:
                self._save_transcript(session, kept, report)
                if not session.metadata_is(document):
                    self._settle_transcript(session, report)
                    self._write_metadata(session, document, report)
            finally:
                session.leave()
            self._commit(session, report)
        finally:
            self._pool.put(session)

    def append(
        self, session_id: str, messages: Sequence[Any], metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Add messages behind the stored ones; what it costs does not depend on how many there are.

        Drops, cleans and stamps messages as `save` does. A missing session is created, with ``session_id``,
        ``created`` and whatever `metadata` gives; in an existing one `metadata` merges as in `update_metadata`.

        Durability: when this returns under ``full``, the messages survive a power cut. If it does not return, a
        later reader finds none of them, or the first few, whole.

        Raises:
            InvalidId, Locked, StorageFailed: as `save`.
        """
        session = self._open(session_id)
        report = self.last_report = Report("append", session_id)
        try:
            kept = [m for message in messages if (m := as_dict(message)).get("role") not in DROPPED_ROLES]
            raws = [encode_line(self._stamped(clean_message(message))) for message in kept]
            updates = None if metadata is None else sanitize(dict(metadata))
            session.enter(make=True)
            try:
                new = self._append_lines(session, kept, raws, report)
                if new or updates is not None:
                    self._settle_transcript(session, report)
                    self._merge_metadata(session, updates or {}, report, create=new)
            finally:
                session.leave()
            self._commit(session, report)
        finally:
            self._pool.put(session)

    def update_metadata(self, session_id: str, updates: Mapping[str, Any]) -> dict[str, Any]:
        """Merge fields into a session's metadata and return the whole, unredacted where the caller gave it.

        The file is read and written under the lock of the session: fields that others set meanwhile survive.

        Durability: when this returns, the merged metadata survives a power cut; until then the old one does.

        Raises:
            NotFound: no such session (FileNotFoundError).
            InvalidId, Locked, StorageFailed: as `save`.
        """
        session = self._existing(session_id)
        report = self.last_report = Report("update_metadata", session_id)
        try:
            cleaned = sanitize(dict(updates))
            try:
                session.enter(make=False)
            except FileNotFoundError:
                raise _missing(session_id, session.folder) from None
            try:
                return self._merge_metadata(session, cleaned, report, create=False)
            finally:
                session.leave()
        finally:
            self._pool.put(session)

    def save_config_snapshot(self, session_id: str, config: Mapping[str, Any]) -> None:
        """Store the configuration that a session runs with as ``config.md``, secrets redacted.

        Durability: as `update_metadata`.

        Raises:
            InvalidId, Locked, StorageFailed: as `save`.
        """
        import yaml  # here, since listing and saving do without it and it is slow to load

        session = self._open(session_id)
        self.last_report = Report("save_config_snapshot", session_id)
        try:
            block = yaml.safe_dump(redact(config), default_flow_style=False, sort_keys=False)
            text = f"---\n{block}---\n\nConfig snapshot for session {session_id}\n"
            session.enter(make=True)
            try:
                path = os.path.join(session.folder, CONFIG)
                durable = self.durability != "none"
                data = (text.encode("utf-8", "backslashreplace"),)
                atomic.replace(path, data, fs=self._fs, backup=path + BACKUP, durable=durable)
            finally:
                session.leave()
        finally:
            self._pool.put(session)

    # -- reading

    def load(self, session_id: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The conversation and the metadata of a session. What was skipped or recovered is in `last_report`.

        Raises:
            NotFound: no such session (FileNotFoundError).
            InvalidId: the id cannot name a session (ValueError).
        """
        transcript, metadata, _ = self.load_with_report(session_id)
        return transcript, metadata

    def load_with_report(self, session_id: str) -> tuple[list[dict[str, Any]], dict[str, Any], Report]:
        """As `load`, and what was skipped or recovered. Takes no lock and writes nothing."""
        session = self._existing(session_id)
        report = self.last_report = Report("load", session_id)
        try:
            found = session.transcript.stat()
            stored = read_transcript(self._fs, session.folder)
            metadata = read_metadata(self._fs, session.folder, recovery_time=self._iso())
            report.problems = [*stored.problems, *metadata.problems]
            report.recovered_from = "backup" if stored.source == "backup" else None
            self._warn(report)
            session.loaded(found, stored)
            return stored.values, metadata.value, report
        finally:
            self._pool.put(session)

    def get_metadata(self, session_id: str) -> dict[str, Any]:
        """The metadata of a session without its conversation; ``{}`` when it has none.

        Raises:
            NotFound, InvalidId: as `load`.
        """
        check_id(session_id)
        folder = os.path.join(self._root, session_id)
        if not self._is_session(folder):
            raise _missing(session_id, folder)
        metadata = read_metadata(self._fs, folder, recovery_time=self._iso())
        self.last_report = Report("get_metadata", session_id, metadata.problems)
        return metadata.value

    def exists(self, session_id: str) -> bool:
        """True if there is such a session. Never raises."""
        try:
            check_id(session_id)
        except (Invalid, AttributeError, TypeError):
            return False
        return self._is_session(os.path.join(self._root, session_id))

    def list_sessions(self, *, top_level_only: bool = True) -> list[str]:
        """Ids of the project's sessions, the most recently active first (folder, transcript or metadata)."""
        try:
            names = self._fs.listdir(self._root)
        except (FileNotFoundError, NotADirectoryError):
            return []
        stat = self._fs.stat
        dated: list[tuple[int, str]] = []
        for name in names:
            if name[0] == "." or (top_level_only and "_" in name):
                continue
            newest = _last_activity(stat, f"{self._root}/{name}")
            if newest is None and self._is_session(f"{self._root}/{name}"):
                newest = _folder_time(stat, f"{self._root}/{name}")
            if newest is not None:
                dated.append((newest, name))
        dated.sort(key=lambda pair: -pair[0])
        return [name for _, name in dated]

    def find_session(self, partial_id: str, *, top_level_only: bool = True) -> str:
        """The one session whose id is, or begins with, `partial_id`.

        Raises:
            Invalid: the prefix is empty (ValueError).
            NotFound: nothing begins so (FileNotFoundError).
            AmbiguousId: several do (ValueError).
        """
        wanted = (partial_id or "").strip()
        if not wanted:
            raise Invalid("Session ID cannot be empty", hint="pass the first characters of an id")
        if self.exists(wanted) and (not top_level_only or is_top_level_session(wanted)):
            return wanted
        matches = [
            name for name in self.list_sessions(top_level_only=top_level_only) if name.startswith(wanted)
        ]
        if not matches:
            raise NotFound(
                f"No session found matching '{wanted}'",
                path=self._root,
                hint="`sessionary list` shows what is there",
            )
        if len(matches) > 1:
            raise _ambiguous(wanted, matches)
        return matches[0]

    # -- taking away

    def delete(self, session_id: str, *, erase: bool = False) -> None:
        """Move a session to the trash, from which `undo` brings it back; with `erase`, destroy it for good.

        Durability: when this returns, the move (or the erasure) survives a power cut.

        Raises:
            NotFound, InvalidId, Locked, StorageFailed: as `save`.
        """
        session = self._existing(session_id)
        self.last_report = Report("delete", session_id)
        try:
            trash.discard(session, self._root, erase=erase, now=self._now())
        finally:
            self._pool.put(session)
        self._pool.drop(session.folder)

    def undo(self, session_id: str | None = None) -> str:
        """Bring back the session that was trashed last, or the last one of that id; returns its id.

        Raises:
            NotFound: the trash holds no such session.
            AlreadyExists: a session of that id was made since.
        """
        self.last_report = Report("undo", session_id or "")
        return trash.bring_back(self._fs, self._root, session_id)

    def cleanup_old_sessions(self, days: int = 30, *, erase: bool = False) -> int:
        """Move sessions without any activity for `days` days to the trash; returns how many.

        Activity is the newest time of any file of the session. What is no session stays, and so does a session
        that a younger one was forked from. What could not be moved is in `last_report`.

        Raises:
            Invalid: `days` is negative (ValueError).
        """
        if days < 0:
            raise Invalid("days must be non-negative", hint="0 means everything up to now")
        report = self.last_report = Report("cleanup_old_sessions")
        gone = 0
        ids = self.list_sessions(top_level_only=False)
        for session_id in trash.stale(self._fs, self._root, ids, days, self._now()):
            try:
                self.delete(session_id, erase=erase)
                gone += 1
            except (OSError, TimeoutError) as error:
                _log.warning("could not clean up a session: %s", type(error).__name__)
                report.problems.append(trash.not_moved(os.path.join(self._root, session_id), error))
        self.last_report = report
        return gone

    # -- how it is done

    def _open(self, session_id: str) -> Session:
        """A session to write to, new or not."""
        check_id(session_id)
        folder = os.path.join(self._root, session_id)
        session = self._pool.get(folder, self._fs, self._now)
        if session.transcript.journal.size < 0 and not self._is_session(folder):
            try:
                check_new_id(session_id)
            except BaseException:
                self._pool.put(session)
                self._pool.drop(folder)
                raise
        return session

    def _existing(self, session_id: str) -> Session:
        check_id(session_id)
        folder = os.path.join(self._root, session_id)
        if not self._is_session(folder):
            raise _missing(session_id, folder)
        return self._pool.get(folder, self._fs, self._now)

    def _is_session(self, folder: str) -> bool:
        """A folder that holds a file whose name does not begin with a dot."""
        try:
            self._fs.stat(f"{folder}/{METADATA}")
            return True
        except (OSError, ValueError):
            pass
        try:
            return any(name[0] != "." for name in self._fs.listdir(folder))
        except (OSError, ValueError):
            return False

    def _save_transcript(self, session: Session, kept: list[Any], report: Report) -> None:
        found = session.transcript.stat()
        baseline = session.baseline
        if (
            found is not None
            and baseline is not None
            and baseline.identity == identity_of(found)
            and not session.transcript.journal.suspect
            and baseline.is_prefix_of(kept)
        ):
            fresh = kept[len(baseline.seen or ()) :]
            raws = [encode_line(self._stamped(clean_message(message))) for message in fresh]
            self._extend(session, found, fresh, raws, report)
        else:
            self._save_compared(session, kept, report)

    def _save_compared(self, session: Session, kept: list[Any], report: Report) -> None:
        """Save where this process does not know what the file holds: read it and compare."""
        session.lock.note("save")
        stored = read_transcript(self._fs, session.folder)
        report.problems = stored.problems
        plan = align([clean_message(message) for message in kept], stored, lambda: stamp(self._now()))
        found = session.transcript.stat()
        if found is not None and plan.extends and stored.intact and not stored.damaged:
            same = len(stored.raws)
            session.baseline = Baseline(seen=[])
            session.baseline.remember(kept[:same], stored.raws)
            self._extend(session, found, kept[same:], plan.raws[same:], report)
        else:
            self._replace(session, stored, kept, plan.raws, report)

    def _extend(
        self, session: Session, found: os.stat_result, messages: list[Any], raws: list[bytes], report: Report
    ) -> None:
        transcript = session.transcript
        if raws:
            data = b"\n".join(raws) + b"\n"
            transcript.append(data, found, durable=self.durability != "none")
            report.appended = len(raws)
        elif transcript.journal.suspect or any(
            problem.severity > Severity.note for problem in report.problems
        ):
            transcript.heal()
        report.torn = transcript.journal.torn
        self._remember(session, messages, raws)

    def _replace(
        self,
        session: Session,
        stored: StoredTranscript,
        messages: list[Any],
        raws: list[bytes],
        report: Report,
    ) -> None:
        unknown = self._unknown_lines(session, stored, raws)
        if unknown and self.on_conflict == "raise":
            raise Conflict(
                f"{unknown} message(s) of session '{report.session}' were stored by another writer and are not in "
                "this save",
                operation="save",
                path=session.transcript.path,
                session=report.session,
                hint="load the session again and add to what is there",
            )
        if stored.torn:
            report.torn = session.transcript.heal()
        keep = ["conflict"] if unknown else []
        if stored.size >= 0:
            keep.append("corrupt" if stored.damaged else "backup")
        if stored.size == 0 and not stored.damaged:
            keep.remove("backup")  # nothing to keep, and an empty backup would only mislead
        aside = session.transcript.replace(raws, keep=keep, durable=self.durability != "none")
        report.conflicts = [path for path in aside if ".conflict-" in path]
        report.quarantined = [path for path in aside if ".corrupt-" in path]
        report.replaced = True
        session.baseline = Baseline(seen=[])
        self._remember(session, messages, raws)

    def _unknown_lines(self, session: Session, stored: StoredTranscript, raws: list[bytes]) -> int:
        """How many stored lines this save would drop that this process has never seen."""
        if session.baseline is None:
            return 0
        known = set(session.baseline.known)
        kept = set(raws)
        return sum(1 for raw in stored.raws if raw not in kept and hash(raw) not in known)

    def _remember(self, session: Session, messages: list[Any], raws: list[bytes]) -> None:
        assert session.baseline is not None
        session.baseline.remember(messages, raws)
        found = session.transcript.stat()
        session.baseline.identity = None if found is None else identity_of(found)

    def _append_lines(self, session: Session, messages: list[Any], raws: list[bytes], report: Report) -> bool:
        """Append under the lock; True if the session was not there before."""
        found = session.transcript.stat()
        new = found is None and not self._is_session(session.folder)
        if not new and session.transcript.needs_recovery(found):
            self._write_back(session, report)
            found = session.transcript.stat()
        if found is None and (raws or new):
            session.transcript.replace(raws, keep=(), durable=self.durability != "none")
            report.appended = len(raws)
        elif raws:
            assert found is not None
            data = b"\n".join(raws) + b"\n"
            session.transcript.append(data, found, durable=self.durability != "none")
            report.torn = session.transcript.journal.torn
            report.appended = len(raws)
        baseline = session.baseline
        if baseline is None:
            session.baseline = Baseline(lines_known(raws))
        elif baseline.seen is not None and found is not None and baseline.identity == identity_of(found):
            self._remember(session, messages, raws)
        else:
            baseline.known.extend(map(hash, raws))
        return new

    def _write_back(self, session: Session, report: Report) -> None:
        """The transcript says nothing but its backup does: put the messages back before anything is added."""
        stored = read_transcript(self._fs, session.folder)
        report.problems = stored.problems
        if stored.source != "backup":
            return
        report.recovered_from = "backup"
        keep = ["corrupt"] if stored.size >= 0 else []
        report.quarantined = session.transcript.replace(
            stored.raws, keep=keep, durable=self.durability != "none"
        )

    def _settle_transcript(self, session: Session, report: Report) -> None:
        """Flush the transcript under the lock: metadata must never get ahead of it."""
        if report.appended and self.durability != "none":
            session.transcript.journal.flush()

    def _commit(self, session: Session, report: Report) -> None:
        """Make the appended lines as durable as the level says, without the lock, unless that is done already."""
        if report.appended and not report.metadata_written:
            COMMITTER.commit(session.transcript.journal, self.durability, report.appended)

    def _merge_metadata(
        self, session: Session, updates: dict[str, Any], report: Report, *, create: bool
    ) -> dict[str, Any]:
        current = read_metadata(self._fs, session.folder, recovery_time=self._iso())
        report.problems = [*report.problems, *current.problems]
        merged = dict(current.value)
        if create:
            merged = {"session_id": report.session, "created": self._iso(), **merged}
        merged.update(updates)
        document = encode_document(redact(merged))
        if document != current.data:
            self._write_metadata(session, document, report, readable=current.readable)
        return merged

    def _write_metadata(
        self, session: Session, document: bytes, report: Report, *, readable: bool | None = None
    ) -> None:
        if readable is None:
            readable = read_metadata(self._fs, session.folder, recovery_time="").readable
        aside = session.write_metadata(document, readable=readable, durable=self.durability != "none")
        report.metadata_written = True
        if aside:
            report.quarantined.append(aside)

    def _stamped(self, clean: dict[str, Any]) -> dict[str, Any]:
        if timestamp_of(clean) is None:
            clean["timestamp"] = stamp(self._now())
        return clean

    def _iso(self) -> str:
        return self._now().astimezone(UTC).isoformat()

    def _warn(self, report: Report) -> None:
        if report.recovered_from:
            _log.warning("transcript.jsonl of a session could not be read, its backup was")


def _last_activity(stat: Callable[[str], os.stat_result], folder: str) -> int | None:
    """Newest time of folder, transcript and metadata; None unless one of the two files is there."""
    newest = -1
    for name in (TRANSCRIPT, METADATA):
        try:
            newest = max(newest, stat(f"{folder}/{name}").st_mtime_ns)
        except OSError:
            continue
    if newest < 0:
        return None
    return max(newest, _folder_time(stat, folder))


def _folder_time(stat: Callable[[str], os.stat_result], folder: str) -> int:
    try:
        return stat(folder).st_mtime_ns
    except OSError:
        return 0


def _missing(session_id: str, folder: str) -> NotFound:
    return NotFound(
        f"Session '{session_id}' not found",
        path=folder,
        session=session_id,
        hint="`sessionary list` shows what is there",
    )


def _ambiguous(partial: str, matches: list[str]) -> AmbiguousId:
    shown = ", ".join(f"{name[:12]}..." for name in matches[:3])
    more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
    return AmbiguousId(
        f"Ambiguous session ID '{partial}' matches {len(matches)} sessions: {shown}{more}",
        details={"matches": matches},
        hint="give more characters of the id",
    )
