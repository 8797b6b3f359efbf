"""`BrainstormStore`: brainstorm sessions of one project, one YAML file each.

Every change replaces one file: it is read, changed and stored under the lock of that session (`.<slug>.lock`,
never deleted). A change without effect writes nothing; any other updates `updated`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_write import dump_yaml
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, expanded, make_folder
from sessionary.disk.lock import TIMEOUT
from sessionary.errors import AlreadyExists, Conflict, Invalid, NotFound, TransitionError
from sessionary.layouts import cleaned_up
from sessionary.layouts.brainstorm import maintenance, navigation, rounds, trash
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
from sessionary.layouts.brainstorm.fields import SESSION, faults_of
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, IN_PROGRESS, SessionFiles
from sessionary.layouts.brainstorm.maintenance import Cleaned, MigratedFile
from sessionary.layouts.brainstorm.navigation import Jump, Session
from sessionary.layouts.brainstorm.reading import (
    Row,
    brainstorm_of,
    bytes_at,
    names,
    newest_first,
    parse,
    row_at,
    rows,
)
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.clock import future_note
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem, Severity

LOW_SCORE = 60
"""A lower score at the finish is reported."""

_CALLS_ONLY = frozenset({"strange_word", "odd_value"})  # accepted in a file, refused from a call


class Found(NamedTuple):
    """The result of a launch.

    Attributes:
        sessions: those that can be resumed, the one that changed last first; with a slug the session of that
        name, whatever its status.
        problems: unreadable files; they block a new session of that name.
    """

    sessions: list[Row]
    problems: list[Problem]


class BrainstormStore:
    """The brainstorm sessions below `<root>/.project-memory/brainstorm-sessions/`.

    Reading takes no lock and writes nothing, except that `load` stores a migration.

    Args:
        root: the project folder; created with the first session.
        timeout: seconds to wait for a session that another process is changing.
    """

    def __init__(self, root: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> None:
        self.folder: str = os.path.join(os.path.abspath(expanded(root)), *FOLDER.split("/"))
        self._files = SessionFiles(self.folder, OS_FS, timeout)

    @classmethod
    def with_fs(cls, fs: Fs, root: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> Self:
        """The store over another file system, for tests."""
        store = cls(root)
        store._files = SessionFiles(store.folder, fs, timeout)
        return store

    def path(self, slug: str) -> str:
        """The path of a session file, existing or not. Raises InvalidId."""
        return self._files.path(slug)

    # -- reading

    def find(self, name: str) -> str:
        """Return the slug of the session that a name means: a slug or its beginning in any case, or ``latest``.

        A whole slug wins. ``latest`` is the session that changed last; a session with that slug wins.

        Raises:
            NotFound: there is none.
            AmbiguousId: several match.
        """
        with self._files.call("find", name):
            found = one_named(name, names(self._files.fs, self.folder), "brainstorm sessions")
            if found is None and name == LATEST:
                found = next((row.slug for row in newest_first(self.list())), "")
            if not found:
                hint = "`sessionary brainstorm list` lists all"
                raise NotFound(f"no brainstorm session {name}", hint=hint)
            return found

    def detect(self, slug: str | None = None) -> Found:
        """The sessions that can be resumed. Reads only.

        Args:
            slug: the requested session; None for all that are in progress.
        """
        row = None if slug is None else row_at(self._files.fs, self.path(slug), slug)
        found = [*self.list()] if slug is None else [] if row is None else [row]
        usable = [row for row in found if row.readable and (slug is not None or row.status == IN_PROGRESS)]
        usable.sort(key=lambda row: row.updated or datetime.min.replace(tzinfo=UTC), reverse=True)
        return Found(usable, [problem for row in found if not row.readable for problem in row.problems])

    def validate(self, slug: str | None = None, *, strict: bool = False) -> list[Problem]:
        """All problems of a session, or of all of them. Reads only.

        Args:
            slug: the session; None for all.
            strict: require all mandatory fields, and only known values.

        Raises:
            NotFound: no session has that name.
        """
        problems: list[Problem] = []
        for name in names(self._files.fs, self.folder) if slug is None else [check_slug(slug)]:
            path = os.path.join(self.folder, f"{name}{SUFFIX}")
            row = row_at(self._files.fs, path, name, strict=strict)
            if row is not None:
                problems += [*row.problems, *future_note("updated", row.updated, path)]
            elif slug is not None:
                self._files.bytes_of(slug)  # raises NotFound
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
        """Start a session at iteration 1.

        Durability: when this returns, the session survives a power cut. With `new` the session that had the
        name is in `archive/` before its file is replaced, so it always exists in at least one place.

        Args:
            slug: its name: lower-case words with hyphens between.
            questions: the first questions.
            last_question: the next one to answer; by default the last of them.
            persona: the facilitator.
            mode: ``standard``, ``party`` or ``panel``.
            phase: the initial phase.
            ems: the initial score, 0 to 100.
            axes: the five axes of the score; the score is then their weighted mean.
            progressive: record the phases that are done.
            new: archive an existing session of that name (and abandon it, if it is in progress).

        Raises:
            AlreadyExists: a session of that name exists; ``details`` has its status.
            Invalid: a value that the format does not allow.
            Corrupt, Unsupported: the existing file cannot be read; it is unchanged.
        """
        now = now or datetime.now(UTC)
        with self._files.call("create", slug):
            session = _fresh(check_slug(slug), one_of(persona, PERSONAS, "persona"), now)
            rounds.set_mode(session, mode)
            if progressive:
                session["progressive_state"] = {"divergent_completed": False, "transition_completed": False}
            navigation.rescore(session, ems=None if axes else ems, axes=axes, phase=phase)
            navigation.begin(session, 1, questions=questions, last_question=last_question, now=now)
            ordered = {name: session[name] for name in SESSION if name in session}
            data = dump_yaml({"format_version": VERSION, "session": ordered})
            make_folder(self._files.fs, self.folder)
            with self._files.held(slug):
                self._files.make_room(slug, data, new=new, now=now)
            return brainstorm_of(data, self.path(slug), slug)

    def load(self, slug: str, *, store_migration: bool = True) -> Brainstorm:
        """Return the session of that name; an older file is stored in the current version.

        Durability: with a migration to store, the old bytes are kept under `<slug>.yaml.bak` and flushed
        before the file is replaced; without one nothing is written.

        Args:
            store_migration: False only reads.

        Raises:
            NotFound: it does not exist.
            Corrupt: the file is not readable YAML; it is unchanged.
            SchemaError: its identity or position is missing or wrong.
            Unsupported: its version is unknown; the file is unchanged.
        """
        with self._files.call("load", slug):
            found = self._files.read(slug)
            if found.is_migrated and store_migration:
                with self._files.held(slug):
                    found = self._files.read(slug)
                    self._files.store(found)
            return found

    def save(self, session: Brainstorm, *, now: datetime | None = None) -> bool:
        """Store a session whose document was changed; True if there was a difference.

        Durability: when this returns, the file survives a power cut; until then the old one does. Comments
        and foreign keys are kept. A document equal to that in the file writes nothing.

        Raises:
            SchemaError: the document breaks the format; all faults are listed, and nothing was written.
            Conflict: the file has changed since the session was read; nothing was written.
            TransitionError: a finished session would be reopened.
        """
        if not isinstance(session, Brainstorm):
            raise Invalid(
                "the value to save is not a session", operation="save", hint="pass the result of `load`"
            )
        inner = session.document.get("session")
        slug = check_slug(inner.get("slug") if isinstance(inner, dict) else None)
        with self._files.call("save", slug):
            make_folder(self._files.fs, self.folder)
            with self._files.held(slug):
                return self._save(session, slug, now or datetime.now(UTC))

    def _save(self, session: Brainstorm, slug: str, now: datetime) -> bool:
        path = self.path(slug)
        data = bytes_at(self._files.fs, path)
        if data is None and session.stored is not None:
            hint = "it may be in the trash or the archive"
            raise NotFound(f"session {slug} no longer exists", hint=hint)
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
            hint = "load it again and repeat the change"
            raise Conflict(f"session {slug} was changed since it was read", hint=hint)
        if before is not None:
            was = before.migrated.document["session"].get("status")
            if was != session.status and was in (COMPLETED, ABANDONED):
                raise TransitionError(f"session {slug} is {was}", hint="use `reopen`")
        session.session["updated"] = write_time(now)
        session.path = path
        self._files.store(session)
        return True

    # -- iterations; each raises TransitionError if the session is finished

    def answer(
        self,
        slug: str,
        responses: Sequence[str],
        *,
        ems: int | None = None,
        axes: dict[str, int] | None = None,
        phase: str | None = None,
        persona: str | None = None,
        mode: str | None = None,
        duration: int | None = None,
        now: datetime | None = None,
    ) -> Brainstorm:
        """Record answers to the questions of the current iteration; after a step back this starts a branch.

        Durability: when this returns, the answers survive a power cut; a stored answer is never dropped.

        Args:
            responses: texts, appended to those of the iteration.
            ems: the current score.
            phase: the current phase.
            persona: facilitator from now on.
            mode: facilitation mode from now on; setting one leaves the others.
            duration: minutes spent on these answers.

        Raises:
            TransitionError: the session is finished.
            Invalid: no answer, or a value that the format does not allow.
        """

        def step(session: Session, now: datetime) -> None:
            navigation.answer(session, responses, duration=duration, now=now)
            navigation.rescore(session, ems=ems, axes=axes, phase=phase)
            rounds.lead(session, persona, mode)

        return self._files.change(slug, "answer", step, now)[0]

    def continue_(
        self,
        slug: str,
        questions: Sequence[str] = (),
        *,
        ems: int | None = None,
        axes: dict[str, int] | None = None,
        phase: str | None = None,
        persona: str | None = None,
        mode: str | None = None,
        last_question: str | None = None,
        now: datetime | None = None,
    ) -> Jump:
        """Go to the next iteration: after a step back the stored one, else a new one.

        Durability: as `answer`.

        Args:
            questions: the questions of the new iteration.
            ems: its initial score.
            phase: its initial phase.
            persona: facilitator from now on.
            mode: facilitation mode from now on; setting one leaves the others.
            last_question: the next one to answer; by default the last of them.

        Raises:
            TransitionError: the session is finished, or new values were given after a step back.
        """

        def step(session: Session, now: datetime) -> Jump:
            scores: dict[str, Any] = {"ems": ems, "axes": axes, "phase": phase}
            jump = navigation.go_on(session, questions, scores, last_question=last_question, now=now)
            rounds.lead(session, persona, mode)
            return jump

        return self._files.change(slug, "continue", step, now, works=navigation.at_tip)[1]

    def checkpoint(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Store the time worked since the last change. Every other call does that too.

        Durability: as `answer`. Without work, nothing is written.

        Raises:
            TransitionError: the session is finished.
        """
        return self._files.change(slug, "save", navigation.pass_time, now, works=_never)[0]

    def back(self, slug: str, n: int = 1, *, now: datetime | None = None) -> Jump:
        """Go back some iterations: score, phase and question are those of that iteration; everything else stays.

        Durability: as `answer`.

        Raises:
            Invalid: `n` is not from 1 to 5, or leads before iteration 1; ``details`` has the maximum.
            NotFound: the history lacks that iteration.
            TransitionError: the session is finished.
        """
        return self._files.change(
            slug, "back", lambda session, now: navigation.go_back(session, n, now), now, works=_never
        )[1]

    def forward(self, slug: str, *, now: datetime | None = None) -> Jump:
        """Go to the last iteration after steps back, over those in between; `continue_` goes one step.

        Durability: as `answer`.

        Raises:
            NotFound: the session is at its last iteration.
            TransitionError: the session is finished.
        """
        return self._files.change(
            slug, "forward", lambda session, _: navigation.go_to_tip(session), now, works=_never
        )[1]

    def update(
        self,
        slug: str,
        *,
        ems: int | None = None,
        axes: dict[str, int] | None = None,
        phase: str | None = None,
        persona: str | None = None,
        mode: str | None = None,
        transition_summary: Mapping[str, Any] | None = None,
        now: datetime | None = None,
    ) -> Brainstorm:
        """Set any of score, phase, persona and mode; setting a mode leaves the others.

        Durability: as `answer`.

        Args:
            ems: the score, 0 to 100.
            persona: the facilitator.
            mode: ``standard``, ``party`` or ``panel``.
            transition_summary: the mid-session summary of a progressive session; any map.

        Raises:
            TransitionError: the session is finished, or score or phase were given after a step back.
            Invalid: a value that the format does not allow.
        """

        def step(session: Session, _: datetime) -> None:
            scored = ems is not None or axes is not None or phase is not None
            if scored and not navigation.at_tip(session):
                raise TransitionError(
                    f"the session is back at iteration {session['iteration']}",
                    hint="continue to the last iteration, or answer first, which starts a branch",
                )
            navigation.rescore(session, ems=ems, axes=axes, phase=phase)
            rounds.lead(session, persona, mode)
            if transition_summary is not None:
                navigation.sum_up_transition(session, transition_summary)

        return self._files.change(slug, "update", step, now)[0]

    # -- notes, which move nothing; each raises TransitionError if the session is finished

    def technique(
        self,
        slug: str,
        technique: str,
        *,
        category: str = rounds.UNKNOWN_CATEGORY,
        reason: str = "",
        applied: bool = False,
        source: str = "auto",
        weak_axes: Sequence[str] = (),
        now: datetime | None = None,
    ) -> Brainstorm:
        """Record that a technique was suggested; with `applied`, that it (or an earlier suggestion) was applied.

        Durability: as `answer`.
        """

        def step(session: Session, _: datetime) -> None:
            rounds.technique(session, technique, category, reason, applied, source, weak_axes)

        return self._files.change(slug, "technique", step, now)[0]

    def party(
        self,
        slug: str,
        topic: str,
        contributions: Sequence[Mapping[str, Any]] = (),
        *,
        synthesis: str = "",
        user_question: str = "",
        personas: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> int:
        """Record a round of the party, entering its mode; return its number.

        Durability: as `answer`.

        Args:
            contributions: each with ``persona`` and optionally ``key_points`` and ``references``.
            user_question: a question to the user.
            personas: the participants; by default those who contributed.
        """

        def step(session: Session, _: datetime) -> int:
            return rounds.party(session, topic, contributions, synthesis, user_question, personas)

        return self._files.change(slug, "party", step, now)[1]

    def panel(
        self,
        slug: str,
        topic: str,
        contributions: Sequence[Mapping[str, Any]] = (),
        *,
        phase: str = "discussion",
        convergent: Sequence[str] = (),
        tensions: Sequence[str] = (),
        experts: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> int:
        """Record a round of the panel, entering its mode; return its number.

        Durability: as `answer`.

        Args:
            contributions: each with ``expert`` and optionally ``framework``, ``position`` and ``references``.
            phase: ``discussion``, ``debate`` or ``socratic``.
            convergent: points of agreement.
            tensions: points of tension.
            experts: the participants; by default those who contributed.
        """

        def step(session: Session, _: datetime) -> int:
            return rounds.panel(session, topic, contributions, phase, convergent, tensions, experts)

        return self._files.change(slug, "panel", step, now)[1]

    def idea(self, slug: str, content: str, *, score: int | None = None, now: datetime | None = None) -> int:
        """Record an idea with its score, 0 to 10; return its number.

        Durability: as `answer`.
        """
        return self._files.change(
            slug, "idea", lambda session, _: rounds.add_idea(session, content, score), now
        )[1]

    def score_idea(self, slug: str, number: int, score: int, *, now: datetime | None = None) -> Brainstorm:
        """Set the score of an idea, 0 to 10.

        Durability: as `answer`.

        Raises:
            NotFound: no idea with that number.
        """
        return self._files.change(
            slug, "idea", lambda session, _: rounds.score_idea(session, number, score), now
        )[0]

    # -- how a session ends and comes back

    def finish(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Complete a session; a completed one is unchanged. A score below 60 is reported in `problems`.

        Durability: as `answer`.

        Raises:
            TransitionError: it was abandoned.
        """
        found = self._set_status(slug, "finish", COMPLETED, (COMPLETED,), now)
        if found.ems < LOW_SCORE:
            message = f"the session was finished with a score of {found.ems}, below {LOW_SCORE}"
            repair = "`reopen` it, or start another session on the open points"
            found.problems.append(Problem.of_file("low_score", Severity.note, found.path, message, repair))
        return found

    def abandon(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Abandon a session; an abandoned one is unchanged.

        Durability: as `answer`.

        Raises:
            TransitionError: it was completed.
        """
        return self._set_status(slug, "abandon", ABANDONED, (ABANDONED,), now)

    def reopen(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Reopen a completed or abandoned session; one in progress is unchanged.

        Durability: as `answer`.

        Raises:
            TransitionError: its status is unknown.
        """
        return self._set_status(slug, "reopen", IN_PROGRESS, (COMPLETED, ABANDONED), now)

    def _set_status(
        self, slug: str, operation: str, status: str, ended: Sequence[str], now: datetime | None
    ) -> Brainstorm:
        def step(session: Session, _: datetime) -> None:
            session["status"] = status

        def works(_: Session) -> bool:
            return status != IN_PROGRESS

        return self._files.change(slug, operation, step, now, ended=ended, works=works)[0]

    def trash(self, slug: str, *, now: datetime | None = None) -> str:
        """Move a session that has ended to the trash, with its backup; return its new path.

        Unlike a session that `cleanup` moves, it is deleted on all devices by the next sync.

        Durability: the move survives a power cut when this returns; until then the file is in one of the two places.

        Raises:
            NotFound: it does not exist.
            TransitionError: it is in progress.
            Corrupt, SchemaError, Unsupported: it cannot be read, so it is unknown whether it has ended.
        """
        with self._files.call("trash", slug):
            self._files.bytes_of(slug)  # a missing session must not leave a lock file
            with self._files.held(slug):
                status = self._files.read(slug).status
                if status not in (COMPLETED, ABANDONED):
                    hint = f"end it first: `sessionary brainstorm finish {slug}`, or with --abandon"
                    raise TransitionError(f"session {slug} is {status}", hint=hint)
                cleaned_up.forget(self._files.fs, self.folder, slug)
                return trash.discard(self._files.fs, self.path(slug), now or datetime.now(UTC), erase=False)

    def restore(self, slug: str) -> str:
        """Restore the session of that name that was trashed last; return its path.

        Durability: the move survives a power cut when this returns.

        Raises:
            NotFound: it is not in the trash.
            AlreadyExists: another session now has the name.
        """
        with self._files.call("restore", slug):
            check_slug(slug)
            trash.newest_in_trash(
                self._files.fs, self.folder, slug
            )  # a missing session must not leave a lock file
            with self._files.held(slug):
                return trash.bring_back(self._files.fs, self.folder, slug)

    def find_ended(self, name: str, *, archived: bool = False) -> str:
        """Resolve a name in the trash, or in the archive: a slug or an id, the beginning of one, or ``latest``.

        A name without a match is returned unchanged: `restore` and `restore_archived` report it.

        Raises:
            AmbiguousId: several names have this prefix.
        """
        if archived:
            found = newest_first(self.archived())
            ids, slugs = [row.name for row in found], [row.slug for row in found]
        else:
            ids = slugs = self.trashed()
        if name in ids or name in slugs:
            return name
        if name == LATEST and ids:
            return ids[0]
        what = "archived brainstorm sessions" if archived else "brainstorm sessions in the trash"
        return one_named(name, set(slugs), what) or one_named(name, set(ids), what) or name

    def archived(self) -> list[Row]:
        """The sessions in `archive/`, by file name; damaged ones too. Reads only."""
        return [*rows(self._files.fs, os.path.join(self.folder, trash.ARCHIVE), trash.slug_of)]

    def restore_archived(self, name: str, *, replace: bool = False, now: datetime | None = None) -> str:
        """Restore a session from `archive/`, with its archived status; return its path.

        Durability: when this returns, the session is in place and survives a power cut. Until then it is in
        the archive, or in both places. With `replace` the session that has its name is archived first.

        Args:
            name: the name of the file in the archive, without its suffix: the id; or a slug, for the newest.
            replace: archive the session that has its name now, and abandon it if it is in progress.

        Raises:
            NotFound: it is not in the archive.
            AlreadyExists: a session has its name, and `replace` is False.
            Corrupt, SchemaError, Unsupported: the session that has its name cannot be read, so it is not archived.
        """
        row = self._in_archive(name)
        with self._files.call("restore", row.slug), self._files.held(row.slug):
            data = bytes_at(self._files.fs, row.path)
            if data is None:
                raise NotFound(f"no session {name} in the archive", path=row.path)
            try:
                self._files.make_room(row.slug, data, new=replace, now=now or datetime.now(UTC))
            except AlreadyExists as error:
                error.hint = "--replace archives that one and restores this one"
                raise
            atomic.erase_tree(row.path, fs=self._files.fs)
            cleaned_up.forget(self._files.fs, self.folder, row.slug)
            return self.path(row.slug)

    def _in_archive(self, name: str) -> Row:
        """The archived session of that name; for a slug the one that changed last."""
        ended = newest_first(reversed(self.archived()))  # of equal times, the last name
        found = [row for row in ended if row.name == name] or [row for row in ended if row.slug == name]
        if not found:
            raise NotFound(
                f"no session {name} in the archive",
                path=os.path.join(self.folder, trash.ARCHIVE),
                session=name,
                hint="`sessionary brainstorm list --archived` lists the archive",
            )
        return found[0]

    def trashed(self) -> list[str]:
        """The slugs of the sessions in the trash, the most recently trashed first."""
        return trash.trashed(self._files.fs, self.folder)

    # -- maintenance

    def launch(
        self, slug: str | None = None, *, days: int = DAYS_KEPT, now: datetime | None = None
    ) -> tuple[Found, list[Cleaned]]:
        """Launch: clean up old sessions, then return the ones that can be resumed.

        Durability: as `cleanup`.

        Args:
            slug: the requested session, which is not cleaned up; None for all that are in progress.
            days: as for `cleanup`.
        """
        now = now or datetime.now(UTC)
        cleaned = maintenance.clean_up(self._files, days, now, dry_run=False, erase=False, keep=slug)
        return self.detect(slug), cleaned

    def cleanup(
        self,
        days: int = DAYS_KEPT,
        *,
        now: datetime | None = None,
        dry_run: bool = False,
        erase: bool = False,
    ) -> list[Cleaned]:
        """Move sessions that have ended, and have not changed for more than this many days, to `.trash/`.

        Durability: each move survives a power cut when this returns; until then the file is in one of the two
        places. Sessions in progress, unreadable, or of unknown version or age stay. Other devices keep what
        was cleaned up here, and a pull restores it only if another device has continued it.

        Args:
            days: number of days of 24 hours.
            dry_run: only return what would be moved.
            erase: delete them permanently instead.
        """
        return maintenance.clean_up(self._files, days, now or datetime.now(UTC), dry_run=dry_run, erase=erase)

    def migrate(self, slug: str | None = None, *, dry_run: bool = False) -> list[MigratedFile]:
        """Store older files in the current version, with backups; current ones are left out.

        Durability: as `load`, for each file.

        Args:
            slug: the session; None for all.
            dry_run: only return what would be migrated.

        Raises:
            NotFound: no session has that name.
        """
        if slug is not None:
            with self._files.call("migrate", slug):
                self._files.bytes_of(slug)
        return maintenance.migrate(self._files, slug, dry_run=dry_run)

    # Last, because after this definition `list` is no longer the type.

    def list(self) -> Iterator[Row]:
        """Every session with score, phase and problems, by name; damaged ones too. Reads only."""
        return rows(self._files.fs, self.folder)


def _never(_: Session) -> bool:
    return False


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """True if two documents differ at most in the time of their last change."""
    first, second = ({**document["session"], "updated": None} for document in (one, other))
    return same({**one, "session": first}, {**other, "session": second})


def _fresh(slug: str, persona: str, now: datetime) -> Session:
    time = write_time(now)
    return {
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
