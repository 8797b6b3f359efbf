"""What waits for a person: sessions in two versions, and files in two versions, each with what settles it."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from sessionary.cli import formatting, output
from sessionary.cli.text import harmless, one_line, shell_line
from sessionary.errors import Corrupt, NotFound, SessionaryError
from sessionary.layouts.base import PartKind, Policy, SyncLayout
from sessionary.model import Problem, SessionRef, Severity
from sessionary.sync.conflicts import versions_beside
from sessionary.sync.engine import Engine
from sessionary.sync.report import Beside, Hold, Outcome, SyncStatus, Where

SESSIONS, HELD, BESIDE, UNKNOWN = "sessions", "held_back", "kept_beside", "unknown"
_WORDS = {SESSIONS: "two versions", HELD: "held back", BESIDE: "kept beside", UNKNOWN: "not known"}
MINE, THEIRS, STANDING, OTHER = "mine", "theirs", "standing", "other"

_DAMAGED = {
    Where.HERE: "what is here is damaged",
    Where.REMOTE: "what is on the remote is damaged",
    Where.ELSEWHERE: "what another device has is damaged",
}

CommandLine = Callable[..., str]
"""The line of `sync resolve` with these words, for the same home, project and settings."""


class Pair(NamedTuple):
    """A session that two machines continued: the version that has its id, and the one that gave way."""

    layout: SyncLayout
    original: SessionRef
    sibling: SessionRef


class Way(NamedTuple):
    """One of the ways to settle something: which version stays then, and the command."""

    keeps: str
    command: str


class Pending(NamedTuple):
    """One thing that waits.

    Attributes:
        what: a session in two versions, a file that is held back, one that another version lies beside, or one about
            which this could not be found out.
        kind, session_id, project: the session.
        file: the file, relative to the session's folder; None if it is the whole session.
        sibling: the id of the version that gave way.
        path: where the session or file lies that has the name.
        other: where the other version lies; None if that is only on the other side.
        ways: what settles it.
        note: why it is not known.
    """

    what: str
    kind: str
    session_id: str
    project: str | None
    file: str | None
    sibling: str | None
    path: str
    other: str | None
    ways: list[Way]
    note: str = ""


def pairs(layouts: Iterable[SyncLayout]) -> tuple[list[Pair], list[Pending]]:
    """The sessions in two versions, and those of which it cannot be read whether they are one of two.

    Siblings have ids that are derived (UUID version 5), and say which session they come from. Sub-work may do that too,
    so only sessions count that are of a kind that parts.
    """
    found: list[Pair] = []
    unknown: list[Pending] = []
    for layout in layouts:
        refs = {(ref.project, ref.session_id): ref for ref in layout.discover()}
        for (project, name), ref in sorted(refs.items(), key=lambda item: (item[0][0] or "", item[0][1])):
            try:
                parent = _origin(layout, ref) if _is_derived(name) and _parts(layout, ref) else None
            except NotFound:
                continue  # it went while we looked
            except SessionaryError as error:
                unknown.append(_unknown(layout, name, project, str(error)))
                continue
            if parent is not None and (original := refs.get((project, parent))) is not None:
                found.append(Pair(layout, original, ref))
    return found, unknown


def _origin(layout: SyncLayout, ref: SessionRef) -> str | None:
    """The session that one says to come from.

    Raises:
        Corrupt: what says it cannot be read. Its backup does not count: it may be from before the session gave way, and
            then names the parent of the original.
    """
    summary = layout.summary(ref)
    faults = [problem for problem in summary.problems if _hides_the_document(layout, ref, problem)]
    if faults and (summary.parent is None or layout.single_file(ref.session_id) is None):
        problem = faults[0]
        raise Corrupt(
            f"{os.path.basename(problem.path)} cannot be trusted to say where it comes from: {problem.message}",
            operation="resolve",
            path=problem.path,
            session=ref.session_id,
        )
    return summary.parent


def _hides_the_document(layout: SyncLayout, ref: SessionRef, problem: Problem) -> bool:
    if problem.severity < Severity.hides_data:
        return False
    name = os.path.basename(problem.path)
    return problem.path == ref.folder or layout.part_kind(name) is PartKind.DOCUMENT


def _is_derived(name: str) -> bool:
    try:
        return uuid.UUID(name).version == 5
    except ValueError:
        return False


def _parts(layout: SyncLayout, ref: SessionRef) -> bool:
    return any(layout.rule(part.name).policy is Policy.FORK for part in layout.parts(ref))


def of_pair(pair: Pair, line: CommandLine) -> Pending:
    """A session in two versions."""
    sibling = pair.sibling.session_id  # it names one pair, even if the session parted several times
    return Pending(
        SESSIONS,
        pair.layout.name,
        pair.original.session_id,
        pair.original.project,
        None,
        sibling,
        pair.original.folder,
        pair.sibling.folder,
        [Way(keep, line(sibling, "--keep", keep)) for keep in (THEIRS, MINE)],
    )


def held_back(engine: Engine, line: CommandLine) -> Iterator[Pending]:
    """The files of one kind of session of which a person must say which version stands. Asks the remote."""
    for outcome in engine.awaiting().outcomes:
        if outcome.held:
            yield from (_damaged(engine.layout, outcome, hold, line) for hold in outcome.held)
            continue
        if outcome.standing is not SyncStatus.HELD_BACK or not outcome.beside:
            yield _unknown(engine.layout, outcome.session_id, engine.layout.project(), outcome.note)
            continue
        yield from (_held(engine.layout, outcome, beside, line) for beside in outcome.beside)


def _held(layout: SyncLayout, outcome: Outcome, beside: Beside, line: CommandLine) -> Pending:
    ways = [Way(keep, line(outcome.session_id, "--keep", keep)) for keep in (MINE, THEIRS)]
    return Pending(
        HELD, layout.name, outcome.session_id, layout.project(), beside.file, None, *beside[1:], ways
    )


def _damaged(layout: SyncLayout, outcome: Outcome, hold: Hold, line: CommandLine) -> Pending:
    """A file of which a damaged version is held back. What only another device has cannot be taken here."""
    keeps = (MINE,) if hold.where is Where.ELSEWHERE else (THEIRS, MINE)
    return Pending(
        HELD,
        layout.name,
        outcome.session_id,
        outcome.project,
        hold.file,
        None,
        hold.path,
        hold.other,
        [Way(keep, line(outcome.session_id, "--keep", keep)) for keep in keeps],
        f"{_DAMAGED[hold.where]}: {hold.why}",
    )


def _unknown(layout: SyncLayout, session: str, project: str | None, note: str) -> Pending:
    return Pending(UNKNOWN, layout.name, session, project, None, None, "", None, [], note)


def kept_beside(layout: SyncLayout) -> Iterator[Pending]:
    """The files beside which another version lies."""
    for ref in layout.discover():
        try:
            found = versions_beside(layout, ref)
        except SessionaryError as error:
            yield _unknown(layout, ref.session_id, ref.project, str(error))
            continue
        for one in found:
            yield Pending(
                BESIDE,
                layout.name,
                ref.session_id,
                ref.project,
                one.file,
                None,
                *one[1:],
                ways_of(layout, one),
            )


def ways_of(layout: SyncLayout, one: Beside) -> list[Way]:
    """How a person settles a file beside which another version lies: these are files, and theirs to move."""
    assert one.other is not None
    ways = [Way(STANDING, shell_line(["rm", one.other]))]
    if (
        layout.rule(one.file).policy is not Policy.LEDGER
    ):  # there, only lines that are told already lie beside
        ways.append(Way(OTHER, shell_line(["mv", one.other, one.path])))
    return ways


# -- how they are told


def as_object(one: Pending) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "what": one.what,
        "kind": one.kind,
        "id": one.session_id,
        "project": one.project,
        "file": one.file,
        "sibling": one.sibling,
        "path": one.path or None,
        "sibling_path": one.other,
        "commands": [way._asdict() for way in one.ways],
        "note": one.note,
    }


def lines(found: Iterable[Pending]) -> Iterator[str]:
    """Each of them: what it is, both versions, and the commands, which are never cut."""
    for one in found:
        name = one.session_id if one.file in (None, one.session_id) else f"{one.session_id}  {one.file}"
        sign = output.paint("✗", "red") if one.what == UNKNOWN else output.paint("!", "yellow")
        yield f"{sign} {_WORDS[one.what]:<12}  {one_line(name)}"
        yield from (harmless(f"    {text}") for text in _versions(one))
        yield from (harmless(f"    to keep {_keeping(one, way)}: {way.command}") for way in one.ways)


def _versions(one: Pending) -> list[str]:
    if one.what == SESSIONS:
        return [f"theirs: {one.session_id}, which was pushed first", f"mine: {one.sibling}, which gave way"]
    if one.what == HELD and one.note:
        return [one.note, f"mine: {one.path}", f"theirs: {one.other or 'on the remote'}"]
    if one.what == HELD:
        other = one.other or "on the other side; `sessionary sync pull` lays it beside yours"
        return [f"mine: {one.path}", f"theirs: {other}"]
    if one.what == BESIDE:
        return [f"standing: {one.path}", f"other: {one.other}"]
    return [one.note]


def _keeping(one: Pending, way: Way) -> str:
    """What a command leaves, in words: what is here may have been brought together by hand before."""
    return (
        f"{way.keeps} (as it is, or as you have brought both together)"
        if _is_by_hand(one, way)
        else way.keeps
    )


def _is_by_hand(one: Pending, way: Way) -> bool:
    return not one.note and (one.what, way.keeps) in ((HELD, MINE), (BESIDE, STANDING))


def summary(found: list[Pending]) -> str:
    """One line over all."""
    counts = (
        (SESSIONS, "session continued on two machines", "sessions continued on two machines"),
        (HELD, "file held back", "files held back"),
        (BESIDE, "file with another version beside it", "files with another version beside them"),
        (UNKNOWN, "session not known", "sessions not known"),
    )
    there = Counter(one.what for one in found)
    told = [formatting.count(there[what], one, many) for what, one, many in counts if there[what]]
    return ", ".join(told) or "nothing waits for you"
