"""Following a session: each message once, as it is added, whatever is half written."""

import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sessionary import Workspace
from sessionary.errors import NotFound
from sessionary.model import SessionRef
from sessionary.testing.layout_suite import CountingFs
from tests.e2e.test_cli_finding import LOGIN, said, store
from tests.support import agent_stores

LINES = [json.dumps(record) + "\n" for record in said(LOGIN, "one", "two", "three")[:3]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store(tmp_path, LOGIN, [])


def test_existing_and_added_messages(tmp_path: Path, path: Path) -> None:
    path.write_text(LINES[0])
    seen: list[str] = []
    stop = threading.Event()

    def idle() -> None:
        if len(seen) == 1:
            with path.open("a") as file:
                file.write(LINES[1] + LINES[2][:20])
        elif len(seen) == 2:
            with path.open("a") as file:
                file.write(LINES[2][20:])
        elif len(seen) == 3:
            stop.set()

    ref = SessionRef("claude_code", LOGIN, str(path), "-w-app")
    add = seen.append
    for one in Workspace(tmp_path / ".claude").follow(ref, interval=0.02, stop=stop, idle=idle):
        add(f"{one.index}/{one.turn} {one.message.text}")
    assert seen == ["0/1 one", "1/2 two", "2/3 three"]


def test_only_what_was_added_is_read(tmp_path: Path, path: Path) -> None:
    long = [
        json.dumps(record) + "\n"
        for record in said(LOGIN, *(f"{at} {'x' * 9000}" for at in range(200)))[:200]
    ]
    path.write_text("".join(long[:199]))
    fs, stop, count = CountingFs(), threading.Event(), 0

    def idle() -> None:
        if count == 199 and not stop.is_set():
            fs.bytes_read = 0
            with path.open("a") as file:
                file.write(long[199])
        elif count == 200:
            stop.set()

    ref = SessionRef("claude_code", LOGIN, str(path), "-w-app")
    for _ in Workspace(tmp_path / ".claude", fs=fs).follow(ref, interval=0.02, stop=stop, idle=idle):
        count += 1
    assert count == 200
    assert fs.bytes_read < len(long[199]) + 65536


def test_a_session_that_was_rewound_continues_with_what_is_new(tmp_path: Path, path: Path) -> None:
    path.write_text("".join(LINES))
    seen: list[str] = []
    stop, rounds = threading.Event(), 0

    def idle() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            path.write_text(LINES[0])
        elif rounds == 4:
            path.write_text(LINES[0] + LINES[1].replace("two", "other"))
        elif len(seen) == 4 or rounds == 100:
            stop.set()

    ref = SessionRef("claude_code", LOGIN, str(path), "-w-app")
    add = seen.append
    for one in Workspace(tmp_path / ".claude").follow(ref, interval=0.02, stop=stop, idle=idle):
        add(one.message.text)
    assert seen == ["one", "two", "three", "other"]


def followed(home: Path, ref: SessionRef, *changes: Callable[[], object]) -> list[str]:
    """What is yielded while these changes are made, one after each look that yields nothing more."""
    seen: list[str] = []
    stop, left = threading.Event(), list(changes)

    def idle() -> None:
        seen.append("|")
        if left:
            left.pop(0)()
        else:
            stop.set()

    for one in Workspace(home).follow(ref, interval=0, stop=stop, idle=idle):
        message = one.message
        parts = [*message.thoughts, message.text, *(call.name for call in message.calls)]
        lines = [place.line for place in (message.place, *message.further) if place.line]
        seen.append(f"{one.index} {' '.join(filter(None, parts))}{lines or ''}")
    return seen


def test_a_message_that_is_written_record_by_record(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-w-app" / f"{LOGIN}.jsonl"
    path.parent.mkdir(parents=True)
    number = 0

    def add(role: str, content: object, **message: str) -> Callable[[], object]:
        nonlocal number
        number += 1
        about = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number > 1 else None}
        record = {"type": role, **about, "message": {"role": role, "content": content, **message}}

        def write() -> None:
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")

        return write

    add("user", "Look")()
    ref = SessionRef("claude_code", LOGIN, str(path), "-w-app")
    seen = followed(
        tmp_path / ".claude",
        ref,
        add("assistant", [{"type": "thinking", "thinking": "Hm"}], id="m1"),
        add("assistant", [{"type": "text", "text": "Yes."}], id="m1"),
        add("assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}], id="m1"),
        add("assistant", [{"type": "text", "text": "Done."}], id="m2"),
    )
    written = ["0 Look[1]", "|", "1 Hm[2]", "|", "1 Yes.[3]", "|", "1 Read[4]", "|", "2 Done.[5]", "|"]
    assert seen == written
    (_, whole, _) = (one for one in followed(tmp_path / ".claude", ref) if one != "|")
    assert whole == "1 Hm Yes. Read[2, 3, 4]", "it is one message"


@pytest.mark.parametrize("kind", ["database", "files"])
def test_a_message_that_is_rewritten(tmp_path: Path, kind: str) -> None:
    agent_stores.make(tmp_path)
    home = tmp_path / ".local" / "share" / "opencode"
    session = agent_stores.OPENCODE if kind == "database" else agent_stores.OPENCODE_FILES
    ref = Workspace(home).find(session)

    def write(text: str) -> None:
        data = json.dumps({"id": "prt_1", "messageID": "msg_1", "type": "text", "text": text})
        if kind == "files":
            path = home / "storage" / "part" / "msg_1" / "prt_1.json"
            path.with_name("new").write_text(data)
            path.with_name("new").replace(path)
            return
        with closing(sqlite3.connect(home / "opencode.db", isolation_level=None)) as connection:
            connection.execute("UPDATE part SET data = ?, time_updated = time_updated + 1", (data,))

    seen = followed(home, ref, lambda: write("Fix it"), lambda: write("Fix it now"))
    first = "0 Fix opencode 1" if kind == "database" else "0 Fix the files"
    assert seen == [first, "|", "0 Fix it", "|", "0 Fix it now", "|"]


def test_a_session_that_was_replaced(tmp_path: Path, path: Path) -> None:
    path.write_text("".join(LINES))
    ref = SessionRef("claude_code", LOGIN, str(path), "-w-app")

    def replace() -> None:
        path.with_name("new").write_text(LINES[0].replace("one", "other") + LINES[1] + LINES[2])
        path.with_name("new").replace(path)

    seen = followed(tmp_path / ".claude", ref, replace)
    assert seen == ["0 one[1]", "1 two[2]", "2 three[3]", "|", "0 other[1]", "|"]


def test_a_session_that_is_deleted_names_a_remedy(tmp_path: Path, path: Path) -> None:
    path.write_text(LINES[0])
    ref = SessionRef("claude_code", LOGIN, str(path), "-w-app")
    with pytest.raises(NotFound) as caught:
        for _ in Workspace(tmp_path / ".claude").follow(ref, interval=0.02, idle=path.unlink):
            pass
    assert "`sessionary list`" in str(caught.value.hint)
