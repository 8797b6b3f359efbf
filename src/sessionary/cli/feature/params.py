"""Arguments and options that several commands on features share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from sessionary.cli import completing, options, output, project_options
from sessionary.layouts.orchestrator.store import DEFAULT_AGENT, FeatureStore


def _argument(*, archived: bool = False, required: bool = True) -> Callable[[Any], Any]:
    def ids(ctx: click.Context) -> list[str]:
        rows = FeatureStore(ctx.params["root"]).list_features(archived=archived)
        return [row.feature_id for row in rows if row.archived == archived]

    def find(root: Path, word: str) -> str:
        return FeatureStore(root).find(word, archived=archived)

    return click.argument(
        "feature_id",
        metavar="ID" if required else "[ID]",
        required=required,
        callback=project_options.resolving(find),
        shell_complete=completing.ids(ids),
    )


feature = _argument()
optional_feature = _argument(required=False)
archived_feature = _argument(archived=True)
store = project_options.on_store(FeatureStore)
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
    def called(store: FeatureStore, agent: str, require_ack: Path | None, **rest: Any) -> int:
        return command(FeatureStore(store.home, agent=agent, require_ack=require_ack), **rest)

    agent = click.option(
        "--agent", default=DEFAULT_AGENT, show_default=True, help="The agent, as recorded in the history."
    )
    return store(agent(require_ack(options.json_result(called))))


def print_outcome(
    store: FeatureStore, text: str, document: dict[str, Any], *, undo: Sequence[str] = ()
) -> int:
    """Print the outcome, its problems, and the command that undoes it, if there is one."""
    problems = store.last_report.problems
    if not output.is_json():
        project_options.warn(problems)
    document = {**document, "problems": [problem.as_dict() for problem in problems]}
    return project_options.outcome(document, text, undo=undo)
