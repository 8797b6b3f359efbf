"""One call of `consume`: each message in order to the handler, each result to the ledger.

Results are written in batches, because a flush takes longer than most handlers and makes any number of lines
durable. A batch ends with its 64th line, or when its first has waited for 50 ms: so the results of a slow
handler are written at once, and a crash repeats little. A message counts as applied only after its flush.

Of processes that consume together, a busy one pauses once for 20 ms, and takes what has arrived meanwhile into its
batch: each round lists a folder that may hold thousands of names, and flushes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sessionary.codec import sanitize
from sessionary.errors import Invalid, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import Crumb, unreadable_crumb
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.mailbox.attempts import in_words
from sessionary.mailbox.consumer import Box, mark_of
from sessionary.mailbox.folders import Place
from sessionary.mailbox.ledger import Entry, entry
from sessionary.mailbox.message_lock import Claim
from sessionary.mailbox.problems import dead_letter, handler_failed
from sessionary.model import Problem

LINES = 64
SECONDS = 0.05
PAUSE = 0.02

Handler = Callable[[Breadcrumb], Mapping[str, Any] | None]
INTERRUPTED = "its only attempt was interrupted, with an unknown outcome"


class Failure(NamedTuple):
    """A handler that raised.

    Attributes:
        breadcrumb_id: the message.
        file: ``<depth>/<name>``.
        attempt: the attempt number, from 1.
        error: the exception, with its traceback.
    """

    breadcrumb_id: str
    file: str
    attempt: int
    error: Exception


class Round:
    """One pass over the pending messages; two, if processes that consume together are busy.

    Attributes:
        applied: number of messages applied and durable.
        unwritten: files that may still be incomplete.
        problems: problems to report.
        unread: files that cannot be read now: every round checks them again.
        failures: exceptions of handlers.
    """

    def __init__(self, box: Box, handler: Handler, max_attempts: int, *, once: bool) -> None:
        self.applied = 0
        self.unwritten = 0
        self.problems: list[Problem] = []
        self.unread: list[Problem] = []
        self.failures: list[Failure] = []
        self._box = box
        self._handler = handler
        self._once = once
        self._max_attempts = 1 if self._once else max_attempts
        self._handled = 0
        self._batch: list[Entry] = []
        self._tried: set[str] = set()  # one attempt per round, even if a message has several names
        self._claims: list[Claim] = []
        self._began = 0.0
        self._met = False  # whether another process held a message

    def run(self, limit: int | None) -> None:
        """Handle the pending messages, at most `limit`.

        Raises:
            Locked, StorageFailed: the ledger could not be written; messages handled since the last batch may
            be delivered again.
        """
        try:
            self._pass(limit)
            if self._may_grow(limit):
                time.sleep(PAUSE)
                self._box.refresh()
                self._pass(limit)
        finally:  # results are written whatever ends the loop, even an interrupt
            try:
                self._commit()
                self._box.attempts.flush()
            finally:
                self._let_go()

    def _pass(self, limit: int | None) -> None:
        self.unwritten, self.unread = 0, []
        # A late message with an older name waits for the next pass.
        for place in self._box.folders.queue():
            if limit is not None and self._handled >= limit:
                break
            self._visit(place)

    def _may_grow(self, limit: int | None) -> bool:
        """True if several processes consume and are busy: after a pause, more messages share a listing and a flush."""
        if not self._box.shared or self._handled == limit or (self._batch and self._is_due()):
            return False
        return self._met or len(self._batch) > 1

    def _visit(self, place: Place) -> None:
        if not self._box.wants(place):
            return
        if not self._box.shared:
            self._deliver(place)
        elif (claim := self._claim(place)) is not None:
            self._claims.append(claim)
            if not self._deliver(place, claim.fd):
                self._claims.pop().let_go()
        if self._batch and (self._once or self._is_due()):
            self._commit()

    def _claim(self, place: Place) -> Claim | None:
        """The lock, if the message is ours now. Its last owner wrote its result before the release."""
        try:
            claim = Claim.take(self._box.fs, place.path)
        except FileNotFoundError:  # it was moved, as by `quarantine`, and will not be applied
            self._box.folders.leave(place)
            return None
        except StorageFailed as error:
            self._set_down(place, Crumb(None, (unreadable_crumb(place.path, error),)))
            return None
        if claim is None:
            self._met = True
            return None
        self._box.learn()
        applied = place.name in self._box.ledger.names.get(place.label, ())
        if applied and not self._box.folders.is_contested(place):
            claim.let_go()
            return None
        return claim

    def _deliver(self, place: Place, fd: int | None = None) -> bool:
        """Read the message and call the handler; True if there is something to write."""
        crumb = self._box.read(place, fd)
        if crumb is None:
            return False
        if crumb.breadcrumb is None:
            self._set_down(place, crumb)
            return False
        if crumb.breadcrumb.breadcrumb_id in self._tried:
            return False
        self.problems += crumb.problems
        return self._handle(place, crumb.breadcrumb)

    def _handle(self, place: Place, message: Breadcrumb) -> bool:
        known = message.breadcrumb_id
        self._tried.add(known)
        if self._once:
            if known in self._box.attempts.started:
                self._give_up(place, known, 1, INTERRUPTED)
                return False
            self._box.attempts.start(known, place.file)
        self._handled += 1
        try:
            result = _storable(self._handler(message))
        except Exception as error:  # noqa: BLE001 - any exception of a handler is a failed attempt
            self._fail(place, known, error)
            return False
        if not self._batch:
            self._began = time.monotonic()
        self._batch.append(entry(known, place.file, result, self._box.now()))
        return True

    def _is_due(self) -> bool:
        return len(self._batch) >= LINES or time.monotonic() - self._began >= SECONDS

    def _commit(self) -> None:
        """Write the results; a message counts as applied once they are durable."""
        batch, self._batch = self._batch, []  # a failed batch is not written again
        if batch:
            self.applied += self._box.ledger.append(batch)
        self._let_go()

    def _let_go(self) -> None:
        while self._claims:
            self._claims.pop().let_go()

    def _fail(self, place: Place, known: str, error: Exception) -> None:
        count = self._box.attempts.fail(known, place.file, error)
        self.failures.append(Failure(known, place.file, count, error))
        if count >= self._max_attempts:
            self._give_up(place, known, count, in_words(error))
        else:
            self.problems.append(handler_failed(place, in_words(error), count, self._max_attempts))

    def _give_up(self, place: Place, known: str, attempts: int, error: str) -> None:
        self._box.attempts.give_up(known, place.file, attempts, error)
        self._box.folders.ignore(place)
        self.problems.append(dead_letter(place.path, attempts, error, self._box.named))

    def _set_down(self, place: Place, crumb: Crumb) -> None:
        """Handle an invalid message file: wait while it is young or unreadable, else report it once."""
        if crumb.unfinished:
            self.unwritten += 1
            return
        if any(found.code == "unreadable_file" for found in crumb.problems):
            self.unread += (
                crumb.problems
            )  # its version is useless: a change of permissions changes neither size nor time
            return
        # Read again after its size and time are taken: a producer may have completed it since it was read,
        # and the complete file must not be recorded as the bad one.
        mark, again = mark_of(self._box.fs, place), self._box.read(place)
        if mark is None or again is None or again != crumb:
            return  # the next pass checks it again
        self.problems += crumb.problems
        self._box.attempts.mark_bad(place.file, mark, crumb.problems[0].message)


def _storable(result: object) -> dict[str, Any] | None:
    """The result of a handler, as it is logged. Raises Invalid if it is neither a dict nor None."""
    if result is None:
        return None
    if not isinstance(result, Mapping):
        raise Invalid(
            f"the handler returned {type(result).__name__}", operation="consume", hint="return a dict or None"
        )
    stored: dict[str, Any] = sanitize(dict(result))
    return stored
