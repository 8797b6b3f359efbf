"""Short ways to write a conversation down, and strategies that draw tangled ones."""

from typing import Any

from hypothesis import strategies as st

from tests.support import strategies

Message = dict[str, Any]

REMINDER = "<system-reminder>\nThe todo list is empty.\n</system-reminder>"


def user(content: Any = "go", **more: Any) -> Message:
    return {"role": "user", "content": content, **more}


def said(text: str = "done") -> Message:
    return {"role": "assistant", "content": text}


def amplifier(*ids: str) -> Message:
    """Calls as Amplifier stores them: in blocks and in the list."""
    blocks = [{"type": "tool_call", "id": name, "name": "bash", "input": {}} for name in ids]
    calls = [{"id": name, "tool": "bash", "arguments": {}} for name in ids]
    return {"role": "assistant", "content": blocks, "tool_calls": calls}


def openai(*ids: str) -> Message:
    function = {"name": "bash", "arguments": "{}"}
    calls = [{"id": name, "type": "function", "function": function} for name in ids]
    return {"role": "assistant", "tool_calls": calls}


def anthropic(*ids: str) -> Message:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": name, "name": "bash", "input": {}} for name in ids],
    }


def tool(call_id: str, content: str = "out") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "name": "bash", "content": content}


def block(call_id: str, content: str = "out") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def answered(*ids: str, text: str | None = None) -> Message:
    """Results in blocks, followed by a text of the user if `text` is set."""
    words = [] if text is None else [{"type": "text", "text": text}]
    return user([*map(block, ids), *words])


def conversations() -> st.SearchStrategy[list[Any]]:
    """Calls and results that share few ids, so that they meet in every wrong way, among anything else."""
    ids = st.sampled_from(["a", "b", "c", "a_2", ""])
    some = st.lists(ids, min_size=1, max_size=3)
    words = st.sampled_from(["hello", "", REMINDER])
    pieces = st.one_of(
        words.map(user),
        words.map(said),
        st.sampled_from([amplifier, openai, anthropic]).flatmap(lambda make: some.map(lambda of: make(*of))),
        st.builds(tool, ids, st.text(max_size=3)),
        some.map(lambda of: answered(*of)),
        st.builds(lambda of, text: answered(*of, text=text), some, words),
        st.builds(lambda one, two: {**one, **two}, _odd(), st.fixed_dictionaries({}, optional={"name": ids})),
        strategies.messages(),
    )
    return st.lists(st.one_of(pieces, pieces, pieces, strategies.json_values(max_leaves=3)), max_size=9)


def _odd() -> st.SearchStrategy[Message]:
    """Messages that put together what does not belong together."""
    ids = st.sampled_from(["a", "b", None, 3])
    one = st.one_of(
        st.builds(lambda of: {"type": "tool_use", "id": of, "name": "bash", "input": {}}, ids),
        st.builds(lambda of: {"type": "tool_result", "tool_use_id": of, "content": "odd"}, ids),
        st.sampled_from([{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "image"}, None, 5]),
    )
    call = st.one_of(st.builds(lambda of: {"id": of, "tool": "bash"}, ids), st.none())
    return st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "tool", "system", "odd", "", None]),
            "content": st.one_of(st.lists(one, max_size=4), st.none()),
            "tool_calls": st.one_of(st.lists(call, max_size=3), st.none(), st.just("none")),
            "tool_call_id": ids,
        },
    )
