"""The scan finds what a reader of every record would find, in any file, and reports what it could not read."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessionary.errors import StorageFailed
from sessionary.layouts import jsonl
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import MayMatch
from sessionary.layouts.summary import summary_of
from sessionary.model import Cursor, Item, SessionRef
from sessionary.search import Hit, Needle, Query, Search, Target, needle, one_spaced, pieces, prefilter, scan
from sessionary.transcript.typed import numbered
from tests.support import strategies
from tests.support.faults import FaultFs

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
Put = Callable[..., Target]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def put(home: Path) -> Put:
    """Make a session with this transcript, and give the place to search."""

    def put(data: bytes, name: str = "s1", changed: float | None = None) -> Target:
        folder = home / "projects" / "-p" / "sessions" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "transcript.jsonl").write_bytes(data)
        return place_of(home, folder, changed)

    return put


def place_of(home: Path, folder: Path, changed: float | None = None) -> Target:
    ref = SessionRef("amplifier", folder.name, str(folder), "-p")
    return Target(ref, AmplifierLayout(home), changed, path_of(ref).stat().st_size)


def path_of(ref: SessionRef) -> Path:
    return ref.path / "transcript.jsonl"


def lines(*messages: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages)


def said(text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def query(*words: str, case: bool = False, **conditions: Any) -> Query:
    return Query(tuple(Needle(word, case=case) for word in words), **conditions)


def search(wanted: Query, *places: Target) -> tuple[list[Hit], scan.SearchStats]:
    one = Search(wanted)
    return list(one.hits(places)), one.stats


def indexes(wanted: Query, *places: Target) -> list[int]:
    return [hit.index for hit in search(wanted, *places)[0]]


def always_ahead(patch: pytest.MonkeyPatch) -> None:
    """Threads look through everything first, however little it is and on however many cores."""
    patch.setattr(prefilter, "ALONE", 0)
    patch.setattr(prefilter, "WORTH", 0)
    patch.setattr(prefilter, "PART", 1)
    patch.setattr(prefilter, "_cores", lambda: 3)


# exactness

MANY = said("nothing here " * 40)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Transcripts in every style of JSON and state of health."""
    out = []
    for message in draw(st.lists(st.one_of(strategies.messages(), st.just(MANY)), max_size=10)):
        ascii_only, tight = draw(st.booleans()), draw(st.booleans())
        text = json.dumps(message, ensure_ascii=ascii_only, separators=(",", ":") if tight else None)
        line = text.encode("utf-8", "surrogatepass")
        match draw(st.integers(0, 14)):
            case 0:
                line = line[: draw(st.integers(0, len(line)))]
            case 1:
                line = b""
            case 2:
                line += line
            case 3:
                line = line.replace(b", ", b"\n", 1)
            case 4:
                line += b"\r"
            case 5:
                line = b"\xef\xbb\xbf" + line
            case 6:
                line = b"\0" * 20
            case 7:
                line = b" " + line
        out.append(line)
    return b"\n".join(out) + draw(st.sampled_from([b"\n", b"\n", b"\n", b""]))


def by_reading_everything(place: Target, needle: str, case: bool) -> Iterator[int]:
    """The rule, with no short cut."""
    fold = str if case else str.casefold
    wanted = fold(one_spaced(needle))
    for one in numbered(place.layout.read(place.ref)):
        if any(wanted in fold(one_spaced(piece.text)) for piece in pieces(one.message)):
            yield one.index


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=files(),
    draw=st.data(),
    case=st.booleans(),
    window=st.sampled_from([16, 300, 1 << 18]),
    threads=st.booleans(),
)
def test_the_hits_are_those_of_reading_everything(
    put: Put, data: bytes, draw: st.DataObject, case: bool, window: int, threads: bool
) -> None:
    place = put(data)
    texts = [piece.text for one in numbered(place.layout.read(place.ref)) for piece in pieces(one.message)]
    text = draw.draw(st.one_of(st.sampled_from([*texts, "a"]), strategies.text(max_size=6)))
    at = draw.draw(st.integers(0, max(len(text) - 1, 0)))
    needle = re.sub("[\ud800-\udfff]", "", text[at : at + draw.draw(st.integers(1, 8))])
    needle = needle if one_spaced(needle) else "a"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "WINDOW", window)
        if threads:
            always_ahead(patch)
        found = indexes(query(needle, case=case), place)
    assert found == list(by_reading_everything(place, needle, case))


