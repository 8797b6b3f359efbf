"""Times without a zone are those of the original: local ones. In its sessions we write such, and it can read on."""

import copy
import json
import os
import pickle
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.codec import decode, encode_line
from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.compat_api import (
    dataclass_to_dict,
    find_session_by_id,
    generate_timestamp,
    list_breadcrumbs,
    load_session,
    save_session,
    write_breadcrumb,
)
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.layouts.maestro.records import Breadcrumb, WorkSession
from sessionary.layouts.maestro.spans import span_of
from sessionary.layouts.maestro.statuses import pause_session
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout
from sessionary.layouts.maestro.times import SETTING, parse_time, stamp_of, zone_signature
from sessionary.layouts.summary import summaries
from sessionary.mailbox import Mailbox
from sessionary.model import Message
from sessionary.workspace import Workspace
from tests.messages import echo, prompts

TOKYO, NEW_YORK = "JST-9", "EST5EDT,M3.2.0,M11.1.0"
NOW = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
LOCAL = {TOKYO: "2026-03-01T23:00:00.000000", NEW_YORK: "2026-03-01T09:00:00.000000"}


class Original:
    """What the original does with the times of its files: it compares them as they stand there."""

    @staticmethod
    def duration(session: WorkSession) -> timedelta:
        return datetime.fromisoformat(session.modified) - datetime.fromisoformat(session.created)

    @staticmethod
    def is_since(session: WorkSession, since: datetime) -> bool:
        return datetime.fromisoformat(session.created) >= since

    @staticmethod
    def latest(sessions: list[WorkSession]) -> WorkSession:
        return max(sessions, key=lambda session: datetime.fromisoformat(session.modified))

    @staticmethod
    def is_within(crumb: Breadcrumb, first: datetime, last: datetime) -> bool:
        return first <= datetime.strptime(crumb.timestamp[:15], "%Y%m%d_%H%M%S") <= last  # noqa: DTZ007

    @staticmethod
    def newest(crumbs: list[Breadcrumb]) -> str:
        return max(crumbs, key=lambda crumb: crumb.timestamp).prompt


