"""Errors of Cosmos DB and its SDK as `RemoteError`: whether a retry helps, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from sessionary.errors import RemoteError
from sessionary.sync.remote import LATER

SKEW: Final = timedelta(minutes=5)
"""Clock difference that is reported; the service refuses signatures from fifteen minutes on."""

# The write may have been carried out or not: each of the five verbs may be repeated.
_PASSING: Final = frozenset({408, 410, 429, 449})
_WRITE_FORBIDDEN, _NO_SESSION, _PARTITION_FULL = 3, 1002, 1014


def from_service(error: Any, where: str, now: datetime) -> RemoteError:
    """Convert an answer with an error status.

    Args:
        error: an `azure.core.exceptions.HttpResponseError`.
        where: the database, for the message.
        now: this machine's time.
    """
    status, sub = error.status_code or 0, getattr(error, "sub_status", None) or 0
    headers: Mapping[str, str] = getattr(error, "headers", None) or {}
    details: dict[str, Any] = {"status": status} | ({"substatus": sub} if sub else {})
    if activity := headers.get("x-ms-activity-id"):
        details["activity_id"] = activity
    if (pause := _pause(headers)) is not None:
        details["retry_after"] = pause
    passing = (
        status in _PASSING or status >= 500 or (status, sub) in ((403, _WRITE_FORBIDDEN), (404, _NO_SESSION))
    )
    message, hint = (None, None) if passing else _lasting(status, sub, headers, now)
    return RemoteError(
        f"{where}: {message or f'the service answered {status}'}{_said(error)}",
        retryable=passing,
        details=details,
        hint=LATER if passing else hint,
    )


def from_client(error: Exception, where: str) -> RemoteError:
    """Convert an error before or without an answer: no connection, no credentials, an invalid answer."""
    from azure.core.exceptions import ClientAuthenticationError

    if isinstance(error, ClientAuthenticationError):
        return RemoteError(
            f"{where}: no credentials were found{_said(error)}",
            hint="run az login, or give a key; docs/howto/sync-cosmos.md lists what is tried",
        )
    return RemoteError(f"{where}: {type(error).__name__}{_said(error)}", retryable=True, hint=LATER)


def _lasting(status: int, sub: int, headers: Mapping[str, str], now: datetime) -> tuple[str, str | None]:
    if status in (401, 403) and (skew := _skew(headers, now)) is not None:
        ahead = "ahead of" if skew > timedelta(0) else "behind"
        minutes = round(abs(skew).total_seconds() / 60)
        return (
            f"refused: the local clock is {minutes} minutes {ahead} the service's",
            "set the clock of this machine",
        )
    if (status, sub) == (403, _PARTITION_FULL):
        return (
            "refused: a partition is full (20 GB)",
            "a session and its forks share one; see docs/scaling.md",
        )
    return {
        401: (
            "refused: wrong account key",
            (
                "`az cosmosdb keys list` prints it; set it as SESSIONARY_COSMOS_KEY, or as AMPLIFIER_COSMOS_KEY or in "
                "settings.yaml where that is used"
            ),
        ),
        403: (
            "refused: this identity lacks permission",
            "give it a data role, and allow this machine in the firewall",
        ),
        404: ("the database or its container does not exist", "`sessionary sync init` creates them"),
        413: ("refused: too large", None),
    }.get(status, (f"refused with status {status}", None))


def _pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which the service wants a retry."""
    try:
        return float(headers["x-ms-retry-after-ms"]) / 1000
    except (KeyError, ValueError):
        return None


def _skew(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return how far the local clock is ahead of the service's, if that is too far."""
    try:
        theirs = parsedate_to_datetime(headers["Date"])
    except (KeyError, ValueError, TypeError):
        return None
    skew = now - (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC))
    return skew if abs(skew) > SKEW else None


def _said(error: Exception) -> str:
    """Return the beginning of the original message."""
    text = " ".join(str(getattr(error, "message", None) or error).split()).partition(" Code: ")[0]
    return f" ({text[:200]})" if text else ""
