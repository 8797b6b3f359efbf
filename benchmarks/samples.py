"""Conversations to measure with: three shapes of message in turn, each line of a wanted size.

One message in four holds characters beyond ASCII, as code and English prose about it do. Session folders are written
straight to the disk here: setting the scene is not what is measured.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
PLAIN = (
    'the race is in reserve(): two requests read the same row, so run "make test" again and\n\tlook at the lock '
    "before deploy; return None if count < 0 else {'left': count} # fix C:\\build\\app.log first "
).split(" ")
RICH = [*PLAIN, "café", "naïve", "在庫", "競合", "→", "“done”", "🌡️"]


def messages(count: int, size: int = 1000, *, stamped: bool = True, seed: int = 0) -> list[dict[str, Any]]:
    """Messages whose lines have about `size` bytes each; with or without a time of their own."""
    return list(itertools.islice(_stream(size, stamped, seed), count))


def _stream(size: int, stamped: bool, seed: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    for number in itertools.count():
        words = RICH if number % 4 == 3 else PLAIN
        time = (START + timedelta(seconds=number)).isoformat(timespec="milliseconds")
        stamp = {"timestamp": time} if stamped else {}
        room = size - len(line_of({**_SHAPES[number % 3](number, ""), **stamp}))
        yield {**_SHAPES[number % 3](number, _text(chance, words, room)), **stamp}


def _user(number: int, text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(number: int, text: str) -> dict[str, Any]:
    call = {"id": f"call_{number}", "tool": "bash", "arguments": {"command": "make", "timeout": 60}}
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "tool_calls": [call]}


def _tool(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number - 1}", "name": "bash", "content": text}


_SHAPES = (_user, _assistant, _tool)


def _text(chance: random.Random, words: list[str], room: int) -> str:
    """Words whose JSON text fills `room` bytes, within a word."""
    chosen: list[str] = []
    while room > 0:
        word = chance.choice(words)
        chosen.append(word)
        room -= len(json.dumps(word, ensure_ascii=False).encode()) - 1
    return " ".join(chosen)


def line_of(message: dict[str, Any]) -> bytes:
    """The line of a message with its newline, as the original writes it."""
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def metadata(session_id: str, turn: int = 1) -> dict[str, Any]:
    """What an application keeps about a session; changes with every turn."""
    return {
        "session_id": session_id,
        "created": START.isoformat(),
        "bundle": "bundle:foundation",
        "model": "model-a",
        "turn_count": turn,
        "working_dir": "/home/u/app",
        "incremental": True,
        "name": "Fix the race in the stock service",
        "description": "Two requests reserve the last mug; a lock around the row ends it.",
    }


def write_session(folder: Path, conversation: Iterable[dict[str, Any]]) -> None:
    """A session folder with these messages, as the original leaves it."""
    folder.mkdir(parents=True)
    folder.joinpath("transcript.jsonl").write_bytes(b"".join(map(line_of, conversation)))
    folder.joinpath("metadata.json").write_text(
        json.dumps(metadata(folder.name), ensure_ascii=False, indent=2), encoding="utf-8"
    )
