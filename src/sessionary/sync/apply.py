"""What a pull writes into a session that is here, file by file, by the policy of each.

Under the lock of the session. Every file is replaced whole; journals come before the documents that speak of them. Cut
off anywhere, some files are the new ones and some are not: the next pull compares them again and does the rest, and
doing a part of it twice does no more than doing it once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sessionary.codec import encode_line, sanitize
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_dirs, read_bytes, stat_or_none, storage_failed
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.line_reader import LineFile
from sessionary.errors import AlreadyExists, Conflict
from sessionary.layouts.base import PartKind
from sessionary.layouts.fields import Overruled
from sessionary.layouts.own_names import own_name
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import bundles
from sessionary.sync.conflicts import name_beside
from sessionary.sync.damage import spoilt_items
from sessionary.sync.diff import Comparison, Verdict
from sessionary.sync.guard import MINE, THEIRS, item_chain
from sessionary.sync.heads import Head
from sessionary.sync.incoming import Theirs
from sessionary.sync.install import refuse_strange_items
from sessionary.sync.local_files import LocalPart, Surveyor, lines_until, opened
from sessionary.sync.merging import Side, merge
from sessionary.sync.rules import Rules, rule_of
from sessionary.sync.state import Held, SyncedState

LONGEST_VALUE = 200
"""A value that is reported is shortened to so many characters."""

_BLACK = (
    "text was blacked out in it, and what is here has more; it stays as it is, and so does the other side"
)


class Writer:
    """Writes the other side's version of one session over the one here, where that is right.

    Attributes:
        held: the files of a bundle that are damaged here, and stay as they are.
    """

    def __init__(
        self,
        fs: Fs,
        layout: SyncLayout,
        surveyor: Surveyor,
        rules: Rules,
        now: datetime,
        ref: SessionRef,
        head: Head,
        device: str,
        keep: str | None = None,
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._surveyor = surveyor
        self._rules = rules
        self._rule = rule_of(layout)
        self._now = now
        self._ref = ref
        self._head = head
        self._device = device
        self._keep = keep
        self._given_up: set[str] = set()
        self.held: dict[str, Held] = {}

    def prove(self, found: Comparison, mine: Mapping[str, LocalPart]) -> None:
        """Read all that is to be written once, so that nothing here is changed for what is not proved to its end.

        Raises:
            Corrupt, Invalid: the other side holds what its head does not say, or what no such session has.
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
        """Bring every file to where it belongs; returns what there is to tell.

        Raises:
            Conflict: something here may not be replaced; what was written before stays.
            Corrupt, StorageFailed: the next pull does the rest.
        """
        notes = []
        for name in sorted(found.verdicts, key=lambda name: (_is_document(mine.get(name)), name)):
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

    def show(self, found: Comparison, mine: Mapping[str, LocalPart]) -> None:
        """Lay the other version of what a person must bring together beside the one here, each version once."""
        self.lay_beside(found, mine, found.for_a_person(self._rule))

    def lay_beside(
        self, found: Comparison, mine: Mapping[str, LocalPart], names: Iterable[str]
    ) -> dict[str, str]:
        """Lay the remote's version of these files beside those here, each version once; returns where they lie."""
        beside = {}
        for name in names:
            with opened(self._fs, mine[name]) as file:
                beside[name] = self._save_once(self._path(name), b"".join(found.theirs[name].all(file)))
        return beside

    def give_up_ours(self, found: Comparison, names: Iterable[str]) -> None:
        """A user has decided: these files, and those that wait for a user, give way here, and are kept beside."""
        self._given_up = {*names, *found.for_a_person(self._rule)}
        for name in self._given_up:
            atomic.quarantine(self._path(name), "conflict", fs=self._fs, now=self._now)
            found.verdicts[name] = Verdict.THEIRS

    # -- one side is right

    def _path(self, name: str) -> str:
        """Where a file lies. Raises Unsupported if that is out of the store: nothing is written there."""
        path = self._layout.path_of(self._ref, name)
        self._surveyor.links.refuse_file(self._ref, path)
        return path

    def _replace(self, name: str, theirs: Theirs, here: LocalPart | None, agreed: SyncedState | None) -> None:
        """Replace one file, or make it. What it had and the new one has not is kept."""
        path = self._path(name)
        if here is not None and here.origin:
            self._add_to_unredacted(path, theirs, here)
            return
        if here is not None and theirs.part.redacted and not _was_redacted(agreed, name):
            raise Conflict(
                f"{name}: {_BLACK}", path=path, hint="give this device the same rules for redaction"
            )
        if here is not None and here.torn:
            self._keep_torn(path, theirs, here)
        self._make_dirs(os.path.dirname(path))
        with opened(self._fs, here) as file:
            self._swap(path, name, theirs.all(file), here)

    def _swap(self, path: str, name: str, data: Iterable[bytes], here: LocalPart | None) -> None:
        """Replace a file. What others append to it in that very moment, without a lock, is brought along."""
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
        # What gives way lies aside already, and may be damaged: it must not replace a good backup.
        backup = None if name in self._given_up else self._layout.backup_of(name)
        return None if backup is None else os.path.join(os.path.dirname(path), os.path.basename(backup))

    def _keep_torn(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        """Store the bytes behind the last line aside, unless the other side goes on with just these."""
        with opened(self._fs, here) as file:
            assert file is not None
            torn = file.read(here.size, here.torn)
            at = theirs.start
            for raw in theirs.rest(file):
                if at <= here.size < at + len(raw) and raw[here.size - at :].startswith(torn):
                    return
                at += len(raw)
        atomic.save_aside(path, "torn", torn, fs=self._fs, now=self._now)

    def _add_to_unredacted(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        """The file here has more than was sent of it: only what is new on the other side is brought into it."""
        if here.kind is PartKind.DOCUMENT:
            self._restore(path, theirs, here)
            return
        whole = here.stamp[1] - here.torn
        with opened(self._fs, here) as black, LineFile(here.origin, self._fs) as file:
            assert black is not None
            if here.torn or not _begins_alike(black, here.size, theirs):
                raise Conflict(f"{here.name}: {_BLACK}", path=path)
            tail = _behind(black, here.size, theirs)
            self._swap(path, here.name, _chained(file, whole, tail), here)

    def _restore(self, path: str, theirs: Theirs, here: LocalPart) -> None:
        assert self._rules.redact is not None
        mine = read_bytes(self._fs, here.origin) or b""
        with opened(self._fs, here) as black:
            data = self._rules.redact.restored(here.name, mine, b"".join(theirs.all(black)))
        if data is None:
            raise Conflict(f"{here.name}: {_BLACK}", path=path)
        if data != mine:
            atomic.replace(path, (data,), fs=self._fs, backup=self._backup(path, here.name))

    # -- both are

    def _bring_together(self, name: str, found: Comparison, parts: Mapping[str, LocalPart]) -> str | None:
        """Both versions in one file; returns what there is to tell, None if they cannot be brought together."""
        here = parts[name]
        with opened(self._fs, here) as file:
            assert file is not None
            mine, others = file.read(0, here.size), b"".join(found.theirs[name].all(file))
        if self._rule(name).policy is Policy.FIELDS:
            base = found.bases.get(name)
            merged = self._layout.merged(name, base, mine, others, ours_lead=_ours_lead(found, parts))
            if merged is None:
                return None
            if base is None:  # who changed what is not known, so what gives way is kept
                self._save_once(self._path(name), others if merged.ours_led else mine)
            self._put(name, self._revealed(name, merged.data, here), mine, here)
            return told_overruled(name, merged.overruled)
        return self._merge_lines(name, mine, others, here)

    def _merge_lines(self, name: str, mine: bytes, others: bytes, here: LocalPart) -> str:
        ours, other = mine.split(b"\n")[:-1], others.split(b"\n")[:-1]
        pairs = enumerate(zip(ours, other, strict=False))
        common = next((at for at, (a, b) in pairs if a != b), min(len(ours), len(other)))
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
        return f"{count} messages were applied on two devices; {name} has the first line of each, the rest lies beside"

    def _revealed(self, name: str, merged: bytes, here: LocalPart) -> bytes:
        """A document that was brought together, with what is black in it as it is here."""
        if not here.origin:
            return merged
        assert self._rules.redact is not None
        data = self._rules.redact.restored(name, read_bytes(self._fs, here.origin) or b"", merged)
        if data is None:
            raise Conflict(f"{name} was changed on two devices, and {_BLACK}", path=self._path(name))
        return data

    def _revealed_lines(self, lines: list[bytes], ours: list[bytes], here: LocalPart) -> list[bytes]:
        """Lines that were brought together, those of ours as they are here."""
        if not here.origin:
            return lines
        with LineFile(here.origin, self._fs) as file:
            whole = list(lines_until(file, here.stamp[1] - here.torn))
        known: dict[bytes, list[bytes]] = {}
        for black, line in zip(ours, whole, strict=True):
            known.setdefault(black, []).append(line)
        return [known[line].pop(0) if known.get(line) else line for line in lines]

    def _put(self, name: str, data: bytes, before: bytes, here: LocalPart) -> None:
        if data == before:
            return
        path = self._path(name)
        if here.torn:
            with LineFile(here.origin or here.path, self._fs) as file:
                torn = file.read(here.stamp[1] - here.torn, here.torn)
            atomic.save_aside(path, "torn", torn, fs=self._fs, now=self._now)
        self._swap(path, name, (data,), here)

    def _keep_both(self, name: str, found: Comparison, mine: Mapping[str, LocalPart]) -> str:
        """Two versions of what is beside the conversation: that of who went on with it stands, the other is kept."""
        path, theirs, here = self._path(name), found.theirs[name], mine[name]
        with opened(self._fs, here) as file:
            if here.origin or _ours_lead(found, mine):
                aside = atomic.free_name(path, "conflict", fs=self._fs, now=self._now)
                atomic.replace(aside, theirs.all(file), fs=self._fs)
            else:
                aside = atomic.quarantine(path, "conflict", fs=self._fs, now=self._now)
                self._swap(path, name, theirs.all(file), here)
        return f"{name} was changed on two devices; the other version is {os.path.basename(aside)}"

    def _unbundle(self, theirs: Theirs, here: LocalPart | None) -> None:
        """Make the files that are not here. None is taken away, and none gets other bytes."""
        with opened(self._fs, here) as file:
            others = set(bundles.unpack_items(theirs.all(file)))
        refuse_strange_items(self._layout, self._head, others)
        present = self._surveyor.items(self._ref)
        others -= self._spoilt_there(present.values(), others)
        spoilt = self._spoilt_here(present, others)
        others -= {one for one in others if one.name in {bad.name for bad in spoilt}}
        present = {path: one for path, one in present.items() if one not in spoilt}
        names = {one: name for name, one in bundles.names_of([*present.values(), *others]).items()}
        for path, one in present.items():
            if names[one] != one.name and os.path.basename(path) == os.path.basename(one.name):
                self._rename(path, os.path.basename(names[one]))
        for one in sorted(others - set(present.values())):
            self._create(self._path(names[one]), one)

    def _spoilt_there(self, here: Iterable[bundles.Item], there: set[bundles.Item]) -> set[bundles.Item]:
        """The files of the remote that are damaged copies of files here, and that no user has sent as they are."""
        accepted = self._head.accepted
        found = spoilt_items(self._layout, here, there)
        return {one for one in found if accepted.get(one.name) != item_chain(one)}

    def _spoilt_here(
        self, present: Mapping[str, bundles.Item], there: set[bundles.Item]
    ) -> set[bundles.Item]:
        """The files here that are damaged copies of those of the remote. They stay, or give way if a user says so."""
        spoilt = spoilt_items(self._layout, there, present.values())
        if self._keep == MINE:
            return set()
        if self._keep != THEIRS:
            self.held = {one.name: Held(item_chain(one), why) for one, why in spoilt.items()}
            return set(spoilt)
        good = {one.name: one for one in there}
        for path, one in present.items():
            if one in spoilt:
                atomic.quarantine(path, "conflict", fs=self._fs, now=self._now)
                atomic.replace(path, (good[one.name].data,), fs=self._fs)
        return set(spoilt)

    def _rename(self, path: str, name: str) -> None:
        """Give a file the name that no other can have, since another device has made one of its old name."""
        target = os.path.join(os.path.dirname(path), name)
        if stat_or_none(self._fs, target) is None:
            atomic.move_folder(path, target, fs=self._fs)

    def _create(self, path: str, one: bundles.Item) -> None:
        self._make_dirs(os.path.dirname(path))
        try:
            atomic.create(path, one.data, fs=self._fs)
        except AlreadyExists:  # a sender was faster
            own = os.path.join(os.path.dirname(path), os.path.basename(own_name(one.name, one.data)))
            if read_bytes(self._fs, path) != one.data and stat_or_none(self._fs, own) is None:
                atomic.create(own, one.data, fs=self._fs)

    def _save_once(self, path: str, data: bytes) -> str:
        """Keep bytes beside a file, under a name by which they are known again; returns that."""
        beside = name_beside(path, data)
        try:
            atomic.create(beside, data, fs=self._fs)
        except AlreadyExists:
            pass
        return beside

    def _make_dirs(self, folder: str) -> None:
        try:
            make_dirs(self._fs, folder)
        except OSError as error:
            raise storage_failed(error, "make", folder) from error


def told_overruled(name: str, overruled: Iterable[Overruled]) -> str:
    """The fields that both devices have changed, with both values."""
    told = [
        f"{one.field} ({_short(one.stands)} stands, {_short(one.gave_way)} gave way)" for one in overruled
    ]
    return f"{name} was changed on two devices: {', '.join(told)}" if told else ""


def _short(value: Any) -> str:
    text = "none" if value is None else encode_line(sanitize(value)).decode()
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def _ours_lead(found: Comparison, mine: Mapping[str, LocalPart]) -> bool:
    """True if the conversation went on here."""
    return Verdict.OURS in {
        verdict for part, verdict in found.verdicts.items() if _is_conversation(mine.get(part))
    }


def _begins_alike(black: LineFile, size: int, theirs: Theirs) -> bool:
    """True if the other side has the first `size` bytes as they are here; all that it has is proved by that."""
    at, alike = theirs.start, True
    for raw in theirs.rest(black):
        known = max(0, min(len(raw), size - at))
        alike = alike and black.read(at, known) == raw[:known]
        at += len(raw)
    return alike and at >= size


def _behind(black: LineFile, size: int, theirs: Theirs) -> Iterator[bytes]:
    """What the other side has behind the first `size` bytes."""
    at = theirs.start
    for raw in theirs.rest(black):
        yield raw[max(0, min(len(raw), size - at)) :]
        at += len(raw)


def _chained(file: LineFile, size: int, tail: Iterator[bytes]) -> Iterator[bytes]:
    at = 0
    while at < size:
        chunk = file.read(at, min(1 << 20, size - at))
        yield chunk
        at += len(chunk)
    yield from tail


def _was_redacted(agreed: SyncedState | None, name: str) -> bool:
    return agreed is not None and any(part.redacted for part in agreed.head.parts if part.name == name)


def _is_conversation(part: LocalPart | None) -> bool:
    return part is not None and part.kind is PartKind.JOURNAL


def _is_document(part: LocalPart | None) -> bool:
    return part is not None and part.kind is PartKind.DOCUMENT
