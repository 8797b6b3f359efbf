"""The score of a brainstorm over its history."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, NamedTuple

from sessionary.disk.fs import Fs, not_found, storage_failed
from sessionary.layouts.brainstorm.constants import SUFFIX, is_whole, read_time
from sessionary.layouts.brainstorm.fields import read_flag
from sessionary.layouts.brainstorm.navigation import list_in
from sessionary.layouts.brainstorm.reading import file_bytes, parse


class Score(NamedTuple):
    """The score that an entry of the history states.

    Attributes:
        iteration: the iteration, from 1.
        ems: the score, 0 to 100.
        phase: ``divergent``, ``transition``, ``convergent``, or another word of the file; None if it is missing.
        time: when the entry was made (UTC); None if the file does not say.
        superseded: True if a branch has replaced the entry.
        current: True if the session is at this entry.
    """

    iteration: int
    ems: int
    phase: str | None
    time: datetime | None
    superseded: bool
    current: bool


def scores_of(fs: Fs, path: str) -> list[Score]:
    """The scores of the session in a file, in the order of its history; entries without a valid one are left out.

    Raises:
        NotFound: the file is gone.
        Corrupt, SchemaError, Unsupported: not a readable brainstorm.
    """
    slug = os.path.basename(path).removesuffix(SUFFIX)
    try:
        data, _ = file_bytes(fs, path)
    except FileNotFoundError:
        raise not_found(path, f"Session '{slug}' not found") from None
    except OSError as error:
        raise storage_failed(error, "read", path, session=slug) from error
    session = parse(data, path, slug).migrated.document.get("session")
    if not isinstance(session, dict):
        return []
    current = session.get("iteration")
    return [_score(entry, current) for entry in list_in(session, "history") if _has_score(entry)]


def _has_score(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and is_whole(entry.get("iteration"), 1, None)
        and is_whole(entry.get("ems"), 0, 100)
    )


def _score(entry: dict[str, Any], current: Any) -> Score:
    phase, superseded = entry.get("phase"), bool(read_flag(entry.get("superseded")))
    return Score(
        entry["iteration"],
        entry["ems"],
        phase if isinstance(phase, str) else None,
        read_time(entry.get("timestamp")),
        superseded,
        not superseded and entry["iteration"] == current,
    )
