"""The sessions of Cursor's editor, which all lie in one database: `User/globalStorage/state.vscdb`.

The table ``cursorDiskKV`` has one row for each session, ``composerData:<session>``, which lists its messages in order,
and one for each message, ``bubbleId:<session>:<message>``. Such databases reach 8 GB, so rows are found by ranges of
keys, which the index answers, and read in pages. A row that changes gets a new rowid. The other rows of the database,
among them credentials, are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from sessionary.disk.fs import Fs, not_found
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.cursor_bubbles import diff_of, messages_of_bubble
from sessionary.layouts.agents.cursor_messages import masked_bytes, record_of
from sessionary.layouts.agents.cursor_store import any_row, missing
from sessionary.layouts.agents.damaged_rows import rows_of
from sessionary.layouts.agents.editor_folders import path_of
from sessionary.layouts.agents.fields import cost_of, list_of, object_of, text_or_none
from sessionary.layouts.agents.reading import setting
from sessionary.layouts.agents.rows import PAGE, cursor_behind, decoded, read_before, stored_bytes
from sessionary.layouts.base import MayMatch
from sessionary.layouts.sqlite import Database
from sessionary.model import (
    Aside,
    Cursor,
    Fact,
    Item,
    Message,
    Place,
    Problem,
    Reset,
    Severity,
    Usage,
    UsageEvent,
)

NAME = "state.vscdb"
SESSION, MESSAGE, DIFF = "composerData:", "bubbleId:", "codeBlockDiff:"
_TABLE = "cursorDiskKV"
_KEPT = [f"(key >= '{one}' || :id || ':' AND key < '{one}' || :id || ';')" for one in (MESSAGE, DIFF)]
TABLES = (
    (_TABLE, f"({' OR '.join(_KEPT)} OR key = '{SESSION}' || :id) ORDER BY rowid"),
    ("composerHeaders", "composerId = :id ORDER BY rowid"),
)
"""The rows of a session that an archive keeps, see `sql_rows.dump`."""
_BETWEEN = f"FROM {_TABLE} WHERE key >= ? AND key < ?"
_COUNTS = f"""SELECT substr(key, 10, instr(substr(key, 10), ':') - 1), count(*), sum(rowid), max(rowid)
FROM {_TABLE} WHERE key >= 'bubbleId:' AND key < 'bubbleId;' AND instr(substr(key, 10), ':') > 1 GROUP BY 1"""
_SESSIONS = (
    f"SELECT substr(key, 14), rowid FROM {_TABLE} WHERE key >= 'composerData:' AND key < 'composerData;'"
)
_HOLDS_MESSAGES = f"""SELECT rowid FROM {_TABLE} WHERE rowid IN (%s) AND value IS NOT NULL
AND (instr(CAST(value AS TEXT), '"conversation":[{{') OR NOT json_valid(CAST(value AS TEXT)))"""
_WITH_CHILDREN = f"""SELECT substr(key, 14), value FROM {_TABLE} WHERE key >= 'composerData:' AND key < 'composerData;'
AND instr(CAST(value AS TEXT), 'omposerIds":["')"""
_CHANGED = f"""SELECT substr(key, 14), CASE WHEN json_valid(CAST(value AS TEXT))
THEN json_extract(CAST(value AS TEXT), '$.lastUpdatedAt') END
FROM {_TABLE} WHERE key >= 'composerData:' AND key < 'composerData;'"""
_OF_HEADERS = ("workspaceId", "isSubagent", "value")


class _Session(NamedTuple):
    """Facts of a session before its messages are read.

    Attributes:
        document: its own row; empty if that cannot be read.
        problem: why not.
        order: the ids of its messages in order.
        rows: the rowid of each message that is stored, by id.
        inline: messages that old versions store within the row of the session, by id.
        listed: what the list of the messages says of each.
    """

    document: dict[str, Any]
    problem: Problem | None
    order: list[str]
    rows: dict[str, int]
    inline: dict[str, Any]
    listed: dict[str, dict[str, Any]]


class EditorState:
    """The sessions in the database of an editor.

    Args:
        path: the database. Two folders above it are those of the workspaces.
    """

    def __init__(self, path: str, fs: Fs) -> None:
        self.path = path
        self.folder = os.path.dirname(os.path.dirname(path))
        self._fs = fs
        self._database = Database(self.path, fs)
        self._headers: list[str] | None = None
        self._parents: dict[str, str] | None = None
        self._places: dict[str, tuple[str | None, dict[str, Any]]] | None = None

    def sessions(self) -> dict[str, bytes]:
        """The fingerprint of each session that has a message. Raises as `Database.fetch`."""
        if not self._database.columns(_TABLE):
            return {}
        counts = {name: rest for name, *rest in self._database.fetch(_COUNTS)}
        rows: dict[str, int] = dict(self._database.fetch(_SESSIONS))
        without = [row for name, row in rows.items() if name not in counts]
        kept = set[int]()
        for at in range(0, len(without), 500):
            page = without[at : at + 500]
            kept |= {
                row for (row,) in self._database.fetch(_HOLDS_MESSAGES % ", ".join("?" * len(page)), page)
            }
        changed = self._changes_of_headers()
        return {
            name: blake2b(
                repr((rows.get(name), counts.get(name), changed.get(name))).encode(), digest_size=16
            ).digest()
            for name in sorted({*counts, *rows})
            if name and (name in counts or rows[name] in kept)
        }

    def fingerprint(self, name: str) -> bytes | None:
        """The fingerprint of one session; None if it has no message. Raises as `Database.fetch`."""
        return self.sessions().get(name)

    def changes(self) -> dict[str, Any]:
        """The time of the last change that each session states. Raises as `Database.fetch`."""
        return dict(self._database.fetch(_CHANGED)) if self._database.columns(_TABLE) else {}

    def times(self, name: str) -> tuple[Any, Any]:
        """The recorded times of creation and last change. Raises as `Database.fetch`."""
        document, _ = self._document(name)
        return document.get("createdAt"), document.get("lastUpdatedAt")

    def size(self, name: str) -> int:
        """The bytes of all rows of a session. Raises as `Database.fetch`."""
        query = f"SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) {_BETWEEN}"
        own = f"SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM {_TABLE} WHERE key = ?"
        return int(
            self._database.fetch(query, _range(MESSAGE, name))[0][0]
            + self._database.fetch(own, (SESSION + name,))[0][0]
        )

    def may_hold(self, name: str, may_match: MayMatch) -> bool:
        """False if no row of a session can be of interest. Raises as `Database.fetch`."""
        query = f"SELECT 1 {_BETWEEN} AND may_match(CAST(value AS BLOB))"
        query += f" UNION ALL SELECT 1 FROM {_TABLE} WHERE key = ? AND may_match(CAST(value AS BLOB)) LIMIT 1"
        return any_row(self._database, query, (*_range(MESSAGE, name), SESSION + name), may_match)

    def raw(self, key: str) -> bytes:
        """A row of a session, with keys of encryption masked; a part of one, if the key ends with `#` and a number.

        Raises:
            as `Database.fetch`, and NotFound if there is none.
        """
        key, _, number = key.partition("#")
        rows = self._values([key])[0] if key.startswith((SESSION, MESSAGE)) else {}
        if key not in rows:
            raise not_found(self.path, f"There is no record {key}")
        if not number:
            return masked_bytes(stored_bytes(rows[key]))
        from sessionary.codec import encode_line, sanitize

        part = object_of(_inline(object_of(record_of(rows[key], Place(self.path)))).get(number))
        return bytes(encode_line(sanitize(part))).rstrip(b"\n")

    def items(self, name: str, after: Cursor | None) -> Iterator[Item]:
        """The content of a session; see `Layout.read`.

        Raises:
            as `Database.fetch`, and NotFound if the session does not exist.
        """
        session = self._session(name)
        loose = [one for one in session.rows if one not in session.listed]
        model = text_or_none(object_of(session.document.get("modelConfig")).get("modelName"))
        model = None if model == "default" else model
        spent = object_of(session.document.get("usageData"))
        # The first of the versions is what concerns all messages.
        versions = [("", repr((model, spent))), *((one, session.rows.get(one)) for one in session.order)]
        whole = session.problem is not None or bool(loose)
        start = read_before(versions, None if whole else after)
        if after is not None and (start is None or whole):
            yield Reset()
        yield from self._facts(name, session.document)
        if not start:
            yield from _costs(spent, session.document)
        if session.problem is not None:
            yield session.problem
        yield from self._messages(name, session, session.order[max((start or 0) - 1, 0) :], model)
        if loose:
            yield _note(self.path, len(loose))
            for item in self._messages(name, session, loose, model):
                yield Aside(item) if isinstance(item, Message) else item
        elif not whole:
            yield cursor_behind(versions)

    # -- one session

    def _document(self, name: str) -> tuple[dict[str, Any], Problem | None]:
        place = Place(f"{self.path}#{SESSION}{name}")
        rows, failed = self._values([SESSION + name])
        if failed:
            return {}, failed[SESSION + name]
        stored = rows.get(SESSION + name)
        if stored is None:
            return {}, _no_session(place)
        value = record_of(stored, place)
        return ({}, value) if isinstance(value, Problem) else (value, None)

    def _session(self, name: str) -> _Session:
        document, problem = self._document(name)
        low, high = _range(MESSAGE, name)
        found = self._database.fetch(f"SELECT key, rowid {_BETWEEN} ORDER BY rowid", (low, high))
        rows = {key[len(low) :]: rowid for key, rowid in found}
        if problem is not None and problem.code == "no_session" and not rows:
            raise not_found(self.path, f"Session '{name}' not found")
        inline = _inline(document)
        listed = {
            one["bubbleId"]: one
            for one in list_of(document.get("fullConversationHeadersOnly"))
            if isinstance(object_of(one).get("bubbleId"), str)
        }
        order = list(listed or inline or rows)
        return _Session(document, problem, order, rows, inline, listed or {one: {} for one in order})

    def _messages(self, name: str, session: _Session, ids: list[str], model: str | None) -> Iterator[Item]:
        for at in range(0, len(ids), PAGE):
            page = ids[at : at + PAGE]
            rows, failed = self._values([f"{MESSAGE}{name}:{one}" for one in page])
            bubbles: dict[str, tuple[Place, Mapping[str, Any] | Problem]] = {}
            for one in page:
                key = f"{MESSAGE}{name}:{one}"
                place = Place(f"{self.path}#{key}")
                if rows.get(key) not in (None, b"null"):
                    bubbles[one] = place, record_of(rows[key], place)
                elif one in session.inline:
                    place = Place(f"{self.path}#{SESSION}{name}#{one}")
                    bubbles[one] = place, session.inline[one]
                else:
                    bubbles[one] = place, failed.get(key) or missing(place)
            diffs = self._diffs(name, [bubble for _, bubble in bubbles.values()])
            for one, (place, bubble) in bubbles.items():
                if isinstance(bubble, Problem):
                    yield bubble
                    continue
                header = session.listed.get(one, {})
                diff = diffs.get(diff_of(bubble) or "")
                yield from messages_of_bubble(one, dict(bubble), header, place, model, diff)

    def _diffs(self, name: str, bubbles: Iterable[Mapping[str, Any] | Problem]) -> dict[str, Any]:
        """The changes of files that these messages refer to, by their ids."""
        wanted = {diff for one in bubbles if not isinstance(one, Problem) and (diff := diff_of(one))}
        keys = {f"{DIFF}{name}:{one}": one for one in wanted}
        rows, _ = self._values(list(keys))
        found = {keys[key]: record_of(value, Place(self.path)) for key, value in rows.items()}
        return {one: value for one, value in found.items() if not isinstance(value, Problem)}

    def _values(self, keys: list[str]) -> tuple[dict[str, Any], dict[str, Problem]]:
        return rows_of(self._database, f"SELECT key, CAST(value AS BLOB) FROM {_TABLE} WHERE key", keys)

    # -- what is said of a session

    def facts(self, name: str) -> Iterator[Fact]:
        """The title, folder, branch and parent of a session, without its messages. Raises as `Database.fetch`."""
        return self._facts(name, self._document(name)[0])

    def _facts(self, name: str, document: dict[str, Any]) -> Iterator[Fact]:
        header, row = self._header(name)
        parent = text_or_none(object_of(document.get("subagentInfo")).get("parentComposerId"))
        parent = parent or text_or_none(document.get("parentComposerId")) or self._parent(name)
        cwd, branch = _folder(document) or _folder(header), text_or_none(document.get("createdOnBranch"))
        title = text_or_none(document.get("name")) or text_or_none(header.get("name"))
        if cwd is None and row.get("workspaceId"):
            cwd = self._folder_of(str(row["workspaceId"]))
        elif cwd is None:
            cwd, old = self._old_places().get(name, (None, {}))
            title, branch = (
                title or text_or_none(old.get("name")),
                branch or text_or_none(old.get("createdOnBranch")),
            )
        nested = parent or row.get("isSubagent") or document.get("isBestOfNSubcomposer") is True
        for key, value in (
            ("title", title),
            ("cwd", cwd),
            ("branch", branch),
            ("parent", parent),
            ("nested", "sub-agent" if nested else None),
        ):
            if value:
                yield Fact(key, value)

    def _header(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The row of a session in the table of headers of newer versions: its document, and its columns."""
        columns = self._header_columns()
        if not columns:
            return {}, {}
        query = f"SELECT {', '.join(columns)} FROM composerHeaders WHERE composerId = ?"
        for values in self._database.fetch(query, (name,)):
            row = dict(zip(columns, values, strict=True))
            value = record_of(row.get("value"), Place(self.path))
            return ({} if isinstance(value, Problem) else value), row
        return {}, {}

    def _header_columns(self) -> list[str]:
        if self._headers is None:
            there = self._database.columns("composerHeaders")
            self._headers = [one for one in _OF_HEADERS if one in there] if "composerId" in there else []
        return self._headers

    def _changes_of_headers(self) -> dict[str, Any]:
        there = self._database.columns("composerHeaders")
        if not {"composerId", "lastUpdatedAt"} <= set(there):
            return {}
        return dict(self._database.fetch("SELECT composerId, lastUpdatedAt FROM composerHeaders"))

    def _parent(self, name: str) -> str | None:
        """The session that lists this one as that of a sub-agent."""
        if self._parents is None:
            self._parents = {}
            for parent, value in self._database.fetch(_WITH_CHILDREN):
                document = object_of(decoded(value, Place(self.path)))
                for key in ("subagentComposerIds", "subComposerIds"):
                    for child in list_of(document.get(key)):
                        if isinstance(child, str) and child != parent:
                            self._parents[child] = parent
        return self._parents.get(name)

    def _folder_of(self, workspace: str) -> str | None:
        """The folder of a workspace."""
        if "/" in workspace or workspace.startswith("."):
            return None
        document = object_of(setting(self._fs, f"{self.folder}/workspaceStorage/{workspace}/workspace.json"))
        return path_of(text_or_none(document.get("folder")) or text_or_none(document.get("workspace")))

    def _old_places(self) -> dict[str, tuple[str | None, dict[str, Any]]]:
        """The folder of each session, and what old versions say of it, in the databases of the workspaces."""
        if self._places is None:
            self._places = {}
            root = f"{self.folder}/workspaceStorage"
            try:
                names = sorted(self._fs.listdir(root))
            except OSError:
                names = []
            for workspace in names:
                for one in self._old_sessions(f"{root}/{workspace}/{NAME}"):
                    name = text_or_none(one.get("composerId"))
                    if name:
                        self._places[name] = self._folder_of(workspace), one
        return self._places

    def _old_sessions(self, path: str) -> list[dict[str, Any]]:
        query = "SELECT value FROM ItemTable WHERE key = 'composer.composerData'"
        try:
            rows = Database(path, self._fs).fetch(query)
        except SessionaryError:  # it only adds a folder and a title
            return []
        document = object_of(decoded(rows[0][0], Place(path))) if rows else {}
        return [one for one in list_of(document.get("allComposers")) if isinstance(one, dict)]


