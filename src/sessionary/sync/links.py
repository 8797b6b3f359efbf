"""Symbolic links that lead out of a store: nothing is read, sent or written through them.

A link can replace a session, a project or a file by any path of the machine. Its target was never chosen for
synchronisation, and a pull would overwrite it. So such a session or file is left unchanged and reported; all others
are processed. A link within the store is followed. So is a link in place of the store itself, which is a way to keep
a store on another disk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace

from sessionary.disk.fs import Fs
from sessionary.errors import Unsupported
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.report import Outcome, SyncStatus

LINK = "link"
"""Key in the details of an error: the path of the link."""


class Links:
    """Finds links that lead out of the store of one layout."""

    def __init__(self, fs: Fs, layout: SyncLayout) -> None:
        self._fs = fs
        self._home = os.path.abspath(layout.home)

    def of(self, ref: SessionRef, path: str) -> str | None:
        """Return the link out of the store on the path of a file of a session that is inside; None without one."""
        path, folder = os.path.abspath(path), os.path.abspath(ref.locator)
        if _is_below(path, folder):
            return self._first(folder, path)
        return self._first(self._home, path) if _is_below(path, self._home) else None

    def refuse(self, ref: SessionRef) -> None:
        """Refuse a session outside the store. Raises Unsupported."""
        folder = os.path.abspath(ref.locator)
        start = self._home if _is_below(folder, self._home) else os.path.dirname(folder)
        link = self._first(start, folder)
        if link is not None:
            raise self._error(
                ref, link, f"{ref.session_id} is behind a symbolic link out of the store, {link}"
            )

    def refuse_file(self, ref: SessionRef, path: str) -> None:
        """Refuse a file of a session that is outside the store. Raises Unsupported."""
        link = self.of(ref, path)
        if link is not None:
            raise self._error(ref, link, _words({os.path.basename(path): link}))

    def with_left_out(self, ref: SessionRef, outcome: Outcome, left_out: Mapping[str, str]) -> Outcome:
        """Return the outcome with the files that were left out. Such a session is never reported as in step."""
        if not left_out:
            return outcome
        note = "; ".join(filter(None, (outcome.note, _words(left_out))))
        error = outcome.error or self._error(ref, min(left_out.values()), note)
        standing = outcome.standing if outcome.standing is SyncStatus.FAILED else SyncStatus.HELD_BACK
        return replace(outcome, standing=standing, note=note, error=error)

    def error(self, ref: SessionRef, left_out: Mapping[str, str]) -> Unsupported:
        """Return the error for a session with these files left out."""
        return self._error(ref, min(left_out.values()), _words(left_out))

    def _error(self, ref: SessionRef, link: str, words: str) -> Unsupported:
        return Unsupported(
            words,
            operation="sync",
            path=link,
            session=ref.session_id,
            details={LINK: link, "leads_to": os.path.realpath(link)},
            hint=f"replace {link} by its target; to keep all of {self._home} elsewhere, link that folder",
        )

    def _first(self, start: str, path: str) -> str | None:
        """Return the first link between a folder of the store and a path below it that leads out of the store."""
        at = start
        for segment in os.path.relpath(path, start).split(os.sep):
            at = os.path.join(at, segment)
            try:
                found = self._fs.lstat(at)
            except OSError:
                return None  # the path does not exist, so nothing is read through it
            if stat.S_ISLNK(found.st_mode) and not self._is_inside(os.path.realpath(at), start):
                return at
        return None

    def _is_inside(self, place: str, start: str) -> bool:
        return _is_below(place, os.path.realpath(self._home)) or (
            not _is_below(start, self._home) and _is_below(place, os.path.realpath(start))
        )


def is_link(error: object) -> bool:
    """True for the error of a session or file outside the store."""
    return isinstance(error, Unsupported) and LINK in error.details


def _words(left_out: Mapping[str, str]) -> str:
    names = ", ".join(sorted(left_out))
    links = ", ".join(sorted(set(left_out.values())))
    is_one = len(left_out) == 1
    return (
        f"{names} {'is' if is_one else 'are'} not synchronised: {links} is a symbolic link out of the store"
    )


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
