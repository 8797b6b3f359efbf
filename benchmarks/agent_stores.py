"""Stores of Claude Code and Codex with known truth: sessions, turns, and tokens by model. The same in every run.

Their records have the shapes and about the sizes of those that the agents write. Counts are stored as the agents
store them: Claude Code repeats the usage of a response in each of its records, and Codex writes what was said and the
counter of tokens twice.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.samples import PLAIN, RICH
from sessionary.model import Usage

CLAUDE_CODE, CODEX = "claude_code", "codex"
MODELS = {CLAUDE_CODE: ("claude-sonnet-4-5", "claude-opus-4-1"), CODEX: ("gpt-5-codex", "gpt-5")}
ROUNDS = 4
"""Calls of tools in a turn."""
CWD = "/home/u/app"
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
_SUB_AGENTS = 20
"""One session of Claude Code in so many has a sub-agent."""

FREQUENT = "quartz"
"""A word of every answer."""
RARE = "zephyrine"
"""A word of every answer of two sessions in a thousand."""
RARE_EVERY = 1000

Record = dict[str, Any]


class Truth(NamedTuple):
    """What a store holds.

    Attributes:
        sessions: the number of files, by kind; those of sub-agents are included.
        turns: what the user asked, by kind; and what each sub-agent was asked.
        usage: the tokens by kind and model.
        paths: the files.
    """

    sessions: Counter[str]
    turns: Counter[str]
    usage: dict[tuple[str, str], Usage]
    paths: list[Path]


def write_stores(home: Path, sessions: int, size: int, *, seed: int = 0) -> Truth:
    """Write sessions of both agents below one home, by turns.

    Args:
        home: the folder.
        sessions: how many, without those of sub-agents.
        size: about how many bytes each has on average; one in ten is five times as long as the others.
        seed: of the words and ids.
    """
    truth = Truth(Counter(), Counter(), {}, [])
    writers = (_ClaudeCode(home, seed, truth), _Codex(home, seed, truth))
    for number in range(sessions):
        share = 25 / 7 if number // 2 % 10 == 0 else 5 / 7
        writers[number % 2].write(number, int(size * share))
    return truth


class _Writer:
    """Writes sessions of one agent, and adds to the truth what they hold."""

    kind: str

    def __init__(self, home: Path, seed: int, truth: Truth) -> None:
        self.home = home
        self.truth = truth
        self.chance = random.Random(f"{self.kind} {seed}")
        self.texts = [
            " ".join(self.chance.choices(RICH if at % 4 == 3 else PLAIN, k=1000)) for at in range(50)
        ]
        self.time = START
        self.clock = ""
        self.number = 0

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def tick(self) -> None:
        self.time += timedelta(milliseconds=1234)
        self.clock = f"{self.time:%Y-%m-%dT%H:%M:%S}.{self.time.microsecond // 1000:03}Z"

    def text(self, length: int) -> str:
        text = self.chance.choice(self.texts)
        at = self.chance.randrange(0, len(text) - length)
        return text[at : at + length]

    def answer(self) -> str:
        rare = f" {RARE.title()}" if self.number % RARE_EVERY < 2 else ""
        return f"{self.text(500)} {FREQUENT}{rare}"

    def count(self, model: str, usage: Usage) -> None:
        total = self.truth.usage.get((self.kind, model), Usage())
        self.truth.usage[self.kind, model] = total.plus(usage)

    def store(self, path: Path, records: Iterator[Record], size: int) -> None:
        """Write records until a turn ends behind `size` bytes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        written = 0
        with path.open("wb") as file:
            for record in records:
                if not record:  # the end of a turn
                    self.truth.turns[self.kind] += 1
                    if written >= size:
                        break
                    continue
                line = msgspec.json.encode(record) + b"\n"
                written += file.write(line)
        self.truth.sessions[self.kind] += 1
        self.truth.paths.append(path)


