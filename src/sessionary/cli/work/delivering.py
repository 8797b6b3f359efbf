"""`work consume` and `work watch`: apply messages, each exactly once; print a message, or run a command on it.

The result of a handler goes into the log of the session, in the line that acknowledges the message. A command
that fails leaves the message pending.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from sessionary.cli import collect_garbage, options, output
from sessionary.cli.formatting import count
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless
from sessionary.cli.work import places, render
from sessionary.cli.work.mailbox_cmd import show_pending
from sessionary.errors import StorageFailed
from sessionary.layouts.maestro.records import Breadcrumb, crumb_document
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox.commands import command_handler
from sessionary.mailbox.delivery import Handler
from sessionary.mailbox.mailbox import ATTEMPTS, INTERVAL, SHORTEST_INTERVAL, TIMEOUT, Mailbox, Report

Shown = TypeVar("Shown")


class NotPrinted(BaseException):
    """Our output cannot be written: its reader has gone, or a disk is full.

    This is not a failure of the message and not a handler's exception: the message must not be given up for it.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


_exec = click.option(
    "--exec",
    "command",
    metavar="CMD",
    help="Run this shell command for each message, with the message as JSON on its standard input.",
)


_settings = options.together(  # those that `Mailbox` has too, as arguments of the same names
    options.flag("--shared", help="Allow several processes of this consumer at the same time."),
    click.option(
        "--at-most-once",
        "delivery",
        flag_value="at_most_once",
        default="at_least_once",
        help="Never repeat a message after a crash; give it up instead.",
    ),
    click.option(
        "--max-attempts",
        type=click.IntRange(1),
        default=ATTEMPTS,
        show_default=True,
        metavar="N",
        help="Give a message up after N failures.",
    ),
    options.seconds(
        "--timeout", default=TIMEOUT, least=0, help="How long to wait for another process of this consumer."
    ),
    options.flag("--take-over", help="Consume on this device from now on, in place of another one."),
)


@command(
    "consume",
    "sessionary work consume latest          print messages, acknowledge them",
    "sessionary work consume db5b5fab --limit 1",
    "sessionary work consume db5b5fab --exec 'jq -r .prompt >> inbox.txt'",
    "sessionary work consume db5b5fab --consumer audit --json | jq .applied",
)
@places.session
@places.on_store
@_exec
@places.consumer
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Apply at most N messages.")
@_settings
@options.flag("--dry-run", help="Show pending messages without applying them, as `work pending` does.")
@options.json_result
def consume_command(
    session: str,
    store: WorkStore,
    command: str | None,
    consumer: str,
    limit: int | None,
    shared: bool,
    dry_run: bool,
    **settings: Any,
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

    This cannot be undone: applied messages stay applied.
    """
    session_id, folder = places.resolved(store, session)
    if dry_run:
        return show_pending(folder, session_id, consumer, limit)
    document = output.Growing({"session_id": session_id, "consumer": consumer}, "messages")
    handler: Handler
    if command is not None:
        handler = _running(command, session_id)
    elif output.is_json():
        handler = _printing(lambda crumb: document.add(crumb_document(crumb)))
    else:
        handler = _printing(_print_message)
    collect_garbage()
    with Mailbox(folder, consumer, shared=shared) as box, ending_in_order():
        report = box.consume(handler, limit=limit, **settings)
    if output.is_json():
        facts = _as_object(report)
        if command is None:
            document.end(facts)
        else:
            output.value({"session_id": session_id, "consumer": consumer, "messages": None, **facts})
    else:
        _print_problems(report)
        output.aside(_totals(report))
    return _code_of(report)


def _totals(report: Report) -> str:
    words = [f"{count(report.applied, 'message')} applied"]
    if report.pending:
        words.append(f"{report.pending:,} pending")
    if report.bad:
        words.append(f"{count(len(report.bad), 'invalid message file')} (`work quarantine` moves them away)")
    if report.damaged:
        words.append(f"{count(report.damaged, 'line')} of the log unreadable (run `work status` for details)")
    return ", ".join(words)


def _code_of(report: Report) -> int:
    """13 if a message or the log cannot be read, as for `check`; 3 if a message could not be applied."""
    if report.bad or report.damaged or any(map(places.is_damage, report.problems)):
        return places.DAMAGED
    failed = report.failures or any(problem.code == "dead_letter" for problem in report.problems)
    return options.PARTLY if failed else 0


def _as_object(report: Report) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        **{name: getattr(report, name) for name in ("applied", "pending", "unwritten", "bad", "damaged")},
        "failures": [each._asdict() | {"error": str(each.error)} for each in report.failures],
        "problems": [problem.as_dict() for problem in report.problems],
    }


@command(
    "watch",
    "sessionary work watch latest",
    "sessionary work watch db5b5fab --exec './apply.sh'",
    "sessionary work watch db5b5fab --json | jq --unbuffered -r .prompt",
)
@places.session
@places.on_store
@_exec
@places.consumer
@options.seconds(
    "--interval",
    default=INTERVAL,
    least=SHORTEST_INTERVAL,
    help="How often to poll for messages that were not notified, and to retry failed ones.",
)
@_settings
@options.json_flag("--json", "--jsonl", "json_", help="Print JSON Lines: one message per line.")
def watch_command(
    session: str,
    store: WorkStore,
    command: str | None,
    consumer: str,
    interval: float,
    shared: bool,
    **settings: Any,
) -> int:
    """Apply messages as they arrive, until Ctrl-C.

    Works like `work consume`. Pending messages are applied at once, new ones within milliseconds where the
    system notifies of them. Exit code 130 after an interrupt or SIGTERM; no message is lost or applied twice.

    This cannot be undone: applied messages stay applied.
    """
    session_id, folder = places.resolved(store, session)
    if command is not None:
        handler = _running(command, session_id)
    else:
        handler = _printing(
            (lambda crumb: output.values([crumb_document(crumb)])) if output.is_json() else _print_message
        )
    with Mailbox(folder, consumer, shared=shared) as box, ending_in_order():
        box.run(handler, interval, on_report=_print_problems, **settings)
    return 0


def _print_problems(report: Report) -> None:
    for problem in report.problems:
        places.print_problem(problem)


def _printing(show: Callable[[Shown], object]) -> Callable[[Shown], None]:
    """Wrap a function that prints: flush its output. A failure to write ends the consumer.

    So a message that is printed counts as applied after it was written out.
    """

    def handle(shown: Shown) -> None:
        try:
            show(shown)
            output.flush()
        except (BrokenPipeError, StorageFailed) as error:
            raise NotPrinted(error) from None

    return handle


def _running(command: str, session_id: str) -> Handler:
    """A handler that runs the command, and prints its output unless that is the result in the log."""
    say = output.aside if output.is_json() else output.line

    def show(printed: bytes) -> None:
        say(harmless(printed.decode("utf-8", "backslashreplace")))

    return command_handler(command, session_id, _printing(show))


def _print_message(crumb: Breadcrumb) -> None:
    output.lines([*render.whole(crumb), ""])


@contextmanager
def ending_in_order() -> Iterator[None]:
    """A block that SIGTERM interrupts as Ctrl-C does, so that a running command is ended too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except NotPrinted as error:
        raise error.cause from None
    finally:
        signal.signal(signal.SIGTERM, before)
