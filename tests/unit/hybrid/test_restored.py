"""A remote that lost something while no program was running: the next one finds out, and sends it again."""

import time
from collections.abc import Callable

from tests.support.backed_up import BackedUp
from tests.support.memory_remote import MemoryServer
from tests.unit.hybrid.conftest import Machine


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_an_emptied_remote_is_filled_when_a_program_begins(
    machine: Callable[..., Machine], server: MemoryServer
) -> None:
    store = BackedUp(server)
    one = machine("one", tenant="me")
    for session in ("s", "t"):
        one.write("hello", session=session)
    one.sync()
    tenant = next(iter(server.tenants.values()))
    before = sorted(tenant.heads)
    assert len(before) == 2
    store.empty()
    assert not tenant.heads
    one.restart()
    until(lambda: sorted(tenant.heads) == before)
    two = machine("two", tenant="me")
    assert two.pull().pulled == 2
    assert two.files() == one.files()


def test_a_remote_that_was_put_back_is_brought_up_when_a_program_begins(
    machine: Callable[..., Machine], server: MemoryServer
) -> None:
    store = BackedUp(server)
    one = machine("one")
    one.write("hello")
    one.sync()
    store.back_up()
    one.write("more")
    one.sync()
    heads = next(iter(server.tenants.values())).heads
    ((name, (newest, _)),) = heads.items()
    store.put_back()
    assert heads[name][0] != newest
    one.restart()
    until(lambda: heads[name][0][:20] == newest[:20] and len(heads[name][0]) >= len(newest))
    two = machine("two")
    until(lambda: two.pull().errors == [] and two.texts() == ["hello", "more"])
