"""The acts of the demonstration on brainstorms and features: they tell what holds, and notice what does not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessionary import BrainstormStore, FeatureStore
from sessionary.testing.brainstorm_demo import SLUG, went_back_and_on
from sessionary.testing.demo_stage import BrokenPromise
from sessionary.testing.feature_demo import FEATURE, rebuilt_from_history


def play(act: Iterator[str], cue: str, meddle: Callable[[], None]) -> None:
    """Let an act run, and meddle with what it works on when it has told a certain line."""
    for line in act:
        if line.startswith(cue):
            meddle()


def test_a_brainstorm_goes_back_and_on(tmp_path: Path) -> None:
    told = list(went_back_and_on(tmp_path))
    assert [line.split()[0] for line in told if line.endswith((";", "as before."))] == ["Continued", "Went"]
    assert max(map(len, told)) <= 100
    assert len(BrainstormStore(tmp_path).load(SLUG).superseded) == 2


def test_a_lost_answer_is_noticed(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)

    def lose_one() -> None:
        path = Path(store.path(SLUG))
        path.write_text(path.read_text().replace("OAuth2", "SAML"))

    with pytest.raises(BrokenPromise):
        play(went_back_and_on(tmp_path), "   Continued", lose_one)


def test_a_state_is_rebuilt_from_the_history(tmp_path: Path) -> None:
    told = list(rebuilt_from_history(tmp_path))
    assert told[-2].startswith("   Task, model and times")
    assert FeatureStore(tmp_path).load(FEATURE).active_task == "T2"


def test_a_history_that_lost_a_line_is_noticed(tmp_path: Path) -> None:
    history = FeatureStore(tmp_path).home / FEATURE / "history.jsonl"

    def lose_one() -> None:
        *kept, _last = history.read_bytes().splitlines(keepends=True)
        history.write_bytes(b"".join(kept))

    with pytest.raises(BrokenPromise):
        play(rebuilt_from_history(tmp_path), "   Destroyed", lose_one)