def _range(kind: str, name: str) -> tuple[str, str]:
    """The keys of all rows of a kind that a session has."""
    return f"{kind}{name}:", f"{kind}{name};"


def _inline(document: Mapping[str, Any]) -> dict[str, Any]:
    """The messages that are stored within the row of a session, by id."""
    found: dict[str, Any] = {
        key: one for key, one in object_of(document.get("conversationMap")).items() if isinstance(one, dict)
    }
    for number, one in enumerate(list_of(document.get("conversation"))):
        if isinstance(one, dict):
            found[text_or_none(one.get("bubbleId")) or str(number)] = one
    return found


def _folder(document: Mapping[str, Any]) -> str | None:
    """The folder that a document names."""
    located = object_of(object_of(document.get("agentLocation")).get("environment"))
    for uri in (object_of(document.get("workspaceIdentifier")).get("uri"), located.get("uri")):
        stated = object_of(uri)
        if path := text_or_none(stated.get("fsPath")):
            return path
        if path := path_of(text_or_none(stated.get("external")) or text_or_none(uri)):
            return path
    repositories = map(object_of, list_of(document.get("trackedGitRepos")))
    return next(filter(None, (text_or_none(one.get("repoPath")) for one in repositories)), None)


def _costs(spent: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[UsageEvent]:
    """The recorded cost, by model."""
    from sessionary.codec.times import parse_time

    for model, one in spent.items():
        cents = cost_of(object_of(one).get("costInCents"))
        if cents:
            yield UsageEvent(Usage(cost=cents / 100), model, parse_time(document.get("createdAt")))


def _no_session(place: Place) -> Problem:
    words = "the session lacks its own row: the editor does not show it; its messages are in the order of their rows"
    return Problem.of_file("no_session", Severity.hides_data, place.path or "", words)


def _note(path: str, count: int) -> Problem:
    words = f"{count:,} stored messages that the session does not list are not shown"
    words = "1 stored message that the session does not list is not shown" if count == 1 else words
    remedy = "none needed; `sessionary show --branches` shows them"
    return Problem.of_file("not_shown", Severity.note, path, words, remedy)
