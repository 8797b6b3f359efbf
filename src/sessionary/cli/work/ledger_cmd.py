"""`work ledger`: settle a log that has lost lines."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import options, output
from sessionary.cli.formatting import count
from sessionary.cli.suggesting import SuggestingGroup
from sessionary.cli.work import delivering, places
from sessionary.mailbox.mailbox import Mailbox

COMPLETE = "The log is complete."


@click.group("ledger", cls=SuggestingGroup)
def ledger_command() -> None:
    """Restore or accept the log of a work session that has lost lines.

    A switch of branches, `git stash -u` or a restored backup may remove lines from the log. Their messages
    would be applied a second time, so `consume` and `watch` stop until you run one of these commands.
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
@options.json_result
def restore_command(session: str, root: Path | None, consumer: str, json_: bool) -> int:
    """Restore the missing lines of the log, and set damaged ones aside.

    They come from the copy in $XDG_STATE_HOME/sessionary, and their messages are not applied again. A log
    with damaged lines is kept beside the new one. There is no undo.
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
@options.json_result
def accept_command(session: str, root: Path | None, consumer: str, json_: bool) -> int:
    """Accept the log as it is: the messages of missing lines are applied again.

    The copy with the missing lines is kept beside the new one. There is no undo.
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
