"""`work ledger`: what to do about a log that has gone back."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import output
from sessionary.cli.formatting import count
from sessionary.cli.work import delivering, places
from sessionary.cli.work.groups import InOrder
from sessionary.mailbox.mailbox import Mailbox

COMPLETE = "The log has everything that was applied here."


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
    """Put back the lines that the log no longer has, and set damaged ones aside.

    They come from the copy in $XDG_STATE_HOME/sessionary, and are not applied again. A log with damaged lines is kept
    beside the new one. There is no undo.
    """
    store = places.store_at(root)
    session_id = store.resolve(session)
    with Mailbox(store.folder(session_id), consumer) as box:
        number, damaged = box.restore_ledger(), box.set_damage_aside()
    if json_:
        facts = {"session_id": session_id, "consumer": consumer, "messages": number, "damaged": damaged}
        output.value(facts)
        return 0
    if number:
        places.done(f"{count(number, 'message')} put back into the log of {session_id}")
    if damaged:
        places.done(f"{count(damaged, 'damaged line')} set aside")
    if not (number or damaged):
        output.aside(COMPLETE)
    return 0


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
    store = places.store_at(root)
    session_id = store.resolve(session)
    with Mailbox(store.folder(session_id), consumer) as box:
        number = box.accept_ledger()
    if json_:
        output.value({"session_id": session_id, "consumer": consumer, "messages": number})
    elif number:
        places.done(f"{count(number, 'message')} no longer in the log of {session_id}")
    else:
        output.aside(COMPLETE)
    return 0
