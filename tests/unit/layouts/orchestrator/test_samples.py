"""What the contract's own scripts really wrote, as the shared samples have it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.orchestrator.store import FeatureStore
from tests.lanes import shared_folder

ID = "demo-2025-01-10"


@pytest.fixture
def written(tmp_path: Path, shared: Path) -> FeatureStore:
    """A store as the scripts left it: the list and the history of one feature; its state is gone."""
    samples = shared / "samples" / "orchestrator"
    folder = tmp_path / ".ai-session" / ID
    folder.mkdir(parents=True)
    index = (samples / "orchestrator_active-features_as_written.yaml").read_bytes()
    (tmp_path / ".ai-session" / "active-features.yaml").write_bytes(index)
    history = (samples / "orchestrator_history_as_written.jsonl").read_bytes()
    (folder / "history.jsonl").write_bytes(history)
    return FeatureStore(tmp_path)


@pytest.mark.lane("samples")
def test_eleven_lines_are_ten_entries_and_all_of_them_are_read(written: Any) -> None:
    entries = written.history(ID)
    assert len(entries) == 10
    assert [entry.get("event") for entry in entries if "event" in entry] == [
        "session_start",
        "session_end",
        "session_start",
    ]
    assert entries[-1]["status"] == "failure"
    assert "\n" in entries[-1]["error"]
    codes = {problem.code for problem in written.last_report.problems}
    assert codes == {"raw_newline", "event_entry", "phase_entry", "nanoseconds"}


@pytest.mark.lane("samples")
def test_statistics_are_in_milliseconds(written: Any) -> None:
    stats = written.status(ID).stats
    assert (stats.commands, stats.failures) == ({"implement": 4}, 1)
    assert stats.total_ms == 213 + 226 + 221 + 10


@pytest.mark.lane("samples")
def test_a_state_is_made_of_the_history(written: Any) -> None:
    written.repair(ID)
    state = written.load(ID)
    assert (state.model_in_use, state.active_task) == ("sonnet", "T1")
    assert state.last_updated.isoformat() == "2026-11-27T22:08:58+00:00"


@pytest.mark.lane("samples")
def test_the_history_is_put_right_on_request(written: Any) -> None:
    before = written.history(ID)
    done = written.repair(ID, rewrite_history=True)
    assert len(done.kept) == 1
    after = written.history(ID)
    assert [entry.get("duration_ms") for entry in after] == [
        None if entry.get("duration_ms") is None else entry["duration_ms"] // 1_000_000 for entry in before
    ]
    assert after[-1]["error"] == before[-1]["error"]
    codes = {problem.code for problem in written.validate(ID)}
    assert not codes & {"raw_newline", "nanoseconds"}


@pytest.mark.lane("samples")
def test_the_list_is_read_and_put_right_on_request(written: Any, tmp_path: Path) -> None:
    assert [row.feature_id for row in written.list_features()] == [ID]
    assert {problem.code for problem in written.last_report.problems} == {"index_of_scripts"}
    done = written.rebuild_index()
    assert Path(done.kept[0]).read_bytes().startswith(b"active_features: []\n")
    assert "orphan_row" not in {problem.code for problem in written.validate()}
    text = (tmp_path / ".ai-session" / "active-features.yaml").read_text()
    assert text.count("feature_id") == 1
    assert "[]" not in text


CASES = sorted(shared_folder().glob("cases/A*-plain"))


@pytest.mark.lane("samples")
@pytest.mark.parametrize("case", CASES or [None], ids=lambda case: case.name if case else "none")
def test_a_broken_history_is_read_and_repaired_as_far_as_it_goes(case: Path | None, tmp_path: Path) -> None:
    """Section "On Read": handle missing, report corruption; with every file of the public reports as a history."""
    assert case is not None, "the sample sessions lack the cases"
    expect = json.loads((case / "CASE.json").read_text("utf-8"))["expect"]
    keep = expect.get("keep")
    store = FeatureStore(tmp_path)
    store.create(ID)
    path = store.home / ID / "history.jsonl"
    data = (case / "session.jsonl").read_bytes()
    path.write_bytes(data)
    wanted = {f"R{number}" for number in keep} if isinstance(keep, list) else set()
    assert wanted <= _marks(store)
    before = _marks(store)
    store.validate()
    assert path.read_bytes() == data
    (store.home / ID / "state.yaml").unlink()
    store.repair(ID, rewrite_history=True)
    long_number = "number_too_long" in {
        problem.code for problem in store.validate(ID)
    }  # stays, and is not read
    after = before if long_number else before | {f"R{number}" for number in expect.get("salvage", ())}
    assert _marks(store) == after
    assert path.read_bytes() == data or data in {
        kept.read_bytes() for kept in path.parent.glob("*.original-*")
    }
    assert store.update(ID, model_in_use="opus").model_in_use == "opus"
    assert _marks(store) == after


def _marks(store: FeatureStore) -> set[str]:
    found = (re.match(r"R\d+", str(entry.get("content"))) for entry in store.history(ID))
    return {match[0] for match in found if match}
