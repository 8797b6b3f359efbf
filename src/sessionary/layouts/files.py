"""The files of a session, the places in which a layout looks for them, and what helps if they cannot be read."""

from __future__ import annotations

import stat
from enum import Enum
from shlex import quote
from typing import NamedTuple

from sessionary.disk.fs import Fs
from sessionary.errors import StorageFailed
from sessionary.model import SessionRef

LINES = (".jsonl", ".jsonl.zst")
"""The endings of files of JSON Lines."""

FROM_COPY = "restore the file from a backup or the archive"
"""The remedy for a file of which nothing can be read."""


class PartKind(Enum):
    """The way in which a file of a session changes, for the code that copies it."""

    DOCUMENT = "document"
    """Replaced as a whole."""

    JOURNAL = "journal"
    """Grows at the end."""

    LOG = "log"
    """A journal of what happened, much larger than the conversation; no agent resumes from it."""

    KEPT = "kept"
    """A backup, or bytes quarantined by a repair or a conflict; never read as the session itself."""

    BUNDLE = "bundle"
    """Not a file: all those of a session that are made once and never changed, carried as the lines of one journal."""


class Part(NamedTuple):
    """One raw file of a session.

    Attributes:
        name: its name relative to the session's folder.
        path: its path.
        kind: how it changes.
        size: its bytes.
    """

    name: str
    path: str
    kind: PartKind
    size: int


class Location(NamedTuple):
    """A place of sessions: a path, and its state: ``found``, ``missing`` or ``unreadable``."""

    path: str
    state: str


def location_of(fs: Fs, path: str) -> Location:
    """The state of a path."""
    try:
        found = fs.stat(path)
        if stat.S_ISDIR(found.st_mode):
            fs.listdir(path)
        return Location(path, "found")
    except (FileNotFoundError, NotADirectoryError):
        return Location(path, "missing")
    except OSError:
        return Location(path, "unreadable")


def raise_joined(failures: list[StorageFailed]) -> None:
    """Raise the first error, if there is one, with the folders of all of them in `details["folders"]`.

    A folder below one that cannot be read is left out.
    """
    if failures:
        named = (error.details.get("folders", [error.path]) for error in failures)
        closed = dict.fromkeys(folder for folders in named for folder in folders if folder)
        failures[0].details["folders"] = [
            one for one in closed if not any(one.startswith(f"{other}/") for other in closed)
        ]
        raise failures[0]


def mended_copy(ref: SessionRef) -> str:
    """The remedy for a session that only its agent may write; copies are made of JSON Lines."""
    name = quote(ref.session_id)  # a foreign id may hold what a shell would run
    if not ref.locator.endswith(LINES):
        return f"`sessionary export {name} --format json` writes what can be read of it"
    return f"`sessionary repair {name} --out DIR` writes a repaired copy"
