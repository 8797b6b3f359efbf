"""Archived sessions as the commands show them, and the option for the folder of the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sessionary.cli import homes
from sessionary.errors import SessionaryError
from sessionary.workspace.archive_index import Archived

folder = click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder of the archive (default: that of `archive add`, else ~/.local/share/sessionary/archive).",
)


def completed(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Completes the ids of archived sessions, the last one first."""
    try:
        archive = homes.workspace(None, must_exist=False).archive(ctx.params.get("folder"))
        return [one.session_id for one in archive.entries() if one.session_id.startswith(begun)]
    except (SessionaryError, OSError):
        return []


def title_of(entry: Archived) -> str | None:
    """The title of an archived session."""
    return entry.sessions[0].summary().title if entry.sessions else None


def document(entry: Archived) -> dict[str, Any]:
    """An archived session with the field names of docs/cli-json.md."""
    return {
        "id": entry.session_id,
        "kind": entry.kind,
        "project": entry.project,
        "title": title_of(entry),
        "home": entry.home,
        "archived_at": entry.at,
        "size": entry.size,
        "versions": len(entry.sizes),
    }
