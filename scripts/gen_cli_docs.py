"""Write docs/cli.md from the command line's own help, so that the two cannot disagree."""

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

Results that are longer than the screen go through `$PAGER` (default: `less`); an empty `PAGER` turns that off.
Work of more than a second shows how far it has come, on standard error.
Colours only repeat what signs and words say, and `NO_COLOR` turns them off.
[Screens](screens.md) shows what is printed in 80 columns.

Shells complete commands, options and the ids of sessions, once they are told:

| shell | line | where |
|---|---|---|
| bash | `eval "$(_SESSIONARY_COMPLETE=bash_source sessionary)"` | `~/.bashrc` |
| zsh | `eval "$(_SESSIONARY_COMPLETE=zsh_source sessionary)"` | `~/.zshrc` |
| fish | `_SESSIONARY_COMPLETE=fish_source sessionary > ~/.config/fish/completions/sessionary.fish` | once, in a shell |

For the other program it is `_MAESTRO_COMPLETE` and `maestro`.

## Names

A session is named by its id, a beginning of that, its name, or the path of its folder.
Features and brainstorms are named by their id or a beginning of it.
Upper and lower case count only where two ids differ by that alone.
`latest` is the session that changed last: of its kind, where a command is for one kind only.
A time after the clock does not count for that.
For `undo`, `restore` and `unarchive` it may be the one that was put away last.
A cookie (`work breadcrumb add`) is always the whole id, and `sync resolve` takes no `latest`.
The name is what `list` shows as the title, in any case.
Of the id of a sub-agent's session the own part counts: `9c1d` names `0000000000000000-9c1d2e3f4a5b6c7d_explorer`.
All projects are looked into.
If a name fits several sessions, they are listed, and the exit code is 12.

Sessions of agents are looked for in `--home`, else in `$SESSIONARY_HOME`, else in `~/.amplifier`.
Work sessions, brainstorms and features are looked for in the folder that `--root` names, else in the current one.
With `--home`, commands for all kinds look only into that folder.
A folder that is named and is missing, or holds no sessions, is an error: the exit code is 10.
It may be empty for commands that begin the first session, for `feature ack` and for those of `sync`.

A project is named by its path, its folder name below `projects/`, or the end of that.
Commands call it by its path, `~/code/app`; by its folder name where no session and no folder tells the path.

## In a git work tree

Where sessions lie inside of a git work tree, it is said once which lines of a `.gitignore` keep our side files out.
It is said on standard error, by the first command without `--json` or `--jsonl`; nothing is written into the work tree.
"""

# Codes that no error class owns.
OTHER_CODES = {
    0: "done",
    1: "`search` found nothing; a question was answered with no; or a bug in Sessionary, which is then named",
    2: "the command line makes no sense",
    3: "partly done; what was not is named on standard error",
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
