"""Numbers, times and verdicts in few characters."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.cli import formatting
from sessionary.model import Severity

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9949, "9.9 kB"),
        (9950, "10 kB"),
        (424_359, "424 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (23_800_000_000, "24 GB"),
    ],
)
def test_size(count: int, words: str) -> None:
    assert formatting.size(count) == words


@given(st.integers(0, 10**17))
def test_a_size_is_short(count: int) -> None:
    assert len(formatting.size(count)) <= 6


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(minutes=1), "1 min"),
        (timedelta(minutes=59, seconds=59), "59 min"),
        (timedelta(hours=23, minutes=59), "23 h"),
        (timedelta(days=1), "1 d"),
        (timedelta(days=6, hours=23), "6 d"),
        (timedelta(days=10), "Jun  5"),
        (timedelta(days=500), "Jan 31 2025"),
        (timedelta(days=200), "Nov 27 2025"),
        (timedelta(days=-2), "Jun 17"),
    ],
)
def test_ago(age: timedelta, words: str) -> None:
    assert formatting.ago(NOW - age, NOW) == words
    assert len(words) <= 11


def test_an_unknown_time() -> None:
    assert formatting.ago(None, NOW) == "?"


def test_every_health_has_a_sign_a_short_word_and_a_colour() -> None:
    for health in ["ok", *(severity.name for severity in Severity)]:
        assert formatting.sign(health) in "✓!✗"
        assert len(formatting.verdict(health)) <= 7
        assert formatting.colour(health)
    assert formatting.verdict("ok") == formatting.verdict("note") == "✓ ok"


def test_counts() -> None:
    assert formatting.count(1, "turn") == "1 turn"
    assert formatting.count(0, "turn") == "0 turns"
    assert formatting.count(1234, "entry", "entries") == "1,234 entries"


def test_stamps_leave_out_the_year_that_it_is() -> None:
    noon = datetime(2026, 3, 4, 12).astimezone()
    assert formatting.stamp(noon, NOW) == "Mar 4 12:00"
    assert formatting.stamp(noon.replace(year=2025), NOW) == "Mar 4 2025 12:00"
    assert formatting.clock(noon) == "12:00:00"
