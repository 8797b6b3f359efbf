"""Copies of removed blocks are verified before they are put back, and a damaged copy blocks no other."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from sessionary.cli.sync import gc, places
from sessionary.errors import Corrupt, SessionaryError, StorageFailed
from sessionary.sync.gc.removal import Removal
from sessionary.sync.gc.removed import Removed
from sessionary.sync.settings import Settings
from sessionary.workspace import syncing
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import EPOCH, World

SPACE = "0" * 40
BLOCK = "00000000-00000000-" + 32 * "f"
OTHER = "00000000-00000001-" + 32 * "f"
DATA = b"what was stored, to the byte"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def rename(path: Path) -> None:
    """The name is stored on a disk too: a block of another number."""
    path.rename(path.with_name(path.name.replace("-0000000", "-0001000", 1)))


def without_hash(path: Path) -> None:
    path.rename(path.with_name(path.name.partition(".")[0]))


def another_space(path: Path) -> None:
    path.parent.rename(path.parent.with_name("1" * 40))


def folder(path: Path) -> None:
    """What cannot be read at all."""
    path.unlink()
    path.mkdir()


Damage = Callable[[Path], None]
OF_BYTES: list[Damage] = [flip, cut_off, empty, lengthen]


def kept(root: Path) -> Removed:
    return Removed(str(root / "removed"))


def files(root: Path, block: str) -> list[Path]:
    return sorted((root / "removed").glob(f"2*/*/{block}*"))


def test_what_was_kept_is_given_back_to_the_byte(tmp_path: Path) -> None:
    here = kept(tmp_path)
    here.keep(here.begin(EPOCH), SPACE, BLOCK, DATA)
    assert {space: {name: get() for name, get in got.items()} for space, got in here.blocks().items()} == {
        SPACE: {BLOCK: DATA}
    }


@pytest.mark.parametrize("damage", [*OF_BYTES, rename, without_hash, another_space])
def test_what_this_disk_has_changed_is_not_sent(damage: Damage, tmp_path: Path) -> None:
    here = kept(tmp_path)
    here.keep(here.begin(EPOCH), SPACE, BLOCK, DATA)
    (path,) = files(tmp_path, BLOCK)
    damage(path)
    ((get,),) = (got.values() for got in here.blocks().values())
    with pytest.raises(Corrupt, match="which was removed from the remote, is damaged") as caught:
        get()
    assert caught.value.path is not None
    assert Path(caught.value.path).exists(), "it stays where it is"
    assert "backup" in (caught.value.hint or "")


def test_what_cannot_be_read_proves_nothing(tmp_path: Path) -> None:
    here = kept(tmp_path)
    here.keep(here.begin(EPOCH), SPACE, BLOCK, DATA)
    folder(*files(tmp_path, BLOCK))
    with pytest.raises(StorageFailed):
        here.blocks()[SPACE][BLOCK]()


@pytest.mark.parametrize("damaged", [0, 1])
@pytest.mark.parametrize("damage", [flip, folder])
def test_the_copy_with_a_valid_proof_is_used(damage: Damage, damaged: int, tmp_path: Path) -> None:
    here = kept(tmp_path)
    runs = [here.begin(EPOCH + timedelta(days=day)) for day in (0, 1)]
    for run in runs:
        here.keep(run, SPACE, BLOCK, DATA)
    damage(files(tmp_path, BLOCK)[damaged])
    assert here.blocks()[SPACE][BLOCK]() == DATA
    assert here.blocks(runs[damaged])[SPACE][BLOCK]() == DATA, (
        "though the run itself has only the damaged one"
    )


def test_of_one_run_only_its_blocks_are_named(tmp_path: Path) -> None:
    here = kept(tmp_path)
    runs = [here.begin(EPOCH + timedelta(days=day)) for day in (0, 1)]
    for run, block in zip(runs, (BLOCK, OTHER), strict=True):
        here.keep(run, SPACE, block, DATA)
    assert [list(here.blocks(run)[SPACE]) for run in runs] == [[BLOCK], [OTHER]]


@pytest.mark.parametrize("damage", OF_BYTES)
def test_a_block_that_is_kept_once_more_is_kept_whole(damage: Damage, tmp_path: Path) -> None:
    here = kept(tmp_path)
    for _ in range(2):
        run = here.begin(EPOCH)
        here.keep(run, SPACE, BLOCK, DATA)
        assert here.blocks()[SPACE][BLOCK]() == DATA
        damage(*files(tmp_path, BLOCK))


def test_a_missing_run_in_progress_is_unknown(tmp_path: Path) -> None:
    here = kept(tmp_path)
    run = here.begin(EPOCH)
    assert here.open_run() == run
    flip(tmp_path / "removed" / "open")
    assert here.open_run() == "", "all that is kept is looked at, not nothing"


class Gone:
    """A session of which blocks that its head needs were removed by a run that was cut off."""

    def __init__(self, root: Path, *, stray: bool = False) -> None:
        self.server = MemoryServer()
        self.world = World(root, self.server.remote, 2, block=200)
        self.a, self.b = self.world.devices
        self.world.say(self.a, "one", 5, 150)
        self.a.engine(self.server.remote()).push()
        (self.space,) = self.server.tenants["me"].blocks
        if stray:  # of one number there are two now, so that the chain has to be read
            last = sorted(self.blocks())[4]
            self.server.remote().put_block(self.space, last[: -len(BLOCK[18:])] + BLOCK[18:], DATA)
        self.before = dict(self.blocks())
        transcript = sorted(name for name in self.before if not name.endswith(BLOCK[18:]))[:5]
        self.gone = transcript[1:4]
        here = kept(self.b.root)
        run = here.begin(EPOCH)
        for stat in list(self.server.remote().list_blocks(self.space, "", "~").stats):
            if stat.id in self.gone:
                here.keep(run, self.space, stat.id, self.before[stat.id])
                self.server.remote().delete_block(self.space, stat.id, stat.version)

    def blocks(self) -> dict[str, bytes]:
        return self.server.tenants["me"].blocks[self.space]

    def finish(self) -> Removal:
        return self.b.remover(self.server.remote()).finish()


@pytest.mark.parametrize("stray", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("damage", [*OF_BYTES, folder])
def test_a_damaged_block_is_reported_and_not_put_back_and_all_others_are(
    damage: Damage, which: int, stray: bool, tmp_path: Path
) -> None:
    gone = Gone(tmp_path, stray=stray)
    bad = gone.gone[which]
    (path,) = files(gone.b.root, bad)
    data = path.read_bytes()
    damage(path)
    done = gone.finish()
    assert gone.blocks() == {name: data for name, data in gone.before.items() if name != bad}
    assert (done.restored, done.is_whole) == (2, False)
    (error,) = done.spoilt
    assert isinstance(error, StorageFailed if damage is folder else Corrupt)
    assert error.path == str(path)
    assert path.exists()
    assert kept(gone.b.root).open_run() is None, "later runs do not wait for it"
    again = gone.b.remover(gone.server.remote()).remove()
    assert [one.path for one in again.spoilt] == [str(path)], "reported again as long as it is needed"
    path.rmdir() if damage is folder else path.unlink()
    path.write_bytes(data)
    whole = gone.b.remover(gone.server.remote()).remove()
    assert (whole.spoilt, whole.restored, whole.missing) == ([], 1, 0)
    assert gone.blocks() == gone.before
    gone.world.check()


def test_a_damaged_block_is_reported_once_however_often_it_is_looked_for(tmp_path: Path) -> None:
    gone = Gone(tmp_path)
    flip(*files(gone.b.root, gone.gone[1]))
    done = gone.b.remover(gone.server.remote()).remove()  # which finishes the one that was cut off first
    assert (len(done.spoilt), done.restored) == (1, 2)


def test_a_damaged_block_that_is_not_needed_causes_no_error(tmp_path: Path) -> None:
    gone = Gone(tmp_path)
    here = kept(gone.b.root)
    here.keep(here.begin(EPOCH + timedelta(days=1)), gone.space, BLOCK, DATA)
    flip(*files(gone.b.root, BLOCK))
    done = gone.b.remover(gone.server.remote()).remove()
    assert (done.spoilt, done.restored, done.is_whole) == ([], 3, True)


def test_in_doubt_all_but_the_damaged_are_put_back(tmp_path: Path) -> None:
    gone = Gone(tmp_path)
    gone.server.remote().swap_head("new", b'{"v": 99}', None)
    flip(*files(gone.b.root, gone.gone[0]))
    done = gone.finish()
    assert (done.restored, len(done.spoilt)) == (2, 1)
    assert set(gone.gone) & gone.blocks().keys() == set(gone.gone[1:])


# -- what is reported


def spoilt(count: int) -> list[SessionaryError]:
    return [
        Corrupt(f"block {n} is damaged", path=f"/removed/{n}", hint="bring it back") for n in range(count)
    ]


def test_the_command_names_the_files_and_the_remedy() -> None:
    reported = list(gc._removal_lines(Removal(spoilt=spoilt(2))))
    assert reported[:-1] == [
        "! 2 blocks not restored, though a session may need them",
        "    block 0 is damaged: /removed/0",
        "    block 1 is damaged: /removed/1",
        "    bring it back",
    ]
    assert list(gc._removal_lines(Removal(spoilt=spoilt(9))))[6] == "    and 4 more; --json lists all"
    found = gc._document(Removal().found, Removal(spoilt=spoilt(9)))
    assert [one["path"] for one in found["spoilt"]] == [f"/removed/{n}" for n in range(9)]
    assert found["spoilt"][0]["error"] == "Corrupt"


def test_a_push_or_pull_that_finishes_a_removal_reports_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = Settings(remote="s3://bucket", tenant="me", device="here")
    gone = Gone(tmp_path)
    root = Path(syncing.removed(settings).folder)
    root.parent.mkdir(parents=True)
    (gone.b.root / "removed").rename(root)
    (path,) = root.glob(f"2*/*/{gone.gone[0]}.*")
    flip(path)
    places.finish_removal(settings, gone.server.remote(), lambda seconds: None)
    reported = capsys.readouterr().err
    assert "not restored on the remote" in reported
    assert str(path) in reported
    assert len(gone.blocks()) == len(gone.before) - 1
