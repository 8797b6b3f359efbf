"""How the original amplifier tools read a session folder.

The files belong to the amplifier layout, and its own tools must be able to read whatever we leave in them.
This is their behaviour in our words, faults included, so that a test can say "the original accepts what we
write" on a machine that does not have it. It comes from reading and running the originals, and only reads.

Two readers matter, and they differ: the `SessionStore` of the application is strict about a file and falls
back to its backup as a whole, while the foundation's `read_jsonl` skips what it cannot parse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

TRANSCRIPT = "transcript.jsonl"
METADATA = "metadata.json"

Source = Literal["main", "backup", "lost", "none"]


# SessionStore of the application


def check_id(session_id: str) -> None:
    """Raise ValueError for what is not taken as the name of a session."""
    if not session_id or not session_id.strip():
        raise ValueError("session_id cannot be empty")
    if "/" in session_id or "\\" in session_id or session_id in (".", ".."):
        raise ValueError(f"Invalid session_id: {session_id}")


def load(base: Path, session_id: str) -> tuple[list[Any], dict[str, Any]]:
    """Transcript and metadata of a session; FileNotFoundError if it is not there."""
    check_id(session_id)
    folder = base / session_id
    if not folder.exists():
        raise FileNotFoundError(f"Session '{session_id}' not found")
    return load_transcript(folder), load_metadata(folder)


def load_transcript(folder: Path) -> list[Any]:
    """The messages: of the main file, else of the backup, else none. A zero-byte main file is an empty one.

    Raises:
        UnicodeDecodeError: invalid UTF-8, which is not recovered from; likewise RecursionError.
    """
    return _transcript(folder)[0]


def transcript_source(folder: Path) -> Source:
    """Where `load_transcript` takes the messages from; ``main``: the original accepts the file as it is."""
    return _transcript(folder)[1]


def _transcript(folder: Path) -> tuple[list[Any], Source]:
    main, backup = folder / TRANSCRIPT, folder / f"{TRANSCRIPT}.backup"
    if not main.exists() and not backup.exists():
        return [], "none"
    for path, source in ((main, "main"), (backup, "backup")):
        if path.exists():
            try:
                return list(_strict_lines(path)), "main" if source == "main" else "backup"
            except (OSError, json.JSONDecodeError):
                continue
    return [], "lost"


def _strict_lines(path: Path) -> Iterator[Any]:
    with open(path, encoding="utf-8") as file:  # text mode: a lone carriage return ends a line as well
        for line in file:
            if text := line.strip():  # of any blank that Unicode knows, which json alone would refuse
                yield json.loads(text)


def load_metadata(folder: Path) -> dict[str, Any]:
    """The metadata of the main file, else of the backup; if both are bad, a stub with ``recovered`` set."""
    main, backup = folder / METADATA, folder / f"{METADATA}.backup"
    if not main.exists() and not backup.exists():
        return {}
    for path in (main, backup):
        if path.exists():
            try:
                found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, json.JSONDecodeError):
                continue
            return found
    return {"session_id": folder.name, "recovered": True}


def list_sessions(base: Path, *, top_level_only: bool = True) -> list[str]:
    """Every folder without a dot is a session, newest folder first; an underscore marks a sub-session."""
    if not base.exists():
        return []
    folders = [path for path in base.iterdir() if path.is_dir() and not path.name.startswith(".")]
    kept = [path for path in folders if not top_level_only or "_" not in path.name]
    return [path.name for path in sorted(kept, key=_mtime, reverse=True)]


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find_session(base: Path, partial: str, *, top_level_only: bool = True) -> str:
    """The session of that id, or else the only one whose id begins so.

    Raises:
        ValueError: nothing was asked for, or several sessions fit.
        FileNotFoundError: none fits.
    """
    wanted = (partial or "").strip()
    if not wanted:
        raise ValueError("Session ID cannot be empty")
    known = list_sessions(base, top_level_only=top_level_only)
    if wanted in known:
        return wanted
    matches = [name for name in known if name.startswith(wanted)]
    if not matches:
        raise FileNotFoundError(f"No session found matching '{wanted}'")
    if len(matches) > 1:
        shown = ", ".join(f"{name[:12]}..." for name in matches[:3])
        more = f" and {len(matches) - 3} more" if len(matches) > 3 else ""
        raise ValueError(f"Ambiguous session ID '{wanted}' matches {len(matches)} sessions: {shown}{more}")
    return matches[0]


# The tools of the foundation


def is_session(folder: Path) -> bool:
    """The finder takes a folder for a session only if it has metadata."""
    return (folder / METADATA).exists()


def read_jsonl(path: Path) -> list[Any]:
    """The lines that parse; blank and malformed ones are skipped without a word."""
    found: list[Any] = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


def load_transcript_with_lines(path: Path) -> list[dict[str, Any]]:
    """The messages, each with its ``line_num`` from 1; ValueError names the first line that is not JSON."""
    found: list[dict[str, Any]] = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"Malformed JSON at line {number}: {error}") from error
            found.append({**message, "line_num": number})
    return found


def count_turns(messages: list[dict[str, Any]]) -> int:
    """Every message of role user begins a turn, reminders and tool results in that role included."""
    return sum(1 for message in messages if message.get("role") == "user")


def working_slug(folder: str | os.PathLike[str]) -> str:
    """The name of the project folder that stands for a working folder."""
    slug = str(Path(folder).resolve()).replace("/", "-").replace("\\", "-").replace(":", "")
    return slug if slug.startswith("-") else f"-{slug}"
