"""A sweep looks at every state once, reports what it found so that a user can follow it, and cleans up."""

import os
from pathlib import Path
from typing import Any

from sessionary.disk.fs import CREATE, FILE_MODE, sync_dir
from tests.support.planted import CorrectWriter, NoSyncBeforeRename, check, work
from tests.support.recorder import RecordingFs
from tests.support.sweeps import Report, Violation, crash_sweep, pairs, record


def nothing(folder: str) -> None: ...


def one_line(fs: RecordingFs) -> None:
    CorrectWriter(fs, fs.root).append({"number": 0})
    fs.mark(("log", 0))


def one_state(fs: RecordingFs) -> None:
    CorrectWriter(fs, fs.root).replace({"number": 0})
    fs.mark(("state", 0))


def test_the_check_sees_every_state_in_a_folder_of_its_own(tmp_path: Path) -> None:
    seen: list[tuple[str, dict[str, bytes], tuple[Any, ...]]] = []

    def setup(folder: str) -> None:
        Path(folder, "before").write_bytes(b"0")

    def operation(fs: RecordingFs) -> None:
        fs.close(fs.open(f"{fs.root}/a", CREATE, FILE_MODE))
        sync_dir(fs, fs.root)
        fs.mark("done")

    def look(folder: str, acked: tuple[Any, ...]) -> None:
        files = {name: Path(folder, name).read_bytes() for name in os.listdir(folder)}
        seen.append((folder, files, acked))
        Path(folder, "a check may write").touch()

    report = crash_sweep(setup, operation, look, tmp_path)
    before, after = {"before": b"0"}, {"before": b"0", "a": b""}
    assert [entry[1:] for entry in seen] == [(before, ()), (after, ()), (after, ("done",))]
    assert len({folder for folder, _, _ in seen}) == 3
    assert report.places == {"prefix": 3, "ordered": 3, "relaxed": 3}  # judged once, counted for each model
    assert os.listdir(tmp_path) == []


def test_a_violation_reports_the_steps(tmp_path: Path) -> None:
    report = crash_sweep(
        nothing, lambda fs: work(NoSyncBeforeRename(fs, fs.root), fs, 1), check, tmp_path, models=["ordered"]
    )
    assert report.violations
    text = report.describe(1)
    assert text.startswith(f"{len(report.violations)} violations in {report.states} states\n\n")
    assert "power cut after" in text
    empty = [str(violation) for violation in report.violations if "left: state.json = b''" in violation.story]
    assert empty
    assert all("   LOST write 13 bytes at 0 to .state.json.tmp\n" in story for story in empty)


def test_whatever_a_reader_raises_is_a_finding(tmp_path: Path) -> None:
    def crash(folder: str, acked: tuple[Any, ...]) -> None:
        raise KeyError(folder)

    report = crash_sweep(nothing, one_line, crash, tmp_path, models=["prefix"])
    assert len(report.violations) == report.states > 3
    assert {violation.trouble for violation in report.violations} == {"KeyError: '<root>'"}


def test_pairs_are_all_of_them_in_both_orders(tmp_path: Path) -> None:
    both = pairs({"line": one_line, "state": one_state})
    assert list(both) == ["line, then line", "line, then state", "state, then line", "state, then state"]
    fs = record(nothing, both["state, then line"], tmp_path / "work")
    assert fs.acked == (("state", 0), ("log", 0))


def test_a_correct_pair_passes(tmp_path: Path) -> None:
    operation = pairs({"line": one_line, "state": one_state})["line, then state"]
    report = crash_sweep(nothing, operation, check, tmp_path)
    assert report.violations == [], report.describe()
    assert report.states > 20


def test_a_report_shows_one_violation_of_each_kind() -> None:
    report = Report()
    for place, trouble in (
        ("relaxed", "lost"),
        ("relaxed", "lost"),
        ("ordered", "lost"),
        ("relaxed", "torn"),
    ):
        report.count(place)
        report.violations.append(Violation(place, trouble, f"story of {place}"))
    assert report.describe(99).count("story of") == 3
    assert report.describe(1).count("story of") == 1
    assert report.states == 4
