"""`Workspace.diff`: what two conversations add up to, and how far they are equal."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary import SessionStore, Workspace
from sessionary.errors import Invalid
from sessionary.model import SessionRef, ToolCall
from sessionary.workspace.comparing import files_of


def called(number: int, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    call = {"id": f"t{number}", "tool": tool, "arguments": arguments}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"t{number}", "content": "no", "is_error": number == 1},
    ]


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


SHARED = [said("user", "Go"), *called(1, "edit", file_path="/w/app/src/a.py"), said("assistant", "Done")]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    store = SessionStore(tmp_path / "projects" / "-w-app" / "sessions", durability="none")
    more = [*called(2, "edit", file_path="/w/app/src/a.py"), *called(3, "bash", command="make")]
    store.save("one", [*SHARED, said("user", "More"), *more], {"name": "The one", "working_dir": "/w/app"})
    store.save("two", [*SHARED, said("user", "Less"), said("assistant", "Ok")], {"name": "The two"})
    return Workspace(tmp_path, cache=str(tmp_path / "cache"))


def refs(workspace: Workspace, *names: str) -> list[SessionRef]:
    return [workspace.find(name) for name in names]


def test_both_sides_are_counted(workspace: Workspace) -> None:
    found = workspace.diff(*refs(workspace, "one", "two"))
    a, b = found.a, found.b
    assert found.equal_turns == 1
    assert (a.title, a.turns, a.messages, a.errors) == ("The one", 2, 9, 1)
    assert (b.title, b.turns, b.messages, b.errors) == ("The two", 2, 6, 1)
    assert (a.tools, b.tools) == ({"edit": 2, "bash": 1}, {"edit": 1})
    assert a.files == {"src/a.py": 2}
    assert b.files == {"/w/app/src/a.py": 1}, "this session does not say where the agent worked"


def test_a_session_equals_itself(workspace: Workspace) -> None:
    found = workspace.diff(*refs(workspace, "one", "one"))
    assert found.equal_turns == 2
    assert found.a == found.b


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"path": "a", "filePath": "b", "other": "c"}, {"a", "b"}),
        ({"edits": [{"file_path": "a"}, {"file": "b"}]}, {"a", "b"}),
        ({"input": "*** Begin Patch\n*** Update File: a b.py\n*** Move to: c.py\n@@"}, {"a b.py", "c.py"}),
        ({"command": ["apply_patch", "*** Begin Patch\n*** Add File: new\n+x"]}, {"new"}),
        ({"path": 3, "file": ""}, set()),
        ("*** Begin Patch\n*** Delete File: x", {"x"}),
        (None, set()),
    ],
)
def test_files_in_arguments(arguments: Any, files: set[str]) -> None:
    assert set(files_of(ToolCall("t", "x", arguments))) == files


# -- branches


def record(number: int, parent: int | None, kind: str, content: Any) -> dict[str, Any]:
    usage = {"usage": {"input_tokens": 10, "output_tokens": number}, "model": "m", "id": f"m{number}"}
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{parent}" if parent else None,
        "message": {"role": kind, "content": content, **(usage if kind == "assistant" else {})},
    }  # fmt: skip


def rewound(tmp_path: Path) -> Workspace:
    """A session whose second turn was begun three times."""
    records = [
        record(1, None, "user", "Go"),
        record(2, 1, "assistant", "Done"),
        record(3, 2, "user", "First way"),
        record(4, 3, "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]),
        record(5, 2, "user", "Second way"),
        {"type": "unknown", "uuid": "u6", "parentUuid": "u5"},
        record(7, 2, "user", "Third way"),
        record(8, 7, "assistant", "Yes"),
    ]
    path = tmp_path / ".claude" / "projects" / "-w" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return Workspace({"claude_code": tmp_path / ".claude"}, cache=str(tmp_path / "cache"))


def test_branches_that_were_left(tmp_path: Path) -> None:
    workspace = rewound(tmp_path)
    ref = workspace.find("s1")
    first = workspace.diff(ref, ref, other_branch=1)
    assert (first.a.turns, first.b.turns, first.equal_turns) == (2, 2, 1)
    assert first.b.tools == {"Bash": 1}
    assert first.b.spending.usage.output == 2 + 4
    assert first.a.spending.usage.output == 2 + 4 + 8, "of all branches"
    second = workspace.diff(ref, ref, branch=2, other_branch=1)
    assert (second.a.messages, second.b.messages) == (4, 4)
    assert second.a.tools == {}
    with pytest.raises(Invalid, match="2 branches were left"):
        workspace.diff(ref, ref, branch=3)
