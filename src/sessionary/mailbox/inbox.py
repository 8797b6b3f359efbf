"""The loop of a worker: apply what comes to a session until told to stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sessionary.disk.fs import OS_FS, not_found
from sessionary.layouts.maestro.names import default_root
from sessionary.layouts.maestro.placement import find_folder
from sessionary.mailbox.box import WORK
from sessionary.mailbox.mailbox import INTERVAL, Mailbox, Report
from sessionary.mailbox.round import Handler
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
        session_id: the session.
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
        Locked: another process works as this consumer.
        StorageFailed: the disk refused.
    """
    with Mailbox(_folder_of(session_id, base_path), consumer, shared=shared) as mailbox:
        return mailbox.run(apply, max(interval, SHORTEST_INTERVAL), stop, tell)


def _folder_of(session_id: str, base_path: str | os.PathLike[str] | None) -> str:
    root = default_root() if base_path is None else Path(base_path)
    folder = find_folder(OS_FS, os.path.realpath(root), session_id)
    if folder is None:
        raise not_found(str(root), f"There is no work session {session_id} in {root}")
    return folder
