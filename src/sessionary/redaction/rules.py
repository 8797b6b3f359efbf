"""The built-in rules: secrets that are recognised by their form or by their key, or always masked.

A rule is a regular expression. If it has a group, the text of the first group is kept: what leads to the secret.
No rule matches `MARK`, so text that was redacted stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MARK = "[redacted]"

_QUOTE = r"\\*[\"']?"  # within JSON text that is itself a string, a quote has backslashes in front
_IS = rf"{_QUOTE}\s*[:=]\s*{_QUOTE}"
_NOT_YET = r"(?!\[redacted)"

_ASSIGNED = (
    r"(?i)(?<![a-z0-9])((?:api[_-]?key|access[_-]?key|secret[_-]?key|client[_-]?secret|auth[_-]?token|access[_-]?token"
    rf"|refresh[_-]?token|session[_-]?token|private[_-]?key|passphrase|password|passwd|secret){_IS})"
    r"(?:[^\s\"',;\[\]{}\\]|\\[^\s\"'])(?:[^\s\"',;\[\]{}\\]|\\[^\s\"']){5,}"
)
_ENVIRONMENT = (
    r"\b([A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|_KEY|CREDENTIALS?)(?:_[A-Z0-9]+)?"
    rf"=([\"'])?)(?(2)(?:{_NOT_YET}(?!\2)[^\n\\]){{4,}}|(?:{_NOT_YET}[^\s\"'\\;]){{6,}})"
)

COMMON: Mapping[str, str] = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    "AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})\b",
    "GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "Slack token": r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}",
    "Slack webhook": r"(\bhooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]{16,}",
    "key of a model provider": r"\b(?:sk-[A-Za-z0-9_-]{20,}|(?:xai-|gsk_|hf_|r8_|pplx-)[A-Za-z0-9]{30,})",
    "Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "Google token": r"\b(?:ya29\.|GOCSPX-)[0-9A-Za-z_-]{20,}",
    "Stripe key": r"\b(?:[rs]k_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{24,})",
    "npm token": r"\bnpm_[A-Za-z0-9]{30,}",
    "PyPI token": r"\bpypi-[A-Za-z0-9_-]{50,}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "bearer token": r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}",
    "authorization header": rf"(?i)\b((?:proxy-)?authorization{_IS}"
    r"(?:basic|bearer|token|digest|negotiate|apikey)\s+)[A-Za-z0-9._~+/=:-]{6,}",
    "cookie": r"(?i)\b((?:set-)?cookie\s*:\s*[^\s=;\"'\[\]]+=)[^\s;\"'\\\[\]]{6,}",
    "account key": r"(?i)\b((?:account|shared ?access)key=)[A-Za-z0-9+/=]{20,}",
    "password in an address": rf"(?<=://)([^/\s:@\"'\[\]]*:)(?:{_NOT_YET}[^/\s\"'])+(?=@)",
    "secret in a query": r"(?i)([?&](?:access_token|auth|key|sig|signature|token)=)[^&\s\"'#\\\[\]]{6,}",
    "assigned secret": _ASSIGNED,
    "environment variable": _ENVIRONMENT,
}
"""Secrets that are recognised by their form, by the name of the rule."""

_JOINTS = ("", "_", "-")
_NAMES = [
    f"{one}{joint}{other}"
    for one, other in (
        ("api", "key"), ("access", "key"), ("private", "key"), ("auth", "token"), ("access", "token"),
        ("refresh", "token"), ("session", "token"),
    )
    for joint in _JOINTS
]  # fmt: skip

HINTS: Mapping[str, tuple[str, ...]] = {
    COMMON[name]: hints
    for name, hints in {
        "private key": ("private key",),
        "AWS access key": ("akia", "asia"),
        "GitHub token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        "GitLab token": ("glpat-",),
        "Slack token": ("xox", "xapp-"),
        "Slack webhook": ("hooks.slack.com",),
        "key of a model provider": ("sk-", "xai-", "gsk_", "hf_", "r8_", "pplx-"),
        "Google API key": ("aiza",),
        "Google token": ("ya29.", "gocspx-"),
        "Stripe key": ("k_live_", "k_test_", "whsec_"),
        "npm token": ("npm_",),
        "PyPI token": ("pypi-",),
        "JSON web token": ("eyj",),
        "bearer token": ("bearer",),
        "authorization header": ("authorization",),
        "cookie": ("cookie",),
        "account key": ("key=",),
        "assigned secret": (*_NAMES, "secret", "passphrase", "password", "passwd"),
        "environment variable": (
            "token",
            "secret",
            "passw",
            "passphrase",
            "_pass",
            "_pwd",
            "_key",
            "credential",
        ),
    }.items()
}
"""For slow rules, by pattern: text without any of these words, in lower case, cannot match."""

BLOB_KEY = r"(?:blob|speculativeSummarization)EncryptionKey"

ALWAYS: Mapping[str, str] = {"blob encryption key": rf"({BLOB_KEY}{_IS}){_NOT_YET}(?:\\+/|[^\s\"'\\,;{{}}])+"}
"""Keys that are masked in every export, redacted or not, and in all that is shown of the sessions of Cursor.

They decrypt what an agent stores on a server.
"""

BY_KEY = "value of a secret key"
"""The name under which values are counted that are masked because of their key in JSON."""

SECRET_KEYS = re.compile(
    r"(?i)(?:.*[_.-])?(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|encryption[_-]?key|client[_-]?secret"
    r"|auth[_-]?token|access[_-]?token|refresh[_-]?token|session[_-]?token|id[_-]?token|bearer[_-]?token"
    r"|passphrase|password|passwd|secret|authorization|cookie)"
)
"""Keys in JSON under which a text of six characters or more is a secret, whatever it is."""

ALWAYS_KEYS = re.compile(BLOB_KEY)
