"""Completion of session ids in a shell: the newest first, with their titles where the shell shows these.

Nothing is printed and nothing fails here: the shell shows the answer in the middle of a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
from click.shell_completion import CompletionItem

from sessionary.cli import homes
from sessionary.cli.text import one_line
from sessionary.errors import SessionaryError
from sessionary.layouts.base import Capability
from sessionary.layouts.session_ids import LATEST
from sessionary.workspace import Workspace, gathered

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]
_TITLE = 60


def sessions(able: Capability | None = None, *, files: bool = False) -> Complete:
    """Completes session ids.

    Args:
        able: only those whose layout grants this; None for all.
        files: also offer files if no id matches.
    """

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        try:
            with ctx.scope(cleanup=False):
                found = list(_items(homes.workspace(), able, begun))
        except (SessionaryError, OSError):
            found = []
        return found if found or not files else [CompletionItem(begun, type="file")]

    return complete


def ids(named: Callable[[click.Context], list[str]]) -> Complete:
    """Completes ids of one kind, which `named` lists newest first."""

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        try:
            return [CompletionItem(one) for one in [*named(ctx), LATEST] if _begins(one, begun)]
        except (SessionaryError, OSError):
            return []

    return complete


def _items(workspace: Workspace, able: Capability | None, begun: str) -> Iterator[CompletionItem[str]]:
    """The matching ids, shortened unless more was typed already."""
    summaries = [
        summary
        for summary in gathered(workspace.summaries())[0]
        if (able is None or workspace.grants(summary.ref, able)) and not summary.nested
    ]
    summaries.sort(key=lambda one: one.updated.timestamp() if one.updated else 0.0, reverse=True)
    short = workspace.short_ids([summary.ref for summary in summaries])
    for summary in summaries:
        whole, name = summary.ref.session_id, short[summary.ref]
        if _begins(whole, begun):
            title = one_line(summary.title or "")[:_TITLE] or None
            yield CompletionItem(name if _begins(name, begun) else whole, help=title)
    if summaries and _begins(LATEST, begun):
        yield CompletionItem(LATEST, help="the session that changed last")


def _begins(name: str, begun: str) -> bool:
    return name.casefold().startswith(begun.casefold())