class _ClaudeCode(_Writer):
    kind = CLAUDE_CODE

    def write(self, number: int, size: int) -> None:
        session = self.new_id()
        self.number, self.time = number, START + timedelta(minutes=number)
        folder = self.home / "projects" / f"-home-u-app{number % 40}"
        self.store(folder / f"{session}.jsonl", self.records(session, number, side=False), size)
        if number // 2 % _SUB_AGENTS == 0:
            path = folder / session / "subagents" / f"agent-{number:08x}.jsonl"
            self.store(path, self.records(session, number, side=True), 1)

    def records(self, session: str, number: int, *, side: bool) -> Iterator[Record]:
        model, parent = MODELS[self.kind][number // 2 % 2], None
        if not side:
            yield {"type": "file-history-snapshot", "messageId": self.new_id(), "snapshot": {}}
            yield {"type": "ai-title", "aiTitle": f"Title {number}", "sessionId": session}
        while True:
            for record in self.turn(model):
                self.tick()
                frame = {
                    "parentUuid": parent,
                    "isSidechain": side,
                    "userType": "external",
                    "cwd": CWD,
                    "sessionId": session,
                    "version": "2.1.5",
                    "gitBranch": "main",
                    **record,
                    "uuid": (parent := self.new_id()),
                    "timestamp": self.clock,
                }
                yield frame
            yield {}

    def turn(self, model: str) -> Iterator[Record]:
        yield {"type": "user", "message": {"role": "user", "content": self.text(300)}}
        for _ in range(ROUNDS):
            call = f"toolu_{self.new_id()[:24]}"
            text, run = {"type": "text", "text": self.text(250)}, {"command": self.text(120)}
            use = {"type": "tool_use", "id": call, "name": "Bash", "input": run}
            yield from self.response(model, text, use)
            output = self.text(1200)
            block = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": False}
            result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            yield {
                "type": "user",
                "message": {"role": "user", "content": [block]},
                "toolUseResult": result,
            }
        yield from self.response(model, {"type": "text", "text": self.answer()})

    def response(self, model: str, *blocks: Record) -> Iterator[Record]:
        """One record for each block, all of one message; the usage is that of the whole."""
        given, out, read, made = (self.chance.randrange(10, top) for top in (90, 900, 90_000, 9000))
        usage = {
            "input_tokens": given,
            "cache_creation_input_tokens": made,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": made, "ephemeral_1h_input_tokens": 0},
            "output_tokens": out,
            "service_tier": "standard",
        }
        self.count(model, Usage(given, out, read, made))
        message = {"id": f"msg_{self.new_id()[:24]}", "type": "message", "role": "assistant", "model": model}
        request = f"req_{self.new_id()[:24]}"
        for block in blocks:
            stop = {"stop_reason": "tool_use" if len(blocks) > 1 else "end_turn", "stop_sequence": None}
            whole = {**message, "content": [block], **stop, "usage": usage}
            yield {"message": whole, "requestId": request, "type": "assistant"}


class _Codex(_Writer):
    kind = CODEX

    def write(self, number: int, size: int) -> None:
        self.number, self.time = number, START + timedelta(minutes=number)
        session = self.new_id()
        stamp = f"{self.time:%Y-%m-%dT%H-%M-%S}"
        path = self.home / f"sessions/{self.time:%Y/%m/%d}/rollout-{stamp}-{session}.jsonl"
        self.store(path, self.framed(session, number), size)

    def framed(self, session: str, number: int) -> Iterator[Record]:
        for kind, payload in self.records(session, number):
            self.tick()
            yield {"timestamp": self.clock, "type": kind, "payload": payload} if kind else {}

    def records(self, session: str, number: int) -> Iterator[tuple[str, Record]]:
        model = MODELS[self.kind][number // 2 % 2]
        instructions = {"text": self.text(3000)}
        meta = {"id": session, "cwd": CWD, "cli_version": "0.98.0", "base_instructions": instructions}
        yield (
            "session_meta",
            {**meta, "git": {"branch": "main"}, "source": "cli", "originator": "codex_cli_rs"},
        )
        total: Counter[str] = Counter()
        while True:
            turn = self.new_id()
            yield "event_msg", {"type": "task_started", "turn_id": turn, "model_context_window": 258_400}
            yield (
                "turn_context",
                {"turn_id": turn, "cwd": CWD, "model": model, "approval_policy": "on-request"},
            )
            asked = self.text(300)
            yield "response_item", _message("user", "input_text", asked)
            yield "event_msg", {"type": "user_message", "message": asked, "images": []}
            for _ in range(ROUNDS):
                secret = self.chance.randbytes(400).hex()
                yield "response_item", {"type": "reasoning", "summary": [], "encrypted_content": secret}
                call = f"call_{self.new_id()[:24]}"
                run = msgspec.json.encode({"cmd": self.text(120), "workdir": CWD}).decode()
                named = {"name": "exec_command", "arguments": run, "call_id": call}
                yield "response_item", {"type": "function_call", **named}
                output = f"Chunk ID: 1\nProcess exited with code 0\nOutput:\n{self.text(2000)}"
                yield "response_item", {"type": "function_call_output", "call_id": call, "output": output}
                yield from self.counted(model, total)
            answer = self.answer()
            yield "event_msg", {"type": "agent_message", "message": answer}
            yield "response_item", _message("assistant", "output_text", answer)
            yield from self.counted(model, total)
            yield "event_msg", {"type": "task_complete", "turn_id": turn, "last_agent_message": answer}
            yield "", {}

    def counted(self, model: str, total: Counter[str]) -> Iterator[tuple[str, Record]]:
        """The counter of tokens, and its repetition that adds nothing."""
        given, read, out, thought = (self.chance.randrange(100, top) for top in (900, 90_000, 900, 101))
        last = {
            "input_tokens": given + read,
            "cached_input_tokens": read,
            "output_tokens": out,
            "reasoning_output_tokens": thought,
            "total_tokens": given + read + out,
        }
        total.update(last)
        self.count(model, Usage(given, out, read, 0, thought))
        limits = {"primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1_772_000_000}}
        info = {"total_token_usage": dict(total), "last_token_usage": last, "model_context_window": 258_400}
        event = {"type": "token_count", "info": info, "rate_limits": limits}
        yield "event_msg", event
        if self.chance.random() < 0.25:
            yield "event_msg", event


def _message(role: str, kind: str, text: str) -> Record:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
