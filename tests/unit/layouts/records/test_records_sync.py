"""Sessions of frameworks on two machines: the same items on both, and both versions where both went on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.lock import FileLock
from sessionary.errors import Invalid, Locked, NotFound
from sessionary.layouts.files import PartKind
from sessionary.layouts.records.journal import SNAPSHOT_AFTER, Change, RecordJournal
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.sync_adapter import FILE, RecordsSyncLayout
from sessionary.layouts.summary import summary_of
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine
from sessionary.sync.identity import Repositories
from sessionary.sync.report import Report, SyncStatus
from tests.support.memory_remote import MemoryServer


def digest(part: str) -> str:
    return sha256(part.encode()).hexdigest()[:32]


NOW = datetime(2026, 3, 1, tzinfo=UTC)
SCOPES: list[tuple[str, str, list[str], str]] = [
    ("openai-agents", "one", [], "openai-agents"),
    ("google-adk", "one", ["app", "ada"], "google-adk/app/ada"),
    ("google-adk", "one", ["app/ada"], "google-adk/app%2Fada"),
    ("google-adk", "s/1", ["..", "ü"], "google-adk/%2E./%C3%BC"),
    ("claude-agent-sdk", "one", ["-home-u-app"], "claude-agent-sdk/-home-u-app"),
    ("claude-agent-sdk", "agent-a", ["-home-u-app", "one"], "claude-agent-sdk/-home-u-app/one"),
    ("langgraph", "A" * 300, [], "langgraph"),
    ("google-adk", "~", ["", "b" * 300], f"google-adk/~{digest('')}/{'b' * 24}~{digest('b' * 300)}"),
]  # fmt: skip


def journal(home: Path, framework: str, session: str, scope: Any = (), **options: Any) -> RecordJournal:
    return RecordJournal(home / framework, framework, session, scope, durability="none", **options)


def add(one: RecordJournal, *items: Any, **fields: Any) -> None:
    one.change(lambda state: Change(add=items, **fields))


class Device:
    """A machine with a data folder, and an engine over it."""

    def __init__(self, folder: Path, server: MemoryServer) -> None:
        self.home = folder / "data"
        self.layout = RecordsSyncLayout(self.home)
        # Frameworks have no repositories: their projects must not be looked up in these.
        self._engine: Callable[[], Engine] = lambda: Engine(
            self.layout, server.remote(), state_dir=folder / "state", projects=Repositories({}), quiet=0
        )

    def journal(
        self, framework: str = "openai-agents", session: str = "one", scope: Any = ()
    ) -> RecordJournal:
        return journal(self.home, framework, session, scope)

    def push(self) -> Report:
        return self._engine().push()

    def pull(self) -> Report:
        return self._engine().pull()

    def refs(self) -> dict[tuple[str | None, str], SessionRef]:
        return {(ref.project, ref.session_id): ref for ref in self.layout.discover()}


@pytest.fixture
def devices(tmp_path: Path) -> tuple[Device, Device]:
    server = MemoryServer()
    return Device(tmp_path / "a", server), Device(tmp_path / "b", server)


@pytest.mark.parametrize(("framework", "session", "scope", "project"), SCOPES)
def test_a_session_has_its_place_on_every_machine(
    tmp_path: Path, framework: str, session: str, scope: list[str], project: str
) -> None:
    one = journal(tmp_path, framework, session, scope)
    add(one, "x")
    layout: SyncLayout = RecordsSyncLayout(tmp_path)
    (ref,) = layout.discover()
    assert (ref.project, ref.locator) == (project, one.path)
    assert layout.place(ref.project, ref.session_id) == ref
    elsewhere = RecordsSyncLayout(tmp_path / framework)
    assert elsewhere.place(ref.project, ref.session_id).locator == one.path
    assert [(part.name, part.kind) for part in layout.parts(ref)] == [(FILE, PartKind.JOURNAL)]
    assert layout.rule(FILE).policy is Policy.FORK


def test_the_session_of_a_sub_agent_is_listed_in_the_project_of_its_session(tmp_path: Path) -> None:
    add(journal(tmp_path, "claude-agent-sdk", "agent-a", ["-home-u-app", "one"]), {"type": "x"})
    (ref,) = RecordsLayout(tmp_path).discover()
    assert ref.project == "claude-agent-sdk/-home-u-app"
    layout = RecordsSyncLayout(tmp_path)
    assert layout.parent(next(layout.discover())) == "one"


@pytest.mark.parametrize(
    "project", [None, "", "other", "google-adk/..", "google-adk/a,b", "google-adk/", "/etc", "google-adk/a\0"]
)
def test_a_project_that_cannot_be_is_refused(tmp_path: Path, project: str | None) -> None:
    with pytest.raises(Invalid):
        RecordsSyncLayout(tmp_path).place(project, "one")


@pytest.mark.parametrize("session", ["../../x", "a/b", ".hidden", "", "A" * 400, "a,b", "nul\0"])
def test_no_id_of_a_remote_leads_out_of_the_folder(tmp_path: Path, session: str) -> None:
    ref = RecordsSyncLayout(tmp_path).place("openai-agents", session)
    assert ref.path.resolve().parent == tmp_path / "openai-agents"


@pytest.mark.parametrize(("framework", "session", "scope", "project"), SCOPES)
def test_what_one_machine_stored_is_on_the_other(
    devices: tuple[Device, Device], framework: str, session: str, scope: list[str], project: str
) -> None:
    a, b = devices
    one, items = a.journal(framework, session, scope), [b"\0\xff", float("inf"), {"$bytes": "x"}, "a\ud800"]
    add(one, *items, keys=["k", None, None, None], set={"t": {"x": 1}})
    assert [outcome.standing for outcome in a.push().outcomes] == [SyncStatus.PUSHED]
    (outcome,) = b.pull().outcomes
    assert (outcome.standing, outcome.project) == (SyncStatus.PULLED, project)
    other = b.journal(framework, session, scope)
    state = other.state()
    assert (state.values(), state.table("t"), state.keys) == (items, {"x": 1}, {"k": 0})
    add(other, "more")
    b.push()
    a.pull()
    assert one.state().values() == [*items, "more"]
    assert one.state().next_line == 3


def test_of_a_session_that_both_continued_both_versions_are_kept(devices: tuple[Device, Device]) -> None:
    a, b = devices
    add(a.journal("google-adk", "one", ["app", "ada"]), "first")
    a.push()
    b.pull()
    add(a.journal("google-adk", "one", ["app", "ada"]), "from a")
    add(b.journal("google-adk", "one", ["app", "ada"]), "from b")
    a.push()
    (diverged,) = b.pull().of(SyncStatus.DIVERGED)
    assert diverged.sibling is not None
    mine = b.journal("google-adk", diverged.sibling, ["app", "ada"])
    assert b.journal("google-adk", "one", ["app", "ada"]).state().values() == ["first", "from a"]
    assert mine.state().values() == ["first", "from b"]
    add(mine, "goes on")
    b.push()
    a.pull()
    assert a.journal("google-adk", diverged.sibling, ["app", "ada"]).state().values()[-1] == "goes on"
    assert a.refs().keys() == b.refs().keys() == {
        ("google-adk/app/ada", "one"), ("google-adk/app/ada", diverged.sibling)
    }  # fmt: skip
    ref = a.refs()["google-adk/app/ada", diverged.sibling]
    assert (a.layout.parent(ref), summary_of(a.layout, ref).parent) == ("one", "one")
    assert not summary_of(a.layout, ref).nested


def test_an_open_journal_continues_with_what_was_pulled(devices: tuple[Device, Device]) -> None:
    a, b = devices
    add(a.journal(), "first")
    a.push()
    b.pull()
    held = b.journal()
    add(held, "from b")
    add(a.journal(), "from a")
    a.push()
    b.pull()
    add(held, "after")
    assert held.state().values() == ["first", "from a", "after"]


def test_the_label_of_a_moved_session_is_set_once_and_keeps_the_chain(tmp_path: Path) -> None:
    one = journal(tmp_path, "openai-agents", "one", chain=True)
    add(one, "a")
    add(one, "b")
    first = Path(one.path).read_bytes().split(b"\n")[0]
    layout = RecordsSyncLayout(tmp_path)
    for name, parent in (("two", "one"), ("three", "two")):
        (ref,) = layout.discover()
        moved = layout.place("openai-agents", name)
        Path(ref.locator).rename(moved.locator)
        layout.set_parent(moved, parent, NOW)
        label = Path(moved.locator).read_bytes()
        layout.set_parent(moved, "another", NOW)
        assert Path(moved.locator).read_bytes() == label
        begin = json.loads(label.split(b"\n")[0])
        assert (begin["session"], begin["parent"], begin["prev"]) == (name, parent, sha256(first).hexdigest())
        assert journal(tmp_path, "openai-agents", name).state().values() == ["a", "b"]


def test_the_label_of_a_moved_session_does_not_mislead_a_snapshot(tmp_path: Path) -> None:
    one = journal(tmp_path, "openai-agents", "one")
    for item in ("first", "second"):
        add(one, item)
    for number in range(60):
        value = "x" * (SNAPSHOT_AFTER // 20) + str(number)
        one.change(lambda state, value=value: Change(set={"t": {"v": value}}))  # type: ignore[misc]
    assert b'"op":"snapshot"' in Path(one.path).read_bytes()
    layout = RecordsSyncLayout(tmp_path)
    moved = layout.place("openai-agents", "a-longer-name")
    Path(one.path).rename(moved.locator)
    layout.set_parent(moved, "one", NOW)
    assert journal(tmp_path, "openai-agents", "a-longer-name").state().values() == ["first", "second"]


@pytest.mark.parametrize("data", [b"", b"\0\n", b'{"n":0}\n', b'["op"]\n'])
def test_a_damaged_first_record_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    layout = RecordsSyncLayout(tmp_path)
    ref = layout.place("openai-agents", "two")
    ref.path.parent.mkdir()
    ref.path.write_bytes(data)
    layout.set_parent(ref, "one", NOW)
    assert ref.path.read_bytes() == data
    assert layout.parent(ref) is None


def test_a_locked_session_lets_no_writer_in(tmp_path: Path) -> None:
    one = journal(tmp_path, "openai-agents", "one")
    layout = RecordsSyncLayout(tmp_path)
    with pytest.raises(NotFound), layout.lock(layout.place("openai-agents", "one")):
        pass
    assert not (tmp_path / "openai-agents").exists()
    add(one, "x")
    (ref,) = layout.discover()
    other = FileLock(one.path + ".lock")
    with layout.lock(ref), pytest.raises(Locked):
        other.acquire(0)
    other.acquire(0)


def test_a_trashed_session_is_kept_in_the_trash(tmp_path: Path) -> None:
    layout = RecordsSyncLayout(tmp_path)
    for _ in range(2):
        add(journal(tmp_path, "openai-agents", "one"), "x")
        (ref,) = layout.discover()
        layout.trash(ref, NOW)
        assert list(layout.discover()) == []
    kept = sorted((tmp_path / "openai-agents" / ".trash").rglob("*.records"))
    assert len(kept) == 2
    assert all(b'["x"]' in path.read_bytes() for path in kept)
