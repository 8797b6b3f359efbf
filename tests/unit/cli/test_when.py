"""Times as people say them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from time import tzset

import pytest

from sessionary.cli.param_types import stretch

NOW = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)  # a Wednesday


@pytest.fixture(autouse=True)
def _two_hours_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EET-2")
        tzset()
        yield
    tzset()


def local(*parts: int) -> datetime:
    return datetime(*parts).astimezone(UTC)  # type: ignore[arg-type]  # naive: local


def test_local_is_two_hours_east() -> None:
    assert local(2026, 3, 4, 2) == datetime(2026, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("today", (2026, 3, 4), (2026, 3, 5)),
        ("Yesterday", (2026, 3, 3), (2026, 3, 4)),
        ("this week", (2026, 3, 2), (2026, 3, 9)),
        ("last  week", (2026, 2, 23), (2026, 3, 2)),
        ("this month", (2026, 3, 1), (2026, 4, 1)),
        ("last month", (2026, 2, 1), (2026, 3, 1)),
        ("this year", (2026, 1, 1), (2027, 1, 1)),
        ("last year", (2025, 1, 1), (2026, 1, 1)),
        ("wednesday", (2026, 3, 4), (2026, 3, 5)),
        ("thursday", (2026, 2, 26), (2026, 2, 27)),
        ("2026", (2026, 1, 1), (2027, 1, 1)),
        ("2026-12", (2026, 12, 1), (2027, 1, 1)),
        ("2024-02-29", (2024, 2, 29), (2024, 3, 1)),
    ],
)
def test_a_stretch(words: str, start: tuple[int, ...], end: tuple[int, ...]) -> None:
    assert stretch(words, NOW) == (local(*start), local(*end))


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("3d", datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
        ("90 min ago", datetime(2026, 3, 4, 11, tzinfo=UTC)),
        ("2w", datetime(2026, 2, 18, 12, 30, tzinfo=UTC)),
        ("90m", datetime(2026, 3, 4, 11, tzinfo=UTC)),
        ("1h30m", datetime(2026, 3, 4, 11, tzinfo=UTC)),
        ("1 hour, 30 minutes ago", datetime(2026, 3, 4, 11, tzinfo=UTC)),
        ("1 hour and 30 mins", datetime(2026, 3, 4, 11, tzinfo=UTC)),
        ("2 weeks ago", datetime(2026, 2, 18, 12, 30, tzinfo=UTC)),
        ("A week ago", datetime(2026, 2, 25, 12, 30, tzinfo=UTC)),
        ("an hour ago", datetime(2026, 3, 4, 11, 30, tzinfo=UTC)),
        ("1mo", datetime(2026, 2, 2, 12, 30, tzinfo=UTC)),
        ("2 months ago", datetime(2026, 1, 3, 12, 30, tzinfo=UTC)),
        ("1y2d", datetime(2025, 3, 2, 12, 30, tzinfo=UTC)),
        ("2026-03-01T09:00:00Z", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("2026-03-01T09:00+05:00", datetime(2026, 3, 1, 4, tzinfo=UTC)),
        ("2026-03-01 09:00", datetime(2026, 3, 1, 7, tzinfo=UTC)),
    ],
)
def test_a_moment(words: str, moment: datetime) -> None:
    assert stretch(words, NOW) == (moment, moment)


def test_last_month_in_january_and_on_the_31st() -> None:
    assert stretch("last month", datetime(2026, 1, 31, tzinfo=UTC)).start == local(2025, 12, 1)


@pytest.mark.parametrize(
    "words",
    ["", "soon", "2026-13", "2026-02-30", "3x", "2026-3-4", "last wednesdays", "1h ago 3m", "h", "ago"],
)
def test_no_time(words: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        stretch(words, NOW)


def test_too_long_ago() -> None:
    with pytest.raises(OverflowError):
        stretch("999999y", NOW)
