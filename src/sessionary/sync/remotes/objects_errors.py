"""Errors of object stores as `RemoteError`: whether a retry helps, and the remedy.

obstore uses one class for most errors, and reports status and answer of the store only in the text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from sessionary.errors import RemoteError
from sessionary.sync.remote import LATER

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


class _Cause(NamedTuple):
    """A permanent error.

    Attributes:
        words: texts of the store that identify it.
        what: the cause.
        hint: the remedy.
    """

    words: tuple[str, ...]
    what: str
    hint: str


_CAUSES: Final = (
    _Cause(
        _NO_BUCKET,
        "the bucket or container does not exist",
        "create it as docs/howto/sync-s3.md describes; Sessionary creates no buckets",
    ),
    _Cause(
        ("169.254.169.254", "metadata.google.internal", "169.254.170.2"),
        "no credentials were found",
        _CREDENTIALS,
    ),
    _Cause(
        ("RequestTimeTooSkewed", "RequestExpired", "Request date header", "Invalid JWT"),
        "the clock of this machine differs too much from that of the store",
        "set the clock (`timedatectl set-ntp true` on Linux), and try again; the credentials may be right",
    ),
    _Cause(
        ("NotImplemented", "status code: 501"),
        "it does not support conditional writes, or another required feature",
        CONDITIONS,
    ),
    _Cause(
        ("AuthorizationHeaderMalformed", "PermanentRedirect", "incorrectly configured region"),
        "the bucket is in another region",
        "`sessionary sync init ADDRESS --option region=REGION --replace`, with the region of the bucket",
    ),
    _Cause(
        ("<Code>AccessDenied<", "AuthorizationPermissionMismatch", "AuthorizationFailure"),
        "these credentials are valid, but lack permission",
        "allow list, get and put below the address; docs/howto/sync-s3.md has the policies",
    ),
)


def is_no_bucket(error: Exception) -> bool:
    """True if the bucket or container is missing, not only the object."""
    return any(word in str(error) for word in _NO_BUCKET)


def refused(error: Exception, url: str) -> RemoteError:
    """Convert an error of obstore."""
    text = str(error)
    first = text.splitlines()[0]
    found = _STATUS.search(text)
    status = int(found[1]) if found else None
    details = {"status": status} if status else {}
    for cause in _CAUSES:
        if any(word in text for word in cause.words):
            return RemoteError(f"{url}: {cause.what}", hint=cause.hint, details=details)
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
