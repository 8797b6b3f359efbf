"""`sync resolve`: list sessions and files in two versions with the commands that settle them, or settle one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from sessionary.cli import completing, formatting, options, output
from sessionary.cli.changing import done, to_run
from sessionary.cli.lazy import command
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import print_result
from sessionary.cli.text import harmless, one_line, shell_line
from sessionary.errors import Invalid, NotFound, SessionaryError
from sessionary.workspace import conflicts
from sessionary.workspace.conflicts import (
    BESIDE,
    HELD,
    MINE,
    SESSIONS,
    STANDING,
    THEIRS,
    UNKNOWN,
    Conflict,
    Pair,
)

_WORDS = {SESSIONS: "two versions", HELD: "held back", BESIDE: "kept beside", UNKNOWN: "not known"}
_COUNTED = (
    (SESSIONS, "session continued on two machines", "sessions continued on two machines"),
    (HELD, "file held back", "files held back"),
    (BESIDE, "file with another version beside it", "files with another version beside them"),
    (UNKNOWN, "session unknown", "sessions unknown"),
)


@command(
    "resolve",
    "sessionary sync resolve",
    "sessionary sync resolve 3f0c81d2 --keep theirs",
    "sessionary sync resolve active-features.yaml --keep mine",
)
@click.argument("session", required=False, metavar="[ID]", shell_complete=completing.sessions())
@places.local(quiet=True)
@click.option(
    "--keep", type=click.Choice((MINE, THEIRS)), help="The version to keep; the other one goes to the trash."
)
@options.json_result
@options.json_flag("--jsonl", help="Print the conflicts as JSON Lines: one session or file per line.")
def resolve_command(select: Callable[[], places.Here], session: str | None, keep: str | None) -> int:
    """List conflicts, or choose the version to keep.

    ID is the id of either version of a session that two machines continued. `theirs` is the version that was
    pushed first, and has the original id. `mine` is the sibling, which the other machine created. The version
    that you do not keep goes to the trash, from where it can be restored, and the next push informs the other
    machines. A version that an agent has open is not changed. No choice is required: both versions are complete,
    and you can continue either.

    For a file that is held back because it is damaged, `theirs` is the version of the remote, and the local
    version is kept beside it; `mine` is the local version, which is pushed unchanged to all machines. For a file
    that only a user can merge (the list of active features), `mine` is the local version, unchanged or merged by
    you. For files with another version beside them, the list shows how to resolve them. If the remote cannot be
    opened, local conflicts are listed before the error. Exit code 3: the state of some sessions is unknown.

    Undo: `sessionary undo ID` restores a trashed version; the replaced version of a file is kept beside it.
    """
    if (session is None) != (keep is None):
        raise click.UsageError("give a session and --keep, or neither to list the conflicts")
    if output.wants("jsonl") and session is not None:
        raise click.UsageError("--jsonl is for the list; use --json")
    here = select()
    if session is None or keep is None:
        return _list(here)
    pair = conflicts.pair_named(here.layouts(), session)
    if pair is not None and not _is_held_back(here, pair, session):
        return _keep_one(here, pair, keep)
    return _choose_file(here, session, keep)


def _list(here: places.Here) -> int:
    layouts = here.layouts()
    pairs, unknown = conflicts.pairs(layouts)
    diverged = [*map(conflicts.of_pair, pairs), *unknown]
    beside = list(conflicts.kept_beside(layouts))
    try:
        with places.connected(here, "looking") as remote:
            held = list(conflicts.held_back(remote))
    except SessionaryError:
        if diverged or beside:  # these are local: they can be settled without the remote
            _print(here, [*diverged, *beside])
        raise
    found = [*diverged, *held, *beside]
    _print(here, found)
    return options.PARTLY if any(one.what == UNKNOWN for one in found) else 0


def _command(here: places.Here, one: Conflict, keep: str) -> str:
    """The command that keeps this version."""
    if one.what == BESIDE:
        assert one.path is not None
        assert one.sibling_path is not None
        return shell_line(
            ["rm", one.sibling_path] if keep == STANDING else ["mv", one.sibling_path, one.path]
        )
    # The sibling is in one pair only.
    return here.command("resolve", one.sibling or one.id, "--keep", keep)


def _object(here: places.Here, one: Conflict) -> dict[str, Any]:
    """A conflict with the field names of docs/cli-json.md."""
    fields = one._asdict()
    note, keeps = fields.pop("note"), fields.pop("keeps")
    commands = [{"keeps": keep, "command": _command(here, one, keep)} for keep in keeps]
    return {**fields, "commands": commands, "note": note}


def _print(here: places.Here, found: list[Conflict]) -> None:
    if output.is_json():
        output.items(_object(here, one) for one in found)
        return
    output.lines(_lines(here, found))
    count = Counter(one.what for one in found)
    parts = [formatting.count(count[what], one, many) for what, one, many in _COUNTED if count[what]]
    output.aside(", ".join(parts) or "no conflicts")


def _lines(here: places.Here, found: Iterable[Conflict]) -> Iterator[str]:
    """Each conflict: what it is, both versions, and the commands, which are never cut."""
    for one in found:
        name = one.id if one.file in (None, one.id) else f"{one.id}  {one.file}"
        sign = output.paint("✗", "red") if one.what == UNKNOWN else output.paint("!", "yellow")
        yield f"{sign} {_WORDS[one.what]:<12}  {one_line(name)}"
        yield from (harmless(f"    {text}") for text in _versions(one))
        for keep in one.keeps:
            is_by_hand = not one.note and (one.what, keep) in ((HELD, MINE), (BESIDE, STANDING))
            merged = " (unchanged, or as you have merged both)" if is_by_hand else ""
            yield harmless(f"    to keep {keep}{merged}: {_command(here, one, keep)}")


def _versions(one: Conflict) -> list[str]:
    if one.what == SESSIONS:
        return [f"theirs: {one.id}, which was pushed first", f"mine: {one.sibling}, the sibling"]
    if one.what == HELD and one.note:
        return [one.note, f"mine: {one.path}", f"theirs: {one.sibling_path or 'on the remote'}"]
    if one.what == HELD:
        other = one.sibling_path or "on the remote; `sessionary sync pull` stores it beside yours"
        return [f"mine: {one.path}", f"theirs: {other}"]
    if one.what == BESIDE:
        return [f"current: {one.path}", f"other: {one.sibling_path}"]
    return [one.note]


def _is_held_back(here: places.Here, pair: Pair, word: str) -> bool:
    """True if the word names the version that has the session's id, and a file of it is held back."""
    if not pair.original.session_id.startswith(word):
        return False
    with places.connected(here, "looking") as remote:
        return conflicts.is_held_back(remote, pair)


