"""What of a message is stored, when it was said, and what is hidden of metadata."""

import enum
import json
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import encode_line
from sessionary.codec.times import parse_time, timestamp_of
from sessionary.errors import Invalid
from sessionary.layouts.amplifier.messages import (
    REDACTED,
    SECRET_KEYS,
    as_dict,
    clean_dict,
    is_kept,
    redact,
    stamp,
)
from sessionary.layouts.amplifier.write_op import kept_of
from tests.support.strategies import json_values, messages

MOMENT = datetime(2026, 1, 25, 4, 8, tzinfo=UTC)


class Role(enum.Enum):
    SYSTEM = "system"
    USER = "user"


class Model:
    def __init__(self, dumped: Any) -> None:
        self.dumped = dumped

    def model_dump(self) -> Any:
        return self.dumped


def stored(message: Any) -> dict[str, Any] | None:
    """What becomes of a message that is given to a store; None if that is nothing."""
    kept = kept_of([message])
    return clean_dict(kept[0]) if kept else None


@pytest.mark.parametrize("role", ["system", "developer", Role.SYSTEM])
def test_prompts_of_the_system_are_not_stored(role: Any) -> None:
    message = {"role": role, "content": "x"}
    assert stored(message) is None
    assert stored(Model(message)) is None
    assert not is_kept(message)


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "System", "", None, 5, ["system"], Role.USER])
def test_every_other_role_is_stored(role: Any) -> None:
    clean = stored({"role": role})
    assert clean is not None
    assert clean["role"] == (role.value if isinstance(role, Role) else role)
    assert stored({"content": "no role"}) == {"content": "no role"}


def test_nothing_is_dropped_that_json_can_hold() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "list": [1, None, 2],
        "content_blocks": [{"type": "text", "text": "a"}],
        "thinking_block": {"thinking": "hm", "signature": "s"},
        "at": MOMENT,
    }
    assert stored(message) == {**message, "at": "2026-01-25T04:08:00+00:00"}
    assert message["at"] is MOMENT


def test_the_text_of_a_thinking_block_is_stored_beside_it() -> None:
    block = {"text": "hm", "signature": "s"}
    assert clean_dict({"thinking_block": block}) == {"thinking_block": block, "thinking_text": "hm"}
    as_object = clean_dict({"thinking_block": SimpleNamespace(text="hm", signature="s")})
    assert as_object == {"thinking_block": block, "thinking_text": "hm"}


@pytest.mark.parametrize(
    "block", [None, {}, {"text": None}, {"text": 5}, "text", SimpleNamespace(text=None), []]
)
def test_a_thinking_block_without_text_has_no_thinking_text(block: Any) -> None:
    assert "thinking_text" not in clean_dict({"thinking_block": block})


def test_a_thinking_text_that_is_there_stays() -> None:
    message = {"thinking_block": {"text": "new"}, "thinking_text": "old"}
    assert clean_dict(message) == message


@given(messages())
def test_what_is_stored_is_stored_again_as_it_is(message: dict[str, Any]) -> None:
    clean = stored(message)
    assert (clean is None) == (message.get("role") in ("system", "developer"))
    if clean is not None:
        assert stored(clean) == clean
        assert isinstance(json.loads(encode_line(clean)), dict)


def test_an_object_is_encoded_by_model_dump() -> None:
    dumped = {"role": "user", "content": "x"}
    assert as_dict(Model(dumped)) is dumped
    assert as_dict(dumped) is dumped
    assert stored(Model(dumped)) == dumped


@pytest.mark.parametrize("message", ["text", 5, None, [("role", "user")]])
def test_what_is_not_a_message_is_refused_as_in_the_original(message: Any) -> None:
    with pytest.raises(AttributeError, match="model_dump"):
        stored(message)


def test_a_model_that_dumps_no_dict_is_named() -> None:
    with pytest.raises(Invalid, match=r"Model\.model_dump\(\) returned list") as caught:
        stored(Model([1]))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"timestamp": "t", "ts": "no", "metadata": {"timestamp": "no"}}, "t"),
        ({"ts": "t", "metadata": {"timestamp": "no"}}, "t"),
        ({"metadata": {"timestamp": "t"}}, "t"),
        ({"timestamp": "", "ts": None, "metadata": {"timestamp": "t"}}, "t"),
        ({"timestamp": " "}, None),
        ({"timestamp": 1769314080.5}, "1769314080.5"),
        ({"timestamp": 0}, "0"),
        ({"metadata": "text"}, None),
        ({"metadata": {}}, None),
        ({"metadata": {"timestamp": None}}, None),
        ({"created": "t"}, None),
        ({}, None),
    ],
)
def test_the_time_of_a_message_is_found_in_three_places(message: dict[str, Any], text: str | None) -> None:
    assert timestamp_of(message) == text


