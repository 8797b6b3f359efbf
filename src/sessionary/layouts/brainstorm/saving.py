"""Create, load and save a session; loading migrates it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sessionary.codec.yaml_edit import same
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import make_folder
from sessionary.errors import Conflict, Invalid, NotFound, TransitionError
from sessionary.layouts.brainstorm import navigation, rounds
from sessionary.layouts.brainstorm.constants import (
    PERSONAS,
    VERSION,
    check_slug,
    one_of,
    session_id,
    write_time,
)
from sessionary.layouts.brainstorm.fields import SESSION, faults_of
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, IN_PROGRESS, SessionFiles
from sessionary.layouts.brainstorm.reading import brainstorm_of, bytes_at, parse
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.model import Severity

_CALLS_ONLY = frozenset({"strange_word", "odd_value"})  # accepted in a file, refused from a call


def create(
    files: SessionFiles,
    slug: str,
    *,
    questions: Sequence[str],
    last_question: str | None,
    persona: str,
    mode: str,
    phase: str,
    ems: int,
    axes: dict[str, int] | None,
    progressive: bool,
    new: bool,
    now: datetime | None,
) -> Brainstorm:
    """Create a session; see `BrainstormStore.create`."""
    now = now or datetime.now(UTC)
    with files.call("create", slug):
        document = _fresh(check_slug(slug), one_of(persona, PERSONAS, "persona"), now)
        session = document["session"]
        rounds.set_mode(session, mode)
        if progressive:
            session["progressive_state"] = {"divergent_completed": False, "transition_completed": False}
        navigation.rescore(session, ems=None if axes else ems, axes=axes, phase=phase, entry_too=False)
        navigation.begin(session, 1, questions=questions, last_question=last_question, now=now)
        data = dump_yaml(_ordered(document))
        make_folder(files.fs, files.folder)
        with files.held(slug):
            files.make_room(slug, new=new, now=now)
            path = files.path(slug)
            if bytes_at(files.fs, path) is None:
                atomic.create(path, data, fs=files.fs)
            else:
                atomic.replace(path, (data,), fs=files.fs)
        return brainstorm_of(data, path, slug)[0]


def load(files: SessionFiles, slug: str, *, store_migration: bool) -> Brainstorm:
    """Load and migrate a session; see `BrainstormStore.load`."""
    with files.call("load", slug):
        found, migrated = brainstorm_of(files.bytes_of(slug), files.path(slug), slug)
        if not migrated.changed or not store_migration:
            return found
        with files.held(slug):
            found, migrated = brainstorm_of(files.bytes_of(slug), files.path(slug), slug)
            files.replace(found, backup=migrated.changed)
            return found


def save(files: SessionFiles, session: Brainstorm, *, now: datetime | None) -> bool:
    """Store a changed document; see `BrainstormStore.save`."""
    if not isinstance(session, Brainstorm):
        raise Invalid(
            "the value to save is not a session", operation="save", hint="pass the result of `load`"
        )
    inner = session.document.get("session")
    slug = check_slug(inner.get("slug") if isinstance(inner, dict) else None)
    with files.call("save", slug):
        make_folder(files.fs, files.folder)
        with files.held(slug):
            return _save(files, session, slug, now or datetime.now(UTC))


def _save(files: SessionFiles, session: Brainstorm, slug: str, now: datetime) -> bool:
    path = files.path(slug)
    data = bytes_at(files.fs, path)
    if data is None and session.stored is not None:
        raise NotFound(
            f"session {slug} does not exist any more", hint="it may be in the trash or the archive"
        )
    before = None if data is None else parse(data, path, slug)
    after = faults_of(session.document, slug=slug, path=path, data=None, strict=False)
    known = set(before.faults.found) if before is not None else set()
    for fault in tuple(after.found):
        if fault.code in _CALLS_ONLY and fault not in known:
            after.add("bad_field", fault.keys, fault.message, fault.repair)
    after.raise_any(Severity.stops_resume, operation="save", session=slug)
    if before is not None and _alike(before.migrated.document, session.document):
        session.path, session.stored = path, data
        return False
    if data != session.stored:
        raise Conflict(
            f"session {slug} was changed since it was read",
            hint="load it again and repeat the change",
        )
    if before is not None:
        was, status = before.migrated.document["session"].get("status"), session.status
        if was != status and was in (COMPLETED, ABANDONED):
            raise TransitionError(f"session {slug} is {was}", hint="use `reopen`")
    session.session["updated"] = write_time(now)
    session.path = path
    files.replace(session, backup=before is not None and before.migrated.changed)
    return True


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """True if two documents differ at most in the time of their last change."""
    first, second = ({**document["session"], "updated": None} for document in (one, other))
    return same({**one, "session": first}, {**other, "session": second})


def _fresh(slug: str, persona: str, now: datetime) -> dict[str, Any]:
    time = write_time(now)
    session = {
        "id": session_id(slug, now),
        "slug": slug,
        "status": IN_PROGRESS,
        "persona": persona,
        "iteration": 1,
        "techniques_used": [],
        "started_at": time,
        "duration_minutes": 0,
        "techniques_history": [],
        "ideas": [],
        "created": time,
        "updated": time,
    }
    return {"format_version": VERSION, "session": session}


def _ordered(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the fields of its session in the order of the format."""
    session = document["session"]
    return {**document, "session": {name: session[name] for name in SESSION if name in session}}
