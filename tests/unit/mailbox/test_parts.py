"""The parts of a mailbox: following a file, listing folders, finding stray messages."""

import errno
import json
import os
from pathlib import Path

import pytest

from sessionary import Mailbox
from sessionary.disk.fs import OS_FS
from sessionary.errors import StorageFailed
from sessionary.layouts.maestro.paths import top_of
from sessionary.mailbox.folders import Folders, Place, Root, roots_of
from sessionary.mailbox.tail import Follower
from tests.in_place import change_in_place
from tests.messages import echo, log, put
from tests.support.faults import Fault, FaultFs

# -- following


def taken(follower: Follower) -> list[tuple[int, int, bytes]]:
    return [tuple(line) for line in follower.lines()] if follower.changed() else []  # type: ignore[misc]


def test_lines_come_once_with_number_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "x"
    follower = Follower(str(path))
    assert taken(follower) == []
    path.write_bytes(b"{}\n\n[1]\n")
    assert taken(follower) == [(1, 0, b"{}"), (3, 4, b"[1]")]
    assert taken(follower) == []
    with open(path, "ab") as file:
        file.write(b"half")
    assert taken(follower) == []
    with open(path, "ab") as file:
        file.write(b" and half\n")
    assert taken(follower) == [(4, 8, b"half and half")]


def test_a_whole_record_without_its_newline_is_reported_on_request(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"a": 1}')
    assert taken(Follower(str(path))) == []
    follower = Follower(str(path), unended=True)
    assert taken(follower) == [(1, 0, b'{"a": 1}')]
    path.write_bytes(b'{"a": 1}\n')
    assert taken(follower) == [(1, 0, b'{"a": 1}')]
    path.write_bytes(b'{"a": 1}\n{"b": {}')
    assert taken(follower) == []


@pytest.mark.parametrize("fault", ["open", "interrupt"])
def test_a_look_that_was_cut_off_begins_anew(tmp_path: Path, fault: str) -> None:
    """Nothing that was seen and not taken is forgotten, or a consumer would apply it again."""
    path = tmp_path / "x"
    path.write_bytes(b"1\n2\n")
    fs = FaultFs(OS_FS, Fault("open", 1, errno.EMFILE)) if fault == "open" else OS_FS
    follower = Follower(str(path), fs)
    assert follower.changed()
    if fault == "open":
        with pytest.raises(StorageFailed, match="Too many open files"):
            list(follower.lines())
    else:
        next(follower.lines())  # and the caller is interrupted before it has looked at it
    assert (taken(follower), follower.restarts) == ([(1, 0, b"1"), (2, 2, b"2")], 1)
    assert taken(follower) == []


def test_another_file_or_a_shorter_one_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1\n2\n")
    follower = Follower(str(path))
    assert len(taken(follower)) == 2
    path.write_bytes(b"3\n")
    assert (taken(follower), follower.restarts) == ([(1, 0, b"3")], 1)
    (tmp_path / "y").write_bytes(b"4\n5\n6\n")
    os.replace(tmp_path / "y", path)
    assert (len(taken(follower)), follower.restarts) == (3, 2)
    path.unlink()
    assert (taken(follower), follower.restarts) == ([], 3)
    assert list(follower.lines()) == []


def test_half_a_line_that_gives_way_to_a_whole_one_of_its_length_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"a": 1}\n{"torn": ')
    os.utime(path, ns=(1, 1))
    follower = Follower(str(path))
    assert len(taken(follower)) == 1
    path.write_bytes(b'{"a": 1}\n{"b": 2}\n')
    assert taken(follower) == [(2, 9, b'{"b": 2}')]


def test_a_change_of_equal_size_whose_mtime_was_set_back_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"a": 1}\n')
    follower = Follower(str(path))
    assert len(taken(follower)) == 1
    assert not follower.changed()
    change_in_place(path, b"1", b"2")
    assert follower.changed()


def test_lines_longer_than_a_block_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionary.mailbox.tail.BLOCK", 7)
    path = tmp_path / "x"
    path.write_bytes(b"a" * 20 + b"\nb\n" + b"c" * 9 + b"\n")
    assert [raw for _, _, raw in taken(Follower(str(path)))] == [b"a" * 20, b"b", b"c" * 9]


# -- folders


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self, path: Path) -> None:
        self.time = path.stat().st_mtime

    def __call__(self) -> float:
        return self.time


def folders_of(session: Path, fs: FaultFs, clock: Clock) -> Folders:
    return Folders([Root(str(session))], fs, clock)


def listings(fs: FaultFs) -> int:
    return fs.counts["listdir"]


def test_a_folder_is_listed_again_until_it_has_been_left_alone_for_two_seconds(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "a.json").touch()
    fs, clock = FaultFs(OS_FS), Clock(tmp_path)
    folders = folders_of(tmp_path, fs, clock)
    assert folders.refresh({})
    assert listings(fs) == 2
    clock.time += 1.9
    assert not folders.refresh({})
    assert listings(fs) == 4
    clock.time += 0.2
    folders.refresh({})
    assert listings(fs) == 6
    for _ in range(3):
        assert not folders.refresh({})
    assert listings(fs) == 6
    (tmp_path / "0" / "b.json").touch()
    assert folders.refresh({})
    assert [place.file for place in folders.queue()] == ["0/a.json", "0/b.json"]


def test_a_name_that_came_in_the_tick_of_a_listing_is_found_by_the_next(tmp_path: Path) -> None:
    depth = tmp_path / "0"
    depth.mkdir()
    (depth / "a.json").touch()
    fs, clock = FaultFs(OS_FS), Clock(tmp_path)
    folders = folders_of(tmp_path, fs, clock)
    folders.refresh({})
    before = depth.stat().st_mtime_ns
    (depth / "b.json").touch()
    os.utime(depth, ns=(before, before))  # as if the clock of the file system had not ticked
    assert folders.refresh({})
    assert folders.waiting == 2


