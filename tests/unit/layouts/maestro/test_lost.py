"""No breadcrumb ends up where it is never read; those that do are reported, and can be brought in."""

import json
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import AmbiguousId, NotFound
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.compat_api import (
    create_session,
    find_session_by_id,
    list_breadcrumbs,
    write_breadcrumb,
)
from sessionary.layouts.maestro.lost import find_lost, move_lost
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox import Mailbox
from sessionary.model import Severity
from sessionary.testing.wrapper import WrappedFs
from sessionary.workspace import Workspace
from sessionary.workspace.checking import check_place
from tests.messages import echo, prompts

ID = "3f0c81d2-0000-4000-8000-000000000001"
OTHER = "3f0c9999-0000-4000-8000-000000000002"


def note(prompt: str = "p", stamp: str | None = None) -> Breadcrumb:
    crumb = create_breadcrumb(prompt, "r", [], [], None, 0, "m", {})
    crumb.timestamp = stamp or crumb.timestamp
    return crumb


@pytest.fixture
def store(tmp_path: Path) -> WorkStore:
    names = iter([ID, OTHER, str(uuid.uuid4())])
    store = WorkStore.with_fs(OS_FS, tmp_path, new_id=lambda: next(names))
    store.create("work_task")
    return store


# -- writing


@pytest.mark.parametrize("name", [ID, ID[:4], ID[:8], ID[:-1], "latest"])
def test_whatever_finds_a_session_takes_a_breadcrumb_into_it(
    name: str, store: WorkStore, tmp_path: Path
) -> None:
    found = find_session_by_id(name, tmp_path)
    assert found is not None
    assert found[0].session_id == ID
    for path in (write_breadcrumb(note(), name, tmp_path), store.write_breadcrumb(note(), name)):
        assert Path(path).parent == tmp_path / ID / "breadcrumbs" / "0"
    assert os.listdir(tmp_path) == [ID]
    assert len(list_breadcrumbs(name, tmp_path)) == len(store.breadcrumbs(name).breadcrumbs) == 2


@pytest.mark.parametrize("name", ["3f0", "3f0c81d2-1", "typo", OTHER[:-1], ID + "x"])
def test_a_name_that_no_session_has_is_refused_and_nothing_is_made(
    name: str, store: WorkStore, tmp_path: Path
) -> None:
    assert find_session_by_id(name, tmp_path) is None
    writers: list[Callable[[], object]] = [
        lambda: write_breadcrumb(note(), name, tmp_path),
        lambda: store.write_breadcrumb(note(), name),
        lambda: store.post(note(), name),
        lambda: store.create("fix", name),
        lambda: create_session("fix", name, base_path=tmp_path),
        lambda: store.start_subwork(name, "look"),
    ]
    for write in writers:
        with pytest.raises(NotFound) as reported:
            write()
        assert "sessionary work list" in (reported.value.hint or "")
    assert os.listdir(tmp_path) == [ID]


def test_without_any_session_latest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=str(tmp_path)) as caught:
        write_breadcrumb(note(), "latest", tmp_path)
    assert "sessionary work start" in (caught.value.hint or "")
    assert os.listdir(tmp_path) == []


def test_a_prefix_of_two_sessions_is_refused(store: WorkStore, tmp_path: Path) -> None:
    store.create("fix")
    for write in (
        lambda: write_breadcrumb(note(), "3f0c", tmp_path),
        lambda: store.write_breadcrumb(note(), "3f0c"),
        lambda: store.create("fix", "3f0c"),
    ):
        with pytest.raises(AmbiguousId):
            write()
    assert sorted(os.listdir(tmp_path)) == [ID, OTHER]


def test_a_child_may_be_begun_below_the_beginning_of_an_id(store: WorkStore, tmp_path: Path) -> None:
    child = store.create("fix", ID[:8])
    assert child.parent == ID
    latest = store.find("latest").session_id
    assert create_session("fix", "latest", base_path=tmp_path).parent == latest


