"""The main job, done before your eyes: an agent is killed while it saves, and nothing that it was promised is lost.

Nothing is played here. The writer is a process of its own, saving a conversation turn by turn with the store that
everybody uses. It says through a pipe when it begins a save and when the save has returned, so the one who kills it
knows what is owed. Half of the kills come at a random moment; the other half wait until the transcript begins to
grow, which is the middle of the write. What each kill really hit is told as it was found, also where it hit nothing.

`demo_stage` has the session and its conversation, `demo_surgery` the later acts: search, fork, rewind, undo, repair.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessionary.layouts.amplifier import SessionStore
from sessionary.model import Problem
from sessionary.testing.demo_stage import (
    BIG_EVERY,
    SESSION,
    TURN,
    BrokenPromise,
    Meddle,
    Stage,
    count,
    is_big,
    message,
    metadata,
)
from sessionary.testing.demo_surgery import died_in_a_call, forked_and_rewound, searched

KILLS = 6
LONGEST_WAIT = 0.04  # seconds from the beginning of a big save to a kill at a random moment
PATIENCE = 20.0  # seconds until something has surely gone wrong


def demonstrate(
    folder: Path, *, kills: int = KILLS, seed: int | None = None, meddle: Meddle | None = None
) -> Iterator[str]:
    """Do it all in `folder`, a folder of its own, and tell it line by line.

    Args:
        folder: where the sessions go: `folder` becomes an amplifier home.
        kills: how often the writer is killed; up to twice as often, if no kill has torn a line by then.
        seed: of the random moments.
        meddle: for the test of this test: called after each kill, and once more after the bit has flipped. What it
            takes away must be missed.

    Raises:
        BrokenPromise: something was not as promised; what was told before still holds.
    """
    stage = Stage(folder)
    yield from _killed_and_opened_again(stage, kills, random.Random(seed), meddle)
    yield from _goes_on(stage)
    yield from _damaged_and_recovered(stage, meddle)
    yield from searched(stage)
    yield from forked_and_rewound(stage)
    yield from died_in_a_call(stage)


@contextmanager
def scratch_folder(parent: Path | None, *, keep: bool) -> Iterator[Path]:
    """A folder of our own in `parent` (default: the system's folder for such), gone afterwards unless `keep`."""
    folder = Path(tempfile.mkdtemp(prefix="sessionary-demo-", dir=parent))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


# -- the writer, a process of its own


def write_conversation(base_dir: str, turns: int) -> None:
    """Load the session, go on with it for some turns, and save after each. Says on standard output what it does."""
    store = SessionStore(base_dir)
    transcript = store.load(SESSION)[0] if store.exists(SESSION) else []
    for _ in range(turns):
        turn = len(transcript) // TURN + 1
        transcript += [message(number) for number in range(len(transcript), turn * TURN)]
        _tell(f"saving {len(transcript)}")
        store.save(SESSION, transcript, metadata(turn))
        _tell(f"saved {len(transcript)}")


def _tell(words: str) -> None:
    os.write(1, f"{words}\n".encode())


_PROGRAM = "import sys; from sessionary.testing.demo import write_conversation as w; w(sys.argv[1], int(sys.argv[2]))"


class Writer:
    """The writer as the one who kills it sees it.

    Attributes:
        saved: messages whose save has returned.
        saving: messages of the save that is under way; 0 if none is.
    """

    def __init__(self, base_dir: Path, turns: int) -> None:
        command = [sys.executable, "-c", _PROGRAM, str(base_dir), str(turns)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.saved = 0
        self.saving = 0

    def wait_for_big_save(self) -> None:
        """Read what it says until it begins to save a big turn.

        Raises:
            BrokenPromise: it ended before that.
        """
        while not (self.saving and is_big(self.saving // TURN - 1)):
            if not self._read():
                raise BrokenPromise(f"the writer ended by itself, with code {self.process.wait(PATIENCE)}")

    def kill(self) -> None:
        """End it at once (SIGKILL; on Windows TerminateProcess), and read what it had still said."""
        self.process.kill()
        self.finish()

    def finish(self) -> int:
        """Read all that it says and wait for its end. Returns its exit code."""
        while self._read():
            pass
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            return False  # the end; half a line was never said
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
    yield "1. An agent saves its conversation turn by turn, and is killed in the middle."
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
    yield f"   {inside} of {done} kills hit a save before it had returned; {torn} tore a line in two."
    yield "   Each time, every message whose save had returned was there, word for word."
    yield ""


_ROW = "   {:<4}  {:<14}  {:>5}  {:>9}  {:>15}  {:>12}"


@dataclass(frozen=True, slots=True)
class Hit:
    """What a kill hit.

    Attributes:
        saved: messages that the writer knew to be saved.
        saving: messages of the save that never returned; 0 if there was none.
        torn: bytes of half a line that it left at the end of the file.
        as_it_grew: True if the kill waited until the file began to grow.
    """

    saved: int
    saving: int
    torn: int
    as_it_grew: bool

    def cells(self) -> tuple[str, int, int, str]:
        """What a row of the table says of it."""
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
    # Where the file is as it was, half a line at its end is that of the kill before.
    torn = 0 if after == before else len(after) - (after.rfind(b"\n") + 1)
    return Hit(writer.saved, writer.saving, torn, as_it_grows)


def _wait_until_it_grows(path: Path, writer: Writer) -> None:
    """Look at the size without a pause: a write takes milliseconds, and its middle is what is wanted.

    The file may shrink first, when half a line of the kill before is cut off.
    """
    size = path.stat().st_size
    end = time.monotonic() + PATIENCE
    while (now := path.stat().st_size) <= size:
        size = now
        if writer.process.poll() is not None or time.monotonic() > end:
            raise BrokenPromise("the writer began a save and wrote nothing")


def _what_is_there(stage: Stage, owed: int) -> int:
    """How many messages the session has, all of them compared with what was written.

    Raises:
        BrokenPromise: one is missing, or not as it was written.
    """
    found, _ = stage.load()
    if len(found) < owed:
        raise BrokenPromise(f"{owed} messages were acknowledged, and {len(found)} are there")
    for number, stored in enumerate(found):
        if {**stored, "timestamp": None} != {**message(number), "timestamp": None}:
            raise BrokenPromise(f"message {number} is not what was written")
    return len(found)


# -- act two: it goes on


def _goes_on(stage: Stage) -> Iterator[str]:
    yield "2. The conversation goes on."
    yield ""
    before = _what_is_there(stage, 0)
    writer = Writer(stage.base_dir, turns=1)
    code = writer.finish()
    if code:
        raise BrokenPromise(f"the writer ended with code {code}")
    after = _what_is_there(stage, writer.saved)
    if after <= before:
        raise BrokenPromise("the conversation did not go on")
    yield f"   Another turn is saved: {after} messages. A strict reader of the format accepts the file."
    try:
        for line in stage.transcript.read_text(encoding="utf-8").splitlines():
            json.loads(line)
    except ValueError as error:
        raise BrokenPromise("a strict reader refuses the file") from error
    kept = sorted(stage.session.glob("transcript.jsonl.torn-*"))
    if kept:
        size = sum(path.stat().st_size for path in kept)
        yield f"   The half lines were not thrown away: {size:,} bytes in {count(len(kept), 'file')} *.torn-<time>."
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
    yield f"   `check` finds it: {problem.code}, line {problem.line}, from byte {problem.byte:,} on."
    found, problems = stage.load()
    if found != whole or "filled_from_backup" not in {told.code for told in problems}:
        raise BrokenPromise(f"of {len(whole)} messages, {len(found)} came back, or not the same ones")
    yield f"   The session is opened: the backup fills the gap, all {len(found)} messages are there."
    yield from _written_back(stage, whole, damaged)
    yield ""


def _flip_a_bit(stage: Stage) -> tuple[int, int]:
    """Flip one bit of a message in the middle of what the backup holds; its line and its offset."""
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
    raise BrokenPromise(f"`check` does not see the damage; it says {[problem.code for problem in found]}")


def _written_back(stage: Stage, whole: list[dict[str, Any]], damaged: bytes) -> Iterator[str]:
    store = SessionStore(stage.base_dir)
    store.load(SESSION)
    store.save(SESSION, whole, metadata(len(whole) // TURN))
    kept = [Path(path).read_bytes() for path in store.last_report.quarantined]
    if kept != [damaged]:
        raise BrokenPromise("the damaged file was not kept aside")
    if stage.load()[0] != whole or stage.check():
        raise BrokenPromise("the save did not write the session back whole")
    yield "   The next save writes it back; the damaged file is kept as *.corrupt-<time>."
