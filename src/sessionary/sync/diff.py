"""What is here, what is there, and what both had last: for each file, who has gone on since.

Three states decide, as in any merge. Where only one side has changed, it is right, whether it added or took away.
Where both have, the bytes are compared: a journal that is the beginning of the other has merely stayed behind, and
**growth wins over a rewind**, because nothing is lost that way. What then remains is brought together if the policy of
the file says how, and is a real conflict otherwise.

A journal that does not go on from the agreed one was rewound only if the head says so: it names how far that journal
had come. Otherwise the other side never had what was agreed, or has lost it, as a store does that is put back to an
earlier state. Then both sides count as changed.

A file that is missing is never taken for one that was removed. It comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sessionary.disk.fs import Fs
from sessionary.disk.spooled_file import Spool
from sessionary.errors import RemoteError
from sessionary.layouts.base import PartKind
from sessionary.layouts.sync import Policy, Rule
from sessionary.sync import bundles
from sessionary.sync.blocks import Bytes, Piece
from sessionary.sync.heads import LINES, Head, PartHead, follows, kind_of
from sessionary.sync.incoming import MISSING, Theirs, fetch
from sessionary.sync.local_files import LocalPart, Matched, match, opened
from sessionary.sync.remote import Remote
from sessionary.sync.rules import Rules
from sessionary.sync.state import SyncedState


class Verdict(Enum):
    """Who is right about one file."""

    SAME = "same"
    OURS = "ours"
    THEIRS = "theirs"
    MERGE = "merge"
    CONFLICT = "conflict"
    HELD = "held"


MERGED = frozenset({Policy.IMMUTABLE, Policy.UNION, Policy.LEDGER, Policy.FIELDS})
"""The policies by which two versions become one."""

RuleOf = Callable[[str], Rule]


@dataclass(slots=True)
class Comparison:
    """All files of a session, compared.

    Attributes:
        verdicts: who is right about each.
        theirs: those of the other side that had to be fetched.
        matched: with how many agreed pieces each file here begins.
        pieces: where the blocks of each file of the other side end.
        bases: of documents that are brought together field by field, what both sides had last, if that is known.
        spool: where the blocks lie that were fetched.
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
        """True if the conversation went on at both sides. What is beside it never parts a session."""
        lines = {verdict for name, verdict in self.verdicts.items() if rule(name).policy is Policy.FORK}
        return Verdict.CONFLICT in lines or {Verdict.OURS, Verdict.THEIRS} <= lines

    def for_a_person(self, rule: RuleOf) -> list[str]:
        """The files that both sides have changed and nobody but a person may bring together."""
        return [
            name
            for name, verdict in self.verdicts.items()
            if verdict is Verdict.CONFLICT and rule(name).policy is Policy.MANUAL
        ]

    def awaits_person(self, rule: RuleOf) -> bool:
        """True if there are such files."""
        return bool(self.for_a_person(rule))


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
    """Compare what is here with a head of the other side, fetching only what must be looked at or brought here.

    What is fetched goes into `spool`; if none is given, into one in the folder for temporary files. Of the files in
    `closed` nothing is looked at: they lie out of the store.

    Raises:
        RemoteError, Corrupt, Unsupported, StorageFailed: as `incoming.fetch`.
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
    """True if the other side has another version of one of these files than was agreed."""
    before = {part.name: part.chain for part in agreed.head.parts} if agreed else {}
    return any(before.get(part.name) != part.chain for part in _carried(head, rules) if part.name in names)


def _carried(head: Head, rules: Rules) -> list[PartHead]:
    return [part for part in head.parts if rules.carries(kind_of(part))]


def _is_base(agreed: SyncedState, head: Head, theirs: Theirs) -> bool:
    """True if a file of the other side came of the agreed one: by going on from it, or by a rewind that the head names.

    The first generation from the agreed one on in which the journal was rewound says how far it had come by then. Less
    than was agreed, and it was another journal. Where that is forgotten by now, the numbers of the devices tell.
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
    """True for a tombstone of which only the name is left, and that is news here: what was agreed is what was trashed.

    Where it is no news, what is here was brought back from the trash.
    """
    return head.deleted and not head.parts and agreed is not None and not agreed.head.deleted


def _add_base(remote: Remote, result: Comparison, agreed: SyncedState | None, name: str) -> None:
    """Fetch what was agreed of a document. No head points to it any more: it may have been removed since."""
    parts = agreed.head.parts if agreed else ()
    for part in parts:
        if agreed is not None and part.name == name:
            try:
                result.bases[name] = b"".join(
                    fetch(remote, agreed.head.space, part, (), 0, result.spool).all(None)
                )
            except RemoteError as error:
                if MISSING not in error.details:
                    raise


def fetch_rest(
    remote: Remote, result: Comparison, agreed: SyncedState | None, head: Head, rules: Rules
) -> None:
    """Fetch what has not been fetched of a head, because all of it is wanted after all."""
    for part in head.parts:
        if rules.carries(kind_of(part)) and part.name not in result.theirs:
            pieces = agreed.pieces.get(part.name, []) if agreed else []
            matched = result.matched.get(part.name, Matched(0, False))
            result.theirs[part.name] = fetch(remote, head.space, part, pieces, matched.pieces, result.spool)


def judge(fs: Fs, here: LocalPart, theirs: Theirs, rule: Rule) -> Verdict:
    """Who is right about a file that both sides have changed, by its bytes."""
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
    """Who is right about a bundle: it is a set of files, and their order says nothing."""
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
    """With how many bytes a file and a version of the remote begin alike."""
    at = theirs.start
    for raw in theirs.rest(file):
        ours = file.read(at, min(len(raw), size - at))
        if ours != raw:
            return at + next(
                (n for n, (a, b) in enumerate(zip(ours, raw, strict=False)) if a != b), len(ours)
            )
        at += len(raw)
    return at
