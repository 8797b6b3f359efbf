"""The checkpointer for LangGraph: the contracts of its conformance package, ours, and graphs that run."""

import asyncio
import operator
import os
import re
import signal
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from sessionary import Workspace
from sessionary.errors import Corrupt
from sessionary.plugs.langgraph import DurableSaver

PINS = Path(__file__).parent / "constraints" / "langgraph.txt"
ONE = {"configurable": {"thread_id": "one"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "langgraph"


def named(thread: str, namespace: str = "", checkpoint: str | None = None) -> dict[str, Any]:
    inner = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": inner if checkpoint is None else {**inner, "checkpoint_id": checkpoint}}


def put(saver: Any, config: Any, metadata: Any = None, **values: Any) -> Any:
    """Store a checkpoint with new versions of these channels."""
    found = saver.get_tuple(config) if config["configurable"].get("checkpoint_id") else None
    before = found.checkpoint if found else empty_checkpoint()
    versions = dict(before["channel_versions"])
    new = {channel: saver.get_next_version(versions.get(channel), None) for channel in values}
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {**before["channel_values"], **values},
        "channel_versions": {**versions, **new},
    }
    return saver.put(config, checkpoint, metadata or {"step": 1}, new)


def values(saver: Any, config: Any) -> Any:
    found = saver.get_tuple(config)
    return None if found is None else found.checkpoint["channel_values"]


def talk(saver: Any) -> Any:
    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def ask(graph: Any, text: str, config: Any = None) -> list[str]:
    found = graph.invoke({"messages": [HumanMessage(text)]}, config or ONE)
    return [one.content for one in found["messages"]]


def test_the_version_is_the_pinned_one() -> None:
    assert f"langgraph=={version('langgraph')}\n" in PINS.read_text("utf-8")


def test_all_contracts_of_the_conformance_package(tmp_path: Path) -> None:
    @checkpointer_test(name="DurableSaver")  # type: ignore[untyped-decorator]
    async def durable() -> Any:
        yield DurableSaver(tmp_path / str(uuid4()))

    report = asyncio.run(validate(durable))
    assert report.passed_all()
    results = report.results.values()
    assert sum(one.tests_passed for one in results) == 81
    assert sum(one.tests_failed for one in results) == 0


@pytest.mark.parametrize("name", ["AsyncSqliteSaver", "InMemorySaver"])
def test_the_contracts_that_its_own_savers_pass(tmp_path: Path, name: str) -> None:
    @checkpointer_test(name=name)  # type: ignore[untyped-decorator]
    async def theirs() -> Any:
        if name == "InMemorySaver":
            yield InMemorySaver()
            return
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / f"{uuid4()}.db")) as saver:
            yield saver

    report = asyncio.run(validate(theirs))
    assert report.passed_all_base()
    assert sum(one.tests_passed for one in report.results.values()) == 58


def test_a_graph_continues_in_another_saver(folder: Path) -> None:
    assert ask(talk(DurableSaver(folder)), "a") == ["a", "answer 1"]
    assert ask(talk(DurableSaver(folder)), "b") == ["a", "answer 1", "b", "answer 3"]


def test_an_asynchronous_graph(folder: Path) -> None:
    async def run(text: str) -> list[str]:
        graph = talk(DurableSaver(folder))
        found = await graph.ainvoke({"messages": [HumanMessage(text)]}, ONE)
        return [one.content for one in found["messages"]]

    asyncio.run(run("a"))
    assert asyncio.run(run("b")) == ["a", "answer 1", "b", "answer 3"]
    assert asyncio.run(_all(DurableSaver(folder))) == [one.config for one in DurableSaver(folder).list(ONE)]


async def _all(saver: DurableSaver) -> list[Any]:
    return [one.config async for one in saver.alist(ONE)]


def test_history_and_state_are_those_of_the_store_in_memory(folder: Path) -> None:
    mine, theirs = talk(DurableSaver(folder)), talk(InMemorySaver())
    for graph in (mine, theirs):
        ask(graph, "a")
        ask(graph, "b")
    reported = [
        [
            ([m.content for m in one.values.get("messages", [])], one.next, one.metadata["step"])
            for one in graph.get_state_history(ONE)
        ]
        for graph in (mine, theirs)
    ]
    assert reported[0] == reported[1]


