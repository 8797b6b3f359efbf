"""`work watch`: apply messages to a work session as they come, until somebody ends it."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import output
from sessionary.cli.param_types import Finite
from sessionary.cli.work import delivering, places
from sessionary.mailbox.inbox import SHORTEST_INTERVAL
from sessionary.mailbox.mailbox import INTERVAL, Mailbox


@click.command(
    "watch",
    epilog="""\b
Examples:
  sessionary work watch latest
  sessionary work watch db5b5fab --exec './apply.sh'
  sessionary work watch db5b5fab --json | jq --unbuffered -r .prompt
""",
)
@places.session
@places.root
@delivering.exec_
@delivering.consumer
@click.option(
    "--interval",
    type=Finite(SHORTEST_INTERVAL),
    default=INTERVAL,
    show_default=True,
    metavar="SECONDS",
    help="Look so often for what came unannounced, and try again so soon what failed.",
)
@delivering.shared
@delivering.at_most_once
@delivering.max_attempts
@delivering.timeout
@delivering.take_over
@click.option("--json", "--jsonl", "json_", is_flag=True, help="Print JSON Lines: one message per line.")
def watch_command(
    session: str,
    root: Path | None,
    command: str | None,
    consumer: str,
    interval: float,
    shared: bool,
    at_most_once: bool,
    max_attempts: int,
    timeout: float,
    take_over: bool,
    json_: bool,
) -> int:
    """Apply messages as they come, until Ctrl-C.

    As `work consume` does. What waits is taken at once, and a new message within milliseconds where the system
    tells of it. In between nothing is done. Ends with exit code 130 when it is interrupted or told to end; no
    message is lost or doubled by that.

    There is no undo: a message that was applied stays applied.
    """
    store = places.store_at(root)
    session_id = store.resolve(session)
    if command is not None:
        handler = delivering.running(command, session_id, output.aside if json_ else _say)
    else:
        handler = delivering.printing(delivering.for_programs if json_ else delivering.for_people)
    with Mailbox(store.folder(session_id), consumer, shared=shared) as box, delivering.ending_in_order():
        box.run(
            handler,
            interval,
            tell=lambda report: delivering.told(report.problems),
            timeout=timeout,
            delivery=delivering.delivery(at_most_once),
            max_attempts=max_attempts,
            take_over=take_over,
        )
    return 0


def _say(text: str) -> None:
    output.line(text)
    output.flush()
