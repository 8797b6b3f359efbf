"""The commands that create a feature, set its state, and log commands run for it."""

from __future__ import annotations

from typing import Any

import click

from sessionary.cli import output, project_options
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.cli.text import one_line
from sessionary.layouts.orchestrator.rules import MODELS
from sessionary.layouts.orchestrator.statefile import FeatureState
from sessionary.layouts.orchestrator.store import FeatureStore


@command(
    "create",
    'sessionary feature create "Sign in" --description "Log in with OAuth"',
    "sessionary feature create --id sign-in-2025-01-09",
)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--id", "feature_id", metavar="ID", help="Lower-case words and a date (default: NAME and today)."
)
@click.option("--description", default="", help="Description of the feature.")
@params.writing
def create_command(
    store: FeatureStore, name: str | None, feature_id: str | None, description: str, json_: bool
) -> int:
    """Create a feature, and print its id.

    It gets a folder with plan, state, empty history and artifacts, and a row in the list of features. There
    is no undo: a feature is never deleted, only completed and archived.
    """
    if name is None and feature_id is None:
        raise click.UsageError("give a NAME, or an --id")
    made = store.create(feature_id, name=name, description=description)
    document = {"feature_id": made, "path": str(store.home / made)}
    return output.shown(document, [made], json_=json_)


@command(
    "update",
    "sessionary feature update sign-in-2025-01-09 --task T1 --model opus",
    "sessionary feature update sign-in-2025-01-09 --no-task",
)
@params.feature
@click.option("--task", metavar="TASK", help="The active task.")
@click.option("--no-task", is_flag=True, help="Clear the active task.")
@click.option("--model", type=click.Choice(MODELS), help="The model in use.")
@click.option(
    "--command", default="update-state", show_default=True, help="Name of the command in the history."
)
@click.option("--arguments", metavar="TEXT", help="Its arguments in the history (default: the settings).")
@params.writing
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
    """Set parts of the state. Each update adds a line to the history, even if nothing changes.

    Undo: another `update`, which is printed; the history keeps both.
    """
    if no_task and task is not None:
        raise click.UsageError("--task and --no-task exclude each other")
    fields: dict[str, Any] = {}
    if no_task or task is not None:
        fields["active_task"] = task
    if model is not None:
        fields["model_in_use"] = model
    before = project_options.before(lambda: store.load(feature_id))
    state = store.update(feature_id, command=command, arguments=arguments, **fields)
    text = f"{feature_id}: {state.active_task or 'no task'}, {state.model_in_use}"
    document: dict[str, object] = {"feature_id": feature_id, **state.as_dict()}
    return params.print_outcome(store, text, document, json_=json_, undo=_back_to(before, state))


def _back_to(before: FeatureState | None, now: FeatureState) -> list[str]:
    """The words that revert an update; none if it changed nothing."""
    words: list[str] = []
    if before is None:
        return words
    if before.active_task != now.active_task:
        words += ["--no-task"] if before.active_task is None else ["--task", before.active_task]
    if before.model_in_use != now.model_in_use:
        words += ["--model", before.model_in_use]
    return ["update", now.feature_id, *words] if words else []


@command(
    "log",
    'sessionary feature log sign-in-2025-01-09 "make test" --duration 5200',
    'sessionary feature log sign-in-2025-01-09 implement --arguments "the form" --task T1',
    'sessionary feature log sign-in-2025-01-09 "make test" --failed --error "2 tests failed"',
)
@params.feature
@click.argument("command", metavar="COMMAND")
@click.option("--arguments", default="", metavar="TEXT", help="Arguments of the command.")
@click.option("--failed", is_flag=True, help="Record the command as failed.")
@click.option("--error", metavar="TEXT", help="The error; implies --failed.")
@click.option(
    "--duration", "duration_ms", type=click.IntRange(0), metavar="MS", help="Duration in milliseconds."
)
@click.option("--task", "task_id", metavar="TASK", help="The task of the command (default: the active one).")
@click.option("--model", type=click.Choice(MODELS), help="The model that ran it (default: the one in use).")
@params.writing
def log_command(
    store: FeatureStore, feature_id: str, failed: bool, error: str | None, json_: bool, **values: Any
) -> int:
    """Log a command in the history of a feature. The state does not change.

    Each line has the fields that the contract requires. There is no undo: entries are never removed from a history.
    """
    values["error"] = "failed" if failed and error is None else error
    entry = {name: value for name, value in values.items() if value is not None}
    made = store.append(feature_id, entry)
    text = f"{feature_id}: logged {one_line(made['command'])}, {made['status']}"
    return params.print_outcome(store, text, {"feature_id": feature_id, "entry": made}, json_=json_)
