"""Write docs/cli.md from the help texts of the commands."""

import sys
from collections.abc import Iterator

import click

from scripts.gen_errors_docs import error_classes
from scripts.generated import publish
from sessionary.cli.app import cli
from sessionary.errors import Corrupt

NAME = "sessionary"
WIDTH = 100

INTRO = """\
<!-- Written by `make docs` from the help texts and the error classes; edit those. -->
# Commands

Results go to standard output, everything else to standard error.
"""

OUTRO = """\
## In a terminal

Results that are longer than the screen go through `$PAGER` (default: `less`); an empty `PAGER` disables that.
Work of more than a second shows its progress on standard error.
Colours repeat what signs and words express, and `NO_COLOR` disables them.
[Screens](screens.md) shows the output in 80 columns.

To let a shell complete commands, options and ids of sessions, add a line:

| shell | line | place |
|---|---|---|
| bash | `eval "$(_SESSIONARY_COMPLETE=bash_source sessionary)"` | `~/.bashrc` |
| zsh | `eval "$(_SESSIONARY_COMPLETE=zsh_source sessionary)"` | `~/.zshrc` |
| fish | `_SESSIONARY_COMPLETE=fish_source sessionary > ~/.config/fish/completions/sessionary.fish` | once, in a shell |

For the program `maestro` use `_MAESTRO_COMPLETE` and `maestro`.

## Names

Name a session by its id, a prefix of the id, its name, or the path of its folder.
Name a feature or a brainstorm by its id or a prefix of it.
Case matters only if two ids differ in case alone.
`latest` is the most recently changed session: of its kind, if a command is for one kind only.
Times in the future are ignored for that.
For `undo`, `restore` and `unarchive` it includes trashed and archived sessions.
A cookie (`work breadcrumb add`) is always the whole id, and `sync resolve` does not accept `latest`.
The name is the title that `list` shows, in any case.
The id of a sub-agent's session matches by its own part: `9c1d` names `0000000000000000-9c1d2e3f4a5b6c7d_explorer`.
All projects are searched.
If a name matches several sessions, they are listed, and the exit code is 12.

Sessions of agents are read from `--home`, else from [the home of each agent](agents.md).
The home of Amplifier is `$SESSIONARY_HOME`, else `~/.amplifier`.
Work sessions, brainstorms and features are read from the folder of `--root`, else from the current one.
With `--home`, commands for all kinds read only that folder.
A named folder that is missing, or has no sessions, is an error: the exit code is 10.
It may be empty for commands that create the first session, for `feature ack` and for those of `sync`.

Name a project by its path, its folder name below `projects/`, or a suffix of that.
Commands print its path, `~/code/app`, or its folder name if the path is unknown.

## In a git work tree

If sessions are inside a git work tree, a hint lists the lines for `.gitignore` that exclude the files of Sessionary.
The first command without `--json` or `--jsonl` prints it once, on standard error; nothing is written to the work tree.
"""

# Codes that no error class owns.
OTHER_CODES = {
    0: "done",
    1: "`search` found nothing; a question was answered with no; or a bug in Sessionary, which is then reported",
    2: "invalid command line",
    3: "partly done; standard error lists the rest",
    130: "interrupted",
}


def commands(command: click.Command, name: str = NAME) -> Iterator[tuple[str, str]]:
    """The full name and the help text of `command` and of everything below it, in the order of the help."""
    options = ["-h", "--help"]
    with click.Context(
        command, info_name=name, help_option_names=options, max_content_width=WIDTH, terminal_width=WIDTH
    ) as context:
        yield name, command.get_help(context)
        if isinstance(command, click.Group):
            for word in command.list_commands(context):
                below = command.get_command(context, word)
                if below is not None and not below.hidden:
                    yield from commands(below, f"{name} {word}")


def exit_codes() -> dict[int, str]:
    """What each exit code means."""
    codes = dict(OTHER_CODES)
    for error in error_classes():
        if error.exit_code != 1 and "exit_code" in vars(error):
            promise = (error.__doc__ or "").splitlines()[0].replace("``", "`")
            codes[error.exit_code] = f"[{error.__name__}](errors.md): {promise}"
    codes[Corrupt.exit_code] += " Also: `check` found something worse than a note."
    return dict(sorted(codes.items()))


def page() -> str:
    """The whole document."""
    parts = [INTRO]
    parts += [f"## {name}\n\n```text\n{text.rstrip()}\n```\n" for name, text in commands(cli)]
    rows = "\n".join(f"| {code} | {meaning.rstrip('.')} |" for code, meaning in exit_codes().items())
    parts.append(f"## Exit codes\n\n| code | meaning |\n|---|---|\n{rows}\n")
    parts.append(OUTRO)
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(publish("cli.md", page(), sys.argv[1:]))
