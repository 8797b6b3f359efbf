"""The git branch in which a session was started: read from the files of git, which have a stable format."""

from __future__ import annotations

import os

from sessionary.disk.fs import Fs, read_bytes
from sessionary.errors import StorageFailed

_BRANCH = "ref: refs/heads/"
_LINK = "gitdir: "


def git_facts(fs: Fs, folder: str) -> dict[str, str]:
    """`git_branch` and `git_root` of the work tree around a folder; empty if there is none."""
    place = os.path.abspath(folder)
    while True:
        head = _head(fs, f"{place}/.git")
        if head is not None:
            branch = head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else "HEAD"
            return {"git_branch": branch, "git_root": place}
        parent = os.path.dirname(place)
        if parent == place:
            return {}
        place = parent


def _head(fs: Fs, git: str) -> str | None:
    """The content of HEAD; in a linked work tree `.git` is a file that names the folder."""
    text = _text(fs, f"{git}/HEAD")
    if text is None:
        link = _text(fs, git)
        if link is not None and link.startswith(_LINK):
            text = _text(fs, os.path.join(os.path.dirname(git), link.removeprefix(_LINK), "HEAD"))
    return text


def _text(fs: Fs, path: str) -> str | None:
    try:
        data = read_bytes(fs, path)
    except StorageFailed:  # a folder, no permission, or a file in place of a folder
        return None
    return None if data is None else data.decode("utf-8", "replace").strip()