def test_time_travel_leaves_both_branches_whole(folder: Path) -> None:
    graph = talk(DurableSaver(folder))
    ask(graph, "a")
    middle = graph.get_state(ONE).config
    ask(graph, "b")
    left = graph.get_state(ONE).config
    assert ask(graph, "c", middle) == ["a", "answer 1", "c", "answer 3"]
    again = talk(DurableSaver(folder))
    assert [one.content for one in again.get_state(left).values["messages"]] == [
        "a",
        "answer 1",
        "b",
        "answer 3",
    ]
    assert [one.content for one in again.get_state(ONE).values["messages"]] == [
        "a",
        "answer 1",
        "c",
        "answer 3",
    ]
    found = [hit.text for hit in Workspace(folder.parent).search("b")]
    assert found == ["b"]


def test_a_changed_and_a_shorter_list_are_stored_exactly(folder: Path) -> None:
    saver = DurableSaver(folder)
    lists = [[1, 2, 3], [1, 2, 3, 4], [1, 9, 3, 4], [1], [], [[]], [1, 1, 1], [{"a": [1]}, None, 2.5, b"\0"]]
    configs, config = [], named("one")
    for one in lists:
        config = put(saver, config, channel=one)
        configs.append(config)
    for reader in (saver, DurableSaver(folder)):
        assert [values(reader, one)["channel"] for one in configs] == lists