def in_zone(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()


@pytest.fixture(autouse=True)
def _zone_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(SETTING, raising=False)
    before = os.environ.get("TZ")
    yield
    if before is None:
        monkeypatch.delenv("TZ", raising=False)
    else:
        monkeypatch.setenv("TZ", before)
    time.tzset()


@pytest.fixture(params=[TOKYO, NEW_YORK], ids=["Tokyo", "New York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    in_zone(monkeypatch, request.param)
    return str(request.param)


def put(root: Path, name: str, created: str, modified: str | None = None, **more: Any) -> Path:
    """A session as another program has written it."""
    folder = root / name
    folder.mkdir(parents=True)
    document = {
        "session_id": name,
        "session_type": "fix",
        "created": created,
        "modified": modified or created,
    }
    (folder / "session.json").write_text(json.dumps(document | more))
    return folder


def store_at(root: Path) -> WorkStore:
    return WorkStore.with_fs(OS_FS, root, now=lambda: NOW)


def note(prompt: str = "p") -> Breadcrumb:
    return create_breadcrumb(prompt, "r", [], [], None, 0, "m", {})


# -- reading


def test_a_time_without_a_zone_is_local_and_one_with_a_zone_means_what_it_says(zone: str) -> None:
    assert parse_time(LOCAL[zone]) == NOW
    assert parse_time(datetime.fromisoformat(LOCAL[zone])) == NOW
    assert parse_time("2026-03-01T14:00:00+00:00") == parse_time("2026-03-01T16:00:00+02:00") == NOW
    assert parse_time(stamp_of(NOW)) == NOW, "a breadcrumb time of ours"


def test_the_offset_is_that_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    in_zone(monkeypatch, NEW_YORK)
    assert parse_time("2026-07-01T10:00:00") == NOW.replace(month=7)


@pytest.mark.parametrize(
    ("word", "hour"),
    [("utc", 23), ("UTC", 23), ("local", 14), ("", 14), ("Etc/GMT-1", 22), ("Etc/GMT+5", 28)],
)
def test_the_setting_names_another_zone(word: str, hour: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_zone(monkeypatch, TOKYO)
    monkeypatch.setenv(SETTING, word)
    assert parse_time(LOCAL[TOKYO]) == datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=hour)


@pytest.mark.parametrize("word", ["Lokal", "Europe/Atlantis", "../../etc/passwd", "/etc/localtime", "+02:00"])
def test_a_setting_that_names_no_zone_is_refused(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SETTING, word)
    put(tmp_path, "naive", LOCAL[TOKYO])
    with pytest.raises(Invalid, match=SETTING):
        WorkStore(tmp_path).latest()
    (tmp_path / "naive" / "session.json").write_text('{"session_id": "naive", "session_type": "fix"}')
    assert main(["work", "list", "--root", str(tmp_path)]) == Invalid.exit_code
    assert SETTING in capsys.readouterr().err


def test_latest_compares_instants(zone: str, tmp_path: Path) -> None:
    put(tmp_path, "naive", LOCAL[zone])
    put(tmp_path, "earlier", "2026-03-01T13:30:00+00:00")
    found = find_session_by_id("latest", tmp_path)
    assert found is not None
    assert found[0].session_id == "naive"
    put(tmp_path, "later", "2026-03-01T14:30:00+00:00")
    assert WorkStore(tmp_path).find("latest").session_id == "later"


def test_trees_and_lists_are_ordered_by_instant(zone: str, tmp_path: Path) -> None:
    put(tmp_path, "b", LOCAL[zone])
    put(tmp_path, "a", "2026-03-01T13:30:00+00:00")
    put(tmp_path, "c", "2026-03-01T14:30:00+00:00")
    assert [node.session.session_id for node in WorkStore(tmp_path).tree()] == ["a", "b", "c"]


def work_list(root: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert main(["work", "list", "--root", str(root), *flags]) == 0
    return capsys.readouterr().out


def test_a_list_shows_the_day_on_the_wall_and_since_compares_instants(
    zone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_the_wall = (
        "2026-03-01T23:00:00" if zone == TOKYO else "2026-03-01T01:00:00"
    )  # read as UTC, another day
    put(tmp_path / "day", "naive", on_the_wall)
    put(tmp_path / "day", "aware", on_the_wall + ("+09:00" if zone == TOKYO else "-05:00"))
    _, *rows = work_list(tmp_path / "day", capsys).splitlines()
    assert len({row.split(maxsplit=1)[1] for row in rows}) == 1
    put(tmp_path, "naive", LOCAL[zone])
    for since, is_there in (("2026-03-01T14:00:00+00:00", True), ("2026-03-01T14:00:01+00:00", False)):
        assert bool(json.loads(work_list(tmp_path, capsys, "--since", since, "--json"))) is is_there


def test_the_breadcrumbs_of_the_original_are_local_too(
    zone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = put(tmp_path, "naive", LOCAL[zone]) / "breadcrumbs" / "0"
    folder.mkdir(parents=True)
    stamp = datetime.fromisoformat(LOCAL[zone]).strftime("%Y%m%d_%H%M%S_%f")
    (folder / f"{stamp}.json").write_text(json.dumps(vars(note()) | {"timestamp": stamp}))
    (summary,) = summaries(MaestroLayout(tmp_path))
    assert (summary.created, summary.updated) == (NOW, NOW)
    (first, *_) = MaestroLayout(tmp_path).read(summary.ref)
    assert isinstance(first, Message)
    assert first.time == NOW
    store = WorkStore(tmp_path)
    second = timedelta(seconds=1)
    for begin, count in ((NOW, 1), (NOW + second, 0), (LOCAL[zone], 1)):
        assert len(store.list_breadcrumbs("naive", date_range=(begin, None))) == count
    assert main(["work", "timeline", "naive", "--root", str(tmp_path), "--json"]) == 0
    (event,) = json.loads(capsys.readouterr().out)["events"]
    assert parse_time(event["time"]) == NOW


def test_what_a_list_remembers_holds_for_one_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "docs" / "sessions"
    folder = put(root, "naive", LOCAL[TOKYO])
    for path in (folder / "session.json", folder, root):
        os.utime(path, (time.time() - 60,) * 2)
    cache = tmp_path / "cache"

    def created() -> list[datetime | None]:
        return [each.created for each in Workspace(tmp_path, cache=str(cache)).summaries()]

    in_zone(monkeypatch, TOKYO)
    assert created() == created() == [NOW]
    signature = zone_signature()
    in_zone(monkeypatch, NEW_YORK)
    assert created() == [NOW + timedelta(hours=14)]
    monkeypatch.setenv(SETTING, "utc")
    assert created() == [NOW + timedelta(hours=9)]
    assert zone_signature() != signature


def test_a_merge_comes_to_the_same_on_all_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A naive time and one with a zone, of which the later one depends on where one is."""
    base = {"session_id": "s", "session_type": "fix", "created": LOCAL[TOKYO], "modified": LOCAL[TOKYO]}
    mine = json.dumps(base | {"purpose": "mine", "modified": "2026-03-02T09:00:00"}).encode()
    theirs = json.dumps(base | {"purpose": "theirs", "modified": "2026-03-02T08:00:00+00:00"}).encode()
    results = set()
    for zone in (TOKYO, NEW_YORK):
        in_zone(monkeypatch, zone)
        merged = MaestroSyncLayout(tmp_path).merged("session.json", json.dumps(base).encode(), mine, theirs)
        assert merged is not None
        results.add(merged.data)
    assert [json.loads(each)["purpose"] for each in results] == ["mine"]


# -- writing into a session of the original


def changed(root: Path, name: str = "naive") -> Iterator[WorkSession]:
    """The session after each of our writes."""
    store = store_at(root)
    yield store.pause(name)
    yield store.resume(name)
    yield store.interrupt(name, "power")
    yield store.resume(name)
    session = store.load(name)
    session.purpose = "told"
    store.save(session)
    yield session
    yield store.update(name, lambda session: session.metadata.update(a=1))
    child = store.start_subwork(name, "look")
    yield child
    yield store.close_subwork(child.session_id, "found").session
    yield store.complete(name)


def test_the_original_can_compare_all_times_of_its_session(zone: str, tmp_path: Path) -> None:
    begun = (datetime.fromisoformat(LOCAL[zone]) - timedelta(hours=1)).isoformat()
    put(tmp_path, "naive", begun)
    put(tmp_path, "other", begun)
    for session in changed(tmp_path):
        for text in (session.modified, session.closed_at, session.metadata.get("completion_time")):
            assert text in (None, LOCAL[zone])
        assert Original.duration(session) in (timedelta(0), timedelta(hours=1))
        assert Original.is_since(session, datetime.fromisoformat(begun))
        stored = WorkStore(tmp_path).scan().sessions
        assert Original.latest(stored).session_id != "other"
    assert load_session(tmp_path / "naive" / "session.json").closed_at == LOCAL[zone]


def test_functions_of_the_original_change_its_session_in_its_way(zone: str, tmp_path: Path) -> None:
    path = put(tmp_path, "naive", LOCAL[zone]) / "session.json"
    session = pause_session(load_session(path))
    assert Original.duration(session) > timedelta(0)
    save_session(session, path)
    assert Original.duration(load_session(path)) > timedelta(0)


def test_breadcrumbs_in_its_session_are_local_and_of_now(zone: str, tmp_path: Path) -> None:
    put(tmp_path, "naive", LOCAL[zone])
    by_hand = note("by hand")
    by_hand.timestamp = generate_timestamp()
    in_utc = note("in utc")
    in_utc.timestamp = datetime.now(UTC).isoformat()
    for crumb in (by_hand, in_utc, note("first"), note("second")):
        write_breadcrumb(crumb, "naive", tmp_path)
        now = datetime.now()  # noqa: DTZ005 - the clock of the original
        assert Original.is_within(crumb, now - timedelta(seconds=60), now)
        assert Original.newest(list_breadcrumbs("naive", tmp_path)) == crumb.prompt
    found = list_breadcrumbs("naive", tmp_path, date_range=(datetime.now(UTC) - timedelta(seconds=60), None))
    assert len(found) == 4
    assert Mailbox(tmp_path / "naive").consume(echo).applied == 4
    assert prompts(tmp_path / "naive") == ["by hand", "in utc", "first", "second"]


def test_breadcrumbs_are_local_too_if_the_document_has_a_fault_elsewhere(zone: str, tmp_path: Path) -> None:
    put(tmp_path, "naive", LOCAL[zone], status="a word of another program")
    crumb = note()
    write_breadcrumb(crumb, "naive", tmp_path)
    now = datetime.now()  # noqa: DTZ005 - the clock of the original
    assert Original.is_within(crumb, now - timedelta(seconds=60), now)
    begin = datetime.now(UTC) - timedelta(seconds=60)
    assert len(list_breadcrumbs("naive", tmp_path, date_range=(begin, begin + timedelta(seconds=90)))) == 1
    layout = MaestroLayout(tmp_path)
    (ref,) = layout.discover()
    (first, *_) = (item for item in layout.read(ref) if isinstance(item, Message))
    assert first.time is not None
    assert begin <= first.time <= begin + timedelta(seconds=90)
    span = span_of(OS_FS, str(tmp_path), "naive", ref.locator)
    assert span.crumbs == [first.time]


def test_the_result_of_sub_work_is_local_too(zone: str, tmp_path: Path) -> None:
    put(tmp_path, "naive", LOCAL[zone])
    store = store_at(tmp_path)
    child = store.start_subwork("naive", "look")
    assert child.created == LOCAL[zone]
    store.close_subwork(child.session_id, "found")
    (result,) = store.list_breadcrumbs("naive")
    assert result.timestamp == datetime.fromisoformat(LOCAL[zone]).strftime("%Y%m%d_%H%M%S_%f")


def test_a_breadcrumb_that_is_not_written_yet_is_plain_json(zone: str) -> None:
    crumb = note()
    document = dataclass_to_dict(crumb)
    assert decode(encode_line(document)) == document
    assert copy.deepcopy(crumb) == pickle.loads(pickle.dumps(crumb)) == crumb


def test_the_time_of_the_sender_is_written_unchanged(zone: str, tmp_path: Path) -> None:
    put(tmp_path, "naive", LOCAL[zone])
    crumb = note()
    crumb.timestamp = "20260301_090000_000001"
    write_breadcrumb(crumb, "naive", tmp_path)
    assert crumb.timestamp == "20260301_090000_000001"


def test_sessions_of_ours_stay_in_utc(zone: str, tmp_path: Path) -> None:
    store = store_at(tmp_path)
    name = store.create("fix").session_id
    for session in changed(tmp_path, name):
        assert session.modified == session.created == "2026-03-01T14:00:00.000000+00:00"
    (result,) = store.list_breadcrumbs(name)
    assert result.timestamp == stamp_of(NOW)


@pytest.mark.parametrize("word", ["utc", "Etc/GMT-1"])
def test_the_setting_holds_for_writing_too(word: str, zone: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv(SETTING, word)
    put(tmp_path, "naive", "2026-03-01T10:00:00")
    hour = 14 if word == "utc" else 15
    assert store_at(tmp_path).pause("naive").modified == f"2026-03-01T{hour}:00:00.000000"
