"""The read side of a root of work sessions.

A session is a folder with a session.json, at any depth below the root. Its conversation are its breadcrumbs, in the
order of their times, each as the messages that it stands for (see `messages`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sessionary.disk.fs import (
    OS_FS,
    Fs,
    is_file,
    is_folder,
    not_found,
    placeholder_name,
    require_regular,
    size_of,
    stat_or_none,
    storage_errors,
)
from sessionary.errors import NotFound, SessionaryError, StorageFailed
from sessionary.layouts import conflict_copies
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.clock import changed_at, last_change
from sessionary.layouts.conflict_copies import copy_of, is_there, not_downloaded
from sessionary.layouts.files import Location, Part, PartKind, location_of, raise_joined
from sessionary.layouts.fingerprints import UNKNOWN, fingerprint_of
from sessionary.layouts.jsonl import raw_record
from sessionary.layouts.maestro import checking
from sessionary.layouts.maestro.breadcrumbs import YOUNG, crumb_files, in_order, read_boxes, unreadable
from sessionary.layouts.maestro.lost import lost_problems
from sessionary.layouts.maestro.messages import messages_of
from sessionary.layouts.maestro.names import BREADCRUMBS, LOG, ROOT, SESSION
from sessionary.layouts.maestro.paths import mailboxes, walk
from sessionary.layouts.maestro.records import WorkSession
from sessionary.layouts.maestro.session_file import (
    edit_session,
    locked,
    problem_of,
    read_session,
    session_in,
    zone_in,
)
from sessionary.layouts.maestro.times import parse_time, zone_signature
from sessionary.model import Cursor, Header, Item, Place, Problem, SessionRef, Severity, from_start
from sessionary.transcript.fold import short_title

if TYPE_CHECKING:
    from sessionary.transcript.fold import Fold

KIND = "work"
AGENT = "maestro"


class MaestroLayout:
    """The work sessions below one root. Only `set_name` locks or changes anything.

    Args:
        home: the root. It need not exist: then there are no sessions.
        project: what lists call the project of these sessions.
        now: the time in seconds since 1970, to distinguish damaged breadcrumbs from those that are being written.
    """

    name: ClassVar[str] = KIND
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RENAME})
    side_files: ClassVar[tuple[str, ...]] = (
        ".lock",
        ".mailbox.*.lock",
        ".trash/",
        ".*.owner",
        ".*.tmp",
        "log.jsonl",
        "log.*.jsonl",
        "attempts.*.jsonl",
        "error/",
        "*.backup",
        "*.before-*",
        "*.conflict-*",
        "*.corrupt-*",
        "*.torn-*",
    )

    def __init__(
        self, home: Path, fs: Fs = OS_FS, *, project: str | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.home = home
        self._root = os.path.abspath(home)
        self._fs = fs
        self._project = project
        self._now = now

    def locations(self) -> Iterator[Location]:
        yield location_of(self._fs, self._root)

    def discover(self) -> Iterator[SessionRef]:
        closed: list[StorageFailed] = []
        for place in walk(self._fs, self._root, closed):
            if place.is_session:
                yield self._ref(place.folder)
        raise_joined(closed)

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = os.path.abspath(folder)
        try:
            return self._ref(path) if SESSION in self._fs.listdir(path) else None
        except OSError:
            return None

    def short_key(self, ref: SessionRef) -> str:
        return ref.session_id

    def fingerprint(self, ref: SessionRef) -> bytes:
        """As `Layout.fingerprint`. Times without a zone hold for one zone, so that is a part of it."""

        def of(folder: str, wanted: Callable[[str], bool]) -> bytes:
            salt = f"{zone_signature()} {os.path.relpath(folder, ref.locator)}"
            now = self._now()
            return fingerprint_of(self._fs, folder, now, settled=YOUNG, wanted=wanted, salt=salt)

        boxes = self._boxes(ref)
        found = [of(ref.locator, _is_own), *(of(box, _is_own) for box in boxes if box != ref.locator)]
        if os.path.dirname(ref.locator) != self._root and boxes == [ref.locator]:
            # The original gives a child a second mailbox at the top: that it has none shows in the root.
            found.append(of(self._root, lambda path: False))
        return b"".join(found) if all(found) else UNKNOWN

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        folder, path, now = ref.locator, f"{ref.locator}/{SESSION}", self._now()
        try:
            place, names = self._fs.stat(folder), self._fs.listdir(folder)
        except FileNotFoundError:
            raise _gone(ref) from None
        except OSError as error:
            return Header(AGENT, problems=[unreadable(folder, error)])
        session, problems, listed = self._document(ref)
        problems += conflict_copies.problems(self._fs, folder, names, (SESSION, LOG), ref.session_id)
        stated = [("the newest breadcrumb", fold.updated)]
        if session is not None:
            stated.append(("modified", parse_time(session.modified)))
        changed = changed_at(now, place.st_mtime, place.st_ctime)
        updated, late = last_change(stated, changed, now, path)
        metadata = {} if session is None else session.metadata
        files = [f"{folder}/{name}" for name in names if name[0] != "."]
        files += [file.path for box in self._boxes(ref) for file in crumb_files(self._fs, box, [])]
        return Header(
            AGENT,
            None if session is None else _title(session),
            None if session is None else session.parent,
            None if session is None else parse_time(session.created),
            updated,
            sum(_size(self._fs, file) for file in files),
            problems=[*problems, *late],
            listed=listed,
            cwd=_text(metadata.get("git_root")),
            branch=_text(metadata.get("git_branch")),
        )

    def read(
        self, ref: SessionRef, after: Cursor | None = None, may_match: MayMatch | None = None
    ) -> Iterator[Item]:
        return from_start(self._items(ref), after)

    def _items(self, ref: SessionRef) -> Iterator[Item]:
        if self._is_gone(ref):
            raise _gone(ref)
        zone = zone_in(self._fs, ref.locator)
        closed: list[Problem] = []
        reads = list(read_boxes(self._fs, self._boxes(ref), closed, now=self._now()))
        yield from closed
        yield from (problem for _, read in reads for problem in read.problems)
        for file, crumb in in_order(reads):
            yield from messages_of(crumb, file.path, zone)

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        return raw_record(self._fs, ref, place)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        folder = ref.locator
        with storage_errors("read", folder, session=ref.session_id):
            for name in sorted(self._fs.listdir(folder)):
                path = f"{folder}/{name}"
                if name[0] == "." or is_folder(self._fs, path):
                    continue
                if (size := size_of(self._fs, path)) is not None:
                    yield Part(name, path, _kind(name), size)
            for box in self._boxes(ref):
                for file in crumb_files(self._fs, box):
                    name = f"{BREADCRUMBS}/{file.file}"
                    if (size := size_of(self._fs, file.path)) is not None:
                        yield Part(name, file.path, PartKind.DOCUMENT, size)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.layouts.summary import summary_of  # here: a plain list does not need it

        yield from summary_of(self, ref).problems
        boxes = self._boxes(ref)
        yield from checking.mailbox_problems(self._root, ref.locator, boxes)
        # The summary has the problems of unreadable folders and documents.
        yield from checking.crumb_problems(read_boxes(self._fs, boxes, [], now=self._now()))
        if (session := session_in(self._fs, ref.locator)) is not None:
            yield from checking.neighbour_problems(self._fs, self._root, ref.locator, session)

    def set_name(self, ref: SessionRef, name: str | None) -> str | None:
        """As `Renames.set_name`: the name is the purpose. Without one, the title is that of the related entity.

        Durability: as `Renames.set_name`.
        """
        before: list[str | None] = []

        def change(session: WorkSession) -> None:
            before.append(session.purpose)
            session.purpose = None if name is None else " ".join(name.split()) or None

        with locked(self._fs, ref.locator):
            edit_session(f"{ref.locator}/{SESSION}", change, fs=self._fs)
        return before[0]

    def check_home(self) -> Iterator[Problem]:
        """As `ChecksHome.check_home`: breadcrumbs that belong to no session, and sessions not on this device."""
        yield from lost_problems(self._fs, self._root)
        for place in walk(self._fs, self._root, []):
            placeholder = f"{place.folder}/{placeholder_name(SESSION)}"
            if not place.is_session and is_there(self._fs, placeholder):
                yield not_downloaded(placeholder, f"{place.name}/{SESSION}")

    def _ref(self, folder: str) -> SessionRef:
        return SessionRef(self.name, os.path.basename(folder), folder, self._project)

    def _boxes(self, ref: SessionRef) -> list[str]:
        return mailboxes(self._fs, self._root, ref.session_id, ref.locator)

    def _is_gone(self, ref: SessionRef) -> bool:
        """True if a session has no document, nor a placeholder of one. One that cannot be looked at is there."""
        try:
            found = stat_or_none(self._fs, f"{ref.locator}/{SESSION}")
        except StorageFailed:
            return False
        return found is None and not is_there(self._fs, f"{ref.locator}/{placeholder_name(SESSION)}")

    def _document(self, ref: SessionRef) -> tuple[WorkSession | None, list[Problem], bool]:
        """The session of a folder, what is wrong with its document, and whether lists show it."""
        path = f"{ref.locator}/{SESSION}"
        try:
            session = read_session(path, fs=self._fs)
        except NotFound:
            raise _gone(ref) from None
        except SessionaryError as error:
            return None, [problem_of(path, error)], not error.details.get("legacy")
        if session.session_id == ref.session_id:
            return session, [], True
        words = f"the folder has another name than its session, {session.session_id}; the document is used"
        return session, [Problem.of_file("id_differs", Severity.note, path, words)], True


def _is_own(path: str) -> bool:
    """False for what belongs to the sessions below, and for hidden files, as locks are."""
    first, _, rest = path.partition("/")
    return not path.rpartition("/")[2].startswith(".") and (not rest or first == BREADCRUMBS)


def _gone(ref: SessionRef) -> NotFound:
    return not_found(ref.locator, f"Work session '{ref.session_id}' not found")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _title(session: WorkSession) -> str | None:
    """The purpose of the session, else the name of its entity."""
    texts = (session.purpose, *map(session.related_entity.get, ("name", "id", "track_id")))
    return next((title for text in texts if isinstance(text, str) and (title := short_title(text))), None)


def _size(fs: Fs, path: str) -> int:
    """The bytes of a file; 0 for anything else."""
    try:
        return require_regular(fs.stat(path)).st_size
    except OSError:
        return 0


def _kind(name: str) -> PartKind:
    if name == SESSION:
        return PartKind.DOCUMENT
    is_journal = name.endswith(".jsonl") and copy_of(name) is None
    return PartKind.JOURNAL if is_journal else PartKind.KEPT


def root_in(fs: Fs, folder: Path) -> Path:
    """The root that a folder means.

    That is `docs/sessions` in it if that is there; else the folder itself if it is a `docs/sessions`, or a folder in it
    holds a session.json; else the place where `docs/sessions` would be. Only names one level down are looked at: a home
    may be large.
    """
    custom = folder / ROOT
    if is_folder(fs, str(custom)):
        return custom
    if folder.absolute().as_posix().endswith(f"/{ROOT}"):
        return folder
    try:
        names = fs.listdir(str(folder))
    except OSError:
        return custom
    return folder if any(is_file(fs, f"{folder}/{name}/{SESSION}") for name in names) else custom


def project_of(root: Path) -> Path:
    """The folder of the project to which a root belongs."""
    path = root.absolute()
    return path.parents[1] if path.as_posix().endswith(f"/{ROOT}") else path
