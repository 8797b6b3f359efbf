"""Comparison of local files, remote files and their agreed state: which side has changed each file.

As in any merge, three states decide. If one side has changed, it wins, whether it added or removed. If both have, the
bytes are compared: a journal that is a prefix of the other is merely behind, and **growth wins over a rewind**,
because that loses nothing. Otherwise the file is merged if its policy says how, or is a conflict.

A journal that does not continue the agreed one was rewound only if the head says so: the head states the earlier
length of that journal. Otherwise the remote never had the agreed version, or has lost it, for instance a store that
was restored from a backup. Then both sides count as changed.

A missing file is never treated as removed. It is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sessionary.disk.fs import Fs
from sessionary.disk.spooled_file import Spool
from sessionary.disk.truncate import common_prefix
from sessionary.errors import RemoteError
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import Policy, Rule
from sessionary.sync import bundles
from sessionary.sync.blocks import Bytes, Piece
from sessionary.sync.download import MISSING, Theirs, fetch
from sessionary.sync.heads import LINES, Head, PartHead, follows, kind_of
from sessionary.sync.local_files import LocalPart, Matched, match, opened
from sessionary.sync.remote import Remote
from sessionary.sync.rules import Rules
from sessionary.sync.state import SyncedState


class Verdict(Enum):
    """Which side wins for one file."""

    SAME = "same"
    OURS = "ours"
    THEIRS = "theirs"
    MERGE = "merge"
    CONFLICT = "conflict"
    HELD = "held"


MERGED = frozenset({Policy.IMMUTABLE, Policy.UNION, Policy.LEDGER, Policy.FIELDS})
"""Policies that merge two versions into one."""

RuleOf = Callable[[str], Rule]


@dataclass(slots=True)
class Comparison:
    """Comparison of all files of a session.

    Attributes:
        verdicts: the verdict on each file.
        matched: the number of agreed pieces that each local file starts with.
        pieces: block ends of each remote file.
        bases: the last agreed version of documents that are merged by field, if known.
    """

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    theirs: dict[str, Theirs] = field(default_factory=dict)
    matched: dict[str, Matched] = field(default_factory=dict)
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    bases: dict[str, bytes] = field(default_factory=dict)
    spool: Spool = field(default_factory=Spool)

    def all_are(self, *verdicts: Verdict) -> bool:
        """True if every file has one of these verdicts."""
        return set(self.verdicts.values()) <= set(verdicts)

    def is_diverged(self, rule: RuleOf) -> bool:
        """True if both sides continued the conversation. Other files never fork a session."""
        lines = {verdict for name, verdict in self.verdicts.items() if rule(name).policy is Policy.FORK}
        return Verdict.CONFLICT in lines or {Verdict.OURS, Verdict.THEIRS} <= lines

    def for_user(self, rule: RuleOf) -> list[str]:
        """Return the files that both sides have changed and only the user can merge."""
        return [
            name
            for name, verdict in self.verdicts.items()
            if verdict is Verdict.CONFLICT and rule(name).policy is Policy.MANUAL
        ]


def compare(
    fs: Fs,
    remote: Remote,
    mine: Mapping[str, LocalPart],
    agreed: SyncedState | None,
    head: Head,
    rules: Rules,
    rule: RuleOf,
    spool: Spool | None = None,
    closed: Collection[str] = (),
) -> Comparison:
    """Compare local files with a head of the remote; fetch only what must be compared or pulled.

    Fetched blocks go into `spool`, or into one in the folder for temporary files. Files in `closed` are skipped: they
    are outside the store.

    Raises:
        RemoteError, Corrupt, Unsupported: as `download.fetch`.
    """
    result = Comparison(spool=Spool(fs=fs) if spool is None else spool)
    there = {part.name: part for part in _carried(head, rules) if part.name not in closed}
    before = {part.name: part.chain for part in agreed.head.parts} if agreed else {}
    goes_on = agreed is not None and follows(head, agreed.head)
    for name in sorted({*mine, *there}):
        pieces = agreed.pieces.get(name) if agreed else None
        here = mine.get(name)
        matched = Matched(0, False)
        if here is not None:
            matched = match(fs, here, pieces, agreed.seen.get(name) if agreed else None)
        result.matched[name] = matched
        if (part := there.get(name)) is None:
            result.verdicts[name] = (
                Verdict.SAME if matched.same and goes_on and _is_emptied(head, agreed) else Verdict.OURS
            )
            continue
        unmoved = pieces is not None and before.get(name) == part.chain
        if here is not None and unmoved and pieces is not None:
            result.verdicts[name] = Verdict.SAME if matched.same else Verdict.OURS
            result.pieces[name] = pieces
            continue
        theirs = fetch(remote, head.space, part, pieces or (), matched.pieces, result.spool)
        result.theirs[name], result.pieces[name] = theirs, theirs.pieces
        is_base = goes_on and agreed is not None and _is_base(agreed, head, theirs)
        result.verdicts[name] = (
            Verdict.THEIRS
            if here is None or (matched.same and is_base)
            else judge(fs, here, theirs, rule(name))
        )
        if result.verdicts[name] is Verdict.MERGE and rule(name).policy is Policy.FIELDS and goes_on:
            _add_base(remote, result, agreed, name)
    return result


def moved(head: Head, agreed: SyncedState | None, rules: Rules, names: Collection[str]) -> bool:
    """True if the remote version of one of these files differs from the agreed one."""
    before = {part.name: part.chain for part in agreed.head.parts} if agreed else {}
    return any(before.get(part.name) != part.chain for part in _carried(head, rules) if part.name in names)


def _carried(head: Head, rules: Rules) -> list[PartHead]:
    return [part for part in head.parts if rules.carries(kind_of(part))]


def _is_base(agreed: SyncedState, head: Head, theirs: Theirs) -> bool:
    """True if a remote file derives from the agreed one: continued, or rewound as the head states.

    The first generation after the agreed one in which the journal was rewound states its length at that time. If that
    is shorter than agreed, it was another journal. If the generation is forgotten, the numbers of the devices decide.
    """
    name = theirs.part.name
    pieces = agreed.pieces.get(name)
    if theirs.part.kind not in LINES or not pieces:
        return True
    n, chain = len(pieces), pieces[-1].chain
    if len(theirs.pieces) >= n and theirs.pieces[n - 1].chain == chain:
        return True
    for past in head.history:
        if past.gen >= agreed.head.gen and name in past.tips:
            count, tip = past.tips[name]
            return count > n or (count == n and tip == chain)
    return bool(head.counts and agreed.head.counts)


def _is_emptied(head: Head, agreed: SyncedState | None) -> bool:
    """True for a tombstone without parts that is new here: the agreed version is what was trashed.

    If it is not new, the local session was restored from the trash.
    """
    return head.deleted and not head.parts and agreed is not None and not agreed.head.deleted


def _add_base(remote: Remote, result: Comparison, agreed: SyncedState | None, name: str) -> None:
    """Fetch the agreed version of a document. No head refers to it any more, so it may have been removed."""
    if agreed is None or (part := agreed.head.part(name)) is None:
        return
    try:
        result.bases[name] = b"".join(fetch(remote, agreed.head.space, part, (), 0, result.spool).all(None))
    except RemoteError as error:
        if MISSING not in error.details:
            raise


def fetch_part(
    remote: Remote, result: Comparison, agreed: SyncedState | None, head: Head, part: PartHead
) -> None:
    """Fetch a file of a head, unless it was fetched."""
    if part.name not in result.theirs:
        pieces = agreed.pieces.get(part.name, []) if agreed else []
        matched = result.matched.get(part.name, Matched(0, False))
        result.theirs[part.name] = fetch(remote, head.space, part, pieces, matched.pieces, result.spool)


def fetch_rest(
    remote: Remote, result: Comparison, agreed: SyncedState | None, head: Head, rules: Rules
) -> None:
    """Fetch the remaining files of a head."""
    for part in _carried(head, rules):
        fetch_part(remote, result, agreed, head, part)


def judge(fs: Fs, here: LocalPart, theirs: Theirs, rule: Rule) -> Verdict:
    """Compare the bytes of a file that both sides have changed."""
    if here.kind is PartKind.BUNDLE:
        return _judge_sets(fs, here, theirs)
    with opened(fs, here) as file:
        assert file is not None
        common = common_bytes(file, here.size, theirs)
    if common == here.size == theirs.part.size:
        return Verdict.SAME
    if here.kind is not PartKind.DOCUMENT and common == here.size:
        return Verdict.THEIRS
    if here.kind is not PartKind.DOCUMENT and common == theirs.part.size:
        return Verdict.OURS
    return Verdict.MERGE if rule.policy in MERGED else Verdict.CONFLICT


def _judge_sets(fs: Fs, here: LocalPart, theirs: Theirs) -> Verdict:
    """Compare bundles: they are sets of files without an order."""
    with opened(fs, here) as file:
        assert file is not None
        ours = set(bundles.unpack_items([file.read(0, here.size)]))
        others = set(bundles.unpack_items(theirs.all(file)))
    if ours == others:
        return Verdict.SAME
    if ours <= others:
        return Verdict.THEIRS
    return Verdict.OURS if others <= ours else Verdict.MERGE


def common_bytes(file: Bytes, size: int, theirs: Theirs) -> int:
    """Return the length of the common prefix of a file and a remote version."""
    at = theirs.start
    for raw in theirs.rest(file):
        ours = file.read(at, min(len(raw), size - at))
        if ours != raw:
            return at + common_prefix(ours, raw)
        at += len(raw)
    return at
