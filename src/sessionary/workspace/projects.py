"""Which project a session belongs to: the folder that its agent worked in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from sessionary.layouts.amplifier.ids import path_slug, project_slug
from sessionary.model import Summary


def projects_of(summaries: Iterable[Summary], paths: dict[str, str]) -> Callable[[Summary], str | None]:
    """A function that gives the path of the project of a session; see `Sessions.project_of`.

    Args:
        summaries: the sessions.
        paths: the known paths of projects, by `SessionRef.project`.
    """
    known = dict(paths)
    for one in summaries:
        if one.ref.project is not None and one.cwd and os.path.isabs(one.cwd):
            known.setdefault(one.ref.project, one.cwd)

    def project_of(summary: Summary) -> str | None:
        slug = summary.ref.project
        return summary.cwd or None if slug is None else known.get(slug, slug)

    return project_of


def of_project(summaries: Iterable[Summary], word: str) -> list[Summary]:
    """The sessions of the projects that a word names; see `Workspace.list`. Empty if there are none."""
    found = list(summaries)
    wanted = {word}
    if os.sep in word or word.startswith((".", "~")):
        path = os.path.abspath(os.path.expanduser(word))
        wanted |= {path_slug(path), project_slug(Path(path))}
    names = [_names(one) for one in found]
    exact = [one for one, called in zip(found, names, strict=True) if called & wanted]
    end = "-" + word.casefold().strip("-")
    return exact or [
        one
        for one, called in zip(found, names, strict=True)
        if any(name.casefold().endswith(end) for name in called)
    ]


def _names(summary: Summary) -> set[str]:
    """What the project of a session is called: its folder of sessions, and the folder that its agent worked in."""
    names = set() if summary.ref.project is None else {summary.ref.project}
    return names | {path_slug(summary.cwd)} if summary.cwd else names
