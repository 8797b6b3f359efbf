"""`work consume`: apply the messages that wait in a work session, each exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import output
from sessionary.cli.phrases import count
from sessionary.cli.work import delivering, places
from sessionary.layouts.maestro.records import Breadcrumb, crumb_document
from sessionary.mailbox.mailbox import Mailbox, Report


@click.command(
    "consume",
    epilog="""\b
Examples:
  sessionary work consume latest          print what waits, and acknowledge it
  sessionary work consume db5b5fab --limit 1
  sessionary work consume db5b5fab --exec 'jq -r .prompt >> inbox.txt'
  sessionary work consume db5b5fab --consumer audit --json | jq .applied
""",
)
@places.session
@places.root
@delivering.exec_
@delivering.consumer
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Take N messages at most.")
@delivering.shared
@delivering.at_most_once
@delivering.max_attempts
@delivering.timeout
@delivering.take_over
@places.as_json
def consume_command(
    session: str,
    root: Path | None,
    command: str | None,
    consumer: str,
    limit: int | None,
    shared: bool,
    at_most_once: bool,
    max_attempts: int,
    timeout: float,
    take_over: bool,
    json_: bool,
) -> int:
    """Apply the messages that wait, each exactly once.

    They go to the log of the work session, in order. Without --exec a message is printed, and acknowledged once it
    has been written out. With it, CMD runs for each and its success acknowledges; a JSON object that it prints is
    the result in the log. If it fails, the message stays and is tried again by the next call. A crash may run CMD
    twice for one message: SESSIONARY_BREADCRUMB_ID in its environment is the same then. SESSIONARY_SESSION_ID names
    the session.

    Where sessions are carried between machines, one device consumes a mailbox; elsewhere this refuses unless
    --take-over is given.

    Exit code 3: some messages failed, or were given up.
    """
    store = places.store_at(root)
    session_id = store.resolve(session)
    messages: list[dict[str, Any]] = []
    handler = _handler(command, session_id, messages if json_ else None)
    with Mailbox(store.folder(session_id), consumer, shared=shared) as box, delivering.ending_in_order():
        report = box.consume(
            handler,
            limit=limit,
            timeout=timeout,
            delivery=delivering.delivery(at_most_once),
            max_attempts=max_attempts,
            take_over=take_over,
        )
    if json_:
        output.value(_object(session_id, consumer, report, None if command else messages))
    else:
        delivering.told(report.problems)
        waiting = f", {report.pending:,} pending" if report.pending else ""
        output.aside(f"{count(report.applied, 'message')} applied{waiting}")
    return code_of(report)


def code_of(report: Report) -> int:
    """3 if some message could not be applied."""
    failed = report.failures or any(problem.code == "dead_letter" for problem in report.problems)
    return places.PARTLY if failed else 0


def _handler(
    command: str | None, session_id: str, messages: list[dict[str, Any]] | None
) -> delivering.Handler:
    """What is done with a message; with `messages`, nothing is printed before the end, and they go there."""
    if command is not None:
        return delivering.running(command, session_id, output.line if messages is None else output.aside)
    if messages is None:
        return delivering.printing(delivering.for_people)

    def keep(crumb: Breadcrumb) -> None:
        messages.append(crumb_document(crumb))

    return keep


def _object(
    session_id: str, consumer: str, report: Report, messages: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "session_id": session_id,
        "consumer": consumer,
        "applied": report.applied,
        "pending": report.pending,
        "unwritten": report.unwritten,
        "failures": [
            {
                "breadcrumb_id": each.breadcrumb_id,
                "file": each.file,
                "attempt": each.attempt,
                "error": str(each.error),
            }
            for each in report.failures
        ],
        "problems": [problem.as_dict() for problem in report.problems],
        "messages": messages,
    }
