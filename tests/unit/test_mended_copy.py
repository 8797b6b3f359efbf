"""Mended copies of sessions of other agents: what `check` reports is gone, all else is as it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary import Workspace
from sessionary.errors import AlreadyExists, Corrupt, Invalid, Unsupported
from sessionary.model import Message, Problem, Severity
from sessionary.workspace.mended_copy import MendedCopy
from tests.lanes import shared_folder
from tests.support.agent_files import copilot_id
from tests.support.faults import FaultFs, sweep

ID = "3f0c81d2-0000-4000-8000-000000000001"
Record = dict[str, Any]


def claude(number: int, kind: str, content: Any, parent: int | None = -1, **message: Any) -> Record:
    above = number - 1 if parent == -1 else parent
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{above}" if above else None,
        "sessionId": ID,
        "cwd": "/w",
        "timestamp": f"2026-03-01T09:00:{number:02}Z",
        "message": {"role": kind, "content": content, **message},
    }


def use(name: str) -> Record:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def result(name: str, text: str = "ok") -> Record:
    return {"type": "tool_result", "tool_use_id": name, "content": text}


SAID = {"type": "text", "text": "Said."}
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
HELLO = claude(1, "user", "Hello")

CLAUDE: dict[str, list[Record]] = {
    "orphaned_call": [
        HELLO,
        claude(2, "assistant", [use("t1"), use("t2")]),
        claude(3, "user", [result("t1")]),
        claude(4, "assistant", [SAID]),
    ],
    "orphaned_result": [
        HELLO,
        claude(2, "assistant", [SAID]),
        claude(3, "user", [result("t1")]),
        claude(4, "assistant", [SAID]),
    ],
    "repeated_result": [
        HELLO,
        claude(2, "assistant", [use("t1")]),
        claude(3, "user", [result("t1")]),
        claude(4, "user", [result("t1", "again")]),
        claude(5, "assistant", [SAID]),
    ],
    "repeated_call": [
        HELLO,
        claude(2, "assistant", [use("t1")]),
        claude(3, "user", [result("t1")]),
        claude(4, "assistant", [use("t1")]),
        claude(5, "user", [result("t1", "again")]),
    ],
    "empty_text": [
        HELLO,
        claude(2, "assistant", [SAID, {"type": "text", "text": " "}]),
        claude(3, "user", ""),
        claude(4, "assistant", [SAID]),
    ],
    "empty_message": [
        HELLO,
        claude(2, "assistant", []),
        claude(3, "user", "More"),
        claude(4, "assistant", [SAID]),
    ],
    "empty_thinking": [
        HELLO,
        claude(2, "assistant", [{"type": "thinking", "thinking": "", "signature": "s"}, SAID]),
    ],
    "missing_signature": [HELLO, claude(2, "assistant", [{"type": "thinking", "thinking": "Hm."}, SAID])],
    "repeated_thinking": [
        HELLO,
        claude(2, "assistant", [SIGNED, SAID]),
        claude(3, "user", "More"),
        claude(4, "assistant", [SIGNED, SAID]),
    ],
    "orphaned_server_call": [
        HELLO,
        claude(
            2,
            "assistant",
            [{"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {}}, SAID],
        ),
    ],
    "large_image": [
        claude(
            1,
            "user",
            [SAID, {"type": "image", "source": {"type": "base64", "data": "A" * (5 << 20) + "AAAA"}}],
        ),
        claude(2, "assistant", [SAID]),
    ],
    "self_parent": [HELLO, claude(2, "assistant", [SAID], parent=2), claude(3, "user", "More")],
    "parent_cycle": [
        HELLO,
        claude(2, "assistant", [SAID], parent=3),
        claude(3, "user", "More", parent=2),
        claude(4, "assistant", [SAID]),
    ],
    "missing_parent": [HELLO, claude(2, "assistant", [SAID], parent=77), claude(3, "user", "More")],
    "lone_surrogate": [HELLO, claude(2, "assistant", [{"type": "text", "text": "half \ud83d"}])],
    "duplicate_record": [HELLO, claude(2, "assistant", [SAID]), claude(2, "assistant", [SAID])],
}


def stored(records: list[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.fixture
def mend(tmp_path: Path) -> Callable[..., tuple[MendedCopy, list[Problem], list[Problem], list[str]]]:
    """Mend a file of an agent: the result, the problems of the file and of the copy, and the texts of the copy."""

    def mend(data: bytes, kind: str = "claude_code", name: str = f"projects/-w/{ID}.jsonl") -> Any:
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        workspace = Workspace({kind: tmp_path / "home"})
        ref = workspace.ref_for_path(path)
        before = list(workspace.check(ref))
        done = workspace.mended_copy(ref, tmp_path / "out")
        assert path.read_bytes() == data, "the session itself stays unchanged"
        copies = Workspace({kind: tmp_path / "out"})
        copy = copies.find(ref.session_id)
        assert copy == done.copy
        texts = [one.text for one in copies.read(copy) if isinstance(one, Message)]
        return done, before, list(copies.check(copy)), texts

    return mend


@pytest.mark.parametrize("code", CLAUDE)
def test_each_fault_of_claude_code_is_mended(mend: Any, code: str) -> None:
    done, before, after, texts = mend(stored(CLAUDE[code]))
    assert code in {one.code for one in before}
    assert [one for one in after if one.code == code] == []
    assert [one for one in after if one.severity > Severity.note] == []
    assert code in {one.code for one in done.mends}
    assert done.remaining == []
    assert texts[0].startswith(("Hello", "Said."))


def test_what_is_not_concerned_stays_byte_for_byte(mend: Any) -> None:
    records = CLAUDE["orphaned_call"]
    done, _, _, texts = mend(stored(records))
    lines = Path(done.copy.locator).read_bytes().splitlines()
    assert [line for line in lines if line in stored(records).splitlines()] == stored(
        records[:2]
    ).splitlines() + stored(records[3:]).splitlines()
    made = json.loads(lines[2])
    assert made["message"]["content"][0]["is_error"] is True
    assert "interrupted" in made["message"]["content"][0]["content"]
    assert texts[-1] == "Said."


def test_a_result_before_its_call_is_moved_behind_it(mend: Any) -> None:
    records = [
        HELLO,
        claude(2, "user", [result("t1", "kept")]),
        claude(3, "assistant", [use("t1")]),
        claude(4, "assistant", [SAID]),
    ]
    done, _, after, _ = mend(stored(records))
    assert [one for one in after if one.severity > Severity.note] == []
    assert b"kept" in Path(done.copy.locator).read_bytes()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (stored([HELLO, claude(2, "assistant", [SAID])])[:-20], "torn_tail"),
        (stored([HELLO]) + b"\0\0\0\n" + stored([claude(2, "assistant", [SAID])]), "nul_run"),
        (stored([HELLO])[:-1] + stored([claude(2, "assistant", [SAID])]), "glued_records"),
        (stored([HELLO]) + b"{not json}\n" + stored([claude(2, "assistant", [SAID])]), "bad_json"),
    ],
)
def test_damaged_lines_are_salvaged(mend: Any, data: bytes, code: str) -> None:
    done, before, after, texts = mend(data)
    assert code in {one.code for one in before}
    assert [one for one in after if one.severity > Severity.note] == []
    assert code in {one.code for one in done.mends}
    assert texts[0] == "Hello"
    assert len(texts) == 1 + (code != "torn_tail")


def codex(number: int, kind: str, **payload: Any) -> Record:
    return {
        "timestamp": f"2026-03-01T09:00:{number:02}Z",
        "type": "response_item",
        "payload": {"type": kind, **payload},
    }


CODEX_META = {"timestamp": "2026-03-01T09:00:00Z", "type": "session_meta", "payload": {"id": ID, "cwd": "/w"}}
CODEX_ASKED = codex(1, "message", role="user", content=[{"type": "input_text", "text": "Hello"}])
CODEX_DONE = codex(9, "message", role="assistant", content=[{"type": "output_text", "text": "Done."}])
PI_HEAD = {"type": "session", "version": 3, "id": ID, "timestamp": "2026-03-01T09:00:00Z", "cwd": "/w"}


def pi(number: int, role: str, content: Any, **message: Any) -> Record:
    return {
        "type": "message",
        "id": f"a{number:07}",
        "parentId": f"a{number - 1:07}" if number > 1 else None,
        "timestamp": f"2026-03-01T09:00:{number:02}Z",
        "message": {"role": role, "content": content, **message},
    }


def qwen(number: int, kind: str, parts: list[Record]) -> Record:
    role = "model" if kind == "assistant" else "user"
    return {
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "sessionId": ID,
        "cwd": "/w",
        "timestamp": f"2026-03-01T09:00:{number:02}Z",
        "type": kind,
        "message": {"role": role, "parts": parts},
    }


def copilot(number: int, kind: str, **data: Any) -> Record:
    parent = copilot_id(number - 1) if number > 1 else None
    return {
        "type": kind,
        "id": copilot_id(number),
        "parentId": parent,
        "timestamp": f"2026-03-01T09:00:{number:02}Z",
        "data": data,
    }


PI_TEXT = [{"type": "text", "text": "Hello"}]
PI_CALL = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {}}
CODEX_FILE = f"sessions/2026/03/01/rollout-2026-03-01T09-00-00-{ID}.jsonl"
PI_FILE = f"sessions/--w--/2026-03-01T09-00-00-000Z_{ID}.jsonl"
OTHERS: list[tuple[str, str, str, list[Record]]] = [
    (
        "codex",
        CODEX_FILE,
        "orphaned_call",
        [
            CODEX_META,
            CODEX_ASKED,
            codex(2, "function_call", call_id="c1", name="shell", arguments="{}"),
            CODEX_DONE,
        ],
    ),
    (
        "codex",
        CODEX_FILE,
        "orphaned_result",
        [CODEX_META, CODEX_ASKED, codex(2, "function_call_output", call_id="c1", output="x"), CODEX_DONE],
    ),
    (
        "codex",
        CODEX_FILE,
        "ordinal_gap",
        [{**one, "ordinal": at} for at, one in [(0, CODEX_META), (1, CODEX_ASKED), (5, CODEX_DONE)]],
    ),
    (
        "pi",
        PI_FILE,
        "orphaned_call",
        [PI_HEAD, pi(1, "user", PI_TEXT), pi(2, "assistant", [PI_CALL]), pi(3, "assistant", PI_TEXT)],
    ),
    (
        "pi",
        PI_FILE,
        "orphaned_result",
        [
            PI_HEAD,
            pi(1, "user", PI_TEXT),
            pi(2, "toolResult", PI_TEXT, toolCallId="t1"),
            pi(3, "assistant", PI_TEXT),
        ],
    ),
    ("pi", PI_FILE, "bad_content", [PI_HEAD, pi(1, "user", PI_TEXT), pi(2, "assistant", "Hello")]),
    ("pi", PI_FILE, "no_header", [pi(1, "user", PI_TEXT), pi(2, "assistant", PI_TEXT)]),
    (
        "pi",
        PI_FILE,
        "missing_entry",
        [
            PI_HEAD,
            pi(1, "user", PI_TEXT),
            pi(2, "assistant", PI_TEXT),
            {
                "type": "compaction",
                "id": "a0000003",
                "parentId": "a0000002",
                "timestamp": "2026-03-01T09:00:03Z",
                "summary": "s",
                "firstKeptEntryId": "gone",
                "tokensBefore": 1,
            },
        ],
    ),
    (
        "qwen",
        f"projects/-w/chats/{ID}.jsonl",
        "orphaned_call",
        [
            qwen(1, "user", [{"text": "Hello"}]),
            qwen(2, "assistant", [{"functionCall": {"id": "t1", "name": "ls", "args": {}}}]),
            qwen(3, "assistant", [{"text": "Done"}]),
        ],
    ),
    (
        "qwen",
        f"projects/-w/chats/{ID}.jsonl",
        "missing_parent",
        [qwen(1, "user", [{"text": "Hello"}]), qwen(5, "assistant", [{"text": "Done"}])],
    ),
    (
        "copilot_cli",
        f"session-state/{ID}/events.jsonl",
        "orphaned_call",
        [
            copilot(1, "session.start", sessionId=ID),
            copilot(2, "user.message", content="Hello"),
            copilot(
                3,
                "assistant.message",
                content="",
                toolRequests=[{"toolCallId": "t1", "name": "bash", "arguments": {}}],
            ),
            copilot(4, "assistant.message", content="Done."),
        ],
    ),
    (
        "copilot_cli",
        f"session-state/{ID}/events.jsonl",
        "bad_event",
        [
            copilot(1, "session.start", sessionId=ID) | {"id": "e1"},
            copilot(2, "user.message", content="Hello") | {"parentId": "e1"},
            {"type": "user.message", "data": {"content": "More"}, "agentId": 3},
        ],
    ),
    (
        "copilot_cli",
        f"session-state/{ID}/events.jsonl",
        "no_header",
        [copilot(2, "user.message", content="Hello")],
    ),
]


@pytest.mark.parametrize(
    ("kind", "name", "code", "records"), OTHERS, ids=[f"{one[0]}-{one[2]}" for one in OTHERS]
)
def test_each_fault_of_other_agents_is_mended(
    mend: Any, kind: str, name: str, code: str, records: list[Record]
) -> None:
    done, before, after, _ = mend(stored(records), kind, name)
    assert code in {one.code for one in before}
    assert [one.code for one in after if one.code == code] == []
    assert code in {one.code for one in done.mends}
    assert done.remaining == []


def test_events_of_copilot_follow_the_new_ids_of_their_parents(mend: Any) -> None:
    records = [
        copilot(1, "session.start", sessionId=ID) | {"id": "e1"},
        copilot(2, "user.message", content="Hello") | {"id": "e2", "parentId": "e1"},
        copilot(3, "session.snapshot_rewind", upToEventId="e2") | {"parentId": "e2"},
        {"type": "user.message", "data": {"content": "More"}, "timestamp": "yesterday", "agentId": 3},
    ]
    done, *_ = mend(stored(records), "copilot_cli", f"session-state/{ID}/events.jsonl")
    start, asked, rewound, more = map(json.loads, done.copy.path.read_text().splitlines())
    assert (asked["parentId"], rewound["parentId"]) == (start["id"], asked["id"])
    assert rewound["data"] == {"upToEventId": asked["id"]}
    assert (more["parentId"], more["timestamp"]) == (rewound["id"], rewound["timestamp"])
    assert "agentId" not in more
    assert [one.what for one in done.mends] == ["4 events got the fields that they lacked"]


def test_a_gemini_call_without_a_result_and_a_rewind_to_nothing(mend: Any) -> None:
    head = {
        "sessionId": "aaaaaaaa-1",
        "projectHash": "h",
        "startTime": "2026-03-01T09:00:00Z",
        "lastUpdated": "2026-03-01T09:00:00Z",
    }
    call = {"id": "t1", "name": "ls", "args": {}}
    asked = {"id": "m1", "type": "user", "timestamp": "2026-03-01T09:00:01Z", "content": "Hello"}
    answer = {
        "id": "m2",
        "type": "gemini",
        "timestamp": "2026-03-01T09:00:02Z",
        "content": "",
        "toolCalls": [call],
    }
    data = stored([head, asked, answer, {"$rewindTo": "gone"}, {**asked, "id": "m3"}])
    done, before, after, _ = mend(data, "gemini", "tmp/app/chats/session-2026-03-01T09-00-aaaaaaaa.jsonl")
    assert {"unknown_rewind"} <= {one.code for one in before}
    assert [one for one in after if one.severity > Severity.note] == []
    assert {"orphaned_call", "unknown_rewind"} <= {one.code for one in done.mends}


@pytest.mark.parametrize("cut", [0, 40])
def test_a_compressed_session_that_is_damaged(mend: Any, tmp_path: Path, cut: int) -> None:
    """What is before the damage is copied; without any record the session is refused, with a remedy."""
    zstandard = pytest.importorskip("zstandard")
    records = [CODEX_META, CODEX_ASKED, CODEX_DONE]
    packer = zstandard.ZstdCompressor().compressobj()
    data = packer.compress(stored(records)) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    if cut == 0:
        with pytest.raises(Corrupt) as caught:
            mend(b"not zstd", "codex", CODEX_FILE + ".zst")
        assert caught.value.hint == "restore the file from a backup or the archive"
        return
    done, before, _, _ = mend(data, "codex", CODEX_FILE + ".zst")
    assert "bad_zstd" in {one.code for one in before}
    assert [(one.code, one.what) for one in done.mends] == [
        ("bad_zstd", "what cannot be decompressed is left out")
    ]
    assert done.copy.path.read_bytes() == stored(records)


def test_a_file_of_another_format_says_how_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "home" / "projects" / "-w" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x1f\x8b" + bytes(range(256)))
    workspace = Workspace({"claude_code": tmp_path / "home"})
    (found,) = workspace.check(workspace.ref_for_path(path))
    assert (found.code, found.repair) == ("not_text", "unpack it with `gunzip`")


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "home" / "projects" / "-w" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(stored([HELLO]))
    workspace = Workspace({"claude_code": tmp_path / "home"})
    ref = workspace.ref_for_path(path)
    with pytest.raises(Invalid, match="in the folder of the agent"):
        workspace.mended_copy(ref, tmp_path / "home" / "x")
    workspace.mended_copy(ref, tmp_path / "out")
    with pytest.raises(AlreadyExists):
        workspace.mended_copy(ref, tmp_path / "out")


@pytest.mark.lane("cases")
def test_public_cases_of_claude_code_are_mended(tmp_path: Path, mend: Any) -> None:
    """No case of broken lines or pairs is left with a fault that a rule solves."""
    left: dict[str, list[str]] = {}
    corrupt: set[str] = set()
    for case in sorted((shared_folder() / "cases").glob("[AS]*")):
        for file in case.glob("*.jsonl"):
            name = f"projects/-{case.name}/{ID}.jsonl"
            try:
                done, *_ = mend(file.read_bytes(), name=name)
            except Corrupt:
                corrupt.add(case.name)
                continue
            if done.remaining:
                left[case.name] = [one.code for one in done.remaining]
            Path(done.copy.locator).unlink()
            (tmp_path / "home" / name).unlink()
    assert left == {}
    assert {name for name in corrupt if name.endswith("claude")} == {
        "A18-utf16-claude",
        "A28-gzip-as-jsonl-claude",
        "A31-zst-as-jsonl-claude",
    }


def test_a_session_in_a_document_or_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "home" / "tmp" / "app" / "chats" / "session-2026-03-01T09-00-aaaaaaaa.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"sessionId": "aaaaaaaa", "messages": []}))
    workspace = Workspace({"gemini": tmp_path / "home"})
    with pytest.raises(Unsupported, match="JSON Lines"):
        workspace.mended_copy(workspace.ref_for_path(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_sub_agents_are_copied_and_a_damaged_document_is_left_out(mend: Any, tmp_path: Path) -> None:
    below = tmp_path / "home" / "projects" / "-w" / ID / "subagents" / "agent-1.jsonl"
    below.parent.mkdir(parents=True)
    below.write_bytes(stored([HELLO]))
    done, *_ = mend(stored(CLAUDE["empty_text"]))
    copied = tmp_path / "out" / "projects" / "-w" / ID / "subagents" / "agent-1.jsonl"
    assert copied.read_bytes() == below.read_bytes()
    assert done.paths == [done.copy.locator, str(copied)]


def test_a_document_that_cannot_be_read_is_left_out(mend: Any, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "session-state" / ID
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{")
    (folder / "notes.md").write_text("x")
    records = [copilot(1, "session.start", sessionId=ID), copilot(2, "user.message", content="Hello")]
    done, before, after, _ = mend(stored(records), "copilot_cli", f"session-state/{ID}/events.jsonl")
    assert "bad_document" in {one.code for one in before}
    assert "bad_document" not in {one.code for one in after}
    assert [Path(path).name for path in done.paths] == ["events.jsonl", "notes.md"]


def test_a_copy_that_is_killed_anywhere_changes_nothing_else(tmp_path: Path) -> None:
    data = stored(CLAUDE["orphaned_call"])

    def prepare(folder: str) -> None:
        path = Path(folder, "home", "projects", "-w", f"{ID}.jsonl")
        path.parent.mkdir(parents=True)
        path.write_bytes(data)

    def work(fs: FaultFs, folder: str) -> None:
        workspace = Workspace({"claude_code": Path(folder, "home")}, fs=fs, cache=f"{folder}/cache")
        workspace.mended_copy(
            workspace.ref_for_path(Path(folder, f"home/projects/-w/{ID}.jsonl")), Path(folder, "out")
        )
        fs.mark("copied")

    def check(folder: str, acked: tuple[Any, ...]) -> None:
        assert Path(folder, "home", "projects", "-w", f"{ID}.jsonl").read_bytes() == data
        if acked:
            copies = Workspace({"claude_code": Path(folder, "out")}, cache=f"{folder}/cache")
            assert [one for one in copies.check(copies.find(ID)) if one.severity > Severity.note] == []

    report = sweep(
        prepare, work, check, tmp_path, calls=("write", "rename", "fsync"), effects=("kill", "torn")
    )
    assert report.states > 5
    assert not report.violations, report.describe()
