"""Commands driven as people and scripts drive them: in this process, or in another one that has a terminal."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

COMMAND = [sys.executable, "-c", "import sys; from sessionary.cli import main; sys.exit(main())"]

ROOT = "3f0c81d2-0000-4000-8000-000000000001"
SPAWNED = "0000000000000000-9c1d2e3f4a5b6c7d_explorer"

_PAGE = Path(__file__).parents[2] / "docs" / "cli-json.md"


class Result(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """Its lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """What it said of its failure, with --json."""
        return json.loads(self.err)

    @property
    def block(self) -> Any:
        """The block about an error that the contract on features wants."""
        return self.error["error_context"]


Run = Callable[..., Result]
Make = Callable[..., Path]


def wakeups(process: int) -> int:
    """How often the threads of a process were woken so far."""
    found = (path.read_text("ascii") for path in Path(f"/proc/{process}/task").glob("*/status"))
    return sum(int(re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)[0]) for text in found)


def lines(*records: Mapping[str, Any]) -> bytes:
    """Records as lines of JSON."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def put(
    home: Path, session_id: str, project: str, files: Mapping[str, bytes], age: timedelta = timedelta(0)
) -> Path:
    """Lay the files of an agent's session into a home, going around the store; returns its folder."""
    folder = home / "projects" / project / "sessions" / session_id
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    then = (datetime.now(UTC) - age).timestamp()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))
    return folder


def undated(*messages: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same messages without their times, so that a session is as old as its files."""
    return [
        {name: value for name, value in message.items() if name not in ("timestamp", "metadata")}
        for message in messages
    ]


def documented(section: str) -> list[set[str]]:
    """The fields of each table of a section of docs/cli-json.md."""
    text = _PAGE.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    tables = [table.partition("\n\n")[0].splitlines() for table in text.split("|---|---|---|\n")[1:]]
    return [{name.strip("` ") for row in rows for name in row.split("|")[1].split(",")} for rows in tables]


class Screen(NamedTuple):
    """All that a terminal has shown, and the exit code."""

    out: str
    code: int


class Terminal:
    """A command with a terminal for all three streams, 80 columns wide."""

    def __init__(self, *command: str, **environment: str) -> None:
        pty = pytest.importorskip("pty")
        self._master, slave = pty.openpty()
        kept = {
            name: value for name, value in os.environ.items() if name not in ("PAGER", "LESS", "NO_COLOR")
        }
        everything = {**kept, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **environment}
        self._process = subprocess.Popen(
            list(command), stdin=slave, stdout=slave, stderr=slave, env=everything
        )
        os.close(slave)
        self._raw = b""
        self._deadline = time.monotonic() + 60

    @property
    def shown(self) -> str:
        """What it has shown so far."""
        return self._raw.decode("utf-8", "replace").replace("\r\n", "\n")

    def expect(self, text: str) -> None:
        """Read until a text has been shown."""
        while text not in self.shown:
            assert self._more(), self.shown

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._master, f"{text}\n".encode())

    def end(self) -> int:
        """Read all that is left; the exit code."""
        while self._more():
            pass
        return self._process.wait(60)

    def close(self) -> None:
        """Let go of it, whether it has ended or not."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)

    def _more(self) -> bool:
        assert time.monotonic() < self._deadline, self.shown
        if not select.select([self._master], [], [], 60)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self._raw += data  # a read may end in the middle of a character
        return bool(data)


@contextmanager
def terminal_for(*group: str) -> Iterator[Callable[..., Terminal]]:
    """Starts commands of a group on terminals, and lets go of all of them at the end."""
    if os.name != "posix":
        pytest.skip("no pseudo terminals")
    started: list[Terminal] = []

    def start(*words: str, **environment: str) -> Terminal:
        started.append(Terminal(*COMMAND, *group, *words, **{"PAGER": "", **environment}))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            one.close()


def on_terminal(*command: str, **environment: str) -> Screen:
    """Run a command with a terminal for all three streams, and read what it shows."""
    terminal = Terminal(*command, **environment)
    try:
        code = terminal.end()
    finally:
        terminal.close()
    return Screen(terminal.shown, code)
