"""`work consume`: apply the pending messages of a work session, each exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import options, output
from sessionary.cli.formatting import count
from sessionary.cli.work import delivering, places
from sessionary.cli.work.inbox_cmd import show_pending
from sessionary.layouts.maestro.records import crumb_document
from sessionary.mailbox.mailbox import Mailbox, Report


@click.command(
    "consume",
    epilog="""\b
Examples:
  sessionary work consume latest          print messages, acknowledge them
  sessionary work consume db5b5fab --limit 1
  sessionary work consume db5b5fab --exec 'jq -r .prompt >> inbox.txt'
  sessionary work consume db5b5fab --consumer audit --json | jq .applied
""",
)
@places.session
@places.root
@delivering.exec_
@delivering.consumer
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Apply at most N messages.")
@delivering.shared
@delivering.at_most_once
@delivering.max_attempts
@delivering.timeout
@delivering.take_over
@click.option(
    "--dry-run", is_flag=True, help="Show pending messages without applying them, as `work pending` does."
)
@options.json_result
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
    dry_run: bool,
    json_: bool,
) -> int:
    """Apply pending messages, each exactly once.

    Messages are written to the log of the work session, in order. Without --exec a message is printed, and
    acknowledged after it was written out. With --exec, CMD runs for each message, and its success
    acknowledges it; a JSON object that it prints is the result in the log. If CMD fails, the message stays
    pending and the next call tries again. After a crash, CMD may run twice for one message, with the same
    SESSIONARY_BREADCRUMB_ID in its environment. SESSIONARY_SESSION_ID is the session.

    If sessions are synchronised between machines, only one device consumes a mailbox; another one needs --take-over.

    Exit code 3: some messages failed, or were given up. Exit code 13: a file is not a message, or a line of
    the log cannot be read.

    There is no undo: applied messages stay applied.
    """
    store = places.store_at(root)
    session_id = store.resolve(session)
    if dry_run:
        return show_pending(store.folder(session_id), session_id, consumer, limit, json_)
    document = output.Growing({"session_id": session_id, "consumer": consumer}, "messages")
    handler = _handler(command, session_id, document if json_ else None)
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
        facts = _facts(report)
        if command is None:
            document.end(facts)
        else:
            output.value({"session_id": session_id, "consumer": consumer, "messages": None, **facts})
    else:
        delivering.print_problems(report.problems)
        output.aside(_sum(report))
    return code_of(report)


def _sum(report: Report) -> str:
    words = [f"{count(report.applied, 'message')} applied"]
    if report.pending:
        words.append(f"{report.pending:,} pending")
    if report.bad:
        words.append(f"{count(len(report.bad), 'invalid message file')} (`work quarantine` moves them away)")
    if report.damaged:
        words.append(f"{count(report.damaged, 'line')} of the log unreadable (run `work status` for details)")
    return ", ".join(words)


def code_of(report: Report) -> int:
    """13 if a message or the log cannot be read, as for `check`; 3 if a message could not be applied."""
    if report.bad or report.damaged or any(map(places.is_damage, report.problems)):
        return places.DAMAGED
    failed = report.failures or any(problem.code == "dead_letter" for problem in report.problems)
    return options.PARTLY if failed else 0


def _handler(command: str | None, session_id: str, document: output.Growing | None) -> delivering.Handler:
    """The outcome for a message; with `document`, added to that."""
    if command is not None:
        return delivering.running(command, session_id, output.line if document is None else output.aside)
    if document is None:
        return delivering.printing(delivering.for_people)
    return delivering.printing(lambda crumb: document.add(crumb_document(crumb)))


def _facts(report: Report) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "applied": report.applied,
        "pending": report.pending,
        "unwritten": report.unwritten,
        "bad": report.bad,
        "damaged": report.damaged,
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
    }
