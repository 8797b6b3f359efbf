"""The commands that change a feature, its history, or the acknowledgments of the contract."""

from __future__ import annotations

import os
from typing import Any

import click

from sessionary.cli import lazy, options, output, project_options
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.cli.problems import item
from sessionary.cli.text import harmless, one_line
from sessionary.errors import Invalid
from sessionary.layouts.orchestrator.rules import COMPLETED, MODELS
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
def create_command(store: FeatureStore, name: str | None, feature_id: str | None, description: str) -> int:
    """Create a feature, and print its id.

    It gets a folder with plan, state, empty history and artifacts, and a row in the list of features. This
    cannot be undone: a feature is never deleted, only completed and archived.
    """
    if name is None and feature_id is None:
        raise click.UsageError("give a NAME, or an --id")
    made = store.create(feature_id, name=name, description=description)
    document = {"feature_id": made, "path": str(store.home / made)}
    return output.shown(document, [made])


@command(
    "update",
    "sessionary feature update sign-in-2025-01-09 --task T1 --model opus",
    "sessionary feature update sign-in-2025-01-09 --no-task",
)
@params.feature
@click.option("--task", metavar="TASK", help="The active task.")
@options.flag("--no-task", help="Clear the active task.")
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
    return params.print_outcome(store, text, document, undo=_back_to(before, state))


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
@options.flag("--failed", help="Record the command as failed.")
@click.option("--error", metavar="TEXT", help="The error; implies --failed.")
@click.option(
    "--duration", "duration_ms", type=click.IntRange(0), metavar="MS", help="Duration in milliseconds."
)
@click.option("--task", "task_id", metavar="TASK", help="The task of the command (default: the active one).")
@click.option("--model", type=click.Choice(MODELS), help="The model that ran it (default: the one in use).")
@params.writing
def log_command(store: FeatureStore, feature_id: str, failed: bool, error: str | None, **values: Any) -> int:
    """Log a command in the history of a feature. The state does not change.

    Each line has the fields that the contract requires. This cannot be undone: entries stay in a history.
    """
    values["error"] = "failed" if failed and error is None else error
    entry = {name: value for name, value in values.items() if value is not None}
    made = store.append(feature_id, entry)
    text = f"{feature_id}: logged {one_line(made['command'])}, {made['status']}"
    return params.print_outcome(store, text, {"feature_id": feature_id, "entry": made})


def _print_status(store: FeatureStore, feature_id: str, status: str, undo: list[str], changed: bool) -> int:
    text = f"{feature_id} is {status}" + ("" if changed else " already: nothing to do")
    document = {"feature_id": feature_id, "status": status, "changed": changed}
    return params.print_outcome(store, text, document, undo=undo if changed else ())


@command("pause", "sessionary feature pause sign-in-2025-01-09")
@params.feature
@params.writing
def pause_command(store: FeatureStore, feature_id: str) -> int:
    """Pause a feature. Undo: `resume`; the command is printed."""
    changed = store.pause(feature_id)
    return _print_status(store, feature_id, "paused", ["resume", feature_id], changed)


@command(
    "resume",
    "sessionary feature resume sign-in-2025-01-09",
    "sessionary feature resume sign-in-2025-01-09 --reopen",
)
@params.feature
@options.flag("--reopen", help="Reopen a completed feature.")
@params.writing
def resume_command(store: FeatureStore, feature_id: str, reopen: bool) -> int:
    """Resume a paused feature, or with --reopen a completed one.

    Undo: `pause` or `complete`; the command is printed.
    """
    before = project_options.before(lambda: {row.feature_id: row.status for row in store.list_features()})
    changed = store.resume(feature_id, reopen=reopen)
    undo = ["complete" if (before or {}).get(feature_id) == COMPLETED else "pause", feature_id]
    return _print_status(store, feature_id, "active", undo, changed)


