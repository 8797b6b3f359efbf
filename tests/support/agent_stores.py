"""Stores of all agents in one home directory, for tests that run over every kind: each with a session or several.

Beside the sessions lie credentials, which no command may open, and files that belong to a session.
"""

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.support.agent_files import as_bytes, copilot_id, write_lines
from tests.support.cursor_files import KEY, Chat, Editor

CLAUDE = "3f0c81d2-0000-4000-8000-000000000001"
CODEX = "0190a1b2-0000-7000-8000-000000000002"
CODEX_PAGE = "0190a1b2-0000-7000-8000-00000000000a"
CODEX_FORK = "0190a1b2-0000-7000-8000-000000000003"
COPILOT = "3f0c81d2-0000-4000-8000-000000000004"
GEMINI = "3f0c81d2-0000-4000-8000-000000000005"
OPENCODE = "ses_0000000000000006"
OPENCODE_FILES = "ses_0000000000000007"
PI = "0190a1b2-0000-7000-8000-000000000008"
QWEN = "3f0c81d2-0000-4000-8000-000000000009"
VSCODE = "3f0c81d2-0000-4000-8000-00000000000b"
CURSOR_EDITOR = "3f0c81d2-0000-4000-8000-00000000000c"
CURSOR_CHAT = "3f0c81d2-0000-4000-8000-00000000000d"
CURSOR_TALK = "3f0c81d2-0000-4000-8000-00000000000e"

IDS = {
    "claude_code": [CLAUDE],
    "codex": [CODEX, CODEX_FORK],
    "copilot_cli": [COPILOT],
    "cursor": [CURSOR_CHAT, CURSOR_EDITOR, CURSOR_TALK],
    "gemini": [GEMINI[:8]],
    "opencode": [OPENCODE, OPENCODE_FILES],
    "pi": [PI],
    "qwen": [QWEN],
    "vscode_chat": [VSCODE],
}
"""The sessions of each kind, without those of sub-agents."""

SECRETS = (KEY.encode(), KEY.encode().hex().encode(), b"share-secret")
"""What stands in files of sessions and is in no archive."""

CREDENTIALS = ("auth.json", ".credentials.json", "oauth_creds.json")
TIME = "2026-03-01T09:00:00.000Z"
VARIABLES = (
    "CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME OPENCODE_DB PI_CODING_AGENT_DIR QWEN_HOME"
    " CURSOR_DATA_DIR CURSOR_CONFIG_DIR SESSIONARY_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME"
).split()


