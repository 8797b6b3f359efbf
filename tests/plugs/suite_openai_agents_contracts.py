"""What a `Session` of the OpenAI Agents SDK must do: the same demands of ours and of the `SQLiteSession` of the SDK.

The SDK has no suite for stores; these are the demands of its protocol and of its own tests.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import agents
import pytest
from agents import Agent, Runner, SQLiteSession, function_tool
from agents.extensions.memory import AdvancedSQLiteSession, EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call

from sessionary.errors import Invalid
from sessionary.plugs.openai_agents import DurableSession

Make = Callable[..., Any]

KNOWN = {
    ("sqlite", "test_a_damaged_item_is_kept"): "pop_item deletes it",
    ("advanced", "test_a_damaged_item_is_kept"): "pop_item deletes it",
}


@pytest.fixture(params=["durable", "sqlite", "advanced"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes a session of an id; several of one id see the same items."""
    agents.set_tracing_disabled(True)
    if fault := KNOWN.get((request.param, request.node.originalname)):
        request.node.add_marker(pytest.mark.xfail(reason=fault, strict=True))
    if request.param == "durable":
        return lambda name="one", **how: DurableSession(name, tmp_path / "ours", **how)
    if request.param == "sqlite":
        return lambda name="one", **how: SQLiteSession(name, tmp_path / "peer.db", **how)
    return lambda name="one", **how: AdvancedSQLiteSession(
        session_id=name, db_path=tmp_path / "peer.db", create_tables=True, **how
    )


def say(text: str) -> Any:
    return {"role": "user", "content": text}


def items(session: Any, limit: int | None = None) -> list[Any]:
    return asyncio.run(session.get_items(limit))


def add(session: Any, *added: Any) -> None:
    asyncio.run(session.add_items(list(added)))


def said(session: Any, limit: int | None = None) -> list[str]:
    return [one["content"] for one in items(session, limit)]


def test_items_come_in_the_order_of_their_writing(make: Make) -> None:
    add(make(), say("b"), say("a"))
    add(make(), say("c"))
    assert said(make()) == ["b", "a", "c"]


def test_nothing_to_add_changes_nothing(make: Make) -> None:
    session = make()
    add(session)
    assert items(session) == []


@pytest.mark.parametrize("limit", [None, 0, 1, 2, 9])
def test_a_limit_gives_the_newest_the_oldest_first(make: Make, limit: int | None) -> None:
    add(make(), *map(say, "abcd"))
    assert said(make(), limit) == list("abcd")[4 - min(4 if limit is None else limit, 4) :]


def test_the_limit_of_the_settings_counts_unless_one_is_given(make: Make) -> None:
    session = make(session_settings=SessionSettings(limit=2))
    add(session, *map(say, "abcd"))
    assert (said(session), said(session, 1)) == (["c", "d"], ["d"])


def test_pop_takes_the_newest_as_it_was_written(make: Make) -> None:
    written = [
        say("a"),
        {"type": "function_call", "call_id": "c", "arguments": '{"x": 1}', "n": [2**70, None]},
    ]
    add(make(), *written)
    session = make()
    assert [asyncio.run(session.pop_item()) for _ in range(3)] == [*reversed(written), None]


def test_clear_leaves_a_session_that_can_grow(make: Make) -> None:
    session = make()
    add(session, say("a"))
    asyncio.run(session.clear_session())
    assert items(make()) == []
    add(session, say("b"))
    assert said(make()) == ["b"]


def test_sessions_are_apart(make: Make) -> None:
    for name in ("a", "A", "a b", "'; drop table agent_messages; --"):
        add(make(name), say(name))
    asyncio.run(make("a").clear_session())
    assert said(make("A")) == ["A"]
    assert said(make("'; drop table agent_messages; --")) == ["'; drop table agent_messages; --"]


@pytest.mark.parametrize(
    "text", ["nul \0", "half \ud800", "中文 \U0001f600 \u2028", "'; drop table x; --", "x" * 2_000_000]
)
def test_any_text_comes_back(make: Make, text: str) -> None:
    add(make(), say(text))
    assert said(make()) == [text]


