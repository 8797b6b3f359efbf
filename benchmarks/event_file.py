"""A large, realistic events.jsonl, and what is in it.

The shape is that of an agent that logs its raw requests: most lines are small, most *bytes* lie in few lines
that repeat the whole conversation, and now and then one of them has 20 MB. Every seventh turn is written by
another writer, without blanks between the tokens. Two things lie in wait for a reader that looks for names too
simply: some messages quote an event log, and some tool inputs have an `event` key of their own.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

LONGEST = 20_000_000
QUOTE = '{"event": "prompt:submit", "data": {}}'
SESSION = "d0ef5818-c295-4257-88b5-aa4e39a7bc0b"
WORDS = (
    "the stock race lost order mug lock row test run fix build deploy template café naïve 在庫 競合 テスト 🌡️ "
    'def return "quoted" \\path\\to\nline\ttab'
).split(" ")


class EventFile(NamedTuple):
    """What was written: the truth to hold a reader against.

    Attributes:
        path: the file.
        size: its bytes.
        events: number of events by name.
        prompts: the offsets of all `prompt:submit` events.
        longest: the bytes of the longest line, without its newline.
        input_tokens: the sum over all responses.
    """

    path: Path
    size: int
    events: Counter[str]
    prompts: list[int]
    longest: int
    input_tokens: int


class _Log:
    """Writes events one after another and keeps the account."""

    def __init__(self, out: BinaryIO, chance: random.Random) -> None:
        self.out = out
        self.chance = chance
        self.size = self.longest = self.input_tokens = 0
        self.events: Counter[str] = Counter()
        self.prompts: list[int] = []
        self.now = datetime(2026, 3, 4, 13, 20, tzinfo=UTC)

    def event(
        self, name: str, data: dict[str, Any], *, raw: bytes = b"", compact: bool = False, **top: Any
    ) -> None:
        """One line. `raw` is JSON text for `data.raw`, spliced in as it is."""
        self.now += timedelta(milliseconds=self.chance.randrange(1, 4000))
        ts = self.now.isoformat(timespec="milliseconds")
        record = {"ts": ts, "lvl": "INFO", "event": name, "session_id": SESSION, **top, "data": data}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":") if compact else None).encode()
        if raw:
            line = b"".join((line[:-2], b',"raw":' if compact else b', "raw": ', raw, b"}}"))
        self.events[name] += 1
        if name == "prompt:submit":
            self.prompts.append(self.size)
        self.out.write(line + b"\n")
        self.size += len(line) + 1
        self.longest = max(self.longest, len(line))


def write_event_file(path: Path, size: int, seed: int) -> EventFile:
    """Write at least `size` bytes of events; the same size and seed give the same bytes."""
    chance = random.Random(seed)
    messages = [_message(chance) for _ in range(300)]
    with path.open("wb") as out:
        log = _Log(out, chance)
        log.event("session:start", {"parent_id": None})
        turn = 0
        while log.size < size:
            turn += 1
            _turn(log, chance, messages, compact=turn % 7 == 0, room=size - log.size)
        log.event("session:end", {"status": "ok"})
    return EventFile(path, log.size, log.events, log.prompts, log.longest, log.input_tokens)


def _turn(log: _Log, chance: random.Random, messages: list[bytes], *, compact: bool, room: int) -> None:
    log.event("prompt:submit", {"prompt": _text(chance, 30)}, compact=compact)
    for step in range(chance.randrange(3, 9)):
        raw = _conversation(chance, messages, min(room, _request_size(chance)))
        log.event(
            "llm:request",
            {"provider": "x", "model": "model-a", "message_count": step},
            raw=raw,
            compact=compact,
        )
        tokens = len(raw) // 4
        log.input_tokens += tokens
        usage = {"input_tokens": tokens, "output_tokens": 80, "cost_usd": f"{tokens * 3e-6:.6f}"}
        model = {"provider": "x", "model": chance.choice(("model-a", "model-b"))}
        log.event("llm:response", {**model, "usage": usage}, compact=compact, duration_ms=2100, status="ok")
        span = f"{chance.getrandbits(64):016x}"
        log.event(
            "tool:pre",
            {"tool_name": "hook", "tool_input": _tool_input(chance)},
            compact=compact,
            span_id=span,
        )
        log.event(
            "tool:post",
            {"tool_name": "hook", "result": _text(chance, 200)},
            compact=compact,
            parent_span_id=span,
        )
    log.event("prompt:complete", {"status": "ok"}, compact=compact)


def _request_size(chance: random.Random) -> int:
    """Many small requests, some long conversations, few huge ones: about a quarter MB on average."""
    if chance.random() < 0.004:
        return chance.choice((5_000_000, LONGEST // 2, LONGEST - 1_000))
    return min(int(chance.paretovariate(0.9) * 20_000), 2_000_000)


def _conversation(chance: random.Random, messages: list[bytes], size: int) -> bytes:
    parts, have = [], 0
    while have < size:
        part = chance.choice(messages)
        if have + len(part) + 2 > LONGEST - 1_000:
            break
        parts.append(part)
        have += len(part) + 2
    return b'{"messages": [' + b", ".join(parts) + b"]}"


def _message(chance: random.Random) -> bytes:
    text = _text(chance, chance.choice((20, 200, 2000)))
    if chance.random() < 0.1:
        text += QUOTE
    return json.dumps(
        {"role": chance.choice(("user", "assistant")), "content": text}, ensure_ascii=False
    ).encode()


def _tool_input(chance: random.Random) -> dict[str, str]:
    command = {"command": _text(chance, 5)}
    return {"event": "prompt:submit", **command} if chance.random() < 0.05 else command


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))
