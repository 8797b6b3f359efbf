"""Owner files: each pull stores beside a ledger the device that its head names as the only consumer."""

from __future__ import annotations

from collections.abc import Mapping

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.layouts import ledger_owner
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.links import Links


def settle_owners(fs: Fs, layout: SyncLayout, ref: SessionRef, named: Mapping[str, str], device: str) -> None:
    """Write the owner file of each ledger of a session that is here. Durability: as `name_owner`."""
    if named and stat_or_none(fs, ref.locator) is not None:
        links = Links(fs, layout)
        for name, owner in named.items():
            ledger = layout.path_of(ref, name)
            if links.of(ref, ledger) is None and links.of(ref, ledger_owner.path_beside(ledger)) is None:
                ledger_owner.name_owner(ledger, owner, here=owner == device, fs=fs)
