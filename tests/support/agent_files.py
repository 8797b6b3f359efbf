"""Files of agents for tests: written record by record, damaged at random, and read in pieces."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sessionary.layouts.base import Layout
from sessionary.layouts.summary import summary_of
from sessionary.model import Message, Problem, SessionRef
from sessionary.testing.cursors import Reader
from sessionary.testing.layout_suite import CountingFs

Lines = Sequence[dict[str, Any] | bytes]
WRITES = ("write", "rename", "unlink", "mkdir", "truncate", "utime", "chmod", "link")


def as_bytes(*records: dict[str, Any] | bytes) -> bytes:
    """Records as lines; bytes are taken as they are."""
    return b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in records)


def copilot_id(number: int) -> str:
    """The id of an event of Copilot CLI, which accepts only UUIDs."""
    return f"e0000000-0000-4000-8000-{number:012}"


def write_lines(path: Path, *records: dict[str, Any] | bytes) -> None:
    """Write a file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_bytes(*records))


def append(ref: SessionRef, *records: dict[str, Any] | bytes) -> None:
    """Add lines to the file of a session."""
    with ref.path.open("ab") as file:
        file.write(as_bytes(*records))


def messages(layout: Layout, ref: SessionRef) -> list[Message]:
    """The messages of a session."""
    return [one for one in layout.read(ref) if isinstance(one, Message)]


def words(layout: Layout, ref: SessionRef) -> str:
    """Everything that is said, thought and answered in a session, one piece a line."""
    pieces: list[str] = []
    for message in messages(layout, ref):
        pieces += [message.text, *message.thoughts, *(one.text for one in message.results)]
    return "\n".join(pieces)


def require_tolerance(
    layout: Layout, ref: SessionRef, kept: dict[int, str], *, rounds: int = 300, file: Path | None = None
) -> None:
    """Damage a file at random places, and require that no reader raises and that whole records stay visible.

    Args:
        layout: the layout.
        ref: a session of it, in one file.
        kept: by line (from 0) a text that must be found unless that line or one beside it is damaged.
        rounds: the number of damaged files.
        file: the file of its messages, of a session that is a folder.
    """
    path = file or ref.path
    chance, data = random.Random(ref.locator.count("/")), path.read_bytes()
    for _ in range(rounds):
        at = chance.randrange(len(data))
        spoilt = bytearray(data)
        length = chance.choice((0, 1, 3))
        spoilt[at : at + length] = bytes(chance.randrange(256) for _ in range(chance.choice((1, 2))))
        path.write_bytes(spoilt)
        found, text = list(layout.read(ref)), words(layout, ref)
        holes = any(isinstance(one, Problem) and one.code == "nul_run" for one in found)
        damaged = data[:at].count(b"\n")
        for line, expected in kept.items():
            assert holes or abs(line - damaged) <= 1 or expected in text
        summary_of(layout, ref)
    path.write_bytes(data)


def require_equal_pieces(
    layout: Layout, ref: SessionRef, make: Callable[[random.Random, int], dict[str, Any] | bytes], seed: int
) -> Reader:
    """Add records at random, halves of lines among them, and require that reading in pieces is reading as a whole."""
    choose = random.Random(seed)
    reader = Reader(layout, ref)
    reader.go_on()
    number, half = 1, b""
    for _ in range(12):
        for _ in range(choose.randint(0, 4)):
            number += 1
            data = half + as_bytes(make(choose, number))
            cut = len(data) if choose.random() < 0.9 else choose.randint(1, len(data))
            append(ref, data[:cut])
            half = data[cut:]
        reader.go_on()
    return reader


def require_read_only(layout: type[Any], home: Path) -> None:
    """Read everything twice, and require that both give the same and that nothing was written or left open."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    fs = CountingFs()
    reading = layout(home, fs)
    for ref in reading.discover():
        assert list(reading.read(ref)) == list(reading.read(ref))
        assert summary_of(reading, ref) == summary_of(reading, ref)
        list(reading.parts(ref))
    assert not {name: fs.calls[name] for name in WRITES if fs.calls[name]}
    assert before == {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
