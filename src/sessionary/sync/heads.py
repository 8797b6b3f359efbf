"""Heads: the one thing of a session on the other side that changes, and so the one point where a push commits.

A head says of every file of a session how long it is and which chain of blocks holds it, as a reference of git names a
commit. Small documents lie in the head itself: most pushes are then one block and one head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Struct

from sessionary.errors import Corrupt, Unsupported
from sessionary.layouts.base import PartKind
from sessionary.sync.blocks import ANEW, BLOCK, FORMAT

INLINE = 4 << 10
"""A document of at most so many bytes, compressed, lies in the head."""

INLINE_ALL = 64 << 10
"""All that lies in a head has at most so many bytes; further documents lie in blocks, as large ones do."""

LARGEST_INLINE = 64 << 20
"""A head whose documents are larger than this in all is refused: it was made to fill a memory."""

LARGEST_DOCUMENT = 1 << 20
"""One document in a head has at most so many bytes: all of it is one block, however small it is compressed."""

LARGEST_NUMBER = 1 << 53
"""Beyond it not every language has whole numbers."""

MOST_BLOCKS = 99_999_999
"""A file has at most so many blocks: their numbers have eight digits."""

HISTORY = 8

LINES = {PartKind.JOURNAL.value, PartKind.LOG.value}
"""Kinds that only grow, unless they are rewound; a bundle is put in order anew without anything being taken back."""

SHORT = 8
"""So many characters of a device's name stand for it in `Head.counts`."""

_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[0-9a-f]{40}")


class PartHead(Struct, frozen=True, omit_defaults=True):
    """One file in a head.

    Attributes:
        name: its name relative to the session's folder, parted by slashes.
        kind: ``document``, ``journal``, ``log`` or ``bundle``.
        size: its bytes; of a journal, those of its whole lines.
        n: how many blocks hold it.
        chain: the chain up to and with the last of them, or up to and with all of it if it lies here.
        data: all of it, compressed with zstd alone; absent if it lies in blocks.
        redacted: something in it was blacked out, now or in an earlier version.
    """

    name: str
    kind: str
    size: int
    n: int
    chain: str
    data: bytes | None = None
    redacted: bool = False


class Past(Struct, frozen=True):
    """What a rewind left behind: the tips of the journals before it."""

    gen: int
    at: str
    tips: dict[str, tuple[int, str]]


class Mark(Struct, frozen=True):
    """A device has another version of a file, which it does not send because that is damaged.

    Attributes:
        device: which one.
        why: what is wrong with it, in a sentence.
    """

    device: str
    why: str


class Head(Struct, frozen=True, omit_defaults=True):
    """The state of one session.

    Attributes:
        v: the format; who does not know it reads nothing and writes nothing.
        kind: the name of the layout.
        project: which project, as all machines call it; None for a session without one.
        session: its id.
        space: where its blocks lie: the head name of the session that the oldest of its family began with.
        gen: how often what was there before was rewound or changed, and not only added to.
        count: which push this is, from 1.
        device: who pushed.
        at: when, by that device's clock, which may be wrong: nothing may rest on it alone.
        parent: the id of the session that it comes from.
        deleted: it was trashed; the parts say what it was then.
        parts: its files.
        history: earlier generations, the newest last, `HISTORY` at most.
        owners: of each ledger, the one device that writes it.
        active: when the session was last worked on, by the clock of the device that pushed; empty if it is not known.
        held: the files of which a device holds a damaged version back, by their names.
        accepted: of each file that a user has sent although it is damaged, the chain that it had then.
        counts: of each device, by the first `SHORT` characters of its name, the number of its last head among all that
            led to this one.
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


class _Version(Struct):
    v: int


class Place(Struct):
    """Of which session a head speaks; that much can be read of every kind of session."""

    v: int
    kind: str
    project: str | None
    session: str


_decode_head = msgspec.json.Decoder(Head).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_place = msgspec.json.Decoder(Place).decode


def head_name(kind: str, project: str | None, session: str) -> str:
    """The name of a session's head: of any id, in any language, letters and digits."""
    place = "\0".join((kind, "" if project is None else "/" + project, session))
    return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def follows(head: Head, other: Head) -> bool:
    """True if everything that led to the other head led to this one, too: it is the other, or a later one.

    A number of a device is given once, so it is known even if a remote was put back to an earlier state meanwhile, and
    two devices have gone on from different states. Of heads without numbers only `count` can tell.
    """
    if not head.counts or not other.counts:
        return head.count >= other.count
    return all(head.counts.get(device, 0) >= count for device, count in other.counts.items())


