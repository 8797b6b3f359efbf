"""The loop of a worker: apply the messages of a session until stopped."""

from __future__ import annotations

import os
from collections.abc import Callable

from sessionary.layouts.maestro.names import default_root
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox.delivery import Handler
from sessionary.mailbox.mailbox import INTERVAL, Mailbox, Report
from sessionary.mailbox.problems import WORK
from sessionary.mailbox.watching import Stop

SHORTEST_INTERVAL = 0.1


def run_inbox(
    session_id: str,
    apply: Handler,
    interval: float = INTERVAL,
    stop: Stop = None,
    *,
    base_path: str | os.PathLike[str] | None = None,
    consumer: str = WORK,
    shared: bool = False,
    tell: Callable[[Report], object] | None = None,
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
        tell: called with each report that has problems.

    Durability: as `Mailbox.consume`: applied messages are durable, and the loop always ends between two messages.

    Raises:
        InvalidId: the id, or the name of the consumer, is not valid.
        NotFound: the session does not exist.
        AmbiguousId: several sessions match.
        Locked: another process works as this consumer.
        StorageFailed: the disk refused.
    """
    with Mailbox(_folder_of(session_id, base_path), consumer, shared=shared) as mailbox:
        return mailbox.run(apply, max(interval, SHORTEST_INTERVAL), stop, tell)


def _folder_of(session_id: str, base_path: str | os.PathLike[str] | None) -> str:
    store = WorkStore(default_root() if base_path is None else base_path)
    return store.folder(store.resolve(session_id))
