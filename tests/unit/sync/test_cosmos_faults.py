"""What the service says in two numbers, and whether it is worth asking again."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from sessionary.errors import RemoteError
from sessionary.sync.remotes.cosmos_link import from_service

NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)


def said(status: int, sub: int = 0, **headers: str) -> RemoteError:
    error = SimpleNamespace(
        status_code=status,
        sub_status=sub,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        message="Something happened. Code: None Message: the same once more",
    )
    return from_service(error, "Cosmos DB db/box", NOW)


@pytest.mark.parametrize(
    ("status", "sub", "passes"),
    [
        (400, 0, False),
        (401, 0, False),
        (403, 0, False),
        (403, 3, True),  # the region that writes is being changed
        (403, 1014, False),
        (403, 5300, False),
        (404, 0, False),
        (404, 1002, True),  # no replica has caught up with this session yet
        (404, 1003, False),
        (408, 0, True),
        (410, 1002, True),
        (413, 0, False),
        (429, 3200, True),
        (449, 0, True),
        (500, 0, True),
        (502, 0, True),
        (503, 20001, True),
    ],
)
def test_what_passes_is_distinguished_from_what_lasts(status: int, sub: int, passes: bool) -> None:
    error = said(status, sub)
    assert error.retryable is passes
    assert error.details == {"status": status} | ({"substatus": sub} if sub else {})


def test_a_message_says_where_what_and_the_words_of_the_service_once() -> None:
    assert str(said(413)) == "Cosmos DB db/box: refused: too large (Something happened.)"
    assert str(said(503)) == "Cosmos DB db/box: the service answered 503 (Something happened.)"
    assert "a partition is full (20 GB)" in str(said(403, 1014))


@pytest.mark.parametrize(("reported", "pause"), [("1500", 1.5), ("0", 0.0), ("soon", None)])
def test_the_pause_that_is_asked_for_is_in_seconds(reported: str, pause: float | None) -> None:
    assert said(429, x_ms_retry_after_ms=reported).details.get("retry_after") == pause


@pytest.mark.parametrize(
    ("date", "reported"),
    [
        ("Fri, 31 Jan 2025 11:00:00 GMT", "60 minutes ahead of"),
        ("Fri, 31 Jan 2025 12:20:00 GMT", "20 minutes behind"),
        ("Fri, 31 Jan 2025 12:04:00 GMT", None),
        ("today", None),
        ("", None),
    ],
)
def test_a_refusal_is_put_down_to_the_clock_only_if_it_is_wrong(date: str, reported: str | None) -> None:
    for status in (401, 403):
        error = said(status, Date=date)
        assert (f"the local clock is {reported} the service's" in str(error)) is (reported is not None)
        assert error.hint
    assert "clock" not in str(said(400, Date=date))
