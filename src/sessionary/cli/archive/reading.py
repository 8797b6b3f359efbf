"""`sessionary archive list` and `sessionary archive verify`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from sessionary.cli import changing, formatting, homes, options, output, table
from sessionary.cli.archive import entries
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.table import Column
from sessionary.cli.text import harmless, one_line
from sessionary.errors import Corrupt
from sessionary.workspace.archive import Archive
from sessionary.workspace.archive_index import Archived
from sessionary.workspace.naming import short_names


@command(
    "list",
    "sessionary archive list",
    "sessionary archive list --gone                 those that only the archive has any more",
    "sessionary archive list 3f0c81d2               the versions of one",
)
@click.argument("session", metavar="[ID]", required=False, shell_complete=entries.completed)
@options.home
@entries.folder
@click.option("--gone", is_flag=True, help="Only sessions whose source is gone.")
@options.as_json("the archived sessions", "one session")
def list_command(
    session: str | None, home: Path | None, folder: Path | None, gone: bool, json_: bool, jsonl: bool
) -> int:
    """List what is archived, the last one first; with an ID, the versions of that session.

    SOURCE is gone where the agent has deleted the session, or cannot be seen. SIZE is that of the longest version,
    which `show` and `restore` use.
    """
    workspace = homes.workspace(home)
    archive = workspace.archive(folder)
    if session is not None:
        return _versions(archive, archive.find(session), json_=json_, jsonl=jsonl)
    left = archive.left()
    rows = [one for one in archive.entries() if one.name in left or not gone]
    documents = (entries.document(one) | {"source": _source(one, left)} for one in rows)
    none = "Nothing is archived" + (" whose source is gone." if gone else ": `sessionary archive run`.")
    return output.listed(documents, _table(rows, left), None if rows else none, json_=json_, jsonl=jsonl)


def _source(entry: Archived, left: set[str]) -> str:
    return "gone" if entry.name in left else "present"


def _table(rows: list[Archived], left: set[str]) -> Iterator[str]:
    now = datetime.now(UTC)
    short = short_names([one.session_id for one in rows])
    columns = [
        Column("ID", [one_line(short[one.session_id]) for one in rows]),
        Column("KIND", [one.kind for one in rows]),
        Column("ARCHIVED", [formatting.ago(datetime.fromisoformat(one.at), now) for one in rows]),
        Column("SIZE", [formatting.size(one.size) for one in rows], right=True),
        Column("VERSIONS", [str(len(one.sizes)) for one in rows], right=True),
        Column("SOURCE", [_source(one, left) for one in rows]),
        Column("TITLE", [one_line(entries.title_of(one) or "-") for one in rows]),
    ]
    yield from table.lines(columns, output.room(), stretch="TITLE", drop=("VERSIONS", "SIZE", "KIND"))


def _versions(archive: Archive, entry: Archived, *, json_: bool, jsonl: bool) -> int:
    found = archive.versions(entry)
    if json_ or jsonl:
        versions = [
            {
                "version": one.number,
                "until": one.at,
                "size": entry.sizes.get(one.number),
                "files": sorted(one.files),
            }
            for one in found
        ]
        output.holding(entries.document(entry) | {"versions": versions}, "versions", jsonl=jsonl)
        return 0
    now = datetime.now(UTC)
    sizes = [entry.sizes.get(one.number) for one in found]
    columns = [
        Column("VERSION", [str(one.number) for one in found], right=True),
        Column("UNTIL", [formatting.ago(datetime.fromisoformat(one.at), now) for one in found]),
        Column("SIZE", ["?" if size is None else formatting.size(size) for size in sizes], right=True),
        Column("FILES", [str(len(one.files)) for one in found], right=True),
        Column("", ["longest" if one.number == entry.best else "" for one in found]),
    ]
    output.lines(table.lines(columns, output.room()))
    return 0


@command(
    "verify",
    "sessionary archive verify",
    "sessionary archive verify 3f0c81d2 --json",
)
@click.argument("sessions", nargs=-1, metavar="[ID]...", shell_complete=entries.completed)
@entries.folder
@options.json_result
def verify_command(sessions: tuple[str, ...], folder: Path | None, json_: bool) -> int:
    """Read archived sessions back, all of them by default, and compare each file of each version with its hash.

    Exit code 13: something is damaged or missing.
    """
    archive = homes.workspace(None, must_exist=False).archive(folder)
    with Progress("verifying", None) as progress:
        some = [archive.find(word) for word in sessions] if sessions else None
        found = list(progress.over(archive.verify(some)))
    damaged = [one for one in found if one.faults]
    size = sum(one.size for one in found)
    if json_:
        rows = [{"id": one.session_id, "kind": one.kind, "faults": one.faults} for one in damaged]
        output.value({"ok": not damaged, "sessions": len(found), "size": size, "damaged": rows})
    else:
        for one in damaged:
            output.lines(changing.done(harmless(f"{one.session_id}: {'; '.join(one.faults)}"), "✗", "red"))
        words = f"{formatting.count(len(found), 'session')}, {formatting.size(size)} read back"
        output.lines(
            changing.done(f"{words}: {len(damaged):,} damaged" if damaged else f"{words}, none damaged")
        )
        if damaged:
            output.aside(
                "If its source is present: `sessionary archive rm ID`, then `sessionary archive run`."
            )
    return Corrupt.exit_code if damaged else 0
