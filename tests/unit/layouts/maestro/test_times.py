"""Times of breadcrumbs and new ids: which texts are some."""

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.layouts.maestro.names import new_id
from sessionary.layouts.maestro.times import is_instant, is_stamp, next_stamp, parse_time, stamp_of


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("20250131_120000_123456", True),
        ("20240229_235959_999999", True),
        ("00010101_000000_000000", True),
        ("20250229_120000_000000", False),
        ("20251301_120000_000000", False),
        ("20250100_120000_000000", False),
        ("00000101_000000_000000", False),
        ("20250131_240000_000000", False),
        ("20250131_236000_000000", False),
        ("20250131_235960_000000", False),
        ("20250131_120000_12345", False),
        ("20250131_120000_123456\n", False),
        ("2025-01-31T12:00:00+00:00", False),
        ("٢٠٢٥٠١٣١_120000_123456", False),
        (None, False),
    ],
)
def test_a_breadcrumb_time_names_a_moment_that_exists(stamp: object, expected: bool) -> None:
    assert is_instant(stamp) is expected


@given(
    st.from_regex(r"[0-2][0-9]{3}[01][0-9][0-3][0-9]_[0-2][0-9][0-6][0-9][0-6][0-9]_[0-9]{6}", fullmatch=True)
)
def test_what_is_reported_without_parsing_equals_what_parsing_reports(stamp: str) -> None:
    assert is_instant(stamp) is (is_stamp(stamp) and parse_time(stamp) is not None)


@given(st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_the_stamp_of_a_moment_has_its_digits(moment: datetime) -> None:
    stamp = stamp_of(moment)
    assert stamp == moment.strftime("%Y%m%d_%H%M%S_%f")
    assert parse_time(stamp) == moment


def test_a_stamp_is_in_utc_whatever_the_zone_and_has_all_digits() -> None:
    zone = timezone(timedelta(hours=2))
    assert stamp_of(datetime(2025, 1, 31, 1, 2, 3, tzinfo=zone)) == "20250130_230203_000000"
    assert stamp_of(datetime(7, 1, 2, tzinfo=UTC)) == "00070102_000000_000000"
    assert next_stamp("20241231_235959_999999") == "20250101_000000_000000"


def test_a_new_id_is_a_random_uuid() -> None:
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    for text in ids:
        found = uuid.UUID(text)
        assert (str(found), found.version, found.variant) == (text, 4, uuid.RFC_4122)
    assert {text[19] for text in ids} == set("89ab")
