"""Exports of sessions: the stream of steps, its redaction, and the file that is written."""

from __future__ import annotations

import getpass
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, make_folder, storage_failed
from sessionary.errors import AlreadyExists, Invalid, NotFound, StorageFailed, Unsupported
from sessionary.export.formats import FORMATS, Format
from sessionary.export.losses import SESSION, Report, counted
from sessionary.export.masking import masked
from sessionary.export.steps import Begin, End, Head, Steps, head_of
from sessionary.export.wording import loss_words
from sessionary.layouts.base import Capability
from sessionary.model import Aside, Inherited, Message, Place, Problem, SessionRef, Severity, Summary
from sessionary.redaction import ALWAYS, Placeholders, Redaction
from sessionary.redaction.personal import load_rules, personal_rules
from sessionary.transcript.typed import numbered
from sessionary.workspace.failures import gathered, readable
from sessionary.workspace.family import Kin, kin_of, with_agents
from sessionary.workspace.prices import Prices
from sessionary.workspace.sessions import Sessions
from sessionary.workspace.spending import spent

Target = SessionRef | Path
_LONGEST_NAME = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Export:
    """An export, written while its lines are iterated, once, in bounded memory.

    Attributes:
        report: what was exported so far, what could not be carried, and what was masked.
        file_name: a safe name for the file.
    """

    def __init__(
        self, steps: Steps, form: Format, report: Report, *, session: str, strict: bool, name: str, fs: Fs
    ) -> None:
        self.report: Report = report
        self.file_name: str = name + form.suffix
        self._lines = form.write(steps, report)
        self._session = session
        self._strict = strict
        self._fs = fs

    def __iter__(self) -> Iterator[bytes]:
        """The lines, with their newlines.

        Raises:
            Unsupported: at the end, with `strict`: something could not be carried.
            NotFound, StorageFailed: the session is gone, or cannot be read.
        """
        yield from map(_encoded, self._lines)  # a loop would keep a long line while the next one is made
        if self._strict and self.report.losses:
            raise self._incomplete()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the export to a file.

        Durability: the file is created or replaced as a whole, and survives a power cut when this returns. After an
        error it is as it was.

        Args:
            force: replace it if it exists.

        Raises:
            AlreadyExists: the file exists.
            Invalid: what exists is not a regular file.
            Unsupported: with `strict`, something could not be carried.
            NotFound, StorageFailed: the session or the folder is gone, or cannot be read or written.
        """
        place = os.fspath(path)
        refuse_existing(place, force=force, fs=self._fs)
        if force:
            atomic.replace(place, self, fs=self._fs)
        else:
            atomic.create_streamed(place, self, fs=self._fs)

    def _incomplete(self) -> Unsupported:
        losses = self.report.losses
        faults = [loss_words(loss) for loss in losses]
        lead = f"the export would lack {len(losses)} kinds of data" if losses[1:] else "the export would lack"
        return Unsupported(
            f"{lead}: {faults[0]}",
            operation="export",
            session=self._session,
            details={"losses": [loss.as_dict() for loss in losses], "faults": faults},
            hint="export without --strict",
        )


def _encoded(line: str | bytes) -> bytes:
    return (line if isinstance(line, bytes) else line.encode()) + b"\n"


def refuse_existing(path: str, *, force: bool, fs: Fs) -> None:
    """Refuse to write where something is that must be kept.

    Raises:
        AlreadyExists: the file exists, and `force` is not given.
        Invalid: it is a folder, a device or a pipe.
    """
    try:
        found = fs.stat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_failed(error, "export", path) from error
    if not stat.S_ISREG(found.st_mode):
        hint = "name a file; without --output the export is printed"
        raise Invalid(f"{path} is not a regular file", operation="export", path=path, hint=hint)
    if not force:
        hint = "give --force to replace it"
        raise AlreadyExists(f"{path} already exists", operation="export", path=path, hint=hint)


def save_all(exports: Sequence[Export], files: Sequence[str], *, force: bool, fs: Fs) -> None:
    """Write each export to its file, and create its folder; write none if one of the files may not be replaced.

    Durability and errors as `Export.save`, file by file.
    """
    for file in files:
        refuse_existing(file, force=force, fs=fs)
    for export, file in zip(exports, files, strict=True):
        make_folder(fs, os.path.dirname(os.path.abspath(file)))
        export.save(file, force=force)


class Reader(Protocol):
    """The methods of `Workspace` that read a session or a file."""

    def read(self, target: Target) -> Iterator[Message | Aside | Inherited | Problem]:
        """See `Workspace.read`."""
        ...

    def check(self, target: Target) -> Iterator[Problem]:
        """See `Workspace.check`."""
        ...

    def prices(self) -> Prices:
        """See `Workspace.prices`."""
        ...


def export_of(
    sessions: Sessions,
    reader: Reader,
    target: Target,
    name: str,
    *,
    redact: bool,
    rules: Path | None,
    branches: bool,
    strict: bool,
    fs: Fs,
) -> Export:
    """An export; see `Workspace.export`."""
    form = FORMATS.get(name)
    if form is None:
        hint = f"the formats are {', '.join(FORMATS)}"
        raise Invalid(f"unknown format {name}", operation="export", hint=hint)
    if isinstance(target, Path):
        items = readable(reader.read(target), partial(reader.check, target), "export")
        any(isinstance(one, Message) for one in items)  # reads to the first one; a broken file is refused
    top = family_of(sessions, target)
    marks = Placeholders()
    families = [] if top is None else [top]
    redaction = rules_of(families, marks, rules, fs) if redact else kept_rules(marks)
    report = Report(name, redaction.text, masked=marks.counts)
    steps = counted(
        _steps(reader, target, top, report, reader.prices()),
        report,
        whole_results=form.whole_results,
        outside=branches,
    )
    session = target.name if isinstance(target, Path) else target.session_id
    kind = "file" if isinstance(target, Path) else target.kind
    safe = safe_name(f"{kind}-{redaction.text(session)}")
    return Export(
        masked(steps, redaction, whole_titles=not redact),
        form,
        report,
        session=session,
        strict=strict,
        name=safe,
        fs=fs,
    )


def safe_name(text: str) -> str:
    """A file name for a text of any content: plain characters, no leading dot, and unique where something changed."""
    safe = _UNSAFE.sub("_", text)[:_LONGEST_NAME].lstrip(".")
    if safe == text:
        return safe
    return f"{safe}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def family_of(sessions: Sessions, target: Target) -> Kin | None:
    """The session with those of its sub-agents below it; None for a file."""
    if isinstance(target, Path):
        return None
    layout = sessions.layout_of(target)
    if Capability.NESTS in layout.capabilities:
        found = kin_of(target, gathered(sessions.catalog.summaries(layout))[0])
        if found is not None:
            return found
    return Kin(sessions.summary(target), "root")


def kept_rules(marks: Placeholders) -> Redaction:
    """The rules that every export applies."""
    return Redaction(ALWAYS, common=False, mark=marks)


def rules_of(families: Iterable[Kin], marks: Placeholders, rules: Path | None, fs: Fs) -> Redaction:
    """All rules: the kept ones, those about the user, and the user's own; nothing turns off those of `ALWAYS`."""
    summaries = [one.summary for top in families for one in with_agents(top)]
    paths = [path for one in summaries for path in (one.cwd, one.ref.locator)]
    user = ""
    with suppress(KeyError, OSError):  # an account without a name
        user = getpass.getuser()
    personal = personal_rules(os.path.expanduser("~"), user, paths)
    own = load_rules(None if rules is None else str(rules), fs=fs)
    return Redaction({**personal, **own, **ALWAYS}, mark=marks)