def is_older(head: Head, known: Head) -> bool:
    """True if a head is one of those that led to the known one: a state that was."""
    if not follows(known, head):
        return False
    return not follows(head, known) or head.count < known.count


def encode(head: Head) -> bytes:
    """The head as JSON."""
    return msgspec.json.encode(head)


def decode(name: str, data: bytes) -> Head:
    """The head of these bytes.

    Raises:
        Unsupported: a newer version has written it.
        Corrupt: this is no head, or that of another session.
    """
    try:
        version = _decode_version(data).v
        if version > FORMAT:
            raise Unsupported(
                f"head {name} is of format {version}; this version reads up to {FORMAT}",
                hint="update sessionary on this machine; until then this session is left alone",
            )
        head = _decode_head(data)
    except msgspec.MsgspecError as error:
        raise _damaged(name, _session(name, data), str(error)) from None
    if head_name(head.kind, head.project, head.session) != name:
        raise _damaged(name, None, "it speaks of another session")
    for what in _impossible(head):
        raise _damaged(name, head.session, what)
    return head


def place_of(data: bytes) -> Place | None:
    """Of which session a head speaks; None if it cannot be read, or a newer format has to be known for it."""
    try:
        place = _decode_place(data)
    except msgspec.MsgspecError:
        return None
    return place if place.v <= FORMAT else None


def _damaged(name: str, session: str | None, what: str) -> Corrupt:
    whose = f" (session {session!r})" if session is not None else ""
    return Corrupt(
        f"head {name} of the other side{whose} is damaged: {what}",
        operation="pull",
        session=session,
        hint=ANEW,
    )


def _session(name: str, data: bytes) -> str | None:
    """Of which session a head speaks that cannot be read otherwise; None if not even that can be read of it."""
    place = place_of(data)
    if place is None:
        return None
    return place.session if head_name(place.kind, place.project, place.session) == name else None


def _impossible(head: Head) -> Iterator[str]:
    """What no client of this format writes. Whoever holds the other side can write anything."""
    numbers = (head.gen, head.count, *(past.gen for past in head.history), *head.counts.values())
    if head.v < 1 or not all(0 <= number <= LARGEST_NUMBER for number in numbers):
        yield "a number is out of its range"
    if not _NAME.fullmatch(head.space):
        yield "its space is no name of a head"
    for part in head.parts:
        yield from _impossible_part(part)
    for n, chain in (tip for past in head.history for tip in past.tips.values()):
        if not 0 <= n <= MOST_BLOCKS or not _HASH.fullmatch(chain):
            yield "its history leads to what can be no block"
    if len({part.name for part in head.parts}) < len(head.parts):
        yield "it names a file twice"
    if sum(part.size for part in head.parts if part.data is not None) > LARGEST_INLINE:
        yield "too much lies in it"


def _impossible_part(part: PartHead) -> Iterator[str]:
    """As `_impossible`, of one file: above all a size that its blocks cannot have, whatever they are."""
    if not _HASH.fullmatch(part.chain):
        yield f"the chain of {part.name!r} is no hash"
    if part.data is None:
        if not 0 <= part.n <= MOST_BLOCKS or not part.n <= part.size <= part.n * BLOCK:
            yield f"{part.name!r} cannot have {part.size} bytes in {part.n} blocks"
    elif part.n or not 0 <= part.size <= LARGEST_DOCUMENT or part.kind != PartKind.DOCUMENT.value:
        yield f"{part.name!r} ({part.kind}, {part.size} bytes in {part.n} blocks) cannot lie in it"


def kind_of(part: PartHead) -> PartKind:
    """The kind that a head gives; what an unknown word means is left alone as a log is."""
    try:
        return PartKind(part.kind)
    except ValueError:
        return PartKind.KEPT