def test_hits_across_windows_and_in_lines_longer_than_one(put: Put) -> None:
    long = said("x" * (3 * jsonl.WINDOW) + " needle " + "y" * jsonl.WINDOW)
    place = put(lines(*[MANY] * 2000, said("Needle one"), long, *[MANY] * 2000, said("needle two")))
    assert indexes(query("needle"), place) == [2000, 2001, 4002]


def test_words_in_keys_roles_and_names_are_not_found(put: Put) -> None:
    call = {"id": "toolu_1", "tool": "bash", "arguments": {"command": "ls"}}
    place = put(lines(said("Hi"), {"role": "assistant", "content": "", "tool_calls": [call]}))
    for word in ("role", "user", "assistant", "content", "command", "bash", "toolu_1"):
        assert indexes(query(word), place) == []
    assert indexes(query("ls"), place) == [1]


def test_all_words_must_be_in_the_message_each_in_any_of_its_texts(put: Put) -> None:
    both = {
        "role": "assistant",
        "content": "The lock",
        "tool_calls": [{"id": "1", "tool": "b", "arguments": "race"}],
    }
    place = put(lines(said("the lock"), said("a race"), both))
    assert indexes(query("race", "LOCK"), place) == [2]


# the fields of a hit


def test_a_hit_reports_where_who_and_when(put: Put) -> None:
    place = put(lines(said("Hi", timestamp="2026-03-01T09:00:00Z"), said("Found the race.", "assistant")))
    (hit,) = search(query("RACE"), place)[0]
    assert (hit.ref.session_id, hit.index, hit.role, hit.person) == ("s1", 1, "assistant", False)
    assert (hit.part, hit.tool, hit.text, hit.marks) == ("text", None, "Found the race.", [(10, 14)])
    assert (hit.time, hit.about) == (None, START)
    assert hit.place.byte == len(lines(said("Hi", timestamp="2026-03-01T09:00:00Z")))


def test_a_long_text_is_cut_around_its_first_mark(put: Put) -> None:
    place = put(lines(said("before " * 100 + "the race\nand a race " + "after " * 100)))
    (hit,) = search(query("race"), place)[0]
    assert hit.cut == (True, True)
    assert hit.text.startswith("before ")
    assert hit.text.endswith(" after")
    assert [hit.text[start:end] for start, end in hit.marks] == ["race", "race"]
    assert len(hit.text) <= 2 * scan.AROUND + 4


def test_marks_that_touch_are_one(put: Put) -> None:
    (hit,) = search(query("dead", "lock"), put(lines(said("a deadlock"))))[0]
    assert hit.marks == [(2, 10)]


def test_a_mark_that_is_longer_than_an_excerpt(put: Put) -> None:
    (hit,) = search(query("ab" * 1000), put(lines(said("ab" * 1000))))[0]
    assert hit.marks == [(0, 2000)]


# conditions


def test_roles(put: Put) -> None:
    reminder = said("<system-reminder>race</system-reminder>")
    place = put(
        lines(said("race"), said("race", "assistant"), said("race", "tool", tool_call_id="1"), reminder)
    )
    assert indexes(query("race", roles=frozenset({"assistant", "tool"})), place) == [1, 2]
    assert indexes(query("race", roles=frozenset({"user"})), place) == [0, 3]
    assert indexes(query("race", roles=frozenset({"person"})), place) == [0]


def test_tools(put: Put) -> None:
    def calls(tool: str, command: str) -> dict[str, Any]:
        return said(
            "race", "assistant", tool_calls=[{"id": "1", "tool": tool, "arguments": {"command": command}}]
        )

    place = put(lines(calls("bash", "grep race"), calls("bash", "ls"), calls("read", "race.py")))
    assert indexes(query("race", tools=frozenset({"bash"})), place) == [0]
    assert indexes(query(tools=frozenset({"bash"})), place) == [0, 1]
    assert indexes(query("race", tools=frozenset({"bash", "read"})), place) == [0, 2]
    assert indexes(query(tools=frozenset({"BASH"})), place) == [0, 1]
    assert indexes(query("race", tools=frozenset({"Bash", "Read"})), place) == [0, 2]


