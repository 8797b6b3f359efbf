"""Heads: the only mutable record of a session on the remote; swapping it commits a push.

A head states the size of every file of a session and the chain of blocks that holds it, as a git reference names a
commit. Small documents are stored in the head itself: most pushes are then one block and one head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Struct

from sessionary.errors import Corrupt, Unsupported
from sessionary.layouts.files import PartKind
from sessionary.sync.blocks import ANEW, BLOCK, FORMAT

INLINE = 4 << 10
"""A document of at most this many bytes, compressed, is stored in the head."""

INLINE_ALL = 64 << 10
"""Most bytes of all documents in a head; further documents are stored in blocks."""

LARGEST_INLINE = 64 << 20
"""A head whose documents are larger in total is refused: it would fill the memory."""

LARGEST_DOCUMENT = 1 << 20
"""Most bytes of one document in a head, however well it compresses."""

LARGEST_NUMBER = 1 << 53
"""Largest number: not every language has exact integers beyond."""

MOST_BLOCKS = 99_999_999
"""Most blocks of a file: their numbers have eight digits."""

HISTORY = 8

LINES = {PartKind.JOURNAL.value, PartKind.LOG.value}
"""Kinds that only grow, except for rewinds; a bundle is reordered without losing anything."""

SHORT = 8
"""Characters of a device's name in `Head.counts`."""

_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[0-9a-f]{40}")


class PartHead(Struct, frozen=True, omit_defaults=True):
    """A file in a head.

    Attributes:
        name: its path relative to the session's folder, with slashes.
        kind: ``document``, ``journal``, ``log`` or ``bundle``.
        size: its size in bytes; of a journal, that of its whole lines.
        n: number of blocks.
        chain: the chain including the last block, or including the whole file if it is stored in the head.
        data: the whole file, compressed with zstd without a dictionary; absent if it is stored in blocks.
        redacted: something in it was redacted, now or in an earlier version.
    """

    name: str
    kind: str
    size: int
    n: int
    chain: str
    data: bytes | None = None
    redacted: bool = False


class Past(Struct, frozen=True):
    """An earlier generation: the ends of the journals before a rewind."""

    gen: int
    at: str
    tips: dict[str, tuple[int, str]]


class Mark(Struct, frozen=True):
    """A device holds back another version of a file because it is damaged.

    Attributes:
        why: the damage, in a sentence.
    """

    device: str
    why: str


class Head(Struct, frozen=True, omit_defaults=True):
    """The state of one session.

    Attributes:
        v: the format; clients that do not know it neither read nor write the session.
        project: the shared name of the project; None for a session without one.
        space: the space of its blocks: the head name of the oldest ancestor session.
        gen: number of changes that did not only append.
        count: number of this push, from 1.
        at: time of the push, by that device's clock. Untrusted.
        deleted: the session was trashed; the parts describe its last state.
        history: earlier generations, the newest last, at most `HISTORY`.
        owners: for each ledger, the device that writes it.
        active: time of the last activity, by the clock of the device that pushed; empty if unknown.
        held: the files of which a device holds a damaged version back, by name.
        accepted: for each file that a user has sent although it is damaged, its chain at that time.
        counts: for each device, by the first `SHORT` characters of its name, the number of its last head among the
            ancestors of this one.
    """

    v: int
    kind: str
    project: str | None
    session: str
    space: str
    gen: int
    count: int
    device: str
    at: str
    parent: str | None = None
    deleted: bool = False
    parts: tuple[PartHead, ...] = ()
    history: tuple[Past, ...] = ()
    owners: dict[str, str] = {}
    active: str = ""
    held: dict[str, Mark] = {}
    accepted: dict[str, str] = {}
    counts: dict[str, int] = {}

    def chains(self) -> dict[str, str]:
        """Return the chain of each file, by name."""
        return {part.name: part.chain for part in self.parts}

    def part(self, name: str) -> PartHead | None:
        """Return the entry of a file; None without one."""
        return next((part for part in self.parts if part.name == name), None)


class _Version(Struct):
    v: int


class Place(Struct):
    """The identity of the session of a head; readable for every kind of session."""

    v: int
    kind: str
    project: str | None
    session: str


_decode_head = msgspec.json.Decoder(Head).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_place = msgspec.json.Decoder(Place).decode


