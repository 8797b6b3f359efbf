"""Blocks that a pull does not find: not visible yet, or missing.

A head is swapped after its blocks were put. A lagging replica may show it before them, and a garbage collection may
put a block back seconds later. So a block may only be late. If this machine did not find it minutes ago either, under
the same head, it is missing: only a machine with the session can put it again.
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
"""Far more than any store needs to show what was put."""


def explained(states: States, now: datetime, record: HeadRecord, head: Head, outcome: Outcome) -> Outcome:
    """Return the outcome of a pull, with the device that can repair missing or damaged data.

    Args:
        states: the sync state.
        now: the local time.
        record: the pulled head, as stored.
        head: the same, decoded.
        outcome: the outcome of the pull.
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
        f"block {block} is missing on the remote, as it was at {first.isoformat(timespec='seconds')}",
        operation="pull",
        session=head.session,
        details={**error.details, "device": head.device, "since": first.isoformat()},
        hint=_healer(head),
    )
    return dataclasses.replace(outcome, note=str(missing), error=missing)


def _healer(head: Head) -> str:
    return (
        f"nothing here was changed; the device that heads call {head.device[:SHORT]} pushed this session last, at "
        f"{head.at}: run `sessionary sync check --repair` there, or on another device with the session"
    )
