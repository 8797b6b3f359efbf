"""What is fetched waits on the disk and not in memory, and is proved before anything here is changed."""

import gc
import os
import random
import tracemalloc
from pathlib import Path

import pytest

from sessionary.disk.scan import LineFile
from sessionary.disk.spool import Spool
from sessionary.errors import Corrupt, StorageFailed
from sessionary.sync.blocks import START, block_id, cut, pack, part_key
from sessionary.sync.heads import PartHead
from sessionary.sync.incoming import fetch
from sessionary.sync.remote import Block, BlockPage
from sessionary.sync.remotes.memory import MemoryRemote, MemoryServer
from sessionary.sync.report import Standing
from sessionary.testing.sync_world import Device

MEGABYTE = 1 << 20
LARGE = 32 * MEGABYTE


def push(path: Path, server: MemoryServer) -> PartHead:
    """Put a file into a remote, as the part `log` of a space `s`."""
    remote, key = server.remote(), part_key("log")
    start, seq, chain = 0, 0, START
    with LineFile(str(path)) as file:
        for end in cut(file, 0, file.size()):
            chain, data = pack(file, start, end, chain)
            remote.put_block("s", block_id(key, seq, chain), data)
            start, seq = end, seq + 1
    return PartHead("log", "journal", start, seq, chain)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, MemoryServer, PartHead]:
    """Bytes that no compression makes smaller."""
    data = random.Random(1).randbytes(LARGE)
    path = tmp_path_factory.mktemp("large") / "log"
    path.write_bytes(data)
    server = MemoryServer()
    return data, server, push(path, server)


def test_the_blocks_of_a_large_file_are_not_held_in_memory(
    tmp_path: Path, large: tuple[bytes, MemoryServer, PartHead]
) -> None:
    data, server, part = large
    at = 0
    tracemalloc.start()
    try:
        theirs = fetch(server.remote(), "s", part, (), 0, Spool(str(tmp_path)))
        for _ in range(2):  # once to prove it, once to write it
            at = 0
            for raw in theirs.rest(None):
                assert raw == data[at : at + len(raw)]
                at += len(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert at == LARGE
    assert peak < LARGE * 0.75, f"{peak / MEGABYTE:.0f} MB"
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_changes_nothing(
    large: tuple[bytes, MemoryServer, PartHead], tmp_path: Path
) -> None:
    _, server, part = large
    with pytest.raises(StorageFailed):
        fetch(server.remote(), "s", part, (), 0, Spool(str(tmp_path / "no such folder")))


class Damaging(MemoryRemote):
    """Changes the last byte of the last block that it gives out."""

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, first, stop, after)
        if page.following is not None or not page.blocks:
            return page
        last = page.blocks[-1]
        return BlockPage(
            (*page.blocks[:-1], Block(last.id, last.data[:-1] + bytes([last.data[-1] ^ 1]))), None
        )


def test_the_last_byte_of_a_large_session_is_proved_before_the_first_is_changed(tmp_path: Path) -> None:
    server = MemoryServer()
    a, b = Device(tmp_path, "a"), Device(tmp_path, "b")
    a.write("one", ["begins"])
    a.engine(server.remote()).push()
    b.engine(server.remote()).pull()
    fate = random.Random(1)
    a.write("one", [fate.randbytes(30_000).hex() for _ in range(200)])
    a.engine(server.remote()).push()
    before = b.files()
    (outcome,) = b.engine(Damaging(server, "me")).pull().outcomes
    assert outcome.standing is Standing.FAILED
    assert isinstance(outcome.error, Corrupt)
    assert b.files() == before
    (outcome,) = b.engine(server.remote()).pull().outcomes
    assert outcome.standing is Standing.PULLED
    assert b.files() == a.files()


def test_sessions_that_fail_keep_no_files_open(tmp_path: Path) -> None:
    server, fate = MemoryServer(), random.Random(1)
    a, b = Device(tmp_path, "a"), Device(tmp_path, "b")
    for number in range(3):
        a.write(f"session-{number}", [fate.randbytes(24_000).hex() for _ in range(200)])
    a.engine(server.remote()).push()
    gc.collect()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    report = b.engine(Damaging(server, "me")).pull()
    assert [outcome.standing for outcome in report.outcomes] == [Standing.FAILED] * 3
    assert len(os.listdir("/proc/self/fd") if before else ()) < before + 3
