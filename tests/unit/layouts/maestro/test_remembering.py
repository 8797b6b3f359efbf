"""A memory of lists: it spares reading what has not changed, and never says anything else than reading would."""

import copy
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import NotFound
from sessionary.layouts.maestro import WorkStore
from sessionary.layouts.maestro.remembering import LARGEST_KEPT, Memory
from sessionary.testing.wrapper import WrappedFs

LATER = 60.0  # seconds: what was written a moment ago counts as settled for a memory whose clock goes so far ahead


class Counting(WrappedFs):
    """Counts the calls that look into something."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name in ("open", "listdir"):
            self.calls.append(name)
        return super().call(name, *arguments, **options)


@pytest.fixture
def memory() -> Memory:
    return Memory(lambda: time.time() + LATER)


def test_what_has_not_changed_is_not_opened_again(tmp_path: Path, memory: Memory) -> None:
    for _ in range(3):
        WorkStore(tmp_path).create("work_task", purpose="p")
    fs = Counting()
    store = WorkStore.over(fs, tmp_path)
    first = store.scan(memory)
    assert fs.calls.count("open") == 3
    fs.calls.clear()
    again = store.scan(memory)
    assert fs.calls == []
    assert again.sessions == first.sessions
    assert again.folders == first.folders
    assert [session.baseline for session in again.sessions] == [s.baseline for s in first.sessions]


@pytest.mark.parametrize(
    ("metadata", "context"),
    [({"a": 1}, {}), ({"a": {"b": 1}}, {"ref": ["x"]})],
    ids=["copied", "read from the bytes"],
)
def test_each_list_has_records_of_its_own(
    tmp_path: Path, memory: Memory, metadata: dict[str, Any], context: dict[str, Any]
) -> None:
    store = WorkStore(tmp_path)
    store.create("work_task", metadata=metadata, context=context, related_entity={"task_id": "t"})
    first, second = (store.scan(memory).sessions[0] for _ in range(2))
    before = copy.deepcopy(first)
    assert before == second
    assert before.metadata["a"] == metadata["a"]
    for container in (second.metadata, second.context, second.related_entity, second.metadata["a"]):
        if isinstance(container, dict):
            container["new"] = True
    second.children_wsession_ids.append("child")
    second.context.setdefault("ref", []).append("y")
    second.purpose = "another"
    assert (first, store.scan(memory).sessions[0]) == (before, before)


def test_a_remembered_session_is_saved_as_any_other(tmp_path: Path, memory: Memory) -> None:
    store = WorkStore(tmp_path)
    known = store.create("work_task", purpose="p").session_id
    store.scan(memory)
    for number in range(3):
        session = store.scan(memory).sessions[0]
        assert not store.save(session)
        session.metadata[f"key-{number}"] = number
        assert store.save(session)
        assert store.load(known) == store.scan(memory).sessions[0]
    assert {f"key-{number}" for number in range(3)} <= store.load(known).metadata.keys()


def test_what_is_unusual_is_remembered_too(tmp_path: Path, memory: Memory) -> None:
    for name, data in (
        ("unknown", b'{"session_id": "unknown", "session_type": "fix", "mood": ["good"]}'),
        ("torn", b'{"session_id": '),
        ("other", b"[]"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.json").write_bytes(data)
    fs = Counting()
    store = WorkStore.over(fs, tmp_path)
    first = store.scan(memory)
    fs.calls.clear()
    again = store.scan(memory)
    assert fs.calls == []
    assert [session.unknown_keys for session in again.sessions] == [{"mood": ["good"]}]
    assert again.problems == first.problems
    assert sorted(problem.code for problem in again.problems) == ["bad_session", "no_session"]


def test_every_change_is_seen(tmp_path: Path, memory: Memory) -> None:
    store = WorkStore(tmp_path)
    session = store.create("work_task")
    assert len(store.scan(memory).sessions) == 1
    store.pause(session.session_id)
    assert store.scan(memory).sessions[0].status == "paused"
    child = store.create("fix", session.session_id)
    assert {found.session_id for found in store.scan(memory).sessions} == {
        session.session_id,
        child.session_id,
    }
    path = Path(store.folder(child.session_id), "session.json")
    path.write_bytes(b"{")
    assert [problem.code for problem in store.scan(memory).problems] == ["bad_session"]
    path.unlink()
    found = store.scan(memory)
    assert ([each.session_id for each in found.sessions], found.problems) == ([session.session_id], [])


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path, memory: Memory) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(b'{"session_id": "one", "session_type": "fix"}')
    found = path.stat()
    assert memory.session(OS_FS, str(path)).session_id == "one"
    while path.stat().st_ctime_ns == found.st_ctime_ns:  # a tick of the clock of the file system
        path.write_bytes(b'{"session_id": "two", "session_type": "fix"}')
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert memory.session(OS_FS, str(path)).session_id == "two"


def test_what_was_touched_a_moment_ago_is_not_remembered(tmp_path: Path) -> None:
    WorkStore(tmp_path).create("work_task")
    fs = Counting()
    store = WorkStore.over(fs, tmp_path)
    for _ in range(2):
        fs.calls.clear()
        assert len(store.scan().sessions) == 1
        assert fs.calls.count("open") == 1
        assert fs.calls.count("listdir") == 2


def test_what_is_large_is_read_again(tmp_path: Path, memory: Memory) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(b'{"session_id": "one", "session_type": "fix"}' + b" " * LARGEST_KEPT)
    fs = Counting()
    for _ in range(2):
        assert memory.session(fs, str(path)).session_id == "one"
    assert fs.calls == ["open", "open"]


def test_what_is_not_there_is_told(tmp_path: Path, memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.session(OS_FS, f"{tmp_path}/session.json")
    with pytest.raises(FileNotFoundError):
        memory.place(OS_FS, "folder", f"{tmp_path}/folder")


def test_a_root_below_another_root_is_remembered_for_itself(tmp_path: Path, memory: Memory) -> None:
    """Right below a root a link may lead to a session; further down it may lead back up."""
    elsewhere = tmp_path / "elsewhere"
    WorkStore(elsewhere, prices={}).create("work_task")
    (session,) = elsewhere.iterdir()
    outer, inner = tmp_path / "root", tmp_path / "root" / "inner"
    inner.mkdir(parents=True)
    (inner / session.name).symlink_to(session)
    for first, second in ((outer, inner), (inner, outer)):
        remembering = Memory(now=lambda: time.time() + 100)
        WorkStore(first).scan(remembering)
        alone = [found.session_id for found in WorkStore(second).scan().sessions]
        assert [found.session_id for found in WorkStore(second).scan(remembering).sessions] == alone
    assert len(WorkStore(inner).scan().sessions) == 1
    assert WorkStore(outer).scan().sessions == []
