"""What the kernel tells of new names in folders (inotify; Linux only).

A consumer that takes one message at a time from a folder of ten thousand cannot list ten thousand names for each. The
kernel knows the one that came. So from the second listing on, a folder is watched, and as long as the kernel answers
for it, it need not be listed.

That holds where all changes pass this kernel. On network file systems they do not, and nothing is watched there.
Queues overflow, watches run out: then the kernel has told nothing, and the folder is listed.

The three system calls are made here, through ctypes: libraries that wrap them for all platforms look at their queue
on a timer, so that they either wake up late or burn the processor while nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress

from sessionary.disk.mounts import weakness

_CREATED, _MOVED_HERE, _WRITTEN = 0x100, 0x80, 0x8
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_MASK = _CREATED | _MOVED_HERE | _WRITTEN
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 16
_LONGEST = 1 << 10  # bytes of an event, and more
_NOBODYS = frozenset(b".#")
_alive: weakref.WeakSet[Notices] = weakref.WeakSet()


class Notices:
    """Names that have come to watched folders.

    Args:
        concerns: whether a name matters; the temporary files of producers do not.

    Raises:
        OSError: the kernel has no more of these.
    """

    def __init__(self, concerns: Callable[[str], bool]) -> None:
        self._concerns = concerns
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1 failed")
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._folders: dict[int, str] = {}
        self._came = False
        self._names: dict[str, set[str] | None] = {}  # None: watched since nobody has asked
        _alive.add(self)

    def watch(self, folder: str) -> bool:
        """Watch a folder from now on; False if that was so already, or cannot be."""
        if folder in self._names or self._fd < 0:
            return False
        number = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _MASK)
        if number < 0:
            return False
        self._folders[number] = folder
        self._names[folder] = None
        return True

    def take(self, folder: str) -> set[str] | None:
        """The names that have come since the last call; None if nobody can tell, so that one has to list.

        Nobody can for a folder that is not watched, nor the first time for one that is: what was there before?
        """
        if not self._names.get(folder):  # what a look at another folder has brought is enough for this time
            self._read()
        if folder not in self._names:
            return None
        names = self._names[folder]
        self._names[folder] = set()
        return names

    def wait(self, seconds: float) -> None:
        """Sleep until a name that matters has come since the last call, or so long.

        One that somebody has taken in between counts: whether they did with it what the caller would, nobody knows.
        """
        deadline = time.monotonic() + seconds
        while not self._came and (left := deadline - time.monotonic()) > 0:
            if self._fd < 0:
                time.sleep(left)
            elif self._poll.poll(left * 1000):
                self._read()
        self._came = False

    def close(self) -> None:
        """Stop watching; from now on nobody can tell."""
        fd, self._fd = self._fd, -1
        self._forget()
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        with suppress(BaseException):  # at the end of the interpreter there may be nothing left to call
            self.close()

    def _read(self) -> None:
        """Take in what the kernel has to tell."""
        try:
            while self._fd >= 0 and (data := os.read(self._fd, _BUFFER)):
                self._take_in(data)
                if len(data) < _BUFFER - _LONGEST:
                    return  # there would have been room for another one
        except BlockingIOError:
            pass

    def _take_in(self, data: bytes) -> None:
        """Note the events in a buffer, as inotify(7) lays them out: watch, mask, cookie, and a name with its length.

        Most are passed over: every producer makes a temporary file, writes it and closes it. Such a name is hidden, and
        one that has no name yet is called by ``#`` and its number.
        """
        at, end = 0, len(data)
        while at < end:
            number, mask, _, length = _HEAD.unpack_from(data, at)
            begin = at + _HEAD.size
            at = begin + length
            if mask & _OVERFLOW:
                self._forget()
                self._came = True
            elif mask & _IGNORED:  # the folder is gone; another one may get its name
                self._names.pop(self._folders.pop(number, ""), None)
                self._came = True
            elif length and data[begin] not in _NOBODYS:
                name = os.fsdecode(data[begin:at].rstrip(b"\0"))
                if self._concerns(name):
                    self._came = True
                    known = self._names.get(self._folders.get(number, ""))
                    if known is not None:
                        known.add(name)

    def _forget(self) -> None:
        """What was missed cannot be known: all folders are as if they were not watched."""
        for number in self._folders:
            if self._fd >= 0:
                self._libc.inotify_rm_watch(self._fd, number)
        self._folders.clear()
        self._names.clear()


def notices(folder: str, concerns: Callable[[str], bool]) -> Notices | None:
    """Notices for folders below this one; None where the kernel cannot tell all that happens there."""
    why_not = weakness(folder)
    if sys.platform != "linux" or (
        why_not is not None and not why_not.startswith(("tmpfs", "ramfs", "overlay"))
    ):
        return None
    try:
        return Notices(concerns)
    except (OSError, AttributeError):
        return None


def _after_fork_in_child() -> None:
    # The queue is shared with the parent: what a child takes from it, the parent never hears of.
    for each in list(_alive):
        each.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
