"""Resolve an argument: a session by its id, a session's folder, a file, or a whole home."""

from __future__ import annotations

import os
from pathlib import Path

from sessionary.errors import Invalid, NotFound, Unsupported
from sessionary.layouts.amplifier.ids import PROJECTS
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Capability
from sessionary.model import SessionRef
from sessionary.workspace import Workspace

Target = SessionRef | Path
AGENTS = AmplifierLayout.name
"""The kind of the sessions of agents."""


def resolve(workspace: Workspace, word: str, *, kind: str | None = None) -> Target:
    """Return the session, or the path of the file, that a word names. An existing file or folder wins over an id.

    Args:
        workspace: where to look.
        word: the argument.
        kind: for `latest`, the kind of session; None for any.

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
    return workspace.find(word, kind=kind)


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


_OWN_COMMANDS = {
    "work": "sessionary work",
    "brainstorm": "sessionary brainstorm",
    "feature": "sessionary feature",
}


def granted(workspace: Workspace, ref: SessionRef, capability: Capability, doing: str) -> SessionRef:
    """Return the session itself, if its layout grants what a command needs.

    Raises:
        Unsupported: it does not, or has a command of its own for it.
    """
    if capability in workspace.layout_of(ref).capabilities:
        return ref
    own = _OWN_COMMANDS.get(ref.kind)
    hint = f"`{own} -h` lists its commands" if own else "sessions of this kind can only be read"
    raise Unsupported(
        f"`sessionary {doing}` does not support sessions of kind {ref.kind}: {ref.session_id}",
        session=ref.session_id,
        path=ref.locator,
        hint=hint,
    )


def logged_by(workspace: Workspace, file: Path) -> SessionRef | None:
    """Return the session of another kind whose history a file is; else None."""
    from sessionary.layouts.orchestrator.names import HISTORY  # imported here: a list does not need it

    if file.name != HISTORY:
        return None
    try:
        found = workspace.ref_for_path(file.absolute().parent)
    except NotFound:
        return None
    return found if found.kind in _OWN_COMMANDS else None


def is_home(word: str) -> bool:
    """True if the word names a folder that holds projects."""
    return os.path.isdir(os.path.join(os.path.expanduser(word), PROJECTS))
