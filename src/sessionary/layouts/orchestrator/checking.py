"""Checks of a feature, and of the folder of all features. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionary.disk.fs import Fs, is_folder, read_bytes
from sessionary.disk.pid_file import read_holder, way_out
from sessionary.errors import StorageFailed
from sessionary.escaping import is_utf8
from sessionary.layouts import conflict_copies
from sessionary.layouts.orchestrator import names, planfile, rules
from sessionary.layouts.orchestrator.entries import in_nanoseconds
from sessionary.layouts.orchestrator.history import (
    BROKEN,
    HEALED,
    History,
    mended,
    odd_entries,
    odd_problem,
    read_history,
)
from sessionary.layouts.orchestrator.index import IndexFile
from sessionary.layouts.orchestrator.reading import exists, read_state
from sessionary.layouts.orchestrator.replay import Behind, fields_behind, last_operation, operations_back
from sessionary.layouts.orchestrator.rules import note
from sessionary.layouts.orchestrator.statefile import FeatureState, StateFile
from sessionary.layouts.orchestrator.times import parse
from sessionary.model import Problem, Severity

_FEW = 5


def feature_problems(fs: Fs, folder: str) -> Iterator[Problem]:
    """All problems of one feature."""
    feature_id = os.path.basename(folder)
    reason = names.why_irregular(feature_id)
    if reason:
        words = f"the id {feature_id!r} does not have the form of the contract: {reason}"
        yield note("irregular_id", folder, words, "none needed; new features get a regular id")
    state = read_state(fs, folder)
    yield from state.problems
    yield from _lock_problems(f"{folder}/{names.SCRIPT_LOCK}", fs)
    plan = planfile.read_plan(fs, folder)
    yield from plan.problems
    history = read_history(fs, folder)
    yield from history_problems(history)
    yield from _lost_entries(fs, folder)
    yield from synchroniser_problems(fs, folder)
    if not is_folder(fs, f"{folder}/{names.ARTIFACTS}"):
        words = "the folder for artifacts is missing"
        yield note(
            "no_artifacts", f"{folder}/{names.ARTIFACTS}", words, "`sessionary feature repair` creates it"
        )
    if state.file is not None:
        yield from _between(folder, state.file.state, plan, history)
        if is_emptied(state.file, history) and not history.missing:
            words = "the history is empty although the state was changed: its entries are lost"
            remedy = "restore the file from a backup; or `sessionary feature repair` logs the current state"
            yield Problem.of_file("emptied_history", Severity.lost_data, history.path, words, remedy)


def synchroniser_problems(fs: Fs, folder: str) -> Iterator[Problem]:
    """Conflict copies and placeholders of the files of a feature."""
    try:
        found = fs.listdir(folder)
    except OSError:
        return  # reported when the files are read
    yield from conflict_copies.problems(fs, folder, found, names.FILES, os.path.basename(folder))


def _lock_problems(path: str, fs: Fs) -> Iterator[Problem]:
    """A stale lock of the contract's scripts, which blocks all of them."""
    holder = read_holder(path, fs)
    if holder is None or holder.running:
        return
    if holder.ours or holder.empty:
        words = "a killed process has left its lock, for which the contract's scripts wait"
        remedy = "`sessionary feature repair` or any other write removes it"
        yield Problem.of_file("stale_lock", Severity.cosmetic, path, words, remedy)
    else:
        who = (
            "a process that the lock does not name"
            if holder.pid is None
            else f"process {holder.pid}, which has ended"
        )
        words = f"the feature is locked by {who}, so nothing can be written"
        remedy = f"if no script is working on the feature, {way_out(path)}"
        yield Problem.of_file("foreign_lock", Severity.stops_resume, path, words, remedy)


def history_problems(history: History) -> Iterator[Problem]:
    """Problems of a history, line by line, and its irregularities."""
    yield from history_faults(history)
    yield from odd_entries(history)