def enter(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder the home directory of this process."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    (home / "work").mkdir(exist_ok=True)
    monkeypatch.chdir(home / "work")


def make(home: Path) -> None:
    """Make the store of every agent below a home directory, older than a clock of a file system can resolve."""
    for store in (_claude, _codex, _copilot, _cursor, _gemini, _opencode, _pi, _qwen, _vscode):
        store(home)
    for folder in (".claude", ".codex", ".gemini", ".qwen", ".copilot", ".pi/agent", ".local/share/opencode"):
        for name in CREDENTIALS:
            (home / folder / name).write_text('{"token": "secret"}')
    age(home)


def age(home: Path) -> None:
    """Set the times of all files to an hour ago. Their change times stay."""
    then = time.time() - 3600
    for path in sorted(home.rglob("*"), reverse=True):
        os.utime(path, (then, then))


def _claude(home: Path) -> None:
    folder = home / ".claude" / "projects" / "-home-u-app"
    user = {"type": "user", "uuid": "u1", "parentUuid": None, "cwd": "/home/u/app", "timestamp": TIME}
    said = {**user, "message": {"role": "user", "content": "Fix the build of claude"}}
    write_lines(folder / f"{CLAUDE}.jsonl", said, b'{"type":"user","torn')
    below = {**user, "isSidechain": True, "sessionId": CLAUDE, "agentId": "x1"}
    sub = {**below, "message": {"role": "user", "content": "Look at the zebra"}}
    write_lines(folder / CLAUDE / "subagents" / "agent-x1.jsonl", sub)
    (folder / CLAUDE / "tool-results").mkdir()
    (folder / CLAUDE / "tool-results" / "t1.txt").write_bytes(b"\xff\x00 result\r\n")


def _codex_line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def _codex(home: Path) -> None:
    day = home / ".codex" / "sessions" / "2026" / "03" / "01"
    meta = {"timestamp": TIME, "cwd": "/home/u/app", "cli_version": "0.99.0"}
    said = _codex_line(
        "response_item", type="message", role="user", content=[{"type": "input_text", "text": "Fix codex"}]
    )
    first = day / f"rollout-2026-03-01T09-00-00-{CODEX}.jsonl"
    write_lines(first, _codex_line("session_meta", id=CODEX, **meta), said)
    base = {"thread_id": CODEX, "end_byte_offset": first.stat().st_size}
    page = _codex_line("session_meta", id=CODEX, history_base=base, **meta)
    compressed = zstandard.ZstdCompressor().compress(as_bytes(page, said))
    (day / f"rollout-2026-03-01T10-00-00-{CODEX}_{CODEX_PAGE}.jsonl.zst").write_bytes(compressed)
    fork = _codex_line("session_meta", id=CODEX_FORK, history_base=base, **meta)
    write_lines(day / f"rollout-2026-03-01T11-00-00-{CODEX_FORK}.jsonl", fork, said)


def _copilot(home: Path) -> None:
    folder = home / ".copilot" / "session-state" / COPILOT
    about = {"version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.102", "startTime": TIME}
    start = {"sessionId": COPILOT, **about}
    write_lines(
        folder / "events.jsonl",
        {"type": "session.start", "id": copilot_id(1), "parentId": None, "timestamp": TIME, "data": start},
        {
            "type": "user.message",
            "id": copilot_id(2),
            "parentId": copilot_id(1),
            "timestamp": TIME,
            "data": {"content": "Fix copilot"},
        },
    )
    (folder / "workspace.yaml").write_text(f"id: {COPILOT}\ncwd: /home/u/app\n")


def _cursor(home: Path) -> None:
    said = {"role": "user", "content": "Fix cursor"}
    Chat(home / ".cursor", CURSOR_CHAT).add(said)
    editor = Editor(home / ".config" / "Cursor" / "User")
    editor.bubble(CURSOR_EDITOR, "b1", 1, text="Fix the editor of cursor")
    editor.session(CURSOR_EDITOR)
    folder = home / ".cursor" / "projects" / "app" / "agent-transcripts" / CURSOR_TALK
    write_lines(
        folder / f"{CURSOR_TALK}.jsonl", {"role": "user", "message": {"content": "Fix the transcript"}}
    )


def _gemini(home: Path) -> None:
    chats = home / ".gemini" / "tmp" / "app" / "chats"
    meta = {"projectHash": "app", "startTime": TIME, "lastUpdated": TIME}
    said = {"id": "1", "timestamp": TIME, "type": "user", "content": "Fix gemini"}
    write_lines(
        chats / f"session-2026-03-01T09-00-{GEMINI[:8]}.jsonl",
        {"sessionId": GEMINI, "kind": "main", **meta},
        said,
    )
    write_lines(chats / GEMINI / "sub1.jsonl", {"sessionId": "sub1", "kind": "subagent", **meta}, said)


def _opencode(home: Path) -> None:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "opencode.db", isolation_level=None)) as connection:
        connection.executescript(
            """
            CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, title TEXT, directory TEXT,
                                  time_created INTEGER, time_updated INTEGER);
            CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER,
                                  data TEXT);
            CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
                               time_updated INTEGER, data TEXT, extra);
            CREATE TABLE session_share (session_id TEXT, secret TEXT);
            """
        )
        row = (
            OPENCODE,
            "global",
            None,
            "Opencode title",
            "/home/u/app",
            1_772_000_000_000,
            1_772_000_000_000,
        )
        connection.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?)", row)
        connection.execute("INSERT INTO session_share VALUES (?, 'share-secret')", (OPENCODE,))
        add_row(connection, 1)
    storage = folder / "storage"
    for path, value in {
        f"session/global/{OPENCODE_FILES}.json": {
            "id": OPENCODE_FILES,
            "title": "In files",
            "directory": "/home/u",
        },
        f"message/{OPENCODE_FILES}/msg_1.json": {
            "id": "msg_1",
            "role": "user",
            "time": {"created": 1772000000000},
        },
        "part/msg_1/prt_1.json": {
            "id": "prt_1",
            "messageID": "msg_1",
            "type": "text",
            "text": "Fix the files",
        },
    }.items():
        (storage / path).parent.mkdir(parents=True)
        (storage / path).write_text(json.dumps(value))


def add_row(connection: sqlite3.Connection, number: int) -> None:
    """Add a message with a part to the session in the database of OpenCode."""
    at, message = 1_772_000_000_000 + number * 1000, f"msg_{number:03}"
    data = json.dumps({"role": "user", "time": {"created": at}})
    connection.execute("INSERT INTO message VALUES (?,?,?,?,?)", (message, OPENCODE, at, at, data))
    part = json.dumps({"type": "text", "text": f"Fix opencode {number}"})
    row = (f"prt_{number:03}", message, OPENCODE, at, at, part, b"\x00\xff")
    connection.execute("INSERT INTO part VALUES (?,?,?,?,?,?,?)", row)


def _pi(home: Path) -> None:
    path = home / ".pi" / "agent" / "sessions" / "--home-u-app--" / f"2026-03-01T09-00-00-000Z_{PI}.jsonl"
    head = {"type": "session", "version": 3, "id": PI, "timestamp": TIME, "cwd": "/home/u/app"}
    said = {"type": "message", "id": "e1", "parentId": None, "timestamp": TIME}
    write_lines(path, head, {**said, "message": {"role": "user", "content": "Fix pi"}})


def _qwen(home: Path) -> None:
    project = home / ".qwen" / "projects" / "-home-u-app"
    said = {
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": QWEN,
        "timestamp": TIME,
        "type": "user",
        "cwd": "/home/u/app",
    }
    words = {**said, "message": {"role": "user", "parts": [{"text": "Fix qwen"}]}}
    write_lines(project / "chats" / f"{QWEN}.jsonl", words)
    write_lines(project / "subagents" / QWEN / "agent-1.jsonl", {**words, "uuid": "u2", "isSidechain": True})


def _vscode(home: Path) -> None:
    place = home / ".config" / "Code" / "User" / "workspaceStorage" / "0123abcd"
    asked = {
        "requestId": "r1",
        "timestamp": 1_772_000_000_000,
        "message": {"text": "Fix vscode"},
        "response": [],
    }
    write_lines(
        place / "chatSessions" / f"{VSCODE}.json",
        {"version": 3, "sessionId": VSCODE, "creationDate": 1_772_000_000_000, "requests": [asked]},
    )
    (place / "workspace.json").write_text(json.dumps({"folder": "file:///home/u/app"}))
