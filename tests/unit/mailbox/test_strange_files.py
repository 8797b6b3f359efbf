"""What has the name of a message and is not a file: no reader waits for it, it is reported once and can be moved."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary import Mailbox, StorageFailed
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.layouts.maestro.names import LARGEST
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.summary import summaries
from tests.messages import echo, message, prompts, put

NAME = "20260301_090000_000001.json"
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names"),
    pytest.mark.timeout(20),
]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def bound_socket(path: Path) -> None:
    place = os.open(path.parent, os.O_RDONLY)
    try:  # a socket's path has 108 bytes
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{place}/{path.name}")
    finally:
        os.close(place)


def huge(path: Path) -> None:
    """A file without content; it takes no room on the disk, and would in memory."""
    path.touch()
    os.truncate(path, LARGEST + 1)


MAKERS = [pipe, folder, endless, bound_socket, huge]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shared", [False, True], ids=["exclusive", "shared"])
def test_it_is_reported_once_and_stops_no_other_message(
    make: Callable[[Path], None], shared: bool, tmp_path: Path
) -> None:
    put(tmp_path, "good", number=2)
    make(tmp_path / "breadcrumbs" / "0" / NAME)
    mailbox = Mailbox(tmp_path, shared=shared)
    assert [crumb.prompt for crumb in mailbox.pending()] == ["good"]
    report = mailbox.consume(echo)
    assert (report.applied, report.pending) == (1, 0)
    assert [problem.code for problem in report.problems] == ["too_large" if make is huge else "no_file"]
    assert mailbox.consume(echo).problems == []
    assert Mailbox(tmp_path, shared=shared).consume(echo).problems == []
    assert mailbox.status().bad == [f"0/{NAME}"]
    assert prompts(tmp_path) == ["good"]


@pytest.mark.parametrize("make", [pipe, folder, huge])
def test_it_can_be_moved_away(make: Callable[[Path], None], tmp_path: Path) -> None:
    put(tmp_path, "good", number=2)
    make(tmp_path / "breadcrumbs" / "0" / NAME)
    mailbox = Mailbox(tmp_path)
    mailbox.consume(echo)
    assert mailbox.quarantine() == [str(tmp_path / "breadcrumbs" / "error" / f"0-{NAME}")]
    assert os.listdir(tmp_path / "breadcrumbs" / "0") == ["20260301_090000_000002.json"]


def test_a_message_that_takes_its_place_is_delivered(tmp_path: Path) -> None:
    put(tmp_path, "good", number=2)
    strange = tmp_path / "breadcrumbs" / "0" / NAME
    pipe(strange)
    mailbox = Mailbox(tmp_path)
    mailbox.consume(echo)
    strange.unlink()
    put(tmp_path, "late", number=1)
    assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == ["good", "late"]


@pytest.mark.parametrize("make", MAKERS)
def test_the_store_lists_the_others_and_reports_it(make: Callable[[Path], None], tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix").session_id
    store.write_breadcrumb(message("good", number=2), session)
    make(tmp_path / session / "breadcrumbs" / "0" / NAME)
    found = store.breadcrumbs(session)
    assert [crumb.prompt for crumb in found.breadcrumbs] == ["good"]
    assert [problem.code for problem in found.problems] == ["too_large" if make is huge else "no_file"]
    (summary,) = summaries(MaestroLayout(tmp_path))
    assert (summary.turns, [problem.code for problem in summary.problems]) == (
        1,
        [problem.code for problem in found.problems],
    )


@pytest.mark.parametrize("name", ["session.json", "log.jsonl", "attempts.work.jsonl"])
def test_an_unreadable_log_is_reported_and_nothing_is_applied(name: str, tmp_path: Path) -> None:
    put(tmp_path, "good", number=2)
    pipe(tmp_path / name)
    called: list[str] = []
    with pytest.raises(StorageFailed, match="not a regular file but a pipe") as caught:
        Mailbox(tmp_path).consume(lambda crumb: called.append(crumb.prompt))
    assert caught.value.path == str(tmp_path / name)
    assert called == []


def test_a_lock_that_is_a_pipe_is_a_lock(tmp_path: Path) -> None:
    put(tmp_path, "good", number=2)
    pipe(tmp_path / ".lock")
    pipe(tmp_path / ".mailbox.work.lock")
    assert Mailbox(tmp_path).consume(echo).applied == 1