def history_faults(history: History) -> Iterator[Problem]:
    """Problems of a history that a repair may remove."""
    if history.missing:
        yield no_history(history.path)
    feature_id = os.path.basename(os.path.dirname(history.path))
    for problem in history.problems:
        yield with_remedy(problem, feature_id)
    slow = [number for number, entry in enumerate(history.values, 1) if in_nanoseconds(entry)]
    if slow:
        yield odd_problem("nanoseconds", slow, history.path)


def no_history(path: str) -> Problem:
    """The problem for a missing history."""
    words, remedy = "the history is missing", "`sessionary feature repair` creates an empty one"
    return Problem.of_file("no_history", Severity.hides_data, path, words, remedy)


def with_remedy(problem: Problem, feature_id: str) -> Problem:
    """Damage to a history, with the command that repairs it, which differs from that for journals of agents."""
    if problem.code in HEALED:
        does = "writes it on one line"
    elif problem.code == "bad_utf8":
        does = (
            "keeps the entry, with U+FFFD in place of the bytes, if the rest can be read "
            "(`--bad-bytes drop` drops it), and keeps the old file"
        )
    elif problem.code in BROKEN:
        does = "drops it and keeps the old file"
    else:
        return problem
    return problem._replace(repair=f"`sessionary feature repair {feature_id} --rewrite-history` {does}")


def is_emptied(state: StateFile, history: History) -> bool:
    """True if a history has no line although the state was changed by us."""
    return state.is_by_us and not history.values and not history.problems


def _lost_entries(fs: Fs, folder: str) -> Iterator[Problem]:
    """Notes on bytes that earlier repairs could not recover, as long as the replaced histories are kept."""
    try:
        found = fs.listdir(folder)
    except OSError:
        return
    for name in sorted(found):
        if not name.startswith(f"{names.HISTORY}.original-"):
            continue
        path = f"{folder}/{name}"
        try:
            lost = mended(read_bytes(fs, path) or b"", path).lost
        except StorageFailed:
            continue
        if lost:
            lines = ", ".join(f"{line:,}" for line, _ in lost[:_FEW]) + (", …" if len(lost) > _FEW else "")
            words = f"a repair could not recover all bytes of line{'s' * (len(lost) > 1)} {lines} of the old history"
            yield note("not_recovered", path, words, "none; the old history is kept there")


def _between(
    folder: str, state: FeatureState, plan: planfile.PlanFile, history: History
) -> Iterator[Problem]:
    """Contradictions between the three files of a feature."""
    path = f"{folder}/{names.STATE}"
    yield from active_task_problems(path, state.active_task, plan.tasks)
    operation = last_operation(history.values)
    at = parse(operation["timestamp"]) if operation else None
    if operation and at and state.last_updated and at > state.last_updated:
        words = f"the {operation.get('command')} of {operation['timestamp']} is in the history but not in the state"
        remedy = "none needed: the next writer, or `sessionary feature repair`, finishes it"
        yield Problem.of_file("unfinished_operation", Severity.hides_data, path, words, remedy)
    for name, behind in fields_behind(state, history.values).items():
        yield _behind(path, name, behind)
    yield from _backward_operations(history)


def _behind(path: str, name: str, behind: Behind) -> Problem:
    """A field that differs from the result of the last operation."""
    feature_id = os.path.basename(os.path.dirname(path))
    if behind.older:
        words = (
            f"{name} is {behind.found!r} again after the last operation changed it to {behind.logged!r}: "
            "another program restored an older copy, or set it without logging"
        )
        remedy = (
            f"`sessionary feature repair {feature_id}` restores {behind.logged!r}; "
            f"`sessionary feature update {feature_id}` logs the current state instead"
        )
        return Problem.of_file("overwritten_state", Severity.hides_data, path, words, remedy)
    words = f"{name} is {behind.found!r}, set by another program without logging"
    return note("unlogged_state", path, words, f"`sessionary feature repair {feature_id}` logs it")


