"""Resolve an argument: a session by its id, a session's folder, or a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from sessionary.errors import Invalid, NotFound
from sessionary.layouts.base import Capability
from sessionary.model import SessionRef
from sessionary.workspace import Target, Workspace


def resolve(workspace: Workspace, word: str, *, able: Capability | None = None) -> Target:
    """Return the session, or the path of the file, that a word names. An existing file or folder wins over an id.

    Args:
        workspace: where to look.
        word: the argument.
        able: for `latest`, what the layout of the session must grant.

    Raises:
        NotFound: no session and no file matches.
        AmbiguousId: it is the beginning of several ids, or the name of several sessions.
    """
    path = os.path.expanduser(word)
    if os.path.isdir(path):
        return workspace.ref_for_path(Path(path).absolute())
    if os.path.exists(path):
        return _of_yaml(workspace, Path(path).absolute()) if path.endswith(".yaml") else Path(path)
    if os.sep in word or (os.altsep and os.altsep in word):
        raise NotFound(f"no file or folder {word}", path=word)
    return workspace.find(word, able=able)


def session(workspace: Workspace, word: str) -> SessionRef:
    """Return the session that a word names.

    Raises:
        NotFound, AmbiguousId: as `resolve`.
        Invalid: the word names a file.
    """
    found = resolve(workspace, word)
    if isinstance(found, Path):
        raise Invalid(f"{word} is a file", path=found, hint="name a session, or the folder of one")
    return found


class Named(NamedTuple):
    """A session to change, and the word that names it on a command line: its id, or its path if that was given."""

    ref: SessionRef
    word: str


def to_change(workspace: Workspace, word: str) -> Named:
    """Return the session to change that a word names: its id, the beginning of that, its name, or its folder.

    Unlike for reading, a file or folder of that name in the current folder does not win over an id.

    Raises:
        NotFound: no session matches.
        AmbiguousId: several sessions match.
        Invalid: the word names a file, or is empty.
    """
    if not is_path(word):
        ref = workspace.find(word, able=Capability.CHANGES)
        return Named(ref, ref.session_id)
    path = os.path.abspath(os.path.expanduser(word))
    if os.path.isfile(path):
        raise Invalid(f"{word} is a file", path=path, hint="name a session, or the folder of one")
    if not os.path.isdir(path):
        raise NotFound(f"no session in {word}", path=path)
    return Named(workspace.ref_for_path(Path(path)), path)


def is_path(word: str) -> bool:
    """True if a word can only be a path."""
    return word in (".", "..", "~") or os.sep in word or bool(os.altsep and os.altsep in word)


def _of_yaml(workspace: Workspace, file: Path) -> SessionRef:
    """Return the session that is stored in this file, or that it is a part of.

    Raises:
        Invalid: it belongs to no session; read as JSON Lines it would count as damaged.
    """
    for place in (file, file.parent):
        try:
            return workspace.ref_for_path(place)
        except NotFound:
            continue
    raise Invalid(
        f"{file} is YAML but not a known session",
        path=file,
        hint="name a session or a file of JSON Lines; `brainstorm list` and `feature list` list those in YAML",
    )
