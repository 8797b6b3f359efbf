"""Operations and Storage Rules: create, save, load, detect, finish, abandon, clean up, list."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import (
    AlreadyExists,
    BrainstormStore,
    Conflict,
    Corrupt,
    Invalid,
    InvalidId,
    Locked,
    NotFound,
    SchemaError,
    StorageFailed,
    TransitionError,
)
from sessionary.codec.yaml_edit import comments_of
from sessionary.disk.lock import FileLock
from tests.unit.layouts.brainstorm.samples import (
    FOLDER,
    after,
    document,
    entry,
    golden,
    golden_document,
    old_document,
    put,
    stored,
)


def store_of(root: Path, slug: str = "sign-in", **changes: Any) -> BrainstormStore:
    put(root, slug, document(slug, **changes))
    return BrainstormStore(root)


def codes(problems: Any) -> list[str]:
    return [problem.code for problem in problems]


# -- create. [Storage Rules] 1 and 3: one file per session, the folder is made


def test_a_new_session_has_every_field_of_the_schema_in_its_order(tmp_path: Path) -> None:
    """Section "Schema v1.2", every field in its place."""
    store = BrainstormStore(tmp_path / "new project")
    found = store.create("sign-in", questions=["Who?", "Why?"], now=after())
    assert store.path("sign-in") == str(tmp_path / "new project" / FOLDER / "sign-in.yaml")
    session = {
        "id": "sign-in-2026-01-09",
        "slug": "sign-in",
        "status": "in_progress",
        "phase": "divergent",
        "mode": "standard",
        "ems": 25,
        "persona": "architecte",
        "iteration": 1,
        "techniques_used": [],
        "started_at": "2026-01-09T10:30:00Z",
        "duration_minutes": 0,
        "techniques_history": [],
        "party_active": False,
        "party_history": [],
        "panel_active": False,
        "panel_history": [],
        "ideas": [],
        "history": [
            {
                "iteration": 1,
                "phase": "divergent",
                "ems": 25,
                "ems_delta": 0,
                "questions": ["Who?", "Why?"],
                "responses": [],
                "timestamp": "2026-01-09T10:30:00Z",
            }
        ],
        "last_question": "Why?",
        "created": "2026-01-09T10:30:00Z",
        "updated": "2026-01-09T10:30:00Z",
    }
    assert found.document == stored(store, "sign-in") == {"format_version": "1.2", "session": session}
    assert list(stored(store, "sign-in")["session"]) == list(session)
    assert store.validate("sign-in", strict=True) == found.problems == []
    assert (found.id, found.created, found.questions) == (session["id"], after(), ["Who?", "Why?"])


@pytest.mark.parametrize("slug", ["../x", "A", "", "a b", "a--b", None, 5])
def test_a_name_that_is_not_a_slug_is_refused_everywhere(tmp_path: Path, slug: Any) -> None:
    """Section "Schema v1.2", slug in kebab-case."""
    store = BrainstormStore(tmp_path)
    for call in (store.create, store.load, store.back, store.finish, store.restore, store.path):
        with pytest.raises(InvalidId):
            call(slug)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"persona": "boss"},
        {"mode": "random"},
        {"phase": "done"},
        {"ems": 101},
        {"ems": "5"},
        {"questions": [5]},
        {"axes": {"Clarte": 5}},
    ],
)
def test_a_call_may_set_only_words_of_the_closed_lists(tmp_path: Path, wrong: Any) -> None:
    """Section "Schema v1.2", enums are closed for calls."""
    with pytest.raises(Invalid) as caught:
        BrainstormStore(tmp_path).create("sign-in", **wrong)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", ["in_progress", "completed", "abandoned"])
def test_a_name_that_is_taken_is_reported_with_its_status(tmp_path: Path, status: str) -> None:
    """Section "Storage Rules", 1: one file a session, by its slug."""
    store = store_of(tmp_path, status=status)
    before = stored(store, "sign-in")
    with pytest.raises(AlreadyExists, match=status) as caught:
        store.create("sign-in")
    assert caught.value.details == {"status": status}
    assert stored(store, "sign-in") == before


def test_a_new_session_moves_the_one_in_progress_to_the_archive_as_abandoned(tmp_path: Path) -> None:
    """Section "Load Session (Auto-detect)", 2 begins anew."""
    store = store_of(tmp_path)
    before = stored(store, "sign-in")
    store.create("sign-in", new=True, now=after(60))
    archived = Path(store.folder, "archive", "sign-in-2026-01-09.yaml")
    from sessionary.codec.yaml_read import load_yaml

    kept = load_yaml(archived.read_bytes())
    before["session"] |= {"status": "abandoned", "updated": "2026-01-09T11:30:00Z"}
    assert kept == before
    assert stored(store, "sign-in")["session"]["iteration"] == 1


def test_what_is_archived_never_replaces_what_is_there(tmp_path: Path) -> None:
    """Section "Storage Rules", 1: one file a session, by its slug."""
    store = store_of(tmp_path, status="completed")
    first = Path(store.path("sign-in")).read_bytes()
    for minute in range(3):
        store.create("sign-in", new=True, now=after(minute))
    archive = Path(store.folder, "archive")
    assert sorted(os.listdir(archive)) == [
        "sign-in-2026-01-09-2.yaml",
        "sign-in-2026-01-09-3.yaml",
        "sign-in-2026-01-09.yaml",
    ]
    assert (archive / "sign-in-2026-01-09.yaml").read_bytes() == first
    assert [row.slug for row in store.list()] == ["sign-in"]


def test_an_unreadable_file_is_reported_and_never_overwritten(tmp_path: Path) -> None:
    """Section "Storage Rules", 4: valid YAML, required fields present."""
    path = put(tmp_path, "sign-in", b"session: [\n")
    store = BrainstormStore(tmp_path)
    for call in (store.load, store.finish, lambda slug: store.create(slug, new=True)):
        with pytest.raises(Corrupt, match="line 2"):
            call("sign-in")
    assert path.read_bytes() == b"session: [\n"
    found = store.detect("sign-in")
    assert (found.sessions, codes(found.problems)) == ([], ["bad_yaml"])
    assert codes(store.detect().problems) == ["bad_yaml"]


# -- save. [Save Session]


def test_a_save_of_an_unchanged_session_writes_nothing(tmp_path: Path) -> None:
    """Sections "Example (v1.2)", "Example with Party Mode Active", "Example with Expert Panel Active"."""
    for name in ("feature-auth", "feature-checkout", "refactor-api"):
        path = put(tmp_path, name, golden(name))
        store = BrainstormStore(tmp_path)
        found = store.load(name)
        stat = path.stat()
        assert store.save(found, now=after(days=3)) is False
        found.session["updated"] = "2030-01-01T00:00:00Z"
        assert store.save(found, now=after(days=3)) is False, "a new time alone is not a change"
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (golden(name), stat.st_mtime_ns)


def test_a_version_that_is_a_number_is_not_a_change_either(tmp_path: Path) -> None:
    data = golden("refactor-api").replace(b'format_version: "1.2"', b"format_version: 1.2")
    path = put(tmp_path, "refactor-api", data)
    store = BrainstormStore(tmp_path)
    assert store.save(store.load("refactor-api")) is False
    assert path.read_bytes() == data


def test_a_save_stores_the_change_and_its_time(tmp_path: Path) -> None:
    """Section "Save Session", explicit."""
    store = store_of(tmp_path)
    found = store.load("sign-in")
    found.session["persona"] = "pragmatique"
    found.session["own key"] = {"kept": [1, None]}
    assert store.save(found, now=after(days=1)) is True
    session = stored(store, "sign-in")["session"]
    assert (session["persona"], session["own key"]) == ("pragmatique", {"kept": [1, None]})
    assert session["updated"] == "2026-01-10T10:30:00Z"
    assert store.save(found) is False
    found.session["persona"] = "sparring"
    assert store.save(found) is True, "the same session can be saved again and again"


def test_comments_and_unknown_keys_survive_every_change(tmp_path: Path) -> None:
    data = golden("feature-auth").replace(b"  ideas:\n", b"  planner_threshold: 70\n  ideas:\n")
    path = put(tmp_path, "feature-auth", data)
    store = BrainstormStore(tmp_path)
    store.answer("feature-auth", ["Par liste"], now=after(60))
    store.technique("feature-auth", "six-hats", applied=True)
    store.back("feature-auth")
    assert set(comments_of(data)) <= set(comments_of(path.read_bytes()))
    assert stored(store, "feature-auth")["session"]["planner_threshold"] == 70
    changed_lines = set(path.read_bytes().splitlines()) - set(data.splitlines())
    assert all(b"moscow" not in line or b"six-hats" in line for line in changed_lines)


def test_a_save_refuses_all_that_is_wrong_at_once_and_writes_nothing(tmp_path: Path) -> None:
    """Section "Storage Rules", 4: valid YAML, required fields present."""
    store = store_of(tmp_path)
    found = store.load("sign-in")
    before = Path(store.path("sign-in")).read_bytes()
    found.session.update(ems=200, iteration=None, persona="boss", ideas=[{"id": 1, "score": 11}])
    with pytest.raises(SchemaError) as caught:
        store.save(found)
    faults = "\n".join(caught.value.details["faults"])
    for place in ("session.ems", "session.iteration", "session.persona", "session.ideas[0].score"):
        assert place in faults
    assert Path(store.path("sign-in")).read_bytes() == before


def test_a_strange_word_that_is_in_the_file_already_may_stay(tmp_path: Path) -> None:
    store = store_of(tmp_path, persona="grand-mere")
    found = store.load("sign-in")
    assert codes(found.problems) == ["strange_word"]
    found.session["last_question"] = "And?"
    assert store.save(found) is True
    assert stored(store, "sign-in")["session"]["persona"] == "grand-mere"
    store.answer("sign-in", ["x"])
    assert stored(store, "sign-in")["session"]["persona"] == "grand-mere"


def test_two_hands_in_one_session_are_a_conflict_and_nothing_is_lost(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    mine, theirs = store.load("sign-in"), store.load("sign-in")
    theirs.session["last_question"] = "Theirs?"
    store.save(theirs)
    mine.session["last_question"] = "Mine?"
    with pytest.raises(Conflict) as caught:
        store.save(mine)
    assert (caught.value.operation, caught.value.session) == ("save", "sign-in")
    assert stored(store, "sign-in")["session"]["last_question"] == "Theirs?"
    mine.session["last_question"] = "Theirs?"
    assert store.save(mine) is False, "who wants the same does not disagree"


def test_a_session_that_is_gone_is_not_made_again_by_a_save(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    found = store.load("sign-in")
    os.unlink(store.path("sign-in"))
    with pytest.raises(NotFound):
        store.save(found)
    assert not os.path.exists(store.path("sign-in"))


def test_a_save_cannot_open_a_finished_session_again(tmp_path: Path) -> None:
    store = store_of(tmp_path, status="completed")
    found = store.load("sign-in")
    found.session["status"] = "in_progress"
    with pytest.raises(TransitionError):
        store.save(found)


def test_a_save_takes_sessions_only(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    with pytest.raises(Invalid):
        store.save(stored(store, "sign-in"))  # type: ignore[arg-type]


def test_a_session_made_elsewhere_can_be_saved_under_a_free_name(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    copy_of = store.load("sign-in")
    copy_of.document = copy.deepcopy(copy_of.document)
    copy_of.session.update(slug="other", id="other-2026-01-09")
    copy_of.stored = None
    assert store.save(copy_of) is True
    assert [row.slug for row in store.list()] == ["other", "sign-in"]


# -- load


def test_a_missing_session_is_not_found_and_leaves_no_lock(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    for call in (store.load, store.finish, store.back, store.validate, store.migrate, store.restore):
        with pytest.raises(NotFound) as caught:
            call("nobody")
        assert caught.value.session == "nobody"
    assert not os.path.exists(os.path.join(store.folder, ".nobody.lock"))


def test_a_project_without_sessions_has_none(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path / "nothing")
    assert (list(store.list()), store.detect(), store.validate(), store.cleanup(), store.migrate()) == (
        [], ([], []), [], [], [],
    )  # fmt: skip
    assert not (tmp_path / "nothing").exists()


def test_a_session_without_state_is_refused_with_all_faults(tmp_path: Path) -> None:
    """Section "Storage Rules", 4: valid YAML, required fields present."""
    value = document()
    del value["session"]["ems"]
    value["session"]["iteration"] = "three"
    put(tmp_path, "sign-in", value)
    store = BrainstormStore(tmp_path)
    with pytest.raises(SchemaError) as caught:
        store.load("sign-in")
    assert len(caught.value.details["faults"]) == 2
    assert store.path("sign-in") in str(caught.value)
    assert codes(store.validate("sign-in")) == ["missing_field", "bad_field"]


@pytest.mark.parametrize(
    ("name", "defaulted"),
    [
        ("feature-auth", []),
        ("feature-checkout", ["started_at", "duration_minutes"]),
        ("refactor-api", ["persona", "started_at", "duration_minutes"]),
    ],
)
def test_the_examples_of_the_format_load_and_are_valid_unless_strictly(
    tmp_path: Path, name: str, defaulted: list[str]
) -> None:
    """Sections "Example (v1.2)", "Example with Party Mode Active", "Example with Expert Panel Active"."""
    path = put(tmp_path, name, golden(name))
    store = BrainstormStore(tmp_path)
    found = store.load(name)
    assert found.document == golden_document(name)
    assert codes(found.problems) == ["defaulted_field"] * len(defaulted)
    strict = store.validate(name, strict=True)
    assert codes(strict) == ["missing_field"] * len(defaulted)
    assert [problem.message.partition(":")[0] for problem in strict] == [f"session.{n}" for n in defaulted]
    assert path.read_bytes() == golden(name)


def test_the_example_of_a_party_reads_as_it_says(tmp_path: Path) -> None:
    """Section "Example with Party Mode Active", says what it says."""
    put(tmp_path, "feature-checkout", golden("feature-checkout"))
    found = BrainstormStore(tmp_path).load("feature-checkout")
    assert (found.mode, found.persona, found.iteration, found.history) == ("party", "architecte", 2, [])
    assert found.session["party_history"][0]["contributions"][2]["references"] == ["Architect", "Security"]


def test_the_example_of_a_panel_reads_as_it_says(tmp_path: Path) -> None:
    """Section "Example with Expert Panel Active", says what it says."""
    put(tmp_path, "refactor-api", golden("refactor-api"))
    found = BrainstormStore(tmp_path).load("refactor-api")
    assert (found.mode, found.persona, found.ems, found.suggested_phase) == (
        "panel",
        "architecte",
        68,
        "convergent",
    )
    assert len(found.session["panel_history"][0]["synthesis"]["tensions"]) == 2


def test_the_full_example_continues(tmp_path: Path) -> None:
    """Section "Example (v1.2)", can be gone on with."""
    put(tmp_path, "feature-auth", golden("feature-auth"))
    store = BrainstormStore(tmp_path)
    found = store.load("feature-auth")
    assert (found.ems_line, found.tip, len(found.ideas)) == ([25, 38, 52], 3, 3)
    assert store.back("feature-auth", 2).questions == [
        "Quel type d'authentification privilegier?",
        "Quels sont les utilisateurs cibles?",
    ]
    store.continue_("feature-auth")
    store.continue_("feature-auth")
    assert (
        stored(store, "feature-auth")["session"]["last_question"]
        == "Quel mecanisme de revocation privilegier?"
    )


# -- detect and launch. [Load Session (Auto-detect)]


def test_all_that_are_in_progress_are_found_the_newest_first(tmp_path: Path) -> None:
    """Section "Load Session (Auto-detect)", sessions that are there are found."""
    times = {"old": "2026-01-01T00:00:00Z", "new": "2026-01-08T00:00:00Z", "mid": "2026-01-05T00:00:00Z"}
    for slug, time in times.items():
        put(tmp_path, slug, document(slug, updated=time))
    put(tmp_path, "over", document("over", status="completed"))
    put(tmp_path, "broken", b"\x00")
    found = BrainstormStore(tmp_path).detect()
    assert [row.slug for row in found.sessions] == ["new", "mid", "old"]
    assert codes(found.problems) == ["bad_yaml"]


def test_a_session_that_is_asked_for_is_found_whatever_its_status(tmp_path: Path) -> None:
    """Section "Load Session (Auto-detect)", sessions that are there are found."""
    store = store_of(tmp_path, status="abandoned")
    assert [row.status for row in store.detect("sign-in").sessions] == ["abandoned"]
    assert store.detect("nobody") == ([], [])


def test_a_launch_cleans_up_and_then_looks(tmp_path: Path) -> None:
    """Section "Storage Rules", 2: after 30 days, completed or abandoned."""
    store = store_of(tmp_path)
    put(tmp_path, "over", document("over", status="completed"))
    found, cleaned = store.launch(now=after(days=60))
    assert ([row.slug for row in found.sessions], [c.row.slug for c in cleaned]) == (["sign-in"], ["over"])
    put(tmp_path, "over", document("over", status="completed"))
    put(tmp_path, "also", document("also", status="abandoned"))
    found, cleaned = store.launch("over", now=after(days=60))
    assert ([row.slug for row in found.sessions], [c.row.slug for c in cleaned]) == (["over"], ["also"])


# -- finish, abandon


def test_finishing_completes_once(tmp_path: Path) -> None:
    """Section "Save Session", before finish."""
    store = store_of(tmp_path, ems=60, history=[entry(3, 60, phase="divergent")])
    assert store.finish("sign-in", now=after(90)).status == "completed"
    session = stored(store, "sign-in")["session"]
    assert (session["status"], session["duration_minutes"]) == ("completed", 30)
    assert session["updated"] == "2026-01-09T12:00:00Z"
    before = Path(store.path("sign-in")).read_bytes()
    assert store.finish("sign-in", now=after(120)).problems == []
    assert Path(store.path("sign-in")).read_bytes() == before


def test_finishing_early_is_reported(tmp_path: Path) -> None:
    assert codes(store_of(tmp_path, ems=59, history=[]).finish("sign-in").problems) == ["low_score"]


def test_giving_up_abandons(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    assert store.abandon("sign-in").status == "abandoned"
    assert store.abandon("sign-in").status == "abandoned"
    with pytest.raises(TransitionError):
        store.finish("sign-in")


# -- techniques. [Enhanced Technique Tracking]


def test_a_suggestion_that_is_applied_is_one_note(tmp_path: Path) -> None:
    """Section "v5.0: Enhanced Technique Tracking", suggested, then applied or not."""
    store = store_of(tmp_path)
    store.technique(
        "sign-in", "six-hats", category="structured", reason="Couverture 38%", weak_axes=["Couverture"]
    )
    note = {
        "iteration": 3,
        "technique_slug": "six-hats",
        "category": "structured",
        "suggested_reason": "Couverture 38%",
        "applied": False,
        "source": "auto",
        "weak_axes": ["Couverture"],
    }
    session = stored(store, "sign-in")["session"]
    assert (session["techniques_history"], session["techniques_used"]) == ([note], [])
    store.technique("sign-in", "six-hats", applied=True)
    session = stored(store, "sign-in")["session"]
    assert session["techniques_history"] == [{**note, "applied": True}]
    assert session["techniques_used"] == ["six-hats"]


def test_a_technique_is_named_once_among_those_that_were_used(tmp_path: Path) -> None:
    """Section "Backward Compatibility", techniques_used in parallel with techniques_history."""
    store = store_of(tmp_path, techniques_used=["moscow"])
    for iteration in (1, 2):
        store.technique("sign-in", "5whys", applied=True, source="manual")
        store.continue_("sign-in", [f"{iteration}?"])
    store.technique("sign-in", "moscow")
    session = stored(store, "sign-in")["session"]
    assert session["techniques_used"] == ["moscow", "5whys"]
    assert [note["iteration"] for note in session["techniques_history"]] == [3, 4, 5]


def test_a_random_choice_is_counted_by_category(tmp_path: Path) -> None:
    """Section "Mode-Specific State (v4.2 - Legacy)", random_state counts the choices by category."""
    store = store_of(tmp_path)
    for category in ("ideation", "analysis", "ideation"):
        store.technique("sign-in", "moscow", category=category, source="random")
    assert stored(store, "sign-in")["session"]["random_state"] == {
        "last_category": "ideation",
        "category_counts": {"ideation": 2, "analysis": 1},
    }


@pytest.mark.parametrize("source", ["auto", "manual", "progressive"])
def test_any_other_choice_is_not_counted(tmp_path: Path, source: str) -> None:
    """Section "Mode-Specific State (v4.2 - Legacy)", random_state counts the choices by category."""
    store = store_of(tmp_path)
    store.technique("sign-in", "moscow", source=source)
    session = stored(store, "sign-in")["session"]
    assert session["techniques_history"][0]["source"] == source
    assert "random_state" not in session


@pytest.mark.parametrize("wrong", [{"source": "dice"}, {"technique": "Six Hats"}, {"weak_axes": [5]}])
def test_a_technique_has_a_slug_and_a_source(tmp_path: Path, wrong: Any) -> None:
    """Section "v5.0: Enhanced Technique Tracking", source is one of four."""
    with pytest.raises(Invalid):
        store_of(tmp_path).technique("sign-in", **{"technique": "moscow", **wrong})


# -- party and panel. [Party Mode State], [Expert Panel State]


def test_a_round_of_the_party_has_every_field(tmp_path: Path) -> None:
    """Section "v5.0: Party Mode State", a round."""
    store = store_of(tmp_path)
    said = [
        {"persona": "Architect", "key_points": ["One gateway"]},
        {"persona": "QA", "references": ["Architect"], "mood": "doubtful"},
    ]
    number = store.party("sign-in", "Storage", said, synthesis="SyncedState", user_question="Which one?")
    assert number == 1
    assert store.party("sign-in", "Cost", personas=["Backend"]) == 2
    session = stored(store, "sign-in")["session"]
    assert (session["mode"], session["party_active"], session["panel_active"]) == ("party", True, False)
    assert session["party_history"][0] == {
        "round": 1,
        "topic": "Storage",
        "personas_selected": ["Architect", "QA"],
        "contributions": [
            {"persona": "Architect", "key_points": ["One gateway"], "references": []},
            {"persona": "QA", "key_points": [], "references": ["Architect"], "mood": "doubtful"},
        ],
        "synthesis": "SyncedState",
        "user_question": "Which one?",
    }
    assert session["party_history"][1]["personas_selected"] == ["Backend"]


def test_a_round_of_the_panel_has_every_field_and_ends_the_party(tmp_path: Path) -> None:
    """Section "v5.0: Expert Panel State", a round."""
    store = store_of(tmp_path)
    store.party("sign-in", "Storage")
    said = [{"expert": "Beck", "framework": "TDD", "position": "Test it first"}]
    number = store.panel("sign-in", "Tests", said, phase="socratic", convergent=["Tests"], tensions=["Speed"])
    session = stored(store, "sign-in")["session"]
    assert (session["mode"], session["party_active"], session["panel_active"]) == ("panel", False, True)
    assert (number, len(session["party_history"])) == (1, 1)
    assert session["panel_history"] == [
        {
            "round": 1,
            "topic": "Tests",
            "phase": "socratic",
            "experts_selected": ["Beck"],
            "contributions": [
                {"expert": "Beck", "framework": "TDD", "position": "Test it first", "references": []}
            ],
            "synthesis": {"convergent": ["Tests"], "tensions": ["Speed"]},
        }
    ]


def test_leaving_a_mode_keeps_what_was_noted_in_it(tmp_path: Path) -> None:
    """Section "Overview", modes standard, party and panel."""
    store = store_of(tmp_path)
    store.party("sign-in", "Storage")
    found = store.update("sign-in", mode="standard")
    assert (found.mode, found.session["party_active"], len(found.session["party_history"])) == (
        "standard",
        False,
        1,
    )
    assert store.validate("sign-in", strict=True) == []


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("party", {"topic": 5}),
        ("party", {"topic": "x", "contributions": [{}]}),
        ("party", {"topic": "x", "contributions": [{"persona": "QA", "key_points": [5]}]}),
        ("panel", {"topic": "x", "phase": "fight"}),
        ("panel", {"topic": "x", "contributions": [{"expert": ""}]}),
        ("panel", {"topic": "x", "convergent": [5]}),
        ("update", {"mode": "random"}),
        ("update", {"persona": "boss"}),
        ("update", {"phase": "later"}),
        ("update", {"ems": -1}),
    ],
)
def test_a_call_that_breaks_the_format_changes_nothing(tmp_path: Path, call: str, arguments: Any) -> None:
    store = store_of(tmp_path)
    before = Path(store.path("sign-in")).read_bytes()
    with pytest.raises(Invalid):
        getattr(store, call)("sign-in", **arguments)
    assert Path(store.path("sign-in")).read_bytes() == before


# -- ideas. [Ideas]


def test_ideas_are_numbered_in_order_and_scored(tmp_path: Path) -> None:
    """Section "Ideas", sequential id, content, score 0 to 10."""
    store = store_of(tmp_path)
    assert [
        store.idea("sign-in", text, score=score) for text, score in (("a", 0), ("b", 10), ("c", None))
    ] == [1, 2, 3]
    store.score_idea("sign-in", 2, 4)
    assert store.load("sign-in").ideas == [
        {"id": 1, "content": "a", "score": 0},
        {"id": 2, "content": "b", "score": 4},
        {"id": 3, "content": "c"},
    ]
    with pytest.raises(NotFound, match="no idea 9"):
        store.score_idea("sign-in", 9, 1)
    for wrong in (11, -1, "5", 5.5):
        with pytest.raises(Invalid):
            store.idea("sign-in", "d", score=wrong)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        store.idea("sign-in", " ")


# -- clean-up. [Storage Rules] 2


def test_ended_sessions_are_trashed_after_thirty_days(tmp_path: Path) -> None:
    """Section "Storage Rules", 2: after 30 days, completed or abandoned."""
    last = after(30)
    for status in ("completed", "abandoned", "in_progress"):
        put(tmp_path, status.replace("_", "-"), document(status.replace("_", "-"), status=status))
    store = BrainstormStore(tmp_path)
    assert store.cleanup(now=last + timedelta(days=30)) == []
    later = last + timedelta(days=30, seconds=1)
    plan = store.cleanup(now=later, dry_run=True)
    assert [(c.row.slug, c.moved_to) for c in plan] == [("abandoned", None), ("completed", None)]
    assert len(list(store.list())) == 3
    done = store.cleanup(now=later)
    trash = os.path.join(store.folder, ".trash", "20260208T110001.000000Z")
    assert [c.moved_to for c in done] == [f"{trash}/abandoned.yaml", f"{trash}/completed.yaml"]
    assert [row.slug for row in store.list()] == ["in-progress"]
    assert store.cleanup(now=later) == []


def test_the_age_is_that_of_the_last_change_in_the_file_else_of_its_beginning(tmp_path: Path) -> None:
    value = document(status="completed")
    del value["session"]["updated"]
    path = put(tmp_path, "sign-in", value)
    os.utime(path, (1, 1))
    store = BrainstormStore(tmp_path)
    assert store.cleanup(now=after(days=30), dry_run=True) == []
    assert len(store.cleanup(now=after(days=30, seconds=1), dry_run=True)) == 1
    for name in ("created", "started_at"):
        del value["session"][name]
    put(tmp_path, "sign-in", value)
    assert store.cleanup(now=after(days=9999)) == [], "of unknown age"


def test_nothing_but_readable_sessions_is_ever_cleaned_up(tmp_path: Path) -> None:
    """Section "Storage Rules", 2: after 30 days, completed or abandoned."""
    store = store_of(tmp_path, status="completed")
    folder = Path(store.folder)
    put(tmp_path, "broken", b"session: {status: completed")
    put(tmp_path, "wrong", document("other", status="completed"))
    put(tmp_path, "newer", {**document("newer", status="completed"), "format_version": "2.0"})
    (folder / "archive").mkdir()
    for stranger in ("archive/sign-in.yaml", "notes.md", "sign-in.yaml.bak-2", ".hidden.yaml", "UPPER.yaml"):
        (folder / stranger).write_bytes((folder / "sign-in.yaml").read_bytes())
    (folder / "folder.yaml").mkdir()
    kept = {p for p in folder.rglob("*") if p.name != "sign-in.yaml" or p.parent.name == "archive"}
    assert [c.row.slug for c in store.cleanup(0, now=after(days=99))] == ["sign-in"]
    assert kept <= set(folder.rglob("*"))


def test_a_backup_is_trashed_and_restored_with_its_session(tmp_path: Path) -> None:
    store = store_of(tmp_path, status="completed")
    before = Path(store.path("sign-in")).read_bytes()
    Path(f"{store.path('sign-in')}.bak").write_bytes(b"old")
    [done] = store.cleanup(now=after(days=99))
    assert not Path(f"{store.path('sign-in')}.bak").exists()
    assert store.restore("sign-in") == store.path("sign-in")
    assert Path(store.path("sign-in")).read_bytes() == before
    assert Path(f"{store.path('sign-in')}.bak").read_bytes() == b"old"
    assert done.moved_to is not None
    assert not os.path.exists(os.path.dirname(done.moved_to))


def test_restore_takes_the_last_of_several_if_its_name_is_free(tmp_path: Path) -> None:
    store = store_of(tmp_path, status="completed", last_question="first")
    store.cleanup(now=after(days=99))
    put(tmp_path, "sign-in", document(status="completed", last_question="second"))
    store.cleanup(now=after(days=99))
    put(tmp_path, "sign-in", document(last_question="third"))
    with pytest.raises(AlreadyExists):
        store.restore("sign-in")
    os.unlink(store.path("sign-in"))
    store.restore("sign-in")
    assert store.load("sign-in").session["last_question"] == "second"


def test_erasing_must_be_asked_for(tmp_path: Path) -> None:
    store = store_of(tmp_path, status="completed")
    Path(f"{store.path('sign-in')}.bak").write_bytes(b"old")
    [done] = store.cleanup(now=after(days=99), erase=True)
    assert done.moved_to is None
    left = {p.relative_to(store.folder).as_posix() for p in Path(store.folder).rglob("*") if p.is_file()}
    assert left == {".sign-in.lock", ".cleaned-up/sign-in"}
    with pytest.raises(NotFound):
        store.restore("sign-in")


@pytest.mark.parametrize("days", [-1, "30", 1.5, True])
def test_days_are_a_whole_number(tmp_path: Path, days: Any) -> None:
    with pytest.raises(Invalid):
        BrainstormStore(tmp_path).cleanup(days)


def test_a_session_in_use_is_left_and_reported(tmp_path: Path) -> None:
    put(tmp_path, "sign-in", document(status="completed"))
    store = BrainstormStore(tmp_path, timeout=0)
    with FileLock(os.path.join(store.folder, ".sign-in.lock")).held():
        [done] = store.cleanup(now=after(days=99))
    assert (done.moved_to, done.problem and done.problem.code) == (None, "not_moved")
    assert os.path.exists(store.path("sign-in"))


# -- list, validate, locks


def test_a_list_shows_every_session_with_what_is_odd_about_it(tmp_path: Path) -> None:
    put(tmp_path, "feature-auth", golden("feature-auth"))
    put(tmp_path, "broken", b"a: b: c")
    rows = list(BrainstormStore(tmp_path).list())
    assert [(row.slug, row.readable, row.health) for row in rows] == [
        ("broken", False, "stops_resume"),
        ("feature-auth", True, "ok"),
    ]
    row = rows[1]
    assert (row.ems, row.phase, row.iteration, row.ems_line, row.ideas) == (
        52,
        "divergent",
        3,
        (25, 38, 52),
        3,
    )
    assert (row.iterations, row.answered, row.mode, row.persona) == (3, 2, "standard", "architecte")
    assert row.updated == after(30)
    assert row.size == len(golden("feature-auth"))


def test_all_sessions_can_be_validated_at_once(tmp_path: Path) -> None:
    put(tmp_path, "a", document("a", ems=500))
    put(tmp_path, "b", document("c"))
    put(tmp_path, "D", document("d"))
    put(tmp_path, "e", b"- a list")
    problems = BrainstormStore(tmp_path).validate()
    assert [(os.path.basename(p.path), p.code) for p in problems] == [
        ("D.yaml", "slug_differs"),
        ("D.yaml", "odd_name"),
        ("a.yaml", "bad_field"),
        ("a.yaml", "cursor_differs"),
        ("b.yaml", "slug_differs"),
        ("e.yaml", "missing_field"),
    ]
    assert all(problem.repair for problem in problems)


def test_writers_of_one_session_wait_for_each_other(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    impatient = BrainstormStore(tmp_path, timeout=0)
    with FileLock(os.path.join(store.folder, ".sign-in.lock")).held():
        with pytest.raises(Locked):
            impatient.answer("sign-in", ["x"])
        assert impatient.load("sign-in").iteration == 3, "readers do not wait"


def test_answers_of_many_threads_are_all_there(tmp_path: Path) -> None:
    store = store_of(tmp_path, history=[entry(3, 50, responses=[])])
    threads = [
        threading.Thread(target=lambda n=n: [store.answer("sign-in", [f"{n}-{i}"]) for i in range(5)])
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {f"{n}-{i}" for n in range(6) for i in range(5)}
    assert set(stored(store, "sign-in")["session"]["history"][0]["responses"]) == wanted


def test_one_word_outside_utf8_or_a_bomb_stops_no_list(tmp_path: Path) -> None:
    laughs = b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 8)) for c in range(98, 110)
    )
    for slug, data in (("bomb", laughs), ("deep", b"[" * 50_000), ("latin", b"a: \xe9")):
        put(tmp_path, slug, data)
    put(tmp_path, "fine", document("fine"))
    found = {row.slug: codes(row.problems) for row in BrainstormStore(tmp_path).list()}
    assert found == {"bomb": ["too_many_aliases"], "deep": ["too_deep"], "fine": [], "latin": ["bad_utf8"]}


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    path = put(tmp_path, "huge", b"")
    with path.open("r+b") as file:
        file.truncate(40 << 30)
    put(tmp_path, "fine", document("fine"))
    store = BrainstormStore(tmp_path)
    assert {row.slug: codes(row.problems) for row in store.list()} == {"fine": [], "huge": ["too_large"]}
    with pytest.raises(Corrupt, match="more than"):
        store.load("huge")


def test_a_file_that_may_not_be_read_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "fine", document("fine"))
    (tmp_path / FOLDER / "folder.yaml").mkdir()
    rows = {row.slug: codes(row.problems) for row in BrainstormStore(tmp_path).list()}
    assert rows == {"fine": [], "folder": ["unreadable_file"]}
    with pytest.raises(StorageFailed):
        BrainstormStore(tmp_path).load("folder")


def test_a_single_question_or_answer_may_be_a_text(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)
    assert store.create("sign-in", questions="Who?").questions == ["Who?"]
    store.answer("sign-in", "Me")
    assert store.continue_("sign-in", "Why?").questions == ["Why?"]
    session = stored(store, "sign-in")["session"]
    assert [(e["questions"], e["responses"]) for e in session["history"]] == [
        (["Who?"], ["Me"]),
        (["Why?"], []),
    ]
    assert session["last_question"] == "Why?"


def test_what_no_file_can_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = put(tmp_path, "old", old_document("old"))
    before = path.read_bytes()
    with pytest.raises(Invalid, match="surrogate"):
        BrainstormStore(tmp_path).answer("old", ["\ud800"])
    assert path.read_bytes() == before
    assert not path.with_suffix(".yaml.bak").exists()


def test_a_suggestion_alone_adds_no_field_of_those_that_were_used(tmp_path: Path) -> None:
    """Section "Backward Compatibility", techniques_used in parallel with techniques_history."""
    put(tmp_path, "refactor-api", golden("refactor-api"))
    store = BrainstormStore(tmp_path)
    store.technique("refactor-api", "moscow")
    assert "techniques_used" not in stored(store, "refactor-api")["session"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_named_like_a_session_is_reported_and_never_waited_for(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    os.mkfifo(store.path("pipe"))
    assert {row.slug: row.readable for row in store.list()} == {"pipe": False, "sign-in": True}
    assert codes(store.validate()) == ["unreadable_file"]
    calls: list[Callable[[], object]] = [
        lambda: store.load("pipe"),
        lambda: store.answer("pipe", ["x"]),
        lambda: store.create("pipe", new=True),
        lambda: store.back("pipe"),
    ]
    for call in calls:
        with pytest.raises(StorageFailed, match="not a regular file"):
            call()
    assert [done.problem and done.problem.code for done in store.migrate()] == ["not_migrated"]
    assert store.cleanup(0, now=after(days=90)) == []
    assert store.detect().problems


def test_a_migration_of_all_is_stopped_by_none(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)
    put(tmp_path, "Odd Name", old_document("odd"))
    put(tmp_path, "good", old_document("good"))
    put(tmp_path, "newer", document("newer") | {"format_version": "2.0"})
    (Path(store.folder) / "folder.yaml").mkdir()
    done = {one.slug: one.problem and one.problem.code for one in store.migrate()}
    assert done == {
        "Odd Name": "not_migrated",
        "folder": "not_migrated",
        "good": None,
        "newer": "unknown_version",
    }
    assert stored(store, "good")["format_version"] == "1.2"


def test_a_strict_check_wants_the_version_too(tmp_path: Path) -> None:
    """Section "Session Metadata", required fields."""
    without = {"session": document("sign-in")["session"]}
    put(tmp_path, "sign-in", without)
    store = BrainstormStore(tmp_path)
    assert codes(store.validate("sign-in")) == ["old_version"]
    assert codes(store.validate("sign-in", strict=True)) == ["missing_field", "old_version"]


@pytest.mark.parametrize("call", ["update", "answer", "continue_", "save"])
def test_a_change_of_the_phase_is_stored_at_once(tmp_path: Path, call: str) -> None:
    """Section "Save Session", on a change of the phase."""
    store = store_of(tmp_path, phase="divergent", ems=50, history=[entry(3, 50, phase="divergent")])
    if call == "save":
        session = store.load("sign-in")
        session.session["phase"] = "convergent"
        assert store.save(session, now=after(60))
    else:
        given = {"answer": [["yes"]], "continue_": [["And now?"]]}.get(call, [])
        getattr(store, call)("sign-in", *given, phase="convergent", now=after(60))
    session = stored(store, "sign-in")["session"]
    assert (session["phase"], session["updated"]) == ("convergent", "2026-01-09T11:30:00Z")
