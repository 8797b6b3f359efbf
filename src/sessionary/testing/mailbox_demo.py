"""The demo of the mailbox: producers are killed while they write a message, consumers while they apply one.

Nothing is simulated. Producer and consumer are processes of their own that use the public interface, and
report through a pipe what was acknowledged. The producers are killed while a message of megabytes is being
written; the consumers while their handler has a message, which is the moment at which other queues lose it or
apply it twice. At the end every acknowledged message is in the log exactly once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from sessionary.disk.fs import OS_FS
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb, write_crumb
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.mailbox import Mailbox
from sessionary.testing.demo_stage import BrokenPromise

KILLS = 4
BIG = 4 << 20
LONGEST_WAIT = 0.03  # seconds from the beginning of a write to a kill
PATIENCE = 20.0


class MailboxBroken(BrokenPromise):
    """A message was lost, or applied twice."""


Meddle = Callable[[Path], None]
"""Changes the session's folder without the mailbox."""


def demonstrate_mailbox(
    session: Path, *, kills: int = KILLS, seed: int | None = None, meddle: Meddle | None = None
) -> Iterator[str]:
    """Run the demo in the folder `session`, which is created, and yield its lines.

    Args:
        session: becomes the folder of a work session.
        kills: number of kills of a producer, and of a consumer.
        seed: the seed of the random moments.
        meddle: to test the demo itself: called before the count. What it does must be detected.

    Raises:
        MailboxBroken: a message was lost or applied twice; the lines before still hold.
    """
    session.mkdir(parents=True)
    rng = random.Random(seed)
    yield "7. Messages are posted to a mailbox and applied; producers and consumers are killed in the middle."
    yield ""
    yield _ROW.format("kill", "process", "in the middle of", "posted", "in the log")
    owed: set[str] = set()
    inside = 0
    for number in range(kills):
        told, cut_off = _kill_a_producer(session, rng)
        owed |= told
        inside += cut_off
        yield _ROW.format(2 * number + 1, "producer", "writing a message", len(owed), len(_log(session)))
        held = _kill_a_consumer(session, rng)
        yield _ROW.format(2 * number + 2, "consumer", f"applying {held[:8]}", len(owed), len(_log(session)))
    if meddle is not None:
        meddle(session)
    Mailbox.with_fs(OS_FS, session).consume(apply)
    there = _there(session)
    _check(owed, there, _log(session))
    yield ""
    yield f"   {inside} of {kills} producers were killed before their write had returned, each consumer in its handler."
    yield f"   A last consumer runs to the end: {len(there)} messages, {len(there)} lines in the log."
    yield f"   All {len(owed)} acknowledged messages are among them; none is applied twice."
    yield ""


_ROW = "   {:<4}  {:<8}  {:<18}  {:>7}  {:>10}"


def apply(crumb: Breadcrumb) -> dict[str, int]:
    """The consumer's handler."""
    return {"characters": len(crumb.prompt)}


def produce(session: str) -> None:
    """Post messages, small and large by turns, until killed. Reports its steps on standard output."""
    number = 0
    while True:
        text = "x" * (BIG if number % 2 else 100)
        crumb = create_breadcrumb(text, "", [], [], None, 0, "demo", {})
        _tell(f"writing {crumb.breadcrumb_id}")
        write_crumb(session, crumb)
        _tell(f"wrote {crumb.breadcrumb_id}")
        number += 1


def consume_and_hang(session: str) -> None:
    """Apply two messages; with the third stay in the handler until killed."""

    def hang(crumb: Breadcrumb) -> None:
        _tell(f"applying {crumb.breadcrumb_id}")
        time.sleep(PATIENCE)

    mailbox = Mailbox.with_fs(OS_FS, session)
    mailbox.consume(apply, limit=2)
    mailbox.consume(hang)
    _tell("applying nothing")
    time.sleep(PATIENCE)


def _tell(words: str) -> None:
    os.write(1, f"{words}\n".encode())


_PROGRAM = (
    "import sys; from sessionary.testing import mailbox_demo as m; getattr(m, sys.argv[1])(sys.argv[2])"
)


def _start(what: str, session: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _PROGRAM, what, str(session)], stdout=subprocess.PIPE)


def _kill_a_producer(session: Path, rng: random.Random) -> tuple[set[str], bool]:
    """Let a producer write some messages, and kill it in the next big one.

    Returns the acknowledged ids, and whether the kill came before its last write had returned.
    """
    with _start("produce", session) as producer:
        told: list[str] = []
        for _ in range(2 * rng.randint(1, 3) + 1):  # ends with the beginning of a big one
            told += [_words(producer) for _ in range(2)]
        told.append(_words(producer))
        time.sleep(rng.uniform(0, LONGEST_WAIT))
        producer.kill()
        told += _rest(producer)
    said = [line.split() for line in told]
    return {known for word, known in said if word == "wrote"}, said[-1][0] == "writing"


def _kill_a_consumer(session: Path, rng: random.Random) -> str:
    """Kill a consumer while its handler has a message; return the id of that message."""
    with _start("consume_and_hang", session) as consumer:
        held = _words(consumer).split()[1]
        time.sleep(rng.uniform(0, LONGEST_WAIT))
        consumer.kill()
    return held


def _words(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    if not line.endswith("\n"):
        raise MailboxBroken(f"a process ended by itself, with code {process.wait(PATIENCE)}")
    return line.strip()


def _rest(process: subprocess.Popen[bytes]) -> list[str]:
    assert process.stdout is not None
    return [line.decode().strip() for line in process.stdout if line.endswith(b"\n")]


def _log(session: Path) -> list[str]:
    """The ids in the log, line by line."""
    path = session / "log.jsonl"
    whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["breadcrumb_id"] for line in whole]


def _there(session: Path) -> set[str]:
    """The ids of the message files, each read as by any program."""
    files = (session / "breadcrumbs").glob("*/[!.]*.json")
    return {json.loads(path.read_bytes())["breadcrumb_id"] for path in files}


def _check(owed: set[str], there: set[str], log: list[str]) -> None:
    if lost := owed - there:
        raise MailboxBroken(f"of {len(owed)} acknowledged messages, {len(lost)} are lost")
    counts = Counter(log)
    if missing := there - set(counts):
        raise MailboxBroken(f"{len(missing)} of {len(there)} messages were never applied")
    if doubled := [known for known, count in counts.items() if count > 1]:
        raise MailboxBroken(f"{len(doubled)} messages were applied twice")
