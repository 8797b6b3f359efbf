"""Configuration of Cosmos DB: validated values, and where users keep them.

Imports nothing of Azure and does not use the network, so a program that only might synchronise pays nothing.

Values come from the environment and from the user's own settings file. The settings file of a project is never read:
the author of a repository could otherwise send the sessions of everyone who clones it to their own database.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from sessionary.codec.yaml_read import load_yaml
from sessionary.errors import Invalid, StorageFailed

SETTINGS: Final = Path("~/.amplifier/settings.yaml")
SECTION: Final = "session_storage"
DATABASE: Final = "amplifier-db"
CONTAINER: Final = "sessionary"
"""Not ``sessions``: the original creates a container of that name with another partition key, which cannot be changed.
"""

EMULATOR_KEY: Final = (
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)
"""The key that Microsoft publishes in the manual of its emulator. Not a secret: every emulator accepts it."""

_PREFIX: Final = "AMPLIFIER_COSMOS_"
_FIELDS: Final = ("endpoint", "database", "container", "key", "auth_method")
_ENABLE: Final = "AMPLIFIER_ENABLE_SYNC"
_OFF: Final = frozenset({"local", "off", "false", "no", "none", "disabled", "0"})
_ON: Final = frozenset({"hybrid", "cloud", "on", "true", "yes", "enabled", "1"})
_BY_CREDENTIAL: Final = frozenset({"default_credential", "managed_identity", "service_principal"})


@dataclass(frozen=True, slots=True, repr=False)
class CosmosConfig:
    """A container of an Azure Cosmos DB account (API for NoSQL), and the credentials.

    Without key and credential, `azure.identity.DefaultAzureCredential` is used: environment, managed identity, ``az
    login``. On an ``http://`` endpoint, which only emulators have, the emulators' published key is used instead.

    Args:
        endpoint: the account's address, as ``https://NAME.documents.azure.com:443/``.
        database: name of the database.
        container: name of the container; ``sync init`` creates both.
        key: an account key. It is never shown.
        credential: an object of `azure.identity`, or any other with a ``get_token``.

    Raises:
        Invalid: a value is invalid; the message never contains the key.
    """

    endpoint: str
    database: str
    container: str
    key: str | None = None
    credential: Any = None

    def __post_init__(self) -> None:
        _check_endpoint(self.endpoint)
        _check_name("database", self.database)
        _check_name("container", self.container)
        if self.key is not None:
            _check_key(self.key)
        if self.credential is not None:
            self._check_credential()

    def __repr__(self) -> str:
        way = "key" if self.key else "credential" if self.credential else ""
        hidden = f", {way}=<hidden>" if way else ""
        return (
            f"CosmosConfig(endpoint={self.endpoint!r}, database={self.database!r}, "
            f"container={self.container!r}{hidden})"
        )

    @property
    def is_plain(self) -> bool:
        """True if the endpoint has no TLS: an emulator."""
        return urlsplit(self.endpoint).scheme.lower() == "http"

    @property
    def address(self) -> str:
        """Return the address of this container as ``sync init`` accepts it, normalised."""
        parts = urlsplit(self.endpoint)
        host = (parts.hostname or "").lower()
        host = f"[{host}]" if ":" in host else host
        scheme, default = ("cosmos+http", 80) if self.is_plain else ("https", 443)
        port = "" if parts.port in (None, default) else f":{parts.port}"
        return f"{scheme}://{host}{port}/{quote(self.database, safe='')}/{quote(self.container, safe='')}"

    def _check_credential(self) -> None:
        if self.key is not None:
            raise Invalid("key and credential are both given", hint="give one of the two")
        if not callable(getattr(self.credential, "get_token", None)):
            raise Invalid(
                f"a credential has a method get_token; {type(self.credential).__name__} has none",
                hint="give an account key as key=, or an object of azure.identity as credential=",
            )
        if self.is_plain:
            raise Invalid(
                "a credential cannot be used with an http:// endpoint: tokens are only sent over TLS",
                hint="use https://, or leave the credential out to use the key of the emulators",
            )


def load_cosmos_config_from_settings(
    settings: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None
) -> CosmosConfig | None:
    """Return the database that the user configured; None if there is none, so that everything stays local.

    Variables (``AMPLIFIER_COSMOS_ENDPOINT``, ``_DATABASE``, ``_CONTAINER``, ``_KEY``, ``_AUTH_METHOD``) take
    precedence over the section ``session_storage`` of the settings file, value by value::

        session_storage:
          mode: hybrid          # local: nothing is synchronised
          cosmos:
            endpoint: https://NAME.documents.azure.com:443/
            database: amplifier-db      # default
            container: sessionary       # default
            auth_method: default_credential   # or key, then with key: ...

    A key of the file is used only with the endpoint of the file, so that it is never shown to another account. Each
    of ``mode`` and ``AMPLIFIER_ENABLE_SYNC`` turns everything off with ``local``, ``off``, ``false``, ``no``,
    ``none``, ``disabled`` or ``0``, in any case; ``hybrid``, ``cloud``, ``on``, ``true``, ``yes``, ``enabled`` and
    ``1`` leave it on, as if it were not given.

    Args:
        settings: the settings file; `SETTINGS` by default. It may be missing.
        environ: the environment; that of the process by default.

    Raises:
        Invalid: the configuration is incomplete, a value is invalid, or the mode is none of these words: nothing is
            then sent that may be meant to stay local. The message names the source.
        Corrupt: the settings file is not YAML.
        StorageFailed: the settings file exists and cannot be read.
    """
    env = os.environ if environ is None else environ
    path = Path(os.path.expanduser(SETTINGS if settings is None else settings))
    asked = env.get(_ENABLE, "").strip()
    if asked and not _is_on(asked, f"{_ENABLE} in the environment"):
        return None
    section = _section(path)
    if "mode" in section and not _is_on(section["mode"], f"{SECTION}.mode in {path}"):
        return None
    given = {name: env.get(_PREFIX + name.upper(), "").strip() for name in _FIELDS}
    filed = _texts(section.get("cosmos"), path)
    if given["endpoint"] and given["endpoint"] != filed.get("endpoint"):
        filed.pop("key", None)
    values = filed | {name: value for name, value in given.items() if value}
    if not values.get("endpoint"):
        _refuse_half(values, section, path)
        return None
    try:
        return CosmosConfig(
            values["endpoint"],
            values.get("database") or DATABASE,
            values.get("container") or CONTAINER,
            key=_key(values),
        )
    except Invalid as error:
        where = f"from {_PREFIX}* in the environment and {SECTION} in {path}"
        raise Invalid(f"{error.message} ({where})", path=path, hint=error.hint) from None


def _is_on(mode: object, where: str) -> bool:
    """Return whether a mode means on. YAML reads `off`, `no` and `false` as False.

    Raises:
        Invalid: the mode is unknown.
    """
    word = _word(mode)
    if word in _OFF:
        return False
    if word in _ON:
        return True
    what = "empty" if mode is None else f"{mode!r}, which is not a known mode"
    raise Invalid(
        f"{where} is {what}; synchronisation is off",
        hint="write hybrid to synchronise, or local to keep everything on this machine",
    )


def _word(value: object) -> str:
    return str(value).strip().lower() if isinstance(value, str | int) else ""


def _key(values: Mapping[str, str]) -> str | None:
    key, method = values.get("key") or None, values.get("auth_method")
    if method in _BY_CREDENTIAL:
        return None
    if method not in (None, "", "key"):
        known = ", ".join(["key", *sorted(_BY_CREDENTIAL)])
        raise Invalid(f"unknown auth_method {method!r}", hint=f"one of {known}")
    if method == "key" and key is None:
        raise Invalid(
            "the auth_method is key, and the key is missing",
            hint=f"set {_PREFIX}KEY; a key in the settings file is used only with the endpoint in the same file",
        )
    return key


def _refuse_half(values: Mapping[str, str], section: Mapping[str, Any], path: Path) -> None:
    """Refuse an incomplete configuration: staying local silently would look like being synchronised."""
    if any(values.values()) or "mode" in section:
        raise Invalid(
            f"Cosmos DB is set up without an endpoint (from {_PREFIX}* in the environment and {SECTION} in {path})",
            path=path,
            hint=f"set {_PREFIX}ENDPOINT or {SECTION}.cosmos.endpoint, or mode: local",
        )


def _section(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StorageFailed(
            f"{path} cannot be read: {error.strerror}", path=path, errno=error.errno
        ) from error
    whole = load_yaml(data, path=str(path))
    section = whole.get(SECTION) if isinstance(whole, dict) else None
    if _word(section) in _OFF:
        return {"mode": "off"}  # `session_storage: off`
    if section is not None and not isinstance(section, dict):
        raise Invalid(
            f"{SECTION} in {path} is not a map", path=path, hint="write cosmos: and its values below it"
        )
    return section or {}


def _texts(section: object, path: Path) -> dict[str, str]:
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise Invalid(f"{SECTION}.cosmos in {path} is not a map", path=path, hint="write endpoint: below it")
    odd = [name for name in _FIELDS if not isinstance(section.get(name), str | None)]
    if odd:
        raise Invalid(f"{SECTION}.cosmos.{odd[0]} in {path} is not text", path=path, hint="put it in quotes")
    return {name: (section.get(name) or "").strip() for name in _FIELDS}


def _check_endpoint(endpoint: object) -> None:
    hint = "use https://NAME.documents.azure.com:443/; az cosmosdb show --query documentEndpoint prints it"
    if not isinstance(endpoint, str) or not endpoint:
        raise Invalid("the endpoint of Cosmos DB is missing", hint=hint)
    if "accountkey=" in endpoint.lower():
        raise Invalid(
            "the endpoint is a whole connection string", hint="give its AccountEndpoint and its AccountKey"
        )
    try:
        parts = urlsplit(endpoint)
        _ = parts.port  # an invalid port is detected only here
    except ValueError:
        raise Invalid(f"the endpoint {endpoint!r} is not an address", hint=hint) from None
    if parts.scheme.lower() not in ("https", "http") or not parts.hostname:
        raise Invalid(f"the endpoint {endpoint!r} is not an https:// address", hint=hint)
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise Invalid("an endpoint has only a host and a port: no user, path or query", hint=hint)


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise Invalid(f"the name of the {what} is missing")
    if len(name) > 255 or name != name.strip() or any(sign in name for sign in "/\\?#\n\r\0"):
        raise Invalid(
            f"{name[:80]!r} cannot be the name of a {what}",
            hint="up to 255 characters, no blank at the ends, none of / \\ ? #",
        )


def _check_key(key: object) -> None:
    try:
        if isinstance(key, str) and base64.b64decode(key, validate=True):
            return
    except (binascii.Error, ValueError):
        pass
    raise Invalid(
        "the key of Cosmos DB is invalid: it must be base64",
        hint="az cosmosdb keys list --query primaryMasterKey prints it",
    ) from None
