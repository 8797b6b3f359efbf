"""The test of the tests: each planted bug is caught, by the models that can see it, and the correct writer is not."""

import errno
from pathlib import Path

import pytest

from tests.support.faults import Fault, FaultFs
from tests.support.planted import (
    PLANTED,
    CorrectWriter,
    NoDirectorySync,
    NoSyncBeforeRename,
    RetriedSync,
    RewriteInPlace,
    UnsyncedAppend,
    UnsyncedNewFile,
    check,
    work,
)
from tests.support.recorder import RecordingFs
from tests.support.survivors import MODELS, Model
from tests.support.sweeps import Report, crash_sweep

# A kill (prefix) shows one of the five. That is why killing processes proves so little.
CAUGHT_BY: dict[type[CorrectWriter], set[Model]] = {
    CorrectWriter: set(),
    NoSyncBeforeRename: {"ordered", "relaxed"},
    NoDirectorySync: {"ordered", "relaxed"},
    UnsyncedAppend: {"ordered", "relaxed"},
    UnsyncedNewFile: {"ordered", "relaxed"},
    RewriteInPlace: {"prefix", "ordered", "relaxed"},
}


def swept(writer: type[CorrectWriter], root: Path, model: Model) -> Report:
    return crash_sweep(
        lambda folder: None, lambda fs: work(writer(fs, fs.root), fs), check, root, models=[model], limit=60
    )


def test_all_five_are_here() -> None:
    assert set(CAUGHT_BY) == {CorrectWriter, *PLANTED}
    assert len(PLANTED) == 5


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("writer", CAUGHT_BY)
def test_which_model_catches_which_bug(writer: type[CorrectWriter], model: Model, tmp_path: Path) -> None:
    report = swept(writer, tmp_path, model)
    assert bool(report.violations) == (model in CAUGHT_BY[writer]), report.describe()
    assert report.places[model] > 20


@pytest.mark.parametrize(
    ("writer", "trouble"),
    [
        (NoSyncBeforeRename, "JSONDecodeError"),
        (NoDirectorySync, "an older state than the acknowledged one"),
        (UnsyncedAppend, "an acknowledged line of the log is lost"),
        (UnsyncedNewFile, "an acknowledged line of the log is lost"),
        (RewriteInPlace, "JSONDecodeError"),
    ],
)
def test_the_bug_shows_as_what_it_is(writer: type[CorrectWriter], trouble: str, tmp_path: Path) -> None:
    report = swept(writer, tmp_path, "relaxed")
    assert any(trouble in violation.trouble for violation in report.violations)


def _work_with_a_failed_flush(writer: type[CorrectWriter], root: Path, n: int) -> Report:
    def operation(fs: RecordingFs) -> None:
        one = writer(fs, fs.root)
        for number in range(3):
            try:
                one.append({"number": number})
            except OSError:
                return  # unknown: neither acknowledged nor written again
            fs.mark(("log", number))

    disk = FaultFs(plan=Fault("fdatasync", n, errno.EIO))
    return crash_sweep(lambda folder: None, operation, check, root, inner=disk)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_flush_that_is_tried_again_is_caught_where_a_flush_fails(n: int, tmp_path: Path) -> None:
    assert swept(RetriedSync, tmp_path, "relaxed").violations == []
    report = _work_with_a_failed_flush(RetriedSync, tmp_path, n)
    assert any("acknowledged line of the log is lost" in violation.trouble for violation in report.violations)
    honest = _work_with_a_failed_flush(CorrectWriter, tmp_path, n)
    assert honest.violations == [], honest.describe()
