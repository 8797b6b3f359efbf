"""The demonstration shows what it says, and would not say so if it were not so."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessionary.layouts.amplifier import SessionStore
from sessionary.testing.demo import demonstrate, scratch_folder
from sessionary.testing.demo_stage import SESSION, TURN, BrokenPromise, Stage, message, metadata
from sessionary.testing.demo_surgery import TORN, died_in_a_call, forked_and_rewound, searched

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
def test_it_tells_what_it_did_and_the_facts_agree(tmp_path: Path) -> None:
    done = demo("--keep", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    weak = "the durability promises do not hold here: "  # said where the test lies on a tmpfs
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
    (fork,) = [path for path in sessions.iterdir() if path != session]
    kept = [path.stat().st_size for path in session.glob("transcript.jsonl.torn-*")]
    # A writer that is killed after it has kept a half line, and before it has cut it off, leaves it to be kept again.
    assert set(kept) == set(torn)
    assert len(kept) >= len(set(torn))
    corrupt = sorted(session.glob("transcript.jsonl.corrupt-*"))
    assert [path.read_bytes() == TORN + b"\n" for path in corrupt] == [False, True]
    messages = re.search(r"the backup fills the gap, all (\d+) messages are there", done.stdout)
    assert messages
    count = int(messages[1])
    stored = (session / "transcript.jsonl").read_bytes().splitlines(keepends=True)
    assert len(stored) >= count + 3  # the question, the call, and the result that the repair has added
    assert b"".join(stored[: count // 2 // TURN * TURN]) == (fork / "transcript.jsonl").read_bytes()
    hits = re.search(r"`search .*`: (\d+) hits", done.stdout)
    assert hits
    assert (
        int(hits[1]) == count // TURN == sum(b"compiled everything again" in line for line in stored[:count])
    )
    log = (home / "docs" / "sessions" / "demo" / "log.jsonl").read_bytes().count(b"\n")
    assert f"{log} messages, {log} lines in the log.\n" in done.stdout
    for command in ("list", "show", "search", "check", "repair", "undo"):
        assert f"sessionary {command}" in done.stdout


@kills
def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, keep=False) as folder:
        told = list(demonstrate(folder, kills=1, seed=1))
    assert "   The next save repairs the file; the damaged one is kept as *.corrupt-<time>." in told
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


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """The stage with a small healthy session."""
    stage = Stage(tmp_path)
    SessionStore(stage.base_dir).save(SESSION, [message(number) for number in range(2 * TURN)], metadata(2))
    return stage


def test_the_later_acts_tell_what_they_did(stage: Stage) -> None:
    told = "\n".join([*searched(stage), *forked_and_rewound(stage), *died_in_a_call(stage)])
    assert '`search "compiled EVERYTHING again"`: 2 hits' in told
    assert "`fork --turn 1`: a new session of 4 messages; the old one is unchanged." in told
    assert "`rewind 1`: 1 turn removed, 4 messages; the metadata is updated." in told
    assert f"All 10 readable messages are unchanged; {len(TORN) + 1} bytes are set aside." in told


def test_a_search_that_misses_an_answer_is_noticed(stage: Stage) -> None:
    path = stage.transcript
    path.write_bytes(path.read_bytes().replace(b"everything again", b"nothing again", 1))
    with pytest.raises(BrokenPromise, match="2 answers contain the words, but 1 messages were found"):
        list(searched(stage))


@pytest.mark.parametrize(
    ("act", "meddle", "complaint"),
    [
        (forked_and_rewound, change_a_word, "or the parent has changed"),
        (died_in_a_call, change_a_word, "an undamaged line has changed"),
        (died_in_a_call, lose_the_last_lines, "something is still wrong|a line that was well"),
    ],
)
def test_a_planted_fault_of_the_later_acts_is_noticed(
    act: Callable[..., Iterator[str]], meddle: Callable[[Path], None], complaint: str, stage: Stage
) -> None:
    with pytest.raises(BrokenPromise, match=complaint):
        list(act(stage, meddle))


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
