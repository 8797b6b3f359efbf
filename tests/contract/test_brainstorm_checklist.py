"""The specification of brainstorm sessions, section by section: each point with the tests that hold us to it.

What its tables say of the fields is tested here, row by row. All else is tested where the code is; each of those tests
names its section, and the list says which they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from sessionary import BrainstormStore
from tests.checklist import Points, complaints, unlisted
from tests.unit.layouts.brainstorm.samples import put
from tests.unit.layouts.brainstorm.test_fields import full

FILES = (
    "unit/layouts/brainstorm",
    "contract/test_brainstorm_checklist.py",
    "contract/test_brainstorm_layout.py",
    "crash/test_brainstorm_sweeps.py",
    "stateful/test_brainstorm_machine.py",
    "e2e/test_cli_brainstorm.py",
    "e2e/test_cli_kinds.py",
)

# -- the tables


class Row(NamedTuple):
    """A row of a table: the field, a value of its type, one that is not, and whether the table calls it required."""

    section: str
    field: str
    good: Any
    bad: Any
    required: bool = False

    @property
    def way(self) -> list[str | int]:
        """The way to the field from the root; `[]` stands for the first of a list."""
        name = self.field.replace("[]", ".0")
        name = name if name.startswith("session.") or name == "format_version" else f"session.{name}"
        return [0 if part == "0" else part for part in name.split(".")]


TIME, TEXTS, FLAG = "2026-01-09T10:30:00Z", ["Clarte"], True
META, TECHNIQUE = "Session Metadata", "v5.0: Enhanced Technique Tracking"
PARTY, PANEL, LEGACY = (
    "v5.0: Party Mode State",
    "v5.0: Expert Panel State",
    "Mode-Specific State (v4.2 - Legacy)",
)

ROWS = [
    Row(META, "format_version", "1.2", "9.9", required=True),
    Row(META, "session.id", "sign-in-2026-01-09", "sign-in-2026-02-30", required=True),
    Row(META, "session.slug", "sign-in", "Sign In", required=True),
    Row(META, "session.status", "in_progress", "waiting", required=True),
    Row(META, "session.phase", "divergent", "circular", required=True),
    Row(META, "session.ems", 50, 101, required=True),
    Row(META, "session.persona", "sparring", "socrates", required=True),
    Row(META, "session.iteration", 3, 0, required=True),
    Row(META, "session.started_at", TIME, "yesterday", required=True),
    Row(META, "session.duration_minutes", 30, -1, required=True),
    Row(META, "session.mode", "standard", "random", required=True),
    Row(TECHNIQUE, "techniques_history[].iteration", 1, "one"),
    Row(TECHNIQUE, "techniques_history[].technique_slug", "six-hats", 6),
    Row(TECHNIQUE, "techniques_history[].category", "creative", ["creative"]),
    Row(TECHNIQUE, "techniques_history[].suggested_reason", "Couverture 35%", 35),
    Row(TECHNIQUE, "techniques_history[].applied", FLAG, "perhaps"),
    Row(TECHNIQUE, "techniques_history[].source", "progressive", "oracle"),
    Row(TECHNIQUE, "techniques_history[].weak_axes", TEXTS, "Clarte"),
    Row(PARTY, "party_active", False, "maybe"),
    Row(PARTY, "party_history[].round", 1, "first"),
    Row(PARTY, "party_history[].topic", "Storage", ["Storage"]),
    Row(PARTY, "party_history[].personas_selected", ["Architect"], "Architect"),
    Row(PARTY, "party_history[].contributions[].persona", "Security", 1),
    Row(PARTY, "party_history[].contributions[].key_points", ["Tokens"], "Tokens"),
    Row(PARTY, "party_history[].contributions[].references", ["Architect"], {"Architect": 1}),
    Row(PARTY, "party_history[].synthesis", "Both", ["Both"]),
    Row(PARTY, "party_history[].user_question", "Which?", 5),
    Row(PANEL, "panel_active", False, "maybe"),
    Row(PANEL, "panel_history[].round", 1, 0),
    Row(PANEL, "panel_history[].topic", "Storage", {}),
    Row(PANEL, "panel_history[].phase", "socratic", "shouting"),
    Row(PANEL, "panel_history[].experts_selected", ["Beck"], "Beck"),
    Row(PANEL, "panel_history[].contributions[].expert", "Beck", 1),
    Row(PANEL, "panel_history[].contributions[].framework", "TDD", ["TDD"]),
    Row(PANEL, "panel_history[].contributions[].position", "Test first", 1),
    Row(PANEL, "panel_history[].synthesis.convergent", ["Tests"], "Tests"),
    Row(PANEL, "panel_history[].synthesis.tensions", ["Speed"], [1]),
    Row(LEGACY, "session.random_state", {"last_category": "x"}, "x"),
    Row(LEGACY, "session.random_state.last_category", "ideation", 3),
    Row(LEGACY, "session.random_state.category_counts", {"ideation": 2}, {"ideation": "often"}),
    Row(LEGACY, "session.progressive_state", {"divergent_completed": True}, True),
    Row(LEGACY, "session.progressive_state.divergent_completed", FLAG, "done"),
    Row(LEGACY, "session.progressive_state.transition_completed", FLAG, 1),
    Row(LEGACY, "session.progressive_state.transition_summary", {"kept": "OAuth2"}, "OAuth2"),
    Row("Ideas", "ideas[].id", 1, "one"),
    Row("Ideas", "ideas[].content", "Magic links", ["Magic links"]),
    Row("Ideas", "ideas[].score", 10, 11),
    Row("History", "history[].iteration", 1, 0),
    Row("History", "history[].phase", "divergent", "sideways"),
    Row("History", "history[].ems", 30, 101),
    Row("History", "history[].ems_delta", -13, 1.5),
    Row("History", "history[].questions", ["Which?"], "Which?"),
    Row("History", "history[].responses", ["That"], [7]),
    Row("History", "history[].timestamp", TIME, "noon"),
    Row("History", "history[].duration", 10, "long"),
]

WORDS = {
    (META, "session.status"): ("in_progress", "completed", "abandoned"),
    (META, "session.phase"): ("divergent", "transition", "convergent"),
    (META, "session.mode"): ("standard", "party", "panel"),
    (TECHNIQUE, "techniques_history[].source"): ("auto", "manual", "random", "progressive"),
    (PANEL, "panel_history[].phase"): ("discussion", "debate", "socratic"),
}


def with_value(row: Row, value: Any) -> dict[str, Any]:
    """A session in which every field is filled, with another value in one of them; ``...`` removes it."""
    document = full()
    *way, last = row.way
    holder: Any = document
    for key in way:
        holder = holder[key]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return document


def reported(tmp_path: Path, document: dict[str, Any]) -> set[str]:
    """The places for which a strict check reports a blocking problem."""
    put(tmp_path, "sign-in", yaml.safe_dump(document, sort_keys=False).encode())
    found = BrainstormStore(tmp_path).validate("sign-in", strict=True)
    return {problem.message.partition(": ")[0] for problem in found if problem.severity > 1}


def dotted(row: Row) -> str:
    return ".".join(str(key) for key in row.way).replace(".0", "[0]")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}: {row.field}")
def test_each_field_of_the_tables_has_its_type(row: Row, tmp_path: Path) -> None:
    """The columns Field and Type.

    Sections "Session Metadata", "v5.0: Enhanced Technique Tracking", "v5.0: Party Mode State",
    "v5.0: Expert Panel State", "Mode-Specific State (v4.2 - Legacy)", "Ideas", "History".
    """
    place = dotted(row)
    assert place not in reported(tmp_path, with_value(row, row.good))
    found = reported(tmp_path, with_value(row, row.bad))
    # An unknown version is reported for the file, not for the field; a wrong list in its maps, for the list.
    assert any(place.startswith(name) for name in found) or (row.field == "format_version" and found)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}: {row.field}")
def test_what_the_table_calls_required_must_be_there(row: Row, tmp_path: Path) -> None:
    """Section "Session Metadata": the column Required; "Backward Compatibility": other fields may be missing."""
    assert (dotted(row) in reported(tmp_path, with_value(row, ...))) == row.required


def each_word() -> list[tuple[Row, str]]:
    by_name = {(row.section, row.field): row for row in ROWS}
    return [(by_name[place], word) for place, words in WORDS.items() for word in words]


@pytest.mark.parametrize(("row", "word"), each_word(), ids=lambda value: str(getattr(value, "field", value)))
def test_each_word_of_the_closed_lists_is_one(row: Row, word: str, tmp_path: Path) -> None:
    """Sections "Session Metadata", "v5.0: Enhanced Technique Tracking", "v5.0: Expert Panel State": the enums."""
    assert dotted(row) not in reported(tmp_path, with_value(row, word))


# -- the list

TABLE = ("test_each_field_of_the_tables_has_its_type",)
REQUIRED = ("test_what_the_table_calls_required_must_be_there",)
ENUMS = ("test_each_word_of_the_closed_lists_is_one",)

POINTS: Points = {
    "Overview": {
        "one YAML file a session, below .project-memory/brainstorm-sessions": (
            "test_start_begins_a_session_and_says_where_it_is",
        ),
        "an interrupted session is resumed": ("test_resume_continues_with_it",),
        "modes standard, party and panel": ("test_leaving_a_mode_keeps_what_was_noted_in_it",),
    },
    "Schema v1.2": {
        "every field in its place": (
            "test_a_new_session_has_every_field_of_the_schema_in_its_order",
            "test_a_session_with_every_field_is_valid_even_strictly",
        ),
        "the version stands at the root": ("test_the_version_stands_at_the_root",),
        "id is slug and date": ("test_an_id_is_a_slug_and_a_day_that_exists",),
        "slug in kebab-case": (
            "test_a_slug_is_lower_case_words_with_hyphens",
            "test_anything_else_is_not_a_slug",
            "test_a_name_that_is_not_a_slug_is_refused_everywhere",
        ),
        "enums are closed for calls": (
            "test_a_call_may_set_only_words_of_the_closed_lists",
            "test_a_word_outside_the_closed_lists_is_refused",
            "test_a_word_outside_its_list_is_kept_and_reported",
            "test_every_word_of_a_list_is_fine",
        ),
        "persona, mode and phase can be set": (
            "test_persona_mode_and_phase_can_be_set_alone",
            "test_an_answer_and_the_next_iteration_can_bring_persona_and_mode",
        ),
        "last_question is the last one asked": ("test_the_question_that_is_open_may_be_another_one",),
        "times are ISO 8601": ("test_times_are_read_with_and_without_zone",),
    },
    META: {
        "each field has its type": TABLE,
        "required fields": (
            *REQUIRED,
            "test_identity_and_state_are_required",
            "test_what_else_is_required_has_a_default_and_is_an_error_only_strictly",
            "test_a_wrong_value_that_is_required_is_an_error",
            "test_a_strict_check_wants_the_version_too",
            "test_strict_validation_wants_the_whole_table",
        ),
        "enums": ENUMS,
        "total duration in minutes": (
            "test_the_duration_is_that_of_the_iterations_if_all_say_it",
            "test_the_duration_grows_by_work_not_by_the_age_of_the_file",
            "test_else_it_is_what_the_times_of_the_changes_add_up_to_and_never_less_than_before",
        ),
    },
    TECHNIQUE: {
        "each field has its type": TABLE,
        "source is one of four": (*ENUMS, "test_a_technique_has_a_slug_and_a_source"),
        "suggested, then applied or not": (
            "test_a_suggestion_that_is_applied_is_one_note",
            "test_a_suggested_technique_becomes_an_applied_one",
        ),
    },
    PARTY: {
        "each field has its type": TABLE,
        "a round": ("test_a_round_of_the_party_has_every_field", "test_a_round_of_the_party_is_noted"),
        "party_active": (
            "test_flags_that_contradict_the_mode_are_reported",
            "test_both_flags_at_once_cannot_be",
        ),
        "personas are free names": ("test_names_of_personas_and_experts_of_rounds_are_free",),
    },
    PANEL: {
        "each field has its type": TABLE,
        "phase is one of three": ENUMS,
        "a round": (
            "test_a_round_of_the_panel_has_every_field_and_ends_the_party",
            "test_a_round_of_the_panel_is_noted",
        ),
        "panel_active": (
            "test_flags_that_contradict_the_mode_are_reported",
            "test_both_flags_at_once_cannot_be",
        ),
        "experts are free names": ("test_names_of_personas_and_experts_of_rounds_are_free",),
    },
    LEGACY: {
        "each field has its type": TABLE,
        "random_state counts the choices by category": (
            "test_a_random_choice_is_counted_by_category",
            "test_any_other_choice_is_not_counted",
        ),
        "progressive_state notes the phases that are done": (
            "test_a_progressive_session_notes_the_phases_that_are_done",
        ),
        "transition_summary": ("test_a_progressive_session_is_summed_up_in_the_middle",),
    },
    "Ideas": {
        "each field has its type": TABLE,
        "sequential id, content, score 0 to 10": (
            "test_ideas_are_numbered_in_order_and_scored",
            "test_ideas_get_numbers_and_scores",
        ),
    },
    "History": {
        "each field has its type": TABLE,
        "an entry has every field": ("test_a_new_iteration_has_every_field_of_the_history",),
        "questions and answers of each iteration": (
            "test_answers_and_the_next_iteration_are_stored",
            "test_answers_may_come_one_by_one",
        ),
        "score and phase are those at that iteration": (
            "test_an_answer_may_bring_score_and_phase_which_the_entry_then_has",
            "test_score_and_phase_are_those_of_the_current_entry",
        ),
    },
    "Example (v1.2)": {
        "loads, is valid, is not changed": (
            "test_the_examples_of_the_format_load_and_are_valid_unless_strictly",
            "test_a_save_of_an_unchanged_session_writes_nothing",
        ),
        "can be gone on with": ("test_the_full_example_continues",),
    },
    "Example with Party Mode Active": {
        "loads, is valid, is not changed": (
            "test_the_examples_of_the_format_load_and_are_valid_unless_strictly",
            "test_a_save_of_an_unchanged_session_writes_nothing",
        ),
        "says what it says": ("test_the_example_of_a_party_reads_as_it_says",),
        "a step back says what is missing": (
            "test_back_on_the_examples_without_history_says_what_is_missing",
        ),
    },
    "Example with Expert Panel Active": {
        "loads, is valid, is not changed": (
            "test_the_examples_of_the_format_load_and_are_valid_unless_strictly",
            "test_a_save_of_an_unchanged_session_writes_nothing",
        ),
        "says what it says": ("test_the_example_of_a_panel_reads_as_it_says",),
        "a step back says what is missing": (
            "test_back_on_the_examples_without_history_says_what_is_missing",
        ),
    },
    "Save Session": {
        "explicit": (
            "test_a_save_stores_the_change_and_its_time",
            "test_a_checkpoint_stores_the_time_worked_and_nothing_else",
            "test_save_prints_the_state_and_how_to_resume",
        ),
        "before finish": ("test_finishing_completes_once",),
        "on a change of the phase": ("test_a_change_of_the_phase_is_stored_at_once",),
        "the line that is printed": (
            "test_the_line_after_a_save",
            "test_start_begins_a_session_and_says_where_it_is",
        ),
        "whatever happens meanwhile": (
            "test_power_goes_at_any_point_of_a_call",
            "test_each_system_call_of_a_call_fails",
        ),
    },
    "Load Session (Auto-detect)": {
        "sessions that are there are found": (
            "test_all_that_are_in_progress_are_found_the_newest_first",
            "test_a_session_that_is_asked_for_is_found_whatever_its_status",
        ),
        "what is shown": (
            "test_the_prompt_of_a_launch_is_that_of_the_format",
            "test_a_launch_without_a_terminal_shows_what_it_has_found",
        ),
        "the relative age": ("test_an_age_is_shown_in_the_largest_unit_that_fits",),
        "1 resumes": ("test_start_asks_which_of_two_sessions", "test_resume_continues_with_it"),
        "2 begins anew": (
            "test_the_second_choice_begins_anew",
            "test_new_archives_the_present_one",
            "test_the_archive_is_listed_and_restored",
            "test_a_new_session_moves_the_one_in_progress_to_the_archive_as_abandoned",
        ),
        "without a terminal no guess is made": (
            "test_a_session_in_progress_is_neither_resumed_nor_archived_by_guess",
        ),
    },
    "Back Command": {
        "n is 1 to 5, 1 by default": (
            "test_back_goes_one_step_by_default",
            "test_back_goes_at_most_five_steps_and_never_below_the_first_iteration",
            "test_back_takes_whole_numbers_only",
        ),
        "1: not further than there are iterations": (
            "test_back_goes_at_most_five_steps_and_never_below_the_first_iteration",
            "test_back_before_the_first_iteration_is_refused",
        ),
        "2 and 3: the entry of the target iteration": (
            "test_back_goes_by_the_number_of_an_entry_not_by_its_place",
            "test_an_entry_that_is_missing_is_an_error_and_nothing_changes",
        ),
        "4: score, phase and iteration are restored": (
            "test_back_restores_score_phase_and_iteration_of_the_entry",
            "test_back_leaves_everything_else_as_it_is",
        ),
        "5: the jump summary": (
            "test_the_summary_of_a_jump_is_that_of_the_format",
            "test_back_prints_the_jump_summary_of_the_format",
        ),
        "examples: back, back 2, back 5": ("test_the_three_examples_of_back",),
        "never below iteration 1": ("test_the_first_iteration_is_the_first",),
        "history is preserved, continue goes forward": (
            "test_back_and_forward_again_is_as_if_nothing_had_been",
            "test_back_then_continue_is_where_one_was",
            "test_a_new_answer_while_back_begins_a_branch_and_loses_nothing",
            "BrainstormMachine",
        ),
    },
    "Storage Rules": {
        "1: one file a session, by its slug": (
            "test_the_slug_is_the_name_of_the_file",
            "test_a_name_that_is_taken_is_reported_with_its_status",
            "test_what_is_archived_never_replaces_what_is_there",
        ),
        "2: after 30 days, completed or abandoned": (
            "test_ended_sessions_are_trashed_after_thirty_days",
            "test_nothing_but_readable_sessions_is_ever_cleaned_up",
            "test_a_launch_cleans_up_and_then_looks",
            "test_cleanup_reports_first_then_moves_and_brings_back",
        ),
        "3: the folder is made": (
            "test_start_begins_a_session_and_says_where_it_is",
            "test_the_very_first_session_of_a_project",
        ),
        "4: valid YAML, required fields present": (
            "test_a_save_refuses_all_that_is_wrong_at_once_and_writes_nothing",
            "test_a_session_without_state_is_refused_with_all_faults",
            "test_an_unreadable_file_is_reported_and_never_overwritten",
        ),
    },
    "Migration": {
        "1: the version is checked on load": ("test_a_version_that_is_not_known_is_refused_and_left",),
        "2: migrations in sequence": ("test_migrating_twice_is_migrating_once_and_nothing_is_lost",),
        "3: the version is updated": ("test_the_version_stands_at_the_root",),
        "4: the session is saved": (
            "test_loading_an_older_file_for_work_stores_it_with_one_backup",
            "test_looking_at_an_older_file_writes_nothing",
            "test_save_stores_a_migration",
        ),
    },
    "Migration v1.0 → v1.2": {
        "each value": ("test_each_value_of_a_migrated_file_is_that_of_the_format",),
        "mode becomes standard": ("test_the_older_meaning_of_mode_is_kept_under_another_name",),
        "what the code itself leaves behind": (
            "test_a_file_whose_new_fields_landed_beside_the_session_is_healed",
            "test_a_file_whose_root_was_forgotten_is_healed_and_keeps_what_came_since",
        ),
    },
    "Backward Compatibility": {
        "1.0 is migrated on load": ("test_loading_an_older_file_for_work_stores_it_with_one_backup",),
        "techniques_used in parallel with techniques_history": (
            "test_a_technique_is_named_once_among_those_that_were_used",
            "test_a_suggestion_alone_adds_no_field_of_those_that_were_used",
        ),
        "missing fields default to empty or false": (*REQUIRED, "test_any_other_field_may_be_missing"),
    },
}


def test_every_point_of_the_specification_has_a_test_that_names_its_section() -> None:
    assert list(complaints(POINTS, FILES)) == []


def test_every_test_that_names_a_section_stands_under_one_of_its_points() -> None:
    assert list(unlisted(POINTS, FILES)) == []


def test_a_point_that_nothing_holds_is_found() -> None:
    points = {
        "Back Command": {"a": (), "b": ("test_nothing",), "c": ("test_a_point_that_nothing_holds_is_found",)}
    }
    assert [text.partition(": ")[2] for text in complaints(points, FILES)] == [
        "nothing tests 'a'",
        "there is no test test_nothing",
        "test_a_point_that_nothing_holds_is_found does not name it",
    ]
