"""Paths of projects, from the folder names below `projects/`.

The name is lossy (`/a/b-c` and `/a/b/c` share one), so the disk is checked first, and then the working
directory of the sessions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.files import METADATA
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, folders_of_all, path_slug

_ASKED = 20
"""Maximum number of sessions of a project that are read."""


class _Metadata(Struct):
    working_dir: str | None = None


_decode = Decoder(_Metadata).decode


def project_paths(home: str, slugs: Iterable[str], fs: Fs = OS_FS) -> dict[str, str]:
    """The path of each project, by its name below `projects/`; projects with an unknown path are left out."""
    slugs = set(slugs)
    there: dict[str, list[str]] = {}
    for slug, path in folders_of_all(slugs, fs):
        there.setdefault(slug, []).append(path)
    paths = {slug: found[0] for slug, found in there.items() if len(found) == 1}
    for slug in slugs - paths.keys():
        stated = _stated(fs, os.path.join(home, PROJECTS, slug, SESSIONS), slug)
        if stated is not None or slug in there:
            paths[slug] = stated or there[slug][0]
    return paths


def _stated(fs: Fs, sessions: str, slug: str) -> str | None:
    """The working directory of a session of a project, if the name of the project derives from it."""
    try:
        names = sorted(fs.listdir(sessions))[:_ASKED]
    except OSError:
        return None
    for name in names:
        try:
            data = read_bytes(fs, os.path.join(sessions, name, METADATA))
            path = None if data is None else _decode(data).working_dir
        except (StorageFailed, MsgspecError):
            continue
        if path is not None and path_slug(path) == slug:
            return path
    return None
