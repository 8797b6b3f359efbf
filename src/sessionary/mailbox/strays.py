"""Messages that lie where the original puts them: those of a nested session in a folder of its id at the top.

The original nests the document of a child into its parent, but writes breadcrumbs to `<root>/<child>/breadcrumbs`, and
a grandchild it puts into `<root>/<child>/<grandchild>`, where the child itself is not. Both exist in real trees, so a
mailbox looks into both places.
"""

from __future__ import annotations

import os
from typing import Any

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import Fs, look, read_bytes
from sessionary.layouts.maestro.names import BREADCRUMBS, SESSION
from sessionary.mailbox.folders import Root

_PARENT_KEYS = ("parent_session_id", "parent_wsession_id")


def roots_of(fs: Fs, folder: str) -> list[Root]:
    """The `breadcrumbs` folders of the session in a folder: its own, and where it is nested the stray one.

    Raises:
        StorageFailed: the system does not tell where the session lies.
    """
    own = os.path.join(folder, BREADCRUMBS)
    stray = os.path.join(_top_of(fs, folder), os.path.basename(folder), BREADCRUMBS)
    if stray == own:
        return [Root(own)]
    return [Root(own), Root(stray, os.path.relpath(stray, own).replace(os.sep, "/") + "/")]


def _top_of(fs: Fs, folder: str) -> str:
    """The folder that holds all sessions of the tree to which a session belongs."""
    here = folder
    while True:
        above = os.path.dirname(here)
        nested = look(fs, os.path.join(above, SESSION)) is not None
        if above == here or not (nested or os.path.basename(above) in _parents(fs, here)):
            return above
        here = above


def _parents(fs: Fs, folder: str) -> list[Any]:
    """The id of the parent, by whichever name the document gives it."""
    try:
        document = decode(read_bytes(fs, os.path.join(folder, SESSION)) or b"null")
    except Undecodable:
        return []
    return [document.get(key) for key in _PARENT_KEYS] if isinstance(document, dict) else []
