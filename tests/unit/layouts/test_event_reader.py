"""`EventReader` against events that the test wrote itself, decoded by `json`."""

import json
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.amplifier.event_heads import HUGE, WIDTH, EventHead
from sessionary.layouts.amplifier.event_reader import EventReader, Usage
from sessionary.testing.wrapper import WrappedFs

START = datetime(2026, 3, 4, 13, 20, tzinfo=UTC)


def event(name: str, /, at: float = 0, **fields: Any) -> dict[str, Any]:
    """An event in the order of the format; `data` comes last."""
    data = {"data": fields.pop("data")} if "data" in fields else {}
    ts = (START + timedelta(seconds=at)).isoformat()
    return {"ts": ts, "lvl": "INFO", "event": name, "session_id": "s1", **fields, **data}


def line(value: object, *, compact: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None).encode()


def log(folder: Path, *lines: object) -> Path:
    """A log of these lines: bytes as they are, anything else as JSON."""
    path = folder / "events.jsonl"
    path.write_bytes(
        b"".join((found if isinstance(found, bytes) else line(found)) + b"\n" for found in lines)
    )
    return path


def names(events: Sequence[EventHead]) -> list[str]:
    return [found.event for found in events]


def reported(reader: EventReader) -> list[tuple[str, int | None, int | None]]:
    return [(problem.code, problem.line, problem.byte) for problem in reader.problems]


class WatchedFs(WrappedFs):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        data = super().pread(fd, length, offset)
        self.given += len(data)
        return data


# -- heads


def test_a_head_holds_all_but_the_data(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        event("session:start"),
        event(
            "llm:response", 1.5, duration_ms=2100, status="ok", span_id="b", parent_span_id="a", data={"x": 1}
        ),
    )
    first, second = EventReader(tmp_path).heads()
    size = path.read_bytes().index(b"\n")
    assert first == EventHead(1, 0, size, START, "INFO", "session:start", "s1", None, None, None, None)
    assert (second.line, second.byte) == (2, size + 1)
    assert (second.ts, second.duration_ms, second.status) == (START + timedelta(seconds=1.5), 2100, "ok")
    assert (second.span_id, second.parent_span_id) == ("b", "a")


@pytest.mark.parametrize("compact", [False, True])
def test_the_data_of_a_long_line_is_not_decoded(tmp_path: Path, compact: bool) -> None:
    """What is between head and end is passed over: here it is not JSON at all, and heads cannot know."""
    long = line(event("llm:request", span_id="x", data={"raw": {"text": "y" * 5 * WIDTH}}), compact=compact)
    log(tmp_path, event("a"), long.replace(b"y" * WIDTH, b'y" y', 1), event("b"))
    reader = EventReader(tmp_path)
    assert names(list(reader.heads())) == ["a", "llm:request", "b"]
    assert reader.problems == []
    assert len(list(reader.fields(["data.raw.text"]))) == 2, "reading the line finds the damage"
    assert reported(reader)[0][:2] == ("bad_json", 2)


LONG = "z" * (2 * WIDTH)


