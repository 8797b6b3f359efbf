"""Encrypted remote: the store sees only ciphertext, encrypted with an age key on this machine.

age encrypts, and two further measures are taken here:

*   **Names are keyed.** The id of a block is a hash of everything before it, and the name of a head one of its
    project and session: a guess of the text could be checked against them. So every name is replaced by an HMAC
    of it, and is stored inside the ciphertext. Only the number in a block's id stays readable, because ranges are
    requested by it.
*   **Content is signed.** age keeps a text secret, but anyone with the public key can write one. So an HMAC over
    place and content precedes it: a store can neither invent a block nor return one in place of another.

The same bytes are encrypted to different ones each time. That is harmless: blocks are only created, so the first one
stays, and equal ids still mean equal bytes after decryption. Heads are compared by their etags.

What the store still sees: the tenant, the number of heads and blocks, their sizes and times, which blocks belong to
one file and in which order. It can also withhold new data, or return an older head.

An encrypted store has a marker that is put before anything else. Without a check for it, a device on which the user
forgot an option would store plain text between the ciphertext of the others. So a device without encryption looks the
marker up before its first write: one more request for each process that writes. A list shows it anyway.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection
from hashlib import sha256
from typing import Any

from sessionary.errors import Invalid, RemoteError, Unsupported
from sessionary.sync.remote import (
    LARGEST_BLOCK,
    Block,
    BlockPage,
    HeadPage,
    HeadRecord,
    OpenRemote,
    Remote,
    StatPage,
    WrappedRemote,
    block_pages,
    blocks_of,
    heads_of,
    refuse_large,
    stats_of,
)

OVERHEAD = 4 << 10
"""Bytes by which a block must be smaller than in another remote, for the overhead of age and the name."""

MARK = "sealed-1"
_SIGNATURE = 32
_NUMBERED = re.compile(r"([^-]*)-([0-9]{8})(.*)", re.DOTALL)
_ABOVE = "g"  # above all keyed names


class SealedRemote(WrappedRemote):
    """A remote that encrypts everything before it reaches the inner remote.

    All devices share one key. If it is lost, the data on the remote is lost, but not the data on the devices.

    Args:
        inner: the remote for the ciphertext. It must contain nothing else.
        identity: an age X25519 key, ``AGE-SECRET-KEY-1…``, as ``age-keygen`` creates it.

    Raises:
        Unsupported: pyrage is not installed.
        Invalid: this is not such a key.
    """

    largest = LARGEST_BLOCK - OVERHEAD

    def __init__(self, inner: Remote, identity: str) -> None:
        super().__init__(inner)
        self._age = _Age(identity)
        self._checked = False
        self._put: tuple[str, dict[str, str]] = ("", {})
        self._fetched = 0

    @property
    def fetched(self) -> int:
        """The bytes of blocks that `list_blocks` has read."""
        return self._fetched

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        refuse_large(block, data, self.largest)
        self._check()
        sealed = self._seal("block", f"{space} {block}", block, data)
        keyed = self._id(space, block)
        stored = self.inner.put_block(self._space(space), keyed, sealed)
        if stored:
            if self._put[0] != space:  # names are kept for one space only, to bound the memory
                self._put = space, {}
            self._put[1][keyed] = block
        return stored

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        self._check()
        low = first if after is None else max(first, after)
        span = self._span(space, low, stop)
        found: list[Block] = []
        for page in block_pages(self.inner, self._space(space), *span):
            opened = [self._opened_block(space, block) for block in page.blocks]
            found += [b for b in opened if first <= b.id < stop and (after is None or b.id > after)]
            if page.following is None:
                break
            # Blocks of one number are sorted by their keyed names: they are returned only together. The same applies
            # to blocks of several files, and to a range that is not given by numbers.
            last = opened and span[0] and _number(opened[-1].id)
            if last and (whole := [block for block in found if _number(block.id) != last]):
                whole.sort()
                return BlockPage(tuple(whole), whole[-1].id)
        return BlockPage(tuple(sorted(found)), None)

    def read_head(self, name: str) -> HeadRecord | None:
        self._check()
        found = self.inner.read_head(self._head(name))
        return found and self._opened_head(found)

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        refuse_large(name, data, self.largest)
        self._check()
        return self.inner.swap_head(self._head(name), self._seal("head", name, name, data), etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        self._check()
        page = self.inner.list_heads(after)
        heads = tuple(self._opened_head(head) for head in page.heads if head.name != MARK)
        return HeadPage(heads, page.following)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        """As for the inner remote; blocks are read, because their names are inside the ciphertext.

        Blocks that this object has just put into this space are not read. A block that cannot be decrypted is left
        out: it is not ours to remove; except if the range begins with its whole id.
        """
        self._check()
        low = first if after is None else max(first, after)
        span = self._span(space, low, stop)
        keyed = {stat.id: stat for stat in stats_of(self.inner, self._space(space), *span)}
        names = self._names(space, keyed)
        if (asked := self._id(space, first)) in keyed:
            names[asked] = first  # requested by its whole name, so its bytes are not needed
        found = [stat._replace(id=names[name]) for name, stat in keyed.items() if name in names]
        wanted = (one for one in found if first <= one.id < stop and (after is None or one.id > after))
        return StatPage(tuple(sorted(wanted)), None)

    def _names(self, space: str, keyed: Collection[str]) -> dict[str, str]:
        """Return the names of these blocks, by their keyed ids."""
        last, put = self._put
        names = {name: put[name] for name in keyed if name in put} if last == space else {}
        unknown = sorted(name for name in keyed if name not in names)
        if unknown:
            for block in blocks_of(self.inner, self._space(space), unknown[0], unknown[-1] + _ABOVE):
                self._fetched += len(block.data)
                opened = self._open("block", space, block.data)
                if opened is not None and self._id(space, opened.id) == block.id:
                    names[block.id] = opened.id
        return names

    def delete_block(self, space: str, block: str, version: str) -> bool:
        self._check()
        return self.inner.delete_block(self._space(space), self._id(space, block), version)

    # -- whose key it is

    def _check(self) -> None:
        """Check once that the store was encrypted with this key; mark it as encrypted if it is empty.

        Raises:
            RemoteError: it was encrypted with another key, or not at all. Nothing was changed.
        """
        if self._checked:
            return
        mark = self.inner.read_head(MARK)
        if mark is None:
            if next(heads_of(self.inner), None) is not None:
                raise RemoteError(
                    "the remote holds sessions that are not encrypted",
                    hint="use an empty remote, or no encryption here",
                )
            self.inner.swap_head(MARK, self._seal("mark", MARK, MARK, b""), None)
            mark = self.inner.read_head(MARK)
        if mark is None or self._open("mark", MARK, mark.data) is None:
            raise RemoteError(
                "the remote is encrypted with another key; nothing was read or changed",
                hint="use the key with which it was set up, from another machine",
            )
        self._checked = True

    # -- names

    def _space(self, space: str) -> str:
        return self._age.keyed("space", space)[:40]

    def _head(self, name: str) -> str:
        return self._age.keyed("head", name)[:40]

    def _id(self, space: str, block: str) -> str:
        name = self._age.keyed("block", space, block)[:32]
        parts = _NUMBERED.fullmatch(block)
        return f"{self._key(space, parts[1])}-{parts[2]}-{name}" if parts else name

    def _key(self, space: str, key: str) -> str:
        return self._age.keyed("key", space, key)[:16]

    def _span(self, space: str, low: str, stop: str) -> tuple[str, str]:
        """Return the bounds of the keyed ids of these numbers, or of the whole space without numbers."""
        first, last = _NUMBERED.fullmatch(low), _NUMBERED.fullmatch(stop)
        if first is None or last is None or first[1] != last[1]:
            return "", _ABOVE
        key = self._key(space, first[1])
        return f"{key}-{first[2]}", f"{key}-{int(last[2]) + bool(last[3]):08}"

    # -- what is inside

    def _seal(self, kind: str, place: str, name: str, data: bytes) -> bytes:
        return self._age.sealed(self._age.signature(kind, place, data) + name.encode() + b"\n" + data)

    def _open(self, kind: str, space: str, sealed: bytes) -> Block | None:
        """Decrypt name and data; None if it was encrypted with another key, or for another place."""
        inside = self._age.opened(sealed)
        if inside is None:
            return None
        name, _, data = inside[_SIGNATURE:].partition(b"\n")
        found = Block(name.decode("ascii", "replace"), data)
        place = f"{space} {found.id}" if kind == "block" else found.id
        genuine = hmac.compare_digest(inside[:_SIGNATURE], self._age.signature(kind, place, data))
        return found if genuine else None

    def _opened_block(self, space: str, block: Block) -> Block:
        found = self._open("block", space, block.data)
        if found is None or self._id(space, found.id) != block.id:
            raise RemoteError(
                f"block {block.id} on the remote cannot be decrypted: it was changed, or encrypted with another key",
                hint="nothing here was changed; run `sessionary sync check --repair` on a machine with the session",
                details={"unreadable": block.id},
            )
        return found

    def _opened_head(self, head: HeadRecord) -> HeadRecord:
        """Return the decrypted head; unchanged if it cannot be decrypted, so that only its own session is affected."""
        found = self._open("head", "", head.data)
        if found is None or self._head(found.id) != head.name:
            return head
        return HeadRecord(found.id, found.data, head.etag)


def _number(block: str) -> str:
    parts = _NUMBERED.fullmatch(block)
    return parts[2] if parts else ""


class _Age:
    """An age key, and two secrets derived from it."""

    def __init__(self, identity: str) -> None:
        pyrage = _pyrage()
        secret = identity.strip().upper()
        try:
            self._identity = pyrage.x25519.Identity.from_str(secret)
        except pyrage.IdentityError as error:
            raise Invalid(f"this is not an age key: {error}", hint="create one with age-keygen") from None
        self._recipient = self._identity.to_public()
        self._pyrage = pyrage
        self._names = hmac.digest(secret.encode(), b"sessionary names 1", sha256)
        self._signing = hmac.digest(secret.encode(), b"sessionary signatures 1", sha256)

    def sealed(self, data: bytes) -> bytes:
        sealed: bytes = self._pyrage.encrypt(data, [self._recipient])
        return sealed

    def opened(self, data: bytes) -> bytes | None:
        try:
            opened: bytes = self._pyrage.decrypt(data, [self._identity])
        except self._pyrage.DecryptError:
            return None
        return opened

    def keyed(self, *words: str) -> str:
        return hmac.digest(self._names, "\0".join(words).encode(), sha256).hex()

    def signature(self, kind: str, place: str, data: bytes) -> bytes:
        place_bytes = f"{kind}\0{place}\0".encode()
        return hmac.digest(self._signing, place_bytes + data, sha256)


def _pyrage() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise Unsupported(
            f"encryption needs pyrage, which cannot be imported: {error}",
            hint="pip install 'sessionary[encryption]'",
        ) from error
    return pyrage


class PlainRemote(WrappedRemote):
    """A remote that refuses to be an encrypted one."""

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
        """Check once that the store is not encrypted. Raises RemoteError if it is; nothing was changed."""
        if not self._checked and self.inner.read_head(MARK) is not None:
            raise _sealed()
        self._checked = True


def _sealed() -> RemoteError:
    return RemoteError(
        "the remote is encrypted, and this machine is set up without encryption; nothing was changed",
        hint="copy the key from a machine that has it, and run `sessionary sync init ADDRESS --encrypt FILE --replace`",
    )
