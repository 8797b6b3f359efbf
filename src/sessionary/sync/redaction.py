"""Redaction of secrets before a session is sent.

Only the redacted text is sent, compared and verified. Local files stay unchanged: a pull appends to a file with
redactions, and never replaces it.

In JSON only string values are redacted, by meaning, not by spelling, so it stays JSON; a line without a secret keeps
its bytes. Each line is redacted on its own, so a sent line never changes. Redacted text is not matched again: the
mark matches none of the built-in rules, and a user's rule that matches it is refused.
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
"""Secrets that are recognised by their form. If a rule has a group, the text of the group is kept."""

_SECRET_KEY = re.compile(
    r"(?i)(?:.*[_-])?(?:api[_-]?key|secret[_-]?key|client[_-]?secret|auth[_-]?token|access[_-]?token|refresh[_-]?token"
    r"|password|passwd|secret)"
)


class Redaction:
    """The redaction rules.

    Args:
        rules: additional rules: regular expressions by name. If one has a group, the text of the group is kept.
        common: also use the rules of `COMMON`.

    Raises:
        Invalid: a rule is not a regular expression, or matches redacted text.
    """

    def __init__(self, rules: Mapping[str, str] | None = None, *, common: bool = True) -> None:
        chosen = {**(COMMON if common else {}), **(rules or {})}
        self._rules = [_compiled(name, text) for name, text in chosen.items()]
        self.digest = sha256("\0".join(chosen.values()).encode()).digest()

    def text(self, text: str) -> str:
        """Return a text with its secrets redacted."""
        for rule in self._rules:
            text = rule.sub(_with_mark, text)
        return text

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
            name: the file.
            mine: the local version, not redacted.
            theirs: the remote version.

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
        redacted = self._value(value)
        return data if redacted == value else bytes(encode(sanitize(redacted)))

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(key): self._under(key, one) for key, one in value.items()}
        return value

    def _under(self, key: str, value: Any) -> Any:
        """Redact a value; entirely, if its key names a secret."""
        if isinstance(value, str) and len(value) >= 6 and _SECRET_KEY.fullmatch(key) and value != MARK:
            return MARK
        return self._value(value)

    def _raw(self, data: bytes) -> bytes:
        """Redact bytes that are not JSON."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _texts(value: Any, text: str) -> bool:
    """True if a text in this value contains `text`."""
    if isinstance(value, str):
        return text in value
    if isinstance(value, dict):
        return any(_texts(one, text) for one in value.values())
    return isinstance(value, list) and any(_texts(one, text) for one in value)


def _compiled(name: str, text: str) -> re.Pattern[str]:
    try:
        rule = re.compile(text, re.DOTALL)
    except re.error as error:
        raise Invalid(f"the rule {name!r} is not a valid regular expression: {error}") from None
    if rule.search(MARK) or rule.search(""):
        raise Invalid(f"the rule {name!r} matches everything, or redacted text", hint="make it more specific")
    return rule


def _with_mark(found: re.Match[str]) -> str:
    kept = found[1] if found.re.groups and found[1] is not None else ""
    return kept + MARK


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
