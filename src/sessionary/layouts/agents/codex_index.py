"""Data of Codex beside its rollouts: the database from which it lists and resumes sessions, and older names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sessionary.disk.fs import Fs
from sessionary.errors import SessionaryError
from sessionary.layouts.jsonl import read_jsonl
from sessionary.model import Problem, Record, SessionRef, Severity

_DATABASE = re.compile(r"state_(\d+)\.sqlite")
_FOLDERS = ("", "/sqlite")
_COLUMNS = ("id", "rollout_path", "name", "title", "first_user_message", "model_provider")


class Row(NamedTuple):
    """The row of a session in the database."""

    title: str | None
    path: str | None
    provider: str | None


class Index(NamedTuple):
    """Facts of sessions outside of their rollouts.

    Attributes:
        names: the names in `session_index.jsonl`, by id.
        rows: the rows of the database, by id; None without one that can be read.
        database: its path, if there is one.
        failure: why it cannot be read.
    """

    names: dict[str, str]
    rows: dict[str, Row] | None
    database: str | None
    failure: str | None

    def title(self, session_id: str) -> str | None:
        """The title that the database has."""
        row = (self.rows or {}).get(session_id)
        return None if row is None else row.title

    def problems(self, fs: Fs, ref: SessionRef) -> Iterator[Problem]:
        """Why Codex would not find a session that is there."""
        if not self.rows:
            return
        row = self.rows.get(ref.session_id)
        if row is None:
            why = "has no row of it"
        elif row.path is not None and not _exists(fs, row.path):
            why = f"names {row.path}, which is missing"
        else:
            return
        words = f"Codex does not find this session: its database {self.database} {why}"
        remedy = "let Codex scan its folder again (`codex doctor`)"
        yield Problem.of_file("not_indexed", Severity.stops_resume, ref.locator, words, remedy)

    def other_provider(self, ref: SessionRef, stated: object) -> Iterator[Problem]:
        """A note if the database names another provider of the model than the rollout: the picker filters by it."""
        row = (self.rows or {}).get(ref.session_id)
        if row is not None and row.provider and isinstance(stated, str) and stated != row.provider:
            words = f"the database names the provider {row.provider}, the session {stated}: `codex resume` may hide it"
            remedy = "resume it by its id"
            yield Problem("other_provider", Severity.note, ref.locator, 1, 0, words, remedy)

    def problems_of_home(self) -> Iterator[Problem]:
        """Why the database says nothing."""
        if self.database is not None and self.failure is not None:
            words = f"its titles are not read: {self.failure}"
            remedy = "none needed: the sessions are read without it"
            yield Problem.of_file("unreadable_index", Severity.note, self.database, words, remedy)


def index_of(fs: Fs, home: str) -> Index:
    """Read what is beside the rollouts below a home."""
    names: dict[str, str] = {}
    try:
        for found in read_jsonl(fs, f"{home}/session_index.jsonl"):
            entry = found.value if isinstance(found, Record) else {}
            if isinstance(entry.get("id"), str) and isinstance(entry.get("thread_name"), str):
                names[entry["id"]] = entry["thread_name"]
    except OSError:
        pass
    database = _newest_database(fs, home)
    if database is None:
        return Index(names, None, None, None)
    try:
        return Index(names, _rows(fs, database), database, None)
    except SessionaryError as error:
        return Index(names, None, database, error.message)


def _newest_database(fs: Fs, home: str) -> str | None:
    found: list[tuple[int, str]] = []
    for folder in _FOLDERS:
        try:
            listed = fs.listdir(home + folder)
        except OSError:
            continue
        found += [
            (int(name[1]), f"{home}{folder}/{one}") for one in listed if (name := _DATABASE.fullmatch(one))
        ]
    return max(found)[1] if found else None


def _rows(fs: Fs, path: str) -> dict[str, Row] | None:
    """The rows of `threads`, whose columns differ from version to version; None without that table."""
    from sessionary.layouts.sqlite import Database  # here, since it loads SQLite

    database = Database(path, fs)
    there = set(database.columns("threads"))
    if "id" not in there:
        return None
    wanted = ", ".join(one if one in there else "NULL" for one in _COLUMNS)
    return {
        str(id_): Row(_title(name, title, first), _text(rollout), _text(provider))
        for id_, rollout, name, title, first, provider in database.fetch(f"SELECT {wanted} FROM threads")
    }


def _title(name: Any, title: Any, first: Any) -> str | None:
    """The name that the user gave, else the title, unless that repeats the first message."""
    if stated := _text(name):
        return stated
    return None if title == first else _text(title)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _exists(fs: Fs, path: str) -> bool:
    try:
        fs.stat(path)
    except (OSError, ValueError):
        return False
    return True
