"""`sync resolve`: settle sessions that were continued on two machines, and files in two versions."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from sessionary.cli import completing, formatting, options, output, project_options
from sessionary.cli.changing import done, print_command
from sessionary.cli.sync import conflicts, places
from sessionary.cli.sync.conflicts import Pair, Pending
from sessionary.cli.sync.formatting import print_result, together
from sessionary.cli.text import one_line
from sessionary.errors import AmbiguousId, Corrupt, Invalid, Locked, NotFound, SessionaryError
from sessionary.layouts.session_ids import ids_named

_KEEP = (conflicts.MINE, conflicts.THEIRS)


@click.command(
    "resolve",
    epilog="""\b
Examples:
  sessionary sync resolve
  sessionary sync resolve 3f0c81d2 --keep theirs
  sessionary sync resolve active-features.yaml --keep mine
""",
)
@click.argument("session", required=False, metavar="[ID]", shell_complete=completing.sessions())
@places.home
@places.root
@places.settings_file
@places.quiet
@click.option(
    "--keep", type=click.Choice(_KEEP), help="The version to keep; the other one goes to the trash."
)
@options.json_result
@click.option(
    "--jsonl", is_flag=True, help="Print the conflicts as JSON Lines: one session or file per line."
)
def resolve_command(
    session: str | None,
    home: Path | None,
    root: Path,
    settings_path: Path | None,
    quiet: float,
    keep: str | None,
    json_: bool,
    jsonl: bool,
) -> int:
    """List conflicts with the commands that settle them, or choose the version to keep.

    ID names either version of a session that two machines continued. `theirs` has the session's own id: it
    was on the remote first. `mine` is the sibling, made by the machine that came second. The other version
    goes to the trash, from where it can be restored, and the next push informs the other machines; a version
    that an agent has open is not changed. No choice is required: both versions are complete, and you can
    continue either.

    For a file that is held back because it is damaged, `theirs` is the version of the remote, and the local
    one is kept beside it; `mine` is the local one, which is pushed unchanged to all machines. For a file that
    only a user can merge (the list of active features), `mine` is the local one, unchanged or as you have
    merged both. For files with another version beside them, the list shows how to settle it. If the remote
    cannot be opened, local conflicts are listed before the error. Exit code 3: the state of some sessions is
    unknown.

    Undo: `sessionary undo ID` restores a trashed version; the replaced version of a file is kept beside it.
    """
    if (session is None) != (keep is None):
        raise click.UsageError("give a session and --keep, or neither to list the conflicts")
    options.one_format(json_, jsonl)
    if jsonl and session is not None:
        raise click.UsageError("--jsonl is for the list; use --json")
    here = places.here_of(home, root, settings_path, quiet)
    if session is None or keep is None:
        return _list(here, json_, jsonl)
    known, unknown = conflicts.pairs(here.layouts())
    pair = _named(known, session)
    if pair is None:
        _refuse_unknown(unknown, session)
    if pair is None or _is_held_back(here, pair, session):
        return _decide(here, session, keep, json_)
    return _part(here, pair, keep, home, root, json_)


def _list(here: places.Here, json_: bool, jsonl: bool) -> int:
    line = partial(here.command, "resolve")
    layouts = here.layouts()
    known, unknown = conflicts.pairs(layouts)
    parted = [*(conflicts.of_pair(pair, line) for pair in known), *unknown]
    beside = [one for layout in layouts for one in conflicts.kept_beside(layout)]
    try:
        with places.connected(here, "looking") as remote:
            held = [one for engine in here.engines(remote) for one in conflicts.held_back(engine, line)]
    except SessionaryError:
        if parted or beside:  # these are local: they can be settled without the remote
            _show([*parted, *beside], json_, jsonl)
        raise
    found = [*parted, *held, *beside]
    _show(found, json_, jsonl)
    return options.PARTLY if any(one.what == conflicts.UNKNOWN for one in found) else 0


def _show(found: list[Pending], json_: bool, jsonl: bool) -> None:
    if json_ or jsonl:
        output.items(map(conflicts.as_object, found), jsonl=jsonl)
    else:
        output.lines(conflicts.lines(found))
        output.aside(conflicts.summary(found))


def _named(pairs: list[Pair], word: str) -> Pair | None:
    named = set(ids_named(word, {name for pair in pairs for name in _ids(pair)}))
    found = [pair for pair in pairs if named & set(_ids(pair))]
    if len(found) > 1:
        raise AmbiguousId(
            f"{word} names several pairs",
            details={"matches": [pair.sibling.session_id for pair in found]},
            hint="give the id of the sibling",
        )
    return found[0] if found else None


def _refuse_unknown(unknown: list[Pending], word: str) -> None:
    """Raise Corrupt if the word names a session for which it is unknown whether it has two versions."""
    for one in unknown:
        if one.session_id.startswith(word):
            raise Corrupt(
                f"unknown whether {one.session_id} is one of two versions: {one.note}",
                operation="resolve",
                session=one.session_id,
                hint=f"repair that file first; run `sessionary check {one.session_id}` for details",
            )


def _ids(pair: Pair) -> tuple[str, str]:
    return pair.original.session_id, pair.sibling.session_id


def _part(here: places.Here, pair: Pair, keep: str, home: Path | None, root: Path, json_: bool) -> int:
    """Keep one version of a session, and move the other one to the trash."""
    winner, loser = pair.original, pair.sibling
    if keep == conflicts.MINE:
        winner, loser = loser, winner
    with pair.layout.lock(loser):
        if (why := here.why_open(pair.layout, loser)) is not None:
            raise Locked(
                f"{loser.session_id} was not moved: {why}",
                operation="resolve",
                path=loser.locator,
                session=loser.session_id,
                hint="close the agent that has it open; if none has, wait a moment, or use --quiet 0",
            )
        pair.layout.trash(loser, datetime.now(UTC))
    if json_:
        output.value({"kept": winner.session_id, "trashed": loser.session_id})
        return 0
    output.lines(done(f"{one_line(winner.session_id)} is kept, {one_line(loser.session_id)} is in the trash"))
    if pair.layout.name == "amplifier":
        back = formatting.command(home, "undo", loser.session_id)
    else:
        back = project_options.command_line(pair.layout.name, root, "restore", loser.session_id)
    print_command("undo", back)
    output.aside("next: sessionary sync push")
    return 0


def _is_held_back(here: places.Here, pair: Pair, word: str) -> bool:
    """True if the word names the version that has the session's id, and a file of it is held back."""
    if not pair.original.session_id.startswith(word):
        return False
    with places.connected(here, "looking") as line:
        engines = [engine for engine in here.engines(line) if engine.layout.name == pair.layout.name]
        return any(engine.holds_back(pair.original) for engine in engines)


