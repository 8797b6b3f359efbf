"""A handler that runs a shell command on each message."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from sessionary.codec import decode_object, encode_line, sanitize
from sessionary.layouts.maestro.records import Breadcrumb, crumb_document
from sessionary.mailbox.delivery import Handler

KEY, SESSION = "SESSIONARY_BREADCRUMB_ID", "SESSIONARY_SESSION_ID"


class CommandFailed(Exception):
    """The command on a message failed."""


def command_handler(
    command: str, session_id: str, on_output: Callable[[bytes], object] | None = None
) -> Handler:
    """A handler for `Mailbox.consume` and `run_inbox` that runs a shell command.

    The message is its standard input, as JSON. Its environment has the id of the message, which is the idempotency
    key, and that of the session. A JSON object that it prints becomes the result in the log. If it fails, the handler
    raises CommandFailed, so the message stays pending. An interrupt ends the command.

    Args:
        command: the command, for the shell.
        session_id: the id of the session.
        on_output: called with any other output of the command, and with all output of one that fails.
    """

    def run(crumb: Breadcrumb) -> dict[str, Any] | None:
        environment = os.environ | {KEY: crumb.breadcrumb_id, SESSION: session_id}
        code, printed = _run(command, encode_line(sanitize(crumb_document(crumb))), environment)
        result = decode_object(printed) if code == 0 and printed.startswith(b"{") else None
        if printed and result is None and on_output is not None:
            on_output(printed)
        if code:
            ending = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise CommandFailed(f"the command ended with {ending}")
        return result

    return run


def _run(command: str, message: bytes, environment: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a shell command; return its exit code and output. An interrupt ends the command."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with _deferred_signals():  # an interrupt here would leave the command running
            process = subprocess.Popen(
                command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        output, _ = process.communicate(message)
        return process.returncode, output.strip()
    except BaseException:
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:
                pass  # waits for the command and closes its pipes
        raise


@contextmanager
def _deferred_signals() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block. Only the main thread receives signals."""
    received: list[int] = []
    before = {
        each: signal.signal(each, lambda number, frame: received.append(number))
        for each in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in received:
        signal.raise_signal(number)
