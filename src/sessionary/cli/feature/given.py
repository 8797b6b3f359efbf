"""Arguments and options that several commands on features share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, options, output, project_options
from sessionary.layouts.orchestrator.store import DEFAULT_AGENT, FeatureStore

named = project_options.resolving(lambda root, word: store_in(root).find(word))
complete = completing.ids(
    lambda ctx: [row.feature_id for row in store_in(ctx.params["root"]).list_features()]
)
feature = click.argument("feature_id", metavar="ID", callback=named, shell_complete=complete)
archived = click.argument(
    "feature_id",
    metavar="ID",
    callback=project_options.resolving(lambda root, word: store_in(root).find(word, archived=True)),
    shell_complete=completing.ids(
        lambda ctx: [
            row.feature_id
            for row in store_in(ctx.params["root"]).list_features(archived=True)
            if row.archived
        ]
    ),
)
agent = click.option(
    "--agent", default=DEFAULT_AGENT, show_default=True, help="The agent, as recorded in the history."
)
require_ack = click.option(
    "--require-ack",
    envvar="SESSIONARY_REQUIRE_ACK",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Refuse if the agent has not acknowledged this contract (default: $SESSIONARY_REQUIRE_ACK).",
)


def writing(command: Callable[..., int]) -> Callable[..., int]:
    """The options of a command that writes; it is given the store, which knows the agent."""

    @functools.wraps(command)
    def called(root: Path, agent: str, require_ack: Path | None, **rest: Any) -> int:
        return command(store_in(root, agent, require_ack), **rest)

    for option in (options.json_result, require_ack, agent, project_options.root):
        called = option(called)
    return called


def store_in(root: Path, agent: str = DEFAULT_AGENT, require_ack: Path | None = None) -> FeatureStore:
    """The store of a project."""
    return FeatureStore(Path(os.path.expanduser(root)).absolute(), agent=agent, require_ack=require_ack)


def print_outcome(
    store: FeatureStore, text: str, document: dict[str, object], *, json_: bool, undo: Sequence[str] = ()
) -> int:
    """Print the outcome, its problems, and the command that undoes it, if there is one."""
    if json_:
        problems = [problem.as_dict() for problem in store.last_report.problems]
        output.value({**document, "undo": command_line(store, *undo) if undo else None, "problems": problems})
        return 0
    project_options.warn(store.last_report.problems)
    output.lines(changing.done(text))
    if undo:
        changing.print_command("undo", command_line(store, *undo))
    return 0


def command_line(store: FeatureStore, *words: str) -> str:
    """A command to copy on the features of the same project."""
    project = store.home.parent
    return project_options.command_line(
        "feature", Path() if project.resolve() == Path.cwd() else project, *words
    )
