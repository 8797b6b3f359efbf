"""Remotes: each speaks the verbs of `sync.remote` to one kind of store, and knows nothing of sessions.

`open_remote` tells by an address which one is meant, and imports no other: each needs a library of its own.

No address holds a secret. What lets a person in is taken from where each kind of store has its own place for it: the
environment, a credential of the system, a file of the client (docs/howto/sync.md lists them). An address would be
printed, kept in a settings file, and seen by everyone in the list of processes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sessionary.errors import Invalid
from sessionary.sync.remote import OpenRemote
from sessionary.sync.remotes.head_cache import Cache

if TYPE_CHECKING:
    from sessionary.sync.cosmos_config import CosmosConfig

COSMOS_KEY = "SESSIONARY_COSMOS_KEY", "AMPLIFIER_COSMOS_KEY"
_COSMOS = {"https": "https", "cosmos": "https", "cosmos+http": "http", "cosmos+https": "https"}
_POSTGRES = ("postgresql", "postgres")
_OBJECTS = ("s3", "gs", "az")
_SECRETS = {"password", "sslpassword", "key", "account_key", "secret_access_key", "sas", "sig"}
_OWN = {"url", "tenant", "store", "page_blocks", "page_heads", "cache", "client_options"}
"""What a remote is told by other ways than its options."""

_SHAPES = """\
postgresql://USER@HOST/DATABASE, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX,
https://ACCOUNT.documents.azure.com/DATABASE/CONTAINER, or cosmos+http://HOST:PORT/DATABASE/CONTAINER for an emulator"""


def check_address(url: str) -> str:
    """The address, if it is one of a remote and holds no secret. Asks nothing of the network.

    Raises:
        Invalid: it is none, or holds a secret.
    """
    scheme = _scheme(url)
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or any(
            name.lower() in _SECRETS for name, _ in parse_qsl(parts.query)
        )
    except ValueError as error:
        raise Invalid(f"this is no address: {error}") from None
    if secret:
        raise Invalid(
            f"an address of {scheme}:// with a secret in it is not taken: it would be kept and printed",
            hint="leave it out; docs/howto/sync.md says where each kind of store looks for it",
        )
    if scheme not in _POSTGRES and (parts.query or parts.fragment):
        raise Invalid(
            f"an address of {scheme}:// ends before any ? or #: nothing behind it would be heeded",
            hint=f"addresses are {_SHAPES}",
        )
    if scheme in _COSMOS:
        _cosmos(url, {})
    return url


def open_remote(
    url: str,
    tenant: str,
    *,
    options: Mapping[str, str] | None = None,
    identity: str | None = None,
    environ: Mapping[str, str] | None = None,
    cache: Cache | None = None,
) -> OpenRemote:
    """The remote at an address, seen by one tenant. Asks nothing of the network.

    Args:
        url: where it is; see `check_address`.
        tenant: whose sessions these are.
        options: settings of the client that are no secrets: ``endpoint`` and ``region`` of an object store.
        identity: an age identity; what is stored is then encrypted for it. Without one, a remote that is encrypted
            is refused at the first call that would put something into it, or shows what is in it.
        environ: the environment; that of the process if not given.
        cache: where to keep what makes the next list of heads cheap, for a store where it is not. It may be lost.

    Raises:
        Invalid: this is no address of a remote, or holds a secret.
        Unsupported: the extra that it needs is not installed.
    """
    told = options or {}
    remote = _opened(check_address(url), tenant, told, os.environ if environ is None else environ, cache)
    if identity is None:
        from sessionary.sync.remotes.plain import PlainRemote

        return PlainRemote(remote)
    from sessionary.sync.remotes.sealed import SealedRemote

    return SealedRemote(remote, identity)


def _opened(
    url: str, tenant: str, options: Mapping[str, Any], environ: Mapping[str, str], cache: Cache | None
) -> OpenRemote:
    scheme = _scheme(url)
    wrong = sorted(options.keys() & _OWN if scheme in _OBJECTS else options)
    if wrong:
        raise Invalid(
            f"{scheme}:// takes no option {', '.join(wrong)}",
            hint="options are for the clients of object stores: region, endpoint",
        )
    if scheme in _OBJECTS:
        from sessionary.sync.remotes.objects import ObjectStoreRemote

        return ObjectStoreRemote(url, tenant=tenant, cache=cache, **options)
    if scheme in _POSTGRES:
        from sessionary.sync.remotes.postgres import PostgresRemote

        return PostgresRemote(url, tenant=tenant)
    from sessionary.sync.remotes.cosmos import CosmosRemote

    return CosmosRemote(_cosmos(url, environ), tenant=tenant, cache=cache)


def _scheme(url: str) -> str:
    scheme = url.partition("://")[0].lower()
    if "://" not in url or scheme not in {*_COSMOS, *_POSTGRES, *_OBJECTS}:
        raise Invalid("this is no address of a remote", hint=f"those are {_SHAPES}")
    return scheme


def _cosmos(url: str, environ: Mapping[str, str]) -> CosmosConfig:
    """The configuration of Cosmos DB that an address and the environment give."""
    from sessionary.sync.cosmos_config import CosmosConfig

    parts = urlsplit(url)
    names = [unquote(name) for name in parts.path.strip("/").split("/")]
    if len(names) != 2 or not all(names) or not parts.netloc:
        raise Invalid(
            "an address of Cosmos DB names a database and a container",
            hint="https://ACCOUNT.documents.azure.com/DATABASE/CONTAINER",
        )
    key = next((environ[name] for name in COSMOS_KEY if environ.get(name)), None)
    return CosmosConfig(f"{_COSMOS[parts.scheme.lower()]}://{parts.netloc}/", names[0], names[1], key=key)


def cosmos_address(url: str) -> str | None:
    """The address of a container, the same for every spelling of it; None if it is that of another kind of store.

    Raises:
        Invalid: it is no address of a remote.
    """
    return _cosmos(url, {}).address if _scheme(url) in _COSMOS else None
