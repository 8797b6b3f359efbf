"""Back Command, and how a session continues: no answer is ever lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore, Invalid, NotFound, TransitionError
from tests.unit.layouts.brainstorm.samples import after, document, entry, put, stored, without_time


def store_of(root: Path, **changes: Any) -> BrainstormStore:
    put(root, "sign-in", document(**changes))
    return BrainstormStore(root)


def test_back_restores_score_phase_and_iteration_of_the_entry(tmp_path: Path) -> None:
    """Section "Back Command", 4: score, phase and iteration are restored."""
    store = store_of(tmp_path, iterations=5)
    jump = store.back("sign-in", 2, now=after(60))
    assert jump == (2, (5, 3), (70, 50), ("transition", "divergent"), ["Question 3?"])
    session = stored(store, "sign-in")["session"]
    assert (session["iteration"], session["ems"], session["phase"]) == (3, 50, "divergent")
    assert session["last_question"] == "Question 3?"
    assert session["updated"] == "2026-01-09T11:30:00Z"


def test_back_goes_one_step_by_default(tmp_path: Path) -> None:
    """Section "Back Command", n is 1 to 5, 1 by default."""
    assert store_of(tmp_path).back("sign-in").iteration == (3, 2)


def test_back_leaves_everything_else_as_it_is(tmp_path: Path) -> None:
    """Section "Back Command", 4: score, phase and iteration are restored."""
    ideas = [{"id": 1, "content": "a", "score": 3}]
    store = store_of(tmp_path, iterations=5, ideas=ideas, persona="sparring", duration_minutes=12)
    before = stored(store, "sign-in")
    store.back("sign-in", 4)
    after_ = stored(store, "sign-in")
    moved = {"iteration", "ems", "phase", "last_question", "updated", "history"}
    rest = {name: value for name, value in before["session"].items() if name not in moved}
    assert {name: value for name, value in after_["session"].items() if name not in moved} == rest
    history = after_["session"]["history"]
    assert history[:4] == before["session"]["history"][:4]
    assert history[4] == {**before["session"]["history"][4], "left_with": {"last_question": "What else?"}}


# The section "Limits"
@pytest.mark.parametrize(("iterations", "most"), [(2, 1), (3, 2), (5, 4), (6, 5), (8, 5)])
def test_back_goes_at_most_five_steps_and_never_below_the_first_iteration(
    tmp_path: Path, iterations: int, most: int
) -> None:
    """Section "Back Command", n is 1 to 5, 1 by default; 1: not further than there are iterations."""
    store = store_of(tmp_path, iterations=iterations)
    before = Path(store.path("sign-in")).read_bytes()
    for steps in (most + 1, 0, -1, 6, iterations):
        with pytest.raises(Invalid) as caught:
            store.back("sign-in", steps)
        assert caught.value.details == {"iteration": iterations, "most": most}
        assert caught.value.hint == f"go back 1 to {most}"
        assert (caught.value.operation, caught.value.session) == ("back", "sign-in")
        assert caught.value.path == store.path("sign-in")
    assert Path(store.path("sign-in")).read_bytes() == before
    assert store.back("sign-in", most).iteration == (iterations, iterations - most)


def test_the_first_iteration_is_the_first(tmp_path: Path) -> None:
    """Section "Back Command", never below iteration 1."""
    with pytest.raises(Invalid) as caught:
        store_of(tmp_path, iterations=1).back("sign-in")
    assert caught.value.hint == "this is the first iteration"


@pytest.mark.parametrize("steps", ["1", 1.0, True, None])
def test_back_takes_whole_numbers_only(tmp_path: Path, steps: Any) -> None:
    """Section "Back Command", n is 1 to 5, 1 by default."""
    with pytest.raises(Invalid):
        store_of(tmp_path).back("sign-in", steps)


def test_back_goes_by_the_number_of_an_entry_not_by_its_place(tmp_path: Path) -> None:
    """Section "Back Command", 2 and 3: the entry of the target iteration."""
    history = [entry(3, 50), entry(1, 30), entry(2, 40)]
    store = store_of(tmp_path, history=history)
    assert store.back("sign-in", 2).ems == (50, 30)


def test_an_entry_that_is_missing_is_an_error_and_nothing_changes(tmp_path: Path) -> None:
    """Section "Back Command", 2 and 3: the entry of the target iteration."""
    store = store_of(tmp_path, history=[entry(1, 30), entry(3, 50)])
    before = Path(store.path("sign-in")).read_bytes()
    with pytest.raises(NotFound, match="lacks iteration 2"):
        store.back("sign-in")
    assert Path(store.path("sign-in")).read_bytes() == before
    assert store.back("sign-in", 2).iteration == (3, 1)


def test_a_session_without_history_cannot_go_back(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        store_of(tmp_path, history=[], iteration=4).back("sign-in")


def test_back_and_forward_again_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Section "Back Command", history is preserved, continue goes forward."""
    store = store_of(tmp_path, iterations=5)
    before = stored(store, "sign-in")
    store.back("sign-in", 2)
    store.back("sign-in", 1)
    for target in (3, 4, 5):
        assert store.continue_("sign-in").iteration[1] == target
    assert without_time(stored(store, "sign-in")) == without_time(before)


