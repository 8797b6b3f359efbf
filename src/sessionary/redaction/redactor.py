"""Redaction of text, JSON values and files.

In JSON only strings are redacted, by meaning, not by spelling, so it stays JSON; a line without a secret keeps its
bytes. A string that is JSON itself is redacted in the same way. Each line is redacted on its own, so a line that sync
has sent never changes. Redacted text is not matched again: the mark matches none of the kept rules, and a user's rule
that matches it is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b, sha256
from typing import Any

from sessionary.codec import Undecodable, decode, encode_document, encode_line, sanitize
from sessionary.distinct_keys import with_distinct_keys
from sessionary.errors import Invalid
from sessionary.redaction.rules import ALWAYS_KEYS, BY_KEY, COMMON, HINTS, MARK, SECRET_KEYS

Mark = Callable[[str, str], str]
"""Returns the mark of a secret, given the name of the rule and the secret."""

_SHORTEST = 6
_NESTED = ("{", "[")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Printable ASCII that JSON need not escape; not the quote and the backslash, which it must.
_ESCAPED = re.compile(r"\\u00(?!22|5[cC])([2-7][0-9a-fA-F])")


def same_mark(rule: str, secret: str) -> str:
    """One mark for every secret."""
    return MARK


class Redaction:
    """The redaction rules.

    Args:
        rules: additional rules: regular expressions by name. If one has a group, the text of the group is kept.
            One with the name of a kept rule replaces it; None turns it off.
        common: also use the rules of `COMMON`, and mask what is under one of `SECRET_KEYS`.

    Raises:
        Invalid: a rule is not a regular expression, or matches redacted text.
    """

    def __init__(
        self, rules: Mapping[str, str | None] | None = None, *, common: bool = True, mark: Mark = same_mark
    ) -> None:
        asked = {**(COMMON if common else {}), **(rules or {})}
        chosen = {name: text for name, text in asked.items() if text is not None}
        self._rules = [(name, _compiled(name, text), HINTS.get(text)) for name, text in chosen.items()]
        self._keys = SECRET_KEYS if common else ALWAYS_KEYS
        self._mark = mark
        self.digest: bytes = sha256("\0".join(chosen.values()).encode()).digest()

    def text(self, text: str) -> str:
        """Return a text with its secrets redacted; also those that are spelt with escapes of JSON."""
        if "\\u00" not in text:
            return self._plain(text)
        plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
        redacted = self._plain(plain)
        return text if redacted == plain else redacted

    def _plain(self, text: str) -> str:
        """Apply each rule to what no earlier rule has matched."""
        pieces = [text]  # at odd places stand marks
        lower = text.lower()
        for name, rule, hints in self._rules:
            if hints is not None and not any(hint in lower for hint in hints):
                continue
            if any(rule.search(piece) for piece in pieces[::2]):
                pieces = [
                    new
                    for at, piece in enumerate(pieces)
                    for new in ([piece] if at % 2 else self._split(name, rule, piece))
                ]
        return "".join(pieces)

    def _split(self, name: str, rule: re.Pattern[str], text: str) -> list[str]:
        """Text, mark, text, … of one text."""
        pieces, end = [], 0
        for found in rule.finditer(text):
            kept = found[1] if rule.groups and found[1] is not None else ""
            pieces += [text[end : found.start()] + kept, self._mark(name, found[0][len(kept) :])]
            end = found.end()
        return [*pieces, text[end:]]

    def value(self, value: Any) -> Any:
        """Return a JSON value with the secrets in its strings and keys redacted; also in strings that are JSON."""
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return with_distinct_keys((self.text(key), self._under(key, one)) for key, one in value.items())
        return value

    def _string(self, text: str) -> str:
        """Redact a string of JSON."""
        if self._keys is SECRET_KEYS and text.lstrip()[:1] in _NESTED:
            try:
                inner = decode(text.encode("utf-8", "surrogatepass"))
            except Undecodable:
                return self.text(text)
            redacted = self.value(inner)
            if redacted != inner:
                return encode_line(sanitize(redacted)).decode()
        return self.text(text)

    def line(self, line: bytes) -> bytes:
        """Redact a line of a journal without its newline; the same bytes if it has no secret."""
        return self._json(line, encode_line) or self._raw(line)

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the redacted lines of a journal, with their newlines."""
        for line in lines:
            yield self.line(line) + b"\n"

    def document(self, name: str, data: bytes) -> bytes:
        """Redact a whole file.

        Raises:
            Invalid: the redacted file cannot be parsed any more; nothing of it may be sent.
        """
        if name.endswith(".json"):
            return self._json(data, encode_document) or self._raw(data)
        redacted = self._raw(data)
        if redacted != data and name.endswith((".yaml", ".yml")):
            _check_yaml(name, data, redacted)
        return redacted

    def restored(self, name: str, mine: bytes, theirs: bytes) -> bytes | None:
        """Return the remote version of a file, with redacted values replaced by the local ones.

        Args:
            mine: the local version, not redacted.

        Returns:
            None if a redacted value there, or a secret here, has no counterpart.
        """
        try:
            ours, others = decode(mine), decode(theirs)
        except Undecodable:
            return None
        secrets: list[str] = []
        value = self._restored(ours, others, secrets)
        if _texts(value, MARK) or any(not _texts(value, secret) for secret in secrets):
            return None
        return bytes((encode_document if name.endswith(".json") else encode_line)(sanitize(value)))

    def _restored(self, mine: Any, theirs: Any, secrets: list[str]) -> Any:
        """Return `theirs` with values replaced by ours where they are the redacted ones; collects our secrets."""
        if isinstance(mine, dict):
            others = theirs if isinstance(theirs, dict) else {}
            secrets += (key for key in mine if self.text(key) != key)
            found = {key: self._entry(key, one, others.get(key), secrets) for key, one in mine.items()}
            return {**others, **{key: found[key] for key in others if key in found}} if others else theirs
        if isinstance(mine, list):
            others_ = theirs if isinstance(theirs, list) else []
            pairs = [
                self._entry("", one, others_[at] if at < len(others_) else None, secrets)
                for at, one in enumerate(mine)
            ]
            return [*pairs[: len(others_)], *others_[len(pairs) :]] if others_ else theirs
        return self._entry("", mine, theirs, secrets)

    def _entry(self, key: str, mine: Any, theirs: Any, secrets: list[str]) -> Any:
        if not isinstance(mine, str):
            return self._restored(mine, theirs, secrets) if isinstance(mine, dict | list) else theirs
        redacted = self._under(key, mine)
        if redacted == mine:
            return theirs
        secrets.append(mine)
        return mine if theirs == redacted else theirs

    def _json(self, data: bytes, encode: Any) -> bytes | None:
        """Redact the values in JSON bytes; None if they are not JSON."""
        try:
            value = decode(data)
        except Undecodable:
            return None
        redacted = self.value(value)
        return data if redacted == value else bytes(encode(sanitize(redacted)))

    def _under(self, key: str, value: Any) -> Any:
        """Redact a value; entirely, if its key names a secret."""
        if isinstance(value, list):
            return [self._under(key, one) for one in value]
        is_secret = isinstance(value, str) and len(value) >= _SHORTEST and value != MARK
        if is_secret and self._keys.fullmatch(
            _WORD_BEGINS.sub("_", key) if self._keys is SECRET_KEYS else key
        ):
            return self._mark(BY_KEY, value)
        return self.value(value)

    def _raw(self, data: bytes) -> bytes:
        """Redact bytes that are not JSON."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _texts(value: Any, text: str) -> bool:
    """True if a text or a key in this value contains `text`."""
    if isinstance(value, str):
        return text in value
    if isinstance(value, dict):
        return any(text in key or _texts(one, text) for key, one in value.items())
    return isinstance(value, list) and any(_texts(one, text) for one in value)


def _compiled(name: str, text: str) -> re.Pattern[str]:
    try:
        rule = re.compile(text, re.DOTALL)
    except re.error as error:
        raise Invalid(f"the rule {name!r} is not a valid regular expression: {error}") from None
    if rule.search(MARK) or rule.search(""):
        raise Invalid(f"the rule {name!r} matches everything, or redacted text", hint="make it more specific")
    return rule


def _check_yaml(name: str, data: bytes, redacted: bytes) -> None:
    from sessionary.codec.yaml_read import load_yaml
    from sessionary.errors import Corrupt

    try:
        load_yaml(data)
    except Corrupt:
        return
    try:
        load_yaml(redacted)
    except Corrupt as error:
        raise Invalid(
            f"{name} could not be parsed after redaction: {error}",
            operation="push",
            hint="write the secret in quotes, on one line, or remove it",
        ) from None


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
