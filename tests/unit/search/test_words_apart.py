"""Words that are to be in one message, and are stored in one line, in several, or in several messages."""

import json
from pathlib import Path
from typing import Any

from sessionary.layouts.jsonl import WINDOW
from sessionary.workspace import Workspace

SESSION = "0b3c8a52-0000-4000-8000-000000000001"
FILLER = "x " * WINDOW
"""So long that what is behind it is in another window of the file."""


def claude(home: Path, *blocks: tuple[str, str]) -> None:
    """A session of Claude Code: texts, each in a record of its own; those with one id are one message."""
    path = home / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    records: list[dict[str, Any]] = []
    for number, (message, text) in enumerate(blocks):
        content = [{"type": "text", "text": text}]
        records.append(
            {
                "type": "assistant",
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": SESSION,
                "message": {"id": message, "role": "assistant", "model": "m", "content": content},
            }
        )
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def codex(home: Path, *texts: str) -> None:
    """A session of Codex: messages of the agent."""
    path = home / "sessions" / "2026" / "11" / "01" / f"rollout-2026-11-01T10-00-00-{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    records: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": SESSION, "cwd": "/w"}}]
    for text in texts:
        content = [{"type": "output_text", "text": text}]
        payload = {"type": "message", "role": "assistant", "content": content}
        records.append({"timestamp": "2026-11-01T10:00:00Z", "type": "response_item", "payload": payload})
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def amplifier(home: Path, *texts: str) -> None:
    folder = home / "projects" / "-p" / "sessions" / "one"
    folder.mkdir(parents=True)
    lines = (json.dumps({"role": "assistant", "content": text}) + "\n" for text in texts)
    (folder / "transcript.jsonl").write_text("".join(lines))


def found(home: Path, query: str) -> list[int]:
    return [hit.index for hit in Workspace(home, cache=str(home / "cache")).search(query)]


def test_a_message_of_several_records_holds_the_words_of_all(tmp_path: Path) -> None:
    claude(tmp_path, ("a", "quartz"), ("a", FILLER), ("a", "chunk"), ("b", "other"))
    assert found(tmp_path, "quartz chunk") == [0]
    assert found(tmp_path, "quartz other") == []
    assert found(tmp_path, "quartz missing OR chunk other OR other") == [1]


def test_a_message_in_one_line_is_found_behind_lines_with_one_of_the_words(tmp_path: Path) -> None:
    texts = ("quartz", FILLER, "chunk", f"{FILLER}y", "chunk of quartz")
    codex(tmp_path / "codex", *texts)
    amplifier(tmp_path / "amplifier", *texts)
    for home in (tmp_path / "codex", tmp_path / "amplifier"):
        assert found(home, "quartz chunk") == [4]
        assert found(home, "quartz NOT chunk") == [0]
        assert found(home, "quartz missing OR chunk NOT quartz") == [2]


def test_a_word_that_is_written_with_escapes_is_in_its_line(tmp_path: Path) -> None:
    codex(tmp_path, "quartz", "chunk")
    (path,) = tmp_path.rglob("rollout-*")
    path.write_text(path.read_text().replace('"chunk"', '"\\u0063hunk \\u0071uartz"'))
    assert found(tmp_path, "quartz chunk") == [1]


def test_sessions_with_the_words_apart_are_not_decoded(tmp_path: Path) -> None:
    codex(tmp_path, "quartz", "chunk")
    search = Workspace(tmp_path, cache=str(tmp_path / "cache"))
    (ref,) = search.refs()
    layout = search.layout_of(ref)
    decoded: list[object] = []
    read = type(layout)._read_page  # type: ignore[attr-defined]

    def counted(*arguments: Any) -> Any:
        decoded.append(arguments)
        return read(*arguments)

    setattr(layout, "_read_page", counted.__get__(layout))  # noqa: B010 - of this layout alone
    assert list(search.search("quartz chunk")) == []
    assert decoded == []
    assert [hit.index for hit in search.search("quartz")] == [0]
    assert decoded != []
