"""Odd trees: rings, orphans, strays, one id twice, another kind of session. Nothing is lost, and each is reported."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid, InvalidId, NotFound, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.compat_api import save_session
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.layouts.maestro.merging import merge
from sessionary.layouts.maestro.names import LARGEST
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.summary import summaries
from sessionary.testing.wrapper import WrappedFs

STAMP = "20260301_09000{}_000000"


def put(root: Path, place: str, parent: str | None = None, **more: Any) -> Path:
    """A session at a place below the root, by its document alone; its id is the last name of the place."""
    folder = root / place
    folder.mkdir(parents=True)
    document = {"session_id": folder.name, "session_type": "fix", "parent_session_id": parent, **more}
    (folder / "session.json").write_text(json.dumps(document))
    return folder


def leave(folder: Path, number: int, depth: int = 0, **more: Any) -> Breadcrumb:
    """A breadcrumb below a folder, by hand."""
    crumb = create_breadcrumb(f"{number}", "r", [], [], None, depth, "opus", {"input": 1, "output": 1})
    crumb.timestamp = STAMP.format(number)
    document = {**crumb.__dict__, **more}
    path = folder / "breadcrumbs" / str(depth) / f"{crumb.timestamp}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return crumb


def drawn(store: WorkStore) -> list[tuple[str, int, str | None]]:
    return [
        (node.session.session_id, depth, node.flag) for root in store.tree() for node, depth in root.walk()
    ]


def codes(root: Path, session: str) -> list[str]:
    layout = MaestroLayout(root)
    (ref,) = [ref for ref in layout.discover() if ref.session_id == session]
    return sorted(problem.code for problem in layout.check(ref))


def test_a_ring_is_cut_before_its_oldest_session_and_all_of_it_is_shown(tmp_path: Path) -> None:
    for name, parent, day in (("a", "c", 3), ("b", "a", 1), ("c", "b", 2), ("below", "c", 4)):
        put(tmp_path, name, parent, created=f"2026-03-0{day}")
    assert drawn(WorkStore(tmp_path)) == [
        ("b", 0, "cycle"),
        ("c", 1, None),
        ("a", 2, None),
        ("below", 2, None),
    ]
    assert "parent_cycle" in codes(tmp_path, "a")
    assert "parent_cycle" not in codes(tmp_path, "below")
    assert WorkStore(tmp_path).depth("below") == 3


def test_a_session_that_is_its_own_parent_is_shown(tmp_path: Path) -> None:
    put(tmp_path, "self", "self")
    put(tmp_path, "other")
    assert drawn(WorkStore(tmp_path)) == [("other", 0, None), ("self", 0, "cycle")]
    assert "parent_cycle" in codes(tmp_path, "self")


def test_an_orphan_is_listed_flagged_and_reported_with_all_below_it(tmp_path: Path) -> None:
    put(tmp_path, "orphan", "gone")
    put(tmp_path, "orphan/child", "orphan")
    assert drawn(WorkStore(tmp_path)) == [("orphan", 0, "orphan"), ("child", 1, None)]
    assert "orphan" in codes(tmp_path, "orphan")
    assert "orphan" not in codes(tmp_path, "child")


def test_an_orphan_is_begun_only_where_it_is_asked_for(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    with pytest.raises(NotFound):
        store.create("fix", "gone")
    assert not list(tmp_path.iterdir())
    orphan = store.create("fix", "gone", allow_orphan=True).session_id
    assert Path(store.folder(orphan)) == tmp_path / "gone" / orphan
    assert drawn(store) == [(orphan, 0, "orphan")]


def test_a_grandchild_in_a_stub_of_its_parent_and_breadcrumbs_at_the_top_are_merged(tmp_path: Path) -> None:
    """The tree as the original writes it: P/C, C/G, and the breadcrumbs of C in C."""
    put(tmp_path, "P")
    child = put(tmp_path, "P/C", "P")
    put(tmp_path, "C/G", "C")
    leave(tmp_path / "C", 1)
    leave(child, 2)
    leave(tmp_path / "G", 3)
    store = WorkStore(tmp_path)
    assert drawn(store) == [("P", 0, None), ("C", 1, None), ("G", 2, None)]
    assert [crumb.prompt for crumb in store.list_breadcrumbs("C")] == ["1", "2"]
    assert [crumb.prompt for crumb in store.list_breadcrumbs("G")] == ["3"]
    assert store.list_breadcrumbs("P") == []
    assert {"stray_breadcrumbs"} == set(codes(tmp_path, "C"))
    assert {"stray_breadcrumbs", "stray_session"} == set(codes(tmp_path, "G"))
    (summary,) = [each for each in summaries(MaestroLayout(tmp_path)) if each.ref.session_id == "C"]
    assert summary.turns == 2


def test_a_new_breadcrumb_of_a_child_is_with_the_child(tmp_path: Path) -> None:
    put(tmp_path, "P")
    child = put(tmp_path, "P/C", "P")
    store = WorkStore(tmp_path)
    path = store.write_breadcrumb(create_breadcrumb("p", "r", [], [], "P", 1, "m", {}), "C")
    assert Path(path).parent == child / "breadcrumbs" / "1"


def test_the_next_breadcrumb_follows_a_session_that_was_moved(tmp_path: Path) -> None:
    """Where a session lay the last time is tried first; that it is gone from there shows when the file is made."""
    store = WorkStore(tmp_path)

    def leave_one(depth: int = 0) -> str:
        crumb = create_breadcrumb("p", "r", [], [], None, depth, "m", {})
        written = Path(store.write_breadcrumb(crumb, "C", allow_unknown=True))
        assert written.name == f"{crumb.timestamp}.json"
        return str(written.parent.relative_to(tmp_path))

    child = put(tmp_path, "C")
    assert [leave_one(), leave_one(), leave_one(1)] == ["C/breadcrumbs/0"] * 2 + ["C/breadcrumbs/1"]
    parent = put(tmp_path, "P")
    child.rename(parent / "C")
    assert [leave_one(), leave_one(2)] == ["P/C/breadcrumbs/0", "P/C/breadcrumbs/2"]
    (parent / "C").rename(tmp_path / "put away")
    assert [leave_one(), leave_one()] == ["C/breadcrumbs/0"] * 2, "as of an unknown session"
    assert not (parent / "C").exists()


def test_a_breadcrumb_that_the_disk_refuses_is_reported_where_the_session_is_known(tmp_path: Path) -> None:
    class Full(WrappedFs):
        full = False

        def fsync(self, fd: int) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().fsync(fd)

    put(tmp_path, "C")
    fs = Full(OS_FS)
    store = WorkStore.with_fs(fs, tmp_path)
    crumb = create_breadcrumb("p", "r", [], [], None, 0, "m", {})
    store.write_breadcrumb(crumb, "C", allow_unknown=True)
    fs.full = True
    with pytest.raises(StorageFailed, match="No space left"):
        store.write_breadcrumb(crumb, "C", allow_unknown=True)
    fs.full = False
    store.write_breadcrumb(crumb, "C", allow_unknown=True)
    assert len(store.list_breadcrumbs("C")) == 2


def test_a_duplicate_id_is_shown_twice_and_reported(tmp_path: Path) -> None:
    put(tmp_path, "a")
    put(tmp_path, "b")
    put(tmp_path, "b/a", "b")
    put(tmp_path, "a/below", "a")
    store = WorkStore(tmp_path)
    assert sorted(each.session_id for each in store.list_sessions()) == ["a", "a", "b", "below"]
    assert sorted(name for name, _, _ in drawn(store)) == ["a", "a", "b", "below"]
    layout = MaestroLayout(tmp_path)
    reported = [(ref.locator, problem.code) for ref in layout.discover() for problem in layout.check(ref)]
    twice = sorted(folder for folder, code in reported if code == "duplicate_session")
    assert twice == [f"{tmp_path}/a", f"{tmp_path}/b/a"]


def test_a_copy_of_a_breadcrumb_is_reported(tmp_path: Path) -> None:
    folder = put(tmp_path, "a")
    first = leave(folder, 1)
    leave(folder, 2, breadcrumb_id=first.breadcrumb_id)
    assert codes(tmp_path, "a") == ["duplicate_breadcrumb"]


def test_the_older_kind_of_session_is_named_and_left_out(tmp_path: Path) -> None:
    put(tmp_path, "good")
    older = tmp_path / "older"
    older.mkdir()
    text = '{"id": "older", "root_task": "t", "subtasks": [], "status": "failed"}'
    (older / "session.json").write_text(text)
    store = WorkStore(tmp_path)
    scan = store.scan()
    assert [each.session_id for each in scan.sessions] == ["good"]
    assert [(problem.code, problem.path) for problem in scan.problems] == [
        ("legacy_session", f"{tmp_path}/older/session.json")
    ]
    assert [summary.ref.session_id for summary in summaries(MaestroLayout(tmp_path))] == ["good"]
    session = store.load("good")
    session.purpose = "over it"
    with pytest.raises(ValueError, match="older format"):
        save_session(session, older / "session.json")
    assert (older / "session.json").read_text() == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[1, 2]", "no_session"),
        ("7", "no_session"),
        ('{"session_id": "x"}', "no_session"),
        ('{"session_id": "x", "session_type": "fix", "metadata": []}', "no_session"),
        ('{"session_id": "x", "session_type": "fix", "status": "asleep"}', "no_session"),
        ('{"session_id": "x", "session_ty', "bad_session"),
        ("", "bad_session"),
        ("\x00" * 100, "bad_session"),
    ],
)
def test_one_bad_document_hides_no_other_session(text: str, code: str, tmp_path: Path) -> None:
    put(tmp_path, "good")
    bad = put(tmp_path, "bad")
    put(tmp_path, "bad/below", "bad")
    (bad / "session.json").write_text(text)
    scan = WorkStore(tmp_path).scan()
    assert sorted(each.session_id for each in scan.sessions) == ["below", "good"]
    assert [problem.code for problem in scan.problems] == [code]


def test_a_document_that_does_not_fit_into_memory_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "good")
    os.truncate(put(tmp_path, "huge") / "session.json", LARGEST + 1)
    scan = WorkStore(tmp_path).scan()
    assert [each.session_id for each in scan.sessions] == ["good"]
    assert [problem.code for problem in scan.problems] == ["unreadable_file"]
    assert "File too large" in scan.problems[0].message
    health = {summary.ref.session_id: summary.health for summary in summaries(MaestroLayout(tmp_path))}
    assert health == {"good": "ok", "huge": "hides_data"}


def test_a_missing_modified_is_the_oldest_and_ties_go_to_the_younger(tmp_path: Path) -> None:
    same = "2026-03-01T09:00:00"
    put(tmp_path, "without")
    put(tmp_path, "no-time", modified="yesterday")
    put(tmp_path, "one", modified=same, created="2026-02-01")
    put(
        tmp_path,
        "one/two",
        "one",
        modified="2026-03-01T10:00:00+01:00",
        created="2026-02-02",
        status="completed",
    )
    store = WorkStore(tmp_path)
    assert store.find("latest").session_id == "two"  # nested, closed, and of another zone
    leave(tmp_path / "without", 9)
    assert store.find("latest").session_id == "two"  # breadcrumbs change no session


def test_right_after_sub_work_begins_the_latest_is_the_parent_which_was_paused_last(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    parent = store.create("work_task").session_id
    child = store.start_subwork(parent, "look").session_id
    assert store.find("latest").session_id == parent
    store.interrupt(child)
    assert store.find("latest").session_id == child


@pytest.mark.parametrize(
    "wrong", ["..", "../x", "a/b", "a\\b", "", " ", ".hid", "x\x1b[2J", "x\n", "breadcrumbs", "é" * 200]
)
def test_an_id_that_is_not_a_folder_name_is_refused_everywhere(wrong: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    store = WorkStore(root)
    crumb = create_breadcrumb("p", "r", [], [], None, 0, "m", {})
    for call in (
        lambda: store.load(wrong),
        lambda: store.find(wrong),
        lambda: store.folder(wrong),
        lambda: store.create("fix", wrong, allow_orphan=True),
        lambda: store.write_breadcrumb(crumb, wrong, allow_unknown=True),
        lambda: store.post(crumb, wrong),
        lambda: store.breadcrumbs(wrong),
        lambda: WorkStore.with_fs(OS_FS, root, new_id=lambda: wrong).create("fix"),
    ):
        with pytest.raises(InvalidId):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [-1, True, 1.0, "0", None])
def test_a_depth_is_a_whole_number_of_nought_or_more(depth: Any, tmp_path: Path) -> None:
    crumb = create_breadcrumb("p", "r", [], [], None, depth, "m", {})
    with pytest.raises(Invalid, match="depth_level"):
        WorkStore(tmp_path).write_breadcrumb(crumb, "s", allow_unknown=True)


@pytest.mark.parametrize("stamp", ["", "../../x", "yesterday", "20261301_000000_000000", None])
def test_a_time_that_is_none_names_no_file(stamp: Any, tmp_path: Path) -> None:
    crumb = create_breadcrumb("p", "r", [], [], None, 0, "m", {})
    crumb.timestamp = stamp
    with pytest.raises(Invalid, match="is not valid"):
        WorkStore(tmp_path).write_breadcrumb(crumb, "s", allow_unknown=True)
    assert not list(tmp_path.rglob("*.json"))


def test_three_documents_become_one() -> None:
    base = {
        "status": "running",
        "metadata": {"a": 1, "b": 1, "gone": 1},
        "children_wsession_ids": ["x"],
        "old": 1,
    }
    mine = {"status": "paused", "metadata": {"a": 2, "b": 1}, "children_wsession_ids": ["x", "mine"]}
    theirs = {
        "status": "running",
        "metadata": {"a": 3, "b": 4, "gone": 1, "new": 5},
        "children_wsession_ids": ["x", "theirs"],
        "old": 1,
        "late": 2,
    }
    assert merge(base, mine, theirs) == {
        "status": "paused",
        "metadata": {"a": 2, "b": 4, "new": 5},
        "children_wsession_ids": ["x", "theirs", "mine"],
        "late": 2,
    }


class Closed(WrappedFs):
    """Folders of this name cannot be looked into."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.closed = name

    def listdir(self, path: str) -> list[str]:
        if path.endswith(f"/{self.closed}"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return super().listdir(path)


def test_a_folder_that_cannot_be_looked_into_hides_no_session_that_can_be_seen(tmp_path: Path) -> None:
    put(tmp_path, "able")
    put(tmp_path, "zero-1")
    put(tmp_path, "zero-1/child-1", "zero-1")
    (tmp_path / "shut").mkdir()
    store = WorkStore.with_fs(Closed("shut"), tmp_path)
    assert [store.find(name).session_id for name in ("zero-1", "child", "latest")] == [
        "zero-1",
        "child-1",
        "zero-1",
    ]
    assert store.pause("child-1").status == "paused"
    assert [problem.code for problem in store.scan().problems] == ["unreadable_folder"]
    with pytest.raises(StorageFailed, match="shut"):  # it may lie there
        store.find("nobody")
    with pytest.raises(StorageFailed, match="shut"):
        store.load("nobody")
    layout = MaestroLayout(tmp_path, Closed("shut"))
    ref = layout.ref_for_path(tmp_path / "able")
    assert ref is not None
    assert list(layout.check(ref)) == []


def test_a_closed_folder_of_one_depth_hides_no_breadcrumb_of_another(tmp_path: Path) -> None:
    folder = put(tmp_path, "a")
    leave(folder, 1)
    leave(folder, 2, depth=7)
    store = WorkStore.with_fs(Closed("7"), tmp_path)
    found = store.breadcrumbs("a")
    assert [crumb.prompt for crumb in found.breadcrumbs] == ["1"]
    shut = str(folder / "breadcrumbs" / "7")
    assert [(problem.code, problem.path) for problem in found.problems] == [("unreadable_file", shut)]
    layout = MaestroLayout(tmp_path, Closed("7"))
    ref = layout.ref_for_path(folder)
    assert ref is not None
    assert [(problem.code, problem.path) for problem in layout.check(ref)] == [("unreadable_file", shut)]
    with pytest.raises(StorageFailed, match=shut):  # a move of the session must not leave them behind
        list(layout.parts(ref))


def test_a_result_in_an_unreadable_folder_is_not_delivered_twice(tmp_path: Path) -> None:
    parent = WorkStore(tmp_path).create("work_task").session_id
    child = WorkStore(tmp_path).start_subwork(parent, "look").session_id
    assert WorkStore(tmp_path).close_subwork(child, "found").handed_over
    store = WorkStore.with_fs(Closed("0"), tmp_path)
    with pytest.raises(StorageFailed, match="whether the parent already has the result"):
        store.close_subwork(child, "found")
    assert len(WorkStore(tmp_path).list_breadcrumbs(parent)) == 1


def test_a_link_is_followed_to_a_session_and_nowhere_else(tmp_path: Path) -> None:
    """A link to `/` would make every session of the machine one of this project, and the search for them endless."""
    root = tmp_path / "root"
    put(root, "here")
    kept = put(tmp_path / "elsewhere", "kept")
    put(tmp_path / "elsewhere", "other")
    (root / "kept").symlink_to(kept)
    (root / "all").symlink_to(tmp_path)
    (root / "self").symlink_to(root)
    (root / "here" / "up").symlink_to(root)
    store = WorkStore(root)
    assert sorted(each.session_id for each in store.list_sessions()) == ["here", "kept"]
    assert {ref.session_id for ref in MaestroLayout(root).discover()} == {"here", "kept"}
    assert store.pause("kept").status == "paused"
    with pytest.raises(NotFound):
        store.load("other")


class Moving(WrappedFs):
    """Somebody moves a session away at the first call that `when` picks."""

    def __init__(self, source: Path, target: Path, when: str) -> None:
        super().__init__()
        self.way: tuple[Path, Path] | None = (source, target)
        self.when = when

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name == self.when and self.way is not None:
            source, target = self.way
            self.way = None
            source.rename(target)
        return super().call(name, *arguments, **options)


@pytest.mark.parametrize("allow_unknown", [True, False])
@pytest.mark.parametrize("has_depth", [True, False])
def test_a_session_that_is_moved_while_its_breadcrumb_is_written_is_not_made_anew_where_it_lay(
    has_depth: bool, allow_unknown: bool, tmp_path: Path
) -> None:
    parent, child = put(tmp_path, "P"), put(tmp_path, "C")
    if has_depth:
        leave(child, 1)
    fs = Moving(child, parent / "C", "open")  # the first file that is opened is the breadcrumb
    store = WorkStore.with_fs(fs, tmp_path)
    crumb = create_breadcrumb("p", "r", [], [], None, 0, "m", {})
    for _ in range(2):
        path = store.write_breadcrumb(crumb, "C", allow_unknown=allow_unknown)
        assert Path(path).parent == parent / "C" / "breadcrumbs" / "0"
    assert fs.way is None
    assert not child.exists()
    assert len(store.list_breadcrumbs("C")) == 2 + has_depth


def test_a_breadcrumb_that_moved_with_its_session_is_not_written_a_second_time(tmp_path: Path) -> None:
    """It has its name already, and is whole; whether that survives a power cut is all that is not known."""
    parent, child = put(tmp_path, "P"), put(tmp_path, "C")
    store = WorkStore(tmp_path)
    crumb = create_breadcrumb("p", "r", [], [], None, 0, "m", {})
    store.write_breadcrumb(crumb, "C", allow_unknown=True)

    class Named(Moving):
        def link_fd(self, fd: int, target: str) -> None:
            super().link_fd(fd, target)
            self.when = "open"

        def link(self, source: str, target: str) -> None:
            super().link(source, target)
            self.when = "open"

    for lay in (child, parent / "C"):  # remembered, and not
        store.fs = Named(lay, parent / "C" if lay == child else child, "no call yet")
        with pytest.raises(StorageFailed) as reported:
            store.write_breadcrumb(
                create_breadcrumb("p", "r", [], [], None, 0, "m", {}), "C", allow_unknown=True
            )
        assert reported.value.outcome == "unknown"
        assert not lay.exists()
    assert len(store.list_breadcrumbs("C")) == 3


def test_misplaced_breadcrumbs_are_reported_with_the_error_of_the_system(tmp_path: Path) -> None:
    """A link to a disk that is not there."""
    child = put(tmp_path, "C")
    (child / "breadcrumbs").symlink_to(tmp_path / "lost")
    crumb = create_breadcrumb("p", "r", [], [], None, 0, "m", {})
    for _ in range(2):
        with pytest.raises(StorageFailed, match=r"Failed to create .*breadcrumbs/0"):
            WorkStore(tmp_path).write_breadcrumb(crumb, "C", allow_unknown=True)
