"""The chat store of Cursor's command line, `chats/<folder>/<id>/store.db`, and the `meta.json` beside it.

The table ``blobs`` holds contents by their SHA-256. The row of ``meta``, JSON in hexadecimal, names the root: a
protobuf message whose field 1 lists the messages in order, and whose field 9 is the folder. A message is JSON; in old
versions it is protobuf with JSON in field 4. Blobs that the root does not list are of former states.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sessionary.disk.fs import Fs, not_found
from sessionary.errors import Corrupt
from sessionary.layouts.agents.cursor_messages import masked, masked_bytes, messages_of, record_of
from sessionary.layouts.agents.damaged_rows import rows_of, unreadable
from sessionary.layouts.agents.editor_folders import path_of
from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.agents.rows import PAGE, cursor_behind, read_before, stored_bytes
from sessionary.layouts.base import MayMatch
from sessionary.layouts.sqlite import Database
from sessionary.model import (
    HARNESS,
    TOOL,
    Aside,
    Cursor,
    Fact,
    Item,
    Message,
    Other,
    Place,
    Problem,
    Reset,
    Severity,
    ToolResult,
)

NAME, META = "store.db", "meta.json"
TABLES = (("blobs", "1 ORDER BY rowid"), ("meta", "key NOT LIKE '%EncryptionKey' ORDER BY rowid"))
"""The tables that an archive keeps, see `sql_rows.dump`."""
_UNNAMED = frozenset({"New Agent", "New Chat", "Untitled"})
_DIGEST = 32
_MESSAGES, _FOLDER, _JSON, _OUTPUT = 1, 9, 4, 5
_SAID, _USER = 1, 2  # of a message in protobuf: its text, and the id that only those of the user have
_LOOSE = """SELECT id FROM blobs
WHERE substr(CAST(data AS TEXT), 1, 1) = '{' AND instr(CAST(substr(data, 1, 200) AS TEXT), '"role"') ORDER BY rowid"""


class ChatStore:
    """One session of Cursor's command line."""

    def __init__(self, path: str, fs: Fs) -> None:
        self.path = path
        self._fs = fs
        self._database = Database(path, fs)

    def document(self) -> dict[str, Any]:
        """The content of `meta.json`."""
        return masked(object_of(setting(self._fs, f"{os.path.dirname(self.path)}/{META}")))

    def items(self, after: Cursor | None) -> Iterator[Item]:
        """The content of the store; see `Layout.read`.

        Raises:
            as `Database.fetch`.
        """
        meta, problem = self._meta()
        root, of_root = self._root(text_or_none(meta.get("latestRootBlobId")))
        order = [] if root is None else [one.hex() for one in root.get(_MESSAGES, []) if len(one) == _DIGEST]
        listed = set(order)
        loose, unread = self._loose()
        loose = [name for name in loose if name not in listed]
        problems = [one for one in (problem, of_root, unread) if one is not None]
        model = _model(meta.get("lastUsedModel") or self.document().get("lastUsedModel"))
        rows = dict(self._database.fetch("SELECT id, rowid FROM blobs"))
        # The first of the versions is what concerns all messages.
        versions = [("", model), *((name, rows.get(name)) for name in order)]
        start = read_before(versions, None if problems or loose else after)
        if after is not None and (start is None or problems or loose):
            yield Reset()
        yield from self._facts(meta, root or {})
        yield from problems
        if root is None:
            order, loose = loose, []
        yield from self._messages(order[max((start or 0) - 1, 0) :], model)
        if loose:
            yield _note(self.path, len(loose))
            for item in self._messages(loose, model):
                yield Aside(item) if isinstance(item, Message) else item
        elif not problems:
            yield cursor_behind(versions)

    def facts(self) -> Iterator[Fact]:
        """The title, folder and parent of the session, without its messages. Raises as `items`."""
        meta, _ = self._meta()
        root, _ = self._root(text_or_none(meta.get("latestRootBlobId")))
        return self._facts(meta, root or {})

    def may_hold(self, may_match: MayMatch) -> bool:
        """False if neither a blob nor the title can be of interest. Raises as `items`."""
        titles = (self.document().get("title"), self._meta()[0].get("name"))
        if any(may_match(one.encode("utf-8", "surrogatepass")) for one in titles if isinstance(one, str)):
            return True
        return any_row(
            self._database, "SELECT 1 FROM blobs WHERE may_match(CAST(data AS BLOB)) LIMIT 1", (), may_match
        )

    def raw(self, name: str) -> bytes:
        """A blob, with encryption keys masked. Raises as `items`, and NotFound if there is none."""
        rows = self._database.fetch("SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?", (name,))
        if not rows:
            raise not_found(self.path, f"There is no record {name}")
        return masked_bytes(stored_bytes(rows[0][0]))

    def _meta(self) -> tuple[dict[str, Any], Problem | None]:
        """The values of `meta`; some versions have a row for each value."""
        place = Place(f"{self.path}#meta")
        rows = dict(self._database.fetch("SELECT key, CAST(value AS BLOB) FROM meta"))
        if len(rows) != 1:
            return masked({str(key): _utf8(stored_bytes(value)) for key, value in rows.items()}), None
        (data,) = (stored_bytes(value) for value in rows.values())
        try:
            value = record_of(bytes.fromhex(data.decode("ascii")), place)
        except ValueError:
            value = record_of(data, place)
        return ({}, value) if isinstance(value, Problem) else (value, None)

    def _root(self, name: str | None) -> tuple[dict[int, list[bytes]] | None, Problem | None]:
        """The fields of the root, and what is wrong with it; None for the fields if they cannot be read."""
        if name is None:
            return None, _no_root(self.path, "the store names no list of its messages")
        rows, failed = rows_of(self._database, "SELECT id, CAST(data AS BLOB) FROM blobs WHERE id", [name])
        root = _fields(stored_bytes(rows[name])) if rows else None
        if root is None:
            words = "cannot be read" if rows or failed else "is missing"
            return None, _no_root(self.path, f"the list of the messages, {name}, {words}")
        return root, _changed(name, stored_bytes(rows[name]), Place(f"{self.path}#{name}"))

    def _loose(self) -> tuple[list[str], Problem | None]:
        """The messages that are stored, whether the root lists them or not, or why that is unknown."""
        try:
            return [name for (name,) in self._database.fetch(_LOOSE)], None
        except Corrupt as error:
            return [], unreadable(Place(self.path), error)

    def _facts(self, meta: dict[str, Any], root: dict[int, list[bytes]]) -> Iterator[Fact]:
        document, uris = self.document(), root.get(_FOLDER, [])
        title = text_or_none(document.get("title")) or text_or_none(meta.get("name"))
        of_parent = object_of(meta.get("subagentInfo"))
        nested = bool(of_parent) or document.get("isSubagent") is True
        for name, value in (
            ("title", None if title in _UNNAMED else title),
            (
                "cwd",
                text_or_none(document.get("cwd")) or next(filter(None, map(path_of, map(_utf8, uris))), None),
            ),
            (
                "parent",
                text_or_none(of_parent.get("parentAgentId") or of_parent.get("rootParentAgentId")),
            ),
            ("nested", "sub-agent" if nested else None),
        ):
            if value:
                yield Fact(name, value)

    def _messages(self, names: list[str], model: str | None) -> Iterator[Item]:
        """The messages of these blobs, in this order."""
        for at in range(0, len(names), PAGE):
            page = names[at : at + PAGE]
            rows, failed = rows_of(self._database, "SELECT id, CAST(data AS BLOB) FROM blobs WHERE id", page)
            for name in page:
                place = Place(f"{self.path}#{name}")
                if name not in rows:
                    yield failed.get(name) or missing(place)
                    continue
                data = stored_bytes(rows[name])
                if (changed := _changed(name, data, place)) is not None:
                    yield changed
                yield from _message(name, data, place, model)