def test_more_steps_than_a_chain_of_lists_may_have(folder: Path) -> None:
    saver, config = DurableSaver(folder, durability="none"), named("one")
    for number in range(600):
        config = put(saver, config, a=list(range(number + 1)), b=list(range(number // 2)))
    found = values(DurableSaver(folder), config)
    assert (found["a"], found["b"]) == (list(range(600)), list(range(299)))


@pytest.mark.parametrize("text", ["nul \0", "\u2028 中文", "x" * 5_000_000], ids=["nul", "unicode", "5MB"])
def test_any_value_and_metadata_come_back(folder: Path, text: str) -> None:
    config = put(DurableSaver(folder), named("one"), {"source": text, "step": 1}, channel=text, other=[text])
    found = DurableSaver(folder).get_tuple(config)
    assert (found.checkpoint["channel_values"], found.metadata["source"]) == (
        {"channel": text, "other": [text]},
        text,
    )


def test_namespaces_and_threads_are_apart(folder: Path) -> None:
    saver = DurableSaver(folder)
    for thread in ("one", "../one", "one,two", ""):
        for namespace in ("", "child:1", "child|2"):
            put(saver, named(thread, namespace), channel=[thread, namespace])
    for thread in ("one", "../one", "one,two", ""):
        for namespace in ("", "child:1", "child|2"):
            assert values(DurableSaver(folder), named(thread, namespace)) == {"channel": [thread, namespace]}
    assert len(list(DurableSaver(folder).list(None))) == 12
    saver.delete_thread("one")
    assert saver.get_tuple(named("one", "child:1")) is None
    assert len(list(saver.list(None))) == 9


def test_pending_writes_are_kept_once_and_in_order(folder: Path) -> None:
    saver = DurableSaver(folder)
    config = put(saver, named("one"), channel=1)
    saver.put_writes(config, [("a", 1), ("b", 2)], "task-2", "path-1")
    saver.put_writes(config, [("a", 3)], "task-1", "path-2")
    saver.put_writes(config, [("a", "changed")], "task-1", "path-2")
    saver.put_writes(config, [("__error__", "first")], "task-1", "path-2")
    saver.put_writes(config, [("__error__", "second")], "task-1", "path-2")
    assert DurableSaver(folder).get_tuple(config).pending_writes == [
        ("task-2", "a", 1),
        ("task-2", "b", 2),
        ("task-1", "__error__", "second"),
        ("task-1", "a", 3),
    ]


def test_a_pruned_thread_is_smaller_and_whole(folder: Path) -> None:
    saver, config = DurableSaver(folder), named("one")
    for number in range(20):
        config = put(saver, config, channel=list(range(number)), text=f"text {number}", fixed="fixed")
        saver.put_writes(config, [("a", number)], "task")
    saver.prune(["one"])
    (only,) = DurableSaver(folder).list(named("one"))
    assert only.checkpoint["channel_values"] == {
        "channel": list(range(19)),
        "text": "text 19",
        "fixed": "fixed",
    }
    assert only.pending_writes == [("task", "a", 19)]
    state = saver.journals.of("one").state()
    assert sum(len(table) for table in state.tables.values() if table) <= 6
    assert put(saver, config, channel=[0, 1]) is not None


def test_the_runs_that_are_deleted_leave_the_others_whole(folder: Path) -> None:
    saver, config = DurableSaver(folder), named("one")
    for number in range(6):
        config = put(
            saver, config, {"run_id": f"run-{number % 2}", "step": number}, channel=list(range(number))
        )
    saver.delete_for_runs(["run-0"])
    left = list(DurableSaver(folder).list(named("one")))
    assert [one.checkpoint["channel_values"]["channel"] for one in left] == [[0, 1, 2, 3, 4], [0, 1, 2], [0]]


def test_a_copy_is_independent(folder: Path) -> None:
    saver = DurableSaver(folder)
    graph = talk(saver)
    ask(graph, "a")
    saver.copy_thread("one", "two")
    two = {"configurable": {"thread_id": "two"}}
    assert ask(graph, "b", two) == ["a", "answer 1", "b", "answer 3"]
    saver.delete_thread("one")
    assert [one.content for one in talk(DurableSaver(folder)).get_state(two).values["messages"]] == [
        "a",
        "answer 1",
        "b",
        "answer 3",
    ]


def test_a_copy_over_a_thread_with_two_lists_shows_the_copy(folder: Path) -> None:
    saver, workspace = DurableSaver(folder), Workspace(folder.parent)
    for thread, count in (("one", 12), ("two", 15)):
        config, messages = named(thread), list[Any]()
        for number in range(count):
            messages = [*messages, HumanMessage(f"{thread} {number}", id=str(number))]
            config = put(saver, config, messages=messages, steps=list(range(number + 1)))
    saver.copy_thread("one", "two")
    shown = [one.message.text for one in workspace.messages(workspace.find("two"))]
    assert shown == [f"one {number}" for number in range(12)]
    assert saver.journals.of("two").state().tables["view"].keys() == {"items"}


class Counted(TypedDict):
    messages: Annotated[list[Any], operator.add]


def test_a_step_writes_what_it_added(folder: Path) -> None:
    saver, config = DurableSaver(folder, durability="none"), named("one")
    messages: list[Any] = [HumanMessage("x" * 1000, id=str(number)) for number in range(1000)]
    config = put(saver, config, messages=messages)
    path = Path(saver.journals.of("one").path)
    before = path.stat().st_size
    for number in range(256):
        messages = [*messages, HumanMessage("y" * 1000, id=str(1000 + number))]
        config = put(saver, config, messages=messages)
    assert (path.stat().st_size - before) / 256 <= 4096
    assert len(values(DurableSaver(folder), config)["messages"]) == 1256


def test_a_step_of_two_growing_lists_writes_what_it_added(folder: Path) -> None:
    saver, config = DurableSaver(folder, durability="none"), named("one")
    path, sizes = Path(saver.journals.of("one").path), [0]
    messages: list[Any] = []
    for number in range(1024):
        messages = [*messages, HumanMessage("x" * 1000, id=str(number))]
        config = put(saver, config, messages=messages, steps=list(range(number + 1)))
        sizes.append(path.stat().st_size)
    written = [(sizes[end] - sizes[end - 256]) / 256 for end in (256, 512, 768, 1024)]
    assert max(written) <= 4096
    assert written[3] <= 1.1 * written[1]
    again = values(DurableSaver(folder), config)
    assert (again["messages"], again["steps"]) == (messages, list(range(1024)))
    workspace = Workspace(folder.parent)
    shown = workspace.messages(workspace.find("one"))
    assert [one.message.id for one in shown] == [one.id for one in messages]


def test_an_element_that_the_thread_has_is_not_stored_again(folder: Path) -> None:
    saver = DurableSaver(folder, durability="none")
    messages: list[Any] = [HumanMessage("x" * 1000, id=str(number)) for number in range(500)]
    whole = put(saver, named("one"), messages=messages)
    path = Path(saver.journals.of("one").path)
    sizes = [path.stat().st_size]
    lists = {
        "subgraph": ("agent:1", messages),
        "trimmed": ("", messages[1:]),
        "without two": ("", [*messages[:100], *messages[102:]]),
        "both ends": ("agent:2", [messages[0], messages[-1]]),
        "another order": ("", messages[::-1]),
    }
    written: dict[str, int] = {}
    for name, (namespace, elements) in lists.items():
        config = put(saver, whole if not namespace else named("one", namespace), messages=elements)
        assert values(DurableSaver(folder), config)["messages"] == elements
        sizes.append(path.stat().st_size)
        written[name] = sizes[-1] - sizes[-2]
    assert max(size for name, size in written.items() if name != "another order") <= 2000
    assert written["another order"] >= 499 * 1000  # the numbers of a list ascend
    saver.prune(["one"])
    assert values(DurableSaver(folder), named("one"))["messages"] == messages[::-1]
    assert values(DurableSaver(folder), named("one", "agent:1"))["messages"] == messages
    saver.copy_thread("one", "two")
    assert values(DurableSaver(folder), named("two", "agent:2"))["messages"] == [messages[0], messages[-1]]


def test_a_large_value_is_stored_once(folder: Path) -> None:
    class State(MessagesState):  # type: ignore[misc]
        document: str
        summary: str

    inner = StateGraph(State)
    inner.add_node("summarise", lambda state: {"summary": state["document"][:100]})
    inner.add_edge(START, "summarise")
    inner.add_edge("summarise", END)
    saver = DurableSaver(folder, durability="none")
    builder = StateGraph(State)
    builder.add_node("load", lambda _: {"document": "d" * 100_000})
    builder.add_node("inner", inner.compile())
    builder.add_edge(START, "load")
    builder.add_edge("load", "inner")
    builder.add_edge("inner", END)
    graph = builder.compile(checkpointer=saver)
    sizes = [0]
    for _ in range(3):
        found = graph.invoke({"messages": [HumanMessage("go")]}, ONE)
        assert (len(found["document"]), found["summary"]) == (100_000, "d" * 100)
        sizes.append(Path(saver.journals.of("one").path).stat().st_size)
    encoded = 100_000 * 4 / 3
    assert sizes[1] < 3.1 * encoded  # the document, and the inputs of two graphs that have it in a part
    assert sizes[3] - sizes[2] < 1.2 * encoded  # only the input of the subgraph, with the new message
    saver.prune(["one"])
    assert values(DurableSaver(folder), ONE)["document"] == "d" * 100_000


def test_a_thread_may_be_named_by_a_number(folder: Path) -> None:
    seven: Any = 7
    saver, config = DurableSaver(folder), {"configurable": {"thread_id": seven}}
    graph = talk(saver)
    ask(graph, "a", config)
    assert len(list(saver.list(config))) == 3
    newest = next(graph.get_state_history(config))
    assert [one.content for one in newest.values["messages"]] == ["a", "answer 1"]
    saver.copy_thread(seven, "8")
    saver.prune([seven])
    assert len(list(saver.list(config))) == 1
    saver.delete_thread(seven)
    assert saver.get_tuple(config) is None
    assert len(list(saver.list({"configurable": {"thread_id": "8"}}))) == 3


def test_a_damaged_record_is_reported(folder: Path) -> None:
    saver = DurableSaver(folder)
    first = put(saver, named("one"), channel=["a"])
    second = put(saver, first, channel=["a", "b"])
    third = put(saver, second, channel=["a", "b", "c"])
    path = Path(saver.journals.of("one").path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2][:-5] + b"\n", *lines[3:]]))
    again = DurableSaver(folder)
    assert values(again, first) == {"channel": ["a"]}
    assert values(again, second) is None
    with pytest.raises(Corrupt):
        again.get_tuple(third)
    workspace = Workspace(folder.parent)
    assert [problem.line for problem in workspace.check(workspace.find("one"))] == [3]


