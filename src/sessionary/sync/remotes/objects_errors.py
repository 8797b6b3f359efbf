"""What an object store's refusal means: whether to come again, and what a person can do about it.

obstore has one class for most of what can go wrong, and tells the status only in its text.
"""

from __future__ import annotations

import re

from sessionary.errors import RemoteError

_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_METADATA_SERVICES = ("169.254.169.254", "metadata.google.internal", "169.254.170.2")
_LATER = {408, 409, 423, 425, 429}
_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or "
    "AZURE_STORAGE_ACCOUNT_KEY; docs/howto/sync-s3.md tells of the other ways"
)


def is_no_bucket(error: Exception) -> bool:
    """True if it is not the object that is missing, but the bucket or container that it would lie in."""
    return any(word in str(error) for word in _NO_BUCKET)


def refused(error: Exception, url: str) -> RemoteError:
    """The error of a remote for one of obstore."""
    text = str(error)
    first = text.splitlines()[0]
    if is_no_bucket(error):
        hint = "make it as docs/howto/sync-s3.md says; Sessionary makes no buckets"
        return RemoteError(f"{url}: there is no such bucket or container", hint=hint)
    if any(service in text for service in _METADATA_SERVICES):
        return RemoteError(f"{url}: no credentials were found", hint=_CREDENTIALS)
    found = _STATUS.search(text)
    status = int(found[1]) if found else None
    if status in (401, 403):
        return RemoteError(f"{url} refuses the credentials ({status}): {first}", hint=_CREDENTIALS)
    later = status is None or status in _LATER or status >= 500
    return RemoteError(
        f"{url} failed: {first}", retryable=later, details={"status": status} if status else {}
    )