def active_task_problems(
    path: str, active: str | None, tasks: Mapping[str, Mapping[str, Any]]
) -> Iterator[Problem]:
    """Problems with the active task."""
    if active is None:
        return
    remedy = "choose another active task"
    if not tasks:
        words = f"the active task {active!r} cannot be checked: the plan has no tasks"
        yield note("task_without_plan", path, words, "none needed")
    elif active not in tasks:
        words = f"the active task {active!r} is not in the plan"
        yield Problem.of_file("unknown_task", Severity.cosmetic, path, words, remedy)
    elif tasks[active].get("status") in (rules.COMPLETED, rules.BLOCKED):
        words = f"the active task {active} is {tasks[active]['status']}"
        yield Problem.of_file("task_not_open", Severity.cosmetic, path, words, remedy)


def _backward_operations(history: History) -> Iterator[Problem]:
    """Our operations run one at a time under the lock: their times never decrease."""
    later: str | None = None
    for entry in operations_back(reversed(history.values)):
        if later is not None and entry["timestamp"] >= later:
            words = f"the operation of {entry['timestamp']} comes before that of {later}: times must increase"
            remedy = "none needed; the history was edited by hand, or merged"
            yield Problem.of_file("times_not_monotonic", Severity.cosmetic, history.path, words, remedy)
            return
        later = entry["timestamp"]


def store_problems(
    fs: Fs, home: str, ids: Sequence[str], index: IndexFile, *, writable: bool = True
) -> Iterator[Problem]:
    """Problems of the folder of all features: the list, the README, remains of creations.

    Args:
        home: the folder `.ai-session`.
        index: the list as it was read.
        writable: whether features may be made there.
    """
    if not writable:
        words = "no feature can be created here: the folder is not writable"
        remedy = "check owner and mode of the folder"
        yield Problem.of_file("not_writable", Severity.stops_resume, home, words, remedy)
    path = f"{home}/{names.INDEX}"
    if index.data is None and index.error is None and ids:
        words = f"the list of features is missing, but there are {len(ids)} features"
        remedy = "`sessionary feature repair --rebuild-index` writes it"
        yield Problem.of_file("no_index", Severity.hides_data, path, words, remedy)
    yield from index.problems
    if index.error is None and index.data is not None:
        yield from _rows_and_folders(fs, home, ids, index, path)
    if ids and not exists(fs, f"{home}/{names.README}"):
        words = "README.md is missing"
        yield note("no_readme", f"{home}/{names.README}", words, "`sessionary feature repair` writes it")
    yield from _leftovers(fs, home)
    remedy = "compare the two lists, and delete the copy"
    for copy in conflict_copies.copies_in(fs.listdir(home) if ids else (), {names.INDEX}, devices=False):
        found = conflict_copies.copy_problem(fs, f"{home}/{copy.name}", path, names.INDEX)
        yield found._replace(repair=remedy)


def _rows_and_folders(
    fs: Fs, home: str, ids: Sequence[str], index: IndexFile, path: str
) -> Iterator[Problem]:
    for feature_id in ids:
        if feature_id not in index.rows:
            words = f"{feature_id} is not in the list"
            remedy = f"`sessionary feature repair {feature_id}` adds it"
            if not is_utf8(feature_id):
                words, remedy = f"{words}, and cannot be: its name is not UTF-8", "rename the folder"
            yield Problem.of_file("missing_row", Severity.hides_data, path, words, remedy)
    for feature_id in index.rows:
        archived = is_folder(fs, f"{home}/{names.ARCHIVE}/{feature_id}")
        if feature_id not in ids and not archived:
            words = f"{feature_id} is in the list, but the feature is missing"
            remedy = (
                "restore the folder; or `sessionary feature repair --rebuild-index` removes the row "
                "and keeps the old list"
            )
            yield Problem.of_file("orphan_row", Severity.cosmetic, path, words, remedy)


def _leftovers(fs: Fs, home: str) -> Iterator[Problem]:
    try:
        found = fs.listdir(home)
    except OSError:
        return
    for name in sorted(found):
        if name.startswith(names.BUILDING):
            words = "a feature that is being created, or the remains of an interrupted creation"
            yield note("unfinished_creation", f"{home}/{name}", words, "the next `create` removes it")
