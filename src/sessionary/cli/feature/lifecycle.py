"""The commands that move a whole feature: pause, resume, complete, archive."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import in_project
from sessionary.cli.feature import given
from sessionary.cli.text import harmless
from sessionary.layouts.orchestrator.store import FeatureStore


def _tell(store: FeatureStore, feature_id: str, status: str, *, changed: bool, json_: bool) -> int:
    text = f"{feature_id} is {status}" + ("" if changed else " already: nothing to do")
    document = {"feature_id": feature_id, "status": status, "changed": changed}
    return given.told(store, text, document, json_=json_)


@click.command(
    "pause",
    epilog="""\b
Example:
  sessionary feature pause sign-in-2025-01-09
""",
)
@given.feature
@in_project.root
@given.agent
@given.require_ack
@in_project.as_json
def pause_command(feature_id: str, root: Path, agent: str, require_ack: Path | None, json_: bool) -> int:
    """Let a feature rest."""
    store = given.store_in(root, agent, require_ack)
    return _tell(store, feature_id, "paused", changed=store.pause(feature_id, agent=agent), json_=json_)


@click.command(
    "resume",
    epilog="""\b
Examples:
  sessionary feature resume sign-in-2025-01-09
  sessionary feature resume sign-in-2025-01-09 --reopen
""",
)
@given.feature
@in_project.root
@click.option("--reopen", is_flag=True, help="Go on with a completed feature.")
@given.agent
@given.require_ack
@in_project.as_json
def resume_command(
    feature_id: str, root: Path, reopen: bool, agent: str, require_ack: Path | None, json_: bool
) -> int:
    """Go on with a feature that rests."""
    store = given.store_in(root, agent, require_ack)
    changed = store.resume(feature_id, reopen=reopen, agent=agent)
    return _tell(store, feature_id, "active", changed=changed, json_=json_)


@click.command(
    "complete",
    epilog="""\b
Example:
  sessionary feature complete sign-in-2025-01-09
""",
)
@given.feature
@in_project.root
@given.agent
@given.require_ack
@in_project.as_json
def complete_command(feature_id: str, root: Path, agent: str, require_ack: Path | None, json_: bool) -> int:
    """Mark a feature as completed."""
    store = given.store_in(root, agent, require_ack)
    changed = store.complete(feature_id, agent=agent)
    return _tell(store, feature_id, "completed", changed=changed, json_=json_)


@click.command(
    "archive",
    epilog="""\b
Example:
  sessionary feature archive sign-in-2025-01-09
""",
)
@given.feature
@in_project.root
@given.agent
@given.require_ack
@in_project.as_json
def archive_command(feature_id: str, root: Path, agent: str, require_ack: Path | None, json_: bool) -> int:
    """Put a completed feature away, whole, under .archive/. Its row stays in the list."""
    store = given.store_in(root, agent, require_ack)
    place = str(store.archive(feature_id, agent=agent))
    text = f"{feature_id} lies in {harmless(in_project.short_path(place))}"
    return given.told(store, text, {"feature_id": feature_id, "path": place}, json_=json_)
