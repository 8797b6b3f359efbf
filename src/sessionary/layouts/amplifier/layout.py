"""The read side of an amplifier home: `projects/<project>/sessions/<id>/`.

A session is a folder of that depth, not hidden, with at least one file that is not hidden. What else is there
(the trash, projects without sessions, files beside the folders) belongs to others and is passed over.

What reads sessions is imported where it is called: a list that remembers them all reads none, and should not wait.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sessionary.disk.fs import (
    OS_FS,
    Fs,
    is_file,
    names_in,
    not_found,
    size_of,
    storage_errors,
    storage_failed,
)
from sessionary.errors import StorageFailed
from sessionary.layouts.abilities import KnownTime, Recency
from sessionary.layouts.amplifier.files import BACKUP, CONFIG, EVENTS, METADATA, TEMP, TRANSCRIPT
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS
from sessionary.layouts.base import Capability, MayMatch
from sessionary.layouts.files import Location, Part, PartKind, location_of, raise_joined
from sessionary.layouts.fingerprints import fingerprint_of
from sessionary.layouts.jsonl import raw_record, recency
from sessionary.model import Cursor, Header, Item, Place, Problem, Reset, SessionRef

if TYPE_CHECKING:
    from sessionary.codec.seen import RisingTimes
    from sessionary.layouts.changing import Trashed, Undoable
    from sessionary.transcript.fold import Fold

# Sub-sessions are called `<parent span>-<own span>_<agent>`, earlier `<id of the parent>-<own span>_<agent>`.
_OWN_SPAN = r"(?s).*-([0-9a-f]{16})_"

PARTS = {
    METADATA: PartKind.DOCUMENT,
    TRANSCRIPT: PartKind.JOURNAL,
    EVENTS: PartKind.LOG,
    CONFIG: PartKind.DOCUMENT,
}

# In a project any file makes a folder a session. Anywhere else it takes one of these, or every folder would be one.
_OWN_FILES = frozenset(name + suffix for name in (TRANSCRIPT, METADATA, EVENTS) for suffix in ("", BACKUP))


class AmplifierLayout:
    """The sessions below one amplifier home. Only the methods of `Trashes` lock or change anything.

    Args:
        home: the folder that holds `projects/`. It need not exist: then there are no sessions.
        now: the time in seconds since 1970, to distinguish leftovers from files that are being written.
    """

    name: ClassVar[str] = "amplifier"
    messages_in_lines: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)
    side_files: ClassVar[tuple[str, ...]] = (
        ".lock",
        ".in-use",
        ".trash/",
        ".cleaned-up/",
        ".undo/",
        ".*.tmp",
        "*.backup",
        "*.before-*",
        "*.conflict-*",
        "*.corrupt-*",
        "*.torn-*",
    )

    def __init__(self, home: Path, fs: Fs = OS_FS, *, now: Callable[[], float] = time.time) -> None:
        self.home = home
        self._fs = fs
        self._now = now

    def resume_command(self, ref: SessionRef) -> list[str]:
        return ["amplifier", "session", "resume", ref.session_id]

    def locations(self) -> Iterator[Location]:
        yield location_of(self._fs, str(self.home))

    def discover(self) -> Iterator[SessionRef]:
        for project, sessions, names in self._sessions():
            for name in names:
                folder = f"{sessions}/{name}"
                if self._is_session(folder):
                    yield SessionRef(self.name, name, folder, project)

    def stores(self) -> Iterator[tuple[str, str]]:
        """Every readable project and its folder of sessions, also where that holds none but a trash."""
        for project, sessions, _ in self._sessions():
            yield project, sessions

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        folder = folder.absolute()
        try:
            names = self._fs.listdir(str(folder))
        except OSError:
            return None
        if _OWN_FILES.isdisjoint(names):
            return None
        in_project = folder.parent.name == SESSIONS
        return SessionRef(
            self.name, folder.name, str(folder), folder.parent.parent.name if in_project else None
        )

    def short_key(self, ref: SessionRef) -> str:
        name = ref.session_id
        if "_" not in name:  # as `is_top_level_session`, which costs a call for each of ten thousand
            return name
        own = re.match(_OWN_SPAN, name)
        return name[own.start(1) :] if own else name

    def fingerprint(self, ref: SessionRef) -> bytes:
        return fingerprint_of(self._fs, ref.locator, self._now(), passing=TEMP.fullmatch)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        from sessionary.layouts.amplifier.header import header

        try:
            return header(self._fs, ref, fold, self._now())
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None
        except OSError:
            return Header()  # reported by `read`

    def read(
        self,
        ref: SessionRef,
        after: Cursor | None = None,
        may_match: MayMatch | None = None,
        *,
        times: RisingTimes | None = None,
    ) -> Iterator[Item]:
        from sessionary.layouts.amplifier.reading import (
            read_transcript,
        )  # here, since a list needs no messages

        if TRANSCRIPT in self._files(ref):
            path = f"{ref.locator}/{TRANSCRIPT}"
            yield from read_transcript(self._fs, path, after, may_match, times)
        elif after is not None:
            yield Reset()

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        return raw_record(self._fs, ref, place)

    def _files(self, ref: SessionRef) -> list[str]:
        """The names in the folder of a session. Raises NotFound and StorageFailed."""
        try:
            return self._fs.listdir(ref.locator)
        except FileNotFoundError:
            raise not_found(ref.locator, f"Session '{ref.session_id}' not found") from None
        except OSError as error:
            raise storage_failed(error, "read", ref.locator, session=ref.session_id) from error

    def stated_title(self, ref: SessionRef) -> str | None:
        from sessionary.layouts.amplifier.header import stated_name  # here, since only a search needs it

        return stated_name(self._fs, ref.locator)

    def recency(self, ref: SessionRef, known: KnownTime | None = None) -> Recency:
        # Its fingerprint would take more system calls than the end of its transcript.
        return recency(self._fs, f"{ref.locator}/{TRANSCRIPT}", self._now())

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        folder = ref.locator
        with storage_errors("read", folder, session=ref.session_id):
            for name in sorted(self._fs.listdir(folder)):
                if not name.startswith("."):
                    path = f"{folder}/{name}"
                    if (size := size_of(self._fs, path)) is not None:
                        yield Part(name, path, PARTS.get(name, PartKind.KEPT), size)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.codec.seen import RisingTimes
        from sessionary.layouts.amplifier.checking import config_problems, event_log_problems, lost_problems
        from sessionary.layouts.amplifier.reading import repeated_records
        from sessionary.layouts.summary import summary_of

        times = RisingTimes()
        yield from summary_of(self, ref, self.read(ref, times=times)).problems
        if not times.hold:
            yield from repeated_records(self._fs, f"{ref.locator}/{TRANSCRIPT}")
        yield from lost_problems(self._fs, ref.locator)
        try:
            names = self._files(ref)
        except StorageFailed:
            return  # reported above
        if CONFIG in names:
            yield from config_problems(self._fs, f"{ref.locator}/{CONFIG}")
        if EVENTS in names:
            yield from event_log_problems(self._fs, f"{ref.locator}/{EVENTS}")

    def move_to_trash(self, ref: SessionRef, now: datetime) -> str:
        from sessionary.layouts.amplifier.store import store_of
        from sessionary.layouts.trash import TRASH, newest

        store_of(self._fs, ref, now).delete(ref.session_id)
        root, name = os.path.split(os.path.realpath(ref.locator))
        there = newest(self._fs, root, name)
        return os.path.join(root, TRASH, *there) if there else ""  # it may be restored by now

    def trashed(self, closed: list[StorageFailed]) -> Iterator[Trashed]:
        from sessionary.layouts.amplifier.undo_index import in_trash

        for root, ref_of in self._roots(closed):
            yield from in_trash(self._fs, root, ref_of, closed)

    def delete_trashed(self, stored: SessionRef) -> bool:
        from sessionary.layouts.amplifier.trash import empty
        from sessionary.layouts.trash import Trashed as InTrash

        folder, name = os.path.split(stored.locator)
        trash, at = os.path.split(folder)
        return bool(empty(self._fs, os.path.dirname(trash), [InTrash(name, at, stored.locator)]))

    def undoable(self, ref: SessionRef | None, closed: list[StorageFailed]) -> Iterator[Undoable]:
        from sessionary.layouts.amplifier.undo_index import undoable

        if ref is not None:
            root = os.path.dirname(ref.locator)
            yield from undoable(self._fs, root, partial(self._ref, root, ref.project), ref.session_id, closed)
            return
        for root, ref_of in self._roots(closed):
            yield from undoable(self._fs, root, ref_of, None, closed)

    def restore(self, ref: SessionRef) -> None:
        from sessionary.layouts.amplifier.trash import bring_back

        bring_back(self._fs, os.path.dirname(ref.locator), ref.session_id)

    def _roots(self, closed: list[StorageFailed]) -> Iterator[tuple[str, Callable[[str], SessionRef]]]:
        """Every folder of sessions, and a function from ids to references."""
        try:
            for project, root in self.stores():
                yield root, partial(self._ref, root, project)
        except StorageFailed as error:
            closed.append(error)

    def _ref(self, root: str, project: str | None, name: str) -> SessionRef:
        return SessionRef(self.name, name, os.path.join(root, name), project)

    def _sessions(self) -> Iterator[tuple[str, str, list[str]]]:
        """Every project, its folder of sessions, and the names in it that may be sessions.

        A project that cannot be read is reported at the end, so that it hides none of the others.
        """
        closed: list[StorageFailed] = []
        root = f"{self.home}/{PROJECTS}"
        for project in self._names(root, closed) or ():
            sessions = f"{root}/{project}/{SESSIONS}"
            names = self._names(sessions, closed)
            if names is not None:
                yield project, sessions, names
        raise_joined(closed)

    def _is_session(self, folder: str) -> bool:
        """True if a folder holds a session; one that cannot be read may."""
        if is_file(self._fs, f"{folder}/{TRANSCRIPT}"):  # most have one; this costs a third of their names
            return True
        from sessionary.layouts.amplifier.header import is_session

        try:
            names = names_in(self._fs, folder)
        except StorageFailed:
            return True
        return names is not None and is_session(self._fs, folder, names)

    def _names(self, folder: str, closed: list[StorageFailed]) -> list[str] | None:
        """The names in a folder that are not hidden; None if it is not there, not a folder, or closed."""
        names = names_in(self._fs, folder, closed)
        return names and [name for name in names if name[0] != "."]
