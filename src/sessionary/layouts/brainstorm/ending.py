"""The half of the store that ends a session and brings it back: finish, abandon, reopen, archive and trash.

`BrainstormStore` is the class to use. How a file makes room is in `trash`.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from sessionary.disk import atomic
from sessionary.disk.fs import Fs
from sessionary.errors import AlreadyExists, NotFound
from sessionary.layouts import cleaned_up
from sessionary.layouts.brainstorm import trash
from sessionary.layouts.brainstorm.constants import SUFFIX, check_slug
from sessionary.layouts.brainstorm.files import ABANDONED, COMPLETED, IN_PROGRESS, Shelf
from sessionary.layouts.brainstorm.navigation import Session
from sessionary.layouts.brainstorm.reading import Row, bytes_at, names, row_at
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.layouts.clock import believed
from sessionary.layouts.session_ids import LATEST, one_named
from sessionary.model import Problem, Severity

LOW_SCORE = 60
"""Finishing below it is advised against."""


class Ending:
    """Calls that end a session, open it again, and bring back what made room."""

    _shelf: Shelf
    _fs: Fs
    folder: str

    def finish(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Complete a session; once completed, again is no change. A score below 60 is told in `problems`.

        Durability: as `answer`.

        Raises:
            TransitionError: it was abandoned.
        """
        found = self._end(slug, "finish", COMPLETED, now)
        if found.ems < LOW_SCORE:
            message = f"the session was finished with a score of {found.ems}, below {LOW_SCORE}"
            repair = "`reopen` it, or consider another session on what is still unclear"
            found.problems.append(
                Problem("low_score", Severity.note, found.path, None, None, message, repair)
            )
        return found

    def abandon(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Give a session up; once given up, again is no change.

        Durability: as `answer`.

        Raises:
            TransitionError: it was completed.
        """
        return self._end(slug, "abandon", ABANDONED, now)

    def reopen(self, slug: str, *, now: datetime | None = None) -> Brainstorm:
        """Make a session that was completed or abandoned one in progress; one in progress is not changed.

        Durability: as `answer`.

        Raises:
            TransitionError: its status is none of the format's.
        """

        def step(session: Session, _: datetime) -> None:
            session["status"] = IN_PROGRESS

        ended = COMPLETED, ABANDONED
        return self._shelf.change(slug, "reopen", step, now, ended=ended, works=lambda _: False)[0]

    def _end(self, slug: str, operation: str, status: str, now: datetime | None) -> Brainstorm:
        def step(session: Session, _: datetime) -> None:
            session["status"] = status

        return self._shelf.change(slug, operation, step, now, ended=(status,))[0]

    def restore(self, slug: str) -> str:
        """Bring the session of that name that was trashed last back; returns its path.

        Durability: the move survives a power cut when this returns.

        Raises:
            NotFound: the trash has none.
            AlreadyExists: another session has the name by now.
        """
        with self._shelf.telling("restore", slug):
            check_slug(slug)
            trash.newest_in_trash(self._fs, self.folder, slug)  # what is not there shall leave no lock file
            with self._shelf.held(slug):
                return trash.bring_back(self._fs, self.folder, slug)

    def trashed(self) -> list[str]:
        """The slugs of the sessions in the trash, the one that was trashed last first."""
        return trash.trashed(self._fs, self.folder)

    def find_ended(self, name: str, *, archived: bool = False) -> str:
        """What a name means in the trash, or in the archive: a slug or an id, the beginning of one, or ``latest``.

        What names none is returned as it is: `restore` and `restore_archived` report that.

        Raises:
            AmbiguousId: several begin so.
        """
        if archived:
            rows = sorted(self.archived(), key=lambda row: believed(row.updated), reverse=True)
            ids = [os.path.basename(row.path).removesuffix(SUFFIX) for row in rows]
            slugs = [row.slug for row in rows]
        else:
            ids = slugs = self.trashed()
        if name in ids or name in slugs:
            return name
        if name == LATEST and ids:
            return ids[0]
        what = "archived brainstorm sessions" if archived else "brainstorm sessions in the trash"
        return one_named(name, set(slugs), what) or one_named(name, set(ids), what) or name

    def archived(self) -> list[Row]:
        """The sessions in `archive/`, by the names of their files; broken ones too. Reads only."""
        folder = os.path.join(self.folder, trash.ARCHIVE)
        found = (
            row_at(self._fs, os.path.join(folder, f"{name}{SUFFIX}"), trash.slug_of(name))
            for name in names(self._fs, folder)
        )
        return [row for row in found if row is not None]

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
        row = self._in_archive(name)
        slug = row.slug
        with self._shelf.telling("restore", slug), self._shelf.held(slug):
            path = self._shelf.path(slug)
            data = bytes_at(self._fs, row.path)
            if data is None:
                raise NotFound(f"the archive has no session {name}", path=row.path)
            if bytes_at(self._fs, path) is None:
                atomic.create(path, data, fs=self._fs)
            else:
                try:
                    self._shelf.make_room(slug, new=replace, now=now or datetime.now(UTC))
                except AlreadyExists as error:
                    error.hint = "--replace moves that one to the archive and brings this one back"
                    raise
                atomic.replace(path, (data,), fs=self._fs)
            atomic.erase_tree(row.path, fs=self._fs)
            cleaned_up.forget(self._fs, self.folder, slug)
            return path

    def _in_archive(self, name: str) -> Row:
        """The archived session of that name; of a slug the one that changed last."""
        rows = self.archived()
        exact = [row for row in rows if os.path.basename(row.path) == f"{name}{SUFFIX}"]
        same_slug = [row for row in rows if row.slug == name]
        found = exact or sorted(same_slug, key=lambda row: believed(row.updated))
        if not found:
            raise NotFound(
                f"the archive has no session {name}",
                path=os.path.join(self.folder, trash.ARCHIVE),
                session=name,
                hint="`sessionary brainstorm list --archived` shows those that it has",
            )
        return found[-1]
