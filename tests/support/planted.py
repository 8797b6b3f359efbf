"""A small writer done right, and five that each leave out one step: the test of the tests.

A sweep that finds nothing proves something only if it would have found a bug. Each of these bugs has been
shipped by well-known programs; a kit that misses one of them is broken.

The writer keeps two files, as a session does: ``log.jsonl``, which grows by whole lines, and
``state.json``, which is replaced whole. Its reader drops a truncated last line.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sessionary.disk.fs import APPEND, CREATE, Fs, sync_dir, write_all
from tests.support.faults import FaultFs
from tests.support.recorder import RecordingFs

LOG = "log.jsonl"
STATE = "state.json"


class CorrectWriter:
    """Appends a line and flushes it; replaces by temporary file, flush, rename, and a flush of the folder.

    Durability: what `append` or `replace` returned from survives a power cut.
    """

    def __init__(self, fs: Fs, folder: str) -> None:
        self.fs = fs
        self.folder = folder

    def append(self, value: Any) -> None:
        """Add one line to the log."""
        path = f"{self.folder}/{LOG}"
        new = LOG not in self.fs.listdir(self.folder)
        fd = self.fs.open(path, CREATE | os.O_APPEND if new else APPEND)
        try:
            write_all(self.fs, fd, json.dumps(value).encode() + b"\n")
            self.flush_log(fd)
        finally:
            self.fs.close(fd)
        if new:
            self.flush_name_of_log()

    def replace(self, value: Any) -> None:
        """Put `value` in the place of the state."""
        temporary = f"{self.folder}/.{STATE}.tmp"
        fd = self.fs.open(temporary, CREATE)
        try:
            write_all(self.fs, fd, json.dumps(value).encode())
            self.flush_temporary(fd)
        finally:
            self.fs.close(fd)
        self.fs.rename(temporary, f"{self.folder}/{STATE}")
        self.flush_name_of_state()

    # The steps that the bugs leave out

    def flush_log(self, fd: int) -> None:
        """The appended line reaches the disk."""
        self.fs.fdatasync(fd)

    def flush_name_of_log(self) -> None:
        """The name of the new log reaches the disk."""
        sync_dir(self.fs, self.folder)

    def flush_temporary(self, fd: int) -> None:
        """The new state reaches the disk before it gets the name."""
        self.fs.fsync(fd)

    def flush_name_of_state(self) -> None:
        """The new name of the state reaches the disk."""
        sync_dir(self.fs, self.folder)


class NoSyncBeforeRename(CorrectWriter):
    """The name can reach the disk before the bytes: the state is empty after a power cut."""

    def flush_temporary(self, fd: int) -> None: ...


class NoDirectorySync(CorrectWriter):
    """The new state can lose its name again after it was acknowledged."""

    def flush_name_of_state(self) -> None: ...


class UnsyncedAppend(CorrectWriter):
    """An acknowledged line exists only in memory."""

    def flush_log(self, fd: int) -> None: ...


class UnsyncedNewFile(CorrectWriter):
    """The lines are on disk, and the name of their file is not."""

    def flush_name_of_log(self) -> None: ...


class RewriteInPlace(CorrectWriter):
    """While the state is written neither the old nor the new one is there; a mere kill shows it."""

    def replace(self, value: Any) -> None:
        fd = self.fs.open(f"{self.folder}/{STATE}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(self.fs, fd, json.dumps(value).encode())
            self.fs.fsync(fd)
        finally:
            self.fs.close(fd)
        self.flush_name_of_state()


class RetriedSync(CorrectWriter):
    """Retries a failed fsync, and accepts the second result. Detected only where a sync fails."""

    def flush_log(self, fd: int) -> None:
        try:
            self.fs.fdatasync(fd)
        except OSError:
            self.fs.fdatasync(fd)


PLANTED: tuple[type[CorrectWriter], ...] = (
    NoSyncBeforeRename,
    NoDirectorySync,
    UnsyncedAppend,
    UnsyncedNewFile,
    RewriteInPlace,
)


def work(writer: CorrectWriter, fs: RecordingFs | FaultFs, rounds: int = 3) -> None:
    """Append and replace in turn, and mark each as ("log", 0), ("state", 0), ("log", 1) and so on."""
    for number in range(rounds):
        writer.append({"number": number, "text": "x" * 50})
        fs.mark(("log", number))
        writer.replace({"number": number})
        fs.mark(("state", number))


def check(folder: str, acked: tuple[Any, ...]) -> None:
    """The promise: every acknowledged line, whole and in order, and the acknowledged state or a later one.

    Raises:
        AssertionError: it is not so.
    """
    lines = _lines(Path(folder, LOG))
    numbers = [json.loads(line.decode())["number"] for line in lines]
    if numbers != list(range(len(numbers))):
        raise AssertionError(f"lines of the log are {numbers}")
    if len(numbers) < _count(acked, "log"):
        raise AssertionError("an acknowledged line of the log is lost")
    state = Path(folder, STATE)
    if not state.exists():
        if _count(acked, "state"):
            raise AssertionError("the acknowledged state is lost")
        return
    number = json.loads(state.read_text("utf-8"))["number"]
    if number < _count(acked, "state") - 1:
        raise AssertionError("an older state than the acknowledged one")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def _count(acked: tuple[Any, ...], kind: str) -> int:
    return sum(1 for name, _ in acked if name == kind)
