"""Any order of answering, going on, going back and branching: no answer is ever lost, and back then on is nothing.

The model knows nothing of the store: a list of lines of iterations, a place in the last one, and every answer given.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sessionary import BrainstormStore, Invalid, TransitionError
from sessionary.codec.yaml_read import load_yaml

SLUG = "sign-in"
TEXTS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), min_size=1, max_size=3)
SCORES = st.integers(0, 100)
PHASES = st.sampled_from(["divergent", "transition", "convergent"])


class Step:
    """One iteration of the model."""

    def __init__(self, questions: list[str], ems: int, phase: str, asked: Any) -> None:
        self.questions, self.ems, self.phase, self.asked = questions, ems, phase, asked
        self.responses: list[str] = []


class BrainstormMachine(RuleBasedStateMachine):
    """Section "Back Command", history is preserved, continue goes forward."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="sessionary-brainstorm-"))
        self.store = BrainstormStore(self.root)
        self.now = datetime(2026, 1, 9, 10, 30, tzinfo=UTC)
        self.line: list[Step] = []
        self.at = 0
        self.given: list[str] = []

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def tick(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now

    @property
    def is_back(self) -> bool:
        return self.at < len(self.line)

    @initialize(questions=TEXTS, ems=SCORES, comment=st.booleans(), more=st.integers(0, 4))
    def begin(self, questions: list[str], ems: int, comment: bool, more: int) -> None:
        self.store.create(SLUG, questions=questions, ems=ems, now=self.now)
        if comment:
            path = Path(self.store.path(SLUG))
            path.write_bytes(b"# noted by hand\n" + path.read_bytes())
        self.line = [Step(questions, ems, "divergent", questions[-1])]
        self.at = 1
        for number in range(more):  # there is a way back from the first moment on
            self.answer([f"answer {number}"])
            self.go_on([f"question {number}?"], 10 * number, "divergent", f"{number}: what is open?")

    @rule(responses=TEXTS)
    def answer(self, responses: list[str]) -> None:
        self.store.answer(SLUG, responses, now=self.tick())
        self.given += responses
        here = self.line[self.at - 1]
        if self.is_back:
            self.line = self.line[: self.at]
            if here.responses:
                here = self.line[-1] = Step(here.questions, here.ems, here.phase, None)
            here.asked = here.questions[-1]
        here.responses = here.responses + responses

    @precondition(lambda self: not self.is_back)
    @rule(questions=TEXTS, ems=SCORES, phase=PHASES, asked=st.none() | st.just("What is open?"))
    def go_on(self, questions: list[str], ems: int, phase: str, asked: Any) -> None:
        jump = self.store.continue_(
            SLUG, questions, ems=ems, phase=phase, last_question=asked, now=self.tick()
        )
        self.line.append(Step(questions, ems, phase, asked or questions[-1]))
        self.at += 1
        assert jump.iteration == (self.at - 1, self.at)

    @rule(steps=st.sampled_from([1, 1, 1, 2, 2, 3, 4, 5, 6, 0, -1]))
    def go_back(self, steps: int) -> None:
        if not 1 <= steps <= min(5, self.at - 1):
            with pytest.raises(Invalid):
                self.store.back(SLUG, steps, now=self.tick())
            return
        jump = self.store.back(SLUG, steps, now=self.tick())
        self.at -= steps
        here = self.line[self.at - 1]
        assert (jump.iteration[1], jump.ems[1], jump.phase[1]) == (self.at, here.ems, here.phase)
        assert jump.questions == here.questions

    @precondition(lambda self: self.is_back)
    @rule()
    def go_forward(self) -> None:
        with pytest.raises(TransitionError):
            self.store.continue_(SLUG, ["Something new?"], now=self.tick())
        assert self.store.continue_(SLUG, now=self.tick()).iteration == (self.at, self.at + 1)
        self.at += 1

    @precondition(lambda self: self.at > 1 and not self.is_back)
    @rule(data=st.data())
    def back_then_forward_is_nothing(self, data: st.DataObject) -> None:
        before = self.stored()
        steps = data.draw(st.integers(1, min(5, self.at - 1)))
        self.store.back(SLUG, steps, now=self.tick())
        for _ in range(steps):
            self.store.continue_(SLUG, now=self.tick())
        after = self.stored()
        for document in (before, after):
            document["session"].pop("updated")
        assert after == before

    @rule(content=st.text(st.characters(codec="utf-8", categories=["L"]), min_size=1, max_size=5))
    def note_an_idea(self, content: str) -> None:
        self.store.idea(SLUG, content, score=5, now=self.tick())

    @rule()
    def save_what_has_not_changed(self) -> None:
        before = Path(self.store.path(SLUG)).read_bytes()
        assert not self.store.save(self.store.load(SLUG), now=self.tick())
        assert Path(self.store.path(SLUG)).read_bytes() == before

    def stored(self) -> Any:
        return load_yaml(Path(self.store.path(SLUG)).read_bytes())

    @invariant()
    def no_answer_is_lost(self) -> None:
        if not self.line:
            return
        history = self.stored()["session"]["history"]
        kept = [text for entry in history for text in entry["responses"]]
        assert sorted(kept) == sorted(self.given)

    @invariant()
    def the_session_is_where_the_model_is(self) -> None:
        if not self.line:
            return
        found = self.store.load(SLUG)
        here = self.line[self.at - 1]
        assert (found.iteration, found.tip) == (self.at, len(self.line))
        assert (found.ems, found.phase) == (here.ems, here.phase)
        assert found.session["last_question"] == (here.questions[-1] if self.is_back else here.asked)
        assert [(e["questions"], e["responses"], e["ems"]) for e in found.history] == [
            (step.questions, step.responses, step.ems) for step in self.line
        ]
        assert found.problems == []


TestBrainstorm = BrainstormMachine.TestCase
if settings().max_examples <= 100:
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    TestBrainstorm.settings = settings(max_examples=30, stateful_step_count=16, phases=phases)
