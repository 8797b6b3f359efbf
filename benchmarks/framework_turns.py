"""Turns through the store of a framework, and sessions resumed from it.

A turn runs beside the framework's own best durable store or a plain append, and beside its own store in memory, which
shows what the framework itself takes. A session is resumed by a new store object, beside the framework's own decoding.

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
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

SIZES = (10, 1000, 10_000)
ROUNDS = 15
TEXT = "x" * 200


def by_turns(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Any]:
    """All works in changing order: the median times in milliseconds, and the median ratio (theirs : ours)."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for number in range(rounds):
        turned = number % len(names)
        for name in names[turned:] + names[:turned]:
            begin = time.perf_counter()
            works[name]()
            taken[name].append((time.perf_counter() - begin) * 1e3)
    ratio = median(theirs / ours for ours, theirs in zip(taken["ours"], taken["theirs"], strict=True))
    return {"ratio": ratio, **{name: median(times) for name, times in taken.items()}}


def plain_append(path: Path) -> Callable[[], object]:
    """A floor: 500 bytes appended and flushed."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def work() -> None:
        os.write(file, b"x" * 499 + b"\n")
        os.fdatasync(file)

    return work


Works = dict[str, Callable[[], object]]
"""``ours`` and ``theirs`` (a turn), ``alone`` (the same in memory), ``resume`` and ``decode``."""


def openai_agents(folder: Path, size: int) -> Works:
    """The calls of a turn: all items are read, two are added."""
    from agents import SQLiteSession

    from sessionary.plugs.openai_agents import DurableSession

    loop = asyncio.new_event_loop()
    item: Any = {"role": "user", "content": TEXT}
    stores: dict[str, Any] = {
        "ours": DurableSession("one", folder),
        "theirs": SQLiteSession("one", folder / "peer.db"),
    }
    works: Works = {}
    for name, session in stores.items():
        for _ in range(size):
            loop.run_until_complete(session.add_items([item]))

        def work(session: Any = session) -> None:
            loop.run_until_complete(session.get_items())
            loop.run_until_complete(session.add_items([item]))
            loop.run_until_complete(session.add_items([item]))

        works[name] = work
    rows = [json.dumps(item) for _ in range(size)]
    works["resume"] = lambda: loop.run_until_complete(DurableSession("one", folder).get_items())
    works["decode"] = lambda: [json.loads(row) for row in rows]
    return works


def google_adk(folder: Path, size: int) -> Works:
    """A session is read, and two events are added."""
    from google.adk.events.event import Event
    from google.adk.sessions import DatabaseSessionService, InMemorySessionService
    from google.genai import types

    from sessionary.plugs.google_adk import DurableSessionService

    loop = asyncio.new_event_loop()
    who: Any = {"app_name": "app", "user_id": "user", "session_id": "one"}

    def event() -> Any:
        return Event(author="user", content=types.Content(role="user", parts=[types.Part(text=TEXT)]))

    stores: dict[str, Any] = {
        "ours": DurableSessionService(folder),
        "theirs": DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/peer.db"),
        "alone": InMemorySessionService(),
    }
    works: Works = {}
    for name, service in stores.items():
        session = loop.run_until_complete(service.create_session(**who))
        for _ in range(size):
            loop.run_until_complete(service.append_event(session, event()))

        def work(service: Any = service) -> None:
            found = loop.run_until_complete(service.get_session(**who))
            for _ in range(2):
                loop.run_until_complete(service.append_event(found, event()))

        works[name] = work
    rows = [json.dumps(event().model_dump(mode="json", exclude_none=True)) for _ in range(size)]
    works["resume"] = lambda: loop.run_until_complete(DurableSessionService(folder).get_session(**who))
    works["decode"] = lambda: [Event.model_validate(json.loads(row)) for row in rows]
    return works


def langgraph(folder: Path, size: int) -> Works:
    """A graph with one node answers one message."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    from sessionary.plugs.langgraph import DurableSaver

    config: Any = {"configurable": {"thread_id": "one"}}
    database = sqlite3.connect(folder / "peer.db", check_same_thread=False)
    savers: dict[str, Any] = {
        "ours": DurableSaver(folder),
        "theirs": SqliteSaver(database),
        "alone": InMemorySaver(),
    }
    works: Works = {}
    for name, saver in savers.items():
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage(TEXT)]})
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage(TEXT) for _ in range(size)]}, config)

        def work(graph: Any = graph) -> None:
            graph.invoke({"messages": [HumanMessage(TEXT)]}, config)

        works[name] = work
    serde = savers["ours"].serde
    whole = serde.dumps_typed([HumanMessage(TEXT, id=str(number)) for number in range(size)])
    works["resume"] = lambda: DurableSaver(folder).get_tuple(config)
    works["decode"] = lambda: serde.loads_typed(whole)
    return works


def claude_agent_sdk(folder: Path, size: int) -> Works:
    """One batch of one entry, beside a plain append."""
    from claude_agent_sdk import InMemorySessionStore

    from sessionary.plugs.claude_agent_sdk import DurableSessionStore

    loop = asyncio.new_event_loop()
    key: Any = {"project_key": "p", "session_id": "one"}
    made = 0

    def entry() -> Any:
        nonlocal made
        made += 1
        return {"type": "user", "uuid": f"u{made}", "message": {"role": "user", "content": TEXT}}

    works: Works = {"theirs": plain_append(folder / "floor")}
    stores: dict[str, Any] = {"ours": DurableSessionStore(folder), "alone": InMemorySessionStore()}
    for name, store in stores.items():

        def work(store: Any = store) -> None:
            loop.run_until_complete(store.append(key, [entry()]))

        for _ in range(size):
            work()
        works[name] = work
    rows = [json.dumps(entry()) for _ in range(size)]
    works["resume"] = lambda: loop.run_until_complete(DurableSessionStore(folder).load(key))
    works["decode"] = lambda: [json.loads(row) for row in rows]
    return works


def pydantic_ai(folder: Path, size: int) -> Works:
    """A conversation is saved with two more messages, beside a plain append."""
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import InMemoryConversationStore
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        UserPromptPart,
    )

    from sessionary.plugs.pydantic_ai import DurableConversationStore

    loop = asyncio.new_event_loop()
    messages: list[Any] = []
    works: Works = {"theirs": plain_append(folder / "floor")}
    stores: dict[str, Any] = {"ours": DurableConversationStore(folder), "alone": InMemoryConversationStore()}
    for name, store in stores.items():
        conversation = Conversation(conversation_id="one")
        messages = conversation.messages

        def work(store: Any = store, conversation: Any = conversation) -> None:
            conversation.messages.append(ModelRequest(parts=[UserPromptPart(TEXT)]))
            conversation.messages.append(ModelResponse(parts=[TextPart(TEXT)]))
            loop.run_until_complete(store.save(conversation))

        for _ in range(size // 2):
            work()
        works[name] = work
    whole = ModelMessagesTypeAdapter.dump_json(messages)
    works["resume"] = lambda: loop.run_until_complete(DurableConversationStore(folder).load("one"))
    works["decode"] = lambda: ModelMessagesTypeAdapter.validate_json(whole)
    return works


MEASURED: dict[str, Callable[[Path, int], Works]] = {
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
        works = MEASURED[name](place, size)
        turn: Works = {key: works[key] for key in ("ours", "theirs", "alone") if key in works}
        row: dict[str, Any] = {"size": size, "turn": by_turns(turn)}
        if size == SIZES[-1]:
            row["resume"] = by_turns({"ours": works["resume"], "theirs": works["decode"]})
        rows.append(row)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
