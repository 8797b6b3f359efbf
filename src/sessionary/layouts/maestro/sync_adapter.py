"""Work sessions from another machine: their folders, and the merge rule of each file.

Breadcrumbs are created once and never changed, so both versions are kept. A ledger of a mailbox is written by
one device; if two did, one line is kept per message. In session.json the changes of both are merged; where
both changed one key, the later change of the document wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from math import inf

from sessionary.codec import Undecodable, decode, encode_document, read_lines, sanitize
from sessionary.disk import atomic
from sessionary.disk.fs import is_folder, stat_or_none
from sessionary.errors import Corrupt, SchemaError
from sessionary.layouts.conflict_copies import copy_of
from sessionary.layouts.fields import Merged, overruled
from sessionary.layouts.files import Part, PartKind
from sessionary.layouts.maestro.breadcrumbs import YOUNG, CrumbFile, crumb_of, read_crumb
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.layouts.maestro.merging import PER_ITEM, PER_KEY, merge
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION, check_id, depth_of, is_crumb_name
from sessionary.layouts.maestro.paths import find_folder
from sessionary.layouts.maestro.records import document_of, session_of
from sessionary.layouts.maestro.session_file import locked, parse_session, problem_of
from sessionary.layouts.maestro.times import parse_time
from sessionary.layouts.sync import Policy, Rule, SyncLayout
from sessionary.layouts.trash import trash_name
from sessionary.model import Problem, SessionRef

_LEDGER = re.compile(r"log(\.[A-Za-z0-9][A-Za-z0-9_-]{0,63})?\.jsonl")
_ATTEMPTS = re.compile(r"attempts\.[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.jsonl")


class MaestroSyncLayout(MaestroLayout, SyncLayout):
    """The work sessions below one root, for synchronisation."""

    def project(self) -> str | None:
        return self._project

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        self.refuse_other_project(project, session_id)
        check_id(session_id)
        folder = find_folder(self._fs, self._root, session_id)
        if folder is None:
            above = None if parent is None else find_folder(self._fs, self._root, parent)
            # The folder of a parent that is not here yet; a later pull fills that folder.
            above = above or (self._root if parent is None else f"{self._root}/{check_id(parent)}")
            folder = f"{above}/{session_id}"
        return SessionRef(self.name, session_id, folder, self._project)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        """As `Layout.parts`, without breadcrumbs that are incomplete."""
        for part in super().parts(ref):
            if self.rule(part.name).policy is not Policy.IMMUTABLE or not self._is_unfinished(part):
                yield part

    def part_kind(self, name: str) -> PartKind | None:
        if name == SESSION or _is_crumb(name):
            return PartKind.DOCUMENT
        if copy_of(name) is not None:
            return None
        return PartKind.JOURNAL if _LEDGER.fullmatch(name) or _ATTEMPTS.fullmatch(name) else None

    def rule(self, name: str) -> Rule:
        if _is_crumb(name):
            return Rule(Policy.IMMUTABLE)
        if _LEDGER.fullmatch(name):
            return Rule(Policy.LEDGER, time="applied_at", key="breadcrumb_id")
        if name == SESSION:
            return Rule(Policy.FIELDS)
        return Rule(Policy.UNION, time="at") if _ATTEMPTS.fullmatch(name) else Rule(Policy.KEEP_BOTH)

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        try:
            before = {} if base is None else document_of(session_of(decode(base)))
            ours, others = (document_of(session_of(decode(data))) for data in (mine, theirs))
        except (Undecodable, SchemaError):
            return None
        ours_last = _later(ours, others)
        later, earlier = (ours, others) if ours_last else (others, ours)
        document = merge(before, later, earlier)
        gave_way = overruled(before, earlier, document, ignore=("modified",), within=PER_KEY, united=PER_ITEM)
        return Merged(encode_document(sanitize(document)), ours_last, tuple(gave_way))

    def faults(self, name: str, data: bytes) -> list[Problem]:
        if name == SESSION:
            try:
                parse_session(data, name)
            except (Corrupt, SchemaError) as error:
                return [problem_of(name, error)]
            return []
        if _is_crumb(name):
            depth = depth_of(name.split("/")[1]) or 0
            return list(crumb_of(CrumbFile(os.path.basename(name), depth, name), data, age=inf).problems)
        return read_lines(data, name).problems

    def lock(self, ref: SessionRef) -> AbstractContextManager[None]:
        return locked(self._fs, ref.locator)

    def parent(self, ref: SessionRef) -> str | None:
        session, _, _ = self._document(ref)
        return None if session is None else session.parent

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        """Work sessions never diverge into two: no file of theirs has such a policy."""

    def trash(self, ref: SessionRef, now: datetime) -> None:
        """As `SyncLayout.trash`. Files in its folder that belong to sessions below it stay in place."""
        trash = trash_name(self._fs, self._root, ref.session_id, now)
        names = sorted(self._fs.listdir(ref.locator), key=lambda name: (name != SESSION, name))
        own = [name for name in names if not self._is_other(f"{ref.locator}/{name}", name)]
        if len(own) == len(names):
            atomic.move_folder(ref.locator, trash, fs=self._fs)
            return
        for name in own:  # the document first: without it the folder is not a session
            atomic.move_folder(f"{ref.locator}/{name}", f"{trash}/{name}", fs=self._fs)

    def _is_other(self, path: str, name: str) -> bool:
        """True for the folder of a session below, and for locks, which belong to the folder and not to the session."""
        return name.endswith(".lock") or (
            name != BREADCRUMBS and name[0] != "." and is_folder(self._fs, path)
        )

    def _is_unfinished(self, part: Part) -> bool:
        found = stat_or_none(self._fs, part.path)
        if found is None or found.st_mtime < self._now() - YOUNG:
            return False
        name = os.path.basename(part.path)
        return read_crumb(self._fs, CrumbFile(name, 0, part.path), now=self._now()).unfinished


def _is_crumb(name: str) -> bool:
    segments = name.split("/")
    if len(segments) != 3 or segments[0] != BREADCRUMBS or not segments[2]:
        return False
    return depth_of(segments[1]) is not None and is_crumb_name(segments[2])


def _later(ours: dict[str, object], others: dict[str, object]) -> bool:
    """True if ours was changed last; at the same time, that of the greater document, on both machines.

    A time without a zone is UTC here, whatever its origin: all devices must get the same result.
    """
    mine, theirs = parse_time(ours.get("modified"), UTC), parse_time(others.get("modified"), UTC)
    if mine is None or theirs is None or mine == theirs:
        return (mine is not None, repr(ours)) >= (theirs is not None, repr(others))
    return mine > theirs
