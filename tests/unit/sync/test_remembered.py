"""The synced state enters the next head: a state that the disk has damaged is not used and not sent."""

from pathlib import Path

from sessionary.sync.heads import decode
from sessionary.sync.report import SyncStatus
from sessionary.sync.state import States
from tests.support.memory_remote import MemoryServer
from tests.support.sync_world import Device


def agreed_file(device: Device) -> Path:
    (path,) = device.state.glob("*.state.json")
    return path


def another_space(data: bytes) -> bytes:
    """One digit of where the blocks lie: still a name, and there is nothing."""
    at = data.index(b'"space":"') + len(b'"space":"')
    return data[:at] + b"%x" % (int(data[at : at + 1], 16) ^ 1) + data[at + 1 :]


def test_a_digit_that_the_disk_has_changed_comes_into_no_head(tmp_path: Path) -> None:
    server = MemoryServer()
    a, b = Device(tmp_path, "a"), Device(tmp_path, "b")
    a.write("one", ["begins"])
    a.engine(server.remote()).push()
    ((name, (before, _)),) = server.tenants["me"].heads.items()
    path = agreed_file(a)
    path.write_bytes(another_space(path.read_bytes()))
    a.write("one", ["goes on"])
    for verb in (
        "push",
        "pull",
        "push",
    ):  # compared anew: of documents there may be two versions, a pull keeps both
        getattr(a.engine(server.remote()), verb)()
    after = decode(name, server.tenants["me"].heads[name][0])
    assert after.count > decode(name, before).count
    assert after.space == decode(name, before).space
    assert [one.standing for one in b.engine(server.remote()).pull().outcomes] == [SyncStatus.PULLED]
    assert b.lines("one") == a.lines("one")


def test_every_flipped_bit_of_the_state_is_detected(tmp_path: Path) -> None:
    server, a = MemoryServer(), Device(tmp_path, "a")
    a.write("one", ["begins"])
    a.engine(server.remote()).push()
    path, states = agreed_file(a), States(str(a.state))
    whole, name = path.read_bytes(), path.name.partition(".")[0]
    known = states.agreed(name)
    assert known is not None
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert states.agreed(name) is None, f"byte {at}"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert states.agreed(name) in (None, known), f"cut off after {end} bytes"
    path.write_bytes(whole)
    assert states.agreed(name) == known


def test_the_state_of_an_earlier_version_is_accepted(tmp_path: Path) -> None:
    server, a = MemoryServer(), Device(tmp_path, "a")
    a.write("one", ["begins"])
    a.engine(server.remote()).push()
    path = agreed_file(a)
    path.write_bytes(path.read_bytes().partition(b"\n")[0])
    assert States(str(a.state)).agreed(path.name.partition(".")[0]) is not None


def test_a_machine_keeps_its_name_and_gets_one_where_a_power_cut_left_none(tmp_path: Path) -> None:
    states = States(str(tmp_path))
    with states.lock().held():
        first = states.device()
        assert (states.device(), (tmp_path / "device").read_text()) == (first, first)
        (tmp_path / "device").write_bytes(b"")
        second = states.device()
    assert second not in ("", first)
    assert States(str(tmp_path)).device() == second
