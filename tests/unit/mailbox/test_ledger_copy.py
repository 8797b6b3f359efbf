"""A ledger that lost lines stops its consumer until the user decides."""

import json
import os
import shutil
from pathlib import Path

import pytest

from sessionary import Conflict, Mailbox, StorageFailed
from sessionary.disk.fs import OS_FS
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.testing.wrapper import WrappedFs
from tests.messages import echo, prompts, put
from tests.support.faults import FaultFs

KINDS = pytest.mark.parametrize("shared", [False, True], ids=["exclusive", "shared"])


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project" / "session"
    folder.mkdir(parents=True)
    return folder


def never(crumb: Breadcrumb) -> None:
    raise AssertionError(f"{crumb.prompt} is applied a second time")


def applied(session: Path, *texts: str, consumer: str = "work", shared: bool = False) -> Mailbox:
    """A mailbox that has applied these messages."""
    mailbox = Mailbox(session, consumer, shared=shared)
    for number, text in enumerate(texts, 1):
        put(session, text, number=number)
        assert mailbox.consume(echo).applied == 1
    return mailbox


def go_back(session: Path, lines: int, consumer: str = "work") -> None:
    """What a switch of branches, a stash or a restored backup does to the ledger."""
    path = session / ("log.jsonl" if consumer == "work" else f"log.{consumer}.jsonl")
    kept = path.read_bytes().splitlines(keepends=True)[:lines]
    path.unlink()
    if kept:
        path.write_bytes(b"".join(kept))


@KINDS
@pytest.mark.parametrize("lines", [0, 1])
@pytest.mark.parametrize("running", [True, False])
def test_a_ledger_that_went_back_stops_its_consumer(
    running: bool, lines: int, shared: bool, session: Path
) -> None:
    mailbox = applied(session, "a", "b", shared=shared)
    go_back(session, lines)
    if not running:
        mailbox = Mailbox(session, shared=shared)
    put(session, "new", number=9)
    for _ in range(2):
        with pytest.raises(Conflict, match="has lost lines") as reported:
            mailbox.consume(never)
        assert reported.value.details["missing"] == 2 - lines
        assert "work ledger restore session" in (reported.value.hint or "")
        assert "work ledger accept session" in (reported.value.hint or "")
    assert prompts(session) == ["a"][:lines]
    assert [found.code for found in mailbox.status().problems] == ["ledger_went_back"]


def test_restoring_puts_the_lines_back_with_their_results(session: Path) -> None:
    mailbox = applied(session, "a", "b")
    before = (session / "log.jsonl").read_bytes()
    go_back(session, 0)
    assert Mailbox(session).restore_ledger() == 2
    assert (session / "log.jsonl").read_bytes() == before
    assert mailbox.restore_ledger() == 0
    assert mailbox.consume(never).applied == 0
    put(session, "c", number=3)
    assert Mailbox(session).consume(echo).applied == 1
    assert prompts(session) == ["a", "b", "c"]


def test_restoring_lost_lines_keeps_later_ones(session: Path) -> None:
    """On the other branch another user has applied messages too, with another state folder."""
    applied(session, "a", "b")
    go_back(session, 1)
    put(session, "c", number=0)
    Mailbox.with_fs(OS_FS, session).consume(echo, limit=1)
    assert Mailbox(session).restore_ledger() == 1
    assert prompts(session) == ["a", "c", "b"]
    assert Mailbox(session).consume(never).applied == 0


def test_accepting_applies_again_and_keeps_the_old_copy(session: Path, tmp_path: Path) -> None:
    mailbox = applied(session, "a", "b")
    go_back(session, 1)
    assert Mailbox(session).accept_ledger() == 1
    assert mailbox.consume(echo).applied == 1
    assert prompts(session) == ["a", "b"]
    assert mailbox.accept_ledger() == 0
    kept, copy = sorted((tmp_path / "state").rglob("*.jsonl*"), key=lambda path: len(path.name), reverse=True)
    assert ".accepted-" in kept.name
    assert len(kept.read_bytes().splitlines()) == len(copy.read_bytes().splitlines()) == 3


def test_each_consumer_and_each_session_has_a_copy_of_its_own(session: Path) -> None:
    applied(session, "a")
    audit = Mailbox(session, "audit")
    audit.consume(echo)
    go_back(session, 0)
    assert audit.consume(never).applied == 0
    with pytest.raises(Conflict, match="lost lines"):
        Mailbox(session).consume(never)
    Mailbox(session).restore_ledger()
    go_back(session, 0, "audit")
    with pytest.raises(Conflict) as reported:
        audit.consume(never)
    assert "restore session --consumer audit" in (reported.value.hint or "")
    other = session.parent / "other"
    shutil.copytree(session, other)
    (other / "log.jsonl").unlink()
    assert Mailbox(other).consume(echo).applied == 1


def test_a_path_that_is_not_utf_8_has_a_copy_too(session: Path) -> None:
    folder = session / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    applied(folder, "a")
    go_back(folder, 0)
    with pytest.raises(Conflict):
        Mailbox(folder).consume(never)
    assert Mailbox(folder).restore_ledger() == 1


