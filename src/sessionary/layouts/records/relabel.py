"""The first record of a journal that was moved to another id.

All other records stay as they are. Offsets of snapshots no longer hold, which their own offset reveals. The second
record of a chain holds the hash of the first one as it was, so the new one keeps that hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sessionary.codec import Undecodable, decode, encode_line, sanitize
from sessionary.disk import atomic
from sessionary.disk.fs import READ, Fs
from sessionary.disk.journal import COPY_BLOCK
from sessionary.layouts.records.journal import first_line
from sessionary.layouts.records.state import BEGIN


def begin_of(fs: Fs, path: str) -> dict[str, Any] | None:
    """The first record of a file; None if it cannot be read."""
    try:
        found = decode(first_line(fs, path))
    except (Undecodable, OSError):
        return None
    return found if isinstance(found, dict) and found.get("op") == BEGIN else None


def relabel(fs: Fs, path: str, session_id: str, parent: str) -> None:
    """Make a session that was moved to `path` say its id and its parent. Does nothing if it says that id already.

    A session whose first record is damaged stays as it is: it is read without it.

    Durability: when this returns, it survives a power cut; until then the old record does.
    """
    begin = begin_of(fs, path)
    if begin is None or begin.get("session") == session_id:
        return
    line = first_line(fs, path)
    label: dict[str, Any] = {"session": session_id, "parent": parent}
    if begin.get("chain"):
        label["prev"] = begin.get("prev") or sha256(line).hexdigest()
    new = encode_line(sanitize({**begin, **label})) + b"\n"
    atomic.replace(path, _with_first_line(fs, path, new, len(line) + 1), fs=fs)


def _with_first_line(fs: Fs, path: str, line: bytes, after: int) -> Iterator[bytes]:
    yield line
    fd = fs.open(path, READ)
    try:
        while block := fs.pread(fd, COPY_BLOCK, after):
            yield block
            after += len(block)
    finally:
        fs.close(fd)