def test_leaving_an_iteration_without_entry_makes_one_to_come_back_to(tmp_path: Path) -> None:
    store = store_of(tmp_path, iterations=3, iteration=4, ems=55)
    store.back("sign-in", 1, now=after(60))
    assert store.continue_("sign-in").ems == (50, 55)
    session = stored(store, "sign-in")["session"]
    assert (session["iteration"], session["last_question"]) == (4, "What else?")
    assert [item["iteration"] for item in session["history"]] == [1, 2, 3, 4]


def test_new_values_after_a_step_back_are_refused(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    store.back("sign-in")
    before = Path(store.path("sign-in")).read_bytes()
    new: Any
    for new in ({"questions": ["New?"]}, {"ems": 60}, {"phase": "convergent"}, {"last_question": "x"}):
        with pytest.raises(TransitionError, match="iteration 2 of 3"):
            store.continue_("sign-in", **new)
    assert Path(store.path("sign-in")).read_bytes() == before


def test_a_new_answer_while_back_begins_a_branch_and_loses_nothing(tmp_path: Path) -> None:
    """Section "Back Command", history is preserved, continue goes forward."""
    store = store_of(tmp_path, iterations=4)
    before = stored(store, "sign-in")["session"]["history"]
    store.back("sign-in", 2)
    store.answer("sign-in", ["Another answer"], now=after(90))
    session = stored(store, "sign-in")["session"]
    assert session["iteration"] == 2
    assert [(item["iteration"], item.get("superseded", False)) for item in session["history"]] == [
        (1, False),
        (2, True),
        (3, True),
        (4, True),
        (2, False),
    ]
    assert [item["responses"] for item in session["history"][:4]] == [item["responses"] for item in before]
    assert session["history"][4] == {
        **before[1], "responses": ["Another answer"], "timestamp": "2026-01-09T12:00:00Z",
    }  # fmt: skip
    jump = store.continue_("sign-in", ["Where to?"], ems=45)
    assert jump.iteration == (2, 3)
    view = store.load("sign-in")
    assert [item["ems"] for item in view.history] == [30, 40, 45]
    assert view.history[-1]["ems_delta"] == 5
    assert len(view.superseded) == 3
    assert view.tip == 3


def test_an_answer_to_an_iteration_that_had_none_needs_no_copy_of_it(tmp_path: Path) -> None:
    history = [entry(1, 30), entry(2, 40, responses=[]), entry(3, 50)]
    store = store_of(tmp_path, history=history)
    store.back("sign-in")
    store.answer("sign-in", ["Late"])
    kept = stored(store, "sign-in")["session"]["history"]
    assert [(item["iteration"], item["responses"], item.get("superseded")) for item in kept] == [
        (1, ["Answer 1"], None),
        (2, ["Late"], None),
        (3, ["Answer 3"], True),
    ]


def test_answers_may_come_one_by_one(tmp_path: Path) -> None:
    """Section "History", questions and answers of each iteration."""
    store = store_of(tmp_path, history=[entry(1, 30), entry(2, 40), entry(3, 50, responses=[])])
    store.answer("sign-in", ["First"], duration=5)
    store.answer("sign-in", ["Second", "Third"], duration=4)
    last = stored(store, "sign-in")["session"]["history"][-1]
    assert (last["responses"], last["duration"]) == (["First", "Second", "Third"], 9)


def test_an_answer_may_bring_score_and_phase_which_the_entry_then_has(tmp_path: Path) -> None:
    """Section "History", score and phase are those at that iteration."""
    store = store_of(tmp_path)
    store.answer("sign-in", ["x"], ems=70, phase="convergent")
    session = stored(store, "sign-in")["session"]
    assert (session["ems"], session["phase"]) == (70, "convergent")
    last = session["history"][-1]
    assert (last["ems"], last["phase"], last["ems_delta"]) == (70, "convergent", 30)
    assert store.validate("sign-in", strict=True) == []


@pytest.mark.parametrize("responses", [[], [5], [None]])
def test_an_answer_is_at_least_one_text(tmp_path: Path, responses: Any) -> None:
    with pytest.raises(Invalid):
        store_of(tmp_path).answer("sign-in", responses)


# The section "History"
def test_a_new_iteration_has_every_field_of_the_history(tmp_path: Path) -> None:
    """Section "History", an entry has every field."""
    store = store_of(tmp_path)
    jump = store.continue_("sign-in", ["A?", "B?"], ems=61, phase="transition", now=after(75))
    assert jump == (-1, (3, 4), (50, 61), ("divergent", "transition"), ["A?", "B?"])
    session = stored(store, "sign-in")["session"]
    assert session["history"][-1] == {
        "iteration": 4,
        "phase": "transition",
        "ems": 61,
        "ems_delta": 11,
        "questions": ["A?", "B?"],
        "responses": [],
        "timestamp": "2026-01-09T11:45:00Z",
    }
    assert (session["iteration"], session["ems"], session["phase"]) == (4, 61, "transition")
    assert session["last_question"] == "B?"


def test_the_question_that_is_open_may_be_another_one(tmp_path: Path) -> None:
    """Section "Schema v1.2", last_question is the last one asked."""
    store = store_of(tmp_path)
    store.continue_("sign-in", ["A?"], last_question="A, and why?")
    assert stored(store, "sign-in")["session"]["last_question"] == "A, and why?"


def test_a_score_may_be_given_by_its_axes(tmp_path: Path) -> None:
    axes = {"Clarte": 85, "Profondeur": 52, "Couverture": 55, "Decisions": 58, "Actionnabilite": 32}
    store = store_of(tmp_path)
    store.continue_("sign-in", ["A?"], axes=axes)
    view = store.load("sign-in")
    assert (view.ems, view.session["ems_axes"], view.weak_axes) == (59, axes, ["Actionnabilite"])
    assert view.suggested_phase == "convergent"
    store.answer("sign-in", ["x"], ems=40)
    assert "ems_axes" not in stored(store, "sign-in")["session"], "they were those of another score"
    for wrong in ({"Clarte": 5}, {**axes, "More": 1}, {**axes, "Clarte": 101}):
        with pytest.raises(Invalid):
            store.update("sign-in", axes=wrong)


def test_the_duration_is_that_of_the_iterations_if_all_say_it(tmp_path: Path) -> None:
    """Section "Session Metadata", total duration in minutes."""
    history = [entry(1, 30, duration=10), entry(2, 40, duration=20), entry(3, 50, responses=[])]
    store = store_of(tmp_path, history=history, duration_minutes=5)
    store.answer("sign-in", ["x"], duration=7, now=after(500))
    assert stored(store, "sign-in")["session"]["duration_minutes"] == 37


def test_else_it_is_what_the_times_of_the_changes_add_up_to_and_never_less_than_before(
    tmp_path: Path,
) -> None:
    """Section "Session Metadata", total duration in minutes."""
    store = store_of(tmp_path)
    store.answer("sign-in", ["x"], now=after(45.9))
    assert stored(store, "sign-in")["session"]["duration_minutes"] == 45
    store.answer("sign-in", ["y"], now=after(40))
    assert stored(store, "sign-in")["session"]["duration_minutes"] == 45
    store.back("sign-in", now=after(300))
    store.continue_("sign-in", now=after(300))
    assert stored(store, "sign-in")["session"]["duration_minutes"] == 45


def test_a_progressive_session_notes_the_phases_that_are_done(tmp_path: Path) -> None:
    """Section "Mode-Specific State (v4.2 - Legacy)", progressive_state notes the phases that are done."""
    store = BrainstormStore(tmp_path)
    store.create("sign-in", progressive=True, questions=["A?"])
    states = []
    for phase in ("divergent", "transition", "convergent"):
        store.update("sign-in", phase=phase)
        state = stored(store, "sign-in")["session"]["progressive_state"]
        states.append((state["divergent_completed"], state["transition_completed"]))
    assert states == [(False, False), (True, False), (True, True)]


def test_a_progressive_session_is_summed_up_in_the_middle(tmp_path: Path) -> None:
    """Section "Mode-Specific State (v4.2 - Legacy)", transition_summary."""
    store = store_of(tmp_path)
    store.update("sign-in", phase="transition", transition_summary={"ems": 50, "ideas": ["a b"]})
    assert stored(store, "sign-in")["session"]["progressive_state"] == {
        "divergent_completed": True,
        "transition_completed": False,
        "transition_summary": {"ems": 50, "ideas": ["a b"]},
    }
    assert store.validate("sign-in", strict=True) == []
    with pytest.raises(Invalid):
        store.update("sign-in", transition_summary="x")  # type: ignore[arg-type]


def test_score_and_phase_cannot_be_set_while_back(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    store.back("sign-in")
    new: Any
    for new in ({"ems": 60}, {"phase": "convergent"}):
        with pytest.raises(TransitionError, match="back at iteration 2"):
            store.update("sign-in", **new)
    assert store.update("sign-in", persona="sparring").persona == "sparring"


@pytest.mark.parametrize("status", ["completed", "abandoned"])
def test_a_finished_session_does_not_move(tmp_path: Path, status: str) -> None:
    store = store_of(tmp_path, status=status)
    before = Path(store.path("sign-in")).read_bytes()
    calls: list[Any] = [
        lambda: store.back("sign-in"),
        lambda: store.continue_("sign-in"),
        lambda: store.answer("sign-in", ["x"]),
        lambda: store.idea("sign-in", "x"),
        lambda: store.update("sign-in", ems=5),
        lambda: store.technique("sign-in", "moscow"),
        lambda: store.party("sign-in", "x"),
        lambda: store.panel("sign-in", "x"),
        lambda: store.abandon("sign-in") if status == "completed" else store.finish("sign-in"),
    ]
    for call in calls:
        with pytest.raises(TransitionError, match=status):
            call()
    assert Path(store.path("sign-in")).read_bytes() == before


@pytest.mark.parametrize(("steps", "target"), [((), 5), ((2,), 4), ((5,), 1)])
def test_the_three_examples_of_back(tmp_path: Path, steps: tuple[int, ...], target: int) -> None:
    """Section "Back Command", examples: back, back 2, back 5."""
    put(tmp_path, "sign-in", document("sign-in", 6))
    store = BrainstormStore(tmp_path)
    assert store.back("sign-in", *steps).iteration == (6, target)
    assert stored(store, "sign-in")["session"]["iteration"] == target


def test_forward_goes_to_the_last_iteration_as_it_was_left(tmp_path: Path) -> None:
    store = store_of(tmp_path, iterations=5)
    before = without_time(stored(store, "sign-in"))
    store.back("sign-in", 2)
    store.back("sign-in", 1)
    assert store.forward("sign-in").iteration == (2, 5)
    assert without_time(stored(store, "sign-in")) == before
    with pytest.raises(NotFound, match="last iteration"):
        store.forward("sign-in")
