"""The sessions of agent frameworks as a layout: `<framework>/<id>.records` below the data folder. Read side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Capability, ChainHead, Forked, MayMatch, MovedAside, Rewinding
from sessionary.layouts.records.names import FRAMEWORKS, SUFFIX, parent_of, parts_of, project_of
from sessionary.model import Cursor, Header, Item, Problem, SessionRef
from sessionary.xdg import data_folder

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold


class RecordsLayout(AgentLayout):
    """The sessions that the plugs of this package stored below one folder.

    The folder has one folder for each framework, or holds the sessions itself.
    """

    name: ClassVar[str] = "records"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS})
    places: ClassVar[tuple[str, ...]] = tuple(f"{name}/" for name in FRAMEWORKS)

    @classmethod
    def default_home(cls) -> Path:
        return Path(data_folder() or os.path.expanduser("~/.local/share/sessionary"))

    def _files(self) -> Iterator[str]:
        for folder in (str(self.home), *(f"{self.home}/{name}" for name in FRAMEWORKS)):
            yield from (f"{folder}/{name}" for name in self._names(folder) if name.endswith(SUFFIX))

    def _ref(self, path: str) -> SessionRef | None:
        parts = parts_of(os.path.basename(path))
        if parts is None:
            return None
        return SessionRef(self.name, parts[1], path, self._project(path))

    def _project(self, path: str) -> str:
        """The project of a session; that of a sub-agent is in the project of the session that it belongs to."""
        project = project_of(path)
        return os.path.dirname(project) if parent_of(path) else project

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        from sessionary.layouts.records.reading import (
            framework_in,  # here and below: a plain list reads nothing
        )

        agent = fold.fact("agent") or framework_in(self._fs, ref) or self.name
        return replace(super().header(ref, fold), agent=agent)

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        from sessionary.layouts.jsonl import may_hold
        from sessionary.layouts.records.reading import read_records

        if may_match is not None and not may_hold(self._fs, ref.locator, may_match):
            return iter(())
        return read_records(self._fs, ref, after)

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        return self.read(ref, after)

    def repair(self, ref: SessionRef, *, dry_run: bool) -> MovedAside:
        from sessionary.layouts.records import changes

        return changes.repair(self._fs, ref, dry_run=dry_run)

    def rewind(self, ref: SessionRef, turn: int, *, dry_run: bool) -> Rewinding:
        from sessionary.layouts.records import changes

        return changes.rewind(self._fs, ref, turn, dry_run=dry_run)

    def fork(self, ref: SessionRef, turn: int | None, session_id: str | None, *, dry_run: bool) -> Forked:
        from sessionary.layouts.records import changes

        return changes.fork(self._fs, ref, turn, session_id, dry_run=dry_run)

    def check_chain(self, ref: SessionRef, kept: ChainHead | None) -> tuple[list[Problem], ChainHead | None]:
        from sessionary.layouts.records.chain import check_chain

        return check_chain(self._fs, ref, kept)
