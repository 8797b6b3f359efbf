"""Running a command on a message: whatever interrupts us, at whatever moment, ends the command."""

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sessionary.cli.work.delivering import ending_in_order
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.mailbox.commands import CommandFailed, command_handler

CRUMB = create_breadcrumb("p", "r", [], [], None, 0, "m", {})


@pytest.fixture
def listening() -> Iterator[None]:
    """SIGINT as in a program in the foreground: one that a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_end_that_comes_while_the_command_begins_ends_it(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self)
            os.kill(os.getpid(), number)  # the command runs, and nothing has been reported yet

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    handler = command_handler("exec sleep 60", "s")
    with pytest.raises(KeyboardInterrupt), ending_in_order():
        handler(CRUMB)
    (process,) = begun
    assert process.returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_a_signal_that_the_program_ignores_does_not_end_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    class Signalled(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert command_handler("echo '{\"done\": 1}'", "s")(CRUMB) == {"done": 1}
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_runs_in_any_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(command_handler("echo '{\"done\": 1}'", "s"), CRUMB).result() == {"done": 1}


def test_output_that_is_not_a_result_is_given_to_the_caller() -> None:
    printed: list[bytes] = []
    assert command_handler("echo Hello", "s", printed.append)(CRUMB) is None
    with pytest.raises(CommandFailed, match="exit code 3"):
        command_handler("echo '{}'; exit 3", "s", printed.append)(CRUMB)
    assert printed == [b"Hello", b"{}"]


def test_a_command_that_does_not_read_its_message_is_not_a_failure() -> None:
    crumb = create_breadcrumb("x" * 1_000_000, "r", [], [], None, 0, "m", {})
    assert command_handler("echo '{\"done\": 1}'", "s")(crumb) == {"done": 1}
