"""The two documents of a bundle of session files: the dataset card of the Hugging Face Hub, and the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sessionary.codec import encode_document, sanitize
from sessionary.escaping import harmless
from sessionary.export.documents import of_time
from sessionary.export.losses import Report
from sessionary.export.wording import closing

CARD, MANIFEST = "README.md", "manifest.json"
FORMAT, VERSION = "sessionary-bundle", 1
RECOGNISED = frozenset({"claude_code", "codex", "pi"})
"""The kinds whose files the viewer of the Hub shows as sessions."""
_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_NAMES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "n>1M")


class Copied(NamedTuple):
    """A file of a bundle: its place in it, its bytes, and their SHA-256 in hexadecimal digits."""

    path: str
    size: int
    digest: str


class Entry(NamedTuple):
    """A session of a bundle, with its files. All texts are redacted."""

    id: str
    kind: str
    agent: str
    messages: int
    updated: datetime | None
    files: Sequence[Copied]


def manifest(entries: Sequence[Entry], report: Report, *, redacted: bool) -> bytes:
    """The manifest: each session, each file with its hash, what is missing, and what was masked."""
    sessions = [
        {
            "id": one.id, "kind": one.kind, "agent": one.agent, "messages": one.messages,
            "updated": of_time(one.updated),
            "files": [{"path": file.path, "size": file.size, "sha256": file.digest} for file in one.files],
        }
        for one in entries
    ]  # fmt: skip
    known = report.as_dict()
    document = {
        "format": FORMAT, "version": VERSION, "redacted": redacted, "sessions": sessions,
        "losses": known["losses"], "masked": known["masked"],
    }  # fmt: skip
    return encode_document(sanitize(document))


def card(entries: Sequence[Entry], report: Report, *, redacted: bool) -> bytes:
    """The card. Its header has words of ours alone, so it is valid YAML whatever the sessions hold."""
    return ("\n".join(_card(entries, report, redacted)) + "\n").encode()


def _card(entries: Sequence[Entry], report: Report, redacted: bool) -> Iterator[str]:
    at = next((index for index, limit in enumerate(_SIZES) if len(entries) < limit), len(_SIZES))
    yield from ("---", "pretty_name: Agent sessions", "size_categories:", f"- {_NAMES[at]}", "tags:")
    yield from ("- format:agent-traces", "- agent-traces", "---", "", "# Agent sessions", "")
    masked = (
        "Secrets, home folders and user names were masked by rules; read the files before you publish them."
    )
    plain = "Nothing but keys of encryption was masked in them."
    number = "one session" if len(entries) == 1 else f"{len(entries):,} sessions"
    yield f"The files of {number}, as their agents store them. {masked if redacted else plain}"
    yield f"`{MANIFEST}` has the SHA-256 of each file."
    shown = sorted({one.kind for one in entries} & RECOGNISED)
    if shown:
        yield f"The viewer of the Hub shows those of these kinds as sessions: {', '.join(shown)}."
    yield from ("", "| session | kind | agent | messages | changed | files |", "|---|---|---|---|---|---|")
    for one in entries:
        changed = "" if one.updated is None else of_time(one.updated) or ""
        cells = (one.id, one.kind, one.agent, f"{one.messages:,}", changed, f"{len(one.files):,}")
        yield f"| {' | '.join(map(_cell, cells))} |"
    lines = list(closing(report))
    if lines:
        yield from ("", "## Not included, and masked", "", *(f"- {_cell(line)}" for line in lines))


def _cell(text: str) -> str:
    """A text in a cell, in which nothing acts as Markdown or HTML."""
    plain = harmless(" ".join(text.split()))
    return "".join(f"&#{ord(one)};" if one in "&<>|`[]!*_~\\#@:" else one for one in plain)