def head_name(kind: str, project: str | None, session: str) -> str:
    """Return the name of a session's head: letters and digits, whatever the id is."""
    place = "\0".join((kind, "" if project is None else "/" + project, session))
    return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def follows(head: Head, other: Head) -> bool:
    """True if all ancestors of the other head are ancestors of this one: it is the same head, or a later one.

    A device uses each number once, so this holds even if a remote was restored to an earlier state and two devices
    continued from different states. For heads without numbers only `count` decides.
    """
    if not head.counts or not other.counts:
        return head.count >= other.count
    return all(head.counts.get(device, 0) >= count for device, count in other.counts.items())


def is_older(head: Head, known: Head) -> bool:
    """True if a head is an ancestor of the known one."""
    if not follows(known, head):
        return False
    return not follows(head, known) or head.count < known.count


def encode(head: Head) -> bytes:
    """Encode a head as JSON."""
    return msgspec.json.encode(head)


def decode(name: str, data: bytes) -> Head:
    """Decode a head.

    Raises:
        Unsupported: a newer version wrote it.
        Corrupt: this is not a head, or that of another session.
    """
    try:
        version = _decode_version(data).v
        if version > FORMAT:
            raise Unsupported(
                f"head {name} is of format {version}; this version reads up to {FORMAT}",
                hint="update sessionary on this machine; until then this session is skipped",
            )
        head = _decode_head(data)
    except msgspec.MsgspecError as error:
        raise _damaged(name, _session(name, data), str(error)) from None
    if head_name(head.kind, head.project, head.session) != name:
        raise _damaged(name, None, "it belongs to another session")
    for what in _impossible(head):
        raise _damaged(name, head.session, what)
    return head


def place_of(data: bytes) -> Place | None:
    """Return the identity in a head; None if it cannot be read, or has a newer format."""
    try:
        place = _decode_place(data)
    except msgspec.MsgspecError:
        return None
    return place if place.v <= FORMAT else None


def _damaged(name: str, session: str | None, what: str) -> Corrupt:
    whose = f" (session {session!r})" if session is not None else ""
    return Corrupt(
        f"head {name} on the remote{whose} is damaged: {what}", operation="pull", session=session, hint=ANEW
    )


def _session(name: str, data: bytes) -> str | None:
    """Return the session id in an unreadable head; None if that cannot be read either."""
    place = place_of(data)
    if place is None:
        return None
    return place.session if head_name(place.kind, place.project, place.session) == name else None


def _impossible(head: Head) -> Iterator[str]:
    """Yield what no client of this format writes: the operator of a store can write anything."""
    numbers = (head.gen, head.count, *(past.gen for past in head.history), *head.counts.values())
    if head.v < 1 or not all(0 <= number <= LARGEST_NUMBER for number in numbers):
        yield "a number is out of its range"
    if not _NAME.fullmatch(head.space):
        yield "its space is not a head name"
    for part in head.parts:
        yield from _impossible_part(part)
    for n, chain in (tip for past in head.history for tip in past.tips.values()):
        if not 0 <= n <= MOST_BLOCKS or not _HASH.fullmatch(chain):
            yield "its history refers to an invalid block"
    if len({part.name for part in head.parts}) < len(head.parts):
        yield "it names a file twice"
    if sum(part.size for part in head.parts if part.data is not None) > LARGEST_INLINE:
        yield "it contains too much data"


def _impossible_part(part: PartHead) -> Iterator[str]:
    """As `_impossible`, for one file: above all a size that its blocks cannot have."""
    if not _HASH.fullmatch(part.chain):
        yield f"the chain of {part.name!r} is not a hash"
    if part.data is None:
        if not 0 <= part.n <= MOST_BLOCKS or not part.n <= part.size <= part.n * BLOCK:
            yield f"{part.name!r} cannot have {part.size} bytes in {part.n} blocks"
    elif part.n or not 0 <= part.size <= LARGEST_DOCUMENT or part.kind != PartKind.DOCUMENT.value:
        yield f"{part.name!r} ({part.kind}, {part.size} bytes in {part.n} blocks) is not possible"


def kind_of(part: PartHead) -> PartKind:
    """Return the kind in a head; unknown kinds are left alone, as logs are."""
    try:
        return PartKind(part.kind)
    except ValueError:
        return PartKind.KEPT
