"""The three models, rule by rule, on recordings small enough to know every state by heart."""

import errno
import os
from pathlib import Path

import pytest

from sessionary.disk.fs import APPEND, CREATE, DIR_MODE, FILE_MODE, OS_FS, sync_dir
from sessionary.testing.wrapper import UNSYNCED
from tests.support.faults import Fault, FaultFs
from tests.support.recorder import RecordingFs
from tests.support.survivors import MODELS, Model, Survivor, intact, materialise, survivors


def after(fs: RecordingFs, model: Model, **options: int) -> list[Survivor]:
    """The states of a cut after the last operation."""
    fs.mark(
        "end"
    )  # a state with other acknowledgments before it is another state, so none of them is left out
    ops = len(fs.recording.ops)
    return [state for state in survivors(fs.recording, model, **options) if state.k == ops]


def trees(states: list[Survivor]) -> list[dict[str, bytes]]:
    return sorted((state.tree for state in states), key=lambda tree: sorted(tree.items()))


def begin(fs: RecordingFs, name: str, data: bytes) -> int:
    fd = fs.open(f"{fs.root}/{name}", CREATE | os.O_APPEND, FILE_MODE)
    fs.write(fd, data)
    return fd


def done(fs: RecordingFs, name: str, data: bytes) -> None:
    """A file that is on disk with its name."""
    fd = begin(fs, name, data)
    fs.fsync(fd)
    fs.close(fd)
    sync_dir(fs, fs.root)


@pytest.fixture
def fs(tmp_path: Path) -> RecordingFs:
    (tmp_path / "root").mkdir()
    return RecordingFs(tmp_path / "root", UNSYNCED)


def test_prefix_is_what_a_kill_leaves(fs: RecordingFs) -> None:
    fs.close(begin(fs, "a", b"1234"))
    fs.rename(f"{fs.root}/a", f"{fs.root}/b")
    states = [(state.k, state.tree) for state in survivors(fs.recording, "prefix")]
    assert states == [
        (0, {}),
        (1, {"a": b""}),
        (2, {"a": b"1234"}),
        (2, {"a": b"1"}),
        (2, {"a": b"12"}),
        (2, {"a": b"123"}),
        (3, {"b": b"1234"}),
    ]


def test_unsynced_data_may_be_there_in_part_or_as_nuls_or_not_at_all(fs: RecordingFs) -> None:
    fd = begin(fs, "a", b"1234")
    sync_dir(fs, fs.root)
    fs.close(fd)
    wanted = [b"", b"1", b"12", b"123", b"1234", b"\0\0\0\0"]
    assert sorted(state.tree["a"] for state in after(fs, "ordered")) == sorted(wanted)


@pytest.mark.parametrize("flush", ["fsync", "fdatasync"])
def test_a_synced_file_keeps_its_data_and_not_its_name(fs: RecordingFs, flush: str) -> None:
    fd = begin(fs, "a", b"1234")
    getattr(fs, flush)(fd)
    fs.close(fd)
    for model in ("ordered", "relaxed"):
        assert trees(after(fs, model)) == [{}, {"a": b"1234"}]


def test_a_sync_counts_for_what_came_before_it_only(fs: RecordingFs) -> None:
    done(fs, "a", b"1")
    fd = fs.open(f"{fs.root}/a", APPEND)
    fs.write(fd, b"2")
    fs.close(fd)
    assert trees(after(fs, "relaxed")) == [{"a": b"1"}, {"a": b"1\0"}, {"a": b"12"}]


def test_a_later_write_can_be_there_without_the_earlier_one(fs: RecordingFs) -> None:
    done(fs, "a", b"-")
    fd = fs.open(f"{fs.root}/a", APPEND)
    fs.write(fd, b"1")
    fs.write(fd, b"2")
    fs.close(fd)
    assert {"a": b"-\x002"} in trees(after(fs, "ordered"))


def test_a_rename_that_is_durable_brings_the_file_even_if_its_create_was_lost(fs: RecordingFs) -> None:
    fd = begin(fs, "temp", b"new")
    fs.fsync(fd)
    fs.close(fd)
    fs.rename(f"{fs.root}/temp", f"{fs.root}/name")
    assert trees(after(fs, "relaxed")) == [{}, {"name": b"new"}, {"temp": b"new"}]
    sync_dir(fs, fs.root)
    assert trees(after(fs, "relaxed")) == [{"name": b"new"}]


def test_a_rename_is_never_half(fs: RecordingFs) -> None:
    done(fs, "old", b"old")
    done(fs, "new", b"new")
    fs.rename(f"{fs.root}/new", f"{fs.root}/old")
    for model in ("ordered", "relaxed"):
        assert trees(after(fs, model)) == [{"new": b"new", "old": b"old"}, {"old": b"new"}]


