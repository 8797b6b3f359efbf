"""A word is found wherever the sessions of an agent may hold it, and in whatever form it is stored."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary.workspace import Workspace
from tests.support.agent_files import copilot_id, write_lines
from tests.support.cursor_files import Chat, Editor
from tests.unit.layouts.agents import test_claude_code as claude
from tests.unit.layouts.agents import test_codex as codex
from tests.unit.layouts.agents import test_copilot_cli as copilot
from tests.unit.layouts.agents import test_cursor_store as store
from tests.unit.layouts.agents import test_gemini as gemini
from tests.unit.layouts.agents import test_opencode as opencode
from tests.unit.layouts.agents import test_pi as pi
from tests.unit.layouts.agents import test_qwen as qwen
from tests.unit.layouts.agents import test_vscode_chat as vscode

ACCENTED = ("z\u00fcrich", "zu\u0308rich")
"""One word in both Unicode forms."""
CHINESE, RUN = "\u90e8\u7f72", "\u6211\u4eec\u6b63\u5728\u8ba8\u8bba\u90e8\u7f72\u65b9\u6848"
"""A word of two characters, and a run of characters that holds it."""


def word(kind: str, place: str) -> str:
    """A word that stands in one place only."""
    return f"planted{kind}{place}".replace("_", "")


class Planted:
    """Gives each place of a kind its word, and remembers it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.places: list[str] = []

    def __call__(self, place: str) -> str:
        self.places.append(place)
        return f"so {word(self.kind, place)} it is"


def claude_code(home: Path, plant: Planted) -> None:
    root = home / "projects" / claude.SLUG
    records = [
        claude.record("user", 1, None, plant("prompt")),
        claude.record(
            "assistant", 2, 1, [{"type": "thinking", "thinking": plant("thinking"), "signature": "s"}]
        ),
        claude.record("assistant", 3, 2, [claude.use("t1", command=plant("arguments"))]),
        claude.record("user", 4, 3, [claude.result("t1", plant("result"))]),
        claude.record("assistant", 5, 4, [{"type": "text", "text": plant("answer")}]),
        claude.record("user", 6, 5, plant("rewound")),
        claude.record("user", 7, 5, "Instead"),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "u8",
            "parentUuid": None,
            "logicalParentUuid": "u7",
            "content": "Compacted",
        },
        claude.record("user", 9, 8, plant("summary"), isCompactSummary=True),
        claude.record("user", 10, 9, "Go on", isSidechain=False),
        claude.record("user", 11, None, plant("inner"), isSidechain=True),
        {"type": "custom-title", "customTitle": plant("title")},
        {"type": "ai-title", "aiTitle": "Not shown"},
    ]
    write_lines(root / f"{claude.ID}.jsonl", *records)
    below = root / claude.ID / "subagents"
    write_lines(below / "agent-a.jsonl", claude.record("user", 1, None, plant("agent")))
    write_lines(
        below / "workflows" / "w" / "agent-b.jsonl", claude.record("user", 1, None, plant("workflow"))
    )


