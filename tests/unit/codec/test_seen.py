"""Keys and records that were seen before."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec.seen import Seen, digest_of

DIGEST = st.builds(bytes, st.lists(st.integers(0, 1), min_size=8, max_size=8))


@given(st.lists(DIGEST, max_size=40), st.integers(0, 40))
def test_the_first_number_of_a_digest_is_kept(digests: list[bytes], cut: int) -> None:
    first: dict[bytes, int] = {}
    seen = Seen()
    for number, digest in enumerate(digests):
        if number == cut:
            seen = msgspec.msgpack.decode(msgspec.msgpack.encode(seen), type=Seen)
        assert (digest in seen) == (digest in first)
        assert seen.add(digest, number) == first.get(digest)
        first.setdefault(digest, number)


def test_a_key_takes_some_bytes() -> None:
    seen = Seen()
    digests = [digest_of(f"call_{number}") for number in range(5000)]
    assert all(seen.add(digest, number) is None for number, digest in enumerate(digests))
    assert [seen.add(digest) for digest in digests] == list(range(5000))
    assert digest_of("call_5000") not in seen
    assert len(msgspec.msgpack.encode(seen)) < 16 * 5000
