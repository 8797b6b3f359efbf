"""The sessions of OpenCode (and Kilo, which stores them the same way): an SQLite database, before that JSON files.

A session may be in several generations of the store: in the tables of version 2, in those of version 1, and in a tree
of files. The newest one counts. The locator of a session in a database is its path, `#` and the id.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sessionary.disk.fs import is_file, is_folder, not_found, read_bytes
from sessionary.errors import Corrupt, NotFound, StorageFailed
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.agents.rows import PAGE, cursor_behind, decoded, read_before, stored_bytes
from sessionary.layouts.base import Capability
from sessionary.layouts.clock import last_change
from sessionary.layouts.files import Location, Part, PartKind, location_of
from sessionary.layouts.fingerprints import MTIME_GRACE, UNKNOWN, fingerprint_of
from sessionary.layouts.sqlite import Database
from sessionary.model import (
    Aside,
    Cursor,
    Fact,
    Header,
    Item,
    Message,
    Place,
    Problem,
    Reset,
    SessionRef,
    Severity,
)

if TYPE_CHECKING:
    from sessionary.layouts.agents.sql_rows import Take
    from sessionary.transcript.fold import Fold

DATABASE = "OPENCODE_DB"
_BY_SESSION = "session_id = :id"
TABLES = (
    ("message", _BY_SESSION),
    ("part", "message_id IN (SELECT id FROM message WHERE session_id = :id)"),
    ("session_message", _BY_SESSION),
    ("todo", _BY_SESSION),
    ("session", "id = :id"),
    ("session_v2", "id = :id"),
)
"""The tables with rows of a session, and which of their rows are. Those of shared links hold secrets, and are not."""
_TREE = "storage/session"
_PARTS = "part JOIN message ON message.id = part.message_id WHERE message.session_id = ?"


class _Messages(Struct):
    """A table of messages, and the columns that are there. Those of version 1 have parts in a table of their own."""

    name: str
    columns: frozenset[str]
    of_part: frozenset[str]

    def column(self, name: str, other: str) -> str:
        return name if name in self.columns else other


class _Tables(Struct):
    """Where one generation keeps its sessions and messages, and the columns of the sessions that are there.

    A session that version 1 began continues in the messages of version 2, without a row in the sessions of version 2.
    """

    session: str
    of_session: frozenset[str]
    messages: list[_Messages]


class _Version(NamedTuple):
    """A message: its id, when it changed last in milliseconds, the number of its parts, and whether it is shown."""

    message: str
    changed: int
    parts: int
    shown: bool = True


class OpenCodeLayout(AgentLayout):
    """The sessions of OpenCode below its data folder."""

    name: ClassVar[str] = "opencode"
    places: ClassVar[tuple[str, ...]] = ("storage/", "opencode*.db", "kilo*.db")
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.NESTS, Capability.RESUME})

    @classmethod
    def default_home(cls) -> Path:
        data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        return Path(data) / "opencode"

    def resume_command(self, ref: SessionRef) -> list[str]:
        program = "kilo" if ref.locator.startswith(f"{os.path.dirname(str(self.home))}/kilo/") else "opencode"
        return [program, "--session", ref.session_id]

    def locations(self) -> Iterator[Location]:
        yield from (location_of(self._fs, root) for root in self._roots())
        yield from (location_of(self._fs, path) for path in self._databases())

    def _refs(self) -> Iterator[SessionRef]:
        return self._refs_in(self._databases(), lambda path: self._sessions(Database(path, self._fs)))

    def _roots(self) -> list[str]:
        """The data folder, and beside the default one that of Kilo."""
        home = str(self.home)
        return [home, f"{os.path.dirname(home)}/kilo"] if os.path.basename(home) == "opencode" else [home]

    def _databases(self) -> Iterator[str]:
        named = os.environ.get(DATABASE)
        if named and self.home == self.default_home():
            yield os.path.join(self.home, named)
        for root in self._roots():
            for name in self._names(root):
                if name.endswith(".db") and name.startswith(("opencode", "kilo")):
                    yield f"{root}/{name}"

    def _files(self) -> Iterator[str]:
        for root in self._roots():
            for project in self._names(f"{root}/{_TREE}"):
                yield from self._paths(f"{root}/{_TREE}/{project}", ".json")

    def _ref(self, path: str) -> SessionRef | None:
        name = os.path.basename(path)
        if not (name.endswith(".json") and f"/{_TREE}/" in path):
            return None
        stem, storage = name.removesuffix(".json"), _storage_of(path)
        # Old names have a prefix that the id lacks; the folder of the messages has the id.
        ids = (stem, stem.removeprefix("ses_"))
        own = next((one for one in ids if is_folder(self._fs, f"{storage}/message/{one}")), stem)
        return SessionRef(self.name, own, path, None)

    # -- a database

    def _sessions(self, database: Database, session_id: str | None = None) -> dict[str, bytes]:
        """The fingerprint of each session, or of one."""
        found: dict[str, bytes] = {}
        one = () if session_id is None else (session_id,)
        for tables in _generations(database):
            names = ", ".join(("id", *sorted(tables.of_session)))
            rows = database.fetch(
                f"SELECT {names} FROM {tables.session}" + (" WHERE id = ?" if one else ""), one
            )
            counts: list[dict[Any, Sequence[Any]]] = []
            stored = [(table.name, table.name, table.columns) for table in tables.messages]
            stored += [("part", table.name, table.of_part) for table in tables.messages if table.of_part]
            for table, owner, columns in stored:
                changed = f"max({table}.time_updated)" if "time_updated" in columns else "NULL"
                joined = "part JOIN message ON message.id = part.message_id" if table == "part" else table
                query = f"SELECT {owner}.session_id, count(*), {changed} FROM {joined}"
                query += f" WHERE {owner}.session_id = ?" if one else ""
                grouped = database.fetch(f"{query} GROUP BY {owner}.session_id", one)
                counts.append({key: rest for key, *rest in grouped})
            for key, *row in rows:
                states = [count.get(key, (0, 0)) for count in counts]
                found.setdefault(str(key), self._fingerprint(row, states))
        return found

    def _fingerprint(self, row: Sequence[Any], states: Sequence[Sequence[Any]]) -> bytes:
        """The fingerprint of a session; none if a change could go unseen."""
        times = [changed for _, changed in states]
        if None in times or max(map(_number, times)) / 1000 >= self._now() - MTIME_GRACE:
            return UNKNOWN
        return blake2b(repr((row, states)).encode(), digest_size=16).digest()

    def _open(self, ref: SessionRef) -> tuple[Database, _Tables, dict[str, Any]] | None:
        """The database of a session, the generation that counts, and its row; None if it is stored in files.

        Raises:
            NotFound: the session is gone.
        """
        path, is_row, session_id = ref.locator.partition("#")
        if not is_row:
            return None
        database = Database(path, self._fs)
        for tables in _generations(database):
            names = sorted(tables.of_session)
            query = f"SELECT {', '.join(names)} FROM {tables.session} WHERE id = ?"
            for row in database.fetch(query, (session_id,)):
                return database, tables, dict(zip(names, row, strict=True))
        raise not_found(ref.locator, f"Session '{ref.session_id}' not found")

    def _versions(self, database: Database, tables: _Tables, row: Mapping[str, Any]) -> list[_Version]:
        """Each message of a session in order."""
        lists = [self._versions_in(database, table, str(row["id"])) for table in tables.messages]
        found: dict[str, _Version] = {}
        for _, version in heapq.merge(*lists, key=lambda one: one[0]):
            found[version.message] = version
        first = _reverted(row)
        order = list(found)
        shown = order.index(first) if first in found else len(order)
        return [found[one]._replace(shown=at < shown) for at, one in enumerate(order)]

    def _versions_in(
        self, database: Database, table: _Messages, session_id: str
    ) -> list[tuple[int, _Version]]:
        """The messages of a session in one table in order, each with the time in milliseconds at which it began."""
        began, changed = (table.column(name, "0") for name in ("time_created", "time_updated"))
        order = table.column("seq", "time_created, id")
        query = f"SELECT id, {began}, {changed} FROM {table.name} WHERE session_id = ? ORDER BY {order}"
        parts: dict[str, tuple[int, int]] = {}
        if table.of_part:
            last = "max(part.time_updated)" if "time_updated" in table.of_part else "0"
            counted = f"SELECT part.message_id, {last}, count(*) FROM {_PARTS} GROUP BY part.message_id"
            parts = {
                one: (_number(time), count) for one, time, count in database.fetch(counted, (session_id,))
            }
        found = []
        for one, begin, own in database.fetch(query, (session_id,)):
            of_parts, count = parts.get(one, (0, 0))
            found.append((_number(begin), _Version(str(one), max(_number(own), of_parts), count)))
        return found

    def _rows(self, database: Database, tables: _Tables, ids: list[str]) -> Iterator[tuple[str, Item]]:
        """What a page of messages holds, each item with the id of its message."""
        from sessionary.layouts.agents.opencode_rows import messages_of, messages_of_v2

        marks = ", ".join("?" * len(ids))
        found: dict[str, tuple[_Messages, Any, Any]] = {}
        parts: dict[str, list[tuple[str, Any]]] = {}
        for table in tables.messages:
            kind = table.column("type", "NULL")
            query = f"SELECT id, {kind}, CAST(data AS BLOB) FROM {table.name} WHERE id IN ({marks})"
            found |= {one: (table, kind, data) for one, kind, data in database.fetch(query, ids)}
            if table.of_part:
                query = "SELECT message_id, id, CAST(data AS BLOB) FROM part"
                query += f" WHERE message_id IN ({marks}) ORDER BY id"
                for message_id, part_id, data in database.fetch(query, ids):
                    parts.setdefault(message_id, []).append((part_id, data))
        for one in (one for one in ids if one in found):
            table, kind, data = found[one]
            place = Place(f"{database.path}#{table.name}/{one}")
            value = decoded(data, place)
            if isinstance(value, Problem):
                yield one, value
                value = {"role": "user"} if table.of_part else {}
            if not table.of_part:
                yield from ((one, item) for item in messages_of_v2(one, str(kind), value, place))
                continue
            read = [decoded(part, Place(f"{database.path}#part/{name}")) for name, part in parts.get(one, [])]
            yield from ((one, part) for part in read if isinstance(part, Problem))
            of_parts = [part for part in read if not isinstance(part, Problem)]
            yield from ((one, item) for item in messages_of(one, value, of_parts, place))

    # -- a tree of files

    def _document(self, path: str) -> Mapping[str, Any]:
        value = decoded(read_bytes(self._fs, path) or b"{}", Place(path))
        return {} if isinstance(value, Problem) else value

    def _of_files(self, ref: SessionRef) -> Iterator[Item]:
        from sessionary.layouts.agents.opencode_rows import messages_of

        storage = _storage_of(ref.locator)
        loose: dict[str, list[str]] | None = None
        for path in self._paths(f"{storage}/message/{ref.session_id}", ".json"):
            value = decoded(read_bytes(self._fs, path) or b"", Place(path))
            if isinstance(value, Problem):
                yield value
                continue
            message_id = str(value.get("id") or os.path.basename(path).removesuffix(".json"))
            paths = self._paths(f"{storage}/part/{message_id}", ".json")
            if not paths:
                loose = self._loose_parts(f"{storage}/part") if loose is None else loose
                paths = loose.get(message_id, [])
            read = [decoded(read_bytes(self._fs, one) or b"", Place(one)) for one in paths]
            yield from (one for one in read if isinstance(one, Problem))
            parts = [one for one in read if not isinstance(one, Problem)]
            yield from messages_of(message_id, value, parts, Place(path))

    def _loose_parts(self, folder: str) -> dict[str, list[str]]:
        """The parts that old versions store in one folder, by their message."""
        found: dict[str, list[str]] = {}
        for path in self._paths(folder, ".json"):
            found.setdefault(str(self._document(path).get("messageID")), []).append(path)
        return found

    def files(self, ref: SessionRef) -> dict[str, str]:
        storage = _storage_of(ref.locator)
        paths, loose = [ref.locator], self._loose_parts(f"{storage}/part")
        for path in self._paths(f"{storage}/message/{ref.session_id}", ".json"):
            message_id = os.path.basename(path).removesuffix(".json")
            parts = self._paths(f"{storage}/part/{message_id}", ".json")
            paths += [path, *(parts or loose.get(message_id, []))]
        beside = (f"{storage}/{folder}/{ref.session_id}.json" for folder in ("todo", "session_diff"))
        paths += [path for path in beside if is_file(self._fs, path)]
        root = f"{os.path.dirname(storage)}/"
        return {path.removeprefix(root): path for path in paths}

    def place_of_rows(self, ref: SessionRef) -> str | None:
        path, is_row, session_id = ref.locator.partition("#")
        digest = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        program = "kilo" if os.path.basename(path).startswith("kilo") else "opencode"
        return f"{program}-{digest}.db#{session_id}" if is_row else None

    def rows(self, ref: SessionRef, take: Take = list) -> list[bytes]:
        from sessionary.layouts.agents import sql_rows  # here, since few commands need them

        place = (self.place_of_rows(ref) or "").partition("#")[0]
        return sql_rows.dump(Database(ref.locator.partition("#")[0], self._fs), ref, place, TABLES, take=take)

    # -- the protocol

    def ref_for_path(self, folder: Path) -> SessionRef | None:
        path = str(folder.absolute())
        if "#" not in path or not path.startswith(tuple(f"{root}/" for root in self._roots())):
            return super().ref_for_path(folder)
        return SessionRef(self.name, path.partition("#")[2], path, None)

    def fingerprint(self, ref: SessionRef) -> bytes:
        if ref.locator in self._fingerprints:
            return self._fingerprints.pop(ref.locator)
        path, is_row, session_id = ref.locator.partition("#")
        if not is_row:
            return self._fingerprint_of_files(ref)
        try:
            return self._sessions(Database(path, self._fs), session_id).get(session_id, UNKNOWN)
        except (NotFound, StorageFailed, Corrupt):
            return UNKNOWN

    def _fingerprint_of_files(self, ref: SessionRef) -> bytes:
        storage = _storage_of(ref.locator)
        messages = f"{storage}/message/{ref.session_id}"
        folders = [f"{storage}/part/{name.removesuffix('.json')}" for name in self._names(messages)]
        found = [fingerprint_of(self._fs, one, self._now()) for one in (ref.locator, messages, *folders)]
        return blake2b(b"".join(found), digest_size=16).digest() if all(found) else UNKNOWN

    def _items(self, ref: SessionRef, after: Cursor | None) -> Iterator[Item]:
        try:
            opened = self._open(ref)
        except Corrupt as error:
            raise StorageFailed(error.message, path=ref.locator, hint=error.hint) from error
        if opened is None:
            if after is not None:
                yield Reset()
            yield from self._facts(self._document(ref.locator))
            yield from self._of_files(ref)
            return
        database, tables, row = opened
        versions = self._versions(database, tables, row)
        start = read_before(versions, after)
        if start is None:
            yield Reset()
            start = 0
        origin, forked = self._origin(database, tables, row)
        yield from self._facts(row, origin)
        for at in range(start, len(versions), PAGE):
            page = {one.message: one for one in versions[at : at + PAGE]}
            for name, item in self._rows(database, tables, list(page)):
                if not isinstance(item, Message):
                    yield item
                    continue
                is_copy = forked and item.time and item.time < forked
                message = replace(item, usage=None) if is_copy else item
                yield message if page[name].shown else Aside(message)
        if hidden := sum(not one.shown for one in versions):
            yield _not_shown(ref, hidden)
            return  # without a cursor: a prompt removes what a revert took back
        settled = max((one.changed for one in versions), default=0) / 1000 < self._now() - MTIME_GRACE
        if settled and all("time_updated" in table.columns for table in tables.messages):
            yield cursor_behind(versions)

    def _origin(
        self, database: Database, tables: _Tables, row: Mapping[str, Any]
    ) -> tuple[str | None, datetime | None]:
        """The session that this one was forked from, and when if it is there.

        Older messages are copies, whose tokens count there.
        """
        from sessionary.codec.times import parse_time

        origin = row.get("fork_session_id")
        if not isinstance(origin, str):
            origin = _copied_from(database, tables, row)
            return origin, parse_time(row.get("time_created")) if origin else None
        for others in _generations(database):
            if database.fetch(f"SELECT 1 FROM {others.session} WHERE id = ?", (origin,)):
                return origin, parse_time(row.get("time_created"))
        return origin, None

    def opening(self, ref: SessionRef) -> Iterator[Fact]:
        """The facts of its row, or of its document."""
        try:
            opened = self._open(ref)
        except Corrupt:
            return  # reported by `read`
        yield from self._facts(self._document(ref.locator) if opened is None else opened[2])

    def _facts(self, row: Mapping[str, Any], origin: str | None = None) -> Iterator[Fact]:
        for name, value in (
            ("title", row.get("title")),
            ("cwd", row.get("directory")),
            ("parent", row.get("parent_id") or row.get("parentID") or origin),
            ("nested", row.get("parent_id") or row.get("parentID")),
        ):
            if isinstance(value, str) and value:
                yield Fact(name, value)

    def header(self, ref: SessionRef, fold: Fold) -> Header:
        from sessionary.codec.times import parse_time  # here and below: a list that reads nothing needs none

        try:
            opened = self._open(ref)
        except (StorageFailed, Corrupt):
            return Header()  # reported by `read`
        if opened is None:
            return super().header(ref, fold)
        database, tables, row = opened
        stored = [f"SELECT length(data) FROM {table.name} WHERE session_id = ?" for table in tables.messages]
        stored += [f"SELECT length(part.data) FROM {_PARTS}" for table in tables.messages if table.of_part]
        size = sum(length or 0 for query in stored for (length,) in database.fetch(query, (ref.session_id,)))
        stated = parse_time(row.get("time_updated"))
        updated, problems = last_change(
            [("the newest message", fold.updated), ("the session", stated)], 0.0, self._now(), ref.locator
        )
        return Header(
            created=parse_time(row.get("time_created")),
            updated=updated,
            size=size,
            problems=problems,
        )

    def raw(self, ref: SessionRef, place: Place) -> bytes:
        path, is_row, key = (place.path or ref.locator).partition("#")
        if not is_row:
            return read_bytes(self._fs, path) or b""
        table, _, row = key.partition("/")
        if table not in ("message", "part", "session_message"):
            raise not_found(place.path or "", f"There is no record {key}")
        rows = Database(path, self._fs).fetch(f"SELECT CAST(data AS BLOB) FROM {table} WHERE id = ?", (row,))
        if not rows:
            raise not_found(place.path or "", f"There is no record {key}")
        return stored_bytes(rows[0][0])

    def parts(self, ref: SessionRef) -> Iterator[Part]:
        path, is_row, _ = ref.locator.partition("#")
        if not is_row:
            yield from super().parts(ref)
            return
        yield Part(os.path.basename(path), path, PartKind.DOCUMENT, self.header(ref, _empty_fold()).size)


def _storage_of(path: str) -> str:
    """The folder `storage` that the file of a session is in."""
    return os.path.dirname(os.path.dirname(os.path.dirname(path)))


def _empty_fold() -> Fold:
    from sessionary.transcript.fold import Fold

    return Fold()


def _generations(database: Database) -> Iterator[_Tables]:
    """The generations that a database holds, the newest first."""
    for session, names in (("session_v2", ("session_message",)), ("session", ("message", "session_message"))):
        of_session, messages = database.columns(session), []
        for name in names:
            columns = frozenset(database.columns(name))
            if {"id", "session_id", "data"} <= columns:
                of_part = database.columns("part") if name == "message" else []
                messages.append(_Messages(name, columns, frozenset(of_part)))
        if "id" in of_session and messages:
            yield _Tables(session, frozenset(of_session), messages)


def _copied_from(database: Database, tables: _Tables, row: Mapping[str, Any]) -> str | None:
    """The newest older session of the same folder that holds the last message that is older than this session.

    Some versions copy the messages of a fork, times included, and store no link to the session that they come from.
    """
    table = tables.messages[0]
    if table.name != "message" or not {"directory", "time_created"} <= tables.of_session:
        return None
    if "time_created" not in table.columns:
        return None
    began = row["time_created"]
    query = "SELECT max(time_created) FROM message WHERE session_id = ? AND time_created < ?"
    [(last,)] = database.fetch(query, (row["id"], began))
    query = (
        "SELECT session.id FROM session CROSS JOIN message ON message.session_id = session.id"
        " AND message.time_created = ? WHERE session.directory = ? AND session.time_created < ?"
        " ORDER BY session.time_created DESC LIMIT 1"
    )
    found = database.fetch(query, (last, row["directory"], began)) if last is not None else []
    return str(found[0][0]) if found else None


def _reverted(row: Mapping[str, Any]) -> str | None:
    """The first message that a revert took back: OpenCode keeps those behind it until the next prompt."""
    stated = row.get("revert")
    value = decoded(stated, Place(None)) if isinstance(stated, str | bytes) else {}
    if isinstance(value, Problem):
        return None
    message = value.get("messageID")
    return message if isinstance(message, str) else None


def _not_shown(ref: SessionRef, count: int) -> Problem:
    are = "message that was reverted is" if count == 1 else "messages that were reverted are"
    remedy = "none needed; `sessionary show --branches` shows them"
    return Problem.of_file("not_shown", Severity.note, ref.locator, f"{count} {are} not shown", remedy)


def _number(value: Any) -> int:
    """A time in milliseconds; old rows have it as text."""
    if isinstance(value, int | float):
        return int(value)
    from sessionary.codec.times import parse_time

    time = parse_time(value)
    return 0 if time is None else int(time.timestamp() * 1000)
