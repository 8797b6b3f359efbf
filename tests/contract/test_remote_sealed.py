"""A sealed remote keeps the rules of all remotes, and the store beneath it learns nothing of what it keeps."""

import random
import sys
from pathlib import Path
from typing import Any

import pyrage
import pytest

from sessionary.errors import Invalid, RemoteError, Unsupported
from sessionary.sync.blocks import BLOCK
from sessionary.sync.remote import blocks_of, heads_of, stats_of
from sessionary.sync.remotes.sealed import MARK, SealedRemote
from sessionary.sync.report import SyncStatus
from sessionary.sync.retry import RetryingRemote
from sessionary.testing.remote_suite import SPACE, RemoteTests, ids
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import Device, World, live

KEY = str(pyrage.x25519.Identity.generate())
OTHER = str(pyrage.x25519.Identity.generate())


class TestSealedMemory(RemoteTests):
    largest = SealedRemote.largest

    def setup_method(self) -> None:
        self.server = MemoryServer()

    def remote(self, tenant: str = "me") -> SealedRemote:
        return SealedRemote(self.server.remote(tenant), KEY)

    def get_raw(self, space: str, block: str) -> bytes | None:
        """By another of its kind: that nothing else can read it is shown below."""
        found = {
            one.id: one.data for one in blocks_of(SealedRemote(self.server.remote(), KEY), space, "", "~")
        }
        return found.get(block)

    def put_raw(self, space: str, block: str, data: bytes) -> None:
        SealedRemote(self.server.remote(), KEY).put_block(space, block, data)


class TestSealedMemoryInSmallPages(TestSealedMemory):
    def setup_method(self) -> None:
        self.server = MemoryServer(page_bytes=1, page_heads=1)

    def test_blocks_of_one_number_come_in_order_over_many_pages(self) -> None:
        names = sorted(f"a-{number:08}-{chain}" for number in range(4) for chain in ("c", "a", "e", "b", "d"))
        for name in reversed(names):
            self.put_raw(SPACE, name, name.encode())
        self.put_raw(SPACE, "b-00000001-a", b"of another file")
        assert ids(self.remote(), "a-00000000", "a-00000004") == names
        assert ids(self.remote(), "a-00000001", "a-00000002-b") == names[5:11]

    def test_a_page_may_end_at_any_block_of_a_number(self) -> None:
        names = [f"a-{number:08}-{chain}" for number in range(3) for chain in "abc"]
        for name in names:
            self.put_raw(SPACE, name, b"x")
        for at, name in enumerate(names):
            page = self.remote().read_range(SPACE, "a-00000000", "a-00000003", name)
            assert [block.id for block in page.blocks] == names[at + 1 :][: len(page.blocks)]
            assert page.blocks or (at == len(names) - 1 and page.following is None)


def world_of(server: MemoryServer, root: Path, block: int = BLOCK) -> World:
    return World(root, lambda: SealedRemote(server.remote(), KEY), block=block)


def everything(server: MemoryServer) -> list[bytes]:
    """All that the store has: names and contents."""
    tenant = server.tenants["me"]
    return [
        *(name.encode() for name in tenant.heads),
        *(data for data, _ in tenant.heads.values()),
        *(space.encode() for space in tenant.blocks),
        *(block.encode() for found in tenant.blocks.values() for block in found),
        *(data for found in tenant.blocks.values() for data in found.values()),
    ]


def test_nothing_of_a_session_can_be_read_in_the_store(tmp_path: Path) -> None:
    """The same push without a key shows what there would be to find."""
    plain, sealed = MemoryServer(), MemoryServer()
    world = world_of(sealed, tmp_path)
    device = world.devices[0]
    world.say(device, "a-session-with-a-name", 3, 2000)
    device.describe("a-session-with-a-name", title="a title")
    device.engine(world.remote()).push()
    Device(tmp_path, "device0").engine(plain.remote()).states.forget("unused")
    other = Device(tmp_path, "plain")
    other.write("a-session-with-a-name", ["x"])
    other.engine(plain.remote()).push()
    words = [b"a-session-with-a-name", b"transcript", b"metadata", b"amplifier", b"-work", b"prev", b"device"]
    for word in words:
        assert any(word in data for data in everything(plain)), f"{word!r} would not be found at all"
        assert not any(word in data for data in everything(sealed)), f"{word!r} can be read"
    ours, theirs = (set(server.tenants["me"].heads) for server in (plain, sealed))
    assert not ours & theirs, "the name of a head reveals its owner"
    chains = {block[-32:] for found in plain.tenants["me"].blocks.values() for block in found}
    assert not any(chain.encode() in data for chain in chains for data in everything(sealed))


