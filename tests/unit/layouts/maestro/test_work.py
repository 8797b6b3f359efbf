"""Work sessions: what a save keeps, which statuses follow, how a result is handed over, what a list does not hide."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import AmbiguousId, Invalid, NotFound, SchemaError, TransitionError
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.compat_api import (
    list_breadcrumbs,
    load_breadcrumb,
    load_session,
    save_session,
    write_breadcrumb,
)
from sessionary.layouts.maestro.records import CRUMB_KEYS, Breadcrumb, WorkSession
from sessionary.layouts.maestro.statuses import complete_session, resume_session
from sessionary.layouts.maestro.store import WorkStore
from tests.lanes import shared_folder


def note(prompt: str = "p", depth: int = 0) -> Breadcrumb:
    return create_breadcrumb(prompt, "r", [], [], None, depth, "opus", {"input": 1, "output": 2})


def test_two_savers_keep_each_others_keys(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session_id = store.create("fix").session_id
    one, two = store.load(session_id), store.load(session_id)
    one.metadata["one"], two.metadata["two"] = 1, 2
    del two.metadata["cookie"]
    assert store.save(one)
    assert store.save(two)
    assert not store.save(two), "nothing has changed since"
    assert store.load(session_id).metadata == {"one": 1, "two": 2}


def test_unknown_keys_survive_a_save(tmp_path: Path) -> None:
    path = tmp_path / "s" / "session.json"
    path.parent.mkdir()
    path.write_text('{"session_id": "s", "session_type": "fix", "x-new": [1]}')
    session = load_session(path)
    session.purpose = "told"
    save_session(session, path)
    assert json.loads(path.read_text())["x-new"] == [1]


def test_a_damaged_document_is_kept_aside_by_a_save(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix")
    path = tmp_path / session.session_id / "session.json"
    path.write_text("{torn")
    session.purpose = "again"
    store.save(session)
    assert store.load(session.session_id).purpose == "again"
    assert [kept.read_text() for kept in path.parent.glob("*.corrupt-*")] == ["{torn"]


def test_breadcrumbs_of_one_time_step_aside(tmp_path: Path) -> None:
    first, second = note("a"), note("b")
    WorkStore.with_fs(OS_FS, tmp_path, new_id=lambda: "s").create("fix")
    second.timestamp = first.timestamp = "20251231_235959_999999"
    write_breadcrumb(first, "s", tmp_path)
    path = write_breadcrumb(second, "s", tmp_path)
    assert second.timestamp == "20260101_000000_000000"
    assert path.endswith("/s/breadcrumbs/0/20260101_000000_000000.json")
    assert [crumb.prompt for crumb in list_breadcrumbs("s", tmp_path)] == ["a", "b"]
    assert tuple(json.loads(Path(path).read_text())) == CRUMB_KEYS
    assert load_breadcrumb(path) == second


def test_children_nest_in_the_real_folder_of_their_parent(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    top = store.create("work_track").session_id
    middle = store.create("work_phase", top).session_id
    low = store.create("fix", middle).session_id
    assert Path(store.folder(low)) == tmp_path / top / middle / low
    assert store.load(middle).children_wsession_ids == [low]
    assert [(node.session.session_id, depth) for node, depth in store.tree()[0].walk()] == [
        (top, 0),
        (middle, 1),
        (low, 2),
    ]
    with pytest.raises(TransitionError, match=r"open sessions below it \(1\)"):
        store.complete(top)
    with pytest.raises(NotFound):
        store.create("fix", "nobody")


def test_an_interrupted_session_names_the_way_to_close_it(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session_id = store.create("fix").session_id
    store.interrupt(session_id)
    with pytest.raises(TransitionError) as caught:
        store.close(session_id)
    assert caught.value.hint == "resume it first"
    store.resume(session_id)
    assert store.close(session_id).status == "completed"


def test_what_has_ended_stays_ended(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session_id = store.create("fix").session_id
    stale = store.load(session_id)
    store.complete(session_id)
    assert store.load(session_id).state == "closed"
    with pytest.raises(TransitionError, match="closed"):
        store.resume(session_id)
    with pytest.raises(TransitionError, match="closed"):
        store.post(note(), session_id)
    stale.status = "paused"
    with pytest.raises(TransitionError):
        store.save(stale)


def test_the_result_of_sub_work_is_handed_over_once(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    parent = store.create("work_task").session_id
    child = store.start_subwork(parent, "look").session_id
    assert store.load(parent).status == "paused"
    assert store.close_subwork(child, "found").handed_over
    again = store.close_subwork(child, "found")
    assert not again.handed_over
    assert store.load(parent).status == "running"
    results = store.list_breadcrumbs(parent)
    assert [(crumb.kind, crumb.response, crumb.breadcrumb_id) for crumb in results] == [
        ("result", "found", again.breadcrumb_id)
    ]


def test_beginnings_of_ids_and_the_latest(tmp_path: Path) -> None:
    ids = iter(["abcd-1", "abcd-2"])
    store = WorkStore.with_fs(WorkStore(tmp_path).fs, tmp_path, new_id=lambda: next(ids))
    store.create("fix"), store.create("fix")
    assert store.find("latest").session_id == "abcd-2"
    with pytest.raises(AmbiguousId):
        store.find("abcd")
    with pytest.raises(NotFound):
        store.find("abc")


ADDER = """
import sys
from sessionary.layouts.maestro.store import WorkStore
store = WorkStore(sys.argv[1])
for number in range(int(sys.argv[4])):
    session = store.load(sys.argv[2])
    session.metadata[f"{sys.argv[3]}.{number}"] = number
    store.save(session)
