"""The commands that begin a feature and set its state."""

from __future__ import annotations

from typing import Any

import click

from sessionary.cli import output
from sessionary.cli.feature import given
from sessionary.layouts.orchestrator.rules import MODELS
from sessionary.layouts.orchestrator.status import state_dict
from sessionary.layouts.orchestrator.store import FeatureStore


@click.command(
    "create",
    epilog="""\b
Examples:
  sessionary feature create "Sign in" --description "Log in with OAuth"
  sessionary feature create --id sign-in-2025-01-09
""",
)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--id", "feature_id", metavar="ID", help="Lower-case words and a date (default: NAME and today)."
)
@click.option("--description", default="", help="What it is about.")
@given.writing
def create_command(
    store: FeatureStore, name: str | None, feature_id: str | None, description: str, json_: bool
) -> int:
    """Begin a feature, and print its id.

    It gets a folder with plan, state, empty history and artifacts, and a row in the list of features.
    """
    if name is None and feature_id is None:
        raise click.UsageError("give a NAME, or an --id")
    made = store.create(feature_id, name=name, description=description)
    if json_:
        output.value({"feature_id": made, "path": str(store.home / made)})
    else:
        output.line(made)
    return 0


@click.command(
    "update",
    epilog="""\b
Examples:
  sessionary feature update sign-in-2025-01-09 --task T1 --model opus
  sessionary feature update sign-in-2025-01-09 --no-task
""",
)
@given.feature
@click.option("--task", metavar="TASK", help="The task that is worked on.")
@click.option("--no-task", is_flag=True, help="No task is worked on.")
@click.option("--model", type=click.Choice(MODELS), help="The model that works on it.")
@click.option("--command", default="update-state", show_default=True, help="What the history calls it.")
@click.option("--arguments", metavar="TEXT", help="The arguments in the history (default: what was set).")
@given.writing
def update_command(
    store: FeatureStore,
    feature_id: str,
    task: str | None,
    no_task: bool,
    model: str | None,
    command: str,
    arguments: str | None,
    json_: bool,
) -> int:
    """Set what is given of the state. Each update is one line of the history, even if nothing changes."""
    if no_task and task is not None:
        raise click.UsageError("--task and --no-task exclude each other")
    fields: dict[str, Any] = {}
    if no_task or task is not None:
        fields["active_task"] = task
    if model is not None:
        fields["model_in_use"] = model
    state = store.update(feature_id, command=command, arguments=arguments, **fields)
    text = f"{feature_id}: {state.active_task or 'no task'}, {state.model_in_use}"
    return given.told(store, text, {"feature_id": feature_id, **state_dict(state)}, json_=json_)
