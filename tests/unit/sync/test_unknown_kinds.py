"""Sessions of a kind that only a newer version knows are reported, and left alone."""

import msgspec

from sessionary.sync.blocks import FORMAT
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import SyncStatus, of_unknown_kinds
from sessionary.sync.rules import Rules

KNOWN = {"amplifier", "maestro"}


def head(kind: str, session: str, project: str | None = "git:x", v: int = FORMAT) -> HeadRecord:
    data = msgspec.json.encode({"v": v, "kind": kind, "project": project, "session": session, "new": 1})
    return HeadRecord(f"name of {session}", data, "1")


def test_sessions_of_unknown_kinds_are_reported_as_held_back() -> None:
    heads = [head("amplifier", "a"), head("opencode", "b"), head("zed", "c", None), head("opencode", "d")]
    found = list(of_unknown_kinds(heads, KNOWN, Rules()))
    assert [(one.kind, one.session_id) for one in found] == [
        ("opencode", "b"),
        ("zed", "c"),
        ("opencode", "d"),
    ]
    assert {one.standing for one in found} == {SyncStatus.HELD_BACK}
    assert "'zed'" in found[1].note


def test_excluded_and_unreadable_heads_are_not_reported_here() -> None:
    heads = [
        head("zed", "a", "git:secret"),
        head("zed", "b", v=FORMAT + 1),
        HeadRecord("name", b"no head", "1"),
    ]
    assert list(of_unknown_kinds(heads, KNOWN, Rules(exclude=("*secret",)))) == []
