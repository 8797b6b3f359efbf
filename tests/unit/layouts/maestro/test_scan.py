"""Scanning the sessions below a root: what is damaged hides nothing, every change is seen."""

from pathlib import Path

from sessionary.layouts.maestro.store import WorkStore


def test_what_is_damaged_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    for name, data in (
        ("unknown", b'{"session_id": "unknown", "session_type": "fix", "mood": ["good"]}'),
        ("torn", b'{"session_id": '),
        ("other", b"[]"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.json").write_bytes(data)
    found = WorkStore(tmp_path).scan()
    assert [session.unknown_keys for session in found.sessions] == [{"mood": ["good"]}]
    assert sorted(problem.code for problem in found.problems) == ["bad_session", "no_session"]


def test_every_change_is_seen(tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("work_task")
    assert len(store.scan().sessions) == 1
    store.pause(session.session_id)
    assert store.scan().sessions[0].status == "paused"
    child = store.create("fix", session.session_id)
    assert {found.session_id for found in store.scan().sessions} == {
        session.session_id,
        child.session_id,
    }
    path = Path(store.folder(child.session_id), "session.json")
    path.write_bytes(b"{")
    assert [problem.code for problem in store.scan().problems] == ["bad_session"]
    path.unlink()
    found = store.scan()
    assert ([each.session_id for each in found.sessions], found.problems) == ([session.session_id], [])


def test_a_link_to_a_session_counts_right_below_a_root_only(tmp_path: Path) -> None:
    """Further down it may lead back up."""
    elsewhere = tmp_path / "elsewhere"
    WorkStore(elsewhere).create("work_task")
    (session,) = elsewhere.iterdir()
    outer, inner = tmp_path / "root", tmp_path / "root" / "inner"
    inner.mkdir(parents=True)
    (inner / session.name).symlink_to(session)
    assert [found.session_id for found in WorkStore(inner).scan().sessions] == [session.name]
    assert WorkStore(outer).scan().sessions == []
