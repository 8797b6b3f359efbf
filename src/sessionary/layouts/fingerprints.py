"""Fingerprints: whether a session is still as it was when it was read, from names and stats alone."""

from __future__ import annotations

import os
import stat as stat_module
import struct
from collections.abc import Callable
from hashlib import blake2b

from sessionary.disk.fs import Fs
from sessionary.layouts.base import MTIME_GRACE

UNKNOWN = b""
"""The fingerprint of a session that may change unseen; equal to none that is stored."""

_pack = struct.Struct("=QQqqq").pack


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
    """The fingerprint of a file, or of a folder with all below it.

    It covers name, inode, size, mtime and ctime of each file: the ctime alone shows a file that was changed and given
    its old time back, or that may no longer be read.

    Args:
        fs: the file system.
        path: the file or folder. One that is missing has the fingerprint of a missing file.
        now: seconds since 1970, before anything is read of the session.
        settled: seconds for which all of it must have been left alone; within one tick of a file system's clock a
            second change leaves no trace.
        wanted: whether a path below the folder counts; of a folder that does not, nothing below it does.
        passing: whether a report depends on the age of a file of that name, so that nothing can be said of the folder.
        salt: what else the result of reading depends on.

    Returns:
        16 bytes, or `UNKNOWN` if a later change could go unseen.
    """
    state = [salt.encode("utf-8", "surrogatepass")]
    waiting, newest = [("", path)], 0.0
    while waiting:
        name, place = waiting.pop()
        try:
            found = fs.stat(place)
            state.append(
                _pack(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)
            )
            newest = max(newest, found.st_mtime, found.st_ctime)
            if stat_module.S_ISDIR(found.st_mode):
                below = sorted(fs.listdir(place))
                if any(map(passing, below)):
                    return UNKNOWN
                lead = f"{name}/" if name else ""
                waiting += [(inner, f"{path}/{inner}") for one in below if wanted(inner := lead + one)]
        except FileNotFoundError:
            state.append(b"-")
        except (OSError, struct.error):
            return UNKNOWN  # who asks decides whether it can be read
        state.append(os.fsencode(name))
    if newest >= now - settled:
        return UNKNOWN
    return blake2b(b"\0".join(state), digest_size=16).digest()
