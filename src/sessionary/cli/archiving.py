"""The commands of `sessionary archive`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, formatting, homes, last_list, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.table import Column
from sessionary.cli.targets import report_failure
from sessionary.cli.text import harmless, one_line, short_path
from sessionary.errors import Corrupt, NotFound, SessionaryError
from sessionary.workspace import KINDS
from sessionary.workspace.archive import FOREIGN, Archive
from sessionary.workspace.archive_index import Archived, usual_folder
from sessionary.workspace.naming import cut_ids, short_names

_folder = click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder of the archive (default: that of `archive add`, else ~/.local/share/sessionary/archive).",
)


def _completed(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Completes the ids of archived sessions, the last one first."""
    try:
        archive = homes.workspace(must_exist=False).archive(ctx.params.get("folder"))
        return [one.session_id for one in archive.entries() if one.session_id.startswith(begun)]
    except (SessionaryError, OSError):
        return []


def _entry(archive: Archive, word: str) -> Archived:
    """The archived session that a word names: its id, the beginning of that, or the number of a row of a list.

    Raises:
        NotFound, AmbiguousId: as `Archive.find`.
    """
    if last_list.is_number(word) and all(one.session_id != word for one in archive.entries()):
        with suppress(NotFound):
            return archive.find(last_list.session(word).session_id)
    return archive.find(word)


def _title_of(entry: Archived) -> str | None:
    """The title of an archived session."""
    return entry.sessions[0].summary().title if entry.sessions else None


def _document(entry: Archived) -> dict[str, Any]:
    """An archived session with the field names of docs/cli-json.md."""
    return {
        "id": entry.session_id,
        "kind": entry.kind,
        "project": entry.project,
        "title": _title_of(entry),
        "home": entry.home,
        "archived_at": entry.at,
        "size": entry.size,
        "versions": len(entry.sizes),
    }


