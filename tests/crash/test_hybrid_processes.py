"""Programs with a hybrid store, killed while they write and send: the next one sends the rest, and others get it."""

import asyncio
import os
from pathlib import Path

import pytest

from sessionary import HybridSessionStore
from tests.support.file_remote import FileRemote
from tests.support.torture import torture

SOAK = 10 if os.environ.get("SESSIONARY_SOAK") else 1

# Each worker has sessions of its own, and sends while it writes; which of the two it is killed in, the seed says.
WRITER = """
import asyncio, sys
from sessionary import HybridSessionStore
from tests.support.file_remote import FileRemote
from tests.support.torture import ack, spec
me = spec()
store = HybridSessionStore(sys.argv[1], remote=lambda: FileRemote(sys.argv[2]), state_dir=sys.argv[3], project="p")
for count in range(int(sys.argv[4])):
    session = f"own{me.number}.{count % 2}"
    content = f"{me.run}.{count} " + "x" * (20_000 if count % 3 else 200_000)
    store.append(session, [{"role": "user", "content": content}], {"session_id": session})
    ack([session, content.split()[0]])
    if count % 2:
        asyncio.run(store.sync())
"""


@pytest.mark.lane("sigkill")
def test_killed_programs_leave_nothing_behind_that_the_next_does_not_send(tmp_path: Path) -> None:
    base, remote = tmp_path / "home" / "sessions", tmp_path / "remote"
    promises = torture(
        WRITER,
        [str(base), str(remote), str(tmp_path / "state"), "12"],
        workers=2,
        kills=8 * SOAK,
        seed=3,
    )
    owed = {tuple(promise.value) for promise in promises}
    assert owed

    def opened(place: Path, state: Path) -> HybridSessionStore:
        return HybridSessionStore(place, remote=lambda: FileRemote(remote), state_dir=state, project="p")

    with opened(base, tmp_path / "state") as store:
        sent = asyncio.run(store.sync())
        assert (sent.failed, sent.diverged, sent.errors) == (0, 0, [])
        assert asyncio.run(store.sync()).requests == 0
    fresh = tmp_path / "fresh" / "sessions"
    with opened(fresh, tmp_path / "fresh-state") as store:
        got = asyncio.run(store.pull())
        assert (got.errors, got.held_back, got.diverged) == ([], 0, 0)
        found = {
            (session, message["content"].split()[0])
            for session in store.list_sessions()
            for message in store.load(session)[0]
        }
    assert owed <= found
    for folder in (path for path in base.iterdir() if path.name[0] != "."):
        for name in ("transcript.jsonl", "metadata.json"):
            if (folder / name).exists():
                assert (fresh / folder.name / name).read_bytes() == (folder / name).read_bytes()
