"""The user's settings of synchronisation, in an editable file.

The file contains no secrets: credentials are in the environment, or where the store's own client expects them
(`remotes`). The settings file of a project is never read: the author of a repository could otherwise send the
sessions of everyone who clones it to their own store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from sessionary.codec import encode_document
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, make_dirs, make_folder, read_bytes
from sessionary.errors import Invalid, NotFound, StorageFailed
from sessionary.redaction import Redaction
from sessionary.sync.remotes import check_address, cosmos_address
from sessionary.sync.rules import Rules
from sessionary.xdg import xdg_folder

SETTINGS_FILE = "SESSIONARY_SYNC_SETTINGS"
"""Environment variable with the path of another settings file."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings.

    Attributes:
        remote: the address of the remote.
        tenant: the owner of the sessions; the same on all machines of a user.
        device: a readable name of this machine.
        include: projects to synchronise, as patterns of their shared names.
        exclude: projects not to synchronise.
        logs: include event logs.
        redact: redact secrets before sending.
        redact_rules: additional redaction rules: regular expressions by name.
        encrypt: the file with the age identity for encryption; None for no encryption.
        options: settings of the store's client that are not secrets.
        projects: folders of projects whose sessions are wanted here, although there are none yet.
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
        """Return the rules of what is synchronised. Raises Invalid if a redaction rule is not a regular expression."""
        redaction = Redaction(self.redact_rules) if self.redact or self.redact_rules else None
        return Rules(self.include, self.exclude, self.logs, redaction)


def settings_file() -> str | None:
    """Return the path of the settings file; None without a configuration folder."""
    named = os.environ.get(SETTINGS_FILE)
    if named:
        return os.path.expanduser(named)
    folder = xdg_folder("XDG_CONFIG_HOME", "~/.config")
    return None if folder is None else os.path.join(folder, "sync.json")


def load_settings(path: str | os.PathLike[str]) -> Settings:
    """Load the settings from a file.

    Raises:
        NotFound: synchronisation is not set up.
        Invalid: the file is damaged, or has unknown settings.
    """
    data = read_bytes(OS_FS, os.fspath(path))
    if data is None:
        raise NotFound(
            f"synchronisation is not set up: {os.fspath(path)} does not exist",
            path=path,
            hint="run `sessionary sync init ADDRESS`; for Cosmos DB, AMPLIFIER_COSMOS_ENDPOINT or "
            "session_storage in ~/.amplifier/settings.yaml also works, unless it is turned off there",
        )
    try:
        settings = msgspec.convert(json.loads(data), Settings)  # `json` accepts paths that are not UTF-8
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(
            f"{os.fspath(path)}: {error}", path=path, hint="correct it, or run `sync init` again"
        ) from None
    check_address(settings.remote)
    return settings


def save_settings(path: str | os.PathLike[str], settings: Settings) -> None:
    """Write the settings. Durability: replaces the file atomically, and survives a power cut.

    Raises:
        StorageFailed: the file cannot be written; the old settings are unchanged.
    """
    make_folder(OS_FS, os.path.dirname(os.fspath(path)))
    data = encode_document(msgspec.to_builtins(settings))  # paths may be any bytes: escaped
    atomic.replace(os.fspath(path), (data, b"\n"))


def state_folder(base: str, settings: Settings, home: str | os.PathLike[str], layout: str) -> str:
    """Return the folder of the sync state for a remote, tenant, home and layout."""
    words = (_address(settings), settings.tenant, layout)
    first, second, last = (word.encode() for word in words)
    digest = sha256(b"\0".join((first, second, os.fsencode(os.path.realpath(home)), last))).hexdigest()[:20]
    return os.path.join(base, f"{layout}-{digest}")


def cache_path(base: str, settings: Settings) -> str:
    """Return the path of the head cache for a remote and tenant. It may be lost."""
    return os.path.join(base, f"heads-{_store(settings)}")


def removed_folder(base: str, settings: Settings) -> str:
    """Return the folder of copies of blocks that this machine removed from a remote, as `cache_path`."""
    return os.path.join(base, f"removed-{_store(settings)}")


def bindings_file(base: str, settings: Settings) -> str:
    """Return the path of the bindings of folders to projects, for a remote and tenant."""
    return os.path.join(base, f"projects-{_store(settings)}.json")


def _address(settings: Settings) -> str:
    """Normalise the address, so that commands and programs use one state for one remote."""
    return (settings.remote and cosmos_address(settings.remote)) or settings.remote


def _store(settings: Settings) -> str:
    """Return a hash of remote and tenant. Options distinguish stores with the same address."""
    words = (_address(settings), settings.tenant, *(f"{k}={v}" for k, v in sorted(settings.options.items())))
    return sha256("\0".join(words).encode()).hexdigest()[:20]


def read_identity(path: str) -> str:
    """Return the age identity in a file, as `age-keygen` writes it.

    Raises:
        NotFound: the file does not exist.
        Invalid: it contains no identity.
    """
    data = read_bytes(OS_FS, os.path.expanduser(path))
    if data is None:
        raise NotFound(
            f"the key file {path} does not exist",
            path=path,
            hint="copy it from a machine that has it; without it the remote cannot be decrypted",
        )
    for line in data.decode("utf-8", "replace").splitlines():
        if line.startswith("AGE-SECRET-KEY-"):
            return line.strip()
    raise Invalid(f"{path} contains no age identity", path=path)


def usual_tenant(environ: Mapping[str, str]) -> str:
    """Return the default tenant."""
    return stable_name(environ) or "me"


def stable_name(environ: Mapping[str, str]) -> str | None:
    """Return the account name of the user as the default tenant; None for shared account names."""
    name = environ.get("USER") or environ.get("LOGNAME") or ""
    return name if name and name not in ("root", "runner", "ubuntu", "vscode", "codespace", "node") else None


class CacheFile:
    """A cache in a file, see `sync.remotes.head_cache.Cache`.

    Errors of the disk are ignored: callers work without the cache.

    Args:
        path: the file; its folder is made when needed.
    """

    def __init__(self, path: str, fs: Fs = OS_FS) -> None:
        self.path = path
        self._fs = fs

    def read(self) -> bytes | None:
        try:
            return read_bytes(self._fs, self.path)
        except StorageFailed:
            return None

    def keep(self, data: bytes) -> None:
        """Replace the file atomically. Durability: none."""
        try:
            make_dirs(self._fs, os.path.dirname(self.path), durable=False)
            atomic.replace(self.path, (data,), fs=self._fs, durable=False)
        except (OSError, StorageFailed):
            pass