def any_row(database: Database, query: str, parameters: tuple[Any, ...], may_match: MayMatch) -> bool:
    """Whether a query that calls the function `may_match` has a row. Raises as `Database.fetch`."""
    from sqlite3 import Connection  # here, since only a search needs it

    def found(connection: Connection) -> bool:
        connection.create_function("may_match", 1, lambda value: may_match(stored_bytes(value)))
        return connection.execute(query, parameters).fetchone() is not None

    return database.read(found)


def missing(place: Place) -> Problem:
    """A message that its session lists and that is not stored."""
    return Problem(
        "missing_message", Severity.lost_data, place.path or "", None, None, "a listed message is not stored"
    )


def _message(name: str, data: bytes, place: Place, model: str | None) -> Iterator[Item]:
    """The messages of one blob."""
    if data.startswith(b"{"):
        value = record_of(data, place)
        yield from [value] if isinstance(value, Problem) else messages_of(value, place, model=model)
        return
    fields = _fields(data) or {}
    inner = record_of(fields[_JSON][0], place) if fields.get(_JSON) else {}
    if not isinstance(inner, Problem) and inner.get("role"):
        yield from messages_of(inner, place, model=model)
        return
    text = _text(fields)
    outputs = masked({"outputs": [_utf8(one) for one in fields.get(_OUTPUT, [])]})["outputs"]
    if text is None:
        yield Message(None, HARNESS, (Other("record", _unknown(name, data)),), place=place)
        return
    role = "user" if fields.get(_USER, [b""])[0] else "assistant"
    content = [text] if text else []
    content += [] if isinstance(inner, Problem) else list_of(inner.get("content"))
    yield from messages_of(masked({"role": role, "content": content}), place, model=model)
    if results := [ToolResult(None, one) for one in outputs if one]:
        yield Message("tool", TOOL, tuple(results), place=place)


