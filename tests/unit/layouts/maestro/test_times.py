"""Times of breadcrumbs: which texts are some."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.layouts.maestro.times import is_instant, is_stamp, parse_time


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
def test_what_is_told_without_parsing_is_what_parsing_tells(stamp: str) -> None:
    assert is_instant(stamp) is (is_stamp(stamp) and parse_time(stamp) is not None)
