"""Sessions of agent frameworks from another machine. Two versions of one become two sessions: both are kept.

A session is one file; on the remote it is named `session.records`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import ClassVar

from sessionary.codec import read_lines
from sessionary.errors import Invalid
from sessionary.layouts.fields import Merged
from sessionary.layouts.files import Part, PartKind
from sessionary.layouts.records import shared_state
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.names import ADK, UNKNOWN, name_in, parent_of, project_of
from sessionary.layouts.records.relabel import begin_of, relabel
from sessionary.layouts.records.trash import discard, held
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.model import Problem, SessionRef

FILE = "session.records"


class RecordsSyncLayout(RecordsLayout, SyncLayout):
    """The sessions of agent frameworks below one folder, for synchronisation."""

    projects_are_folders: ClassVar[bool] = False

    def _project(self, path: str) -> str:
        """The whole scope: that of a sub-agent ends with the id of the session that it belongs to."""
        return project_of(path)

    def discover(self) -> Iterator[SessionRef]:
        """The sessions, and the state that those of Google ADK share."""
        yield from super().discover()
        folder = str(self.home) if self.home.name == ADK else f"{self.home}/{ADK}"
        for session_id, path in shared_state.states_in(self._fs, folder):
            yield SessionRef(self.name, session_id, path, shared_state.PROJECT)

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        is_shared = project == shared_state.PROJECT and shared_state.is_state(session_id)
        name = shared_state.file_of(session_id) if is_shared else name_in(project or "", session_id)
        if project is None or name is None:
            raise Invalid(
                f"a session of an agent framework cannot be in the project {project}", session=session_id
            )
        framework = project.partition("/")[0]
        is_here = framework in (UNKNOWN, self.home.name)
        folder = str(self.home) if is_here else f"{self.home}/{framework}"
        folder += f"/{shared_state.FOLDER}" if is_shared else ""
        return SessionRef(self.name, session_id, f"{folder}/{name}", project)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        for part in super().parts(ref):
            yield part._replace(name=self.single_file(ref.session_id))

    def single_file(self, session_id: str) -> str:
        return shared_state.FILE if shared_state.is_state(session_id) else FILE

    def part_kind(self, name: str) -> PartKind | None:
        return PartKind.JOURNAL if name in (FILE, shared_state.FILE) else None

    def rule(self, name: str) -> Rule:
        return Rule(Policy.FIELDS if name == shared_state.FILE else Policy.FORK)

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        return shared_state.merged_state(mine, theirs) if name == shared_state.FILE else None

    def faults(self, name: str, data: bytes) -> list[Problem]:
        return read_lines(data, name).problems

    def lock(self, ref: SessionRef) -> AbstractContextManager[None]:
        return held(self._fs, ref)

    def parent(self, ref: SessionRef) -> str | None:
        begin = begin_of(self._fs, ref.locator)
        stated = None if begin is None else begin.get("parent")
        return parent_of(ref.locator) or (stated if isinstance(stated, str) else None)

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        relabel(self._fs, ref.locator, ref.session_id, parent)

    def trash(self, ref: SessionRef, now: datetime) -> None:
        discard(self._fs, ref.locator, now)