def test_a_stamp_is_utc_with_milliseconds() -> None:
    assert stamp(MOMENT) == "2026-01-25T04:08:00.000+00:00"
    east = timezone(timedelta(hours=5, minutes=30))
    assert stamp(datetime(2026, 1, 25, 9, 38, 0, 123999, tzinfo=east)) == "2026-01-25T04:08:00.123+00:00"
    assert stamp(MOMENT.replace(tzinfo=None)) == stamp(MOMENT)


@given(st.datetimes(timezones=st.timezones(), min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001
def test_a_stamp_is_read_back_to_the_millisecond(moment: datetime) -> None:
    found = parse_time(stamp(moment))
    assert found == moment.astimezone(UTC) - timedelta(microseconds=moment.microsecond % 1000)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-25T04:08:00Z",
        "2026-01-25t04:08:00z",
        " 2026-01-25T04:08:00+00:00\n",
        "2026-01-25T04:08:00.000000000Z",
        "2026-01-25T04:08Z",
        "2026-01-25T04:08:00",
        "2026-01-25 04:08:00",
        "2026-01-25 04:08:00 UTC",
        "2026-01-25T09:38:00+05:30",
        "2026-01-24T23:08:00-0500",
        "20260125T040800Z",
        1769314080,
        1769314080.0,
        1769314080000,
        1769314080000000,
        1769314080000000000,
        "1769314080",
        "1769314080.0",
        "1769314080000",
        MOMENT,
        MOMENT.replace(tzinfo=None),
    ],
)
def test_a_time_is_read_from_every_spelling(value: object) -> None:
    found = parse_time(value)
    assert found == MOMENT
    assert found.tzinfo is UTC


@pytest.mark.parametrize("digits", range(1, 13))
def test_a_second_may_have_any_number_of_digits(digits: int) -> None:
    fraction = "123456789123"[:digits]
    expected = MOMENT + timedelta(microseconds=int(fraction[:6].ljust(6, "0")))
    assert parse_time(f"2026-01-25T04:08:00.{fraction}Z") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("-1000000000", datetime(1938, 4, 24, 22, 13, 20, tzinfo=UTC)),
        (1706101500123, datetime(2024, 1, 24, 13, 5, 0, 123000, tzinfo=UTC)),
        ("17061015001", datetime(2510, 8, 23, 10, 50, 1, tzinfo=UTC)),
        ("20260125", datetime(2026, 1, 25, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ],
)
def test_times_at_the_edges(value: object, expected: datetime) -> None:
    assert parse_time(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "  ",
        "Sun Jan 25 2026",
        "2026-13-45T99:99:99Z",
        "0001-01-01T00:00:00+05:00",
        "9" * 30,
        "yesterday",
        float("nan"),
        float("inf"),
        1e300,
        10**400,
        [],
        {},
        b"2026-01-25T04:08:00Z",
    ],
)
def test_what_is_not_a_time_is_none(value: object) -> None:
    assert parse_time(value) is None


@given(json_values() | st.text() | st.from_regex(r"\d{1,25}(\.\d{0,12})?", fullmatch=True))
def test_no_value_makes_the_reader_of_times_fail(value: object) -> None:
    found = parse_time(value)
    assert found is None or found.tzinfo is UTC


def test_secrets_are_hidden_at_any_depth_and_counts_stay() -> None:
    metadata = {
        "session_id": "s",
        "Api_Key": "sk-1",
        "github_token": "stays",
        "usage": {"token": 5, "tokens": 6, "auth": True, "password": None},
        "providers": [{"config": {"API-KEY": "sk-2"}}, ({"secret": "x"},)],
        "key": b"a",
    }
    assert redact(metadata) == {
        "session_id": "s",
        "Api_Key": REDACTED,
        "github_token": "stays",
        "usage": {"token": 5, "tokens": 6, "auth": True, "password": None},
        "providers": [{"config": {"API-KEY": REDACTED}}, [{"secret": REDACTED}]],
        "key": {"$base64": "YQ=="},
    }
    assert metadata["Api_Key"] == "sk-1"


def test_text_inside_of_a_secret_is_a_part_of_it() -> None:
    assert redact({"credentials": ["a", 1, {"user": "u", "pin": 5}], "user": "u"}) == {
        "credentials": [REDACTED, 1, {"user": REDACTED, "pin": 5}],
        "user": "u",
    }
    assert redact({"secret": b"bytes", "auth": SimpleNamespace(key="k")}) == {
        "secret": REDACTED,
        "auth": {"key": REDACTED},
    }


@pytest.mark.parametrize("name", sorted(SECRET_KEYS))
def test_each_name_of_a_secret_counts_in_any_case(name: str) -> None:
    assert redact({name: "x", name.upper(): "y"}) == {name: REDACTED, name.upper(): REDACTED}


def test_keys_that_are_not_text_hide_nothing() -> None:
    assert redact({1: "one", None: {"token": "t"}}) == {"1": "one", "null": {"token": REDACTED}}  # type: ignore[dict-item]


@given(st.dictionaries(st.text(), json_values(), max_size=4))
def test_hiding_twice_is_hiding_once(metadata: dict[str, Any]) -> None:
    once = redact(metadata)
    assert redact(once) == once
