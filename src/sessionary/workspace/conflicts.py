"""Conflicts of synchronisation: sessions and files in two versions, and the choice of one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from sessionary.errors import AmbiguousId, Corrupt, Invalid, Locked, NotFound, SessionaryError
from sessionary.layouts.files import PartKind
from sessionary.layouts.session_ids import ids_named
from sessionary.layouts.summary import summary_of
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import Problem, SessionRef, Severity
from sessionary.sync.conflicts import versions_beside
from sessionary.sync.report import Report, SyncStatus, Where
from sessionary.workspace.syncing import Connection, Local

SESSIONS, HELD, BESIDE, UNKNOWN = "sessions", "held_back", "kept_beside", "unknown"
MINE, THEIRS, STANDING, OTHER = "mine", "theirs", "standing", "other"

_DAMAGED = {
    Where.HERE: "the local copy is damaged",
    Where.REMOTE: "the copy on the remote is damaged",
    Where.ELSEWHERE: "the copy of another device is damaged",
}


class Pair(NamedTuple):
    """A session that two machines continued: the version that has its id, and its sibling."""

    layout: SyncLayout
    original: SessionRef
    sibling: SessionRef


class Conflict(NamedTuple):
    """A session or a file in two versions.

    Attributes:
        what: a session in two versions, a file that is held back, a file with another version beside it, or a
            session for which this is unknown.
        file: the file, relative to the session's folder; None if it is the whole session.
        sibling_path: the other version; None if only the remote has it.
        keeps: the versions that can be kept.
        note: why it is unknown, or held back.
    """

    what: str
    kind: str
    id: str
    project: str | None
    file: str | None = None
    sibling: str | None = None
    path: str | None = None
    sibling_path: str | None = None
    keeps: tuple[str, ...] = ()
    note: str = ""


# -- the list


def pairs(layouts: Iterable[SyncLayout]) -> tuple[list[Pair], list[Conflict]]:
    """The sessions in two versions, and those for which this cannot be determined.

    Siblings have derived ids (UUID version 5) and name the session that they come from. Sub-work may do that
    too, so only kinds of sessions that can diverge count.
    """
    found: list[Pair] = []
    unknown: list[Conflict] = []
    for layout in layouts:
        refs = {(ref.project, ref.session_id): ref for ref in layout.discover()}
        for (project, name), ref in sorted(refs.items(), key=lambda item: (item[0][0] or "", item[0][1])):
            try:
                parent = _origin(layout, ref) if _is_derived(name) and _can_diverge(layout, ref) else None
            except NotFound:
                continue  # it was removed meanwhile
            except SessionaryError as error:
                unknown.append(Conflict(UNKNOWN, layout.name, name, project, note=str(error)))
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


def of_pair(pair: Pair) -> Conflict:
    """A session in two versions as a conflict."""
    original, sibling = pair.original, pair.sibling
    return Conflict(
        SESSIONS,
        pair.layout.name,
        original.session_id,
        original.project,
        sibling=sibling.session_id,
        path=original.locator,
        sibling_path=sibling.locator,
        keeps=(THEIRS, MINE),
    )


def held_back(remote: Connection) -> Iterator[Conflict]:
    """The files for which a user must choose a version. Asks the remote."""
    found = ((engine, one) for engine in remote.engines() for one in engine.awaiting().outcomes)
    for engine, outcome in found:
        kind, session, local = outcome.kind, outcome.session_id, engine.layout.project()
        for hold in outcome.held:  # a version that only another device has cannot be kept here
            yield Conflict(
                HELD,
                kind,
                session,
                outcome.project,
                file=hold.file,
                path=hold.path,
                sibling_path=hold.other,
                keeps=(MINE,) if hold.where is Where.ELSEWHERE else (THEIRS, MINE),
                note=f"{_DAMAGED[hold.where]}: {hold.why}",
            )
        if outcome.held:
            continue
        if outcome.standing is not SyncStatus.HELD_BACK or not outcome.beside:
            yield Conflict(UNKNOWN, kind, session, local, note=outcome.note)
            continue
        for file, path, other in outcome.beside:
            keeps = (MINE, THEIRS)
            yield Conflict(HELD, kind, session, local, file=file, path=path, sibling_path=other, keeps=keeps)


def kept_beside(layouts: Iterable[SyncLayout]) -> Iterator[Conflict]:
    """The files with another version beside them."""
    for layout, ref in ((one, ref) for one in layouts for ref in one.discover()):
        try:
            found = versions_beside(layout, ref)
        except SessionaryError as error:
            yield Conflict(UNKNOWN, layout.name, ref.session_id, ref.project, note=str(error))
            continue
        for one in found:
            is_reported = layout.rule(one.file).policy is Policy.LEDGER  # the lines beside it already are
            yield Conflict(
                BESIDE,
                layout.name,
                ref.session_id,
                ref.project,
                file=one.file,
                path=one.path,
                sibling_path=one.other,
                keeps=(STANDING,) if is_reported else (STANDING, OTHER),
            )


# -- a decision


def pair_named(layouts: Iterable[SyncLayout], word: str) -> Pair | None:
    """The pair of which a word names one version; None if there is none.

    Raises:
        AmbiguousId: the word names several pairs.
        Corrupt: it is unknown whether the session that the word names has two versions.
    """
    known, unknown = pairs(layouts)
    named = set(ids_named(word, {name for pair in known for name in _ids(pair)}))
    found = [pair for pair in known if named & set(_ids(pair))]
    if len(found) > 1:
        raise AmbiguousId(
            f"{word} names several pairs",
            details={"matches": [pair.sibling.session_id for pair in found]},
            hint="give the id of the sibling",
        )
    if found:
        return found[0]
    for one in unknown:
        if one.id.startswith(word):
            raise Corrupt(
                f"unknown whether {one.id} is one of two versions: {one.note}",
                operation="resolve",
                session=one.id,
                hint=f"repair that file first; run `sessionary check {one.id}` for details",
            )
    return None


def _ids(pair: Pair) -> tuple[str, str]:
    return pair.original.session_id, pair.sibling.session_id


def is_held_back(remote: Connection, pair: Pair) -> bool:
    """True if a file of the version that has the session's id is held back."""
    engines = (engine for engine in remote.engines() if engine.layout.name == pair.layout.name)
    return any(engine.holds_back(pair.original) for engine in engines)


def keep_one(here: Local, pair: Pair, keep: str) -> tuple[SessionRef, SessionRef]:
    """Move the other version of a session to the trash; return the version that is kept, and the other one.

    Raises:
        Locked: the other version may be open in an agent.
        StorageFailed: it cannot be moved.
    """
    winner, loser = (pair.sibling, pair.original) if keep == MINE else (pair.original, pair.sibling)
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
    return winner, loser


def choose_file(remote: Connection, word: str, keep: str) -> Report | None:
    """Settle the files of a session that are held back; None if there is no such session, or nothing to settle."""
    found = remote.find(word)
    if found is None:
        return None
    engine, ref = found
    try:
        return remote.report([engine.resolve(ref, keep)])
    except Invalid as error:
        if error.operation != "resolve":
            raise
        return None