def _keep_one(here: places.Here, pair: Pair, keep: str) -> int:
    """Keep one version of a session, and move the other one to the trash."""
    winner, loser = conflicts.keep_one(here, pair, keep)
    if pair.layout.name == "amplifier":
        back = ["undo", *here.given_as("--home"), loser.session_id]
    else:
        back = [pair.layout.name, "restore", loser.session_id, *here.given_as("--root")]
    return output.shown(
        {"kept": winner.session_id, "trashed": loser.session_id},
        done(f"{one_line(winner.session_id)} is kept, {one_line(loser.session_id)} is in the trash"),
        asides=[to_run("undo", shell_line(["sessionary", *back])), "next: sessionary sync push"],
    )


def _choose_file(here: places.Here, word: str, keep: str) -> int:
    """Settle a file that is held back."""
    with places.connected(here, "deciding") as remote:
        report = conflicts.choose_file(remote, word, keep)
    if report is not None:
        return print_result(report, here, all_=True)
    for one in conflicts.kept_beside(here.layouts()):
        if one.id.startswith(word) and one.what == BESIDE:
            raise Invalid(
                f"{one.file} has another version beside it, which only you can merge",
                operation="resolve",
                path=one.sibling_path or one.path,
                session=one.id,
                hint="; ".join(f"to keep {way}: {_command(here, one, way)}" for way in one.keeps),
            )
    raise NotFound(
        f"no session {word} has two versions or a file that is held back",
        session=word,
        hint="`sessionary sync resolve` lists all conflicts",
    )
