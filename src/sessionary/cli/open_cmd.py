"""`sessionary open`: continue a session in its agent."""

from __future__ import annotations

import subprocess

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.problems import problem_lines
from sessionary.cli.targets import session as named
from sessionary.cli.text import one_line, shell_line
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.model import Severity
from sessionary.workspace import documents
from sessionary.workspace.opening import Resume


@command(
    "open",
    "sessionary open 3f0c81d2              print the command",
    "sessionary open 3f0c81d2 --run        run it in the folder of the session",
    'eval "$(sessionary open latest)"      the same in this shell',
)
@click.argument("session", metavar="ID", shell_complete=completing.sessions())
@options.home
@options.flag("--run", help="Run the command, after confirmation.")
@options.flag("--yes", help="With --run: do not ask for confirmation.")
@options.json_result
def open_command(session: str, run: bool, yes: bool) -> int:
    """Print the command that continues a session, or run it.

    The command begins with a change to the folder that the agent worked in. The session is checked first: what the
    agent or its provider would refuse is printed on standard error, with the remedy. Sessionary writes nothing.

    Exit code 13: the agent may refuse the session, or show less of it. With --run: the exit code of the agent.
    """
    if output.is_json() and run:
        raise click.UsageError("--json and --run exclude each other")
    workspace = homes.workspace()
    ref = named(workspace, session)
    found = workspace.resume(ref)
    if output.is_json():
        output.value({"id": ref.session_id, **documents.of_resume(found)})
        return _exit_code(found)
    _warn(found, ref.locator)
    if run:
        return _run(found, ask=not yes)
    line = shell_line(found.command)
    output.line(f"cd {shell_line([found.folder])} && {line}" if found.folder and found.is_there else line)
    return _exit_code(found)


def _exit_code(found: Resume) -> int:
    return Corrupt.exit_code if any(one.severity > Severity.note for one in found.problems) else 0


def _warn(found: Resume, base: str) -> None:
    for problem in found.problems[:5]:
        for line in problem_lines(problem, base):
            output.aside(line)
    if len(found.problems) > 5:
        output.aside(
            f"and {formatting.count(len(found.problems) - 5, 'more problem')}: `sessionary check` shows them"
        )
    if found.folder is None:
        output.aside("The session does not say in which folder the agent worked: run the command there.")
    elif not found.is_there:
        output.aside(
            f"The folder {one_line(found.folder)} is missing: run the command where the project is now."
        )


def _run(found: Resume, *, ask: bool) -> int:
    """Run the command in the folder of the session; return its exit code.

    Raises:
        NotFound: the folder or the program is missing.
    """
    if found.folder is None or not found.is_there:
        hint = "run the command in the folder where the project is now"
        raise NotFound("the folder of the session is missing", path=found.folder, hint=hint)
    refusal = Invalid("confirmation needs a terminal", hint="give --yes")
    question = f"Run {shell_line(found.command)} in {one_line(found.folder)}?"
    if ask and not changing.confirmed(question, refusal):
        return changing.DECLINED
    output.flush()
    try:
        return subprocess.run(found.command, cwd=found.folder, check=False).returncode
    except FileNotFoundError:
        program = found.command[0]
        raise NotFound(
            f"the program {program} is not installed", hint=f"install {program}, or add it to PATH"
        ) from None
