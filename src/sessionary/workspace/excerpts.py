"""The bytes around a damaged place, in hexadecimal and as text."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from sessionary.disk.fs import OS_FS, Fs
from sessionary.disk.line_reader import LineFile
from sessionary.layouts.compressed import Damaged, decompressed
from sessionary.model import Problem

REACH = 64 * 1024
"""Bytes of a line before and behind a place, at most."""

_COMPRESSED = ".zst"


class Excerpt(NamedTuple):
    """The line of a problem, or the part of it that is near the place.

    Attributes:
        start: offset in the file of the first byte; of a compressed file in its text.
        data: the bytes, without the end of the line.
        begin, end: the damaged bytes within `data`; equal if none are named.
        whole: False if the line is longer.
    """

    start: int
    data: bytes
    begin: int
    end: int
    whole: bool


def excerpt_of(problem: Problem, fs: Fs = OS_FS) -> Excerpt | None:
    """The stored bytes around a problem that `Workspace.check` or `read` reported: its line, at most 128 KiB of it.

    None if the problem names no byte, or the file has become shorter since.

    Raises:
        NotFound: the file is gone.
    """
    if problem.byte is None:
        return None
    first = max(problem.byte - REACH, 0)
    data = _window(problem.path, first, problem.byte + REACH - first, fs)
    at = problem.byte - first
    if at > len(data):
        return None
    begin = data.rfind(b"\n", 0, at) + 1
    found = data.find(b"\n", at)
    end = len(data) if found < 0 else found
    line = data[begin:end]
    whole = (begin > 0 or first == 0) and (found >= 0 or len(data) < problem.byte + REACH - first)
    return Excerpt(first + begin, line, at - begin, min(at - begin + problem.span, len(line)), whole)


def _window(path: str, first: int, length: int, fs: Fs) -> bytes:
    if not path.endswith(_COMPRESSED):
        with LineFile(path, fs) as file:
            return file.read(first, length)
    found, begin = bytearray(), 0
    with suppress(Damaged):
        for piece in decompressed(fs, path):
            found += piece[max(first - begin, 0) :]
            begin += len(piece)
            if len(found) >= length:
                break
    return bytes(found[:length])
