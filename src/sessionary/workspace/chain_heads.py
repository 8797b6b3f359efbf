"""The ends of hash chains that `check --chain --remember` keeps apart from the sessions.

Their file is ``chain-heads.json`` in the state folder. Keep a copy of it on another machine: a user who can change both
it and the sessions can hide a change.
"""

from __future__ import annotations

import os

import msgspec

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import Corrupt, Invalid
from sessionary.layouts.base import ChainHead
from sessionary.xdg import xdg_folder

FILE = "chain-heads.json"


class ChainHeads:
    """The remembered heads, by the path of the session.

    Args:
        fs: the file system.
    """

    def __init__(self, fs: Fs) -> None:
        folder = xdg_folder("XDG_STATE_HOME", "~/.local/state")
        if folder is None:
            raise Invalid("no home directory for the state", hint="set XDG_STATE_HOME")
        self._fs = fs
        self.path: str = os.path.join(folder, FILE)

    def known(self) -> dict[str, ChainHead]:
        """All remembered heads.

        Raises:
            Corrupt: the file is damaged.
            StorageFailed: it cannot be read.
        """
        data = read_bytes(self._fs, self.path)
        try:
            return {} if data is None else msgspec.json.decode(data, type=dict[str, ChainHead])
        except msgspec.MsgspecError as error:
            hint = "restore it from a copy; without it the end of a chain cannot be checked"
            raise Corrupt(f"{self.path} is damaged: {error}", path=self.path, hint=hint) from None

    def remember(self, path: str, head: ChainHead) -> None:
        """Keep the head of a session instead of the one before.

        Durability: when this returns, it survives a power cut; until then the old one does.

        Raises:
            Corrupt, Locked, StorageFailed: the file cannot be read or written.
        """
        make_folder(self._fs, os.path.dirname(self.path))
        lock = FileLock(f"{self.path}.lock", self._fs)
        with lock.held():
            known = self.known()
            if known.get(path) != head:
                data = msgspec.json.format(
                    msgspec.json.encode({**known, path: head}, order="sorted"), indent=1
                )
                atomic.replace(self.path, (data, b"\n"), fs=self._fs)
        lock.close()
