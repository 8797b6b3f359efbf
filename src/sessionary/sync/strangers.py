"""Sessions on a remote of a kind that this version does not know: a newer one has put them there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sessionary.sync.heads import place_of
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import Outcome, Report, SyncStatus
from sessionary.sync.rules import Rules


def strangers(
    records: Iterable[HeadRecord], known: Collection[str], rules: Rules
) -> Iterator[tuple[str, Report]]:
    """A report for each kind that is not known, with its sessions as held back.

    Args:
        records: the heads on the remote.
        known: the kinds that are known.
        rules: which projects are carried.
    """
    found: dict[str, Report] = {}
    for record in records:
        place = place_of(record.data)
        if place is None or place.kind in known or not rules.admits(place.project):
            continue
        note = f"this version does not know sessions of the kind {place.kind!r}; a newer Sessionary does"
        outcome = Outcome(place.session, place.project, SyncStatus.HELD_BACK, note)
        found.setdefault(place.kind, Report()).outcomes.append(outcome)
    yield from sorted(found.items())
