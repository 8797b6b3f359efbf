"""A claim: one message, one process, for as long as it takes.

It is a kernel lock on the message file itself. That file is never replaced, so nothing else can be meant by it; the
lock goes with its process, so no claim has to be timed out, and a handler may take as long as it likes.
"""

from __future__ import annotations

import os
from contextlib import suppress

from sessionary.disk.fs import EXCLUSIVE, READ, UNLOCK, Fs, storage_failed

_claims: set[Claim] = set()  # those that are held


class Claim:
    """The claim on one message file, until it is let go.

    Attributes:
        fd: the file, open for reading.
    """

    def __init__(self, fs: Fs, fd: int) -> None:
        self.fd = fd
        self._fs = fs
        _claims.add(self)

    @classmethod
    def take(cls, fs: Fs, path: str) -> Claim | None:
        """Claim a message; None if another process has it.

        Raises:
            FileNotFoundError: the file is gone.
            StorageFailed: the file cannot be opened, or its file system has no locks.
        """
        try:
            claim = cls(fs, fs.open(path, READ))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_failed(error, "claim", path) from error
        try:
            fs.lock(claim.fd, EXCLUSIVE)
        except OSError as error:
            claim.forget()
            if isinstance(error, BlockingIOError):
                return None
            raise storage_failed(error, "claim", path) from error
        return claim

    def let_go(self) -> None:
        """Give it back. Doing so twice is harmless.

        Closing alone would not do: a child that a handler has forked shares the lock until it comes to close its copy.
        """
        fd, self.fd = self.fd, -1
        if fd >= 0:
            _claims.discard(self)
            with suppress(OSError):
                self._fs.lock(fd, UNLOCK)
            self._fs.close(fd)

    def forget(self) -> None:
        """Close the descriptor and leave the lock alone: another has it, or, in a forked child, the parent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            _claims.discard(self)
            self._fs.close(fd)


def _after_fork_in_child() -> None:
    # A child that a handler forks would keep the claims of its parent for as long as it lives.
    for claim in list(_claims):
        claim.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
