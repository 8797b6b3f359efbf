"""Following a session: each message once, as it is added, whatever is half written."""

import json
import threading
from pathlib import Path

import pytest

from sessionary import Workspace
from sessionary.model import SessionRef
from sessionary.testing.layout_suite import CountingFs
from tests.e2e.test_cli_finding import LOGIN, said, store

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