def test_a_thread_that_lost_its_values_is_pruned(folder: Path) -> None:
    saver = DurableSaver(folder)
    put(saver, put(saver, put(saver, named("one"), channel=["a"])))
    path = Path(saver.journals.of("one").path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:-5] + b"\n", *lines[2:]]))
    again = DurableSaver(folder)
    again.prune(["one"])
    with pytest.raises(Corrupt):
        again.get_tuple(named("one"))
    last = put(again, named("one"), other=1)
    assert values(DurableSaver(folder), last) == {"other": 1}


def test_the_commands_read_the_conversation(folder: Path) -> None:
    ask(talk(DurableSaver(folder)), "Fix the login race")
    workspace = Workspace(folder.parent)
    (summary,) = workspace.list()
    assert (summary.agent, summary.title, summary.messages, summary.turns) == (
        "langgraph",
        "Fix the login race",
        2,
        1,
    )
    assert [one.message.text for one in workspace.messages(summary.ref)] == ["Fix the login race", "answer 1"]


CHILD = """
    import sys
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from sessionary.plugs.langgraph import DurableSaver

    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [AIMessage("x" * 500)]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    made = graph.compile(checkpointer=DurableSaver(sys.argv[1]))
    for turn in range(10_000):
        made.invoke({"messages": [HumanMessage(str(turn))]}, {"configurable": {"thread_id": "one"}})
        print(turn, flush=True)
"""


