"""The commands that move a whole feature: pause, resume, complete, archive, unarchive."""

from __future__ import annotations

import click

from sessionary.cli import project_options
from sessionary.cli.feature import given
from sessionary.cli.text import harmless
from sessionary.layouts.orchestrator.rules import COMPLETED
from sessionary.layouts.orchestrator.store import FeatureStore


def _tell(
    store: FeatureStore, feature_id: str, status: str, undo: list[str], *, changed: bool, json_: bool
) -> int:
    text = f"{feature_id} is {status}" + ("" if changed else " already: nothing to do")
    document = {"feature_id": feature_id, "status": status, "changed": changed}
    return given.told(store, text, document, json_=json_, undo=undo if changed else ())


@click.command(
    "pause",
    epilog="""\b
Example:
  sessionary feature pause sign-in-2025-01-09
""",
)
@given.feature
@given.writing
def pause_command(store: FeatureStore, feature_id: str, json_: bool) -> int:
    """Let a feature rest. Undo: `resume`, whose line is printed."""
    undo = ["resume", feature_id]
    return _tell(store, feature_id, "paused", undo, changed=store.pause(feature_id), json_=json_)


@click.command(
    "resume",
    epilog="""\b
Examples:
  sessionary feature resume sign-in-2025-01-09
  sessionary feature resume sign-in-2025-01-09 --reopen
""",
)
@given.feature
@click.option("--reopen", is_flag=True, help="Go on with a completed feature.")
@given.writing
def resume_command(store: FeatureStore, feature_id: str, reopen: bool, json_: bool) -> int:
    """Go on with a feature that rests, or with --reopen with one that is completed.

    Undo: `pause` or `complete`, whose line is printed.
    """
    before = given.before(lambda: {row.feature_id: row.status for row in store.list_features()})
    changed = store.resume(feature_id, reopen=reopen)
    undo = ["complete" if (before or {}).get(feature_id) == COMPLETED else "pause", feature_id]
    return _tell(store, feature_id, "active", undo, changed=changed, json_=json_)


@click.command(
    "complete",
    epilog="""\b
Example:
  sessionary feature complete sign-in-2025-01-09
""",
)
@given.feature
@given.writing
def complete_command(store: FeatureStore, feature_id: str, json_: bool) -> int:
    """Mark a feature as completed.

    Undo: `resume --reopen`, whose line is printed; it makes the feature active, also if it rested.
    """
    undo = ["resume", feature_id, "--reopen"]
    return _tell(store, feature_id, "completed", undo, changed=store.complete(feature_id), json_=json_)


@click.command(
    "archive",
    epilog="""\b
Example:
  sessionary feature archive sign-in-2025-01-09
""",
)
@given.feature
@given.writing
def archive_command(store: FeatureStore, feature_id: str, json_: bool) -> int:
    """Put a completed feature away, whole, under .archive/. Its row stays in the list.

    Undo: `unarchive`, whose line is printed.
    """
    place = str(store.archive(feature_id))
    text = f"{feature_id} lies in {harmless(project_options.short_path(place))}"
    document: dict[str, object] = {"feature_id": feature_id, "path": place}
    return given.told(store, text, document, json_=json_, undo=["unarchive", feature_id])


@click.command(
    "unarchive",
    epilog="""\b
Examples:
  sessionary feature unarchive sign-in-2025-01-09
  sessionary feature unarchive sign-in-2025-01-09 --reopen
""",
)
@given.archived
@click.option("--reopen", is_flag=True, help="Make it active again.")
@given.writing
def unarchive_command(store: FeatureStore, feature_id: str, reopen: bool, json_: bool) -> int:
    """Bring a feature back from the archive. It is still completed, unless --reopen.

    Undo: `archive`, whose line is printed; after --reopen, `complete` and then `archive` put it back there.
    """
    place = str(store.unarchive(feature_id))
    if reopen:
        store.resume(feature_id, reopen=True)
    text = f"{feature_id} is back: {harmless(project_options.short_path(place))}"
    document: dict[str, object] = {"feature_id": feature_id, "path": place, "reopened": reopen}
    undo = ["complete" if reopen else "archive", feature_id]
    return given.told(store, text, document, json_=json_, undo=undo)
