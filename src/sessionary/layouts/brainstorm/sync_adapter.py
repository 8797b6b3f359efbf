"""Brainstorm sessions from another machine. Two versions of one become two sessions: both are kept.

A session is one file; on the remote it is named `session.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from sessionary.codec.yaml_edit import edit_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import not_found, read_bytes, stat_or_none
from sessionary.errors import Corrupt, SchemaError, Unsupported
from sessionary.layouts.brainstorm import trash
from sessionary.layouts.brainstorm.constants import SUFFIX, check_slug, is_id, session_id
from sessionary.layouts.brainstorm.files import SessionFiles
from sessionary.layouts.brainstorm.layout import BrainstormLayout
from sessionary.layouts.brainstorm.reading import parse, refusal
from sessionary.layouts.files import Part, PartKind
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.model import Problem, SessionRef
from sessionary.transcript.fold import Fold

FILE = "session.yaml"
TIMEOUT: Final = 30.0


class BrainstormSyncLayout(BrainstormLayout, SyncLayout):
    """The brainstorm sessions of one project, for synchronisation."""

    def project(self) -> str | None:
        return self._ref(f"{self._folder}/any{SUFFIX}").project

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        self.refuse_other_project(project, session_id)
        return self._ref(f"{self._folder}/{check_slug(session_id)}{SUFFIX}")

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        for part in super().parts(ref):
            if part.kind is PartKind.DOCUMENT:
                yield part._replace(name=FILE)

    def single_file(self, session_id: str) -> str | None:
        return FILE

    def part_kind(self, name: str) -> PartKind | None:
        return PartKind.DOCUMENT if name == FILE else None

    def rule(self, name: str) -> Rule:
        return Rule(Policy.FORK)

    def faults(self, name: str, data: bytes) -> list[Problem]:
        try:
            return parse(data, name, None).faults.problems()
        except (Corrupt, SchemaError) as error:
            return [refusal(error, name)]
        except Unsupported:
            return []

    @contextmanager
    def lock(self, ref: SessionRef) -> Iterator[None]:
        if stat_or_none(self._fs, ref.locator) is None:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found")
        with SessionFiles(self._folder, self._fs, TIMEOUT).held(ref.session_id):
            if stat_or_none(self._fs, ref.locator) is None:
                raise not_found(ref.locator, f"Session '{ref.session_id}' not found")
            yield

    def parent(self, ref: SessionRef) -> str | None:
        return self.header(ref, Fold()).parent

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        data = read_bytes(self._fs, ref.locator)
        if data is None:
            return
        try:
            document = parse(data, ref.locator, ref.session_id).migrated.document
        except (Corrupt, SchemaError, Unsupported):
            return  # an unreadable file stays unchanged
        session = document.get("session")
        if not isinstance(session, dict) or session.get("slug") == ref.session_id:
            return
        dated = str(session.get("id") or "")[-10:]
        named = f"{ref.session_id}-{dated}"
        session["slug"] = ref.session_id
        session["id"] = named if is_id(named, ref.session_id) else session_id(ref.session_id, now)
        session["parent_id"] = parent
        atomic.replace(ref.locator, (edit_yaml(data, document, path=ref.locator),), fs=self._fs)

    def trash(self, ref: SessionRef, now: datetime) -> None:
        trash.discard(self._fs, ref.locator, now, erase=False)
