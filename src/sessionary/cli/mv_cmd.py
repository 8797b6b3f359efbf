"""`sessionary mv`: move sessions after their project folder was renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sessionary.cli import formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.text import fit, harmless, one_line, shell_line
from sessionary.layouts.amplifier.project_rename import Move, Step

_SHOWN = 10


class _Named(click.Command):
    """Accepts the folder name of a project as an argument although it begins with a hyphen, as an option does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names: list[str] = []
        options: list[str] = []
        words = list(args)
        while words:
            word = words.pop(0)
            if word == "--":
                names, words = names + words, []
            elif word.startswith("--") or word == "-h":
                options += [word, *words[:1]] if word == "--home" else [word]
                words = words[word == "--home" :]
            else:
                names.append(word)
        return super().parse_args(ctx, [*options, "--", *names])


@command(
    "mv",
    "sessionary mv ~/code/app ~/code/shop --dry-run",
    "sessionary mv ~/code/app ~/code/shop",
    "sessionary mv app ~/code/shop       the project whose folder name ends with -app",
    "sessionary mv ~/code/shop ~/code/app",
    cls=_Named,
)
@click.argument("project", metavar="PROJECT")
@click.argument("newpath", metavar="NEWPATH")
@options.home
@options.flag("--dry-run", help="Show what would be done; write nothing.")
@options.json_result
def mv_command(project: str, newpath: str, dry_run: bool) -> int:
    """Move sessions to the new path of a renamed project.

    PROJECT is renamed to NEWPATH. PROJECT is the old path, the name of its folder below projects/, or the end
    of that. The agent finds sessions by a folder name made from the path, so both names are shown. The working
    directory in the sessions is changed where it is the old path or a folder in it. Your project folder itself
    is not touched.

    If NEWPATH has sessions, both are joined; if two sessions have the same id, nothing is done. If
    interrupted, run it again. First close the agents that work there.

    Undo: move back; the command is printed.
    """
    workspace = homes.workspace()
    move = workspace.plan_move(project, Path(os.path.expanduser(newpath)))
    if not dry_run:
        with Progress("moving sessions", len(move.steps)) as progress:
            workspace.move(move, passed=progress.advance)
    back = shell_line(["sessionary", "mv", move.new, move.old or "OLDPATH", *homes.as_options()])
    if output.is_json():
        output.value(_object(move, dry_run, back))
    else:
        output.lines(_moved_lines(move, dry_run))
        for text in _remarks(move, dry_run, back):
            output.aside(text)
    return options.PARTLY if _not_moved(move) else 0


def _not_moved(move: Move) -> list[str]:
    """The reasons why sessions that should have moved are still in place."""
    return [problem.message for problem in move.problems if problem.code == "not_moved"]


def _moved_lines(move: Move, dry_run: bool) -> Iterator[str]:
    """Both paths with their folder names, and how many sessions move."""
    room = output.width()
    yield f"from  {fit(harmless(move.old or '(path unknown: no session names it)'), room - 6, keep_end=True)}"
    yield f"      sessions in {fit(one_line(move.old_slug), room - 18, keep_end=True)}"
    yield f"to    {fit(harmless(move.new), room - 6, keep_end=True)}"
    yield f"      sessions in {fit(one_line(move.new_slug), room - 18, keep_end=True)}"
    done = len(move.steps) - len(_not_moved(move))
    follow = "would move" if dry_run else "moved"
    if move.source == move.target:
        follow = "would stay in place" if dry_run else "stay in place"
    changed = sum(step.after is not None for step in move.steps)
    trashed = sum(step.trashed for step in move.steps)
    yield f"{formatting.count(done, 'session')} {follow}" + (
        f", {trashed:,} of them in the trash" if trashed else ""
    )
    if changed:
        yield f"working_dir {'would change' if dry_run else 'changed'} in {changed:,} of them"


def _remarks(move: Move, dry_run: bool, back: str) -> Iterator[str]:
    if move.there:
        there = formatting.count(move.there, "session")
        yield f"{move.new_slug} already had {there}; moving back would move these too"
    for session, path in move.staying[:_SHOWN]:
        yield f"{one_line(session)} stays: it belongs to {one_line(path)}, which has the same folder name"
    if len(move.staying) > _SHOWN:
        yield f"so do {len(move.staying) - _SHOWN:,} more"
    if move.left:
        names = one_line(", ".join(move.left[:_SHOWN]) + (", …" if len(move.left) > _SHOWN else ""))
        yield f"left in {move.old_slug}, not sessions: {names}"
    for problem in move.problems:
        yield f"{one_line(problem.path)}: {one_line(problem.message)}"
    if not os.path.isdir(move.new):
        yield f"folder {one_line(move.new)} does not exist yet"
    if not dry_run:
        yield f"undo: {harmless(back)}"


def _object(move: Move, dry_run: bool, back: str) -> dict[str, Any]:
    """The result with the field names of docs/cli-json.md."""
    return {
        "dry_run": dry_run,
        "old": {"path": move.old, "project": move.old_slug},
        "new": {"path": move.new, "project": move.new_slug, "sessions": move.there},
        "sessions": [_step_object(step) for step in move.steps],
        "staying": [{"id": session, "path": path} for session, path in move.staying],
        "left": move.left,
        "problems": [problem.as_dict() for problem in move.problems],
        "undo": back,
    }


def _step_object(step: Step) -> dict[str, Any]:
    return {
        "id": step.session_id,
        "from": step.source,
        "to": step.target,
        "trashed": step.trashed,
        "working_dir": None if step.after is None else {"old": step.before, "new": step.after},
    }
