"""`sync history` and `sync restore`: earlier versions of a session on the remote."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import click

from sessionary.cli import changing, completing, formatting, options, output
from sessionary.cli.lazy import command
from sessionary.cli.sync import places
from sessionary.cli.text import column, one_line
from sessionary.errors import NotFound
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine
from sessionary.sync.restoring import Generation, Restored
from sessionary.workspace.syncing import Connection


@command(
    "history",
    "sessionary sync history 3f0c81d2",
    "sessionary sync history 3f0c81d2 --json | jq '.generations[] | select(.gone | not)'",
)
@click.argument("session", metavar="ID", shell_complete=completing.sessions())
@places.local()
@options.as_json("the versions", "one version")
def history_command(select: Callable[[], places.Here], session: str) -> int:
    """List the versions of a session on the remote.

    Each pushed change of a brainstorm is a version. The remote keeps the last eight; older ones, and those
    removed by `sync gc --remove`, are listed as gone. Changes nothing.
    """
    here = select()
    with places.connected(here, "looking") as remote:
        engine, ref = _session(remote, session, keep=False)
        found = engine.earlier.generations(ref)
    if output.is_json():
        document = {"id": ref.session_id, "kind": ref.kind, "generations": list(map(_object, found))}
        output.holding(document, "generations")
    else:
        output.lines(_lines(found))
        if any(not one.is_gone and not one.present for one in found):
            changing.print_command("next", here.command("restore", ref.session_id) + " --generation N")
    return 0


@command(
    "restore",
    "sessionary sync history 3f0c81d2",
    "sessionary sync restore 3f0c81d2 --generation 4",
    "sessionary sync push",
)
@click.argument("session", metavar="ID", shell_complete=completing.sessions())
@places.local(quiet=True)
@click.option(
    "--generation", type=click.IntRange(0), metavar="N", help="The version, as listed by `sync history`."
)
@click.option(
    "--from",
    "kept",
    metavar="FILE",
    help="A version that an earlier restore kept beside the session: undoes that restore.",
)
@options.json_result
def restore_command(
    select: Callable[[], places.Here], session: str, generation: int | None, kept: str | None
) -> int:
    """Replace a session by an earlier version.

    The current version is kept beside it. Restored are the transcript of an agent's session with its event log,
    if that was synchronised; the history of a feature; the file of a brainstorm. Ledgers are not restored,
    since messages would be applied again. The next push uploads the restored version to the other machines.

    Undo: `sync restore` again; the replaced version is kept beside the session, pushed ones are in `sync history`.
    """
    if (generation is None) == (kept is None):
        raise click.UsageError("give --generation N, or --from FILE to undo a restore")
    here = select()
    with places.connected(here, "restoring") as remote:
        engine, ref = _session(remote, session)
        if kept is not None:
            done = engine.earlier.restore_kept(ref, kept)
        else:
            done = engine.earlier.restore(ref, generation or 0)
        here.mark_closed(ref)
    undo = [
        here.command("restore", ref.session_id, "--from", os.path.basename(one.kept))
        for one in done
        if one.kept is not None
    ]
    files = [one._asdict() for one in done]
    document = {"id": ref.session_id, "kind": ref.kind, "files": files, "undo": undo}
    asides = [*(changing.to_run("undo", line) for line in undo), "next: sessionary sync push"]
    return output.shown(document, _restored(ref, done), asides=asides)


def _session(remote: Connection, word: str, *, keep: bool = True) -> tuple[Engine, SessionRef]:
    """The local session that a word names, and its engine."""
    found = remote.find(word, keep=keep)
    if found is None:
        raise NotFound(
            f"no local session matches {word}",
            session=word,
            hint="`sessionary sync status --all` lists them; `sync pull` downloads missing ones",
        )
    return found


def _object(one: Generation) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "first": one.first,
        "last": one.last,
        "present": one.present,
        "gone": one.is_gone,
        "at": one.at or None,
        "files": sorted(one.files),
    }


def _lines(found: list[Generation]) -> Iterator[str]:
    numbers = [str(one.first) if one.first == one.last else f"{one.first}-{one.last}" for one in found]
    for number, one in zip(column(numbers, right=True), found, strict=True):
        if one.is_gone:
            yield output.paint(f"  {number}  gone from the remote", "dim")
            continue
        what = f"current, pushed {one.at}" if one.present else f"replaced {one.at}"
        files = f"  {one_line(', '.join(sorted(one.files)))}" if one.files else ""
        yield f"{output.paint('▶', 'green') if one.present else ' '} {number}  {one_line(what)}{files}"


def _restored(ref: SessionRef, done: list[Restored]) -> Iterator[str]:
    for one in done:
        size = formatting.size(one.size)
        yield from changing.done(f"{one_line(ref.session_id)}: {one_line(one.name)} is restored ({size})")
        if one.kept is not None:
            yield from changing.set_in(
                f"  the replaced version is kept in {one_line(os.path.basename(one.kept))}"
            )
