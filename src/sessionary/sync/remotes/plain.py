"""A remote as a device sees it that does not encrypt: never one that others have sealed.

A store says itself whether it is sealed, by the mark that a sealed remote puts into it before anything else. Whoever
does not look for it would lay plain text between the ciphertext of the others, because a person forgot an option on one
machine of several. So the mark is looked for before the first thing is put: one more request for each process that
puts something. A list shows it anyway.
"""

from __future__ import annotations

from typing import Any

from sessionary.errors import RemoteError
from sessionary.sync.remote import HeadPage, OpenRemote, WrappedRemote
from sessionary.sync.remotes.sealed import MARK


class PlainRemote(WrappedRemote):
    """Another remote, which refuses to be one that was sealed.

    Args:
        inner: the remote.
    """

    def __init__(self, inner: OpenRemote) -> None:
        super().__init__(inner)
        self._checked = False

    def prepare(self) -> Any:
        """As the remote inside, and see whether it is sealed."""
        told = super().prepare()
        self._check()
        return told

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
        """See, once, that the store is not sealed.

        Raises:
            RemoteError: it is. Nothing was changed.
        """
        if not self._checked and self.inner.read_head(MARK) is not None:
            raise _sealed()
        self._checked = True


def _sealed() -> RemoteError:
    return RemoteError(
        "the remote is encrypted, and this machine is set up without encryption; nothing was changed",
        hint="copy the key from a machine that has it, and run `sessionary sync init ADDRESS --encrypt FILE --replace`",
    )
