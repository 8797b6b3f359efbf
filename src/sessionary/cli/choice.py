"""Select the sessions of a command: all, those of a project, or one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sessionary.cli import options, output
from sessionary.cli.progress import Progress
from sessionary.cli.targets import is_home
from sessionary.cli.text import one_line, short_path
from sessionary.disk.fs import OS_FS
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.amplifier.ids import PROJECTS, project_slug
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.summary import summary_of
from sessionary.model import SessionRef, Summary
from sessionary.workspace import Workspace

_SHOWN = 20


def all_refs(workspace: Workspace) -> tuple[list[SessionRef], StorageFailed | None]:
    """Every session, and the errors of the folders that could not be read."""
    refs: list[SessionRef] = []
    try:
        refs.extend(workspace.refs())
    except StorageFailed as error:
        return refs, error
    return refs, None


def all_summaries(workspace: Workspace) -> tuple[list[Summary], StorageFailed | None]:
    """The summary of every session, and the errors of the folders that could not be read."""
    summaries: list[Summary] = []
    try:
        with Progress("reading sessions", None) as progress:
            summaries.extend(progress.over(workspace.summaries()))
    except StorageFailed as error:
        return summaries, error
    return summaries, None


@contextmanager
def among_found(failure: StorageFailed | None) -> Iterator[None]:
    """A block that looks for something among the sessions found. A folder that could not be read may hold it.

    Raises:
        StorageFailed: it was not found, and not all sessions could be listed.
    """
    try:
        yield
    except NotFound:
        if failure is not None:
            raise failure from None
        raise


def stores(workspace: Workspace, closed: list[StorageFailed]) -> Iterator[tuple[str, str]]:
    """Every project of the home and its folder of sessions; errors of unreadable folders are added to `closed`."""
    try:
        yield from AmplifierLayout(workspace.home).stores()
    except StorageFailed as error:
        closed.append(error)


def joined(closed: list[StorageFailed]) -> StorageFailed | None:
    """The first error, with the folders of all of them; None if there are none."""
    if not closed:
        return None
    folders = [folder for error in closed for folder in error.details.get("folders", [error.path])]
    closed[0].details["folders"] = folders
    return closed[0]


def chosen(
    workspace: Workspace, refs: Iterable[SessionRef], *, project: str | None = None, top_level: bool = False
) -> list[SessionRef]:
    """The sessions of a project, with or without those of sub-agents.

    Raises:
        NotFound: no project has this name.
    """
    found = list(refs)
    if project is not None:
        slugs = projects(workspace, found, project)
        found = [ref for ref in found if ref.project in slugs]
    return [ref for ref in found if not workspace.is_nested(ref)] if top_level else found


def projects(workspace: Workspace, refs: Iterable[SessionRef], word: str) -> set[str]:
    """The folder names of the projects that a word names: one by its name or path, else all that end with the word.

    Raises:
        NotFound: no project matches.
    """
    slugs = {ref.project for ref in refs if ref.project is not None}
    wanted = {word}
    if os.sep in word or word.startswith((".", "~")):
        wanted.add(project_slug(os.path.expanduser(word)))
    found = slugs & wanted
    found = found or {slug for slug in slugs if slug.casefold().endswith("-" + word.casefold().strip("-"))}
    if not found:
        known = sorted(project_names(workspace, slugs)[slug] for slug in slugs)
        raise NotFound(
            f"no project named {word}",
            details={"matches": known[:_SHOWN], "count": len(known)},
            hint=("there is 1 project" if len(known) == 1 else f"there are {len(known)} projects")
            + (f"; the first {_SHOWN} are shown" if known[_SHOWN:] else ""),
        )
    return found


def title_of(workspace: Workspace, ref: SessionRef) -> str | None:
    """The title of a session, as in a list, read from the beginning of the conversation only.

    A summary has it too, but may read megabytes, and the first hit of a search should not wait.
    """
    from sessionary.layouts.amplifier.recovery import read_metadata  # imported here: only a search needs it
    from sessionary.transcript import is_real_user, text_of

    if ref.kind != AmplifierLayout.name:
        return summary_of(workspace.layout_of(ref), ref).title
    name = read_metadata(OS_FS, ref.locator, recovery_time="").value.get("name")
    if isinstance(name, str) and name.strip():
        return name
    try:
        messages = (entry.record.value for entry in workspace.layout_of(ref).entries(ref))
        return next((text for one in messages if is_real_user(one) and (text := text_of(one).strip())), None)
    except (NotFound, StorageFailed):
        return None


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
