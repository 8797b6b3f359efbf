"""`BrainstormStore`: brainstorm sessions of one project, one YAML file each.

Every change replaces one file: it is read, changed and stored under the lock of that session (`.<slug>.lock`,
never deleted). A change without effect writes nothing; any other updates `updated`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from sessionary.disk.fs import OS_FS, Fs, expanded
from sessionary.disk.lock import TIMEOUT
from sessionary.layouts.brainstorm import iterations, lifecycle, maintenance, queries, rounds, saving, trash
from sessionary.layouts.brainstorm.constants import DAYS_KEPT, FOLDER, MODES, PERSONAS, PHASES
from sessionary.layouts.brainstorm.files import SessionFiles
from sessionary.layouts.brainstorm.maintenance import Cleaned, MigratedFile
from sessionary.layouts.brainstorm.navigation import Jump
from sessionary.layouts.brainstorm.queries import Found
from sessionary.layouts.brainstorm.reading import Row, rows
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.model import Problem


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
        return queries.find(self._files, name)

    def detect(self, slug: str | None = None) -> Found:
        """The sessions that can be resumed. Reads only.

        Args:
            slug: the requested session; None for all that are in progress.
        """
        return queries.detect(self._files, slug)

    def validate(self, slug: str | None = None, *, strict: bool = False) -> list[Problem]:
        """All problems of a session, or of all of them. Reads only.

        Args:
            slug: the session; None for all.
            strict: require all mandatory fields, and only known values.

        Raises:
            NotFound: no session has that name.
        """
        return queries.validate(self._files, slug, strict=strict)

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
            now: the time.

        Raises:
            AlreadyExists: a session of that name exists; ``details`` has its status.
            Invalid: a value that the format does not allow.
            Corrupt, Unsupported: the existing file cannot be read; it is unchanged.
        """
        return saving.create(
            self._files,
            slug,
            questions=questions,
            last_question=last_question,
            persona=persona,
            mode=mode,
            phase=phase,
            ems=ems,
            axes=axes,
            progressive=progressive,
            new=new,
            now=now,
        )

    def load(self, slug: str, *, store_migration: bool = True) -> Brainstorm:
        """Return the session of that name; an older file is stored in the current version.

        Durability: with a migration to store, the old bytes are kept under `<slug>.yaml.bak` and flushed
        before the file is replaced; without one nothing is written.

        Args:
            slug: the name of the session.
            store_migration: False only reads.

        Raises:
            NotFound: it does not exist.
            Corrupt: the file is not readable YAML; it is unchanged.
            SchemaError: its identity or position is missing or wrong.
            Unsupported: its version is unknown; the file is unchanged.
        """
        return saving.load(self._files, slug, store_migration=store_migration)

    def save(self, session: Brainstorm, *, now: datetime | None = None) -> bool:
        """Store a session whose document was changed; True if there was a difference.

        Durability: when this returns, the file survives a power cut; until then the old one does. Comments
        and foreign keys are kept. A document equal to that in the file writes nothing.

        Raises:
            SchemaError: the document breaks the format; all faults are listed, and nothing was written.
            Conflict: the file has changed since the session was read; nothing was written.
            TransitionError: a finished session would be reopened.
        """
        return saving.save(self._files, session, now=now)

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
            slug: the session.
            responses: texts, appended to those of the iteration.
            ems: the current score.
            axes: its five axes.
            phase: the current phase.
            persona: facilitator from now on.
            mode: facilitation mode from now on; setting one leaves the others.
            duration: minutes spent on these answers.
            now: the time.

        Raises:
            TransitionError: the session is finished.
            Invalid: no answer, or a value that the format does not allow.
        """
        return iterations.answer(
            self._files,
            slug,
            responses,
            ems=ems,
            axes=axes,
            phase=phase,
            persona=persona,
            mode=mode,
            duration=duration,
            now=now,
        )

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
            slug: the session.
            questions: the questions of the new iteration.
            ems: its initial score.
            axes: its five axes.
            phase: its initial phase.
            persona: facilitator from now on.
            mode: facilitation mode from now on; setting one leaves the others.
            last_question: the next one to answer; by default the last of them.
            now: the time.

        Raises:
            TransitionError: the session is finished, or new values were given after a step back.
        """
        return iterations.go_on(
            self._files,
            slug,
            questions,
            ems=ems,
            axes=axes,
            phase=phase,
            persona=persona,
            mode=mode,
            last_question=last_question,
            now=now,
        )

    def checkpoint(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Store the time worked since the last change. Every other call does that too.

        Durability: as `answer`. Without work, nothing is written.

        Raises:
            TransitionError: the session is finished.
        """
        return iterations.checkpoint(self._files, slug, now=now)

    def back(self, slug: str, n: int = 1, *, now: datetime | None = None) -> Jump:
        """Go back some iterations: score, phase and question are those of that iteration; everything else stays.

        Durability: as `answer`.

        Raises:
            Invalid: `n` is not from 1 to 5, or leads before iteration 1; ``details`` has the maximum.
            NotFound: the history lacks that iteration.
            TransitionError: the session is finished.
        """
        return iterations.back(self._files, slug, n, now=now)

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
            slug: the session.
            ems: the score, 0 to 100.
            axes: its five axes.
            phase: the phase.
            persona: the facilitator.
            mode: ``standard``, ``party`` or ``panel``.
            transition_summary: the mid-session summary of a progressive session; any map.
            now: the time.

        Raises:
            TransitionError: the session is finished, or score or phase were given after a step back.
            Invalid: a value that the format does not allow.
        """
        return iterations.update(
            self._files,
            slug,
            ems=ems,
            axes=axes,
            phase=phase,
            persona=persona,
            mode=mode,
            transition_summary=transition_summary,
            now=now,
        )

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
        note = partial(
            rounds.technique,
            slug=technique,
            category=category,
            reason=reason,
            applied=applied,
            source=source,
            weak_axes=weak_axes,
        )
        return self._files.note(slug, "technique", note, now)[0]

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
            slug: the session.
            topic: the topic.
            contributions: each with ``persona`` and optionally ``key_points`` and ``references``.
            synthesis: the synthesis.
            user_question: a question to the user.
            personas: the participants; by default those who contributed.
            now: the time.
        """
        note = partial(
            rounds.party_round,
            topic=topic,
            contributions=contributions,
            synthesis=synthesis,
            user_question=user_question,
            personas=personas,
        )
        return self._files.note(slug, "party", note, now)[1]

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
            slug: the session.
            topic: the topic.
            contributions: each with ``expert`` and optionally ``framework``, ``position`` and ``references``.
            phase: ``discussion``, ``debate`` or ``socratic``.
            convergent: points of agreement.
            tensions: points of tension.
            experts: the participants; by default those who contributed.
            now: the time.
        """
        note = partial(
            rounds.panel_round,
            topic=topic,
            contributions=contributions,
            phase=phase,
            convergent=convergent,
            tensions=tensions,
            experts=experts,
        )
        return self._files.note(slug, "panel", note, now)[1]

    def idea(self, slug: str, content: str, *, score: int | None = None, now: datetime | None = None) -> int:
        """Record an idea with its score, 0 to 10; return its number.

        Durability: as `answer`.
        """
        return self._files.note(slug, "idea", partial(rounds.add_idea, content=content, score=score), now)[1]

    def score_idea(self, slug: str, number: int, score: int, *, now: datetime | None = None) -> Brainstorm:
        """Set the score of an idea, 0 to 10.

        Durability: as `answer`.

        Raises:
            NotFound: no idea with that number.
        """
        return self._files.note(slug, "idea", partial(rounds.score_idea, number=number, score=score), now)[0]

    # -- how a session ends and comes back

    def finish(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Complete a session; a completed one is unchanged. A score below 60 is reported in `problems`.

        Durability: as `answer`.

        Raises:
            TransitionError: it was abandoned.
        """
        return lifecycle.finish(self._files, slug, now=now)

    def abandon(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Abandon a session; an abandoned one is unchanged.

        Durability: as `answer`.

        Raises:
            TransitionError: it was completed.
        """
        return lifecycle.abandon(self._files, slug, now=now)

    def reopen(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Reopen a completed or abandoned session; one in progress is unchanged.

        Durability: as `answer`.

        Raises:
            TransitionError: its status is unknown.
        """
        return lifecycle.reopen(self._files, slug, now=now)

    def restore(self, slug: str) -> str:
        """Restore the session of that name that was trashed last; return its path.

        Durability: the move survives a power cut when this returns.

        Raises:
            NotFound: it is not in the trash.
            AlreadyExists: another session now has the name.
        """
        return lifecycle.restore(self._files, slug)

    def find_ended(self, name: str, *, archived: bool = False) -> str:
        """Resolve a name in the trash, or in the archive: a slug or an id, the beginning of one, or ``latest``.

        A name without a match is returned unchanged: `restore` and `restore_archived` report it.

        Raises:
            AmbiguousId: several begin so.
        """
        return lifecycle.find_ended(self._files, name, in_archive=archived)

    def archived(self) -> list[Row]:
        """The sessions in `archive/`, by file name; damaged ones too. Reads only."""
        return lifecycle.archived(self._files)

    def restore_archived(self, name: str, *, replace: bool = False, now: datetime | None = None) -> str:
        """Restore a session from `archive/`, with its archived status; return its path.

        Durability: when this returns, the session is in place and survives a power cut. Until then it is in
        the archive, or in both places. With `replace` the session that has its name is archived first.

        Args:
            name: the name of the file in the archive, without its suffix: the id; or a slug, for the newest.
            replace: archive the session that has its name now, and abandon it if it is in progress.
            now: the time.

        Raises:
            NotFound: it is not in the archive.
            AlreadyExists: a session has its name, and `replace` is False.
            Corrupt, SchemaError, Unsupported: the session that has its name cannot be read, so it is not archived.
        """
        return lifecycle.restore_archived(self._files, name, replace=replace, now=now)

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
            now: the time.
        """
        cleaned = maintenance.clean_up(
            self._files, days, now or datetime.now(UTC), dry_run=False, erase=False, keep=slug
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
        """Move sessions that have ended, and have not changed for more than this many days, to `.trash/`.

        Durability: each move survives a power cut when this returns; until then the file is in one of the two
        places. Sessions in progress, unreadable, or of unknown version or age stay. Other devices keep what
        was cleaned up here, and a pull restores it only if another device has continued it.

        Args:
            days: number of days of 24 hours.
            now: the time.
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
        if slug is None:
            return maintenance.migrate_all(self._files, dry_run=dry_run)
        with self._files.call("migrate", slug):
            self._files.bytes_of(slug)
        done = maintenance.migrate_one(self._files, slug, dry_run=dry_run)
        return [] if done is None else [done]

    # Last, because after this definition `list` is no longer the type.
    def list(self) -> Iterator[Row]:
        """Every session with score, phase and problems, by name; damaged ones too. Reads only."""
        return rows(self._files.fs, self.folder)
