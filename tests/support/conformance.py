"""Suites of tests that every implementation of a seam must pass, doubles included.

A double that behaves unlike the real thing proves nothing, so the recorder and the fault injector pass the
suite of the real file system. A suite is a plain class for pytest, and a user of it is a few lines::

    class TestMyFs(FsTests):
        @pytest.fixture
        def fs(self) -> Fs:
            return MyFs()

What a test reads back it has put there by `put_raw`, and what it has written it looks at by `get_raw`: both
go around the `Fs` under test, so that a mistake in its writing cannot hide behind the same mistake in its
reading.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sessionary.disk.fs import (
    APPEND,
    CREATE,
    DIR_MODE,
    EXCLUSIVE,
    FILE_MODE,
    NAMELESS,
    O_DIRECTORY,
    O_TMPFILE,
    READ,
    SHARED,
    UNLOCK,
    Fs,
    read_all,
    write_all,
)


@contextmanager
def refused(*numbers: int) -> Iterator[None]:
    """The block MUST raise OSError with one of these errnos."""
    wanted = ", ".join(errno.errorcode[number] for number in numbers)
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise AssertionError(f"raised {error!r}, not {wanted}") from error
        return
    raise AssertionError(f"did not raise {wanted}")


def _errno_of(call: Callable[[], object]) -> int | None:
    """0 if the call succeeds."""
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


class _Suite:
    """The hooks that go around the `Fs` under test."""

    def put_raw(self, path: Path, data: bytes) -> None:
        """Make a file of these bytes."""
        path.write_bytes(data)

    def get_raw(self, path: Path) -> bytes:
        """The bytes of a file."""
        return path.read_bytes()

    @contextmanager
    def opened(self, fs: Fs, path: Path, flags: int) -> Iterator[int]:
        """An open descriptor of `path`, closed in the end."""
        fd = fs.open(str(path), flags, FILE_MODE)
        try:
            yield fd
        finally:
            fs.close(fd)

    def put(self, fs: Fs, path: Path, data: bytes) -> None:
        """Make a file of these bytes through the `Fs`."""
        with self.opened(fs, path, CREATE) as fd:
            write_all(fs, fd, data)


class FileTests(_Suite):
    """One file: create, read, write, append, cut, flush."""

    def test_create_makes_a_private_file(self, fs: Fs, tmp_path: Path) -> None:
        with self.opened(fs, tmp_path / "new", CREATE):
            assert self.get_raw(tmp_path / "new") == b""
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600

    def test_create_is_exclusive(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "there", b"mine")
        with refused(errno.EEXIST):
            fs.open(str(tmp_path / "there"), CREATE, FILE_MODE)
        assert self.get_raw(tmp_path / "there") == b"mine"

    def test_create_refuses_a_planted_link(self, fs: Fs, tmp_path: Path) -> None:
        (tmp_path / "trap").symlink_to(tmp_path / "victim")
        with refused(errno.EEXIST, errno.ELOOP):
            fs.open(str(tmp_path / "trap"), CREATE, FILE_MODE)
        assert not (tmp_path / "victim").exists()

    def test_descriptors_do_not_reach_child_processes(self, fs: Fs, tmp_path: Path) -> None:
        with self.opened(fs, tmp_path / "file", CREATE) as fd:
            assert not os.get_inheritable(fd)

    def test_write_says_how_much_it_took(self, fs: Fs, tmp_path: Path) -> None:
        with self.opened(fs, tmp_path / "file", CREATE) as fd:
            assert fs.write(fd, b"abc") == 3
            assert fs.write(fd, memoryview(b"xdefx")[1:4]) == 3
        assert self.get_raw(tmp_path / "file") == b"abcdef"

    def test_append_goes_to_the_end_after_any_other_writer(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "log", b"1\n")
        path = tmp_path / "log"
        with self.opened(fs, path, APPEND) as one, self.opened(fs, path, APPEND) as two:
            for fd, line in ((one, b"2\n"), (two, b"3\n"), (one, b"4\n")):
                fs.write(fd, line)
        assert self.get_raw(path) == b"1\n2\n3\n4\n"

    def test_pread_reads_at_an_offset_and_stops_at_the_end(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"0123456789")
        with self.opened(fs, tmp_path / "file", READ) as fd:
            assert fs.pread(fd, 3, 4) == b"456"
            assert fs.pread(fd, 99, 8) == b"89"
            assert fs.pread(fd, 5, 10) == b""
            assert fs.pread(fd, 3, 0) == b"012"

    def test_truncate_cuts_and_stretches(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"0123456789")
        with self.opened(fs, tmp_path / "file", APPEND) as fd:
            fs.truncate(fd, 4)
            assert self.get_raw(tmp_path / "file") == b"0123"
            fs.truncate(fd, 6)
            assert self.get_raw(tmp_path / "file") == b"0123\0\0"
            fs.write(fd, b"x")
            assert read_all(fs, fd) == b"0123\0\0x"

    def test_only_a_writable_descriptor_writes(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"as it was")
        with self.opened(fs, tmp_path / "file", READ) as fd:
            with refused(errno.EBADF):
                fs.write(fd, b"x")
            with refused(errno.EBADF, errno.EINVAL):
                fs.truncate(fd, 0)
        assert self.get_raw(tmp_path / "file") == b"as it was"

    def test_flushes_change_nothing(self, fs: Fs, tmp_path: Path) -> None:
        with self.opened(fs, tmp_path / "file", CREATE) as fd:
            fs.write(fd, b"abc")
            fs.fsync(fd)
            fs.fdatasync(fd)
        with self.opened(fs, tmp_path, READ | O_DIRECTORY) as fd:
            fs.fsync(fd)
        assert self.get_raw(tmp_path / "file") == b"abc"

    def test_a_closed_descriptor_is_bad(self, fs: Fs, tmp_path: Path) -> None:
        fd = fs.open(str(tmp_path / "file"), CREATE, FILE_MODE)
        fs.close(fd)
        for use in (fs.close, fs.fsync, fs.fdatasync, fs.fstat):
            with refused(errno.EBADF):
                use(fd)
        with refused(errno.EBADF):
            fs.write(fd, b"x")

    def test_clone_shares_all_bytes_or_says_that_it_cannot(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "from", b"x" * 8192)
        with (
            self.opened(fs, tmp_path / "from", READ) as source,
            self.opened(fs, tmp_path / "to", CREATE) as target,
        ):
            number = _errno_of(lambda: fs.clone(source, target))
        assert number in (0, errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS)
        assert self.get_raw(tmp_path / "to") == (b"" if number else b"x" * 8192)

    def test_opening_fails_by_the_right_name(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"")
        for path, flags, number in (
            (tmp_path / "missing", READ, errno.ENOENT),
            (tmp_path / "missing" / "file", CREATE, errno.ENOENT),
            (tmp_path / "file" / "below", READ, errno.ENOTDIR),
            (tmp_path, APPEND, errno.EISDIR),
            (tmp_path / "file", READ | O_DIRECTORY, errno.ENOTDIR),
            (tmp_path / ("x" * 300), CREATE, errno.ENAMETOOLONG),
        ):
            with refused(number):
                fs.open(str(path), flags, FILE_MODE)


class NameTests(_Suite):
    """Names: rename, link, unlink, folders, listing, the result of stat."""

    def test_rename_replaces(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "old", b"old")
        self.put(fs, tmp_path / "new", b"new")
        with self.opened(fs, tmp_path / "old", READ) as fd:
            fs.rename(str(tmp_path / "new"), str(tmp_path / "old"))
            assert read_all(fs, fd) == b"old"  # who has it open keeps it
        assert self.get_raw(tmp_path / "old") == b"new"
        assert fs.listdir(str(tmp_path)) == ["old"]

    def test_rename_takes_an_open_file_along(self, fs: Fs, tmp_path: Path) -> None:
        with self.opened(fs, tmp_path / "before", CREATE) as fd:
            fs.rename(str(tmp_path / "before"), str(tmp_path / "after"))
            fs.write(fd, b"still mine")
        assert self.get_raw(tmp_path / "after") == b"still mine"

    def test_rename_moves_a_folder_with_what_is_in_it(self, fs: Fs, tmp_path: Path) -> None:
        fs.mkdir(str(tmp_path / "a"), DIR_MODE)
        fs.mkdir(str(tmp_path / "b"), DIR_MODE)
        self.put(fs, tmp_path / "a" / "file", b"in it")
        fs.rename(str(tmp_path / "a"), str(tmp_path / "b" / "c"))
        assert self.get_raw(tmp_path / "b" / "c" / "file") == b"in it"
        assert fs.listdir(str(tmp_path)) == ["b"]

    def test_rename_between_links_to_one_file_does_nothing(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "one", b"same")
        fs.link(str(tmp_path / "one"), str(tmp_path / "two"))
        fs.rename(str(tmp_path / "one"), str(tmp_path / "two"))
        assert sorted(fs.listdir(str(tmp_path))) == ["one", "two"]

    def test_rename_fails_by_the_right_name(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"")
        fs.mkdir(str(tmp_path / "full"), DIR_MODE)
        fs.mkdir(str(tmp_path / "folder"), DIR_MODE)
        self.put(fs, tmp_path / "full" / "file", b"")
        for source, target, numbers in (
            ("missing", "any", [errno.ENOENT]),
            ("file", "missing/any", [errno.ENOENT]),
            ("file", "full", [errno.EISDIR]),
            ("folder", "file", [errno.ENOTDIR]),
            ("folder", "full", [errno.ENOTEMPTY, errno.EEXIST]),
        ):
            with refused(*numbers):
                fs.rename(str(tmp_path / source), str(tmp_path / target))

    def test_link_is_the_same_file(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "one", b"1")
        fs.link(str(tmp_path / "one"), str(tmp_path / "two"))
        with self.opened(fs, tmp_path / "two", APPEND) as fd:
            fs.write(fd, b"2")
        assert self.get_raw(tmp_path / "one") == b"12"
        assert fs.stat(str(tmp_path / "one")).st_ino == fs.stat(str(tmp_path / "two")).st_ino
        with refused(errno.EEXIST):
            fs.link(str(tmp_path / "one"), str(tmp_path / "two"))
        with refused(errno.ENOENT):
            fs.link(str(tmp_path / "missing"), str(tmp_path / "three"))

    def test_a_file_gets_its_name_when_it_is_whole_or_has_one_from_the_beginning(
        self, fs: Fs, tmp_path: Path
    ) -> None:
        if not O_TMPFILE or _errno_of(lambda: self._nameless(fs, tmp_path, "probe")) != 0:
            return  # most systems know no files without names
        assert self.get_raw(tmp_path / "probe") == b"whole"
        assert os.listdir(tmp_path) == ["probe"]
        assert stat.S_IMODE(fs.stat(str(tmp_path / "probe")).st_mode) == FILE_MODE
        with refused(errno.EEXIST):
            self._nameless(fs, tmp_path, "probe")
        with refused(errno.ENOENT):
            self._nameless(fs, tmp_path, "missing/probe")
        assert os.listdir(tmp_path) == ["probe"]

    def _nameless(self, fs: Fs, folder: Path, name: str) -> None:
        with self.opened(fs, folder, NAMELESS) as fd:
            write_all(fs, fd, b"whole")
            fs.link_fd(fd, str(folder / name))

    def test_unlink_takes_the_name_and_not_the_bytes(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"kept")
        with self.opened(fs, tmp_path / "file", READ) as fd:
            fs.unlink(str(tmp_path / "file"))
            assert not (tmp_path / "file").exists()
            assert read_all(fs, fd) == b"kept"
        with refused(errno.ENOENT):
            fs.unlink(str(tmp_path / "file"))

    def test_mkdir_makes_a_private_folder(self, fs: Fs, tmp_path: Path) -> None:
        fs.mkdir(str(tmp_path / "folder"), DIR_MODE)
        assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
        with refused(errno.EEXIST):
            fs.mkdir(str(tmp_path / "folder"), DIR_MODE)
        with refused(errno.ENOENT):
            fs.mkdir(str(tmp_path / "missing" / "folder"), DIR_MODE)

    def test_rmdir_takes_only_empty_folders(self, fs: Fs, tmp_path: Path) -> None:
        fs.mkdir(str(tmp_path / "folder"), DIR_MODE)
        self.put(fs, tmp_path / "folder" / "file", b"")
        with refused(errno.ENOTEMPTY, errno.EEXIST):
            fs.rmdir(str(tmp_path / "folder"))
        fs.unlink(str(tmp_path / "folder" / "file"))
        fs.rmdir(str(tmp_path / "folder"))
        with refused(errno.ENOENT):
            fs.rmdir(str(tmp_path / "folder"))

    def test_listing(self, fs: Fs, tmp_path: Path) -> None:
        assert fs.listdir(str(tmp_path)) == []
        names = ["plain", ".hidden", "mit Umlaut ä", "line\nbreak"]
        for name in names:
            self.put(fs, tmp_path / name, b"")
        assert sorted(fs.listdir(str(tmp_path))) == sorted(names)
        with refused(errno.ENOENT):
            fs.listdir(str(tmp_path / "missing"))
        with refused(errno.ENOTDIR):
            fs.listdir(str(tmp_path / "plain"))

    def test_stat_follows_links_and_lstat_does_not(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"12345")
        (tmp_path / "link").symlink_to("file")
        assert fs.stat(str(tmp_path / "link")).st_size == 5
        assert stat.S_ISLNK(fs.lstat(str(tmp_path / "link")).st_mode)
        for look in (fs.stat, fs.lstat):
            with refused(errno.ENOENT):
                look(str(tmp_path / "missing"))

    def test_fstat_knows_that_the_name_has_gone_to_another_file(self, fs: Fs, tmp_path: Path) -> None:
        path = tmp_path / "file"
        self.put(fs, path, b"old")
        with self.opened(fs, path, READ) as fd:
            assert os.path.samestat(fs.fstat(fd), fs.stat(str(path)))
            self.put(fs, tmp_path / "new", b"new")
            fs.rename(str(tmp_path / "new"), str(path))
            assert not os.path.samestat(fs.fstat(fd), fs.stat(str(path)))

    def test_utime_makes_it_new_and_chmod_changes_the_mode(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, tmp_path / "file", b"")
        os.utime(tmp_path / "file", (1, 1))
        fs.utime(str(tmp_path / "file"))
        assert fs.stat(str(tmp_path / "file")).st_mtime > 1_000_000_000
        fs.utime(str(tmp_path / "file"), 1_234_567_890_123_456_000)
        assert fs.stat(str(tmp_path / "file")).st_mtime_ns == 1_234_567_890_123_456_000
        with self.opened(fs, tmp_path / "file", APPEND) as fd:
            fs.chmod(fd, 0o640)
            fs.chown(fd, os.getuid(), os.getgid())
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


class LockTests(_Suite):
    """Kernel locks belong to the open file description, and never block."""

    def lock_file(self, tmp_path: Path) -> Path:
        """A side file to lock."""
        return tmp_path / ".lock"

    def test_exclusive_excludes(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, path := self.lock_file(tmp_path), b"")
        with self.opened(fs, path, APPEND) as one, self.opened(fs, path, APPEND) as two:
            fs.lock(one, EXCLUSIVE)
            for how in (EXCLUSIVE, SHARED):
                with refused(errno.EWOULDBLOCK):
                    fs.lock(two, how)
            fs.lock(one, UNLOCK)
            fs.lock(two, EXCLUSIVE)
            with refused(errno.EWOULDBLOCK):
                fs.lock(one, SHARED)

    def test_shared_excludes_only_writers(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, path := self.lock_file(tmp_path), b"")
        with self.opened(fs, path, READ) as one, self.opened(fs, path, READ) as two:
            fs.lock(one, SHARED)
            fs.lock(two, SHARED)
            with self.opened(fs, path, APPEND) as writer, refused(errno.EWOULDBLOCK):
                fs.lock(writer, EXCLUSIVE)

    def test_closing_frees(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, path := self.lock_file(tmp_path), b"")
        with self.opened(fs, path, APPEND) as two:
            with self.opened(fs, path, APPEND) as one:
                fs.lock(one, EXCLUSIVE)
            fs.lock(two, EXCLUSIVE)

    def test_the_holder_may_ask_again(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, path := self.lock_file(tmp_path), b"")
        with self.opened(fs, path, APPEND) as one:
            fs.lock(one, EXCLUSIVE)
            fs.lock(one, EXCLUSIVE)
            fs.lock(one, UNLOCK)
            fs.lock(one, UNLOCK)

    def test_the_lock_stays_with_the_file_and_not_with_its_name(self, fs: Fs, tmp_path: Path) -> None:
        self.put(fs, path := self.lock_file(tmp_path), b"")
        self.put(fs, tmp_path / "other", b"")
        with self.opened(fs, path, APPEND) as old:
            fs.lock(old, EXCLUSIVE)
            fs.rename(str(tmp_path / "other"), str(path))
            with self.opened(fs, path, APPEND) as new:
                fs.lock(new, EXCLUSIVE)  # which is why lock files are never replaced


class FsTests(FileTests, NameTests, LockTests):
    """All that an `Fs` must do. A subclass MUST define the fixture ``fs``."""
