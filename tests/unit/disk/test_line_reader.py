"""`disk.scan` against a naive reader that splits the whole content at once."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.disk import line_reader
from sessionary.disk.fs import FILE_MODE, OS_FS
from sessionary.disk.line_reader import Head, LineFile
from sessionary.errors import Invalid, NotFound, StorageFailed
from sessionary.testing.wrapper import WrappedFs


class BytesFs(WrappedFs):
    """One file in memory. It gives at most `mouthful` bytes per call, and counts how many it gave."""

    def __init__(self, content: bytes, mouthful: int = 1 << 30) -> None:
        super().__init__()
        self.content = content
        self.mouthful = mouthful
        self.given = 0
        self.open_files = 0

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0
        self.open_files += 1
        return 7

    def close(self, fd: int) -> None:
        self.open_files -= 1

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        data = self.content[offset : offset + min(length, self.mouthful)]
        self.given += len(data)
        return data

    def fstat(self, fd: int) -> Any:
        return SimpleNamespace(st_size=len(self.content), st_mode=stat.S_IFREG)


def naive(content: bytes, width: int) -> list[Head]:
    """What `heads` must give, by splitting everything."""
    lines = content.split(b"\n")
    torn = lines.pop()
    found, byte = [], 0
    for number, line in enumerate([*lines, torn] if torn else lines, 1):
        whole = number <= len(lines)
        found.append(Head(number, byte, len(line), line[:width], whole, line[-2:]))
        byte += len(line) + 1
    return found


def unnumbered(heads: list[Head]) -> list[Head]:
    return [head._replace(line=None) for head in heads]


# Few different bytes, so that newlines are frequent and lie across the borders of blocks.
contents = st.lists(
    st.sampled_from([b"a", b"b", b"ab", b"\n", b"\n", b"\r", b"\x00", b"aaaaaaa"]), max_size=60
).map(b"".join)
blocks = st.integers(1, 12)
widths = st.integers(0, 9)
mouthfuls = st.integers(1, 20)


@given(contents, blocks, widths, mouthfuls)
def test_heads_are_those_of_the_split_content(content: bytes, block: int, width: int, mouthful: int) -> None:
    with LineFile("x", BytesFs(content, mouthful), block=block) as file:
        assert list(file.heads(width=width)) == naive(content, width)


@given(contents, blocks, widths, st.data())
def test_heads_between_two_offsets(content: bytes, block: int, width: int, data: st.DataObject) -> None:
    every = naive(content, width)
    start = data.draw(st.sampled_from([head.byte for head in every] or [0]))
    stop = data.draw(st.integers(0, len(content) + 1))
    expected = [head for head in every if start <= head.byte < stop]
    with LineFile("x", BytesFs(content), block=block) as file:
        found = list(file.heads(width=width, start=start, stop=stop))
    assert found == (unnumbered(expected) if start else expected)


@given(contents, blocks, widths, mouthfuls)
def test_heads_back_are_the_same_from_the_end(content: bytes, block: int, width: int, mouthful: int) -> None:
    with LineFile("x", BytesFs(content, mouthful), block=block) as file:
        assert list(file.heads_back(width=width)) == unnumbered(naive(content, width))[::-1]


@given(contents, st.integers(-1, 5), widths)
def test_tail_heads_are_the_last_ones(content: bytes, count: int, width: int) -> None:
    expected = unnumbered(naive(content, width))[-count:] if count > 0 else []
    assert line_reader.tail_heads(BytesFs(content), "x", count, width=width) == expected


@given(contents, blocks)
def test_line_gives_each_line_with_its_newline(content: bytes, block: int) -> None:
    with LineFile("x", BytesFs(content), block=block) as file:
        read = [file.line(head.byte) for head in naive(content, 0)]
    assert b"".join(read) == content
    assert all(line.endswith(b"\n") for line in read[:-1])


@given(contents, blocks)
def test_line_refuses_every_other_offset(content: bytes, block: int) -> None:
    begins = {head.byte for head in naive(content, 0)}
    with LineFile("x", BytesFs(content), block=block) as file:
        for byte in set(range(-1, len(content) + 2)) - begins:
            with pytest.raises(Invalid, match=f"No line begins at byte {byte} of x"):
                file.line(byte)


@given(contents, blocks)
def test_count_counts_whole_lines(content: bytes, block: int) -> None:
    with LineFile("x", BytesFs(content), block=block) as file:
        assert file.count() == content.count(b"\n")


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    line = '{"text": "\u2028\u2029\u0085\x0b\x0c\x1c"}\r'.encode()
    path.write_bytes(line + b"\n" + line + b"\n")
    with LineFile(str(path)) as file:
        assert [head.length for head in file.heads()] == [len(line), len(line)]
        assert file.line(len(line) + 1) == line + b"\n"
    assert line_reader.count_lines(OS_FS, str(path)) == 2


def test_a_torn_last_line_is_said_to_be_torn(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'{"a": 1}\n{"b":')
    with LineFile(str(path)) as file:
        (_, torn) = file.heads()
        assert (torn.byte, torn.length, torn.whole) == (9, 5, False)
        assert file.line(9) == b'{"b":'
    assert line_reader.tail_heads(OS_FS, str(path), 1) == [torn._replace(line=None)]
    assert line_reader.count_lines(OS_FS, str(path)) == 1


def test_what_is_appended_during_a_scan_is_seen_whole() -> None:
    fs = BytesFs(b"a\n" * 10 + b"half")
    with LineFile("x", fs, block=4) as file:
        scanned = file.heads()
        first = next(scanned)
        fs.content += b" done\nlast\n"
        assert [first, *scanned] == naive(fs.content, line_reader.WIDTH)


def test_the_old_file_is_read_on_after_a_replace(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"old 1\nold 2\n")
    with LineFile(str(path)) as file:
        (tmp_path / "new").write_bytes(b"new\n")
        os.replace(tmp_path / "new", path)
        assert [head.head for head in file.heads()] == [b"old 1", b"old 2"]
        assert file.line(6) == b"old 2\n"


def test_the_tail_costs_what_is_at_the_end() -> None:
    fs = BytesFs(b"x" * 99 + b"\n" + (b"y" * 999 + b"\n") * 5000)
    assert len(line_reader.tail_heads(fs, "x", 20)) == 20
    assert fs.given < 5 * 20_000


@pytest.mark.parametrize(
    "use",
    [
        lambda fs: line_reader.tail_heads(fs, "x", 1),
        lambda fs: line_reader.count_lines(fs, "x"),
    ],
)
def test_every_question_gives_its_descriptor_back(use: Callable[[BytesFs], object]) -> None:
    fs = BytesFs(b"a\na\na")
    use(fs)
    assert fs.open_files == 0


def test_closing_twice_is_harmless() -> None:
    fs = BytesFs(b"")
    file = LineFile("x", fs)
    file.close()
    file.close()
    assert fs.open_files == 0


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="File not found") as caught:
        line_reader.count_lines(OS_FS, str(tmp_path / "none"))
    assert caught.value.path == str(tmp_path / "none")


def test_what_cannot_be_read_is_a_failure_of_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="Is a directory") as caught:
        line_reader.count_lines(OS_FS, str(tmp_path))
    assert caught.value.path == str(tmp_path)


@pytest.mark.parametrize("call", ["open", "fstat"])
def test_refusals_of_other_calls_are_translated_too(call: str) -> None:
    class Refusing(BytesFs):
        def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
            if call == "open":
                raise PermissionError(13, "Permission denied")
            return super().open(path, flags, mode)

        def fstat(self, fd: int) -> Any:
            raise OSError(5, "Input/output error")

    with pytest.raises(StorageFailed) as caught:
        line_reader.tail_heads(Refusing(b"a\n"), "x", 1)
    assert caught.value.errno == (13 if call == "open" else 5)
