"""What can be done to a session of a store as a whole: taken back, repaired, restored, forked; and undone.

The operations themselves are functions over folders, in modules of their own. Here they are bound to a store: its
folder, its clock, its report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from sessionary.disk.fs import Fs
from sessionary.errors import NotFound
from sessionary.layouts.amplifier import transactions, trash
from sessionary.layouts.amplifier.ids import check_id
from sessionary.layouts.amplifier.session import is_session
from sessionary.layouts.amplifier.write_op import Report

if TYPE_CHECKING:
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.layouts.amplifier.repairing import Repaired
    from sessionary.layouts.amplifier.rewinding import Rewound
    from sessionary.layouts.amplifier.transactions import Restored


class Operations(ABC):
    """The part of `SessionStore` that the original does not have.

    Attributes:
        last_report: what the last call did beyond its return value.
    """

    last_report: Report
    _fs: Fs
    _now: Callable[[], datetime]
    _root: str
    _inside: str

    def rewind(self, session_id: str, turn: int, *, dry_run: bool = False) -> Rewound:
        """Take a session back to the end of a turn, 0 meaning before the first; see `rewinding.rewind`.

        Durability: as there: the old session or the new one, transcript, metadata and events together.

        Raises:
            NotFound: no such session, or it has no transcript.
            Invalid: it has no such turn (ValueError).
            InvalidId, Locked, StorageFailed: as `save`.
        """
        # Here, as in the methods below, since saving and listing do without it.
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
        """Put a session right that an agent refuses; see `repairing.repair`.

        Durability: as there: the damaged session or the repaired one.

        Raises:
            NotFound: no such session, or no transcript.
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
        """Put the backup of the transcript (or of the ``metadata``) in its place; see `transactions.restore_backup`.

        Durability: as there.

        Raises:
            NotFound: no such session, or no backup.
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
        """Make a new session of the first turns of another; see `forks.fork_session`.

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
        """Put the version that a save displaced last back in its place; returns the file that held it.

        The version that stood there is kept as a conflict in turn, so that calling again swaps back.

        Durability: as a `save` that replaces.

        Raises:
            NotFound: no such session, or nothing was displaced.
            InvalidId, Locked, StorageFailed: as `save`.
        """
        report = self.last_report = Report("restore_conflict", session_id)
        folder = self._existing_folder(session_id)
        file, report.conflicts = transactions.restore_conflict(folder, fs=self._fs, now=self._now)
        report.replaced = True
        return file

    def undo(self, session_id: str | None = None) -> str:
        """Take back the last rewind, repair, restore, undo or deletion, of any session or of that one; returns its id.

        What was taken back is in ``last_report.undone``; None there if a session came back from the trash.

        Durability: as of what is undone; see `transactions.undo`.

        Raises:
            NotFound: there is nothing to undo.
            AlreadyExists: a session of the id that would come back from the trash was made since.
            InvalidId, Locked, StorageFailed: as `save`.
        """
        report = self.last_report = Report("undo", session_id or "")
        trashed = trash.newest(self._fs, self._root, session_id)
        done = self._last_operation(session_id)
        if done is not None and (trashed is None or trashed[0] < done[0]):
            report.session = done[1]
            report.undone = transactions.undo(self._folder_of(done[1]), fs=self._fs, now=self._now)
            return done[1]
        report.session = trash.bring_back(self._fs, self._root, session_id)
        return report.session

    def _last_operation(self, session_id: str | None) -> tuple[str, str] | None:
        """When the last operation that can be undone was done, and to which session."""
        if session_id is not None:
            check_id(session_id)
        ids = self._ids() if session_id is None else [session_id]
        dated = [
            (entries[-1].at, name)
            for name in ids
            if (entries := transactions.undo_entries(self._folder_of(name), fs=self._fs))
        ]
        return max(dated, default=None)

    @abstractmethod
    def _ids(self) -> list[str]:
        """All sessions of the store."""

    def _folder_of(self, session_id: str) -> str:
        return self._inside + session_id  # what os.path.join makes of them, at a fraction of its time

    def _existing_folder(self, session_id: str) -> str:
        check_id(session_id)
        folder = self._folder_of(session_id)
        if not is_session(self._fs, folder):
            raise missing(session_id, folder)
        return folder


def missing(session_id: str, folder: str) -> NotFound:
    """The error that says so."""
    return NotFound(
        f"Session '{session_id}' not found",
        path=folder,
        session=session_id,
        hint="`sessionary list` shows what is there",
    )