def test_a_name_that_came_to_a_folder_whose_mtime_was_set_back_is_found(tmp_path: Path) -> None:
    depth = tmp_path / "0"
    depth.mkdir()
    (depth / "a.json").touch()
    fs, clock = FaultFs(OS_FS), Clock(tmp_path)
    folders = folders_of(tmp_path, fs, clock)
    clock.time += 10
    folders.refresh({})
    count = listings(fs)
    folders.refresh({})
    assert listings(fs) == count, "it had been left alone"
    before = depth.stat()
    while depth.stat().st_ctime_ns == before.st_ctime_ns:
        (depth / "b.json").touch()
        os.utime(depth, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert folders.refresh({})
    assert folders.waiting == 2


def test_the_queue_keeps_order_and_forgets_what_is_done(tmp_path: Path) -> None:
    for depth, name in ((10, "b.json"), (2, "b.json"), (2, "c.json"), (0, "d.json")):
        (tmp_path / str(depth)).mkdir(exist_ok=True)
        (tmp_path / str(depth) / name).touch()
    clock = Clock(tmp_path)
    folders = folders_of(tmp_path, FaultFs(OS_FS), clock)
    folders.refresh({"2": {"c.json"}})
    assert [place.file for place in folders.queue()] == ["2/b.json", "10/b.json", "0/d.json"]
    folders.done("2", ["b.json"])
    folders.done("77", ["never seen.json"])
    ignored = Place("b.json", 10, "10", str(tmp_path / "10" / "b.json"))
    folders.ignore(ignored)
    assert ([place.file for place in folders.queue()], folders.waiting) == (["0/d.json"], 1)
    (tmp_path / "2" / "a.json").touch()
    folders.refresh({"2": {"b.json", "c.json"}})
    assert [place.file for place in folders.queue()] == ["2/a.json", "0/d.json"]
    folders.leave(Place("d.json", 0, "0", str(tmp_path / "0" / "d.json")))
    assert folders.waiting == 1
    folders.refresh({"2": {"b.json", "c.json"}})
    assert folders.waiting == 2
    folders.forget()
    assert folders.waiting == 0
    folders.refresh({})
    assert folders.waiting == 5


def test_a_contested_name_comes_out_of_the_queue_once(tmp_path: Path) -> None:
    """It comes back with each listing, while a message before it keeps what stood there from being dropped."""
    depth = tmp_path / "0"
    depth.mkdir()
    for name in ("a.json", "k.json", "k~01234567.json"):
        (depth / name).touch()
    folders = folders_of(tmp_path, FaultFs(OS_FS), Clock(tmp_path))
    folders.refresh({})
    for number in range(3):
        folders.done("0", ["k.json"])
        (depth / f"z{number}.json").touch()
        folders.refresh({"0": {"k.json"}})
        assert [place.name for place in folders.queue()].count("k.json") == 1


def test_a_folder_that_vanishes_has_no_names(tmp_path: Path) -> None:
    session = tmp_path / "breadcrumbs"
    folders = folders_of(session, FaultFs(OS_FS), Clock(tmp_path))
    assert not folders.refresh({})
    (session / "0").mkdir(parents=True)
    (session / "0" / "a.json").touch()
    assert folders.refresh({})
    (session / "0" / "a.json").unlink()
    (session / "0").rmdir()
    assert not folders.refresh({})


# -- stray messages


def session_at(folder: Path, parent: str | None = None) -> Path:
    folder.mkdir(parents=True)
    document = {"session_id": folder.name, "session_type": "work_task", "parent_session_id": parent}
    (folder / "session.json").write_text(json.dumps(document))
    return folder


def test_messages_of_a_child_that_the_original_put_at_the_top_are_applied_too(tmp_path: Path) -> None:
    session_at(tmp_path / "P")
    child = session_at(tmp_path / "P" / "C", "P")
    put(tmp_path / "C", "stray", number=2)
    put(child, "own", number=1)
    mailbox = Mailbox(child)
    assert [crumb.prompt for crumb in mailbox.pending()] == ["own", "stray"]
    assert mailbox.consume(echo).applied == 2
    own, stray = log(child)
    assert own["file"] == "0/20260301_090000_000001.json"
    assert stray["file"] == "../../../C/breadcrumbs/0/20260301_090000_000002.json"
    assert Mailbox(child).pending() == []
    put(tmp_path / "C", "late", number=0)
    assert mailbox.consume(echo).applied == 1


def test_a_grandchild_in_a_stub_of_its_parent_has_its_messages_at_the_top(tmp_path: Path) -> None:
    session_at(tmp_path / "P")
    session_at(tmp_path / "P" / "C", "P")
    grandchild = session_at(tmp_path / "C" / "G", "C")
    put(tmp_path / "G", "stray")
    assert [crumb.prompt for crumb in Mailbox(grandchild).pending()] == ["stray"]


@pytest.mark.parametrize("text", ["", "[]", '{"session_id": "S"}', "no json"])
def test_a_session_at_the_top_has_one_place_whatever_its_document_says(text: str, tmp_path: Path) -> None:
    (tmp_path / "S").mkdir()
    (tmp_path / "S" / "session.json").write_text(text)
    top = top_of(OS_FS, str(tmp_path / "S"))
    assert roots_of(str(tmp_path / "S"), top) == [Root(str(tmp_path / "S" / "breadcrumbs"))]
