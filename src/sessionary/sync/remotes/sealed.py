"""A remote whose store sees only ciphertext: whatever is put into it is sealed with an age key before it leaves.

age encrypts, and two things that age does not do are done here:

*   **Names are keyed.** The id of a block is a hash of all that stands before it, and the name of a head one of its
    project and session: who guesses a text could find out from them whether it is there. So every name is replaced by
    an HMAC of it, and lies inside the ciphertext. Of a block's id only the number stays readable, because ranges
    are asked for by it.
*   **What is inside is signed.** age keeps a text secret, but lets everybody write one who has the public key. So an
    HMAC over place and content lies in front of it: a store can neither make up a block nor pass one off as another.

The same bytes are sealed into other ones each time. That does no harm: a block is created only, so the first to come
stays, and equal ids still mean equal bytes once it is opened. Heads are compared by their etags.

What the store still learns: whose tenant it is, how many heads and blocks there are, their sizes and times, which
blocks belong to one file and in which order. And it can hold back what is new, or show an older head than it has.
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
    Remote,
    StatPage,
    WrappedRemote,
    block_pages,
    blocks_of,
    heads_of,
    must_collect,
    stats_of,
)

OVERHEAD = 4 << 10
"""So many bytes less than in another remote a block may have: what age and the name inside take."""

MARK = "sealed-1"
_SIGNATURE = 32
_NUMBERED = re.compile(r"([^-]*)-([0-9]{8})(.*)", re.DOTALL)
_ABOVE = "g"  # above all keyed names


class SealedRemote(WrappedRemote):
    """Another remote, of whose contents the store that keeps them can read nothing.

    All devices share one key. Whoever loses it loses what is on the remote, not what is on his devices.

    Args:
        inner: the remote that is to hold the ciphertext. It holds nothing else.
        identity: an age X25519 key, ``AGE-SECRET-KEY-1…``, as ``age-keygen`` makes it.

    Raises:
        Unsupported: pyrage is not installed.
        Invalid: this is no such key.
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
        self._refuse_large(block, data)
        self._check()
        sealed = self._seal("block", f"{space} {block}", block, data)
        keyed = self._id(space, block)
        stored = self.inner.put_block(self._space(space), keyed, sealed)
        if stored:
            self._remember(space, keyed, block)
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
            # Blocks of one number lie in the order of their keyed names: they are given out only together. Blocks of
            # several files do too, and so does a range that is not asked for by numbers.
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
        self._refuse_large(name, data)
        self._check()
        return self.inner.swap_head(self._head(name), self._seal("head", name, name, data), etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        self._check()
        page = self.inner.list_heads(after)
        heads = tuple(self._opened_head(head) for head in page.heads if head.name != MARK)
        return HeadPage(heads, page.following)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        """As of the remote inside, whose names say nothing: what a block is called is inside of it, so it is read.

        Those are not read that were put by this object into this space just now. One that cannot be opened is left
        out: it is no block of ours, and nobody's to remove; unless the range begins with its whole id.
        """
        self._check()
        low = first if after is None else max(first, after)
        span = self._span(space, low, stop)
        keyed = {stat.id: stat for stat in stats_of(must_collect(self.inner), self._space(space), *span)}
        names = self._names(space, keyed)
        if (asked := self._id(space, first)) in keyed:
            names[asked] = first  # asked for by its whole name, so its bytes need not say it
        found = [stat._replace(id=names[name]) for name, stat in keyed.items() if name in names]
        wanted = (one for one in found if first <= one.id < stop and (after is None or one.id > after))
        return StatPage(tuple(sorted(wanted)), None)

    def _names(self, space: str, keyed: Collection[str]) -> dict[str, str]:
        """What these blocks are called, by their keyed ids."""
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

    def _remember(self, space: str, keyed: str, block: str) -> None:
        """Note what a block is called that was put: of one space only, so that it is never much."""
        if self._put[0] != space:
            self._put = space, {}
        self._put[1][keyed] = block

    def delete_block(self, space: str, block: str, version: str) -> bool:
        self._check()
        return must_collect(self.inner).delete_block(self._space(space), self._id(space, block), version)

    # -- whose key it is

    def _check(self) -> None:
        """See, once, that the store was sealed with this key; seal it if it is empty.

        Raises:
            RemoteError: it was sealed with another key, or holds what is not sealed at all. Nothing was changed.
        """
        if self._checked:
            return
        mark = self.inner.read_head(MARK)
        if mark is None:
            if next(heads_of(self.inner), None) is not None:
                raise RemoteError(
                    "the remote holds sessions that are not encrypted",
                    hint="encrypt an empty one, or do without encryption here",
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
        """Between which keyed ids these lie: those of the same numbers, or all of the space where there are none."""
        first, last = _NUMBERED.fullmatch(low), _NUMBERED.fullmatch(stop)
        if first is None or last is None or first[1] != last[1]:
            return "", _ABOVE
        key = self._key(space, first[1])
        return f"{key}-{first[2]}", f"{key}-{int(last[2]) + bool(last[3]):08}"

    # -- what is inside

    def _seal(self, kind: str, place: str, name: str, data: bytes) -> bytes:
        return self._age.sealed(self._age.signature(kind, place, data) + name.encode() + b"\n" + data)

    def _open(self, kind: str, space: str, sealed: bytes) -> Block | None:
        """The name and the data of what was sealed; None if it was not sealed with this key, or for another place."""
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
                f"block {block.id} of the remote cannot be opened: it was changed, or sealed with another key",
                hint="nothing here was changed; run `sessionary sync check --repair` on a machine that has it whole",
                details={"unreadable": block.id},
            )
        return found

    def _opened_head(self, head: HeadRecord) -> HeadRecord:
        """The head as it was put; one that cannot be opened as it is, so that it spoils only its own session."""
        found = self._open("head", "", head.data)
        if found is None or self._head(found.id) != head.name:
            return head
        return HeadRecord(found.id, found.data, head.etag)

    def _refuse_large(self, name: str, data: bytes) -> None:
        if len(data) > self.largest:
            raise RemoteError(
                f"{name} has {len(data)} bytes; encrypted, a block or head may have {self.largest}"
            )


def _number(block: str) -> str:
    parts = _NUMBERED.fullmatch(block)
    return parts[2] if parts else ""


class _Age:
    """An age key, and two secrets that are derived from it."""

    def __init__(self, identity: str) -> None:
        pyrage = _pyrage()
        secret = identity.strip().upper()
        try:
            self._identity = pyrage.x25519.Identity.from_str(secret)
        except pyrage.IdentityError as error:
            raise Invalid(f"this is no age key: {error}", hint="make one with age-keygen") from None
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
        told = f"{kind}\0{place}\0".encode()
        return hmac.digest(self._signing, told + data, sha256)


def _pyrage() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise Unsupported(
            f"encryption needs pyrage, which cannot be imported: {error}",
            hint="pip install 'sessionary[encryption]'",
        ) from error
    return pyrage
