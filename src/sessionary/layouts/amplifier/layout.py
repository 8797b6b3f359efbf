"""The read side of an amplifier home: `projects/<project>/sessions/<id>/`.

A session is a folder of that depth, not hidden, with at least one file that is not hidden. What else lies there
(the trash, projects without sessions, files beside the folders) belongs to others and is passed over.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from sessionary.disk.fs import OS_FS, Fs, not_found, storage_failed
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier import checking
from sessionary.layouts.amplifier.conversation import read_entries
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, is_top_level_session
from sessionary.layouts.amplifier.listing import is_session, summarize, unreadable_summary
from sessionary.layouts.amplifier.recovery import CONFIG, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.base import Capability, Part, PartKind
from sessionary.model import Cursor, Entry, Problem, SessionRef, Summary

# Sub-sessions are called `<parent span>-<own span>_<agent>`, earlier `<id of the parent>-<own span>_<agent>`.
_OWN_SPAN = re.compile(r".*-([0-9a-f]{16})_", re.DOTALL)

_PARTS = {
    METADATA: PartKind.DOCUMENT,
    TRANSCRIPT: PartKind.JOURNAL,
    EVENTS: PartKind.JOURNAL,
    CONFIG: PartKind.DOCUMENT,
}


class AmplifierLayout:
    """The sessions below one amplifier home. Reads only; no method makes, locks or changes anything.

    Args:
        home: the folder that holds `projects/`. It need not exist: then there are no sessions.
        fs: the file system.
        now: the time in seconds since 1970, to tell leftovers from files that are being written.
    """

    name: ClassVar[str] = "amplifier"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(self, home: Path, fs: Fs = OS_FS, *, now: Callable[[], float] = time.time) -> None:
        self.home = home
        self._fs = fs
        self._now = now

    def discover(self) -> Iterator[SessionRef]:
        for ref, folder, names in self._folders():
            if isinstance(names, OSError) or is_session(self._fs, folder, names):
                yield ref

    def at(self, folder: Path) -> SessionRef | None:
        folder = folder.absolute()
        try:
            names = self._fs.listdir(str(folder))
        except OSError:
            return None
        if not is_session(self._fs, str(folder), names):
            return None
        in_project = folder.parent.name == SESSIONS
        return SessionRef(self.name, folder.name, folder, folder.parent.parent.name if in_project else None)

    def handle(self, ref: SessionRef) -> str:
        own = None if is_top_level_session(ref.session_id) else _OWN_SPAN.match(ref.session_id)
        return ref.session_id[own.start(1) :] if own else ref.session_id

    def summaries(self) -> Iterator[Summary]:
        now = self._now()
        for ref, folder, names in self._folders():
            if isinstance(names, OSError):
                yield unreadable_summary(ref, folder, names)
            elif is_session(self._fs, folder, names):
                try:
                    yield summarize(self._fs, ref, folder, names, now)
                except FileNotFoundError:
                    continue  # moved to the trash since its name was read

    def summary(self, ref: SessionRef) -> Summary:
        return self._summary(ref, thorough=False)

    def _summary(self, ref: SessionRef, *, thorough: bool) -> Summary:
        folder = str(ref.path)
        try:
            names = self._fs.listdir(folder)
            return summarize(self._fs, ref, folder, names, self._now(), thorough=thorough)
        except FileNotFoundError:
            raise not_found(folder, f"Session '{ref.session_id}' not found") from None
        except OSError as error:
            return unreadable_summary(ref, folder, error)

    def entries(self, ref: SessionRef, after: Cursor | None = None) -> Iterator[Entry]:
        return read_entries(self._fs, f"{ref.path}/{TRANSCRIPT}", after)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        folder = str(ref.path)
        try:
            for name in sorted(self._fs.listdir(folder)):
                if not name.startswith("."):
                    path = f"{folder}/{name}"
                    yield Part(name, path, _PARTS.get(name, PartKind.KEPT), self._fs.stat(path).st_size)
        except OSError as error:
            raise storage_failed(error, "read", folder, session=ref.session_id) from error

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        yield from self._summary(ref, thorough=True).problems
        yield from checking.event_log_problems(self._fs, f"{ref.path}/{EVENTS}")

    def _folders(self) -> Iterator[tuple[SessionRef, str, list[str] | OSError]]:
        """Every folder that may be a session, with the names in it, or the reason why they cannot be read.

        A project that cannot be looked into is told at the end, so that it hides none of the others.
        """
        closed: list[StorageFailed] = []
        root = f"{self.home}/{PROJECTS}"
        for project in self._names(root, closed):
            sessions = f"{root}/{project}/{SESSIONS}"
            base = Path(sessions)
            for name in self._names(sessions, closed):
                folder = f"{sessions}/{name}"
                try:
                    names: list[str] | OSError = self._fs.listdir(folder)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    names = error
                yield SessionRef(self.name, name, base / name, project), folder, names
        if closed:
            first = closed[0]
            first.details["folders"] = [error.path for error in closed]
            raise first

    def _names(self, folder: str, closed: list[StorageFailed]) -> list[str]:
        """The names in a folder that are not hidden; none if it is not there or not a folder."""
        try:
            return [name for name in self._fs.listdir(folder) if name[0] != "."]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            closed.append(storage_failed(error, "look into", folder))
            return []