@pytest.mark.parametrize(
    "value",
    [
        {"data": {"x": LONG}, "event": "e", "ts": START.isoformat(), "span_id": "s"},
        {"data": {"x": LONG}, "event": "e", "ts": START.isoformat(), "span_id": "s", "more": {}},
        {"ts": START.isoformat(), "event": "e", "data": {"x": LONG}, "span_id": "s"},
        {"ts": START.isoformat(), "data": {"x": LONG}, "event": "e", "span_id": "s", "more": {}},
        {"event": "e", "data": {"x": LONG}, "ts": START.isoformat(), "span_id": "s", "more": {}},
        {
            "schema": {"data": {"event": "no", "ts": "no"}},
            "ts": START.isoformat(),
            "event": "e",
            "span_id": "s",
            "x": {"y": LONG},
        },
        {"ts": START.isoformat(), "note": '"data":', "event": "e", "span_id": "s", "data": {"x": LONG}},
        {"ts": START.isoformat(), "event": "e", "span_id": "s", "error": LONG, "data": {}},
        {"data": {"event": "no", "ts": LONG}, "ts": START.isoformat(), "span_id": "s", "event": "e"},
        {"ts": START.isoformat(), "event": "e", "span_id": "s", "data": [LONG]},
        {"ts": START.isoformat(), "event": "e", "span_id": "s", "data": LONG},
    ],
)
@pytest.mark.parametrize("compact", [False, True])
def test_where_the_head_does_not_tell_the_line_is_read(
    tmp_path: Path, value: dict[str, Any], compact: bool
) -> None:
    log(tmp_path, line(value, compact=compact))
    (found,) = EventReader(tmp_path).heads()
    assert (found.event, found.ts, found.span_id) == ("e", START, "s")


@pytest.mark.parametrize(
    ("field", "value"),
    [("ts", [5]), ("ts", True), ("lvl", ["INFO"]), ("event", None), ("duration_ms", "2100"), ("status", {})],
)
def test_a_field_of_another_type_is_ignored(tmp_path: Path, field: str, value: object) -> None:
    log(tmp_path, {**event("e", span_id="s"), field: value})
    reader = EventReader(tmp_path)
    (found,) = reader.heads()
    assert getattr(found, field) == ("" if field == "event" else None)
    assert found.span_id == "s"
    assert reader.problems == []


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-04T13:20:00Z", START),
        ("2026-03-04T14:20:00+01:00", START),
        ("2026-03-04T13:20:00", START),
        ("2026-03-04T13:20:00.250+00:00", START + timedelta(milliseconds=250)),
        (START.timestamp(), START),
        ("yesterday", None),
    ],
)
@pytest.mark.parametrize("lvl", ["INFO", 5])
def test_times_are_read_in_every_common_form(
    tmp_path: Path, text: str | float, lvl: object, time: datetime | None
) -> None:
    log(tmp_path, {"ts": text, "event": "e", "lvl": lvl})
    (found,) = EventReader(tmp_path).heads()
    assert found.ts == time
    assert found.ts is None or found.ts.utcoffset() == timedelta(0)


def test_what_only_python_reads_is_read(tmp_path: Path) -> None:
    log(
        tmp_path,
        b"\xef\xbb\xbf" + line(event("bom")),
        b'{"event": "nan", "data": {"x": NaN}}',
        b'{"event": "surrogate", "data": {"x": "\\ud83d"}}',
        b'{"event": "crlf"}\r',
        b" \t",
        b"",
        b"{}",
    )
    reader = EventReader(tmp_path)
    assert names(list(reader.heads())) == ["bom", "nan", "surrogate", "crlf", ""]
    assert reader.problems == []


# -- damage


