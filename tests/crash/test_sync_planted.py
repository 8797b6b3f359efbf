"""The tests of sync find known mistakes: each is planted in turn, and the sweep over some stage must fail."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessionary.disk import atomic
from sessionary.errors import SessionaryError
from sessionary.sync import blocks, diff, engine, local_files, pulling, state, upload_plan
from sessionary.sync.apply import Writer
from sessionary.sync.diff import Comparison, Verdict
from sessionary.sync.download import FetchedBlock, Range
from sessionary.sync.install import Placer
from sessionary.sync.pulling import Puller
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import blocks_of
from sessionary.sync.report import SyncStatus, outcome_of
from sessionary.sync.state import States
from tests.crash.sync_stages import STAGES, Stage, push, shared, sweep
from tests.crash.test_sync import test_a_power_cut_during_a_pull_loses_nothing as power_cut
from tests.support.memory_remote import MemoryRemote

Plant = Callable[[pytest.MonkeyPatch], None]


def swap_without_comparing(patch: pytest.MonkeyPatch) -> None:
    swap = MemoryRemote.swap_head

    def careless(self: MemoryRemote, name: str, data: bytes, etag: str | None) -> str | None:
        present = self.read_head(name)
        return swap(self, name, data, present.etag if present else None)

    patch.setattr(MemoryRemote, "swap_head", careless)


def push_without_intent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(States, "intend", lambda self, name, agreed: None)


def agree_before_the_swap(patch: pytest.MonkeyPatch) -> None:
    swap = Pusher._swap

    def hasty(self: Pusher, name: str, intended: Any, etag: str | None) -> str | None:
        self._states.agree(name, msgspec.structs.replace(intended, etag=etag or "1"))
        return swap(self, name, intended, etag)

    patch.setattr(Pusher, "_swap", hasty)


def agree_before_writing(patch: pytest.MonkeyPatch) -> None:
    merge, write = Puller._merge, Writer.write

    def hasty(self: Writer, found: Any, mine: Any, agreed: Any) -> str:
        puller, one = PLANTED_PULL[0]
        puller._agree(one, found)
        return write(self, found, mine, agreed)

    def merged(self: Puller, one: Any, *rest: Any) -> Any:
        PLANTED_PULL[:] = [(self, one)]
        return merge(self, one, *rest)

    patch.setattr(Writer, "write", hasty)
    patch.setattr(Puller, "_merge", merged)


PLANTED_PULL: list[Any] = []


def send_half_lines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(local_files, "whole_lines", lambda file, size: size)


def ids_without_history(patch: pytest.MonkeyPatch) -> None:
    def forgetful(key: str, seq: int, chain: str) -> str:
        return f"{key}-{seq:08}-same"

    patch.setattr(upload_plan, "block_id", forgetful)
    patch.setattr("sessionary.sync.download.block_id", forgetful)
    patch.setattr(blocks, "block_id", forgetful)


def pull_over_what_is_new_here(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(diff, "judge", lambda fs, here, theirs, rule: Verdict.THEIRS)


def drop_the_loser(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Comparison, "is_diverged", lambda self, rule: False)
    patch.setattr(
        Writer,
        "_keep_both",
        lambda self, name, found, mine: self._replace(name, found.theirs[name], mine.get(name), None),
    )


def copy_the_loser(patch: pytest.MonkeyPatch) -> None:
    move = atomic.move_folder

    def copy(source: str, target: str, *, fs: Any) -> None:
        if ".pull-" in source or ".trash" in target:
            move(source, target, fs=fs)
            return
        shutil.copytree(source, target, dirs_exist_ok=True)
        fs.mkdir(target + ".flushed")  # a moment in which the process may be killed
        fs.rmdir(target + ".flushed")
        shutil.rmtree(source)

    patch.setattr(atomic, "move_folder", copy)


def push_a_side_that_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Comparison, "is_diverged", lambda self, rule: False)
    patch.setattr(Comparison, "all_are", lambda self, *verdicts: True)


def bury_what_has_grown(patch: pytest.MonkeyPatch) -> None:
    bury = Pusher.bury

    def hard(self: Pusher, name: str, agreed: Any, shown: Any = None) -> Any:
        found = self._remote.read_head(name)
        assert found is not None
        return bury(self, name, msgspec.structs.replace(agreed, etag=found.etag))

    patch.setattr(Pusher, "bury", hard)


def trash_what_has_grown(patch: pytest.MonkeyPatch) -> None:
    def follow(self: Puller, one: Any, found: Any) -> Any:
        self._layout.trash(one.ref, self._now())
        self._agree(one, found)
        return outcome_of(one.head, SyncStatus.TRASHED)

    patch.setattr(Puller, "_follow_deletion", follow)


def push_trash_again(patch: pytest.MonkeyPatch) -> None:
    def keep(self: Puller, one: Any, found: Any) -> Any:
        self._agree(one, found)
        return outcome_of(one.head, SyncStatus.IN_STEP)

    patch.setattr(Puller, "_follow_deletion", keep)


def trust_the_first_page(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        engine, "heads_by_name", lambda remote: {one.name: one for one in remote.list_heads().heads}
    )


def take_all_blocks_of_a_range(patch: pytest.MonkeyPatch) -> None:
    """Ignore the chain: take the first block of each number, as if there were no forks and no lost races."""
    chain_of = "sessionary.sync.download._chain"

    def first_come(remote: Any, spool: Any, of: Range, last: str) -> Any:
        key = blocks.part_key(of.name)
        found: dict[int, Any] = {}
        for block in blocks_of(remote, of.space, *blocks.id_range(key, of.first, of.stop)):
            seq = int(block.id.split("-")[1])
            found.setdefault(seq, block)
        ids = [found[seq].id for seq in sorted(found)]
        chain = [blocks.unpack(one, found[seq].data) for one, seq in zip(ids, sorted(found), strict=True)]
        tips = [stored.prev for stored in chain[1:]] + [last]
        slots = [spool.put(found[seq].data) for seq in sorted(found)]
        return [
            FetchedBlock(one, tip, stored.prev, stored.raw, slot)
            for one, tip, stored, slot in zip(ids, tips, chain, slots, strict=True)
        ]

    patch.setattr(chain_of, first_come)


def never_settle_a_move(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Puller, "settle_move", lambda self, name: None)
    patch.setattr(Placer, "clear", lambda self, staged: None)


def one_sibling_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pulling, "sibling_id", lambda name, device, chain: state.sibling_id("n", "d", "c"))


def torn(world: Any) -> None:
    """The agent was killed in the middle of a line."""
    a, _ = shared(world)
    world.say(a, "one", 1)
    with open(a.sessions / "one" / "transcript.jsonl", "ab") as file:
        file.write(b'{"role": "user", "con')


def is_lost(world: Any) -> None:
    """The disk of the other device dies: of what it had pushed only the remote has anything."""
    world.devices[1:] = []


def is_seen(world: Any) -> None:
    """The other device looks, and only then does the agent here come back and heal its file."""
    a, b = world.devices
    b.engine(world.remote()).pull()
    assert (b.sessions / "one" / "transcript.jsonl").read_bytes().endswith(b"\n")
    path = a.sessions / "one" / "transcript.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"\n") + 1])


def goes_on_there(world: Any) -> None:
    """The user continues under the old name, if it exists."""
    if "one" in world.devices[0].names():
        world.say(world.devices[0], "one")


def twice_on_both(world: Any) -> None:
    a, b = shared(world)
    for turn in range(2):
        world.say(a, "one", 2)
        world.say(b, "one", 2)
        push(b, world)
        if not turn:
            a.engine(world.remote()).pull()


def rewinds(world: Any) -> None:
    """The answer to the push was lost, and the user has rewound since then."""
    a = world.devices[0]
    world.take_back(a.rewind("one", 2))
    world.shortened.add("one")


def has_two(world: Any) -> None:
    assert all(len(device.lines("one")) == 2 for device in world.devices)


def many(world: Any) -> None:
    for n in range(3):
        world.say(world.devices[1], f"s{n}", 1)
    push(world.devices[1], world)


BY_NAME = {stage.name: stage for stage in STAGES}
TORN = Stage("torn here", torn, engine.Engine.push, then=is_seen)
TWICE = Stage("twice on both", twice_on_both, engine.Engine.pull)
TAKEN_BACK = Stage(
    "grown here, then rewound", BY_NAME["grown here"].prepare, engine.Engine.push, has_two, rewinds
)

PUSHED_BY_BOTH = Stage(
    "grown on both, pushed, and one is lost",
    BY_NAME["grown on both, pushed"].prepare,
    engine.Engine.push,
    then=is_lost,
)
TRASHED_AND_LOST = Stage(
    "trashed here, grown there, pushed, and one is lost",
    BY_NAME["trashed here, grown there, pushed"].prepare,
    engine.Engine.push,
    then=is_lost,
)

PLANTED: list[tuple[Plant, Stage]] = [
    (swap_without_comparing, PUSHED_BY_BOTH),
    (push_without_intent, TAKEN_BACK),
    (agree_before_the_swap, BY_NAME["grown here"]),
    (agree_before_writing, BY_NAME["grown there"]),
    (send_half_lines, TORN),
    (ids_without_history, BY_NAME["rewound here"]),
    (pull_over_what_is_new_here, BY_NAME["grown on both"]),
    (drop_the_loser, BY_NAME["grown on both"]),
    (
        copy_the_loser,
        Stage("copied", BY_NAME["grown on both"].prepare, engine.Engine.pull, then=goes_on_there),
    ),
    (push_a_side_that_lost, BY_NAME["grown on both, pushed"]),
    (bury_what_has_grown, TRASHED_AND_LOST),
    (trash_what_has_grown, BY_NAME["grown here, trashed there"]),
    (push_trash_again, BY_NAME["trashed there"]),
    (trust_the_first_page, Stage("many", many, engine.Engine.pull)),
    (take_all_blocks_of_a_range, BY_NAME["forked here"]),
    (never_settle_a_move, BY_NAME["grown on both"]),
    (one_sibling_id, TWICE),
]


@pytest.mark.parametrize(
    "stage", {stage.name: stage for _, stage in PLANTED}.values(), ids=lambda s: str(s.name)
)
def test_without_a_mistake_the_stage_passes(stage: Stage, tmp_path: Path) -> None:
    if stage.name not in BY_NAME:  # those are swept elsewhere
        assert sweep(stage, tmp_path) > 10


@pytest.mark.parametrize(("plant", "stage"), PLANTED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_planted_mistake_is_found(
    plant: Plant, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, SessionaryError, OSError)):
        sweep(stage, tmp_path)


def test_a_file_that_is_renamed_before_it_is_flushed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = atomic.write_new
    monkeypatch.setattr(
        atomic, "write_new", lambda fs, path, data, like, durable=True: write(fs, path, data, like, False)
    )
    with pytest.raises(AssertionError, match="violations"):
        power_cut("grown there", tmp_path)
