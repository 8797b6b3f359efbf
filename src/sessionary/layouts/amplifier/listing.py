"""From a session folder to its summary, in as few system calls as the answer allows.

A list of ten thousand sessions is read more often than anything else, and nearly all of them are small and healthy.
So one look at the folder's names decides what is read, sizes and times come from descriptors that are open anyway,
and whatever is unusual takes its own way.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import READ, Fs
from sessionary.errors import NotFound
from sessionary.layouts.amplifier import checking
from sessionary.layouts.amplifier.conversation import Conversation, read_conversation
from sessionary.layouts.amplifier.messages import parse_time
from sessionary.layouts.amplifier.recovery import BACKUP, LOCK, METADATA, TRANSCRIPT, read_metadata
from sessionary.model import Problem, SessionRef, Summary, health

AGENT = "amplifier"
TITLE = 200

_MAIN = frozenset({TRANSCRIPT, METADATA})


def is_session(fs: Fs, folder: str, names: Iterable[str]) -> bool:
    """True if the folder holds a file that is not hidden: empty folders and those of locks alone are strangers."""
    for name in names:
        if name in _MAIN:
            return True
    return any(not name.startswith(".") and _is_file(fs, f"{folder}/{name}") for name in names)


def summarize(fs: Fs, ref: SessionRef, folder: str, names: list[str], now: float) -> Summary:
    """What a list shows of the session in `folder`, whose entries are `names`.

    Raises:
        FileNotFoundError: the folder is gone.
    """
    problems: list[Problem] = []
    stats: dict[str, os.stat_result] = {}
    changed = fs.stat(folder).st_mtime
    conversation = _conversation(fs, folder, names, stats, problems)
    metadata = _metadata(fs, folder, names, stats, problems)
    ...