def _steps(reader: Reader, target: Target, top: Kin | None, report: Report, prices: Prices) -> Steps:
    """The steps of a session, and below it those of its sub-agents. Without recursion, as `with_agents`."""
    todo: list[tuple[Target, Kin | None, int] | End] = [(target, top, 0)]
    while todo:
        one = todo.pop()
        if isinstance(one, End):
            yield one
            continue
        place, kin, depth = one
        todo.append(End(depth))
        try:
            yield _begin(reader, place, None if kin is None else kin.summary, depth, prices)
            yield from _talk(reader.read(place))
        except (NotFound, StorageFailed):
            if kin is None or depth == 0:
                raise
            report.lose(SESSION, kin.ref.kind, Place(kin.ref.locator))
            continue
        todo += [(agent.ref, agent, depth + 1) for agent in reversed([] if kin is None else kin.agents)]


def _begin(reader: Reader, target: Target, summary: Summary | None, depth: int, prices: Prices) -> Begin:
    if summary is None:
        assert isinstance(target, Path)
        path = str(target.absolute())
        return Begin(Head(target.name, "file", path), tuple(reader.check(target)), depth)
    used = spent(summary, prices)
    return Begin(head_of(summary, used.cost, used.unpriced), tuple(summary.problems), depth)


def _talk(items: Iterator[Message | Aside | Inherited | Problem]) -> Steps:
    """The messages with their indexes, and the problems of lines where they occur."""
    problems: list[Problem] = []

    def watched() -> Iterator[Message | Aside | Inherited]:
        for item in items:
            if isinstance(item, Problem):
                problems.append(item)
            else:
                yield item

    for one in numbered(watched(), asides=True):
        yield from _shown(problems)
        yield one
    yield from _shown(problems)


def _shown(problems: list[Problem]) -> Iterator[Problem]:
    """The problems so far, without notes; the list is empty afterwards."""
    yield from (one for one in problems if one.severity > Severity.note)
    problems.clear()
