"""The read side of the brainstorm sessions of a project: `.project-memory/brainstorm-sessions/*.yaml`.

A session is a file here, not a folder: the `folder` of its reference is the path of that file. Archive, trash, backups
and locks are in the same folder, and are skipped by their names.

The conversation is what `messages` makes of it: questions and answers, ideas, rounds, in the order of the file. Each
has the place of the item that it stands for; questions and their answers share theirs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sessionary.codec.yaml_read import as_text, compose
from sessionary.disk.fs import OS_FS, Fs, is_file, not_found, storage_failed
from sessionary.errors import Corrupt, SchemaError, StorageFailed, Unsupported
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.brainstorm.constants import FOLDER, SUFFIX
from sessionary.layouts.brainstorm.messages import SPOKEN, messages_of
from sessionary.layouts.brainstorm.navigation import list_in
from sessionary.layouts.brainstorm.reading import file_bytes, names, not_here, parse, refusal, row_of
from sessionary.layouts.brainstorm.trash import BACKUP
from sessionary.layouts.changing import Rewinding, Trashed, Undoable
from sessionary.layouts.clock import changed_at, last_change
from sessionary.layouts.conflict_copies import copy_of
from sessionary.layouts.files import Location, Part, PartKind, location_of
from sessionary.layouts.fingerprints import UNKNOWN, fingerprint_of, identity_of
from sessionary.layouts.jsonl import raw_record
from sessionary.model import Cursor, Header, Item, Message, Place, Problem, SessionRef, from_start

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

AGENT = "brainstorm"


class BrainstormLayout:
    """The brainstorm sessions of one project. Only the methods of `Reverts` lock or change anything.

    Args:
        root: the folder of the project. It need not exist: then there are no sessions.
        project: the project of the sessions; by default the name of the project's folder.
        now: the time in seconds since 1970, to recognise what was changed a moment ago.
    """

    name: ClassVar[str] = "brainstorm"
    turn_unit: ClassVar[str] = "iteration"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.REWIND, Capability.TRASH})
    side_files: ClassVar[tuple[str, ...]] = (
        ".*.lock",
        ".*.tmp",
        ".trash/",
        ".cleaned-up/",
        "archive/",
        "*.yaml.bak*",
        "*.yaml.before-*",
    )

    def __init__(
        self, root: Path, fs: Fs = OS_FS, *, project: str | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.home = root / FOLDER
        self._folder = str(self.home)
        self._project = project
        self._fs = fs
        self._now = now
        self._last: tuple[tuple[object, ...], tuple[bytes, os.stat_result]] | None = None

    def locations(self) -> Iterator[Location]:
        yield location_of(self._fs, str(self.home))

    def discover(self) -> Iterator[SessionRef]:
        for slug in names(self._fs, self._folder):
            ref = self._ref(f"{self._folder}/{slug}{SUFFIX}")
            if is_file(self._fs, ref.locator):
                yield ref

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = folder.absolute()
        ours = path.parent.parts[-2:] == tuple(FOLDER.split("/"))
        if not ours or path.suffix != SUFFIX or path.name.startswith(".") or not is_file(self._fs, str(path)):
            return None
        return self._ref(str(path))

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id

    def fingerprint(self, ref: SessionRef) -> bytes:
        if copy_of(os.path.basename(ref.locator), devices=False) is not None:
            return UNKNOWN  # what is reported of a copy depends on the file that it is one of
        return fingerprint_of(self._fs, ref.locator, self._now())

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        from sessionary.transcript.fold import short_title

        try:
            data, found = self._bytes(ref)
            row = row_of(data, ref.locator, ref.session_id, fs=self._fs)
        except Corrupt as error:
            return self._header_by_stat(ref, [refusal(error, ref.locator)])
        except StorageFailed:  # reported where the messages are read
            return self._header_by_stat(ref, [])
        updated, notes = self._last_change(ref, found, ("updated", row.updated))
        return Header(
            AGENT,
            short_title(row.last_question),
            row.parent,
            row.created,
            updated,
            row.size,
            row.iteration,
            [*row.problems, *notes],
        )

    def _header_by_stat(self, ref: SessionRef, problems: list[Problem]) -> Header:
        """The header of a file that cannot be read: its time and its size."""
        try:
            found = self._fs.stat(ref.locator)
        except OSError:
            return Header(AGENT, problems=problems)
        return Header(AGENT, updated=self._last_change(ref, found)[0], size=found.st_size, problems=problems)

    def _last_change(
        self, ref: SessionRef, found: os.stat_result, *stated: tuple[str, datetime | None]
    ) -> tuple[datetime | None, list[Problem]]:
        now = self._now()
        return last_change(stated, changed_at(now, found.st_mtime, found.st_ctime), now, ref.locator)

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        """As `Layout.read`. Every change makes another file, so there is no cursor. `header` reports damage."""
        return from_start(self._messages(ref), after)

    def _messages(self, ref: SessionRef) -> Iterator[Message]:
        try:
            data, _ = self._bytes(ref)
            session = parse(data, ref.locator, ref.session_id).migrated.document.get("session")
            root = compose(data)
        except (Corrupt, SchemaError, Unsupported):
            return
        text = as_text(data)
        at_char, at_byte = 0, len(data) - len(text.encode())  # a byte order mark precedes the text
        for node, name, value in _items(root, session) if isinstance(session, dict) else ():
            start = node.start_mark.index
            if start < at_char:
                continue  # an alias: its text is elsewhere
            at_byte += len(text[at_char:start].encode())
            at_char = start
            yield from messages_of(name, value, Place(ref.locator, node.start_mark.line + 1, at_byte))

    def _bytes(self, ref: SessionRef) -> tuple[bytes, os.stat_result]:
        """The file and its stat from before it was read; the last one is kept until it changes.

        Raises:
            NotFound: it is gone.
            Corrupt: it is larger than any session.
        """
        path, last = ref.locator, self._last
        try:
            if last is None or last[0] != (path, *identity_of(self._fs.stat(path))):
                data, found = file_bytes(self._fs, path)
                last = self._last = (path, *identity_of(found)), (data, found)
            return last[1]
        except FileNotFoundError:
            raise not_found(path, f"Session '{ref.session_id}' not found") from None
        except OSError as error:
            raise storage_failed(error, "read", path, session=ref.session_id) from error

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        """As `Layout.raw`: the whole document, of which a record is a part."""
        return raw_record(self._fs, ref, Place(place.path))

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        kinds = ((ref.locator, PartKind.DOCUMENT), (f"{ref.locator}{BACKUP}", PartKind.KEPT))
        for path, kind in kinds:
            try:
                size = self._fs.stat(path).st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_failed(error, "read", path, session=ref.session_id) from error
            yield Part(os.path.basename(path), path, kind, size)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.layouts.summary import summary_of

        yield from summary_of(self, ref).problems

    def refused(self, ref: SessionRef) -> frozenset[str]:
        from sessionary.layouts.brainstorm import changes  # here and below: reading does not need it

        return changes.refused(self._fs, ref)

    def rewind(self, ref: SessionRef, turn: int, *, dry_run: bool) -> Rewinding:
        from sessionary.layouts.brainstorm import changes

        return changes.rewind(self._fs, ref, turn, dry_run=dry_run)

    def undo(self, ref: SessionRef) -> int:
        from sessionary.layouts.brainstorm import changes

        return changes.undo(self._fs, ref)

    def move_to_trash(self, ref: SessionRef, now: datetime) -> str:
        from sessionary.layouts.brainstorm import changes

        return changes.move_to_trash(self._fs, ref, now)

    def restore(self, ref: SessionRef) -> None:
        from sessionary.layouts.brainstorm import changes

        changes.restore(self._fs, ref)

    def trashed(self, closed: list[StorageFailed]) -> Iterator[Trashed]:
        from sessionary.layouts.brainstorm import changes

        return changes.trashed(self._fs, self._folder, self._ref, closed)

    def delete_trashed(self, stored: SessionRef) -> bool:
        from sessionary.layouts.brainstorm import changes

        return changes.delete_trashed(self._fs, stored.locator)

    def undoable(self, ref: SessionRef | None, closed: list[StorageFailed]) -> Iterator[Undoable]:
        from sessionary.layouts.brainstorm import changes

        folder = self._folder if ref is None else os.path.dirname(ref.locator)
        for one in changes.trashed(self._fs, folder, self._ref, closed):
            if ref is None or one.ref.locator == ref.locator:
                yield Undoable(one.ref, "trash", one.at, one.size, one.stored.locator, {})
        try:
            for found in self.discover() if ref is None else [ref]:
                yield from changes.steps_back(self._fs, found)
        except StorageFailed as error:
            closed.append(error)

    def check_home(self) -> Iterator[Problem]:
        """As `ChecksHome.check_home`: sessions whose files are not on this device."""
        yield from not_here(self._fs, self._folder)

    def _ref(self, path: str) -> SessionRef:
        folder, name = os.path.split(path)
        project = self._project if folder == self._folder else None
        project = project or os.path.basename(os.path.dirname(os.path.dirname(folder))) or None
        return SessionRef(self.name, name[: -len(SUFFIX)], path, project)


def _items(root: Any, session: dict[str, Any]) -> list[tuple[Any, str, dict[str, Any]]]:
    """The items that become messages, in the order of the file: node, name of the list, value."""
    found = []
    for name in SPOKEN:
        nodes = _child(_child(root, "session"), name) or _child(
            root, name
        )  # there where a migration put it by mistake
        for value, node in zip(list_in(session, name), getattr(nodes, "value", ()), strict=False):
            if isinstance(value, dict):
                found.append((node, name, value))
    return sorted(found, key=lambda item: item[0].start_mark.index)


def _child(node: Any, key: str) -> Any:
    """The node under a key of a map; None if there is none."""
    pairs = node.value if getattr(node, "id", None) == "mapping" else ()
    return next((child for name, child in pairs if name.value == key), None)
