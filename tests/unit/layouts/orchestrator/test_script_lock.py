"""The lock of the contract's own scripts: they and we keep one another out, and neither for ever."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Locked
from sessionary.layouts.orchestrator.layout import FeatureLayout
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.layouts.summary import summaries, summary_of
from sessionary.testing.wrapper import UNSYNCED, WrappedFs
from tests.unit.layouts.orchestrator.conftest import ID

LOCK = ".state.lock"
# As the scripts lock: the file must not exist yet (set -C), and holds the id of the shell.
SCRIPT = """
import os, sys, time
path, tries = sys.argv[1], int(sys.argv[2])
for _ in range(tries):
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        break
    except FileExistsError:
        time.sleep(0.01)
else:
    sys.exit("locked out")
os.write(fd, b"%d\\n" % os.getpid())
os.close(fd)
print("locked", flush=True)
sys.stdin.read()
os.unlink(path)
"""


def script(feature: Path, tries: int = 1) -> "subprocess.Popen[str]":
    """A script that tries to lock a feature, and holds the lock until its input is closed."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(feature / LOCK), str(tries)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def let_go(process: "subprocess.Popen[str]") -> None:
    process.communicate()


def test_nothing_of_ours_keeps_a_script_out_after_a_write(store: Any, feature: Path) -> None:
    """Section "Locking Strategy": a file lock for updates of the state."""
    store.update(ID, model_in_use="opus")
    assert not (feature / LOCK).exists()
    process = script(feature)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    let_go(process)


def test_a_script_is_kept_out_while_we_write(
    make: Any, feature: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section "Locking Strategy": a file lock for updates of the state."""
    reported: list[str] = []

    def settle(_: Any) -> None:
        assert int((feature / LOCK).read_text()) == os.getpid()
        reported.append(script(feature).communicate()[1])

    monkeypatch.setattr("sessionary.layouts.orchestrator.feature.Feature.settle", settle)
    make().update(ID, model_in_use="opus")
    assert reported == ["locked out\n"]


def test_we_are_kept_out_while_a_script_writes(make: Any, feature: Path) -> None:
    """Sections "Locking Strategy" and "Recovery Procedures", 3."""
    process = script(feature)
    assert process.stdout is not None
    process.stdout.readline()
    before = (feature / "state.yaml").read_bytes()
    with pytest.raises(Locked) as caught:
        make(timeout=0.2).update(ID, model_in_use="opus")
    assert caught.value.details["pid"] == process.pid
    assert caught.value.error_context is not None
    assert caught.value.error_context["file"] == str(feature / LOCK)
    assert (feature / "state.yaml").read_bytes() == before
    assert [p.code for p in make().validate(ID) if "lock" in p.code] == [], "it works"
    let_go(process)
    assert make(timeout=0.2).update(ID, model_in_use="opus").model_in_use == "opus"


def test_a_script_that_was_killed_is_found_and_its_lock_is_only_taken_away_by_hand(
    make: Any, feature: Path
) -> None:
    process = script(feature)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    let_go(process)
    (found,) = [problem for problem in make().validate(ID) if problem.code == "foreign_lock"]
    assert str(process.pid) in found.message
    assert found.severity.name == "stops_resume"
    writes: list[Any] = [lambda: make().update(ID), lambda: make().repair(ID)]
    for write in writes:
        with pytest.raises(Locked) as caught:
            write()
        assert f"remove {feature / LOCK}" in str(caught.value.hint)
    assert (feature / LOCK).exists()
    (feature / LOCK).unlink()  # as both remedies say
    make().update(ID)
    assert "foreign_lock" not in {problem.code for problem in make().validate(ID)}


@pytest.mark.parametrize("left", [b"", b" 4194300\n"])
def test_what_a_killed_process_of_ours_leaves_is_found_and_repaired(
    make: Any, feature: Path, left: bytes
) -> None:
    """Earlier versions had their kernel lock on an empty file of this name."""
    (feature / LOCK).write_bytes(left)
    (found,) = [problem for problem in make().validate(ID) if problem.code == "stale_lock"]
    assert "repair" in str(found.repair)
    assert "removed the lock of a killed process" in make().repair(ID).actions
    assert make().repair(ID).actions == []
    assert not (feature / LOCK).exists()
    assert "stale_lock" not in {problem.code for problem in make().validate(ID)}


def test_no_lock_moves_to_the_archive_or_back(store: Any, feature: Path) -> None:
    store.complete(ID)
    place = store.archive(ID)
    assert not (place / LOCK).exists()
    (place / LOCK).write_bytes(b" 1\n")
    store.unarchive(ID)
    assert not (feature / LOCK).exists()


def test_a_lock_is_not_a_part_of_a_feature(store: Any, home: Path, feature: Path) -> None:
    """Nothing carries it to another machine, git ignores it, and a list does not stumble over it."""
    layout = FeatureLayout(home)
    (ref,) = layout.discover()
    size = summary_of(layout, ref).size
    for name in (".state.lock", ".sessionary.lock"):
        assert name in layout.side_files
        (feature / name).write_text(" 1\n")
    assert not [part.name for part in layout.parts(ref) if part.name.endswith("lock")]
    assert summary_of(layout, ref).size == size


def test_a_list_continues_while_a_feature_is_written(store: Any, home: Path, feature: Path) -> None:
    """A lock or a temporary file may be gone between its name and a look at it."""

    class Gone(WrappedFs):
        def listdir(self, path: str) -> list[str]:
            return [*self.inner.listdir(path), ".state.lock", ".state.yaml.0123456789abcdef.tmp"]

    assert [summary.ref.session_id for summary in summaries(FeatureLayout(home, Gone(UNSYNCED)))] == [ID]


def test_two_stores_of_one_process_keep_one_another_out(make: Any, feature: Path) -> None:
    one, other = make(), make(timeout=0.05)
    with one._feature(str(feature)).held(1), pytest.raises(Locked):
        other.update(ID)
    assert isinstance(other, FeatureStore)
    other.update(ID)
