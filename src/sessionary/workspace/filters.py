"""Select and sort sessions by their summaries: by time, health and project, the folder that their agent worked in."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sessionary.errors import Invalid
from sessionary.layouts.amplifier.ids import path_slug, project_slug
from sessionary.layouts.clock import believed
from sessionary.model import Severity, Summary
from sessionary.workspace.naming import is_project_path

WELL = frozenset({"ok", Severity.note.name})
"""The healths of sessions that are not damaged."""

HEALTHS = {
    "ok": WELL,
    "damaged": frozenset(severity.name for severity in Severity) - WELL,
    **{severity.name: frozenset({severity.name}) for severity in Severity},
}
"""The words that select sessions by health, and the healths that each selects."""

SORTS: dict[str, Callable[[Summary], Any]] = {
    "changed": lambda one: 0,
    "created": lambda one: -one.created.timestamp() if one.created else math.inf,
    "size": lambda one: -one.size,
    "tokens": lambda one: -tokens_of(one),
    "messages": lambda one: -one.messages,
    "turns": lambda one: -one.turns,
    "title": lambda one: (one.title or "~").casefold(),
    "project": lambda one: one.ref.project or one.cwd or "~",
}
"""The orders of a list: largest and newest first, text from A to Z; of equals, and by ``changed``, the newest first."""


class Filter(NamedTuple):
    """Conditions on sessions; the default holds for all of them.

    Attributes:
        kinds: their kind is one of these; empty for any.
        model: one of their models has this text in its name, in any case.
        branch: the git branch that they worked on.
        healths: their health is one of those that these words of `HEALTHS` select; empty for any.
        tags: they have all of these tags, in any case, with or without ``#``.
        starred: they have a star.
        since: they changed at this time or later.
        until: they changed before.

    A session of unknown time does not match `since` or `until`.
    """

    kinds: Collection[str] = ()
    model: str | None = None
    branch: str | None = None
    healths: Collection[str] = ()
    tags: Collection[str] = ()
    starred: bool = False
    since: datetime | None = None
    until: datetime | None = None

    def holds(self, one: Summary) -> bool:
        """True for a session that is to be listed."""
        return (
            (not self.kinds or one.ref.kind in self.kinds)
            and (self.branch is None or one.branch == self.branch)
            and (not self.healths or any(one.health in HEALTHS[word] for word in self.healths))
            and (not self.starred or one.starred)
            and (not self.tags or set(map(_folded, self.tags)) <= set(map(_folded, one.tags)))
            and (self.model is None or any(self.model.casefold() in name.casefold() for name in one.models))
            and (self.since is None or (one.updated is not None and one.updated >= self.since))
            and (self.until is None or (one.updated is not None and one.updated < self.until))
        )


def _folded(tag: str) -> str:
    return tag.removeprefix("#").casefold()


def require_known(what: str, words: Iterable[str], known: Iterable[str]) -> None:
    """Raise Invalid for the first word that is not known."""
    for word in words:
        if word not in known:
            raise Invalid(f"unknown {what} {word}", hint=f"the {what}s are {', '.join(known)}")


def by_recency() -> Callable[[Summary], tuple[datetime, str, str]]:
    """A key that sorts sessions by their last change, an unknown one first; then by id, and by place."""
    now = datetime.now(UTC)
    return lambda one: (believed(one.updated, now), one.ref.session_id, one.ref.locator)


def tokens_of(one: Summary) -> int:
    """The tokens that its models used; 0 if it does not state them."""
    used = one.total_usage()
    return 0 if used is None else used.tokens


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
    if is_project_path(word):
        path = os.path.abspath(os.path.expanduser(word))
        wanted |= {path_slug(path), project_slug(Path(path))}
    exact = [one for one in found if _names(one) & wanted]
    if exact and (len(wanted) > 1 or word.startswith("-")):
        return exact
    return [one for one in found if is_of_project(one, word)]


def is_of_project(summary: Summary, word: str) -> bool:
    """True if a word is the name of the project of a session, or, in any case, the end of it."""
    called, end = _names(summary), "-" + path_slug(word).casefold().strip("-")
    return word in called or any(name.casefold().endswith(end) for name in called)


def _names(summary: Summary) -> set[str]:
    """The names of the project of a session: its folder of sessions, and the folder that its agent worked in."""
    names = set() if summary.ref.project is None else {summary.ref.project}
    return names | {path_slug(summary.cwd)} if summary.cwd else names
