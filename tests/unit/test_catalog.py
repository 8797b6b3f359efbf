"""What a list remembers: never wrong, never in the way, and nothing is read that has not changed."""

import errno
import json
import os
import random
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary import catalog
from sessionary.catalog import Catalog, cache_folder
from sessionary.disk import helper
from sessionary.disk.fs import Fs, OsFs
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import SETTLED, Known
from sessionary.model import Summary
from sessionary.testing.layout_suite import STATS, LongAgoFs, with_times
from sessionary.testing.wrapper import WrappedFs
from sessionary.workspace import Workspace

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
        found = Workspace(home, fs or LongAgoFs(), cache=str(cache)).summaries()
        return {summary.ref.session_id: summary for summary in found}

    return listed


Listed = Callable[..., dict[str, Summary]]


def read_anew(home: Path, fs: Fs | None = None) -> dict[str, Summary]:
    return {
        summary.ref.session_id: summary for summary in AmplifierLayout(home, fs or LongAgoFs()).summaries()
    }


def only_file(cache: Path) -> Path:
    (path,) = cache.iterdir()
    return path


# What it saves


def test_what_has_not_changed_is_not_opened(home: Path, listed: Listed) -> None:
    make(home, "one")
    make(home, "two", "a", "b")
    first = listed()
    fs = LongAgoFs()
    assert listed(fs) == first == read_anew(home)
    assert [name for name in fs.opened if "catalogue" not in name] == ["sessions"]


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


