"""The lock on one message, held by one process while it handles the message.

It is a kernel lock on the message file itself. That file is never replaced, so the lock is unambiguous; the
kernel releases it with its process, so no timeout is needed, and a handler may take any time.
"""

from __future__ import annotations

from contextlib import suppress

from sessionary.disk.fs import EXCLUSIVE, READ, UNLOCK, Fs, storage_failed
from sessionary.disk.lifetime import reset_in_child

_claims: set[Claim] = set()  # held by this process


class Claim:
    """A lock on one message file."""

    def __init__(self, fs: Fs, fd: int) -> None:
        self.fd = fd
        self._fs = fs
        _claims.add(self)

    @classmethod
    def take(cls, fs: Fs, path: str) -> Claim | None:
        """Lock a message; None if another process holds it.

        Raises:
            FileNotFoundError: the file was removed.
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
        """Release it. Idempotent.

        Closing alone is not enough: a child forked by a handler shares the lock until it closes its copy.
        """
        if self.fd >= 0:
            with suppress(OSError):
                self._fs.lock(self.fd, UNLOCK)
            self.forget()

    def forget(self) -> None:
        """Close the descriptor without a release: the lock belongs to another process, or to the parent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            _claims.discard(self)
            self._fs.close(fd)


# A child forked by a handler would keep the locks of its parent for its whole life.
reset_in_child(_claims, Claim.forget)
