"""The plug of the OpenAI Agents SDK, driven by its real Runner with scripted models."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, Runner, Session, SQLiteSession, function_tool
from agents.extensions.memory import EncryptedSession
from agents.memory import SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call
from agmi import check as agmi
from agmi.adapters.openai_agents_session import OpenAIAgentsSessionAdapter

from sessionary import Workspace
from sessionary.plugs.openai_agents import DurableSession
from tests.plugs.tampering import ChainAlone, DurableSessionAdapter, ForgesTheChain

PINS = Path(__file__).parent / "constraints" / "openai-agents.txt"


@pytest.fixture(autouse=True)
def _no_tracing() -> None:
    agents.set_tracing_disabled(True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "openai-agents"


@function_tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


def run(session: Any, *outputs: Any, text: str = "Hello", **agent: Any) -> Any:
    made = Agent(name="one", model=ScriptedModel(list(outputs)), **agent)
    return asyncio.run(Runner.run(made, text, session=session))


def items(session: Any, limit: int | None = None) -> list[Any]:
    return asyncio.run(session.get_items(limit))


def add(session: Any, *added: Any) -> None:
    asyncio.run(session.add_items(list(added)))


def say(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_the_version_is_the_pinned_one() -> None:
    assert f"openai-agents=={version('openai-agents')}\n" in PINS.read_text("utf-8")


def test_it_is_a_session(folder: Path) -> None:
    assert isinstance(DurableSession("one", folder), Session)


def test_a_turn_with_tools_is_stored_as_the_sdk_gave_it(folder: Path, tmp_path: Path) -> None:
    mine, theirs = DurableSession("one", folder), SQLiteSession("one", tmp_path / "peer.db")
    for session in (mine, theirs):
        calls = [
            function_call("weather", {"city": "Ulm"}, call_id="c1"),
            function_call("weather", {"city": "Bonn"}, call_id="c2"),
        ]
        result = run(session, calls, [assistant_message("Rain.")], tools=[weather])
        assert result.final_output == "Rain."
    assert items(mine) == items(theirs)
    assert items(DurableSession("one", folder)) == items(mine)
    assert [one.get("output") for one in items(mine) if one.get("type") == "function_call_output"] == [
        "rain in Ulm",
        "rain in Bonn",
    ]


def test_the_model_sees_the_earlier_turn(folder: Path) -> None:
    run(DurableSession("one", folder), [assistant_message("Hi.")])
    model = ScriptedModel([[assistant_message("Again.")]])
    asyncio.run(
        Runner.run(Agent(name="one", model=model), "Once more", session=DurableSession("one", folder))
    )
    assert [
        one["content"] if isinstance(one["content"], str) else one["content"][0]["text"]
        for one in model.calls[0].input
    ] == [
        "Hello",
        "Hi.",
        "Once more",
    ]


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 10, -1])
def test_a_limit_counts_as_in_the_store_of_the_sdk(folder: Path, tmp_path: Path, limit: int | None) -> None:
    mine, theirs = DurableSession("one", folder), SQLiteSession("one", tmp_path / "peer.db")
    for session in (mine, theirs):
        add(session, *(say(str(number)) for number in range(5)))
    assert items(mine, limit) == items(theirs, limit)


def test_the_limit_of_the_settings_counts_unless_one_is_given(folder: Path) -> None:
    session = DurableSession("one", folder, session_settings=SessionSettings(limit=2))
    add(session, *(say(str(number)) for number in range(5)))
    assert [one["content"] for one in items(session)] == ["3", "4"]
    assert [one["content"] for one in items(session, 1)] == ["4"]


def test_pop_returns_the_newest_item_and_clear_removes_all(folder: Path) -> None:
    session, other = DurableSession("one", folder), DurableSession("one", folder)
    add(session, say("a"), say("b"))
    assert asyncio.run(other.pop_item()) == say("b")
    assert items(session) == [say("a")]
    asyncio.run(session.clear_session())
    assert items(other) == []
    assert asyncio.run(other.pop_item()) is None
    add(session, say("c"))
    assert items(other) == [say("c")]


def test_a_failed_turn_is_taken_back_exactly(folder: Path) -> None:
    session = DurableSession("one", folder)
    run(session, [assistant_message("Hi.")])
    before = items(session)
    failing = Agent(name="one", model=ScriptedModel([{"error": RuntimeError("model is down")}]))
    with pytest.raises(RuntimeError, match="model is down"):
        asyncio.run(Runner.run(failing, "Lost", session=session))
    while len(items(session)) > len(before):
        asyncio.run(session.pop_item())
    assert items(session) == before


@pytest.mark.parametrize(
    "item",
    [
        say("nul \0 and '; drop table items; --"),
        say("é\u2028中文\U0001f600"),
        say("half \ud800"),
        {"role": "user", "content": [{"type": "input_text", "text": "x" * 5_000_000}]},
        {"$bytes": "AGE="},
        {"n": [float("inf"), -0.0, 2**80, None, True]},
    ],
    ids=["nul", "unicode", "surrogate", "5MB", "marked", "numbers"],
)
def test_any_item_comes_back_as_it_was(folder: Path, item: Any) -> None:
    add(DurableSession("one", folder), item)
    assert items(DurableSession("one", folder)) == [item]


def test_ids_are_apart(folder: Path) -> None:
    for name in ("a", "A/..", "a,b", ""):
        add(DurableSession(name, folder), say(name))
    for name in ("a", "A/..", "a,b", ""):
        assert items(DurableSession(name, folder)) == [say(name)]


def test_a_damaged_record_is_kept_and_reported(folder: Path) -> None:
    session = DurableSession("one", folder)
    for text in ("a", "b", "c"):
        add(session, say(text))
    path = Path(session.journal.path)
    path.write_bytes(path.read_bytes().replace(b'"content":"b"', b'"content":"b'))
    again = DurableSession("one", folder)
    assert items(again) == [say("a"), say("c")]
    assert len(again.journal.skipped) == 1
    ref = Workspace(folder.parent).find("one")
    assert [problem.line for problem in Workspace(folder.parent).check(ref)] == [3]
    assert asyncio.run(again.pop_item()) == say("c")
    assert b'"content":"b' in path.read_bytes()


def test_below_the_encrypting_session(folder: Path) -> None:
    inner = DurableSession("one", folder)
    session = EncryptedSession("one", inner, encryption_key="secret")
    run(session, [assistant_message("Hi.")])
    assert [one["role"] for one in items(session)] == ["user", "assistant"]
    assert b"Hello" not in Path(inner.journal.path).read_bytes()
    assert asyncio.run(session.pop_item())["role"] == "assistant"


def test_parallel_runs_on_one_session_lose_nothing(folder: Path) -> None:
    async def both() -> None:
        sessions = [DurableSession("one", folder), DurableSession("one", folder)]
        await asyncio.gather(*(sessions[number % 2].add_items([say(str(number))]) for number in range(40)))

    asyncio.run(both())
    assert sorted(int(one["content"]) for one in items(DurableSession("one", folder))) == list(range(40))


def test_a_cancelled_write_is_finished(folder: Path) -> None:
    session = DurableSession("one", folder)

    async def cancel() -> None:
        task = asyncio.ensure_future(session.add_items([say("a")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert items(session) == [say("a")]


CHILD = """
    import asyncio, sys
    from agents import Agent, Runner, function_tool, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message, function_call
    from sessionary.plugs.openai_agents import DurableSession

    set_tracing_disabled(True)
    folder, number = sys.argv[1], int(sys.argv[2])
    session = DurableSession("one", folder)

    @function_tool
    def work(step: int) -> str:
        "Work."
        return str(step)

    async def main():
        for turn in range(10_000):
            steps = [[function_call("work", {"step": turn}, call_id=f"c{number}-{turn}")], [assistant_message("done")]]
            agent = Agent(name="one", model=ScriptedModel(steps), tools=[work])
            before = len(await session.get_items())
            await Runner.run(agent, f"turn {number} {turn}", session=session)
            print(turn, flush=True)

    asyncio.run(main())
