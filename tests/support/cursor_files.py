"""The stores of Cursor for tests: chat stores with their protobuf, and the database of the editor."""

import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

KEY = "c0ffee5ecretc0ffee5ecret+/="
"""A key of encryption, which must not come out anywhere."""
START = 1_772_000_000_000


def field(number: int, data: bytes) -> bytes:
    """A field of protobuf that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """A number of protobuf."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def compact(value: Any) -> str:
    """JSON as JavaScript writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Chat:
    """A chat store of the command line. Each message writes a new root, as Cursor does."""

    def __init__(self, home: Path, name: str, **document: Any) -> None:
        self.folder = home / "chats" / "0f" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "store.db"
        self.meta: dict[str, Any] = {"agentId": name, "name": "New Agent", "blobEncryptionKey": KEY}
        self.order: list[str] = []
        self.document = {"schemaVersion": 1, "createdAtMs": START, "blobEncryptionKey": KEY, **document}
        (self.folder / "meta.json").write_text(json.dumps(self.document))
        self.run("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
        self.run("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        self.write()

    def run(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(statement, values)

    def blob(self, data: bytes) -> str:
        """Store a blob, and return its id."""
        name = sha256(data).hexdigest()
        self.run("INSERT OR IGNORE INTO blobs VALUES (?, ?)", name, data)
        return name

    def add(self, *records: dict[str, Any] | bytes) -> None:
        """Append messages; bytes are taken as they are."""
        for one in records:
            self.order.append(self.blob(one if isinstance(one, bytes) else compact(one).encode()))
        self.write()

    def write(self) -> None:
        """Write the root and what names it."""
        root = b"".join(field(1, bytes.fromhex(one)) for one in self.order)
        root += varint(10 << 3) + varint(300) + field(9, b"file:///home/u/my%20app")
        self.meta["latestRootBlobId"] = self.blob(root)
        self.run("INSERT OR REPLACE INTO meta VALUES ('0', ?)", compact(self.meta).encode().hex())


class Editor:
    """The database of the editor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "globalStorage" / "state.vscdb"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.listed: dict[str, list[dict[str, Any]]] = {}
        for table in ("ItemTable", "cursorDiskKV"):
            self.run(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        self.run("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', ?)", KEY)

    def run(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(statement, values)

    def put(self, key: str, value: Any) -> None:
        """Store a row; texts and bytes are taken as they are."""
        stored = value if isinstance(value, str | bytes) or value is None else compact(value)
        self.run("INSERT INTO cursorDiskKV VALUES (?, ?)", key, stored)

    def session(self, session: str, **more: Any) -> None:
        """Write the row of a session."""
        document = {
            "_v": 17,
            "composerId": session,
            "name": "A title",
            "createdAt": START,
            "lastUpdatedAt": START + 1000,
            "modelConfig": {"modelName": "opus"},
            "fullConversationHeadersOnly": self.listed.setdefault(session, []),
            "blobEncryptionKey": KEY,
            "speculativeSummarizationEncryptionKey": KEY,
            **more,
        }
        self.put(f"composerData:{session}", document)

    def bubble(self, session: str, name: str, kind: int, **more: Any) -> None:
        """Add a message to the list of a session that is yet to be written, and its row."""
        self.listed.setdefault(session, []).append({"bubbleId": name, "type": kind})
        time = f"2026-03-01T10:00:{len(self.listed[session]) % 60:02d}.000Z"
        value = {"_v": 3, "bubbleId": name, "type": kind, "createdAt": time, **more}
        self.put(f"bubbleId:{session}:{name}", value)


def tool(call_id: str, name: str = "read_file_v2", status: str = "completed", **more: Any) -> dict[str, Any]:
    """A call of a tool, as the editor stores it."""
    params = json.dumps({"path": "a.txt"})
    return {"tool": 40, "name": name, "toolCallId": call_id, "params": params, "status": status, **more}
