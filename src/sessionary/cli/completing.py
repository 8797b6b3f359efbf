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
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.session_ids import LATEST
from sessionary.model import Summary
from sessionary.workspace import Workspace

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]
_TITLE = 60


def sessions(kind: str | None = None, *, files: bool = False) -> Complete:
    """Completes session ids.

    Args:
        kind: only of this kind; None for all.
        files: also offer files if no id matches.
    """

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        try:
            found = list(_items(homes.workspace(ctx.params.get("home")), kind, begun))
        except (SessionaryError, OSError):
            found = []
        return found if found or not files else [CompletionItem(begun, type="file")]

    return complete


def of_agents() -> Complete:
    """Completes the session ids of agents."""
    return sessions(AmplifierLayout.name)


def ids(named: Callable[[click.Context], list[str]]) -> Complete:
    """Completes ids of one kind, which `named` lists newest first."""

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        try:
            return [CompletionItem(one) for one in [*named(ctx), LATEST] if _begins(one, begun)]
        except (SessionaryError, OSError):
            return []

    return complete


def _items(workspace: Workspace, kind: str | None, begun: str) -> Iterator[CompletionItem[str]]:
    """The matching ids, shortened unless more was typed already."""
    summaries = [
        summary
        for summary in _all(workspace)
        if kind in (None, summary.ref.kind) and not workspace.is_nested(summary.ref)
    ]
    summaries.sort(key=lambda one: one.updated.timestamp() if one.updated else 0.0, reverse=True)
    short = workspace.short_ids([summary.ref for summary in summaries])
    for summary, name in zip(summaries, short, strict=True):
        whole = summary.ref.session_id
        if _begins(whole, begun):
            title = one_line(summary.title or "")[:_TITLE] or None
            yield CompletionItem(name if _begins(name, begun) else whole, help=title)
    if summaries and _begins(LATEST, begun):
        yield CompletionItem(LATEST, help="the session that changed last")


def _all(workspace: Workspace) -> Iterator[Summary]:
    """Every summary that can be read; an unreadable folder does not hide the others."""
    try:
        yield from workspace.summaries()
    except SessionaryError:
        return


def _begins(name: str, begun: str) -> bool:
    return name.casefold().startswith(begun.casefold())