def test_a_list_of_what_has_not_changed_writes_nothing(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    before = only_file(cache).stat()
    fs = LongAgoFs()
    listed(fs)
    after = only_file(cache).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert fs.calls["write"] == fs.calls["rename"] == 0


def test_what_is_gone_is_dropped(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    make(home, "two")
    listed()
    large = only_file(cache).stat().st_size
    rmtree(home / "projects/-p/sessions/two")
    assert set(listed()) == {"one"}
    assert only_file(cache).stat().st_size < large * 0.7


# It is never wrong


def lie_about(home: Path, cache: Path, session_id: str) -> None:
    """Change what is remembered of a session, so that whoever believes it can be told."""
    with Catalog(str(home), "amplifier", str(cache)).entries() as known:
        (folder,) = [folder for folder in known if folder.endswith(f"/{session_id}")]
        entry = known[folder]
        truth = entry.summary
        assert truth is not None
        changed = msgspec.structs.replace(truth, title="a lie", health="lost_data")
        lie = Known.of(changed, entry.names, entry.state)
        assert lie is not None
        known[folder] = lie


def test_a_list_believes_what_is_remembered_and_a_check_does_not(
    home: Path, cache: Path, listed: Listed
) -> None:
    make(home, "one")
    listed()
    lie_about(home, cache, "one")
    assert listed()["one"].title == "a lie", "or this test proves nothing"
    workspace = Workspace(home, LongAgoFs(), cache=str(cache))
    ref = workspace.find("one")
    assert workspace.layout_of(ref).summary(ref).title == "hello"
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
    """The same content and times in another file, put there by somebody who then resets the folder's time."""
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
    known: dict[str, Known] = {}
    list(AmplifierLayout(home, LongAgoFs()).summaries(known))
    assert known == {}


def test_a_folder_with_folders_is_not_remembered(home: Path) -> None:
    (make(home, "one") / "inner").mkdir()
    known: dict[str, Known] = {}
    list(AmplifierLayout(home, LongAgoFs()).summaries(known))
    assert known == {}


def test_what_could_not_be_read_is_not_remembered(home: Path) -> None:
    make(home, "one")

    class Refusing(LongAgoFs):
        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            if path.endswith("transcript.jsonl"):
                raise PermissionError(errno.EACCES, "no", path)
            return super().open(path, flags, mode)

    known: dict[str, Known] = {}
    (summary,) = AmplifierLayout(home, Refusing()).summaries(known)
    assert summary.health == "stops_resume"
    assert known == {}


@pytest.mark.parametrize(("age", "kept"), [(SETTLED - 0.5, False), (SETTLED + 0.5, True)])
def test_only_what_was_left_alone_for_a_while_is_remembered(home: Path, age: float, kept: bool) -> None:
    folder = make(home, "one")
    newest = max(path.stat().st_ctime for path in (folder, *folder.iterdir()))
    known: dict[str, Known] = {}
    list(AmplifierLayout(home, now=lambda: newest + age).summaries(known))
    assert bool(known) is kept


class SlowClock(WrappedFs):
    """A file system whose clock ticks every two seconds, as the slowest do; the test says what changed when."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_800_000_000 * SECOND
        self.times: dict[int, tuple[int, int]] = {}

    def changed(self, *paths: Path, keep_mtime: bool = False) -> None:
        """Note that this has just been changed; with `keep_mtime` by somebody who put the old time back."""
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
        self.catalog = Catalog(str(self.home), "amplifier", str(root / "cache"))
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
        """The folder's time stays: whoever appends need not touch it."""
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
        with self.catalog.entries() as known:
            remembered = list(self.layout.summaries(known))
        return sorted(remembered, key=_id), sorted(self.layout.summaries(), key=_id)


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


def test_a_damaged_catalogue_is_not_believed(home: Path, cache: Path, listed: Listed) -> None:
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
        only_file(cache).write_bytes(data)
        assert listed() == expected
        assert only_file(cache).read_bytes() == whole, "it was written anew"


def test_a_catalogue_of_another_version_is_not_used(
    home: Path, cache: Path, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "one")
    listed()
    lie_about(home, cache, "one")
    monkeypatch.setattr(catalog, "_HEADER", catalog._HEADER.replace(b"catalogue 3", b"catalogue 0"))
    assert listed()["one"].title == "hello"


def test_bytes_of_the_right_sum_and_the_wrong_shape_are_not_used(
    home: Path, cache: Path, listed: Listed
) -> None:
    make(home, "one")
    make(home, "two")
    expected = listed()
    whole = only_file(cache).read_bytes()
    first, second = msgspec.msgpack.decode(whole[catalog._BODY :])
    for strange in (
        {"a": 1},
        [*second[:3], {"a": 1}],
        [*second[:3], [*second[3][:4], "many", *second[3][5:]]],
    ):
        body = msgspec.msgpack.encode([first, strange])
        only_file(cache).write_bytes(catalog._HEADER + catalog._checksum(body) + body)
        assert listed() == expected
        assert only_file(cache).read_bytes() == whole, "it was written anew"


def test_a_cache_that_cannot_be_written_is_done_without(home: Path, tmp_path: Path) -> None:
    make(home, "one")
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        workspace = Workspace(home, LongAgoFs(), cache=str(place))
        assert [summary.title for summary in workspace.summaries()] == ["hello"]


@pytest.mark.parametrize("failing", ["write", "rename", "mkdir", "open"])
def test_a_disk_that_refuses_is_done_without(home: Path, cache: Path, listed: Listed, failing: str) -> None:
    make(home, "one")

    class Refusing(LongAgoFs):
        def call(self, name: str, *arguments: Any, **options: Any) -> Any:
            if name == failing and (name != "open" or "catalogue" in arguments[0]):
                raise OSError(errno.ENOSPC, "full")
            return super().call(name, *arguments, **options)

    assert set(listed(Refusing())) == {"one"}
    assert not cache.exists() or list(cache.iterdir()) == [], "and nothing is left behind"


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
    before = only_file(cache).stat().st_ino
    fs = LongAgoFs()
    assert listed(fs) == first
    assert fs.opened["transcript.jsonl"] == 3
    assert only_file(cache).stat().st_ino == before


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
        with pytest.raises(OSError, match="look into"):
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
            for path in cache.glob("*.catalogue"):
                path.unlink(missing_ok=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert listed() == expected
    assert [path.suffix for path in cache.iterdir()] == [".catalogue"]


def test_the_last_of_two_writers_stands(home: Path, cache: Path, listed: Listed) -> None:
    make(home, "one")
    listed()
    make(home, "two")
    first, second = (Catalog(str(home), "amplifier", str(cache)) for _ in range(2))
    layout = AmplifierLayout(home, LongAgoFs())
    with first.entries() as known, second.entries() as others:
        list(layout.summaries(known))
        others.clear()
    assert set(listed()) == {"one", "two"}


# Where it lies


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
    with Catalog(str(home), "amplifier", None, LongAgoFs()).entries() as known:
        assert known == {}
        list(AmplifierLayout(home, LongAgoFs()).summaries(known))
    with Catalog(str(home), "amplifier", None, LongAgoFs()).entries() as known:
        assert known == {}


def test_each_home_and_each_name_of_it_has_a_catalogue_of_its_own(
    home: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "one")
    (tmp_path / "link").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    for name in (home, tmp_path / "link", Path("home"), tmp_path / "nothing"):
        for _ in range(2):
            fs = LongAgoFs()
            found = list(Workspace(name, fs, cache=str(cache)).summaries())
            assert found == list(AmplifierLayout(name.absolute(), LongAgoFs()).summaries())
        assert fs.opened["transcript.jsonl"] == 0
    assert len(list(cache.iterdir())) == 2, (
        "a relative path is the same home; one without sessions needs none"
    )


def test_the_default_is_the_cache_of_the_person(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(home, "one")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    list(Workspace(home, LongAgoFs()).summaries())
    assert [path.suffix for path in (tmp_path / "xdg" / "sessionary").iterdir()] == [".catalogue"]


def test_on_a_real_disk(home: Path, cache: Path) -> None:
    """Without a double: what was written a moment ago is read again, and the answer is right all the time."""
    make(home, "one")
    for number in range(2, 5):
        found = list(Workspace(home, OsFs(), cache=str(cache)).summaries())
        assert [summary.messages for summary in found] == [number - 1]
        with (home / "projects/-p/sessions/one/transcript.jsonl").open("ab") as file:
            file.write(line("more"))


def test_the_sessions_of_a_project_lie_side_by_side(home: Path, listed: Listed) -> None:
    """Or the folder of each would be opened for every one of them."""
    for number in range(3):
        for project in ("-p", "-q"):
            make(home, f"s{number}", project=project)
        listed()
    fs = LongAgoFs()
    listed(fs)
    assert fs.opened["sessions"] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
def test_two_processes_that_compare_believe_no_more_than_one(
    home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(helper, "WORTH", 20)
    monkeypatch.setattr(helper, "PIECE", 4)
    folders = [make(home, f"s{number:02}") for number in range(24)]
    everything = {
        one.ref.session_id: one for one in Workspace(home, LongAgoFs(), cache=str(cache)).summaries()
    }
    here, asked, done = os.getpid(), list[str](), home / "the other process is at the first piece"

    class Asked(LongAgoFs):
        def stat(self, path: str, *, dir_fd: int | None = None) -> os.stat_result:
            if os.getpid() != here and path == "s03":
                done.touch()
            asked.append(path)
            return super().stat(path, dir_fd=dir_fd)

    for number in (0, 2, 14, 23):  # in both parts
        with (folders[number] / "transcript.jsonl").open("ab") as file:
            file.write(line("more"))
    rmtree(folders[1])
    make(home, "new")
    (folders[0].parent / "no session").mkdir()
    likely: list[Summary] = []

    def meanwhile(summaries: list[Summary]) -> None:
        likely.extend(summaries)
        while not done.exists():
            time.sleep(0.001)

    now = {
        one.ref.session_id: one
        for one in Workspace(home, Asked(), cache=str(cache), meanwhile=meanwhile).summaries()
    }
    assert now == read_anew(home)
    del everything["s01"]
    everything["new"] = now["new"]
    assert {one.ref.session_id: one for one in likely} == everything
    assert sum(now[name] != everything[name] for name in now) == 4
    assert [path for path in asked if path[0] == "s" and "/" not in path] == ["s00", "s01", "s02", "s03"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
@pytest.mark.parametrize("helped", [True, False])
def test_a_summary_is_there_before_the_next_session_is_looked_at(
    home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, *, helped: bool
) -> None:
    """On a slow disk a person sees how far it is, and not only at the end that there was something to wait for."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(helper, "WORTH", 20)
    for number in range(24):
        make(home, f"s{number:02}")
    list(Workspace(home, LongAgoFs(), cache=str(cache)).summaries())
    asked: list[str] = []

    class Asked(LongAgoFs):
        def stat(self, path: str, *, dir_fd: int | None = None) -> os.stat_result:
            asked.append(path)
            return super().stat(path, dir_fd=dir_fd)

    likely: list[Summary] = []
    workspace = Workspace(home, Asked(), cache=str(cache), meanwhile=likely.extend if helped else None)
    summaries = workspace.summaries()
    asked.clear()
    first = next(summaries)
    name = first.ref.session_id
    looks = [
        path for path in asked if path.startswith("s")
    ]  # from the folder of sessions on, which is held open
    assert sorted(looks) == [name, f"{name}/metadata.json", f"{name}/transcript.jsonl"]
    assert len(likely) == (24 if helped else 0)
    assert len([first, *summaries]) == 24
