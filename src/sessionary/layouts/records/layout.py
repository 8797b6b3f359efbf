"""The sessions of agent frameworks as a layout: `<framework>/<id>.records` below the data folder. Read side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.abilities import ChainHead
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.changing import Forked, MovedAside, Rewinding, Trashed, Undoable
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
    turn_unit: ClassVar[str] = "turn"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.NESTS, Capability.REPAIR, Capability.REWIND, Capability.FORK, Capability.TRASH}
    )
    places: ClassVar[tuple[str, ...]] = tuple(f"{name}/" for name in FRAMEWORKS)

    @classmethod
    def default_home(cls) -> Path:
        return Path(data_folder() or os.path.expanduser("~/.local/share/sessionary"))

    def _folders(self) -> Iterator[str]:
        yield from (str(self.home), *(f"{self.home}/{name}" for name in FRAMEWORKS))

    def _files(self) -> Iterator[str]:
        for folder in self._folders():
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

    def refused(self, ref: SessionRef) -> frozenset[str]:
        from sessionary.layouts.records import changes

        return changes.refused(self._fs, ref)

    def undo(self, ref: SessionRef) -> int:
        from sessionary.layouts.records import changes

        return changes.undo(self._fs, ref)

    def move_to_trash(self, ref: SessionRef, now: datetime) -> str:
        from sessionary.layouts.records import trash

        with trash.held(self._fs, ref, note="trash"):
            return trash.discard(self._fs, ref.locator, now)

    def restore(self, ref: SessionRef) -> None:
        from sessionary.layouts.records import trash

        trash.restore(self._fs, ref)

    def trashed(self, closed: list[StorageFailed]) -> Iterator[Trashed]:
        from sessionary.layouts.records import trash

        for folder in self._folders():
            for row in trash.rows(self._fs, folder, closed):
                ref = self._ref(f"{folder}/{row.session_id}")
                if ref is not None:
                    stored = SessionRef(self.name, ref.session_id, row.path, ref.project)
                    yield Trashed(ref, stored, row.at, trash.size_of(self._fs, row.path))

    def delete_trashed(self, stored: SessionRef) -> bool:
        from sessionary.layouts.records import trash

        return trash.delete(self._fs, stored.locator)

    def undoable(self, ref: SessionRef | None, closed: list[StorageFailed]) -> Iterator[Undoable]:
        from sessionary.layouts.records.undoing import caused

        for one in self.trashed(closed):
            if ref is None or one.ref.locator == ref.locator:
                yield Undoable(one.ref, "trash", one.at, one.size, one.stored.locator, {})
        for found in self._all_files(closed) if ref is None else [ref]:
            try:
                records = caused(self._fs, found.locator)
            except NotFound:
                continue
            except StorageFailed as error:
                closed.append(error)
                continue
            for record in records:
                yield Undoable(
                    found, record.cause.operation, record.stamp, 0, found.locator, record.cause.facts
                )

    def _all_files(self, closed: list[StorageFailed]) -> Iterator[SessionRef]:
        try:
            yield from self.discover()
        except StorageFailed as error:
            closed.append(error)

    def check_chain(self, ref: SessionRef, kept: ChainHead | None) -> tuple[list[Problem], ChainHead | None]:
        from sessionary.layouts.records.chain import check_chain

        return check_chain(self._fs, ref, kept)
