"""The recorder knows files by identity: names come and go, and the bytes stay with their file."""

import errno
import os
import threading
from pathlib import Path

import pytest

from sessionary.disk.fs import (
    APPEND,
    CREATE,
    DIR_MODE,
    EXCLUSIVE,
    FILE_MODE,
    NAMELESS,
    O_DIRECTORY,
    O_TMPFILE,
    OS_FS,
    READ,
    UNLOCK,
)
from sessionary.testing.wrapper import WrappedFs
from tests.support.faults import Fault, FaultFs
from tests.support.recorder import Ack, DataOp, NameOp, RecordingFs, SyncOp
from tests.support.survivors import intact


def texts(fs: RecordingFs) -> list[str]:
    return [op.text for op in fs.recording.ops]


def put(fs: RecordingFs, path: Path, data: bytes, flags: int = CREATE) -> None:
    fd = fs.open(str(path), flags, FILE_MODE)
    fs.write(fd, data)
    fs.close(fd)


def test_every_change_is_recorded_in_program_order(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    fs.mkdir(f"{tmp_path}/folder", DIR_MODE)
    fd = fs.open(f"{tmp_path}/folder/new", CREATE, FILE_MODE)
    fs.write(fd, b"abc")
    fs.truncate(fd, 2)
    fs.fsync(fd)
    fs.fdatasync(fd)
    fs.close(fd)
    fs.rename(f"{tmp_path}/folder/new", f"{tmp_path}/name")
    fs.link(f"{tmp_path}/name", f"{tmp_path}/other")
    fs.unlink(f"{tmp_path}/other")
    fs.rmdir(f"{tmp_path}/folder")
    fd = fs.open(str(tmp_path), READ | O_DIRECTORY)
    fs.fsync(fd)
    fs.close(fd)
    fs.mark("done")
    assert texts(fs) == [
        "mkdir folder",
        "create folder/new",
        "write 3 bytes at 0 to folder/new",
        "truncate folder/new to 2",
        "fsync folder/new",
        "fdatasync folder/new",
        "rename folder/new to name",
        "link name to other",
        "unlink other",
        "rmdir folder",
        "fsync .",
        "-- acknowledged: 'done'",
    ]
    assert fs.acked == ("done",)
    assert (tmp_path / "name").read_bytes() == b"ab"


def test_reading_and_asking_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    fs = RecordingFs(tmp_path)
    fd = fs.open(f"{tmp_path}/file", READ)
    fs.pread(fd, 3, 0)
    fs.fstat(fd)
    fs.lock(fd, EXCLUSIVE)
    fs.lock(fd, UNLOCK)
    fs.close(fd)
    fs.stat(f"{tmp_path}/file")
    fs.listdir(str(tmp_path))
    fs.utime(f"{tmp_path}/file")
    assert texts(fs) == []


def test_what_was_there_before_is_known_with_its_links(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one").write_bytes(b"1")
    os.link(tmp_path / "deep" / "one", tmp_path / "two")
    (tmp_path / "alias").symlink_to("two")
    fs = RecordingFs(tmp_path)
    put(fs, tmp_path / "deep" / "one", b"!", APPEND)
    state = intact(fs.recording)
    assert state.tree == {"deep/one": b"1!", "two": b"1!"}
    assert state.symlinks == {"alias": "two"}
    assert state.nodes["deep/one"] == state.nodes["two"]
    (write,) = fs.recording.ops
    assert write.text == "append 1 bytes at 1 to deep/one"


def test_an_open_file_is_followed_through_renames_and_loss_of_its_name(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    fd = fs.open(f"{tmp_path}/a", CREATE, FILE_MODE)
    fs.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    fs.write(fd, b"1")
    put(fs, tmp_path / "a", b"another")
    fs.write(fd, b"2")
    fs.unlink(f"{tmp_path}/b")
    fs.write(fd, b"3")
    fs.close(fd)
    writes = [op for op in fs.recording.ops if isinstance(op, DataOp)]
    assert [(op.offset, op.data) for op in writes] == [(0, b"1"), (0, b"another"), (1, b"2"), (2, b"3")]
    assert len({op.node for op in writes}) == 2
    assert intact(fs.recording).tree == {"a": b"another"}


@pytest.mark.skipif(not O_TMPFILE, reason="no files without names here")
def test_an_unnamed_file_exists_once_it_is_named(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    fs.mkdir(f"{tmp_path}/d", DIR_MODE)
    for folder, name in ((f"{tmp_path}/d", "d/a"), (str(tmp_path), "b")):
        fd = fs.open(folder, NAMELESS, FILE_MODE)
        fs.write(fd, name.encode())
        fs.fsync(fd)
        assert name not in intact(fs.recording).tree
        fs.link_fd(fd, f"{tmp_path}/{name}")
        fs.close(fd)
    assert intact(fs.recording).tree == {"d/a": b"d/a", "b": b"b"}
    assert texts(fs)[-3:] == [
        "write 1 bytes at 0 to (nameless file 3)",
        "fsync (nameless file 3)",
        "name (nameless file 3) b",
    ]
    assert (tmp_path / "b").read_bytes() == b"b"


def test_appends_go_where_the_kernel_put_them(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    one = fs.open(f"{tmp_path}/log", CREATE | os.O_APPEND, FILE_MODE)
    two = fs.open(f"{tmp_path}/log", APPEND)
    fs.write(one, b"11")
    fs.write(two, b"2")
    fs.truncate(one, 2)
    fs.write(two, b"33")
    fs.close(one)
    fs.close(two)
    offsets = [op.offset for op in fs.recording.ops if isinstance(op, DataOp) and op.data]
    assert offsets == [0, 2, 2]
    assert intact(fs.recording).tree == {"log": (tmp_path / "log").read_bytes()} == {"log": b"1133"}


def test_open_can_truncate(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    fs = RecordingFs(tmp_path)
    fs.close(fs.open(f"{tmp_path}/file", os.O_WRONLY | os.O_TRUNC))
    assert texts(fs) == ["truncate file to 0"]


def test_a_short_write_is_recorded_as_short_as_it_was(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path, FaultFs(OS_FS, Fault("write", 1, "short")))
    fd = fs.open(f"{tmp_path}/file", CREATE, FILE_MODE)
    assert fs.write(fd, b"12345678") == 4
    fs.close(fd)
    assert intact(fs.recording).tree == {"file": b"1234"} == {"file": (tmp_path / "file").read_bytes()}


def test_what_failed_is_not_recorded_except_a_failed_sync(tmp_path: Path) -> None:
    plan = [Fault("rename", 1, errno.EIO), Fault("write", 1, errno.ENOSPC), Fault("fsync", 1, errno.EIO)]
    fs = RecordingFs(tmp_path, FaultFs(OS_FS, plan))
    fd = fs.open(f"{tmp_path}/file", CREATE, FILE_MODE)
    for call in (
        lambda: fs.write(fd, b"x"),
        lambda: fs.rename(f"{tmp_path}/file", f"{tmp_path}/other"),
        lambda: fs.fsync(fd),
    ):
        with pytest.raises(OSError, match=r"rror|space"):
            call()
    fs.close(fd)
    create, sync = fs.recording.ops
    assert isinstance(create, NameOp)
    assert isinstance(sync, SyncOp)
    assert sync.failed


def test_renaming_one_link_onto_another_of_the_same_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    os.link(tmp_path / "one", tmp_path / "two")
    fs = RecordingFs(tmp_path)
    fs.rename(f"{tmp_path}/one", f"{tmp_path}/two")
    assert texts(fs) == []
    assert sorted(os.listdir(tmp_path)) == ["one", "two"] == sorted(intact(fs.recording).tree)


def test_a_renamed_folder_takes_its_content_along(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    fs.mkdir(f"{tmp_path}/a", DIR_MODE)
    fs.mkdir(f"{tmp_path}/a/b", DIR_MODE)
    put(fs, tmp_path / "a" / "b" / "file", b"1")
    fs.rename(f"{tmp_path}/a", f"{tmp_path}/z")
    put(fs, tmp_path / "z" / "b" / "file", b"2", APPEND)
    state = intact(fs.recording)
    assert state.tree == {"z/b/file": b"12"}
    assert state.directories == ("z", "z/b")


def test_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"1")
    (tmp_path / "way").symlink_to("real")
    (tmp_path / "alias").symlink_to("real/file")
    fs = RecordingFs(tmp_path)
    put(fs, tmp_path / "way" / "file", b"2", APPEND)
    put(fs, tmp_path / "alias", b"3", APPEND)
    assert texts(fs) == ["append 1 bytes at 1 to real/file", "append 1 bytes at 2 to real/file"]


def test_a_clone_carries_the_bytes_of_its_source(tmp_path: Path) -> None:
    class Cloning(WrappedFs):
        """A file system that can clone; the one of this machine may not."""

        def clone(self, source: int, target: int) -> None:
            os.pwrite(target, os.pread(source, 99, 0), 0)

    (tmp_path / "from").write_bytes(b"abc")
    fs = RecordingFs(tmp_path, Cloning())
    source = fs.open(f"{tmp_path}/from", APPEND)
    fs.write(source, b"d")
    target = fs.open(f"{tmp_path}/to", CREATE, FILE_MODE)
    fs.clone(source, target)
    fs.close(source)
    fs.close(target)
    assert texts(fs)[-1] == "clone 4 bytes to to"
    assert intact(fs.recording).tree == {"from": b"abcd", "to": b"abcd"}


def test_changes_elsewhere_are_done_and_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    fs = RecordingFs(tmp_path / "root")
    put(fs, tmp_path / "outside", b"1")
    fs.mkdir(f"{tmp_path}/folder", DIR_MODE)
    fs.rename(f"{tmp_path}/outside", f"{tmp_path}/folder/moved")
    assert (tmp_path / "folder" / "moved").read_bytes() == b"1"
    assert texts(fs) == []
    with pytest.raises(ValueError, match="crosses the border"):
        fs.rename(f"{tmp_path}/folder/moved", f"{tmp_path}/root/in")
    with pytest.raises(ValueError, match="crosses the border"):
        fs.link(f"{tmp_path}/folder/moved", f"{tmp_path}/root/in")
    assert os.listdir(tmp_path / "root") == []


def test_a_writer_that_bypasses_the_recorder_is_detected(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    (tmp_path / "smuggled").write_bytes(b"")
    for use in (
        lambda: fs.open(f"{tmp_path}/smuggled", APPEND),
        lambda: fs.open(f"{tmp_path}/smuggled", os.O_RDWR | os.O_CREAT, FILE_MODE),
        lambda: fs.rename(f"{tmp_path}/smuggled", f"{tmp_path}/x"),
    ):
        with pytest.raises(LookupError, match="smuggled was made behind the back"):
            use()


def test_threads_are_recorded_in_an_order_that_happened(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    fd = fs.open(f"{tmp_path}/log", CREATE | os.O_APPEND, FILE_MODE)

    def write(number: int) -> None:
        for _ in range(50):
            fs.write(fd, b"%d" % number * (number + 1))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fs.close(fd)
    assert intact(fs.recording).tree["log"] == (tmp_path / "log").read_bytes()
    assert len(fs.recording.ops) == 201


def test_a_recording_is_reported_in_numbered_lines(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path)
    fs.mkdir(f"{tmp_path}/a", DIR_MODE)
    fs.mark(1)
    assert fs.recording.describe() == "   0 mkdir a\n   1 -- acknowledged: 1"
    assert isinstance(fs.recording.ops[1], Ack)


@pytest.mark.parametrize(
    ("content", "op", "after"),
    [
        (b"abc", DataOp("", 1, 3, b"de"), b"abcde"),
        (b"abc", DataOp("", 1, 1, b"X"), b"aXc"),
        (b"abc", DataOp("", 1, 2, b"XYZ"), b"abXYZ"),
        (b"abc", DataOp("", 1, 5, b"X"), b"abc\0\0X"),  # what came before did not reach the disk
        (b"abc", DataOp("", 1, 1, None), b"a"),
        (b"abc", DataOp("", 1, 5, None), b"abc\0\0"),
    ],
)
def test_what_an_operation_does_to_bytes(content: bytes, op: DataOp, after: bytes) -> None:
    assert op.apply(content) == after
    assert op.resize(len(content)) == len(after)