def test_a_call_that_names_no_tool(put: Put) -> None:
    place = put(lines(said("race", "assistant", tool_calls=[{"id": "1", "arguments": {"a": "race"}}])))
    assert indexes(query(tools=frozenset({"?"})), place) == [0]


def test_parts(put: Put) -> None:
    place = put(lines(said("race"), said("race", "tool", tool_call_id="1")))
    assert indexes(query("race", parts=frozenset({"result"})), place) == [1]


def test_times_are_those_of_the_message_or_of_the_last_one_that_bears_one(put: Put) -> None:
    def at(hours: int) -> str:
        return (START + timedelta(hours=hours)).isoformat()

    place = put(
        lines(
            said("race 0", timestamp=at(0)),
            said("race 1", "assistant"),
            said("nothing", metadata={"timestamp": at(2)}),
            said("race 3", "assistant"),
            said("race 4", timestamp=at(4)),
        )
    )
    assert indexes(query("race", since=START + timedelta(hours=1)), place) == [3, 4]
    assert indexes(query("race", until=START + timedelta(hours=1)), place) == [0, 1]
    assert indexes(query("race", since=START, until=START + timedelta(hours=4)), place) == [0, 1, 3]


def test_a_message_before_every_time_is_reported_where_it_is_left_out(put: Put) -> None:
    place = put(lines(said("race")), changed=START.timestamp())
    assert indexes(query("race", until=START + timedelta(days=1)), place) == [0]
    hits, reported = search(query("race", since=START - timedelta(days=1)), place)
    assert (hits, reported.undated) == ([], 1)
    hits, reported = search(query("race", until=START), place)
    assert (hits, reported.undated) == ([], 1)


def test_a_title_has_the_time_of_the_last_message_or_of_a_file_without_times(put: Put) -> None:
    copied = START + timedelta(days=9)  # the file is newer than its messages
    dated = put(lines(said("hello", timestamp=START.isoformat())), "dated", copied.timestamp())
    place = dated._replace(name="The race")
    assert indexes(query("race"), place) == [0]
    assert indexes(query("race", since=START), place) == [0]
    assert indexes(query("race", since=START + timedelta(days=1)), place) == []
    assert indexes(query("race", until=START + timedelta(days=1)), place) == [0]
    undated = put(lines(said("hello")), "undated", copied.timestamp())._replace(name="The race")
    assert indexes(query("race", since=START + timedelta(days=1)), undated) == [0]


def test_a_conversation_that_ended_before_is_not_read(put: Put) -> None:
    place = put(b"", changed=START.timestamp())
    _, reported = search(query("race", since=START + timedelta(days=3)), place)
    assert (reported.older, reported.sessions) == (1, 0)


# damage


def test_a_damaged_line_that_may_hold_the_words_is_reported(put: Put) -> None:
    good = lines(said("race one"))
    torn = b'{"role": "user", "content": "race tw\n'
    place = put(good + torn + lines(said("race three")))
    hits, reported = search(query("race"), place)
    assert [hit.index for hit in hits] == [0, 1]
    assert [(problem.code, problem.line, problem.byte) for problem in reported.problems] == [
        ("bad_json", 2, len(good))
    ]


def test_damage_before_a_hit_does_not_shift_its_index(put: Put) -> None:
    place = put(lines(said("one")) + b"{broken\n" + lines(said("race")))
    (hit,), reported = search(query("race"), place)
    (one,) = [one for one in numbered(place.layout.read(place.ref)) if one.index == hit.index]
    assert one.message.text == "race"
    assert [problem.code for problem in reported.problems] == ["bad_json"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":' + b"1" * 5000 + b"}",
        b'{"a":"\xff"}',
        b'{"\xe2\x82":1}',
        b'{"a":"\x01"}',
        b'{"a":"\\x"}',
        b'{"role":"user","content":"to{"role":"user"}',
        b'{"a":1}{"b":2}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":\n{"role":"user","content":"race"}\n}',
    ],
)
def test_a_line_that_resembles_a_record_is_not_counted(put: Put, line: bytes) -> None:
    place = put(lines(said("race"), MANY) + line + b"\n" + lines(MANY, said("race")))
    assert indexes(query("race"), place) == [0, 3] == list(by_reading_everything(place, "race", False))


