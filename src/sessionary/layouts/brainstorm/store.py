"""`BrainstormStore`: brainstorm sessions of one project, one YAML file each.

Every change is one replaced file: read it, change the document, store it, all under the lock of that session
(`.<slug>.lock`, never deleted). A change that changes nothing writes nothing; every other moves `updated`.
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

    Reading takes no lock and writes nothing, but for `load`, which stores a migration.

    Args:
        root: the folder of the project; made with the first session.
        timeout: seconds to wait for a session that somebody else is changing.
    """

    def __init__(self, root: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> None:
        self.folder: str = os.path.join(os.path.abspath(expanded(root)), *FOLDER.split("/"))
        self._files = SessionFiles(self.folder, OS_FS, timeout)

    @classmethod
    def with_fs(cls, fs: Fs, root: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> Self:
        """The store over another file system; for tests and proofs."""
        store = cls(root)
        store._files = SessionFiles(store.folder, fs, timeout)
        return store

    def path(self, slug: str) -> str:
        """The file of a session, whether it is there or not. Raises InvalidId."""
        return self._files.path(slug)

    # -- reading

    def find(self, name: str) -> str:
        """The slug of the session that a name means: its slug or the beginning of that in any case, or ``latest``.

        A whole slug wins. ``latest`` is the session that changed last; a slug that is so called wins.

        Raises:
            NotFound: there is none.
            AmbiguousId: several begin so.
        """
        return queries.find(self._files, name)

    def detect(self, slug: str | None = None) -> Found:
        """What there is to resume at a launch. Reads only.

        Args:
            slug: the session that was asked for; None for all that are in progress.
        """
        return queries.detect(self._files, slug)

    def validate(self, slug: str | None = None, *, strict: bool = False) -> list[Problem]:
        """All that is wrong or odd with a session, or with all of them, at once. Reads only.

        Args:
            slug: the session; None for all.
            strict: whether all that the format calls required must be there, and every value within its list.

        Raises:
            NotFound: there is no session of that name.
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
        return saving.load(self._files, slug, store_migration=store_migration)

    def save(self, session: Brainstorm, *, now: datetime | None = None) -> bool:
        """Store a session whose document was changed; True if there was something to store.

        Durability: when this returns, the file survives a power cut; until then the old one does. Comments and keys
        that others put there stay. A document that says what the file says already writes nothing.

        Raises:
            SchemaError: the document breaks the format; all faults are named, and nothing was written.
            Conflict: the file has changed since the session was read; nothing was written.
            TransitionError: a finished session was to be opened again.
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
        """Record answers to the questions of the current iteration; after a step back this begins a branch.

        Durability: when this returns, the answers survive a power cut; no answer that was stored is ever dropped.

        Args:
            slug: the session.
            responses: texts, added to those that the iteration has.
            ems: the score as it is now.
            axes: its five axes.
            phase: the phase as it is now.
            persona: who leads the session from now on.
            mode: how it is led from now on; a mode leaves the other ones.
            duration: minutes that these answers took.
            now: the time.

        Raises:
            TransitionError: the session is finished.
            Invalid: there is no answer, or a value that the format does not allow.
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
        """Go on to the next iteration: after a step back to the one that is stored, else to a new one.

        Durability: as `answer`.

        Args:
            slug: the session.
            questions: those of the new iteration.
            ems: the score with which it begins.
            axes: its five axes.
            phase: the phase in which it begins.
            persona: who leads the session from now on.
            mode: how it is led from now on; a mode leaves the other ones.
            last_question: the one to be answered next; by default the last of them.
            now: the time.

        Raises:
            TransitionError: the session is finished, or something new was given after a step back.
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
        """Store the time that was worked since the last change. Every other call stores what it does, with the time.

        Durability: as `answer`. Where nothing was worked, nothing is written.

        Raises:
            TransitionError: the session is finished.
        """
        return iterations.checkpoint(self._files, slug, now=now)

    def back(self, slug: str, n: int = 1, *, now: datetime | None = None) -> Jump:
        """Go back some iterations: score, phase and question are those of then; all else stays, answers included.

        Durability: as `answer`.

        Raises:
            Invalid: `n` is not from 1 to 5, or leads before iteration 1; ``details`` says how far it may be.
            NotFound: the history has no entry of that iteration.
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
        """Set what is given of score, phase, persona and mode; a mode leaves the other ones.

        Durability: as `answer`.

        Args:
            slug: the session.
            ems: the score, 0 to 100.
            axes: its five axes.
            phase: the phase.
            persona: who leads the session.
            mode: ``standard``, ``party`` or ``panel``.
            transition_summary: what there is at the middle of a progressive session; any map.
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
        """Note that a technique was suggested; with `applied`, that it (or the suggestion before) was applied.

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
        """Note a round of the party, entering its mode; returns its number.

        Durability: as `answer`.

        Args:
            slug: the session.
            topic: what was discussed.
            contributions: each with ``persona`` and, as wanted, ``key_points`` and ``references``.
            synthesis: what came of it.
            user_question: what is put to the user.
            personas: who took part; by default those who contributed.
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
        """Note a round of the panel, entering its mode; returns its number.

        Durability: as `answer`.

        Args:
            slug: the session.
            topic: what was analysed.
            contributions: each with ``expert`` and, as wanted, ``framework``, ``position`` and ``references``.
            phase: ``discussion``, ``debate`` or ``socratic``.
            convergent: points of agreement.
            tensions: points of tension.
            experts: who took part; by default those who contributed.
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
        """Note an idea with its score, 0 to 10; returns its number.

        Durability: as `answer`.
        """
        return self._files.note(slug, "idea", partial(rounds.add_idea, content=content, score=score), now)[1]

    def score_idea(self, slug: str, number: int, score: int, *, now: datetime | None = None) -> Brainstorm:
        """Give an idea another score, 0 to 10.

        Durability: as `answer`.

        Raises:
            NotFound: there is no idea of that number.
        """
        return self._files.note(slug, "idea", partial(rounds.score_idea, number=number, score=score), now)[0]

    # -- how a session ends and comes back

    def finish(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Complete a session; once completed, again is no change. A score below 60 is told in `problems`.

        Durability: as `answer`.

        Raises:
            TransitionError: it was abandoned.
        """
        return lifecycle.finish(self._files, slug, now=now)

    def abandon(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Give a session up; once given up, again is no change.

        Durability: as `answer`.

        Raises:
            TransitionError: it was completed.
        """
        return lifecycle.abandon(self._files, slug, now=now)

    def reopen(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Make a session that was completed or abandoned one in progress; one in progress is not changed.

        Durability: as `answer`.

        Raises:
            TransitionError: its status is none of the format's.
        """
        return lifecycle.reopen(self._files, slug, now=now)

    def restore(self, slug: str) -> str:
        """Bring the session of that name that was trashed last back; returns its path.

        Durability: the move survives a power cut when this returns.

        Raises:
            NotFound: the trash has none.
            AlreadyExists: another session has the name by now.
        """
        return lifecycle.restore(self._files, slug)

    def find_ended(self, name: str, *, archived: bool = False) -> str:
        """What a name means in the trash, or in the archive: a slug or an id, the beginning of one, or ``latest``.

        What names none is returned as it is: `restore` and `restore_archived` report that.

        Raises:
            AmbiguousId: several begin so.
        """
        return lifecycle.find_ended(self._files, name, in_archive=archived)

    def archived(self) -> list[Row]:
        """The sessions in `archive/`, by the names of their files; broken ones too. Reads only."""
        return lifecycle.archived(self._files)

    def restore_archived(self, name: str, *, replace: bool = False, now: datetime | None = None) -> str:
        """Bring a session back from `archive/`, with the status that it has there; returns its path.

        Durability: when this returns, the session has its place and survives a power cut. Until then it is in the
        archive, or in both places. With `replace` the session that has its name is in the archive before.

        Args:
            name: the name of the file in the archive, without its suffix: the id; or a slug, which means the newest.
            replace: whether a session that has its name now is archived, and abandoned if it is in progress.
            now: the time.

        Raises:
            NotFound: the archive has none.
            AlreadyExists: a session has its name, and `replace` was not said.
            Corrupt, SchemaError, Unsupported: the session that has its name cannot be read, so it is not archived.
        """
        return lifecycle.restore_archived(self._files, name, replace=replace, now=now)

    def trashed(self) -> list[str]:
        """The slugs of the sessions in the trash, the one that was trashed last first."""
        return trash.trashed(self._files.fs, self.folder)

    # -- maintenance

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
        return maintenance.clean_up(self._files, days, now or datetime.now(UTC), dry_run=dry_run, erase=erase)

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
            return maintenance.migrate_all(self._files, dry_run=dry_run)
        with self._files.call("migrate", slug):
            self._files.bytes_of(slug)
        done = maintenance.migrate_one(self._files, slug, dry_run=dry_run)
        return [] if done is None else [done]

    # Last, because below this name `list` is no longer the type.
    def list(self) -> Iterator[Row]:
        """Every session with score, phase and what is odd about it, by name; broken ones too. Reads only."""
        return rows(self._files.fs, self.folder)
