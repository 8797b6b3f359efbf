"""Base of all command groups: suggests a command for a mistyped one, and refuses text that is not valid UTF-8."""

from __future__ import annotations

import click

from sessionary.cli.arguments import text_only


class SuggestingGroup(click.Group):
    """A group that suggests similar commands for an unknown one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which they are written."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; see `click.Group.resolve_command`.

        Raises:
            UsageError: no command has that name.
        """
        word = args[0]
        if not (ctx.resilient_parsing or word.startswith("-")) and self.get_command(ctx, word) is None:
            ctx.fail(f"No such command '{word}'.{_meant(word, self.list_commands(ctx))}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and text_only(command, rest), rest


def _meant(word: str, commands: list[str]) -> str:
    from difflib import get_close_matches  # imported here: slow to import and rarely needed

    near = get_close_matches(word.casefold(), commands)
    return f" Did you mean {' or '.join(near)}?" if near else ""
