"""Sizes in heads and blocks count only as far as the blocks confirm them."""

import errno
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessionary.disk.spooled_file import Slot, Spool
from sessionary.errors import Corrupt, RemoteError, StorageFailed
from sessionary.sync.blocks import BLOCK, OVERHEAD, START, block_id, pack, part_key, unpack
from sessionary.sync.download import _LEAST, MISSING, SPARE, fetch
from sessionary.sync.heads import (
    LARGEST_DOCUMENT,
    LARGEST_NUMBER,
    MOST_BLOCKS,
    Head,
    PartHead,
    decode,
    encode,
    head_name,
)
from sessionary.sync.remote import Block, BlockPage
from sessionary.sync.report import SyncStatus
from sessionary.testing.wrapper import UNSYNCED
from tests.support.faults import Fault, FaultFs
from tests.support.memory_remote import MemoryRemote, MemoryServer
from tests.support.sync_world import Device

SPACE = "0" * 40
KEY = part_key("log")
NAME = head_name("work", "p", "one")
WHOLE = PartHead("log", "journal", 5, 1, START)
HEAD = Head(1, "work", "p", "one", NAME, 0, 1, "eve", "2025-01-31T12:00:00+00:00", parts=(WHOLE,))


class Lines:
    """Bytes as a file gives them."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, byte: int, length: int) -> bytes:
        return self._data[byte : byte + length]


class Held(Spool):
    """Counts what is laid down."""

    laid = 0

    def put(self, data: bytes) -> Slot:
        self.laid += len(data)
        return super().put(data)


class Single(MemoryRemote):
    """Gives out one block with each page, and counts them."""

    given = 0

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, after + "!" if after else first, stop)
        self.given += 1
        if not page.blocks:
            return BlockPage((), None)
        return BlockPage(page.blocks[:1], page.blocks[0].id)


def put(server: MemoryServer, pieces: list[bytes], kept: int | None = None) -> PartHead:
    """Put these bytes as the blocks of the file `log`; the first `kept` of them only, if that is given."""
    remote, chain, at, data = server.remote(), START, 0, b"".join(pieces)
    for number, piece in enumerate(pieces):
        prev, end = chain, at + len(piece)
        chain, stored = pack(Lines(data), at, end, prev)
        if kept is None or number < kept:
            remote.put_block(SPACE, block_id(KEY, number, chain), stored)
        at = end
    return PartHead("log", "journal", len(data), len(pieces), chain)


def stray(server: MemoryServer, number: int, mark: int, data: bytes) -> None:
    """Put a block of that number to which no chain leads: as a fork has one; a low `mark` comes before all others."""
    _, stored = pack(Lines(data), 0, len(data), START)
    server.remote().put_block(SPACE, block_id(KEY, number, f"{mark:032x}"), stored)


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def with_part(**fields: Any) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(encode(HEAD))
    reported["parts"][0].update(fields)
    return reported


def with_head(**fields: Any) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(encode(HEAD))
    return {**reported, **fields}


def with_past(gen: object, n: object, chain: str = START) -> dict[str, Any]:
    return with_head(history=[{"gen": gen, "at": "", "tips": {"log": [n, chain]}}])


NO_NUMBERS = [-1, True, 5.0, 5.5, LARGEST_NUMBER + 1, 10**30, "5", None]


@pytest.mark.parametrize(
    "reported",
    [
        *(with_part(size=number) for number in NO_NUMBERS),
        *(with_part(n=number) for number in NO_NUMBERS),
        *(with_head(count=number) for number in NO_NUMBERS),
        *(with_head(gen=number) for number in NO_NUMBERS),
        *(with_past(number, 1) for number in NO_NUMBERS),
        *(with_past(0, number) for number in NO_NUMBERS),
        with_past(0, MOST_BLOCKS + 1),
        with_past(0, 1, "zz"),
        with_part(size=0),  # each block holds a byte at least
        with_part(size=BLOCK + 1),
        with_part(size=5, n=6),
        with_part(size=5, n=0),
        with_part(size=MOST_BLOCKS + 1, n=MOST_BLOCKS + 1),
        with_part(n=0, data="AAAA"),  # a journal
        with_part(kind="document", n=1, data="AAAA"),
        with_part(kind="document", n=0, data="AAAA", size=LARGEST_DOCUMENT + 1),
        with_part(kind="document", n=0, data="AAAA", size=-1),
    ],
    ids=lambda reported: json.dumps({key: reported.get(key) for key in ("gen", "count", "parts", "history")}),
)
def test_a_head_with_a_number_that_cannot_be_is_damaged_and_says_whose_it_is(
    reported: dict[str, Any],
) -> None:
    with pytest.raises(Corrupt) as caught:
        decode(NAME, json.dumps(reported).encode())
    error = caught.value
    assert NAME in error.message
    assert "damaged" in error.message
    assert error.session == "one"
    assert error.hint is not None
    assert "push the session again" in error.hint


@pytest.mark.parametrize(
    "reported",
    [
        with_part(size=BLOCK),
        with_part(size=1),
        with_part(size=7 * BLOCK, n=7),
        with_part(size=7, n=7),
        with_part(size=0, n=0),
        with_part(size=MOST_BLOCKS, n=MOST_BLOCKS),
        with_part(kind="document", n=0, data="AAAA", size=LARGEST_DOCUMENT),
        with_head(count=LARGEST_NUMBER, gen=LARGEST_NUMBER),
        with_past(LARGEST_NUMBER, MOST_BLOCKS),
        with_past(0, 0),
    ],
)
def test_numbers_at_their_limits_are_none_that_cannot_be(reported: dict[str, Any]) -> None:
    assert decode(NAME, json.dumps(reported).encode()).session == "one"


@pytest.mark.parametrize("size", [5, -1, True])
def test_a_head_with_another_session_is_not_reported_as_that_session(size: object) -> None:
    with pytest.raises(Corrupt) as caught:
        decode(NAME, json.dumps({**with_part(size=size), "session": "two"}).encode())
    assert caught.value.session is None


def forged(server: MemoryServer, session: str, change: Callable[[PartHead], PartHead]) -> None:
    (name,) = (
        name
        for name, (data, _) in server.tenants["me"].heads.items()
        if decode(name, data).session == session
    )
    record = server.remote().read_head(name)
    assert record is not None
    head = decode(name, record.data)
    parts = tuple(change(part) if part.kind == "journal" else part for part in head.parts)
    assert server.remote().swap_head(
        name, encode(msgspec.structs.replace(head, parts=parts, count=99)), record.etag
    )


class Unasked(MemoryRemote):
    """Fails where a block of a space is asked for."""

    space = ""

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        assert space != self.space
        return super().read_range(space, first, stop, after)


@pytest.mark.parametrize("size", [-1, 0, BLOCK + 1, 1 << 50, LARGEST_NUMBER + 1])
def test_nothing_is_fetched_for_a_size_that_no_blocks_can_have_and_the_others_go_on(
    size: int, tmp_path: Path
) -> None:
    server = MemoryServer()
    a, b = Device(tmp_path, "a"), Device(tmp_path, "b")
    for session in ("one", "two"):
        a.write(session, ["begins"])
    a.engine(server.remote()).push()
    remote = Unasked(server, "me")
    remote.space = next(
        decode(name, data).space
        for name, (data, _) in server.tenants["me"].heads.items()
        if decode(name, data).session == "one"
    )
    forged(server, "one", lambda part: msgspec.structs.replace(part, size=size))
    reported = {one.session_id: one for one in b.engine(remote).pull().outcomes}
    assert {name: one.standing for name, one in reported.items()} == {
        "one": SyncStatus.FAILED,
        "two": SyncStatus.PULLED,
    }
    assert isinstance(reported["one"].error, Corrupt)
    assert b.names() == ["two"]
    (outcome,) = (one for one in b.engine(remote).status().outcomes if one.standing is SyncStatus.FAILED)
    assert outcome.session_id == "one"


# -- what arrives


def test_it_is_given_up_as_soon_as_what_came_is_more_than_the_head_says(tmp_path: Path) -> None:
    server = MemoryServer()
    part = put(server, [b"x" * (BLOCK - 1) + b"\n"] * 100)
    lie = msgspec.structs.replace(part, size=BLOCK * 3)
    remote = Single(server, "me")
    with Held(str(tmp_path)) as spool, pytest.raises(Corrupt, match=f"more than the {BLOCK * 3} bytes"):
        fetch(remote, SPACE, lie, (), 0, spool)
    assert remote.given <= 5
    remote.given = 0
    with Held(str(tmp_path)) as spool:
        fetch(remote, SPACE, part, (), 0, spool)
    assert remote.given == 101


def test_a_larger_block_beside_the_right_one_does_not_contradict_the_head(tmp_path: Path) -> None:
    server = MemoryServer()
    part = put(server, [b"one\n", b"two\n", b"three\n"])
    for number in range(3):
        stray(server, number, 0, noise(number, 9000))
        stray(server, number, 16**32 - 1, noise(number, 9000))
    with Spool(str(tmp_path)) as spool:
        assert b"".join(fetch(server.remote(), SPACE, part, (), 0, spool).rest(None)) == b"one\ntwo\nthree\n"


def test_a_file_that_holds_just_what_the_head_says_is_not_given_up(tmp_path: Path) -> None:
    server = MemoryServer()
    part = put(server, [b"\n"] * 50)
    with Spool(str(tmp_path)) as spool:
        assert b"".join(fetch(server.remote(), SPACE, part, (), 0, spool).rest(None)) == b"\n" * 50


def crowded(server: MemoryServer) -> tuple[PartHead, int]:
    """A file beside whose blocks lie far more of others; and how much may be laid down for it."""
    part = put(server, [noise(number, 100_000) for number in range(3)])
    for number in range(3):
        for mark in range(10):
            stray(server, number, mark, noise(10 * number + mark, 200_000))
    return part, 2 * (part.size + part.n * _LEAST) + SPARE + part.size + part.n * OVERHEAD


def test_what_is_beside_a_file_fills_no_disk_and_does_not_hide_it(tmp_path: Path) -> None:
    server = MemoryServer()
    part, most = crowded(server)
    with Held(str(tmp_path)) as spool:
        got = b"".join(fetch(server.remote(), SPACE, part, (), 0, spool).rest(None))
    assert got == b"".join(noise(number, 100_000) for number in range(3))
    assert spool.laid <= most
    assert sum(map(len, server.tenants["me"].blocks[SPACE].values())) > 2 * most


class Fickle(MemoryRemote):
    """Gives out something else when it is asked a second time."""

    asked = 0

    def __init__(self, server: MemoryServer, second: Callable[[Block], Block | None]) -> None:
        super().__init__(server, "me")
        self.second = second

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = super().read_range(space, first, stop, after)
        self.asked += after is None
        if self.asked == 1:
            return page
        found = (self.second(block) for block in page.blocks)
        return BlockPage(tuple(block for block in found if block is not None), page.following)


def relabelled(block: Block) -> Block:
    line, _, body = block.data.partition(b"\n")
    return Block(block.id, json.dumps({**json.loads(line), "raw": 99_999}).encode() + b"\n" + body)


def test_a_block_that_is_another_one_when_it_is_asked_for_again_is_refused(tmp_path: Path) -> None:
    server = MemoryServer()
    part, _ = crowded(server)
    with Spool(str(tmp_path)) as spool, pytest.raises(Corrupt, match="each time it is fetched"):
        fetch(Fickle(server, relabelled), SPACE, part, (), 0, spool)


def test_a_block_that_is_gone_when_it_is_asked_for_again_is_not_there_yet(tmp_path: Path) -> None:
    server = MemoryServer()
    part, _ = crowded(server)
    with Spool(str(tmp_path)) as spool, pytest.raises(RemoteError) as caught:
        fetch(Fickle(server, lambda block: None), SPACE, part, (), 0, spool)
    assert caught.value.retryable
    assert MISSING in caught.value.details


def test_small_blocks_beside_large_ones_do_not_hide_that_these_are_too_large(tmp_path: Path) -> None:
    server = MemoryServer()
    part = put(server, [noise(number, BLOCK) for number in range(40)])
    for number in range(40):
        stray(server, number, 0, b"x")
    lie = msgspec.structs.replace(part, size=MEGABYTE)
    with Held(str(tmp_path)) as spool, pytest.raises(Corrupt, match=f"more than the {MEGABYTE} bytes"):
        fetch(server.remote(), SPACE, lie, (), 0, spool)
    assert spool.laid <= 2 * (MEGABYTE + 40 * _LEAST) + SPARE


MEGABYTE = 1 << 20


@pytest.mark.parametrize("size", [1, 100_000, BLOCK])
def test_a_block_that_has_more_bytes_than_what_it_claims_can_need_is_refused(size: int) -> None:
    _, stored = pack(Lines(noise(1, size)), 0, size, START)
    assert unpack("block", stored).raw == size
    room = size + size // 128 + OVERHEAD - len(stored)
    assert room > OVERHEAD // 2, "what cannot be compressed has room enough"
    unpack("block", stored + bytes(room))
    with pytest.raises(Corrupt, match=f"claims {size} bytes, and has"):
        unpack("block", stored + bytes(room + 1))


def test_an_invalid_block_fails_only_the_readers_that_need_it(tmp_path: Path) -> None:
    server = MemoryServer()
    part = put(server, [b"one\n", b"two\n"])
    server.remote().put_block(SPACE, block_id(KEY, 1, "0" * 32), b"nonsense")
    with Spool(str(tmp_path)) as spool:
        assert b"".join(fetch(server.remote(), SPACE, part, (), 0, spool).rest(None)) == b"one\ntwo\n"
    last = block_id(KEY, 1, part.chain)
    server.tenants["me"].blocks[SPACE][last] = b"nonsense"
    with Spool(str(tmp_path)) as spool, pytest.raises(Corrupt, match=last):
        fetch(server.remote(), SPACE, part, (), 0, spool)


# -- a disk that becomes full meanwhile


def full(n: int) -> FaultFs:
    return FaultFs(UNSYNCED, Fault("write", n, errno.ENOSPC, lasting=True))


def pull(device: Device, server: MemoryServer, fs: FaultFs) -> Exception | None:
    """Pull; what came of it, of one session or as a whole."""
    try:
        (outcome,) = device.engine(server.remote(), fs).pull().outcomes
    except StorageFailed as error:
        return error
    return outcome.error


@pytest.mark.parametrize("there", [False, True], ids=["a new session", "a longer one"])
def test_a_disk_that_is_full_leaves_nothing_half_written_whenever_it_becomes_that(
    there: bool, tmp_path: Path
) -> None:
    server = MemoryServer()
    a = Device(tmp_path, "a")
    a.write("one", ["begins"])
    if there:
        a.engine(server.remote()).push()
    n, done = 0, False
    devices = [Device(tmp_path, f"b{number}") for number in range(40)]
    if there:
        for b in devices:
            b.engine(server.remote()).pull()
    a.write("one", ["goes on", "and on"])
    a.engine(server.remote()).push()
    old, new = devices[0].files(), a.files()
    while not done:
        b, fs = devices[n], full(n + 1)
        error = pull(b, server, fs)
        done = not fs.fired
        if not done:
            assert isinstance(error, StorageFailed)
            assert error.errno == errno.ENOSPC
            assert error.path
            for name, data in b.files().items():
                assert data in (old.get(name), new.get(name)), f"{name} after write {n + 1}"
            assert not list(b.root.rglob(".pull-*")), f"after write {n + 1}"
            assert there or b.names() in ([], ["one"])
            assert pull(b, server, FaultFs(UNSYNCED)) is None
        assert b.files() == new
        n += 1
    assert n > 3, "the disk was hardly ever full"


def test_a_disk_that_is_full_of_what_is_fetched_changes_nothing_here(tmp_path: Path) -> None:
    server = MemoryServer()
    a, b = Device(tmp_path, "a"), Device(tmp_path, "b")
    a.write("one", ["begins"])
    a.engine(server.remote()).push()
    b.engine(server.remote()).pull()
    a.write("one", [noise(n, 30_000).hex() for n in range(200)])
    a.engine(server.remote()).push()
    before = b.files()
    fs = full(1)
    error = pull(b, server, fs)
    assert isinstance(error, StorageFailed)
    assert "store temporary bytes" in error.message
    assert error.errno == errno.ENOSPC
    assert b.files() == before
    assert pull(b, server, FaultFs(UNSYNCED)) is None
    assert b.files() == a.files()