def test_damaged_lines_are_skipped_and_reported(tmp_path: Path) -> None:
    good = line(event("good"))
    broken = {
        "bad_json": good[:-9],
        "glued_records": good[:40] + good,
        "nul_run": b"\0" * 600,
        "bad_utf8": good[:-1] + b', "data": "\xff\xfe"}',
        "not_an_object": b'["good"]',
        "too_deep": b'{"event": "deep", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    }
    lines = [good]
    for damage in broken.values():
        lines += [damage, good]
    path = log(tmp_path, *lines)
    reader = EventReader(tmp_path)
    assert names(list(reader.heads())) == ["good"] * 7
    starts = [0]
    for found in lines:
        starts.append(starts[-1] + len(found) + 1)
    assert reported(reader) == [(code, 2 * n + 2, starts[2 * n + 1]) for n, code in enumerate(broken)]
    assert {problem.path for problem in reader.problems} == {str(path)}


def test_a_problem_is_reported_once_however_often_it_is_met(tmp_path: Path) -> None:
    path = log(tmp_path, event("a"), b"nonsense", event("b"))
    reader = EventReader(path)
    assert names(reader.tail(9)) == ["a", "b"]
    assert [found[:2] for found in reported(reader)] == [("bad_json", None)]
    for _ in range(2):
        assert names(list(reader.heads(event="b"))) == ["b"]
        assert names(reader.tail(3)) == ["a", "b"]
        assert [found[:2] for found in reported(reader)] == [("bad_json", 2)]


@pytest.mark.parametrize("lost", [1, 2, 3, 9, WIDTH])
def test_a_torn_last_line_is_not_an_event(tmp_path: Path, lost: int) -> None:
    path = log(tmp_path, event("a"))
    size = path.stat().st_size
    with path.open("ab") as out:
        out.write(line(event("b", data={"x": LONG, "y": {"z": {}}}))[:-lost])
    reader = EventReader(path)
    assert names(list(reader.heads())) == ["a"] == names(reader.tail(1))
    assert reported(reader) == [("torn_tail", 2, size)]


def test_a_whole_event_without_its_newline_is_one(tmp_path: Path) -> None:
    path = log(tmp_path, event("a"))
    with path.open("ab") as out:
        out.write(line(event("b", data={"x": LONG})))
    reader = EventReader(path)
    assert names(list(reader.heads())) == ["a", "b"]
    assert reader.problems == []


@pytest.mark.parametrize("junk", [b"\0", b"x", b'{"a": ', b"[1], "])
def test_a_huge_line_that_is_not_an_object_is_not_loaded(tmp_path: Path, junk: bytes) -> None:
    path = log(tmp_path, event("a"), junk * (3 * HUGE // len(junk)), event("b"))
    fs = WatchedFs()
    reader = EventReader(path, fs)
    assert names(list(reader.heads())) == ["a", "b"]
    assert fs.given < path.stat().st_size + 1.2 * HUGE
    (problem,) = reader.problems
    assert (problem.line, problem.span) == (2, len(junk) * (3 * HUGE // len(junk)))


# -- a naive reader

texts = st.text(max_size=6) | st.sampled_from(
    ["llm:request", "tool:pre", '"data":', "INFO", "error", "é" * 700]
)
values = (
    st.none()
    | st.integers()
    | texts
    | st.dictionaries(texts, texts, max_size=2)
    | st.lists(texts, max_size=2)
)
events = (
    st.fixed_dictionaries(
        {},
        optional={
            "ts": st.integers(0, 99).map(lambda second: (START + timedelta(seconds=second)).isoformat()),
            "lvl": st.sampled_from(["INFO", "ERROR", "debug"]),
            "event": st.sampled_from(["llm:request", "llm:response", "tool:pre", "a.b"]),
            "session_id": texts,
            "span_id": st.sampled_from(["s1", "s2"]),
            "parent_span_id": st.sampled_from(["s1", "s2"]),
            "duration_ms": st.integers(0, 9) | st.floats(0, 9),
            "data": values | st.just({"x": "long " * 300}),
            "more": values,
        },
    )
    .flatmap(lambda found: st.permutations(list(found.items())).map(dict))
    .filter(
        # A long line that ends in an object counts as one whose last key is `data`; see `top_of_head`.
        lambda found: (
            not isinstance(next(reversed(found.values()), None), dict) or next(reversed(found)) == "data"
        )
    )
)


@given(
    st.lists(st.tuples(events, st.booleans()), max_size=8),
    st.sampled_from([None, "llm:*", "tool:pre", ["a.b", "*:re?uest"], "nothing", []]),
    st.sampled_from([None, "info", ["ERROR", "DEBUG"]]),
    st.none() | st.integers(0, 99),
    st.none() | st.integers(0, 99),
    st.sampled_from([None, "s1"]),
)
def test_heads_are_those_that_a_naive_reader_finds(
    tmp_path_factory: pytest.TempPathFactory,
    written: list[tuple[dict[str, Any], bool]],
    event: str | list[str] | None,
    level: str | list[str] | None,
    since: int | None,
    until: int | None,
    span: str | None,
) -> None:
    def wanted(found: dict[str, Any]) -> bool:
        time = datetime.fromisoformat(found["ts"]) if "ts" in found else None
        patterns = [event] if isinstance(event, str) else event
        levels = [level] if isinstance(level, str) else level
        return all(
            [
                patterns is None or any(fnmatchcase(found.get("event", ""), pattern) for pattern in patterns),
                levels is None or found.get("lvl", "?").lower() in [name.lower() for name in levels],
                since is None or (time is not None and time >= START + timedelta(seconds=since)),
                until is None or (time is not None and time < START + timedelta(seconds=until)),
                span is None or span in (found.get("span_id"), found.get("parent_span_id")),
            ]
        )

    path = log(tmp_path_factory.getbasetemp(), *(line(found, compact=compact) for found, compact in written))
    reader = EventReader(path)
    found = list(
        reader.heads(
            event=event,
            level=level,
            since=None if since is None else START + timedelta(seconds=since),
            until=None if until is None else (START + timedelta(seconds=until)).isoformat(),
            span=span,
        )
    )
    expected = [(n, found) for n, (found, _) in enumerate(written, 1) if wanted(found)]
    assert [head.line for head in found] == [n for n, _ in expected]
    for head, (_, value) in zip(found, expected, strict=True):
        assert head.event == value.get("event", "")
        assert head.ts == (datetime.fromisoformat(value["ts"]) if "ts" in value else None)
        for name in ("lvl", "session_id", "span_id", "parent_span_id", "duration_ms"):
            assert getattr(head, name) == value.get(name)
        assert reader.event(head.byte) == value
    if (event, level, since, until, span) == (None,) * 5:
        assert reader.tail(3) == [head._replace(line=None) for head in found[-3:]]


def test_a_span_of_time_begins_with_its_first_moment_and_ends_before_its_last(tmp_path: Path) -> None:
    reader = EventReader(
        log(tmp_path, *(event(str(second), second) for second in range(5)), {"event": "timeless"})
    )
    since, until = START + timedelta(seconds=1), START + timedelta(seconds=3)
    assert names(list(reader.heads(since=since, until=until))) == ["1", "2"]
    assert names(list(reader.heads(since=since))) == ["1", "2", "3", "4"]
    assert names(list(reader.heads(until=until.replace(tzinfo=None)))) == ["0", "1", "2"]


def test_a_filter_time_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="since is not a time: 'soon'"):
        list(EventReader(log(tmp_path, event("a"))).heads(since="soon"))


# -- tail


def test_the_tail_reads_only_the_end(tmp_path: Path) -> None:
    path = log(tmp_path, *(event(f"e{n}", data={"x": LONG}) for n in range(2000)))
    fs = WatchedFs()
    found = EventReader(path, fs).tail(3)
    assert names(found) == ["e1997", "e1998", "e1999"]
    assert [head.line for head in found] == [None] * 3
    assert fs.given < 100_000


# -- one event


def test_views_are_heads_with_fields_of_all_wanted_events_or_the_last_ones(tmp_path: Path) -> None:
    reader = EventReader(
        log(tmp_path, *(event("a" if at % 2 else "b", at, data={"n": at}) for at in range(6)))
    )
    found = [(head.line, head.event, fields) for head, fields in reader.views(["data.n"], event="a")]
    assert found == [(2, "a", {"data.n": 1}), (4, "a", {"data.n": 3}), (6, "a", {"data.n": 5})]
    last = [(head.line, fields) for head, fields in reader.views(["data.n"], last=2, event="a")]
    assert last == [(None, {"data.n": 3}), (None, {"data.n": 5})]
    assert [fields for _, fields in reader.views([], last=9, event="b")] == [{}, {}, {}]


def test_lines_are_the_bytes(tmp_path: Path) -> None:
    records = [event("a", data={"x": "y" * 3000}), event("b")]
    reader = EventReader(log(tmp_path, *records, b"{broken"))
    assert list(reader.lines()) == list(map(line, records))
    assert list(reader.lines(last=1)) == [line(records[1])]


def test_only_what_is_wanted_is_counted_and_summed(tmp_path: Path) -> None:
    def response(at: float, cost: str) -> dict[str, Any]:
        return event("llm:response", at, data={"model": "m", "usage": {"cost_usd": cost}})

    reader = EventReader(log(tmp_path, event("a"), response(1, "1"), response(9, "2.5")))
    assert reader.summary(event="llm:*").events == {"llm:response": 2}
    assert reader.usage(since=START + timedelta(seconds=5)).total.cost_usd == Decimal("2.5")


def test_usages_are_merged() -> None:
    total, one, other = Usage(), Usage(), Usage()
    one.add({"input_tokens": 5, "cost_usd": "0.5"})
    other.add({"input_tokens": 2, "output_tokens": 1})
    other.add(None)
    total.merge(one)
    total.merge(other)
    assert (total.responses, total.tokens) == (3, {"input_tokens": 7, "output_tokens": 1})
    assert (total.cost_usd, total.without_cost, total.without_usage) == (Decimal("0.5"), 2, 1)


def test_a_long_reading_reports_how_far_it_has_come(tmp_path: Path) -> None:
    passed: list[int] = []
    path = log(tmp_path, *[event("a", data={"x": "y" * 3_000_000})] * 8)
    assert EventReader(path, passed=passed.append).summary().total == 8
    length = path.stat().st_size // 8
    assert passed == [3 * length, 6 * length]


def test_an_event_is_loaded_by_its_offset(tmp_path: Path) -> None:
    path = log(tmp_path, event("a"), event("b", data={"x": float("nan")}), b'{"torn": ', b"[]")
    reader = EventReader(path)
    assert reader.event(0) == event("a")
    second = [head.byte for head in reader.heads()][1]
    assert reader.event(second)["event"] == "b"
    with pytest.raises(Invalid, match="No line begins at byte 3"):
        reader.event(3)
    torn, array = (problem.byte for problem in reader.problems)
    with pytest.raises(Corrupt, match=f"The event at byte {torn} of .* cannot be read") as caught:
        reader.event(torn or 0)
    assert caught.value.details == {"byte": torn, "code": "bad_json"}
    with pytest.raises(Corrupt, match="not an object"):
        reader.event(array or 0)


# -- fields

RECORD = {
    "event": "e",
    "a.b": {"c\\": 1, "": 2},
    "data": {
        "usage": {"input_tokens": 10**25, "cost": 0.5, "none": None},
        "messages": [{"role": "user", "tags": ["x", "y"]}, {"role": "tool"}, 5],
        "0": "zero",
        "list": [],
        "text": "é🌡️",
    },
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("event", "e"),
        ("data.usage.input_tokens", 10**25),
        ("data.usage.cost", 0.5),
        ("data.usage.none", None),
        ("data.usage", RECORD["data"]["usage"]),  # type: ignore[index]
        ("data.messages.0.role", "user"),
        ("data.messages.-2.role", "tool"),
        ("data.messages.0.tags.1", "y"),
        ("data.messages.2", 5),
        ("data.0", "zero"),
        ("data.text", "é🌡️"),
        (r"a\.b", RECORD["a.b"]),
        (r"a\.b.c\\", 1),
    ],
)
@pytest.mark.parametrize("odd", [b"", b', "odd": NaN'])
def test_a_path_finds_its_value(tmp_path: Path, path: str, value: object, odd: bytes) -> None:
    """Both ways of decoding: the fast one, and the patient one that a NaN calls for."""
    reader = EventReader(log(tmp_path, line(RECORD)[:-1] + odd + b"}"))
    assert list(reader.fields([path])) == [{path: value}]


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "event.0",
        "event.length",
        "data.messages.role",
        "data.messages.3",
        "data.messages.-4.role",
        "data.messages.2.role",
        "data.list.0.x",
        "data.usage.input_tokens.x",
        "data.usage.none.x",
        "data.text.x",
    ],
)
@pytest.mark.parametrize("odd", [b"", b', "odd": NaN'])
def test_a_missing_path_is_left_out(tmp_path: Path, path: str, odd: bytes) -> None:
    reader = EventReader(log(tmp_path, line(RECORD)[:-1] + odd + b"}"))
    assert list(reader.fields([path, "event"])) == [{"event": "e"}]
    assert reader.problems == []


def test_paths_may_be_nested(tmp_path: Path) -> None:
    paths = ["data.usage", "data.usage.cost", "data.messages.1", "data.messages.0.role", "event"]
    (found,) = EventReader(log(tmp_path, RECORD)).fields(paths)
    assert found == {
        "data.usage": {"input_tokens": 10**25, "cost": 0.5, "none": None},
        "data.usage.cost": 0.5,
        "data.messages.1": {"role": "tool"},
        "data.messages.0.role": "user",
        "event": "e",
    }


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a\\"])
def test_what_is_not_a_path_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Invalid, match="not a path to a field"):
        list(EventReader(log(tmp_path, event("a"))).fields([path]))


