"""The commands on the plan and the tasks of a feature."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from sessionary.cli import options, output, project_options
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.cli.problems import item
from sessionary.cli.text import fit, one_line
from sessionary.codec.yaml_read import LIMITS
from sessionary.layouts.orchestrator.board import maps_in
from sessionary.layouts.orchestrator.call_report import error_context
from sessionary.layouts.orchestrator.planfile import phases_of, tasks_of
from sessionary.layouts.orchestrator.rules import COMPLETED, IN_PROGRESS, TASK_MOVES, TASK_STATUSES
from sessionary.layouts.orchestrator.store import FeatureStore

_SIGNS = {"pending": "·", "in_progress": "▸", "completed": "✓", "blocked": "✗"}


@command(
    "plan",
    "sessionary feature plan sign-in-2025-01-09",
    "sessionary feature plan sign-in-2025-01-09 --from plan.yaml",
    "sessionary feature plan sign-in-2025-01-09 --json | jq .phases",
)
@params.feature
@click.option(
    "--from",
    "source",
    type=click.File("rb"),
    metavar="FILE",
    help="Read the new phases from FILE; - is standard input.",
)
@click.option("--name", help="New name of the feature; needs --from.")
@click.option("--description", help="New description; needs --from.")
@params.writing
def plan_command(
    store: FeatureStore, feature_id: str, source: Any, name: str | None, description: str | None
) -> int:
    """Print the plan, or replace its phases.

    --from reads a YAML or JSON file: a list of phases, or a map that has it under `phases`. Only `task`
    changes the status of a task. This cannot be undone: first print the plan with --json, which --from accepts. A
    plan that cannot be read is kept beside the new one.
    """
    if source is None:
        if name is not None or description is not None:
            raise click.UsageError("--name and --description need --from")
        plan = store.plan(feature_id)
    else:
        path = source.name if source.name == "<stdin>" else os.path.abspath(source.name)
        with error_context(str(store.home), "update", path, feature_id):
            phases = phases_of(source.read(LIMITS.size + 1), path)
        plan = store.save_plan(feature_id, phases, name=name, description=description)
    if not output.is_json():
        project_options.warn(store.last_report.problems)
    return output.shown(plan, _page(plan))


def _page(plan: dict[str, Any]) -> Iterator[str]:
    head = plan.get("feature")
    if isinstance(head, dict):
        yield output.paint(fit(one_line(str(head.get("name", "?"))), output.width()), "bold")
        if head.get("description"):
            yield from item("  ", str(head["description"]))
    phases = maps_in(plan.get("phases"))
    for phase in phases:
        yield from project_options.heading(str(phase.get("name") or phase.get("phase_id") or "?"))
        for task in maps_in(phase.get("tasks")):
            yield from _task(task)
    if not phases:
        yield "  no phases yet; add them with --from FILE"


def _task(task: dict[str, Any]) -> Iterator[str]:
    status = str(task.get("status", "?"))
    what = task.get("description") or ""
    words = f"{task.get('task_id', '?')}  {status.replace('_', ' ')}  {what}"
    yield from item(f"  {_SIGNS.get(status, '?')} ", words)
    for name in task.get("artifacts") or ():
        yield from item("      ", str(name))


@command(
    "task",
    "sessionary feature task sign-in-2025-01-09 T1 in_progress",
    "sessionary feature task sign-in-2025-01-09 T1 completed --artifact form.py",
)
@params.feature
@click.argument("task_id", metavar="TASK")
@click.argument("status", type=click.Choice(TASK_STATUSES), metavar="STATUS")
@options.repeated("--artifact", "artifacts", metavar="NAME", help="A file that the task produced.")
@options.flag("--reopen", help="Reopen a completed task.")
@params.writing
def task_command(
    store: FeatureStore, feature_id: str, task_id: str, status: str, artifacts: tuple[str, ...], reopen: bool
) -> int:
    """Set the status of a task.

    STATUS is pending, in_progress, completed or blocked. A completed task stays completed, unless --reopen is
    given. Artifacts that were added stay; reopening is undone by completing the task again.
    """
    before = project_options.before(lambda: tasks_of(store.plan(feature_id)).get(task_id, {}).get("status"))
    changed = store.task(feature_id, task_id, status, artifacts=artifacts, reopen=reopen)
    words = status.replace("_", " ")
    text = f"task {task_id} is {words}" if changed else f"task {task_id} is {words} already: nothing to do"
    document = {"feature_id": feature_id, "task_id": task_id, "status": status, "changed": changed}
    undo = _back_to(feature_id, task_id, before, status) if changed else []
    return params.print_outcome(store, text, document, undo=undo)


def _back_to(feature_id: str, task_id: str, before: Any, now: str) -> list[str]:
    """The words that set a task back; none if it cannot go back directly."""
    if before in TASK_MOVES[now]:
        return ["task", feature_id, task_id, str(before)]
    if now == COMPLETED and before == IN_PROGRESS:
        return ["task", feature_id, task_id, IN_PROGRESS, "--reopen"]
    return []
