"""The contract on session state, section by section: each point with the tests that hold us to it.

What its schemas say of the fields is tested here, row by row. All else is tested where the code is; each of those tests
names its section, and the list says which they are.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from sessionary import FeatureStore
from sessionary.errors import SchemaError
from tests.checklist import Points, complaints, unlisted

FILES = (
    "unit/layouts/orchestrator",
    "contract/test_feature_checklist.py",
    "contract/test_feature_layout.py",
    "crash/test_feature_sweeps.py",
    "crash/test_feature_processes.py",
    "stateful/test_feature_machine.py",
    "e2e/test_cli_feature.py",
    "docs/test_feature_codes.py",
)

ID = "ai-orchestrator-2025-01-09"
TIME = "2025-01-09T10:00:00Z"

STATE: dict[str, Any] = {
    "version": "1.0",
    "feature_id": ID,
    "current_state": {
        "active_task": "T1",
        "model_in_use": "opus",
        "started_at": TIME,
        "last_updated": "2025-01-09T15:30:45Z",
    },
}
PLAN: dict[str, Any] = {
    "feature": {"id": ID, "name": "AI orchestrator", "description": "Commands", "created_at": TIME},
    "phases": [
        {
            "phase_id": "P1",
            "name": "Build",
            "tasks": [
                {
                    "task_id": "T1",
                    "description": "The form",
                    "agent": "opus",
                    "status": "in_progress",
                    "started_at": TIME,
                    "completed_at": None,
                    "artifacts": ["form.py"],
                }
            ],
        }
    ],
}
INDEX: dict[str, Any] = {
    "active_features": [{"feature_id": ID, "started_at": TIME, "last_active": TIME, "status": "active"}]
}
ENTRY: dict[str, Any] = {
    "timestamp": TIME,
    "command": "plan",
    "arguments": "--all",
    "model": "gemini",
    "agent": "agent-1",
    "task_id": None,
    "status": "failure",
    "duration_ms": 1234,
    "error": "no tests",
}


class Row(NamedTuple):
    """A line of a schema: where it stands, values of its type, and one that is not."""

    section: str
    field: str
    good: tuple[Any, ...]
    bad: Any


STRUCTURE, SCHEMA = "Session Structure", "Implementation Plan Schema"
LOG, ACTIVE = "History Log Format", "Active Features Format"
TASK = "phases.0.tasks.0"

ROWS = [
    Row(STRUCTURE, "current_state.active_task", ("T1", None), 7),
    Row(STRUCTURE, "current_state.model_in_use", ("gemini", "opus", "sonnet"), "claude"),
    Row(STRUCTURE, "current_state.started_at", (TIME,), "in January"),
    Row(STRUCTURE, "current_state.last_updated", ("2025-02-01T10:00:00+01:00",), "2025-01-09"),
    Row(SCHEMA, "feature.id", (ID,), None),
    Row(SCHEMA, "feature.name", ("Sign in",), ["Sign in"]),
    Row(SCHEMA, "feature.description", ("Log in",), 5),
    Row(SCHEMA, "feature.created_at", (TIME,), "once"),
    Row(SCHEMA, "phases", ([],), "none"),
    Row(SCHEMA, "phases.0.phase_id", ("P2",), 1),
    Row(SCHEMA, "phases.0.name", ("Design",), None),
    Row(SCHEMA, "phases.0.tasks", ([],), "T1"),
    Row(SCHEMA, f"{TASK}.task_id", ("T1",), 1),
    Row(SCHEMA, f"{TASK}.description", ("do it",), None),
    Row(SCHEMA, f"{TASK}.agent", ("agent-1",), ["agent-1"]),
    Row(SCHEMA, f"{TASK}.status", ("pending", "in_progress", "completed", "blocked"), "done"),
    Row(SCHEMA, f"{TASK}.started_at", (TIME, None), "soon"),
    Row(SCHEMA, f"{TASK}.completed_at", (TIME, None), 5),
    Row(SCHEMA, f"{TASK}.artifacts", ([], ["a.py", "b/c.py"]), "a.py"),
    Row(ACTIVE, "active_features.0.started_at", (TIME,), "then"),
    Row(ACTIVE, "active_features.0.last_active", (TIME,), None),
    Row(ACTIVE, "active_features.0.status", ("active", "paused", "completed"), "waiting"),
    Row(LOG, "timestamp", (TIME,), "now"),
    Row(LOG, "command", ("plan",), ""),
    Row(LOG, "arguments", ("", "--all"), ["--all"]),
    Row(LOG, "model", ("gemini", "opus", "sonnet"), "gpt9"),
    Row(LOG, "agent", ("agent-1",), 1),
    Row(LOG, "task_id", ("T1", None), 1),
    Row(LOG, "duration_ms", (0, 1234), "1234"),
    Row(LOG, "error", ("no tests",), ""),
]

CODES = {STRUCTURE: "state_schema", SCHEMA: "plan_schema", ACTIVE: "index_schema"}


def with_value(document: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    *way, last = [int(part) if part.isdigit() else part for part in field.split(".")]
    holder: Any = changed
    for key in way:
        holder = holder[key]
    holder[last] = value
    return changed


def reported(tmp_path: Path, section: str, field: str, value: Any) -> list[str]:
    """What a check says of the schema of a file with that value in one field."""
    home = tmp_path / ".ai-session"
    (home / ID / "artifacts").mkdir(parents=True, exist_ok=True)
    for wanted, path, document in (
        (STRUCTURE, home / ID / "state.yaml", STATE),
        (SCHEMA, home / ID / "implementation-plan.yaml", PLAN),
        (ACTIVE, home / "active-features.yaml", INDEX),
    ):
        changed = with_value(document, field, value) if section == wanted else document
        path.write_text(yaml.safe_dump(changed, sort_keys=False))
    (home / ID / "history.jsonl").write_bytes(b"")
    found = FeatureStore(tmp_path).validate()
    return [problem.message for problem in found if problem.code == CODES[section]]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.section != LOG], ids=lambda row: f"{row.section}: {row.field}"
)
def test_each_field_of_the_yaml_files_has_its_type(row: Row, tmp_path: Path) -> None:
    """Sections "Session Structure", "Implementation Plan Schema" and "Active Features Format": every line."""
    for value in row.good:
        assert reported(tmp_path, row.section, row.field, value) == []
    said = reported(tmp_path, row.section, row.field, row.bad)
    assert said
    assert row.field.rpartition(".")[2] in said[0]


@pytest.mark.parametrize("row", [row for row in ROWS if row.section == LOG], ids=lambda row: row.field)
def test_each_field_of_an_entry_has_its_type(row: Row, tmp_path: Path) -> None:
    """Section "History Log Format": every line."""
    store = FeatureStore(tmp_path)
    store.create(ID)
    history = store.home / ID / "history.jsonl"
    for value in row.good:
        store.append(ID, {**ENTRY, row.field: value})
        assert json.loads(history.read_text().splitlines()[-1])[row.field] == value
    before = history.read_bytes()
    with pytest.raises(SchemaError) as caught:
        store.append(ID, {**ENTRY, row.field: row.bad})
    assert [fault.partition(":")[0] for fault in caught.value.details["faults"]] == [row.field]
    assert history.read_bytes() == before


@pytest.mark.parametrize(("status", "error", "fine"), [
    ("success", None, True), ("failure", "no tests", True), ("success", "x", False), ("failure", None, False),
    ("failed", "x", False),
])  # fmt: skip
def test_a_failure_has_an_error_and_a_success_has_none(
    tmp_path: Path, status: str, error: str | None, fine: bool
) -> None:
    """Section "History Log Format": status is one of two; the error message if it is failure."""
    store = FeatureStore(tmp_path)
    store.create(ID)
    entry = {**ENTRY, "status": status, "error": error}
    if fine:
        assert store.append(ID, entry).get("error") == error
        return
    with pytest.raises(SchemaError):
        store.append(ID, entry)


def test_the_change_management_rules_stand_in_the_documentation() -> None:
    """Sections "Modification Process" and "Breaking Changes": they bind people, so they are written down."""
    page = (Path(__file__).parents[2] / "docs/formats/orchestrator.md").read_text("utf-8")
    section = page.partition("\n## Changing the contract\n")[2].partition("\n## ")[0]
    for words in ("pull request", "reviews and approves", "version is raised", "acknowledges again"):
        assert words in section
    for words in ("new major version", "plan for migration", "at least one phase"):
        assert words in section


# -- the list

YAML = ("test_each_field_of_the_yaml_files_has_its_type",)
LINES = ("test_each_field_of_an_entry_has_its_type",)

POINTS: Points = {
    STRUCTURE: {
        "each field has its type": YAML,
        "active_task is a task ID or null": (
            "test_the_active_task_is_an_open_task_of_the_plan",
            "test_without_a_plan_any_task_is_taken_with_a_note",
            "test_the_active_task_cannot_be_planned_away",
            "test_a_task_that_is_done_or_blocked_is_active_no_more",
        ),
    },
    "Directory Layout": {
        "every file in its place": ("test_creating_a_session_makes_all_of_the_directory_layout",),
        "artifacts": ("test_artifacts_are_parts",),
    },
    "Feature ID Format": {
        "slug and date": (
            "test_a_feature_id_is_a_slug_and_a_real_date",
            "test_an_id_against_the_contract_is_refused",
        ),
        "slug: lowercase, hyphen-separated": ("test_a_slug_may_hold_digits_and_dates",),
    },
    SCHEMA: {
        "each field has its type": YAML,
        "form of a plan": (
            "test_a_plan_has_the_form_of_the_schema",
            "test_a_plan_is_read_from_a_file_and_printed",
        ),
        "status is one of four": ("test_an_unknown_task_or_status",),
        "started_at and completed_at": ("test_times_of_a_task",),
        "artifacts": ("test_artifacts_are_added_and_none_twice",),
        "progress": (
            "test_five_tasks_of_which_two_are_done_are_forty_percent",
            "test_status_of_a_feature",
            "test_a_new_plan_keeps_how_far_its_tasks_are",
        ),
        "what planners wrote otherwise": ("test_a_plan_without_a_head_gets_one",),
    },
    LOG: {
        "each field has its type": (*LINES, "test_an_entry_that_breaks_the_contract_is_refused"),
        "the nine fields": ("test_an_entry_is_filled_in_and_has_the_nine_fields_in_order",),
        "error if status=failure": ("test_a_failure_has_an_error_and_a_success_has_none",),
        "what a caller gives is checked": (
            "test_what_a_caller_gives_for_the_line_is_checked",
            "test_an_entry_with_a_field_that_breaks_the_contract_is_refused",
        ),
        "agents that only have a shell": ("test_log_records_what_the_contract_asks_for",),
        "the example is one": ("test_the_example_entry_is_read_and_has_no_faults",),
        "filters and sums": (
            "test_filters_of_a_history",
            "test_the_history_is_filtered_and_summed_up",
            "test_status_of_a_feature",
        ),
    },
    ACTIVE: {
        "each field has its type": YAML,
        "form of the list": (
            "test_the_list_has_the_form_of_the_contract_and_the_newest_first",
            "test_the_example_list_is_read",
            "test_comments_and_unknown_keys_of_the_list_survive",
        ),
        "last_active": ("test_last_active_is_written_at_most_once_a_minute",),
        "status": (
            "test_every_move_of_a_feature",
            "test_list_filters_by_status",
            "test_a_missing_row_is_added_with_its_status",
        ),
    },
    "Creating a Session": {
        "1: a unique feature ID": (
            "test_an_id_is_made_of_name_and_date_and_is_unique",
            "test_create_prints_the_id_and_nothing_else",
        ),
        "2 to 6, in one piece": (
            "test_creating_a_session_makes_all_of_the_directory_layout",
            "test_create_is_all_or_nothing",
            "test_a_create_that_fails_leaves_no_feature",
            "test_a_list_that_cannot_be_written_puts_the_folder_away",
            "test_a_name_that_no_file_can_hold_leaves_nothing_behind",
        ),
    },
    "Updating State": {
        "1: atomic": (
            "test_power_cuts",
            "test_writes_continue_after_power_cuts",
            "test_every_call_fails_once",
            "test_a_cut_off_operation_is_finished_by_the_next_writer",
            "test_what_is_said_not_to_be_committed_is_never_seen",
        ),
        "2: last_updated": (
            "test_an_update_sets_what_is_given_and_logs_one_line",
            "test_an_update_changes_the_fields_given_and_no_others",
        ),
        "an edited file is kept": (
            "test_comments_unknown_keys_and_order_survive_an_update",
            "test_comments_of_a_plan_survive",
        ),
        "3: append to the history, never modify": (
            "test_every_update_logs_one_line_even_if_nothing_changes",
            "test_existing_lines_are_never_changed",
            "test_a_history_that_was_emptied_is_found_and_begun_anew",
        ),
        "4: transitions": (
            "test_every_move_of_a_task",
            "test_every_move_of_a_feature",
            "test_a_completed_feature_can_be_reopened",
            "test_tasks_move_as_the_contract_says",
            "test_the_tables_of_transitions_are_those_of_the_code",
            "test_a_task_that_is_done_or_blocked_is_active_no_more",
            "FeatureMachine",
        ),
    },
    "Session Cleanup": {
        "1 to 3": (
            "test_only_what_is_completed_is_archived_and_nothing_is_deleted",
            "test_a_feature_rests_continues_ends_and_is_put_away",
            "test_archive_is_at_one_place_or_the_other",
        ),
        "2: an archived feature can come back": (
            "test_an_archived_feature_is_restored",
            "test_unarchive_brings_a_feature_back",
            "test_unarchive_is_at_one_place_or_the_other",
        ),
    },
    "Locking Strategy": {
        "a lock for updates of the state": (
            "test_a_lock_that_is_not_let_go_is_an_error_that_says_who",
            "test_eight_processes_update_one_feature",
            "test_eight_processes_write_eight_features",
        ),
        "the lock file of the scripts": (
            "test_nothing_of_ours_keeps_a_script_out_after_a_write",
            "test_a_script_is_kept_out_while_we_write",
            "test_we_are_kept_out_while_a_script_writes",
            "test_a_writer_that_is_killed_holding_the_lock_does_not_block_others",
        ),
        "append-only history": ("test_a_torn_tail_is_sealed_and_never_glued",),
        "read locks for plans": ("test_plans_are_read_under_a_shared_lock",),
    },
    "Conflict Resolution": {
        "last write wins": ("test_an_update_changes_the_fields_given_and_no_others",),
        "conflicts in active-features.yaml are resolved manually": (
            "test_a_conflicted_list_is_never_merged_nor_overwritten",
            "test_two_equal_rows_are_only_reported",
            "test_a_list_that_cannot_be_read_does_not_hide_the_rest",
            "test_a_list_with_a_conflict_is_refused_and_never_written_over",
        ),
        "history logs are immutable": (
            "test_existing_lines_are_never_changed",
            "test_damage_in_a_history_names_the_command_that_mends_it",
        ),
    },
    "On Session Creation": {
        "format of the ID": ("test_a_feature_id_is_a_slug_and_a_real_date",),
        "no duplicate IDs": (
            "test_no_id_twice_in_folders_list_or_archive",
            "test_create_takes_an_id_and_refuses_one_that_is_taken",
        ),
        "permission to create": (
            "test_a_folder_that_may_not_be_made_is_reported",
            "test_a_folder_in_which_nothing_can_be_created_is_reported",
        ),
    },
    "On State Update": {
        "schema": (
            "test_all_faults_of_a_plan_are_reported_at_once",
            "test_a_state_that_breaks_the_schema_is_not_updated",
            "test_an_update_with_a_field_that_breaks_the_contract_is_refused",
        ),
        "monotonic timestamps": (
            "test_times_increase_even_if_the_clock_does_not",
            "test_a_time_of_the_caller_must_be_later",
            "test_a_feature_of_the_end_of_time_can_still_be_written",
        ),
        "model values": ("test_a_model_outside_the_three_is_refused",),
    },
    "On Read": {
        "missing files": ("test_missing_files_are_empty_and_reported",),
        "data format": ("test_all_faults_of_a_state_are_reported_at_once",),
        "corruption and inconsistencies": (
            "test_one_broken_feature_hides_no_other",
            "test_a_file_that_cannot_be_read_hides_no_other_feature",
            "test_a_broken_history_is_read_and_repaired_as_far_as_it_goes",
            "test_a_pipe_named_like_a_file_of_a_feature_is_reported_and_never_waited_for",
            "test_a_list_that_cannot_be_read_does_not_hide_the_rest",
            "test_faults_of_plan_and_list_have_their_lines",
            "test_validate_reports_everything",
            "test_damage_in_a_history_names_the_command_that_mends_it",
            "test_an_active_task_that_is_not_open_is_reported",
        ),
    },
    "Required Error Information": {
        "all five fields": (
            "test_every_error_has_the_context_of_the_contract",
            "test_an_unknown_feature_is_not_found",
            "test_a_file_that_holds_no_plan_is_an_error_of_the_contract_too",
            "test_an_error_names_the_file_at_fault",
        ),
    },
    "Recovery Procedures": {
        "1: corrupted state": (
            "test_a_missing_state_is_restored_from_the_history",
            "test_a_corrupt_state_is_kept",
            "test_a_state_that_cannot_be_read_is_not_written_over",
            "test_every_prefix_of_a_history_gives_the_state_of_that_time",
            "test_a_history_of_others_is_replayed_as_they_meant_it",
            "test_a_destroyed_state_is_rebuilt_from_the_history",
            "test_a_stale_copy_of_a_script_is_found_and_repaired",
            "test_a_state_that_a_script_set_without_logging_it_is_logged",
            "test_what_others_have_overwritten_under_power_cuts_and_faults",
        ),
        "2: missing files": (
            "test_missing_files_are_made_anew",
            "test_a_plan_that_cannot_be_repaired_is_reported",
            "test_a_missing_row_is_added_with_its_status",
            "test_a_missing_row_of_the_list_is_named_and_added",
            "test_without_plan_and_state_the_times_are_those_of_the_history",
            "test_what_others_have_overwritten_under_power_cuts_and_faults",
            "test_a_history_is_begun_anew_under_power_cuts_and_faults",
        ),
        "3: lock conflicts": (
            "test_a_lock_is_waited_for",
            "test_we_are_kept_out_while_a_script_writes",
            "test_the_default_patience_is_five_seconds",
            "test_a_lock_that_is_not_let_go_is_an_error_that_says_who",
        ),
    },
    "Version Detection": {
        "the field version": (
            "test_a_version_that_is_a_number_is_read",
            "test_a_newer_minor_version_is_read_and_its_keys_are_kept",
        ),
        "v1.0 if missing": ("test_a_missing_version_is_one",),
        "a migration path": (
            "test_an_unknown_major_version_is_not_touched",
            "test_a_newer_version_is_refused_and_left_untouched",
        ),
    },
    "Migration Strategy": {
        "never in place, new beside old, with a tool": (
            "test_a_migration_lays_the_new_beside_the_old",
            "test_repair_and_migration_keep_the_old_bytes",
            "test_the_newest_version_needs_no_migration",
        ),
    },
    "Contract Acknowledgment": {
        "form of the file": ("test_the_file_has_the_form_of_the_contract",),
        "all agents": (
            "test_each_agent_has_a_block_of_its_own",
            "test_another_agent_has_not_acknowledged",
            "test_writes_can_be_made_to_require_it",
            "test_acknowledgments_survive",
        ),
    },
    "Modification Process": {
        "1 and 2: people": ("test_the_change_management_rules_stand_in_the_documentation",),
        "3 and 4: version bump, re-acknowledgment": (
            "test_a_changed_contract_must_be_acknowledged_again",
            "test_an_agent_acknowledges_and_has_to_again_after_a_change",
        ),
    },
    "Breaking Changes": {
        "major version, migration plan, deprecation": (
            "test_the_change_management_rules_stand_in_the_documentation",
            "test_an_unknown_major_version_is_not_touched",
        ),
    },
    "Example state.yaml": {
        "is read": ("test_the_example_state_is_read",),
        "is what we write": ("test_a_new_state_has_the_form_of_the_example",),
    },
    "Example history.jsonl entry": {"is read": ("test_the_example_entry_is_read_and_has_no_faults",)},
}


def test_every_point_of_the_contract_has_a_test_that_names_its_section() -> None:
    assert list(complaints(POINTS, FILES)) == []


def test_every_test_that_names_a_section_stands_under_one_of_its_points() -> None:
    assert list(unlisted(POINTS, FILES)) == []
