"""The S3 server of the tests keeps a condition to the end of the write, as S3 does."""

import time
from typing import Any

import pytest

pytest.importorskip("obstore")
models = pytest.importorskip("moto.s3.models")

from sessionary.sync.remotes.objects import ObjectStoreRemote  # noqa: E402
from sessionary.testing.remote_suite import at_once  # noqa: E402
from tests.support.s3_server import BUCKET, S3Server  # noqa: E402


def test_of_two_clients_that_make_one_object_one_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    look = models.S3Backend.get_object

    def slow(*arguments: Any, **named: Any) -> Any:
        found = look(*arguments, **named)
        time.sleep(0.05)  # moto looks whether the object is there, and makes it later
        return found

    monkeypatch.setattr(models.S3Backend, "get_object", slow)
    with S3Server() as server:
        remotes = [ObjectStoreRemote(f"s3://{BUCKET}", tenant="me", **server.options) for _ in range(4)]
        won = at_once(4, lambda n: remotes[n].swap_head("one", b"%d" % n, None))
        for remote in remotes:
            remote.close()
    assert sum(etag is not None for etag in won) == 1
