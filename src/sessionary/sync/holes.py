"""Blocks that a pull does not find: those that are not there yet, and those that are missing.

A head is swapped after its blocks were put. A replica that lags may show it before them, and whoever tidies up puts a
block back some seconds later. So a block that is not there may be on its way. If this machine has not found it minutes
ago either, under the same head, it is missing: then only a machine that has the session whole can put it again.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Final

from sessionary.errors import Corrupt, RemoteError
from sessionary.sync.heads import SHORT, Head
from sessionary.sync.incoming import MISSING
from sessionary.sync.remote import HeadRecord, is_unreadable
from sessionary.sync.report import Outcome
from sessionary.sync.state import Hole, States

LATE: Final = timedelta(minutes=5)
"""Far more than any store takes to show what was put."""


def explained(states: States, now: datetime, record: HeadRecord, head: Head, outcome: Outcome) -> Outcome:
    """The outcome of a pull, and where bytes are missing or damaged, which device can put them again.

    Args:
        states: what this machine remembers.
        now: what time it is here.
        record: the head that was pulled, as it is stored.
        head: the same.
        outcome: what became of it.
    """
    error = outcome.error
    if isinstance(error, Corrupt) or (isinstance(error, RemoteError) and is_unreadable(error)):
        error.hint = _healer(head)
        return outcome
    if not isinstance(error, RemoteError) or MISSING not in error.details:
        states.forget_hole(record.name)
        return outcome
    block = str(error.details[MISSING])
    first = states.hole(record.name, Hole(record.etag, block, now))
    if now - first < LATE:
        return outcome
    missing = RemoteError(
        f"block {block} is missing on the remote; it was not there at {first.isoformat(timespec='seconds')} either",
        operation="pull",
        session=head.session,
        details={**error.details, "device": head.device, "since": first.isoformat()},
        hint=_healer(head),
    )
    return dataclasses.replace(outcome, note=str(missing), error=missing)


def _healer(head: Head) -> str:
    return (
        f"nothing here was changed; the device that heads call {head.device[:SHORT]} pushed this session last, at "
        f"{head.at}: run `sessionary sync check --repair` there, or on another one that has it whole"
    )
