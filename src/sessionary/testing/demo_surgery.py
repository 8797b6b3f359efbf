"""The later acts of the demonstration: a session is searched, forked, rewound, put right, and each time brought back.

Everything is compared byte by byte with what was there before. The acts take any healthy session of the stage, so that
tests can put a small one there, and meddle with it where a promise should be missed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from sessionary.layouts.amplifier import SessionStore
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.search import Needle, Place, Query, Search
from sessionary.testing.demo_stage import SESSION, TURN, BrokenPromise, Meddle, Stage, count, message

WORDS = "compiled EVERYTHING anew"  # stands in the answer of every turn
TORN = b'{"role": "tool", "tool_call_id": "call_x", "content": "half of what it sa'


def searched(stage: Stage) -> Iterator[str]:
    """Words are found in every answer, and nowhere else."""
    yield "4. Words are looked for."
    yield ""
    size = stage.transcript.stat().st_size
    place = Place(stage.ref, AmplifierLayout(stage.home), str(stage.transcript), None, size)
    began = time.perf_counter()
    hits = list(Search(Query((Needle(WORDS),))).hits([place]))
    took = time.perf_counter() - began
    messages, _ = stage.load()
    wanted = list(range(TURN - 1, len(messages), TURN))
    if [hit.index for hit in hits] != wanted:
        raise BrokenPromise(f"{len(wanted)} answers hold the words, and {len(hits)} messages were found")
    yield f'   `search "{WORDS}"`: {len(hits)} hits in {size / 1e6:.0f} MB, {took * 1000:.0f} ms.'
    yield "   Every answer that says so was found, whatever its case, and nothing else."
    yield ""


def forked_and_rewound(stage: Stage, meddle: Meddle | None = None) -> Iterator[str]:
    """A fork leaves its parent alone; what a rewind takes comes back byte by byte."""
    yield "5. Another way is tried, and taken back."
    yield ""
    store = SessionStore(stage.base_dir)
    before = stage.transcript.read_bytes()
    turns = before.count(b"\n") // TURN
    chosen = turns // 2
    half = b"".join(before.splitlines(keepends=True)[: chosen * TURN])
    fork = store.fork(SESSION, chosen)
    made = stage.base_dir / fork.session_id / "transcript.jsonl"
    if meddle is not None:
        meddle(stage.session)
    if made.read_bytes() != half or stage.transcript.read_bytes() != before:
        raise BrokenPromise("the fork is not the first half of its parent, or the parent has changed")
    held = count(fork.message_count, "message")
    yield f"   `fork --turn {chosen}`: a new session of {held}; the old one is as it was."
    gone = store.rewind(SESSION, chosen)
    if stage.transcript.read_bytes() != half or store.get_metadata(SESSION).get("turn_count") != chosen:
        raise BrokenPromise(f"after the rewind the session does not end with turn {chosen}")
    went = f"{count(turns - chosen, 'turn')} went, {count(gone.messages_dropped, 'message')}"
    yield f"   `rewind {chosen}`: {went}; the metadata says so too."
    if meddle is not None:
        meddle(stage.session)
    store.undo(SESSION)
    if stage.transcript.read_bytes() != before:
        raise BrokenPromise("the undo did not bring every byte back")
    yield f"   `undo`: all {len(before):,} bytes are back."
    yield ""


def died_in_a_call(stage: Stage, meddle: Meddle | None = None) -> Iterator[str]:
    """An agent that died in a tool call leaves a session that no provider takes; repair loses no line of it."""
    yield "6. An agent without a safe store dies in the middle of a tool call."
    yield ""
    store = SessionStore(stage.base_dir)
    whole = stage.transcript.read_bytes()
    number = whole.count(b"\n")
    asked = b"".join(json.dumps(message(at)).encode() + b"\n" for at in (number, number + 1))
    stage.transcript.write_bytes(whole + asked + TORN)
    found = sorted({problem.code for problem in stage.check()})
    if found != ["orphaned_call", "torn_tail"]:
        raise BrokenPromise(f"`check` finds {found}")
    yield "   `check` finds what a model provider would refuse: a call without a result, half a line."
    plan = store.repair(SESSION, dry_run=True)
    if stage.transcript.read_bytes() != whole + asked + TORN:
        raise BrokenPromise("a dry run has written something")
    done = store.repair(SESSION)
    if meddle is not None:
        meddle(stage.session)
    if plan.diff != done.diff or stage.check():
        raise BrokenPromise("the repair was not what the dry run said, or something is still wrong")
    if not stage.transcript.read_bytes().startswith(whole + asked):
        raise BrokenPromise("a line that was well is not what it was")
    yield "   `repair` gives the call a result that says so, and does what its dry run had shown."
    yield f"   All {number + 2} messages that could be read are as they were; {done.set_aside} bytes are set aside."
    store.undo(SESSION)
    if stage.transcript.read_bytes() != whole + asked + TORN:
        raise BrokenPromise("the undo did not bring the damaged file back")
    store.undo(SESSION)
    yield "   `undo` brings even the damage back; undone once more, it is repaired again."
    if stage.check():
        raise BrokenPromise("the second undo did not lead back to the repaired session")
    yield ""
