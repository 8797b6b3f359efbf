"""One way to drive the stores of all frameworks: texts are appended to named sessions, and read.

Each framework has a driver of our store and one of the best store that it ships. Only the framework of the environment
is imported.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any


class Driver:
    """A store of a framework.

    Args:
        folder: where it stores.
    """

    durable = True
    """Whether it stores on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.loop = asyncio.new_event_loop()

    def run(self, awaited: Any) -> Any:
        return self.loop.run_until_complete(awaited)

    def append(self, session: str, *texts: str, time: float | None = None) -> None:
        """Add messages: acknowledged when it returns. They bear that time, else each a later one than the last."""
        raise NotImplementedError

    def read(self, session: str) -> list[str] | None:
        """The messages; None for an unknown session."""
        raise NotImplementedError

    def delete(self, session: str) -> None:
        """Delete a session."""
        raise NotImplementedError

    def newest(self, session: str, count: int) -> list[str]:
        """So many of the newest messages, the oldest of them first."""
        raise NotImplementedError

    def sessions(self) -> list[str]:
        """The sessions, in the order of the framework."""
        raise NotImplementedError

    def take_back(self, session: str, count: int) -> None:
        """Go back by so many messages, in the way of the framework."""
        raise NotImplementedError

    def fork(self, session: str, new: str) -> None:
        """Begin a session with the messages of another one."""
        raise NotImplementedError

    def files(self) -> list[Path]:
        """The files that hold sessions."""
        return [path for path in self.folder.rglob("*.records") if path.is_file()]


# -- OpenAI Agents SDK


class _OpenAI(Driver):
    def session(self, name: str) -> Any:
        raise NotImplementedError

    def append(self, session: str, *texts: str, time: float | None = None) -> None:
        self.run(self.session(session).add_items([{"role": "user", "content": text} for text in texts]))

    def read(self, session: str) -> list[str] | None:
        return [one["content"] for one in self.run(self.session(session).get_items())] or None

    def delete(self, session: str) -> None:
        self.run(self.session(session).clear_session())

    def newest(self, session: str, count: int) -> list[str]:
        return [one["content"] for one in self.run(self.session(session).get_items(count))]

    def take_back(self, session: str, count: int) -> None:
        for _ in range(count):
            self.run(self.session(session).pop_item())


class OursOpenAI(_OpenAI):
    def session(self, name: str) -> Any:
        from sessionary.plugs.openai_agents import DurableSession

        return DurableSession(name, self.folder)


class TheirsOpenAI(_OpenAI):
    def session(self, name: str) -> Any:
        from agents import SQLiteSession

        return SQLiteSession(name, self.folder / "peer.db")


# -- Claude Agent SDK


class OursClaude(Driver):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = self.made()
        self.made_entries = 0

    def made(self) -> Any:
        from sessionary.plugs.claude_agent_sdk import DurableSessionStore

        return DurableSessionStore(self.folder)

    def append(self, session: str, *texts: str, time: float | None = None) -> None:
        entries = [{"type": "user", "message": {"role": "user", "content": text}} for text in texts]
        self.run(self.store.append({"project_key": "p", "session_id": session}, entries))

    def read(self, session: str) -> list[str] | None:
        found = self.run(self.store.load({"project_key": "p", "session_id": session}))
        return found and [one["message"]["content"] for one in found]

    def delete(self, session: str) -> None:
        self.run(self.store.delete({"project_key": "p", "session_id": session}))

    def sessions(self) -> list[str]:
        return [one["session_id"] for one in self.run(self.store.list_sessions("p"))]


class TheirsClaude(OursClaude):
    durable = False

    def made(self) -> Any:
        from claude_agent_sdk import InMemorySessionStore

        return InMemorySessionStore()


# -- LangGraph


class OursLangGraph(Driver):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.saver = self.made()

    def made(self) -> Any:
        from sessionary.plugs.langgraph import DurableSaver

        return DurableSaver(self.folder)

    def append(self, session: str, *texts: str, time: float | None = None) -> None:
        config: Any = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        self._put(config, self.saver.get_tuple(config), *texts)

    def _put(self, config: Any, found: Any, *texts: str) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        before = found.checkpoint if found else empty_checkpoint()
        version = self.saver.get_next_version(before["channel_versions"].get("messages"), None)
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"messages": [*before["channel_values"].get("messages", []), *texts]},
            "channel_versions": {"messages": version},
        }
        parent = found.config if found else config
        self.saver.put(parent, checkpoint, {"step": 1}, {"messages": version})

    def read(self, session: str) -> list[str] | None:
        found = self.saver.get_tuple({"configurable": {"thread_id": session, "checkpoint_ns": ""}})
        return found and found.checkpoint["channel_values"]["messages"]  # type: ignore[no-any-return]

    def delete(self, session: str) -> None:
        self.saver.delete_thread(session)

    def sessions(self) -> list[str]:
        return list(dict.fromkeys(one.config["configurable"]["thread_id"] for one in self.saver.list(None)))

    def take_back(self, session: str, count: int) -> None:
        config: Any = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        left = len(self.read(session) or ()) - count
        for found in list(self.saver.list(config)):
            if len(found.checkpoint["channel_values"]["messages"]) == left:
                return self._put(config, found)
        raise AssertionError("no checkpoint has so many messages")

    def fork(self, session: str, new: str) -> None:
        self.saver.copy_thread(session, new)


