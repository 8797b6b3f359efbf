"""The mailbox of a work session: every message is applied exactly once, despite crashes.

Producers write messages as files to the folders of the session and never change them. A consumer applies each
one to its log. They communicate only by these files, so any number of both can run at any time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, expanded, stat_or_none
from sessionary.disk.lifetime import ClosedOnExit
from sessionary.disk.lock import holder
from sessionary.errors import Invalid
from sessionary.layouts import ledger_owner
from sessionary.layouts.maestro.breadcrumbs import Crumb
from sessionary.layouts.maestro.names import BREADCRUMBS, ERRORS, default_root, depth_of
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox.attempts import DeadLetter
from sessionary.mailbox.consumer import Box, concerns, mark_of
from sessionary.mailbox.delivery import Failure, Handler, Round
from sessionary.mailbox.folders import Place
from sessionary.mailbox.problems import WORK
from sessionary.mailbox.watching import Stop, is_set, wait, waker
from sessionary.model import Problem
from sessionary.xdg import state_folder

TIMEOUT = 5.0
ATTEMPTS = 5
DELIVERIES = ("at_least_once", "at_most_once")
INTERVAL = 1.0
SHORTEST_INTERVAL = 0.1


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one call of `consume`.

    Attributes:
        applied: number of messages newly logged, durably.
        pending: number of messages left: those beyond the limit, failed ones, those held by other processes,
        and new arrivals.
        problems: failed attempts, dead letters; once for each consumer, invalid message files and damage in
        the log; and once for each `Mailbox`, unreadable files.
        failures: the exceptions of the handler.
        unwritten: number of files that may be incomplete.
        bad: invalid message files, as ``<depth>/<name>``, including those reported by an earlier call.
        damaged: number of unreadable lines of the log, including those reported by an earlier call.
    """

    applied: int
    pending: int
    problems: list[Problem] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    unwritten: int = 0
    bad: list[str] = field(default_factory=list)
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a consumer.

    Attributes:
        consumer: its name.
        applied: number of messages in its log.
        pending: number of pending messages.
        unwritten: number of files that may be incomplete.
        failing: number of failures, by the id of a pending message.
        dead: messages that were given up.
        bad: invalid message files, as ``<depth>/<name>``.
        worker: the process that is consuming now, as far as known; empty if there is none.
        problems: problems of files and log.
    """

    consumer: str
    applied: int
    pending: int
    unwritten: int
    failing: dict[str, int]
    dead: list[DeadLetter]
    bad: list[str]
    worker: dict[str, Any]
    problems: list[Problem]


class Mailbox(ClosedOnExit):
    """The messages of one work session, for one consumer.

    Args:
        session_dir: the folder of the session, with `session.json` and `breadcrumbs/` in it.
        consumer: the consumer; ``work`` has the log of the session itself, ``log.jsonl``, as its ledger.
        shared: whether several processes may consume under this name at once. Each locks message by message,
        and the order of application is not guaranteed.

    Not thread-safe: use one for each thread.

    Raises:
        InvalidId: the consumer's name is not valid.
        NotFound: the folder does not exist.
        StorageFailed: the document of the session, which determines its message folders, cannot be read.
    """

    def __init__(
        self, session_dir: str | os.PathLike[str], consumer: str = WORK, *, shared: bool = False
    ) -> None:
        self._box = Box(OS_FS, _folder(session_dir), consumer, shared=shared, state=state_folder())
        self._reported: set[Problem] = set()

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        session_dir: str | os.PathLike[str],
        consumer: str = WORK,
        *,
        shared: bool = False,
        now: Callable[[], datetime] | None = None,
        state: str | None = None,
    ) -> Self:
        """A mailbox over another file system or clock, for tests.

        Without `state`, our folder in the user's state, no copy of the ledger is kept.
        """
        mailbox = cls.__new__(cls)
        mailbox._box = Box(fs, _folder(session_dir), consumer, shared=shared, now=now, state=state)
        mailbox._reported = set()
        return mailbox

    def consume(
        self,
        handler: Handler,
        *,
        limit: int | None = None,
        timeout: float = TIMEOUT,
        delivery: str = "at_least_once",
        max_attempts: int = ATTEMPTS,
        take_over: bool = False,
    ) -> Report:
        """Call the handler for each pending message, in order, and log what it returns.

        The handler gets a `Breadcrumb` and returns a dict or None. If it raises, the message stays pending
        and the next call retries it, `max_attempts` times in all; later messages are applied meanwhile. After
        a crash its effects outside of the log may be repeated: ``breadcrumb_id`` is the key for
        deduplication. With ``delivery="at_most_once"`` nothing is repeated, and a message interrupted by a
        crash is given up.

        Args:
            handler: called with one breadcrumb.
            limit: maximum number of messages.
            timeout: seconds to wait for another process of this consumer to finish.
            delivery: ``at_least_once`` or ``at_most_once``: the effect of a crash on a message that is being handled.
            max_attempts: number of failures after which a message becomes a dead letter.
            take_over: consume on this device from now on, in place of another one. What that one applies
            before it learns of this is applied twice; see docs/formats/sync.md.

        Durability: applied messages survive a power cut, and are in the log exactly once. If the call does
        not return, some of the messages are applied completely, and the others are delivered again.

        Raises:
            Invalid: an argument is not valid.
            Conflict: another device consumes this mailbox, and `take_over` is False; or the ledger has lost
            lines, whose messages would be applied again (see `restore_ledger` and `accept_ledger`).
            Locked: another process of this consumer worked for the whole time.
            NotFound: the session has been moved or removed; messages that were handled but not logged yet are
            delivered again in its new place.
            StorageFailed: the disk refused; with ``outcome="unknown"`` the last messages may be applied or
            not, which the next call determines.
        """
        _check(limit, max_attempts, delivery)
        box = self._box
        turn = Round(box, handler, max_attempts, once=delivery == "at_most_once")
        if take_over:
            ledger_owner.take_over(box.ledger.path, box.fs)
        ledger_owner.check(box.ledger.path, box.fs)
        box.lock.acquire(timeout, exclusive=not box.shared)
        try:
            box.refresh()
            if box.copy is not None:
                box.copy.check(box.named)
            turn.run(limit)
            box.ledger.settle()
            damage = box.new_damage()
        finally:
            box.lock.release()
        unread = [found for found in turn.unread if found not in self._reported]  # every call finds them
        self._reported.update(unread)
        return Report(
            turn.applied,
            max(0, box.waiting() - turn.unwritten),
            turn.problems + unread + damage,
            turn.failures,
            turn.unwritten,
            [place.file for place in self._bad()],
            len(box.ledger.problems),
        )

    def pending(self) -> list[Breadcrumb]:
        """The pending messages, in order. Takes no lock and changes nothing.

        Unreadable ones are not included; `status` reports them.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: a folder or the log cannot be read.
        """
        return [crumb.breadcrumb for _, crumb in self._peek() if crumb.breadcrumb is not None]

    def status(self) -> Status:
        """The state of this consumer. Takes no lock and changes nothing.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: a folder or the log cannot be read.
        """
        crumbs = [crumb for _, crumb in self._peek()]
        bad = self._bad()
        waiting = {crumb.breadcrumb.breadcrumb_id for crumb in crumbs if crumb.breadcrumb is not None}
        box = self._box
        return Status(
            box.consumer,
            applied=len(box.ledger.ids),
            pending=len(waiting),
            unwritten=sum(crumb.unfinished for crumb in crumbs),
            failing={known: count for known, count in box.attempts.failed.items() if known in waiting},
            dead=[dead for known, dead in box.attempts.dead.items() if known not in box.ledger.ids],
            bad=[place.file for place in bad],
            worker=holder(box.lock.path, box.fs),
            problems=[
                *(found for crumb in crumbs for found in crumb.problems),
                *(found for place in bad if (crumb := box.read(place)) for found in crumb.problems),
                *box.ledger_problems(),
            ],
        )

    def ledger_problems(self) -> list[Problem]:
        """The problems of the log of this consumer. Takes no lock and changes nothing; reads no message.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: the log cannot be read.
        """
        self._box.learn()
        return list(self._box.ledger_problems())

    def watch(self, *, interval: float = INTERVAL, stop: Stop = None) -> Generator[Breadcrumb, None, None]:
        """Yield the pending messages, and then each new one as it arrives, each once. Applies nothing.

        Args:
            interval: seconds between polls, for file systems without notifications and messages from other
            hosts: the maximum delay there.
            stop: an event, or a function, that ends it.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: a folder or the log cannot be read.
        """
        seen: set[str] = set()  # by id: a copy under another name is the same message
        for _ in self._wake_ups(interval, stop):
            for _, crumb in self._peek():
                message = crumb.breadcrumb
                if message is not None and message.breadcrumb_id not in seen:
                    seen.add(message.breadcrumb_id)
                    yield message

    def run(
        self,
        handler: Handler,
        interval: float = INTERVAL,
        stop: Stop = None,
        on_report: Callable[[Report], object] | None = None,
        *,
        timeout: float = TIMEOUT,
        delivery: str = "at_least_once",
        max_attempts: int = ATTEMPTS,
        take_over: bool = False,
    ) -> int:
        """Consume messages until stopped; return the number applied. See `run_inbox`.

        `timeout`, `delivery`, `max_attempts` and `take_over` are those of `consume`.
        """
        applied = 0
        if take_over:
            ledger_owner.take_over(self._box.ledger.path, self._box.fs)
        for _ in self._wake_ups(interval, stop):
            report = self.consume(handler, timeout=timeout, delivery=delivery, max_attempts=max_attempts)
            applied += report.applied
            if on_report is not None and (report.applied or report.problems):
                on_report(report)
        return applied

    def _wake_ups(self, interval: float, stop: Stop) -> Iterator[None]:
        """Yield at the start, whenever something may have arrived, and after each interval."""
        box = self._box
        waking = waker(box.fs, box.folder, concerns)
        try:
            while not is_set(stop):
                # A folder is read after it is watched: later changes wake us.
                if waking.watch([box.folder, *box.folders.paths()]):
                    box.refresh()  # a new folder may already contain folders
                    continue
                yield
                if not waking.watch([box.folder, *box.folders.paths()]):
                    wait(waking, interval, stop)
        finally:
            waking.close()

    def revive(self, *breadcrumb_ids: str) -> list[str]:
        """Retry dead letters, all of them if none is named; return their ids.

        Durability: when this returns, they stay pending.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: the disk refused.
        """
        attempts = self._box.attempts
        self._box.learn()
        chosen = [known for known in breadcrumb_ids or tuple(attempts.dead) if known in attempts.dead]
        for known in chosen:
            attempts.revive(known)
        attempts.flush()
        return chosen

    def quarantine(self) -> list[str]:
        """Move the files that were reported as invalid to `breadcrumbs/error/`; return their new paths.

        Durability: each move survives a power cut when this returns, and is whole at every moment.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is running, or another process held the session for the whole time.
            StorageFailed: the disk refused; some may have been moved.
        """
        # The lock of the session, too: another consumer may move the same file, or another one to the same
        # name.
        with self._box.lock.held(TIMEOUT), self._box.session_lock.held(TIMEOUT):
            self._box.learn()
            return [moved for place in self._bad() if (moved := self._set_aside(place)) is not None]

    def restore_ledger(self) -> int:
        """Restore lines that were applied here and are missing in the ledger; return the number of messages.

        They can be missing after a switch of branches, a stash or a restored backup. The lines come from the
        copy in the user's state folder.

        Durability: when this returns, these messages stay applied. If interrupted, some of them do.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is running, or another process held the session for the whole time.
            StorageFailed: the disk refused.
        """
        with self._box.lock.held(TIMEOUT):
            self._box.learn()
            copy = self._box.copy
            return 0 if copy is None else self._box.ledger.append(copy.lost())

    def set_damage_aside(self) -> int:
        """Remove the unreadable lines from the ledger; return their number.

        The old ledger is kept beside it. Call `restore_ledger` first: a message that only such a line
        acknowledges is delivered again.

        Durability: when this returns, it survives a power cut; until then the ledger is unchanged.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is running, or another process held the session for the whole time.
            StorageFailed: the disk refused.
        """
        with self._box.lock.held(TIMEOUT):
            self._box.learn()
            return self._box.ledger.drop_damage(self._box.now()) if self._box.ledger.problems else 0

    def accept_ledger(self) -> int:
        """Accept the ledger as it is; return the number of messages that are applied again because they are missing.

        Durability: none; after a power cut the ledger may have to be accepted again. The old copy is kept
        beside the new one.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is running.
            StorageFailed: the disk refused.
        """
        with self._box.lock.held(TIMEOUT):
            self._box.learn()
            copy = self._box.copy
            missing = set() if copy is None else copy.missing()
            if copy is not None and missing:
                copy.accept(self._box.now())
            return len(missing)

    def close(self) -> None:
        """Close all files. The mailbox can be used again, and closed again."""
        self._box.close()

    def _peek(self) -> Iterator[tuple[Place, Crumb]]:
        """The content of the queued places, in order: messages, each once, and invalid files."""
        self._box.refresh()
        seen: set[str] = set()
        for place in self._box.folders.queue():
            crumb = self._box.read(place) if self._box.wants(place) else None
            known = crumb and crumb.breadcrumb and crumb.breadcrumb.breadcrumb_id
            if crumb is not None and known not in seen:
                seen.update([known] if known else [])
                yield place, crumb

    def _bad(self) -> list[Place]:
        """The files that were reported and have not changed since."""
        places = [self._place(file) for file in self._box.attempts.bad]
        marks = self._box.attempts.bad
        return [place for place in places if marks[place.file].is_of(mark_of(self._box.fs, place))]

    def _place(self, file: str) -> Place:
        label, _, name = file.rpartition("/")
        path = os.path.normpath(os.path.join(self._box.folder, BREADCRUMBS, label, name))
        return Place(name, depth_of(os.path.basename(label)) or 0, label, path)

    def _set_aside(self, place: Place) -> str | None:
        """Move a file; None if its producer has completed it since it was judged: then it stays."""
        name = os.path.join(self._box.folder, BREADCRUMBS, ERRORS, f"{place.depth}-{place.name}")
        target = atomic.unused(self._box.fs, atomic.numbered(name, mark="."))
        atomic.move_folder(place.path, target, fs=self._box.fs)
        found, bad = stat_or_none(self._box.fs, target), self._box.attempts.bad[place.file]
        if found is not None and (found.st_size, found.st_mtime_ns) != (bad.size, bad.mtime_ns):
            atomic.move_file(target, place.path, fs=self._box.fs)
            return None
        return target


def run_inbox(
    session_id: str,
    apply: Handler,
    interval: float = INTERVAL,
    stop: Stop = None,
    *,
    base_path: str | os.PathLike[str] | None = None,
    consumer: str = WORK,
    shared: bool = False,
    on_report: Callable[[Report], object] | None = None,
) -> int:
    """Apply the messages of a session as they arrive; return the number applied.

    Pending messages are applied at once, new ones as soon as the system notifies of them; every `interval`
    seconds the folders are polled. In between the process sleeps.

    Args:
        session_id: the session: its id, the beginning of its id, or ``latest``.
        apply: as the handler of `Mailbox.consume`.
        interval: seconds between two polls, at least 0.1; also the pause before a failed message is retried.
        stop: an event, or a function, that ends the loop; without one it ends only by an exception.
        base_path: the folder of the sessions, by default `docs/sessions` of the current folder.
        consumer: the consumer, and its ledger.
        shared: whether other processes may work under that name at the same time.
        on_report: called with each report of applied messages or problems.

    Durability: as `Mailbox.consume`: applied messages are durable, and the loop always ends between two messages.

    Raises:
        InvalidId: the id, or the name of the consumer, is not valid.
        NotFound: the session does not exist.
        AmbiguousId: several sessions match.
        Locked: another process works as this consumer.
        StorageFailed: the disk refused.
    """
    with Mailbox(_session_folder(session_id, base_path), consumer, shared=shared) as mailbox:
        return mailbox.run(apply, max(interval, SHORTEST_INTERVAL), stop, on_report)


def _session_folder(session_id: str, base_path: str | os.PathLike[str] | None) -> str:
    store = WorkStore(default_root() if base_path is None else base_path)
    return store.folder(store.resolve(session_id))


def _check(limit: int | None, max_attempts: int, delivery: str) -> None:
    if max_attempts < 1 or (limit is not None and limit < 0):
        raise Invalid("limit and max_attempts must be positive", operation="consume")
    if delivery not in DELIVERIES:
        hint = f"use one of {DELIVERIES}"
        raise Invalid(f"invalid delivery {delivery!r}", operation="consume", hint=hint)


def _folder(session_dir: str | os.PathLike[str]) -> str:
    return os.path.realpath(expanded(session_dir))
