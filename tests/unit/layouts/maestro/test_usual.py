"""The quick way from bytes to records: what it gives is what the slow way gives, or nothing."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import decode
from sessionary.errors import SchemaError
from sessionary.layouts.maestro.records import (
    CRUMB_KEYS,
    SESSION_KEYS,
    Breadcrumb,
    WorkSession,
    breadcrumb_of,
    session_of,
)
from sessionary.layouts.maestro.usual import usual_breadcrumb, usual_session

CRUMB: dict[str, Any] = asdict(
    Breadcrumb(
        "20260301_090000_000001", "id", "p", "r", [{"tool": "t"}], [], None, 0, "m", {"input": 1}, 0.5, None
    )
)
SESSION: dict[str, Any] = asdict(WorkSession("id", "fix", created="2026-01-01", modified="2026-01-02"))
ODD = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "paused", "closed"])
    | st.sampled_from([1.0, 0.5, 10**30, [], [1], {}, {"a": None}])
)  # fmt: skip


def told(record: Any) -> tuple[Any, ...]:
    """All of a record, with the types of its values, which `==` does not look at (``1 == 1.0 == True``)."""
    values = asdict(record)
    return [(key, type(value), value) for key, value in values.items()], dict(record.unknown_keys)


def changed(document: dict[str, Any], keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """The document with a few keys gone, other values in a few, and perhaps keys that nobody knows."""
    gone = st.sets(st.sampled_from(keys), max_size=3)
    other = st.dictionaries(st.sampled_from([*keys, "new", "Prompt"]), ODD, max_size=3)
    return st.builds(
        lambda gone, other: {key: document[key] for key in keys if key not in gone} | other, gone, other
    )


@given(changed(CRUMB, CRUMB_KEYS))
def test_a_breadcrumb_is_the_same_by_the_quick_way_or_left_to_the_slow_one(document: dict[str, Any]) -> None:
    quick = usual_breadcrumb(json.dumps(document).encode())
    if quick is not None:
        assert told(quick) == told(breadcrumb_of(document))


@given(changed(SESSION, SESSION_KEYS))
def test_a_session_is_the_same_by_the_quick_way_or_left_to_the_slow_one(document: dict[str, Any]) -> None:
    quick = usual_session(json.dumps(document).encode())
    if quick is not None:
        assert told(quick) == told(session_of(document))


def test_the_usual_documents_take_the_quick_way() -> None:
    assert usual_breadcrumb(json.dumps(CRUMB).encode()) == Breadcrumb(**CRUMB)
    early = {key: CRUMB[key] for key in CRUMB_KEYS[:12]}  # as the original wrote them at first
    assert usual_breadcrumb(json.dumps(early, indent=2).encode()) == Breadcrumb(**CRUMB)
    assert usual_session(json.dumps(SESSION).encode()) == session_of(SESSION)
    least = usual_session(b'{"session_id": "id", "session_type": "fix"}')
    assert least == session_of({"session_id": "id", "session_type": "fix"})


@pytest.mark.parametrize(
    "raw",
    [
        b'{"session_id": "a", "session_type": "fix", "session_id": "b"}',
        b'{"session_id": "a", "session_t\\u0079pe": "fix"}',
        b'{"session_id": "a", "session_type": "fix", "new": 1}',
        b'{"session_id": "a", "session_type": "fix", "context": null}',
        b'\xef\xbb\xbf{"session_id": "a", "session_type": "fix"}',
        b'{"session_id": "a", "session_type": "fix", "metadata": {"n": NaN}}',
        b'{"session_id": "a", "session_type": "fix", "metadata": {"n": 1e400}}',
    ],
)
def test_odd_texts_mean_the_same_by_both_ways(raw: bytes) -> None:
    quick = usual_session(raw)
    assert quick is None or told(quick) == told(session_of(decode(raw)))


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"null", b'{"a": 1}', b'{"session_id": 1, "session_type": "fix"}', b"\xff"]
)
def test_what_is_no_session_is_left_to_those_who_can_tell_why(raw: bytes) -> None:
    assert usual_session(raw) is None
    assert usual_breadcrumb(raw) is None


def test_a_number_of_another_kind_is_no_depth() -> None:
    for depth in (1.0, True, -1):
        document = {**CRUMB, "depth_level": depth}
        assert usual_breadcrumb(json.dumps(document).encode()) is None
        with pytest.raises(SchemaError):
            breadcrumb_of(document)
