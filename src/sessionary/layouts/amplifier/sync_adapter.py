"""Sessions from another machine: their folders, locks, renames and deletion.

Synchronisation writes the files; this module has what only this layout knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sessionary.codec import (
    decode_object,
    encode_document,
    for_strict_reader,
    read_lines,
    reencode_document,
    sanitize,
)
from sessionary.codec.problems import text_problems
from sessionary.codec.snapshot import same
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, not_found
from sessionary.errors import Invalid, StorageFailed
from sessionary.layouts.amplifier.files import BACKUP, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, check_new_id, check_project
from sessionary.layouts.amplifier.layout import PARTS, AmplifierLayout
from sessionary.layouts.amplifier.recovery import object_in, read_metadata
from sessionary.layouts.amplifier.session import pool_of
from sessionary.layouts.fields import Merged, merge_fields, overruled
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.layouts.trash import trash_name
from sessionary.model import Problem, SessionRef
from sessionary.transcript.diagnosis import shape_findings


class AmplifierSyncLayout(AmplifierLayout, SyncLayout):
    """The sessions below one amplifier home, for synchronisation."""

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        check_new_id(session_id)
        if project is None:
            raise Invalid("a session of this layout needs a project", session=session_id)
        check_project(project)
        folder = f"{self.home}/{PROJECTS}/{project}/{SESSIONS}/{session_id}"
        return SessionRef(self.name, session_id, folder, project)

    def part_kind(self, name: str) -> PartKind | None:
        return PARTS.get(name)

    def rule(self, name: str) -> Rule:
        if name == METADATA:
            return Rule(Policy.FIELDS)
        return Rule(Policy.FORK if name == TRANSCRIPT else Policy.KEEP_BOTH)

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        ours, others = decode_object(mine), decode_object(theirs)
        before = {} if base is None else decode_object(base)
        if ours is None or others is None or before is None:
            return None
        leading, other = (ours, others) if ours_lead else (others, ours)
        value = merge_fields(before, leading, other)
        gave_way = tuple(overruled(before, other, value))
        for there, data in ((ours, mine), (others, theirs)):
            if same(value, there):
                return Merged(data, ours_lead, gave_way)
        return Merged(encode_document(sanitize(value)), ours_lead, gave_way)

    def faults(self, name: str, data: bytes) -> list[Problem]:
        if name == TRANSCRIPT:
            return _transcript_faults(data)
        if name == EVENTS:
            return read_lines(data, name).problems
        if name != METADATA:
            return text_problems(data, name)
        problems: list[Problem] = []
        object_in(data, name, problems)
        return problems

    @contextmanager
    def lock(self, ref: SessionRef) -> Iterator[None]:
        pool = pool_of(self._fs)
        session = pool.get(ref.locator, self._fs, lambda: datetime.now(UTC))
        try:
            session.enter(make=False)
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None
        try:
            yield
        finally:
            session.leave()
            if not session.is_there():
                pool.drop(ref.locator)

    def parent(self, ref: SessionRef) -> str | None:
        parent = read_metadata(self._fs, ref.locator, recovery_time="").value.get("parent_id")
        return parent if isinstance(parent, str) else None

    def backup_of(self, name: str) -> str | None:
        return name + BACKUP if name in (TRANSCRIPT, METADATA) else None

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        stored = read_metadata(self._fs, ref.locator, recovery_time="", to_write=True)
        if stored.data is None or not stored.readable or stored.value.get("session_id") == ref.session_id:
            return  # unreadable metadata stays unchanged; a label that matches was set before
        stamp = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        label = {"session_id": ref.session_id, "parent_id": parent, "forked_at": stamp}
        document = reencode_document({**stored.value, **label})
        path = os.path.join(ref.locator, METADATA)
        atomic.replace(path, (document,), fs=self._fs, backup=path + BACKUP)

    def trash(self, ref: SessionRef, now: datetime) -> None:
        root = os.path.dirname(ref.locator)
        target = trash_name(self._fs, root, ref.session_id, now)
        atomic.move_folder(ref.locator, target, fs=self._fs)


class StoreSyncLayout(AmplifierSyncLayout):
    """The sessions of one project, in any folder."""

    def __init__(self, base_dir: Path, project: str, fs: Fs = OS_FS) -> None:
        super().__init__(base_dir, fs)
        self._project = project

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        ref = super().ref_for_path(folder)
        return ref and SessionRef(ref.kind, ref.session_id, ref.locator, self._project)

    def project(self) -> str | None:
        return self._project

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        check_new_id(session_id)
        if project != self._project:
            raise Invalid(f"this store holds the sessions of {self._project}, not of {project}")
        return SessionRef(self.name, session_id, f"{self.home}/{session_id}", project)

    def _sessions(self) -> Iterator[tuple[str, str, list[str]]]:
        closed: list[StorageFailed] = []
        yield self._project, str(self.home), self._names(str(self.home), closed) or []
        if closed:
            raise closed[0]


def _transcript_faults(data: bytes) -> list[Problem]:
    """Damage, and faults within one message. A compaction, or a tool that still runs, changes their sequence."""
    reading = read_lines(data, TRANSCRIPT)
    problems = for_strict_reader(reading.problems)
    for record in reading.records():
        place = TRANSCRIPT, record.line, record.byte
        for each in shape_findings(record.value):
            if each.stops:
                words, size = (each.message, "`sessionary repair`"), len(record.raw)
                problems.append(Problem(each.code, each.severity, *place, *words, size))
    return problems
