"""SessionStore: the drop-in store of amplifier sessions.

A session is a folder with `transcript.jsonl` (the conversation, one message a line: authoritative on resume)
and `metadata.json`. The interface, the files and their text are those of the original store, so that its
callers and tools that grep its files keep working. Deliberate differences are listed with reasons in
docs/formats/amplifier.md; in short: acknowledged means on disk, a save costs what changed, two writers do not
undo each other, and everything skipped, recovered or kept aside is reported.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sessionary.codec import encode_document, sanitize
from sessionary.disk import atomic, mounts
from sessionary.disk.flush_policy import Durability, check_durability
from sessionary.disk.fs import OS_FS, Fs, expanded
from sessionary.errors import AmbiguousId, Invalid, NotFound, SessionaryError
from sessionary.layouts import cleaned_up
from sessionary.layouts.amplifier import transactions, trash
from sessionary.layouts.amplifier.files import BACKUP, CONFIG, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import (
    SESSIONS,
    check_id,
    check_new_id,
    default_base_dir,
    is_top_level_session,
)
from sessionary.layouts.amplifier.messages import redact
from sessionary.layouts.amplifier.recovery import read_metadata, read_transcript
from sessionary.layouts.amplifier.session import Session, is_session, no_session, pool_of
from sessionary.layouts.amplifier.write_op import OnConflict, Report, Writing, kept_of
from sessionary.layouts.trash import newest
from sessionary.model import SessionRef

if TYPE_CHECKING:
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.layouts.amplifier.repairing import Repaired
    from sessionary.layouts.amplifier.rewinding import Rewound
    from sessionary.layouts.amplifier.transactions import Restored

BUNDLE_PREFIX = "bundle:"
_log = logging.getLogger("sessionary.amplifier")


def extract_session_mode(metadata: Mapping[str, Any]) -> tuple[str | None, None]:
    """The bundle of a session without its ``bundle:`` prefix; (None, None) when unknown. The second is always None."""
    bundle = metadata.get("bundle")
    if not bundle or bundle == "unknown":
        return None, None
    return bundle.removeprefix(BUNDLE_PREFIX), None


_MARKS = {TRANSCRIPT, TRANSCRIPT + BACKUP, EVENTS}
_IN_PLACE = {METADATA, METADATA + BACKUP}


class SessionStore:
    """Drop-in replacement for the original amplifier SessionStore.

    Args:
        base_dir: the ``sessions`` folder of a project (str or path, ``~`` is expanded). Default: that of the
        current folder under ``~/.amplifier/projects``. It is created by the first write, not here.
        durability: ``full`` (acknowledged means on disk), ``batch`` (64 lines or 200 ms may be lost to a power cut,
            nothing to a crash of the process) or ``none``.
        on_conflict: what a `save` does that would drop messages which another writer stored and this process
        has never seen: ``keep_both`` keeps the replaced file as ``transcript.jsonl.conflict-<time>``,
        ``raise`` writes nothing and raises `Conflict`.

    Attributes:
        base_dir: the folder, as a Path.
        last_report: details of the last call besides its return value.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str] | None = None,
        *,
        durability: str = "full",
        on_conflict: OnConflict = "keep_both",
    ) -> None:
        if on_conflict not in ("keep_both", "raise"):
            raise Invalid(f"invalid on_conflict {on_conflict!r}", hint="use 'keep_both' or 'raise'")
        self.base_dir: Path = default_base_dir() if base_dir is None else Path(expanded(base_dir))
        self.durability: Durability = check_durability(durability)
        self.on_conflict: OnConflict = on_conflict
        self.last_report: Report = Report()
        self._root = os.path.realpath(self.base_dir)
        self._fs: Fs = OS_FS
        self._now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._pool = pool_of(self._fs)
        self._asked_mount = False

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        base_dir: str | os.PathLike[str],
        *,
        durability: str = "full",
        on_conflict: OnConflict = "keep_both",
        now: Callable[[], datetime] | None = None,
        **options: Any,
    ) -> Self:
        """A store over another file system or clock, for tests. Also takes the arguments of the class."""
        store = cls(base_dir, durability=durability, on_conflict=on_conflict, **options)
        store._fs = fs
        store._pool = pool_of(fs)
        store._now = now or store._now
        return store

    # -- writing

    def save(self, session_id: str, transcript: Sequence[Any], metadata: Mapping[str, Any]) -> None:
        """Store a whole conversation and its metadata.

        Messages are dicts, or objects with ``model_dump()``. Those with role ``system`` and ``developer`` are
        left out; every stored one has a time. If the new messages begin with the stored ones, only the rest
        is appended; else the file is replaced and the old one kept as ``.backup``. Metadata is written as
        given, with secrets redacted, if it changed.

        Durability: when this returns under ``full``, both files survive a power cut. The transcript is
        flushed before metadata is changed. After a crash a reader finds the old conversation, the new one, or
        the old one followed by some of the new messages, in order.

        Raises:
            InvalidId: the id cannot name a session (ValueError).
            Conflict: with ``on_conflict="raise"``, another writer's messages would have been dropped.
            Locked: another process holds the session.
            StorageFailed: the disk refused (OSError); `outcome` is the outcome of the write.
        """
        session = self._open(session_id)
        writing = self._writing("save", session)
        document = encode_document(redact(sanitize(dict(metadata))))
        kept = kept_of(transcript)
        found = session.enter(make=True)
        try:
            writing.save_transcript(kept, found)
            writing.save_metadata(document)
        finally:
            session.leave()
        writing.commit()

    def append(
        self, session_id: str, messages: Sequence[Any], metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Append messages to the stored ones, at a cost that does not depend on their number.

        Drops, cleans and stamps messages as `save` does. A missing session is created, with ``session_id``,
        ``created`` and the fields of `metadata`; in an existing one `metadata` is merged as in
        `update_metadata`.

        Durability: when this returns under ``full``, the messages survive a power cut. If it does not return,
        a later reader finds none of them, or the first few, complete.

        Raises:
            InvalidId, Locked, StorageFailed: as `save`.
        """
        session = self._open(session_id)
        writing = self._writing("append", session)
        kept = kept_of(messages)
        raws = [*map(writing.line_of, kept)]
        updates = None if metadata is None else sanitize(dict(metadata))
        found = session.enter(make=True)
        try:
            new = writing.append(kept, raws, found)
            if new or updates is not None:
                writing.merge_metadata(updates or {}, create=new)
        finally:
            session.leave()
        writing.commit()

    def update_metadata(self, session_id: str, updates: Mapping[str, Any]) -> dict[str, Any]:
        """Merge fields into a session's metadata and return all of it, with the caller's values unredacted.

        The file is read and written under the lock of the session: concurrent changes of others are kept.

        Durability: when this returns, the merged metadata survives a power cut; until then the old one does.

        Raises:
            NotFound: no such session (FileNotFoundError).
            InvalidId, Locked, StorageFailed: as `save`.
        """
        session = self._existing(session_id)
        writing = self._writing("update_metadata", session)
        cleaned = sanitize(dict(updates))
        try:
            session.enter(make=False)
        except FileNotFoundError:
            raise no_session(session_id, session.folder) from None
        try:
            writing.report_recovered()
            return writing.merge_metadata(cleaned)
        finally:
            session.leave()

    def save_config_snapshot(self, session_id: str, config: Mapping[str, Any]) -> None:
        """Store the configuration of a session as ``config.md``, secrets redacted.

        Durability: as `update_metadata`.

        Raises:
            InvalidId, Locked, StorageFailed: as `save`.
        """
        import yaml  # imported here: slow to load, and not needed for listing and saving

        session = self._open(session_id)
        self.last_report = Report("save_config_snapshot", session_id)
        block = yaml.safe_dump(redact(sanitize(dict(config))), default_flow_style=False, sort_keys=False)
        text = f"---\n{block}---\n\nConfig snapshot for session {session_id}\n"
        session.enter(make=True)
        try:
            path = os.path.join(session.folder, CONFIG)
            durable = self.durability != "none"
            data = (text.encode("utf-8", "backslashreplace"),)
            atomic.replace(path, data, fs=self._fs, backup=path + BACKUP, durable=durable)
        finally:
            session.leave()

    # -- reading

    def load(self, session_id: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the conversation and the metadata of a session. Skipped and recovered data is in `last_report`.

        Raises:
            NotFound: no such session (FileNotFoundError).
            InvalidId: the id cannot name a session (ValueError).
        """
        transcript, metadata, _ = self.load_with_report(session_id)
        return transcript, metadata

    def load_with_report(self, session_id: str) -> tuple[list[dict[str, Any]], dict[str, Any], Report]:
        """As `load`, and the problems. Takes no lock and writes nothing."""
        session = self._existing(session_id)
        report = self.last_report = Report("load", session_id)
        found = session.transcript.stat()
        stored = read_transcript(self._fs, session.folder)
        metadata = read_metadata(self._fs, session.folder, recovery_time=self._iso())
        report.problems = [*stored.problems, *metadata.problems]
        report.recovered_from = "backup" if stored.source == "backup" else None
        if report.recovered_from:
            _log.warning("transcript.jsonl of a session could not be read, its backup was")
        session.loaded(found, stored)
        return stored.values, metadata.value, report

    def get_metadata(self, session_id: str) -> dict[str, Any]:
        """Return the metadata of a session without its conversation; ``{}`` if it has none.

        Raises:
            NotFound, InvalidId: as `load`.
        """
        folder = self._existing_folder(session_id)
        metadata = read_metadata(self._fs, folder, recovery_time=self._iso())
        self.last_report = Report("get_metadata", session_id, metadata.problems)
        return metadata.value

    def exists(self, session_id: str) -> bool:
        """True if the session exists. Never raises."""
        try:
            check_id(session_id)
        except (Invalid, AttributeError, TypeError):
            return False
        return is_session(self._fs, self._folder_of(session_id))

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
            if newest is None and is_session(self._fs, f"{self._root}/{name}"):
                newest = _folder_time(stat, f"{self._root}/{name}")
            if newest is not None:
                dated.append((newest, name))
        dated.sort(key=lambda pair: -pair[0])
        return [name for _, name in dated]

    def find_session(self, partial_id: str, *, top_level_only: bool = True) -> str:
        """Return the one session whose id is, or begins with, `partial_id`.

        Raises:
            Invalid: the prefix is empty (ValueError).
            NotFound: no id has this prefix (FileNotFoundError).
            AmbiguousId: several ids have this prefix (ValueError).
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
                hint="`sessionary list` lists all sessions",
            )
        if len(matches) > 1:
            raise _ambiguous(wanted, matches)
        return matches[0]

    # -- operations on a session as a whole

    def rewind(self, session_id: str, turn: int, *, dry_run: bool = False) -> Rewound:
        """Rewind a session to the end of a turn, 0 meaning before the first; see `rewinding.rewind`.

        Durability: as there: the old session or the new one, transcript, metadata and events together.

        Raises:
            NotFound: the session or its transcript does not exist.
            Invalid: the turn does not exist (ValueError).
            InvalidId, Locked, StorageFailed: as `save`.
        """
        # Imported here, as in the methods below: saving and listing do not need it.
        from sessionary.layouts.amplifier.rewinding import rewind

        self.last_report = Report("rewind", session_id)
        folder = self._existing_folder(session_id)
        return rewind(folder, turn, dry_run=dry_run, fs=self._fs, now=self._now)

    def repair(
        self,
        session_id: str,
        *,
        orphans: str = "complete",
        close_last: bool = False,
        bad_bytes: str = "replace",
        dry_run: bool = False,
    ) -> Repaired:
        """Repair a session that an agent refuses; see `repairing.repair`.

        Durability: as there: the damaged session or the repaired one.

        Raises:
            NotFound: the session or its transcript does not exist.
            Corrupt: nothing of it can be read.
            Invalid, InvalidId, Locked, StorageFailed: as `save`; `orphans` must be ``complete`` or ``drop``, and
                `bad_bytes` ``replace`` or ``drop``.
        """
        from sessionary.layouts.amplifier.repairing import repair

        self.last_report = Report("repair", session_id)
        folder = self._existing_folder(session_id)
        return repair(
            folder,
            orphans=orphans,
            close_last=close_last,
            bad_bytes=bad_bytes,
            dry_run=dry_run,
            fs=self._fs,
            now=self._now,
        )

    def restore_backup(
        self, session_id: str, which: str = "transcript", *, dry_run: bool = False
    ) -> Restored:
        """Replace the transcript (or the ``metadata``) by its backup; see `transactions.restore_backup`.

        Durability: as there.

        Raises:
            NotFound: the session or its backup does not exist.
            Corrupt: the backup cannot be read.
            Invalid, InvalidId, Locked, StorageFailed: as `save`.
        """
        self.last_report = Report("restore_backup", session_id)
        folder = self._existing_folder(session_id)
        return transactions.restore_backup(folder, which, dry_run=dry_run, fs=self._fs, now=self._now)

    def fork(
        self,
        session_id: str,
        turn: int | None = None,
        new_session_id: str | None = None,
        *,
        include_events: bool = True,
        handle_orphaned_tools: str = "complete",
        name: str | None = None,
    ) -> ForkResult:
        """Create a new session from the first turns of another; see `forks.fork_session`.

        Durability: as there: the whole fork, or none.

        Raises:
            NotFound, Invalid, InvalidId, AlreadyExists, Locked, StorageFailed: as there.
        """
        from sessionary.layouts.amplifier.forks import fork_session

        report = self.last_report = Report("fork", session_id)
        result = fork_session(
            self._existing_folder(session_id),
            turn=turn,
            new_session_id=new_session_id,
            include_events=include_events,
            handle_orphaned_tools=handle_orphaned_tools,
            name=name,
            fs=self._fs,
            now=self._now,
        )
        report.problems = result.problems
        return result

    def restore_conflict(self, session_id: str) -> str:
        """Restore the version that a save replaced last; return the file that held it.

        The current version is kept as a conflict in turn, so a second call swaps back.

        Durability: as a `save` that replaces.

        Raises:
            NotFound: the session does not exist, or no version was replaced.
            InvalidId, Locked, StorageFailed: as `save`.
        """
        report = self.last_report = Report("restore_conflict", session_id)
        folder = self._existing_folder(session_id)
        file, report.conflicts = transactions.restore_conflict(folder, fs=self._fs, now=self._now)
        report.replaced = True
        return file

    def undo(self, session_id: str | None = None) -> str:
        """Undo the last rewind, repair, restore, undo or deletion, of any session or of that one; return its id.

        The undone operation is in ``last_report.undone``; None there if a session was restored from the trash.

        Durability: that of the operation; see `transactions.undo`.

        Raises:
            NotFound: nothing to undo.
            AlreadyExists: a session with the id of the trashed one was created since.
            InvalidId, Locked, StorageFailed: as `save`.
        """
        report = self.last_report = Report("undo", session_id or "")
        trashed = newest(self._fs, self._root, session_id)
        if session_id is not None:
            check_id(session_id)
        ids = self.list_sessions(top_level_only=False) if session_id is None else [session_id]
        done = transactions.newest_entry(self._fs, map(self._folder_of, ids))
        if done is not None and (trashed is None or trashed[0] < done[0]):
            report.session = os.path.basename(done[1])
            report.undone = transactions.undo(done[1], fs=self._fs, now=self._now)
            return report.session
        report.session = trash.bring_back(self._fs, self._root, session_id)
        return report.session

    # -- deleting

    def delete(self, session_id: str, *, erase: bool = False) -> None:
        """Move a session to the trash, from which `undo` restores it; with `erase`, delete it permanently.

        Durability: when this returns, the move (or the erasure) survives a power cut.

        Raises:
            NotFound, InvalidId, Locked, StorageFailed: as `save`.
        """
        session = self._existing(session_id)
        self.last_report = Report("delete", session_id)
        cleaned_up.forget(self._fs, self._root, session_id)
        trash.discard(session, self._root, erase=erase, now=self._now())
        self._pool.drop(session.folder)

    def cleanup_old_sessions(self, days: int = 30, *, erase: bool = False) -> int:
        """Move sessions without any activity for `days` days to the trash; return their number.

        Activity is the newest time of any file of the session. Folders that are not sessions stay, and so
        does a session with a younger fork. What could not be moved is in `last_report`. Other devices keep
        the sessions, and a pull does not restore them here unless another device has continued them.

        Durability: as `delete`, for each session.

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
                self._clean_up(session_id, erase=erase)
                gone += 1
            except (OSError, SessionaryError) as error:
                _log.warning("could not clean up a session: %s", type(error).__name__)
                report.problems.append(trash.not_moved(self._folder_of(session_id), error))
        self.last_report = report
        return gone

    def _clean_up(self, session_id: str, *, erase: bool) -> None:
        session = self._existing(session_id)
        trash.clean_up(session, self._root, erase=erase, now=self._now())
        self._pool.drop(session.folder)

    # -- internals

    def _folder_of(self, session_id: str) -> str:
        return os.path.join(self._root, session_id)

    def _existing_folder(self, session_id: str) -> str:
        check_id(session_id)
        folder = self._folder_of(session_id)
        if not is_session(self._fs, folder):
            raise no_session(session_id, folder)
        return folder

    def _open(self, session_id: str) -> Session:
        """A session to write to, new or existing."""
        check_id(session_id)
        folder = self._folder_of(session_id)
        session = self._pool.get(folder, self._fs, self._now)
        if session.transcript.journal.size < 0 and not is_session(self._fs, folder):
            try:
                check_new_id(session_id)
            except BaseException:
                self._pool.drop(folder)
                raise
        return session

    def _existing(self, session_id: str) -> Session:
        return self._pool.get(self._existing_folder(session_id), self._fs, self._now)

    def _writing(self, operation: str, session: Session) -> Writing:
        report = Report(operation, session.session_id)
        self.last_report = report
        if not self._asked_mount:
            self._asked_mount = True
            self._report_weakness(report)
        return Writing(session, report, self.durability, self.on_conflict, self._now)

    def _report_weakness(self, report: Report) -> None:
        """Log once, at the first write, that the durability promises do not hold in this place."""
        why = mounts.weakness(self._root)
        if why is not None:
            _log.warning("the durability promises do not hold here: %s", why)
            report.problems = [*report.problems, mounts.problem(self._root, why)]

    def _iso(self) -> str:
        return self._now().astimezone(UTC).isoformat()


def _last_activity(stat: Callable[[str], os.stat_result], folder: str) -> int | None:
    """Newest time of folder, transcript and metadata; None if both files are missing."""
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


def _ambiguous(partial: str, matches: list[str]) -> AmbiguousId:
    shown = ", ".join(f"{name[:12]}..." for name in matches[:3])
    more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
    return AmbiguousId(
        f"Ambiguous session ID '{partial}' matches {len(matches)} sessions: {shown}{more}",
        details={"matches": matches},
        hint="give more characters of the id",
    )


def store_of(fs: Fs, ref: SessionRef, now: datetime | None = None) -> SessionStore:
    """The store of a session, in any folder.

    Reading the wrong folder returns nonsense; changing it does harm. So a folder outside of the folders of sessions
    counts only if it has more than a metadata.json.

    Raises:
        NotFound: the session does not exist.
    """
    try:
        names = set(fs.listdir(ref.locator))
    except OSError:
        names = set()
    root = os.path.dirname(ref.locator)
    marks = _MARKS | _IN_PLACE if os.path.basename(root) == SESSIONS else _MARKS
    if not names & marks:
        raise NotFound(f"no session in {ref.locator}", path=ref.locator, session=ref.session_id)
    return SessionStore.with_fs(fs, root, now=None if now is None else lambda: now)
