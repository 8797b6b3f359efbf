"""The time at which the user last had each session open: a session that changed since is unread.

Their file is ``seen.json`` in the data folder; docs/formats/seen.md has its fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import replace

from sessionary.disk.fs import OS_FS, Fs
from sessionary.model import Summary
from sessionary.workspace.user_file import UserFile, Versioned
from sessionary.xdg import data_folder

FILE = "seen.json"


Time = Annotated[datetime, Meta(tz=True)]


class Times(Versioned):
    """What the file holds.

    Attributes:
        since: sessions that changed at this time or earlier are read; None while none was opened.
        seen: by kind and id, when a session was last open, if that is later.
    """

    since: Time | None = None
    seen: dict[str, dict[str, Time]] = field(default_factory=dict)


class Seen:
    """When the sessions of a user were open.

    Args:
        folder: the folder of their file; by default the data folder.
    """

    def __init__(self, fs: Fs = OS_FS, folder: str | None = None) -> None:
        place = folder or data_folder()
        path = None if place is None else os.path.join(place, FILE)
        self._file = UserFile(path, Times(), "read sessions", fs)

    def unread(self) -> Callable[[Summary], bool]:
        """A function that says whether a session changed since it was last open. Sub-agents' sessions count as read.

        Raises:
            Corrupt: the file is damaged, or of a later version.
        """
        times = self._file.read()
        return lambda one: _is_unread(one, times)

    def mark(self, one: Summary, at: datetime) -> None:
        """Keep that a session was open at a time. The first time, all other sessions count as read too.

        Durability: as `UserFile.change`, whose errors it raises.
        """
        ref = one.ref

        def changed(times: Times) -> Times:
            if times.since is None:
                return replace(times, since=at)
            if not _is_unread(one, times):
                return times
            known = times.seen.get(ref.kind, {})
            return replace(times, seen={**times.seen, ref.kind: {**known, ref.session_id: at}})

        self._file.change(changed)

    def mark_all(self, at: datetime) -> None:
        """Keep that all sessions that changed up to a time are read. Durability and errors: as `mark`."""

        def changed(times: Times) -> Times:
            later = {
                kind: {name: when for name, when in known.items() if when > at}
                for kind, known in times.seen.items()
            }
            return Times(since=at, seen={kind: known for kind, known in later.items() if known})

        self._file.change(changed)


def _is_unread(one: Summary, times: Times) -> bool:
    if times.since is None or one.nested or one.updated is None or one.updated <= times.since:
        return False
    at = times.seen.get(one.ref.kind, {}).get(one.ref.session_id)
    return at is None or at < one.updated
