"""What a consumer of a mailbox promises, as a check for sweeps; and consumers that do not keep it.

The promise: a message that was acknowledged is in the log exactly once, whenever and however the machine stopped;
and once a consumer has run again, so is every other message that is there, the late ones too.

Four of the planted consumers do things in an order that is found in real programs. They share everything but that
order, so what the check finds in them is the order. The fifth has the order right and reads the log carelessly.
"""

from __future__ import annotations

import errno
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from sessionary.disk.fs import (
    APPEND,
    CREATE,
    FILE_MODE,
    O_TMPFILE,
    READ,
    Fs,
    make_dirs,
    read_all,
    read_bytes,
    sync_dir,
    write_all,
)
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb, write_crumb
from sessionary.mailbox import Mailbox
from sessionary.testing.wrapper import UNSYNCED, WrappedFs
from tests.support.recorder import RecordingFs
from tests.support.sweeps import Check, Operation

LOG = "log.jsonl"
ACKED = "acked.jsonl"
DONE = "done"
INBOX = "breadcrumbs/0"
FIRST = (4, 5)
LATE = (6, 1)  # the second one is older than all that were applied before it
IDS = {f"id-{number}" for number in (*FIRST, *LATE)}


class NamedFs(WrappedFs):
    """A file system without O_TMPFILE, where every file has a name from the beginning."""

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        if O_TMPFILE and flags & O_TMPFILE == O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)
        return super().open(path, flags, mode)


class Consume(Protocol):
    """Applies the pending messages of a session, and returns the acknowledged ids."""

    def __call__(self, fs: Fs, folder: str) -> list[str]: ...


def put(fs: Fs, folder: str, number: int, *, durable: bool = False) -> None:
    """Leave the message of that number; its number is its time. With a temporary name, which is the longer way."""
    crumb = create_breadcrumb(f"message {number}", "", [], [], None, 0, "sonnet", {})
    crumb.timestamp = f"20260301_090000_{number:06d}"
    crumb.breadcrumb_id = f"id-{number}"
    write_crumb(folder, crumb, fs=NamedFs(fs), durable=durable)


def setup(folder: str) -> None:
    """A session with the first messages."""
    for number in FIRST:
        put(UNSYNCED, folder, number)


def twice(consume: Consume) -> Operation:
    """Consume, add late messages, consume again; records what was acknowledged."""

    def run(fs: RecordingFs) -> None:
        for known in consume(fs, fs.root):
            fs.mark(known)
        for number in LATE:
            put(fs, fs.root, number, durable=True)
        fs.mark("late")
        for known in consume(fs, fs.root):
            fs.mark(known)

    return run


def promise_of(consume: Consume) -> Check:
    """The check for states that `twice` of the same consumer may leave."""

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        known = set(acked) - {"late"}
        before = applied(folder)
        wrong = {each: before[each] for each in known if before[each] != 1}
        if wrong:
            raise AssertionError(f"acknowledged, and so often in the log: {wrong}")
        for number in FIRST if "late" not in acked else ():
            if not _is_there(folder, number):
                raise AssertionError(f"message {number} is gone")
        consume(UNSYNCED, folder)
        after = applied(folder)
        there = {f"id-{number}" for number in (*FIRST, *LATE) if _is_there(folder, number)}
        if set(after) < there or any(count != 1 for count in after.values()):
            raise AssertionError(f"after recovery {dict(after)}, and there are {sorted(there)}")

    return check


def applied(folder: str) -> Counter[str]:
    """How often each id is in the log; an incomplete line does not count."""
    path = Path(folder, LOG)
    found: Counter[str] = Counter()
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            found[json.loads(line.decode())["breadcrumb_id"]] += 1
        except ValueError:
            continue
    return found


def _is_there(folder: str, number: int) -> bool:
    name = f"20260301_090000_{number:06d}.json"
    return any(Path(folder, place, name).exists() for place in (INBOX, DONE))


# -- the one that keeps it


def ours(*, shared: bool = False) -> Consume:
    """`Mailbox.consume`; every message that waited before and waits no more is vouched for."""

    def consume(fs: Fs, folder: str) -> list[str]:
        mailbox = Mailbox.with_fs(fs, folder, shared=shared)
        waited = [crumb.breadcrumb_id for crumb in mailbox.pending()]
        mailbox.consume(lambda crumb: {"prompt": crumb.prompt})
        waiting = {crumb.breadcrumb_id for crumb in mailbox.pending()}
        mailbox.close()
        return [known for known in waited if known not in waiting]

    return consume


# -- and those that do not


