"""The loop of a worker: apply what comes to a session until told to stop."""

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
    """Apply the messages of a session as they come; returns how many were applied.

    Messages that wait are applied at once, each new one as soon as the system tells of it, and every `interval`
    seconds it is looked whether something came unannounced. In between the process sleeps.

    Args:
        session_id: the session: its id, the beginning of its id, or ``latest``.
        apply: as the handler of `Mailbox.consume`.
        interval: seconds between two looks, not less than 0.1; also the pause before a failed message is tried again.
        stop: an event, or a function, that ends the loop; without one it ends by an exception alone.
        base_path: where the sessions lie, by default `docs/sessions` of the current folder.
        consumer: whose ledger.
        shared: whether others may work under that name at the same time.
        tell: is given each report that has something to tell.

    Durability: as `Mailbox.consume`: what was applied is, and whatever ends the loop ends it between two messages.

    Raises:
        InvalidId: the id, or the name of the consumer, cannot be one.
        NotFound: there is no such session.
        AmbiguousId: several sessions begin so.
        Locked: another process works as this consumer.
        StorageFailed: the disk refused.
    """
    with Mailbox(_folder_of(session_id, base_path), consumer, shared=shared) as mailbox:
        return mailbox.run(apply, max(interval, SHORTEST_INTERVAL), stop, tell)


def _folder_of(session_id: str, base_path: str | os.PathLike[str] | None) -> str:
    store = WorkStore(default_root() if base_path is None else base_path)
    return store.folder(store.resolve(session_id))