def test_a_session_is_known_by_its_real_path(session: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(session)
    applied(link, "a")
    go_back(session, 0)
    with pytest.raises(Conflict):
        Mailbox(session).consume(never)


def test_a_damaged_line_of_the_ledger_applies_nothing_twice(session: Path) -> None:
    applied(session, "a", "b")
    path = session / "log.jsonl"
    path.write_bytes(path.read_bytes().replace(b'{"breadcrumb_id"', b'{"breadcrumb_i\0"', 1))
    with pytest.raises(Conflict):
        Mailbox(session).consume(never)
    assert Mailbox(session).restore_ledger() == 1
    report = Mailbox(session).consume(never)
    assert (report.applied, [found.code for found in report.problems]) == (0, ["bad_ledger_line"])


@KINDS
def test_without_a_copy_nothing_is_checked(shared: bool, session: Path, tmp_path: Path) -> None:
    applied(session, "a")
    shutil.rmtree(tmp_path / "state")
    go_back(session, 0)
    assert Mailbox(session, shared=shared).consume(echo).applied == 1


def test_lines_that_came_by_another_way_are_copied_too(session: Path) -> None:
    """By a pull from another device, by another program, or before a crash that came before the copy."""
    put(session, "a", number=1)
    Mailbox.with_fs(OS_FS, session).consume(echo)
    put(session, "b", number=2)
    mailbox = Mailbox(session)
    assert mailbox.consume(echo).applied == 1
    put(session, "c", number=3)
    Mailbox.with_fs(OS_FS, session).consume(echo)
    path = session / "log.jsonl"
    path.rename(session / "merged")
    shutil.copyfile(session / "merged", path)  # a pull replaces the file
    assert mailbox.consume(never).applied == 0
    go_back(session, 0)
    with pytest.raises(Conflict) as reported:
        mailbox.consume(never)
    assert reported.value.details["missing"] == 3
    assert mailbox.restore_ledger() == 3
    assert prompts(session) == ["a", "b", "c"]


def test_lines_of_another_process_are_not_a_ledger_loss(session: Path, tmp_path: Path) -> None:
    """It comes into the ledger and the copy after the first one has read the ledger, and before it reads the copy."""
    state = str(tmp_path / "state")
    first = Mailbox.with_fs(OS_FS, session, shared=True, state=state)
    assert first._box.copy is not None
    copy = first._box.copy.path
    done: list[int] = []

    class Meeting(WrappedFs):
        def call(self, name: str, *arguments: object, **options: object) -> object:
            if name == "stat" and arguments[0] == copy and not done:
                done.append(1)
                assert Mailbox.with_fs(OS_FS, session, shared=True, state=state).consume(echo).applied == 1
            return super().call(name, *arguments, **options)

    put(session, "a", number=1)
    first = Mailbox.with_fs(Meeting(OS_FS), session, shared=True, state=state)
    assert first.consume(echo).applied == 0
    assert (done, prompts(session)) == ([1], ["a"])


@pytest.mark.parametrize("state", ["file", "nowhere", "closed"])
def test_a_copy_that_cannot_be_kept_is_done_without(
    state: str, session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "state"
    if state == "file":
        place.write_text("no folder")
    elif state == "closed":
        (place / "sessionary" / "ledgers").mkdir(parents=True)
        (place / "sessionary" / "ledgers").rmdir()
        (place / "sessionary" / "ledgers").write_text("no folder")
    else:
        monkeypatch.setenv("XDG_STATE_HOME", "")
        monkeypatch.setenv("HOME", "")
    mailbox = applied(session, "a", "b")
    assert prompts(session) == ["a", "b"]
    assert mailbox.status().problems == []
    assert mailbox.accept_ledger() == 0
    if state == "nowhere":
        assert mailbox.restore_ledger() == 0
    else:
        with pytest.raises(StorageFailed, match="Not a directory"):
            mailbox.restore_ledger()


def test_the_copy_is_written_behind_the_flush_of_the_ledger_and_not_flushed(
    session: Path, tmp_path: Path
) -> None:
    """So after a power cut it never knows of more than the ledger."""
    calls: list[tuple[str, str]] = []
    names: dict[int, str] = {}

    class Noting(WrappedFs):
        def call(self, name: str, *arguments: object, **options: object) -> object:
            result = super().call(name, *arguments, **options)
            if name == "open":
                names[int(str(result))] = os.path.basename(str(arguments[0]))
            elif name in ("write", "fdatasync", "fsync"):
                calls.append((name, names.get(int(str(arguments[0])), "")))
            return result

    put(session, "a")
    mailbox = Mailbox.with_fs(Noting(OS_FS), session, state=str(tmp_path / "state"))
    assert mailbox.consume(echo).applied == 1
    (copy,) = (tmp_path / "state" / "ledgers").iterdir()
    made = [call for call in calls if call[1] in ("log.jsonl", copy.name)]
    assert made == [("write", "log.jsonl"), ("fdatasync", "log.jsonl"), ("write", copy.name)]


def test_an_idle_consumer_does_not_look_at_the_copy(session: Path, tmp_path: Path) -> None:
    fs = FaultFs(OS_FS)
    put(session, "a")
    mailbox = Mailbox.with_fs(fs, session, state=str(tmp_path / "state"))
    mailbox.consume(echo)
    plain = Mailbox.with_fs(fs, session)
    plain.consume(echo)
    counts = []
    for each in (mailbox, plain):
        each.consume(echo)
        before = fs.counts.copy()
        each.consume(echo)
        counts.append(fs.counts - before)
    assert counts[0] == counts[1]


def test_the_names_of_the_copies_say_nothing_and_the_first_line_says_whose_it_is(
    session: Path, tmp_path: Path
) -> None:
    applied(session, "a")
    (copy,) = (tmp_path / "state" / "sessionary" / "ledgers").iterdir()
    first = json.loads(copy.read_text().splitlines()[0])
    assert first == {"ledger": str(session / "log.jsonl")}
    assert copy.stat().st_mode & 0o077 == 0
