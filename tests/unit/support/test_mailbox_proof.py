"""The test of the test: each wrong order of a consumer is caught, where it can be seen, and the right one is not."""

from pathlib import Path

import pytest

from tests.support.mailbox_proof import PLANTED, LogIsLedger, promise_of, setup, twice
from tests.support.survivors import MODELS, Model
from tests.support.sweeps import Report, crash_sweep

# A plain kill shows all of them but one, which needs a power cut.
CAUGHT_BY: dict[str, set[Model]] = {
    "ack before effect": {"prefix", "ordered", "relaxed"},
    "effect, then move": {"prefix", "ordered", "relaxed"},
    "high-water mark": {"prefix", "ordered", "relaxed"},
    "unsynced effect": {"ordered", "relaxed"},
    "unended line ignored": {"prefix", "ordered", "relaxed"},
}


def swept(name: str, root: Path, model: Model) -> Report:
    consume = PLANTED[name]()
    return crash_sweep(setup, twice(consume), promise_of(consume), root, models=[model], limit=16)


def test_all_of_them_are_here() -> None:
    assert set(CAUGHT_BY) == set(PLANTED)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CAUGHT_BY)
def test_which_model_catches_which_order(name: str, model: Model, tmp_path: Path) -> None:
    report = swept(name, tmp_path, model)
    assert bool(report.violations) == (model in CAUGHT_BY[name]), report.describe()
    assert report.places[model] > 20


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("ack before effect", "after recovery"),
        ("effect, then move", "'id-4': 2"),
        ("high-water mark", "after recovery {'id-4': 1, 'id-5': 1, 'id-6': 1}"),
        ("unended line ignored", "'id-4': 2"),
        ("unsynced effect", "acknowledged, and so often in the log: {'id-4': 0}"),
    ],
)
def test_the_order_shows_as_what_it_is(name: str, trouble: str, tmp_path: Path) -> None:
    troubles = {violation.trouble for violation in swept(name, tmp_path, "relaxed").violations}
    assert any(trouble in found for found in troubles), troubles


def test_nothing_is_found_in_the_right_order(tmp_path: Path) -> None:
    consume = LogIsLedger()
    report = crash_sweep(setup, twice(consume), promise_of(consume), tmp_path, limit=24)
    assert report.violations == [], report.describe()
    assert report.states > 100
