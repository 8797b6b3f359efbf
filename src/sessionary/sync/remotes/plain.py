"""Remote for a device without encryption: it refuses a store that other devices have encrypted.

An encrypted store has a marker that is put before anything else. Without a check for it, a device on which the user
forgot an option would store plain text between the ciphertext of the others. So the marker is looked up before the
first write: one more request for each process that writes. A list shows it anyway.
"""

from __future__ import annotations

from typing import Any

from sessionary.errors import RemoteError
from sessionary.sync.remote import HeadPage, OpenRemote, WrappedRemote
from sessionary.sync.remotes.sealed import MARK


class PlainRemote(WrappedRemote):
    """A remote that refuses to be an encrypted one.

    Args:
        inner: the inner remote.
    """

    def __init__(self, inner: OpenRemote) -> None:
        super().__init__(inner)
        self._checked = False

    def prepare(self) -> Any:
        """Prepare the inner remote, and check that it is not encrypted."""
        prepared = super().prepare()
        self._check()
        return prepared

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        self._check()
        return super().put_block(space, block, data)

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        self._check()
        return super().swap_head(name, data, etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        page = super().list_heads(after)
        if any(head.name == MARK for head in page.heads):
            raise _sealed()
        return page

    def _check(self) -> None:
        """Check once that the store is not encrypted.

        Raises:
            RemoteError: it is encrypted. Nothing was changed.
        """
        if not self._checked and self.inner.read_head(MARK) is not None:
            raise _sealed()
        self._checked = True


def _sealed() -> RemoteError:
    return RemoteError(
        "the remote is encrypted, and this machine is set up without encryption; nothing was changed",
        hint="copy the key from a machine that has it, and run `sessionary sync init ADDRESS --encrypt FILE --replace`",
    )
