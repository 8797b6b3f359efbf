"""Synchronisation of one store's sessions: an engine for one project, one remote and one sync state.

Called by background sync, and by `sync` and `pull`; one call runs at a time. It holds no reference to the store, so
the store can be collected.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.lock import TIMEOUT
from sessionary.errors import (
    Invalid,
    Locked,
    NotFound,
    RemoteError,
    SessionaryError,
    StorageFailed,
    Unsupported,
)
from sessionary.hybrid.project import OneProject, Place
from sessionary.hybrid.results import PullResult, SyncResult
from sessionary.layouts.amplifier.observers import listeners_of
from sessionary.layouts.amplifier.presence import Presence, why_open
from sessionary.layouts.amplifier.sync_adapter import StoreSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.background_sync import BackgroundSync, Delivered
from sessionary.sync.engine import Engine
from sessionary.sync.remote import HeadRecord, Remote, WrappedRemote
from sessionary.sync.report import Outcome, Report, SyncStatus, joined

TURN = 60.0
"""Seconds that a `sync` or `pull` waits for one in progress in this program."""

_log = logging.getLogger("sessionary.sync")
_NOT_SENT_YET = "%d sessions could not be sent yet: %s"
_SENT = (SyncStatus.PUSHED, SyncStatus.TRASHED)
_PARTED = (SyncStatus.DIVERGED, SyncStatus.BEHIND)
_NOTHING_SENT = (Invalid, Locked, NotFound, RemoteError, StorageFailed)
"""Errors before the first session: settings of `sync init`, the remote, the disk, or another program."""
_NOT_SENT = (SyncStatus.FAILED, SyncStatus.HELD_BACK)


class SyncWorker:
    """Pushes and pulls the sessions of one store.

    Attributes:
        last: result of the last background push.
    """

    def __init__(self, place: Place, connect: Callable[[], Remote]) -> None:
        self.open: set[str] = set()
        self.presence = Presence()
        self.fs: Fs = OS_FS
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.last: SyncResult | None = None
        self._opened_last = ""
        self._place = place
        self._project = OneProject(place, self.fs)
        self._connect = connect
        self._remote: Remote | None = None
        self._inherited: list[Remote] = []
        self._listed: dict[str, HeadRecord] = {}
        self._unlooked: set[str] = set()
        self._turn = threading.Lock()
        self.background = BackgroundSync(self._send)
        self._listeners = listeners_of(os.path.realpath(place.base_dir)) if place.logs else []
        if place.logs:  # an appended event schedules its session
            self._listeners.append(self.background.touched)
        self.background.look_through(self._look_through)

    def use(self, fs: Fs, now: Callable[[], datetime]) -> None:
        """Use another file system and clock, for tests."""
        self.fs, self.now = fs, now
        self._project = OneProject(self._place, fs)
        self.presence = Presence(fs)

    # -- open sessions

    def opened(self, session: str, folder: str) -> None:
        """Report a session as open in the store."""
        if session != self._opened_last:  # most calls are about the same session as the call before
            self._opened_last = session
            self.open.add(session)
            self.presence.enter(folder)

    def release(self, folder: str) -> None:
        """Report a session as closed."""
        self._opened_last = ""
        self.open.discard(folder.rpartition("/")[2])
        self.presence.leave(folder)

    def release_all(self) -> None:
        """Report all sessions as closed."""
        self._opened_last = ""
        self.open.clear()
        self.presence.leave_all()

    # -- background sync

    def _look_through(self) -> list[str]:
        """Return all local sessions, and list the remote once: it may have lost some.

        At the end of a program there is no time for that; the next push of each session finds out.
        """
        ids = self._ids()
        self._unlooked = set()
        if ids and not self.background.patience:
            with suppress(SessionaryError):
                self._listed = self._behind().listed()
                self._unlooked = set(ids)
        return ids

    def _ids(self) -> list[str]:
        return [ref.session_id for ref in self._layout().discover()]

    def _behind(self) -> Engine:
        """Return an engine that works until background sync must stop, and waits for no other process."""
        over = self.background.given_up

        def pause(seconds: float) -> None:
            over.wait(seconds)

        remote = _Late(self._connected, over.is_set)
        return self._engine(remote, patience=self.background.patience, sleep=pause)

    def _send(self, sessions: list[str]) -> Delivered:
        over = self.background.given_up
        try:
            with self._alone():
                report = self._sent(sessions)
        except (Unsupported, *_NOTHING_SENT) as error:
            self.last = SyncResult(failed=len(sessions), errors=[error])
            if not isinstance(error, Locked) and not over.is_set():
                _log.warning(_NOT_SENT_YET, len(sessions), self.last.errors)
            return Delivered(sessions, answered=False)
        self.last = sync_result(report)
        again = unsent(report)
        if again and not over.is_set():
            _log.warning(_NOT_SENT_YET, len(again), self.last.errors[:1])
        return Delivered(again, answered=not again)

    def _sent(self, sessions: list[str]) -> Report:
        """Send these sessions. For sessions not sent since, the listing shows whether the remote has lost them."""
        first = [session for session in sessions if session in self._unlooked]
        others = [session for session in sessions if session not in self._unlooked]
        self._unlooked.difference_update(first)
        if not first:
            return self._behind().push(map(self._place.ref, others))
        engine = self._behind()
        report = engine.push(map(self._place.ref, first), heads=self._listed)
        if others:
            report = joined((report, engine.push(map(self._place.ref, others))))
        return report

    # -- explicit calls

    def unsent(self) -> list[str]:
        """Return the ids of sessions that are not known to be up to date on the remote.

        Raises:
            Invalid, NotFound: the settings of `sync init` cannot be read.
        """
        waiting = (
            self.background.waiting
        )  # read first: a session sent meanwhile may be listed, but none is missed
        if self._project.known() is None:  # nothing was sent yet, so the remote need not be asked
            return sorted({*waiting, *self._ids()})
        return sorted({*waiting, *self._engine(_Late(self._connected)).unsent()})

    def push(self) -> SyncResult:
        """Send all local changes. Errors are in the result."""
        since = self.background.clock()
        try:
            with self._alone():
                report = self._engine(_Late(self._connected)).push()
        except (Unsupported, *_NOTHING_SENT) as error:
            return SyncResult(failed=len(self.background.waiting), errors=[error])
        again = set(unsent(report))
        if not again:
            self.background.carried(since)
        return sync_result(report)

    def pull(self) -> PullResult:
        """Fetch all changes. Errors are in the result.

        Raises:
            Unsupported: this installation cannot access the remote.
        """
        try:
            with self._alone():
                report = self._engine(_Late(self._connected)).pull()
        except _NOTHING_SENT as error:
            return PullResult(errors=[error])
        for outcome in report.of(SyncStatus.PULLED, SyncStatus.DIVERGED):
            self._left_alone(outcome.session_id)
        for outcome in report.of(SyncStatus.DIVERGED):
            if outcome.sibling is not None:
                self.background.touched(outcome.sibling)
        return pull_result(report)

    def resolve(self, session: str, keep: str) -> SyncResult:
        """Decide which version of a damaged file is kept. Errors on the way are in the result.

        Raises:
            Invalid: there is nothing to decide.
        """
        try:
            with self._alone():
                report = self._engine(_Late(self._connected)).resolve(self._place.ref(session), keep)
        except (Locked, RemoteError, StorageFailed) as error:
            return SyncResult(failed=1, errors=[error])
        return sync_result(report)

    def _left_alone(self, session: str) -> None:
        """Mark a session as not in use: we changed it a moment ago, and the next pull may change it again."""
        folder = self._place.ref(session).locator
        self.presence.enter(folder)
        self.presence.leave(folder)

    def end(self, timeout: float) -> None:
        """Send unsent changes, for at most `timeout` seconds; then close all sessions and the remote."""
        if self._place.logs:  # other programs may have logged without notification
            for session in self.open:
                self.background.touched(session)
        self.forgotten()
        self.background.close(timeout)
        self.release_all()
        close = getattr(self._remote, "close", None)  # closing is optional for a remote
        if close is not None and not self._turn.locked():
            with suppress(Exception):  # an error of a driver at close has no effect here
                close()

    def forgotten(self) -> None:
        """Send unsent changes and stop: the store was collected."""
        with suppress(ValueError):
            self._listeners.remove(self.background.touched)
        self.background.finish()

    def forget_parent(self) -> None:
        """Reset in a forked child: the parent keeps using its connection, which must not be closed here."""
        if self._remote is not None:
            self._inherited.append(self._remote)
            self._remote = None
        self._turn = threading.Lock()
        self.presence.forget()
        self._opened_last = ""

    # -- implementation

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run one synchronisation at a time in this program, without polling; the engine excludes other programs."""
        turn = self._turn
        if not turn.acquire(timeout=TURN):
            raise Locked("another synchronisation of this program is still running", operation="sync")
        try:
            yield
        finally:
            turn.release()

    def _connected(self) -> Remote:
        if self._remote is None:
            self._remote = self._connect()
        return self._remote

    def _layout(self) -> StoreSyncLayout:
        return StoreSyncLayout(Path(self._place.base_dir), self._place.project, self.fs)

    def _engine(
        self, remote: Remote, *, patience: float = TIMEOUT, sleep: Callable[[float], None] = time.sleep
    ) -> Engine:
        return Engine(
            self._layout(),
            remote,
            state_dir=self._place.state,
            rules=self._place.chosen.rules(self._project.called(remote), logs=self._place.logs),
            projects=self._project,
            in_use=self._in_use,
            quiet=0,  # `why_open` decides, which knows more
            patience=patience,
            fs=self.fs,
            now=self.now,
            sleep=sleep,
        )

    def _in_use(self, ref: SessionRef) -> bool:
        if ref.session_id in self.open:
            return True
        now, quiet = self.now().timestamp(), self._place.quiet
        return why_open(ref.locator, now=now, quiet=quiet, fs=self.fs) is not None


