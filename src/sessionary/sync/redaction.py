"""What must not leave this machine is blacked out before it is sent.

The remote then has exactly the blacked out text, and all that is compared and proved is that text. What lies here stays
as it is: a pull adds to such a file, and never replaces it.

In JSON only the values of strings are changed, in their meaning and not in their spelling, so that it stays JSON; a
line in which nothing is found keeps its bytes. Each line is treated alone, so that one which has been sent never
changes. What is already black is found no more: the mark fits none of the rules that are built in, and a rule of a user
that would fit it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from sessionary.codec import Undecodable, decode, encode_document, encode_line, sanitize
from sessionary.errors import Invalid

MARK = "[redacted]"

_ASSIGNED = (
    r"(?i)(?<![a-z0-9])((?:api[_-]?key|access[_-]?key|secret[_-]?key|client[_-]?secret|auth[_-]?token|access[_-]?token"
    r"|refresh[_-]?token|password|passwd|secret)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;\[\]{}]{6,}"
)

COMMON: Mapping[str, str] = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})\b",
    "GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "key of a model provider": r"\bsk-[A-Za-z0-9_-]{20,}",
    "Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "Stripe key": r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}",
    "npm token": r"\bnpm_[A-Za-z0-9]{30,}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "bearer token": r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}",
    "account key": r"(?i)\b((?:account|shared ?access)key=)[A-Za-z0-9+/=]{20,}",
    "password in an address": r"(?<=://)([^/\s:@\[\]]+:)[^/\s:@\[\]]+(?=@)",
    "assigned secret": _ASSIGNED,
}
"""Secrets that are known by their looks. Where a rule has a group, what the group takes stays."""

_SECRET_KEY = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|secret[_-]?key|client[_-]?secret|auth[_-]?token|access[_-]?token|refresh[_-]?token"
    r"|password|passwd|secret)"
)


class Redaction:
    """What is blacked out.

    Args:
        rules: further rules: regular expressions, by what a person calls them. Where one has a group, what the
            group takes stays.
        common: use those of `COMMON` too.

    Raises:
        Invalid: a rule is no regular expression, or would fit what is already black.
    """

    def __init__(self, rules: Mapping[str, str] | None = None, *, common: bool = True) -> None:
        chosen = {**(COMMON if common else {}), **(rules or {})}
        self._rules = [_compiled(name, text) for name, text in chosen.items()]
        self.digest = sha256("\0".join(chosen.values()).encode()).digest()

    def text(self, text: str) -> str:
        """A text with what is secret in it blacked out."""
        for rule in self._rules:
            text = rule.sub(_black, text)
        return text

    def line(self, line: bytes) -> bytes:
        """A line of a journal without its newline; the same bytes if there is nothing in it."""
        return self._json(line, encode_line) or self._raw(line)

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of a journal, with their newlines."""
        for line in lines:
            yield self.line(line) + b"\n"

    def document(self, name: str, data: bytes) -> bytes:
        """A whole file.

        Raises:
            Invalid: it could be read before and cannot be afterwards; then nothing of it may be sent.
        """
        if name.endswith(".json"):
            return self._json(data, encode_document) or self._raw(data)
        black = self._raw(data)
        if black != data and name.endswith((".yaml", ".yml")):
            _check_yaml(name, data, black)
        return black

    def restored(self, name: str, mine: bytes, theirs: bytes) -> bytes | None:
        """The other side's version of a file, with what is black in it as it is here.

        Args:
            name: the file.
            mine: what is here, nothing blacked out.
            theirs: what is on the other side.

        Returns:
            None if something that is black there, or secret here, has no place in the other.
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
        """`theirs`, each value that is the black one of ours replaced by ours; collects what is secret in ours."""
        if isinstance(mine, dict):
            others = theirs if isinstance(theirs, dict) else {}
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
        black = self._under(key, mine)
        if black == mine:
            return theirs
        secrets.append(mine)
        return mine if theirs == black else theirs

    def _json(self, data: bytes, encode: Any) -> bytes | None:
        """The bytes with the values in them blacked out; None if they are no JSON."""
        try:
            value = decode(data)
        except Undecodable:
            return None
        black = self._value(value)
        return data if black == value else bytes(encode(sanitize(black)))

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(key): self._under(key, one) for key, one in value.items()}
        return value

    def _under(self, key: str, value: Any) -> Any:
        """A value; under a key that says it is a secret, all of it is one."""
        if isinstance(value, str) and len(value) >= 6 and _SECRET_KEY.fullmatch(key) and value != MARK:
            return MARK
        return self._value(value)

    def _raw(self, data: bytes) -> bytes:
        """What is no JSON, whatever it is."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _texts(value: Any, text: str) -> bool:
    """True if a text of this value holds `text`."""
    if isinstance(value, str):
        return text in value
    if isinstance(value, dict):
        return any(_texts(one, text) for one in value.values())
    return isinstance(value, list) and any(_texts(one, text) for one in value)


def _compiled(name: str, text: str) -> re.Pattern[str]:
    try:
        rule = re.compile(text, re.DOTALL)
    except re.error as error:
        raise Invalid(f"the rule {name!r} is no regular expression: {error}") from None
    if rule.search(MARK) or rule.search(""):
        raise Invalid(f"the rule {name!r} fits everything, or what is already black", hint="say more in it")
    return rule


def _black(found: re.Match[str]) -> str:
    kept = found[1] if found.re.groups and found[1] is not None else ""
    return kept + MARK


def _check_yaml(name: str, data: bytes, black: bytes) -> None:
    from sessionary.codec.yaml_read import load_yaml
    from sessionary.errors import Corrupt

    try:
        load_yaml(data)
    except Corrupt:
        return
    try:
        load_yaml(black)
    except Corrupt as error:
        raise Invalid(
            f"{name} could not be read any more with its secrets blacked out: {error}",
            operation="push",
            hint="write the secret in quotes, on one line, or take it out",
        ) from None
