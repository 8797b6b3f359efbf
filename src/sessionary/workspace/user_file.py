"""A small JSON file of Sessionary, such as labels.json: read as a whole, and changed under a lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from sessionary.disk.fs import Fs, make_folder, read_bytes
from sessionary.errors import Corrupt, Invalid


class Versioned(Struct):
    """What such a file holds."""

    version: int = 1


Content = TypeVar("Content", bound=Versioned)


class UserFile(Generic[Content]):
    """A file of one kind.

    Args:
        path: the file; None if the account has no home.
        empty: what a missing file stands for; a file of another version is refused.
    """

    def __init__(self, path: str | None, empty: Content, subject: str, fs: Fs) -> None:
        self.path: str | None = path
        self._empty = empty
        self._subject = subject
        self._fs = fs

    def read(self) -> Content:
        """Return what it holds. Raises Corrupt if it is damaged, or of a later version."""
        path = self.path
        data = None if path is None else read_bytes(self._fs, path)
        if data is None:
            return self._empty
        hint = f"correct the file of {self._subject}, or move it away: they are then gone"
        try:
            found = msgspec.json.decode(data, type=type(self._empty))
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{path} is damaged: {error}", path=path, hint=hint) from None
        if found.version != self._empty.version:
            raise Corrupt(
                f"{path} has version {found.version}",
                path=path,
                hint="a later version of Sessionary wrote it: use that one",
            )
        return found

    def change(self, changed: Callable[[Content], Content]) -> None:
        """Replace what it holds; an equal content is not written.

        Durability: the new content survives a power cut when this returns; if it fails, the old file is unchanged.

        Raises:
            Invalid: there is no place for the file.
            Corrupt: it is damaged; it is unchanged.
        """
        from sessionary.disk import atomic  # here, since a list only reads
        from sessionary.disk.lock import FileLock

        if self.path is None:
            raise Invalid(f"no home directory for {self._subject}", hint="set XDG_DATA_HOME")
        make_folder(self._fs, os.path.dirname(self.path))
        with FileLock(f"{self.path}.lock", self._fs).once():
            before = self.read()
            after = changed(before)
            if after != before:
                data = msgspec.json.format(msgspec.json.encode(after), indent=1)
                atomic.replace(self.path, (data, b"\n"), fs=self._fs)
