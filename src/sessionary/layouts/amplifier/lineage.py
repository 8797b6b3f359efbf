"""The ancestors of a session, and its forks.

Both a fork and a sub-agent's session name their parent as ``parent_id``. A fork also has the time or the turn
of the fork; the original store lists sub-agents among the forks. A cycle of parents, possible in an edited or
copied metadata.json, ends where it closes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sessionary.codec.times import parse_time
from sessionary.disk.fs import OS_FS, Fs, expanded
from sessionary.layouts.amplifier.ids import check_id
from sessionary.layouts.amplifier.recovery import read_metadata

FORK_MARKS = ("forked_from_turn", "forked_at")


def is_fork(metadata: Mapping[str, Any]) -> bool:
    """True for the metadata of a fork, False for that of a sub-agent or a session started by a user."""
    return "parent_id" in metadata and any(metadata.get(mark) is not None for mark in FORK_MARKS)


def list_session_forks(
    session_dir: str | os.PathLike[str],
    sessions_root: str | os.PathLike[str] | None = None,
    *,
    fs: Fs = OS_FS,
) -> list[dict[str, Any]]:
    """The forks of a session, newest first, without sub-agents.

    Args:
        session_dir: the folder of the session.
        sessions_root: the folder of the forks; None is that of the session.

    Returns:
        For each: ``session_id``, ``session_dir`` (a Path), ``forked_from_turn``, ``forked_at``, ``turn_count``.
    """
    folder, root = _places(session_dir, sessions_root)
    wanted = {id_of(folder, _metadata(fs, folder)), os.path.basename(folder)}
    forks = [
        {
            "session_id": id_of(child, metadata),
            "session_dir": Path(child),
            "forked_from_turn": metadata.get("forked_from_turn"),
            "forked_at": metadata.get("forked_at"),
            "turn_count": metadata.get("turn_count", 0),
        }
        for child, metadata in _sessions(fs, root)
        if child != folder and metadata.get("parent_id") in wanted and is_fork(metadata)
    ]
    return sorted(forks, key=_moment, reverse=True)


def get_session_lineage(
    session_dir: str | os.PathLike[str],
    sessions_root: str | os.PathLike[str] | None = None,
    *,
    fs: Fs = OS_FS,
) -> dict[str, Any]:
    """The ancestors of a session, and its forks.

    Returns:
        ``session_id``, ``parent_id`` and ``forked_from_turn`` (None for a session started by a user),
        ``ancestors`` (ids, the parent first), ``children`` (as `list_session_forks`), ``depth`` (number of
        ancestors).
    """
    folder, root = _places(session_dir, sessions_root)
    metadata = _metadata(fs, folder)
    session_id = id_of(folder, metadata)
    ancestors = list(_ancestors(fs, root, session_id, metadata))
    return {
        "session_id": session_id,
        "parent_id": metadata.get("parent_id"),
        "forked_from_turn": metadata.get("forked_from_turn"),
        "ancestors": ancestors,
        "children": list_session_forks(folder, root, fs=fs),
        "depth": len(ancestors),
    }


def _ancestors(fs: Fs, root: str, session_id: str, metadata: Mapping[str, Any]) -> Iterator[str]:
    seen = {session_id}
    parent = metadata.get("parent_id")
    while isinstance(parent, str) and parent and parent not in seen:
        yield parent
        seen.add(parent)
        try:
            check_id(parent)
        except ValueError:
            return  # an id that would lead out of the folder
        parent = _metadata(fs, os.path.join(root, parent)).get("parent_id")


def _places(
    session_dir: str | os.PathLike[str], sessions_root: str | os.PathLike[str] | None
) -> tuple[str, str]:
    folder = os.path.realpath(expanded(session_dir))
    if sessions_root is None:
        return folder, os.path.dirname(folder)
    return folder, os.path.realpath(expanded(sessions_root))


def _sessions(fs: Fs, root: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        names = sorted(name for name in fs.listdir(root) if not name.startswith("."))
    except OSError:
        return
    for name in names:
        folder = os.path.join(root, name)
        if metadata := _metadata(fs, folder):
            yield folder, metadata


def _metadata(fs: Fs, folder: str) -> dict[str, Any]:
    """The metadata of a session; empty if missing or unreadable."""
    stored = read_metadata(fs, folder, recovery_time="").value
    return {} if stored.get("recovered") else stored


def id_of(folder: str, metadata: Mapping[str, Any]) -> str:
    """The id of a session: that of its metadata, else the name of its folder."""
    stored = metadata.get("session_id")
    return stored if isinstance(stored, str) and stored else os.path.basename(folder)


def _moment(fork: Mapping[str, Any]) -> float:
    time = parse_time(fork["forked_at"])
    return time.timestamp() if time else float("-inf")
