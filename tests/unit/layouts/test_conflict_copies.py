"""Files of synchronisers: which names they have, what a copy holds more, what is reported, what is brought in."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.codec.yaml_read import load_yaml
from sessionary.disk.fs import OS_FS
from sessionary.errors import StorageFailed
from sessionary.layouts.amplifier.events import EventsLog
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.brainstorm.layout import BrainstormLayout
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.sync_adapter import BrainstormSyncLayout
from sessionary.layouts.conflict_copies import Copy, compare, compare_lines, copy_of
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.costs import summarise
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout
from sessionary.layouts.orchestrator.layout import FeatureLayout
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.layouts.orchestrator.sync_adapter import FeatureSyncLayout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.mailbox import Mailbox
from sessionary.mailbox.consumers import consumers_of
from sessionary.model import Message, Problem, SessionRef, Severity
from sessionary.search import Needle, Query, Search, Target
from sessionary.sync.conflict_copies import BroughtIn, bring_in, find
from sessionary.workspace import Workspace
from sessionary.workspace.checking import check_place

ID = "3f0c81d2-0000-4000-8000-000000000001"
SYNCTHING = ".sync-conflict-20250131-120000-ABCDEFG"
ALL = {"transcript.jsonl", "metadata.json", "implementation-plan.yaml"}


@pytest.mark.parametrize(
    ("name", "original", "label"),
    [
        ("transcript.sync-conflict-20250131-120000-ABCDEFG.jsonl", "transcript.jsonl", SYNCTHING),
        ("transcript.sync-conflict-20250131-120000.jsonl", "transcript.jsonl", SYNCTHING[:-8]),
        ("metadata (Ada's conflicted copy 2025-01-31).json", "metadata.json", "(Ada's conflicted copy 2025-01-31)"),
        ("metadata (conflicted copy 2025-01-31 120000).json", "metadata.json", "(conflicted copy 2025-01-31 120000)"),
        ("metadata (A's conflicted copy 2025-01-31 (1)).json", "metadata.json", "(A's conflicted copy 2025-01-31 (1))"),
        ("metadata_conflict-20250131-120000.json", "metadata.json", "_conflict-20250131-120000"),
        ("transcript (1).jsonl", "transcript.jsonl", "(1)"),
        ("transcript 2.jsonl", "transcript.jsonl", "2"),
        ("transcript-LAPTOP-7G.jsonl", "transcript.jsonl", "LAPTOP-7G"),
        ("implementation-plan-LAPTOP.yaml", "implementation-plan.yaml", "LAPTOP"),
    ],
)  # fmt: skip
def test_names_of_copies(name: str, original: str, label: str) -> None:
    assert copy_of(name, ALL) == Copy(name, original, label)


@pytest.mark.parametrize(
    "name",
    [
        "transcript.jsonl",
        "transcript.jsonl.backup",
        "transcript.jsonl.conflict-20250131T120000.000000Z",
        "implementation-plan.yaml",
        "notes (1).jsonl",
        "transcript (old).jsonl",
        ".transcript.jsonl.icloud",
        "transcript.copy.jsonl",
    ],
)
def test_names_that_are_not_copies(name: str) -> None:
    assert copy_of(name, ALL) is None


def test_a_device_marks_a_copy_only_where_no_user_chooses_names() -> None:
    assert copy_of("auth-flow.yaml", {"auth.yaml"}, devices=False) is None
    assert copy_of("auth-flow.yaml") is None
    assert copy_of("log.work-2.jsonl", {"log.work.jsonl"}) is None


def test_what_a_copy_holds_more() -> None:
    assert compare_lines([b"a", b"b"], [b"a", b"b", b""]) == (0, True)
    assert compare_lines([b"a", b"b"], [b"a"]) == (0, False)
    assert compare_lines([b"a"], [b"a", b"b", b"c"]) == (2, True)
    assert compare_lines([b"a", b"x"], [b"a", b"b"]) == (1, False)
    assert compare_lines([], [b"a"]) == (1, True)


def test_documents_are_compared_by_their_fields(tmp_path: Path) -> None:
    for name, value in (("a.json", {"x": 1, "y": 2}), ("b.json", {"y": 2, "x": 1}), ("c.json", {"x": 3})):
        (tmp_path / name).write_text(json.dumps(value))
    at = {name: str(tmp_path / name) for name in ("a.json", "b.json", "c.json", "missing.json")}
    assert compare(OS_FS, at["a.json"], at["b.json"]) == (0, True)
    assert compare(OS_FS, at["a.json"], at["c.json"]) == (1, False)
    assert compare(OS_FS, at["missing.json"], at["a.json"]) == (2, True)


# -- sessions of agents


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = SessionStore(tmp_path / "projects" / "-p" / "sessions", durability="none")
    store.save(
        ID, [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}], {"name": "n"}
    )
    return tmp_path


def folder_in(home: Path) -> Path:
    return home / "projects" / "-p" / "sessions" / ID


def said(home: Path, session_id: str = ID) -> list[str]:
    layout = AmplifierLayout(home)
    ref = SessionRef("amplifier", session_id, str(folder_in(home).parent / session_id), "-p")
    return [one.text for one in layout.read(ref) if isinstance(one, Message)]


def line(text: str, role: str = "user") -> bytes:
    return (
        json.dumps({"role": role, "content": text, "timestamp": "2025-01-31T12:00:00.000+00:00"}).encode()
        + b"\n"
    )


def put_copy(home: Path, name: str, *more: bytes, common: int = 2) -> Path:
    lines = (folder_in(home) / "transcript.jsonl").read_bytes().splitlines(keepends=True)
    copy = folder_in(home) / name
    copy.write_bytes(b"".join([*lines[:common], *more]))
    return copy


def problems_at(home: Path) -> list[Problem]:
    layout = AmplifierLayout(home)
    (ref,) = (ref for ref in layout.discover() if ref.session_id == ID)
    found = [problem for problem in layout.check(ref) if problem.code in ("conflict_copy", "not_downloaded")]
    assert [one for one in summary_of(layout, ref).problems if one in found] == found, (
        "a list shows what check does"
    )
    return found


def bring(home: Path, *, dry_run: bool = False) -> list[BroughtIn]:
    layout = AmplifierSyncLayout(home)
    return bring_in(layout, SessionRef("amplifier", ID, str(folder_in(home)), "-p"), dry_run=dry_run)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_that_continues_hides_data_and_is_taken(home: Path) -> None:
    copy = put_copy(home, "transcript (1).jsonl", line("three"))
    (problem,) = problems_at(home)
    assert (problem.severity, problem.path) == (Severity.hides_data, str(copy))
    assert "1 line missing from" in problem.message
    assert f"sessionary repair {ID}" in str(problem.repair)
    before = tree(home)
    (would,) = bring(home, dry_run=True)
    assert tree(home) == before
    old = (folder_in(home) / "transcript.jsonl").read_bytes()
    (done,) = bring(home)
    assert (would.done, done.done, done.more) == ("taken", "taken", 1)
    assert said(home) == ["one", "two", "three"]
    assert not copy.exists()
    assert Path(done.kept).read_bytes().endswith(line("three"))
    assert old in tree(folder_in(home)).values(), "what the file held is kept"
    assert problems_at(home) == []
    assert bring(home) == []


def test_a_copy_with_nothing_more_is_a_note_and_is_put_away(home: Path) -> None:
    copy = put_copy(home, f"transcript{SYNCTHING}.jsonl", common=1)
    (problem,) = problems_at(home)
    assert problem.severity is Severity.note
    assert [one.done for one in bring(home)] == ["contained"]
    assert said(home) == ["one", "two"]
    assert not copy.exists()


def test_the_copy_of_an_emptied_or_missing_transcript_is_taken(home: Path) -> None:
    for missing in (False, True):
        put_copy(home, "transcript (1).jsonl")
        (folder_in(home) / "transcript.jsonl").unlink()
        if not missing:
            (folder_in(home) / "transcript.jsonl").touch()
        assert [one.done for one in bring(home)] == ["taken"]
        assert said(home) == ["one", "two"]


def test_another_conversation_becomes_a_session_of_its_own(home: Path) -> None:
    put_copy(home, f"transcript{SYNCTHING}.jsonl", line("otherwise", "assistant"), common=1)
    other = {"session_id": ID, "name": "renamed", "created": "2025-01-31T12:00:00Z"}
    (folder_in(home) / f"metadata{SYNCTHING}.json").write_text(json.dumps(other))
    (folder_in(home) / f"events{SYNCTHING}.jsonl").write_bytes(b'{"event": "x"}\n')
    done = bring(home)
    assert {one.done for one in done} == {"session"}
    (new,) = {one.session for one in done}
    assert new is not None
    assert said(home) == ["one", "two"]
    assert said(home, new) == ["one", "otherwise"]
    metadata = json.loads((folder_in(home).parent / new / "metadata.json").read_bytes())
    assert (metadata["session_id"], metadata["parent_id"], metadata["name"]) == (new, ID, "renamed")
    assert (folder_in(home).parent / new / "events.jsonl").read_bytes() == b'{"event": "x"}\n'
    assert json.loads((folder_in(home) / "metadata.json").read_bytes())["name"] == "n"
    assert problems_at(home) == []
    put_copy(home, "transcript (3).jsonl", line("otherwise", "assistant"), common=1)
    assert [one.session for one in bring(home)] == [new], "the same copy gives the same session"
    assert len(os.listdir(folder_in(home).parent)) == 2


def test_fields_of_a_metadata_copy_are_merged(home: Path) -> None:
    path = folder_in(home) / "metadata.json"
    document = json.loads(path.read_bytes())
    (folder_in(home) / "metadata (1).json").write_text(json.dumps({**document, "name": "other", "tag": "t"}))
    (problem,) = problems_at(home)
    assert problem.severity is Severity.hides_data
    assert "2 fields" in problem.message
    (done,) = bring(home)
    assert done.done == "merged"
    merged = json.loads(path.read_bytes())
    assert (merged["tag"], merged["name"]) == ("t", "n"), "the value here stands where both have one"
    assert json.loads(Path(done.kept).read_bytes())["name"] == "other", "the other is kept"


def test_the_fields_of_the_copy_stand_if_its_conversation_continued(home: Path) -> None:
    put_copy(home, "transcript (1).jsonl", line("three"))
    document = json.loads((folder_in(home) / "metadata.json").read_bytes())
    (folder_in(home) / "metadata (1).json").write_text(json.dumps({**document, "name": "other"}))
    assert [one.done for one in bring(home)] == ["taken", "merged"]
    assert json.loads((folder_in(home) / "metadata.json").read_bytes())["name"] == "other"


def test_an_event_log_that_differs_stays(home: Path) -> None:
    EventsLog(folder_in(home)).append({"event": "start"})
    copy = folder_in(home) / "events-LAPTOP.jsonl"
    copy.write_bytes(b'{"event": "x"}\n')
    assert [(one.done, one.kept) for one in bring(home)] == [("left", str(copy))]
    assert copy.exists()
    log = (folder_in(home) / "events.jsonl").read_bytes()
    copy.write_bytes(log + b'{"event": "x"}\n')
    assert [one.done for one in bring(home)] == ["taken"]
    assert (folder_in(home) / "events.jsonl").read_bytes() == log + b'{"event": "x"}\n'


# -- work sessions


@pytest.fixture
def work(tmp_path: Path) -> tuple[Path, str]:
    root = tmp_path / "docs" / "sessions"
    store = WorkStore(root)
    session = store.create("work_task")
    store.write_breadcrumb(
        create_breadcrumb("ask", "answer", [], [], None, 0, "m", {"input": 5}), session.session_id
    )
    return tmp_path, session.session_id


def work_ref(work: tuple[Path, str]) -> tuple[MaestroSyncLayout, SessionRef]:
    layout = MaestroSyncLayout(work[0] / "docs" / "sessions")
    (ref,) = layout.discover()
    return layout, ref


def test_a_copy_of_a_breadcrumb_is_counted_once(work: tuple[Path, str]) -> None:
    layout, ref = work_ref(work)
    (crumb,) = Path(ref.locator).rglob("breadcrumbs/0/*.json")
    before = summary_of(layout, ref)
    (crumb.parent / f"{crumb.stem} (1).json").write_bytes(crumb.read_bytes())
    after = summary_of(layout, ref)
    assert (after.messages, after.turns) == (before.messages, before.turns) == (2, 1)
    assert len([one for one in layout.read(ref) if isinstance(one, Message)]) == 2
    store = WorkStore(work[0] / "docs" / "sessions")
    assert len(store.list_breadcrumbs(work[1])) == 1
    assert summarise(store.list_breadcrumbs(work[1]))["total_tokens"]["input"] == 5
    with Mailbox(ref.locator) as box:
        assert len(box.pending()) == 1
    (crumb.parent / f"{crumb.stem} (2).json").write_bytes(crumb.read_bytes().replace(b'"ask"', b'"changed"'))
    assert summary_of(layout, ref).turns == 2, "one that differs is not a duplicate"


def test_a_copy_of_a_work_session_is_merged(work: tuple[Path, str]) -> None:
    layout, ref = work_ref(work)
    path = Path(ref.locator) / "session.json"
    document = json.loads(path.read_bytes())
    other = {**document, "metadata": {"k": "v"}, "modified": "2000-01-01T00:00:00+00:00"}
    copy = path.with_name("session-LAPTOP.json")
    copy.write_text(json.dumps(other))
    problems = [one for one in layout.check(ref) if one.code == "conflict_copy"]
    assert [one.severity for one in problems] == [Severity.hides_data]
    (done,) = bring_in(layout, ref)
    assert done.done == "merged"
    assert not copy.exists()
    assert json.loads(path.read_bytes())["metadata"]["k"] == "v"
    assert [one for one in layout.check(ref) if one.code == "conflict_copy"] == []


def test_lines_of_two_ledgers_are_merged_without_a_consumer(work: tuple[Path, str]) -> None:
    layout, ref = work_ref(work)
    with Mailbox(ref.locator) as box:
        assert box.consume(lambda crumb: {}).applied == 1
    log = Path(ref.locator) / "log.jsonl"
    own = log.read_bytes()
    other = {
        **json.loads(own.splitlines()[-1]),
        "breadcrumb_id": "other",
        "applied_at": "2000-01-01T00:00:00+00:00",
    }
    log.with_name(f"log{SYNCTHING}.jsonl").write_text(json.dumps(other) + "\n")
    assert consumers_of(ref.locator) == ["work"]
    assert layout.part_kind(f"log{SYNCTHING}.jsonl") is None
    assert [one.done for one in bring_in(layout, ref)] == ["merged"]
    ids = [json.loads(line).get("breadcrumb_id") for line in log.read_bytes().splitlines()]
    assert "other" in ids
    assert set(ids) >= {json.loads(line).get("breadcrumb_id") for line in own.splitlines()}


# -- features


@pytest.fixture
def feature(tmp_path: Path) -> tuple[FeatureSyncLayout, SessionRef]:
    store = FeatureStore(tmp_path)
    store.create(name="Sign in", description="d")
    layout = FeatureSyncLayout(tmp_path)
    return layout, next(iter(FeatureLayout(tmp_path).discover()))


def test_lines_of_a_history_copy_are_merged(
    feature: tuple[FeatureSyncLayout, SessionRef], tmp_path: Path
) -> None:
    layout, ref = feature
    history = Path(ref.locator) / "history.jsonl"
    FeatureStore(tmp_path).append(ref.session_id, {"command": "begin"})
    first = history.read_bytes()
    entry = {**json.loads(first.splitlines()[0]), "command": "make test", "timestamp": "2999-01-01T00:00:00Z"}
    mine = {**entry, "command": "make lint", "timestamp": "2998-01-01T00:00:00Z"}
    history.write_bytes(first + json.dumps(mine).encode() + b"\n")
    copy = history.with_name("history (1).jsonl")
    copy.write_bytes(first + json.dumps(entry).encode() + b"\n")
    problems = [one for one in layout.check(ref) if one.code == "conflict_copy"]
    assert [(one.severity, one.path) for one in problems] == [(Severity.hides_data, str(copy))]
    assert [one for one in summary_of(layout, ref).problems if one.code == "conflict_copy"] == problems
    assert [one.done for one in bring_in(layout, ref)] == ["merged"]
    commands = [json.loads(line)["command"] for line in history.read_bytes().splitlines()]
    assert commands[-2:] == ["make lint", "make test"]
    assert not copy.exists()


def test_a_state_copy_is_merged_and_a_plan_copy_stays(feature: tuple[FeatureSyncLayout, SessionRef]) -> None:
    layout, ref = feature
    state, plan = (Path(ref.locator) / name for name in ("state.yaml", "implementation-plan.yaml"))
    for path in (state, plan):
        path.with_name(f"{path.stem} (1).yaml").write_bytes(path.read_bytes() + b"extra: 1\n")
    assert {one.original: one.done for one in bring_in(layout, ref)} == {
        "state.yaml": "merged",
        "implementation-plan.yaml": "left",
    }
    merged = load_yaml(state.read_bytes(), path="state.yaml")
    assert isinstance(merged, dict)
    assert merged["extra"] == 1


def test_a_copy_of_the_list_of_features_is_reported(
    feature: tuple[FeatureSyncLayout, SessionRef], tmp_path: Path
) -> None:
    index = tmp_path / ".ai-session" / "active-features.yaml"
    index.with_name("active-features (1).yaml").write_bytes(index.read_bytes() + b"extra: 1\n")
    found = [one for one in FeatureStore(tmp_path).validate() if one.code == "conflict_copy"]
    assert [one.repair for one in found] == ["compare the two lists, and delete the copy"]


# -- brainstorms


@pytest.fixture
def brainstorm(tmp_path: Path) -> BrainstormSyncLayout:
    BrainstormStore(tmp_path).create("auth", questions=["Who signs in?"])
    return BrainstormSyncLayout(tmp_path)


def test_an_equal_copy_of_a_brainstorm_is_counted_once(
    brainstorm: BrainstormSyncLayout, tmp_path: Path
) -> None:
    (path,) = brainstorm.home.glob("auth.yaml")
    path.with_name("auth (1).yaml").write_bytes(path.read_bytes())
    assert [ref.session_id for ref in BrainstormLayout(tmp_path).discover()] == ["auth"]
    assert [row.slug for row in BrainstormStore(tmp_path).list()] == ["auth"]
    (ref,) = brainstorm.discover()
    assert [one.done for one in bring_in(brainstorm, ref)] == ["contained"]


def test_another_version_of_a_brainstorm_becomes_a_session(
    brainstorm: BrainstormSyncLayout, tmp_path: Path
) -> None:
    (path,) = brainstorm.home.glob("auth.yaml")
    copy = path.with_name(f"auth{SYNCTHING}.yaml")
    copy.write_bytes(path.read_bytes().replace(b"Who signs in?", b"Who signs out?"))
    rows = {row.slug: row for row in BrainstormStore(tmp_path).list()}
    (problem,) = rows[copy.stem].problems
    assert (problem.code, problem.severity) == ("conflict_copy", Severity.hides_data)
    assert "sessionary repair auth" in str(problem.repair)
    ref = brainstorm.place(brainstorm.project(), "auth")
    (done,) = bring_in(brainstorm, ref)
    assert done.done == "session"
    assert done.session is not None
    store = BrainstormStore(tmp_path)
    assert sorted(row.slug for row in store.list()) == sorted(["auth", done.session])
    assert all(not row.problems for row in store.list())
    assert store.load(done.session).document["session"]["parent_id"] == "auth"


def test_a_slug_that_ends_like_a_device_is_a_session(
    brainstorm: BrainstormSyncLayout, tmp_path: Path
) -> None:
    BrainstormStore(tmp_path).create("auth-flow")
    ref = brainstorm.place(brainstorm.project(), "auth")
    assert find(brainstorm, ref) == []


# -- search counts duplicates once


def test_search_finds_an_exact_duplicate_once(work: tuple[Path, str], tmp_path: Path) -> None:
    layout, ref = work_ref(work)
    (crumb,) = Path(ref.locator).rglob("breadcrumbs/0/*.json")
    (crumb.parent / f"{crumb.stem} (1).json").write_bytes(crumb.read_bytes())
    hits = list(Search(Query((Needle("answer"),))).hits([Target(ref, layout)]))
    assert len(hits) == 1


# -- placeholders


def evict(path: Path) -> Path:
    placeholder = path.with_name(f".{path.name}.icloud")
    path.rename(placeholder)
    return placeholder


def test_placeholders_of_agents_are_reported_and_never_written_over(home: Path) -> None:
    folder = folder_in(home)
    placeholders = [evict(folder / name) for name in ("metadata.json", "transcript.jsonl")]
    found = problems_at(home)
    assert [one.path for one in found] == [str(path) for path in placeholders]
    assert {one.severity for one in found} == {Severity.hides_data}
    before = tree(folder)
    store = SessionStore(folder.parent)
    writers: list[Callable[[], object]] = [
        lambda: store.save(ID, [{"role": "user", "content": "x"}], {}),
        lambda: store.append(ID, [{"role": "user", "content": "x"}]),
    ]
    for write in writers:
        with pytest.raises(StorageFailed, match="not on this device") as caught:
            write()
        assert caught.value.outcome == "not_committed"
        assert "brctl download" in str(caught.value.hint)
    assert tree(folder) == before
    (summary,) = summaries(AmplifierLayout(home))
    assert summary.health == "hides_data"


def test_an_event_log_with_a_placeholder_is_not_begun_anew(home: Path) -> None:
    log = folder_in(home) / "events.jsonl"
    log.write_bytes(b"{}\n")
    evict(log)
    with pytest.raises(StorageFailed, match="not on this device"):
        EventsLog(folder_in(home)).append({"event": "start"})
    assert not log.exists()


def test_placeholders_of_the_other_kinds(tmp_path: Path) -> None:
    store = WorkStore(tmp_path / "docs" / "sessions")
    session = store.create("work_task")
    BrainstormStore(tmp_path).create("auth")
    FeatureStore(tmp_path).create(name="Sign in", description="d")
    (feature,) = FeatureLayout(tmp_path).discover()
    places = [
        Path(store.root) / session.session_id / "session.json",
        tmp_path / ".project-memory" / "brainstorm-sessions" / "auth.yaml",
        Path(feature.locator) / "history.jsonl",
    ]
    placeholders = {str(evict(path)) for path in places}
    workspace = Workspace(tmp_path / "home", root=tmp_path)
    found = [*check_place(workspace), *(one for ref in workspace.refs() for one in workspace.check(ref))]
    assert {one.path for one in found if one.code == "not_downloaded"} == placeholders
    writers: list[Callable[[], object]] = [
        lambda: BrainstormStore(tmp_path).create("auth"),
        lambda: FeatureStore(tmp_path).repair(feature.session_id),
        lambda: FeatureStore(tmp_path).append(feature.session_id, {"command": "make"}),
    ]
    for write in writers:
        with pytest.raises(StorageFailed, match="not on this device"):
            write()
    assert not any(path.exists() for path in places)
