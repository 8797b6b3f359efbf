"""Keys and records that were seen before."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec.seen import Seen


@given(st.lists(st.binary(max_size=3), max_size=40), st.integers(0, 40))
def test_the_first_number_of_a_key_is_kept(keys: list[bytes], cut: int) -> None:
    first: dict[bytes, int] = {}
    seen = Seen()
    for number, key in enumerate(keys):
        if number == cut:
            seen = msgspec.msgpack.decode(msgspec.msgpack.encode(seen), type=Seen)
        assert (key in seen) == (key in first)
        assert seen.add(key, number) == first.get(key)
        first.setdefault(key, number)


def test_a_key_takes_some_bytes() -> None:
    seen = Seen()
    keys = [f"call_{number}".encode() for number in range(5000)]
    assert all(seen.add(key, number) is None for number, key in enumerate(keys))
    assert [seen.add(key) for key in keys] == list(range(5000))
    assert b"call_5000" not in seen
    assert len(msgspec.msgpack.encode(seen)) < 16 * 5000
