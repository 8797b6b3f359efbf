"""Verification of the hash chain of a journal, and of its end against a head that is kept apart.

The chain shows a record that was changed, inserted, moved or removed. It cannot show that the end of the file is gone,
or that the whole file is an older or a newly computed one: the head does, which names a record and its hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from sessionary.codec import decode_object
from sessionary.disk.fs import Fs
from sessionary.disk.journal import lines_of
from sessionary.layouts.abilities import ChainHead
from sessionary.layouts.records.names import file_name
from sessionary.layouts.records.state import BEGIN
from sessionary.model import Problem, SessionRef, Severity

_REMEDY = "compare the file with a backup, or with the remote; `sessionary sync` keeps earlier versions there"

SHOWN: dict[str, Severity] = dict.fromkeys(
    ("broken_chain", "changed_head", "rolled_back"), Severity.lost_data
)


def session_gone(path: str) -> Problem:
    """The problem of a session whose head was remembered, and whose file is gone."""
    text = "the end of its chain was remembered, and the session is gone"
    return Problem.of_file("missing_session", Severity.lost_data, path, text, "restore it from a backup")


def check_chain(fs: Fs, ref: SessionRef, kept: ChainHead | None) -> tuple[list[Problem], ChainHead | None]:
    """As `ChecksChain.check_chain`."""
    path, walk = ref.locator, _Walk()
    found = [Problem(code, SHOWN[code], path, line, byte, text, _REMEDY)
             for code, line, byte, text in walk.records(fs, path, kept)]  # fmt: skip
    if not walk.chained and kept is None:
        text = "the session has no hash chain, so a change by others cannot be shown"
        return [Problem.of_file("no_chain", Severity.note, path, text, None)], None
    if walk.head is None or found:
        return found, None
    return [], walk.head


Finding = tuple[str, int | None, int | None, str]


class _Walk:
    """One pass over the records of a file."""

    def __init__(self) -> None:
        self.chained = False
        self.head: ChainHead | None = None

    def records(self, fs: Fs, path: str, kept: ChainHead | None) -> Iterator[Finding]:
        """A fault: a code, the line, its offset, and a sentence."""
        byte, number, expected, first = 0, -1, "", ""
        seen, size = False, fs.stat(path).st_size
        for line, raw in enumerate(lines_of(fs, path), 1):
            here, byte = byte, byte + len(raw) + 1
            if byte > size:
                break  # a torn line, which `check` reports, or one that is being written
            record = decode_object(raw) or {}
            digest = sha256(raw).hexdigest()
            if line == 1:
                first = digest
                self.chained = record.get("chain") is True
                yield from _of_begin(path, record, digest, kept)
            elif not (self.chained or kept is not None):
                return
            elif record.get("n") != number + 1 or record.get("prev") != expected:
                yield "broken_chain", line, here, f"line {line} does not continue the record before it"
            stated = record.get("prev") if line == 1 else None
            expected = stated if isinstance(stated, str) else digest
            number = record["n"] if isinstance(record.get("n"), int) else number + 1
            if kept is not None and number == kept.number:
                seen = True
                if digest != kept.digest:
                    yield "changed_head", line, here, f"record {number} is not the one that was remembered"
            self.head = ChainHead(number, digest, first)
        if kept is not None and not seen:
            yield (
                "rolled_back",
                None,
                None,
                (f"record {kept.number} was remembered, and the file ends with record {number}"),
            )


def _of_begin(path: str, record: dict[str, Any], digest: str, kept: ChainHead | None) -> Iterator[Finding]:
    """Whether the first record belongs to this file, and is the remembered one."""
    scope, session = record.get("scope"), record.get("session")
    if record.get("op") != BEGIN or not isinstance(scope, list) or not isinstance(session, str):
        yield "broken_chain", 1, 0, "the first record cannot be read"
    elif file_name([str(part) for part in scope], session) != os.path.basename(path):
        yield "broken_chain", 1, 0, f"the file belongs to another session, {session}"
    elif kept is not None and kept.first != digest:
        yield "broken_chain", 1, 0, "the first record is not the one that was remembered"
