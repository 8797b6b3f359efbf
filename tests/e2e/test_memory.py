"""Memory of whole commands over a store with a huge file and very long lines.

Bound: 64 MiB and four times the longest record: its bytes, the text without its escapes, the decoded text, and the
record before it, which may be as long. Text takes here one byte for each character; Python needs up to four for each
where a text has one character outside Latin-1. Where records form a tree, their ids are held besides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

MIB = 1 << 20
ALLOWED = 64 * MIB
COPIES = 4
IDS = {"amplifier": 0, "claude_code": 350}
"""Bytes for each record."""

SESSION = "3f0c81d2-0000-4000-8000-000000000001"
_BLOCK = 200
_MEASURED = """
import sys
from sessionary.cli import main
code = main()
sys.stdout.flush()
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
sys.stderr.write("peak " + peak[0])
sys.exit(code)
"""


class Store(NamedTuple):
    """A home, the environment to read it in, the bytes of its longest record, and those for the ids of all records."""

    home: Path
    environment: dict[str, str]
    longest: int
    ids: int


def _amplifier(index: int, text: str) -> dict[str, object]:
    return {"role": ("user", "assistant")[index % 2], "content": text, "timestamp": _time(index)}


def _claude(index: int, text: str) -> dict[str, object]:
    role = ("user", "assistant")[index % 2]
    return {
        "type": role,
        "uuid": _uuid(index),
        "parentUuid": _uuid(index - 1) if index else None,
        "message": {"role": role, "content": text},
        "timestamp": _time(index),
        "sessionId": SESSION,
    }


def _uuid(index: int) -> str:
    return f"{index:08x}-0000-4000-8000-000000000000"


def _time(index: int) -> str:
    return (
        f"2026-03-{1 + index // 86_400:02}T{index // 3600 % 24:02}:{index // 60 % 60:02}:{index % 60:02}.000Z"
    )


_SHAPES = {"amplifier": _amplifier, "claude_code": _claude}
_PLACES = {
    "amplifier": f"projects/-home-me-app/sessions/{SESSION}/transcript.jsonl",
    "claude_code": f"projects/-home-me-app/{SESSION}.jsonl",
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((100_000_000, 4_000_000), marks=pytest.mark.lane("memory"), id="100 MB"),
        pytest.param((1_000_000_000, 20_000_000), marks=pytest.mark.lane("gigabyte"), id="1 GB"),
    ],
)
def sizes(request: pytest.FixtureRequest) -> tuple[int, int]:
    found: tuple[int, int] = request.param
    return found


@pytest.fixture(scope="module", params=list(_PLACES))
def store(
    request: pytest.FixtureRequest, sizes: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A store with one file of this size: some lines are very long, and the first two of them follow each other."""
    total, long = sizes
    home = tmp_path_factory.mktemp("store")
    path = home / _PLACES[request.param]
    path.parent.mkdir(parents=True)
    shape = _SHAPES[request.param]
    filler = "lorem ipsum dolor sit amet, consectetur adipiscing elit\n" * 36
    longest = at = written = 0
    with path.open("wb") as file:
        while written < total:
            is_long = at % (_BLOCK * 40) in (_BLOCK, _BLOCK + 1)
            text = filler * (long // len(filler)) if is_long else f"message {at}\n{filler}"
            line = json.dumps(shape(at, text)).encode() + b"\n"
            longest, at, written = max(longest, len(line)), at + 1, written + file.write(line)
        file.write(json.dumps(shape(at, "the needle is at the end")).encode() + b"\n")
    environment = {**os.environ, "XDG_CACHE_HOME": str(home / "cache")}
    yield Store(home, environment, longest, at * IDS[request.param])
    path.unlink()


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["show", SESSION, "--turns", "1..2"],
        ["show", SESSION, "--tail", "2"],
        ["search", "needle"],
        ["search", "consectetur", "--limit", "300"],
        ["check"],
        ["export", SESSION, "--format", "jsonl"],
    ],
    ids=" ".join,
)
def test_a_command_needs_little_more_than_the_longest_record(store: Store, command: list[str]) -> None:
    name, *arguments = command
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, name, "--home", str(store.home), *arguments],
        env=store.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    peak = int(done.stderr.rpartition("peak ")[2]) * 1024
    assert peak <= ALLOWED + COPIES * store.longest + store.ids, (
        f"{peak / MIB:.1f} MiB, with a record of {store.longest / MIB:.1f} MiB"
    )