"""


@pytest.mark.parametrize("number", range(3))
def test_an_agent_that_is_killed_resumes_with_every_acknowledged_turn(folder: Path, number: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(folder), str(number)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    acknowledged = [int(child.stdout.readline()) for _ in range(3 + number)]
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in child.stdout.read().split()]
    child.wait()
    session = DurableSession("one", folder)
    stored = [one["content"] for one in items(session) if one.get("role") == "user"]
    assert stored[: len(acknowledged)] == [f"turn {number} {turn}" for turn in acknowledged]
    result = run(session, [assistant_message("Back.")], text="Go on")
    assert result.final_output == "Back."
    workspace = Workspace(folder.parent)
    assert [hit.ref.session_id for hit in workspace.search("Back")] == ["one"]
    assert workspace.summary(workspace.find("one")).turns == len(stored) + 1


def _writer(folder: str, number: str) -> subprocess.Popen[bytes]:
    code = f"""
        import asyncio
        from sessionary.plugs.openai_agents import DurableSession
        async def main():
            session = DurableSession("one", {folder!r})
            for step in range(50):
                await session.add_items([{{"role": "user", "content": "{number} %d" % step}}])
        asyncio.run(main())
    """
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])


def test_eight_processes_lose_nothing(folder: Path) -> None:
    writers = [_writer(str(folder), str(number)) for number in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    stored = [one["content"] for one in items(DurableSession("one", folder))]
    assert sorted(stored) == sorted(f"{number} {step}" for number in range(8) for step in range(50))


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "frameworks" / "openai-agents.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == "Hello, Ada.\n"
    stored = DurableSession("customer-1", tmp_path / "sessionary" / "openai-agents")
    assert len(items(stored)) == 4


def test_a_database_of_its_own_session_is_taken_over(tmp_path: Path) -> None:
    theirs = SQLiteSession("one", tmp_path / "conversations.db")
    run(
        theirs,
        [function_call("weather", {"city": "Ulm"}, call_id="c1")],
        [assistant_message("Rain.")],
        tools=[weather],
    )
    add(theirs, say("half \ud83d, \x00"), {"type": "message", "role": "user", "content": [1.5, 2**70]})
    workspace = Workspace(tmp_path / "home", cache=str(tmp_path / "cache"))
    done = workspace.import_file(tmp_path / "conversations.db")
    assert [(one.state, one.items) for one in done.sessions] == [("added", len(items(theirs)))]
    mine = DurableSession("one", tmp_path / "home" / "openai-agents")
    assert items(mine) == items(theirs)
    add(theirs, say("more"))
    assert [one.items for one in workspace.import_file(tmp_path / "conversations.db").sessions] == [1]
    assert items(mine) == items(theirs)
    run(mine, [assistant_message("It goes on.")])
    assert len(items(mine)) == len(items(theirs)) + 2
    theirs.close()


def _verdicts(adapter: Any) -> dict[str, str]:
    return {row["edit"][:2]: row["verdict"] for row in agmi.run(adapter)}


def test_each_edit_of_a_stored_record_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the tool leaves its copies of a store there
    edits = [f"T{number}" for number in range(1, 10)]
    assert _verdicts(DurableSessionAdapter()) == dict.fromkeys(edits, "REPORTED")
    assert _verdicts(OpenAIAgentsSessionAdapter()) == dict.fromkeys(edits, "ACCEPTED")
    alone = dict.fromkeys(edits, "REPORTED") | dict.fromkeys(("T2", "T6", "T7", "T9"), "ACCEPTED")
    assert _verdicts(ChainAlone()) == alone
    # What is added behind the end that was kept last, with the right hash, is what the store would have written.
    forged = _verdicts(ForgesTheChain())
    assert forged["T5"] == "ACCEPTED"
    assert {forged[edit] for edit in ("T2", "T6", "T7", "T9")} == {"REPORTED"}
