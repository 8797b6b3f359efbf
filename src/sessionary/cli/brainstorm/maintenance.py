"""The commands on many brainstorms: validate, cleanup, restore, migrate."""

from __future__ import annotations

import os
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, options, output, project_options
from sessionary.cli.brainstorm import params
from sessionary.cli.lazy import command
from sessionary.cli.problems import item
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.constants import DAYS_KEPT, SUFFIX
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED
from sessionary.layouts.brainstorm.maintenance import Cleaned
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.store import BrainstormStore


@command("validate", "sessionary brainstorm validate", "sessionary brainstorm validate feature-auth --strict")
@params.optional_slug
@params.store
@options.flag("--strict", help="Require all mandatory fields, and only known values.")
@project_options.notes
@options.as_json("the findings", "one problem")
def validate_command(store: BrainstormStore, slug: str | None, strict: bool, notes: bool) -> int:
    """Check sessions; nothing is changed.

    Exit code 13: something worse than a note was found.
    """
    problems = store.validate(slug, strict=strict)
    checked = 1 if slug is not None else len(list(store.list()))
    return project_options.report(problems, store.folder, checked=checked, with_notes=notes)


@command("cleanup", "sessionary brainstorm cleanup --dry-run", "sessionary brainstorm cleanup --days 90")
@params.store
@click.option(
    "--days", type=click.IntRange(0), default=DAYS_KEPT, show_default=True, help="Minimum age in days."
)
@options.flag("--erase", help="Delete them permanently instead of moving them to .trash/.")
@options.dry_run
@options.json_result
def cleanup_command(store: BrainstormStore, days: int, erase: bool, dry_run: bool) -> int:
    """Move ended sessions to .trash/.

    Only sessions unchanged for more than this many days of 24 hours; sessions in progress stay. Undo:
    `restore`; the command is printed. --erase cannot be undone.
    """
    done = store.cleanup(days, dry_run=dry_run, erase=erase)
    failed = [one.problem for one in done if one.problem]
    if output.is_json():
        output.value({"dry_run": dry_run, "erased": erase, "sessions": [_cleaned(one) for one in done]})
    else:
        project_options.warn(failed)
        _print_cleaned([one.row for one in done if not one.problem], dry_run=dry_run, erase=erase)
    return options.PARTLY if failed else 0


def _cleaned(one: Cleaned) -> dict[str, Any]:
    fields = {name: getattr(one.row, name) for name in ("slug", "path", "status", "updated")}
    return fields | {"moved_to": one.moved_to, "problem": one.problem and one.problem.as_dict()}


def _print_cleaned(rows: list[Row], *, dry_run: bool, erase: bool) -> None:
    if not rows:
        output.lines(changing.done("nothing to clean up"))
        return
    verb = "would be moved" if dry_run else "erased" if erase else "moved to .trash/"
    for row in rows:
        output.lines(item("  ", f"{row.slug}  {row.status}, {changing.at(row.updated)}"))
    output.lines(changing.done(f"{formatting.count(len(rows), 'session')} {verb}", "·" if dry_run else "✓"))
    if not dry_run and not erase:
        for row in rows:
            changing.print_command("undo", project_options.command_line("restore", row.slug))


def _ended(ctx: click.Context) -> list[str]:
    """The names that can be restored."""
    store = BrainstormStore(ctx.params["root"])
    return [row.name for row in store.archived()] if ctx.params.get("archived") else store.trashed()


@command(
    "restore",
    "sessionary brainstorm restore feature-auth",
    "sessionary brainstorm list --archived",
    "sessionary brainstorm restore feature-auth-2026-01-09 --archived --replace",
)
@click.argument("slug", metavar="NAME", shell_complete=completing.ids(_ended))
@params.store
@options.flag("--archived", help="Restore from archive/ instead of .trash/; NAME may be the id.")
@options.flag("--replace", help="Move an existing session of that name to archive/ (with --archived).")
@options.json_result
def restore_command(store: BrainstormStore, slug: str, archived: bool, replace: bool) -> int:
    """Restore a session that was cleaned up or replaced.

    Of several with one name, the last. It is restored as it was stored: `reopen` resumes it. If no session
    was replaced, it cannot be undone.
    """
    if replace and not archived:
        raise click.UsageError("--replace needs --archived")
    slug = store.find_ended(slug, archived=archived)
    before = {row.path for row in store.archived()} if replace else set()
    path = store.restore_archived(slug, replace=replace) if archived else store.restore(slug)
    slug = os.path.basename(path).removesuffix(SUFFIX)
    made_room = [row.name for row in store.archived() if row.path not in before] if replace else []
    undo = ["restore", made_room[0], "--archived", "--replace"] if len(made_room) == 1 else []
    text = f"{slug} is restored: {harmless(project_options.near_path(path))}"
    project_options.outcome({"slug": slug, "path": path}, text, undo=undo)
    restored = params.before(store, slug)
    if not output.is_json() and restored is not None and restored.status in (COMPLETED, ABANDONED):
        changing.print_command("resume", project_options.command_line("reopen", slug))
    return 0


@command("migrate", "sessionary brainstorm migrate --dry-run", "sessionary brainstorm migrate feature-auth")
@params.optional_slug
@params.store
@options.dry_run
@options.json_result
def migrate_command(store: BrainstormStore, slug: str | None, dry_run: bool) -> int:
    """Store older files in the current version.

    The old bytes are kept beside them in a .bak file, which is the only undo. A file of an unknown version is
    reported and left unchanged; the exit code is 3 then.
    """
    done = store.migrate(slug, dry_run=dry_run)
    failed = [one.problem for one in done if one.problem]
    if output.is_json():
        sessions = [{**one._asdict(), "problem": one.problem and one.problem.as_dict()} for one in done]
        output.value({"dry_run": dry_run, "sessions": sessions})
        return options.PARTLY if failed else 0
    project_options.warn(failed)
    for one in done:
        if not one.problem:
            verb = f"{'would be ' if dry_run else ''}{'healed' if one.healed else 'migrated'}"
            text = f"{one.slug} {verb} from version {one.was}"
            output.lines(changing.done(text, "·" if dry_run else "✓"))
    if not done:
        output.lines(changing.done("every session has the current version"))
    return options.PARTLY if failed else 0
