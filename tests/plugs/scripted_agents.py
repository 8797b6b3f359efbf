"""An agent of each framework that holds a conversation by the framework's own runner, with a model that is a script.

Each turn says something, and calls a function in the middle of its work: there a test kills the process.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from tests.plugs import drivers

Middle = Callable[[], object]
ID = "3f0c81d2-0000-4000-8000-000000000001"


class Agent:
    """An agent over a folder of sessions. Each call begins anew, as another process does."""

    session = "one"
    stores_begun_turns = True
    """Whether what the user said is stored before the turn has ended."""

    def turn(self, folder: Path, text: str, middle: Middle = lambda: None) -> None:
        """Take a turn; acknowledged when it returns.

        Args:
            folder: the folder of the sessions.
            text: what the user says.
            middle: called when the turn has begun and has not ended.
        """
        raise NotImplementedError

    def resume(self, folder: Path) -> None:
        """Go on with a turn that was interrupted, in the way of the framework."""
        self.turn(folder, "Go on")

    def said(self, folder: Path) -> list[str]:
        """What the user said, as the store of the framework returns it."""
        raise NotImplementedError


class OpenAIAgent(Agent):
    def turn(self, folder: Path, text: str, middle: Middle = lambda: None) -> None:
        import agents
        from agents.testing import ScriptedModel, assistant_message, function_call

        from sessionary.plugs.openai_agents import DurableSession

        @agents.function_tool  # type: ignore[untyped-decorator]
        def work() -> str:
            middle()
            return "done"

        agents.set_tracing_disabled(True)
        steps = [[function_call("work", {}, call_id=f"of {text}")], [assistant_message("Ready.")]]
        made = agents.Agent(name="one", model=ScriptedModel(steps), tools=[work])
        asyncio.run(agents.Runner.run(made, text, session=DurableSession(self.session, folder)))

    def said(self, folder: Path) -> list[str]:
        from sessionary.plugs.openai_agents import DurableSession

        items = asyncio.run(DurableSession(self.session, folder).get_items())
        return [one["content"] for one in items if one.get("role") == "user"]


class ClaudeAgent(Agent):
    session = ID

    def turn(self, folder: Path, text: str, middle: Middle = lambda: None) -> None:
        asyncio.run(self._turn(folder, text, middle))

    async def _turn(self, folder: Path, text: str, middle: Middle) -> None:
        from claude_agent_sdk import ClaudeAgentOptions, query

        from sessionary.plugs.claude_agent_sdk import DurableSessionStore

        first = len(await self._transcript(folder))
        store = DurableSessionStore(folder)
        options = ClaudeAgentOptions(session_store=store, session_store_flush="eager")
        transport = self._transport(folder, first, text, middle)
        async for _ in query(prompt=text, options=options, transport=transport):
            pass

    async def _transcript(self, folder: Path) -> list[Any]:
        """The transcript from which the SDK resumes, as it writes it for its program."""
        from claude_agent_sdk import ClaudeAgentOptions
        from claude_agent_sdk._internal.session_resume import materialize_resume_session

        from sessionary.plugs.claude_agent_sdk import DurableSessionStore

        options = ClaudeAgentOptions(
            session_store=DurableSessionStore(folder), resume=ID, cwd=str(folder.parents[1])
        )
        made = await materialize_resume_session(options)
        if made is None:
            return []
        (path,) = Path(made.config_dir).glob(f"projects/*/{ID}.jsonl")
        lines = path.read_text("utf-8").splitlines()
        await made.cleanup()
        return [json.loads(line) for line in lines]

    def _transport(self, folder: Path, first: int, text: str, middle: Middle) -> Any:
        from claude_agent_sdk import project_key_for_directory
        from claude_agent_sdk._internal.sessions import _get_projects_dir

        from tests.plugs.mirroring import Scripted

        place = _get_projects_dir() / project_key_for_directory(str(folder.parents[1])) / f"{ID}.jsonl"
        return Scripted(str(place), first, text, middle)

    def said(self, folder: Path) -> list[str]:
        entries = asyncio.run(self._transcript(folder))
        return [one["message"]["content"] for one in entries if one["type"] == "user"]


class LangGraphAgent(Agent):
    def _graph(self, folder: Path, middle: Middle) -> Any:
        from langchain_core.messages import AIMessage
        from langgraph.graph import END, START, MessagesState, StateGraph

        from sessionary.plugs.langgraph import DurableSaver

        def work(state: MessagesState) -> Any:
            middle()
            return {"messages": [AIMessage("Ready.")]}

        graph = StateGraph(MessagesState)
        graph.add_node("think", lambda state: {"messages": [AIMessage("Hm.")]})
        graph.add_node("work", work)
        graph.add_edge(START, "think")
        graph.add_edge("think", "work")
        graph.add_edge("work", END)
        return graph.compile(checkpointer=DurableSaver(folder))

    def turn(self, folder: Path, text: str, middle: Middle = lambda: None) -> None:
        from langchain_core.messages import HumanMessage

        graph = self._graph(folder, middle)
        graph.invoke({"messages": [HumanMessage(text)]}, self._config(), durability="sync")

    def resume(self, folder: Path) -> None:
        """The node that was interrupted runs again; the one before it does not."""
        found = self._graph(folder, lambda: None).invoke(None, self._config())
        assert [one.content for one in found["messages"]][-2:] == ["Hm.", "Ready."]
        super().resume(folder)

    def _config(self) -> Any:
        return {"configurable": {"thread_id": self.session}}

    def said(self, folder: Path) -> list[str]:
        messages = self._graph(folder, lambda: None).get_state(self._config()).values["messages"]
        return [one.content for one in messages if one.type == "human"]


class ADKAgent(Agent):
    def turn(self, folder: Path, text: str, middle: Middle = lambda: None) -> None:
        asyncio.run(self._turn(folder, text, middle))

    async def _turn(self, folder: Path, text: str, middle: Middle) -> None:
        from google.adk.agents import LlmAgent
        from google.adk.models.base_llm import BaseLlm
        from google.adk.models.llm_response import LlmResponse
        from google.adk.runners import Runner
        from google.genai import types

        from sessionary.plugs.google_adk import DurableSessionService

        class Scripted(BaseLlm):  # type: ignore[misc]
            async def generate_content_async(
                self, llm_request: Any, stream: bool = False
            ) -> AsyncIterator[Any]:
                is_first = llm_request.contents[-1].parts[0].function_response is None
                call = types.Part(function_call=types.FunctionCall(name="work", args={}))
                part = call if is_first else types.Part(text="Ready.")
                yield LlmResponse(content=types.Content(role="model", parts=[part]))

        def work() -> str:
            """Work."""
            middle()
            return "done"

        service = DurableSessionService(folder)
        who: dict[str, Any] = {"app_name": "app", "user_id": "user", "session_id": self.session}
        await service.get_session(**who) or await service.create_session(**who)
        agent = LlmAgent(name="helper", model=Scripted(model="script"), tools=[work])
        runner = Runner(agent=agent, app_name="app", session_service=service)
        said = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="user", session_id=self.session, new_message=said):
            pass

    def said(self, folder: Path) -> list[str]:
        service = drivers.OursADK(folder)
        found = service.run(
            service.service.get_session(app_name="app", user_id="user", session_id=self.session)
        )
        return [one.content.parts[0].text for one in found.events if one.author == "user"]


class PydanticAgent(Agent):
    stores_begun_turns = False  # a program saves a run that has ended

    def turn(self, folder: Path, text: str, middle: Middle = lambda: None) -> None:
        asyncio.run(self._turn(folder, text, middle))

    async def _turn(self, folder: Path, text: str, middle: Middle) -> None:
        from pydantic_ai import Agent as Made
        from pydantic_ai.conversation import Conversation
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        from sessionary.plugs.pydantic_ai import DurableConversationStore

        def answer(messages: list[Any], info: Any) -> Any:
            has_worked = messages[-1].parts[-1].part_kind == "tool-return"
            return ModelResponse(parts=[TextPart("Ready.") if has_worked else ToolCallPart("work", {})])

        def work() -> str:
            middle()
            return "done"

        store = DurableConversationStore(folder)
        found = await store.load(self.session) or Conversation(conversation_id=self.session)
        agent = Made(FunctionModel(answer), tools=[work])
        await store.save(await agent.run(text, conversation=found))

    def said(self, folder: Path) -> list[str]:
        from sessionary.plugs.pydantic_ai import DurableConversationStore

        found = asyncio.run(DurableConversationStore(folder).load(self.session))
        parts = [part for message in ([] if found is None else found.messages) for part in message.parts]
        return [str(part.content) for part in parts if part.part_kind == "user-prompt"]


AGENTS: dict[str, Agent] = {
    "openai-agents": OpenAIAgent(),
    "claude-agent-sdk": ClaudeAgent(),
    "langgraph": LangGraphAgent(),
    "google-adk": ADKAgent(),
    "pydantic-ai": PydanticAgent(),
}