def test_fields_of_wanted_events_only(tmp_path: Path) -> None:
    log(tmp_path, event("a", data={"x": 1}), event("b", data={"x": 2}), event("b"), event("b", data=[1]))
    assert list(EventReader(tmp_path).fields(["data.x"], event="b")) == [{"data.x": 2}, {}, {}]


def test_a_line_with_bad_utf8_gives_no_fields(tmp_path: Path) -> None:
    bad = line(event("b", data={"x": 1, "text": "é" * WIDTH})).replace("é".encode(), b"\xc3", 1)
    reader = EventReader(log(tmp_path, event("a", data={"x": 0}), bad))
    assert list(reader.fields(["data.x"])) == [{"data.x": 0}]
    assert [problem.code for problem in reader.problems] == ["bad_utf8"]


def test_few_bytes_are_held_besides_the_line(tmp_path: Path) -> None:
    data = {"messages": [{"role": "user", "content": "word " * 100}] * 10_000, "usage": {"input_tokens": 7}}
    path = log(tmp_path, event("llm:response", data=data))
    tracemalloc.start()
    try:
        assert len(list(EventReader(path).heads())) == 1
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.reset_peak()
        fields = list(EventReader(path).fields(["data.usage.input_tokens"]))
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size + 1_000_000
    finally:
        tracemalloc.stop()
    assert fields == [{"data.usage.input_tokens": 7}]


