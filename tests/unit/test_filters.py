"""Which sessions a list has, and their order."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.errors import Invalid, NotFound, StorageFailed
from sessionary.model import SessionRef, Summary
from sessionary.workspace import Workspace
from sessionary.workspace.filters import by_recency

_OLDEST = datetime.min.replace(tzinfo=UTC)
_near = st.sampled_from([datetime(2026, 3, 1, 9, 0, second, tzinfo=UTC) for second in range(3)])
_far = st.integers(0, 17 * 10**14).map(
    lambda micros: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
)


def summary(
    session_id: str, updated: datetime | None = None, folder: str = "/s", health: str = "ok", kind: str = "pi"
) -> Summary:
    ref = SessionRef(kind, session_id, f"{folder}/{session_id}", "-app" if folder == "/app" else None)
    return Summary(ref, kind, None, None, 0, 0, None, None, updated, 0, health)


def newest(summaries: list[Summary]) -> list[Summary]:
    return sorted(summaries, key=by_recency(), reverse=True)


@given(st.dictionaries(st.text("abc", max_size=4), st.none() | _near | _far))
def test_the_newest_comes_first_and_of_equals_the_greater_id(times: dict[str, datetime | None]) -> None:
    summaries = [summary(session_id, updated) for session_id, updated in times.items()]
    expected = sorted(summaries, key=lambda one: (one.updated or _OLDEST, one.ref.session_id), reverse=True)
    assert newest(summaries) == expected


def test_of_equal_ids_the_greater_folder_comes_first() -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    summaries = [summary("one", when, folder) for folder in ("/b", "/c", "/a")]
    assert newest(summaries) == [summaries[1], summaries[0], summaries[2]]


def test_a_time_in_the_future_that_the_catalogue_kept_counts_as_unknown() -> None:
    now = datetime.now(UTC)
    some = [summary("a", now + timedelta(days=400)), summary("b", now - timedelta(days=9)), summary("c")]
    assert [one.ref.session_id for one in newest(some)] == ["b", "c", "a"]


def test_latest_is_the_first_of_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    some = [summary("a", now + timedelta(days=400)), summary("b", now - timedelta(days=9)), summary("c")]
    monkeypatch.setattr(Workspace, "summaries", lambda *_: iter(some))
    workspace = Workspace(tmp_path)
    assert workspace.find("latest") == workspace.list()[0].ref == some[1].ref


def listed(tmp_path: Path, *some: Summary, **wanted: object) -> list[str]:
    found = Workspace(tmp_path).list(summaries=some, **wanted)  # type: ignore[arg-type]
    return [one.ref.session_id for one in found]


@pytest.mark.parametrize(
    ("words", "found"),
    [("ok", "ba"), ("damaged", "dc"), ("note", "b"), (("note", "lost_data"), "db"), ((), "dcba")],
)
def test_a_health_selects_what_the_list_shows_under_it(
    tmp_path: Path, words: str | tuple[str, ...], found: str
) -> None:
    healths = {"a": "ok", "b": "note", "c": "stops_resume", "d": "lost_data"}
    some = [summary(name, health=health) for name, health in healths.items()]
    assert "".join(listed(tmp_path, *some, health=words)) == found


def test_several_kinds_and_tags(tmp_path: Path) -> None:
    some = [summary("a"), summary("b", kind="codex"), summary("c", kind="qwen")]
    assert listed(tmp_path, *some, kind=("pi", "codex")) == ["b", "a"]
    tagged = summary("d")
    tagged.tags[:] = ["Bug", "later"]
    assert listed(tmp_path, *some, tagged, tag=("#bug", "LATER")) == ["d"]
    assert listed(tmp_path, *some, tagged, tag=("bug", "now")) == []


def test_an_unknown_time_is_only_in_a_range_without_bounds(tmp_path: Path) -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    some = summary("a", when), summary("b")
    assert listed(tmp_path, *some) == ["a", "b"]
    assert listed(tmp_path, *some, since=when) == ["a"]
    assert listed(tmp_path, *some, until=when + timedelta(seconds=1)) == ["a"]


@pytest.mark.parametrize("wanted", [{"kind": "eliza"}, {"health": ("ok", "fine")}, {"sort": "beauty"}])
def test_an_unknown_word_is_refused_with_those_that_are_known(
    tmp_path: Path, wanted: dict[str, object]
) -> None:
    with pytest.raises(Invalid, match="unknown") as caught:
        listed(tmp_path, **wanted)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("the ")


def test_a_project_without_sessions_of_a_kind_is_a_known_one(tmp_path: Path) -> None:
    some = summary("a", folder="/app"), summary("b", kind="codex")
    assert listed(tmp_path, *some, project="app", kind="codex") == []
    with pytest.raises(NotFound):
        listed(tmp_path, *some, project="other")


def test_a_project_may_be_where_nothing_could_be_read(tmp_path: Path) -> None:
    failure = StorageFailed("/s cannot be read", path="/s")
    with pytest.raises(StorageFailed):
        listed(tmp_path, summary("a"), project="other", failure=failure)


def test_a_sort_order_and_the_newest_of_equals_first(tmp_path: Path) -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    some = [summary("b", when), summary("a", when + timedelta(1)), summary("c", when, folder="/app")]
    assert listed(tmp_path, *some) == ["a", "c", "b"]
    assert listed(tmp_path, *some, sort="project") == ["c", "a", "b"]
    assert listed(tmp_path, *some, sort="size") == ["a", "c", "b"]
