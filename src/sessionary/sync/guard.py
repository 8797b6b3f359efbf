"""Versions that are not synchronised because they are damaged; see `damage` for the definition.

The local version is compared with the agreed one, and the remote version with the local one. Nothing is fetched
unless a problem is found. Journals that only grew are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sessionary.disk.fs import stat_or_none
from sessionary.disk.line_reader import LineFile
from sessionary.errors import RemoteError
from sessionary.layouts.files import PartKind
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.layouts.sync import Policy
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.blocks import START, Piece, chunks, follow
from sessionary.sync.bundles import Item
from sessionary.sync.context import Step
from sessionary.sync.damage import Version, damage_of, damaged_items
from sessionary.sync.diff import Comparison, Verdict, common_bytes, fetch_part
from sessionary.sync.download import MISSING, Theirs, fetch
from sessionary.sync.heads import Head, PartHead, decode, kind_of
from sessionary.sync.local_files import LocalPart, Matched, Stamp, match, matched_all, opened
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import Hold, holds_of
from sessionary.sync.state import Held, SyncedState

MINE, THEIRS = "mine", "theirs"
_NO_STAMP: Stamp = (0, 0, 0, 0)
_UNKNOWN = "it is damaged, and the remote version cannot be read for comparison"


class Sendable(NamedTuple):
    """Sendable files of a session.

    Attributes:
        matched: how each compares with the agreed version.
        accepted: files of a bundle that are sent although they are damaged, with the chain of their bytes.
    """

    mine: dict[str, LocalPart]
    matched: dict[str, Matched]
    held: dict[str, Held]
    accepted: dict[str, str]


@dataclass(slots=True)
class Judged:
    """Files of a session that are not synchronised.

    Attributes:
        held: local files whose version is damaged.
        refused: files whose remote version is damaged.
        decided: files of either kind about which the user has decided.
        waits: such a file has changed on the remote: until it is settled, the two sides cannot agree.
    """

    held: dict[str, Held] = field(default_factory=dict)
    refused: dict[str, Held] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    waits: bool = False


class Guard(Step):
    """Finds the damaged versions of single sessions."""

    def sendable(
        self,
        ref: SessionRef,
        mine: Mapping[str, LocalPart],
        agreed: SyncedState,
        matched: Mapping[str, Matched],
        allowed: Collection[str] = (),
    ) -> Sendable:
        """Return the files of a session that may be sent, and those that are held back.

        In a bundle, damaged files are replaced by the agreed ones.

        Args:
            matched: how each file compares with the agreed version.
            allowed: files that are sent regardless of damage.

        Raises:
            RemoteError, Corrupt, StorageFailed: a version cannot be read.
        """
        sent, known = dict(mine), dict(matched)
        held: dict[str, Held] = {}
        accepted: dict[str, str] = {}
        for part in agreed.head.parts:
            here = mine.get(part.name)
            if here is None or _has_grown(here, agreed.pieces.get(part.name), matched[part.name]):
                continue
            if here.kind is PartKind.BUNDLE:
                damaged, before = self._damaged_items(here, part, agreed, matched[part.name])
                kept = {one: why for one, why in damaged.items() if one.name not in allowed}
                accepted |= {one.name: item_chain(one) for one in damaged.keys() - kept.keys()}
                if kept:
                    sent[part.name] = self._whole_bundle(ref, here, kept, before)
                    pieces = agreed.pieces.get(part.name)
                    known[part.name] = match(self._fs, sent[part.name], pieces, None)
                    held |= {one.name: Held(item_chain(one), why) for one, why in kept.items()}
            elif part.name not in allowed and not self._rules.exact:
                one = self._mine(here, part, agreed, matched[part.name])
                if one is not None:
                    held[part.name] = one
                    del sent[part.name]
        return Sendable(sent, known, held, accepted)

    def judge(
        self,
        mine: Mapping[str, LocalPart],
        agreed: SyncedState | None,
        head: Head,
        found: Comparison,
        keep: str | None = None,
    ) -> Judged:
        """Find damaged versions in a comparison, and change their verdicts so that such files stay unchanged.

        Bundles are excluded: their files are checked one by one when they are unpacked.

        Args:
            keep: the version that the user has chosen, where one is damaged: `MINE` or `THEIRS`.

        Raises:
            RemoteError, Corrupt, StorageFailed: a version cannot be read.
        """
        result = Judged()
        parts = {part.name: part for part in head.parts}
        for name, verdict in found.verdicts.items():
            here, part = mine.get(name), parts.get(name)
            if here is None or part is None or here.kind is PartKind.BUNDLE or verdict is Verdict.SAME:
                continue
            moved = name in found.theirs
            one = self._here(here, part, agreed, found)
            if one is not None and one.is_behind and keep != MINE:
                if not moved:
                    self._decide(found, agreed, head, part, THEIRS)
                continue
            other = None
            if one is None and moved and verdict is not Verdict.OURS:
                other = self._theirs(here, found, agreed, head)
            if one is None and other is None:
                continue
            if keep is not None:
                self._decide(found, agreed, head, part, keep)
                result.decided.add(name)
                continue
            found.verdicts[name] = Verdict.HELD
            result.held |= {name: one} if one is not None else {}
            result.refused |= {name: other} if other is not None else {}
            result.waits = result.waits or moved
        if result.waits:
            self._leave_doubtful(found)
        if keep == THEIRS and bundles.NAME in parts and found.verdicts[bundles.NAME] is Verdict.OURS:
            fetch_part(self._remote, found, agreed, head, parts[bundles.NAME])
            found.verdicts[bundles.NAME] = Verdict.MERGE
        return result

    # -- without synchronising: changes nothing, here or on the remote

    def find(
        self, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord | None
    ) -> tuple[Hold, ...]:
        """Return the versions of a session's files that are not synchronised because they are damaged.

        Raises:
            RemoteError, Corrupt, Unsupported, StorageFailed: this cannot be determined.
        """
        head = None if agreed is None else agreed.head
        if record is not None and (agreed is None or agreed.etag != record.etag):
            head = decode(record.name, record.data)
        if head is None or head.deleted:
            return ()
        held: dict[str, Held] = {}
        refused: dict[str, Held] = {}
        if agreed is not None and stat_or_none(self._fs, ref.locator) is not None:
            mine = self._surveyor.survey(ref)
            held = self.sendable(
                ref, mine, agreed, matched_all(self._fs, mine, agreed.pieces, agreed.seen)
            ).held
            there = head.chains()
            refused = {name: one for name, one in agreed.refused.items() if there.get(name) == one.chain}
        return holds_of(self._layout, ref, head, self._states.known_device(), held, refused)

    def lacks_bytes(self, ref: SessionRef, agreed: SyncedState) -> bool:
        """True if a local file is smaller than agreed, by its stat only: most damage shows in that."""
        if agreed.head.deleted:
            return False
        for part in agreed.head.parts:
            if part.redacted or part.name == bundles.NAME or not self._rules.carries(kind_of(part)):
                continue
            found = stat_or_none(self._fs, self._layout.path_of(ref, part.name))
            if found is not None and found.st_size < part.size:
                return True
        return False

    # -- the file here

    def _here(
        self, here: LocalPart, part: PartHead, agreed: SyncedState | None, found: Comparison
    ) -> Held | None:
        """As `_mine`; without an agreed version, compare with the remote one."""
        matched, theirs = found.matched[here.name], found.theirs.get(here.name)
        before = agreed.head.part(here.name) if agreed else None
        if agreed is not None and before is not None:
            known = agreed.pieces.get(here.name)
            return None if _has_grown(here, known, matched) else self._mine(here, before, agreed, matched)
        if theirs is None:
            return None

        def base() -> Version:
            return self._version(theirs, here, 0)

        why = damage_of(self._layout, here.name, here.kind, base, self._present(here, 0))
        return None if why is None else Held(part.chain, why)

    def _mine(self, here: LocalPart, part: PartHead, agreed: SyncedState, matched: Matched) -> Held | None:
        """Return why the local version is not sent; None if it may be. `part` is the agreed version."""
        known = agreed.held.get(here.name)
        if known is not None and (known.chain, known.stamp) == (part.chain, here.stamp):
            return known
        pieces = agreed.pieces.get(here.name, [])
        stamp = here.stamp if here.touched < self._now().timestamp() - MTIME_GRACE else _NO_STAMP
        start = self._start(here, pieces[: matched.pieces])
        with self._states.spool() as spool:

            def old() -> Theirs:
                return fetch(self._remote, agreed.head.space, part, pieces, matched.pieces, spool)

            try:
                why = damage_of(
                    self._layout,
                    here.name,
                    here.kind,
                    lambda: self._version(old(), here, start),
                    self._present(here, start),
                )
                if why is not None:
                    return Held(part.chain, why, stamp)
                if known is not None and known.chain == part.chain and self._is_beginning(here, old):
                    return Held(part.chain, known.why, stamp, is_behind=True)
            except RemoteError as error:
                if MISSING not in error.details:
                    raise
                return Held(part.chain, _UNKNOWN)
        return None

    def _is_beginning(self, here: LocalPart, old: Callable[[], Theirs]) -> bool:
        """True if a journal is a prefix of the agreed one: it was restored from an older copy."""
        if here.kind is PartKind.DOCUMENT or here.torn:
            return False
        with opened(self._fs, here) as file:
            assert file is not None
            return common_bytes(file, here.size, old()) == here.size

    # -- the file there

    def _theirs(
        self, here: LocalPart, found: Comparison, agreed: SyncedState | None, head: Head
    ) -> Held | None:
        """Return why the remote version is not taken; None if it may be."""
        theirs, matched = found.theirs[here.name], found.matched[here.name]
        pieces = (agreed.pieces.get(here.name) if agreed else None) or []
        chain = theirs.part.chain
        if head.accepted.get(here.name) in {chain, *(piece.chain for piece in theirs.pieces)}:
            return None
        is_journal = here.kind is not PartKind.DOCUMENT
        if is_journal and pieces and theirs.pieces[: len(pieces)] == pieces:
            return None
        known = agreed.refused.get(here.name) if agreed else None
        if known is not None and known.chain == chain:
            return known
        alike = [one for one, other in zip(pieces, theirs.pieces, strict=False) if one == other]
        start = self._start(here, alike[: matched.pieces])
        whole = is_journal and pieces and matched.pieces == len(pieces)
        end = pieces[-1].end if whole else here.size

        def base() -> Version:
            return Version(end, lambda: self._bytes(here, start, end))

        after = self._version(theirs, here, start)
        why = damage_of(self._layout, here.name, here.kind, base, after)
        return None if why is None else Held(chain, why)

    def _decide(
        self, found: Comparison, agreed: SyncedState | None, head: Head, part: PartHead, keep: str
    ) -> None:
        found.verdicts[part.name] = Verdict.OURS if keep == MINE else Verdict.THEIRS
        if keep != MINE:
            fetch_part(self._remote, found, agreed, head, part)

    def _leave_doubtful(self, found: Comparison) -> None:
        """Hold both versions of a document until the sides agree: otherwise each pull would keep another copy."""
        for name, verdict in found.verdicts.items():
            if verdict is Verdict.CONFLICT and self._layout.rule(name).policy is Policy.KEEP_BOTH:
                found.verdicts[name] = Verdict.HELD

    # -- files that are made once

    def _damaged_items(
        self, here: LocalPart, part: PartHead, agreed: SyncedState, matched: Matched
    ) -> tuple[dict[Item, str], set[Item]]:
        """Return the damaged files in a bundle, and all files of the agreed one if there are any."""
        items = set(bundles.unpack_items(self._bytes(here, 0, here.size)))
        if not any(not one.data or self._layout.faults(one.name, one.data) for one in items):
            return {}, set()
        pieces = agreed.pieces.get(part.name, [])
        with self._states.spool() as spool:
            old = fetch(self._remote, agreed.head.space, part, pieces, matched.pieces, spool)
            with opened(self._fs, here) as file:
                before = set(bundles.unpack_items(old.all(file)))
        return damaged_items(self._layout, before, items), before

    def _whole_bundle(
        self, ref: SessionRef, here: LocalPart, damaged: Collection[Item], before: Collection[Item]
    ) -> LocalPart:
        """Return the bundle with damaged files replaced by the agreed ones."""
        names = {one.name for one in damaged}
        items = set(bundles.unpack_items(self._bytes(here, 0, here.size))).difference(damaged)
        lines = list(bundles.pack_items(items | {one for one in before if one.name in names}))
        state = b"".join(lines)
        path = self._surveyor.derived(ref.locator, f"{bundles.NAME} held", state, lambda: iter(lines))
        # A stamp of its own: with that of the files, this bundle would be taken for the one that was sent.
        return here._replace(path=path, size=len(state), stamp=(0, len(state), *here.stamp[2:]))

    # -- reading

    def _start(self, here: LocalPart, pieces: Sequence[Piece]) -> int:
        """Return the last line start within these pieces of a journal; 0 for a document."""
        if here.kind is PartKind.DOCUMENT or not pieces:
            return 0
        with LineFile(here.path, self._fs) as file:
            ends = (piece.end for piece in reversed(pieces))
            return next((end for end in ends if file.read(end - 1, 1) == b"\n"), 0)

    def _present(self, here: LocalPart, start: int) -> Version:
        """Return the local version, including the bytes behind its last line."""
        return Version(here.stamp[1], lambda: self._bytes(here, start, here.size, with_torn=True))

    def _version(self, theirs: Theirs, here: LocalPart, start: int) -> Version:
        def read() -> Iterator[bytes]:
            passed = 0
            with opened(self._fs, here) as file:
                for chunk in theirs.all(file):
                    yield chunk[max(0, start - passed) :]
                    passed += len(chunk)

        return Version(theirs.part.size, read)

    def _bytes(self, here: LocalPart, start: int, end: int, *, with_torn: bool = False) -> Iterator[bytes]:
        with LineFile(here.path, self._fs) as file:
            yield from chunks(file, start, end)
        if with_torn and here.torn:
            with LineFile(here.origin or here.path, self._fs) as file:
                yield file.read(here.stamp[1] - here.torn, here.torn)


def may_be_held_back(agreed: SyncedState | None) -> bool:
    """True if a version of the session was held back at the last synchronisation."""
    return agreed is not None and bool(agreed.held or agreed.refused or agreed.head.held)


def item_chain(one: Item) -> str:
    """Return the identity of a bundle file's bytes: the chain of a single block with them."""
    return follow(START, one.data)


def _has_grown(here: LocalPart, pieces: Sequence[Piece] | None, matched: Matched) -> bool:
    """True if the file still starts with everything agreed, or if nothing was agreed."""
    if pieces is None or matched.same:
        return True
    return here.kind is not PartKind.DOCUMENT and matched.pieces == len(pieces)
