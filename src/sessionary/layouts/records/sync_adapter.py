"""Sessions of agent frameworks from another machine. Two versions of one become two sessions: both are kept.

A session is one file; on the remote it is named `session.records`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import ClassVar, Final

from sessionary.codec import read_lines
from sessionary.disk import atomic
from sessionary.disk.fs import make_folder, not_found, stat_or_none
from sessionary.disk.lock import FileLock
from sessionary.errors import Invalid
from sessionary.layouts.base import Part, PartKind
from sessionary.layouts.fields import Merged
from sessionary.layouts.records.journal import LOCK_SUFFIX
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.names import UNKNOWN, name_in, parent_of, project_of
from sessionary.layouts.records.relabel import begin_of, relabel
from sessionary.layouts.sync import Policy, Rule
from sessionary.model import Problem, SessionRef

FILE = "session.records"
TRASH = ".trash"
TIMEOUT: Final = 30.0


class RecordsSyncLayout(RecordsLayout):
    """The sessions of agent frameworks below one folder, for synchronisation."""

    projects_are_folders: ClassVar[bool] = False

    def _project(self, path: str) -> str:
        """The whole scope: that of a sub-agent ends with the id of the session that it belongs to."""
        return project_of(path)

    def project(self) -> str | None:
        return None

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        name = name_in(project or "", session_id)
        if project is None or name is None:
            raise Invalid(
                f"a session of an agent framework cannot lie in the project {project}", session=session_id
            )
        framework = project.partition("/")[0]
        is_here = framework in (UNKNOWN, self.home.name)
        folder = str(self.home) if is_here else f"{self.home}/{framework}"
        return SessionRef(self.name, session_id, f"{folder}/{name}", project)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        for part in super().parts(ref):
            yield part._replace(name=FILE)

    def path_of(self, ref: SessionRef, name: str) -> str:
        return ref.locator

    def single_file(self, session_id: str) -> str | None:
        return FILE

    def part_kind(self, name: str) -> PartKind | None:
        return PartKind.JOURNAL if name == FILE else None

    def rule(self, name: str) -> Rule:
        return Rule(Policy.FORK)

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        return None

    def faults(self, name: str, data: bytes) -> list[Problem]:
        return read_lines(data, name).problems

    @contextmanager
    def lock(self, ref: SessionRef) -> Iterator[None]:
        lock = FileLock(ref.locator + LOCK_SUFFIX, self._fs)
        self._require(ref)
        try:
            with lock.held(TIMEOUT):
                self._require(ref)
                yield
        finally:
            lock.close()

    def _require(self, ref: SessionRef) -> None:
        if stat_or_none(self._fs, ref.locator) is None:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found")

    def parent(self, ref: SessionRef) -> str | None:
        begin = begin_of(self._fs, ref.locator)
        stated = None if begin is None else begin.get("parent")
        return parent_of(ref.locator) or (stated if isinstance(stated, str) else None)

    def backup_of(self, name: str) -> str | None:
        return None

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        relabel(self._fs, ref.locator, ref.session_id, parent)

    def trash(self, ref: SessionRef, now: datetime) -> None:
        folder, name = os.path.split(ref.locator)
        number, trash = 1, f"{folder}/{TRASH}/{atomic.timestamp_name(now)}"
        target = f"{trash}/{name}"
        while stat_or_none(self._fs, target) is not None:
            number += 1
            target = f"{trash}-{number}/{name}"
        make_folder(self._fs, os.path.dirname(target))
        atomic.move_folder(ref.locator, target, fs=self._fs)
