"""Writing of a pulled session over the local one, file by file, by the policy of each file.

Runs under the lock of the session. Every file is replaced atomically; journals come before documents that refer to
them. If it is interrupted, some files are new and others old: the next pull compares them again and does the rest;
repeating a part has no further effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from typing import Any

from sessionary.codec import encode_line, sanitize
from sessionary.disk import atomic
from sessionary.disk.fs import make_folder, read_bytes, stat_or_none
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.line_reader import LineFile
from sessionary.disk.truncate import common_prefix
from sessionary.errors import AlreadyExists, Conflict
from sessionary.layouts.fields import Overruled
from sessionary.layouts.files import PartKind
from sessionary.layouts.own_names import own_name
from sessionary.layouts.sync import Policy
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.blocks import chunks
from sessionary.sync.context import Context, Step
from sessionary.sync.damage import damaged_items
from sessionary.sync.diff import Comparison, Verdict
from sessionary.sync.download import Theirs
from sessionary.sync.guard import MINE, THEIRS, item_chain
from sessionary.sync.heads import Head
from sessionary.sync.install import refuse_strange_items
from sessionary.sync.local_files import LocalPart, lines_until, opened
from sessionary.sync.merging import Side, merge
from sessionary.sync.state import Held, SyncedState

LONGEST_VALUE = 200
"""Characters to which a reported value is shortened."""

_REDACTED = "text was redacted in it, and the local version has more; both versions stay unchanged"


class Writer(Step):
    """Writes the remote version of one session over the local one, where that is allowed.

    Attributes:
        held: files of a bundle that are damaged here and stay unchanged.
    """

    def __init__(self, context: Context, ref: SessionRef, head: Head, keep: str | None = None) -> None:
        super().__init__(context)
        self._ref = ref
        self._head = head
        self._keep = keep
        self._given_up: set[str] = set()
        self.held: dict[str, Held] = {}

    def prove(self, found: Comparison, mine: Mapping[str, LocalPart]) -> None:
        """Read and verify everything to be written, so that nothing is changed for data that fails verification.

        Raises:
            Corrupt, Invalid: the remote has data that contradicts its head, or a file that no such session has.
        """
        for name, theirs in found.theirs.items():
            with opened(self._fs, mine.get(name)) as file:
                if name == bundles.NAME:
                    items = set(bundles.unpack_items(theirs.all(file)))
                    refuse_strange_items(self._layout, self._head, items)
                    continue
                for _ in theirs.rest(file):
                    pass

    def write(self, found: Comparison, mine: Mapping[str, LocalPart], agreed: SyncedState | None) -> str:
        """Write every file; return a note for the user, or "".

        Raises:
            Conflict: a local file may not be replaced; files written before stay.
            Corrupt, StorageFailed: the next pull does the rest.
        """
        notes = []
        documents = {name for name, here in mine.items() if here.kind is PartKind.DOCUMENT}
        for name in sorted(found.verdicts, key=lambda name: (name in documents, name)):
            verdict = found.verdicts[name]
            if verdict in (Verdict.SAME, Verdict.OURS, Verdict.HELD):
                continue
            theirs, here = found.theirs[name], mine.get(name)
            if name == bundles.NAME:
                self._unbundle(theirs, here)
            elif verdict is Verdict.THEIRS:
                self._replace(name, theirs, here, agreed)
            else:
                assert here is not None
                note = self._bring_together(name, found, mine) if verdict is Verdict.MERGE else None
                notes.append(self._keep_both(name, found, mine) if note is None else note)
        return "; ".join(filter(None, notes))

    def lay_beside(
        self, found: Comparison, mine: Mapping[str, LocalPart], names: Iterable[str]
    ) -> dict[str, str]:
        """Save the remote version of these files beside the local ones, each version once; return the paths."""
        beside = {}
        for name in names:
            with opened(self._fs, mine[name]) as file:
                beside[name] = self._save_once(self._path(name), b"".join(found.theirs[name].all(file)))
        return beside

    def give_up_ours(self, found: Comparison, names: Iterable[str]) -> None:
        """Let files be replaced as the user decided, and those that wait for the user; local versions are kept."""
        self._given_up = {*names, *found.for_user(self._rule)}
        for name in self._given_up:
            atomic.quarantine(self._path(name), "conflict", fs=self._fs, now=self._now())
            found.verdicts[name] = Verdict.THEIRS

    # -- one side is right

    def _path(self, name: str) -> str:
        """Return the path of a file. Raises Unsupported if it is outside the store: nothing is written there."""
        path = self._layout.path_of(self._ref, name)
        self._links.refuse_file(self._ref, path)
        return path

    def _replace(self, name: str, theirs: Theirs, here: LocalPart | None, agreed: SyncedState | None) -> None:
        """Replace or create one file. Local content that the new version lacks is kept."""
        path = self._path(name)
        if here is not None and here.origin:
            self._add_to_unredacted(path, theirs, here)
            return
        before = agreed.head.part(name) if agreed is not None else None
        if here is not None and theirs.part.redacted and not (before is not None and before.redacted):
            raise Conflict(
                f"{name}: {_REDACTED}", path=path, hint="give this device the same rules for redaction"
            )
        if here is not None and here.torn:
            self._keep_torn(path, theirs, here)
        make_folder(self._fs, os.path.dirname(path))
        with opened(self._fs, here) as file:
            self._swap(path, name, theirs.all(file), here)

    def _swap(self, path: str, name: str, data: Iterable[bytes], here: LocalPart | None) -> None:
        """Replace a file. Lines that others append meanwhile without a lock are kept."""
        backup = self._backup(path, name)
        if here is None or here.kind is PartKind.DOCUMENT:
            atomic.replace(path, data, fs=self._fs, backup=backup)
            return
        with LineFile(path, self._fs) as old:
            atomic.replace(path, data, fs=self._fs, backup=backup)
            late = old.read(here.stamp[1], max(0, old.size() - here.stamp[1]))
        if late:
            journal = Journal(path, Tail.SEAL, fs=self._fs)
            journal.append(late if late.endswith(b"\n") else late + b"\n", journal.look())
            journal.flush()
            journal.close()

    def _backup(self, path: str, name: str) -> str | None:
        # A file that is replaced by a decision is kept already, and may be damaged: it must not replace a good
        # backup.
        backup = None if name in self._given_up else self._layout.backup_of(name)
        return None if backup is None else os.path.join(os.path.dirname(path), os.path.basename(backup))

    def _keep_torn(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        """Save the bytes behind the last line aside, unless the remote version continues with the same bytes."""
        with opened(self._fs, here) as file:
            assert file is not None
            torn = file.read(here.size, here.torn)
            at = theirs.start
            for raw in theirs.rest(file):
                if at <= here.size < at + len(raw) and raw[here.size - at :].startswith(torn):
                    return
                at += len(raw)
        atomic.save_aside(path, "torn", torn, fs=self._fs, now=self._now())

    def _add_to_unredacted(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        """Apply only the remote changes to a file of which a redacted version was sent."""
        if here.kind is PartKind.DOCUMENT:
            self._restore(path, theirs, here)
            return
        whole = here.stamp[1] - here.torn
        with opened(self._fs, here) as redacted, LineFile(here.origin, self._fs) as file:
            assert redacted is not None
            if here.torn or not _begins_alike(redacted, here.size, theirs):
                raise Conflict(f"{here.name}: {_REDACTED}", path=path)
            tail = _behind(redacted, here.size, theirs)
            self._swap(path, here.name, chain(chunks(file, 0, whole), tail), here)

    def _restore(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        with opened(self._fs, here) as redacted:
            data = self._restored(here, b"".join(theirs.all(redacted)), f"{here.name}: {_REDACTED}")
        if data != read_bytes(self._fs, here.origin):
            atomic.replace(path, (data,), fs=self._fs, backup=self._backup(path, here.name))

    def _restored(self, here: LocalPart, data: bytes, why_not: str) -> bytes:
        """Return a redacted document with the values that were redacted here. Raises Conflict if that is impossible."""
        assert self._rules.redact is not None
        whole = self._rules.redact.restored(here.name, read_bytes(self._fs, here.origin) or b"", data)
        if whole is None:
            raise Conflict(why_not, path=self._path(here.name))
        return whole

    # -- both are

    def _bring_together(self, name: str, found: Comparison, parts: Mapping[str, LocalPart]) -> str | None:
        """Merge both versions; return a note for the user, or None if they cannot be merged."""
        here = parts[name]
        with opened(self._fs, here) as file:
            assert file is not None
            mine, others = file.read(0, here.size), b"".join(found.theirs[name].all(file))
        if self._rule(name).policy is Policy.FIELDS:
            base = found.bases.get(name)
            merged = self._layout.merged(name, base, mine, others, ours_lead=_ours_lead(found, parts))
            if merged is None:
                return None
            if base is None:  # unknown base: values that lose are kept
                self._save_once(self._path(name), others if merged.ours_led else mine)
            data = merged.data
            if here.origin:
                data = self._restored(here, data, f"{name} was changed on two devices, and {_REDACTED}")
            self._put(name, data, mine, here)
            return overruled_note(name, merged.overruled)
        return self._merge_lines(name, mine, others, here)

    def _merge_lines(self, name: str, mine: bytes, others: bytes, here: LocalPart) -> str:
        ours, other = mine.split(b"\n")[:-1], others.split(b"\n")[:-1]
        common = common_prefix(ours, other)
        merged = merge(
            self._rule(name),
            ours[:common],
            Side(self._device, ours[common:]),
            Side(self._head.device, other[common:]),
        )
        every = self._revealed_lines([*ours[:common], *merged.lines, *merged.doubled], ours, here)
        lines, doubled = every[: common + len(merged.lines)], every[common + len(merged.lines) :]
        if doubled:
            self._save_once(self._path(name), b"".join(line + b"\n" for line in doubled))
        self._put(name, b"".join(line + b"\n" for line in lines), mine, here)
        if not doubled:
            return ""
        count = len(doubled)
        return f"{count} messages were applied on two devices; {name} has the first line of each, the rest is beside it"

    def _revealed_lines(self, lines: list[bytes], ours: list[bytes], here: LocalPart) -> list[bytes]:
        """Return merged lines, ours as they are here."""
        if not here.origin:
            return lines
        with LineFile(here.origin, self._fs) as file:
            whole = list(lines_until(file, here.stamp[1] - here.torn))
        known: dict[bytes, list[bytes]] = {}
        for redacted, line in zip(ours, whole, strict=True):
            known.setdefault(redacted, []).append(line)
        return [known[line].pop(0) if known.get(line) else line for line in lines]

    def _put(self, name: str, data: bytes, before: bytes, here: LocalPart) -> None:
        if data == before:
            return
        path = self._path(name)
        if here.torn:
            with LineFile(here.origin or here.path, self._fs) as file:
                torn = file.read(here.stamp[1] - here.torn, here.torn)
            atomic.save_aside(path, "torn", torn, fs=self._fs, now=self._now())
        self._swap(path, name, (data,), here)

    def _keep_both(self, name: str, found: Comparison, mine: Mapping[str, LocalPart]) -> str:
        """Keep both versions of a secondary file; that of the device that continued the conversation stays."""
        path, theirs, here = self._path(name), found.theirs[name], mine[name]
        with opened(self._fs, here) as file:
            if here.origin or _ours_lead(found, mine):
                aside = atomic.free_name(path, "conflict", fs=self._fs, now=self._now())
                atomic.replace(aside, theirs.all(file), fs=self._fs)
            else:
                aside = atomic.quarantine(path, "conflict", fs=self._fs, now=self._now())
                self._swap(path, name, theirs.all(file), here)
        return f"{name} was changed on two devices; the other version is {os.path.basename(aside)}"

    def _unbundle(self, theirs: Theirs, here: LocalPart | None) -> None:
        """Create missing files. No file is removed, and no content is changed."""
        with opened(self._fs, here) as file:
            others = set(bundles.unpack_items(theirs.all(file)))
        refuse_strange_items(self._layout, self._head, others)
        present = self._surveyor.items(self._ref)
        others -= self._damaged_there(present.values(), others)
        damaged = self._damaged_here(present, others)
        others -= {one for one in others if one.name in {bad.name for bad in damaged}}
        present = {path: one for path, one in present.items() if one not in damaged}
        names = {one: name for name, one in bundles.names_of([*present.values(), *others]).items()}
        for path, one in present.items():
            if names[one] != one.name and os.path.basename(path) == os.path.basename(one.name):
                self._rename(path, os.path.basename(names[one]))
        for one in sorted(others - set(present.values())):
            self._create(self._path(names[one]), one)

    def _damaged_there(self, here: Iterable[bundles.Item], there: set[bundles.Item]) -> set[bundles.Item]:
        """Return remote files that are damaged copies of local ones, and that no user has sent as they are."""
        accepted = self._head.accepted
        found = damaged_items(self._layout, here, there)
        return {one for one in found if accepted.get(one.name) != item_chain(one)}

    def _damaged_here(
        self, present: Mapping[str, bundles.Item], there: set[bundles.Item]
    ) -> set[bundles.Item]:
        """Return local files that are damaged copies of remote ones.

        They stay, or are replaced if the user decided so.
        """
        damaged = damaged_items(self._layout, there, present.values())
        if self._keep == MINE:
            return set()
        if self._keep != THEIRS:
            self.held = {one.name: Held(item_chain(one), why) for one, why in damaged.items()}
            return set(damaged)
        good = {one.name: one for one in there}
        for path, one in present.items():
            if one in damaged:
                atomic.quarantine(path, "conflict", fs=self._fs, now=self._now())
                atomic.replace(path, (good[one.name].data,), fs=self._fs)
        return set(damaged)

    def _rename(self, path: str, name: str) -> None:
        """Rename a file to a unique name: another device has made a file of the same name."""
        target = os.path.join(os.path.dirname(path), name)
        if stat_or_none(self._fs, target) is None:
            atomic.move_folder(path, target, fs=self._fs)

    def _create(self, path: str, one: bundles.Item) -> None:
        make_folder(self._fs, os.path.dirname(path))
        try:
            atomic.create(path, one.data, fs=self._fs)
        except AlreadyExists:  # another writer made it first
            own = os.path.join(os.path.dirname(path), os.path.basename(own_name(one.name, one.data)))
            if read_bytes(self._fs, path) != one.data and stat_or_none(self._fs, own) is None:
                atomic.create(own, one.data, fs=self._fs)

    def _save_once(self, path: str, data: bytes) -> str:
        """Keep bytes beside a file under a name derived from them; return the path."""
        beside = name_beside(path, data)
        try:
            atomic.create(beside, data, fs=self._fs)
        except AlreadyExists:
            pass
        return beside


def name_beside(path: str, data: bytes) -> str:
    """Return the path beside a file under which another version of it is kept, derived from its bytes."""
    return f"{path}.conflict-{sha256(data).hexdigest()[:12]}"


def overruled_note(name: str, overruled: Iterable[Overruled]) -> str:
    """Describe fields that both devices have changed, with both values."""
    changed = [
        f"{one.field} ({_short(one.stands)} is kept, {_short(one.gave_way)} was overwritten)"
        for one in overruled
    ]
    return f"{name} was changed on two devices: {', '.join(changed)}" if changed else ""


def _short(value: Any) -> str:
    text = "none" if value is None else encode_line(sanitize(value)).decode()
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def _ours_lead(found: Comparison, mine: Mapping[str, LocalPart]) -> bool:
    """True if the conversation was continued here."""
    return any(
        verdict is Verdict.OURS and name in mine and mine[name].kind is PartKind.JOURNAL
        for name, verdict in found.verdicts.items()
    )


def _begins_alike(redacted: LineFile, size: int, theirs: Theirs) -> bool:
    """True if the remote version begins with the first `size` bytes; verifies all of it."""
    at, alike = theirs.start, True
    for raw in theirs.rest(redacted):
        known = max(0, min(len(raw), size - at))
        alike = alike and redacted.read(at, known) == raw[:known]
        at += len(raw)
    return alike and at >= size


def _behind(redacted: LineFile, size: int, theirs: Theirs) -> Iterator[bytes]:
    """Yield the bytes of the remote version behind the first `size` bytes."""
    at = theirs.start
    for raw in theirs.rest(redacted):
        yield raw[max(0, min(len(raw), size - at)) :]
        at += len(raw)
