"""Handlers of `work consume` and `work watch`: print a message, or run a command on it.

The result of a handler goes into the log of the session, in the line that acknowledges the message. A command
that fails leaves the message pending.
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
    """The command on a message failed."""


class NotPrinted(BaseException):
    """Our output cannot be written: its reader has gone, or a disk is full.

    This is not a failure of the message and not a handler's exception: the message must not be given up for it.

    Attributes:
        cause: the original exception.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


exec_ = click.option(
    "--exec",
    "command",
    metavar="CMD",
    help="Run this shell command for each message, with the message as JSON on its standard input.",
)
consumer = click.option(
    "--consumer",
    default=WORK,
    show_default=True,
    metavar="NAME",
    help="Name of the consumer; each consumer gets every message.",
)
shared = click.option(
    "--shared", is_flag=True, help="Allow several processes of this consumer at the same time."
)
at_most_once = click.option(
    "--at-most-once", is_flag=True, help="Never repeat a message after a crash; give it up instead."
)
max_attempts = click.option(
    "--max-attempts",
    type=click.IntRange(1),
    default=ATTEMPTS,
    show_default=True,
    metavar="N",
    help="Give a message up after N failures.",
)
take_over = click.option(
    "--take-over",
    is_flag=True,
    help="Consume on this device from now on, in place of another one.",
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
    """The mailbox setting for `--at-most-once`."""
    return "at_most_once" if once else "at_least_once"


def running(command: str, session_id: str, say: Callable[[str], None]) -> Handler:
    """A handler that runs a shell command.

    The id of the message is in its environment, as the key that identifies a repeated call. A JSON object
    that it prints becomes the result in the log; other output goes to `say`.
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
    """A handler that prints the message, which counts as applied after it was written out."""

    def handle(crumb: Breadcrumb) -> None:
        with _written_out():
            show(crumb)

    return handle


@contextmanager
def _written_out() -> Iterator[None]:
    """A block that prints and flushes; a failure to write ends the consumer."""
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


def print_problems(problems: Iterable[Problem]) -> None:
    """Print failed messages, and files that are not messages."""
    for problem in problems:
        places.say(problem)


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


def _run(command: str, message: bytes, surroundings: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a shell command; return its exit code and output. An interrupt ends the command."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with _undisturbed():  # an interrupt here would leave the command running
            process = subprocess.Popen(
                command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings
            )
        printed, _ = process.communicate(message)
        return process.returncode, printed.strip()
    except BaseException:
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass  # waits for the command and closes its pipes
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A block in which a request to end is deferred to its end."""
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
    """The output, if it is one JSON object."""
    if not printed.startswith(b"{"):
        return None
    try:
        value = decode(printed)
    except Undecodable:
        return None
    return value if isinstance(value, dict) else None


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {-code}"
