"""What is fetched waits on the disk and not in memory, and is proved before anything here is changed."""

import gc
import os
import random
import tracemalloc
from pathlib import Path

import pytest

from sessionary.disk.line_reader import LineFile
from sessionary.disk.spooled_file import Slot, Spool
from sessionary.errors import Corrupt, RemoteError, StorageFailed
from sessionary.sync.blocks import START, block_id, cut, pack, part_key
from sessionary.sync.download import ALIKE, fetch
from sessionary.sync.heads import PartHead
from sessionary.sync.remote import LARGEST_BLOCK, Block, BlockPage
from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import Device

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
    assert outcome.standing is SyncStatus.FAILED
    assert isinstance(outcome.error, Corrupt)
    assert b.files() == before
    (outcome,) = b.engine(server.remote()).pull().outcomes
    assert outcome.standing is SyncStatus.PULLED
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
    assert [outcome.standing for outcome in report.outcomes] == [SyncStatus.FAILED] * 3
    assert len(os.listdir("/proc/self/fd") if before else ()) < before + 3


class Flood(MemoryRemote):
    """Gives out what no client has put, page upon page, each with something new in it, after all that is there."""

    def __init__(self, server: MemoryServer, form: str, size: int) -> None:
        super().__init__(server, "me")
        self.form = form
        self.size = size
        self.given = 0

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        at = int(after or 0)
        self.given += self.size
        assert self.given < 8 * ALIKE, "nothing stops it"
        block = Block(self.form.format(begin=first, at=at), bytes(self.size))
        return BlockPage((*super().read_range(space, first, stop).blocks, block), str(at + 1))


class Held(Spool):
    """Counts what is laid down."""

    laid = 0

    def put(self, data: bytes) -> Slot:
        self.laid += len(data)
        return super().put(data)


@pytest.mark.parametrize(
    ("form", "most"),
    [
        ("{begin}-{at:032x}", 0),  # as a fork might have it: but it is not a block
        ("{begin}-{at}", 0),
        ("{begin}0-{at:032x}", 0),
        ("ffffffff-00000000-{at:032x}", 0),  # of another file
    ],
)
def test_a_remote_that_gives_out_new_blocks_without_end_fills_no_disk(
    tmp_path: Path, form: str, most: int
) -> None:
    server = MemoryServer()
    (tmp_path / "log").write_bytes(b"one\n")
    part = push(tmp_path / "log", server)
    with (
        Held(str(tmp_path)) as spool,
        pytest.raises(RemoteError, match="too many blocks with one number") as caught,
    ):
        fetch(Flood(server, form, LARGEST_BLOCK), "s", part, (), 0, spool)
    assert not caught.value.retryable
    assert spool.laid <= most + LARGEST_BLOCK


def test_empty_blocks_without_end_are_given_up_too(tmp_path: Path) -> None:
    server = MemoryServer()
    (tmp_path / "log").write_bytes(b"one\n")
    part = push(tmp_path / "log", server)
    with Spool(str(tmp_path)) as spool, pytest.raises(RemoteError, match="too many blocks with one number"):
        fetch(Flood(server, "{begin}-{at:032x}", 0), "s", part, (), 0, spool)


def test_a_block_larger_than_any_may_be_is_refused(tmp_path: Path) -> None:
    server = MemoryServer()
    (tmp_path / "log").write_bytes(b"one\n")
    part = push(tmp_path / "log", server)
    with Held(str(tmp_path)) as spool, pytest.raises(Corrupt, match=f"has {LARGEST_BLOCK + 1} bytes"):
        fetch(Flood(server, "{begin}-{at:032x}", LARGEST_BLOCK + 1), "s", part, (), 0, spool)
    assert spool.laid < 1000


class Twice(MemoryRemote):
    """Gives out each block twice."""

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, first, stop, after)
        return BlockPage((*page.blocks, *page.blocks), page.following)


def test_a_block_that_comes_twice_is_written_once(tmp_path: Path) -> None:
    server = MemoryServer()
    (tmp_path / "log").write_bytes(b"one\n")
    part = push(tmp_path / "log", server)
    stored = sum(len(block.data) for block in server.remote().read_range("s", "", "~").blocks)
    with Held(str(tmp_path)) as spool:
        assert b"".join(fetch(Twice(server, "me"), "s", part, (), 0, spool).rest(None)) == b"one\n"
    assert spool.laid == stored
