"""Merge the conflict copies that a file synchroniser has left in the folder of a session.

A copy is another version of a file, without a known common version. It is merged by the rule that a pull has for that
file (`layouts.sync.Policy`):

- a copy whose content the file contains is moved away;
- a copy that begins with the whole file replaces it;
- of a journal whose lines can be merged (`UNION`, `LEDGER`), the lines of both are kept; of a document that is merged
  by field (`FIELDS`), the fields of both;
- a conversation that diverged (`FORK`) becomes a session of its own, with the other files of that copy;
- of any other file both versions stay where they are, for the user to compare.

Nothing is deleted: the previous content of a file, and each merged copy, stays beside it as
`<name>.before-<time>`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, read_bytes, stat_or_none, storage_errors, sync_dir
from sessionary.disk.journal import lines_of
from sessionary.disk.truncate import common_prefix
from sessionary.errors import AlreadyExists
from sessionary.layouts import conflict_copies
from sessionary.layouts.conflict_copies import Compared, Copy
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.merging import Side, merge
from sessionary.sync.state import sibling_id

_MINE, _COPY = "", "copy"
_BUILDING = ".copy-"

CONTAINED, TAKEN, MERGED, SESSION, LEFT = "contained", "taken", "merged", "session", "left"


class BroughtIn(NamedTuple):
    """What was done with one conflict copy.

    Attributes:
        original: the name of the file that it is a version of.
        done: ``contained`` (moved away: the file contains it), ``taken`` (it is the file now), ``merged``, ``session``
            (a session of its own), or ``left`` (it stays where it is).
        kept: its path now; the old one with ``left`` or in a dry run.
        session: the id of the session that it became; None unless `done` is ``session``.
    """

    path: str
    original: str
    done: str
    more: int
    kept: str
    session: str | None = None


def find(layout: SyncLayout, ref: SessionRef, fs: Fs = OS_FS) -> list[Copy]:
    """The conflict copies of the files of a session, in the order of their names."""
    folder = _folder(layout, ref)
    with storage_errors("look into", folder, session=ref.session_id):
        names = fs.listdir(folder)
    if layout.single_file(ref.session_id) is not None:
        return conflict_copies.copies_in(names, {os.path.basename(ref.locator)}, devices=False)
    files = {found.original for name in names if (found := conflict_copies.copy_of(name)) is not None}
    files.update(name for name in names if conflict_copies.copy_of(name) is None)
    return conflict_copies.copies_in(names, {name for name in files if _is_file_of(layout, name)})


def bring_in(
    layout: SyncLayout, ref: SessionRef, *, dry_run: bool = False, fs: Fs = OS_FS, now: datetime | None = None
) -> list[BroughtIn]:
    """Bring in every conflict copy of a session.

    Args:
        dry_run: return what would be done, and write nothing.

    Durability: each file is the old one or the new one, whole, and a copy is moved away only after its content is
    durable. If interrupted, the next call does the rest.
    """
    found = find(layout, ref, fs)
    if not found:
        return []
    work = _BringIn(layout, ref, found, fs, now or datetime.now(UTC), dry_run)
    if dry_run:
        return list(work.done())
    with layout.lock(ref):
        return list(work.done())


class _BringIn:
    """Resolver for the conflict copies of one session."""

    def __init__(
        self, layout: SyncLayout, ref: SessionRef, found: list[Copy], fs: Fs, now: datetime, dry_run: bool
    ) -> None:
        self._layout = layout
        self._ref = ref
        self._found = found
        self._fs = fs
        self._now = now
        self._dry_run = dry_run
        self._folder = _folder(layout, ref)
        self._leads: set[str] = set()
        self._parted: dict[str, str] = {}

    def done(self) -> Iterator[BroughtIn]:
        """Bring in all copies; conversations first, since they decide about the files beside them."""
        for copy in sorted(self._found, key=lambda one: (not self._is_conversation(one), one.name)):
            yield self._one(copy)

    def _one(self, copy: Copy) -> BroughtIn:
        path = f"{self._folder}/{copy.name}"
        mine = f"{self._folder}/{copy.original}"
        with storage_errors("read", path, session=self._ref.session_id):
            compared = conflict_copies.compare(self._fs, mine, path)
        done, session = self._decide(copy, path, mine, compared)
        kept = path
        if done != LEFT and not self._dry_run and stat_or_none(self._fs, path) is not None:
            kept = atomic.free_name(path, "before", fs=self._fs, now=self._now)
            atomic.move_file(path, kept, fs=self._fs)
        return BroughtIn(path, copy.original, done, compared.more, kept, session)

    def _decide(self, copy: Copy, path: str, mine: str, compared: Compared) -> tuple[str, str | None]:
        if not compared.more:
            return CONTAINED, None
        if copy.label in self._parted:
            self._add_to(copy, path)
            return SESSION, self._parted[copy.label]
        is_document = self._layout.part_kind(self._part(copy.original)) is PartKind.DOCUMENT
        if compared.extends and (not is_document or stat_or_none(self._fs, mine) is None):
            self._take(path, mine)
            self._leads.add(copy.label)
            return TAKEN, None
        rule = self._layout.rule(self._part(copy.original))
        if rule.policy is Policy.FORK:
            return SESSION, self._part_company(copy, path)
        if rule.policy in (Policy.UNION, Policy.LEDGER):
            ours, others = list(lines_of(self._fs, mine)), list(lines_of(self._fs, path))
            common = common_prefix(ours, others)
            merged = merge(rule, ours[:common], Side(_MINE, ours[common:]), Side(_COPY, others[common:]))
            self._put(mine, _with_ends([*ours[:common], *merged.lines]))
            return MERGED, None
        if rule.policy is Policy.FIELDS and self._merge_fields(copy, path, mine):
            return MERGED, None
        return LEFT, None

    def _merge_fields(self, copy: Copy, path: str, mine: str) -> bool:
        """Merge a document by field. For fields that differ, the copy's value is used if its conversation continued."""
        ours, others = (read_bytes(self._fs, name) or b"" for name in (mine, path))
        leads = copy.label in self._leads
        merged = self._layout.merged(self._part(copy.original), None, ours, others, ours_lead=not leads)
        if merged is None:
            return False
        if merged.data != ours:
            self._put(mine, (merged.data,))
        return True

    # -- a session of its own

    def _part_company(self, copy: Copy, path: str) -> str:
        """Make a session of a diverged conversation; return its id. The same copy gives the same id."""
        data = read_bytes(self._fs, path) or b""
        new_id = sibling_id(self._ref.session_id, _COPY, sha256(data).hexdigest())
        self._parted[copy.label] = new_id
        sibling = self._layout.place(self._ref.project, new_id, self._ref.session_id)
        if self._dry_run:
            return new_id
        if stat_or_none(self._fs, sibling.locator) is None:
            if self._layout.single_file(self._ref.session_id) is not None:
                atomic.create(sibling.locator, data, fs=self._fs)
            else:
                self._build(copy, sibling, data)
        with self._layout.lock(sibling):
            self._layout.set_parent(sibling, self._ref.session_id, self._now)
        return new_id

    def _build(self, copy: Copy, sibling: SessionRef, data: bytes) -> None:
        """Build the folder of the session under a hidden name, with its documents, and move it into place."""
        base = os.path.dirname(sibling.locator)
        place = os.path.join(base, f"{_BUILDING}{secrets.token_hex(8)}")
        beside = {one.original: one.name for one in self._found if one.label == copy.label}
        with (
            suppress(AlreadyExists),
            atomic.building(place, "write", fs=self._fs, session=self._ref.session_id),
        ):
            atomic.write_new(self._fs, f"{place}/{copy.original}", (data,), None)
            for part in self._layout.parts(self._ref):
                if part.kind is PartKind.DOCUMENT and part.name != copy.original:
                    document = read_bytes(self._fs, f"{self._folder}/{beside.get(part.name, part.name)}")
                    atomic.write_new(self._fs, f"{place}/{part.name}", (document or b"",), None)
            sync_dir(self._fs, place)
            atomic.move_folder(place, sibling.locator, fs=self._fs)

    def _add_to(self, copy: Copy, path: str) -> None:
        """Add another file of a copy to the session that its conversation became; its documents exist already."""
        sibling = self._layout.place(self._ref.project, self._parted[copy.label], self._ref.session_id)
        target = f"{sibling.locator}/{copy.original}"
        if not self._dry_run and stat_or_none(self._fs, target) is None:
            with closing(lines_of(self._fs, path)) as lines:
                atomic.replace(target, _with_ends(lines), fs=self._fs)

    # -- writing

    def _take(self, copy: str, path: str) -> None:
        with closing(lines_of(self._fs, copy)) as lines:
            self._put(path, _with_ends(lines))

    def _put(self, path: str, data: Iterable[bytes]) -> None:
        """Replace a file of the session; what it held stays beside it."""
        if self._dry_run:
            return
        if stat_or_none(self._fs, path) is not None:
            atomic.quarantine(path, "before", fs=self._fs, now=self._now)
        atomic.replace(path, data, fs=self._fs)

    # -- asking the layout

    def _part(self, name: str) -> str:
        return self._layout.single_file(self._ref.session_id) or name

    def _is_conversation(self, copy: Copy) -> bool:
        return self._layout.rule(self._part(copy.original)).policy is Policy.FORK


def _is_file_of(layout: SyncLayout, name: str) -> bool:
    kind = layout.part_kind(name)
    return kind is not None and kind is not PartKind.KEPT


def _folder(layout: SyncLayout, ref: SessionRef) -> str:
    """The folder of the files of a session."""
    return ref.locator if layout.single_file(ref.session_id) is None else os.path.dirname(ref.locator)


def _with_ends(lines: Iterable[bytes]) -> Iterator[bytes]:
    return (line + b"\n" for line in lines)
