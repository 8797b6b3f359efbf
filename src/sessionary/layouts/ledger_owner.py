"""Which device writes a ledger: a small file beside it that says whether another device does.

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
    """Who writes a ledger.

    Attributes:
        device: the device that the head named last; empty if it named none.
        here: True if this device has taken over since.
    """

    device: str
    here: bool


_decode = msgspec.json.Decoder(Owner).decode


def path_beside(ledger: str) -> str:
    """The file beside a ledger."""
    folder, name = os.path.split(ledger)
    return os.path.join(folder, f".{name}.owner")


def owner_of(ledger: str, fs: Fs = OS_FS) -> Owner | None:
    """Who writes a ledger, as far as it is known here; None if nobody is known to.

    Raises:
        StorageFailed: the file cannot be read.
    """
    data = read_bytes(fs, path_beside(ledger))
    try:
        return None if data is None else _decode(data)
    except msgspec.MsgspecError:
        return Owner("", False)  # whoever it names, it was not written for nothing


def check(ledger: str, fs: Fs = OS_FS) -> None:
    """Refuse to write to a ledger that another device writes.

    Raises:
        Conflict: it does.
    """
    owner = owner_of(ledger, fs)
    if owner is not None and not owner.here:
        raise Conflict(
            f"this mailbox is consumed on another device ({owner.device or 'whose name cannot be read'})",
            operation="consume",
            path=ledger,
            details={"device": owner.device},
            hint="consume it there; or here from now on, with --take-over (take_over=True)",
        )


def take_over(ledger: str, fs: Fs = OS_FS) -> bool:
    """Let this device write the ledger from now on; False if no other one does.

    Durability: when this returns, it survives a power cut. The others hear of it with the next push and their pull.

    Raises:
        StorageFailed: the disk refused.
    """
    owner = owner_of(ledger, fs)
    if owner is None or owner.here:
        return False
    _write(ledger, Owner(owner.device, True), fs)
    return True


def name_owner(ledger: str, device: str, *, here: bool, fs: Fs = OS_FS) -> None:
    """Lay down whom the head names. Who has taken over here since stays so, until the head names this device.

    Durability: when this returns, it survives a power cut.

    Raises:
        StorageFailed: the disk refused.
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
