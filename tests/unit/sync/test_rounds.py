"""A backlog goes in rounds that each end; a document goes as a whole, however long it is, with the last of them."""

from hashlib import sha256
from pathlib import Path

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.heads import decode
from sessionary.sync.report import SyncStatus
from sessionary.sync.upload_plan import ROUND
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.policy_world import BRAINSTORM, PolicyDevice
from tests.support.sync_world import Device

SMALL = 50
LINES = 40 * ROUND


class Watched(MemoryRemote):
    """Reports for each head that is swapped in which files are; more of them than are needed are refused."""

    def __init__(self, server: MemoryServer, most: int = 1000) -> None:
        super().__init__(server, "me")
        self.most = most
        self.heads: list[set[str]] = []

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        if len(self.heads) == self.most:
            raise RemoteError("there is no end of heads")
        self.heads.append({part.name for part in decode(name, data).parts})
        return super().swap_head(name, data, etag)


def long_text() -> str:
    """A document that no head has room for: nothing in it comes again."""
    return "session:\n  id: idea\n  slug: idea\n  notes:\n" + "".join(
        f"  - {sha256(str(n).encode()).hexdigest()}\n" for n in range(LINES)
    )


def test_a_long_brainstorm_is_one_head_and_comes_whole(tmp_path: Path) -> None:
    server = MemoryServer()
    a, b = (PolicyDevice(tmp_path, name, (BRAINSTORM,), block=SMALL) for name in "ab")
    (a.storms / "idea.yaml").write_text(long_text())
    remote = Watched(server, 1)
    (outcome,) = a.engine(BRAINSTORM, remote).push().outcomes
    assert outcome.standing is SyncStatus.PUSHED
    assert remote.heads == [{"session.yaml"}]
    (outcome,) = b.engine(BRAINSTORM, server.remote()).pull().outcomes
    assert outcome.standing is SyncStatus.PULLED
    assert (b.storms / "idea.yaml").read_text() == long_text()


def test_a_long_document_beside_a_conversation_comes_whole(tmp_path: Path) -> None:
    server = MemoryServer()
    a, b = (Device(tmp_path, name, block=SMALL) for name in "ab")
    a.write("one", ["x"])
    (a.sessions / "one" / "config.md").write_text(long_text())
    (outcome,) = a.engine(Watched(server, 1)).push().outcomes
    assert outcome.standing is SyncStatus.PUSHED
    b.engine(server.remote()).pull()
    assert b.files() == a.files()
    (outcome,) = a.engine(Watched(server, 0)).push().outcomes
    assert outcome.standing is SyncStatus.IN_STEP


@pytest.mark.parametrize("cut_off", [0, 1, 2, 3])
def test_documents_go_with_the_last_round_whenever_a_push_is_cut_off(tmp_path: Path, cut_off: int) -> None:
    server = MemoryServer()
    a, b = (Device(tmp_path, name, block=SMALL) for name in "ab")
    a.write("one", [f"turn {n}" for n in range(4 * ROUND)])
    (a.sessions / "one" / "config.md").write_text(long_text())
    broken = Watched(server, cut_off)
    (outcome,) = a.engine(broken).push().outcomes
    assert outcome.standing is SyncStatus.FAILED
    assert all(names == {"transcript.jsonl"} for names in broken.heads)
    whole = Watched(server)
    (outcome,) = a.engine(whole).push().outcomes
    assert outcome.standing is SyncStatus.PUSHED
    assert [names for names in whole.heads if "config.md" in names] == whole.heads[-1:]
    b.engine(server.remote()).pull()
    assert b.files() == a.files()
