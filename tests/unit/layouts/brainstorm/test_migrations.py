"""Migration, and Backward Compatibility: older files, and those that an earlier migration left half done."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from sessionary import BrainstormStore, Unsupported
from sessionary.codec.yaml_read import load_yaml
from sessionary.layouts.brainstorm.migrations import migrate
from tests.unit.layouts.brainstorm.samples import document, old_document, put, stored

UNKNOWN = {
    "category": "unknown",
    "suggested_reason": "migrated from v1.0",
    "applied": True,
    "source": "manual",
    "weak_axes": [],
}


def as_the_format_migrates(session: dict[str, Any]) -> dict[str, Any]:
    """What the migration that came with the format does to the one map that it is given."""
    session["mode"] = "standard"
    session["techniques_history"] = [
        {"iteration": place + 1, "technique_slug": slug, **UNKNOWN}
        for place, slug in enumerate(session.get("techniques_used", []))
    ]
    for name in ("party", "panel"):
        session[f"{name}_active"] = False
        session[f"{name}_history"] = []
    session["format_version"] = "1.2"
    return session


def test_each_value_of_a_migrated_file_is_that_of_the_format() -> None:
    """Section "Migration v1.0 → v1.2", each value."""
    session = migrate(old_document()).document["session"]
    assert session["techniques_history"] == [
        {"iteration": 1, "technique_slug": "moscow", **UNKNOWN},
        {"iteration": 2, "technique_slug": "5whys", **UNKNOWN},
    ]
    assert session["techniques_used"] == ["moscow", "5whys"]
    assert session["mode"] == "standard"
    assert (session["party_active"], session["party_history"]) == (False, [])
    assert (session["panel_active"], session["panel_history"]) == (False, [])
    assert "legacy_mode" not in session


def test_the_version_stands_at_the_root() -> None:
    """Sections "Schema v1.2", the version stands at the root; "Migration", 3: the version is updated."""
    migrated = migrate(old_document())
    assert migrated.document["format_version"] == "1.2"
    assert "format_version" not in migrated.document["session"]
    assert (migrated.was, migrated.changed, migrated.healed) == ("1.0", True, False)


@pytest.mark.parametrize("mode", ["random", "progressive"])
def test_the_older_meaning_of_mode_is_kept_under_another_name(mode: str) -> None:
    """Section "Migration v1.0 → v1.2", mode becomes standard."""
    state = {"last_category": "ideation", "category_counts": {"ideation": 1}}
    session = migrate(old_document(mode=mode, random_state=state)).document["session"]
    assert (session["mode"], session["legacy_mode"]) == ("standard", mode)
    assert session["random_state"] == state


def test_missing_times_are_derived_from_existing_ones() -> None:
    session = migrate(old_document()).document["session"]
    assert (session["started_at"], session["duration_minutes"]) == ("2026-01-09T10:30:00Z", 30)
    old = old_document()
    del old["session"]["created"]
    session = migrate(old).document["session"]
    assert (session["started_at"], session["duration_minutes"]) == ("2026-01-09T10:31:00Z", 29)
    bare = {"format_version": "1.0", "session": {"slug": "a"}}
    assert "started_at" not in migrate(bare).document["session"]


def test_an_older_file_that_says_its_times_keeps_them() -> None:
    old = old_document(started_at="2026-01-01T00:00:00Z", duration_minutes=7)
    session = migrate(old).document["session"]
    assert (session["started_at"], session["duration_minutes"]) == ("2026-01-01T00:00:00Z", 7)


@pytest.mark.parametrize("version", ["1.0", 1.0, 1, None])
def test_the_oldest_version_has_several_ways_to_be_written(version: Any) -> None:
    old = old_document()
    old["format_version"] = version
    assert migrate(old).was == "1.0"


def test_a_file_without_a_version_is_of_the_oldest() -> None:
    old = old_document()
    del old["format_version"]
    assert migrate(old).document["session"]["mode"] == "standard"


def test_the_present_version_may_be_a_number() -> None:
    new = document()
    new["format_version"] = 1.2
    migrated = migrate(new)
    assert migrated.document == document()
    assert not migrated.changed


@pytest.mark.parametrize("version", ["1.1", "1.3", "2.0", 2, "latest", True])
def test_a_version_that_is_not_known_is_refused_and_left(version: Any, tmp_path: Path) -> None:
    """Section "Migration", 1: the version is checked on load."""
    new = document()
    new["format_version"] = version
    path = put(tmp_path, "sign-in", new)
    before = path.read_bytes()
    store = BrainstormStore(tmp_path)
    for call in (
        store.load,
        store.finish,
        lambda slug: store.create(slug, new=True),
        lambda slug: store.answer(slug, ["x"]),
    ):
        with pytest.raises(Unsupported, match=r"known are 1\.0 and 1\.2"):
            call("sign-in")
    assert path.read_bytes() == before
    assert [problem.code for problem in store.validate()] == ["unknown_version"]
    assert store.cleanup(0) == []


def test_a_file_whose_new_fields_landed_beside_the_session_is_healed() -> None:
    """Section "Migration v1.0 → v1.2": its code, given the whole document, finds no techniques and fills the root."""
    half = as_the_format_migrates(old_document())
    assert half["mode"] == "standard"
    migrated = migrate(half)
    assert migrated.healed
    assert migrated.document == migrate(old_document()).document


def test_a_file_whose_root_was_forgotten_is_healed_and_keeps_what_came_since() -> None:
    """Section "Migration v1.0 → v1.2": given the session, it leaves the root at 1.0: a load would empty the party."""
    half = old_document()
    as_the_format_migrates(half["session"])
    round_ = {"round": 1, "topic": "Storage", "personas_selected": ["QA"], "contributions": []}
    note = {"iteration": 3, "technique_slug": "six-hats", "applied": True}
    half["session"]["party_history"].append(round_)
    half["session"]["techniques_history"].append(note)
    half["session"] |= {"mode": "party", "party_active": True}
    migrated = migrate(half)
    session = migrated.document["session"]
    assert migrated.healed
    assert migrated.document["format_version"] == "1.2"
    assert "format_version" not in session
    assert session["party_history"] == [round_]
    assert session["techniques_history"][-1] == note
    assert (session["mode"], session["party_active"]) == ("party", True)
    assert session["duration_minutes"] == 30


def test_data_stored_beside_the_session_is_migrated_too() -> None:
    half = as_the_format_migrates(old_document())
    half["party_history"] = [{"round": 1, "topic": "x"}]
    session = migrate(half).document["session"]
    assert session["party_history"] == [{"round": 1, "topic": "x"}]


def test_data_in_both_places_is_kept_in_both() -> None:
    new = document(panel_history=[{"round": 1}])
    new["panel_history"] = [{"round": 2}]
    migrated = migrate(new)
    assert migrated.document["session"]["panel_history"] == [{"round": 1}]
    assert migrated.document["panel_history"] == [{"round": 2}]


pieces = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from([None, "random", "party", "standard", 5]),
        "techniques_used": st.sampled_from([[], ["moscow"], None, "x"]),
        "techniques_history": st.sampled_from([[], [{"iteration": 1}], None]),
        "party_active": st.booleans(),
        "party_history": st.sampled_from([[], [{"round": 1}]]),
        "panel_active": st.booleans(),
        "format_version": st.sampled_from(["1.0", "1.2", 1.2, "9"]),
        "created": st.sampled_from(["2026-01-09T10:30:00Z", "x"]),
        "updated": st.just("2026-01-09T11:00:00Z"),
        "history": st.sampled_from([[], [{"timestamp": "2026-01-09T10:30:00Z"}], "x"]),
        "own": st.just({"kept": [1]}),
    },
)


@given(pieces, pieces, st.booleans())
def test_migrating_twice_is_migrating_once_and_nothing_is_lost(
    session: Any, root: Any, present: bool
) -> None:
    """Section "Migration", 2: migrations in sequence."""
    given_ = {**root, **({"session": session} if present else {})}
    before = copy.deepcopy(given_)
    try:
        once = migrate(given_)
    except Unsupported:
        reject()
    assert given_ == before, "what was given is not changed"
    twice = migrate(once.document)
    assert twice.document == once.document
    if present:
        new = once.document["session"]
        for name in ("party_history", "techniques_history", "techniques_used", "history", "own"):
            if session.get(name):
                assert new[name] == session[name]


def test_loading_an_older_file_for_work_stores_it_with_one_backup(tmp_path: Path) -> None:
    """Sections "Migration", 4: the session is saved; "Backward Compatibility", 1.0 is migrated on load."""
    path = put(tmp_path, "sign-in", old_document())
    before = path.read_bytes()
    store = BrainstormStore(tmp_path)
    found = store.load("sign-in")
    assert found.document == stored(store, "sign-in") == migrate(old_document()).document
    assert path.with_suffix(".yaml.bak").read_bytes() == before
    assert {problem.code for problem in found.problems} == {"old_version"}
    after = path.read_bytes()
    assert store.load("sign-in").problems == []
    assert path.read_bytes() == after
    assert sorted(p.name for p in path.parent.iterdir()) == [
        ".sign-in.lock",
        "sign-in.yaml",
        "sign-in.yaml.bak",
    ]


def test_looking_at_an_older_file_writes_nothing(tmp_path: Path) -> None:
    """Section "Migration", 4: the session is saved."""
    path = put(tmp_path, "sign-in", old_document())
    before = path.read_bytes()
    store = BrainstormStore(tmp_path)
    assert store.load("sign-in", store_migration=False).mode == "standard"
    assert [row.mode for row in store.list()] == ["standard"]
    assert [problem.code for problem in store.validate("sign-in")] == ["old_version"]
    assert [row.slug for row in store.detect().sessions] == ["sign-in"]
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["sign-in.yaml"]


def test_comments_of_an_older_file_survive_its_migration(tmp_path: Path) -> None:
    put(tmp_path, "sign-in", b"# mine\n" + _plain(old_document()))
    store = BrainstormStore(tmp_path)
    store.load("sign-in")
    data = Path(store.path("sign-in")).read_bytes()
    assert data.startswith(b"# mine\n")
    assert load_yaml(data) == migrate(old_document()).document


def test_a_change_of_an_older_file_keeps_a_backup_too(tmp_path: Path) -> None:
    path = put(tmp_path, "sign-in", old_document())
    before = path.read_bytes()
    store = BrainstormStore(tmp_path)
    store.idea("sign-in", "Links by mail", score=5)
    assert path.with_suffix(".yaml.bak").read_bytes() == before
    assert stored(store, "sign-in")["format_version"] == "1.2"


def test_an_existing_backup_is_never_overwritten(tmp_path: Path) -> None:
    path = put(tmp_path, "sign-in", old_document())
    path.with_suffix(".yaml.bak").write_bytes(b"other")
    BrainstormStore(tmp_path).load("sign-in")
    assert path.with_suffix(".yaml.bak").read_bytes() == b"other"
    assert load_yaml((path.parent / "sign-in.yaml.bak-2").read_bytes()) == old_document()


def test_all_older_files_can_be_migrated_at_once(tmp_path: Path) -> None:
    put(tmp_path, "old", old_document("old"))
    put(tmp_path, "half", as_the_format_migrates(old_document("half")))
    put(tmp_path, "new", document("new"))
    put(tmp_path, "broken", b"a: [")
    store = BrainstormStore(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / ".project-memory").rglob("*.yaml")}
    plan = store.migrate(dry_run=True)
    assert {path: path.read_bytes() for path in before} == before
    done = store.migrate()
    assert [(m.slug, m.was, m.healed) for m in plan] == [(m.slug, m.was, m.healed) for m in done]
    assert [(m.slug, m.was, m.healed, m.problem and m.problem.code) for m in done] == [
        ("broken", "", False, "bad_yaml"),
        ("half", "1.2", True, None),
        ("old", "1.0", False, None),
    ]
    for one in done[1:]:
        assert one.backup is not None
        assert Path(one.backup).read_bytes() == before[Path(store.path(one.slug))]
    assert [m.slug for m in store.migrate()] == ["broken"]
    assert store.migrate("new") == []


def _plain(value: Any) -> bytes:
    from sessionary.codec.yaml_write import dump_yaml

    return dump_yaml(value)
