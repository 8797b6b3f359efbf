"""Sessions of a kind that only a newer version knows are told, and left alone."""

import msgspec

from sessionary.sync.blocks import FORMAT
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import SyncStatus
from sessionary.sync.rules import Rules
from sessionary.sync.strangers import strangers

KNOWN = {"amplifier", "maestro"}


def head(kind: str, session: str, project: str | None = "git:x", v: int = FORMAT) -> HeadRecord:
    data = msgspec.json.encode({"v": v, "kind": kind, "project": project, "session": session, "new": 1})
    return HeadRecord(f"name of {session}", data, "1")


def test_a_kind_that_is_not_known_is_told_with_its_sessions() -> None:
    heads = [head("amplifier", "a"), head("opencode", "b"), head("zed", "c", None), head("opencode", "d")]
    found = dict(strangers(heads, KNOWN, Rules()))
    assert {kind: [one.session_id for one in report.outcomes] for kind, report in found.items()} == {
        "opencode": ["b", "d"],
        "zed": ["c"],
    }
    (only,) = found["zed"].outcomes
    assert only.standing is SyncStatus.HELD_BACK
    assert "'zed'" in only.note


def test_what_is_left_out_and_what_is_damaged_is_not_told_here() -> None:
    heads = [
        head("zed", "a", "git:secret"),
        head("zed", "b", v=FORMAT + 1),
        HeadRecord("name", b"no head", "1"),
    ]
    assert list(strangers(heads, KNOWN, Rules(exclude=("*secret",)))) == []