def test_a_whole_uuid_that_no_session_has_gets_its_breadcrumb_with_a_warning(
    store: WorkStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = str(uuid.uuid4())
    with caplog.at_level(logging.WARNING):
        path = write_breadcrumb(note(), unknown, tmp_path)
    assert Path(path).parent == tmp_path / unknown / "breadcrumbs" / "0"
    assert unknown in caplog.text
    with pytest.raises(NotFound):
        store.write_breadcrumb(note(), unknown)
    assert len(list_breadcrumbs(unknown, tmp_path)) == 1


# -- checking and moving


def lose(root: Path, name: str, *crumbs: Breadcrumb) -> None:
    """A sender that makes the folder of the session that it names."""
    for crumb in crumbs:
        folder = root / name / "breadcrumbs" / "0"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{crumb.timestamp}.json").write_text(json.dumps(vars(crumb)))


def test_check_reports_breadcrumbs_in_folders_that_are_not_sessions(store: WorkStore, tmp_path: Path) -> None:
    child = store.create("fix", ID).session_id
    lose(tmp_path, child, note("where the original puts it"))  # read as those of the child
    lose(tmp_path, "latest", note("1"))
    lose(tmp_path, f"{ID}/typo", note("2"), note("3", "20260301_090000_000001"))
    (tmp_path / "empty" / "breadcrumbs" / "0").mkdir(parents=True)
    problems = [each for each in check_place(Workspace(tmp_path)) if each.code == "lost_breadcrumbs"]
    assert sorted(each.path for each in problems) == [str(tmp_path / ID / "typo"), str(tmp_path / "latest")]
    assert {each.severity for each in problems} == {Severity.hides_data}
    assert all("work breadcrumb move" in (each.repair or "") for each in problems)


def test_they_are_moved_into_a_session_and_applied_there(store: WorkStore, tmp_path: Path) -> None:
    stamp, odd = "20260301_090000_000001", "20260301_090000_000001x"
    store.write_breadcrumb(note("own", stamp), ID)
    lose(tmp_path, "latest", note("first", stamp), note("odd", odd))
    (tmp_path / "latest" / "breadcrumbs" / "0" / "torn.json").write_text("{")
    before = {path.read_bytes() for path in tmp_path.rglob("*.json")}
    moved = move_lost(OS_FS, str(tmp_path), "latest", ID)
    names = [Path(path).name for path in moved]
    assert names == ["20260301_090000_000002.json", f"{odd}.json", "torn.json"]
    assert {path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    assert not (tmp_path / "latest").exists()
    assert check_place(Workspace(tmp_path)) == []
    assert Mailbox(tmp_path / ID).consume(echo).applied == 3
    assert prompts(tmp_path / ID) == ["own", "odd", "first"]


def test_only_folders_that_check_reports_are_emptied(store: WorkStore, tmp_path: Path) -> None:
    lose(tmp_path, "late", note())
    child = store.create("fix", ID).session_id
    lose(tmp_path, child, note())
    for name in ("none", ID, child, "..", "../late", ".", "late/breadcrumbs"):
        with pytest.raises(NotFound):
            move_lost(OS_FS, str(tmp_path), name, ID)
    with pytest.raises(NotFound):
        move_lost(OS_FS, str(tmp_path), "late", "nobody")
    assert [lost.name for lost in find_lost(OS_FS, str(tmp_path))] == ["late"]


def test_a_sender_who_takes_the_name_at_the_same_moment_is_not_overwritten(
    store: WorkStore, tmp_path: Path
) -> None:
    stamp = "20260301_090000_000001"
    lose(tmp_path, "late", note("moved", stamp))

    class Meeting(WrappedFs):
        def link(self, source: str, target: str) -> None:
            if target.endswith(f"{stamp}.json"):
                store.write_breadcrumb(note("own", stamp), ID)
            super().link(source, target)

    move_lost(Meeting(OS_FS), str(tmp_path), "late", ID)
    assert sorted(crumb.prompt for crumb in store.list_breadcrumbs(ID)) == ["moved", "own"]


def test_a_move_that_was_cut_off_is_done_by_the_next(store: WorkStore, tmp_path: Path) -> None:
    lose(tmp_path, "late", note("a", "20260301_090000_000001"), note("b", "20260301_090000_000002"))
    source = tmp_path / "late" / "breadcrumbs" / "0" / "20260301_090000_000001.json"
    target = tmp_path / ID / "breadcrumbs" / "0" / source.name
    target.parent.mkdir(exist_ok=True)
    os.link(source, target)
    move_lost(OS_FS, str(tmp_path), "late", ID)
    assert [crumb.prompt for crumb in store.list_breadcrumbs(ID)] == ["a", "b"]
    assert len(list(tmp_path.rglob("*_0*.json"))) == 2
