"""Select the sessions of a command: all, those of a project, or one."""

from __future__ import annotations

import os
from collections.abc import Iterable

from sessionary.cli import options, output
from sessionary.cli.progress import Progress
from sessionary.cli.text import one_line, short_path
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.ids import PROJECTS, project_slug
from sessionary.model import SessionRef, Summary
from sessionary.workspace import Workspace, gathered, is_home


def all_summaries(workspace: Workspace) -> tuple[list[Summary], StorageFailed | None]:
    """The summary of every session, and the errors of the folders that could not be read."""
    with Progress("reading sessions", None) as progress:
        return gathered(progress.over(workspace.summaries()))


def slugs_of(
    workspace: Workspace, refs: Iterable[SessionRef], word: str, failure: StorageFailed | None
) -> set[str]:
    """The projects that the value of `--project` names; see `Workspace.projects`.

    Raises:
        NotFound: no project matches.
        StorageFailed: no project matches, and not all sessions could be listed: `failure`.
    """
    try:
        return workspace.projects(word, refs)
    except NotFound as error:
        raise failure or error from None


def of_project(
    workspace: Workspace, summaries: list[Summary], word: str | None, failure: StorageFailed | None
) -> list[Summary]:
    """The sessions of the projects that the value of `--project` names; all without one. Raises as `slugs_of`."""
    if word is None:
        return summaries
    slugs = slugs_of(workspace, (one.ref for one in summaries), word, failure)
    return [one for one in summaries if one.ref.project in slugs]


def names_of(workspace: Workspace, summaries: Iterable[Summary]) -> dict[str | None, str]:
    """As `project_names`, of the projects of these sessions; one without a path is called by its sessions' folder."""
    found = list(summaries)
    names = project_names(workspace, {one.ref.project for one in found})
    paths = workspace.project_paths(one.ref.project for one in found if one.ref.project is not None)
    for one in found:
        if (
            one.cwd
            and os.path.isabs(one.cwd)
            and one.ref.project is not None
            and one.ref.project not in paths
        ):
            names[one.ref.project] = short_path(one.cwd)
    return names


def project_names(workspace: Workspace, slugs: Iterable[str | None]) -> dict[str | None, str]:
    """The name under which each project is shown: its path, ``~/code/app``; ``-`` for none.

    A project whose path is unknown is shown by the name of its folder of sessions, without the user's home in front.
    """
    wanted = set(slugs)
    slug_of_home = project_slug(os.path.expanduser("~"))
    paths = workspace.project_paths(slug for slug in wanted if slug is not None)
    names: dict[str | None, str] = {None: "-"}
    for slug in wanted:
        if slug is None:
            continue
        path = paths.get(slug)
        if path is None:
            names[slug] = "~" if slug == slug_of_home else slug.removeprefix(f"{slug_of_home}-")
        else:
            names[slug] = short_path(path)
    return names


def tell_none(workspace: Workspace) -> None:
    """Print that no session was found: the user may have meant another folder."""
    missing = "" if is_home(str(workspace.home)) else f": it contains no {PROJECTS}/"
    output.aside(f"No sessions in {one_line(str(workspace.home))}{missing}; --home names another folder.")


def tell_partly(failure: StorageFailed | None, what: str) -> int:
    """Print which folders could not be read; return the exit code."""
    if failure is None:
        return 0
    for folder in failure.details.get("folders", [failure.path]):
        output.aside(f"sessionary: {one_line(str(folder))} cannot be read: its sessions are not {what}")
    return options.PARTLY
