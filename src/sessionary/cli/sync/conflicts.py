"""Conflicts that a user has to settle: sessions and files in two versions, each with the commands that settle it."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from sessionary.cli import formatting, output
from sessionary.cli.text import harmless, one_line, shell_line
from sessionary.errors import Corrupt, NotFound, SessionaryError
from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import Problem, SessionRef, Severity
from sessionary.sync.conflicts import versions_beside
from sessionary.sync.engine import Engine
from sessionary.sync.report import Beside, Hold, Outcome, SyncStatus, Where

SESSIONS, HELD, BESIDE, UNKNOWN = "sessions", "held_back", "kept_beside", "unknown"
_WORDS = {SESSIONS: "two versions", HELD: "held back", BESIDE: "kept beside", UNKNOWN: "not known"}
MINE, THEIRS, STANDING, OTHER = "mine", "theirs", "standing", "other"

_DAMAGED = {
    Where.HERE: "the local copy is damaged",
    Where.REMOTE: "the copy on the remote is damaged",
    Where.ELSEWHERE: "the copy of another device is damaged",
}

CommandLine = Callable[..., str]
"""The command line of `sync resolve` with these words, for the same home, project and settings."""


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
    """One conflict.

    Attributes:
        what: a session in two versions, a file that is held back, a file with another version beside it, or a
        session for which this is unknown.
        kind, session_id, project: the session.
        file: the file, relative to the session's folder; None if it is the whole session.
        sibling: the id of the sibling.
        path: the session or file that has the name.
        other: the other version; None if only the remote has it.
        ways: the commands that settle it.
        note: why it is unknown.
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
                parent = _origin(layout, ref) if _is_derived(name) and _parts(layout, ref) else None
            except NotFound:
                continue  # it was removed meanwhile
            except SessionaryError as error:
                unknown.append(_unknown(layout, name, project, str(error)))
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
    summary = layout.summary(ref)
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


def _parts(layout: SyncLayout, ref: SessionRef) -> bool:
    return any(layout.rule(part.name).policy is Policy.FORK for part in layout.parts(ref))


def of_pair(pair: Pair, line: CommandLine) -> Pending:
    """The entry of a session in two versions."""
    sibling = pair.sibling.session_id  # unique to one pair, even if the session diverged several times
    return Pending(
        SESSIONS,
        pair.layout.name,
        pair.original.session_id,
        pair.original.project,
        None,
        sibling,
        pair.original.locator,
        pair.sibling.locator,
        [Way(keep, line(sibling, "--keep", keep)) for keep in (THEIRS, MINE)],
    )


def held_back(engine: Engine, line: CommandLine) -> Iterator[Pending]:
    """The files of one kind of session for which a user must choose a version. Asks the remote."""
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
    """A file whose damaged version is held back. A version that only another device has cannot be kept here."""
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
    """The files with another version beside them."""
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
    """How a user settles a file with another version beside it: by hand."""
    assert one.other is not None
    ways = [Way(STANDING, shell_line(["rm", one.other]))]
    if layout.rule(one.file).policy is not Policy.LEDGER:  # there, the lines beside are already reported
        ways.append(Way(OTHER, shell_line(["mv", one.other, one.path])))
    return ways


# -- output


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
    """Each conflict: what it is, both versions, and the commands, which are never cut."""
    for one in found:
        name = one.session_id if one.file in (None, one.session_id) else f"{one.session_id}  {one.file}"
        sign = output.paint("✗", "red") if one.what == UNKNOWN else output.paint("!", "yellow")
        yield f"{sign} {_WORDS[one.what]:<12}  {one_line(name)}"
        yield from (harmless(f"    {text}") for text in _versions(one))
        yield from (harmless(f"    to keep {_keeping(one, way)}: {way.command}") for way in one.ways)


def _versions(one: Pending) -> list[str]:
    if one.what == SESSIONS:
        return [f"theirs: {one.session_id}, which was pushed first", f"mine: {one.sibling}, the sibling"]
    if one.what == HELD and one.note:
        return [one.note, f"mine: {one.path}", f"theirs: {one.other or 'on the remote'}"]
    if one.what == HELD:
        other = one.other or "on the remote; `sessionary sync pull` stores it beside yours"
        return [f"mine: {one.path}", f"theirs: {other}"]
    if one.what == BESIDE:
        return [f"current: {one.path}", f"other: {one.other}"]
    return [one.note]


def _keeping(one: Pending, way: Way) -> str:
    """The version that a command keeps: the local one may have been merged by hand before."""
    return f"{way.keeps} (unchanged, or as you have merged both)" if _is_by_hand(one, way) else way.keeps


def _is_by_hand(one: Pending, way: Way) -> bool:
    return not one.note and (one.what, way.keeps) in ((HELD, MINE), (BESIDE, STANDING))


def summary(found: list[Pending]) -> str:
    """The summary line."""
    counts = (
        (SESSIONS, "session continued on two machines", "sessions continued on two machines"),
        (HELD, "file held back", "files held back"),
        (BESIDE, "file with another version beside it", "files with another version beside them"),
        (UNKNOWN, "session unknown", "sessions unknown"),
    )
    there = Counter(one.what for one in found)
    parts = [formatting.count(there[what], one, many) for what, one, many in counts if there[what]]
    return ", ".join(parts) or "no conflicts"
