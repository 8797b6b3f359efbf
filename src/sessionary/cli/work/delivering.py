"""What `work consume` and `work watch` do with a message: print it, or run a command on it.

Either is a handler of the mailbox. What it returns goes into the log of the session, in the line that acknowledges the
message. A command that fails leaves the message pending.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import click

from sessionary.cli import output
from sessionary.cli.param_types import Finite
from sessionary.cli.text import harmless
from sessionary.cli.work import entries, places
from sessionary.codec import Undecodable, decode, encode_line, sanitize
from sessionary.errors import StorageFailed
from sessionary.layouts.maestro.records import Breadcrumb, crumb_document
from sessionary.mailbox.mailbox import ATTEMPTS, TIMEOUT
from sessionary.mailbox.problems import WORK
from sessionary.model import Problem

Handler = Callable[[Breadcrumb], dict[str, Any] | None]

KEY, SESSION = "SESSIONARY_BREADCRUMB_ID", "SESSIONARY_SESSION_ID"


class CommandFailed(Exception):
    """The command on a message did not end well."""


class NotPrinted(BaseException):
    """What we print cannot be written out: its reader has gone, or a disk is full.

    No failure of the message, so no handler's exception: it would be given up in the end, for nothing that it did.

    Attributes:
        cause: what was raised.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


exec_ = click.option(
    "--exec",
    "command",
    metavar="CMD",
    help="Run this shell command on each message, which it gets on its standard input as JSON.",
)
consumer = click.option(
    "--consumer", default=WORK, show_default=True, metavar="NAME", help="Whose log; each sees every message."
)
shared = click.option("--shared", is_flag=True, help="Let others work as this consumer at the same time.")
at_most_once = click.option(
    "--at-most-once", is_flag=True, help="Never repeat a message that a crash has cut off; give it up."
)
max_attempts = click.option(
    "--max-attempts",
    type=click.IntRange(1),
    default=ATTEMPTS,
    show_default=True,
    metavar="N",
    help="Give a message up after so many failures.",
)
take_over = click.option(
    "--take-over",
    is_flag=True,
    help="Consume here from now on, though another device does so far.",
)
timeout = click.option(
    "--timeout",
    type=Finite(0),
    default=TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another process of this consumer.",
)


def delivery(once: bool) -> str:
    """The word of the mailbox for `--at-most-once`."""
    return "at_most_once" if once else "at_least_once"


def running(command: str, session_id: str, say: Callable[[str], None]) -> Handler:
    """A handler that runs a shell command.

    The id of the message stands in its environment, as the key by which a repeated call can be told. A JSON object that
    it prints becomes the result in the log; whatever else it prints goes to `say`.
    """

    def run(crumb: Breadcrumb) -> dict[str, Any] | None:
        surroundings = os.environ | {KEY: crumb.breadcrumb_id, SESSION: session_id}
        message = encode_line(sanitize(crumb_document(crumb)))
        code, printed = _run(command, message, surroundings)
        result = _object(printed) if code == 0 else None
        if printed and result is None:
            with _written_out():
                say(harmless(printed.decode("utf-8", "backslashreplace")))
        if code:
            raise CommandFailed(f"the command ended with {_ending(code)}")
        return result

    return run


def printing(show: Callable[[Breadcrumb], None]) -> Handler:
    """A handler that has the message printed, and lets it count as applied when it has been written out."""

    def handle(crumb: Breadcrumb) -> None:
        with _written_out():
            show(crumb)

    return handle


@contextmanager
def _written_out() -> Iterator[None]:
    """A block that prints, and ends when all of it is written out; that it cannot be ends the consumer."""
    try:
        yield
        output.flush()
    except (BrokenPipeError, StorageFailed) as error:
        raise NotPrinted(error) from None


def for_people(crumb: Breadcrumb) -> None:
    """Print a message, and an empty line."""
    output.lines([*entries.whole(crumb), ""])


def for_programs(crumb: Breadcrumb) -> None:
    """Print a message as a line of JSON."""
    output.values([crumb_document(crumb)])


def told(problems: Iterable[Problem]) -> None:
    """What is to be said of messages that failed, and of files that are none."""
    for problem in problems:
        places.say(problem)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """A block that a request to end interrupts as Ctrl-C does, so that a command that runs is ended with it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except NotPrinted as error:
        raise error.cause from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(command: str, message: bytes, surroundings: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a shell command to its end; its exit code and what it printed. Whatever interrupts us ends it."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with _undisturbed():  # between its beginning and our knowing of it nobody could end it
            process = subprocess.Popen(
                command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings
            )
        printed, _ = process.communicate(message)
        return process.returncode, printed.strip()
    except BaseException:
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass  # waits for it, and closes its pipes
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A block that a request to end does not interrupt; it is heeded afterwards."""
    came: list[int] = []
    before = {
        each: signal.signal(each, lambda number, frame: came.append(number))
        for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if came:
        raise KeyboardInterrupt


def _object(printed: bytes) -> dict[str, Any] | None:
    """What was printed, if it is one JSON object."""
    if not printed.startswith(b"{"):
        return None
    try:
        value = decode(printed)
    except Undecodable:
        return None
    return value if isinstance(value, dict) else None


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {-code}"
