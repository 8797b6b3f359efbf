"""The demo: an agent is killed while it saves, and no acknowledged message is lost.

Nothing is simulated. The writer is a process of its own that saves a conversation turn by turn with the
public store. It reports through a pipe when it begins a save and when the save has returned, so the killing
process knows what was acknowledged. Half of the kills come at a random moment; the other half wait until the
transcript begins to grow, which is the middle of the write. The effect of each kill is printed as found, also
if it hit nothing.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.model import Problem, SessionRef, Severity

KILLS = 6
LONGEST_WAIT = 0.04  # seconds from the beginning of a big save to a kill at a random moment
PATIENCE = 20.0  # seconds after which something is certainly wrong

SESSION = "5e551011-a4c7-4d3e-9b1f-2f0c6d8e7a90"
PROJECT = "-demo"
TURN = 4  # messages of a turn: question, tool call, result, answer
BIG_EVERY = (
    3  # turns; the result of such a turn takes milliseconds to write, so that a kill can hit the middle
)
BIG = 3 << 20

Meddle = Callable[[Path], None]
"""Changes the session's folder without the store."""


class BrokenPromise(AssertionError):
    """A check of the demo failed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The folder of the demo."""

    home: Path

    @property
    def base_dir(self) -> Path:
        """The folder for the store."""
        return self.home / "projects" / PROJECT / "sessions"

    @property
    def session(self) -> Path:
        """The folder of the session."""
        return self.base_dir / SESSION

    @property
    def transcript(self) -> Path:
        """The conversation."""
        return self.session / "transcript.jsonl"

    def load(self) -> tuple[list[dict[str, Any]], list[Problem]]:
        """The loaded conversation, and the report of the load."""
        messages, _, report = SessionStore(self.base_dir).load_with_report(SESSION)
        return messages, report.problems

    @property
    def ref(self) -> SessionRef:
        """The session, for commands."""
        (found,) = [ref for ref in AmplifierLayout(self.home).discover() if ref.session_id == SESSION]
        return found

    def check(self) -> list[Problem]:
        """The findings of `sessionary check`, without notes."""
        found = AmplifierLayout(self.home).check(self.ref)
        return [problem for problem in found if problem.severity > Severity.note]


def demonstrate(
    folder: Path, *, kills: int = KILLS, seed: int | None = None, meddle: Meddle | None = None
) -> Iterator[str]:
    """Run the demo in `folder`, a folder of its own, and yield its lines.

    Args:
        folder: becomes an amplifier home.
        kills: number of kills; up to twice as many, if none has truncated a line by then.
        seed: the seed of the random moments.
        meddle: to test the demo itself: called after each kill, and once more after the bit flip. Data that
        it removes must be detected.

    Raises:
        BrokenPromise: a check failed; the lines before still hold.
    """
    stage = Stage(folder)
    yield from _killed_and_opened_again(stage, kills, random.Random(seed), meddle)
    yield from _goes_on(stage)
    yield from _damaged_and_recovered(stage, meddle)


@contextmanager
def scratch_folder(parent: Path | None, *, keep: bool) -> Iterator[Path]:
    """A scratch folder in `parent` (default: the system's temporary folder), removed afterwards unless `keep`."""
    folder = Path(tempfile.mkdtemp(prefix="sessionary-demo-", dir=parent))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


# -- the conversation: a message is a function of its number, so that what a reader gets can be compared


def message(number: int) -> dict[str, Any]:
    """The message with that number, always the same; without a time, which the store adds."""
    turn, part = divmod(number, TURN)
    if part == 0:
        return {"role": "user", "content": f"Question {turn}: why did step {turn} of the build take so long?"}
    call = f"call_{turn}"
    if part == 1:
        arguments = {"command": f"cat build-{turn}.log"}
        calls = [{"id": call, "tool": "bash", "arguments": arguments}]
        return {"role": "assistant", "content": f"I look at the log of step {turn}.", "tool_calls": calls}
    if part == 2:
        line = f"[step {turn}] compiling… ok\n"
        times = BIG // len(line) if is_big(turn) else 20
        return {"role": "tool", "tool_call_id": call, "name": "bash", "content": line * times}
    return {"role": "assistant", "content": f"Step {turn} compiled everything again: its cache was missing."}


def is_big(turn: int) -> bool:
    """True for a turn whose tool result is long."""
    return turn % BIG_EVERY == BIG_EVERY - 1


def metadata(turns: int) -> dict[str, Any]:
    """The metadata of the agent."""
    return {
        "session_id": SESSION,
        "created": "2025-01-31T12:00:00.000Z",
        "bundle": "bundle:demo",
        "turn_count": turns,
        "name": "The slow build",
    }


