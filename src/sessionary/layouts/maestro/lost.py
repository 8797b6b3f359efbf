"""Stray breadcrumbs: in folders that are not sessions. Find them, and move them into a session.

A sender that used a wrong session id, or the beginning of one, and created the folder of that name, has left
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
    """A folder that is not a session and has breadcrumbs.

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
        closed: gets the errors of unreadable folders; without it the first one is raised.
    """
    places = list(walk(fs, root, closed))
    ids = {place.name for place in places if place.is_session}
    for place in places:
        is_read = (
            os.path.dirname(place.folder) == root and place.name in ids
        )  # the place that the original program uses
        if not (place.is_session or is_read) and (files := crumb_files(fs, place.folder, [])):
            yield Lost(os.path.relpath(place.folder, root), place.folder, files)


def lost_problems(fs: Fs, root: str) -> Iterator[Problem]:
    """The problems that `check` reports. Unreadable folders are reported by the listing of sessions."""
    for lost in find_lost(fs, root, []):
        number = "a breadcrumb is" if len(lost.files) == 1 else f"{len(lost.files):,} breadcrumbs are"
        words = (
            f"{number} in {lost.name}, which is not a session: not listed, and not applied by any consumer"
        )
        remedy = f"`sessionary work breadcrumb move {shlex.quote(lost.name)} ID --root {shlex.quote(root)}`"
        remedy += " moves them into the session ID"
        yield Problem.of_file("lost_breadcrumbs", Severity.hides_data, lost.folder, words, remedy)


def move_lost(fs: Fs, root: str, name: str, session_id: str) -> list[str]:
    """Move the breadcrumbs of a folder that is not a session into a session; return their new paths.

    The files keep their bytes, and their names if these are free; else they get the next free time. Sessions
    below the folder stay in place.

    Args:
        name: the path of the folder below the root, as reported by `check`.

    Durability: when this returns, all moves survive a power cut. If interrupted, each breadcrumb is in one of
    the two places, or for a moment in both; call it again for the rest.

    Raises:
        NotFound: the session does not exist, or no such folder with stray breadcrumbs.
        StorageFailed: the disk refused; some may have been moved.
    """
    target = folder_of(fs, root, session_id)
    found = {lost.name: lost for lost in find_lost(fs, root)}.get(os.path.normpath(name))
    if found is None:
        raise not_found(
            f"{root}/{name}",
            f"no folder {name} with stray breadcrumbs in {root}",
            ["`sessionary check` lists such folders"],
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
    """The name, and alternatives if it is taken: later times, as for a new breadcrumb."""
    yield name
    stem, number = name.removesuffix(".json"), 1
    is_time = is_instant(stem)
    while True:
        number += 1
        stem = next_stamp(stem) if is_time else stem
        yield f"{stem}.json" if is_time else f"{stem}-{number}.json"


def _clear_away(fs: Fs, lost: Lost) -> None:
    """Remove the folders that are empty; one that is not empty, or is filled again by a sender, stays."""
    depths = {os.path.dirname(file.path) for file in lost.files}
    for folder in (*sorted(depths), f"{lost.folder}/{BREADCRUMBS}", lost.folder):
        if stat_or_none(fs, folder) is not None:
            with suppress(OSError):
                fs.rmdir(folder)
