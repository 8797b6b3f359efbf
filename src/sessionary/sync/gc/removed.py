"""Local copies of removed blocks, kept for a while: a head may have come to refer to one meanwhile.

There is a folder for each run, in it a folder for each space, in it the blocks as stored, each flushed before it is
removed from the remote. While a run is open, a file names its folder: it shows that the second reading of the heads
is still missing.

A block that is put back keeps its name for ever, and every push and pull trusts it. So the name of each file contains
a hash over space, id and bytes: a copy that the disk has changed by a single bit is not used. The id alone is not
enough: verifying a block by it needs all blocks before it, which may be gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_folder, names_in, read_bytes, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import AlreadyExists, Corrupt, SessionaryError, StorageFailed

_FORM = "%Y%m%dT%H%M%S.%fZ"
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z")
_SPACE = re.compile(r"[0-9a-f]{40}")
_BLOCK = re.compile(r"[0-9a-f]{8}-[0-9]{8}-[0-9a-f]{32}")
_FILE = re.compile(rf"({_BLOCK.pattern})(\.[0-9a-f]{{64}})?")  # without its hash, it cannot be verified
_OPEN = "open"
_SEEN = "seen"

Get = Callable[[], bytes | None]
"""Returns the verified bytes of a block; None if they were deleted since.

Raises Corrupt if they differ from the saved ones, and StorageFailed if they cannot be read.
"""


def is_block(name: str) -> bool:
    """True for the id of a block. Other names in a space are foreign."""
    return _BLOCK.fullmatch(name) is not None


def _proof(space: str, block: str, data: bytes) -> str:
    return sha256(f"{space}/{block}\n".encode() + data).hexdigest()


def _times(data: bytes | None) -> dict[str, datetime]:
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, Annotated[datetime, msgspec.Meta(tz=True)]])
    except msgspec.MsgspecError:
        return {}  # damaged: the marks count as new, so their objects stay longer


def _changed(path: str, block: str) -> Corrupt:
    return Corrupt(
        f"the local copy of block {block}, which was removed from the remote, is damaged",
        operation="gc",
        path=path,
        hint="restore this file from a backup of this disk, and run `sessionary sync gc --remove` again; "
        "or run `sessionary sync check --repair` on a machine with the session",
    )


class Removed:
    """The copies below one folder. One process at a time: see `lock`.

    Args:
        folder: the folder; it is made when needed.
    """

    def __init__(self, folder: str, fs: Fs = OS_FS) -> None:
        self.folder = folder
        self._fs = fs

    def lock(self) -> FileLock:
        """Return the lock for one removal of this machine."""
        make_folder(self._fs, self.folder)
        return FileLock(os.path.join(self.folder, ".lock"), self._fs)

    def open_run(self) -> str | None:
        """Return the open run; None without one; "" if its name is unreadable."""
        data = read_bytes(self._fs, os.path.join(self.folder, _OPEN))
        if data is None:
            return None
        name = data.decode("ascii", "replace")
        is_one = _RUN.fullmatch(name) and stat_or_none(self._fs, os.path.join(self.folder, name)) is not None
        return name if is_one else ""

    def begin(self, now: datetime) -> str:
        """Begin a run; return its name. Durability: the open run survives a power cut."""
        name = now.astimezone(UTC).strftime(_FORM)
        make_folder(self._fs, os.path.join(self.folder, name))
        atomic.replace(os.path.join(self.folder, _OPEN), (name.encode(),), fs=self._fs)
        return name

    def end(self) -> None:
        """Close the run: the heads were read again."""
        atomic.forget_file(os.path.join(self.folder, _OPEN), fs=self._fs)

    def keep(self, run: str, space: str, block: str, data: bytes) -> None:
        """Save a block. Durability: on return it survives a power cut.

        Raises:
            StorageFailed: it cannot be saved; it must not be removed from the remote.
        """
        folder = os.path.join(self.folder, run, space)
        make_folder(self._fs, folder)
        path = os.path.join(folder, f"{block}.{_proof(space, block, data)}")
        try:
            atomic.create(path, data, fs=self._fs)
        except AlreadyExists:
            if read_bytes(self._fs, path) != data:  # damaged since: the name determines the content
                atomic.replace(path, (data,), fs=self._fs)

    def blocks(self, run: str | None = None) -> dict[str, dict[str, Get]]:
        """Return the getter of each saved block, by space and id; only of one run if it is given.

        Of a block with several copies, a verified one is returned.
        """
        wanted = self._files(self._names(self.folder, _RUN) if run is None else (run,))
        copies = wanted if run is None else self._files(self._names(self.folder, _RUN))
        return {
            space: {block: partial(self._get, space, block, copies[space][block]) for block in here}
            for space, here in wanted.items()
        }

    def forget(self, now: datetime, after: timedelta) -> None:
        """Delete copies of runs that are older than `after`."""
        for name in self._names(self.folder, _RUN):
            if now - datetime.strptime(name, _FORM).replace(tzinfo=UTC) > after:
                atomic.erase_tree(os.path.join(self.folder, name), fs=self._fs)

    def first_seen(self, marks: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Return when this machine first saw each mark, by its own clock; new ones have the time `now`.

        Other marks are forgotten. Durability: the times survive a power cut; if they are lost, all marks count as
        new.
        """
        path = os.path.join(self.folder, _SEEN)
        known = _times(read_bytes(self._fs, path))
        found = {mark: min(known.get(mark, now), now) for mark in marks}
        if found != known:
            make_folder(self._fs, self.folder)
            times = {mark: at.isoformat() for mark, at in found.items()}
            atomic.replace(path, (msgspec.json.encode(times),), fs=self._fs)
        return found

    def _files(self, runs: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Return the paths of each saved block in these runs, by space and id."""
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

    def _names(self, folder: str, form: re.Pattern[str]) -> list[str]:
        return sorted(name for name in names_in(self._fs, folder) or () if form.fullmatch(name))