# -- counts and sums


def test_a_summary_counts(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        event("a", 5),
        event("b", 9, lvl="ERROR", data={"x": LONG}),
        event("a", 1),
        {"event": "b"},
        b"torn",
        {"lvl": "INFO"},
    )
    summary = EventReader(path).summary()
    assert (summary.total, summary.skipped) == (5, 1)
    assert summary.events == {"a": 2, "b": 2, "": 1}
    assert summary.levels == {"INFO": 3, "ERROR": 1, None: 1}
    assert summary.first_ts == START + timedelta(seconds=1)
    assert summary.last_ts == START + timedelta(seconds=9)
    lines = path.read_bytes().split(b"\n")
    assert (summary.bytes, summary.longest) == (path.stat().st_size, len(lines[1]))
    assert summary.longest_at == len(lines[0]) + 1


def test_an_empty_log_has_an_empty_summary(tmp_path: Path) -> None:
    summary = EventReader(log(tmp_path)).summary()
    assert (summary.total, summary.bytes, summary.longest, summary.first_ts) == (0, 0, 0, None)
    assert summary.longest_at is None


def response(model: str | None = "m", usage: object = None, name: str = "llm:response") -> dict[str, Any]:
    data = {} if model is None else {"model": model}
    return event(name, data=data if usage is None else {**data, "usage": usage})


