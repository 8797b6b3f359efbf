"""The tools over sessions that are written here, through the official client, in one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from sessionary import EventsLog, SessionStore, Workspace
from sessionary.mcp import answers
from sessionary.mcp.server import CHANGING, READING, build

ONE = "3f0c81d2-0000-4000-8000-000000000001"
TWO = "9c1d4e7f-0000-4000-8000-000000000002"
THREE = "5a5a5a5a-0000-4000-8000-000000000003"
TOKEN = "ghp_" + "a1B2c3D4e5" * 4
PASSWORD = "correct-horse-battery"

Ask = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    home = tmp_path / "home"
    store = SessionStore(home / "projects" / "-w-app" / "sessions")
    talk: list[dict[str, Any]] = []
    for turn in range(1, 4):
        talk += [
            {"role": "user", "content": f"Deploy {turn}"},
            {"role": "assistant", "content": f"Deployed {turn}"},
        ]
    talk[1]["content"] = f"Deployed with {TOKEN}"
    talk[3] = {
        "role": "assistant",
        "content": "Calling",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "login", "arguments": {"password": PASSWORD}},
            }
        ],
    }
    talk.insert(4, {"role": "tool", "tool_call_id": "c1", "content": "x" * 9_000 + "END"})
    store.save(ONE, talk, {"session_id": ONE, "name": f"Deploy {TOKEN}", "working_dir": "/w/app"})
    with EventsLog(store.base_dir / ONE) as log:
        log.prompt_submit("Deploy 1")
        log.llm_response(model="m", usage={"input_tokens": 10, "output_tokens": 3})
        log.tool_pre("login", tool_input={"password": PASSWORD}, headers={"cookie": [PASSWORD]})
    store.save(TWO, talk[:2], {"session_id": TWO, "name": "Short", "working_dir": "/w/app"})
    return home


def asking(base: Path, /, **options: Any) -> Ask:
    """A function that calls one tool, and returns its answer; or its error as text."""
    server = build(lambda: Workspace(base), **options)

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        async with Client(server) as client:
            result = await client.call_tool(name, arguments)
        (content,) = result.content
        assert result.structured_content is None
        assert content.type == "text"
        text = str(content.text)
        return text if result.is_error else json.loads(text)

    return lambda name, /, **arguments: asyncio.run(call(name, arguments))


@pytest.fixture
def ask(home: Path) -> Ask:
    return asking(home)


def test_the_tools_and_their_hints(home: Path) -> None:
    async def tools(allow_writes: bool) -> dict[str, Any]:
        async with Client(build(lambda: Workspace(home), allow_writes=allow_writes)) as client:
            return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    closed, opened = asyncio.run(tools(False)), asyncio.run(tools(True))
    assert list(closed) == [
        *("list_sessions", "search_sessions", "read_session", "get_events", "get_stats", "check_session"),
        *("diff_sessions", "export_session", "repair_session", "fork_session", "rewind_session"),
    ]
    assert all(hints.read_only_hint and not hints.destructive_hint for hints in closed.values())
    assert [name for name, hints in opened.items() if hints.read_only_hint] == list(READING)
    assert {name: hints.destructive_hint for name, hints in opened.items() if name in CHANGING} == CHANGING


def test_sessions_are_listed_in_pages(ask: Ask) -> None:
    found = ask("list_sessions")
    assert {one["id"] for one in found["untrusted"]["sessions"]} == {ONE, TWO}
    assert found["notice"] == answers.NOTICE
    assert found["cut"] == []
    rest = ask("list_sessions", skip=1)["untrusted"]
    assert (len(rest["sessions"]), rest["total"]) == (1, 2)
    assert ask("list_sessions", until="2020-01-01")["untrusted"] == {"sessions": [], "total": 0}


def test_sessions_are_sorted_and_selected_as_by_the_command_line(ask: Ask) -> None:
    assert [one["id"] for one in ask("list_sessions", sort="messages")["untrusted"]["sessions"]] == [ONE, TWO]
    assert [one["id"] for one in ask("list_sessions", sort="title")["untrusted"]["sessions"]] == [ONE, TWO]
    (damaged,) = ask("list_sessions", health="damaged")["untrusted"]["sessions"]
    assert damaged["health"] not in ("ok", "note")
    assert ask("list_sessions", kind="codex", project="app")["untrusted"]["total"] == 0


def test_the_tokens_of_a_time_are_those_of_sessions_that_went_on_after_it(home: Path, ask: Ask) -> None:
    def said(day: int) -> str:
        usage = {"input_tokens": 10 * day, "output_tokens": 1}
        answer = {"role": "assistant", "id": f"m{day}", "model": "m", "content": [], "usage": usage}
        line = {"type": "assistant", "timestamp": f"2026-03-0{day}T09:00:00Z", "cwd": "/w/app"}
        return json.dumps({**line, "uuid": f"u{day}", "sessionId": THREE, "message": answer}) + "\n"

    (home / "projects" / "-w-app" / f"{THREE}.jsonl").write_text(said(1) + said(2))
    found = ask("get_stats", until="2026-03-01")["untrusted"]
    assert (found["usage"]["input"], found["sessions"]) == (10, 0)
    until = datetime(2026, 3, 2).astimezone()
    assert Workspace(home).spending(until=until).total.usage.input == 10


def test_the_default_answer_has_at_most_4000_tokens(home: Path, ask: Ask) -> None:
    store = SessionStore(home / "projects" / "-w-app" / "sessions")
    for number in range(120):
        store.save(f"more-{number:03}", [{"role": "user", "content": "会話" * 200}], {"name": "long " * 40})
    answer = ask("list_sessions")
    assert answers.estimate(json.dumps(answer, ensure_ascii=False)) <= answers.DEFAULT_TOKENS
    shown = len(answer["untrusted"]["sessions"])
    assert 10 < shown < 122
    assert answer["cut"] == [f"{122 - shown} more sessions: call again with skip={shown}"]
    hits = ask("search_sessions", query="会話")
    assert answers.estimate(json.dumps(hits, ensure_ascii=False)) <= answers.DEFAULT_TOKENS
    assert f"call again with skip={len(hits['untrusted']['hits'])}" in hits["cut"][0]


def test_a_session_is_read_in_pages(ask: Ask) -> None:
    found = ask("read_session", session=ONE)
    messages = found["untrusted"]["messages"]
    assert [one["index"] for one in messages] == list(range(7))
    assert messages[0]["text"] == "Deploy 1"
    assert messages[4]["results"][0]["text"] == "x" * 1_500 + "… [7,503 more characters]"
    assert found["cut"] == [
        "long texts are cut: call with first and last the index of one message to read it"
    ]

    def indexes(first: int, last: int | None) -> list[int]:
        found = ask("read_session", session=ONE, first=first, last=last)
        return [one["index"] for one in found["untrusted"]["messages"]]

    assert indexes(-2, None) == indexes(-2, -1) == [5, 6]
    assert indexes(-2, -2) == [5]


def test_a_session_of_which_nothing_can_be_read_is_an_error(home: Path, ask: Ask) -> None:
    folder = home / "projects" / "-w-app" / "sessions" / "torn"
    folder.mkdir()
    (folder / "transcript.jsonl").write_bytes(b"{torn\n")
    error = ask("read_session", session="torn")
    assert f"Corrupt: {folder / 'transcript.jsonl'}: " in error
    assert "Remedy: " in error


def test_a_message_larger_than_an_answer_is_read_to_its_end(ask: Ask) -> None:
    text, start, calls = "", 0, 0
    while True:
        found = ask("read_session", session=ONE, first=4, last=4, text_from=start, max_tokens=1_000)
        part = found["untrusted"]["messages"][0]["results"][0]["text"]
        text, calls = text + part.partition("… [")[0], calls + 1
        if not found["cut"]:
            break
        start = int(found["cut"][0].partition("text_from=")[2])
    assert text == "x" * 9_000 + "END"
    assert calls > 3


@pytest.mark.parametrize(
    "query",
    [TOKEN, TOKEN[:12], f"deployed {TOKEN}", PASSWORD, "horse", f"{TOKEN} OR {PASSWORD}", f'"with {TOKEN}"'],
)
def test_a_search_does_not_confirm_a_secret(ask: Ask, query: str) -> None:
    answer = ask("search_sessions", query=query)
    assert answer == ask("search_sessions", query=query.replace(TOKEN[:12], "ghp_zzzzzzzz"))
    assert answer["untrusted"]["hits"] == []


def test_neither_does_its_negation_nor_damage(home: Path, ask: Ask) -> None:
    plain = ask("search_sessions", query="deployed")
    assert (
        plain
        == ask("search_sessions", query=f"deployed NOT {TOKEN}")
        == ask("search_sessions", query=f"deployed NOT {PASSWORD}")
    )
    assert "[redacted]" in json.dumps(plain)
    with open(home / "projects" / "-w-app" / "sessions" / TWO / "transcript.jsonl", "ab") as file:
        file.write(b'{"role": "user", "content": "gho_zzzzzzzz ' + TOKEN.encode())
    assert ask("search_sessions", query=TOKEN) == ask("search_sessions", query="gho_nothing")


def test_without_redaction_secrets_are_found(home: Path) -> None:
    found = asking(home, redact=False)("search_sessions", query=TOKEN)
    assert {one["part"] for one in found["untrusted"]["hits"]} == {"text", "title"}
    assert TOKEN in json.dumps(found)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_sessions", {}),
    ("read_session", {"session": ONE}),
    ("read_session", {"session": ONE, "first": 1, "last": 1, "text_from": 16}),
    ("search_sessions", {"query": "deployed"}),
    ("search_sessions", {"query": "login OR calling"}),
    ("get_events", {"session": ONE, "fields": ["data", "data.tool_input.password", "data.headers.cookie.0"]}),
    ("check_session", {"session": ONE}),
    ("diff_sessions", {"a": ONE, "b": TWO}),
    ("export_session", {"session": ONE}),
    ("export_session", {"session": ONE, "format": "jsonl"}),
    ("repair_session", {"session": ONE}),
    ("fork_session", {"session": ONE}),
    ("rewind_session", {"session": ONE, "turn": 1}),
    ("read_session", {"session": f"Deploy {TOKEN} x"}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_no_answer_has_a_secret(ask: Ask, name: str, arguments: dict[str, Any]) -> None:
    text = json.dumps(ask(name, **arguments))
    assert PASSWORD not in text
    assert TOKEN[:14] not in text
    assert TOKEN[16:] not in text, "not even the end of one"


def test_events_have_chosen_fields_only(ask: Ask) -> None:
    assert ask("get_events", session=ONE, summary=True)["untrusted"]["summary"]["total"] == 3
    found = ask("get_events", session=ONE, names=["llm:*"], fields=["data.usage.input_tokens"])
    (event,) = found["untrusted"]["events"]
    assert (event["event"], event["fields"]) == ("llm:response", {"data.usage.input_tokens": 10})
    assert "has no event log. Remedy: read_session" in ask("get_events", session=TWO)


def test_counts_and_comparisons(ask: Ask) -> None:
    stats = ask("get_stats")["untrusted"]
    assert (stats["sessions"], stats["messages"], stats["turns"]) == (2, 9, 4)
    found = ask("diff_sessions", a=ONE, b=TWO)["untrusted"]
    assert (found["a"]["turns"], found["b"]["turns"], found["equal_turns"]) == (3, 1, 1)
    assert found["tools"] == [{"name": "login", "a": 1, "b": 0}]


def test_an_export_is_read_to_its_end(home: Path, ask: Ask) -> None:
    text, position = "", 0
    while True:
        found = ask("export_session", session=ONE, position=position, max_tokens=1_000)
        text += found["untrusted"]["text"]
        if not found["cut"]:
            break
        assert f"position={len(text)}" in found["cut"][0]
        position = len(text)
    workspace = Workspace(home)
    whole = b"".join(workspace.export(workspace.find(ONE), redact=True)).decode()
    assert text == whole
    assert "position=" not in json.dumps(found)


def test_damage_is_named(home: Path, ask: Ask) -> None:
    with open(home / "projects" / "-w-app" / "sessions" / TWO / "transcript.jsonl", "ab") as file:
        file.write(b'{"role": "us')
    found = ask("check_session", session=TWO)["untrusted"]
    problems = {one["code"]: one for one in found["problems"]}
    assert (problems["torn_tail"]["line"], problems["torn_tail"]["severity"]) == (3, "lost_data")
    assert problems["torn_tail"]["repair"]
    assert found["session"]["health"] == "lost_data"


def stored(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_without_leave_nothing_is_written(home: Path) -> None:
    with open(home / "projects" / "-w-app" / "sessions" / TWO / "transcript.jsonl", "ab") as file:
        file.write(b'{"role": "us')
    ask = asking(home, home=("--home", str(home)))
    ask("list_sessions")
    before = stored(home)
    repair = ask("repair_session", session=TWO)
    assert repair["untrusted"]["dry_run"]
    assert repair["untrusted"]["changed"]
    assert f"sessionary repair --home {home} {TWO} --orphans complete" in repair["cut"][0]
    assert ask("fork_session", session=ONE, turn=1)["untrusted"]["messages"] == 2
    rewound = ask("rewind_session", session=ONE, turn=1)
    assert rewound["untrusted"]["messages_dropped"] == 5
    assert "--allow-writes" in rewound["cut"][0]
    assert stored(home) == before


def test_with_leave_changes_are_made_and_can_be_undone(home: Path) -> None:
    ask = asking(home, allow_writes=True)
    workspace = Workspace(home)
    planned = ask("rewind_session", session=ONE, turn=1, dry_run=True)
    assert planned["cut"] == ["nothing was written: call again with dry_run=false"]
    forked = ask("fork_session", session=ONE, turn=1, name="Other")["untrusted"]
    assert workspace.summary(workspace.find(forked["id"])).turns == 1
    assert forked["undo"] == f"sessionary trash {forked['id']}"
    rewound = ask("rewind_session", session=ONE, turn=1)
    assert (rewound["cut"], rewound["untrusted"]["undo"]) == ([], f"sessionary undo {ONE}")
    assert workspace.summary(workspace.find(ONE)).turns == 1
    workspace.undo(next(workspace.undoable(workspace.find(ONE))))
    assert workspace.summary(workspace.find(ONE)).turns == 3


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        (
            "read_session",
            {"session": "gone"},
            "NotFound: no session is called gone, and no id begins with it. Remedy: call list",
        ),
        ("read_session", {"session": ONE, "max_tokens": 10}, "Remedy: give 1000 to 20000"),
        ("list_sessions", {"kind": "eliza"}, "Remedy: the kinds are amplifier, "),
        ("list_sessions", {"since": "soon"}, "Remedy: write 2026-03-14"),
        ("list_sessions", {"skip": -1}, "Remedy: skip counts from 0"),
        ("search_sessions", {"query": " "}, "Remedy: give at least one word"),
        ("export_session", {"session": ONE, "format": "exe"}, "Remedy: the formats are md"),
        ("rewind_session", {"session": ONE, "turn": 99}, "Invalid: "),
        ("read_session", {"session": "\x1b[31m\u202e"}, "no session is called \\x1b[31m\\u202e"),
    ],
)
def test_errors_have_a_remedy(ask: Ask, name: str, arguments: dict[str, Any], words: str) -> None:
    assert words in ask(name, **arguments)