def test_a_rename_between_folders_needs_both_of_them_synced(fs: RecordingFs) -> None:
    for name in ("a", "b"):
        fs.mkdir(f"{fs.root}/{name}", DIR_MODE)
    sync_dir(fs, fs.root)
    done(fs, "a/file", b"1")
    sync_dir(fs, f"{fs.root}/a")
    fs.rename(f"{fs.root}/a/file", f"{fs.root}/b/file")
    moved: list[dict[str, bytes]] = [{"b/file": b"1"}]
    both: list[dict[str, bytes]] = [{"a/file": b"1"}, *moved]
    sync_dir(fs, f"{fs.root}/b")
    assert trees(after(fs, "relaxed")) == both
    sync_dir(fs, f"{fs.root}/a")
    assert trees(after(fs, "relaxed")) == moved


def test_ordered_keeps_directory_changes_in_order_and_relaxed_does_not(fs: RecordingFs) -> None:
    fs.mkdir(f"{fs.root}/1", DIR_MODE)
    fs.mkdir(f"{fs.root}/2", DIR_MODE)
    assert {state.directories for state in after(fs, "ordered")} == {(), ("1",), ("1", "2")}
    assert {state.directories for state in after(fs, "relaxed")} == {(), ("1",), ("2",), ("1", "2")}


def test_a_journal_that_is_committed_holds_what_came_before_in_other_folders(fs: RecordingFs) -> None:
    fs.mkdir(f"{fs.root}/a", DIR_MODE)
    sync_dir(fs, fs.root)
    fs.mkdir(f"{fs.root}/b", DIR_MODE)  # pending in the root …
    fs.mkdir(f"{fs.root}/a/c", DIR_MODE)
    sync_dir(fs, f"{fs.root}/a")  # … while a later change of another folder is made durable
    assert [state.directories for state in after(fs, "ordered")] == [("a", "a/c", "b")]
    assert {state.directories for state in after(fs, "relaxed")} == {("a", "a/c"), ("a", "a/c", "b")}


def test_what_is_in_a_folder_without_a_name_is_gone(fs: RecordingFs) -> None:
    fs.mkdir(f"{fs.root}/a", DIR_MODE)
    fd = begin(fs, "a/file", b"1")
    fs.fsync(fd)
    fs.close(fd)
    sync_dir(fs, f"{fs.root}/a")
    assert {(state.directories, *state.tree) for state in after(fs, "relaxed")} == {((),), (("a",), "a/file")}


def test_a_folder_whose_first_rename_was_lost_is_in_two_places_without_a_loop(fs: RecordingFs) -> None:
    fs.mkdir(f"{fs.root}/a", DIR_MODE)
    fs.mkdir(f"{fs.root}/b", DIR_MODE)
    sync_dir(fs, fs.root)
    fs.rename(f"{fs.root}/a", f"{fs.root}/b/a")
    fs.rename(f"{fs.root}/b/a", f"{fs.root}/c")
    fs.rename(f"{fs.root}/b", f"{fs.root}/c/b")
    assert ("a", "b", "c") in {state.directories for state in after(fs, "relaxed")}


def test_a_failed_sync_is_not_healed_by_one_that_succeeds(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path, FaultFs(OS_FS, Fault("fdatasync", 1, errno.EIO)))
    done(fs, "log", b"1\n")
    fd = fs.open(f"{fs.root}/log", APPEND)
    fs.write(fd, b"2\n")
    with pytest.raises(OSError, match="Input/output"):
        fs.fdatasync(fd)
    assert (tmp_path / "log").read_bytes() == b"1\n2\n"  # the cache still shows it
    fs.fdatasync(fd)
    fs.write(fd, b"3\n")
    fs.fdatasync(fd)
    fs.close(fd)
    found = {state.tree["log"] for state in after(fs, "relaxed")}
    assert found == {b"1\n2\n3\n", b"1\n\0\x003\n", b"1\n2\x003\n"}


def test_a_failed_sync_of_a_folder_leaves_its_names_in_doubt(tmp_path: Path) -> None:
    fs = RecordingFs(tmp_path, FaultFs(OS_FS, Fault("fsync", 1, errno.EIO)))
    fs.mkdir(f"{fs.root}/a", DIR_MODE)
    with pytest.raises(OSError, match="Input/output"):
        sync_dir(fs, fs.root)
    fs.mkdir(f"{fs.root}/b", DIR_MODE)
    sync_dir(fs, fs.root)
    assert {state.directories for state in after(fs, "relaxed")} == {("a", "b"), ("b",)}


def test_acknowledgments_before_the_cut_are_given(fs: RecordingFs) -> None:
    fs.mark("first")
    fs.mkdir(f"{fs.root}/a", DIR_MODE)
    fs.mark("second")
    seen = [(state.acked, state.directories) for state in survivors(fs.recording, "ordered")]
    assert seen == [
        ((), ()),
        (("first",), ()),
        (("first",), ("a",)),
        (("first", "second"), ("a",)),
        (("first", "second"), ()),
    ]