def count(number: int, what: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


# -- the writer, a process of its own


def write_conversation(base_dir: str, turns: int) -> None:
    """Load the session, continue it for some turns, and save after each. Reports its steps on standard output."""
    store = SessionStore(base_dir)
    transcript = store.load(SESSION)[0] if store.exists(SESSION) else []
    for _ in range(turns):
        turn = len(transcript) // TURN + 1
        transcript += [message(number) for number in range(len(transcript), turn * TURN)]
        _report(f"saving {len(transcript)}")
        store.save(SESSION, transcript, metadata(turn))
        _report(f"saved {len(transcript)}")


def _report(words: str) -> None:
    os.write(1, f"{words}\n".encode())


_PROGRAM = "import sys; from sessionary.testing.demo import write_conversation as w; w(sys.argv[1], int(sys.argv[2]))"


class Writer:
    """The writer, as seen by the killing process.

    Attributes:
        saved: number of messages whose save has returned.
        saving: number of messages of the save in progress; 0 if there is none.
    """

    def __init__(self, base_dir: Path, turns: int) -> None:
        command = [sys.executable, "-c", _PROGRAM, str(base_dir), str(turns)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.saved = 0
        self.saving = 0

    def wait_for_big_save(self) -> None:
        """Read its reports until it begins to save a big turn.

        Raises:
            BrokenPromise: it ended before that.
        """
        while not (self.saving and is_big(self.saving // TURN - 1)):
            if not self._read():
                raise BrokenPromise(f"the writer ended by itself, with code {self.process.wait(PATIENCE)}")

    def kill(self) -> None:
        """Kill it (SIGKILL; on Windows TerminateProcess), and read its remaining reports."""
        self.process.kill()
        self.finish()

    def finish(self) -> int:
        """Read all reports and wait for its end. Returns its exit code."""
        while self._read():
            pass
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            return False  # the end; half a line is not a report
        word, count = line.split()
        if word == b"saved":
            self.saved, self.saving = int(count), 0
        else:
            self.saving = int(count)
        return True


# -- act one: killed, and opened again


def _killed_and_opened_again(
    stage: Stage, kills: int, rng: random.Random, meddle: Meddle | None
) -> Iterator[str]:
    yield "1. An agent saves its conversation turn by turn, and is killed in the middle of a save."
    yield ""
    yield _ROW.format("kill", "when", "saved", "under way", "half a line", "opened again")
    owed = inside = torn = done = 0
    while done < kills or (not torn and done < 2 * kills):
        done += 1
        hit = _kill_once(stage, owed, as_it_grows=done % 2 == 0, rng=rng)
        if meddle is not None:
            meddle(stage.session)
        owed = _what_is_there(stage, hit.saved)
        inside += bool(hit.saving)
        torn += bool(hit.torn)
        yield _ROW.format(done, *hit.cells(), f"{owed} messages")
    if not inside:
        raise BrokenPromise(f"none of {done} kills hit a save, so nothing was shown")
    yield ""
    yield f"   {inside} of {done} kills hit a save before it had returned; {torn} truncated a line."
    yield "   Each time, every message whose save had returned was there, unchanged."
    yield ""


_ROW = "   {:<4}  {:<14}  {:>5}  {:>9}  {:>15}  {:>12}"


@dataclass(frozen=True, slots=True)
class Hit:
    """The effect of a kill.

    Attributes:
        saved: number of messages that the writer knew to be saved.
        saving: number of messages of the interrupted save; 0 if there was none.
        torn: bytes of half a line at the end of the file.
        as_it_grew: True if the kill waited until the file began to grow.
    """

    saved: int
    saving: int
    torn: int
    as_it_grew: bool

    def cells(self) -> tuple[str, int, int, str]:
        """The cells of its row in the table."""
        when = "while it grows" if self.as_it_grew else "at random"
        half = f"{self.torn:,} bytes" if self.torn else "-"
        return when, self.saved, max(self.saving - self.saved, 0), half


def _kill_once(stage: Stage, owed: int, *, as_it_grows: bool, rng: random.Random) -> Hit:
    writer = Writer(stage.base_dir, turns=2 * BIG_EVERY)
    writer.saved = owed
    try:
        writer.wait_for_big_save()
        before = stage.transcript.read_bytes()
        if as_it_grows:
            _wait_until_it_grows(stage.transcript, writer)
        else:
            time.sleep(rng.uniform(0, LONGEST_WAIT))
    finally:
        writer.kill()
    after = stage.transcript.read_bytes()
    # If the file is unchanged, half a line at its end is from the previous kill.
    torn = 0 if after == before else len(after) - (after.rfind(b"\n") + 1)
    return Hit(writer.saved, writer.saving, torn, as_it_grows)


def _wait_until_it_grows(path: Path, writer: Writer) -> None:
    """Poll the size without a pause: a write takes milliseconds, and the kill must hit its middle.

    The file may shrink first, when half a line of the previous kill is truncated.
    """
    size = path.stat().st_size
    end = time.monotonic() + PATIENCE
    while (now := path.stat().st_size) <= size:
        size = now
        if writer.process.poll() is not None or time.monotonic() > end:
            raise BrokenPromise("the writer began a save and wrote nothing")


def _what_is_there(stage: Stage, owed: int) -> int:
    """Number of messages of the session, after comparing all of them with what was written.

    Raises:
        BrokenPromise: a message is missing or changed.
    """
    found, _ = stage.load()
    if len(found) < owed:
        raise BrokenPromise(f"{owed} messages were acknowledged, and {len(found)} are there")
    for number, stored in enumerate(found):
        if {**stored, "timestamp": None} != {**message(number), "timestamp": None}:
            raise BrokenPromise(f"message {number} is not what was written")
    return len(found)


# -- act two: it continues


def _goes_on(stage: Stage) -> Iterator[str]:
    yield "2. The conversation continues."
    yield ""
    before = _what_is_there(stage, 0)
    writer = Writer(stage.base_dir, turns=1)
    code = writer.finish()
    if code:
        raise BrokenPromise(f"the writer ended with code {code}")
    after = _what_is_there(stage, writer.saved)
    if after <= before:
        raise BrokenPromise("the conversation did not continue")
    yield f"   Another turn is saved: {after} messages. A strict reader of the format accepts the file."
    try:
        for line in stage.transcript.read_text(encoding="utf-8").splitlines():
            json.loads(line)
    except ValueError as error:
        raise BrokenPromise("a strict reader refuses the file") from error
    kept = sorted(stage.session.glob("transcript.jsonl.torn-*"))
    if kept:
        size = sum(path.stat().st_size for path in kept)
        yield f"   The truncated lines are kept: {size:,} bytes in {count(len(kept), 'file')} *.torn-<time>."
    yield ""


# -- act three: a bit flips


def _damaged_and_recovered(stage: Stage, meddle: Meddle | None) -> Iterator[str]:
    yield "3. A bit of the transcript flips."
    yield ""
    whole, _ = stage.load()
    line, byte = _flip_a_bit(stage)
    damaged = stage.transcript.read_bytes()
    if meddle is not None:
        meddle(stage.session)
    yield f"   The damage: line {line}, byte {byte:,} of {len(damaged):,}."
    problem = _found_by_check(stage, line, byte)
    yield f"   `check` finds it: {problem.code}, line {problem.line}, byte {problem.byte:,}."
    found, problems = stage.load()
    if found != whole or "filled_from_backup" not in {problem.code for problem in problems}:
        raise BrokenPromise(f"of {len(whole)} messages, {len(found)} were recovered, or other ones")
    yield f"   The session is loaded: the backup fills the gap, all {len(found)} messages are there."
    yield from _written_back(stage, whole, damaged)
    yield ""


def _flip_a_bit(stage: Stage) -> tuple[int, int]:
    """Flip one bit of a message in the middle of the part that the backup has; return its line and its offset."""
    data = bytearray(stage.transcript.read_bytes())
    held = (stage.session / "transcript.jsonl.backup").read_bytes().count(b"\n")
    line = held // 2 + 1
    byte = 0
    for _ in range(line - 1):
        byte = data.index(b"\n", byte) + 1
    byte += len('{"')
    data[byte] ^= 0x80
    stage.transcript.write_bytes(data)
    return line, byte


def _found_by_check(stage: Stage, line: int, byte: int) -> Problem:
    found = stage.check()
    for problem in found:
        if problem.line == line and problem.byte is not None and 0 <= byte - problem.byte < problem.span:
            return problem
    raise BrokenPromise(f"`check` does not find the damage; it reports {[problem.code for problem in found]}")


def _written_back(stage: Stage, whole: list[dict[str, Any]], damaged: bytes) -> Iterator[str]:
    store = SessionStore(stage.base_dir)
    store.load(SESSION)
    store.save(SESSION, whole, metadata(len(whole) // TURN))
    kept = [Path(path).read_bytes() for path in store.last_report.quarantined]
    if kept != [damaged]:
        raise BrokenPromise("the damaged file was not kept aside")
    if stage.load()[0] != whole or stage.check():
        raise BrokenPromise("the save did not restore the complete session")
    yield "   The next save repairs the file; the damaged one is kept as *.corrupt-<time>."
