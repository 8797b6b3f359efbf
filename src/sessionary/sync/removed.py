"""What was removed from the other side, kept here for a while: a head may have come to point to it in that moment.

A folder for each time that something was removed, in it a folder for each space, in it the blocks as they were stored,
each flushed before it is removed there. While a removal is under way, a file says so and names its folder: whoever
finds it knows that nobody has looked again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes, storage_failed
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists

_FORM = "%Y%m%dT%H%M%S.%fZ"
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z")
_SPACE = re.compile(r"[0-9a-f]{40}")
_BLOCK = re.compile(r"[0-9a-f]{8}-[0-9]{8}-[0-9a-f]{32}")
_OPEN = "open"
_SEEN = "seen"

Get = Callable[[], bytes | None]
"""Gives the bytes of a block; None if somebody has deleted them since."""


def is_block(name: str) -> bool:
    """True for the id of a block. Whatever else lies in a space is none of ours, and its name is nothing to trust."""
    return _BLOCK.fullmatch(name) is not None


def _times(data: bytes | None) -> dict[str, datetime]:
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, Annotated[datetime, msgspec.Meta(tz=True)]])
    except msgspec.MsgspecError:
        return {}  # damaged: whatever it named is seen for the first time again, and so stays longer


class Removed:
    """The blocks below one folder. One process at a time: see `lock`.

    Args:
        folder: where they lie; it is made when it is needed.
        fs: the file system.
    """

    def __init__(self, folder: str, fs: Fs = OS_FS) -> None:
        self.folder = folder
        self._fs = fs

    def lock(self) -> FileLock:
        """The lock that one removal of this machine holds.

        Raises:
            StorageFailed: the folder cannot be made.
        """
        self._make(self.folder)
        return FileLock(os.path.join(self.folder, ".lock"), self._fs)

    def open_run(self) -> str | None:
        """The run after which nobody has looked again; None if there is none. An unknown one is the empty text."""
        data = read_bytes(self._fs, os.path.join(self.folder, _OPEN))
        if data is None:
            return None
        name = data.decode("ascii", "replace")
        return name if _RUN.fullmatch(name) else ""

    def begin(self, now: datetime) -> str:
        """Begin a run; returns its name. Durability: that it is under way survives a power cut."""
        name = now.astimezone(UTC).strftime(_FORM)
        self._make(os.path.join(self.folder, name))
        atomic.replace(os.path.join(self.folder, _OPEN), (name.encode(),), fs=self._fs)
        return name

    def end(self) -> None:
        """It was looked again after the run."""
        atomic.forget_file(os.path.join(self.folder, _OPEN), fs=self._fs)

    def keep(self, run: str, space: str, block: str, data: bytes) -> None:
        """Keep a block. Durability: on return it survives a power cut.

        Raises:
            StorageFailed: the disk refused; it may not be removed there.
        """
        folder = os.path.join(self.folder, run, space)
        self._make(folder)
        try:
            atomic.create(os.path.join(folder, block), data, fs=self._fs)
        except AlreadyExists:
            pass  # the same bytes: an id never has others

    def blocks(self, run: str | None = None) -> dict[str, dict[str, Get]]:
        """How to get the bytes of each block that is kept, by space and id; those of one run only if it is named."""
        found: dict[str, dict[str, Get]] = {}
        for name in self._names(self.folder, _RUN) if run is None else (run,):
            for space in self._names(os.path.join(self.folder, name), _SPACE):
                folder = os.path.join(self.folder, name, space)
                for block in self._names(folder, _BLOCK):
                    found.setdefault(space, {})[block] = partial(self._get, os.path.join(folder, block))
        return found

    def forget(self, now: datetime, after: timedelta) -> None:
        """Erase what was removed longer ago than this."""
        for name in self._names(self.folder, _RUN):
            if now - datetime.strptime(name, _FORM).replace(tzinfo=UTC) > after:
                atomic.erase_tree(os.path.join(self.folder, name), fs=self._fs)

    def first_seen(self, marks: Iterable[str], now: datetime) -> dict[str, datetime]:
        """When this machine saw each of these for the first time, by its own clock; those that are new, now.

        Others are forgotten. Durability: what was noted survives a power cut; if it is lost, all of it counts as new.
        """
        path = os.path.join(self.folder, _SEEN)
        known = _times(read_bytes(self._fs, path))
        found = {mark: min(known.get(mark, now), now) for mark in marks}
        if found != known:
            self._make(self.folder)
            told = {mark: at.isoformat() for mark, at in found.items()}
            atomic.replace(path, (msgspec.json.encode(told),), fs=self._fs)
        return found

    def _get(self, path: str) -> bytes | None:
        return read_bytes(self._fs, path)

    def _names(self, folder: str, form: re.Pattern[str]) -> Iterator[str]:
        try:
            found = self._fs.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise storage_failed(error, "look into", folder) from error
        yield from sorted(name for name in found if form.fullmatch(name))

    def _make(self, folder: str) -> None:
        try:
            make_dirs(self._fs, folder)
        except OSError as error:
            raise storage_failed(error, "make", folder) from error
