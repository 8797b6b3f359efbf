"""Object store remote: S3, Google Cloud Storage, Azure Blob, or any store with conditional writes.

Each block and each head is one object, below a folder of the tenant. Three features are needed: a put that fails if
the object exists, a put that fails if the object has changed, and a list in the bytewise order of names. **Many
stores accept the headers for the first two and ignore them**, which would lose sessions silently; so `prepare` tests
them and refuses such a store.

Three traps are avoided. The etag of S3 is a hash of the content, so a head that is swapped back to old content would
repeat an etag: each head is stored behind a nonce. S3 answers 409 to a conditional put that raced with another, and
the client reports "already exists", although nothing may exist: this is verified. And a missing bucket answers 404 as
a missing object does: it is not treated as an empty remote.

The client is obstore (Rust, no vendor SDK), in the extra ``objectstore``. Its retries are off: callers of a remote
retry.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from sessionary.errors import Invalid, NotFound, RemoteError, Unsupported
from sessionary.sync.remote import (
    LARGEST_BLOCK,
    LATER,
    Block,
    BlockPage,
    BlockStat,
    HeadPage,
    HeadRecord,
    StatPage,
    check_name,
    refuse_large,
)
from sessionary.sync.remotes.head_cache import Cache, CachedHead, HeadCache

if TYPE_CHECKING:
    from obstore import ObjectMeta

SCHEMES = ("s3", "gs", "az")
NONCE = 16
PAGE_BLOCKS, PAGE_HEADS, PAGE_STATS = 64, 1000, 1000
AT_ONCE = 16
"""Number of objects fetched at the same time."""

CLOCK_AGAIN = 3600.0
"""Seconds after which the store's clock is read again."""

LOOKS = 5
"""Number of attempts of a write that raced with another one of the same name."""

TIMEOUT, CONNECT = "30s", "5s"
_READABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_T = TypeVar("_T")

_STATUS: Final = re.compile(r"status code: (\d{3})")
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_LATER: Final = {408, 409, 423, 425, 429}
_CREDENTIALS: Final = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or "
    "AZURE_STORAGE_ACCOUNT_KEY; docs/howto/sync-s3.md lists other ways"
)
CONDITIONS: Final = (
    "without conditional writes two machines would overwrite each other's sessions; use a store that honours "
    "If-None-Match and If-Match (S3, Google Cloud Storage, Azure Blob, MinIO of 2024 or newer), or a database: "
    "`sessionary sync init postgresql://HOST/DATABASE --replace`"
)


_CAUSES: Final = {
    _NO_BUCKET: (
        "the bucket or container does not exist",
        "create it as docs/howto/sync-s3.md describes; Sessionary creates no buckets",
    ),
    ("169.254.169.254", "metadata.google.internal", "169.254.170.2"): (
        "no credentials were found",
        _CREDENTIALS,
    ),
    ("RequestTimeTooSkewed", "RequestExpired", "Request date header", "Invalid JWT"): (
        "the clock of this machine differs too much from that of the store",
        "set the clock (`timedatectl set-ntp true` on Linux), and try again; the credentials may be right",
    ),
    ("NotImplemented", "status code: 501"): (
        "it does not support conditional writes, or another required feature",
        CONDITIONS,
    ),
    ("AuthorizationHeaderMalformed", "PermanentRedirect", "incorrectly configured region"): (
        "the bucket is in another region",
        "`sessionary sync init ADDRESS --option region=REGION --replace`, with the region of the bucket",
    ),
    ("<Code>AccessDenied<", "AuthorizationPermissionMismatch", "AuthorizationFailure"): (
        "these credentials are valid, but lack permission",
        "allow list, get and put below the address; docs/howto/sync-s3.md has the policies",
    ),
}
"""Permanent errors: texts of the store that identify one, its cause, and the remedy."""


def open_store(url: str, **options: Any) -> Any:
    """Open the obstore store of an address.

    Args:
        url: ``s3://BUCKET/PREFIX``, ``gs://BUCKET/PREFIX`` or ``az://ACCOUNT/CONTAINER/PREFIX``; the prefix is
            optional.
        options: for obstore, in addition to the environment: ``endpoint``, ``region``, ``access_key_id``, ….

    Raises:
        Invalid: the address or an option is not valid for this kind of store.
        Unsupported: the extra is not installed.
    """
    bucket, prefix, settings = _places(url)
    try:
        from obstore import store
    except ImportError as error:
        raise Unsupported(
            "object stores need the package obstore", hint="pip install 'sessionary[objectstore]'"
        ) from error
    kinds: dict[str, Any] = {"s3": store.S3Store, "gs": store.GCSStore, "az": store.AzureStore}
    http = {"timeout": TIMEOUT, "connect_timeout": CONNECT, **options.pop("client_options", {})}
    if str(options.get("endpoint", "")).startswith("http://"):
        http["allow_http"] = True  # implied by an http:// endpoint, which test servers have
    settings |= {"client_options": http, "retry_config": {"max_retries": 0}, **options}
    try:
        return kinds[url[:2]](bucket, prefix=prefix or None, **settings)
    except Exception as error:  # obstore has no error class for "wrong configuration"
        raise Invalid(f"{url} cannot be opened: {str(error).splitlines()[0]}") from error