def codex_(home: Path, plant: Planted) -> None:
    def thread(number: int) -> str:
        return f"{number:08x}-0000-4000-8000-000000000001"

    def call(text: str, answer: str) -> list[dict[str, Any]]:
        return [
            codex.item(
                "function_call", 3, name="shell", arguments=json.dumps({"command": text}), call_id="c"
            ),
            codex.item("function_call_output", 4, call_id="c", output=answer),
        ]

    talk = [
        codex.meta(thread(1)),
        codex.asked(plant("prompt")),
        codex.item("reasoning", 2, summary=[{"type": "summary_text", "text": plant("thinking")}]),
        *call(plant("arguments"), plant("result")),
        codex.says("assistant", plant("answer"), 5),
        codex.item("message", 6, role="assistant", content=[{"type": "output_text", "text": "x"}]),
        codex.record("compacted", 7, message=plant("summary")),
        codex.asked(plant("rolledback"), 8),
        codex.event("thread_rolled_back", 9, num_turns=1),
        codex.asked("Instead", 10),
    ]
    codex.write(home, *talk, name=thread(1))
    codex.compress(codex.write(home, codex.meta(thread(2)), codex.asked(plant("zst")), name=thread(2)).path)
    archived = codex.place(home, thread(3), folder="archived_sessions")
    write_lines(archived, codex.meta(thread(3)), codex.asked(plant("archived")))
    page, last = thread(5), thread(6)
    first = codex.ordinals(
        [codex.meta(thread(4)), codex.asked(plant("lineage")), codex.asked(plant("reverted"), 2)]
    )
    codex.write(home, *first, name=thread(4), hour=9)
    at = codex.base(thread(4), codex.encoded(first[:2]))
    second = codex.ordinals([codex.meta(thread(4), history_base=at), codex.asked(plant("page"), 3)], 2)
    codex.write(home, *second, name=f"{thread(4)}_{page}", hour=10)
    left = codex.ordinals([codex.meta(thread(4), history_base=at), codex.asked(plant("leftpage"), 4)], 2)
    codex.write(home, *left, name=f"{thread(4)}_{last}", hour=8)
    codex.write(home, codex.meta(thread(7)), codex.asked("x"), name=thread(7))
    spawned = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": thread(1), "depth": 1}}}}
    codex.write(home, codex.meta(thread(8), **spawned), codex.asked(plant("agent")), name=thread(8))
    codex.state(home, {"id": thread(7), "rollout_path": "x", "title": plant("title")})
    (home / "session_index.jsonl").write_bytes(
        codex.encoded([{"id": thread(1), "thread_name": plant("name")}])
    )


def opencode_(home: Path, plant: Planted) -> None:
    database = opencode.Store(home / "opencode.db")
    database.session("one", title=plant("title"))
    database.message("one", "m1", "user", opencode.text(plant("prompt")))
    reasoning = {"type": "reasoning", "text": plant("thinking")}
    used = opencode.tool("c1", input={"command": plant("arguments")}, output=plant("result"))
    database.message("one", "m2", "assistant", reasoning, opencode.text(plant("answer")), used)
    database.message("one", "m3", "assistant", opencode.text(plant("summary")), summary=True)
    database.session("two", "one")
    database.message("two", "n1", "user", opencode.text(plant("agent")))
    now = database.tick()
    database.run("INSERT INTO session_v2 VALUES (?,?,?,?,?,?,?)", "three", None, None, "T", "/w", now, now)
    database.v2("three", 1, "user", text=plant("v2"))
    database.v2("three", 2, "compaction", summary=plant("compaction"), reason="auto")
    storage = home / "storage"
    write_lines(storage / "session" / "p" / "four.json", {"id": "four", "title": plant("filetitle")})
    write_lines(storage / "message" / "four" / "x1.json", {"id": "x1", "role": "user"})
    write_lines(storage / "part" / "x1" / "y1.json", {"type": "text", "text": plant("file")})


def gemini_(home: Path, plant: Planted) -> None:
    chats = home / "tmp" / "app" / "chats"
    talk = [
        {"sessionId": "3f0c81d2-1", "kind": "main"},
        gemini.said(1, "user", [{"text": plant("prompt")}]),
        gemini.said(
            2, "gemini", plant("answer"), thoughts=[{"subject": "Plan", "description": plant("thinking")}],
            toolCalls=[{**gemini.call("t1", plant("result")), "args": {"command": plant("arguments")}}],
        ),
        gemini.said(3, "user", plant("rewound")),
        {"$rewindTo": "m3"},
        gemini.said(4, "user", "Instead"),
        gemini.said(5, "user", f"<state_snapshot>{plant('summary')}</state_snapshot>"),
        {"$set": {"summary": plant("title")}},
    ]  # fmt: skip
    write_lines(chats / "session-2026-03-01T09-00-3f0c81d2.jsonl", *talk)
    write_lines(
        chats / "3f0c81d2-1" / "sub.jsonl",
        {"sessionId": "s", "kind": "subagent"},
        gemini.said(1, "user", plant("agent")),
    )
    old = {
        "sessionId": "4f0c81d2-1",
        "summary": plant("oldtitle"),
        "messages": [gemini.said(1, "user", plant("old"))],
    }
    (chats / "session-2026-03-01T09-00-4f0c81d2.json").write_text(json.dumps(old, indent=2))