def test_usage_is_summed_by_model(tmp_path: Path) -> None:
    log(
        tmp_path,
        response("m", {"input_tokens": 100, "output_tokens": 5, "cost_usd": "0.0123"}),
        response("m", {"input_tokens": 20, "cache_read_tokens": 7, "cost_usd": 0.1}),
        response("n", {"input_tokens": 3, "output_tokens": None}),
        response("n"),
        response(None, {"input_tokens": 4, "cost_usd": "1e-7"}),
        response("m", {"input_tokens": 1000, "cost_usd": "9"}, name="llm:response:raw"),
    )
    usage = EventReader(tmp_path).usage()
    m, n, unnamed = usage.models["m"], usage.models["n"], usage.models[None]
    assert (m.responses, m.without_usage, m.without_cost) == (2, 0, 0)
    assert m.tokens == {"input_tokens": 120, "output_tokens": 5, "cache_read_tokens": 7}
    assert m.cost_usd == Decimal("0.1123")
    assert (n.responses, n.without_usage, n.without_cost) == (2, 1, 2)
    assert n.tokens == {"input_tokens": 3}
    assert n.cost_usd is None
    assert unnamed.cost_usd == Decimal("0.0000001")
    assert usage.total.tokens == {"input_tokens": 127, "output_tokens": 5, "cache_read_tokens": 7}
    assert (usage.total.responses, usage.total.without_usage, usage.total.without_cost) == (5, 1, 2)
    assert usage.total.cost_usd == Decimal("0.1123001")


