"""Sessions that are left only in the archive: listed from its index, and restored into the cache for reading.

Each is restored into a folder of its own, which is a home of its agent with this one session. So it is read by the
layout that read it before. The folder is named after the version, made when it is needed, and may be removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, is_there, make_dirs, names_in
from sessionary.errors import AlreadyExists, NotFound, SessionaryError, StorageFailed
from sessionary.layouts.base import Layout
from sessionary.model import Problem, SessionRef, Severity, Summary
from sessionary.workspace.archive_index import (
    Archived,
    Key,
    Listed,
    key_of,
    listed,
    load,
    load_choice,
    usual_folder,
)
from sessionary.workspace.failures import gathered

Open = Callable[[Path, Fs], Layout]
"""Creates a layout of a kind over a home."""


class ArchiveView:
    """The archived sessions of a workspace whose source is gone.

    Args:
        homes: the home of each kind of session of the workspace.
        layouts: what creates a layout of each of these kinds.
        cache: the folder of derived data; None if there is none: then nothing archived is shown.
        fs: the file system.
    """

    def __init__(
        self, homes: Iterable[tuple[str, str]], layouts: Mapping[str, Open], cache: str | None, fs: Fs
    ) -> None:
        self._homes = set(homes)
        self._layouts = layouts
        self._root = None if cache is None else os.path.join(cache, "archive")
        self._fs = fs
        self._entries: dict[str, Archived] | None = None
        self._failure: StorageFailed | None = None
        self._opened: dict[str, Layout] = {}

    def summaries(self, seen: Collection[Key]) -> Iterator[Summary]:
        """The summaries of the sessions that are not among those that were seen.

        Raises:
            StorageFailed: the archive cannot be read.
        """
        if self._root is None:
            return
        for entry in self._known().values():
            if entry.key in seen or (entry.kind, entry.home) not in self._homes:
                continue
            for one in entry.sessions:
                summary = one.summary()
                locator = f"{self._root}/{entry.place}/{one.locator}"
                if (entry.kind, summary.ref.session_id, summary.ref.project) not in seen:
                    yield replace(summary, ref=replace(summary.ref, locator=locator), archived=True)
        if self._failure is not None:
            raise self._failure

    def layout_of(self, ref: SessionRef) -> Layout | None:
        """The layout over the restored files of a session; None if it is not one that only the archive has.

        Raises:
            NotFound: the archive has it no longer.
            RemoteError, Corrupt, StorageFailed: it cannot be restored.
        """
        place = self.place_of(ref)
        if place is None:
            return None
        if place not in self._opened:
            entry = self._known().get(place.partition("-")[0])
            if entry is None:
                raise NotFound(f"{ref.session_id} is not in the archive", session=ref.session_id)
            self._opened[place] = self._layout_in(entry, f"{self._root}/{place}", self._folder())
        return self._opened[place]

    def fault(self, ref: SessionRef) -> Problem | None:
        """The problem of a session of the archive that cannot be restored; None for any other session."""
        if self.place_of(ref) is None:
            return None
        try:
            self.layout_of(ref)
        except SessionaryError as error:
            words = f"it cannot be restored from the archive: {error.message}"
            remedy = "`sessionary archive verify` names what is damaged"
            return Problem.of_file("not_restored", Severity.lost_data, ref.locator, words, remedy)
        return None

    def missing(self) -> str | None:
        """The folder that was chosen for the archive, if it does not exist; None otherwise."""
        try:
            chosen = load_choice(self._fs).folder
            return None if chosen is None or is_there(self._fs, chosen) else chosen
        except SessionaryError:
            return None  # reported by `summaries`

    def _folder(self) -> str:
        return load_choice(self._fs).folder or usual_folder() or ""

    def _layout_in(self, entry: Archived, home: str, folder: str) -> Layout:
        if not is_there(self._fs, home):
            self._restore(entry, home, folder)
        return self._layouts[entry.kind](Path(home), self._fs)

    def lacks(self, summaries: Iterable[Summary]) -> list[Summary]:
        """The sessions of a list that are not in the archive."""
        kept = {entry.key for entry in self._known().values()}
        return [one for one in summaries if key_of(one.ref) not in kept]

    def sessions_of(self, entry: Archived, folder: str) -> list[Listed]:
        """The sessions inside an archived one, its own first, read from that archive. Raises as `layout_of`."""
        from sessionary.layouts.summary import summary_of  # here: a list reads nothing of the archive

        if self._root is None:
            raise NotFound("there is no cache folder", hint="set XDG_CACHE_HOME")
        home = f"{self._root}/{entry.place}"
        layout = self._layout_in(entry, home, folder)
        found = [summary_of(layout, ref) for ref in layout.discover()]
        found.sort(key=lambda one: (one.ref.session_id != entry.session_id, one.ref.session_id))
        return [listed(one.ref.locator.removeprefix(f"{home}/"), one) for one in found]

    def place_of(self, ref: SessionRef) -> str | None:
        """The folder of a session below that of the restored ones; None if it is not one of them."""
        if self._root is None or not ref.locator.startswith(f"{self._root}/"):
            return None
        return ref.locator.removeprefix(f"{self._root}/").partition("/")[0]

    def ref_for_path(self, locator: str) -> SessionRef | None:
        """The session with this locator; None if it is not one that only the archive has."""
        if self._root is None or not locator.startswith(f"{self._root}/"):
            return None
        return next((one.ref for one in gathered(self.summaries(()))[0] if one.ref.locator == locator), None)

    def forget(self, name: str) -> None:
        """Remove what was restored of a session. Raises StorageFailed."""
        self._entries = None
        for one in (names_in(self._fs, self._root) or ()) if self._root is not None else ():
            if one.startswith(f"{name}-"):
                atomic.erase_tree(f"{self._root}/{one}", fs=self._fs)

    def _known(self) -> dict[str, Archived]:
        if self._entries is None:
            self._failure = None
            try:
                folder = self._folder()
                self._entries = load(folder, self._fs) if folder else {}
            except SessionaryError as error:
                self._entries = {}
                self._failure = StorageFailed(error.message, path=error.path, hint=error.hint)
        return self._entries

    def _restore(self, entry: Archived, home: str, folder: str) -> None:
        from sessionary.workspace.archive_files import head_of, written  # here: a list restores nothing

        temp = atomic.temp_name(home)
        try:
            make_dirs(self._fs, str(self._root), durable=False)
            written(folder, head_of(folder, entry.name, self._fs), entry.best, temp, self._fs, lasting=False)
            atomic.move_folder(temp, home, fs=self._fs, durable=False)
        except AlreadyExists:  # another process was faster
            pass
        finally:
            if is_there(self._fs, temp):
                atomic.erase_tree(temp, fs=self._fs)
