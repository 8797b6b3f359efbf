"""Whether one version of a part is a damaged copy of another. Pure, but for what it reads.

The layout says what is wrong with the bytes of a part, by the rules of `check`. Damage counts only if it is new: the
older version does not have it. A journal that still has every line of the older version has merely grown, whatever is
wrong with its new lines. A version without bytes is damage wherever the older one has some: our stores write one
byte for an empty conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import SyncLayout
from sessionary.model import Problem, Severity
from sessionary.sync.bundles import Item

WINDOW = 8 << 20
"""So many bytes of a journal are looked at together, and then as many more as a line takes to its end."""

Fault = tuple[str, bytes]
"""The code of a problem and, in a journal, a hash of the bytes concerned: the same damage in another place is known."""


class Version(NamedTuple):
    """One version of a part.

    Attributes:
        size: all of its bytes.
        read: its bytes from the place on up to which both versions are known to be alike, where a line begins.
    """

    size: int
    read: Callable[[], Iterator[bytes]]


def of_bytes(data: bytes) -> Version:
    """A version that is in memory."""
    return Version(len(data), lambda: iter((data,)))


def why_spoilt(
    layout: SyncLayout, name: str, kind: PartKind, before: Callable[[], Version], after: Version
) -> str | None:
    """Why `after` is a damaged copy of `before`, in a sentence; None if it is not.

    Args:
        layout: says what is wrong with either.
        name: the part.
        kind: how it changes.
        before: gives the version that both sides had. Not called if nothing is wrong with `after`.
        after: the version in question.

    Raises:
        RemoteError, Corrupt, StorageFailed: a version cannot be read.
    """
    found = _faults(layout, name, kind, after) if after.size else {}
    if after.size and not found:
        return None
    old = before()
    if not after.size:
        return f"it has no bytes any more, where it had {old.size:,}" if old.size else None
    known = _faults(layout, name, kind, old)
    new = [found[fault][-1] for fault in found if len(found[fault]) > len(known.get(fault, ()))]
    if not new or (kind is PartKind.DOCUMENT and _worst(found) < _worst(known)):
        return None
    if kind is not PartKind.DOCUMENT and not _loses_lines(old, after):
        return None
    return max(new, key=lambda problem: problem.severity).message


def spoilt_items(layout: SyncLayout, before: Iterable[Item], after: Iterable[Item]) -> dict[Item, str]:
    """The files in `after` that are damaged copies of files in `before`, and why.

    Such files are made once. So one whose old version is there too is no copy of it, but another file.
    """
    old: dict[str, list[Item]] = {}
    for one in before:
        old.setdefault(one.name, []).append(one)
    there = set(after)
    found = {}
    for one in sorted(there):
        known = old.get(one.name, [])
        if not known or not there.isdisjoint(known):
            continue

        def base(known: list[Item] = known) -> Version:
            return of_bytes(known[0].data)

        why = why_spoilt(layout, one.name, PartKind.DOCUMENT, base, of_bytes(one.data))
        if why is not None:
            found[one] = why
    return found


def _faults(layout: SyncLayout, name: str, kind: PartKind, version: Version) -> dict[Fault, list[Problem]]:
    found: dict[Fault, list[Problem]] = {}
    for data in _windows(version.read(), kind):
        for problem in layout.faults(name, data):
            if _is_damage(problem):
                concerned = b""
                if kind is not PartKind.DOCUMENT and problem.byte is not None:
                    concerned = _digest(data[problem.byte : problem.byte + problem.span])
                found.setdefault((problem.code, concerned), []).append(problem)
    return found


def _is_damage(problem: Problem) -> bool:
    """Whether it may hide or have cost something. A journal that lost lines and ends within one was cut off there."""
    return problem.severity > Severity.cosmetic or problem.code == "missing_newline"


def _worst(found: dict[Fault, list[Problem]]) -> int:
    return max((problem.severity for problems in found.values() for problem in problems), default=0)


def _loses_lines(before: Version, after: Version) -> bool:
    kept = Counter(_digest(line) for line in _lines(after))
    for line in _lines(before):
        digest = _digest(line)
        if not kept[digest]:
            return True
        kept[digest] -= 1
    return False


def _lines(version: Version) -> Iterator[bytes]:
    """The whole lines of a version: what stands behind the last newline is never carried."""
    for data in _windows(version.read(), PartKind.JOURNAL):
        yield from data.split(b"\n")[:-1]


def _windows(chunks: Iterable[bytes], kind: PartKind) -> Iterator[bytes]:
    """The bytes in pieces that end at a line; those of a document as one."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if kind is PartKind.DOCUMENT or size < WINDOW or b"\n" not in chunk:
            continue
        whole, newline, rest = b"".join(held).rpartition(b"\n")
        yield whole + newline
        held, size = [rest], len(rest)
    if rest := b"".join(held):
        yield rest


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
