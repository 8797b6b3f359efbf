"""The compatibility checklist of the session analyst, point by point: each test is named after its point.

Everything goes through the public API, and the files on the disk are read as a stranger reads it: with `json` and the
rules of the original tools (`testing.original`), not with our own readers.
"""

import errno
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import EventsLog, InvalidId, SessionStore, StorageFailed, fork_session, rewind, undo
from sessionary.workspace import Workspace
from tests.support import original
from tests.support.faults import Fault, FaultFs, Killed, count_calls

ID = "3f0c81d2-0000-4000-8000-000000000001"
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Why is the build slow?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "t1", "tool": "bash", "arguments": {"command": "cat log"}}],
    },
    {"role": "tool", "tool_call_id": "t1", "name": "bash", "content": "no cache"},
    {"role": "assistant", "content": "Its cache is gone."},
]
USAGE = {"usage": {"input_tokens": 12}}
METADATA = {"session_id": ID, "created": "2026-03-01T09:00:00.000Z", "bundle": "bundle:foundation"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "-home-u-app" / "sessions"


def documents(path: Path) -> list[dict[str, Any]]:
    """The lines of a file as a stranger reads them."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode("utf-8").split("\n")[:-1]]


def is_a_time(text: str) -> bool:
    return datetime.fromisoformat(text).tzinfo is not None


def test_files_at_home_amplifier_projects_project_sessions_session_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "code" / "shop"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "ana"))
    monkeypatch.chdir(project)
    SessionStore().save(ID, TALK, METADATA)
    slug = str(project).replace("/", "-")
    folder = tmp_path / "ana" / ".amplifier" / "projects" / slug / "sessions" / ID
    EventsLog(folder).append({"event": "session:start"})
    SessionStore().save_config_snapshot(ID, {"bundle": "foundation"})
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} == {
        "metadata.json",
        "transcript.jsonl",
        "events.jsonl",
        "config.md",
    }
    (ref,) = Workspace().refs()
    assert (ref.session_id, ref.project, ref.path) == (ID, slug, folder)


def test_metadata_json_with_required_fields_session_id_created_bundle(base: Path) -> None:
    store = SessionStore(base)
    store.save("saved", TALK, {**METADATA, "session_id": "saved"})
    store.append("appended", TALK, {"bundle": "bundle:foundation"})
    store.save("parent", TALK, METADATA)
    forked = fork_session(base / "parent", new_session_id="forked")
    assert forked.session_dir == base / "forked"
    for name in ("saved", "appended", "forked"):
        stored = json.loads((base / name / "metadata.json").read_text("utf-8"))
        assert stored["session_id"] == name
        assert is_a_time(stored["created"])
        assert stored["bundle"] == "bundle:foundation"


def test_transcript_jsonl_with_message_objects_role_content_timestamp(base: Path) -> None:
    store = SessionStore(base)
    store.save(ID, TALK[:2], METADATA)
    store.append(ID, TALK[2:])
    stored = documents(base / ID / "transcript.jsonl")
    assert [{**line, "timestamp": None} for line in stored] == [{**one, "timestamp": None} for one in TALK]
    assert all(is_a_time(line["timestamp"]) for line in stored)
    assert original.transcript_source(base / ID) == "main"
    assert original.load(base, ID)[0] == stored == store.load(ID)[0]


def test_events_jsonl_with_event_objects_ts_event_session_id_data(base: Path) -> None:
    with EventsLog(base / ID) as log:
        log.append({"event": "session:start", "data": {"cwd": "/code"}})
        log.append({"event": "llm:response", "ts": "2026-03-01T09:00:00.000Z", "data": USAGE})
    first, second = documents(base / ID / "events.jsonl")
    for line in (first, second):
        assert {"ts", "event", "session_id", "data"} <= line.keys()
        assert is_a_time(line["ts"])
        assert line["session_id"] == ID
    assert (first["event"], first["data"]) == ("session:start", {"cwd": "/code"})
    assert (second["event"], second["ts"]) == ("llm:response", "2026-03-01T09:00:00.000Z")
    assert second["data"] == USAGE


def test_atomic_writes_with_backup_files(base: Path) -> None:
    store = SessionStore(base)
    store.save(ID, TALK, METADATA)
    store.save(ID, TALK[:1], {**METADATA, "turn_count": 1})  # no longer the beginning: the file is replaced
    folder = base / ID
    assert [one["role"] for one in documents(folder / "transcript.jsonl.backup")] == [
        one["role"] for one in TALK
    ]
    assert json.loads((folder / "metadata.json.backup").read_text()) == METADATA
    assert json.loads((folder / "metadata.json").read_text()) == {**METADATA, "turn_count": 1}
    assert list(folder.glob(".*.tmp")) == []


def test_atomic_writes_wherever_the_writer_is_killed(tmp_path: Path) -> None:
    def world(number: int) -> Path:
        base = tmp_path / str(number)
        SessionStore(base).save(ID, TALK, METADATA)
        return base

    def replace(fs: FaultFs, base: Path) -> None:
        SessionStore.with_fs(fs, base).save(ID, TALK[2:], {**METADATA, "turn_count": 9})

    first = world(0)
    calls = count_calls(lambda fs: replace(fs, first))["any"]
    assert calls > 10
    old, new = (
        [one["content"] for one in TALK],
        [one["content"] for one in TALK[2:]],
    )
    seen = set()
    for number in range(1, calls + 1):
        base = world(number)
        fs = FaultFs(plan=Fault("any", number, "kill"))
        with pytest.raises(Killed):
            replace(fs, base)
        fs.bury()
        found = [one["content"] for one in documents(base / ID / "transcript.jsonl")]
        assert found in (old, new)
        assert json.loads((base / ID / "metadata.json").read_text()) in (
            METADATA,
            {**METADATA, "turn_count": 9},
        )
        seen.add(found == new)
    assert seen == {False, True}


def test_atomic_writes_on_a_full_disk(base: Path) -> None:
    SessionStore(base).save(ID, TALK, METADATA)
    before = {path.name: path.read_bytes() for path in (base / ID).iterdir() if path.name != ".lock"}
    full = SessionStore.with_fs(FaultFs(plan=Fault("write", 1, errno.ENOSPC, lasting=True)), base)
    with pytest.raises(StorageFailed):
        full.save(ID, TALK[2:], METADATA)
    assert documents(base / ID / "transcript.jsonl") == [
        json.loads(line) for line in before["transcript.jsonl"].splitlines()
    ]


@pytest.mark.parametrize(
    "bad", ["", "  ", ".", "..", "../x", "../../etc/passwd", "a/b", "a\\b", "/etc", "a\0b"]
)
def test_session_id_validation_no_path_traversal(base: Path, bad: str) -> None:
    store = SessionStore(base)
    store.save(ID, TALK, METADATA)
    before = sorted(base.parents[2].rglob("*"))
    for call in (
        lambda: store.save(bad, TALK, METADATA),
        lambda: store.append(bad, TALK),
        lambda: store.load(bad),
        lambda: store.get_metadata(bad),
        lambda: store.update_metadata(bad, {"name": "x"}),
        lambda: store.save_config_snapshot(bad, {}),
        lambda: store.delete(bad),
        lambda: store.rewind(bad, 0),
        lambda: store.repair(bad),
    ):
        with pytest.raises(InvalidId) as refused:
            call()
        assert isinstance(refused.value, ValueError)
    if bad:  # an empty one asks for a made-up id
        with pytest.raises(InvalidId):
            fork_session(base / ID, new_session_id=bad)
    assert store.exists(bad) is False
    assert sorted(base.parents[2].rglob("*")) == before


def test_top_level_vs_sub_session_detection_underscore_in_session_id(base: Path) -> None:
    store = SessionStore(base)
    sub = "0000000000000000-9c1d2e3f4a5b6c7d_explorer"
    for name in (ID, sub):
        store.save(name, TALK, {**METADATA, "session_id": name})
    assert store.list_sessions() == [ID]
    assert set(store.list_sessions(top_level_only=False)) == {ID, sub}
    with pytest.raises(FileNotFoundError):
        store.find_session(sub)
    assert store.find_session(sub, top_level_only=False) == sub
    assert "_" not in fork_session(base / sub).session_id


def test_modification_time_preserved_for_sorting(base: Path) -> None:
    store = SessionStore(base)
    names = ["oldest", "middle", "newest"]
    for age, name in enumerate(reversed(names)):
        store.save(name, TALK, {**METADATA, "session_id": name})
        then = (datetime.now(UTC) - timedelta(days=1 + age)).timestamp()
        for path in (*(base / name).iterdir(), base / name):
            os.utime(path, (then, then))
    times = {name: (base / name).stat().st_mtime_ns for name in names}
    # Nothing that only looks makes a session younger.
    for name in names:
        store.load(name)
        store.get_metadata(name)
        store.rewind(name, 0, dry_run=True)
        store.repair(name, dry_run=True)
    workspace = Workspace(base.parents[2], cache=str(base.parents[2] / "cache"))
    for ref in workspace.refs():
        list(workspace.layout_of(ref).check(ref))
    assert len(list(workspace.summaries())) == 3
    assert {name: (base / name).stat().st_mtime_ns for name in names} == times
    assert store.list_sessions() == ["newest", "middle", "oldest"]
    # A way through the trash keeps the place as well.
    store.delete("middle")
    store.undo("middle")
    assert store.list_sessions() == ["newest", "middle", "oldest"]
    # What changes a session brings it to the front.
    store.append("oldest", TALK)
    assert store.list_sessions() == ["oldest", "newest", "middle"]
    rewind(base / "middle", 0)
    assert store.list_sessions() == ["middle", "oldest", "newest"]
    undo(base / "middle")
    EventsLog(base / "newest").append({"event": "session:resume"})
    assert store.list_sessions() == ["newest", "middle", "oldest"]
