"""A message whose file may not be read: it waits, is reported once, stops no other, and is applied when it can be."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sessionary import Mailbox
from sessionary.testing.wrapper import WrappedFs
from tests.messages import echo, lines, prompts, put

FIRST = "20260301_090000_000001.json"
THIRD = "20260301_090000_000003.json"
KINDS = pytest.mark.parametrize("shared", [False, True], ids=["exclusive", "shared"])


class Forbidding(WrappedFs):
    """A file system that refuses some calls for the files in `closed`."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.closed: set[str] = set()

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name in self.refused and arguments[0] in self.closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), arguments[0])
        return super().call(name, *arguments, **options)


@pytest.fixture
def fs(tmp_path: Path) -> Forbidding:
    return closed(Forbidding("open"), tmp_path)


def closed(fs: Forbidding, session: Path) -> Forbidding:
    put(session, "closed", number=1)
    put(session, "open", number=2)
    fs.closed.add(str(session / "breadcrumbs" / "0" / FIRST))
    return fs


def reported(mailbox: Mailbox) -> list[tuple[str, str]]:
    """What a call of `consume` reports, and for which file."""
    return [(found.code, os.path.basename(found.path)) for found in mailbox.consume(echo).problems]


@KINDS
def test_each_mailbox_reports_it_once_and_applies_those_behind_it(
    shared: bool, fs: Forbidding, tmp_path: Path
) -> None:
    mailbox = Mailbox.with_fs(fs, tmp_path, shared=shared)
    assert reported(mailbox) == [("unreadable_file", FIRST)]
    assert prompts(tmp_path) == ["open"]
    assert [reported(mailbox), reported(mailbox)] == [[], []]
    assert reported(Mailbox.with_fs(fs, tmp_path, shared=shared)) == [("unreadable_file", FIRST)]


@KINDS
def test_every_status_reports_it(shared: bool, fs: Forbidding, tmp_path: Path) -> None:
    mailbox = Mailbox.with_fs(fs, tmp_path, shared=shared)
    for _ in range(3):
        reported(mailbox)
        status = mailbox.status()
        assert [(found.code, os.path.basename(found.path)) for found in status.problems] == [
            ("unreadable_file", FIRST)
        ]
        assert (status.applied, status.bad) == (1, [])


@KINDS
def test_it_waits_and_is_applied_when_it_can_be_read(shared: bool, fs: Forbidding, tmp_path: Path) -> None:
    mailbox = Mailbox.with_fs(fs, tmp_path, shared=shared)
    assert [mailbox.consume(echo).pending, mailbox.consume(echo).pending] == [1, 1]
    fs.closed.clear()
    report = mailbox.consume(echo)
    assert (report.applied, report.pending, report.problems) == (1, 0, [])
    assert prompts(tmp_path) == ["open", "closed"]
    assert mailbox.status().problems == []
    assert lines(tmp_path / "attempts.work.jsonl") == []


@KINDS
def test_another_file_that_may_not_be_read_is_reported_for_itself(
    shared: bool, fs: Forbidding, tmp_path: Path
) -> None:
    mailbox = Mailbox.with_fs(fs, tmp_path, shared=shared)
    reported(mailbox)
    put(tmp_path, "closed too", number=3)
    fs.closed.add(str(tmp_path / "breadcrumbs" / "0" / THIRD))
    assert reported(mailbox) == [("unreadable_file", THIRD)]


@KINDS
def test_a_folder_that_may_not_be_entered_stops_no_other_message(shared: bool, tmp_path: Path) -> None:
    fs = closed(Forbidding("open", "stat", "lstat"), tmp_path)
    mailbox = Mailbox.with_fs(fs, tmp_path, shared=shared)
    assert reported(mailbox) == [("unreadable_file", FIRST)]
    assert prompts(tmp_path) == ["open"]
    fs.closed.clear()
    assert reported(mailbox) == []
    assert prompts(tmp_path) == ["open", "closed"]
