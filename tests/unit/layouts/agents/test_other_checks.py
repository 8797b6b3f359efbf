"""What Gemini CLI, Qwen Code, Pi and Codex refuse: each fault is reported with its place, and nothing else is."""

from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.layouts.agents.gemini import GeminiLayout
from sessionary.layouts.agents.pi import PiLayout
from sessionary.layouts.agents.qwen import QwenLayout
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.model import Severity
from sessionary.testing.layout_suite import CountingFs
from tests.support import agent_stores
from tests.support.agent_files import write_lines
from tests.unit.layouts.agents import test_codex as codex
from tests.unit.layouts.agents import test_gemini as gemini
from tests.unit.layouts.agents import test_pi as pi
from tests.unit.layouts.agents import test_qwen as qwen

Found = list[tuple[str, str, int | None]]

HIDES, STOPS, NOTE = Severity.hides_data.name, Severity.stops_resume.name, Severity.note.name


def check(layout: AgentLayout, path: Path, *records: dict[str, Any]) -> Found:
    write_lines(path, *records)
    ref = layout.ref_for_path(path)
    assert ref is not None
    return [(one.code, one.severity.name, one.line) for one in layout.check(ref)]


def user(number: int, parent: int | None = -1, text: str = "x") -> dict[str, Any]:
    return qwen.record("user", number, [{"text": text}], parent)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([user(1), user(2)], []),
        ([user(1), user(2, 2)], [("self_parent", HIDES, 2)]),
        ([user(1), user(2, 9)], [("missing_parent", HIDES, 2)]),
        ([user(1), user(2, 3), user(3, 2)], [("parent_cycle", HIDES, 2)]),
        ([{**user(1), "sessionId": "other"}], [("id_mismatch", NOTE, None)]),
        ([user(1), qwen.system("managed_session_header", 2)], [("managed_session", NOTE, None)]),
        ([user(1, text="cut \ud83d")], [("lone_surrogate", STOPS, 1)]),
    ],
)
def test_qwen(tmp_path: Path, records: list[dict[str, Any]], expected: Found) -> None:
    path = tmp_path / "projects" / "-w" / "chats" / f"{qwen.ID}.jsonl"
    assert check(QwenLayout(tmp_path), path, *records) == expected


def test_qwen_ids_that_clash(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-w" / "chats"
    write_lines(folder / f"{qwen.ID}.jsonl", user(1))
    assert check(QwenLayout(tmp_path), folder / "other.jsonl", user(1)) == [("id_clash", STOPS, None)]


HEADER = {"type": "session", "version": 3, "id": pi.ID, "cwd": "/w"}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([HEADER, pi.says(1, "user", "x", None), pi.answer(2, "y")], []),
        ([pi.says(1, "user", "x", None)], [("no_header", STOPS, 1)]),
        ([HEADER, pi.says(1, "assistant", "y", None)], [("bad_content", STOPS, 2)]),
        (
            [HEADER, pi.entry("compaction", 1, None, firstKeptEntryId="e9", summary="s")],
            [("missing_entry", HIDES, 2)],
        ),
        ([HEADER, pi.says(1, "user", "x", 9)], [("missing_parent", HIDES, 2)]),
        ([HEADER, pi.says(1, "user", "x", 1)], [("self_parent", HIDES, 2)]),
        ([HEADER, {**pi.says(1, "user", "x"), "parentId": pi.ID}], []),
        ([{**HEADER, "id": "other"}], [("id_mismatch", NOTE, None)]),
    ],
)
def test_pi(tmp_path: Path, records: list[dict[str, Any]], expected: Found) -> None:
    path = tmp_path / "sessions" / "--w--" / f"2026-03-01T09-00-00-000Z_{pi.ID}.jsonl"
    assert check(PiLayout(tmp_path), path, *records) == expected


META = {"sessionId": "3f0c81d2-1", "kind": "main"}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([META, gemini.said(1, "user", "x")], []),
        ([], [("empty_file", STOPS, None)]),
        ([gemini.said(1, "user", "x")], [("no_header", STOPS, None)]),
        ([{**META, "sessionId": "other"}], [("id_mismatch", NOTE, None)]),
        (
            [META, gemini.said(1, "user", "x"), {"$rewindTo": "m9"}],
            [("not_shown", NOTE, None), ("unknown_rewind", HIDES, 3)],
        ),
        ([META, gemini.said(1, "user", "x"), gemini.said(1, "user", "y")], []),
    ],
)
def test_gemini(tmp_path: Path, records: list[dict[str, Any]], expected: Found) -> None:
    path = tmp_path / "tmp" / "app" / "chats" / "session-2026-03-01T09-00-3f0c81d2.jsonl"
    assert check(GeminiLayout(tmp_path), path, *records) == expected


def test_gemini_twins_and_what_is_beside(tmp_path: Path) -> None:
    layout, chats = GeminiLayout(tmp_path), tmp_path / "tmp" / "app" / "chats"
    first, second = (chats / f"session-2026-03-0{day}T09-00-3f0c81d2.jsonl" for day in (1, 2))
    write_lines(second, META)
    assert check(layout, first, META) == [("id_clash", STOPS, None)]
    write_lines(chats / "3f0c81d2-1" / "a.jsonl", META)
    write_lines(chats / "gone" / "a.jsonl", META)
    assert [(one.code, Path(one.path).name) for one in layout.leftovers()] == [("orphan_folder", "gone")]


def test_codex_providers_that_differ(tmp_path: Path) -> None:
    ref = codex.write(tmp_path, codex.meta(model_provider="openai"), codex.asked("x"))
    for provider, expected in (("openai", []), ("azure", ["other_provider"])):
        codex.state(tmp_path, {"id": codex.ID, "rollout_path": ref.locator, "model_provider": provider})
        assert [one.code for one in CodexLayout(tmp_path).check(ref)] == expected


def test_a_check_reads_the_file_of_a_session_once(tmp_path: Path) -> None:
    agent_stores.make(tmp_path)
    layouts: list[tuple[type[AgentLayout], str]] = [(CopilotCliLayout, ".copilot"), (GeminiLayout, ".gemini")]
    for layout, folder in layouts:
        fs = CountingFs()
        (ref,) = (one for one in layout(tmp_path / folder).discover() if "/sub" not in one.locator)
        assert list(layout(tmp_path / folder, fs).check(ref)) == []
        assert fs.opened[Path(ref.locator).name] == 1, layout
