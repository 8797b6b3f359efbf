"""The read side of an amplifier home: `projects/<project>/sessions/<id>/`.

A session is a folder of that depth, not hidden, with at least one file that is not hidden. What else lies there
(the trash, projects without sessions, files beside the folders) belongs to others and is passed over.

What reads sessions is imported where it is called: a list that remembers them all reads none, and should not wait.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from sessionary.disk.fs import OS_FS, Fs, not_found, size_of, storage_failed
from sessionary.disk.helper import Helper
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.files import BACKUP, CONFIG, EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS
from sessionary.layouts.base import Capability, Known, Part, PartKind, held_open, remembered
from sessionary.model import Cursor, Entry, Problem, SessionRef, Summary

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
    """The sessions below one amplifier home. Reads only; no method makes, locks or changes anything.

    Args:
        home: the folder that holds `projects/`. It need not exist: then there are no sessions.
        fs: the file system.
        now: the time in seconds since 1970, to tell leftovers from files that are being written.
        meanwhile: in a program of one's own, what it wants to do with the summaries of a long list as soon as it can.
            It is told what is remembered, and what was just read of others, while a second process looks whether
            what is remembered still holds; see `disk.helper`.
    """

    name: ClassVar[str] = "amplifier"
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

    def __init__(
        self,
        home: Path,
        fs: Fs = OS_FS,
        *,
        now: Callable[[], float] = time.time,
        meanwhile: Callable[[list[Summary]], object] | None = None,
    ) -> None:
        self.home = home
        self._fs = fs
        self._now = now
        self._meanwhile = meanwhile

    def discover(self) -> Iterator[SessionRef]:
        for project, sessions, names in self._sessions():
            for name in names:
                folder = f"{sessions}/{name}"
                if self._is_talk(f"{folder}/{TRANSCRIPT}") or self._is_session(folder):
                    yield SessionRef(self.name, name, folder, project)

    def stores(self) -> Iterator[tuple[str, str]]:
        """Every project that can be looked into and its folder of sessions, also where that holds none but a trash.

        Raises:
            StorageFailed: as `discover`.
        """
        for project, sessions, _ in self._sessions():
            yield project, sessions

    def at(self, folder: Path) -> SessionRef | None:
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

    def handle(self, ref: SessionRef) -> str:
        name = ref.session_id
        if "_" not in name:  # as `is_top_level_session`, which costs a call for each of ten thousand
            return name
        own = re.match(_OWN_SPAN, name)
        return name[own.start(1) :] if own else name

    def summaries(self, known: MutableMapping[str, Known] | None = None) -> Iterator[Summary]:
        now = self._now()
        known = {} if known is None else known
        entries = list(known.values())
        meanwhile = self._meanwhile
        with Helper(self._compare, entries, is_wanted=meanwhile is not None) as helper:
            here, closed = self._folders()
            new = [folder for folder in here if folder not in known]
            fresh: list[Summary] = []
            for folder in new:
                for summary in self._anew(folder, known, now):
                    fresh.append(summary)
                    yield summary
            gone: set[str] = set()  # nearly always empty, which counting tells at once
            if len(here) - len(new) < len(entries):
                gone = {entry.folder for entry in entries}.difference(here)
            told: list[Summary | None] = []
            if meanwhile is not None and helper.is_at_work:
                told = [None if entry.folder in gone else entry.summary for entry in entries]
                meanwhile([*fresh, *(one for one in told if one is not None)])
            for place, holds in enumerate(helper.answers()):
                entry = entries[place]
                if entry.folder in gone:
                    continue
                one = (told[place] if told else entry.summary) if holds else None
                if one is not None:
                    yield one
                else:
                    yield from self._anew(entry.folder, known, now)
        if closed is not None:
            raise closed
        for folder in gone:
            del known[folder]

    def _compare(self, entries: Sequence[Known]) -> Iterator[int]:
        """For each of what is remembered 1 if it holds, else 0."""
        for sessions, those in groupby(entries, _folder_of):
            with held_open(self._fs, sessions) as fd:
                start = 0 if fd is None else len(sessions) + 1
                for entry in those:
                    yield entry.holds(self._fs, entry.folder[start:], fd)

    def _folders(self) -> tuple[list[str], StorageFailed | None]:
        """The folders that may be sessions, and what kept some of them from being found."""
        here: list[str] = []
        try:
            for _, sessions, names in self._sessions():
                here += [f"{sessions}/{name}" for name in names]
        except StorageFailed as error:
            return here, error
        return here, None

    def _anew(self, folder: str, known: MutableMapping[str, Known], now: float) -> Iterator[Summary]:
        """The summary of what may be a session, if it is one; what may be remembered of it is."""
        sessions, name = os.path.split(folder)
        project = os.path.basename(os.path.dirname(sessions))
        summary, read = self._read(SessionRef(self.name, name, folder, project), now)
        if read is not None:
            known[folder] = read
        else:
            known.pop(folder, None)
        if summary is not None:
            yield summary

    def _read(self, ref: SessionRef, now: float) -> tuple[Summary | None, Known | None]:
        """The summary of what may be a session, if it is one, and what may be remembered of it."""
        from sessionary.layouts.amplifier.listing import is_session, look, unreadable_summary

        names = self._look_into(ref.folder)
        if isinstance(names, OSError):
            return unreadable_summary(ref, names), None
        if not names or not is_session(self._fs, ref.folder, names):
            return None, None
        try:
            seen = look(self._fs, ref, names, now)
        except FileNotFoundError:
            return None, None  # moved to the trash since its name was read
        return seen.summary, remembered(seen.summary, seen.folder, seen.files, now) if seen.lasting else None

    def summary(self, ref: SessionRef) -> Summary:
        return self._look(ref, thorough=False)[0]

    def _look(self, ref: SessionRef, *, thorough: bool) -> tuple[Summary, Sequence[str]]:
        """The summary of a session, and the names in its folder."""
        from sessionary.layouts.amplifier.listing import look, unreadable_summary

        now = self._now()
        try:
            names = self._fs.listdir(ref.folder)
            return look(self._fs, ref, names, now, thorough=thorough).summary, names
        except FileNotFoundError:
            raise not_found(ref.folder, f"Session '{ref.session_id}' not found") from None
        except OSError as error:
            return unreadable_summary(ref, error), ()

    def entries(self, ref: SessionRef, after: Cursor | None = None) -> Iterator[Entry]:
        from sessionary.layouts.amplifier.conversation import read_entries

        return read_entries(self._fs, f"{ref.folder}/{TRANSCRIPT}", after)

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        folder = ref.folder
        try:
            for name in sorted(self._fs.listdir(folder)):
                if not name.startswith("."):
                    path = f"{folder}/{name}"
                    if (size := size_of(self._fs, path)) is not None:
                        yield Part(name, path, PARTS.get(name, PartKind.KEPT), size)
        except OSError as error:
            raise storage_failed(error, "read", folder, session=ref.session_id) from error

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.layouts.amplifier.checking import config_problems, event_log_problems, lost_problems

        summary, names = self._look(ref, thorough=True)
        yield from summary.problems
        yield from lost_problems(self._fs, ref.folder)
        if CONFIG in names:
            yield from config_problems(self._fs, f"{ref.folder}/{CONFIG}")
        if EVENTS in names:
            yield from event_log_problems(self._fs, f"{ref.folder}/{EVENTS}")

    def _sessions(self) -> Iterator[tuple[str, str, list[str]]]:
        """Every project, its folder of sessions, and the names in it that may be sessions.

        A project that cannot be looked into is told at the end, so that it hides none of the others.
        """
        closed: list[StorageFailed] = []
        root = f"{self.home}/{PROJECTS}"
        for project in self._names(root, closed) or ():
            sessions = f"{root}/{project}/{SESSIONS}"
            names = self._names(sessions, closed)
            if names is not None:
                yield project, sessions, names
        if closed:
            first = closed[0]
            first.details["folders"] = [error.path for error in closed]
            raise first

    def _is_talk(self, path: str) -> bool:
        """Whether there is a transcript: the answer for most folders, for a third of what their names cost."""
        try:
            self._fs.stat(path)
        except OSError:
            return False
        return True

    def _is_session(self, folder: str) -> bool:
        """Whether a folder holds a session; one that cannot be looked into may."""
        from sessionary.layouts.amplifier.listing import is_session

        inside = self._look_into(folder)
        if inside is None or isinstance(inside, OSError):
            return inside is not None
        return is_session(self._fs, folder, inside)

    def _look_into(self, folder: str) -> list[str] | OSError | None:
        """The names in a folder, or why they cannot be read; None if it is not there or not a folder."""
        try:
            return self._fs.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return error

    def _names(self, folder: str, closed: list[StorageFailed]) -> list[str] | None:
        """The names in a folder that are not hidden; None if it is not there, not a folder, or closed."""
        try:
            return [name for name in self._fs.listdir(folder) if name[0] != "."]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            closed.append(storage_failed(error, "look into", folder))
            return None


def _folder_of(entry: Known) -> str:
    """The folder of sessions that a session lies in."""
    return entry.folder.rpartition("/")[0]
