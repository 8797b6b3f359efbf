"""`BrainstormStore`: brainstorm sessions of one project, one YAML file each.

Every change is one replaced file: read it, change the document, store it, all under the lock of that session
(`.<slug>.lock`, never deleted). What a call does to the document is a pure function of `moves` and `rounds`; here it
is only given a file. A change that changes nothing writes nothing, and `updated` moves with every other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from sessionary.codec.yaml_edit import same
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, expanded, make_folder
from sessionary.disk.lock import TIMEOUT
from sessionary.errors import Conflict, Invalid, NotFound, TransitionError
from sessionary.layouts.brainstorm import maintenance, navigation, rounds
from sessionary.layouts.brainstorm.asking import Asking
from sessionary.layouts.brainstorm.constants import (
    DAYS_KEPT,
    FOLDER,
    MODES,
    PERSONAS,
    PHASES,
    SUFFIX,
    VERSION,
    check_slug,
    one_of,
    session_id,
    write_time,
)
from sessionary.layouts.brainstorm.ending import Ending
from sessionary.layouts.brainstorm.fields import SESSION, faults_of
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, IN_PROGRESS, Shelf
from sessionary.layouts.brainstorm.maintenance import Cleaned, MigratedFile
from sessionary.layouts.brainstorm.noting import NoteTaking
from sessionary.layouts.brainstorm.reading import Row, brainstorm_of, bytes_at, names, parse, row_at, rows
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.clock import believed, future_note
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem, Severity

_CALLS_ONLY = frozenset({"strange_word", "odd_value"})  # kept in a file, refused from a call


class Found(NamedTuple):
    """What a launch finds.

    Attributes:
        sessions: those that can be resumed, the one that changed last first; with a slug the session of that name,
            whatever its status.
        problems: files that nobody can read; they are in the way of a new session of that name.
    """

    sessions: list[Row]
    problems: list[Problem]


class BrainstormStore(Asking, NoteTaking, Ending):
    """The brainstorm sessions below `<root>/.project-memory/brainstorm-sessions/`.

    Reading takes no lock and writes nothing, but for `load`, which stores a migration.

    Args:
        root: the folder of the project; made with the first session.
        timeout: seconds to wait for a session that somebody else is changing.
    """

    def __init__(self, root: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> None:
        self.folder = os.path.join(os.path.abspath(expanded(root)), *FOLDER.split("/"))
        self._use(OS_FS, timeout)

    def _use(self, fs: Fs, timeout: float) -> None:
        self._fs = fs
        self._shelf = Shelf(self.folder, fs, timeout)

    @classmethod
    def with_fs(cls, fs: Fs, root: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> Self:
        """The store over another file system; for tests and proofs."""
        store = cls(root)
        store._use(fs, timeout)
        return store

    def path(self, slug: str) -> str:
        """The file of a session, whether it is there or not. Raises InvalidId."""
        return self._shelf.path(slug)

    # -- reading

    def find(self, name: str) -> str:
        """The slug of the session that a name means: its slug or the beginning of that in any case, or ``latest``.

        A whole slug wins. ``latest`` is the session that changed last; a slug that is so called wins.

        Raises:
            NotFound: there is none.
            AmbiguousId: several begin so.
        """
        with self._shelf.telling("find", name):
            found = one_named(name, names(self._fs, self.folder), "brainstorm sessions")
            if found is None and name == LATEST:
                rows = sorted(self.list(), key=lambda row: believed(row.updated))
                found = rows[-1].slug if rows else None
            if found is None:
                raise NotFound(
                    f"there is no brainstorm session {name}",
                    hint="`sessionary brainstorm list` shows those that there are",
                )
            return found

    def load(self, slug: str, *, store_migration: bool = True) -> Brainstorm:
        """The session of that name, for work: an older file is stored in the present version.

        Durability: with a migration to store, the old bytes are kept under `<slug>.yaml.bak` and flushed before the
        file is replaced; without one nothing is written.

        Args:
            slug: the name of the session.
            store_migration: False reads only.

        Raises:
            NotFound: there is none.
            Corrupt: the file is no YAML that can be read; it was left as it is.
            SchemaError: who the session is or where it stands is missing or wrong.
            Unsupported: its version is not known here; the file was left as it is.
        """
        shelf = self._shelf
        with shelf.telling("load", slug):
            found, migrated = brainstorm_of(shelf.bytes_of(slug), self.path(slug), slug)
            if not migrated.changed or not store_migration:
                return found
            with shelf.held(slug):
                found, migrated = brainstorm_of(shelf.bytes_of(slug), self.path(slug), slug)
                shelf.replace(found, backup=migrated.changed)
                return found

    def detect(self, slug: str | None = None) -> Found:
        """What there is to resume at a launch. Reads only.

        Args:
            slug: the session that was asked for; None for all that are in progress.
        """
        if slug is not None:
            row = row_at(self._fs, self.path(slug), slug)
            found = [] if row is None else [row]
        else:
            found = [*self.list()]
        broken = [row for row in found if not row.readable]
        usable = [row for row in found if row.readable and (slug is not None or row.status == IN_PROGRESS)]
        usable.sort(key=lambda row: row.updated or datetime.min.replace(tzinfo=UTC), reverse=True)
        return Found(usable, [problem for row in broken for problem in row.problems])

    def validate(self, slug: str | None = None, *, strict: bool = False) -> list[Problem]:
        """All that is wrong or odd with a session, or with all of them, at once. Reads only.

        Args:
            slug: the session; None for all.
            strict: whether all that the format calls required must be there, and every value within its list.

        Raises:
            NotFound: there is no session of that name.
        """
        wanted = names(self._fs, self.folder) if slug is None else [check_slug(slug)]
        problems: list[Problem] = []
        for name in wanted:
            path = os.path.join(self.folder, f"{name}{SUFFIX}")
            row = row_at(self._fs, path, name, strict=strict)
            if row is None and slug is not None:
                self._shelf.bytes_of(slug)  # raises NotFound
            if row is not None:
                problems += [*row.problems, *future_note("updated", row.updated, path)]
        return problems

    # -- the session as a whole

    def create(
        self,
        slug: str,
        *,
        questions: Sequence[str] = (),
        last_question: str | None = None,
        persona: str = PERSONAS[0],
        mode: str = MODES[0],
        phase: str = PHASES[0],
        ems: int = 25,
        axes: dict[str, int] | None = None,
        progressive: bool = False,
        new: bool = False,
        now: datetime | None = None,
    ) -> Brainstorm:
        """Begin a session at iteration 1.

        Durability: when this returns, the session survives a power cut. With `new` the session that had the name is
        in `archive/` before its file is replaced, at every moment in one place at least.

        Args:
            slug: its name: lower-case words with hyphens between.
            questions: the first ones.
            last_question: the one to be answered next; by default the last of them.
            persona: who leads it.
            mode: ``standard``, ``party`` or ``panel``.
            phase: where it begins.
            ems: its score, 0 to 100.
            axes: the five axes of the score; the score is then their weighted mean.
            progressive: whether to keep note of the phases that are done.
            new: whether a session of that name is archived (and abandoned, if it was in progress).
            now: the time.

        Raises:
            AlreadyExists: a session of that name is there; ``details`` says its status.
            Invalid: a value that the format does not allow.
            Corrupt, Unsupported: the file in the way cannot be read; it was left as it is.
        """
        now = now or datetime.now(UTC)
        with self._shelf.telling("create", slug):
            document = _fresh(check_slug(slug), one_of(persona, PERSONAS, "persona"), now)
            session = document["session"]
            rounds.set_mode(session, mode)
            if progressive:
                session["progressive_state"] = {"divergent_completed": False, "transition_completed": False}
            navigation.rescore(session, ems=None if axes else ems, axes=axes, phase=phase, entry_too=False)
            navigation.begin(session, 1, questions=questions, last_question=last_question, now=now)
            data = dump_yaml(_ordered(document))
            make_folder(self._fs, self.folder)
            with self._shelf.held(slug):
                self._shelf.make_room(slug, new=new, now=now)
                path = self.path(slug)
                if bytes_at(self._fs, path) is None:
                    atomic.create(path, data, fs=self._fs)
                else:
                    atomic.replace(path, (data,), fs=self._fs)
            return brainstorm_of(data, path, slug)[0]

    def save(self, session: Brainstorm, *, now: datetime | None = None) -> bool:
        """Store a session whose document was changed; True if there was something to store.

        Durability: when this returns, the file survives a power cut; until then the old one does. Comments and keys
        that others put there stay. A document that says what the file says already writes nothing.

        Raises:
            SchemaError: the document breaks the format; all faults are named, and nothing was written.
            Conflict: the file has changed since the session was read; nothing was written.
            TransitionError: a finished session was to be opened again.
        """
        if not isinstance(session, Brainstorm):
            raise Invalid(
                "what is to be saved is no session", operation="save", hint="give what `load` returned"
            )
        inner = session.document.get("session")
        slug = check_slug(inner.get("slug") if isinstance(inner, dict) else None)
        with self._shelf.telling("save", slug):
            make_folder(self._fs, self.folder)
            with self._shelf.held(slug):
                return self._save(session, slug, now or datetime.now(UTC))

    def _save(self, session: Brainstorm, slug: str, now: datetime) -> bool:
        path = self.path(slug)
        data = bytes_at(self._fs, path)
        if data is None and session.stored is not None:
            raise NotFound(f"session {slug} is gone", hint="it may be in the trash or the archive")
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
                f"session {slug} has changed since it was read",
                hint="load it again and repeat the change",
            )
        if before is not None:
            was, status = before.migrated.document["session"].get("status"), session.status
            if was != status and was in (COMPLETED, ABANDONED):
                raise TransitionError(
                    f"session {slug} is {was}", hint=f"`reopen` makes it {IN_PROGRESS} again"
                )
        session.session["updated"] = write_time(now)
        session.path = path
        self._shelf.replace(session, backup=before is not None and before.migrated.changed)
        return True

    # -- upkeep

    def launch(
        self, slug: str | None = None, *, days: int = DAYS_KEPT, now: datetime | None = None
    ) -> tuple[Found, list[Cleaned]]:
        """What a launch does first: clean up what is old, then look what there is to resume.

        Durability: as `cleanup`.

        Args:
            slug: the session that was asked for, which is not cleaned up; None for all that are in progress.
            days: as for `cleanup`.
            now: the time.
        """
        cleaned = maintenance.clean_up(
            self._shelf, days, now or datetime.now(UTC), dry_run=False, erase=False, keep=slug
        )
        return self.detect(slug), cleaned

    def cleanup(
        self,
        days: int = DAYS_KEPT,
        *,
        now: datetime | None = None,
        dry_run: bool = False,
        erase: bool = False,
    ) -> list[Cleaned]:
        """Move sessions that are over, and have not changed for more than so many days, to `.trash/`.

        Durability: each move survives a power cut when this returns; until then the file is in one of the two places.
        What is in progress, unreadable, of an unknown version or of unknown age stays where it is. Other devices keep
        what was cleaned up here, and a pull brings it back only if another device has gone on with it.

        Args:
            days: how many, of 24 hours each.
            now: the time.
            dry_run: only tell what would be moved.
            erase: delete them for good instead.
        """
        return maintenance.clean_up(self._shelf, days, now or datetime.now(UTC), dry_run=dry_run, erase=erase)

    def migrate(self, slug: str | None = None, *, dry_run: bool = False) -> list[MigratedFile]:
        """Store older files in the present version, with backups; those that have it already are left out.

        Durability: as `load`, for each.

        Args:
            slug: the session; None for all.
            dry_run: only tell what would be migrated.

        Raises:
            NotFound: there is no session of that name.
        """
        if slug is None:
            return maintenance.migrate_all(self._shelf, dry_run=dry_run)
        with self._shelf.telling("migrate", slug):
            self._shelf.bytes_of(slug)
        done = maintenance.migrate_one(self._shelf, slug, dry_run=dry_run)
        return [] if done is None else [done]

    # Last, because below this name `list` is no longer the type.
    def list(self) -> Iterator[Row]:
        """Every session with score, phase and what is odd about it, by name; broken ones too. Reads only."""
        return rows(self._fs, self.folder)


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