class Planted(ABC):
    """What they have in common: messages in order of their names, an effect that is a line of the log."""

    def __call__(self, fs: Fs, folder: str) -> list[str]:
        done: list[str] = []
        for name in sorted(fs.listdir(f"{folder}/{INBOX}")):
            if not name.startswith("."):
                known = f"id-{int(name[-11:-5])}"
                if self.consume_one(fs, folder, name, known):
                    done.append(known)
        return done

    @abstractmethod
    def consume_one(self, fs: Fs, folder: str, name: str, known: str) -> bool:
        """Apply one message unless that was done; True if it is now."""

    @staticmethod
    def add(fs: Fs, path: str, known: str, *, flush: bool = True) -> None:
        """Add a line to a file; half a line of a crash is ended first."""
        new = os.path.basename(path) not in fs.listdir(os.path.dirname(path))
        fd = fs.open(path, CREATE | os.O_APPEND if new else APPEND)
        try:
            torn = not new and not read_all(fs, fd).endswith(b"\n")
            write_all(fs, fd, b"\n" * torn + json.dumps({"breadcrumb_id": known}).encode() + b"\n")
            if flush:
                fs.fdatasync(fd)
        finally:
            fs.close(fd)
        if new and flush:
            sync_dir(fs, os.path.dirname(path))

    @staticmethod
    def read(fs: Fs, path: str) -> list[str]:
        """The ids on the lines of a file, a whole one that only lacks its newline included: `add` will end it."""
        try:
            fd = fs.open(path, READ)
        except FileNotFoundError:
            return []
        try:
            lines = read_all(fs, fd).split(b"\n")
        finally:
            fs.close(fd)
        found: list[str] = []
        for line in lines:
            try:
                found.append(json.loads(line.decode())["breadcrumb_id"])
            except ValueError:
                continue
        return found


class AckBeforeEffect(Planted):
    """Acknowledges a message and then applies it: a crash between the two loses it."""

    def consume_one(self, fs: Fs, folder: str, name: str, known: str) -> bool:
        if known in self.read(fs, f"{folder}/{ACKED}"):
            return False
        self.add(fs, f"{folder}/{ACKED}", known)
        self.add(fs, f"{folder}/{LOG}", known)
        return True


class EffectThenMove(Planted):
    """Applies a message and then moves it away: a crash between the two applies it again."""

    def consume_one(self, fs: Fs, folder: str, name: str, known: str) -> bool:
        self.add(fs, f"{folder}/{LOG}", known)
        make_dirs(fs, f"{folder}/{DONE}")
        fs.rename(f"{folder}/{INBOX}/{name}", f"{folder}/{DONE}/{name}")
        sync_dir(fs, f"{folder}/{DONE}")
        sync_dir(fs, f"{folder}/{INBOX}")
        return True


class HighWaterMark(Planted):
    """Skips what is not newer than the newest that was applied: a late message with an older time is never applied."""

    def consume_one(self, fs: Fs, folder: str, name: str, known: str) -> bool:
        log = self.read(fs, f"{folder}/{LOG}")
        if log and name[-11:-5] <= f"{max(int(each[3:]) for each in log):06d}":
            return False
        self.add(fs, f"{folder}/{LOG}", known)
        return True


class UnsyncedEffect(Planted):
    """Acknowledges what only the memory of the machine has."""

    def consume_one(self, fs: Fs, folder: str, name: str, known: str) -> bool:
        if known in self.read(fs, f"{folder}/{LOG}"):
            return False
        self.add(fs, f"{folder}/{LOG}", known, flush=False)
        return True


class LogIsLedger(Planted):
    """The right order, as plainly as it can be written: what the check must find nothing in."""

    def consume_one(self, fs: Fs, folder: str, name: str, known: str) -> bool:
        if known in self.read(fs, f"{folder}/{LOG}"):
            return False
        self.add(fs, f"{folder}/{LOG}", known)
        return True


class UnendedLineIgnored(LogIsLedger):
    """Takes a record that only lacks its newline for half of one, and lets the next append end it."""

    @staticmethod
    def read(fs: Fs, path: str) -> list[str]:
        data = read_bytes(fs, path) or b""
        known = Planted.read(fs, path)
        return known if data.endswith(b"\n") else known[:-1]


PLANTED: dict[str, Callable[[], Consume]] = {
    "ack before effect": AckBeforeEffect,
    "effect, then move": EffectThenMove,
    "high-water mark": HighWaterMark,
    "unsynced effect": UnsyncedEffect,
    "unended line ignored": UnendedLineIgnored,
}
