"""The mailbox of a work session: every message applied exactly once, whatever crashes.

Producers leave messages as files in the folders of the session and never touch them again. A consumer applies each
one to its log. Nobody tells the other anything but by these files, so any number of both may come and go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, expanded, stat_or_none
from sessionary.disk.lock import holder
from sessionary.errors import AlreadyExists, Invalid
from sessionary.layouts import ledger_owner
from sessionary.layouts.maestro.breadcrumbs import Crumb
from sessionary.layouts.maestro.names import BREADCRUMBS, ERRORS, depth_of
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.mailbox.attempts import DeadLetter
from sessionary.mailbox.consumer import Box, concerns, mark_of
from sessionary.mailbox.delivery import Failure, Handler, Round, check_delivery
from sessionary.mailbox.folders import Place
from sessionary.mailbox.problems import WORK
from sessionary.mailbox.watching import Stop, is_set, wait, waker
from sessionary.model import Problem
from sessionary.xdg import xdg_folder

TIMEOUT = 5.0
ATTEMPTS = 5
INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class Report:
    """What one call of `consume` did.

    Attributes:
        applied: messages that are in the log now and were not before, durably.
        pending: messages that wait: those behind the limit, those whose handler raised, those that others have
            claimed, and what has come meanwhile.
        problems: what is to be told: failed attempts, dead letters; once for each consumer, files that are no messages
            and damage in the log; and once for each `Mailbox`, files that may not be read.
        failures: the exceptions of the handler.
        unwritten: files whose producers may still be writing.
        bad: files that are no messages, as ``<depth>/<name>``, those too that an earlier call has told of.
        damaged: lines of the log that cannot be read, those too that an earlier call has told of.
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
    """How a consumer stands.

    Attributes:
        consumer: its name.
        applied: messages in its log.
        pending: messages that wait.
        unwritten: files whose producers may still be writing.
        failing: how often the handler has failed, by the id of a message that waits.
        dead: messages that were given up.
        bad: files that are no messages, as ``<depth>/<name>``.
        worker: who consumes at this moment, as far as the system tells; empty if nobody does.
        problems: what is wrong with files and log.
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


class Mailbox:
    """The messages of one work session, as one consumer sees them.

    Args:
        session_dir: the folder of the session, with `session.json` and `breadcrumbs/` in it.
        consumer: whose ledger; ``work`` is the log of the session itself, ``log.jsonl``.
        shared: whether several processes may consume under this name at once. Each claims message by message, and
            nothing is promised of the order in which these are applied.

    Not for several threads: give each its own.

    Raises:
        InvalidId: the consumer's name cannot be one.
        NotFound: there is no such folder.
        StorageFailed: the document of the session, which says where its messages may lie, cannot be read.
    """

    def __init__(
        self, session_dir: str | os.PathLike[str], consumer: str = WORK, *, shared: bool = False
    ) -> None:
        self._box = Box(OS_FS, _folder(session_dir), consumer, shared=shared, state=state_folder())
        self._told: set[Problem] = set()

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
        """A mailbox over another file system seam or clock: for proofs and doubles.

        Without `state`, our folder in the user's state, no copy of the ledger is kept.
        """
        mailbox = cls.__new__(cls)
        mailbox._box = Box(fs, _folder(session_dir), consumer, shared=shared, now=now, state=state)
        mailbox._told = set()
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
        """Give each message that waits to the handler, in order, and write what it returns into the log.

        The handler gets a `Breadcrumb` and returns a dict or None. If it raises, the message stays pending and is
        tried again by the next call, `max_attempts` times in all; those behind it are applied meanwhile. Its
        effects on anything but the log may be repeated by a crash: ``breadcrumb_id`` is the key by which the other
        side can tell. With ``delivery="at_most_once"`` nothing is ever repeated, and what a crash cuts off is given
        up.

        Args:
            handler: called with one breadcrumb.
            limit: handle at most so many messages.
            timeout: seconds to wait for another process of this consumer to finish.
            delivery: ``at_least_once`` or ``at_most_once``: what a crash does to a message that is being handled.
            max_attempts: after so many failures a message becomes a dead letter.
            take_over: consume here from now on, though another device does so far. What it applies before it hears of
                that is applied twice; see docs/formats/sync.md.

        Durability: what counts as applied survives a power cut, and is in the log exactly once. If the call does
        not return, some of the messages are applied, each whole, and the others are delivered again.

        Raises:
            Invalid: an argument makes no sense.
            Conflict: another device consumes this mailbox, and this one is not to take over; or the ledger has gone
                back, and what it no longer has would be applied again (see `restore_ledger` and `accept_ledger`).
            Locked: another process of this consumer worked all the time.
            NotFound: the session has been moved or removed; what was handled and not written down yet is delivered
                again by whoever opens it where it lies now.
            StorageFailed: the disk refused; with ``outcome="unknown"`` the last messages may be applied or not, and
                the next call finds out.
        """
        if max_attempts < 1 or (limit is not None and limit < 0):
            raise Invalid("limit and max_attempts count messages and attempts", operation="consume")
        turn = Round(self._box, handler, check_delivery(delivery), max_attempts)
        if take_over:
            ledger_owner.take_over(self._box.ledger.path, self._box.fs)
        ledger_owner.check(self._box.ledger.path, self._box.fs)
        self._box.lock.acquire(timeout, exclusive=not self._box.shared)
        try:
            self._box.refresh()
            self._box.refuse_older_ledger()
            turn.run(limit)
            self._box.ledger.settle()
            damage = self._box.new_damage()
        finally:
            self._box.lock.release()
        return Report(
            turn.applied,
            max(0, self._box.waiting() - turn.unwritten),
            turn.problems + self._untold(turn.unread) + damage,
            turn.failures,
            turn.unwritten,
            [place.file for place in self._bad()],
            len(self._box.ledger.problems),
        )

    def pending(self) -> list[Breadcrumb]:
        """The messages that are not applied yet, in order. Takes no lock and changes nothing.

        What cannot be read is not among them; `status` tells of it.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: a folder or the log cannot be read.
        """
        return [crumb.breadcrumb for _, crumb in self._peek() if crumb.breadcrumb is not None]

    def status(self) -> Status:
        """How this consumer stands. Takes no lock and changes nothing.

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
        """What is wrong with the log of this consumer. Takes no lock and changes nothing; looks at no message.

        Raises:
            NotFound: the session has been moved or removed.
            StorageFailed: the log cannot be read.
        """
        self._box.learn()
        return list(self._box.ledger_problems())

    def watch(self, *, interval: float = INTERVAL, stop: Stop = None) -> Generator[Breadcrumb, None, None]:
        """The messages that wait, and then each new one as it comes, each once. Nothing is applied by this.

        Args:
            interval: seconds after which to look even if the system has told of nothing: on file systems that do
                not tell, and where the messages come from another host, this is how late they are.
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
        tell: Callable[[Report], object] | None = None,
        *,
        timeout: float = TIMEOUT,
        delivery: str = "at_least_once",
        max_attempts: int = ATTEMPTS,
        take_over: bool = False,
    ) -> int:
        """Consume whatever comes until told to stop; returns how many messages were applied. See `run_inbox`.

        `timeout`, `delivery`, `max_attempts` and `take_over` are those of `consume`.
        """
        applied = 0
        if take_over:
            ledger_owner.take_over(self._box.ledger.path, self._box.fs)
        for _ in self._wake_ups(interval, stop):
            report = self.consume(handler, timeout=timeout, delivery=delivery, max_attempts=max_attempts)
            applied += report.applied
            if tell is not None and (report.applied or report.problems):
                tell(report)
        return applied

    def _wake_ups(self, interval: float, stop: Stop) -> Iterator[None]:
        """Once at the beginning, whenever something may have come, and after each interval."""
        box = self._box
        waking = waker(box.fs, box.folder, concerns)
        try:
            while not is_set(stop):
                # What lies in a folder is looked at after it is watched: what comes later will wake us.
                if waking.watch([box.folder, *box.folders.paths()]):
                    box.refresh()  # a folder that has just come may have folders in it
                    continue
                yield
                if not waking.watch([box.folder, *box.folders.paths()]):
                    wait(waking, interval, stop)
        finally:
            waking.close()

    def revive(self, *breadcrumb_ids: str) -> list[str]:
        """Let dead letters be tried again, all of them if none is named; returns their ids.

        Durability: when this returns, they are pending whatever happens.

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
        """Move the files that were reported as no messages to `breadcrumbs/error/`; returns their new paths.

        Durability: each move survives a power cut when this returns, and is whole at every moment.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is at work, or somebody held the session all the time.
            StorageFailed: the disk refused; some may have been moved.
        """
        # The lock of the session, too: another consumer may move the same file, or another one to the same name.
        with self._box.lock.held(TIMEOUT), self._box.session_lock.held(TIMEOUT):
            self._box.learn()
            return [moved for place in self._bad() if (moved := self._set_aside(place)) is not None]

    def restore_ledger(self) -> int:
        """Put back into the ledger what was applied here and is no longer in it; returns how many messages that are.

        So it is after a switch of branches, a stash or a restored backup. The lines come from the copy in the user's
        state folder.

        Durability: when this returns, these messages count as applied whatever happens. Cut off, some of them do.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is at work, or somebody held the session all the time.
            StorageFailed: the disk refused.
        """
        with self._box.lock.held(TIMEOUT):
            self._box.learn()
            copy = self._box.copy
            return 0 if copy is None else self._box.ledger.append(copy.lost())

    def set_damage_aside(self) -> int:
        """Take the lines that cannot be read out of the ledger; returns how many these are.

        The ledger as it was is kept beside it. First of all call `restore_ledger`: a message that only such a line
        acknowledges is delivered again.

        Durability: when this returns, it survives a power cut; until then the ledger is as it was.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is at work, or somebody held the session all the time.
            StorageFailed: the disk refused.
        """
        with self._box.lock.held(TIMEOUT):
            self._box.learn()
            return self._box.ledger.drop_damage(self._box.now()) if self._box.ledger.problems else 0

    def accept_ledger(self) -> int:
        """Take the ledger as it is; returns how many messages are applied again because it no longer has them.

        Durability: none; after a power cut the ledger may have to be accepted again. The old copy is kept beside the
        new one.

        Raises:
            NotFound: the session has been moved or removed.
            Locked: the consumer is at work.
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
        """Give the descriptors back. The mailbox can be used again, and closed again."""
        self._box.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _peek(self) -> Iterator[tuple[Place, Crumb]]:
        """What lies in the places of the queue, in order: messages, each once, and what is none."""
        self._box.refresh()
        seen: set[str] = set()
        for place in self._box.folders.queue():
            crumb = self._box.read(place) if self._box.wants(place) else None
            known = crumb and crumb.breadcrumb and crumb.breadcrumb.breadcrumb_id
            if crumb is not None and known not in seen:
                seen.update([known] if known else [])
                yield place, crumb

    def _bad(self) -> list[Place]:
        """The files that were reported and are still as they were then."""
        places = [self._place(file) for file in self._box.attempts.bad]
        marks = self._box.attempts.bad
        return [place for place in places if marks[place.file].is_of(mark_of(self._box.fs, place))]

    def _place(self, file: str) -> Place:
        label, _, name = file.rpartition("/")
        path = os.path.normpath(os.path.join(self._box.folder, BREADCRUMBS, label, name))
        return Place(name, depth_of(os.path.basename(label)) or 0, label, path)

    def _set_aside(self, place: Place) -> str | None:
        """Move a file away; None if its producer has finished it since it was judged: then it stays where it is."""
        folder = os.path.join(self._box.folder, BREADCRUMBS, ERRORS)
        number = 1
        while True:
            suffix = "" if number == 1 else f".{number}"
            target = os.path.join(folder, f"{place.depth}-{place.name}{suffix}")
            try:
                atomic.move_folder(place.path, target, fs=self._box.fs)
            except AlreadyExists:
                number += 1
                continue
            found, bad = stat_or_none(self._box.fs, target), self._box.attempts.bad[place.file]
            if found is not None and (found.st_size, found.st_mtime_ns) != (bad.size, bad.mtime_ns):
                atomic.move_file(target, place.path, fs=self._box.fs)
                return None
            return target

    def _untold(self, lasting: list[Problem]) -> list[Problem]:
        """What this object has not told of yet, of what every call finds again."""
        fresh = [found for found in lasting if found not in self._told]
        self._told.update(fresh)
        return fresh


def state_folder() -> str | None:
    """Our folder in the state of the user, where the copies of ledgers lie; None if there is no place for it."""
    return xdg_folder("XDG_STATE_HOME", "~/.local/state")


def _folder(session_dir: str | os.PathLike[str]) -> str:
    return os.path.realpath(expanded(session_dir))
