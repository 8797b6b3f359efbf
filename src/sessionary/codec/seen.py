"""Sets of seen keys and seen records, in a few bytes for each."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from stringzilla import hash as hash_of

from sessionary.codec.problems import Place, problem
from sessionary.model import Problem, Record

_HASH, _NUMBER = 8, 5
_WIDTH = _HASH + _NUMBER


class Seen(Struct, array_like=True):
    """The number of the first occurrence of each digest, in 13 bytes for both.

    All fields are plain values, so that the state can be stored and continued.
    """

    buckets: dict[int, bytearray] = field(default_factory=dict)

    def add(self, digest: bytes, number: int = 0) -> int | None:
        """Return the number with which a digest was added first; None if it is new, and add it then.

        Args:
            digest: 8 bytes of a hash.
            number: at most 5 bytes.
        """
        held = self.buckets.setdefault(digest[0] << 2 | digest[1] >> 6, bytearray())
        first = _number(held, digest) if digest in held else None
        if first is None:
            held += digest + number.to_bytes(_NUMBER, "big")
        return first

    def newest(self, count: int) -> Seen:
        """A set of the digests with the greatest numbers only; this set if it has no more."""
        if sum(map(len, self.buckets.values())) <= count * _WIDTH:
            return self
        all_ = [
            (held[at + _HASH : at + _WIDTH], held[at : at + _HASH])
            for held in self.buckets.values()
            for at in range(0, len(held), _WIDTH)
        ]
        kept = Seen()
        for number, digest in sorted(all_)[-count:]:
            kept.add(bytes(digest), int.from_bytes(number, "big"))
        return kept

    def __contains__(self, digest: bytes) -> bool:
        return _number(self.buckets.get(digest[0] << 2 | digest[1] >> 6, b""), digest) is not None


def digest_of(text: str) -> bytes:
    """The digest of a text, the same in every process."""
    return _digest(text.encode("utf-8", "surrogatepass"))


def _digest(data: bytes) -> bytes:
    digest: bytes = hash_of(data).to_bytes(_HASH, "big")
    return digest


def _number(held: bytes | bytearray, digest: bytes) -> int | None:
    at = held.find(digest)
    while at >= 0 and at % _WIDTH:
        at = held.find(digest, at + 1)
    return int.from_bytes(held[at + _HASH : at + _WIDTH], "big") if at >= 0 else None


class RisingTimes:
    """Whether no record of a file can repeat an earlier one: their times rise, and none of them has an id.

    Nearly all files are so, and the search for duplicates is left out: it costs as much as decoding.

    Attributes:
        hold: True as long as that is so.
    """

    def __init__(self) -> None:
        self.hold = True
        self._last = ""

    def take(self, value: dict[str, Any]) -> None:
        """Process the next record. Times are compared as they are written, in one format."""
        time = value.get("timestamp")
        if "id" in value or "uuid" in value:
            self.hold = False
        elif isinstance(time, str):
            rises = time > self._last and len(time) == len(self._last or time)
            self.hold, self._last = self.hold and rises, time
        elif "timestamp" in value:
            self.hold = False


class Duplicates:
    """Finds the repeated records of a file, record by record.

    Records are compared by ``id`` or ``uuid``. A record without either counts if it has a timestamp and is repeated
    byte for byte; two equal short answers without a timestamp are two answers.
    """

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._exact, self._by_id = Seen(), Seen()

    def take(self, record: Record) -> Problem | None:
        """Return a note if a record repeats an earlier one."""
        value = record.value
        if "id" in value or "uuid" in value:
            identity = next(
                (key + value[key] for key in ("id", "uuid") if isinstance(value.get(key), str)), None
            )
        else:
            identity = None
        if identity is None and "timestamp" not in value:
            return None
        same = self._exact.add(_digest(record.raw), record.line)
        other = None if identity is None else self._by_id.add(digest_of(identity), record.line)
        if same is not None:
            return self._again("duplicate_record", record, f"the same record as line {same}")
        if other is not None:
            return self._again("changed_duplicate", record, f"another version of the record of line {other}")
        return None

    def _again(self, code: str, record: Record, words: str) -> Problem:
        return problem(code, Place(self._path, record.line, record.byte), len(record.raw), words)