def qwen_(home: Path, plant: Planted) -> None:
    result = {"functionResponse": {"id": "t1", "name": "sh", "response": {"output": plant("result")}}}
    call = {"functionCall": {"id": "t1", "name": "sh", "args": {"command": plant("arguments")}}}
    talk = [
        qwen.record("user", 1, [{"text": plant("prompt")}]),
        qwen.record("assistant", 2, [{"text": plant("thinking"), "thought": True}, {"text": plant("answer")}, call]),
        qwen.record("tool_result", 3, [result]),
        qwen.record("user", 4, [{"text": plant("rewound")}]),
        qwen.record("user", 5, [{"text": "Instead"}], 3),
        qwen.system(
            "chat_compression", 6,
            compressedHistory=[{"role": "user", "parts": [{"text": plant("summary")}]}],
        ),
        qwen.system("custom_title", 7, customTitle=plant("title")),
    ]  # fmt: skip
    write_lines(home / "projects" / "-w" / "chats" / f"{qwen.ID}.jsonl", *talk)
    agent = qwen.record("user", 1, [{"text": plant("agent")}])
    write_lines(home / "projects" / "-w" / "subagents" / qwen.ID / "a1.jsonl", agent)


def pi_(home: Path, plant: Planted) -> None:
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": plant("arguments")}}
    talk = [
        {"type": "session", "version": 3, "id": pi.ID, "cwd": "/w", "timestamp": "2026-03-01T09:00:00.000Z"},
        pi.says(1, "user", plant("prompt"), None),
        pi.says(2, "assistant", [{"type": "thinking", "thinking": plant("thinking")}, call]),
        pi.says(
            3, "toolResult", [{"type": "text", "text": plant("result")}], toolCallId="t1", toolName="bash"
        ),
        pi.answer(4, plant("answer")),
        pi.says(5, "user", plant("rewound")),
        pi.entry("branch_summary", 6, 4, fromId="e5", summary=plant("left")),
        pi.entry("compaction", 7, summary=plant("summary"), firstKeptEntryId="e4"),
        pi.says(8, "user", "Go on"),
        pi.entry("session_info", 9, name=plant("title")),
    ]
    write_lines(home / "sessions" / "--w--" / f"2026-03-01T09-00-00-000Z_{pi.ID}.jsonl", *talk)


def copilot_(home: Path, plant: Planted) -> None:
    talk = [
        copilot.START,
        copilot.event("user.message", 2, content=plant("prompt")),
        copilot.event(
            "assistant.message", 3, messageId="m", content=plant("answer"), reasoningText=plant("thinking"),
            toolRequests=[copilot.asks("t1", command=plant("arguments"))],
        ),
        copilot.event("tool.execution_complete", 4, toolCallId="t1", success=True, result={"content": plant("result")}),
        copilot.event("session.compaction_complete", 5, summaryContent=plant("summary")),
        copilot.event("user.message", 6, content=plant("rewound")),
        copilot.event("session.snapshot_rewind", 7, upToEventId=copilot_id(6)),
    ]  # fmt: skip
    folder = home / "session-state" / copilot.ID
    write_lines(folder / "events.jsonl", *talk)
    (folder / "workspace.yaml").write_text(f"id: {copilot.ID}\nsummary: {plant('title')}\n")


def vscode_(home: Path, plant: Planted) -> None:
    said = [{"kind": "thinking", "value": plant("thinking")}, {"value": plant("answer")}, vscode.call("c1")]
    result = vscode.done("c1", plant("result"))
    result["metadata"]["toolCallRounds"][0]["toolCalls"][0]["arguments"] = json.dumps(
        {"q": plant("arguments")}
    )
    talk = [
        vscode.initial(),
        vscode.push("requests", add=[vscode.request(1, plant("prompt"))]),
        vscode.push("requests", 0, "response", add=said),
        vscode.sets("requests", 0, "result", to=result),
        vscode.push("requests", add=[vscode.request(2, plant("rewound"))]),
        vscode.push("requests", add=[vscode.request(3, "Instead")], cut=1),
        vscode.sets("customTitle", to=plant("title")),
    ]
    vscode.write(home, *talk)
    events = [{**one, "data": {**one["data"]}} for one in vscode.EVENTS]
    events[0]["data"]["sessionId"] = vscode.OTHER
    events[1]["data"]["content"] = plant("transcript")
    vscode.transcript(home, *events, name=vscode.OTHER)


