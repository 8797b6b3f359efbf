"""The demonstration shows what it says, and would not say so if it were not so."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.testing.demo import SESSION, TURN, BrokenPromise, demonstrate, scratch_folder

kills = pytest.mark.lane("sigkill")

ROW = re.compile(
    r"^   (\d+)  +(at random|while it grows) +(\d+) +(\d+) +(-|[\d,]+ bytes) +(\d+) messages$", re.M
)
FLIPPED = b"\xf2ole"  # what the demonstration makes of the word ``role``


def demo(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from sessionary.cli import main; sys.exit(main())", "demo"]
    return subprocess.run(
        [*command, "--dir", str(folder), *arguments], capture_output=True, text=True, timeout=100, check=False
    )


@kills
def test_it_reports_what_it_did_and_the_facts_agree(tmp_path: Path) -> None:
    done = demo("--keep", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    weak = "the durability promises do not hold here: "  # printed where the test runs on a tmpfs
    assert [line for line in done.stderr.splitlines() if not line.startswith(weak)] == []
    rows = ROW.findall(done.stdout)
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 6
    for _, _, saved, under_way, _, found in rows:
        assert int(saved) <= int(found) <= int(saved) + int(under_way)
    inside = sum(1 for row in rows if int(row[3]))
    torn = [int(row[4].removesuffix(" bytes").replace(",", "")) for row in rows if row[4] != "-"]
    said = f"{inside} of {len(rows)} kills hit a save before it had returned; {len(torn)} truncated a line."
    assert inside > 0
    assert said in done.stdout
    (home,) = tmp_path.iterdir()
    sessions = home / "projects" / "-demo" / "sessions"
    session = sessions / SESSION
    kept = [path.stat().st_size for path in session.glob("transcript.jsonl.torn-*")]
    # A writer that is killed after it has kept a half line, and before it has cut it off, leaves it to be kept again.
    assert set(kept) == set(torn)
    assert len(kept) >= len(set(torn))
    assert len(list(session.glob("transcript.jsonl.corrupt-*"))) == 1
    messages = re.search(r"the backup fills the gap, all (\d+) messages are there", done.stdout)
    assert messages
    assert (session / "transcript.jsonl").read_bytes().count(b"\n") == int(messages[1])
    assert "No line is lost, none is doubled." in done.stdout
    for command in ("list", "show", "search", "check", "repair", "undo"):
        assert f"sessionary {command}" in done.stdout


@kills
def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, keep=False) as folder:
        reported = list(demonstrate(folder, kills=1, seed=1))
    assert "   The next save repairs the file; the damaged one is kept as *.corrupt-<time>." in reported
    assert list(tmp_path.iterdir()) == []


def lose_the_last_lines(session: Path) -> None:
    path = session / "transcript.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: -TURN - 1]))


def change_a_word(session: Path) -> None:
    path = session / "transcript.jsonl"
    path.write_bytes(path.read_bytes().replace(b"take so long", b"take no time", 1))


def lose_the_backup_of_what_is_damaged(session: Path) -> None:
    if FLIPPED in (session / "transcript.jsonl").read_bytes():
        (session / "transcript.jsonl.backup").unlink()


def heal_what_check_should_find(session: Path) -> None:
    path = session / "transcript.jsonl"
    path.write_bytes(path.read_bytes().replace(FLIPPED, b"role"))


@kills
@pytest.mark.parametrize(
    ("meddle", "complaint"),
    [
        (lose_the_last_lines, "messages were acknowledged, and"),
        (change_a_word, "message 0 is not what was written"),
        (lose_the_backup_of_what_is_damaged, "were recovered, or other ones"),
        (heal_what_check_should_find, "`check` does not find the damage"),
    ],
)
def test_a_planted_fault_is_noticed(meddle: Callable[[Path], None], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise, match=re.escape(complaint)):
        list(demonstrate(tmp_path, kills=1, seed=1, meddle=meddle))


@kills
def test_the_command_fails_where_a_promise_is_broken(tmp_path: Path) -> None:
    program = """
import functools, sys
from sessionary.cli import main
from sessionary.testing import demo

def empty(session):
    (session / "transcript.jsonl").write_bytes(b"\\n")

demo.demonstrate = functools.partial(demo.demonstrate, kills=1, meddle=empty)
sys.exit(main(["demo", "--dir", sys.argv[1]]))
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^FAILED: \d+ messages were acknowledged, and 0 are there\.$", done.stdout, re.M)
    assert list(tmp_path.iterdir()) == []
