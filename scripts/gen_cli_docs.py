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

# Codes that no error class owns.
OTHER_CODES = {
    0: "done",
    1: "a bug in Sessionary",
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
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(publish("cli.md", page(), sys.argv[1:]))
