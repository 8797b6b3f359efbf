"""`sessionary export`: sessions in formats that other programs read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import click

from sessionary.cli import completing, formatting, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.targets import resolve, session
from sessionary.cli.text import harmless, one_line
from sessionary.disk.fs import OS_FS
from sessionary.export import FORMATS, Report
from sessionary.export.formats import format_of
from sessionary.export.wording import loss_words
from sessionary.workspace.bundling import bundle
from sessionary.workspace.exporting import Export, save_all

_PRINTED = "-"
BUNDLE = "hf"
"""The word for a folder with the files of sessions and a dataset card."""


@command(
    "export",
    "sessionary export 3f0c81d2 > build.md",
    "sessionary export 3f0c81d2 --output build.html",
    "sessionary export 3f0c81d2 --redact --output build.html   to share it",
    "sessionary export 3f0c81d2 --format jsonl | jq -r .role",
    "sessionary export 3f0c81d2 9c1d2e3f --format json --output exports/",
    "sessionary export 3f0c81d2 9c1d2e3f --format hf --redact --output dataset/",
)
@click.argument(
    "sessions", metavar="ID...", nargs=-1, required=True, shell_complete=completing.sessions(files=True)
)
@options.home
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS, BUNDLE]),
    help="The format (default: by the name of the file, else md); hf needs --output DIR/.",
)
@click.option(
    "-o",
    "--output",
    "place",
    metavar="FILE | DIR | -",
    default=_PRINTED,
    help="Write a file, or one file per session into a folder (default: print).",
)
@options.flag("--force", help="Replace existing files.")
@options.flag("--redact", help="Mask secrets, home folders and user names.")
@click.option(
    "--rules",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --redact: your rules (default: redaction.toml in the configuration folder).",
)
@options.flag("--branches", help="Include the messages outside of the conversation.")
@options.flag("--strict", help="Fail if something cannot be exported; no file is written then.")
@options.json_result
def export_command(
    sessions: Sequence[str],
    form: str | None,
    place: str,
    force: bool,
    redact: bool,
    rules: Path | None,
    branches: bool,
    strict: bool,
) -> int:
    """Export sessions in a format that other programs read.

    The sessions of their sub-agents are included. Losses, which the format cannot express, are printed on
    standard error. --json prints them as JSON instead, and needs a file. Keys that decrypt data elsewhere
    (blobEncryptionKey) are masked even without --redact.

    Exit code 11: the file exists. Exit code 13: nothing in a file can be read. Exit code 18: with --strict, something
    cannot be exported.
    """
    is_folder = place != _PRINTED and (place.endswith(os.sep) or os.path.isdir(place))
    if not place:
        raise click.UsageError("--output needs a name")
    if len(sessions) > 1 and not is_folder:
        raise click.UsageError("several sessions need --output DIR/")
    if output.is_json() and place == _PRINTED:
        raise click.UsageError("--json needs --output FILE")
    if rules is not None and not redact:
        raise click.UsageError("--rules needs --redact")
    workspace = homes.workspace()
    if form == BUNDLE:
        if place == _PRINTED:
            raise click.UsageError("--format hf needs --output DIR/")
        refs = [session(workspace, word) for word in dict.fromkeys(sessions)]
        report = bundle(workspace, refs, place, OS_FS, redact=redact, rules=rules, strict=strict, force=force)
        document = {"exports": [{"path": os.path.abspath(place), **report.as_dict()}]}
        what = formatting.count(report.sessions, "session")
        return output.shown(document, [f"{harmless(place)}  {what}"], asides=_losses(report))
    chosen = form or ("md" if is_folder else format_of(place))
    exports = [
        workspace.export(
            resolve(workspace, word), chosen, redact=redact, rules=rules, branches=branches, strict=strict
        )
        for word in dict.fromkeys(sessions)
    ]
    if place == _PRINTED:
        for line in exports[0]:
            output.raw(line, end=b"")
            del line  # it may be long, and the next one is made before it would be replaced
        return _report(exports, [])
    files = [os.path.join(place, one.file_name) if is_folder else place for one in exports]
    save_all(exports, files, force=force, fs=OS_FS)
    return _report(exports, files)


def _report(exports: list[Export], files: list[str]) -> int:
    """Print the files of the exports, if any, and what was not exported."""
    if output.is_json():
        reports = [
            {"path": os.path.abspath(file), **one.report.as_dict()}
            for one, file in zip(exports, files, strict=True)
        ]
        output.value({"exports": reports})
        return 0
    for one, file in zip_longest(exports, files):
        if file is not None:
            output.line(f"{harmless(file)}  {formatting.count(one.report.messages, 'message')}")
        for text in _losses(one.report):
            output.aside(text)
    return 0


def _losses(report: Report) -> Iterator[str]:
    """Lines about losses and masked values."""
    for loss in report.losses:
        yield f"not exported: {loss_words(loss)}"
    for rule, count in sorted(report.masked.items()):
        yield f"masked: {count:,} × {one_line(rule)}"