@pytest.mark.parametrize("count", [2, 5])
def test_a_graph_that_is_killed_resumes_with_every_acknowledged_turn(folder: Path, count: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = [int(child.stdout.readline()) for _ in range(count)]
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in child.stdout.read().split()]
    child.wait()
    graph = talk(DurableSaver(folder))
    stored = [one.content for one in graph.get_state(ONE).values["messages"] if isinstance(one, HumanMessage)]
    assert stored[: len(acknowledged)] == [str(turn) for turn in acknowledged]
    assert ask(graph, "Go on")[-2] == "Go on"


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "frameworks" / "langgraph.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for said in ("2 messages\n", "4 messages\n"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == said


def test_a_database_of_its_own_saver_is_taken_over(tmp_path: Path) -> None:
    def build(saver: Any) -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("answer", lambda state: {"messages": [AIMessage(f"{len(state['messages'])} \ud83d")]})
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        return graph.compile(checkpointer=saver)

    path = tmp_path / "threads.db"
    workspace = Workspace(tmp_path / "home", cache=str(tmp_path / "cache"))
    mine = DurableSaver(tmp_path / "home" / "langgraph")
    with SqliteSaver.from_conn_string(str(path)) as theirs:
        for text in ("one", "two"):
            build(theirs).invoke({"messages": [HumanMessage(text)]}, ONE)
        theirs.put_writes(
            theirs.get_tuple(ONE).config, [("x", 1), ("__error__", "e"), ("y", [2])], "task", "path"
        )
        (first,) = workspace.import_file(path).sessions
        assert (first.session_id, first.state) == ("one", "added")
        assert list(mine.list(ONE)) == list(theirs.list(ONE))
        assert [one.state for one in workspace.import_file(path).sessions] == ["unchanged"]
        build(theirs).invoke({"messages": [HumanMessage("three")]}, ONE)
        assert [one.state for one in workspace.import_file(path).sessions] == ["extended"]
        assert list(mine.list(ONE)) == list(theirs.list(ONE))
    build(mine).invoke({"messages": [HumanMessage("four")]}, ONE)
    assert [one.content for one in mine.get_tuple(ONE).checkpoint["channel_values"]["messages"]][-2] == "four"
