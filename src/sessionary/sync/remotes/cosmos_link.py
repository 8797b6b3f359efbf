"""Connection to one container of Cosmos DB: opened on demand, checked once, bounded in time, and metered.

Creating the SDK's client uses the network, so it must not happen when an agent starts. The first call checks
credentials, account and container, in three requests:

* An account that writes in several regions is refused. There a swap is decided in the region that it reaches, and the
  losing one of two is dropped later: two devices would both have won.
* A container with another partition key is refused; it belongs to another program.

Socket timeouts bound the silence between two parts of an answer, but not a name look-up, a credential helper, or a
server that sends a byte now and then. So each call runs in a thread of its own, which is abandoned if it takes too
long; it is a daemon, so it keeps no process alive. Its request may still be carried out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sessionary.errors import RemoteError, Unsupported
from sessionary.sync.cosmos_config import EMULATOR_KEY, CosmosConfig
from sessionary.sync.remote import LATER

if TYPE_CHECKING:
    from azure.cosmos import ContainerProxy, CosmosClient

_T = TypeVar("_T")
PARTITION_KEY: Final = "/pk"

INDEXING: Final[dict[str, Any]] = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": f"{PARTITION_KEY}/?"}],
    "excludedPaths": [{"path": "/*"}],
}
"""Index only what queries use: the partition, and the id, which is always indexed. More paths cost with each write."""

SKEW: Final = timedelta(minutes=5)
"""Clock difference that is reported; the service refuses signatures from fifteen minutes on."""

# The write may have been carried out or not: every verb may be repeated.
_PASSING: Final = frozenset({408, 410, 429, 449})
_WRITE_FORBIDDEN, _NO_SESSION, _PARTITION_FULL = 3, 1002, 1014
CONNECT: Final = 5.0
SILENCE: Final = 20.0


class ResponseHeaders:
    """Collects the headers of the answers to one call; the SDK calls it with each of them.

    Of several answers, `time` is that of the first: their data is at least that recent.
    """

    def __init__(self) -> None:
        self.ru = 0.0
        self.etag: str | None = None
        self.time: float | None = None

    def __call__(self, headers: Mapping[str, Any], body: object = None) -> None:
        try:
            self.ru += float(headers.get("x-ms-request-charge") or 0)
        except ValueError:
            pass  # the charge is not a number: it is for information only
        self.etag = headers.get("etag") or self.etag
        if self.time is not None:
            return
        try:
            self.time = parsedate_to_datetime(headers.get("date") or "").timestamp()
        except ValueError:
            pass  # a proxy may omit it; callers work without it


class Link:
    """A container, and the calls to it.

    Args:
        patience: seconds after which a call fails.
        now: the clock, to detect a wrong one.

    Attributes:
        ru: request units charged so far, by all calls.
    """

    def __init__(
        self,
        config: CosmosConfig,
        *,
        patience: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.config = config
        self.ru = 0.0
        self._where = f"Cosmos DB {config.database}/{config.container}"
        self._patience = patience
        self._now = now
        self._opening = threading.Lock()
        self._metering = threading.Lock()
        self._client: CosmosClient | None = None
        self._credential: Any = None
        self._container: ContainerProxy | None = None

    def ask(self, work: Callable[[ContainerProxy, ResponseHeaders], _T], *answers: int) -> _T | None:
        """Run `work` with the container; return its result, or None if the service answers with one of these statuses.

        Raises:
            RemoteError: any other failure.
            Unsupported: the SDK is not installed.
        """
        answer = ResponseHeaders()
        return self._bounded(lambda: work(self._opened(), answer), answer, answers)

    def prepare(self) -> None:
        """Create database and container if they are missing."""
        self._bounded(self._prepared, ResponseHeaders(), ())

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._opening:
            client, self._client, self._container = self._client, None, None
            credential, self._credential = self._credential, None
        if client is not None:
            client.close()
        if credential is not None:
            credential.close()

    def _bounded(
        self, work: Callable[[], _T], answer: ResponseHeaders, answers: tuple[int, ...]
    ) -> _T | None:
        _need_sdk()
        from azure.core.exceptions import AzureError, HttpResponseError

        try:
            return within(self._patience, work, self._where)
        except HttpResponseError as error:
            answer(getattr(error, "headers", None) or {})
            if error.status_code in answers:
                return None
            if error.status_code is None or error.status_code < 400:  # an answer that cannot be parsed
                raise from_client(error, self._where) from error
            raise from_service(error, self._where, self._now()) from error
        except (AzureError, OSError, ValueError, KeyError, TypeError) as error:
            # The latter result from an answer of something else than the service: a portal, a proxy.
            raise from_client(error, self._where) from error
        finally:
            with self._metering:
                self.ru += answer.ru

    # -- opening

    def _opened(self) -> ContainerProxy:
        with self._opening:
            if self._container is None:
                database = self._connected().get_database_client(self.config.database)
                container = database.get_container_client(self.config.container)
                self._check_key(container.read())
                self._container = container
            return self._container

    def _prepared(self) -> None:
        from azure.cosmos import PartitionKey

        with self._opening:
            database = self._connected().create_database_if_not_exists(self.config.database)
            container = database.create_container_if_not_exists(
                self.config.container, PartitionKey(PARTITION_KEY), indexing_policy=INDEXING
            )
            self._check_key(container.read())
            self._container = container

    def _connected(self) -> CosmosClient:
        if self._client is None:
            client = self._new_client()
            account = client.get_database_account()
            if account._EnableMultipleWritableLocations or len(account.WritableLocations) > 1:
                client.close()
                raise RemoteError(
                    f"{self._where}: the account writes in several regions, so no swap is final",
                    hint="turn multi-region writes off: az cosmosdb update --enable-multiple-write-locations false",
                )
            self._client = client
        return self._client

    def _new_client(self) -> CosmosClient:
        from azure.cosmos import CosmosClient

        # The SDK warns on stderr, through the handler of last resort, about failures that are raised here as errors.
        logging.getLogger("azure").addHandler(logging.NullHandler())
        options: dict[str, Any] = {
            "connection_timeout": min(CONNECT, self._patience / 2),
            "read_timeout": min(SILENCE, self._patience / 2),
            "retry_total": 1,  # callers retry themselves; 0 would select the default
            "retry_throttle_total": 1,
            "no_response_on_write": True,
            "user_agent_suffix": "sessionary",
        }
        if self.config.is_plain:
            # Emulators report an https:// address, whichever was used.
            options["enable_endpoint_discovery"] = False
        return CosmosClient(self.config.endpoint, self._way_in(), **options)

    def _way_in(self) -> Any:
        if self.config.key is not None:
            return self.config.key
        if self.config.credential is not None:
            return self.config.credential
        if self.config.is_plain:
            return EMULATOR_KEY
        if self._credential is None:
            from azure.identity import DefaultAzureCredential

            self._credential = DefaultAzureCredential()
        return self._credential

    def _check_key(self, properties: Mapping[str, Any]) -> None:
        paths = (properties.get("partitionKey") or {}).get("paths")
        if paths != [PARTITION_KEY]:
            raise RemoteError(
                f"{self._where}: the container has the partition key {paths}, and not {PARTITION_KEY}: "
                "it was not created by Sessionary",
                hint="name another container",
            )


def _need_sdk() -> None:
    try:
        import azure.cosmos
        import azure.identity  # noqa: F401
    except ImportError as error:
        raise Unsupported(
            f"Cosmos DB needs the package {error.name or 'azure-cosmos'}",
            hint="pip install 'sessionary[cosmos]'",
        ) from error


def within(seconds: float, call: Callable[[], _T], what: str) -> _T:
    """Run a call with a time limit; return its result or raise its error.

    Args:
        what: the name of the remote, for the error.

    Raises:
        RemoteError: there was no answer in time; retryable.
    """
    answers: list[_T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name=f"sessionary: {what}")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if answers:
        return answers[0]
    raise RemoteError(f"{what} gave no answer within {seconds:g} s", retryable=True, hint=LATER)


# -- errors: whether a retry helps, and the remedy


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
        f"{where}: {message or f'the service answered {status}'}{_original(error)}",
        retryable=passing,
        details=details,
        hint=LATER if passing else hint,
    )


def from_client(error: Exception, where: str) -> RemoteError:
    """Convert an error before or without an answer: no connection, no credentials, an invalid answer."""
    from azure.core.exceptions import ClientAuthenticationError

    if isinstance(error, ClientAuthenticationError):
        return RemoteError(
            f"{where}: no credentials were found{_original(error)}",
            hint="run az login, or give a key; docs/howto/sync-cosmos.md lists what is tried",
        )
    return RemoteError(f"{where}: {type(error).__name__}{_original(error)}", retryable=True, hint=LATER)


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


def _original(error: Exception) -> str:
    """Return the beginning of the original message."""
    text = " ".join(str(getattr(error, "message", None) or error).split()).partition(" Code: ")[0]
    return f" ({text[:200]})" if text else ""
