"""The commands on many brainstorms: validate, cleanup, restore, migrate."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, options, output, project_options
from sessionary.cli.brainstorm import given
from sessionary.cli.problems import item
from sessionary.cli.text import harmless
from sessionary.layouts.brainstorm.constants import DAYS_KEPT, SUFFIX
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED
from sessionary.layouts.brainstorm.maintenance import Cleaned, MigratedFile


@click.command(
    "validate",
    epilog="""\b
Examples:
  sessionary brainstorm validate
  sessionary brainstorm validate feature-auth --strict
""",
)
@click.argument("slug", required=False, metavar="[SLUG]", callback=given.named, shell_complete=given.complete)
@project_options.root
@click.option("--strict", is_flag=True, help="Require all mandatory fields, and only known values.")
@project_options.notes
@options.as_json("the findings", "one problem")
def validate_command(
    slug: str | None, root: Path, strict: bool, notes: bool, json_: bool, jsonl: bool
) -> int:
    """Check sessions; nothing is changed.

    Exit code 13: something worse than a note was found.
    """
    options.one_format(json_, jsonl)
    store = given.store_in(root)
    problems = store.validate(slug, strict=strict)
    checked = 1 if slug is not None else len(list(store.list()))
    return project_options.report(
        problems, store.folder, checked=checked, json_=json_, jsonl=jsonl, with_notes=notes
    )


@click.command(
    "cleanup",
    epilog="""\b
Examples:
  sessionary brainstorm cleanup --dry-run
  sessionary brainstorm cleanup --days 90
""",
)
@project_options.root
@click.option(
    "--days", type=click.IntRange(0), default=DAYS_KEPT, show_default=True, help="Minimum age in days."
)
@click.option("--erase", is_flag=True, help="Delete them permanently instead of moving them to .trash/.")
@options.dry_run
@options.json_result
def cleanup_command(root: Path, days: int, erase: bool, dry_run: bool, json_: bool) -> int:
    """Move ended sessions to .trash/.

    Only sessions unchanged for more than this many days of 24 hours; sessions in progress stay. Undo:
    `restore`; the command is printed. There is no undo of --erase.
    """
    done = given.store_in(root).cleanup(days, dry_run=dry_run, erase=erase)
    failed = [one.problem for one in done if one.problem]
    if json_:
        output.value({"dry_run": dry_run, "erased": erase, "sessions": [_cleaned(one) for one in done]})
    else:
        project_options.warn(failed)
        _print_cleaned([one for one in done if not one.problem], root, dry_run=dry_run, erase=erase)
    return options.PARTLY if failed else 0


def _cleaned(one: Cleaned) -> dict[str, Any]:
    problem = None if one.problem is None else one.problem.as_dict()
    row = one.row
    named = {"slug": row.slug, "path": row.path, "status": row.status, "updated": row.updated}
    return named | {"moved_to": one.moved_to, "problem": problem}


def _print_cleaned(done: list[Cleaned], root: Path, *, dry_run: bool, erase: bool) -> None:
    if not done:
        output.lines(changing.done("nothing to clean up"))
        return
    verb = "would be moved" if dry_run else "erased" if erase else "moved to .trash/"
    for one in done:
        output.lines(item("  ", f"{one.row.slug}  {one.row.status}, {changing.at(one.row.updated)}"))
    output.lines(changing.done(f"{formatting.count(len(done), 'session')} {verb}", "·" if dry_run else "✓"))
    if not dry_run and not erase:
        for one in done:
            changing.print_command(
                "undo", project_options.command_line("brainstorm", root, "restore", one.row.slug)
            )


def _ended(ctx: click.Context) -> list[str]:
    """The names that can be restored."""
    store = given.store_in(ctx.params["root"])
    return [_name(row.path) for row in store.archived()] if ctx.params.get("archived") else store.trashed()


@click.command(
    "restore",
    epilog="""\b
Examples:
  sessionary brainstorm restore feature-auth
  sessionary brainstorm list --archived
  sessionary brainstorm restore feature-auth-2026-01-09 --archived --replace
""",
)
@click.argument("slug", metavar="NAME", shell_complete=completing.ids(_ended))
@project_options.root
@click.option(
    "--archived", is_flag=True, help="Restore from archive/ instead of .trash/; NAME may be the id."
)
@click.option(
    "--replace", is_flag=True, help="Move an existing session of that name to archive/ (with --archived)."
)
@options.json_result
def restore_command(slug: str, root: Path, archived: bool, replace: bool, json_: bool) -> int:
    """Restore a session that was cleaned up, or replaced by a new one.

    Of several with one name, the last. It is restored as it was stored: `reopen` resumes it. If no session
    was replaced, there is no undo.
    """
    if replace and not archived:
        raise click.UsageError("--replace needs --archived")
    store = given.store_in(root)
    slug = store.find_ended(slug, archived=archived)
    before = {row.path for row in store.archived()} if replace else set()
    path = store.restore_archived(slug, replace=replace) if archived else store.restore(slug)
    slug = _name(path)
    made_room = [row.path for row in store.archived() if row.path not in before] if replace else []
    undo = _restoring(root, _name(made_room[0])) if len(made_room) == 1 else ""
    if json_:
        output.value({"slug": slug, "path": path, "undo": undo or None})
        return 0
    output.lines(changing.done(f"{slug} is restored: {harmless(project_options.short_path(path))}"))
    back = project_options.before(lambda: store.load(slug, store_migration=False))
    if back is not None and back.status in (COMPLETED, ABANDONED):
        changing.print_command("resume", project_options.command_line("brainstorm", root, "reopen", slug))
    if undo:
        changing.print_command("undo", undo)
    return 0


def _name(path: str) -> str:
    return os.path.basename(path).removesuffix(SUFFIX)


def _restoring(root: Path, name: str) -> str:
    return project_options.command_line("brainstorm", root, "restore", name, "--archived", "--replace")


@click.command(
    "migrate",
    epilog="""\b
Examples:
  sessionary brainstorm migrate --dry-run
  sessionary brainstorm migrate feature-auth
""",
)
@click.argument("slug", required=False, metavar="[SLUG]", callback=given.named, shell_complete=given.complete)
@project_options.root
@options.dry_run
@options.json_result
def migrate_command(slug: str | None, root: Path, dry_run: bool, json_: bool) -> int:
    """Store older files in the current version.

    The old bytes are kept beside them in a .bak file, which is the only undo. A file of an unknown version is
    reported and left unchanged; the exit code is 3 then.
    """
    done = given.store_in(root).migrate(slug, dry_run=dry_run)
    failed = [one.problem for one in done if one.problem]
    if json_:
        output.value({"dry_run": dry_run, "sessions": [_migrated(one) for one in done]})
    else:
        project_options.warn(failed)
        output.lines(project_options.lines_of(_told(one, dry_run) for one in done if not one.problem))
        if not done:
            output.lines(changing.done("every session has the current version"))
    return options.PARTLY if failed else 0


def _migrated(one: MigratedFile) -> dict[str, Any]:
    problem = None if one.problem is None else one.problem.as_dict()
    return {**one._asdict(), "problem": problem}


def _told(one: MigratedFile, dry_run: bool) -> Any:
    what = "would be healed" if one.healed else "would be migrated"
    if not dry_run:
        what = what.removeprefix("would be ")
    return changing.done(f"{one.slug} {what} from version {one.was}", "·" if dry_run else "✓")
