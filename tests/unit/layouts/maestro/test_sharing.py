"""Producers under another account: they can post where the session was opened for them, and are read."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sessionary.cli import main
from sessionary.disk.fs import OS_FS
from sessionary.errors import Invalid, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.sharing import check_mode, share
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox import Mailbox
from sessionary.testing.wrapper import UNSYNCED
from tests.messages import echo, prompts

NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may act as another account"
)


def mode(path: Path | str) -> str:
    return f"{os.stat(path).st_mode & 0o7777:o}"


def note(prompt: str, depth: int = 0) -> object:
    return create_breadcrumb(prompt, "r", [], [], None, depth, "m", {})


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that everybody may enter; those of pytest are private."""
    folder = Path(tempfile.mkdtemp(prefix="sessionary-shared-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(work: Callable[[], object]) -> str:
    """What happens when another account does it: its error, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.umask(0o077)
            work()
            reported = ""
        except BaseException as error:  # noqa: BLE001 - all of it goes to the parent
            reported = f"{type(error).__name__}: {error}"
        os.write(writing, reported.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        reported = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return reported


@ROOT_ONLY
def test_another_account_can_post_and_its_messages_are_applied(root: Path) -> None:
    store = WorkStore(root)
    session = store.create("fix").session_id
    folder = Path(store.folder(session))
    assert share(OS_FS, str(folder), 0o1777) == []
    for depth in (0, 3):
        assert as_nobody(lambda depth=depth: WorkStore(root).post(note(f"{depth}", depth), session)) == ""  # type: ignore[arg-type, misc]
    (first, *_) = (folder / "breadcrumbs" / "0").iterdir()
    assert (first.stat().st_uid, mode(first), mode(first.parent)) == (NOBODY, "666", "1777")
    os.setegid(NOBODY)
    os.seteuid(NOBODY - 1)  # a consumer that is neither root nor the sender may read them
    try:
        assert len(store.list_breadcrumbs(session)) == 2
    finally:
        os.seteuid(0)
        os.setegid(0)
    assert Mailbox(folder).consume(echo).applied == 2
    assert prompts(folder) == ["0", "3"]


@ROOT_ONLY
def test_the_rest_of_the_session_stays_out_of_their_reach(root: Path) -> None:
    session = WorkStore(root).create("fix").session_id
    folder = root / session
    assert "StorageFailed" in as_nobody(lambda: WorkStore(root).post(note("private"), session))  # type: ignore[arg-type]
    share(OS_FS, str(folder), 0o1777)
    Mailbox(folder).consume(echo)
    for attempt in (
        lambda: (folder / "log.jsonl").write_text("forged"),
        lambda: (folder / "session.json").write_text("forged"),
        (folder / "session.json").unlink,
        lambda: WorkStore(root).pause(session),
    ):
        assert as_nobody(attempt) != ""
    assert WorkStore(root).load(session).status == "running"


def test_the_modes_of_a_session_for_a_group(tmp_path: Path) -> None:
    store = WorkStore.with_fs(UNSYNCED, tmp_path)
    session = store.create("fix").session_id
    folder = Path(store.folder(session))
    store.write_breadcrumb(note("private"), session)  # type: ignore[arg-type]
    share(OS_FS, str(folder), 0o2770)
    assert [mode(folder), mode(folder / "session.json"), mode(folder / "breadcrumbs")] == [
        "750",
        "640",
        "2770",
    ]
    before = os.umask(0o077)
    try:
        for depth in (0, 1):
            path = store.write_breadcrumb(note("shared", depth), session)  # type: ignore[arg-type]
            assert (mode(path), mode(Path(path).parent)) == ("660", "2770")
    finally:
        os.umask(before)
    store.pause(session)
    assert mode(folder / "session.json") == "640", "a later write keeps it"


@pytest.mark.parametrize("folder_mode", [0o700, 0o755, 0o750])
def test_where_others_may_not_write_messages_are_private(folder_mode: int, tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix").session_id
    Path(store.folder(session), "breadcrumbs").chmod(folder_mode)
    path = store.write_breadcrumb(note("private"), session)  # type: ignore[arg-type]
    assert (mode(path), mode(Path(path).parent)) == ("600", "700")


@pytest.mark.parametrize("wrong", [0o070, 0o720, 0o733, 0o1722, 0o600, 0o17777])
def test_a_mode_that_would_block_every_post_is_refused(wrong: int, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="not a usable mode"):
        check_mode(wrong)


def test_folders_above_that_keep_others_out_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    sessions = private / "docs" / "sessions"
    code = main(["work", "start", "--root", str(sessions), "--mode", "2770", "--json"])
    reported = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [path for path in reported["unreachable"] if path.startswith(str(private))] == [
        str(private),
        str(private / "docs"),
        str(sessions),
    ]
    assert main(["work", "start", "--root", str(sessions), "--mode", "1777"]) == 0
    assert "chmod a+x" in capsys.readouterr().err
    assert main(["work", "start", "--root", str(sessions), "--mode", "733"]) == 2


def test_a_session_that_is_gone_cannot_be_shared(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="gone"):
        share(OS_FS, str(tmp_path / "gone"), 0o2770)
