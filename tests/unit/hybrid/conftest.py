"""Machines: homes with a store in each, around one remote."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary import HybridSessionStore, PullResult, SyncResult
from sessionary.sync.remote import Remote
from tests.support.memory_remote import MemoryServer

META = {"session_id": "s", "created": "2025-01-31T12:00:00.000Z", "bundle": "bundle:x"}


def say(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text, "timestamp": "t"} for text in texts]


class Machine:
    """A home, and the store that is open in it."""

    def __init__(self, root: Path, remote: Callable[[], Remote], **options: Any) -> None:
        self.sessions = root / "home" / "projects" / "-work" / "sessions"
        self._options = {"remote": remote, "state_dir": root / "state", **options}
        self.store = self._opened()

    def _opened(self) -> HybridSessionStore:
        return HybridSessionStore(self.sessions, **self._options)

    def restart(self) -> None:
        """The program ends, and begins again."""
        self.store.close()
        self.store = self._opened()

    def write(self, *texts: str, session: str = "s") -> None:
        """Add messages to a session, as an agent does: load it, save all of it."""
        there = self.store.load(session)[0] if self.store.exists(session) else []
        self.store.save(session, [*there, *say(*texts)], {**META, "session_id": session})

    def texts(self, session: str = "s") -> list[str]:
        return [message["content"] for message in self.store.load(session)[0]]

    def sync(self) -> SyncResult:
        return asyncio.run(self.store.sync())

    def pull(self) -> PullResult:
        return asyncio.run(self.store.pull())

    def files(self) -> dict[str, bytes]:
        """What is carried of all sessions."""
        return {
            f"{folder.name}/{name}": (folder / name).read_bytes()
            for folder in self.sessions.iterdir()
            if folder.name[0] != "."
            for name in ("transcript.jsonl", "metadata.json")
        }


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def machine(tmp_path: Path, server: MemoryServer) -> Iterator[Callable[..., Machine]]:
    """Makes machines around one server; their stores are closed at the end."""
    made: list[Machine] = []

    def make(name: str, remote: Callable[[], Remote] = server.remote, **options: Any) -> Machine:
        made.append(Machine(tmp_path / name, remote, **options))
        return made[-1]

    yield make
    for one in made:
        one.store.close(0.2)
