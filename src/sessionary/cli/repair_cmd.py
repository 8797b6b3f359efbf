"""`sessionary repair`: repair a session so that its agent can resume it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, homes, options, output
from sessionary.cli.changing import print_command
from sessionary.cli.lazy import command
from sessionary.cli.progress import waiting
from sessionary.cli.targets import to_change
from sessionary.cli.text import cells, fit, harmless, one_line, shell_line, wrap
from sessionary.errors import Corrupt
from sessionary.layouts.amplifier.repairing import Repaired
from sessionary.layouts.base import Capability
from sessionary.model import Problem, SessionRef
from sessionary.sync.conflict_copies import CONTAINED, LEFT, MERGED, SESSION, BroughtIn
from sessionary.workspace import Repair, Workspace, documents

DAMAGED = Corrupt.exit_code
WHOLE = 200
_SOURCES = {
    "backup": "its backup",
    "conflict": "both sides of the merge conflict; where they differ, from the first",
    "nothing": "the id alone",
}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@command(
    "repair",
    "sessionary repair 3f0c81d2 --dry-run       what would be done, as a diff",
    "sessionary repair 3f0c81d2",
    "sessionary repair 3f0c81d2 --orphans drop",
    "sessionary undo 3f0c81d2                   as it was before",
    "sessionary repair 7b2e0c81 --out ~/mended  of another agent: a copy",
)
@click.argument("session", metavar="ID | DIR", shell_complete=completing.sessions())
@options.home
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a repaired copy of the session of another agent below DIR, and change nothing else.",
)
@options.choice(
    "--orphans",
    default="complete",
    among=["complete", "drop"],
    help="Tool calls without a result: add one that says so, or remove the calls.",
)
@options.flag("--close-last", help="Add a closing message if the conversation ends with a tool result.")
@options.choice(
    "--bad-bytes",
    default="replace",
    among=["replace", "drop"],
    help="Messages with invalid UTF-8: replace the bytes by U+FFFD, or quarantine the message.",
)
@options.flag("--full", help=f"Print lines of the diff whole, not their first {WHOLE} characters.")
@options.dry_run
@options.json_result
def repair_command(
    session: str, out: Path | None, orphans: str, close_last: bool, bad_bytes: str, full: bool, dry_run: bool
) -> int:
    """Repair a session that its agent or a provider refuses.

    The repaired session is checked again. Readable lines stay unchanged, byte for byte. Readable parts of
    damaged lines are kept; the rest is quarantined beside the transcript. A healthy session is left
    unchanged. Close the session in its agent first.

    Conflict copies of a file synchroniser are merged first, for sessions of every kind: a copy that continues
    the file replaces it, documents are merged, a different conversation becomes a separate session. The
    previous content and the copy are kept beside the file as *.before-*.

    Sessions of other agents are never changed: --out DIR writes a repaired copy, which `--home DIR` reads.
    The copy is repaired as far as possible: damaged lines, calls without a result, results without a call,
    repeated records, and what the agent or its provider refuses. Remaining problems are listed. Copy the file
    back yourself, with the agent closed.

    Exit code 13: something is still wrong after the repair.

    Undo: `sessionary undo ID`; the command is printed. Merged conflict copies are not undone.
    """
    workspace = homes.workspace()
    if out is not None:
        if dry_run or close_last or full or orphans != "complete" or bad_bytes != "replace":
            raise click.UsageError("--out excludes all options but --home and --json")
        return _copy(workspace, to_change(workspace, session, None).ref, out)
    ref, word = to_change(workspace, session, Capability.REPAIR)
    with waiting("repairing"):
        found = workspace.repair(
            ref, orphans=orphans, close_last=close_last, bad_bytes=bad_bytes, dry_run=dry_run
        )
    done = found.done
    undo = None if found.kept_in is None else formatting.command("undo", word)
    if output.is_json():
        output.value(_object(found, full, undo))
    else:
        with output.paged():
            output.lines(_copies(found.copies, dry_run=dry_run))
            if done is None:
                if not dry_run:
                    output.lines(_still_wrong(found.remaining))
            elif done.changed or done.remaining or not found.copies:
                output.lines(_repair_lines(done, full))
        if undo is not None:
            print_command("undo", undo)
        elif dry_run:
            output.aside("Nothing was written.")
    return DAMAGED if found.remaining and not dry_run else 0


def _copy(workspace: Workspace, ref: SessionRef, out: Path) -> int:
    """Write a repaired copy, and print what was repaired and what was not."""
    with waiting("repairing"):
        found = workspace.mended_copy(ref, out)
    if output.is_json():
        output.value(
            {
                "id": ref.session_id,
                "path": ref.locator,
                "copy": found.copy.locator,
                "home": found.home,
                "files": found.paths,
                "mends": [mend._asdict() for mend in found.mends],
                "remaining": [documents.of_problem(problem) for problem in found.remaining],
                "lost": found.lost,
            }
        )
        return DAMAGED if found.remaining else 0
    with output.paged():
        for mend in found.mends:
            place = f"line {mend.line:,}" if mend.line else "the file"
            output.lines(_item(place, mend.code, mend.what))
        sign = ("!", "yellow") if found.remaining else ("✓", "green")
        what = "a repaired copy" if found.mends else "a copy, with nothing to repair,"
        output.lines(changing.done(f"{what} of {one_line(ref.session_id)} is written", *sign))
        output.line(harmless(f"  {found.copy.locator}"))
        output.lines(_still_wrong(found.remaining))
        if found.lost:
            output.line(f"  {formatting.size(found.lost)} of damaged lines could not be recovered")
    print_command("show it", shell_line(["sessionary", "show", "--home", found.home, ref.session_id]))
    return DAMAGED if found.remaining else 0


def _object(found: Repair, full: bool, undo: str | None) -> dict[str, Any]:
    """The result, with the field names of docs/cli-json.md."""
    document = documents.of_repair(found)
    if found.done is None:
        return document
    diff = found.done.diff.split("\n")
    return document | {
        "diff": "\n".join(line if full else _short(line, WHOLE) for line in diff),
        "undo": undo,
    }


def _copies(brought: Sequence[BroughtIn], *, dry_run: bool) -> Iterator[str]:
    """The result for each copy, and its new name."""
    for one in brought:
        name = os.path.basename(one.path)
        if one.done == LEFT:
            yield from changing.done(f"{name}: {_of_copy(one, dry_run)}", "!", "yellow")
        else:
            yield from changing.done(f"{name}: {_of_copy(one, dry_run)}")
        if one.kept != one.path:
            yield from changing.set_in(f"  kept as {os.path.basename(one.kept)}")


def _of_copy(one: BroughtIn, dry_run: bool) -> str:
    unit = "line" if one.path.endswith(".jsonl") else "field"
    more = formatting.count(one.more, unit)
    if one.done == CONTAINED:
        return f"adds nothing to {one.original}; {'would be' if dry_run else 'was'} moved away"
    if one.done == LEFT:
        return f"has {more} missing from {one.original}; compare the two, then delete the copy"
    if one.done == SESSION:
        return f"{'would become' if dry_run else 'is now'} a session of its own, {one.session}"
    if one.done == MERGED:
        return f"{'would be' if dry_run else 'was'} merged into {one.original} ({more})"
    return f"{'would replace' if dry_run else 'replaced'} {one.original}, with {more} more"


def _repair_lines(done: Repaired, full: bool) -> Iterator[str]:
    name = one_line(done.session_id)
    if not done.changed:
        yield from _unchanged(name, done)
        return
    if done.diff:
        yield from _diff(done.diff, full)
        yield ""
    for fix in done.fixes:
        yield from _item(f"line {fix.line:,}", fix.code, fix.what)
    for change in done.mends:
        yield from _item(f"message {change.index:,}", change.code, f"{change.what}: {change.why}")
    yield from _besides(done)
    outcome = f"{name} {'would be' if done.dry_run else 'is'} repaired"
    yield from changing.done(outcome, *(("!", "yellow") if done.remaining else ()))
    yield f"  {formatting.count(done.messages_after, 'message')}; {done.messages_before:,} could be read before"
    yield from _still_wrong(done.remaining)
    yield from changing.lost([(fix.line, fix.lost) for fix in done.fixes if fix.lost])


def _unchanged(name: str, done: Repaired) -> Iterator[str]:
    if done.remaining:
        yield from changing.done(f"{name}: cannot be repaired", "✗", "red")
        yield from _still_wrong(done.remaining)
    else:
        yield from changing.done(f"{name}: nothing to repair")


def _still_wrong(remaining: list[Problem]) -> Iterator[str]:
    if remaining:
        yield "  still wrong:"
        yield from changing.not_read(remaining)


def _item(place: str, code: str, words: str) -> Iterator[str]:
    yield from wrap(harmless(f"  {place}  {code}"), output.width())
    yield from (f"    {line}" for line in wrap(harmless(words), output.width() - 4))


def _besides(done: Repaired) -> Iterator[str]:
    """The changes outside of the lines of the transcript."""
    if done.set_aside:
        where = os.path.basename(done.set_aside_in) if done.set_aside_in else "a file beside the transcript"
        yield from changing.set_in(f"  quarantined: {formatting.size(done.set_aside)}, in {where}")
    if done.metadata_from is not None:
        yield from changing.set_in(f"  metadata.json is rebuilt from {_SOURCES[done.metadata_from]}")
    if done.event_sealed:
        yield "  the last event was truncated: its line end is added"


def _diff(diff: str, full: bool) -> Iterator[str]:
    """The lines of the diff, made harmless. They may be megabytes long, so they are cut unless --full is given."""
    room = min(output.room() or WHOLE, WHOLE)
    for line in diff.split("\n"):
        colour = "bold" if line.startswith(("+++", "---")) else _COLOURS.get(line[:1])
        text = harmless(line) if full else _short(harmless(line), room)
        yield output.paint(text, colour) if colour else text


def _short(line: str, room: int) -> str:
    """The beginning of a line, and its length."""
    if len(line) <= room and cells(line) <= room:
        return line
    tail = f"… ({len(line):,} characters)"
    return fit(line, room - len(tail), ellipsis="") + tail