def test_a_failed_addition_adds_nothing_and_releases_the_session(make: Make) -> None:
    session = make()
    add(session, say("a"))
    with pytest.raises((TypeError, Invalid)):
        add(session, say("b"), {"role": "user", "content": {1, 2}})
    assert said(make()) == ["a"]
    add(session, say("c"))
    assert said(make()) == ["a", "c"]


def test_concurrent_additions_are_all_there(make: Make) -> None:
    async def both() -> None:
        sessions = [make(), make()]
        await asyncio.gather(*(sessions[number % 2].add_items([say(str(number))]) for number in range(40)))

    asyncio.run(both())
    assert sorted(map(int, said(make()))) == list(range(40))


def test_a_cancelled_addition_has_a_known_outcome(make: Make) -> None:
    session = make()

    async def cancel() -> None:
        task = asyncio.ensure_future(session.add_items([say("a")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = await session.get_items()
        await asyncio.sleep(0.3)
        assert await session.get_items() == before

    asyncio.run(cancel())


def test_a_turn_whose_model_failed_can_be_taken_back(make: Make) -> None:
    session = make()
    add(session, say("a"))
    failing = Agent(name="one", model=ScriptedModel([{"error": RuntimeError("model is down")}]))
    with pytest.raises(RuntimeError, match="model is down"):
        asyncio.run(Runner.run(failing, "Lost", session=session))
    while len(items(session)) > 1:
        asyncio.run(session.pop_item())
    assert said(session) == ["a"]


@function_tool  # type: ignore[untyped-decorator]
def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


def test_parallel_calls_and_a_handoff_go_on_in_another_session_object(make: Make) -> None:
    other = Agent(name="other", model=ScriptedModel([[assistant_message("Rain.")]]))
    calls = [
        function_call("weather", {"city": "Ulm"}, call_id="c1"),
        function_call("weather", {"city": "Bonn"}, call_id="c2"),
    ]
    first = ScriptedModel([calls, [function_call("transfer_to_other", {}, call_id="c3")]])
    agent = Agent(name="one", model=first, tools=[weather], handoffs=[other])
    result = asyncio.run(Runner.run(agent, "Rain?", session=make()))
    assert result.final_output == "Rain."
    model = ScriptedModel([[assistant_message("Bye.")]])
    asyncio.run(Runner.run(Agent(name="one", model=model), "Bye", session=make()))
    outputs = [one["output"] for one in model.calls[0].input if one.get("type") == "function_call_output"]
    assert outputs[:2] == ["rain in Ulm", "rain in Bonn"]
    assert len(outputs) == 3


def test_below_the_encrypting_session(make: Make) -> None:
    session = EncryptedSession("one", make(), encryption_key="secret")
    add(session, say("Hello"), say("Ada"))
    assert said(session) == ["Hello", "Ada"]
    assert "Hello" not in str(items(make()))
    assert asyncio.run(session.pop_item()) == say("Ada")


def test_below_the_compacting_session(make: Make) -> None:
    summary = {"type": "compaction", "id": "cmp_1", "encrypted_content": "all of it"}

    async def compact(**asked: Any) -> Any:
        assert [one["content"] for one in asked["input"]] == ["a", "b", "c"]
        return SimpleNamespace(output=[summary], usage=None, id="r")

    client: Any = SimpleNamespace(responses=SimpleNamespace(compact=compact))
    session = OpenAIResponsesCompactionSession("one", make(), client=client, compaction_mode="input")
    add(session, *map(say, "abc"))
    asyncio.run(session.run_compaction({"force": True}))
    assert items(make()) == [summary]
    add(session, say("d"))
    assert items(make()) == [summary, say("d")]


def test_a_damaged_item_is_kept(make: Make, tmp_path: Path) -> None:
    add(make(), say("a"))
    add(make(), say("b"))
    if isinstance(make(), SQLiteSession):
        with sqlite3.connect(tmp_path / "peer.db") as database:
            database.execute("UPDATE agent_messages SET message_data = 'torn' WHERE id = 2")
            database.commit()
            assert asyncio.run(make().pop_item()) == say("a")
            assert database.execute("SELECT message_data FROM agent_messages").fetchall() == [("torn",)]
        return
    path = Path(make().journal.path)
    torn = path.read_bytes().replace(b'"content":"b"', b'"content":"b')
    path.write_bytes(torn)
    assert asyncio.run(make().pop_item()) == say("a")
    assert path.read_bytes().startswith(torn)