class TheirsLangGraph(OursLangGraph):
    def made(self) -> Any:
        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver(sqlite3.connect(self.folder / "peer.db", check_same_thread=False))


# -- Google ADK


class OursADK(Driver):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.service = self.made()

    def made(self) -> Any:
        from sessionary.plugs.google_adk import DurableSessionService

        return DurableSessionService(self.folder)

    def append(self, session: str, *texts: str, time: float | None = None) -> None:
        from google.adk.events.event import Event
        from google.genai import types

        who = {"app_name": "app", "user_id": "user", "session_id": session}
        found = self.run(self.service.get_session(**who)) or self.run(self.service.create_session(**who))
        for text in texts:
            content = types.Content(role="user", parts=[types.Part(text=text)])
            stamp = monotonic() if time is None else time
            self.run(self.service.append_event(found, Event(author="user", content=content, timestamp=stamp)))

    def read(self, session: str) -> list[str] | None:
        who = {"app_name": "app", "user_id": "user", "session_id": session}
        found = self.run(self.service.get_session(**who))
        return found and [one.content.parts[0].text for one in found.events]

    def delete(self, session: str) -> None:
        self.run(self.service.delete_session(app_name="app", user_id="user", session_id=session))

    def newest(self, session: str, count: int) -> list[str]:
        from google.adk.sessions.base_session_service import GetSessionConfig

        config = GetSessionConfig(num_recent_events=count)
        who = {"app_name": "app", "user_id": "user", "session_id": session}
        return [
            one.content.parts[0].text
            for one in self.run(self.service.get_session(**who, config=config)).events
        ]

    def sessions(self) -> list[str]:
        return [one.id for one in self.run(self.service.list_sessions(app_name="app")).sessions]


class TheirsADK(OursADK):
    def made(self) -> Any:
        from google.adk.sessions import DatabaseSessionService

        return DatabaseSessionService(f"sqlite+aiosqlite:///{self.folder}/peer.db")


# -- pydantic-ai


class OursPydantic(Driver):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = self.made()

    def made(self) -> Any:
        from sessionary.plugs.pydantic_ai import DurableConversationStore

        return DurableConversationStore(self.folder)

    def append(self, session: str, *texts: str, time: float | None = None) -> None:
        from pydantic_ai.conversation import Conversation
        from pydantic_ai.conversation_store import ConversationConflict
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        while True:
            found = self.run(self.store.load(session)) or Conversation(conversation_id=session)
            found.messages.extend(ModelRequest(parts=[UserPromptPart(text)]) for text in texts)
            try:
                self.run(self.store.save(found))
                return
            except ConversationConflict:
                continue

    def read(self, session: str) -> list[str] | None:
        found = self.run(self.store.load(session))
        return found and [one.parts[0].content for one in found.messages]

    def delete(self, session: str) -> None:
        self.run(self.store.delete(session))

    def newest(self, session: str, count: int) -> list[str]:
        return [one.parts[0].content for one in self.run(self.store.load(session, limit=count)).messages]

    def sessions(self) -> list[str]:
        return [one.conversation_id for one in self.run(self.store.list_conversations())]

    def take_back(self, session: str, count: int) -> None:
        found = self.run(self.store.load(session))
        at = len(found.messages) - count
        self.run(self.store.branch(session, at=at, expected_revision=found.revision))

    def fork(self, session: str, new: str) -> None:
        self.run(self.store.fork(session, new_conversation_id=new))


class TheirsPydantic(OursPydantic):
    durable = False

    def made(self) -> Any:
        from pydantic_ai.conversation_store import InMemoryConversationStore

        return InMemoryConversationStore()


DRIVERS: dict[str, tuple[Callable[[Path], Driver], Callable[[Path], Driver]]] = {
    "openai-agents": (OursOpenAI, TheirsOpenAI),
    "claude-agent-sdk": (OursClaude, TheirsClaude),
    "langgraph": (OursLangGraph, TheirsLangGraph),
    "google-adk": (OursADK, TheirsADK),
    "pydantic-ai": (OursPydantic, TheirsPydantic),
}