def test_two_stores_with_other_keys_have_no_name_in_common() -> None:
    names = []
    for key in (KEY, OTHER):
        server = MemoryServer()
        remote = SealedRemote(server.remote(), key)
        remote.put_block(SPACE, "a-00000001-ff", b"the same")
        remote.swap_head("one", b"the same", None)
        tenant = server.tenants["me"]
        names.append(
            {*tenant.heads, *tenant.blocks, *(one for found in tenant.blocks.values() for one in found)}
        )
    assert names[0] & names[1] == {MARK}


def test_two_devices_share_sessions_through_a_sealed_remote(tmp_path: Path) -> None:
    server = MemoryServer(page_bytes=500, page_heads=2)
    world = world_of(server, tmp_path)
    a, b = world.devices
    world.say(a, "one", 4, 900)
    a.engine(world.remote()).push()
    b.engine(world.remote()).pull()
    world.say(a, "one", 2)
    world.say(b, "one", 3)
    world.fork(a, "one", "fork", 2)
    world.check()
    assert len(b.names()) == 3


def test_devices_on_a_bad_network_lose_and_double_nothing_of_what_is_sealed(tmp_path: Path) -> None:
    for seed in range(6):
        fate = random.Random(seed)
        server = MemoryServer(page_bytes=3000, page_heads=3)
        world = world_of(server, tmp_path / str(seed), block=600)
        live(world, fate, 40)
        world.check()
        assert world.said > 0


def test_a_wrong_key_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    server = MemoryServer()
    world = world_of(server, tmp_path)
    world.say(world.devices[0], "one", 3)
    world.devices[0].engine(world.remote()).push()
    before, kept = everything(server), world.devices[1]
    world.say(kept, "two", 3)
    files = kept.files()
    with pytest.raises(RemoteError, match="another key") as caught:
        kept.engine(SealedRemote(server.remote(), OTHER)).pull()
    assert not caught.value.retryable
    assert "the key with which it was set up" in (caught.value.hint or "")
    report = kept.engine(SealedRemote(server.remote(), OTHER)).push()
    assert [one.standing for one in report.outcomes] == [SyncStatus.FAILED]
    assert "another key" in report.outcomes[0].note
    assert everything(server) == before
    assert kept.files() == files


def test_what_is_not_encrypted_is_not_continued_encrypted() -> None:
    server = MemoryServer()
    server.remote().swap_head("one", b"plain", None)
    with pytest.raises(RemoteError, match="not encrypted"):
        SealedRemote(server.remote(), KEY).swap_head("two", b"secret", None)
    assert [head.name for head in heads_of(server.remote())] == ["one"]


@pytest.mark.parametrize("key", ["", "AGE-SECRET-KEY-1NONSENSE", "age1mweruda8vfl7du63dzyyqnwxzpz9s0dwcf5nf"])
def test_what_is_not_a_key_is_refused_and_not_repeated_in_the_message(key: str) -> None:
    with pytest.raises(Invalid, match="not an age key") as caught:
        SealedRemote(MemoryServer().remote(), key)
    assert not key or key not in str(caught.value)


def test_a_key_may_have_blanks_around_it_and_be_of_small_letters() -> None:
    server = MemoryServer()
    SealedRemote(server.remote(), KEY).put_block(SPACE, "a", b"x")
    assert ids(SealedRemote(server.remote(), f" {KEY.lower()}\n")) == ["a"]


# -- a store that does evil


def two_blocks() -> tuple[MemoryServer, dict[str, bytes]]:
    server = MemoryServer()
    remote = SealedRemote(server.remote(), KEY)
    for n in range(2):
        remote.put_block(SPACE, f"a-{n:08}-f", b"%d" % n)
    (stored,) = server.tenants["me"].blocks.values()
    return server, stored


