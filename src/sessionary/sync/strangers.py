"""Sessions on a remote of a kind that only newer versions know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sessionary.sync.heads import place_of
from sessionary.sync.remote import HeadRecord
from sessionary.sync.report import Outcome, Report, SyncStatus
from sessionary.sync.rules import Rules


def strangers(
    records: Iterable[HeadRecord], known: Collection[str], rules: Rules
) -> Iterator[tuple[str, Report]]:
    """Yield a report for each unknown kind, with its sessions as held back.

    Args:
        records: the heads on the remote.
        known: the known kinds.
        rules: which projects are synchronised.
    """
    found: dict[str, Report] = {}
    for record in records:
        place = place_of(record.data)
        if place is None or place.kind in known or not rules.admits(place.project):
            continue
        note = f"sessions of the kind {place.kind!r} need a newer version of Sessionary"
        outcome = Outcome(place.session, place.project, SyncStatus.HELD_BACK, note)
        found.setdefault(place.kind, Report()).outcomes.append(outcome)
    yield from sorted(found.items())
