"""Object stores for the tests: moto (S3), Azurite (Azure Blob), s3rver (an S3 that ignores conditions).

Each is started once for a whole run, on the loopback, and each test has a prefix of its own in it.
"""

import base64
import hashlib
import hmac
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from tests.servers import npm, process

BUCKET = "sessions"
NO_OBSTORE = "the package obstore is not installed"

# The account and key that Microsoft publishes for every Azurite.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def moto_missing() -> str | None:
    """Why moto cannot be started; None if it can."""
    if find_spec("obstore") is None:
        return NO_OBSTORE
    return (
        None if find_spec("moto") and find_spec("flask") else "the package moto[server,s3] is not installed"
    )


def azurite_missing() -> str | None:
    """Why Azurite cannot be started; None if it can."""
    return NO_OBSTORE if find_spec("obstore") is None else npm.missing("azurite")


def s3rver_missing() -> str | None:
    """Why s3rver cannot be started; None if it can."""
    return NO_OBSTORE if find_spec("obstore") is None else npm.missing("s3rver")


def _s3(port: int, key: str) -> dict[str, Any]:
    return {
        "endpoint": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "access_key_id": key,
        "secret_access_key": key,
    }


@cache
def moto() -> dict[str, Any]:
    """A running moto with a bucket; the options that lead to it."""
    serve = "import sys; from tests.support.s3_server import serve; serve(int(sys.argv[1]))"
    port = process.start(lambda port, _: [sys.executable, "-c", serve, str(port)])
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
    urllib.request.urlopen(request, timeout=30).close()
    return _s3(port, "testing")


@cache
def s3rver() -> dict[str, Any]:
    """A running s3rver with a bucket; the options that lead to it."""
    program = str(npm.script("s3rver", "bin/s3rver.js"))
    bucket = ["--configure-bucket", BUCKET]
    port = process.start(lambda port, d: ["node", program, "-d", str(d), "-a127.0.0.1", f"-p{port}", *bucket])
    return _s3(port, "S3RVER")


@cache
def azurite() -> dict[str, Any]:
    """A running Azurite with a container; the options that lead to it."""
    program = str(npm.script("azurite", "dist/src/blob/main.js"))
    flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    port = process.start(
        lambda port, _: ["node", program, "--blobHost", "127.0.0.1", f"--blobPort={port}", *flags]
    )
    options = {"endpoint": f"http://127.0.0.1:{port}/{ACCOUNT}", "account_key": KEY}
    _make_container(options)
    return options


def _make_container(options: dict[str, Any]) -> None:
    """Make the container, by the one request that obstore has no call for."""
    stamp = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    headers = f"x-ms-date:{stamp}\nx-ms-version:2021-12-02"
    resource = f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"{headers}\n{resource}"
    signed = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(f"{options['endpoint']}/{BUCKET}?restype=container", method="PUT")
    request.add_header("x-ms-date", stamp)
    request.add_header("x-ms-version", "2021-12-02")
    request.add_header("Authorization", f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}")
    urllib.request.urlopen(request, timeout=30).close()


def s3_address() -> str:
    """An address on S3 that no other test uses."""
    return f"s3://{BUCKET}/{uuid4().hex}"


def azure_address() -> str:
    """An address on Azure Blob that no other test uses."""
    return f"az://{ACCOUNT}/{BUCKET}/{uuid4().hex}"


SERVERS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[], str]]] = {
    "s3": (moto, s3_address),
    "azurite": (azurite, azure_address),
}
