"""The read side of the brainstorm sessions of a project: `.project-memory/brainstorm-sessions/*.yaml`.

A session is a file here, not a folder: the `folder` of its reference is the path of that file. Archive, trash, backups
and locks lie in the same folder under names that are no session's, and are passed over.

The conversation is what `messages` makes of it: questions and answers, ideas, rounds, in the order of the file. The
bytes of a record are the lines in which that stands; questions and their answers share theirs.
"""

from __future__ import annotations

import os
import stat as stat_module
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from sessionary.codec.yaml_read import as_text, compose
from sessionary.disk.fs import OS_FS, Fs, not_found, storage_failed
from sessionary.errors import Corrupt, SchemaError, StorageFailed, Unsupported
from sessionary.layouts.base import Capability, Location, Part, PartKind, from_start, location_of
from sessionary.layouts.brainstorm.constants import FOLDER, SUFFIX
from sessionary.layouts.brainstorm.messages import SPOKEN, messages_of
from sessionary.layouts.brainstorm.navigation import list_in
from sessionary.layouts.brainstorm.reading import Row, file_bytes, names, not_here, parse, refusal, row_of
from sessionary.layouts.brainstorm.trash import BACKUP
from sessionary.layouts.clock import FUTURE_REMEDY, ahead_message, changed_at, is_ahead
from sessionary.layouts.conflict_copies import copy_of
from sessionary.layouts.fingerprints import UNKNOWN, fingerprint_of
from sessionary.model import (
    Cursor,
    Entry,
    FileCursor,
    Item,
    Problem,
    Record,
    SessionRef,
    Severity,
    Summary,
    health,
)

AGENT = "brainstorm"


class BrainstormLayout:
    """The brainstorm sessions of one project. Reads only; no method makes, locks or changes anything.

    Args:
        root: the folder of the project. It need not exist: then there are no sessions.
        fs: the file system.
        project: what the sessions are said to belong to; by default the name of the project's folder.
        now: the time in seconds since 1970, to tell what was changed a moment ago.
    """

    name: ClassVar[str] = "brainstorm"
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
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

    def locations(self) -> Iterator[Location]:
        yield location_of(self._fs, str(self.home))

    def discover(self) -> Iterator[SessionRef]:
        for slug in names(self._fs, self._folder):
            ref = self._ref(f"{self._folder}/{slug}{SUFFIX}")
            if self._is_file(ref.locator):
                yield ref

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = folder.absolute()
        ours = path.parent.parts[-2:] == tuple(FOLDER.split("/"))
        if not ours or path.suffix != SUFFIX or path.name.startswith(".") or not self._is_file(str(path)):
            return None
        return self._ref(str(path))

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id

    def fingerprint(self, ref: SessionRef) -> bytes:
        if copy_of(os.path.basename(ref.locator), devices=False) is not None:
            return UNKNOWN  # what is reported of a copy depends on the file that it is one of
        return fingerprint_of(self._fs, ref.locator, self._now())

    def summary(self, ref: SessionRef) -> Summary:
        try:
            return _summary_of(ref, *self._row(ref), self._now())
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None

    def entries(self, ref: SessionRef, after: FileCursor | None = None) -> Iterator[Entry]:
        """As `Layout.entries`. A cursor counts messages; every change makes another file, which is read anew."""
        try:
            data, found = file_bytes(self._fs, ref.locator)
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None
        except Corrupt:
            return  # `check` tells why
        except OSError as error:
            raise storage_failed(error, "read", ref.locator, session=ref.session_id) from error
        whole = after is None or (after.device, after.inode) != (found.st_dev, found.st_ino)
        start = 0 if whole or after is None else after.offset
        for index, record in enumerate(islice(_records(data, ref), start, None)):
            yield Entry(index, record, FileCursor(found.st_dev, found.st_ino, start + index + 1))

    def read(self, ref: SessionRef, after: Cursor | None = None) -> Iterator[Item]:
        from sessionary.transcript.typed import typed  # here, since a list needs no messages

        return from_start(typed(self.entries(ref), ref.locator), after)

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
        yield from self.summary(ref).problems

    def check_home(self) -> Iterator[Problem]:
        """As `ChecksHome.check_home`: sessions whose files are not on this device."""
        yield from not_here(self._fs, self._folder)

    def _ref(self, path: str) -> SessionRef:
        folder, name = os.path.split(path)
        project = self._project if folder == self._folder else None
        project = project or os.path.basename(os.path.dirname(os.path.dirname(folder))) or None
        return SessionRef(self.name, name[: -len(SUFFIX)], path, project)

    def _is_file(self, path: str) -> bool:
        try:
            return stat_module.S_ISREG(self._fs.stat(path).st_mode)
        except OSError:
            return False

    def _row(self, ref: SessionRef) -> tuple[Row, os.stat_result | None]:
        """What the file says and its stat from before it was read; no stat if it cannot be read."""
        try:
            data, found = file_bytes(self._fs, ref.locator)
        except FileNotFoundError:
            raise
        except Corrupt as error:
            return Row(ref.session_id, ref.locator, problems=(refusal(error, ref.locator),)), None
        except OSError as error:
            failed: StorageFailed = storage_failed(error, "read", ref.locator, session=ref.session_id)
            return Row(ref.session_id, ref.locator, problems=(refusal(failed, ref.locator),)), None
        return row_of(data, ref.locator, ref.session_id, fs=self._fs), found


def _summary_of(ref: SessionRef, row: Row, found: os.stat_result | None, now: float) -> Summary:
    """What a list shows. A last change that is after the clock is reported; the time of the file counts then."""
    problems = list(row.problems)
    updated = row.updated
    if updated is not None and is_ahead(updated, now):
        message = ahead_message("updated", updated)
        problems.append(
            Problem("future_time", Severity.note, ref.locator, None, None, message, FUTURE_REMEDY)
        )
        changed = changed_at(now, found.st_mtime, found.st_ctime) if found is not None else 0.0
        updated = datetime.fromtimestamp(changed, UTC) if changed else None
    return Summary(
        ref,
        AGENT,
        row.last_question,
        row.parent,
        row.messages,
        row.turns,
        row.iteration,
        row.created,
        updated,
        row.size,
        health(problems),
        problems,
    )


def _records(data: bytes, ref: SessionRef) -> Iterator[Record]:
    """The messages with their place in the file; none if it cannot be read, which `check` tells."""
    try:
        session = parse(data, ref.locator, ref.session_id).migrated.document.get("session")
        root = compose(data)
    except (Corrupt, SchemaError, Unsupported):
        return
    text = as_text(data)
    at_char, at_byte = 0, len(data) - len(text.encode())  # a byte order mark stands before the text
    for node, name, value in _items(root, session) if isinstance(session, dict) else ():
        start, end = node.start_mark.index, node.end_mark.index
        if start < at_char:
            continue  # an alias: its text stands elsewhere
        raw = text[start:end].rstrip().encode()
        at_byte += len(text[at_char:start].encode())
        at_char = start
        for message in messages_of(name, value):
            yield Record(message, node.start_mark.line + 1, at_byte, raw)


def _items(root: Any, session: dict[str, Any]) -> list[tuple[Any, str, dict[str, Any]]]:
    """What was said, in the order of the file: where it stands, in which list, and what it is."""
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
