"""Sessions that end, are opened again, or made room; the time that was worked; what `back` wants of a file."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore
from sessionary.errors import AlreadyExists, InvalidId, NotFound, TransitionError
from tests.unit.layouts.brainstorm.samples import (
    FOLDER,
    START,
    after,
    document,
    entry,
    golden,
    old_document,
    put,
)


@pytest.fixture
def store(tmp_path: Path) -> BrainstormStore:
    return BrainstormStore(tmp_path)


def minutes(store: BrainstormStore, slug: str = "sign-in") -> Any:
    return store.load(slug).session.get("duration_minutes")


# -- save


def test_a_checkpoint_stores_the_time_worked_and_nothing_else(store: BrainstormStore, tmp_path: Path) -> None:
    """Section "Save Session", the explicit `save`."""
    path = put(tmp_path, "sign-in", document())
    before = document()["session"]
    found = store.checkpoint("sign-in", now=after(50))
    assert found.session == {**before, "duration_minutes": 50, "updated": "2026-01-09T11:20:00Z"}
    data = path.read_bytes()
    store.checkpoint("sign-in", now=after(50.5))
    assert path.read_bytes() == data


# -- reopen


@pytest.mark.parametrize("status", ["completed", "abandoned"])
def test_a_session_that_has_ended_can_be_opened_again(
    store: BrainstormStore, tmp_path: Path, status: str
) -> None:
    put(tmp_path, "sign-in", document(status=status))
    with pytest.raises(TransitionError) as caught:
        store.answer("sign-in", ["x"])
    assert "sessionary brainstorm reopen sign-in" in str(caught.value.hint)
    found = store.reopen("sign-in", now=after(90))
    assert (found.status, minutes(store)) == ("in_progress", 30)
    store.answer("sign-in", ["x"], now=after(91))
    assert store.load("sign-in").history[-1]["responses"][-1] == "x"


def test_reopening_what_is_open_changes_nothing(store: BrainstormStore, tmp_path: Path) -> None:
    path = put(tmp_path, "sign-in", document())
    data = path.read_bytes()
    assert store.reopen("sign-in").status == "in_progress"
    assert path.read_bytes() == data


def test_a_status_of_another_program_is_not_reopened(store: BrainstormStore, tmp_path: Path) -> None:
    put(tmp_path, "sign-in", document(status="frozen"))
    with pytest.raises(TransitionError) as caught:
        store.reopen("sign-in")
    assert "in_progress, completed, abandoned" in str(caught.value.hint)


# -- the time that was worked


def test_the_duration_grows_by_work_not_by_the_age_of_the_file(store: BrainstormStore) -> None:
    """Section "Session Metadata", total duration in minutes; a session rests between two sittings."""
    store.create("sign-in", questions=["Who?"], now=START)
    store.answer("sign-in", ["We"], now=after(10))
    assert minutes(store) == 10
    store.continue_("sign-in", ["What?"], now=after(25))
    assert minutes(store) == 25
    month = 30 * 24 * 60
    store.answer("sign-in", ["That"], now=after(month))
    assert minutes(store) == 25
    store.idea("sign-in", "Links", now=after(month + 12))
    assert minutes(store) == 37
    store.update("sign-in", persona="sparring", now=after(month + 20))
    assert minutes(store) == 45
    store.finish("sign-in", now=after(2 * month))
    assert minutes(store) == 45


def test_changes_within_seconds_of_each_other_add_up(store: BrainstormStore) -> None:
    store.create("sign-in", questions=["Who?"], now=START)
    for number in range(1, 91):
        store.idea("sign-in", f"idea {number}", now=after(number * 2 / 3))
    assert minutes(store) == 60


def test_statements_about_answers_count_without_a_write_in_between(store: BrainstormStore) -> None:
    store.create("sign-in", questions=["Who?"], now=START)
    store.answer("sign-in", ["We"], duration=50, now=after(60))
    assert minutes(store) == 50
    store.continue_("sign-in", ["What?"], now=after(65))
    assert minutes(store) == 55


def test_a_step_back_is_not_work(store: BrainstormStore, tmp_path: Path) -> None:
    put(tmp_path, "sign-in", document())
    store.back("sign-in", now=after(40))
    store.continue_("sign-in", now=after(50))
    assert minutes(store) == 30


def test_the_duration_of_a_migrated_file_leaves_pauses_out(store: BrainstormStore, tmp_path: Path) -> None:
    history = [entry(1, 30), entry(2, 40, 10, timestamp="2026-01-09T10:50:00Z")]
    old = old_document("old")
    old["session"] |= {"history": history, "iteration": 2, "created": "2026-01-09T10:30:00Z"}
    old["session"] |= {"updated": "2026-01-12T09:00:00Z"}
    put(tmp_path, "old", old)
    assert minutes(store, "old") == 20


def test_a_clock_set_back_does_not_reduce_the_duration(store: BrainstormStore, tmp_path: Path) -> None:
    put(tmp_path, "sign-in", document())
    store.idea("sign-in", "Links", now=datetime.fromisoformat("2025-01-01T00:00:00Z"))
    assert minutes(store) == 30


# -- back on files that lack what it wants


@pytest.mark.parametrize(("slug", "at"), [("feature-checkout", 2), ("refactor-api", 4)])
def test_back_on_the_examples_without_history_says_what_is_missing(
    store: BrainstormStore, tmp_path: Path, slug: str, at: int
) -> None:
    """Sections "Example with Party Mode Active" and "Example with Expert Panel Active"."""
    path = put(tmp_path, slug, golden(slug))
    data = path.read_bytes()
    with pytest.raises(NotFound) as caught:
        store.back(slug, now=START)
    assert f"cannot go back from iteration {at}: the file has no session.history" in caught.value.message
    assert caught.value.details == {"iteration": at, "entries": [], "missing": at - 1}
    assert path.read_bytes() == data
    assert f"`sessionary brainstorm continue {slug}`" in str(caught.value.hint)
    # As the hint says.
    ems, phase = store.load(slug).ems, store.load(slug).phase
    store.continue_(slug, ["And now?"], ems=90, now=START)
    jump = store.back(slug, now=START)
    assert (jump.iteration, store.load(slug).ems, store.load(slug).phase) == ((at + 1, at), ems, phase)


def test_back_to_a_gap_names_the_steps_that_are_possible(store: BrainstormStore, tmp_path: Path) -> None:
    history = [entry(1, 30), entry(2, 40), entry(4, 60), entry(5, 70)]
    put(tmp_path, "sign-in", document(history=history, iteration=5))
    with pytest.raises(NotFound) as caught:
        store.back("sign-in", 2)
    assert caught.value.hint == "go back 1, 3, 4 instead"


# -- the archive


def archived(store: BrainstormStore) -> list[tuple[str, str | None]]:
    return [(Path(row.path).stem, row.status) for row in store.archived()]


def test_what_made_room_is_listed_and_brought_back(store: BrainstormStore, tmp_path: Path) -> None:
    store.create("sign-in", ems=40, now=START)
    store.create("sign-in", new=True, ems=50, now=after(60))
    assert archived(store) == [("sign-in-2026-01-09", "abandoned")]
    with pytest.raises(AlreadyExists) as caught:
        store.restore_archived("sign-in-2026-01-09")
    assert "--replace" in str(caught.value.hint)
    path = store.restore_archived("sign-in-2026-01-09", replace=True, now=after(70))
    assert path == store.path("sign-in")
    assert (store.load("sign-in").ems, store.load("sign-in").status) == (40, "abandoned")
    assert archived(store) == [("sign-in-2026-01-09-2", "abandoned")]
    store.reopen("sign-in", now=after(71))
    store.restore_archived("sign-in", replace=True, now=after(72))
    assert store.load("sign-in").ems == 50
    assert archived(store) == [("sign-in-2026-01-09", "abandoned")]


def test_a_slug_means_the_newest_in_the_archive(store: BrainstormStore, tmp_path: Path) -> None:
    for number, day in enumerate(("09", "11", "10")):
        put(
            tmp_path,
            f"archive/sign-in-2026-01-{day}",
            document(ems=number, updated=f"2026-01-{day}T00:00:00Z", history=[]),
        )
    store.restore_archived("sign-in")
    assert store.load("sign-in").ems == 1
    assert [name for name, _ in archived(store)] == ["sign-in-2026-01-09", "sign-in-2026-01-10"]


@pytest.mark.parametrize("name", ["other", "sign", "../sign-in"])
def test_what_the_archive_does_not_have_is_not_found(
    store: BrainstormStore, tmp_path: Path, name: str
) -> None:
    put(tmp_path, "archive/sign-in-2026-01-09", document())
    with pytest.raises(NotFound) as caught:
        store.restore_archived(name)
    assert "list --archived" in str(caught.value.hint)
    assert not list(Path(tmp_path, FOLDER).glob(".*.lock"))


def test_a_session_in_the_way_that_cannot_be_read_stays(store: BrainstormStore, tmp_path: Path) -> None:
    from sessionary.errors import Corrupt

    put(tmp_path, "archive/sign-in-2026-01-09", document())
    path = put(tmp_path, "sign-in", b"session: [\n")
    with pytest.raises(Corrupt):
        store.restore_archived("sign-in", replace=True)
    assert path.read_bytes() == b"session: [\n"
    assert len(archived(store)) == 1


def test_a_broken_file_in_the_archive_is_listed(store: BrainstormStore, tmp_path: Path) -> None:
    put(tmp_path, "archive/sign-in-2026-01-09", b"session: [\n")
    (row,) = store.archived()
    assert (row.slug, row.readable) == ("sign-in", False)


def test_a_name_that_can_be_no_session_is_not_brought_back(store: BrainstormStore, tmp_path: Path) -> None:
    put(tmp_path, "archive/Odd Name", document())
    with pytest.raises(InvalidId):
        store.restore_archived("Odd Name")
