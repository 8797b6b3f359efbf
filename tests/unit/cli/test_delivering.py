"""Running a command on a message: whatever interrupts us, at whatever moment, ends the command."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli.work import delivering
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb


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
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self)
            os.kill(os.getpid(), number)  # the command runs, and nothing has been reported yet

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    handler = delivering.running("exec sleep 60", "s", print)
    with pytest.raises(KeyboardInterrupt), delivering.ending_in_order():
        handler(create_breadcrumb("p", "r", [], [], None, 0, "m", {}))
    (process,) = begun
    assert process.returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_does_not_read_its_message_is_not_a_failure(tmp_path: Path) -> None:
    crumb = create_breadcrumb("x" * 1_000_000, "r", [], [], None, 0, "m", {})
    assert delivering.running("echo '{\"done\": 1}'", "s", print)(crumb) == {"done": 1}
