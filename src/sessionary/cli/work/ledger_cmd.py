"""`work ledger`: what to do about a log that has gone back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from sessionary.cli import output
from sessionary.cli.phrases import count
from sessionary.cli.work import delivering, places
from sessionary.cli.work.groups import InOrder
from sessionary.mailbox.mailbox import Mailbox


@click.group("ledger", cls=InOrder)
def ledger_command() -> None:
    """Restore or accept the log of a work session that has gone back.

    A switch of branches, `git stash -u` or a restored backup may take lines out of the log. Its messages would be
    applied a second time, so `consume` and `watch` stop, and one of these two commands lets them go on.
    """


@ledger_command.command(
    "restore",
    epilog="""\b
Example:
  sessionary work ledger restore db5b5fab
""",
)
@places.session
@places.root
@delivering.consumer
@places.as_json
def restore_command(session: str, root: Path | None, consumer: str, json_: bool) -> int:
    """Put back the lines that the log no longer has.

    They come from the copy in $XDG_STATE_HOME/sessionary. Nothing is applied again. There is no undo.
    """
    return _settle(session, root, consumer, json_, Mailbox.restore_ledger, "put back into")


@ledger_command.command(
    "accept",
    epilog="""\b
Example:
  sessionary work ledger accept db5b5fab --consumer audit
""",
)
@places.session
@places.root
@delivering.consumer
@places.as_json
def accept_command(session: str, root: Path | None, consumer: str, json_: bool) -> int:
    """Take the log as it is: the messages that it no longer has are applied again.

    The copy that has them is kept beside the new one. There is no undo.
    """
    return _settle(session, root, consumer, json_, Mailbox.accept_ledger, "no longer in")


def _settle(
    session: str, root: Path | None, consumer: str, json_: bool, settle: Callable[[Mailbox], int], became: str
) -> int:
    store = places.store_at(root)
    session_id = store.resolve(session)
    with Mailbox(store.folder(session_id), consumer) as box:
        number = settle(box)
    if json_:
        output.value({"session_id": session_id, "consumer": consumer, "messages": number})
    elif number:
        places.done(f"{count(number, 'message')} {became} the log of {session_id}")
    else:
        output.aside("The log has everything that was applied here.")
    return 0
