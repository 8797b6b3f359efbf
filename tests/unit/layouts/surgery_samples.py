"""A small session with everything that an operation over several files has to get right."""

import json
from pathlib import Path
from typing import Any

ID = "3f0c8a52-1111-4222-8333-444455556666"
METADATA = {
    "session_id": ID,
    "created": "2026-03-01T09:00:00+00:00",
    "bundle": "bundle:foundation",
    "model": "model-a",
    "turn_count": 3,
    "name": "Fix login race",
    "working_dir": "/home/u/app",
}


def _stamp(turn: int, second: int) -> str:
    return f"2026-03-01T09:0{turn}:{second:02}.000+00:00"


def turn(number: int, prompt: str, *, stamped: str = "metadata") -> list[dict[str, Any]]:
    """A prompt, a tool call, its result, an answer; the time in one of three places, or nowhere."""
    call = {"id": f"toolu_{number}", "tool": "bash", "arguments": {"command": f"ls {number}"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": [{"type": "text", "text": "Looking."}], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"toolu_{number}", "name": "bash", "content": f"file {number}"},
        {"role": "assistant", "content": f"Answer {number}."},
    ]
    for second, message in enumerate(said, 1):
        time = _stamp(number, second)
        if stamped == "metadata":
            message["metadata"] = {"timestamp": time}
        elif stamped in ("timestamp", "ts"):
            message[stamped] = time
    return said


def events_of(
    number: int, prompt: str, *, ids: bool = True, times: bool = True, span: bool = True
) -> list[dict[str, Any]]:
    """What a turn logs; the prompt half a second before its message is stamped."""
    link = {"tool_call_id": f"toolu_{number}"} if ids else {}
    within: dict[str, Any] = {"span_id": f"span{number}"} if span else {}

    def event(second: float, name: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
        moment = f"2026-03-01T09:0{number}:{second:06.3f}+00:00"
        ts = {"ts": moment} if times else {}
        schema = {"name": "amplifier.log", "ver": "1.0.0"}
        return {**ts, "lvl": "INFO", "schema": schema, "event": name, "session_id": ID, **more, "data": data}

    return [
        event(0.5, "prompt:submit", {"prompt": prompt}),
        event(1.2, "llm:request", {"messages": ["…" * 10]}),
        event(1.5, "llm:response", {"usage": {"input_tokens": 10}}),
        event(1.8, "tool:pre", {"tool_name": "bash", **link}, **within),
        event(2.9, "tool:post", {"tool_name": "bash", "result": f"file {number}", **link}),
        event(3.0, "hook:ran", {}, **({"parent_span_id": f"span{number}"} if span else {})),
        event(4.5, "prompt:complete", {}),
    ]


PROMPTS = ("List files", "ok", "And now?")
MESSAGES = [message for number, prompt in enumerate(PROMPTS, 1) for message in turn(number, prompt)]
EVENTS = [
    {"ts": "2026-03-01T08:59:59.000+00:00", "lvl": "INFO", "event": "session:start", "session_id": ID},
    *(event for number, prompt in enumerate(PROMPTS, 1) for event in events_of(number, prompt)),
]


def lines(values: list[dict[str, Any]]) -> bytes:
    """As the original writes them."""
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def write_session(
    folder: Path,
    messages: list[dict[str, Any]] = MESSAGES,
    events: list[dict[str, Any]] = EVENTS,
    metadata: dict[str, Any] = METADATA,
) -> Path:
    """A session folder as the original leaves it."""
    folder.mkdir(parents=True)
    folder.joinpath("transcript.jsonl").write_bytes(lines(messages))
    folder.joinpath("metadata.json").write_text(json.dumps(metadata, indent=2), "utf-8")
    folder.joinpath("events.jsonl").write_bytes(lines(events))
    return folder


def read(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Transcript, metadata and events as they are."""
    names = ("transcript.jsonl", "metadata.json", "events.jsonl")
    return tuple((folder / name).read_bytes() for name in names)  # type: ignore[return-value]
