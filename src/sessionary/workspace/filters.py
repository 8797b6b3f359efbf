"""Select sessions by what their summaries say, by time, and by project: the folder that their agent worked in."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sessionary.layouts.amplifier.ids import path_slug, project_slug
from sessionary.model import Summary


class Filter(NamedTuple):
    """Conditions on sessions; the default holds for all of them.

    Attributes:
        kinds: their kind is one of these; empty for any.
        model: one of their models has this text in its name, in any case.
        branch: the git branch that they worked on.
        healths: their health is one of these; empty for any.
        tags: they have all of these tags, in any case.
        starred: they have a star.
    """

    kinds: Collection[str] = ()
    model: str | None = None
    branch: str | None = None
    healths: Collection[str] = ()
    tags: Collection[str] = ()
    starred: bool = False

    def holds(self, one: Summary) -> bool:
        """True for a session that is to be listed."""
        return (
            (not self.kinds or one.ref.kind in self.kinds)
            and (self.branch is None or one.branch == self.branch)
            and (not self.healths or one.health in self.healths)
            and (not self.starred or one.starred)
            and (
                not self.tags or {tag.casefold() for tag in self.tags} <= {tag.casefold() for tag in one.tags}
            )
            and (self.model is None or any(self.model.casefold() in name.casefold() for name in one.models))
        )


def is_within(time: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """True for a time from `since` up to `until`; an unknown time is only in a range without bounds."""
    if time is None:
        return since is None and until is None
    return (since is None or time >= since) and (until is None or time < until)


def projects_of(summaries: Iterable[Summary], paths: dict[str, str]) -> Callable[[Summary], str | None]:
    """A function that gives the path of the project of a session; see `Sessions.project_of`.

    Args:
        paths: the known paths of projects, by `SessionRef.project`.
    """
    known = dict(paths)
    for one in summaries:
        slug = one.ref.project
        if slug is not None and slug not in known and one.cwd and os.path.isabs(one.cwd):
            known[slug] = one.cwd

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
    if exact and (len(wanted) > 1 or word.startswith("-")):
        return exact
    end = "-" + path_slug(word).casefold().strip("-")
    return [
        one
        for one, called in zip(found, names, strict=True)
        if word in called or any(name.casefold().endswith(end) for name in called)
    ]


def _names(summary: Summary) -> set[str]:
    """The names of the project of a session: its folder of sessions, and the folder that its agent worked in."""
    names = set() if summary.ref.project is None else {summary.ref.project}
    return names | {path_slug(summary.cwd)} if summary.cwd else names