def many(fs: RecordingFs) -> None:
    for number in range(9):
        fs.close(begin(fs, f"file-{number}", b"12345678"))
    sync_dir(fs, fs.root)


def test_large_sets_are_sampled_by_seed_and_bounded(fs: RecordingFs) -> None:
    many(fs)
    recording = fs.recording

    def lost(seed: int) -> list[frozenset[int]]:
        return [state.lost for state in survivors(recording, "relaxed", seed=seed, limit=50)]

    assert lost(1) == lost(1) != lost(2)
    assert len(after(fs, "relaxed", limit=50)) == 50
    everything = frozenset(2 * number + 1 for number in range(9))  # the writes; the creates are durable
    for states in (after(fs, "relaxed", limit=100), after(fs, "relaxed", limit=2)):
        assert any(not state.lost and state.torn is None for state in states)
        assert any(state.lost == everything for state in states)


def test_no_state_comes_twice(fs: RecordingFs) -> None:
    many(fs)
    for model in MODELS:
        states = survivors(fs.recording, model, limit=50)
        values = [(state.acked, state.directories, *state.tree.items()) for state in states]
        assert len(values) == len(set(values)) > 10


def test_models_contain_one_another(fs: RecordingFs) -> None:
    done(fs, "a", b"1234")
    fd = fs.open(f"{fs.root}/a", APPEND)
    fs.write(fd, b"5678")
    fs.close(fd)
    fs.rename(f"{fs.root}/a", f"{fs.root}/b")
    prefix, ordered, relaxed = (
        {tuple(state.tree.items()) for state in survivors(fs.recording, model)} for model in MODELS
    )
    assert prefix < ordered <= relaxed


def test_an_unknown_model_is_refused(fs: RecordingFs) -> None:
    with pytest.raises(ValueError, match="prefix, ordered, relaxed"):
        next(survivors(fs.recording, "posix"))  # type: ignore[arg-type]


def test_a_state_is_reported_with_the_fate_of_each_operation(fs: RecordingFs) -> None:
    done(fs, "a", b"1")
    fs.close(begin(fs, "b", b"1234"))
    fs.mkdir(f"{fs.root}/c", DIR_MODE)
    story = {
        (state.torn.kept if state.torn else -1): state.describe()
        for state in after(fs, "relaxed")
        if state.lost == {6}
    }
    assert story[2].splitlines() == [
        "power cut after 8 operations, model relaxed:",
        "          create a",
        "          append 1 bytes at 0 to a",
        "          fsync a",
        "          fsync .",
        "          create b",
        "      2 B append 4 bytes at 0 to b",
        "     LOST mkdir c",
        "          -- acknowledged: 'end'",
        "  left: a = b'1'",
        "  left: b = b'12'",
    ]
    assert "     NULs append" in story[None]


def test_a_state_is_made_real_with_its_links(tmp_path: Path, fs: RecordingFs) -> None:
    os.symlink("a", f"{fs.root}/alias")
    fs = RecordingFs(fs.root)
    fs.mkdir(f"{fs.root}/deep", DIR_MODE)
    done(fs, "a", b"\x00\xff")
    fs.link(f"{fs.root}/a", f"{fs.root}/deep/b")
    materialise(intact(fs.recording), tmp_path / "copy")
    copy = tmp_path / "copy"
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == ["a", "alias", "deep", "deep/b"]
    assert (copy / "a").read_bytes() == b"\x00\xff"
    assert (copy / "a").samefile(copy / "deep" / "b")
    assert os.readlink(copy / "alias") == "a"
    assert (copy / "a").stat().st_mode & 0o777 == 0o600


def test_of_two_names_of_a_file_any_may_be_lost(fs: RecordingFs) -> None:
    done(fs, "a", b"1")
    fs.link(f"{fs.root}/a", f"{fs.root}/b")
    fs.unlink(f"{fs.root}/a")
    assert {tuple(state.tree) for state in after(fs, "ordered")} == {("a",), ("a", "b"), ("b",)}
    assert {tuple(state.tree) for state in after(fs, "relaxed")} == {("a",), ("a", "b"), ("b",), ()}


def test_cuts_can_be_limited_to_those_after_a_mark(fs: RecordingFs) -> None:
    fs.mkdir(f"{fs.root}/a", DIR_MODE)
    fs.mark("here")
    fs.mkdir(f"{fs.root}/b", DIR_MODE)
    states = list(survivors(fs.recording, "ordered", since="here"))
    assert [(state.k, state.directories) for state in states] == [(2, ("a",)), (2, ()), (3, ("a", "b"))]
