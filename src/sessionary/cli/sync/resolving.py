"""`sync resolve`: list sessions and files in two versions with the commands that settle them, or settle one."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import click

from sessionary.cli import completing, formatting, options, output
from sessionary.cli.changing import done, to_run
from sessionary.cli.lazy import command
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import print_result
from sessionary.cli.text import harmless, one_line, shell_line
from sessionary.errors import AmbiguousId, Corrupt, Invalid, Locked, NotFound, SessionaryError
from sessionary.layouts.base import PartKind
from sessionary.layouts.session_ids import ids_named
from sessionary.layouts.summary import summary_of
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import Problem, SessionRef, Severity
from sessionary.sync.conflicts import versions_beside
from sessionary.sync.engine import Engine
from sessionary.sync.report import Beside, SyncStatus, Where

SESSIONS, HELD, BESIDE, UNKNOWN = "sessions", "held_back", "kept_beside", "unknown"
_WORDS = {SESSIONS: "two versions", HELD: "held back", BESIDE: "kept beside", UNKNOWN: "not known"}
_COUNTED = (
    (SESSIONS, "session continued on two machines", "sessions continued on two machines"),
    (HELD, "file held back", "files held back"),
    (BESIDE, "file with another version beside it", "files with another version beside them"),
    (UNKNOWN, "session unknown", "sessions unknown"),
)
MINE, THEIRS, STANDING, OTHER = "mine", "theirs", "standing", "other"

_DAMAGED = {
    Where.HERE: "the local copy is damaged",
    Where.REMOTE: "the copy on the remote is damaged",
    Where.ELSEWHERE: "the copy of another device is damaged",
}

CommandLine = Callable[..., str]
"""Returns the command line of `sync resolve` with these words, for the same home, project and settings."""


class Pair(NamedTuple):
    """A session that two machines continued: the version that has its id, and its sibling."""

    layout: SyncLayout
    original: SessionRef
    sibling: SessionRef


class Way(NamedTuple):
    """A way to settle a conflict: the version that is kept, and the command."""

    keeps: str
    command: str


class Pending(NamedTuple):
    """One conflict, with the field names of docs/cli-json.md.

    Attributes:
        what: a session in two versions, a file that is held back, a file with another version beside it, or a
            session for which this is unknown.
        file: the file, relative to the session's folder; None if it is the whole session.
        sibling_path: the other version; None if only the remote has it.
        note: why it is unknown.
    """

    what: str
    kind: str
    id: str
    project: str | None
    file: str | None = None
    sibling: str | None = None
    path: str | None = None
    sibling_path: str | None = None
    commands: tuple[Way, ...] = ()
    note: str = ""

    def as_object(self) -> dict[str, Any]:
        """The conflict as JSON."""
        return {**self._asdict(), "commands": [way._asdict() for way in self.commands]}


@command(
    "resolve",
    "sessionary sync resolve",
    "sessionary sync resolve 3f0c81d2 --keep theirs",
    "sessionary sync resolve active-features.yaml --keep mine",
)
@click.argument("session", required=False, metavar="[ID]", shell_complete=completing.sessions())
@places.local(quiet=True)
@click.option(
    "--keep",
    type=click.Choice((MINE, THEIRS)),
    help="The version to keep; the other one goes to the trash.",
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
    known, unknown = pairs(here.layouts())
    pair = named_pair(known, session)
    if pair is None:
        _refuse_unknown(unknown, session)
    if pair is None or _is_held_back(here, pair, session):
        return _decide(here, session, keep)
    return _keep_one(here, pair, keep)


# -- the list


def _list(here: places.Here) -> int:
    line = partial(here.command, "resolve")
    layouts = here.layouts()
    known, unknown = pairs(layouts)
    diverged = [*(_of_pair(pair, line) for pair in known), *unknown]
    beside = [one for layout in layouts for one in kept_beside(layout)]
    try:
        with places.connected(here, "looking") as remote:
            held = [one for engine in remote.engines() for one in held_back(engine, line)]
    except SessionaryError:
        if diverged or beside:  # these are local: they can be settled without the remote
            _print([*diverged, *beside])
        raise
    found = [*diverged, *held, *beside]
    _print(found)
    return options.PARTLY if any(one.what == UNKNOWN for one in found) else 0


def pairs(layouts: Iterable[SyncLayout]) -> tuple[list[Pair], list[Pending]]:
    """The sessions in two versions, and those for which this cannot be determined.

    Siblings have derived ids (UUID version 5) and name the session that they come from. Sub-work may do that
    too, so only kinds of sessions that can diverge count.
    """
    found: list[Pair] = []
    unknown: list[Pending] = []
    for layout in layouts:
        refs = {(ref.project, ref.session_id): ref for ref in layout.discover()}
        for (project, name), ref in sorted(refs.items(), key=lambda item: (item[0][0] or "", item[0][1])):
            try:
                parent = _origin(layout, ref) if _is_derived(name) and _can_diverge(layout, ref) else None
            except NotFound:
                continue  # it was removed meanwhile
            except SessionaryError as error:
                unknown.append(Pending(UNKNOWN, layout.name, name, project, note=str(error)))
                continue
            if parent is not None and (original := refs.get((project, parent))) is not None:
                found.append(Pair(layout, original, ref))
    return found, unknown


def _origin(layout: SyncLayout, ref: SessionRef) -> str | None:
    """Return the id of the session that a session names as its origin.

    Raises:
        Corrupt: the file that names it cannot be read. Its backup does not count: it may be older than the
            conflict, and then names the parent of the original.
    """
    summary = summary_of(layout, ref)
    faults = [problem for problem in summary.problems if _hides_the_document(layout, ref, problem)]
    if faults and (summary.parent is None or layout.single_file(ref.session_id) is None):
        problem = faults[0]
        raise Corrupt(
            f"{os.path.basename(problem.path)} cannot be read, so its origin is unknown: {problem.message}",
            operation="resolve",
            path=problem.path,
            session=ref.session_id,
        )
    return summary.parent


def _hides_the_document(layout: SyncLayout, ref: SessionRef, problem: Problem) -> bool:
    if problem.severity < Severity.hides_data:
        return False
    name = os.path.basename(problem.path)
    return problem.path == ref.locator or layout.part_kind(name) is PartKind.DOCUMENT


def _is_derived(name: str) -> bool:
    try:
        return uuid.UUID(name).version == 5
    except ValueError:
        return False


def _can_diverge(layout: SyncLayout, ref: SessionRef) -> bool:
    return any(layout.rule(part.name).policy is Policy.FORK for part in layout.parts(ref))


def _of_pair(pair: Pair, line: CommandLine) -> Pending:
    original, sibling = pair.original, pair.sibling
    return Pending(
        SESSIONS,
        pair.layout.name,
        original.session_id,
        original.project,
        sibling=sibling.session_id,
        path=original.locator,
        sibling_path=sibling.locator,
        commands=_keeping(sibling.session_id, line, THEIRS, MINE),  # the sibling is in one pair only
    )


def _keeping(session: str, line: CommandLine, *keeps: str) -> tuple[Way, ...]:
    return tuple(Way(keep, line(session, "--keep", keep)) for keep in keeps)


def held_back(engine: Engine, line: CommandLine) -> Iterator[Pending]:
    """The files of one kind of session for which a user must choose a version. Asks the remote."""
    for outcome in engine.awaiting().outcomes:
        kind, session, local = outcome.kind, outcome.session_id, engine.layout.project()
        for hold in outcome.held:  # a version that only another device has cannot be kept here
            keeps = (MINE,) if hold.where is Where.ELSEWHERE else (THEIRS, MINE)
            yield Pending(
                HELD,
                kind,
                session,
                outcome.project,
                file=hold.file,
                path=hold.path,
                sibling_path=hold.other,
                commands=_keeping(session, line, *keeps),
                note=f"{_DAMAGED[hold.where]}: {hold.why}",
            )
        if outcome.held:
            continue
        if outcome.standing is not SyncStatus.HELD_BACK or not outcome.beside:
            yield Pending(UNKNOWN, kind, session, local, note=outcome.note)
            continue
        ways = _keeping(session, line, MINE, THEIRS)
        for file, path, other in outcome.beside:
            yield Pending(HELD, kind, session, local, file=file, path=path, sibling_path=other, commands=ways)


def kept_beside(layout: SyncLayout) -> Iterator[Pending]:
    """The files with another version beside them."""
    for ref in layout.discover():
        try:
            found = versions_beside(layout, ref)
        except SessionaryError as error:
            yield Pending(UNKNOWN, layout.name, ref.session_id, ref.project, note=str(error))
            continue
        for one in found:
            yield Pending(
                BESIDE,
                layout.name,
                ref.session_id,
                ref.project,
                file=one.file,
                path=one.path,
                sibling_path=one.other,
                commands=_by_hand(layout, one),
            )


def _by_hand(layout: SyncLayout, one: Beside) -> tuple[Way, ...]:
    """The commands that settle a file with another version beside it."""
    assert one.other is not None
    keep = Way(STANDING, shell_line(["rm", one.other]))
    if layout.rule(one.file).policy is Policy.LEDGER:  # the lines beside it are already reported
        return (keep,)
    return keep, Way(OTHER, shell_line(["mv", one.other, one.path]))


def _print(found: list[Pending]) -> None:
    if output.is_json():
        output.items(one.as_object() for one in found)
        return
    output.lines(_lines(found))
    count = Counter(one.what for one in found)
    parts = [formatting.count(count[what], one, many) for what, one, many in _COUNTED if count[what]]
    output.aside(", ".join(parts) or "no conflicts")


def _lines(found: Iterable[Pending]) -> Iterator[str]:
    """Each conflict: what it is, both versions, and the commands, which are never cut."""
    for one in found:
        name = one.id if one.file in (None, one.id) else f"{one.id}  {one.file}"
        sign = output.paint("✗", "red") if one.what == UNKNOWN else output.paint("!", "yellow")
        yield f"{sign} {_WORDS[one.what]:<12}  {one_line(name)}"
        yield from (harmless(f"    {text}") for text in _versions(one))
        for keeps, words in one.commands:
            is_by_hand = not one.note and (one.what, keeps) in ((HELD, MINE), (BESIDE, STANDING))
            merged = " (unchanged, or as you have merged both)" if is_by_hand else ""
            yield harmless(f"    to keep {keeps}{merged}: {words}")


def _versions(one: Pending) -> list[str]:
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


# -- a decision


def named_pair(pairs: list[Pair], word: str) -> Pair | None:
    """The pair of which a word names one version; None if there is none. Raises AmbiguousId if there are several."""
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
        if one.id.startswith(word):
            raise Corrupt(
                f"unknown whether {one.id} is one of two versions: {one.note}",
                operation="resolve",
                session=one.id,
                hint=f"repair that file first; run `sessionary check {one.id}` for details",
            )


def _ids(pair: Pair) -> tuple[str, str]:
    return pair.original.session_id, pair.sibling.session_id


def _keep_one(here: places.Here, pair: Pair, keep: str) -> int:
    """Keep one version of a session, and move the other one to the trash."""
    winner, loser = pair.original, pair.sibling
    if keep == MINE:
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
    if pair.layout.name == "amplifier":
        back = ["undo", *here.given_as("--home"), loser.session_id]
    else:
        back = [pair.layout.name, "restore", loser.session_id, *here.given_as("--root")]
    return output.shown(
        {"kept": winner.session_id, "trashed": loser.session_id},
        done(f"{one_line(winner.session_id)} is kept, {one_line(loser.session_id)} is in the trash"),
        asides=[to_run("undo", shell_line(["sessionary", *back])), "next: sessionary sync push"],
    )


def _is_held_back(here: places.Here, pair: Pair, word: str) -> bool:
    """True if the word names the version that has the session's id, and a file of it is held back."""
    if not pair.original.session_id.startswith(word):
        return False
    with places.connected(here, "looking") as remote:
        engines = [engine for engine in remote.engines() if engine.layout.name == pair.layout.name]
        return any(engine.holds_back(pair.original) for engine in engines)


def _decide(here: places.Here, word: str, keep: str) -> int:
    """Settle a file that is held back."""
    with places.connected(here, "deciding") as remote:
        found = remote.find(word)
        if found is not None:
            engine, ref = found
            try:
                report = remote.report([engine.resolve(ref, keep)])
            except Invalid as error:
                if error.operation != "resolve":
                    raise
            else:
                return print_result(report, here, all_=True)
    every = (one for layout in here.layouts() for one in kept_beside(layout))
    for one in every:
        if one.id.startswith(word) and one.what == BESIDE:
            raise Invalid(
                f"{one.file} has another version beside it, which only you can merge",
                operation="resolve",
                path=one.sibling_path or one.path,
                session=one.id,
                hint="; ".join(f"to keep {way.keeps}: {way.command}" for way in one.commands),
            )
    raise NotFound(
        f"no session {word} has two versions or a file that is held back",
        session=word,
        hint="`sessionary sync resolve` lists all conflicts",
    )
