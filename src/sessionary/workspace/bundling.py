"""Bundles: the files of sessions in a folder with a dataset card, for a dataset of the Hugging Face Hub."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, descriptor, make_folder, names_in, read_at, read_bytes, storage_failed
from sessionary.disk.journal import lines_of
from sessionary.errors import AlreadyExists, Invalid, Unsupported
from sessionary.export.card import CARD, MANIFEST, Copied, Entry, card, manifest
from sessionary.export.losses import CONTENT, PROBLEM, SESSION, Report
from sessionary.export.wording import loss_words
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.base import Layout
from sessionary.layouts.files import PartKind
from sessionary.model import Place, SessionRef
from sessionary.redaction import Placeholders, Redaction
from sessionary.workspace.exporting import family_of, kept_rules, rules_of, safe_name
from sessionary.workspace.family import Kin, with_agents
from sessionary.workspace.sessions import Sessions

_LINES = (".jsonl", ".records")
_DOCUMENTS = (".json", ".yaml", ".yml", ".md", ".txt")
_COMPRESSED = ".zst"
_ROWS = "rows.jsonl"
_LEFT_OUT = (PartKind.LOG, PartKind.KEPT)
_ENDING = re.compile(r"(?:\.[A-Za-z0-9]{1,8}){0,2}")


@dataclass(slots=True)
class _Planned:
    """A session to copy, and its files: the place in the bundle, and the source; None for rows of a database."""

    kin: Kin
    files: list[tuple[str, str | None]] = field(default_factory=list)


def bundle(
    sessions: Sessions,
    refs: Iterable[SessionRef],
    folder: str,
    fs: Fs,
    *,
    redact: bool = False,
    rules: Path | None = None,
    strict: bool = False,
    force: bool = False,
) -> Report:
    """Copy the files of sessions and of their sub-agents into a folder, with a dataset card and a manifest of hashes.

    A file is copied byte for byte, but for what is masked: always keys that decrypt data elsewhere, all secrets with
    `redact`. A compressed file is unpacked, and a session in a database becomes JSON Lines of its rows. Event logs and
    backups are left out.

    Durability: the card is written last, so a folder with one has everything; it survives a power cut then.

    Args:
        folder: the folder; it is made if it is missing.
        redact: mask secrets, home folders and user names, in the names of the files too.
        rules: the rules file for that; by default the user's, if there is one.
        strict: raise Unsupported, and write nothing, if a file cannot be copied.
        force: write into a folder that is not empty; files of the same name are replaced.

    Returns:
        what was copied, what could not be, and what was masked.

    Raises:
        AlreadyExists: the folder is not empty.
        NotFound: a session is gone.
        Unsupported: with `strict`, something cannot be copied.
    """
    if names_in(fs, folder) and not force:
        raise AlreadyExists(
            f"{folder} is not empty",
            operation="export",
            path=folder,
            hint="name a new folder, or give --force",
        )
    marks = Placeholders()
    families = [one for ref in dict.fromkeys(refs) if (one := family_of(sessions, ref)) is not None]
    redaction = rules_of(families, marks, rules, fs) if redact else kept_rules(marks)
    report = Report("hf", redaction.text, masked=marks.counts)
    copying = _Copying(sessions, fs, folder, redaction, report)
    plan = list(copying.plan(families))
    if strict and report.losses:
        faults = [loss_words(loss) for loss in report.losses]
        raise Unsupported(
            f"the bundle would lack {faults[0]}",
            operation="export",
            details={"losses": [loss.as_dict() for loss in report.losses], "faults": faults},
            hint="export without --strict",
        )
    entries = [copying.copied(one) for one in plan]
    for name, data in (
        (MANIFEST, manifest(entries, report, redacted=redact)),
        (CARD, card(entries, report, redacted=redact)),
    ):
        copying.write(name, (data,))
    return report


class _Copying:
    """The copies of one bundle."""

    def __init__(self, sessions: Sessions, fs: Fs, folder: str, redaction: Redaction, report: Report) -> None:
        self._sessions = sessions
        self._fs = fs
        self._folder = folder
        self._redaction = redaction
        self._report = report
        self._sources = set[str]()
        self._names = {CARD, MANIFEST}

    def plan(self, families: Iterable[Kin]) -> Iterator[_Planned]:
        """The sessions with the files that can be copied; what cannot is added to the report."""
        for kin in (one for top in families for one in with_agents(top)):
            self._report.sessions += 1
            self._report.messages += kin.summary.messages
            planned = _Planned(kin)
            layout = self._sessions.layout_of(kin.ref)
            for name, source in self._files(layout, kin.ref):
                if source is not None and source in self._sources:
                    continue  # it came with the session that the sub-agent belongs to
                self._sources.add(source or kin.ref.locator)
                if self._is_readable(kin.ref, source):
                    planned.files.append((self._free(f"{kin.ref.kind}/{name}"), source))
            yield planned

    def _files(self, layout: Layout, ref: SessionRef) -> Iterator[tuple[str, str | None]]:
        """The files of a session, each with a name below the folder of its kind."""
        own = safe_name(self._redaction.text(ref.session_id))
        if isinstance(layout, AgentLayout):
            if layout.place_of_rows(ref) is not None:
                yield f"{own}/{_ROWS}", None
                return
            found = layout.files(ref)
        else:
            parts = (one for one in layout.parts(ref) if one.kind not in _LEFT_OUT)
            found = {one.name: one.path for one in parts}
        root = os.path.dirname(next(iter(found), ""))
        for name, path in found.items():
            below = name.removeprefix(f"{root}/") if root else name
            pieces = [self._piece(piece) for piece in below.split("/") if piece]
            yield "/".join((own, *pieces)), path

    def _piece(self, name: str) -> str:
        """A part of a path in the bundle: redacted, safe on any system, with its ending."""
        text = self._redaction.text(name).removesuffix(_COMPRESSED)
        stem, dot, end = text.partition(".")
        ending = f"{dot}{end}"
        return safe_name(stem) + ending if stem and _ENDING.fullmatch(ending) else safe_name(text)

    def _free(self, name: str) -> str:
        stem, ending = os.path.splitext(name)
        number, free = 1, name
        while free.casefold() in self._names:
            number += 1
            free = f"{stem}-{number}{ending}"
        self._names.add(free.casefold())
        return free

    def _is_readable(self, ref: SessionRef, source: str | None) -> bool:
        """True if a file can be read and masked; if not, the report gets it as a loss."""
        if source is None:
            return True
        if not source.removesuffix(_COMPRESSED).endswith((*_LINES, *_DOCUMENTS)):
            self._report.lose(CONTENT, os.path.splitext(source)[1] or "file", Place(source, None, None))
            return False
        try:
            with descriptor(self._fs, source):
                return True
        except OSError:
            code = SESSION if source == ref.locator else PROBLEM
            self._report.lose(code, "unreadable_file", Place(source, None, None))
            return False

    def copied(self, planned: _Planned) -> Entry:
        """Copy the files of a session."""
        summary, ref = planned.kin.summary, planned.kin.ref
        files = [file for name, source in planned.files for file in self._copied(ref, name, source)]
        text = self._redaction.text
        return Entry(
            text(ref.session_id), ref.kind, text(summary.agent), summary.messages, summary.updated, files
        )

    def _copied(self, ref: SessionRef, name: str, source: str | None) -> Iterator[Copied]:
        """Copy a file; nothing if it vanished or turns out to be damaged, which is added to the report."""
        try:
            yield self.write(name, self._data(ref, source))
        except _Unreadable as error:
            self._report.lose(PROBLEM, error.code, Place(source or ref.locator, None, None))

    def write(self, name: str, data: Iterable[bytes]) -> Copied:
        """Write a file of the bundle."""
        path = os.path.join(self._folder, *name.split("/"))
        digest, size = sha256(), 0

        def hashed() -> Iterator[bytes]:
            nonlocal size
            for piece in data:
                digest.update(piece)
                size += len(piece)
                yield piece

        make_folder(self._fs, os.path.dirname(path))
        atomic.replace(path, hashed(), fs=self._fs)
        return Copied(name, size, digest.hexdigest())

    def _data(self, ref: SessionRef, source: str | None) -> Iterator[bytes]:
        if source is None:
            layout = self._sessions.layout_of(ref)
            assert isinstance(layout, AgentLayout)
            yield from self._redaction.lines(layout.rows(ref))
        elif source.endswith(_COMPRESSED):
            yield from self._unpacked(source)
        elif source.endswith(_LINES):
            yield from self._lines(source)
        else:
            try:
                data = read_bytes(self._fs, source, operation="export")
                yield self._redaction.document(os.path.basename(source), data or b"")
            except Invalid:  # what is left after masking would not be a document
                raise _Unreadable("masked") from None

    def _lines(self, source: str) -> Iterator[bytes]:
        """The lines of a file; the last one without a newline if it has none."""
        try:
            with descriptor(self._fs, source) as fd:
                size = self._fs.fstat(fd).st_size
                ends = size > 0 and read_at(self._fs, fd, 1, size - 1) == b"\n"
            line: bytes | None = None
            for following in lines_of(self._fs, source):
                if line is not None:
                    yield self._redaction.line(line) + b"\n"
                line = following
            if line is not None:
                yield self._redaction.line(line) + (b"\n" if ends else b"")
        except FileNotFoundError:
            raise _Unreadable("unreadable_file") from None
        except OSError as error:
            raise storage_failed(error, "export", source) from error

    def _unpacked(self, source: str) -> Iterator[bytes]:
        from sessionary.layouts.compressed import Damaged, decompressed

        rest = b""
        with suppress(Damaged):  # what can be unpacked is copied; `check` names the damage
            for piece in decompressed(self._fs, source):
                *lines, rest = (rest + piece).split(b"\n")
                yield from (self._redaction.line(line) + b"\n" for line in lines)
            yield self._redaction.line(rest)
            return
        self._report.lose(PROBLEM, "bad_zstd", Place(source, None, None))
        yield self._redaction.line(rest)


class _Unreadable(Exception):
    """A file that cannot be copied, with the code of the reason."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
