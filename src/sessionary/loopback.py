"""Access checks of a server for one user of this machine: its token, and the origin of a request. Pure.

Every user of the machine reaches a port of it, and so does every page in a browser. So a request needs the token of
the start, in a header: a browser sends cookies of one port of this machine to all others, which other users may own.
A name that another site owns can lead to this machine; therefore the host of a request is checked too.
"""

from __future__ import annotations

import hmac
import re
import secrets

HOST = "127.0.0.1"
"""The only address that is listened on."""

_NAMES = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?")
_OWN_SITES = (None, "same-origin", "none")
"""What `Sec-Fetch-Site` says of requests that no other site caused; None if it is missing."""


def new_token() -> str:
    """A secret for one start."""
    return secrets.token_urlsafe(32)


def has_token(authorization: str | None, token: str) -> bool:
    """True if the header `Authorization` has the token. Takes the same time for every wrong one."""
    kind, _, given = (authorization or "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(
        given.encode("utf-8", "surrogateescape"), token.encode()
    )


def is_own_host(host: str | None, port: int | None) -> bool:
    """True if the header `Host` names this machine and this port; with None any port, as of a forwarded socket."""
    found = _NAMES.fullmatch(host or "")
    return found is not None and (port is None or found[2] == str(port))


def is_own_origin(origin: str | None, host: str | None) -> bool:
    """True if the header `Origin` is missing, or is that of the server."""
    return origin is None or origin == f"http://{host}"


def is_own_site(site: str | None) -> bool:
    """True unless the header `Sec-Fetch-Site` says that another site caused the request."""
    return site in _OWN_SITES
