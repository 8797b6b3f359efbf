"""The order of a list."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sessionary.cli.list_cmd import _rank
from sessionary.model import SessionRef, Summary

_OLDEST = datetime.min.replace(tzinfo=UTC)
_near = st.sampled_from([datetime(2026, 3, 1, 9, 0, second, tzinfo=UTC) for second in range(3)])
_far = st.integers(0, 7 * 10**15).map(
    lambda micros: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
)


def summary(session_id: str, updated: datetime | None, folder: str = "/s") -> Summary:
    ref = SessionRef("amplifier", session_id, f"{folder}/{session_id}")
    return Summary(ref, "amplifier", None, None, 0, 0, None, None, updated, 0, "ok")


def newest(summaries: list[Summary]) -> list[Summary]:
    return sorted(summaries, key=_rank, reverse=True)


@given(st.dictionaries(st.text("abc", max_size=4), st.none() | _near | _far))
def test_the_newest_comes_first_and_of_equals_the_greater_id(times: dict[str, datetime | None]) -> None:
    summaries = [summary(session_id, updated) for session_id, updated in times.items()]
    expected = sorted(summaries, key=lambda one: (one.updated or _OLDEST, one.ref.session_id), reverse=True)
    assert newest(summaries) == expected


def test_of_equal_ids_the_greater_folder_comes_first() -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    summaries = [summary("one", when, folder) for folder in ("/b", "/c", "/a")]
    assert newest(summaries) == [summaries[1], summaries[0], summaries[2]]
