"""Installation of a session that is not here yet: staged in a hidden folder, then renamed into place.

If something else is in its place (the folder of a parent that has not arrived yet, or leftovers of a trashed
session), the files are moved in one by one, the files that make it a session last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from sessionary.disk import atomic
from sessionary.disk.fs import is_folder, make_folder, read_bytes, stat_or_none
from sessionary.errors import Invalid, SessionaryError
from sessionary.layouts import ledger_owner
from sessionary.layouts.files import PartKind
from sessionary.layouts.own_names import own_name
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.blocks import part_key
from sessionary.sync.context import Step
from sessionary.sync.diff import Comparison
from sessionary.sync.download import Theirs
from sessionary.sync.heads import Head
from sessionary.sync.local_files import LocalPart, opened

STAGED = ".pull-"
LONGEST_NAME = 255
"""Most bytes of a file name."""


def refuse_strangers(layout: SyncLayout, head: Head) -> None:
    """Raise Invalid for a head that names a file which no such session can have, or an owner of no ledger."""
    only, named = layout.single_file(head.session), [(part.name, part.kind) for part in head.parts]
    is_emptied = head.deleted and not named  # a tombstone may have no parts
    if only is not None and not is_emptied and named != [(only, _kind(layout, only))]:
        # Other parts would be written over this one file, bypassing its rule; without any synchronised part, a folder
        # would take its place.
        raise Invalid(
            f"the head of {head.session} does not name {only!r} and nothing else, as it must",
            session=head.session,
            operation="pull",
        )
    for part in head.parts:
        if part.kind == PartKind.BUNDLE.value and part.name == bundles.NAME:
            continue
        if _is_strange(layout, part.name) or part.kind == PartKind.BUNDLE.value:
            raise _stranger(head, part.name)
    for name in head.owners:
        if _is_strange(layout, name) or layout.rule(name).policy is not Policy.LEDGER:
            raise _stranger(head, name)


def refuse_strange_items(layout: SyncLayout, head: Head, items: set[bundles.Item]) -> None:
    """As `refuse_strangers`, for the files of a bundle."""
    for one in items:
        if _is_strange(layout, one.name) or layout.rule(one.name).policy is not Policy.IMMUTABLE:
            raise _stranger(head, one.name)


def _kind(layout: SyncLayout, name: str) -> str | None:
    kind = layout.part_kind(name)
    return None if kind is None else kind.value


def _is_strange(layout: SyncLayout, name: str) -> bool:
    segments = name.split("/")
    hidden = any(not segment or segment.startswith(".") for segment in segments)
    try:
        longest = max(len(os.fsencode(segment)) for segment in segments)
    except UnicodeEncodeError:
        return True
    return hidden or longest > LONGEST_NAME or "\\" in name or "\0" in name or layout.part_kind(name) is None


def _stranger(head: Head, name: str) -> Invalid:
    return Invalid(
        f"the head of {head.session} names a file {name!r}, which such a session cannot have",
        session=head.session,
        operation="pull",
    )


class Placer(Step):
    """Installs sessions that do not exist here."""

    def stage(
        self,
        name: str,
        ref: SessionRef,
        head: Head,
        found: Comparison,
        mine: Mapping[str, LocalPart],
        device: str,
    ) -> str:
        """Write the remote version of a session to a hidden folder beside its place. Durable on return.

        The folder name contains the device: a device runs one pull at a time, but two devices (a program with its own
        sync state, a home shared by two machines) may install the same session at the same time.

        Raises:
            Corrupt, StorageFailed: the folder was removed; on a full disk it would block others.
        """
        own = f"{STAGED}{name[:16]}-{part_key(device)}"
        staged = os.path.join(os.path.dirname(ref.locator), own)
        self.clear(staged)
        try:
            self._fill(staged, head, found, mine, device)
        except SessionaryError:
            with suppress(SessionaryError):
                self.clear(staged)
            raise
        return staged

    def _fill(
        self, staged: str, head: Head, found: Comparison, mine: Mapping[str, LocalPart], device: str
    ) -> None:
        for part, theirs in found.theirs.items():
            if part == bundles.NAME:
                self._stage_items(staged, head, theirs, mine.get(part))
                continue
            path = os.path.join(staged, part)
            make_folder(self._fs, os.path.dirname(path))
            with opened(self._fs, mine.get(part)) as file:
                atomic.replace(path, theirs.all(file), fs=self._fs)
        make_folder(self._fs, staged)
        for ledger, owner in head.owners.items():
            if owner != device and ledger in found.theirs:
                ledger_owner.name_owner(os.path.join(staged, ledger), owner, here=False, fs=self._fs)

    def _stage_items(self, staged: str, head: Head, theirs: Theirs, here: LocalPart | None) -> None:
        with opened(self._fs, here) as file:
            items = set(bundles.unpack_items(theirs.all(file)))
        refuse_strange_items(self._layout, head, items)
        for name, one in bundles.names_of(items).items():
            path = os.path.join(staged, name)
            make_folder(self._fs, os.path.dirname(path))
            atomic.create(path, one.data, fs=self._fs)

    def enter(self, staged: str, ref: SessionRef) -> None:
        """Move a staged session into place.

        Durability: when this returns, it survives a power cut; until then no list shows it in part.

        Raises:
            Unsupported: a file would be written outside the store.
        """
        names = list(self._files(staged))
        for name in names:
            self._links.refuse_file(ref, self._layout.path_of(ref, name))
        if len(names) == 1 and self._layout.path_of(ref, names[0]) == ref.locator:
            atomic.move_folder(os.path.join(staged, names[0]), ref.locator, fs=self._fs)
            self.clear(staged)
        elif stat_or_none(self._fs, ref.locator) is not None:
            for name in sorted(names, key=self._order):
                self._move_in(os.path.join(staged, name), os.path.join(ref.locator, name), name)
            self.clear(staged)
        else:
            atomic.move_folder(staged, ref.locator, fs=self._fs)

    def clear(self, staged: str) -> None:
        """Remove a staged session that is not needed."""
        if stat_or_none(self._fs, staged) is not None:
            atomic.erase_tree(staged, fs=self._fs)

    def _files(self, folder: str, below: str = "") -> Iterator[str]:
        for name in sorted(self._fs.listdir(os.path.join(folder, below))):
            path = os.path.join(folder, below, name)
            if is_folder(self._fs, path):
                yield from self._files(folder, os.path.join(below, name))
            else:
                yield os.path.join(below, name)

    def _order(self, name: str) -> tuple[bool, str]:
        """Sort key: mutable documents last, because they make a folder a session."""
        is_document = self._layout.part_kind(name) is PartKind.DOCUMENT
        return is_document and self._layout.rule(name).policy is not Policy.IMMUTABLE, name

    def _move_in(self, source: str, target: str, name: str) -> None:
        """Move one file in. An existing file of that name is kept."""
        data = read_bytes(self._fs, target)
        if data is not None:
            ours = read_bytes(self._fs, source) or b""
            if data == ours:
                return
            is_known = self._layout.part_kind(name) is not None
            if is_known and self._layout.rule(name).policy is Policy.IMMUTABLE:
                target = os.path.join(os.path.dirname(target), os.path.basename(own_name(name, ours)))
                if stat_or_none(self._fs, target) is not None:
                    return
            else:
                atomic.quarantine(target, "conflict", fs=self._fs)
                atomic.replace(target, (ours,), fs=self._fs)
                return
        atomic.move_folder(source, target, fs=self._fs)
