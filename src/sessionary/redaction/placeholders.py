"""Numbered marks: the same secret gets the same mark, so a reader can still see what belongs together."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b


class Placeholders:
    """Marks such as ``[redacted: GitHub token 1]``. Keeps a hash of each secret, not the secret.

    Attributes:
        counts: how often each rule has matched.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._marks: dict[bytes, str] = {}
        self._last: Counter[str] = Counter()

    def __call__(self, rule: str, secret: str) -> str:
        """Return the mark of a secret, and count the match."""
        self.counts[rule] += 1
        digest = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest not in self._marks:
            self._last[rule] += 1
            self._marks[digest] = f"[redacted: {rule} {self._last[rule]}]"
        return self._marks[digest]
