"""Owner of a ledger: the one device that writes it, named in a small file beside it.

A mailbox is consumed on one device: two would both apply a message, each without the other's ledger. Sync names the
device in the head of the session, and each pull writes it into this file. A consumer looks at this file and nowhere
else. A user may take a ledger over: the file then says so until the next push has named this device.

The file is `.<ledger>.owner`, a JSON object: ``{"device": …, "here": false}`` for another device, ``true`` once this
one has taken over. Without the file no other device is known to consume.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.errors import Conflict


class Owner(Struct, frozen=True):
    """The owner of a ledger.

    Attributes:
        device: the device that the last head named; empty if it named none.
        here: True if this device has taken over since.
    """

    device: str
    here: bool


_decode = msgspec.json.Decoder(Owner).decode


def path_beside(ledger: str) -> str:
    """Return the path of the owner file of a ledger."""
    folder, name = os.path.split(ledger)
    return os.path.join(folder, f".{name}.owner")


def owner_of(ledger: str, fs: Fs = OS_FS) -> Owner | None:
    """Return the owner of a ledger as known here; None if none is known."""
    data = read_bytes(fs, path_beside(ledger))
    try:
        return None if data is None else _decode(data)
    except msgspec.MsgspecError:
        return Owner("", False)  # damaged: another owner must be assumed


def check(ledger: str, fs: Fs = OS_FS) -> None:
    """Refuse to write to a ledger that another device owns. Raises Conflict."""
    owner = owner_of(ledger, fs)
    if owner is not None and not owner.here:
        raise Conflict(
            f"this mailbox is consumed on another device ({owner.device or 'unknown name'})",
            operation="consume",
            path=ledger,
            details={"device": owner.device},
            hint="consume it there; or take over with --take-over (take_over=True)",
        )


def take_over(ledger: str, fs: Fs = OS_FS) -> bool:
    """Make this device the owner of the ledger; False if no other device owns it.

    Durability: when this returns, it survives a power cut. Other devices learn it with the next push and their pull.
    """
    owner = owner_of(ledger, fs)
    if owner is None or owner.here:
        return False
    _write(ledger, Owner(owner.device, True), fs)
    return True


def name_owner(ledger: str, device: str, *, here: bool, fs: Fs = OS_FS) -> None:
    """Store the owner that the head names. A take-over by this device stays until the head names this device.

    Durability: when this returns, it survives a power cut.
    """
    owner = owner_of(ledger, fs)
    if here:
        if owner is not None:
            _forget(ledger, fs)
    elif owner is None or (not owner.here and owner.device != device):
        _write(ledger, Owner(device, False), fs)


def _write(ledger: str, owner: Owner, fs: Fs) -> None:
    atomic.replace(path_beside(ledger), (msgspec.json.encode(owner),), fs=fs)


def _forget(ledger: str, fs: Fs) -> None:
    atomic.forget_file(path_beside(ledger), fs=fs)
