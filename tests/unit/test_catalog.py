"""What a list remembers: never wrong, never in the way, and nothing is read that has not changed."""

import _thread
import errno
import json
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.catalog import Catalog, query, store
from sessionary.catalog.store import FILE, _Read, _Row
from sessionary.disk.fs import Fs, OsFs
from sessionary.errors import Invalid, NotFound, StorageFailed
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import SessionRef, Summary
from sessionary.testing.layout_suite import STATS, LongAgoFs, with_times
from sessionary.testing.wrapper import WrappedFs
from sessionary.workspace import Workspace
from sessionary.xdg import cache_folder
from tests.support import agent_stores
from tests.support.agent_files import write_lines

SECOND = 1_000_000_000  # nanoseconds


def line(text: str, role: str = "user") -> bytes:
    return json.dumps({"role": role, "content": text, "timestamp": "2026-03-01T09:00:00Z"}).encode() + b"\n"


def make(home: Path, session_id: str, *texts: str, project: str = "-p", **fields: Any) -> Path:
    folder = home / "projects" / project / "sessions" / session_id
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_bytes(b"".join(map(line, texts or ("hello",))))
    metadata = {"session_id": session_id, "created": "2026-03-01T09:00:00+00:00", "bundle": "b", **fields}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


@pytest.fixture
def listed(home: Path, cache: Path) -> Callable[..., dict[str, Summary]]:
    """What a list through the catalogue shows, by id."""

    def listed(fs: Fs | None = None) -> dict[str, Summary]:
        found = Workspace(home, fs=fs or LongAgoFs(), cache=str(cache)).summaries()
        return {summary.ref.session_id: summary for summary in found}

    return listed


Listed = Callable[..., dict[str, Summary]]


def read_anew(home: Path, fs: Fs | None = None) -> dict[str, Summary]:
    return {
        summary.ref.session_id: summary for summary in summaries(AmplifierLayout(home, fs or LongAgoFs()))
    }


def only_file(cache: Path) -> Path:
    (path,) = cache.iterdir()
    return path


def remembered(home: Path, cache: Path) -> dict[str, Summary]:
    """What the catalogue has of the sessions of a home, by id."""
    rows = Catalog(str(cache))._load(AmplifierLayout(home, LongAgoFs()))
    return {row.summary.ref.session_id: row.summary for row in rows.values() if row.fingerprint}


# What it saves


def test_what_has_not_changed_is_not_opened(home: Path, listed: Listed) -> None:
    make(home, "one")
    make(home, "two", "a", "b")
    first = listed()
    fs = LongAgoFs()
    assert listed(fs) == first == read_anew(home)
    assert not fs.opened


def test_one_changed_session_is_read_and_no_other(home: Path, listed: Listed) -> None:
    for number in range(10):
        make(home, f"s{number}")
    listed()
    with (home / "projects/-p/sessions/s4/transcript.jsonl").open("ab") as file:
        file.write(line("more"))
    fs = LongAgoFs()
    found = listed(fs)
    assert (found["s4"].messages, found["s5"].messages) == (2, 1)
    assert (fs.opened["transcript.jsonl"], fs.opened["metadata.json"]) == (1, 1)


def test_the_summary_of_one_session_is_kept_too(home: Path, cache: Path) -> None:
    make(home, "one")
    make(home, "two", "a", "b")
    layout, catalog = AmplifierLayout(home, LongAgoFs()), Catalog(str(cache))
    refs = {ref.session_id: ref for ref in layout.discover()}
    first = catalog.summary(layout, refs["two"])
    assert (first, remembered(home, cache)) == (summary_of(layout, refs["two"]), {"two": first})
    fs = LongAgoFs()
    assert catalog.summary(AmplifierLayout(home, fs), refs["two"]) == first
    assert not fs.opened
    rmtree(home / "projects/-p/sessions/two")
    with pytest.raises(NotFound):
        catalog.summary(layout, refs["two"])


def test_a_large_session_is_not_read_before_it_is_known(home: Path, cache: Path) -> None:
    make(home, "one", "a", "b")
    fs, catalog = LongAgoFs(), Catalog(str(cache))
    layout = AmplifierLayout(home, fs)
    (ref,) = layout.discover()
    whole = summary_of(layout, ref)
    fs.opened.clear()
    unread = catalog.summary(layout, ref, at_most=whole.size - 1)
    assert (unread.unread, unread.messages, unread.size) == (True, 0, whole.size)
    assert not fs.opened["transcript.jsonl"]
    assert not remembered(home, cache)
    assert catalog.summary(layout, ref, at_most=whole.size) == whole
    assert catalog.summary(layout, ref, at_most=0) == whole, "it is known"


