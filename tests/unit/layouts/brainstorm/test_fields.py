"""Schema and field descriptions: every field has its type and its rule.

The names of sections are those of the format's specification.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sessionary.layouts.brainstorm.constants import is_id, is_slug, read_time, score_of
from sessionary.layouts.brainstorm.fields import faults_of
from sessionary.model import Severity
from tests.unit.layouts.brainstorm.samples import document, golden, golden_document


def full() -> dict[str, Any]:
    """A session in which every field of every table is filled."""
    value = document()
    session = value["session"]
    session["techniques_used"] = ["moscow"]
    session["techniques_history"] = [
        {
            "iteration": 1,
            "technique_slug": "moscow",
            "category": "structured",
            "suggested_reason": "Couverture 35%",
            "applied": True,
            "source": "auto",
            "weak_axes": ["Couverture"],
        }
    ]
    session["party_history"] = [
        {
            "round": 1,
            "topic": "Storage",
            "personas_selected": ["Architect", "QA"],
            "contributions": [{"persona": "QA", "key_points": ["Test it"], "references": ["Architect"]}],
            "synthesis": "All agree",
            "user_question": "Which one?",
        }
    ]
    session["panel_history"] = [
        {
            "round": 1,
            "topic": "Storage",
            "phase": "debate",
            "experts_selected": ["Beck"],
            "contributions": [
                {"expert": "Beck", "framework": "TDD", "position": "Test it first", "references": []}
            ],
            "synthesis": {"convergent": ["Tests"], "tensions": ["Speed"]},
        }
    ]
    session["random_state"] = {"last_category": "ideation", "category_counts": {"ideation": 2}}
    session["progressive_state"] = {
        "divergent_completed": True,
        "transition_completed": False,
        "transition_summary": {"ems": 50},
    }
    session["ideas"] = [{"id": 1, "content": "Links by mail", "score": 10}]
    session["history"][0]["duration"] = 10
    session["ems_axes"] = {
        "Clarte": 50, "Profondeur": 50, "Couverture": 50, "Decisions": 50, "Actionnabilite": 50,
    }  # fmt: skip
    return value


def problems(value: Any, *, strict: bool = False, slug: str | None = "sign-in") -> dict[str, str]:
    """Place -> the first code of everything that is wrong there."""
    found = faults_of(value, slug=slug, path="f.yaml", data=None, strict=strict).problems()
    return {problem.message.partition(": ")[0]: problem.code for problem in reversed(found)}


def changed(place: str, new: Any) -> dict[str, Any]:
    """The full session with another value at a place like ``history.0.ems``; ``...`` removes it."""
    value = full()
    *way, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    holder: Any = value["session"]
    for key in way:
        holder = holder[key]
    if new is ...:
        del holder[last]
    else:
        holder[last] = new
    return value


def dotted(place: str) -> str:
    text = "session"
    for key in place.split("."):
        text += f"[{key}]" if key.isdigit() else f".{key}"
    return text


def test_a_session_with_every_field_is_valid_even_strictly() -> None:
    """Section "Schema v1.2", every field in its place."""
    assert problems(full(), strict=True) == {}


# [Schema v1.2], [Field Descriptions], and the tables of each part
WRONG: dict[str, list[Any]] = {
    "id": [5, "sign-in", "sign-in-2026-02-30", "other-2026-01-09", "sign-in-20260109"],
    "slug": [5, "Sign-In", "sign_in", "../x", "-a", "a--b", ""],
    "ems": ["52", 52.5, -1, 101, True],
    "iteration": ["3", 0, -1, 3.0],
    "status": [1, []],
    "phase": [1, {}],
    "history": ["x", {}, [1]],
    "ideas": ["x", [1]],
    "techniques_history": [{}, ["x"]],
    "party_history": ["x"],
    "panel_history": [[None]],
    "party_history.0.contributions": ["x", ["y"]],
    "panel_history.0.contributions": [["y"]],
}
ODD: dict[str, list[Any]] = {
    "persona": [5, []],
    "mode": [5],
    "techniques_used": ["moscow", [1]],
    "started_at": ["yesterday", 5],
    "duration_minutes": [-1, "30", 1.5],
    "party_active": ["maybe", 1],
    "panel_active": [0],
    "last_question": [5],
    "created": ["2026-13-01"],
    "updated": [20260109],
    "ems_axes": ["x"],
    "ems_axes.Clarte": [101, "50"],
    "techniques_history.0.iteration": ["1", 0],
    "techniques_history.0.technique_slug": [5],
    "techniques_history.0.category": [[]],
    "techniques_history.0.suggested_reason": [42],
    "techniques_history.0.applied": ["perhaps"],
    "techniques_history.0.source": [1],
    "techniques_history.0.weak_axes": ["Clarte", [5]],
    "party_history.0.round": ["1", 0],
    "party_history.0.topic": [5],
    "party_history.0.personas_selected": ["QA"],
    "party_history.0.contributions.0.persona": [5],
    "party_history.0.contributions.0.key_points": ["x"],
    "party_history.0.contributions.0.references": [[5]],
    "party_history.0.synthesis": [[]],
    "party_history.0.user_question": [5],
    "panel_history.0.round": ["one", 0],
    "panel_history.0.topic": [5],
    "panel_history.0.phase": [5],
    "panel_history.0.experts_selected": ["Beck"],
    "panel_history.0.contributions.0.expert": [5],
    "panel_history.0.contributions.0.framework": [5],
    "panel_history.0.contributions.0.position": [5],
    "panel_history.0.contributions.0.references": ["x"],
    "panel_history.0.synthesis": ["text"],
    "panel_history.0.synthesis.convergent": ["x"],
    "panel_history.0.synthesis.tensions": [[5]],
    "random_state": ["x"],
    "random_state.last_category": [5],
    "random_state.category_counts": [[], {"a": "x"}, {"a": -1}],
    "progressive_state": [[]],
    "progressive_state.divergent_completed": ["so so"],
    "progressive_state.transition_completed": [2],
    "progressive_state.transition_summary": ["x"],
    "ideas.0.id": ["1", 0],
    "ideas.0.content": [5],
    "ideas.0.score": [11, -1, "8", 7.5],
    "history.0.iteration": ["1"],
    "history.0.phase": [5],
    "history.0.ems": [101, "25"],
    "history.0.ems_delta": [101, "0"],
    "history.0.questions": ["x", [5]],
    "history.0.responses": ["x", [None]],
    "history.0.timestamp": ["noon"],
    "history.0.duration": [-1, "5"],
    "history.0.superseded": ["x"],
}


@pytest.mark.parametrize(("place", "new"), [(place, new) for place, all_ in WRONG.items() for new in all_])
def test_a_wrong_value_that_is_required_is_an_error(place: str, new: Any) -> None:
    """Section "Session Metadata", required fields."""
    found = problems(changed(place, new), slug=None)
    assert found.get(dotted(place), found.get("session.id")) == "bad_field"


@pytest.mark.parametrize(("place", "new"), [(place, new) for place, all_ in ODD.items() for new in all_])
def test_any_other_wrong_value_is_kept_and_reported_and_strictly_an_error(place: str, new: Any) -> None:
    assert problems(changed(place, new))[dotted(place)] == "odd_value"
    assert problems(changed(place, new), strict=True)[dotted(place)] == "bad_field"


@pytest.mark.parametrize("name", ["id", "slug", "status", "phase", "ems", "iteration"])
@pytest.mark.parametrize("missing", [..., None])
def test_identity_and_state_are_required(name: str, missing: Any) -> None:
    """Section "Session Metadata", required fields."""
    assert problems(changed(name, missing))[f"session.{name}"] == "missing_field"


@pytest.mark.parametrize("name", ["persona", "started_at", "duration_minutes", "mode"])
def test_what_else_is_required_has_a_default_and_is_an_error_only_strictly(name: str) -> None:
    """Section "Session Metadata", required fields."""
    assert problems(changed(name, ...)) == {f"session.{name}": "defaulted_field"}
    assert problems(changed(name, ...), strict=True) == {f"session.{name}": "missing_field"}


# [Backward Compatibility]: missing fields default to empty or false
OPTIONAL = [
    name for name in full()["session"] if f"session.{name}" not in problems({"session": {}}, strict=True)
]


@pytest.mark.parametrize("name", OPTIONAL)
def test_any_other_field_may_be_missing(name: str) -> None:
    """Section "Backward Compatibility", missing fields default to empty or false."""
    assert problems(changed(name, ...), strict=True) == {}
    assert problems(changed(name, None), strict=True) == {}


# the closed lists of the schema's comments
@pytest.mark.parametrize(
    "place",
    [
        "status",
        "phase",
        "mode",
        "persona",
        "techniques_history.0.source",
        "panel_history.0.phase",
        "history.0.phase",
    ],
)
def test_a_word_outside_its_list_is_kept_and_reported(place: str) -> None:
    """Section "Schema v1.2", enums are closed for calls."""
    found = problems(changed(place, "strange"))
    assert found[dotted(place)] == "strange_word"
    grave = faults_of(changed(place, "strange"), slug=None, path="", data=None, strict=True).problems()
    assert max(problem.severity for problem in grave) == Severity.stops_resume


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("status", "in_progress completed abandoned"),
        ("persona", "architecte sparring pragmatique"),
        ("techniques_history.0.source", "auto manual random progressive"),
        ("panel_history.0.phase", "discussion debate socratic"),
        ("history.0.phase", "divergent transition convergent"),
    ],
)
def test_every_word_of_a_list_is_fine(place: str, words: str) -> None:
    """Section "Schema v1.2", enums are closed for calls."""
    for word in words.split():
        assert problems(changed(place, word), strict=True) == {}


def test_names_of_personas_and_experts_of_rounds_are_free() -> None:
    """Sections "v5.0: Party Mode State", "v5.0: Expert Panel State"."""
    value = changed("party_history.0.personas_selected", ["Grandmother"])
    value["session"]["panel_history"][0]["experts_selected"] = ["Nobody"]
    assert problems(value, strict=True) == {}


def test_the_slug_is_the_name_of_the_file() -> None:
    """Section "Storage Rules", 1: one file a session, by its slug."""
    assert problems(document(), slug="other") == {"session.slug": "slug_differs"}


@pytest.mark.parametrize(("mode", "party", "panel"), [("standard", True, False), ("party", False, False)])
def test_flags_that_contradict_the_mode_are_reported(mode: str, party: bool, panel: bool) -> None:
    """Sections "v5.0: Party Mode State", party_active; "v5.0: Expert Panel State", panel_active."""
    value = document(mode=mode, party_active=party, panel_active=panel)
    assert problems(value) == {"session.party_active": "mode_differs"}


def test_both_flags_at_once_cannot_be() -> None:
    """Sections "v5.0: Party Mode State", party_active; "v5.0: Expert Panel State", panel_active."""
    value = document(mode="party", party_active=True, panel_active=True)
    assert problems(value) == {"session.panel_active": "mode_differs"}


def test_a_word_that_older_readers_take_for_a_flag_is_one() -> None:
    assert problems(document(party_active="no")) == {"session.party_active": "word_as_flag"}
    found = faults_of(document(party_active="yes"), slug=None, path="", data=None, strict=False).problems()
    assert [problem.code for problem in found] == ["word_as_flag", "mode_differs"]


def test_score_and_phase_are_those_of_the_current_entry() -> None:
    """Section "History", score and phase are those at that iteration."""
    assert problems(document(ems=51)) == {"session.ems": "cursor_differs"}
    assert problems(document(phase="convergent")) == {"session.phase": "cursor_differs"}
    assert problems(document(iteration=9)) == {"session.iteration": "no_entry"}


def test_duplicate_numbers_are_reported() -> None:
    ideas = [{"id": 1, "content": "a"}, {"id": 1, "content": "b"}]
    assert problems(document(ideas=ideas)) == {"session.ideas[1]": "repeated_number"}
    value = document()
    value["session"]["history"].append(copy.deepcopy(value["session"]["history"][-1]))
    assert problems(value) == {"session.history[3]": "repeated_number"}
    value["session"]["history"][-2]["superseded"] = True
    assert problems(value) == {}


def test_the_score_is_the_weighted_mean_of_its_axes() -> None:
    axes = {"Clarte": 85, "Profondeur": 52, "Couverture": 55, "Decisions": 58, "Actionnabilite": 32}
    assert score_of(axes) == 59
    assert score_of(dict.fromkeys(axes, 100)) == 100
    assert (
        score_of({**dict.fromkeys(axes, 0), "Profondeur": 50, "Actionnabilite": 10}) == 12
    )  # 11.5, rounded up
    assert problems(document(ems_axes=axes))["session.ems"] == "ems_differs"
    assert "ems_differs" not in problems(document(ems_axes=dict.fromkeys(axes, 50))).values()


def test_all_faults_come_at_once_with_their_lines() -> None:
    data = (
        golden("feature-auth")
        .replace(b"score: 8", b"score: 80")
        .replace(b"ems: 52\n  persona", b"ems: x\n  persona")
    )
    value = golden_document("feature-auth")
    value["session"]["ideas"][0]["score"] = 80
    value["session"]["ems"] = "x"
    found = faults_of(value, slug="feature-auth", path="f.yaml", data=data, strict=False).problems()
    lines = data.decode().splitlines()
    assert [(p.code, lines[(p.line or 0) - 1].strip()) for p in found] == [
        ("bad_field", "ems: x"),
        ("odd_value", "score: 80"),
        ("cursor_differs", "ems: x"),
    ]
    assert all(problem.repair and problem.path == "f.yaml" for problem in found)


def test_what_is_not_a_session_is_reported() -> None:
    value: Any
    for value in ({}, {"session": []}, {"format_version": "1.2"}, []):
        assert problems(value) == {"session": "missing_field"}


@pytest.mark.parametrize("slug", ["a", "feature-auth", "5whys", "a-1-b", "x" * 200])
def test_a_slug_is_lower_case_words_with_hyphens(slug: str) -> None:
    """Section "Schema v1.2", slug in kebab-case."""
    assert is_slug(slug)


@pytest.mark.parametrize(
    "slug", ["", "A", "a_b", "a b", "a-", "-a", "a--b", "a.b", "../a", "a/b", "é", "x" * 201, None]
)
def test_anything_else_is_not_a_slug(slug: Any) -> None:
    """Section "Schema v1.2", slug in kebab-case."""
    assert not is_slug(slug)


def test_an_id_is_a_slug_and_a_day_that_exists() -> None:
    """Section "Schema v1.2", id is slug and date."""
    assert is_id("a-b-2026-01-09", "a-b")
    for wrong in (
        "a-b-2026-02-29",
        "a-b",
        "a-b-2026-1-9",
        "a-b-20260109",
        "a-c-2026-01-09",
        "a-b-2026-01-09 ",
        None,
    ):
        assert not is_id(wrong, "a-b")


def test_times_are_read_with_and_without_zone() -> None:
    """Section "Schema v1.2", times are ISO 8601."""
    wanted = read_time("2026-01-09T10:30:00Z")
    assert wanted is not None
    for same in (
        "2026-01-09T10:30:00",
        "2026-01-09T11:30:00+01:00",
        "2026-01-09 10:30:00Z",
        " 2026-01-09T10:30:00.000Z",
    ):
        assert read_time(same) == wanted
    assert read_time("soon") is read_time(5) is read_time(None) is None
