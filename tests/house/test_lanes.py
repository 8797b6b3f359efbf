"""The promises of lanes: a lane that cannot run is reported, and a required one fails."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import lanes

Runner = Callable[..., tuple[int, str]]

NEEDS_ORIGINAL = """
import pytest

@pytest.mark.lane("original")
def test_beside_the_original():
    raise AssertionError("this machine has no original")

def test_everywhere():
    pass
"""

POSIX = """
import pytest

@pytest.mark.lane("sigkill")
def test_killed():
    pass
"""


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Run pytest on one file of tests, with the lanes plugin and a list of required lanes."""

    def run(source: str, *arguments: str, require: str = "") -> tuple[int, str]:
        (tmp_path / "test_inner.py").write_text(source)
        (tmp_path / "pytest.ini").write_text("[pytest]\nstrict_markers = true\n")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "SESSIONARY"))}
        environment |= {"PYTHONPATH": str(lanes.REPO), lanes.REQUIRE: require, "COLUMNS": "200"}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.lanes",
            "-p",
            "no:cacheprovider",
            "-ra",
            *arguments,
        ]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run


def last_lines(output: str, count: int = 2) -> str:
    return "\n".join(output.strip().splitlines()[-count:])


original_missing = pytest.mark.skipif(
    lanes.PROBES["original"]() is None, reason="the original is installed here"
)


@original_missing
def test_a_lane_that_cannot_run_is_named_with_its_reason(run: Runner) -> None:
    code, output = run(NEEDS_ORIGINAL)
    assert code == 0
    assert "NOT RUN lane original: the package amplifier_foundation is not installed" in last_lines(output)
    assert "1 passed, 1 skipped" in last_lines(output)


@original_missing
@pytest.mark.lane("sigkill")
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_a_required_lane_that_cannot_run_fails_the_run(run: Runner, workers: list[str]) -> None:
    code, output = run(NEEDS_ORIGINAL + POSIX, *workers, require="sigkill, original")
    assert code == 1
    assert "NOT RUN lane original: the package amplifier_foundation is not installed (required by" in output
    assert "ran lane sigkill: 1 tests" in output
    assert "2 passed, 1 skipped" in last_lines(output)


@pytest.mark.lane("sigkill")
def test_a_required_lane_that_runs_passes(run: Runner) -> None:
    code, output = run(POSIX, require="sigkill")
    assert code == 0
    assert "ran lane sigkill: 1 tests" in output
    assert "NOT RUN" not in output


@pytest.mark.lane("sigkill")
def test_a_lane_whose_tests_are_all_deselected_did_not_run(run: Runner) -> None:
    code, output = run(POSIX, "-k", "nothing_of_that_name", require="sigkill")
    assert code == 1
    assert "NOT RUN lane sigkill: no test of it ran (required by" in output


@pytest.mark.lane("sigkill")
def test_a_failing_test_of_a_lane_keeps_its_own_exit_code(run: Runner) -> None:
    code, output = run(POSIX.replace("pass", "assert False"), require="sigkill")
    assert code == 1
    assert "NOT RUN" not in output


def test_a_required_lane_that_does_not_exist_is_refused(run: Runner) -> None:
    code, output = run(POSIX, require="sigkil")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "names unknown lanes: sigkil" in output


def test_a_mark_with_an_unknown_lane_is_refused(run: Runner) -> None:
    code, output = run(POSIX.replace('"sigkill"', '"sigkil"'))
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "unknown lane 'sigkil'" in output


@pytest.mark.lane("disk-full")
def test_the_tiny_disk_is_tiny(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1] + '/file', 'wb').write(bytes(1 << 20))"
    done = lanes.run_on_tiny_disk(code, tmp_path / "disk", size="128k")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert not (tmp_path / "disk" / "file").exists()  # the mount was the child's alone


def test_the_shared_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(lanes.SHARED, str(tmp_path))
    assert lanes.shared_folder() == tmp_path
    monkeypatch.delenv(lanes.SHARED)
    assert lanes.shared_folder() == lanes.REPO.parent / "shared"
