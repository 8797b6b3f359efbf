"""`work watch`: apply messages to a work session as they arrive, until interrupted."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import output
from sessionary.cli.param_types import Finite
from sessionary.cli.work import delivering, places
from sessionary.mailbox.mailbox import INTERVAL, SHORTEST_INTERVAL, Mailbox


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
    help="How often to poll for messages that were not notified, and to retry failed ones.",
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
    """Apply messages as they arrive, until Ctrl-C.

    Works like `work consume`. Pending messages are applied at once, new ones within milliseconds where the
    system notifies of them. Exit code 130 after an interrupt or SIGTERM; no message is lost or applied twice.

    There is no undo: applied messages stay applied.
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
            on_report=lambda report: delivering.print_problems(report.problems),
            timeout=timeout,
            delivery=delivering.delivery(at_most_once),
            max_attempts=max_attempts,
            take_over=take_over,
        )
    return 0


def _say(text: str) -> None:
    output.line(text)
    output.flush()
