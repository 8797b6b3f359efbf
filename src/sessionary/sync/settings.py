"""What a person has chosen about synchronisation, in a file that a person can read and change.

No secret is ever in it: what lets one in is in the environment, or where the store's own client looks (`remotes`).
The file of a project is never read: whoever writes a repository could otherwise send the sessions of everyone who
clones it to a store of theirs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from sessionary.codec import encode_document
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, read_bytes, storage_failed
from sessionary.errors import Invalid, NotFound
from sessionary.sync.redaction import Redaction
from sessionary.sync.remotes import check_address, cosmos_address
from sessionary.sync.rules import Rules

SETTINGS_FILE = "SESSIONARY_SYNC_SETTINGS"
"""The variable that names another file than the usual one."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """What was chosen.

    Attributes:
        remote: the address of the remote.
        tenant: whose sessions these are; the same on all machines of a person.
        device: what this machine is called, for people.
        include: which projects are carried, by patterns of what they are called on all machines.
        exclude: which are not.
        logs: carry event logs too.
        redact: black out what looks like a secret before it is sent.
        redact_rules: further rules for that: regular expressions, by what they are called.
        encrypt: the file with the age identity that everything is encrypted for; None for no encryption.
        options: settings of the store's client that are no secrets.
        projects: folders of projects whose sessions are wanted here, though there are none yet.
    """

    remote: str
    tenant: str
    device: str
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    logs: bool = False
    redact: bool = False
    redact_rules: dict[str, str] = {}
    encrypt: str | None = None
    options: dict[str, str] = {}
    projects: tuple[str, ...] = ()

    def rules(self) -> Rules:
        """What is carried.

        Raises:
            Invalid: a rule for blacking out is no regular expression.
        """
        redaction = Redaction(self.redact_rules) if self.redact or self.redact_rules else None
        return Rules(self.include, self.exclude, self.logs, redaction)


def settings_file(folder: str | None, environ: Mapping[str, str]) -> str | None:
    """Where the settings lie if nothing else is said; None if there is no place for them.

    Args:
        folder: where we keep what a person has configured.
        environ: the environment.
    """
    named = environ.get(SETTINGS_FILE)
    if named:
        return os.path.expanduser(named)
    return None if folder is None else os.path.join(folder, "sync.json")


def load_settings(path: str | os.PathLike[str], *, fs: Fs = OS_FS) -> Settings:
    """The settings in a file.

    Raises:
        NotFound: nothing was set up.
        Invalid: the file is damaged, or holds something that no settings have.
        StorageFailed: it cannot be read.
    """
    data = read_bytes(fs, os.fspath(path))
    if data is None:
        raise NotFound(
            f"synchronisation is not set up here: there is no {os.fspath(path)}",
            path=path,
            hint="`sessionary sync init ADDRESS` does that; for Cosmos DB, AMPLIFIER_COSMOS_ENDPOINT or "
            "session_storage in ~/.amplifier/settings.yaml do, too, unless it is turned off there",
        )
    try:
        settings = msgspec.convert(json.loads(data), Settings)  # `json` reads paths that are not UTF-8, too
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(
            f"{os.fspath(path)}: {error}", path=path, hint="put it right, or run `sync init` anew"
        ) from None
    check_address(settings.remote)
    return settings


def save_settings(path: str | os.PathLike[str], settings: Settings, *, fs: Fs = OS_FS) -> None:
    """Write the settings. Durability: replaces the file whole or not at all, and survives a power cut.

    Raises:
        StorageFailed: the disk refused; the old settings are still there.
    """
    place = Path(path)
    try:
        make_dirs(fs, str(place.parent))
    except OSError as error:
        raise storage_failed(error, "make", str(place.parent)) from error
    data = encode_document(msgspec.to_builtins(settings))  # paths may be any bytes: escaped
    atomic.replace(str(place), (data, b"\n"), fs=fs)


def state_folder(base: str, settings: Settings, home: str | os.PathLike[str], layout: str) -> str:
    """Where this machine remembers what was agreed: one folder for each remote, tenant, home and layout."""
    words = (_address(settings), settings.tenant, layout)
    first, second, last = (word.encode() for word in words)
    digest = sha256(b"\0".join((first, second, os.fsencode(os.path.realpath(home)), last))).hexdigest()[:20]
    return os.path.join(base, f"{layout}-{digest}")


def cache_path(base: str, settings: Settings) -> str:
    """Where this machine keeps the heads that it has fetched: one file for each remote and tenant. It may be lost."""
    return os.path.join(base, f"heads-{_store(settings)}")


def removed_folder(base: str, settings: Settings) -> str:
    """Where this machine keeps for a while what it has removed from a remote: one folder for each, as `cache_path`."""
    return os.path.join(base, f"removed-{_store(settings)}")


def bindings_file(base: str, settings: Settings) -> str:
    """Where this machine remembers which folder is which project: one file for each remote and tenant."""
    return os.path.join(base, f"projects-{_store(settings)}.json")


def _address(settings: Settings) -> str:
    """The same for all spellings, so that commands and programs remember one remote in one place."""
    return (settings.remote and cosmos_address(settings.remote)) or settings.remote


def _store(settings: Settings) -> str:
    """A hash for each remote and tenant. Two stores may have one address: then the options tell them apart."""
    words = (_address(settings), settings.tenant, *(f"{k}={v}" for k, v in sorted(settings.options.items())))
    return sha256("\0".join(words).encode()).hexdigest()[:20]


def read_identity(path: str, *, fs: Fs = OS_FS) -> str:
    """The age identity in a file, as `age-keygen` writes it.

    Raises:
        NotFound: there is no such file.
        Invalid: there is none in it.
    """
    data = read_bytes(fs, os.path.expanduser(path))
    if data is None:
        raise NotFound(
            f"the key file {path} is not here",
            path=path,
            hint="copy it from a machine that has it; without it nothing of the remote can be read",
        )
    for line in data.decode("utf-8", "replace").splitlines():
        if line.startswith("AGE-SECRET-KEY-"):
            return line.strip()
    raise Invalid(f"there is no age identity in {path}", path=path)


def usual_tenant(environ: Mapping[str, str]) -> str:
    """Whose sessions these are where a person has not said it."""
    return stable_name(environ) or "me"


def stable_name(environ: Mapping[str, str]) -> str | None:
    """The name of a person's account, as a first guess at whose sessions these are; None if it is nobody's own."""
    name = environ.get("USER") or environ.get("LOGNAME") or ""
    return name if name and name not in ("root", "runner", "ubuntu", "vscode", "codespace", "node") else None
