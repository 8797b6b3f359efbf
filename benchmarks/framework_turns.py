"""One turn through the store of a framework, beside the framework's own best durable store or a plain append.

Runs inside the environment of that framework (`python -m benchmarks.frameworks` starts it), and prints one JSON object
with the rows. Nothing but the framework and the package is imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

SIZES = (10, 1000, 10_000)
ROUNDS = 15
TEXT = "x" * 200


def by_turns(works: Sequence[Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Any]:
    """Both works in changing order: the median ratio (theirs : ours) and the median times in milliseconds."""
    ours, theirs = works
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        taken = {}
        for work in (ours, theirs) if number % 2 else (theirs, ours):
            begin = time.perf_counter()
            work()
            taken[work] = (time.perf_counter() - begin) * 1e3
        pairs.append((taken[ours], taken[theirs]))
    ratio = median(b / a for a, b in pairs)
    return {"ratio": ratio, "ours": median(a for a, _ in pairs), "theirs": median(b for _, b in pairs)}


def plain_append(path: Path) -> Callable[[], object]:
    """A floor: 500 bytes appended and flushed."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def work() -> None:
        os.write(file, b"x" * 499 + b"\n")
        os.fdatasync(file)

    return work


def openai_agents(folder: Path, size: int) -> dict[str, Any]:
    """The calls of a turn: all items are read, two are added."""
    from agents import SQLiteSession

    from sessionary.plugs.openai_agents import DurableSession

    loop = asyncio.new_event_loop()
    item: Any = {"role": "user", "content": TEXT}
    works: list[Callable[[], object]] = []
    stores: tuple[Any, ...] = (DurableSession("one", folder), SQLiteSession("one", folder / "peer.db"))
    for session in stores:
        for start in range(0, size, 500):
            loop.run_until_complete(session.add_items([item] * min(500, size - start)))

        def work(session: Any = session) -> None:
            loop.run_until_complete(session.get_items())
            loop.run_until_complete(session.add_items([item]))
            loop.run_until_complete(session.add_items([item]))

        works.append(work)
    return by_turns(works)


def google_adk(folder: Path, size: int) -> dict[str, Any]:
    """A session is read, and two events are added."""
    from google.adk.events.event import Event
    from google.adk.sessions import DatabaseSessionService
    from google.genai import types

    from sessionary.plugs.google_adk import DurableSessionService

    loop = asyncio.new_event_loop()
    who: Any = {"app_name": "app", "user_id": "user", "session_id": "one"}

    def event() -> Any:
        return Event(author="user", content=types.Content(role="user", parts=[types.Part(text=TEXT)]))

    works: list[Callable[[], object]] = []
    for service in (
        DurableSessionService(folder),
        DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/peer.db"),
    ):
        session = loop.run_until_complete(service.create_session(**who))
        for _ in range(size):
            loop.run_until_complete(service.append_event(session, event()))

        def work(service: Any = service) -> None:
            found = loop.run_until_complete(service.get_session(**who))
            for _ in range(2):
                loop.run_until_complete(service.append_event(found, event()))

        works.append(work)
    return by_turns(works)


def langgraph(folder: Path, size: int) -> dict[str, Any]:
    """A graph with one node answers one message."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    from sessionary.plugs.langgraph import DurableSaver

    config: Any = {"configurable": {"thread_id": "one"}}
    works: list[Callable[[], object]] = []
    database = sqlite3.connect(folder / "peer.db", check_same_thread=False)
    for saver in (DurableSaver(folder), SqliteSaver(database)):
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage(TEXT)]})
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage(TEXT) for _ in range(size)]}, config)

        def work(graph: Any = graph) -> None:
            graph.invoke({"messages": [HumanMessage(TEXT)]}, config)

        works.append(work)
    return by_turns(works, rounds=7)


def claude_agent_sdk(folder: Path, size: int) -> dict[str, Any]:
    """One batch of one entry, beside a plain append."""
    from sessionary.plugs.claude_agent_sdk import DurableSessionStore

    loop = asyncio.new_event_loop()
    store = DurableSessionStore(folder)
    key: Any = {"project_key": "p", "session_id": "one"}
    made = 0

    def entries(count: int) -> list[Any]:
        nonlocal made
        made += count
        message = {"role": "user", "content": TEXT}
        return [{"type": "user", "uuid": f"u{made}-{number}", "message": message} for number in range(count)]

    for start in range(0, size, 500):
        loop.run_until_complete(store.append(key, entries(min(500, size - start))))
    return by_turns(
        (lambda: loop.run_until_complete(store.append(key, entries(1))), plain_append(folder / "floor"))
    )


def pydantic_ai(folder: Path, size: int) -> dict[str, Any]:
    """A conversation is saved with two more messages, beside a plain append."""
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    from sessionary.plugs.pydantic_ai import DurableConversationStore

    loop = asyncio.new_event_loop()
    store = DurableConversationStore(folder)
    conversation = Conversation(conversation_id="one")

    def turn() -> None:
        conversation.messages.append(ModelRequest(parts=[UserPromptPart(TEXT)]))
        conversation.messages.append(ModelResponse(parts=[TextPart(TEXT)]))

    for _ in range(size // 2):
        turn()
    loop.run_until_complete(store.save(conversation))

    def work() -> None:
        turn()
        loop.run_until_complete(store.save(conversation))

    return by_turns((work, plain_append(folder / "floor")))


MEASURED = {
    "openai-agents": openai_agents,
    "google-adk": google_adk,
    "langgraph": langgraph,
    "claude-agent-sdk": claude_agent_sdk,
    "pydantic-ai": pydantic_ai,
}


def main(name: str, folder: str) -> None:
    """Print the rows of a framework."""
    rows = []
    for size in SIZES:
        place = Path(folder) / f"{name}-{size}"
        place.mkdir(parents=True)
        rows.append({"size": size, **MEASURED[name](place, size)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
