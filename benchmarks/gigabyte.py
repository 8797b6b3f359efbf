"""A gigabyte of transcripts: ten sessions of 40 MB, two hundred of 1 MB, two thousand of 200 kB, all healthy.

Every fourth message holds a word that is in no other, and the last message of one session in five hundred another word.
"""

from __future__ import annotations

import itertools
import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.samples import line_of, messages, metadata

FREQUENT = "quartz"
RARE = "zephyrine"
RARE_HITS = 5
KINDS = 4
TURNS = 12  # so many messages are two turns, the longer of which holds three calls and their results
LONG = 83 * TURNS
SHORT = 16 * TURNS
LAST = {"role": "user", "content": f"At the end we saw the {RARE.title()} here."}


def write_gigabyte(home: Path) -> list[Path]:
    """Write the sessions below a home, and give their transcripts."""
    folder = home / "projects" / "-home-u-app" / "sessions"
    chance = random.Random(0)
    paths = []
    for number, data in enumerate(_transcripts()):
        session = folder / str(uuid.UUID(int=chance.getrandbits(128), version=4))
        session.mkdir(parents=True)
        path = session / "transcript.jsonl"
        path.write_bytes(data + line_of(LAST) if number % 500 == 6 else data)
        (session / "metadata.json").write_text(json.dumps(metadata(session.name), indent=2), encoding="utf-8")
        paths.append(path)
    return paths


def _transcripts() -> Iterator[bytes]:
    conversations = [_conversation(seed) for seed in range(KINDS)]
    long = [b"".join(lines) for lines in conversations]
    for number in range(10):
        yield b"".join(_again(long[number % KINDS], time) for time in range(40))
    for number in range(200):
        yield long[number % KINDS]
    for number in range(2000):
        start = number * TURNS % (LONG - SHORT)
        yield b"".join(conversations[number % KINDS][start : start + SHORT])


def _again(data: bytes, time: int) -> bytes:
    """The same conversation at another time, with other ids: nothing in it is a repetition of the first one."""
    day = b'"20%02d-' % (26 + time)
    return data.replace(b'"2026-', day).replace(b'"call_', b'"call_%d_' % time)


def _conversation(seed: int) -> list[bytes]:
    """Lines of one kilobyte."""
    spoken = enumerate(map(_in_turns, messages(LONG, seed=seed), itertools.count()))
    return [line_of(_with_word(message) if number % 4 == 2 else message) for number, message in spoken]


def _in_turns(message: dict[str, Any], number: int) -> dict[str, Any]:
    """The message as the person or the agent says it at this place, so that no turn is without its end."""
    place = number % TURNS
    if place in (3, 6, 9):
        return {**message, "role": "assistant"}
    if place in (10, 11):
        role = "user" if place == 10 else "assistant"
        return {"role": role, "content": message["content"], "timestamp": message["timestamp"]}
    return message


def _with_word(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": _put(content)}
    (block,) = content
    return {**message, "content": [{**block, "text": _put(block["text"])}]}


def _put(text: str) -> str:
    return f"{text[:300]} {FREQUENT.title()} {text[300:]}"