def test_a_session_whose_name_is_not_utf_8_spoils_nothing(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    odd = make(home, os.fsdecode(b"odd-\xff"))
    layout = AmplifierLayout(home, LongAgoFs())
    (ref,) = (one for one in layout.discover() if one.locator == str(odd))
    assert Catalog(str(cache)).summary(layout, ref).messages == 1
    assert list(remembered(home, cache)) == ["one"]


@pytest.mark.parametrize(("size", "kept"), [(1_000, False), (1_000_000, True)])
def test_a_large_session_is_read_from_where_it_ended(
    size: int, kept: bool, home: Path, cache: Path, listed: Listed
) -> None:
    folder, count = make(home, "one"), size // 100
    said = (line("x" * 100, "assistant" if number % 2 else "user") for number in range(count))
    before = (folder / "transcript.jsonl").write_bytes(b"".join(said))
    listed()
    with (folder / "transcript.jsonl").open("ab") as file:
        added = file.write(line("more"))
    fs = LongAgoFs()
    assert listed(fs)["one"].messages == count + 1
    assert fs.bytes_read < added + 64_000
    assert (fs.bytes_read < before) is kept


def test_a_list_of_what_has_not_changed_writes_nothing(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    before = only_file(cache).stat()
    listed()
    after = only_file(cache).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_gone_is_dropped(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    make(home, "two")
    listed()
    rmtree(home / "projects/-p/sessions/two")
    assert set(listed()) == {"one"}
    assert set(remembered(home, cache)) == {"one"}


# It is never wrong


def lie_about(home: Path, cache: Path, session_id: str) -> None:
    """Change the stored row of a session, so that a reader that uses it can be detected."""
    catalog = Catalog(str(cache))
    layout = AmplifierLayout(home, LongAgoFs())
    (row,) = [row for place, row in catalog._load(layout).items() if place.endswith(f"/{session_id}")]
    lie = msgspec.structs.replace(row.summary, title="a lie", health="lost_data")
    catalog._store(layout.name, str(home), [_Read(_Row(row.fingerprint, lie), None)], [])


def test_a_list_uses_the_catalogue_and_a_check_does_not(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    lie_about(home, cache, "one")
    assert listed()["one"].title == "a lie", "or this test proves nothing"
    workspace = Workspace(home, fs=LongAgoFs(), cache=str(cache))
    ref = workspace.find("one")
    assert summary_of(workspace.layout_of(ref), ref).title == "hello"
    assert list(workspace.layout_of(ref).check(ref)) == []


def touch(folder: Path) -> None:
    os.utime(folder / "transcript.jsonl")


def chmod(folder: Path) -> None:
    (folder / "transcript.jsonl").chmod(0o640)


def add(folder: Path) -> None:
    (folder / "transcript.jsonl.conflict-1").write_bytes(b"x")


def remove(folder: Path) -> None:
    (folder / "metadata.json").unlink()


def swap(folder: Path) -> None:
    """The same content and times in another file, whose writer then resets the folder's time."""
    times, old = os.stat(folder), os.stat(folder / "metadata.json")
    (folder / "new").write_bytes((folder / "metadata.json").read_bytes())
    os.utime(folder / "new", ns=(old.st_atime_ns, old.st_mtime_ns))
    (folder / "new").replace(folder / "metadata.json")
    os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("change", [touch, chmod, add, remove, swap])
def test_every_change_is_noticed(
    home: Path, cache: Path, listed: Listed, change: Callable[[Path], None]
) -> None:
    folder = make(home, "one")
    listed()
    lie_about(home, cache, "one")
    _tick(folder)
    change(folder)
    assert listed()["one"].title == "hello"


def _tick(folder: Path) -> None:
    """Wait until the file system's clock has moved on, a few milliseconds."""
    probe = folder.parent.parent / "clock"
    probe.touch()
    start = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == start:
        os.utime(probe)


@pytest.mark.parametrize(
    "name", [".transcript.jsonl.0123456789abcdef.tmp", ".metadata_x1y2z3a4.tmp", "metadata.json.tmp"]
)
def test_a_finding_that_depends_on_the_time_is_not_remembered(home: Path, name: str) -> None:
    folder = make(home, "one")
    (folder / name).write_bytes(line("a") * 5)
    assert AmplifierLayout(home, LongAgoFs()).fingerprint(ref_of(home, "one")) == b""


def ref_of(home: Path, session_id: str) -> SessionRef:
    (ref,) = [ref for ref in AmplifierLayout(home).discover() if ref.session_id == session_id]
    return ref


def test_a_change_in_a_folder_below_is_noticed(home: Path, listed: Listed) -> None:
    inner = make(home, "one") / "inner"
    inner.mkdir()
    (inner / "file").write_bytes(b"x")
    size = listed()["one"].size
    with (inner / "file").open("ab") as file:
        file.write(b"more")
    assert listed()["one"].size == size + 4


def test_what_could_not_be_read_is_not_remembered(home: Path, cache: Path) -> None:
    make(home, "one")

    class Refusing(LongAgoFs):
        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            if path.endswith("transcript.jsonl"):
                raise PermissionError(errno.EACCES, "no", path)
            return super().open(path, flags, mode)

    (summary,) = Workspace(home, fs=Refusing(), cache=str(cache)).summaries()
    assert summary.health == "stops_resume"
    assert not remembered(home, cache)


@pytest.mark.parametrize(("age", "kept"), [(MTIME_GRACE - 0.5, False), (MTIME_GRACE + 0.5, True)])
def test_only_settled_sessions_are_stored_in_the_catalogue(home: Path, age: float, kept: bool) -> None:
    folder = make(home, "one")
    newest = max(path.stat().st_ctime for path in (folder, *folder.iterdir()))
    layout = AmplifierLayout(home, now=lambda: newest + age)
    assert bool(layout.fingerprint(ref_of(home, "one"))) is kept


class SlowClock(WrappedFs):
    """A file system whose clock ticks every two seconds, as the slowest do; the test says what changed when."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_800_000_000 * SECOND
        self.times: dict[int, tuple[int, int]] = {}

    def changed(self, *paths: Path, keep_mtime: bool = False) -> None:
        """Note that this has just been changed; with `keep_mtime` the old time was restored."""
        tick = self.now // (2 * SECOND) * (2 * SECOND)
        for path in paths:
            inode = os.stat(path).st_ino
            self.times[inode] = (self.times.get(inode, (tick, tick))[0] if keep_mtime else tick, tick)

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        found = super().call(name, *arguments, **options)
        return with_times(found, *self.times.get(found.st_ino, (0, 0))) if name in STATS else found


class History:
    """A home to which things happen."""

    def __init__(self, root: Path) -> None:
        self.fs = SlowClock()
        self.home = root / "home"
        self.sessions = self.home / "projects" / "-p" / "sessions"
        self.catalog = Catalog(str(root / "cache"))
        self.layout = AmplifierLayout(self.home, self.fs, now=lambda: self.fs.now / SECOND)
        for name in ("a", "b"):
            self.make(name)

    def make(self, name: str) -> None:
        with suppress(FileExistsError):
            folder = make(self.home, name, f"I am {name}")
            self.fs.changed(folder, *folder.iterdir())

    def write(self, name: str, file: str, data: bytes) -> None:
        """A new file, or other content in place of the old."""
        (self.sessions / name / file).write_bytes(data)
        self.fs.changed(self.sessions / name, self.sessions / name / file)

    def replace(self, name: str, file: str, data: bytes) -> None:
        (self.sessions / name / "new").write_bytes(data)
        (self.sessions / name / "new").replace(self.sessions / name / file)
        self.fs.changed(self.sessions / name, self.sessions / name / file)

    def append(self, name: str, data: bytes) -> None:
        """The folder's time stays: an append need not touch it."""
        path = self.sessions / name / "transcript.jsonl"
        known = path.exists()
        with path.open("ab") as file:
            file.write(data)
        self.fs.changed(path, *([] if known else [path.parent]))

    def overwrite(self, name: str, byte: bytes, keep_mtime: bool) -> None:
        path = self.sessions / name / "transcript.jsonl"
        data = path.read_bytes()
        at = data.find(b"I am") if b"I am" in data else 0
        with path.open("r+b") as file:
            file.seek(at)
            file.write(byte)
        self.fs.changed(path, keep_mtime=keep_mtime)

    def remove(self, name: str, file: str) -> None:
        (self.sessions / name / file).unlink()
        self.fs.changed(self.sessions / name)

    def nest(self, name: str, data: bytes) -> None:
        inner = self.sessions / name / "inner"
        inner.mkdir(exist_ok=True)
        (inner / "file").write_bytes(data)
        self.fs.changed(inner, inner / "file", self.sessions / name)

    def delete(self, name: str) -> None:
        rmtree(self.sessions / name)

    def rename(self, name: str, to: str) -> None:
        (self.sessions / name).rename(self.sessions / to)

    def wait(self, seconds: float) -> None:
        self.fs.now += int(seconds * SECOND)

    def answers(self) -> tuple[list[Summary], list[Summary]]:
        """What is said with what was remembered, and what a fresh read says."""
        remembered = list(self.catalog.summaries(self.layout))
        return sorted(remembered, key=_id), sorted(summaries(self.layout), key=_id)


def _id(summary: Summary) -> str:
    return summary.ref.session_id


def _steps() -> st.SearchStrategy[tuple[Any, ...]]:
    name = st.sampled_from("abc")
    file = st.sampled_from(
        "transcript.jsonl metadata.json transcript.jsonl.backup metadata.json.backup events.jsonl .lock notes.md "
        "transcript.jsonl.conflict-20260301T090000.000000Z .x.0123456789abcdef.tmp".split()
    )
    named = b'{"session_id": "a", "created": "2026-03-01", "bundle": "b", "name": "N"}'
    data = st.sampled_from(
        [
            b"",
            b"\n",
            b"{}",
            b"{",
            named,
            line("I am"),
            line("I am") * 2,
            line("x", "assistant"),
            line("torn")[:9],
        ]
    )
    return st.one_of(
        st.tuples(st.just("make"), name),
        st.tuples(st.sampled_from(["write", "replace"]), name, file, data),
        st.tuples(st.just("append"), name, data),
        st.tuples(st.just("overwrite"), name, st.sampled_from([b"X", b"{", b"\n", b"\0"]), st.booleans()),
        st.tuples(st.just("remove"), name, file),
        st.tuples(st.just("nest"), name, data),
        st.tuples(st.just("delete"), name),
        st.tuples(st.just("rename"), name, name),
    )


@given(st.lists(st.tuples(_steps(), st.sampled_from([0, 0, 0.3, 1.1, 2.5, 90])), max_size=12))
def test_whatever_happens_the_answer_is_that_of_a_fresh_read(
    steps: list[tuple[tuple[Any, ...], float]],
) -> None:
    with TemporaryDirectory() as root:
        history = History(Path(root))
        history.wait(5)
        remembered, fresh = history.answers()
        assert remembered == fresh
        for (verb, *arguments), seconds in steps:
            with suppress(OSError):  # what is not there cannot be changed
                getattr(history, verb)(*arguments)
            for pause in (seconds, 0):
                remembered, fresh = history.answers()
                assert remembered == fresh
                history.wait(pause)


# It is never in the way


def test_a_damaged_catalogue_is_not_used(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one", name="Title")
    make(home, "two")
    expected = listed()
    whole = only_file(cache).read_bytes()
    chance = random.Random(7)
    spoiled = [whole[:cut] for cut in (0, 1, 10, 40, len(whole) // 2, len(whole) - 1)]
    spoiled += [
        whole + b"\0",
        whole.replace(b"Title", b"Other"),
        b"\0" * len(whole),
        whole[:40] + b"\xc1" * 99,
    ]
    for _ in range(60):
        at = chance.randrange(len(whole))
        spoiled.append(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
    for data in spoiled:
        for path in cache.iterdir():
            path.unlink()
        (cache / FILE).write_bytes(data)
        assert listed() == expected
    (cache / FILE).write_bytes(whole[: len(whole) // 2])
    listed()
    assert remembered(home, cache) == expected, "it was made anew"


def test_a_catalogue_of_another_version_is_made_anew(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    lie_about(home, cache, "one")
    with closing(sqlite3.connect(only_file(cache))) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert listed()["one"].title == "hello"
    assert remembered(home, cache)["one"].title == "hello"


def test_a_locked_catalogue_is_done_without(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    make(home, "two")
    with closing(sqlite3.connect(only_file(cache), isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert set(listed()) == {"one", "two"}
        connection.execute("ROLLBACK")
    assert set(remembered(home, cache)) == {"one"}
    assert set(listed()) == set(remembered(home, cache)) == {"one", "two"}


def test_a_locked_catalogue_is_waited_for_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of sessions would wait for it again."""
    agent_stores.enter(tmp_path, monkeypatch)
    agent_stores.make(tmp_path)
    before = {one.ref for one in Workspace(cache=str(cache)).summaries()}
    opened, connect = list[str](), store.connect

    def counted(path: str, *, make: bool = False) -> sqlite3.Connection:
        opened.append(path)
        return connect(path, make=make)

    monkeypatch.setattr(store, "connect", counted)
    with closing(sqlite3.connect(only_file(cache), isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert {one.ref for one in Workspace(cache=str(cache)).summaries()} == before
    assert len(opened) == 1
    assert len({ref.kind for ref in before}) > 5


def test_a_cache_that_cannot_be_written_is_done_without(home: Path, tmp_path: Path) -> None:
    make(home, "one")
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        workspace = Workspace(home, fs=LongAgoFs(), cache=str(place))
        assert [summary.title for summary in workspace.summaries()] == ["hello"]


def test_a_full_disk_is_done_without(
    home: Path, cache: Path, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "one")
    listed()
    for number in range(200):
        make(home, f"s{number}", "x" * 500)
    connect = store.connect

    def small(path: str, *, make: bool = False) -> sqlite3.Connection:
        connection = connect(path, make=make)
        connection.execute("PRAGMA max_page_count = 8")
        return connection

    monkeypatch.setattr(store, "connect", small)
    assert len(listed()) == 201
    monkeypatch.undo()
    assert set(remembered(home, cache)) == {"one"}, "all of it is stored, or nothing"
    assert len(listed()) == 201


def test_a_disk_that_refuses_deletes_no_good_catalogue(
    home: Path, cache: Path, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "one")
    listed()
    make(home, "two")

    def refuse(path: str, *, make: bool = False) -> sqlite3.Connection:
        raise OSError(errno.ENOSPC, "full", path)

    monkeypatch.setattr(store, "connect", refuse)
    assert set(listed()) == {"one", "two"}
    monkeypatch.undo()
    assert set(remembered(home, cache)) == {"one"}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="modes do not keep this user out")
def test_a_folder_that_is_read_only_is_done_without(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    assert set(listed()) == {"one"}


def test_the_catalogue_is_private(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    mask = os.umask(0)
    try:
        listed()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(only_file(cache).stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == stat.S_IMODE(cache.parent.stat().st_mode) == 0o700


def test_what_the_format_cannot_hold_is_read_each_time(home: Path, cache: Path, listed: Listed) -> None:
    make(home, os.fsdecode(b"caf\xe9"))
    make(home, "large", turn_count=10**30)
    make(home, "half", name="\ud83d")
    make(home, "whole")
    first = listed()
    assert first == read_anew(home)
    fs = LongAgoFs()
    assert listed(fs) == first
    assert fs.opened["transcript.jsonl"] == 3
    assert set(remembered(home, cache)) == {"whole"}


def test_a_project_that_cannot_be_looked_into_spoils_nothing(home: Path, listed: Listed) -> None:
    make(home, "one")
    closed = home / "projects" / "-q" / "sessions"
    (closed / "two").mkdir(parents=True)

    class Closed(LongAgoFs):
        def listdir(self, path: str) -> list[str]:
            if path == str(closed):
                raise PermissionError(errno.EACCES, "no", path)
            return super().listdir(path)

    for _ in range(2):
        with pytest.raises(OSError, match="projects/-q/sessions"):
            listed(Closed())
    fs = LongAgoFs()
    assert set(listed(fs)) == {"one"}
    assert fs.opened["transcript.jsonl"] == 0, "what could be read was remembered"


def test_many_at_once_all_get_the_right_answer(home: Path, cache: Path, listed: Listed) -> None:
    for number in range(30):
        make(home, f"s{number}")
    expected = read_anew(home)
    wrong: list[object] = []

    def work() -> None:
        for _ in range(8):
            found = listed()
            if found != expected:
                wrong.append(found)
            for path in cache.glob("*.db*"):
                path.unlink(missing_ok=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert listed() == expected
    assert [path.suffix for path in cache.iterdir()] == [".db"]


def test_two_refreshes_at_once(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    make(home, "two")
    layout = AmplifierLayout(home, LongAgoFs())
    first, second = (Catalog(str(cache)).summaries(layout) for _ in range(2))
    assert next(first).ref.session_id in {"one", "two"}
    assert len(list(second)) == 2
    assert len(list(first)) == 1
    assert set(remembered(home, cache)) == {"one", "two"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills are POSIX's")
def test_a_killed_refresh_leaves_a_whole_catalogue(home: Path, cache: Path, listed: Listed) -> None:
    for number in range(40):
        make(home, f"s{number:02}")
    expected = read_anew(home)
    program = (
        "import sys, os, signal, threading; from pathlib import Path\n"
        "from sessionary.workspace import Workspace; from sessionary.testing.layout_suite import LongAgoFs\n"
        "threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
        "while True:\n"
        "    list(Workspace(Path(sys.argv[1]), fs=LongAgoFs(), cache=sys.argv[2]).summaries())\n"
        "    [path.unlink(missing_ok=True) for path in Path(sys.argv[2]).glob('catalogue.db*')]\n"
    )
    for delay in ("0.01", "0.02", "0.05", "0.1"):
        command = [sys.executable, "-c", program, str(home), str(cache), delay]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert listed() == expected


_KILLED = """
import os, signal, sys
from pathlib import Path
from sessionary.catalog import store
from sessionary.testing.layout_suite import LongAgoFs
from sessionary.workspace import Workspace

class Killed(LongAgoFs):
    def open(self, path, flags, mode=0o666):
        if path.endswith("transcript.jsonl") and self.opened["transcript.jsonl"] == 11:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().open(path, flags, mode)

store.BATCH = int(sys.argv[3])
list(Workspace(Path(sys.argv[1]), fs=Killed(), cache=sys.argv[2]).summaries())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills are POSIX's")
def test_what_a_killed_list_has_read_is_not_read_again(home: Path, cache: Path, listed: Listed) -> None:
    for number in range(20):
        make(home, f"s{number:02}")
    expected, whole = read_anew(home, fs := LongAgoFs()), fs.bytes_read
    four = sum(one.size for one in list(expected.values())[:4])
    command = [sys.executable, "-c", _KILLED, str(home), str(cache), str(four)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    fs = LongAgoFs()
    assert listed(fs) == expected
    assert fs.opened["transcript.jsonl"] == 12  # eleven were read, and eight of them stored
    assert fs.bytes_read == whole * 12 // 20


class Stopped:
    """Presses Ctrl-C when three sessions were read."""

    def __init__(self, *, goes_on: bool) -> None:
        self.total = self.done = self.count = 0
        self.known: list[tuple[str, bool]] = []
        self._goes_on = goes_on

    def begin(self, total: int, known: Sequence[Summary]) -> None:
        self.total = total
        self.known = [(one.ref.session_id, one.unread) for one in known]

    def advance(self, size: int) -> None:
        self.count, self.done = self.count + 1, self.done + size
        if self.count == 3:
            raise KeyboardInterrupt

    def goes_on(self) -> bool:
        return self._goes_on


@pytest.mark.parametrize("goes_on", [True, False])
def test_ctrl_c_keeps_what_was_read_newest_first(
    goes_on: bool, home: Path, cache: Path, listed: Listed
) -> None:
    for number in range(8):
        folder = make(home, f"s{number}", name=f"the name {number}")
        text = json.dumps({"role": "user", "content": "hi", "timestamp": f"2026-03-0{number + 1}T09:00:00Z"})
        (folder / "transcript.jsonl").write_text(text + "\n")
        for path in (*folder.iterdir(), folder):
            os.utime(path, ns=((number - 100) * SECOND + 1_772_000_000 * SECOND,) * 2)
    expected, watch = read_anew(home), Stopped(goes_on=goes_on)
    workspace = Workspace(home, fs=LongAgoFs(), cache=str(cache))
    if goes_on:
        found = {one.ref.session_id: one for one in workspace.summaries(watch)}
        unread = {name for name, one in found.items() if one.unread}
        assert unread == {f"s{number}" for number in range(5)}
        assert all(found[name] == expected[name] for name in found.keys() - unread)
        for name in unread:
            assert (found[name].size, found[name].messages) == (expected[name].size, 0)
            assert found[name].title == expected[name].title
    else:
        with pytest.raises(KeyboardInterrupt):
            list(workspace.summaries(watch))
    assert watch.known == [(f"s{number}", True) for number in range(7, -1, -1)]
    assert (watch.total, watch.done) == (
        sum(one.size for one in expected.values()),
        sum(expected[f"s{number}"].size for number in (5, 6, 7)),
    )
    fs = LongAgoFs()
    assert listed(fs) == expected
    assert fs.opened["transcript.jsonl"] == 5


def test_a_session_that_was_not_read_yet_has_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_stores.enter(tmp_path, monkeypatch)
    agent_stores.make(tmp_path)
    workspace, watch = Workspace(), Folders()
    read = {one.ref: one.cwd for one in workspace.summaries(watch)}
    agents = {"claude_code", "codex", "copilot_cli", "opencode", "pi", "qwen", "vscode_chat"}
    assert {ref.kind for ref, cwd in read.items() if cwd} >= agents
    assert {ref: cwd for ref, cwd in read.items() if ref.kind in agents} == {
        one.ref: one.cwd for one in watch.known if one.ref.kind in agents
    }


class Folders:
    """Keeps what is known of sessions before they are read."""

    known: Sequence[Summary] = ()

    def begin(self, total: int, known: Sequence[Summary]) -> None:
        self.known = [one for one in known if one.unread]

    def advance(self, size: int) -> None:
        """Nothing to draw."""

    def goes_on(self) -> bool:
        return False


@pytest.mark.parametrize("before", [0, 1, 40])
def test_the_folder_is_found_behind_records_without_one(tmp_path: Path, before: int) -> None:
    """As titles and snapshots of files, and a damaged line."""
    path = tmp_path / "projects" / "-home-u-app" / "3f0c81d2-0000-4000-8000-000000000001.jsonl"
    said = {"type": "user", "uuid": "u1", "cwd": "/home/u/app", "message": {"role": "user", "content": "Hi"}}
    write_lines(path, *[{"type": "summary", "summary": "x" * 1000}] * before, b"half\n", said)
    layout = ClaudeCodeLayout(tmp_path)
    (ref,) = layout.discover()
    assert [fact.value for fact in layout.opening(ref) if fact.name == "cwd"] == ["/home/u/app"]


def test_a_watch_changes_nothing_else(home: Path, cache: Path, listed: Listed) -> None:
    for number in range(2):
        make(home, f"s{number}")
    watch = Stopped(goes_on=False)
    found = list(Workspace(home, fs=LongAgoFs(), cache=str(cache)).summaries(watch))
    assert {one.ref.session_id: one for one in found} == listed() == read_anew(home)
    assert watch.done == watch.total
    fs, again = LongAgoFs(), Stopped(goes_on=False)
    assert list(Workspace(home, fs=fs, cache=str(cache)).summaries(again)) == found
    assert (fs.opened["transcript.jsonl"], again.total) == (0, 0)


# The place of the cache


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME")
    return monkeypatch


@pytest.mark.parametrize(
    ("variable", "place"),
    [
        (None, "{home}/.cache/sessionary"),
        ("", "{home}/.cache/sessionary"),
        ("relative", "{home}/.cache/sessionary"),
        ("/var/cache/me", "/var/cache/me/sessionary"),
    ],
)
def test_the_cache_folder(
    environment: pytest.MonkeyPatch, tmp_path: Path, variable: str | None, place: str
) -> None:
    if variable is not None:
        environment.setenv("XDG_CACHE_HOME", variable)
    assert cache_folder() == place.format(home=tmp_path)


def test_without_a_place_nothing_is_remembered(home: Path) -> None:
    make(home, "one")
    catalog, layout = Catalog(None), AmplifierLayout(home, LongAgoFs())
    for _ in range(2):
        assert len(list(catalog.summaries(layout))) == 1
    assert catalog.path is None


def test_each_home_and_each_name_of_it_has_a_catalogue_of_its_own(
    home: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "one")
    (tmp_path / "link").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    for name in (home, tmp_path / "link", Path("home"), tmp_path / "nothing"):
        for _ in range(2):
            fs = LongAgoFs()
            found = list(Workspace(name, fs=fs, cache=str(cache)).summaries())
            assert found == list(summaries(AmplifierLayout(name.absolute(), LongAgoFs())))
        assert fs.opened["transcript.jsonl"] == 0
    assert [path.name for path in cache.iterdir()] == [FILE]


def test_the_default_is_the_cache_of_the_person(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(home, "one")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    list(Workspace(home, fs=LongAgoFs()).summaries())
    assert [path.suffix for path in (tmp_path / "xdg" / "sessionary").iterdir()] == [".db"]


def test_on_a_real_disk(home: Path, cache: Path) -> None:
    """Without a double: what was written a moment ago is read again, and the answer is right all the time."""
    make(home, "one")
    for number in range(2, 5):
        found = list(Workspace(home, fs=OsFs(), cache=str(cache)).summaries())
        assert [summary.messages for summary in found] == [number - 1]
        with (home / "projects/-p/sessions/one/transcript.jsonl").open("ab") as file:
            file.write(line("more"))


def test_a_summary_is_there_before_the_next_session_is_looked_at(
    home: Path, cache: Path, listed: Listed
) -> None:
    """On a slow disk the user sees how far it is, and not only at the end that there was something to wait for."""
    for number in range(24):
        make(home, f"s{number:02}")
    listed()
    asked: list[str] = []

    class Asked(LongAgoFs):
        def stat(self, path: str) -> os.stat_result:
            asked.append(path)
            return super().stat(path)

    summaries = Workspace(home, fs=Asked(), cache=str(cache)).summaries()
    first = next(summaries)
    assert {path for path in asked if "/sessions/" in path and first.ref.session_id not in path} == set()
    assert len([first, *summaries]) == 24


# Reading it with SQL


def test_a_query(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one", name="A title")
    make(home, "two", "a", "b")
    with (home / "projects/-p/sessions/two/transcript.jsonl").open("ab") as file:
        file.write(b"{torn")
    listed()
    catalog = Catalog(str(cache))
    assert query(catalog, "SELECT id, messages, updated FROM sessions ORDER BY id") == (
        ["id", "messages", "updated"],
        [("one", 1, "2026-03-01T09:00:00+00:00"), ("two", 2, "2026-03-01T09:00:00+00:00")],
    )
    assert ("torn_tail",) in query(catalog, "SELECT code FROM problems").rows
    counted = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i) FROM n"
    )
    assert query(catalog, counted).rows == [(6,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM sessions",
        "INSERT INTO sessions (kind) VALUES ('x')",
        "UPDATE sessions SET title = 'x'",
        "DROP TABLE sessions",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "ATTACH DATABASE '{other}' AS other",
        "VACUUM INTO '{other}'",
        "VACUUM",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM sessions",
        "SELECT nothing FROM sessions",
        "SELEC",
        "SELECT '\ud83d'",
    ],
)
def test_a_query_only_reads(statement: str, home: Path, cache: Path, tmp_path: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    other = tmp_path / "other.db"
    before = only_file(cache).read_bytes()
    with pytest.raises(Invalid, match="cannot be run"):
        query(Catalog(str(cache)), statement.format(other=other))
    assert not other.exists()
    assert only_file(cache).read_bytes() == before


def test_a_log_beside_a_small_conversation_does_not_count(tmp_path: Path, cache: Path) -> None:
    layout = AmplifierLayout(tmp_path)
    folder = tmp_path / "projects" / "-w" / "sessions" / "s"
    write_lines(folder / "transcript.jsonl", {"role": "user", "content": "Hi"})
    size = (folder / "transcript.jsonl").stat().st_size
    write_lines(folder / "events.jsonl", *[{"event": "x", "data": {}}] * 100)
    (ref,) = layout.discover()
    assert Catalog(str(cache)).summary(layout, ref, at_most=size - 1).unread, "its conversation is larger"
    found = Catalog(str(cache)).summary(layout, ref, at_most=size)
    assert (found.unread, found.messages, found.size > 10 * size) == (False, 1, True)


def test_a_long_query_is_interrupted(cache: Path) -> None:
    count = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 300000000) SELECT count(*) FROM n"
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        query(Catalog(str(cache)), count)
    timer.join()


def test_a_query_without_a_catalogue(cache: Path) -> None:
    assert query(Catalog(str(cache)), "SELECT count(*) FROM sessions").rows == [(0,)]
    (cache / FILE).unlink()
    cache.rmdir()
    cache.touch()
    for place in (None, str(cache)):
        with pytest.raises(StorageFailed, match="catalogue"):
            query(Catalog(place), "SELECT 1")


def test_a_session_of_this_moment_is_in_the_catalogue_and_read_again(home: Path, cache: Path) -> None:
    make(home, "one")
    for _ in range(2):
        fs = OsFs()
        assert len(list(Workspace(home, fs=fs, cache=str(cache)).summaries())) == 1
        assert query(Catalog(str(cache)), "SELECT id FROM sessions").rows == [("one",)]
    assert not remembered(home, cache)