@pytest.mark.parametrize("line", [b'{"a":"\\ud83d"}', b'{"a":1e999}', b'{"a":NaN}', b"{}", b' {"a":1}'])
def test_an_odd_record_is_counted(put: Put, line: bytes) -> None:
    place = put(lines(said("race"), MANY) + line + b"\n" + lines(MANY, said("race")))
    assert indexes(query("race"), place) == [0, 4] == list(by_reading_everything(place, "race", False))


def test_unanswered_calls_hide_no_words(put: Put) -> None:
    call = said("race", "assistant", tool_calls=[{"id": "1", "tool": "bash", "arguments": {}}])
    _, reported = search(query("race"), put(lines(call)[:-1]))
    assert reported.problems == []


def test_a_file_that_is_not_text_is_reported(put: Put) -> None:
    place = put("race".encode("utf-16"))
    hits, reported = search(query("race"), place)
    assert (hits, [problem.code for problem in reported.problems]) == ([], ["not_text"])


def test_an_unreadable_file_is_reported_and_the_next_one_searched(put: Put, home: Path) -> None:
    bad = put(b"", "bad")
    path_of(bad.ref).unlink()
    path_of(bad.ref).mkdir()
    good = put(lines(said("race")), "good")
    hits, reported = search(query("race"), bad, good)
    assert [hit.ref.session_id for hit in hits] == ["good"]
    assert [(problem.code, problem.path) for problem in reported.problems] == [
        ("unreadable_file", str(path_of(bad.ref)))
    ]


@pytest.mark.timeout(20)
@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there is no device without an end")
def test_a_device_without_end_is_reported_and_never_read(put: Put) -> None:
    bad, good = put(b"", "bad"), put(lines(said("race")), "good")
    path_of(bad.ref).unlink()
    path_of(bad.ref).symlink_to("/dev/zero")
    hits, reported = search(query("race"), bad, good)
    assert [hit.ref.session_id for hit in hits] == ["good"]
    assert [problem.code for problem in reported.problems] == ["unreadable_file"]
    for problems in (summary_of(bad.layout, bad.ref).problems, bad.layout.check(bad.ref)):
        assert [problem.code for problem in problems] == ["unreadable_file", "no_metadata"]
    with pytest.raises(StorageFailed, match="not a regular file but a pipe or a device"):
        list(bad.layout.read(bad.ref))


class _Refusing(AmplifierLayout):
    """A layout whose sessions have many files, which the system does not let us read."""

    def read(
        self,
        ref: SessionRef,
        after: Cursor | None = None,
        may_match: MayMatch | None = None,
        **options: Any,
    ) -> Iterator[Item]:
        raise StorageFailed("Failed to read: Permission denied", path=f"{ref.locator}/0.json", errno=13)


def test_a_session_of_many_files_that_is_refused_is_reported(put: Put, home: Path) -> None:
    good = put(lines(said("race")), "good")
    bad = place_of(home, Path(put(b"", "bad").ref.locator))._replace(layout=_Refusing(home))
    hits, reported = search(query("race"), bad, good)
    assert [hit.ref.session_id for hit in hits] == ["good"]
    assert [(ref, problem.code, problem.path) for ref, problem in reported.damaged] == [
        (bad.ref, "unreadable_file", f"{bad.ref.locator}/0.json")
    ]


def test_a_session_without_a_conversation(put: Put) -> None:
    place = put(b"")
    path_of(place.ref).unlink()
    hits, reported = search(query("race"), place)
    assert (hits, reported.problems, reported.sessions) == ([], [], 1)


