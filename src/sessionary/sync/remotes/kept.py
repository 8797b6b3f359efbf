"""What a remote wants to know again in the next process, and can do without."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec

FORMAT = b"sessionary kept 1"
_DIGEST = 32
_T = TypeVar("_T")


class Note(Protocol):
    """Where bytes are kept that may be lost."""

    def read(self) -> bytes | None:
        """What was kept last; None if nothing is there, or nothing that can be read. Never raises."""
        ...

    def keep(self, data: bytes) -> None:
        """Keep these bytes instead, whole or not at all. Never raises."""
        ...


class Kept:
    """Values of one owner in a note. Whatever is not the owner's, undamaged and of this format, is not there.

    Args:
        owner: whose they are, and where: remote, tenant.
        note: where they are kept; None to keep nothing.
    """

    def __init__(self, owner: tuple[str, ...], note: Note | None) -> None:
        self._seal = sha256(FORMAT + "\0".join(owner).encode("utf-8", "surrogatepass"))
        self._note = note

    def read(self, decode: Callable[[bytes], _T]) -> _T | None:
        """What was kept, decoded; None if there is nothing, or nothing to be trusted."""
        data = self._note.read() if self._note is not None else None
        if data is None or self._digest(data[_DIGEST:]) != data[:_DIGEST]:
            return None
        try:
            return decode(data[_DIGEST:])
        except msgspec.MsgspecError:
            return None

    def keep(self, value: Any) -> None:
        """Keep a value that msgspec can encode."""
        if self._note is not None:
            data = msgspec.msgpack.encode(value)
            self._note.keep(self._digest(data) + data)

    def _digest(self, data: bytes) -> bytes:
        seal = self._seal.copy()
        seal.update(data)
        return seal.digest()
