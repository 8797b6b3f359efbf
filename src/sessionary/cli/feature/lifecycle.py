"""The commands that change the status of a feature: pause, resume, complete, archive, unarchive."""

from __future__ import annotations

import click

from sessionary.cli import project_options
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless
from sessionary.layouts.orchestrator.rules import COMPLETED
from sessionary.layouts.orchestrator.store import FeatureStore


def _print_status(
    store: FeatureStore, feature_id: str, status: str, undo: list[str], changed: bool, json_: bool
) -> int:
    text = f"{feature_id} is {status}" + ("" if changed else " already: nothing to do")
    document = {"feature_id": feature_id, "status": status, "changed": changed}
    return params.print_outcome(store, text, document, json_=json_, undo=undo if changed else ())


@command("pause", "sessionary feature pause sign-in-2025-01-09")
@params.feature
@params.writing
def pause_command(store: FeatureStore, feature_id: str, json_: bool) -> int:
    """Pause a feature. Undo: `resume`; the command is printed."""
    changed = store.pause(feature_id)
    return _print_status(store, feature_id, "paused", ["resume", feature_id], changed, json_)


@command(
    "resume",
    "sessionary feature resume sign-in-2025-01-09",
    "sessionary feature resume sign-in-2025-01-09 --reopen",
)
@params.feature
@click.option("--reopen", is_flag=True, help="Reopen a completed feature.")
@params.writing
def resume_command(store: FeatureStore, feature_id: str, reopen: bool, json_: bool) -> int:
    """Resume a paused feature, or with --reopen a completed one.

    Undo: `pause` or `complete`; the command is printed.
    """
    before = project_options.before(lambda: {row.feature_id: row.status for row in store.list_features()})
    changed = store.resume(feature_id, reopen=reopen)
    undo = ["complete" if (before or {}).get(feature_id) == COMPLETED else "pause", feature_id]
    return _print_status(store, feature_id, "active", undo, changed, json_)


@command("complete", "sessionary feature complete sign-in-2025-01-09")
@params.feature
@params.writing
def complete_command(store: FeatureStore, feature_id: str, json_: bool) -> int:
    """Mark a feature as completed.

    Undo: `resume --reopen`; the command is printed. It makes the feature active, even if it was paused.
    """
    undo = ["resume", feature_id, "--reopen"]
    return _print_status(store, feature_id, "completed", undo, store.complete(feature_id), json_)


@command("archive", "sessionary feature archive sign-in-2025-01-09")
@params.feature
@params.writing
def archive_command(store: FeatureStore, feature_id: str, json_: bool) -> int:
    """Move a completed feature to .archive/. Its row stays in the list.

    Undo: `unarchive`; the command is printed.
    """
    place = str(store.archive(feature_id))
    text = f"{feature_id} is now in {harmless(project_options.short_path(place))}"
    document = {"feature_id": feature_id, "path": place}
    return params.print_outcome(store, text, document, json_=json_, undo=["unarchive", feature_id])


@command(
    "unarchive",
    "sessionary feature unarchive sign-in-2025-01-09",
    "sessionary feature unarchive sign-in-2025-01-09 --reopen",
)
@params.archived_feature
@click.option("--reopen", is_flag=True, help="Make it active again.")
@params.writing
def unarchive_command(store: FeatureStore, feature_id: str, reopen: bool, json_: bool) -> int:
    """Restore a feature from the archive. It stays completed, unless --reopen is given.

    Undo: `archive`; the command is printed. After --reopen: `complete`, then `archive`.
    """
    place = str(store.unarchive(feature_id))
    if reopen:
        store.resume(feature_id, reopen=True)
    text = f"{feature_id} is restored: {harmless(project_options.short_path(place))}"
    document = {"feature_id": feature_id, "path": place, "reopened": reopen}
    undo = ["complete" if reopen else "archive", feature_id]
    return params.print_outcome(store, text, document, json_=json_, undo=undo)