@pytest.mark.parametrize("cost", [None, True, "", "free", "NaN", "inf", [], {}])
def test_a_cost_that_is_not_an_amount_is_unknown(tmp_path: Path, cost: object) -> None:
    log(tmp_path, response("m", {"input_tokens": 1, "cost_usd": cost}))
    total = EventReader(tmp_path).usage().total
    assert (total.cost_usd, total.without_cost, total.tokens) == (None, 1, {"input_tokens": 1})


@pytest.mark.parametrize("count", [None, True, "12", 1.5, []])
def test_a_count_that_is_not_a_number_is_not_summed(tmp_path: Path, count: object) -> None:
    log(tmp_path, response("m", {"input_tokens": count}), response("m", {"input_tokens": 2.0}))
    assert EventReader(tmp_path).usage().total.tokens == {"input_tokens": 2}


@pytest.mark.parametrize("usage", [None, {}, [], "much", 5])
def test_a_response_that_reports_no_usage_is_counted(tmp_path: Path, usage: object) -> None:
    log(tmp_path, response("m", usage), event("llm:response"), event("llm:response", data=None))
    total = EventReader(tmp_path).usage().total
    assert (total.responses, total.without_usage, total.tokens, total.cost_usd) == (3, 3, {}, None)


# -- where the log is


def test_a_session_without_a_log_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"events\.jsonl"):
        EventReader(tmp_path).summary()
    with pytest.raises(NotFound, match="nowhere"):
        EventReader(tmp_path / "nowhere").tail(1)


@pytest.mark.lane("samples")
def test_the_sample_sessions_are_counted_right(shared: Path) -> None:
    root = shared / "samples" / "amplifier"
    expected = json.loads((root / "EXPECTED.json").read_text("utf-8"))
    assert expected
    for session in expected.values():
        reader = EventReader(root / session["dir"])
        summary = reader.summary()
        assert summary.total == session["events"] == len(list(reader.fields(["ts"])))
        assert summary.longest == session["longest_event_line_bytes"]
        assert names(reader.tail(summary.total + 1)) == names(list(reader.heads()))
        assert reader.problems == []
