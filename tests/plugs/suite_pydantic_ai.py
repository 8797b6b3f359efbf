"""The conversation store of pydantic-ai: the same scripts over ours and the one in memory, and agents that run."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from sessionary import Workspace
from sessionary.layouts.records.journal import Change
from sessionary.plugs.pydantic_ai import DurableConversationStore

PINS = Path(__file__).parent / "constraints" / "pydantic-ai.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pydantic-ai"


@pytest.fixture(params=["durable", "memory"])
def store(request: pytest.FixtureRequest, folder: Path) -> Any:
    return DurableConversationStore(folder) if request.param == "durable" else InMemoryConversationStore()


def asked(text: str) -> Any:
    return ModelRequest(parts=[UserPromptPart(text)])


def answered(text: str) -> Any:
    return ModelResponse(parts=[TextPart(text)])


def texts(conversation: Any) -> list[str]:
    return [one.parts[-1].content for one in conversation.messages]


async def say(store: Any, *said: str, name: str = "one", **more: Any) -> Any:
    """Add messages to a stored conversation."""
    conversation = await store.load(name) or Conversation(conversation_id=name)
    for text in said:
        conversation.messages.append(asked(text))
    await store.save(conversation, **more)
    return conversation


def test_the_version_is_the_pinned_one() -> None:
    assert f"pydantic-ai-slim=={version('pydantic-ai-slim')}\n" in PINS.read_text("utf-8")


def test_a_conversation_grows(store: Any) -> None:
    async def run() -> None:
        assert await store.load("one") is None
        await say(store, "a", "b")
        await say(store, "c")
        assert texts(await store.load("one")) == ["a", "b", "c"]
        assert texts(await store.load("one", limit=2)) == ["b", "c"]
        assert texts(await store.load("one", limit=0)) == []
        entries = await store.load_entries("one")
        assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]
        assert (await store.read_entry(entries[1].id)) == entries[1]

    asyncio.run(run())


def test_a_window_appends_to_the_whole(store: Any) -> None:
    async def run() -> None:
        await say(store, "a", "b", "c")
        window = await store.load("one", limit=1)
        window.messages.append(asked("d"))
        await store.save(window)
        assert texts(await store.load("one")) == ["a", "b", "c", "d"]

    asyncio.run(run())


def test_a_stale_writer_is_refused_and_leaves_nothing(store: Any) -> None:
    async def run() -> None:
        await say(store, "a")
        first, second = await store.load("one"), await store.load("one")
        first.messages.append(asked("b"))
        second.messages.append(asked("c"))
        await store.save(first)
        with pytest.raises(ConversationConflict):
            await store.save(second)
        with pytest.raises(ConversationConflict):
            await store.save(Conversation(conversation_id="one", messages=[asked("x")]))
        assert texts(await store.load("one")) == ["a", "b"]
        first.messages.append(asked("d"))
        await store.save(first)
        assert texts(await store.load("one")) == ["a", "b", "d"]

    asyncio.run(run())


def test_a_rewritten_history_becomes_a_branch(store: Any) -> None:
    async def run() -> None:
        await say(store, "a", "b", "c")
        loaded = await store.load("one")
        other = Conversation(
            conversation_id="one", messages=[loaded.messages[0], asked("other")], revision=loaded.revision
        )
        await store.save(other)
        assert texts(await store.load("one")) == ["a", "other"]
        (tip,) = (await store.read_record("one")).branches
        back = await store.branch("one", from_entry=tip, expected_revision=other.revision)
        assert texts(back) == ["a", "b", "c"]
        assert texts(await store.load("one")) == ["a", "b", "c"]
        await say(store, "d")
        assert texts(await store.load("one")) == ["a", "b", "c", "d"]

    asyncio.run(run())


def test_a_fork_shares_and_goes_its_own_way(store: Any) -> None:
    async def run() -> None:
        await say(store, "a", "b", "c", scope="ada")
        fork = await store.fork("one", at=2, new_conversation_id="two")
        fork.messages.append(asked("x"))
        await store.save(fork)
        assert texts(await store.load("two")) == ["a", "b", "x"]
        assert texts(await store.load("one")) == ["a", "b", "c"]
        ids = [[entry.id for entry in await store.load_entries(name)] for name in ("one", "two")]
        assert ids[0][:2] == ids[1][:2]
        record = await store.read_record("two")
        assert (record.forked_from, record.forked_at, record.scope) == ("one", ids[0][1], "ada")
        with pytest.raises(ConversationConflict):
            await store.fork("one", new_conversation_id="two")
        await store.delete("one")
        assert await store.load("one") is None
        assert texts(await store.load("two")) == ["a", "b", "x"]
        await say(store, "again")
        assert texts(await store.load("one")) == ["again"]

    asyncio.run(run())


def test_scopes_and_lists(store: Any) -> None:
    async def run() -> None:
        for name, scope in (("a", "ada"), ("b", "bob"), ("c", "ada"), ("../d,", None)):
            await say(store, "x", name=name, scope=scope)
        await say(store, "y", name="a")
        listed = await store.list_conversations()
        assert [one.conversation_id for one in listed] == ["a", "../d,", "c", "b"]
        assert [one.conversation_id for one in await store.list_conversations(scope="ada")] == ["a", "c"]
        assert len(await store.list_conversations(limit=1)) == 1
        assert await store.load("a", scope="bob") is None
        await store.delete("a", scope="bob")
        assert await store.load("a", scope="ada") is not None
        with pytest.raises(UserError):
            await store.branch("missing", at=1, expected_revision="x")

    asyncio.run(run())


def test_an_unknown_entry_is_an_error_of_the_lookup(store: Any) -> None:
    with pytest.raises(LookupError):
        asyncio.run(store.read_entry("missing"))


def test_any_message_comes_back_equal(store: Any) -> None:
    messages = [
        ModelRequest(
            parts=[
                UserPromptPart(
                    ["nul \0 \u2028 中文", BinaryContent(bytes(range(256)), media_type="application/pdf")]
                )
            ]
        ),
        ModelResponse(
            parts=[ThinkingPart("Hm.", signature="s"), ToolCallPart("f", {"a": [1, None]}, tool_call_id="c")],
            model_name="m",
        ),
        asked("x" * 5_000_000),
    ]

    async def run() -> None:
        await store.save(Conversation(conversation_id="one", messages=messages))
        assert (await store.load("one")).messages == messages

    asyncio.run(run())


# -- what only ours must do


def repeats() -> Any:
    def answer(messages: list[Any], info: AgentInfo) -> Any:
        return answered(f"You said {messages[-1].parts[-1].content}")

    return Agent(FunctionModel(answer))


async def ask(store: Any, text: str) -> str:
    conversation = await store.load("one") or Conversation(conversation_id="one")
    result = await repeats().run(text, conversation=conversation)
    await store.save(result)
    return str(result.output)


def test_an_agent_continues_in_another_store(folder: Path) -> None:
    assert (
        asyncio.run(ask(DurableConversationStore(folder), "Fix the login race"))
        == "You said Fix the login race"
    )
    asyncio.run(ask(DurableConversationStore(folder), "And the tests"))
    found = asyncio.run(DurableConversationStore(folder).load("one"))
    assert found is not None
    assert texts(found)[2:] == ["And the tests", "You said And the tests"]
    workspace = Workspace(folder.parent)
    (summary,) = workspace.list()
    assert (summary.title, summary.turns, summary.messages, summary.agent) == (
        "Fix the login race",
        2,
        4,
        "pydantic-ai",
    )
    assert summary.total_usage() is not None
    assert len(list(workspace.search("tests"))) == 2


def test_the_commands_show_the_active_line(folder: Path) -> None:
    async def run() -> None:
        store = DurableConversationStore(folder)
        made = await say(store, "a", "b", "c")
        await store.branch("one", at=1, expected_revision=made.revision)
        await say(store, "other")
        await store.fork("one", new_conversation_id="two")

    asyncio.run(run())
    workspace = Workspace(folder.parent)
    shown = [one.message.text for one in workspace.messages(workspace.find("one"))]
    assert shown == ["a", "other"]
    assert [hit.text for hit in workspace.search("c")] == ["c"]
    assert workspace.summary(workspace.find("two")).parent == "one"


def test_a_step_of_two_branches_by_turns_writes_what_it_added(folder: Path) -> None:
    store, sizes = DurableConversationStore(folder, durability="none"), [0]
    tips: dict[int, Any] = {}

    async def run() -> None:
        await say(store, "root")
        for number in range(200):
            record = await store.read_record("one")
            if number:
                place: Any = {"from_entry": tips[number % 2]} if number > 1 else {"at": 1}
                await store.branch("one", expected_revision=record.revision, **place)
            await say(store, f"{number:04}", f"again {number:04}")
            tips[number % 2] = (await store.read_record("one")).head_id
            sizes.append(Path(store.journals.of("one").path).stat().st_size)

    asyncio.run(run())
    written = [(sizes[end] - sizes[end - 50]) / 50 for end in (100, 150, 200)]
    assert max(written) <= 1.02 * min(written)
    even = [text for number in range(1, 200, 2) for text in (f"{number:04}", f"again {number:04}")]
    assert texts(asyncio.run(DurableConversationStore(folder).load("one"))) == ["root", *even]
    workspace = Workspace(folder.parent)
    shown = [one.message.text for one in workspace.messages(workspace.find("one"))]
    assert shown == ["root", *even]


def test_a_conversation_of_an_earlier_version_continues(folder: Path) -> None:
    async def run() -> None:
        store = DurableConversationStore(folder)
        made = await say(store, "a", "b", "c")
        await store.branch("one", at=1, expected_revision=made.revision)
        await say(store, "x")
        shown = {"items": [[0, 0], [3, 3]]}
        store.journals.of("one").change(lambda _: Change(set={"view": shown}, unset={"view": ["head"]}))
        await say(DurableConversationStore(folder), "y")
        await say(DurableConversationStore(folder), "z")

    asyncio.run(run())
    workspace = Workspace(folder.parent)
    shown = [one.message.text for one in workspace.messages(workspace.find("one"))]
    assert shown == ["a", "x", "y", "z"]


def test_a_damaged_record_is_reported(folder: Path) -> None:
    async def run() -> None:
        store = DurableConversationStore(folder)
        for text in "abc":
            await say(store, text)
        (path,) = folder.glob("*.records")
        path.write_bytes(path.read_bytes().replace(b'"content":"c"', b'"content":"c'))
        assert texts(await DurableConversationStore(folder).load("one")) == ["a", "b"]
        await say(DurableConversationStore(folder), "d")
        assert texts(await DurableConversationStore(folder).load("one")) == ["a", "b", "d"]

    asyncio.run(run())
    workspace = Workspace(folder.parent)
    assert [problem.line for problem in workspace.check(workspace.find("one"))] == [4]


CHILD = """
    import asyncio, sys
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import ConversationConflict
    from pydantic_ai.messages import ModelRequest, UserPromptPart
    from sessionary.plugs.pydantic_ai import DurableConversationStore

    async def main():
        store = DurableConversationStore(sys.argv[1])
        for step in range(10_000):
            while True:
                conversation = await store.load("one") or Conversation(conversation_id="one")
                conversation.messages.append(ModelRequest(parts=[UserPromptPart(f"{sys.argv[2]} {step}")]))
                try:
                    await store.save(conversation)
                    break
                except ConversationConflict:
                    pass
            print(step, flush=True)

    asyncio.run(main())
"""


def test_two_writers_that_are_killed_lose_nothing(folder: Path) -> None:
    children = []
    for name in "01":
        command = [sys.executable, "-c", textwrap.dedent(CHILD), str(folder), name]
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    acknowledged: set[str] = set()
    for number, child in enumerate(children):
        assert child.stdout is not None
        acknowledged |= {f"{number} {int(child.stdout.readline())}" for _ in range(5)}
    for number, child in enumerate(children):
        assert child.stdout is not None
        os.kill(child.pid, signal.SIGKILL)
        acknowledged |= {f"{number} {int(line)}" for line in child.stdout.read().split()}
        child.wait()
    found = texts(asyncio.run(DurableConversationStore(folder).load("one")))
    assert acknowledged <= set(found)
    assert len(set(found)) == len(found)
    assert asyncio.run(ask(DurableConversationStore(folder), "Go on")) == "You said Go on"


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "frameworks" / "pydantic-ai.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for said in ("2 messages\n", "4 messages\n"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == said