def cursor_(home: Path, plant: Planted) -> None:
    chat = Chat(home, "s1", hasConversation=True)
    chat.meta |= {"name": plant("title")}
    used = {"type": "tool-call", "toolCallId": "c1", "toolName": "Shell", "args": {"q": plant("arguments")}}
    thought = {"type": "reasoning", "text": plant("thinking"), "signature": "x"}
    chat.add(
        store.user(plant("prompt")),
        {"role": "assistant", "content": [thought, {"type": "text", "text": plant("answer")}, used]},
        store.result("c1", plant("result")),
        store.user("more"),
    )
    editor = Editor(home / "User")
    editor.bubble("s3", "b1", 1, text=plant("bubble"))
    editor.session("s3", name=plant("editortitle"))
    editor.bubble("s4", "b1", 1, text=plant("agent"))
    editor.session("s4", subagentInfo={"parentComposerId": "s3"})


BUILD: dict[str, Callable[[Path, Planted], None]] = {
    "claude_code": claude_code,
    "codex": codex_,
    "copilot_cli": copilot_,
    "gemini": gemini_,
    "opencode": opencode_,
    "pi": pi_,
    "qwen": qwen_,
    "vscode_chat": vscode_,
    "cursor": cursor_,
}
NO_SUMMARY = ("vscode_chat", "cursor")
"""These keep no summary of earlier messages."""


def workspace(tmp_path: Path, kind: str) -> Workspace:
    homes = {one: tmp_path / one for one in (*BUILD, "amplifier")}
    return Workspace(homes, root=tmp_path / "none", cache=str(tmp_path / f"cache-{kind}"))


@pytest.mark.parametrize("kind", BUILD)
def test_a_word_is_found_in_every_place(tmp_path: Path, kind: str) -> None:
    plant = Planted(kind)
    BUILD[kind](tmp_path / kind, plant)
    places = {"prompt", "answer", "thinking", "arguments", "result", "title", "summary"}
    assert places - ({"summary"} if kind in NO_SUMMARY else set()) <= set(plant.places)
    found = {place: list(workspace(tmp_path, kind).search(word(kind, place))) for place in plant.places}
    assert [place for place, hits in found.items() if not hits] == []
    assert {hit.ref.kind for hits in found.values() for hit in hits} == {kind}
    titles = [place for place, hits in found.items() if {hit.part for hit in hits} == {"title"}]
    assert titles == [place for place in plant.places if place.endswith(("title", "name"))]
    for place, hits in found.items():
        outside = place in ("rewound", "rolledback", "inner", "reverted", "leftpage")
        assert all(hit.outside is outside for hit in hits), place


def forms(kind: str) -> Iterator[tuple[str, str]]:
    """What is stored, and what is searched for."""
    for stored in ACCENTED:
        for asked in ACCENTED:
            yield f"in {stored} today", asked
            yield f"in {stored.upper()} today", asked
    yield RUN, CHINESE


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("kind", ["claude_code", "codex", "copilot_cli", "gemini", "pi", "qwen"])
def test_a_word_is_found_in_every_form(tmp_path: Path, kind: str, escaped: bool) -> None:
    for number, (stored, asked) in enumerate(forms(kind)):
        plant = Planted(kind)
        home = tmp_path / str(number)
        BUILD[kind](home / kind, plant)
        for path in (home / kind).rglob("*.jsonl"):
            text = path.read_text()
            new = json.dumps(stored)[1:-1] if escaped else stored
            path.write_text(text.replace(f"so {word(kind, 'prompt')} it is", new), "utf-8")
        (hit,) = workspace(home, kind).search(asked)
        assert [hit.text[mark.start : mark.end].casefold() for mark in hit.marks] == [
            asked.casefold() if asked == CHINESE else ACCENTED[0]
        ]


def test_a_title_is_not_a_message(tmp_path: Path) -> None:
    from sessionary.search import PERSON, Needle, Query

    plant = Planted("claude_code")
    claude_code(tmp_path / "claude_code", plant)
    needle = Needle(word("claude_code", "title"))
    found = workspace(tmp_path, "x")
    assert [hit.part for hit in found.search(Query((needle,), parts=frozenset({"title"})))] == ["title"]
    assert list(found.search(Query((needle,), roles=frozenset({PERSON})))) == []
    assert list(found.search(Query((needle,), parts=frozenset({"text"})))) == []
