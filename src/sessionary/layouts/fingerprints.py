"""Fingerprints: detect from names and stats alone whether a session changed since it was read."""

from __future__ import annotations

import os
import stat as stat_module
import struct
from collections.abc import Callable
from hashlib import blake2b

from sessionary.disk.fs import Fs

MTIME_GRACE = 2.0
"""Seconds for which a file must have been left alone before it can be known by its times whether it changed.

No clock of a file system that matters ticks more slowly; within one tick a second change leaves no trace.
"""

UNKNOWN = b""
"""The fingerprint of a session that may change undetected; equal to no stored one."""

Identity = tuple[int, int, int, int, int]

_pack = struct.Struct("=QQqqq").pack


def identity_of(found: os.stat_result) -> Identity:
    """The identity of an unchanged file: device, inode, size, and both of its times.

    Only the ctime reveals a change in place of equal size whose author restored the old mtime.
    """
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def fingerprint_of(
    fs: Fs,
    path: str,
    now: float,
    *,
    settled: float = MTIME_GRACE,
    wanted: Callable[[str], bool] = lambda name: True,
    passing: Callable[[str], object] = lambda name: False,
    salt: str = "",
) -> bytes:
    """The fingerprint of a file, or of a folder with everything below it.

    It covers name, inode, size, mtime and ctime of each file: only the ctime reveals a file that was changed
    and given its old time back, or whose permissions changed.

    Args:
        path: the file or folder. One that is missing has the fingerprint of a missing file.
        now: seconds since 1970, taken before anything of the session is read.
        settled: seconds for which everything must have been unchanged; within one tick of a file system's
        clock a second change is undetectable.
        wanted: whether a path below the folder counts; an unwanted folder is not searched.
        passing: whether a report depends on the age of a file of that name, so that the folder has no fingerprint.

    Returns:
        16 bytes, or `UNKNOWN` if a later change could be undetectable.
    """
    state = [_salted(salt)]
    waiting, newest = [("", path)], 0
    while waiting:
        name, place = waiting.pop()
        try:
            found = fs.stat(place)
            state.append(_packed(found))
            newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
            if stat_module.S_ISDIR(found.st_mode):
                below = sorted(fs.listdir(place))
                if any(map(passing, below)):
                    return UNKNOWN
                lead = f"{name}/" if name else ""
                waiting += [(inner, f"{path}/{inner}") for one in below if wanted(inner := lead + one)]
        except FileNotFoundError:
            state.append(b"-")
        except (OSError, struct.error):
            return UNKNOWN  # the caller determines whether it can be read
        state.append(name.encode("utf-8", "surrogateescape"))
    return _digest(state, newest, now - settled)


def fingerprint_of_file(found: os.stat_result, now: float, salt: str = "") -> bytes:
    """As `fingerprint_of`, of a regular file whose stat is known."""
    try:
        state = [_salted(salt), _packed(found), b""]
    except struct.error:
        return UNKNOWN
    return _digest(state, max(found.st_mtime_ns, found.st_ctime_ns), now - MTIME_GRACE)


def _salted(salt: str) -> bytes:
    return salt.encode("utf-8", "surrogatepass")


def _packed(found: os.stat_result) -> bytes:
    return _pack(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)


def _digest(state: list[bytes], newest: int, settled_since: float) -> bytes:
    if newest >= settled_since * 1e9:
        return UNKNOWN
    return blake2b(b"\0".join(state), digest_size=16).digest()
