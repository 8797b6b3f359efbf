"""Ids of sessions, folder names of projects, and what an id reveals about its session.

The rules for *reading* are those of the original store, so that every session on a user's disk is accessible.
The rules for *creating* are stricter: an id that the original's commands could not find again is refused with
the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sessionary.disk.fs import OS_FS, Fs, expanded, is_folder
from sessionary.errors import InvalidId

HOME = Path("~/.amplifier")
PROJECTS = "projects"
SESSIONS = "sessions"

# Compiled on first use, by `re` itself: readers need neither.
_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_WINDOWS = r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?"
MAX_BYTES = 255  # of a file name, on all common file systems


def check_id(session_id: str) -> str:
    """Refuse the ids that the original store refuses, with its messages.

    Raises:
        InvalidId: empty, blank, with a path separator, or `.` or `..`.
    """
    if not session_id or not session_id.strip():
        raise InvalidId("session_id cannot be empty", hint="pass the id of a session, for example a UUID")
    if "/" in session_id or "\\" in session_id or session_id in (".", ".."):
        raise InvalidId(
            f"Invalid session_id: {session_id}",
            session=session_id,
            hint="an id is one folder name, never a path",
        )
    if "\0" in session_id:
        raise InvalidId(
            "Invalid session_id: it contains a NUL byte", hint="no file system allows such a name"
        )
    return session_id


def check_new_id(session_id: str) -> str:
    """Refuse ids under which a new session could not be found again, with the reason.

    Raises:
        InvalidId: as `check_id`, or a leading or trailing blank, a control character, a leading dot,
            a name reserved on Windows, a trailing dot, or more bytes than a file name may have.
    """
    check_id(session_id)
    reason = _why_unfindable(session_id)
    if reason:
        raise InvalidId(
            f"Invalid session_id: {session_id!r} {reason}",
            session=session_id,
            hint="a session of that name could not be found again; choose letters, digits, '-', '_' and '.'",
        )
    return session_id


def check_project(name: str) -> str:
    """Refuse names under which a project folder could not be found; invalid UTF-8 is allowed.

    Raises:
        InvalidId: as `check_new_id`, except for lone surrogates: a path may be any bytes, and so may its name.
    """
    check_new_id(os.fsencode(name).decode("utf-8", "replace"))
    return check_id(name)


def _why_unfindable(session_id: str) -> str | None:
    if session_id != session_id.strip():
        return "begins or ends with a blank, which look-ups strip"
    if re.search(_CONTROL, session_id):
        return "contains a control character"
    if session_id.startswith("."):
        return "begins with a dot, which hides it from lists"
    if session_id.endswith("."):
        return "ends with a dot, which Windows drops"
    if re.fullmatch(_WINDOWS, session_id):
        return "is a device name on Windows"
    if any("\ud800" <= char <= "\udfff" for char in session_id):
        return "contains a lone surrogate"
    if len(os.fsencode(session_id)) > MAX_BYTES:
        return f"is longer than {MAX_BYTES} bytes"
    return None


def is_top_level_session(session_id: str) -> bool:
    """True for a session started by a user; the id of a sub-agent's ends with an underscore and its name."""
    return "_" not in session_id


def project_slug(cwd: str | os.PathLike[str]) -> str:
    """The folder name of a project, from its path: `path_slug` with links resolved."""
    return path_slug(str(Path(cwd).resolve()))


def path_slug(path: str) -> str:
    """A path as the name of a folder: separators as dashes. Lossy: `/a/b-c` and `/a/b/c` share one."""
    text = path.replace("/", "-").replace("\\", "-").replace(":", "")
    return text if text.startswith("-") else f"-{text}"


def folders_of(slug: str, fs: Fs = OS_FS) -> Iterator[str]:
    """The local folders whose project has this name; see `folders_of_all`."""
    return (path for _, path in folders_of_all([slug], fs))


def folders_of_all(slugs: Iterable[str], fs: Fs = OS_FS) -> Iterator[tuple[str, str]]:
    """The local folders whose project has one of these names, by name.

    Usually one for each name; none if the project is elsewhere, or gone. Only folders whose path is the
    beginning of a name are read, each once.
    """
    wanted = set(slugs)
    leading = {slug[:at] for slug in wanted for at, char in enumerate(slug) if char == "-" and at}
    waiting = ["/"] if wanted else []
    while waiting:
        folder = waiting.pop()
        try:
            names = sorted(fs.listdir(folder), reverse=True)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            there = path_slug(path)
            if (there in wanted or there in leading) and is_folder(fs, path):
                if there in wanted:
                    yield there, path
                if there in leading:
                    waiting.append(path)


def default_base_dir(cwd: Path | None = None) -> Path:
    """The folder of sessions of the project in `cwd` (default: the current folder)."""
    return Path(expanded(HOME)) / PROJECTS / project_slug(cwd or Path.cwd()) / SESSIONS
