"""What carries the sessions of one store: the engine, bound to one project, one other side and one memory of it.

The courier calls it behind the back of whoever writes, and `sync` and `pull` call it when they are asked. Only one of
them is at work at a time. None of them may keep the store alive, so the store is not known here.
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
from sessionary.layouts.amplifier.observers import ears_of
from sessionary.layouts.amplifier.presence import Presence, why_open
from sessionary.layouts.amplifier.sync_adapter import StoreSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.background_sync import Courier, Delivered
from sessionary.sync.engine import Engine
from sessionary.sync.remote import HeadRecord, Remote, WrappedRemote
from sessionary.sync.report import Outcome, Report, SyncStatus, joined

TURN = 60.0
"""Seconds that a `sync` or `pull` waits for the one that is under way in this program."""

_log = logging.getLogger("sessionary.sync")
_NOT_SENT_YET = "%d sessions could not be sent yet: %s"
_SENT = (SyncStatus.PUSHED, SyncStatus.TRASHED)
_PARTED = (SyncStatus.DIVERGED, SyncStatus.BEHIND)
_NOTHING_SENT = (Invalid, Locked, NotFound, RemoteError, StorageFailed)
"""What may be wrong before the first session: the choices of `sync init`, the remote, the disk, another program."""
_NOT_SENT = (SyncStatus.FAILED, SyncStatus.HELD_BACK)


class Carrier:
    """Carries the sessions of one store.

    Args:
        place: which, and where.
        connect: makes the connection to the other side.

    Attributes:
        open: the ids of the sessions that the store has open.
        presence: tells other programs of them.
        fs: the file system.
        now: the clock.
        last: what the last push behind the store's back did.
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
        self.courier = Courier(self._send)
        self._ears = ears_of(os.path.realpath(place.base_dir)) if place.logs else []

    def use(self, fs: Fs, now: Callable[[], datetime]) -> None:
        """Work over another file system and clock: for proofs and doubles."""
        self.fs, self.now = fs, now
        self._project = OneProject(self._place, fs)
        self.presence = Presence(fs)

    # -- what is open

    def opened(self, session: str, folder: str) -> None:
        """The store has this session open, until it says otherwise."""
        if session != self._opened_last:  # most calls are about the session of the call before
            self._opened_last = session
            self.open.add(session)
            self.presence.enter(folder)

    def release(self, folder: str) -> None:
        """It has it open no more."""
        self._opened_last = ""
        self.open.discard(folder.rpartition("/")[2])
        self.presence.leave(folder)

    def release_all(self) -> None:
        """It has none open any more."""
        self._opened_last = ""
        self.open.clear()
        self.presence.leave_all()

    # -- behind the store's back

    def look_through(self) -> None:
        """See to what earlier programs may have left unsent, when there is nothing better to do."""
        self.courier.look_through(self._look_through)

    def listen(self) -> None:
        """Hear of events that this program appends, if logs are carried, however it came to the log."""
        if self._place.logs:
            self._ears.append(self.courier.touched)

    def _look_through(self) -> list[str]:
        """All sessions that are here; and what the remote has of them, asked once: it may have lost some.

        At the end of a program there is no time for that. Then it is found out with the next turn of each.
        """
        ids = self._ids()
        self._unlooked = set()
        if ids and not self.courier.patience:
            with suppress(SessionaryError):
                self._listed = self._behind().listed()
                self._unlooked = set(ids)
        return ids

    def _ids(self) -> list[str]:
        return [ref.session_id for ref in self._layout().discover()]

    def _behind(self) -> Engine:
        """An engine that works until the courier is told to give up, and waits for nobody."""
        over = self.courier.given_up

        def pause(seconds: float) -> None:
            over.wait(seconds)

        remote = _Late(self._connected, over.is_set)
        return self._engine(remote, patience=self.courier.patience, sleep=pause)

    def _send(self, sessions: list[str]) -> Delivered:
        over = self.courier.given_up
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
        """Send these. Of those that were not sent since, what was listed says whether the remote has lost them."""
        first = [session for session in sessions if session in self._unlooked]
        others = [session for session in sessions if session not in self._unlooked]
        self._unlooked.difference_update(first)
        if not first:
            return self._behind().push(map(self._place.ref, others))
        engine = self._behind()
        report = engine.push(map(self._place.ref, first), listed=self._listed)
        if others:
            report = joined(report, engine.push(map(self._place.ref, others)))
        return report

    # -- what is asked for

    def unsent(self) -> list[str]:
        """The sessions that are not known to be on the other side as they are here.

        Raises:
            Invalid, NotFound: what was chosen with `sync init` cannot be read.
            StorageFailed: the sessions cannot be listed.
        """
        waiting = self.courier.waiting  # read first: what is sent meanwhile may be named, never left out
        if self._project.known() is None:  # then nothing was sent yet, and nothing is asked of the remote
            return sorted({*waiting, *self._ids()})
        return sorted({*waiting, *self._engine(_Late(self._connected)).unsent()})

    def push(self) -> SyncResult:
        """Send everything that is new here. What goes wrong is in the result."""
        since = self.courier.clock()
        try:
            with self._alone():
                report = self._engine(_Late(self._connected)).push()
        except (Unsupported, *_NOTHING_SENT) as error:
            return SyncResult(failed=len(self.courier.waiting), errors=[error])
        again = set(unsent(report))
        if not again:
            self.courier.carried(since)
        return sync_result(report)

    def pull(self) -> PullResult:
        """Bring here everything that is new there. What goes wrong is in the result.

        Raises:
            Unsupported: the other side cannot be asked by this installation.
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
                self.courier.touched(outcome.sibling)
        return pull_result(report)

    def resolve(self, session: str, keep: str) -> SyncResult:
        """Decide which version of a damaged file stands. What goes wrong on the way is in the result.

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
        """It was changed a moment ago, but by us, and nobody is at work on it: the next pull may change it again."""
        folder = self._place.ref(session).folder
        self.presence.enter(folder)
        self.presence.leave(folder)

    def end(self, timeout: float) -> None:
        """Send what waits, for at most so many seconds; then nothing is open any more, here or on the other side."""
        if self._place.logs:  # others may have logged since, who told nobody
            for session in self.open:
                self.courier.touched(session)
        self.forgotten()
        self.courier.close(timeout)
        self.release_all()
        close = getattr(self._remote, "close", None)  # a remote may have something to close; none has to
        if close is not None and not self._turn.locked():
            with suppress(Exception):  # whatever a driver has to say at its end, nothing here depends on it
                close()

    def forgotten(self) -> None:
        """Nobody has the store any more: send what waits, and end."""
        with suppress(ValueError):
            self._ears.remove(self.courier.touched)
        self.courier.finish()

    def forget_parent(self) -> None:
        """In a forked child: the parent goes on with its connection, which must not even be closed here."""
        if self._remote is not None:
            self._inherited.append(self._remote)
            self._remote = None
        self._turn = threading.Lock()
        self.presence.forget()
        self._opened_last = ""

    # -- how

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One at a time in this program, waited for without polling; the engine sees to other programs."""
        turn = self._turn
        if not turn.acquire(timeout=TURN):
            raise Locked("another synchronisation of this program takes long", operation="sync")
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
            quiet=0,  # asked of `why_open`, which knows better
            patience=patience,
            fs=self.fs,
            now=self.now,
            sleep=sleep,
        )

    def _in_use(self, ref: SessionRef) -> bool:
        if ref.session_id in self.open:
            return True
        now, quiet = self.now().timestamp(), self._place.quiet
        return why_open(ref.folder, now=now, quiet=quiet, fs=self.fs) is not None


class _Late(WrappedRemote):
    """A remote that is connected when it is first asked something, and refuses everything once it is over."""

    def __init__(self, connected: Callable[[], Remote], over: Callable[[], bool] = lambda: False) -> None:
        self._connected = connected
        self._over = over

    @property
    def inner(self) -> Remote:
        if self._over():
            raise RemoteError("the store was closed", hint="what is not sent goes when it is opened again")
        return self._connected()


def unsent(report: Report) -> list[str]:
    """The sessions of a push that are to be sent once more by themselves.

    Where the other side refuses one of many, asking again changes nothing until that one changes; where it refuses
    all, something else is wrong, and may be put right.
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
    """A push in the words of the store."""
    return SyncResult(
        pushed=len(report.of(*_SENT)),
        unchanged=len(report.of(SyncStatus.IN_STEP)),
        diverged=len(report.of(*_PARTED)),
        failed=len(report.of(*_NOT_SENT)),
        damaged=_damaged(report),
        bytes=report.cost.bytes_up,
        requests=report.cost.requests,
        errors=errors_of(report),
        sessions=report.outcomes,
    )


def pull_result(report: Report) -> PullResult:
    """A pull in the words of the store."""
    return PullResult(
        pulled=len(report.of(SyncStatus.PULLED, SyncStatus.TRASHED)),
        unchanged=len(report.of(SyncStatus.IN_STEP)),
        diverged=len(report.of(SyncStatus.DIVERGED)),
        held_back=len(report.of(SyncStatus.HELD_BACK)),
        damaged=_damaged(report),
        bytes=report.cost.bytes_down,
        errors=errors_of(report),
        sessions=report.outcomes,
    )


def _damaged(report: Report) -> int:
    return sum(any(not hold.is_behind for hold in outcome.held) for outcome in report.outcomes)


def errors_of(report: Report) -> list[SessionaryError]:
    """What went wrong, session by session."""
    return [outcome.error for outcome in report.outcomes if isinstance(outcome.error, SessionaryError)]