def _decide(here: places.Here, word: str, keep: str, json_: bool) -> int:
    """Settle a file that is held back."""
    with places.connected(here, "deciding") as line:
        found = [(engine, ref) for engine in here.engines(line) for ref in engine.layout.discover()]
        named = [each for each in found if each[1].session_id == word]
        named = named or [each for each in found if each[1].session_id.startswith(word)]
        if len(named) > 1:
            raise AmbiguousId(
                f"{word} names several sessions",
                details={"matches": [ref.session_id for _, ref in named]},
                hint="give more of the id",
            )
        for engine, ref in named:
            try:
                report = engine.resolve(ref, keep)
            except Invalid as error:
                if error.operation != "resolve":
                    raise
                break  # nothing of it is held back
            return print_result(
                together([(engine.layout.name, report)], line.spared), here, json_=json_, all_=True
            )
    raise _nothing_to_decide(here, word)


def _nothing_to_decide(here: places.Here, word: str) -> Invalid | NotFound:
    every = (one for layout in here.layouts() for one in conflicts.kept_beside(layout))
    beside = [one for one in every if one.session_id.startswith(word) and one.what == conflicts.BESIDE]
    if beside:
        return _to_do_by_hand(beside[0])
    return NotFound(
        f"no session {word} has two versions or a file that is held back",
        session=word,
        hint="`sessionary sync resolve` lists all conflicts",
    )


def _to_do_by_hand(one: Pending) -> Invalid:
    ways = "; ".join(f"to keep {way.keeps}: {way.command}" for way in one.ways)
    return Invalid(
        f"{one.file} has another version beside it, which only you can merge",
        operation="resolve",
        path=one.other or one.path,
        session=one.session_id,
        hint=ways,
    )
