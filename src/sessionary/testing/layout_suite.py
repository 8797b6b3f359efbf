"""The test suite for every `Layout`.

A subclass creates the layout, and stores sessions **without** it, so that a mistake in reading cannot be
hidden by the same mistake in writing::

    class TestMyLayout(LayoutTests):
        def layout(self, home, fs): ...
        def put_session(self, home, session_id, records, parent=None): ...
        def conversation(self, home, session_id): ...

A layout whose conversation is not one file of the records also overrides the methods after these three.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import SkipTest

from sessionary.disk.fs import FILE_MODE, OS_FS, Fs
from sessionary.errors import NotFound, StorageFailed
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Cursor, Item, Message, Reset, SessionRef, Severity
from sessionary.testing.cursors import Reader
from sessionary.testing.wrapper import WrappedFs
from sessionary.transcript.typed import numbered

WRITES = (
    "write",
    "truncate",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "utime",
    "chmod",
    "chown",
    "clone",
)


STATS = ("stat", "lstat", "fstat")
HOUR = 3_600_000_000_000  # nanoseconds


class CountingFs(WrappedFs):
    """Counts opened files, bytes read, and each call; a file that is missing is not opened."""

    def __init__(self, inner: Fs = OS_FS) -> None:
        super().__init__(inner)
        self.opened: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.bytes_read = 0

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        self.calls[name] += 1
        result = super().call(name, *arguments, **options)
        if name == "pread":
            self.bytes_read += len(result)
        return result

    def open(self, path: str, flags: int, mode: int = FILE_MODE) -> int:
        fd = super().open(path, flags, mode)
        self.opened[os.path.basename(path)] += 1
        return fd


class LongAgoFs(CountingFs):
    """Shows every file as last changed an hour ago, so that it counts as settled."""

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        found = super().call(name, *arguments, **options)
        return (
            with_times(found, found.st_mtime_ns - HOUR, found.st_ctime_ns - HOUR) if name in STATS else found
        )


def with_times(found: os.stat_result, mtime_ns: int, ctime_ns: int) -> os.stat_result:
    """The same stat with other mtime and ctime."""
    seconds = {"st_atime": found.st_atime, "st_mtime": mtime_ns / 1e9, "st_ctime": ctime_ns / 1e9}
    exact = {"st_atime_ns": found.st_atime_ns, "st_mtime_ns": mtime_ns, "st_ctime_ns": ctime_ns}
    return os.stat_result(tuple(found), {**seconds, **exact})


def record(number: int, role: str = "user") -> dict[str, Any]:
    """One message with a key unknown to all layouts."""
    return {
        "role": role,
        "content": f"message {number}",
        "timestamp": f"2025-01-31T12:00:{number:02}Z",
        "x-odd": number,
    }


def _needs(capability: Capability, layout: Layout) -> None:
    """Skip a test of a capability that the layout does not have; pytest knows the exception."""
    if capability not in layout.capabilities:
        raise SkipTest(f"the layout {layout.name} does not have the capability {capability.name}")


def _texts(items: Iterable[Item]) -> list[str]:
    return [one.text for one in items if isinstance(one, Message)]


class LayoutTests(ABC):
    """The rules of `layouts.base.Layout` as tests."""

    @abstractmethod
    def layout(self, home: Path, fs: Fs) -> Layout:
        """The layout under test over the store in `home`."""

    @abstractmethod
    def put_session(
        self, home: Path, session_id: str, records: list[dict[str, Any]], parent: str | None = None
    ) -> None:
        """Create a healthy session of these records, without the layout."""

    @abstractmethod
    def conversation(self, home: Path, session_id: str) -> Path:
        """The file of a session with its records."""

    def folder(self, home: Path, session_id: str) -> Path:
        """The folder of a session."""
        return self.conversation(home, session_id).parent

    def add(self, home: Path, session_id: str, more: dict[str, Any]) -> None:
        """Append a record to a session, without the layout."""
        with open(self.conversation(home, session_id), "ab") as file:
            file.write(json.dumps(more).encode() + b"\n")

    def part_names(self, home: Path, session_id: str) -> set[str]:
        """The names of the files that make up a session."""
        names = [path.name for path in self.folder(home, session_id).iterdir()]
        return {name for name in names if not name.startswith(".")}

    # -- helpers

    def refs(self, home: Path, fs: Fs = OS_FS) -> dict[str, SessionRef]:
        """The discovered sessions, by id."""
        found = list(self.layout(home, fs).discover())
        by_id = {ref.session_id: ref for ref in found}
        assert len(by_id) == len(found), "a session was discovered twice"
        return by_id

    # -- rules

    def test_a_store_that_is_not_there_is_empty(self, tmp_path: Path) -> None:
        layout = self.layout(tmp_path / "nothing", OS_FS)
        assert list(layout.discover()) == []
        assert list(summaries(layout)) == []
        assert not (tmp_path / "nothing").exists()

    def test_discover_finds_sessions_and_no_strangers(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            self.put_session(tmp_path, name, [record(1)])
        beside = self.folder(tmp_path, "one").parent
        (beside / ".hidden").mkdir()
        (beside / ".hidden" / "file").touch()
        (beside / "a file").touch()
        (beside / "only dots").mkdir()
        (beside / "only dots" / ".lock").touch()
        (beside / "dangling").symlink_to(beside / "nowhere")
        assert set(self.refs(tmp_path)) == {"one", "two"}

    def test_discover_reads_names_only(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        fs = CountingFs()
        self.refs(tmp_path, fs)
        assert not fs.opened

    def test_a_session_is_found_by_its_folder(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        ref = self.refs(tmp_path)["one"]
        assert self.layout(tmp_path, OS_FS).ref_for_path(ref.path) == ref
        assert self.layout(tmp_path, OS_FS).ref_for_path(tmp_path) is None

    def test_messages_come_in_the_order_of_the_store(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(n) for n in range(5)])
        read = self.layout(tmp_path, OS_FS).read(self.refs(tmp_path)["one"])
        assert _texts(read) == [f"message {n}" for n in range(5)]

    def test_messages_say_where_their_records_lie(self, tmp_path: Path) -> None:
        layout = self.layout(tmp_path, OS_FS)
        _needs(Capability.APPENDS, layout)
        self.put_session(tmp_path, "one", [record(n) for n in range(5)])
        data = self.conversation(tmp_path, "one").read_bytes()
        messages = [one for one in layout.read(self.refs(tmp_path)["one"]) if isinstance(one, Message)]
        assert len(messages) == 5
        for number, message in enumerate(messages):
            assert message.place.line == number + 1
            assert json.loads(data[message.place.byte :].split(b"\n")[0])["x-odd"] == number

    def test_a_stored_record_is_returned_as_it_is(self, tmp_path: Path) -> None:
        layout = self.layout(tmp_path, OS_FS)
        self.put_session(tmp_path, "one", [record(n) for n in range(3)])
        ref = self.refs(tmp_path)["one"]
        for message in (one for one in layout.read(ref) if isinstance(one, Message)):
            assert message.text.splitlines()[-1].encode() in layout.raw(ref, message.place)

    def test_reading_continues_from_the_cursor(self, tmp_path: Path) -> None:
        layout = self.layout(tmp_path, OS_FS)
        self.put_session(tmp_path, "one", [record(n) for n in range(6)])
        ref = self.refs(tmp_path)["one"]
        *_, cursor = layout.read(ref)
        if not isinstance(cursor, Cursor):
            raise SkipTest("the layout gives no cursor")
        assert _texts(layout.read(ref, cursor)) == []
        self.add(tmp_path, "one", record(7))
        added = list(layout.read(ref, cursor))
        assert _texts(added) == ["message 7"]
        assert not any(isinstance(one, Reset) for one in added)
        path = self.conversation(tmp_path, "one")
        path.write_bytes(path.read_bytes().replace(b"message", b"MESSAGE"))
        again = list(layout.read(ref, cursor))
        assert isinstance(again[0], Reset)
        assert len(_texts(again)) == 7

    def test_reading_in_pieces_is_reading_as_a_whole(self, tmp_path: Path) -> None:
        """Records are added, bytes change, the file is replaced or cut off: a reader that continues sees the same."""
        for seed in range(8):
            choose, home = Random(seed), tmp_path / str(seed)
            self.put_session(home, "one", [record(1)])
            path = self.conversation(home, "one")
            reader = Reader(self.layout(home, OS_FS), self.refs(home)["one"])
            for number in range(2, 16):
                reader.go_on()
                data = path.read_bytes()
                at = choose.randrange(len(data))
                change = choose.choice(["add", "add", "add", "add", "flip", "cut", "replace"])
                if change == "add":
                    self.add(home, "one", record(number, choose.choice(["user", "assistant"])))
                elif change == "flip":
                    path.write_bytes(data[:at] + bytes([data[at] ^ choose.randint(1, 255)]) + data[at + 1 :])
                elif change == "cut":
                    os.truncate(path, at)
                    break  # what is added to half a record is another record
                else:
                    path.with_suffix(".new").write_bytes(data)
                    os.replace(path.with_suffix(".new"), path)
            reader.go_on()

    def test_a_torn_last_record_is_reported_and_never_read(self, tmp_path: Path) -> None:
        layout = self.layout(tmp_path, OS_FS)
        _needs(Capability.APPENDS, layout)
        self.put_session(tmp_path, "one", [record(1)])
        ref = self.refs(tmp_path)["one"]
        with open(self.conversation(tmp_path, "one"), "ab") as file:
            file.write(b'{"role": "user", "content": "ha')
        assert _texts(layout.read(ref)) == ["message 1"]
        assert "torn_tail" in {problem.code for problem in layout.check(ref)}

    def test_summary_and_summaries_agree(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1), record(2, "assistant")])
        self.put_session(tmp_path, "two", [record(3)])
        layout = self.layout(tmp_path, OS_FS)
        listed = {summary.ref.session_id: summary for summary in summaries(layout)}
        for name, ref in self.refs(tmp_path).items():
            assert summary_of(layout, ref) == listed[name]
        assert (listed["one"].messages, listed["one"].turns, listed["one"].health) == (2, 1, "ok")
        assert listed["one"].size >= self.conversation(tmp_path, "one").stat().st_size

    def test_a_summary_looks_at_the_conversation_once(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        fs = CountingFs()
        list(summaries(self.layout(tmp_path, fs)))
        assert fs.opened[self.conversation(tmp_path, "one").name] == 1
        assert fs.opened["events.jsonl"] == 0

    def test_a_fingerprint_is_that_of_the_state(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            self.put_session(tmp_path, name, [record(1), record(2, "assistant")])
        fs = LongAgoFs()
        layout = self.layout(tmp_path, fs)
        before = {name: layout.fingerprint(ref) for name, ref in self.refs(tmp_path).items()}
        fs.opened.clear()
        assert {name: layout.fingerprint(ref) for name, ref in self.refs(tmp_path).items()} == before
        assert not fs.opened[self.conversation(tmp_path, "one").name], "names and stats only"
        self.add(tmp_path, "one", record(3))
        after = {name: layout.fingerprint(ref) for name, ref in self.refs(tmp_path).items()}
        assert after["one"] != before["one"]
        assert after["two"] == before["two"] != b""

    def test_what_was_changed_a_moment_ago_has_no_fingerprint(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        layout = self.layout(tmp_path, OS_FS)
        found = [layout.fingerprint(ref) for ref in layout.discover()]
        assert found == [b""], "within one tick of the clock a further change would leave no trace"

    def test_a_parent_is_reported(self, tmp_path: Path) -> None:
        layout = self.layout(tmp_path, OS_FS)
        _needs(Capability.NESTS, layout)
        self.put_session(tmp_path, "one", [record(1)])
        self.put_session(tmp_path, "two", [record(2)], parent="one")
        refs = self.refs(tmp_path)
        assert summary_of(layout, refs["two"]).parent == "one"
        assert summary_of(layout, refs["one"]).parent is None

    def test_two_reads_give_the_same_messages_as_are_counted(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1), record(2, "assistant"), record(3)])
        ref, layout = self.refs(tmp_path)["one"], self.layout(tmp_path, OS_FS)
        first = list(layout.read(ref))
        assert list(layout.read(ref)) == first
        messages = [one for one in first if isinstance(one, Message)]
        summary = summary_of(layout, ref)
        assert len(messages) == summary.messages >= 3
        assert sum(one.turn for one in list(numbered(first))[-1:]) == summary.turns
        assert {one.place.path for one in messages} <= {
            ref.locator,
            *(part.path for part in layout.parts(ref)),
        }

    def test_any_damage_ends_no_reader_and_hides_no_other_session(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            self.put_session(tmp_path, name, [record(1), record(2, "assistant"), record(3)])
        refs, layout = self.refs(tmp_path), self.layout(tmp_path, OS_FS)
        healthy = list(layout.read(refs["one"]))
        chance = Random(7)
        for part in list(layout.parts(refs["two"])):
            path = Path(part.path)
            whole = path.read_bytes()
            for _ in range(40):
                at = chance.randrange(len(whole) + 1)
                path.write_bytes(
                    whole[:at] + chance.randbytes(chance.randrange(4)) + whole[at + chance.randrange(4) :]
                )
                listed = {one.ref.session_id: one for one in summaries(layout)}
                assert listed["one"].health in ("ok", "note")
                list(layout.check(refs["two"]))
                with suppress(StorageFailed):
                    list(layout.read(refs["two"]))
                assert list(layout.read(refs["one"])) == healthy
            path.write_bytes(whole)

    def test_one_broken_session_hides_no_other(self, tmp_path: Path) -> None:
        for name in ("one", "two", "three"):
            self.put_session(tmp_path, name, [record(1)])
        junk = b"\xff\x00" * 100 + b"[" * 100_000
        folder = self.folder(tmp_path, "two")
        for path in filter(Path.is_file, list(folder.rglob("*"))):
            path.write_bytes(junk)
        listed = {summary.ref.session_id: summary for summary in summaries(self.layout(tmp_path, OS_FS))}
        assert set(listed) == {"one", "two", "three"}
        assert listed["two"].health not in ("ok", "note")
        assert listed["two"].updated is not None, "the times of the files count, if nothing states one"
        assert listed["two"].size >= len(junk)
        assert listed["one"].health == listed["three"].health == "ok"

    def test_a_pipe_in_place_of_any_file_stops_no_reader(self, tmp_path: Path) -> None:
        if not hasattr(os, "mkfifo"):
            raise SkipTest("this platform has no named pipes")
        for name in ("one", "two"):
            self.put_session(tmp_path, name, [record(1)])
        ref, layout = self.refs(tmp_path)["two"], self.layout(tmp_path, OS_FS)
        parts = list(layout.parts(ref))
        assert parts
        for part in parts:
            kept = Path(part.path).read_bytes()
            os.unlink(part.path)
            os.mkfifo(part.path)
            listed = {summary.ref.session_id: summary for summary in summaries(layout)}
            assert listed["one"].health == "ok"
            problems = [*layout.check(ref), *(listed["two"].problems if "two" in listed else ())]
            assert "two" not in listed or listed["two"].updated is not None
            assert any(problem.path == part.path for problem in problems), f"no problem reports {part.name}"
            with suppress(StorageFailed):
                list(layout.read(ref))
            os.unlink(part.path)
            Path(part.path).write_bytes(kept)

    def test_a_healthy_session_has_nothing_above_a_note(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1), record(2, "assistant")])
        layout = self.layout(tmp_path, OS_FS)
        assert all(problem.severity == Severity.note for problem in layout.check(self.refs(tmp_path)["one"]))

    def test_what_is_gone_is_not_found(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        ref = self.refs(tmp_path)["one"]
        folder = self.folder(tmp_path, "one")
        folder.rename(tmp_path / ".elsewhere")
        layout = self.layout(tmp_path, OS_FS)
        for read in (lambda: summary_of(layout, ref), lambda: list(layout.read(ref))):
            try:
                read()
            except NotFound:
                continue
            raise AssertionError("a session that is gone was read")

    def test_reading_changes_nothing(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        with open(self.conversation(tmp_path, "one"), "ab") as file:
            file.write(b"\0\0\0{torn")
        fs = CountingFs()
        layout = self.layout(tmp_path, fs)
        for ref in self.refs(tmp_path, fs).values():
            summary_of(layout, ref)
            list(layout.read(ref))
            list(layout.parts(ref))
            list(layout.check(ref))
        list(summaries(layout))
        assert not {name: fs.calls[name] for name in WRITES if fs.calls[name]}

    def test_parts_are_the_files_without_locks_and_temp_files(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(1)])
        folder = self.folder(tmp_path, "one")
        (folder / ".lock").touch()
        (folder / ".transcript.jsonl.0123456789abcdef.tmp").touch()
        parts = {part.name: part for part in self.layout(tmp_path, OS_FS).parts(self.refs(tmp_path)["one"])}
        assert set(parts) == self.part_names(tmp_path, "one")
        assert all(part.size == os.path.getsize(part.path) for part in parts.values())
