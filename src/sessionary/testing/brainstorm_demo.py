"""An act of the demo: a brainstorm goes back, continues and branches, and loses no answer.

Each line is printed after the files on disk were read again and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessionary.layouts.brainstorm.navigation import list_in
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.brainstorm.texts import jump_summary, sparkline
from sessionary.testing.demo_stage import BrokenPromise

SLUG = "demo-auth"
TALK = (
    (25, "Which kind of sign-in?", "OAuth2 for the integrations"),
    (38, "How long does a session live?", "A day, then it is renewed"),
    (52, "How is one revoked?", "By a list that every service reads"),
)
ANOTHER = "An hour, and nothing has to be revoked"


def went_back_and_on(project: Path) -> Iterator[str]:
    """Hold a brainstorm in `project`, a folder of its own, and yield the lines of the demo.

    Raises:
        BrokenPromise: an answer was lost, or `continue` did not restore the state before `back`.
    """
    store = BrainstormStore(project)
    yield "8. A brainstorm goes back, continues and branches, and keeps every answer."
    yield ""
    _hold(store)
    held = store.load(SLUG)
    yield f"   {len(held.history)} iterations, the score went {sparkline(held.ems_line)} to {held.ems}"
    yield from _back_and_on(store)
    yield from _branch(store)
    yield ""


def _hold(store: BrainstormStore) -> None:
    for number, (ems, question, answer) in enumerate(TALK):
        if number == 0:
            store.create(SLUG, questions=[question], ems=ems)
        else:
            store.continue_(SLUG, [question], ems=ems)
        store.answer(SLUG, [answer], ems=ems)


def _back_and_on(store: BrainstormStore) -> Iterator[str]:
    before = _said(store)
    jump = store.back(SLUG, 2)
    yield from (f"   {line}".rstrip() for line in jump_summary(jump).splitlines())
    for _ in range(2):
        store.continue_(SLUG)
    if _said(store) != before:
        raise BrokenPromise("back and continue changed the brainstorm")
    yield "   Continued twice: all values of the session are as before."


def _branch(store: BrainstormStore) -> Iterator[str]:
    store.back(SLUG)
    store.answer(SLUG, [ANOTHER])
    history = list_in(store.load(SLUG).session, "history")
    kept = [text for entry in history for text in entry["responses"]]
    missing = {ANOTHER, *(answer for _, _, answer in TALK)} - set(kept)
    if missing:
        raise BrokenPromise(f"an answer was lost: {missing.pop()}")
    given_up = len(store.load(SLUG).superseded)
    yield f"   Went back again and gave new answers: a branch, and all {len(set(kept))} answers are in the file;"
    yield f"   {given_up} entries are marked as superseded, none is lost."


def _said(store: BrainstormStore) -> dict[str, object]:
    """The session without the time of its last change."""
    return {**store.load(SLUG).session, "updated": None}
