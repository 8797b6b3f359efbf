"""Files are cut at line ends, every byte is proved, and a log costs what is new in it."""

import json
import random
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sessionary.errors import Corrupt, Unsupported
from sessionary.sync.blocks import (
    BLOCK,
    START,
    Piece,
    block_id,
    cut,
    follow,
    id_range,
    matching,
    pack,
    part_key,
    unfold,
    unpack,
    whole_lines,
)


class Held:
    """Bytes in memory as a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, byte: int, length: int) -> bytes:
        return self.data[byte : byte + length]


def blocks(data: bytes, size: int = BLOCK) -> list[tuple[str, str, bytes]]:
    """Chain, previous chain and stored bytes of each block of a file."""
    chain, start, found = START, 0, []
    for end in cut(Held(data), 0, len(data), block=size):
        prev = chain
        chain, stored = pack(Held(data), start, end, prev)
        found.append((chain, prev, stored))
        start = end
    return found


def read_back(stored: list[tuple[str, str, bytes]]) -> bytes:
    return b"".join(unfold([unpack("x", data)._replace(chain=chain) for chain, _, data in stored], b""))


@given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
def test_blocks_join_to_the_same_bytes(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    assert read_back(blocks(data, size)) == data


@given(
    st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"") + b"\n"), min_size=1),
    st.integers(1, 60),
)
def test_a_block_ends_with_a_line_unless_the_line_is_longer(lines: list[bytes], size: int) -> None:
    data = b"".join(lines)
    start = 0
    for end in cut(Held(data), 0, len(data), block=size):
        assert 0 < end - start <= size
        assert data[end - 1 : end] == b"\n" or b"\n" not in data[start:end]
        start = end
    assert start == len(data)


def test_the_whole_lines_end_with_the_last_newline() -> None:
    for data, whole in ((b"", 0), (b"a", 0), (b"a\n", 2), (b"a\nb", 2), (b"a\n" + b"x" * 700_000, 2)):
        assert whole_lines(Held(data), len(data)) == whole


def test_equal_ids_mean_equal_histories() -> None:
    one, other = blocks(b"a\nb\n", 2), blocks(b"x\nb\n", 2)
    assert one[1][0] != other[1][0]
    assert blocks(b"a\nb\nc\n", 2)[:2] == one


def test_the_ids_of_a_range_are_those_of_its_numbers() -> None:
    key = part_key("transcript.jsonl")
    first, stop = id_range(key, 3, 12)
    inside = [n for n in range(20) if first <= block_id(key, n, "ff" * 32) < stop]
    assert inside == list(range(3, 12))


def test_matching_counts_the_pieces_that_a_file_begins_with() -> None:
    data = b"one\ntwo\nthree\n"
    chain, pieces = START, []
    for start, end in ((0, 4), (4, 8), (8, 14)):
        chain = follow(chain, data[start:end])
        pieces.append(Piece(end, chain))
    assert matching(Held(data), len(data), pieces) == 3
    assert matching(Held(data), 9, pieces) == 2
    assert matching(Held(b"one\nTWO\nthree\n"), 14, pieces) == 1
    assert matching(Held(b""), 0, pieces) == 0


@pytest.mark.parametrize("at", range(0, 100, 7))
def test_a_flipped_bit_is_found(at: int) -> None:
    chain, _, stored = blocks(b"some text\n" * 9)[0]
    damaged = bytearray(stored)
    damaged[at % len(stored)] ^= 4
    try:
        found = list(unfold([unpack("x", bytes(damaged))._replace(chain=chain)], b""))
    except (Corrupt, Unsupported):
        return
    assert found == [b"some text\n" * 9], "a bit of the compression that means nothing"


@pytest.mark.parametrize(
    "bad", [b"", b"x", b"{}\n", b"[]\n", b'{"v":1,"prev":"0","raw":1,"back":0}\n', b"\xff\n"]
)
def test_what_is_not_a_block_is_refused(bad: bytes) -> None:
    with pytest.raises(Corrupt):
        unpack("x", bad)


def test_a_block_of_a_newer_format_is_not_guessed_at() -> None:
    header = {"v": 2, "prev": START, "raw": 1, "back": 0}
    with pytest.raises(Unsupported):
        unpack("x", json.dumps(header).encode() + b"\n")


@pytest.mark.parametrize("claims", [{"raw": BLOCK + 1}, {"raw": 0}, {"back": 1 << 40}, {"raw": True}])
def test_a_block_cannot_claim_more_than_a_block_may_hold(claims: dict[str, Any]) -> None:
    header = {"v": 1, "prev": START, "raw": 1, "back": 0, **claims}
    with pytest.raises(Corrupt):
        unpack("x", json.dumps(header).encode() + b"\n")


def test_a_small_block_cannot_fill_the_memory() -> None:
    header = json.dumps({"v": 1, "prev": START, "raw": 10_000, "back": 0}).encode() + b"\n"
    bomb = unpack("x", header + zstandard.compress(bytes(1 << 28)))._replace(chain="00" * 32)
    with pytest.raises(Corrupt):
        list(unfold([bomb], b""))


def test_a_log_that_repeats_its_context_costs_what_is_new_in_it() -> None:
    fate = random.Random(1)
    context, log = b"", b""
    for _ in range(30):
        context += fate.randbytes(4000).hex().encode()
        log += b'{"event":"llm:request","data":"' + context + b'"}\n'
    stored = blocks(log)
    size = sum(len(data) for _, _, data in stored)
    assert len(log) > 3_500_000
    assert size < 0.75 * len(context), "hexadecimal digits are worth half a byte each"
    assert read_back(stored) == log


def test_short_lines_between_two_requests_do_not_hide_the_first_one_from_the_second() -> None:
    chance = random.Random(2)
    said: list[str] = []
    lines = []
    for _ in range(30):
        said.append(chance.randbytes(5000).hex())
        lines.append(json.dumps({"messages": said}).encode())
        lines += [json.dumps({"result": chance.randbytes(50).hex()}).encode() for _ in range(20)]
    log = b"\n".join(lines) + b"\n"
    stored = blocks(log)
    assert len(log) > 4_000_000
    assert (
        sum(len(data) for _, _, data in stored) < 300_000
    )  # of random bytes in hex, half of 30 * 10 kB at best
    assert read_back(stored) == log


def test_lines_of_a_conversation_are_compressed_against_what_is_near() -> None:
    """A fresh pull decompresses every block: a dictionary of megabytes would be copied for each."""
    chance = random.Random(3)
    talk = b"".join(json.dumps({"content": chance.randbytes(900).hex()}).encode() + b"\n" for _ in range(600))
    backs = [unpack("x", data).back for _, _, data in blocks(talk)]
    assert len(backs) > 3
    assert set(backs[1:]) == {64 << 10}
