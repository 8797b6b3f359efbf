"""Sessions that Claude Code moved to the background: their file repeats the records of another one, and names none.

The process that continues in the background writes all records anew, into a file beside the first one, and marks them
with ``sessionKind``. What they cost counts in the other file.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from sessionary.disk.fs import Fs
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.fields import object_of, text_or_none
from sessionary.layouts.agents.logs import only_records
from sessionary.layouts.jsonl import read_range

_HEAD = 1 << 16
_UUID = re.compile(rb'"uuid": ?"([^"]+)"')
_MARK = re.compile(rb'"sessionKind": ?"bg"')


class RepeatedResponses:
    """The responses that background sessions repeat from other files; those of the last session are cached."""

    def __init__(self, fs: Fs) -> None:
        self._fs = fs
        self._of: tuple[str, float] | None = None
        self._known: frozenset[str] = frozenset()

    def has(self, path: str, response: str | None) -> bool:
        """True for a response that the file of a background session repeats from the file that it was moved from."""
        try:
            asked = (path, self._fs.stat(os.path.dirname(path)).st_mtime)
        except OSError:
            return False
        if self._of != asked:
            self._of, self._known = asked, _responses(self._fs, path)
        return response in self._known


def _responses(fs: Fs, path: str) -> frozenset[str]:
    """The ids of the responses that the file of a moved session may repeat: those of files with the same first record.

    Of two moved sessions, the one whose name is smaller counts.
    """
    first = _UUID.search(_head(fs, path))
    folder, own = os.path.split(path)
    found: set[str] = set()
    with suppress(OSError, SessionaryError):
        for name in sorted(fs.listdir(folder)) if first is not None else ():
            other = f"{folder}/{name}"
            if first is None or name == own or not name.endswith(".jsonl"):
                continue
            head = _head(fs, other)
            same = _UUID.search(head)
            if same is None or same[1] != first[1] or (_MARK.search(head) and name > own):
                continue
            for record in only_records(fs, other):
                found.update(filter(None, (text_or_none(object_of(record.value.get("message")).get("id")),)))
    return frozenset(found)


def _head(fs: Fs, path: str) -> bytes:
    try:
        return read_range(fs, path, 0, _HEAD)
    except SessionaryError:
        return b""