@command("complete", "sessionary feature complete sign-in-2025-01-09")
@params.feature
@params.writing
def complete_command(store: FeatureStore, feature_id: str) -> int:
    """Mark a feature as completed.

    Undo: `resume --reopen`; the command is printed. It makes the feature active, even if it was paused.
    """
    undo = ["resume", feature_id, "--reopen"]
    return _print_status(store, feature_id, "completed", undo, store.complete(feature_id))


@command("archive", "sessionary feature archive sign-in-2025-01-09")
@params.feature
@params.writing
def archive_command(store: FeatureStore, feature_id: str) -> int:
    """Move a completed feature to .archive/. Its row stays in the list.

    Undo: `unarchive`; the command is printed.
    """
    place = str(store.archive(feature_id))
    text = f"{feature_id} is now in {harmless(project_options.near_path(place))}"
    document = {"feature_id": feature_id, "path": place}
    return params.print_outcome(store, text, document, undo=["unarchive", feature_id])


@command(
    "unarchive",
    "sessionary feature unarchive sign-in-2025-01-09",
    "sessionary feature unarchive sign-in-2025-01-09 --reopen",
)
@params.archived_feature
@options.flag("--reopen", help="Make it active again.")
@params.writing
def unarchive_command(store: FeatureStore, feature_id: str, reopen: bool) -> int:
    """Restore a feature from the archive. It stays completed, unless --reopen is given.

    Undo: `archive`; the command is printed. After --reopen: `complete`, then `archive`.
    """
    place = str(store.unarchive(feature_id))
    if reopen:
        store.resume(feature_id, reopen=True)
    text = f"{feature_id} is restored: {harmless(project_options.near_path(place))}"
    document = {"feature_id": feature_id, "path": place, "reopened": reopen}
    undo = ["complete" if reopen else "archive", feature_id]
    return params.print_outcome(store, text, document, undo=undo)


def _agent_is_text(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    return (*lazy.checked(ctx, param, words[:-1]), *words[-1:])


@command(
    "ack",
    "sessionary feature ack opus docs/contract.md",
    "sessionary feature ack --verify opus docs/contract.md",
    "sessionary feature ack --verify docs/contract.md      of every agent",
)
@click.argument("words", nargs=-1, metavar="[AGENT] CONTRACT", required=True, callback=_agent_is_text)
@params.store
@options.flag("--verify", help="Only show whether the acknowledgment is valid.")
@options.json_result
@options.json_flag("--jsonl", help="With --verify: print JSON Lines, one agent per line.")
def ack_command(store: FeatureStore, words: tuple[str, ...], verify: bool) -> int:
    """Record that an agent has acknowledged the contract.

    The record says that AGENT has read CONTRACT, with the checksum of its bytes. With --verify, exit code 12:
    an acknowledgment is missing, or is of another text. This cannot be undone: acknowledging again replaces it.
    """
    agent, contract = (None, words[0]) if len(words) == 1 else words if len(words) == 2 else ("", "")
    if not contract or (agent is None and not verify):
        raise click.UsageError("give AGENT and CONTRACT")
    if output.wants("jsonl") and not verify:
        raise click.UsageError("--jsonl needs --verify")
    if verify:
        return _verify(store, agent, contract)
    assert agent is not None
    place = str(store.acknowledge(agent, contract))
    document = {"agent": agent, "contract": os.path.abspath(contract), "path": place}
    text = f"{one_line(agent)} has acknowledged {one_line(contract)}"
    return params.print_outcome(store, text, document)


def _verify(store: FeatureStore, agent: str | None, contract: str) -> int:
    verdicts = store.verify_acknowledgment(agent, spec_path=contract)
    if output.is_json():
        output.items(verdict._asdict() for verdict in verdicts)
    else:
        for verdict in verdicts:
            sign, words = ("✓ ", "holds") if verdict.holds else ("✗ ", str(verdict.reason))
            output.lines(item(sign, f"{verdict.agent} {words}"))
        if not verdicts:
            output.aside("No contract has been acknowledged.")
    return 0 if all(verdict.holds for verdict in verdicts) else Invalid.exit_code