def test_threads_that_look_ahead_change_nothing_that_is_reported(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, found = lines(said("nothing")), lines(said("nothing"), said("a race"))
    torn = b'{"role": "user", "content": "race tw\n'
    contents = [
        good,
        found,
        torn + good,
        b"",
        good[:-1],
        found[:-1],
        good + torn + found,
        b"race".ljust(9, b"\0"),
    ]
    places = [put(data, f"{number}-{kind}") for number in range(5) for kind, data in enumerate(contents)]
    places.append(put(good, "gone"))
    path_of(places[-1].ref).unlink()
    places.append(put(good, "folder"))
    path_of(places[-1].ref).unlink()
    path_of(places[-1].ref).mkdir()
    alone = search(query("race"), *places)
    assert (len(alone[0]), alone[1].sessions, len(alone[1].damaged)) == (15, 42, 21)
    asked: list[str] = []

    def reported(self: Search, place: Target, abandoned: threading.Event) -> bool:
        assert threading.current_thread() is not threading.main_thread()
        asked.append(place.ref.session_id)
        return quiet(self, place, abandoned)

    quiet = Search._is_quiet
    monkeypatch.setattr(Search, "_is_quiet", reported)
    always_ahead(monkeypatch)
    assert search(query("race"), *places) == alone
    assert sorted(asked) == sorted(place.ref.session_id for place in places)


def test_a_caller_that_stops_early_ends_the_threads(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    always_ahead(monkeypatch)
    places = [put(lines(said("race")), f"{number}") for number in range(100)]
    before = threading.active_count()
    hits = iter(Search(query("race")).hits(places))
    assert next(hits).ref.session_id == "0"
    assert threading.active_count() > before
    del hits
    assert threading.active_count() == before


def test_where_no_thread_can_be_begun_the_search_does_without(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_ahead(monkeypatch)

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    places = [put(lines(said("race")), f"{number}") for number in range(40)]
    hits, reported = search(query("race"), *places)
    assert (len(hits), reported.sessions) == (40, 40)


def test_a_search_for_what_no_bytes_give_away_reads_nothing_ahead(put: Put) -> None:
    fs = FaultFs()
    one, place = Search(query(tools=frozenset({"bash", "grep"}))), put(lines(said("nothing")))
    assert not one._is_quiet(place._replace(layout=AmplifierLayout(place.layout.home, fs)), threading.Event())
    assert fs.counts["open"] == 0


def test_a_thread_gives_up_in_the_middle_of_a_long_file_that_has_no_waiter(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "WINDOW", 64)
    place = put(lines(*[said("nothing")] * 100))
    one, abandoned = Search(query("race")), threading.Event()
    assert one._is_quiet(place, abandoned)
    abandoned.set()
    assert not one._is_quiet(place, abandoned)


@pytest.mark.parametrize(("sizes", "cores"), [([1, 1], 2), ([prefilter.WORTH, prefilter.WORTH], 1)])
def test_little_and_one_core_take_no_threads(
    sizes: list[int], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefilter, "_cores", lambda: cores)
    items = [(size, str(number)) for number, size in enumerate(sizes * 20)]

    def never(item: str, abandoned: threading.Event) -> bool:
        raise AssertionError(item)

    assert list(prefilter.looked_ahead(items, never)) == [(item, False) for _, item in items]


def test_a_search_that_is_given_up_may_be_collected_in_one_of_its_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefilter, "_cores", lambda: 2)
    last = prefilter.ALONE + 5
    items = [(prefilter.WORTH, number) for number in range(last + 1)]
    given_up = threading.Event()
    outcome: list[object] = []
    ended = threading.Event()

    def collected(item: int, unused: threading.Event) -> bool:
        if item == last:
            given_up.wait(60)
            try:
                found.close()
                outcome.append(unused.is_set())
            except RuntimeError as error:
                outcome.append(error)
            ended.set()
        return True

    found = prefilter.looked_ahead(items, collected)
    while next(found) != (prefilter.ALONE, True):
        pass
    given_up.set()
    assert ended.wait(60)
    assert outcome == [True]


def test_progress_is_reported_during_the_search(put: Put) -> None:
    places = [put(lines(said("race")), "a"), put(lines(said("no")), "b")]
    passed: list[int] = []
    one = Search(query("race"))
    assert len(list(one.hits(places, passed=passed.append))) == 1
    assert passed == [place.size for place in places]
    assert one.stats.bytes == sum(passed)


@given(
    before=st.text("ab \n", max_size=90),
    after=st.text("ab \n", max_size=90),
    block=st.integers(1, 40),
    around=st.integers(1, 30),
)
def test_a_text_looked_into_by_blocks_is_cut_as_a_whole_one(
    before: str, after: str, block: int, around: int
) -> None:
    text, words = f"{before}the RACE here{after}", [Needle("race"), Needle("bb"), Needle("he r")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "AROUND", around)
        found, whole = scan._looked_into(text, words)[0], scan._looked_into(text, words[:1])
        patch.setattr(needle, "BLOCK", block)
        assert scan._looked_into(text, words)[0] == found
        assert scan._looked_into(text, words[:1]) == whole
