"""A repaired copy of a session that only its agent may write: `repair --out`.

Lines are salvaged as those of amplifier are. Then the copy is checked by the layout itself, and for each problem that
has a rule (`layouts/agents/mending.py`) records are changed, until no problem with a rule is left.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sessionary.codec.problems import CODES
from sessionary.disk import atomic
from sessionary.disk.fs import Fs, is_there, make_folder, read_bytes
from sessionary.errors import AlreadyExists, Corrupt, Invalid, NotFound, Unsupported
from sessionary.layouts.agents.mending import Line, Mend, Mender
from sessionary.layouts.agents.reading import BUSY, AgentLayout
from sessionary.layouts.archiving import is_safe
from sessionary.layouts.base import Layout
from sessionary.layouts.files import FROM_COPY, LINES
from sessionary.model import Problem, SessionRef, Severity

ROUNDS = 1000
"""Most checks of a copy."""
_COMPRESSED = ".zst"
_OF_BASE = frozenset({"missing_page", "bad_cut"})
"""Problems of a page with the one before it, which in a copy may be missing because it is of another session."""


@dataclass(slots=True)
class MendedCopy:
    """A repaired copy that was written.

    Attributes:
        ref: the session of which it is a copy.
        copy: the session in the copy.
        home: the folder that the copy was written to, which `Workspace` and `--home` accept.
        paths: the files.
        mends: what was changed; the lines of damage are those of the original, all others those of the copy.
        remaining: what is still wrong with the copy.
        lost: bytes of damaged lines that hold no record; they are in the original only.
    """

    ref: SessionRef
    copy: SessionRef
    home: str
    paths: list[str] = field(default_factory=list)
    mends: list[Mend] = field(default_factory=list)
    remaining: list[Problem] = field(default_factory=list)
    lost: int = 0


def mended_copy(layout: Layout, ref: SessionRef, out: Path, fs: Fs) -> MendedCopy:
    """Write a repaired copy of a session; see `Workspace.mended_copy`."""
    if not isinstance(layout, AgentLayout):
        hint = "`sessionary repair ID` without --out repairs it in place, and can be undone"
        raise Unsupported(
            f"no copy is made of sessions of kind {ref.kind}", session=ref.session_id, hint=hint
        )
    home = os.path.abspath(out)
    if f"{os.path.realpath(home)}/".startswith(f"{os.path.realpath(layout.home)}/"):
        raise Invalid(f"{home} is in the folder of the agent", path=home, hint="give a folder elsewhere")
    main, others = _files(layout, ref)
    source, target = main[1], _target(home, main[0])
    for path in (target, *(_beside(home, other) for other in others)):
        if is_there(fs, path):
            raise AlreadyExists(
                f"{path} already exists", path=path, hint="give another folder, or an empty one"
            )
    before = list(layout.check(ref))
    found = MendedCopy(ref, ref, home)
    mender = _salvaged(found, fs, source, before)
    for other, path in others.items():
        if any(one.code == "bad_document" and one.path == path for one in before):
            found.mends.append(Mend("bad_document", None, f"{other} is left out"))
            continue
        made = _beside(home, other)
        make_folder(fs, os.path.dirname(made))
        if any(one.code in _OF_BASE and one.path == path for one in before) and path.endswith(".jsonl"):
            page = _salvaged(found, fs, path, before)
            _mend_base(found, page, layout, path, before)
            atomic.replace(made, (line.data for line in page.lines), fs=fs)
        else:
            atomic.copy_file(path, made, fs=fs)
        found.paths.append(made)
    make_folder(fs, os.path.dirname(target))
    _mend_base(found, mender, layout, source, before)
    _mend(found, mender, layout, target, fs, before)
    found.paths.insert(0, target)
    return found


def _files(layout: AgentLayout, ref: SessionRef) -> tuple[tuple[str, str], dict[str, str]]:
    """The file of a session, and others that it needs, also of other sessions, by their names below the home."""
    hint = f"`sessionary export {ref.session_id} --format json` writes what can be read of it"
    if layout.place_of_rows(ref) is not None:
        raise Unsupported(
            "a session in a database cannot be repaired into a copy", path=ref.locator, hint=hint
        )
    files = (layout.files(ref) or {"": ref.locator}) | layout.borrowed(ref)
    (name, source), *others = files.items()
    if not name.endswith(LINES):
        raise Unsupported(
            f"only JSON Lines files can be repaired into a copy; {os.path.basename(source)} has none",
            path=source,
            hint=hint,
        )
    unsafe = next((one for one, _ in ((name, source), *others) if not is_safe(one)), None)
    if unsafe is not None:
        raise Invalid(f"the name {unsafe!r} leads out of a folder", path=source)
    return (name, source), dict(others)


def _target(home: str, name: str) -> str:
    """The path of the copy of a file, which is not compressed."""
    return os.path.join(home, *name.removesuffix(_COMPRESSED).split("/"))


def _beside(home: str, name: str) -> str:
    """The path of the copy of a file that belongs to a session, byte for byte."""
    return os.path.join(home, *name.split("/"))


def _mend_base(
    found: MendedCopy, mender: Mender, layout: AgentLayout, path: str, before: list[Problem]
) -> None:
    """Mend where the page at this path continues the one before it."""
    for problem in before:
        if problem.code in _OF_BASE and problem.path == path:
            end = None if problem.code == "missing_page" else layout.base_end(path)
            found.mends += filter(None, (mender.mend_base(problem, end),))


def _salvaged(found: MendedCopy, fs: Fs, source: str, before: list[Problem]) -> Mender:
    """The records of a file, also those within damaged lines."""
    from sessionary.layouts.amplifier.salvage import salvage

    data = _unpacked(found, fs, source) if source.endswith(_COMPRESSED) else read_bytes(fs, source) or b""
    done = salvage(data)
    codes = {one.line: one.code for one in before if one.path == source and one.code in CODES}
    found.mends += [Mend(codes.get(fix.line, fix.code), fix.line, fix.what) for fix in done.fixes]
    found.lost = sum(fix.lost for fix in done.fixes)
    lines = [Line(value, raw) for raw, value in zip(done.lines, done.values, strict=True)]
    if not lines and (data or found.mends):
        message = f"no record in {source} can be read"
        raise Corrupt(message, path=source, session=found.ref.session_id, hint=FROM_COPY)
    return Mender(found.ref.kind, found.ref.session_id, lines)


def _unpacked(found: MendedCopy, fs: Fs, source: str) -> bytes:
    """The text of a compressed file; if it is damaged, what is before that."""
    from sessionary.layouts.compressed import Damaged, decompressed

    pieces = list[bytes]()
    try:
        pieces.extend(decompressed(fs, source))
    except Damaged:
        found.mends.append(Mend("bad_zstd", None, "what cannot be decompressed is left out"))
    return b"".join(pieces)


def _mend(
    found: MendedCopy, mender: Mender, layout: AgentLayout, target: str, fs: Fs, before: list[Problem]
) -> None:
    """Write the copy, check it, and change it, until no problem is left that a rule solves.

    Raises:
        NotFound: the layout does not find the copy.
    """
    # The tools of the copy are not at work, so that calls without a result count wherever they are.
    later = layout._now() + 2 * BUSY
    copied = type(layout)(Path(found.home), fs, now=lambda: later)
    seen: list[Counter[tuple[str, str]]] = []
    wanted = [one for one in before if one.code == "id_clash"]  # a copy has no twin
    while True:
        atomic.replace(target, (line.data for line in mender.lines), fs=fs, durable=False)
        copy = copied.ref_for_path(Path(target))
        if copy is None:
            raise NotFound("the copy is not found by the layout of its agent", path=target)
        found.copy, found.remaining = copy, list(copied.check(copy))
        state = Counter((one.code, one.message) for one in found.remaining)
        if state in seen or len(seen) == ROUNDS:
            break
        seen.append(state)
        mine = [one for one in (*wanted, *found.remaining) if one.path == target or one.code == "id_clash"]
        # The last line first: lines before a change keep their numbers.
        mends = map(mender.mend, sorted(mine, key=lambda one: one.line or 0, reverse=True))
        if not (done := [mend for mend in mends if mend is not None]):
            break
        found.mends += done
        wanted = []
    atomic.replace(target, (line.data for line in mender.lines), fs=fs)
    # Other problems are there only because the copy is outside of the home, such as a missing index.
    codes = {one.code for one in before}
    found.remaining = [
        one
        for one in found.remaining
        if one.severity > Severity.note
        and (one.code in codes or (one.line is not None and one.code not in _OF_BASE))
    ]
