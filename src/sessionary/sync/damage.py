"""Detection of versions that are damaged copies of other versions. Pure, except for reading their bytes.

The layout reports the problems of a part, by the rules of `check`. Damage counts only if it is new: the older version
does not have it. A journal that still has every line of the older version has grown, whatever is wrong with its new
lines. An empty version is damage if the older one has bytes: our stores write one byte for an empty conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import SyncLayout
from sessionary.model import Problem, Severity
from sessionary.sync.bundles import Item

WINDOW = 8 << 20
"""Bytes of a journal that are checked together; the window is extended to the end of its last line."""

Fault = tuple[str, bytes]
"""The code of a problem and, in a journal, a hash of its bytes: the same damage at another place is recognised."""


class Version(NamedTuple):
    """A version of a part.

    Attributes:
        size: its size in bytes.
        read: yields its bytes from a line start on, up to which both versions are known to be equal.
    """

    size: int
    read: Callable[[], Iterator[bytes]]


def of_bytes(data: bytes) -> Version:
    """Return a version that is in memory."""
    return Version(len(data), lambda: iter((data,)))


def damage_of(
    layout: SyncLayout, name: str, kind: PartKind, before: Callable[[], Version], after: Version
) -> str | None:
    """Return in a sentence why `after` is a damaged copy of `before`; None if it is not.

    Args:
        layout: reports the problems of each.
        before: returns the version that both sides had. Not called if `after` has no problems.

    Raises:
        RemoteError, Corrupt, StorageFailed: a version cannot be read.
    """
    found = _faults(layout, name, kind, after) if after.size else {}
    if after.size and not found:
        return None
    old = before()
    if not after.size:
        return f"it is empty; it had {old.size:,} bytes" if old.size else None
    known = _faults(layout, name, kind, old)
    new = [found[fault][-1] for fault in found if len(found[fault]) > len(known.get(fault, ()))]
    if not new or (kind is PartKind.DOCUMENT and _worst(found) < _worst(known)):
        return None
    if kind is not PartKind.DOCUMENT and not _loses_lines(old, after):
        return None
    return max(new, key=lambda problem: problem.severity).message


def damaged_items(layout: SyncLayout, before: Iterable[Item], after: Iterable[Item]) -> dict[Item, str]:
    """Return the files in `after` that are damaged copies of files in `before`, with the reason.

    Such files are immutable: one whose old version is also present is not a copy but another file.
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

        why = damage_of(layout, one.name, PartKind.DOCUMENT, base, of_bytes(one.data))
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
    """True if a problem may hide or lose data; a journal that lost lines and ends within one was truncated."""
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
    """Yield the whole lines of a version: bytes behind the last newline are never sent."""
    for data in _windows(version.read(), PartKind.JOURNAL):
        yield from data.split(b"\n")[:-1]


def _windows(chunks: Iterable[bytes], kind: PartKind) -> Iterator[bytes]:
    """Yield the bytes in pieces that end at a line; a document as one piece."""
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