class _OfAll(click.Command):
    """A command about all chosen sessions, which refuses an id with the words that choose sessions."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "extra argument" not in error.message:
                raise
            words = (
                "`sessionary archive run` archives all sessions that are chosen, none alone;\n"
                "`sessionary archive add --kind KIND --project DIR` chooses them."
            )
            raise click.UsageError(f"{error.message}\n\n{words}", ctx) from None


@command(
    "add",
    "sessionary archive add --folder /mnt/backup/sessions",
    "sessionary archive add --kind claude_code --kind codex",
    "sessionary archive add --project ~/code/app",
    "sessionary archive add --replace               back to the default",
    cls=_OfAll,
)
@options.repeated("--kind", "kinds", type=click.Choice(KINDS), help="This kind.")
@options.repeated("--project", "projects", metavar="NAME | DIR", help="Only this project.")
@_folder
@options.flag("--replace", help="Discard the earlier choice, including the folder.")
@options.json_result
def add_command(kinds: tuple[str, ...], projects: tuple[str, ...], folder: Path | None, replace: bool) -> int:
    """Choose which sessions are archived, and where. `sessionary archive run` archives them.

    By default, the sessions of all projects and of all agents except Amplifier are archived. The folder is created,
    and the choice is stored in archive.json in the configuration folder. This cannot be undone: --replace discards
    the choice.
    """
    usual = usual_folder()
    if replace and folder is None and usual is not None:
        folder = Path(usual)  # whatever was chosen, even if that cannot be read
    archive = homes.workspace(must_exist=False).archive(folder)
    choice = archive.choose(kinds, projects, replace=replace)
    of = ", ".join(map(short_path, choice.projects)) or "all projects"
    what = ", ".join(choice.kinds) or "all agents except amplifier"
    document = {"kinds": choice.kinds or FOREIGN, "projects": choice.projects, "folder": archive.folder}
    lines = changing.done(one_line(f"to be archived: {what}, {of}, in {short_path(archive.folder)}"))
    return output.shown(document, lines, asides=["next: sessionary archive run"])


@command(
    "run",
    "sessionary archive run",
    "sessionary archive run --json | jq '.pushed | length'",
    "0 * * * *  sessionary archive run              every hour, as a line of a crontab",
    cls=_OfAll,
)
@options.home
@_folder
@options.json_result
def run_command(folder: Path | None) -> int:
    """Archive the sessions that are new or have changed.

    The files of a session and of its sub-agents are copied byte for byte; from a session in a database, the rows
    are copied. Sources are only read; files with credentials are not copied. A file that was rewritten or
    shortened becomes a new version, and all versions are kept. A run may be interrupted at any time, and two runs
    exclude each other. This cannot be undone: `sessionary archive rm` removes a session from the archive.

    Exit code 3: some sessions could not be archived.
    """
    archive = homes.workspace().archive(folder)
    with Progress("archiving", None) as progress:
        report = archive.run(passed=progress.advance)
    document = {
        "folder": archive.folder,
        "pushed": list(map(_document, report.pushed)),
        "unchanged": report.unchanged,
        "failed": [{"id": one, "message": why} for one, why in report.failed],
    }
    size = formatting.size(sum(one.size for one in report.pushed))
    of_size = f" ({size})" if report.pushed else ""
    done = f"{formatting.count(len(report.pushed), 'session')} archived{of_size}"
    lines = changing.done(f"{done}, {report.unchanged:,} unchanged")
    asides = (harmless(f"sessionary: {one}: {why}") for one, why in report.failed)
    output.shown(document, lines, asides=asides)
    return report_failure(report.failure, "archived") or (options.PARTLY if report.failed else 0)


@command(
    "list",
    "sessionary archive list",
    "sessionary archive list --gone                 sessions that are only in the archive",
    "sessionary archive list 3f0c81d2               the versions of one",
)
@click.argument("session", metavar="[ID]", required=False, shell_complete=_completed)
@options.home
@_folder
@options.flag("--gone", help="Only sessions whose source is gone.")
@options.as_json("the archived sessions", "one session")
def list_command(session: str | None, folder: Path | None, gone: bool) -> int:
    """List archived sessions, or the versions of one.

    SOURCE is gone if the agent has deleted the session, or if its files cannot be seen. SIZE is that of the longest
    version, which `show` and `restore` use.
    """
    workspace = homes.workspace()
    archive = workspace.archive(folder)
    if session is not None:
        return _versions(archive, _entry(archive, session))
    left = archive.left()
    rows = [one for one in archive.entries() if one.name in left or not gone]
    documents = (_document(one) | {"source": _source(one, left)} for one in rows)
    none = "Nothing is archived" + (" whose source is gone." if gone else ": `sessionary archive run`.")
    return output.listed(documents, _table(rows, left), None if rows else none)


def _source(entry: Archived, left: set[str]) -> str:
    return "gone" if entry.name in left else "present"


def _table(rows: list[Archived], left: set[str]) -> Iterator[str]:
    now, room = datetime.now(UTC), output.room()
    short = short_names([one.session_id for one in rows])
    ids = [one_line(short[one.session_id]) for one in rows]
    columns = [
        Column("ID", ids if room is None else cut_ids(ids, room // 4)),
        Column("KIND", [one.kind for one in rows]),
        Column("ARCHIVED", [formatting.ago(datetime.fromisoformat(one.at), now) for one in rows]),
        Column("SIZE", [formatting.size(one.size) for one in rows], right=True),
        Column("VERSIONS", [str(len(one.sizes)) for one in rows], right=True),
        Column("SOURCE", [_source(one, left) for one in rows]),
        Column("TITLE", [one_line(_title_of(one) or "-") for one in rows]),
    ]
    yield from table.lines(columns, room, stretch="TITLE", drop=("VERSIONS", "SIZE", "KIND"))


def _versions(archive: Archive, entry: Archived) -> int:
    found = archive.versions(entry)
    if output.is_json():
        versions = [
            {
                "version": one.number,
                "until": one.at,
                "size": entry.sizes.get(one.number),
                "files": sorted(one.files),
            }
            for one in found
        ]
        output.holding(_document(entry) | {"versions": versions}, "versions")
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


@command("verify", "sessionary archive verify", "sessionary archive verify 3f0c81d2 --json")
@click.argument("sessions", nargs=-1, metavar="[ID]...", shell_complete=_completed)
@_folder
@options.json_result
def verify_command(sessions: tuple[str, ...], folder: Path | None) -> int:
    """Compare archived files with their hashes.

    All archived sessions are read by default. Exit code 13: something is damaged or missing.
    """
    archive = homes.workspace(must_exist=False).archive(folder)
    with Progress("verifying", None) as progress:
        some = [_entry(archive, word) for word in sessions] if sessions else None
        found = list(progress.over(archive.verify(some)))
    damaged = [one for one in found if one.faults]
    size = sum(one.size for one in found)
    if output.is_json():
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


@command(
    "restore",
    "sessionary archive restore 3f0c81d2            back into the store of its agent",
    "sessionary archive restore 3f0c81d2 --to /tmp/old",
    "sessionary archive restore 3f0c81d2 --to /tmp/old --version 1",
    "sessionary list --home /tmp/old",
)
@click.argument("session", metavar="ID", shell_complete=_completed)
@_folder
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write below this folder instead of the store.",
)
@click.option(
    "--version", type=click.IntRange(1), metavar="N", help="The version, as `archive list ID` numbers it."
)
@options.json_result
def restore_command(session: str, folder: Path | None, to: Path | None, version: int | None) -> int:
    """Write the files of an archived session, byte for byte.

    The longest version is restored by default. If one of its files exists, nothing is written. The files get new
    times, so that the agent does not delete them at once. Without --to they are written into the store of the
    agent, which is possible if each session is a separate file. For a session in a database, --to writes its rows
    as JSON lines, and a database. This cannot be undone: the written files are printed.
    """
    archive = homes.workspace(must_exist=False).archive(folder)
    entry = _entry(archive, session)
    done = archive.restore(entry, to, version=version)
    document = {"id": done.session_id, "kind": entry.kind, "paths": done.paths, "listed": done.listed}
    words = f"{one_line(done.session_id)} restored: {formatting.count(len(done.paths), 'file')}"
    lines = [*changing.done(words), *(f"  {harmless(short_path(path))}" for path in done.paths[:5])]
    lines += [f"  and {len(done.paths) - 5:,} more"] if len(done.paths) > 5 else []
    asides = [] if done.listed is None else [f"{done.listed}."]
    return output.shown(document, lines, asides=asides)


@command("rm", "sessionary archive rm 3f0c81d2", "sessionary archive rm 3f0c81d2 77aa99bb --yes")
@click.argument("sessions", nargs=-1, required=True, metavar="ID...", shell_complete=_completed)
@_folder
@options.flag("--yes", help="Do not ask for confirmation.")
@options.json_result
def rm_command(sessions: tuple[str, ...], folder: Path | None, yes: bool) -> int:
    """Remove sessions from the archive, with all versions. This cannot be undone.

    A session whose source is present is archived again by the next run.
    """
    workspace = homes.workspace(must_exist=False)
    archive = workspace.archive(folder)
    entries = (_entry(archive, word) for word in sessions)
    chosen = list({entry.name: entry for entry in entries}.values())
    left = archive.left()
    if not yes:
        refusal = click.UsageError("rm deletes permanently; without a terminal, add --yes")
        only = sum(one.name in left for one in chosen)
        lost = f", {only:,} of which exist nowhere else" if only else ""
        size = formatting.size(sum(one.size for one in chosen))
        what = f"{formatting.count(len(chosen), 'archived session')}, {size}{lost}"
        if not changing.confirmed(f"Permanently delete {what}?", refusal):
            return changing.DECLINED
    for entry in chosen:
        archive.remove(entry)
    document = {"removed": [entry.session_id for entry in chosen]}
    lines = changing.done(f"removed from the archive: {formatting.count(len(chosen), 'session')}")
    return output.shown(document, lines)
