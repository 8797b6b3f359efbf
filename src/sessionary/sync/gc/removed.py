"""What was removed from the other side, kept here for a while: a head may have come to point to it in that moment.

A folder for each time that something was removed, in it a folder for each space, in it the blocks as they were stored,
each flushed before it is removed there. While a removal is under way, a file says so and names its folder: whoever
finds it knows that nobody has looked again.

A block that is put back has its name for ever, and all who push and pull believe it. So the name of each file here has
a hash in it, over space, id and bytes: what this disk has changed since, be it one bit, is given out to nobody. The id
itself would not do: to prove a block by it takes all blocks before it, and those may be gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes, stat_or_none, storage_failed
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Corrupt, SessionaryError, StorageFailed

_FORM = "%Y%m%dT%H%M%S.%fZ"
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z")
_SPACE = re.compile(r"[0-9a-f]{40}")
_BLOCK = re.compile(r"[0-9a-f]{8}-[0-9]{8}-[0-9a-f]{32}")
_FILE = re.compile(rf"({_BLOCK.pattern})(\.[0-9a-f]{{64}})?")  # without its hash, it is proved by nothing
_OPEN = "open"
_SEEN = "seen"

Get = Callable[[], bytes | None]
"""Gives the bytes of a block, proved; None if somebody has deleted them since.

Raises Corrupt if they are not those that were kept, and StorageFailed if they cannot be read."""


def is_block(name: str) -> bool:
    """True for the id of a block. Whatever else lies in a space is none of ours, and its name is nothing to trust."""
    return _BLOCK.fullmatch(name) is not None


def _proof(space: str, block: str, data: bytes) -> str:
    return sha256(f"{space}/{block}\n".encode() + data).hexdigest()


def _times(data: bytes | None) -> dict[str, datetime]:
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, Annotated[datetime, msgspec.Meta(tz=True)]])
    except msgspec.MsgspecError:
        return {}  # damaged: whatever it named is seen for the first time again, and so stays longer


def _changed(path: str, block: str) -> Corrupt:
    return Corrupt(
        f"block {block} was kept when it was removed from the remote, but this disk has other bytes of it now",
        operation="gc",
        path=path,
        hint="bring this file back as it was, from a backup of this disk, and run `sessionary sync gc --remove` again; "
        "or run `sessionary sync check --repair` on a machine that has the session whole",
    )


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
        is_one = _RUN.fullmatch(name) and stat_or_none(self._fs, os.path.join(self.folder, name)) is not None
        return name if is_one else ""

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
        path = os.path.join(folder, f"{block}.{_proof(space, block, data)}")
        try:
            atomic.create(path, data, fs=self._fs)
        except AlreadyExists:
            if read_bytes(self._fs, path) != data:  # damaged since: its name says what was to be in it
                atomic.replace(path, (data,), fs=self._fs)

    def blocks(self, run: str | None = None) -> dict[str, dict[str, Get]]:
        """How to get the bytes of each block that is kept, by space and id; those of one run only if it is named.

        Of a block that was kept several times, whichever copy is proved is given.
        """
        wanted = self._files(self._names(self.folder, _RUN) if run is None else (run,))
        copies = wanted if run is None else self._files(self._names(self.folder, _RUN))
        return {
            space: {block: partial(self._get, space, block, copies[space][block]) for block in here}
            for space, here in wanted.items()
        }

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

    def _files(self, runs: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """The files that these runs have left of each block, by space and id."""
        found: dict[str, dict[str, list[str]]] = {}
        for run in runs:
            for space in self._names(os.path.join(self.folder, run), _SPACE):
                folder = os.path.join(self.folder, run, space)
                for name in self._names(folder, _FILE):
                    block = name.partition(".")[0]
                    found.setdefault(space, {}).setdefault(block, []).append(os.path.join(folder, name))
        return found

    def _get(self, space: str, block: str, paths: list[str]) -> bytes | None:
        trouble: SessionaryError | None = None
        for path in reversed(paths):
            try:
                data = read_bytes(self._fs, path)
            except StorageFailed as error:
                trouble = error
                continue
            if data is not None and path.endswith(f".{_proof(space, block, data)}"):
                return data
            if data is not None:
                trouble = _changed(path, block)
        if trouble is not None:
            raise trouble
        return None

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