"""


@pytest.mark.timeout(300)
def test_eight_processes_add_keys_and_none_is_lost(tmp_path: Path) -> None:
    """In a soak as often as in the proof that the original fails: 300 times each."""
    each = 300 if os.environ.get("SESSIONARY_SOAK") else 15
    store = WorkStore(tmp_path)
    session_id = store.create("fix").session_id
    command = [sys.executable, "-c", ADDER, str(tmp_path), session_id]
    running = [subprocess.Popen([*command, str(number), str(each)]) for number in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    assert len(store.load(session_id).metadata.keys() - {"cookie", "git_branch", "git_root"}) == 8 * each


@pytest.mark.lane("samples")
def test_the_sample_tree_gives_its_facts() -> None:
    place = shared_folder() / "samples" / "maestro"
    expected = json.loads((place / "EXPECTED.json").read_text())
    store = WorkStore(place / "docs" / "sessions")
    scan = store.scan()
    by_id = {session.session_id: session for session in scan.sessions}
    assert set(by_id) == {facts["id"] for facts in expected["sessions"].values()}
    assert [problem.code for problem in scan.problems] == ["legacy_session"]
    orphans = [node.session.session_id for node in store.tree() if node.flag == "orphan"]
    assert orphans == [expected["sessions"][key]["id"] for key in expected["orphans"]]
    for facts in expected["sessions"].values():
        found = store.list_breadcrumbs(facts["id"])
        assert [crumb.breadcrumb_id for crumb in found] == facts["order"]
        assert (by_id[facts["id"]].status, by_id[facts["id"]].parent) == (facts["status"], facts["parent"])


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("status", "bogus", Invalid),
        ("status", ["running"], Invalid),
        ("session_type", "", SchemaError),
        ("metadata", ["a", "list"], SchemaError),
        ("purpose", 7, SchemaError),
        ("session_id", "another", SchemaError),
    ],
)
def test_a_session_is_not_changed_into_what_no_list_would_show(
    field: str, value: Any, error: type[Exception], tmp_path: Path
) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix", purpose="whole")
    path = tmp_path / session.session_id / "session.json"
    before = path.read_bytes()
    with pytest.raises(error):
        store.update(session.session_id, lambda stored: setattr(stored, field, value))
    setattr(session, field, value)
    with pytest.raises(error):
        save_session(session, path)
    assert path.read_bytes() == before
    assert [each.purpose for each in store.list_sessions()] == ["whole"]


def test_an_update_does_not_reopen_what_has_ended_and_says_when_something_ended(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix").session_id
    ended = store.update(session, lambda stored: setattr(stored, "status", "completed"))
    assert ended.state == store.load(session).state == "closed"
    assert ended.closed_at == store.load(session).closed_at == ended.modified
    with pytest.raises(TransitionError, match="cannot become running"):
        store.update(session, lambda stored: setattr(stored, "status", "running"))
    assert store.load(session).status == "completed"


def test_a_session_is_not_saved_over_another(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    one, other = store.create("fix", purpose="one"), store.create("fix", purpose="other")
    made = WorkSession("by hand", "fix")
    path = tmp_path / one.session_id / "session.json"
    for stranger in (made, other):
        stranger.session_id = made.session_id
        with pytest.raises(SchemaError, match=f"is the file of the session {one.session_id}"):
            save_session(stranger, path)
    assert store.load(one.session_id).purpose == "one"


@pytest.mark.parametrize("wrong", [{"purpose": 7}, {"status": "bogus"}, {"session_type": 5}])
def test_a_session_that_is_refused_leaves_no_folder(wrong: dict[str, Any], tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    parent = store.create("fix").session_id
    before = sorted(tmp_path.rglob("*"))
    for above in (None, parent):
        with pytest.raises(ValueError, match=r"."):
            store.create(**{"session_type": "fix", "parent": above, **wrong})
    assert [path for path in sorted(tmp_path.rglob("*")) if path.name != ".lock"] == before


def test_a_save_completes_no_session_with_open_children(tmp_path: Path) -> None:
    """Where `complete` refuses it, a save does, by whichever way: the one of the store, or the original's function."""
    store = WorkStore(tmp_path)
    top = store.create("work_track").session_id
    child = store.create("fix", top).session_id
    low = store.create("fix", child).session_id
    stray = tmp_path / child / "stray"  # where the original puts the child of a child
    stray.mkdir(parents=True)
    (stray / "session.json").write_text(
        json.dumps({"session_id": "stray", "session_type": "fix", "parent_session_id": child})
    )
    for name, below in ((top, {child}), (child, {low, "stray"})):
        path = Path(store.folder(name), "session.json")
        before = path.read_bytes()
        session = load_session(path)
        session.status = "completed"
        for save in (
            lambda session=session, path=path: save_session(session, path),
            lambda session=session: store.save(session),
            lambda name=name: store.update(name, lambda stored: setattr(stored, "status", "completed")),
            lambda name=name: store.complete(name),
        ):
            with pytest.raises(TransitionError) as reported:
                save()
            assert set(reported.value.details["open"]) == below
        assert path.read_bytes() == before
    for name in ("stray", low, child, top):
        path = Path(store.folder(name), "session.json")
        session = load_session(path)
        session.status = "completed"
        save_session(session, path)
    assert {session.status for session in store.list_sessions()} == {"completed"}


def test_an_interrupted_session_resumed_in_memory_may_be_saved_as_completed(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix", status="interrupted")
    complete_session(resume_session(session))
    store.save(session)
    assert store.load(session.session_id).status == "completed"
