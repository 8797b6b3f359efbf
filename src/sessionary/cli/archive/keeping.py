"""`sessionary archive add` and `sessionary archive run`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sessionary.cli import changing, formatting, homes, options, output
from sessionary.cli.archive import entries
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.targets import report_failure
from sessionary.cli.text import harmless, one_line, short_path
from sessionary.workspace import KINDS
from sessionary.workspace.archive import FOREIGN
from sessionary.workspace.archive_index import usual_folder


@command(
    "add",
    "sessionary archive add --folder /mnt/backup/sessions",
    "sessionary archive add --kind claude_code --kind codex",
    "sessionary archive add --project ~/code/app",
    "sessionary archive add --replace               all projects of all other agents again",
)
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="This kind. May be repeated.")
@click.option(
    "--project", "projects", metavar="NAME | DIR", multiple=True, help="Only this project. May be repeated."
)
@entries.folder
@click.option("--replace", is_flag=True, help="Forget what was chosen before, the folder too.")
@options.json_result
def add_command(
    kinds: tuple[str, ...], projects: tuple[str, ...], folder: Path | None, replace: bool, json_: bool
) -> int:
    """Choose which sessions are archived, and where. `sessionary archive run` archives them.

    Without a choice, those of all other agents are, of all projects. The choice is stored in archive.json in the
    configuration folder. There is no undo: --replace forgets the choice.
    """
    usual = usual_folder()
    if replace and folder is None and usual is not None:
        folder = Path(usual)  # whatever was chosen, even if that cannot be read
    archive = homes.workspace(None, must_exist=False).archive(folder)
    choice = archive.choose(kinds, map(_project, projects), replace=replace)
    if json_:
        output.value(
            {"kinds": choice.kinds or FOREIGN, "projects": choice.projects, "folder": archive.folder}
        )
        return 0
    of = ", ".join(map(short_path, choice.projects)) or "all projects"
    what = ", ".join(choice.kinds) or "all other agents"
    output.lines(changing.done(one_line(f"to be archived: {what}, {of}, in {short_path(archive.folder)}")))
    changing.print_command("next", "sessionary archive run")
    return 0


def _project(word: str) -> str:
    """A project by its absolute path if it is written as a path, else by its name."""
    is_path = os.sep in word or word.startswith((".", "~"))
    return os.path.abspath(os.path.expanduser(word)) if is_path else word


@command(
    "run",
    "sessionary archive run",
    "sessionary archive run --json | jq '.pushed | length'",
    "0 * * * *  sessionary archive run              every hour, as a line of a crontab",
)
@options.home
@entries.folder
@options.json_result
def run_command(home: Path | None, folder: Path | None, json_: bool) -> int:
    """Archive the sessions that are new or have changed.

    The files of a session are copied byte for byte, with those of its sub-agents; of a session in a database, its
    rows. Sources are only read, and credentials never. Content that does not continue the archived bytes becomes a
    new version, and all versions are kept. It may be interrupted at any time, and run twice at once. There is no
    undo: `sessionary archive rm` removes a session from the archive.

    Exit code 3: some sessions could not be archived.
    """
    archive = homes.workspace(home).archive(folder)
    with Progress("archiving", None) as progress:
        report = archive.run(passed=progress.advance)
    if json_:
        output.value(
            {
                "folder": archive.folder,
                "pushed": list(map(entries.document, report.pushed)),
                "unchanged": report.unchanged,
                "failed": [{"id": one, "message": why} for one, why in report.failed],
            }
        )
    else:
        size = formatting.size(sum(one.size for one in report.pushed))
        of_size = f" ({size})" if report.pushed else ""
        done = f"{formatting.count(len(report.pushed), 'session')} archived{of_size}"
        output.lines(changing.done(f"{done}, {report.unchanged:,} unchanged"))
        for one, why in report.failed:
            output.aside(harmless(f"sessionary: {one}: {why}"))
    return report_failure(report.failure, "archived") or (options.PARTLY if report.failed else 0)
