"""The later acts of the demo: a session is searched, forked, rewound and repaired, with each change undone.

Everything is compared byte by byte. The acts accept any healthy session, so that tests can use a small one,
and tamper with it to see a check fail.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from sessionary.layouts.amplifier import SessionStore
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.search import Needle, Query, Search, Target
from sessionary.testing.demo_stage import SESSION, TURN, BrokenPromise, Meddle, Stage, count, message

WORDS = "compiled EVERYTHING again"  # part of the answer of every turn
TORN = b'{"role": "tool", "tool_call_id": "call_x", "content": "half of what it sa'


def searched(stage: Stage) -> Iterator[str]:
    """A search finds every answer, and nothing else."""
    yield "4. The conversation is searched."
    yield ""
    size = stage.transcript.stat().st_size
    target = Target(stage.ref, AmplifierLayout(stage.home))
    began = time.perf_counter()
    hits = list(Search(Query((Needle(WORDS),))).hits([target]))
    took = time.perf_counter() - began
    messages, _ = stage.load()
    wanted = list(range(TURN - 1, len(messages), TURN))
    if [hit.index for hit in hits] != wanted:
        raise BrokenPromise(f"{len(wanted)} answers contain the words, but {len(hits)} messages were found")
    yield f'   `search "{WORDS}"`: {len(hits)} hits in {size / 1e6:.0f} MB, {took * 1000:.0f} ms.'
    yield "   Every answer with these words was found, in any case, and nothing else."
    yield ""


def forked_and_rewound(stage: Stage, meddle: Meddle | None = None) -> Iterator[str]:
    """A fork does not change its parent; an undo restores a rewind byte by byte."""
    yield "5. The session is forked and rewound, and the rewind is undone."
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
    yield f"   `fork --turn {chosen}`: a new session of {held}; the old one is unchanged."
    gone = store.rewind(SESSION, chosen)
    if stage.transcript.read_bytes() != half or store.get_metadata(SESSION).get("turn_count") != chosen:
        raise BrokenPromise(f"after the rewind the session does not end with turn {chosen}")
    went = f"{count(turns - chosen, 'turn')} removed, {count(gone.messages_dropped, 'message')}"
    yield f"   `rewind {chosen}`: {went}; the metadata is updated."
    if meddle is not None:
        meddle(stage.session)
    store.undo(SESSION)
    if stage.transcript.read_bytes() != before:
        raise BrokenPromise("the undo did not restore every byte")
    yield f"   `undo`: all {len(before):,} bytes are restored."
    yield ""


def died_in_a_call(stage: Stage, meddle: Meddle | None = None) -> Iterator[str]:
    """An agent that dies in a tool call leaves a session that providers refuse; repair loses no line of it."""
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
    yield "   `check` finds what a model provider would refuse: a call without a result, a truncated line."
    plan = store.repair(SESSION, dry_run=True)
    if stage.transcript.read_bytes() != whole + asked + TORN:
        raise BrokenPromise("a dry run has written something")
    done = store.repair(SESSION)
    if meddle is not None:
        meddle(stage.session)
    if plan.diff != done.diff or stage.check():
        raise BrokenPromise("the repair was not what the dry run said, or something is still wrong")
    if not stage.transcript.read_bytes().startswith(whole + asked):
        raise BrokenPromise("an undamaged line has changed")
    yield "   `repair` adds a result to the call, exactly as its dry run had shown."
    yield f"   All {number + 2} readable messages are unchanged; {done.set_aside} bytes are set aside."
    store.undo(SESSION)
    if stage.transcript.read_bytes() != whole + asked + TORN:
        raise BrokenPromise("the undo did not restore the damaged file")
    store.undo(SESSION)
    yield "   `undo` restores even the damage; a second undo repairs it again."
    if stage.check():
        raise BrokenPromise("the second undo did not restore the repaired session")
    yield ""