def _text(fields: dict[int, list[bytes]]) -> str | None:
    """The text of a message in protobuf: field 1, or field 1 within it; None if it is not a message."""
    for stated in fields.get(_SAID, []):
        inner = _fields(stated)
        text = _utf8(inner[_SAID][0]) if inner and inner.keys() == {_SAID} else _utf8(stated)
        if text is not None and (text.isprintable() or text.isascii() or "\n" in text):
            return text
    return None


def _unknown(name: str, data: bytes) -> dict[str, Any]:
    text = _utf8(data)
    shown = {"text": text} if text is not None else {}
    return masked({"blob": name, "size": len(data), **shown})


def _fields(data: bytes) -> dict[int, list[bytes]] | None:
    """The fields of a protobuf message that hold bytes, by number; None if it is not a message."""
    fields: dict[int, list[bytes]] = {}
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            kind, end = key & 7, at
            if kind == 0:
                _, end = _varint(data, at)
            elif kind == 2:
                length, at = _varint(data, at)
                end = at + length
                fields.setdefault(key >> 3, []).append(data[at:end])
            elif kind in (1, 5):
                end = at + (8 if kind == 1 else 4)
            else:
                return None
            if end > len(data) or not key >> 3:
                return None
            at = end
    except IndexError:
        return None
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends. Raises IndexError if it does not end."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _model(stated: Any) -> str | None:
    if not isinstance(stated, dict):
        return text_or_none(stated)
    return next(filter(None, (text_or_none(stated.get(key)) for key in ("model", "modelId", "id"))), None)


def _no_root(path: str, words: str) -> Problem:
    words += "; all stored messages are shown, in the order in which they were stored"
    return Problem.of_file("no_message_list", Severity.lost_data, path, words)


def _changed(name: str, data: bytes, place: Place) -> Problem | None:
    """A blob whose content is not that of its id; None for one that is as it was stored."""
    if len(name) != 2 * _DIGEST or sha256(data).hexdigest() == name:
        return None
    words = "a record was changed after it was stored: its content does not have the hash that is its id"
    return Problem.of_file("bad_hash", Severity.lost_data, place.path or "", words)


def _note(path: str, count: int) -> Problem:
    words = f"{count:,} stored records of former states of the conversation are not shown"
    words = "1 stored record of a former state of the conversation is not shown" if count == 1 else words
    remedy = "none needed; `sessionary show --branches` shows them"
    return Problem.of_file("not_shown", Severity.note, path, words, remedy)
