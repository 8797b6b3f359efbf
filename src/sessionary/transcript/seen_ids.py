"""A set of seen ids, in a few bytes: a filter that may take a new id for a known one, never the reverse."""

from __future__ import annotations

SIZE = 2048
_SMALLEST = 64
_BITS = 12
_PROBES = 3


class SeenIds:
    """A set of ids that only answers whether an id may be in it (a Bloom filter).

    Args:
        state: the `state` of another one; None for an empty set.
        room: the number of ids that will be added; more are allowed, and make wrong answers more likely.
    """

    def __init__(self, state: bytes | None = None, *, room: int = 0) -> None:
        size = _SMALLEST
        while size < min(room * _BITS // 8, SIZE):
            size *= 2
        self._bits = bytearray(state) if state else bytearray(size)

    def add(self, name: str) -> None:
        """Add an id."""
        for at in self._places(name):
            self._bits[at >> 3] |= 1 << (at & 7)

    def __contains__(self, name: str) -> bool:
        """True if the id was added, and for a few that were not."""
        return all(self._bits[at >> 3] >> (at & 7) & 1 for at in self._places(name))

    def state(self) -> bytes:
        """The set as bytes."""
        return bytes(self._bits)

    def _places(self, name: str) -> list[int]:
        from hashlib import blake2b  # here: a list that reads nothing does not need it

        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4 * _PROBES).digest()
        numbers = (int.from_bytes(digest[at : at + 4]) for at in range(0, len(digest), 4))
        return [number % (8 * len(self._bits)) for number in numbers]
