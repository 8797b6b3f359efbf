"""Remotes: implementations of `sync.remote`, one for each kind of store. They do not know sessions.

`open_remote` chooses one by the address, and imports only that one: each needs its own library.

Addresses contain no secrets. Credentials come from the usual place of each kind of store: the environment, a system
credential, a file of the client (docs/howto/sync.md lists them). An address is printed, stored in a settings file,
and visible in the list of processes.
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
"""Parameters of remotes that are not options."""

_SHAPES = """\
postgresql://USER@HOST/DATABASE, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX,
https://ACCOUNT.documents.azure.com/DATABASE/CONTAINER, or cosmos+http://HOST:PORT/DATABASE/CONTAINER for an emulator"""


def check_address(url: str) -> str:
    """Return the address if it is that of a remote and contains no secret. Does not use the network.

    Raises:
        Invalid: it is not an address of a remote, or contains a secret.
    """
    scheme = _scheme(url)
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or any(
            name.lower() in _SECRETS for name, _ in parse_qsl(parts.query)
        )
    except ValueError as error:
        raise Invalid(f"this is not an address: {error}") from None
    if secret:
        raise Invalid(
            f"an address of {scheme}:// with a secret in it is refused: it would be stored and printed",
            hint="leave it out; docs/howto/sync.md lists where each kind of store finds its credentials",
        )
    if scheme not in _POSTGRES and (parts.query or parts.fragment):
        raise Invalid(
            f"an address of {scheme}:// must not contain ? or #: what follows would be ignored",
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
    """Open the remote at an address, for one tenant. Does not use the network.

    Args:
        url: the address; see `check_address`.
        tenant: the owner of the sessions.
        options: settings of the client that are not secrets: ``endpoint`` and ``region`` of an object store.
        identity: an age identity that encrypts everything. Without one, an encrypted remote is refused at the first
            call that would write to it, or that lists it.
        environ: the environment; that of the process by default.
        cache: stores what makes the next list of heads cheap, for stores that need it. It may be lost.

    Raises:
        Invalid: this is not an address of a remote, or contains a secret.
        Unsupported: the required extra is not installed.
    """
    chosen = options or {}
    remote = _opened(check_address(url), tenant, chosen, os.environ if environ is None else environ, cache)
    return protected(remote, identity)


def protected(remote: OpenRemote, identity: str | None) -> OpenRemote:
    """Return a remote that encrypts with this age identity; without one, a remote that refuses an encrypted store."""
    from sessionary.sync.remotes.sealed import PlainRemote, SealedRemote

    return PlainRemote(remote) if identity is None else SealedRemote(remote, identity)


def _opened(
    url: str, tenant: str, options: Mapping[str, Any], environ: Mapping[str, str], cache: Cache | None
) -> OpenRemote:
    scheme = _scheme(url)
    wrong = sorted(options.keys() & _OWN if scheme in _OBJECTS else options)
    if wrong:
        raise Invalid(
            f"{scheme}:// does not support the option {', '.join(wrong)}",
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
        raise Invalid("this is not an address of a remote", hint=f"use {_SHAPES}")
    return scheme


def _cosmos(url: str, environ: Mapping[str, str]) -> CosmosConfig:
    """Return the configuration of Cosmos DB from an address and the environment."""
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
    """Return the normalised address of a container; None for another kind of store.

    Raises:
        Invalid: it is not an address of a remote.
    """
    return _cosmos(url, {}).address if _scheme(url) in _COSMOS else None