def changed(stored: dict[str, bytes]) -> None:
    name = min(stored)
    stored[name] = stored[name][:-1] + bytes([stored[name][-1] ^ 1])


def exchanged(stored: dict[str, bytes]) -> None:
    one, two = stored
    stored[one], stored[two] = stored[two], stored[one]


def forged(stored: dict[str, bytes]) -> None:
    """By an attacker who knows the public key, which is not a secret."""
    public = pyrage.x25519.Identity.from_str(KEY).to_public()
    stored[min(stored)] = pyrage.encrypt(bytes(32) + b"a-00000000-f\nforged", [public])


@pytest.mark.parametrize("evil", [changed, exchanged, forged])
def test_a_store_can_neither_change_nor_exchange_nor_make_up_a_block(evil: Any) -> None:
    server, stored = two_blocks()
    evil(stored)
    with pytest.raises(RemoteError, match="cannot be decrypted") as caught:
        ids(SealedRemote(server.remote(), KEY))
    assert not caught.value.retryable


def test_a_block_cannot_be_passed_off_as_one_of_another_space() -> None:
    server, stored = two_blocks()
    remote = SealedRemote(server.remote(), KEY)
    remote.put_block("space-2", "a-00000000-f", b"2")
    other = next(found for found in server.tenants["me"].blocks.values() if found is not stored)
    other[next(iter(other))] = stored[min(stored)]
    with pytest.raises(RemoteError, match="cannot be decrypted"):
        ids(remote, space="space-2")


def test_a_head_that_was_exchanged_spoils_only_its_own_session(tmp_path: Path) -> None:
    server = MemoryServer()
    world = world_of(server, tmp_path)
    a, b = world.devices
    for name in ("one", "two"):
        world.say(a, name, 2)
    a.engine(world.remote()).push()
    heads = server.tenants["me"].heads
    one, two = (name for name in heads if name != MARK)
    heads[one] = heads[two][0], heads[one][1]
    report = b.engine(world.remote()).pull()
    assert sorted(outcome.standing.value for outcome in report.outcomes) == ["failed", "pulled"]
    assert len(b.names()) == 1


def test_a_missing_library_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrage", None)
    with pytest.raises(Unsupported, match="pyrage") as caught:
        SealedRemote(MemoryServer().remote(), KEY)
    assert caught.value.hint == "pip install 'sessionary[encryption]'"


def test_a_list_reads_no_block_that_was_just_put_and_reports_each_that_it_reads() -> None:
    server = MemoryServer()
    names = [f"a-{number:08}-f" for number in range(4)]
    patient = RetryingRemote(SealedRemote(server.remote(), KEY))
    for name in names[1:]:
        patient.put_block(SPACE, name, bytes(1000))
    down = patient.cost.bytes_down
    assert [stat.id for stat in stats_of(patient, SPACE)] == names[1:]
    assert patient.cost.bytes_down == down
    SealedRemote(server.remote(), KEY).put_block(SPACE, names[0], bytes(1000))
    (stored,) = (block for block in server.remote().read_range(only_space(server), "", "~").blocks[:1])
    assert [stat.id for stat in stats_of(patient, SPACE)] == names
    assert patient.cost.bytes_down == down + len(stored.data)


def test_a_block_of_one_space_does_not_exist_in_another() -> None:
    server = MemoryServer()
    remote = SealedRemote(server.remote(), KEY)
    remote.put_block(SPACE, "a-00000000-f", b"x")
    remote.put_block("other", "a-00000001-f", b"x")
    assert [stat.id for stat in stats_of(remote, SPACE)] == ["a-00000000-f"]
    assert [stat.id for stat in stats_of(remote, "other")] == ["a-00000001-f"]


def test_a_block_that_another_client_removed_is_not_listed() -> None:
    server = MemoryServer()
    remote, other = (SealedRemote(server.remote(), KEY) for _ in range(2))
    remote.put_block(SPACE, "a-00000000-f", b"x")
    (stat,) = stats_of(other, SPACE)
    assert other.delete_block(SPACE, stat.id, stat.version)
    assert list(stats_of(remote, SPACE)) == []


def only_space(server: MemoryServer) -> str:
    (space,) = server.tenants["me"].blocks
    return space
