"""Breadcrumbs in folders that are no sessions: found, and moved into a session.

A sender that named a session wrongly, or by the beginning of its id, and made the folder of that name, has left
breadcrumbs that no list shows and no consumer applies.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, not_found, stat_or_none
from sessionary.errors import AlreadyExists, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import CrumbFile, crumb_files
from sessionary.layouts.maestro.names import BREADCRUMBS
from sessionary.layouts.maestro.paths import folder_of, walk
from sessionary.layouts.maestro.times import is_instant, next_stamp
from sessionary.model import Problem, Severity


class Lost(NamedTuple):
    """A folder that is no session and has breadcrumbs.

    Attributes:
        name: its path below the root.
        folder: its path.
        files: the breadcrumbs.
    """

    name: str
    folder: str
    files: list[CrumbFile]


def find_lost(fs: Fs, root: str, closed: list[StorageFailed] | None = None) -> Iterator[Lost]:
    """Every folder below the root that has breadcrumbs and belongs to no session.

    Args:
        fs: the file system.
        root: the root of the sessions.
        closed: gets the errors of folders that cannot be looked into; without it the first one is raised.

    Raises:
        StorageFailed: a folder cannot be looked into.
    """
    places = list(walk(fs, root, closed))
    ids = {place.name for place in places if place.is_session}
    for place in places:
        is_read = os.path.dirname(place.folder) == root and place.name in ids  # where the original puts them
        if not (place.is_session or is_read) and (files := crumb_files(fs, place.folder, [])):
            yield Lost(os.path.relpath(place.folder, root), place.folder, files)


def lost_problems(fs: Fs, root: str) -> Iterator[Problem]:
    """What `check` tells of them. Folders that cannot be looked into are told by whoever lists the sessions."""
    for lost in find_lost(fs, root, []):
        number = "a breadcrumb lies" if len(lost.files) == 1 else f"{len(lost.files):,} breadcrumbs lie"
        yield Problem(
            "lost_breadcrumbs",
            Severity.hides_data,
            lost.folder,
            None,
            None,
            f"{number} in {lost.name}, which is no session: no list shows them, and no consumer applies them",
            f"`sessionary work breadcrumb move {shlex.quote(lost.name)} ID --root {shlex.quote(root)}`"
            " moves them into the session ID",
        )


def move_lost(fs: Fs, root: str, name: str, session_id: str) -> list[str]:
    """Move the breadcrumbs of a folder that is no session into a session; returns their new paths.

    The files keep their bytes, and their names where these are free; else they get the next time that is. Sessions
    below the folder stay where they are.

    Args:
        fs: the file system.
        root: the root of the sessions.
        name: the path of the folder below the root, as `check` tells it.
        session_id: the whole id of the session.

    Durability: when this returns, all moves survive a power cut. Cut off, each breadcrumb is in one of the two places,
    or for a moment in both; call it again for the rest.

    Raises:
        NotFound: there is no such session, or no such folder with breadcrumbs of none.
        StorageFailed: the disk refused; some may have been moved.
    """
    target = folder_of(fs, root, session_id)
    found = {lost.name: lost for lost in find_lost(fs, root)}.get(os.path.normpath(name))
    if found is None:
        raise not_found(
            f"{root}/{name}",
            f"there is no folder {name} in {root} that has breadcrumbs and is no session",
            ["`sessionary check` names those that are there"],
        )
    moved = [_move(fs, file, target) for file in found.files]
    _clear_away(fs, found)
    return moved


def _move(fs: Fs, file: CrumbFile, session: str) -> str:
    for name in _names(file.name):
        path = f"{session}/{BREADCRUMBS}/{file.depth}/{name}"
        with suppress(AlreadyExists):
            atomic.move_file(file.path, path, fs=fs)
            return path
    raise AssertionError("names never end")


def _names(name: str) -> Iterator[str]:
    """The name, and those to be tried where it is taken: later times, as for a new breadcrumb."""
    yield name
    stem, number = name.removesuffix(".json"), 1
    is_time = is_instant(stem)
    while True:
        number += 1
        stem = next_stamp(stem) if is_time else stem
        yield f"{stem}.json" if is_time else f"{stem}-{number}.json"


def _clear_away(fs: Fs, lost: Lost) -> None:
    """Remove the folders that are empty now; one that is not, or that a sender fills again, stays."""
    depths = {os.path.dirname(file.path) for file in lost.files}
    for folder in (*sorted(depths), f"{lost.folder}/{BREADCRUMBS}", lost.folder):
        if stat_or_none(fs, folder) is not None:
            with suppress(OSError):
                fs.rmdir(folder)
