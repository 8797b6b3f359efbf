"""What each layout says of sessions that come from elsewhere: where they belong, what they hold, how they go away."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.codec.yaml_read import load_yaml
from sessionary.errors import Invalid, InvalidId, NotFound
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.fields import Overruled
from sessionary.layouts.files import PartKind
from sessionary.layouts.summary import summary_of
from sessionary.layouts.sync import Policy, SyncLayout
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, FEATURE, KINDS, PROJECT, WORK, PolicyWorld, recipient

NOW = datetime(2025, 2, 1, tzinfo=UTC)
NAMES = {WORK: "one", FEATURE: "f-2025-01-31", BRAINSTORM: "ideas"}


@pytest.fixture
def world(tmp_path: Path) -> PolicyWorld:
    world = PolicyWorld(tmp_path, MemoryServer().remote)
    device = world.devices[0]
    device.begin("one")
    world.drop(device, "one")
    world.apply(device, "one")
    device.plan("f-2025-01-31")
    world.storm(device, "ideas")
    return world


def layout_of(world: PolicyWorld, kind: str) -> SyncLayout:
    return recipient(kind, world.devices[0].project)


@pytest.mark.parametrize("kind", KINDS)
def test_every_session_is_stored_where_it_belongs(kind: str, world: PolicyWorld) -> None:
    layout = layout_of(world, kind)
    (ref,) = layout.discover()
    assert layout.place(PROJECT, ref.session_id) == ref
    assert layout.ref_for_path(ref.path) == ref
    assert layout.project() == ref.project == PROJECT
    with pytest.raises(Invalid):
        layout.place("other", ref.session_id)
    with pytest.raises(InvalidId):
        layout.place(PROJECT, "../x")


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_has_a_kind_a_place_and_a_rule(kind: str, world: PolicyWorld) -> None:
    layout = layout_of(world, kind)
    (ref,) = layout.discover()
    parts = [part for part in layout.parts(ref) if part.kind is not PartKind.KEPT]
    assert parts
    for part in parts:
        assert layout.part_kind(part.name) is part.kind
        assert Path(layout.path_of(ref, part.name)).read_bytes() == Path(part.path).read_bytes()
        assert layout.backup_of(part.name) is None


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(
            (kind, name)
            for kind in KINDS
            for name in ("../x", "/etc/passwd", ".lock", "", "breadcrumbs/0/../x.json")
        ),
        # Below the folder of a feature any name may lie.
        *((kind, "breadcrumbs/error/x.json") for kind in KINDS if kind != FEATURE),
    ],
)
def test_what_no_session_has_is_not_a_part(kind: str, name: str, world: PolicyWorld) -> None:
    assert layout_of(world, kind).part_kind(name) is None


@pytest.mark.parametrize(
    ("kind", "name", "policy"),
    [
        (WORK, "session.json", Policy.FIELDS),
        (WORK, "breadcrumbs/3/20250131_120000_000000.json", Policy.IMMUTABLE),
        (WORK, "log.jsonl", Policy.LEDGER),
        (WORK, "log.audit.jsonl", Policy.LEDGER),
        (WORK, "attempts.work.jsonl", Policy.UNION),
        (FEATURE, "history.jsonl", Policy.UNION),
        (FEATURE, "state.yaml", Policy.FIELDS),
        (FEATURE, "implementation-plan.yaml", Policy.KEEP_BOTH),
        (FEATURE, "artifacts/a.md", Policy.KEEP_BOTH),
        (FEATURE, "active-features.yaml", Policy.MANUAL),
        (BRAINSTORM, "session.yaml", Policy.FORK),
    ],
)
def test_each_file_has_its_policy(kind: str, name: str, policy: Policy, world: PolicyWorld) -> None:
    layout = layout_of(world, kind)
    assert layout.rule(name).policy is policy
    assert layout.part_kind(name) is not None


@pytest.mark.parametrize(
    ("kind", "session", "only"),
    [
        (WORK, "one", None),
        (FEATURE, "f-2025-01-31", None),
        (FEATURE, "active-features.yaml", "active-features.yaml"),
        (BRAINSTORM, "storm", "session.yaml"),
    ],
)
def test_a_session_is_a_folder_or_one_file(
    kind: str, session: str, only: str | None, world: PolicyWorld
) -> None:
    assert layout_of(world, kind).single_file(session) == only


def test_a_version_that_is_beside_a_file_is_not_a_part_of_a_feature(world: PolicyWorld) -> None:
    layout = layout_of(world, FEATURE)
    assert layout.part_kind("artifacts/a.md.conflict-20250131T120000Z") is None
    assert layout.part_kind("artifacts/conflict-a.md") is PartKind.DOCUMENT


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_can_be_held_and_one_that_is_not_there_cannot(kind: str, world: PolicyWorld) -> None:
    layout = layout_of(world, kind)
    (ref,) = layout.discover()
    with layout.lock(ref):
        pass
    with layout.lock(ref):
        pass
    with pytest.raises(NotFound), layout.lock(layout.place(PROJECT, "gone-2025-01-31")):
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_discarded_is_gone_from_the_list_and_kept_whole(kind: str, world: PolicyWorld) -> None:
    layout = layout_of(world, kind)
    (ref,) = layout.discover()
    before = {Path(part.path).name: Path(part.path).read_bytes() for part in layout.parts(ref)}
    with layout.lock(ref):
        layout.trash(ref, NOW)
    assert list(layout.discover()) == []
    kept = {path.name: path.read_bytes() for path in world.devices[0].project.rglob("*") if path.is_file()}
    assert before.items() <= kept.items()


def test_a_discarded_parent_leaves_its_children(world: PolicyWorld) -> None:
    device = world.devices[0]
    device.begin("child", "one")
    layout = layout_of(world, WORK)
    with layout.lock(layout.place(PROJECT, "one")):
        layout.trash(layout.place(PROJECT, "one"), NOW)
    assert [ref.session_id for ref in layout.discover()] == ["child"]
    assert layout.place(PROJECT, "child").locator.endswith("one/child")
    assert len(list((device.work / ".trash").glob("*/one/session.json"))) == 1
    assert len(list((device.work / ".trash").glob("*/one/breadcrumbs/0/*.json"))) == 1


def test_a_parent_fills_the_folder_that_its_children_lie_in_already(world: PolicyWorld) -> None:
    a, b = world.devices
    a.begin("child", "one")
    world.sync(a)
    (b.work / "one").mkdir()
    (b.work / "one" / "left.txt").write_text("of somebody else")
    world.sync(b)
    assert (b.work / "one" / "left.txt").read_text() == "of somebody else"
    assert (b.work / "one" / "child" / "session.json").exists()
    assert (b.work / "one" / "session.json").exists()


def merged(world: PolicyWorld, base: bytes | None, mine: bytes, theirs: bytes) -> Any:
    found = layout_of(world, FEATURE).merged("state.yaml", base, mine, theirs)
    assert found is not None
    again = layout_of(world, FEATURE).merged("state.yaml", base, found.data, theirs)
    assert again is not None
    assert again.data == found.data
    return load_yaml(found.data)["current_state"]


def state(task: str, model: str, second: int, more: str = "") -> bytes:
    return (
        f'version: "1.0"\nfeature_id: "f"\ncurrent_state:\n  active_task: "{task}"\n  model_in_use: "{model}"\n'
        f'  started_at: "2025-01-31T12:00:00.000000Z"\n  last_updated: "2025-01-31T12:00:{second:02}.000000Z"\n{more}'
    ).encode()


def test_of_one_field_the_later_value_stands_on_whichever_device_merges(world: PolicyWorld) -> None:
    base, early, late = state("t0", "opus", 1), state("t1", "opus", 2), state("t2", "sonnet", 3)
    assert merged(world, base, early, late) == merged(world, base, late, early)
    assert merged(world, base, early, late)["active_task"] == "t2"


def test_a_field_that_only_the_earlier_side_changed_keeps_its_change(world: PolicyWorld) -> None:
    base, early, late = state("t0", "opus", 1), state("t1", "opus", 2), state("t0", "sonnet", 3)
    found = merged(world, base, early, late)
    assert (found["active_task"], found["model_in_use"], found["last_updated"][17:19]) == (
        "t1",
        "sonnet",
        "03",
    )


def test_comments_and_unknown_keys_stay(world: PolicyWorld) -> None:
    base = state("t0", "opus", 1)
    mine, theirs = state("t1", "opus", 2, "mine: 1\n"), state("t0", "sonnet", 3, "# theirs\ntheirs: 2\n")
    both = layout_of(world, FEATURE).merged("state.yaml", base, mine, theirs)
    assert both is not None
    assert b"# theirs" in both.data
    found = load_yaml(both.data)
    assert (found["mine"], found["theirs"]) == (1, 2)


@pytest.mark.parametrize("bad", [b"", b"{", b"a: b\n", b'version: "9.0"\n'])
def test_a_state_that_cannot_be_read_is_not_brought_together(bad: bytes, world: PolicyWorld) -> None:
    layout = layout_of(world, FEATURE)
    assert layout.merged("state.yaml", None, bad, state("t", "opus", 1)) is None
    assert layout_of(world, WORK).merged("session.json", None, bad, b"{}") is None


def test_documents_of_work_sessions_are_brought_together_key_by_key(world: PolicyWorld) -> None:
    base = {
        "session_id": "one",
        "session_type": "work_task",
        "status": "running",
        "children_wsession_ids": [],
    }
    mine = {
        **base,
        "modified": "2025-01-31T12:00:01Z",
        "purpose": "p",
        "children_wsession_ids": ["a"],
        "status": "paused",
    }
    theirs = {**base, "modified": "2025-01-31T12:00:02Z", "children_wsession_ids": ["b"], "status": "failed"}
    layout = layout_of(world, WORK)
    both = layout.merged("session.json", *(json.dumps(one).encode() for one in (base, mine, theirs)))
    assert both is not None
    found = json.loads(both.data)
    assert (found["purpose"], found["status"], sorted(found["children_wsession_ids"])) == (
        "p",
        "failed",
        ["a", "b"],
    )
    assert Overruled("status", "failed", "paused") in both.overruled
    assert not {"modified", "children_wsession_ids"} & {one.field for one in both.overruled}
    again = layout.merged("session.json", json.dumps(base).encode(), both.data, json.dumps(theirs).encode())
    assert again is not None
    assert again.data == both.data


def test_of_a_field_of_a_state_that_both_changed_the_other_value_is_reported(world: PolicyWorld) -> None:
    base, early, late = state("t0", "opus", 1), state("t1", "opus", 2), state("t2", "sonnet", 3)
    for mine, theirs in ((early, late), (late, early)):
        both = layout_of(world, FEATURE).merged("state.yaml", base, mine, theirs)
        assert both is not None
        assert both.overruled == (Overruled("current_state.active_task", "t2", "t1"),)


def metadata(**fields: Any) -> bytes:
    return json.dumps({"session_id": "one", "bundle": "b", **fields}).encode()


def together(
    base: bytes | None, mine: bytes, theirs: bytes, tmp_path: Path, *, ours_lead: bool = False
) -> tuple[dict[str, Any], tuple[Overruled, ...]]:
    layout = AmplifierSyncLayout(tmp_path)
    both = layout.merged("metadata.json", base, mine, theirs, ours_lead=ours_lead)
    assert both is not None
    again = layout.merged("metadata.json", base, both.data, theirs, ours_lead=ours_lead)
    assert again is not None
    assert again.data == both.data
    return json.loads(both.data), both.overruled


def test_metadata_are_brought_together_field_by_field(tmp_path: Path) -> None:
    base = metadata(name="first", turn_count=1, tags=["a"], gone=1)
    mine = metadata(name="renamed", turn_count=1, tags=["a"], gone=1, mine=True)
    theirs = metadata(name="first", turn_count=2, tags=["a", "b"], theirs=None)
    value, overruled = together(base, mine, theirs, tmp_path)
    assert value == {
        "session_id": "one",
        "bundle": "b",
        "name": "renamed",
        "turn_count": 2,
        "tags": ["a", "b"],
        "mine": True,
        "theirs": None,
    }
    assert overruled == ()


@pytest.mark.parametrize("ours_lead", [False, True])
def test_of_a_field_of_metadata_that_both_changed_the_leading_side_wins(
    ours_lead: bool, tmp_path: Path
) -> None:
    base, mine, theirs = metadata(name="a", n=1), metadata(name="mine", n=1), metadata(n=1.0)
    value, overruled = together(base, mine, theirs, tmp_path, ours_lead=ours_lead)
    assert (value.get("name"), value["n"]) == ("mine" if ours_lead else None, 1.0)
    assert overruled == (Overruled("name", *(("mine", None) if ours_lead else (None, "mine"))),)


def test_metadata_of_an_unknown_past_lose_no_field(tmp_path: Path) -> None:
    value, overruled = together(None, metadata(name="mine", mine=1), metadata(name="theirs"), tmp_path)
    assert (value["name"], value["mine"]) == ("theirs", 1)
    assert overruled == (Overruled("name", "theirs", "mine"),)


@pytest.mark.parametrize("bad", [b"", b"{", b"[]", b"1"])
def test_metadata_that_cannot_be_read_are_not_brought_together(bad: bytes, tmp_path: Path) -> None:
    layout = AmplifierSyncLayout(tmp_path)
    for versions in ((None, bad, metadata()), (None, metadata(), bad), (bad, metadata(), metadata())):
        assert layout.merged("metadata.json", *versions) is None


def test_a_brainstorm_that_gave_way_says_who_it_is_and_where_it_comes_from(world: PolicyWorld) -> None:
    layout = layout_of(world, BRAINSTORM)
    sibling = layout.place(PROJECT, "6b5f1a80-0000-5000-8000-000000000000")
    (ref,) = layout.discover()
    Path(ref.locator).rename(sibling.locator)
    for _ in range(2):
        with layout.lock(sibling):
            layout.set_parent(sibling, "ideas", NOW)
    reported = load_yaml(Path(sibling.locator).read_bytes())["session"]
    assert (reported["slug"], reported["parent_id"]) == (sibling.session_id, "ideas")
    assert reported["id"] == f"{sibling.session_id}-2025-01-31"
    assert summary_of(layout, sibling).parent == "ideas"
