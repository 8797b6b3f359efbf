"""Names of sessions, as users write them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary import create_session
from sessionary.errors import AmbiguousId, Corrupt, Invalid, NotFound, StorageFailed
from sessionary.layouts.base import Capability
from sessionary.model import PERSON, Aside, Item, Message, Problem, SessionRef, Text
from sessionary.testing.layout_suite import CountingFs
from sessionary.workspace import Workspace
from sessionary.workspace.checking import check_place
from sessionary.workspace.choosing import chosen
from sessionary.workspace.naming import cut_ids, short_names

ROOT = "3f0c81d2-0000-4000-8000-000000000001"
OTHER = "3f0c99aa-0000-4000-8000-000000000002"
FIRST = "0000000000000000-9c1d2e3f4a5b6c7d_explorer"
SECOND = "9c1d2e3f4a5b6c7d-1111222233334444_file-ops"
OLD = f"{ROOT}-aaaabbbbccccdddd_zen-architect"


def make(home: Path, *ids: str, project: str = "-p") -> Workspace:
    for session_id in ids:
        folder = home / "projects" / project / "sessions" / session_id
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_bytes(b"\n")
    return Workspace(home)


def test_a_list_of_what_is_of_a_kind_a_branch_and_a_health(tmp_path: Path) -> None:
    workspace = make(tmp_path, ROOT, OTHER)
    assert len(workspace.list(kind="amplifier", project="-p")) == 2
    (health,) = {one.health for one in workspace.list()}
    assert len(workspace.list(health=health)) == 2
    assert (
        workspace.list(health="lost_data") == workspace.list(branch="main") == workspace.list(model="x") == []
    )


CALL = {"role": "assistant", "content": "3", "tool_calls": [{"id": "t", "tool": "bash", "arguments": {}}]}
RESULT = {"role": "tool", "content": "4", "tool_call_id": "t"}


def talk(home: Path, *messages: dict[str, Any]) -> tuple[Workspace, SessionRef]:
    workspace = make(home, ROOT)
    (home / f"projects/-p/sessions/{ROOT}/transcript.jsonl").write_bytes(
        b"".join(json.dumps(one).encode() + b"\n" for one in messages)
    )
    return workspace, workspace.find(ROOT)


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ({}, "0 1 2 3 4"),
        ({"first": -2}, "3 4"),
        ({"first": -9, "last": -4}, "0 1"),
        ({"first": 3, "last": -1}, "3 4"),
        ({"first": 9}, ""),
        ({"last": -9}, ""),
        ({"first": 3, "around": 0}, "3"),
        ({"first": 0, "around": 1}, "0 1"),
        ({"first": -1, "around": 1}, "3 4"),
        ({"first": -2, "preceding": True}, "(0) (1) (2) 3 4"),
        ({"first": 3, "around": 1, "preceding": True}, "(0) (1) 2 3 4"),
        ({"turns": (0, 0)}, "0"),
        ({"turns": (2, None)}, "2 3 4"),
        ({"turns": (-2, -2)}, "1"),
        ({"turns": (-9, 1)}, "0 1"),
    ],
)
def test_messages_are_chosen_from_both_ends(tmp_path: Path, asked: dict[str, Any], texts: str) -> None:
    said = [{"role": "assistant", "content": "0"}, *({"role": "user", "content": word} for word in "12")]
    workspace, ref = talk(tmp_path, *said, CALL, RESULT)
    found = workspace.messages(ref, **asked)
    assert " ".join(f"({one.message.text})" if one.preceding else one.message.text for one in found) == texts


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"first": 2, "around": 1}, "no message 2: the session has 2 messages"),
        ({"first": 9, "around": 1}, "no message 9: the session has 2 messages"),
        ({"first": -3, "around": 1}, "no message -3: the session has 2 messages"),
        ({"turns": (2, 3)}, "no turn 2: the session has 1 turn"),
        ({"turns": (-2, -2)}, "no turn -2: the session has 1 turn"),
    ],
)
def test_messages_that_are_missing(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    workspace, ref = talk(tmp_path, {"role": "assistant", "content": "0"}, {"role": "user", "content": "1"})
    found = workspace.messages(ref, asides=True, **asked)
    with pytest.raises(Invalid, match=f"^{words}$"):
        next(found)


def test_a_message_is_not_there_because_one_outside_of_the_conversation_is(tmp_path: Path) -> None:
    said: list[Item] = [Message("user", PERSON, (Text("0"),)), Aside(Message("user", PERSON, (Text("1"),)))]
    with pytest.raises(Invalid, match="no message 1: the session has 1 message"):
        list(chosen(lambda: said, 1, None, 3, None, preceding=False, asides=True))


def test_a_session_of_which_nothing_can_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    workspace = make(tmp_path, ROOT)
    ref = workspace.find(ROOT)
    assert list(workspace.messages(ref)) == []
    (Path(ref.locator) / "transcript.jsonl").write_bytes(b"{torn\n")
    with pytest.raises(Corrupt, match=r"transcript\.jsonl: "):
        list(workspace.messages(ref, -1))
    assert all(isinstance(one, Problem) for one in workspace.read(ref))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (ROOT, ROOT),
        ("3f0c8", ROOT),
        (ROOT[:20], ROOT),
        (OLD, OLD),
        (OLD[:40], OLD),
        ("aaaab", OLD),
        ("0000", FIRST),
        ("9c1d", FIRST),
        ("9c1d2e3f4a5b6c7d-", SECOND),
        ("1111", SECOND),
    ],
)
def test_the_significant_beginning_is_enough(tmp_path: Path, name: str, found: str) -> None:
    assert make(tmp_path, ROOT, OTHER, FIRST, SECOND, OLD).find(name).session_id == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("FIX", "Fix"),
        ("fix-2", "fix-2"),
        ("Fix-2", "Fix-2"),
        ("fIX-2", None),
        ("FIX-3", "fix-3x"),
        ("fix-3", "fix-3x"),
    ],
)
def test_ids_match_whatever_their_case_and_an_exact_one_first(
    tmp_path: Path, name: str, found: str | None
) -> None:
    workspace = make(tmp_path, "Fix", "fix-2", "Fix-2", "fix-3x")
    if found is None:
        with pytest.raises(AmbiguousId):
            workspace.find(name)
    else:
        assert workspace.find(name).session_id == found


def test_a_beginning_as_it_is_written_wins_over_one_in_another_case(tmp_path: Path) -> None:
    assert make(tmp_path, "Fix-1", "fix-2").find("fix").session_id == "fix-2"
    assert make(tmp_path, "Fix-3").find("FIX-3").session_id == "Fix-3"


def test_latest_is_the_session_that_changed_last_and_no_sub_agent(tmp_path: Path) -> None:
    workspace = make(tmp_path, ROOT, OTHER, FIRST)
    for age, session_id in enumerate((FIRST, OTHER, ROOT)):
        folder = tmp_path / "projects" / "-p" / "sessions" / session_id
        for path in (folder / "transcript.jsonl", folder):
            os.utime(path, (1_770_000_000 - age, 1_770_000_000 - age))
    assert workspace.find("latest").session_id == OTHER
    make(tmp_path, "latest")
    assert Workspace(tmp_path).find("latest").session_id == "latest"


def test_latest_is_looked_for_among_the_sessions_that_an_operation_supports(tmp_path: Path) -> None:
    work = create_session("login", base_path=tmp_path / "docs" / "sessions")
    with pytest.raises(NotFound):
        Workspace(tmp_path).find("latest", able=Capability.REWIND)
    workspace = make(tmp_path, ROOT)
    folder = tmp_path / "projects" / "-p" / "sessions" / ROOT
    for path in (folder / "transcript.jsonl", folder):
        os.utime(path, (1_770_000_000, 1_770_000_000))
    assert workspace.find("latest").session_id == work.session_id
    assert workspace.find("latest", able=Capability.REWIND).session_id == ROOT


def test_only_random_ids_are_shortened(tmp_path: Path) -> None:
    ids = [
        ROOT,
        OTHER,
        FIRST,
        "sign-in-2026-01-09",
        "my-long-session-name",
        "0123456789abcdef0123456789abcdef",
    ]
    workspace = make(tmp_path, *ids)
    short = {ref.session_id: workspace.short_ids([ref])[ref] for ref in workspace.refs()}
    assert [short[session_id] for session_id in ids] == [
        ROOT[:8], OTHER[:8], "9c1d2e3f", "sign-in-2026-01-09", "my-long-session-name", "01234567",
    ]  # fmt: skip
    like_a_uuid = "sign-in1-feat-ures-with-hyphens-alike"[:36]
    feature = SessionRef("feature", like_a_uuid, "/s", "-p")
    assert workspace.short_ids([feature]) == {feature: like_a_uuid}


def test_ids_of_opencode_are_shortened_as_far_as_they_differ() -> None:
    ids = [
        "ses_4f8a1b2c3ffe0123456789abcD",
        "ses_4f8a1b2c3ffe0123456789abcE",
        "ses_4f9a1b2c3ffe0123456789abcD",
    ]
    assert short_names([*ids, "ses_4f8a1b2c3ffe-by-hand"]) == {
        ids[0]: ids[0], ids[1]: ids[1], ids[2]: "ses_4f9a", "ses_4f8a1b2c3ffe-by-hand": "ses_4f8a1b2c3ffe-by-hand",
    }  # fmt: skip


@pytest.mark.parametrize("gap", ["…", "~", "..."])
def test_a_long_id_is_found_by_its_beginning_and_its_end(tmp_path: Path, gap: str) -> None:
    ids = ["sign-in-of-the-new-shop-1", "sign-in-of-the-old-shop-1", "sign-in-of-the-new-shop-2", "one"]
    cut = cut_ids(ids, 14)
    assert cut == [ids[0], ids[1], "sign-in-o…op-2", "one"], "the first two differ in the middle alone"
    workspace = make(tmp_path, *ids)
    assert workspace.find(cut[2].replace("…", gap)).session_id == ids[2]
    with pytest.raises(AmbiguousId):
        workspace.find(f"sign-in-o{gap}op-1")
    with pytest.raises(NotFound):  # the two parts overlap
        workspace.find(f"on{gap}ne")


def test_a_whole_id_wins_over_longer_ones(tmp_path: Path) -> None:
    workspace = make(tmp_path, "fix", "fix-2", "fix-3")
    assert workspace.find("fix").session_id == "fix"
    with pytest.raises(AmbiguousId) as caught:
        workspace.find("fix-")
    assert caught.value.details == {"matches": ["fix-2  -p", "fix-3  -p"], "count": 2}


def test_many_matches_are_counted_and_some_are_named(tmp_path: Path) -> None:
    workspace = make(tmp_path, *(f"s{number:03}" for number in range(50)))
    with pytest.raises(AmbiguousId, match="50 sessions match s") as caught:
        workspace.find("s")
    assert len(caught.value.details["matches"]) == 20
    assert caught.value.hint is not None
    assert "the first 20 are shown" in caught.value.hint


def test_the_path_of_a_folder_names_its_session(tmp_path: Path) -> None:
    workspace = make(tmp_path, ROOT)
    folder = tmp_path / "projects" / "-p" / "sessions" / ROOT
    assert Workspace(tmp_path / "elsewhere").find(str(folder)) == workspace.find(ROOT)
    with pytest.raises(NotFound):
        workspace.find(str(tmp_path))


@pytest.mark.parametrize("name", ["nothing", "x" * 300, "a/b", "../x", "*"])
def test_missing_sessions(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFound):
        make(tmp_path, ROOT).find(name)


def test_sessions_of_known_summaries_are_searched_as_they_are_now_and_not_read_for_their_order(
    tmp_path: Path,
) -> None:
    make(tmp_path, "one", "two")
    fs = CountingFs()
    workspace = Workspace(tmp_path, fs=fs, cache=str(tmp_path / "cache"))
    known = workspace.list()
    for one in known:
        with Path(one.ref.locator, "transcript.jsonl").open("ab") as file:
            file.write(json.dumps({"role": "user", "content": "added since"}).encode() + b"\n")
    fs.opened.clear()
    hits = workspace.search("since", summaries=known)
    assert fs.opened["transcript.jsonl"] == 0
    assert [hit.ref for hit in hits] == [one.ref for one in known]


def test_a_blank_is_not_a_name(tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        make(tmp_path, ROOT).find(" ")


def test_sub_sessions_are_nested_and_forks_are_not(tmp_path: Path) -> None:
    workspace = make(tmp_path, ROOT, FIRST, SECOND, OLD, "my_fix")
    nested = {ref.session_id for ref in workspace.refs() if workspace.is_nested(ref)}
    assert nested == {FIRST, SECOND, OLD}


def test_the_default_home_is_that_of_the_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Workspace().home == tmp_path / ".amplifier"


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with pytest.raises(NotFound):
        list(workspace.check(tmp_path / "x.jsonl"))
    with pytest.raises(NotFound):
        list(workspace.read(tmp_path / "x.jsonl"))


def test_a_file_that_cannot_be_read_is_a_failure_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(StorageFailed):
        list(Workspace(tmp_path).check(tmp_path / "folder.jsonl"))
    with pytest.raises(StorageFailed):
        list(Workspace(tmp_path).read(tmp_path / "folder.jsonl"))


def test_memory_is_not_a_place_to_keep_sessions() -> None:
    problems = check_place(Workspace(Path("/dev/shm")))
    if not Path("/dev/shm").is_mount():
        pytest.skip("no file system in memory here")
    assert [(problem.code, problem.severity.name) for problem in problems] == [("weak_file_system", "note")]


_span = st.text("ab0", min_size=16, max_size=16)
_ids = st.text("ab0-", min_size=1, max_size=14) | st.builds(
    "{}-{}_{}".format, st.text("ab0", max_size=12), _span, st.text("xy")
)


@given(st.sets(_ids.filter(lambda name: not name.startswith("-")), max_size=12))
def test_every_short_id_names_its_session_and_no_other(ids: set[str]) -> None:
    refs = [SessionRef("amplifier", session_id, "/s", "-p") for session_id in sorted(ids)]

    class Fixed(Workspace):
        def refs(self):  # type: ignore[no-untyped-def]
            return iter(refs)

    workspace = Fixed(Path("/nowhere"))
    for ref, short in workspace.short_ids(refs).items():
        assert workspace.find(short) == ref
