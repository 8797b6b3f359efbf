"""`sessionary import`: import sessions of other stores and of exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sessionary.cli import formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless, one_line
from sessionary.workspace.imports.importing import Imported
from sessionary.workspace.imports.taking_over import CONFLICT

_WORDS = {
    "added": "imported",
    "extended": "continued",
    "unchanged": "imported before",
    CONFLICT: "left out: another session of this id is stored, or both have changed",
}


@command(
    "import",
    "sessionary import trajectory.atif.json",
    "sessionary import conversations.db      of SQLiteSession, or of ADK",
    "sessionary import *.atif.json --json",
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=False)
)
@options.home
@options.json_result
def import_command(files: Sequence[Path]) -> int:
    """Import sessions from a trace or a framework's database.

    FILE is an ATIF trajectory, an STS trace, or the database of a framework. All commands then read them
    (`sessionary list --kind records`), and the stores of this package continue those of frameworks. FILE is not
    changed. Import it again to add what is new; nothing is stored twice. This cannot be undone: the sessions are new
    files, which `sessionary list --json` names.

    Exit code 3: something was left out.
    """
    homes.check_named(next(iter(homes.named()), None))
    workspace = homes.workspace(must_exist=False)
    done = list(map(workspace.import_file, dict.fromkeys(files)))
    if output.is_json():
        output.value({"imports": [_object(one) for one in done]})
    else:
        for one in done:
            output.lines(_lines(one))
            for problem in one.problems:
                output.aside(f"{harmless(problem.path)}: {one_line(problem.message)}")
    left_out = any(one.problems or any(it.state == CONFLICT for it in one.sessions) for one in done)
    return options.PARTLY if left_out else 0


def _lines(done: Imported) -> Iterator[str]:
    if not done.sessions:
        yield f"{harmless(done.path)} has no sessions"
    for one in done.sessions:
        count = f"  {formatting.count(one.items, 'item')}" if one.items else ""
        yield f"{one_line(one.session_id)}  {_WORDS[one.state]}{count}"


def _object(done: Imported) -> dict[str, object]:
    sessions = [
        {"id": one.session_id, "framework": one.framework, "state": one.state, "items": one.items}
        for one in done.sessions
    ]
    problems = [one.as_dict() for one in done.problems]
    return {"path": done.path, "format": done.format, "sessions": sessions, "problems": problems}