class _Late(WrappedRemote):
    """A remote that is connected at its first call, and that refuses all calls once it is closed."""

    def __init__(self, connected: Callable[[], Remote], over: Callable[[], bool] = lambda: False) -> None:
        self._connected = connected
        self._over = over

    @property
    def inner(self) -> Remote:
        if self._over():
            raise RemoteError("the store was closed", hint="unsent changes are sent when it is opened again")
        return self._connected()


def unsent(report: Report) -> list[str]:
    """Return the sessions of a push that are to be sent again automatically.

    If the remote refuses one session among many, a retry is useless until that one changes; if it refuses all, the
    cause may be fixed later.
    """
    refused = report.of(SyncStatus.FAILED)
    general = len(refused) == len(report.outcomes)
    return [
        outcome.session_id
        for outcome in report.of(*_NOT_SENT)
        if _may_pass(outcome) or (general and outcome.standing is SyncStatus.FAILED)
    ]


def _may_pass(outcome: Outcome) -> bool:
    error = outcome.error
    if outcome.standing is SyncStatus.HELD_BACK:
        return error is None or isinstance(error, Locked)
    return isinstance(error, StorageFailed) or (isinstance(error, RemoteError) and error.retryable)


def sync_result(report: Report) -> SyncResult:
    """Convert the report of a push to the result of the store."""
    return SyncResult(
        pushed=len(report.of(*_SENT)),
        unchanged=len(report.of(SyncStatus.IN_STEP)),
        diverged=len(report.of(*_PARTED)),
        failed=len(report.of(*_NOT_SENT)),
        damaged=sum(one.is_damaged for one in report.outcomes),
        bytes=report.cost.bytes_up,
        requests=report.cost.requests,
        errors=errors_of(report),
        sessions=report.outcomes,
    )


def pull_result(report: Report) -> PullResult:
    """Convert the report of a pull to the result of the store."""
    return PullResult(
        pulled=len(report.of(SyncStatus.PULLED, SyncStatus.TRASHED)),
        unchanged=len(report.of(SyncStatus.IN_STEP)),
        diverged=len(report.of(SyncStatus.DIVERGED)),
        held_back=len(report.of(SyncStatus.HELD_BACK)),
        damaged=sum(one.is_damaged for one in report.outcomes),
        bytes=report.cost.bytes_down,
        errors=errors_of(report),
        sessions=report.outcomes,
    )


def errors_of(report: Report) -> list[SessionaryError]:
    """Return the errors, session by session."""
    return [outcome.error for outcome in report.outcomes if isinstance(outcome.error, SessionaryError)]