def _places(url: str) -> tuple[str, str, dict[str, Any]]:
    """Return the bucket or container of an address, the prefix, and implied options."""
    scheme, _, rest = url.partition("://")
    words = rest.strip("/").split("/")
    account = {"account_name": words.pop(0)} if scheme == "az" else {}
    if scheme not in SCHEMES or not words or not all(words):
        raise Invalid(
            f"{url} is not an address of an object store",
            hint="use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://ACCOUNT/CONTAINER/PREFIX",
        )
    return words[0], "/".join(words[1:]), account


class ObjectStoreRemote:
    """One tenant's blocks and heads in a bucket or container.

    The tenant is a folder below the prefix of the address. Read permission on the bucket covers all tenants: give
    each user a key that is limited to that folder.

    Args:
        url: as `open_store`.
        tenant: the owner of the sessions.
        store: an obstore store to use instead of opening one.
        page_blocks: number of blocks in a page of `read_range`.
        page_heads: number of heads in a page of `list_heads`.
        cache: stores the fetched heads, so that the next process need not fetch them again.
        clock: monotonic seconds.
        options: as `open_store`.

    Raises:
        Invalid, Unsupported: as `open_store`.
    """

    settled_after = 30.0

    def __init__(
        self,
        url: str,
        *,
        tenant: str,
        store: Any = None,
        page_blocks: int = PAGE_BLOCKS,
        page_heads: int = PAGE_HEADS,
        cache: Cache | None = None,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        self.url = url
        self._store = open_store(url, **options) if store is None else store
        self._by_version = url.startswith("gs://")  # Google compares generations, not etags
        self._root = folder_of(tenant)
        self._page_blocks = page_blocks
        self._page_heads = page_heads
        self._fetched = HeadCache((url, tenant, str(options.get("endpoint", ""))), cache)
        self._passed = clock
        self._clock: tuple[float, float] | None = None
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="sessionary-objects")

    # -- the verbs

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        return self._write(self._block_path(space, block), data, None) is not None

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        page = list(islice(self._range(space, first, stop, after), self._page_blocks + 1))
        kept = page[: self._page_blocks]
        found = self._pool.map(lambda one: self._get(one[1]["path"]), kept)
        blocks = [Block(name, got.data) for (name, _), got in zip(kept, found, strict=True) if got]
        return BlockPage(tuple(blocks), kept[-1][0] if len(page) > len(kept) else None)

    def read_head(self, name: str) -> HeadRecord | None:
        found = self._fetch_head(name)
        return found and found.head

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        path, stored = self._head_path(name), secrets.token_bytes(NONCE) + bytes(data)
        return self._write(path, stored, etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        folder = f"{self._root}/heads"
        listed = (
            (meta["path"][len(folder) + 1 :], _bare(meta["e_tag"])) for meta in self._metas(folder, after)
        )
        page = list(islice(listed, self._page_heads + 1))
        kept = page[: self._page_heads]
        found = self._pool.map(lambda one: self._fetched.get(*one) or self._fetch_head(one[0]), kept)
        heads = [one for one in found if one is not None]
        following = kept[-1][0] if len(page) > len(kept) else None
        self._fetched.follow(after, heads, following)
        return HeadPage(tuple(one.head for one in heads), following)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        page = list(islice(self._range(space, first, stop, after), PAGE_STATS + 1))
        stats = tuple(_stat(name, meta, self._time) for name, meta in page[:PAGE_STATS])
        return StatPage(stats, stats[-1].id if page[PAGE_STATS:] else None)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        """Compares first: no client compares and removes in one step, and not all stores could.

        A missing object is deleted all the same: only so the store reports a missing permission.
        """
        path = self._block_path(space, block)
        try:
            there: ObjectMeta | None = self._ask(path, lambda: self._store.head(path))
        except NotFound:
            there = None
        if there is not None and _version(there) != version:
            return False
        with suppress(NotFound):
            self._ask(path, lambda: self._store.delete(path))
        return there is not None

    def _time(self) -> float:
        """Return the time of the store's clock: that of a probe object, plus the time that passed since.

        The time during which this machine slept may be missing, and the time of the answer too. Blocks then appear
        younger than they are.
        """
        known = self._clock
        if known is None or self._passed() - known[1] > CLOCK_AGAIN:
            path = f"{self._root}/check/clock"
            self._ask(path, lambda: self._store.put(path, b"", use_multipart=False))
            meta = self._ask(path, lambda: self._store.head(path))
            self._clock = known = meta["last_modified"].timestamp(), self._passed()
        return known[0] + self._passed() - known[1]

    # -- beside them

    def prepare(self) -> None:
        """Test whether this store fulfils the requirements.

        Creates only a few probe objects in a folder of the tenant, and removes them.

        Raises:
            Unsupported: it ignores conditional writes, or does not list names in bytewise order.
            RemoteError: the bucket does not exist, or is not writable; buckets are created by the user.
        """
        folder = f"{self._root}/check/{secrets.token_hex(8)}"
        try:
            self._check_conditions(f"{folder}/b")
            self._check_order(folder)
        finally:
            for name in ("B", "a", "a-1", "b"):
                with suppress(Exception):  # without permission to delete, a few bytes stay
                    self._store.delete(f"{folder}/{name}")

    def close(self) -> None:
        """Stop the threads, after running calls have ended."""
        self._pool.shutdown()

    def _check_conditions(self, path: str) -> None:
        first = self._write(path, b"1", None)
        if first is None or self._write(path, b"2", None) is not None:
            raise self._unfit("it overwrites an existing object although the request forbids it")
        second = self._write(path, b"3", first)
        if second is None or second == first:
            raise self._unfit("it refuses to replace an object with the right etag")
        if self._write(path, b"4", first) is not None:
            raise self._unfit("it replaces an object although its etag differs")
        got = self._get(path)
        if got is None or (got.data, got.etag) != (b"3", second):
            raise self._unfit("it does not return the last write")

    def _check_order(self, folder: str) -> None:
        for name in ("a-1", "B", "a"):
            self._write(f"{folder}/{name}", b"", None)
        every, behind = (
            [meta["path"][len(folder) + 1 :] for meta in islice(self._raw(folder, at), 5)]
            for at in (None, "a")
        )
        if every != ["B", "a", "a-1", "b"] or behind != ["a-1", "b"]:
            raise self._unfit(f"it does not list names in bytewise order ({', '.join(every)})")

    def _unfit(self, why: str) -> Unsupported:
        return Unsupported(f"{self.url} cannot hold sessions: {why}", operation="prepare", hint=CONDITIONS)

    # -- objects

    def _fetch_head(self, name: str) -> CachedHead | None:
        got = self._get(self._head_path(name))
        return got and CachedHead(got.listed, HeadRecord(name, got.data[NONCE:], got.etag))

    def _block_path(self, space: str, block: str) -> str:
        return f"{self._root}/blocks/{check_name(space)}/{check_name(block)}"

    def _head_path(self, name: str) -> str:
        return f"{self._root}/heads/{check_name(name)}"

    def _write(self, path: str, data: bytes, etag: str | None) -> str | None:
        """Replace the object with this etag, or with None create it; return its new etag.

        None if it exists (which is verified), has changed, or is missing.
        """
        refuse_large(path, data, LARGEST_BLOCK + NONCE)
        mode: Any = {"version" if self._by_version else "e_tag": etag} if etag is not None else "create"
        for _ in range(LOOKS):
            try:
                put = self._ask(path, lambda: self._store.put(path, data, mode=mode, use_multipart=False))
                return self._etag(put)
            except _Other:
                return None
            except _Taken:  # 409: perhaps a concurrent write, which may have failed
                if etag is None and self._exists(path):
                    return None
        raise RemoteError(f"{path} keeps being changed by other writers", retryable=True)

    def _get(self, path: str) -> _Got | None:
        """Return an object and its etag; None if it is missing."""

        def get() -> _Got:
            got = self._store.get(path)
            return _Got(bytes(got.bytes()), self._etag(got.meta), _bare(got.meta["e_tag"]))

        try:
            return self._ask(path, get)
        except NotFound:
            return None

    def _exists(self, path: str) -> bool:
        try:
            self._ask(path, lambda: self._store.head(path))
        except NotFound:
            return False
        return True

    def _range(
        self, space: str, first: str, stop: str, after: str | None
    ) -> Iterator[tuple[str, ObjectMeta]]:
        """Yield the blocks of a range, by name and metadata, requested as needed."""
        folder = f"{self._root}/blocks/{check_name(space)}"
        # A list begins *behind* a name, and no name is directly before another: begin a little earlier.
        for meta in self._metas(folder, after if after is not None else first[:-1]):
            name = meta["path"][len(folder) + 1 :]
            if name >= stop:
                return
            if name >= first and (after is None or name > after):
                yield name, meta

    def _metas(self, folder: str, after: str | None) -> Iterator[ObjectMeta]:
        """Yield the metadata of objects in a folder behind this name, in name order."""
        last = f"{folder}/{after or ''}"
        for meta in self._raw(folder, after):
            if meta["path"] <= last:  # also endless lists: a server may ignore the offset, and start again
                raise RemoteError(f"{self.url} does not list names in bytewise order")
            last = meta["path"]
            yield meta

    def _raw(self, folder: str, after: str | None) -> Iterator[ObjectMeta]:
        """Yield what the store lists, in its own order."""
        offset = f"{folder}/{after}" if after else None
        stream = iter(self._ask(folder, lambda: self._store.list(folder, offset=offset, chunk_size=1000)))
        chunks: Iterator[Iterable[ObjectMeta]] = iter(lambda: self._ask(folder, lambda: next(stream, ())), ())
        return chain.from_iterable(chunks)

    def _etag(self, meta: Any) -> str:
        etag = meta["version"] if self._by_version else meta["e_tag"]
        if not etag:
            raise Unsupported(f"{self.url} cannot hold sessions: it gives objects no etags", hint=CONDITIONS)
        return str(etag)

    def _ask(self, path: str, call: Callable[[], _T]) -> _T:
        """Make one call to the store, and convert its errors."""
        from obstore import exceptions

        try:
            return call()
        except exceptions.AlreadyExistsError as error:
            raise _Taken from error
        except (FileNotFoundError, exceptions.BaseError) as error:
            if not any(word in str(error) for word in _NO_BUCKET):
                if isinstance(error, FileNotFoundError):
                    raise NotFound(path) from error
                if isinstance(error, exceptions.PreconditionError | exceptions.NotModifiedError):
                    raise _Other from error
            raise _refused(error, self.url) from error


class _Got(NamedTuple):
    """An object: its bytes, its etag for replacement, and its etag in lists."""

    data: bytes
    etag: str
    listed: str


class _Taken(Exception):
    """The object exists, or a concurrent write of that name is running."""


class _Other(Exception):
    """The object has changed, or is missing."""


def folder_of(tenant: str) -> str:
    """Return the folder of a tenant: its name if possible, else a hash that cannot be a name."""
    if _READABLE.fullmatch(tenant):
        return tenant
    return "=" + sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _bare(etag: str | None) -> str:
    """Normalise an etag: some stores quote it in lists, some in answers."""
    return (etag or "").strip('"')


class _Age(NamedTuple):
    """The age of a block, computed on access: reading the store's clock writes a probe object."""

    put_at: float
    time: Callable[[], float]


class _Stat(BlockStat):
    """A block without its bytes. Counting blocks writes nothing, so read permission is enough."""

    __slots__ = ()

    @property
    def age(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Seconds since the put. Some stores have whole seconds, so one second is subtracted.

        Raises:
            RemoteError: the store's clock cannot be read.
        """
        since: Any = self[2]
        if not isinstance(since, _Age):  # it was replaced by a number
            return cast("float | None", since)
        return max(0.0, since.time() - since.put_at - 1)


def _stat(name: str, meta: ObjectMeta, time: Callable[[], float]) -> BlockStat:
    age: Any = _Age(meta["last_modified"].timestamp(), time)
    return _Stat(name, meta["size"], age, _version(meta))


def _version(meta: ObjectMeta) -> str:
    """Return the second of the put: the etag does not differ, because the bytes of a block are always the same."""
    return str(int(meta["last_modified"].timestamp()))


# -- errors: obstore uses one class for most of them, and has the status and the answer of the store only in the text


def _refused(error: Exception, url: str) -> RemoteError:
    """Convert an error of obstore."""
    text = str(error)
    first = text.splitlines()[0]
    found = _STATUS.search(text)
    status = int(found[1]) if found else None
    details = {"status": status} if status else {}
    for words, (what, hint) in _CAUSES.items():
        if any(word in text for word in words):
            return RemoteError(f"{url}: {what}", hint=hint, details=details)
    if status in (401, 403):
        return RemoteError(
            f"{url} refuses the credentials ({status}): {first}", hint=_CREDENTIALS, details=details
        )
    later = status is None or status in _LATER or status >= 500
    return RemoteError(
        f"{url} failed: {first}",
        retryable=later,
        details=details,
        hint=LATER if later else "check the address and its options in the settings file of `sync init`",
    )
