"""Tamper edits of a session with a hash chain, and what shows each: the chain, or only the head that is kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary import Workspace
from sessionary.cli import main
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.layouts.records.layout import RecordsLayout
from sessionary.layouts.records.sync_adapter import RecordsSyncLayout

Lines = list[bytes]
Edit = Callable[[Lines], Lines]


def journal(home: Path, session: str = "one", *, chain: bool = True) -> RecordJournal:
    return RecordJournal(home / "openai-agents", "openai-agents", session, durability="none", chain=chain)


def fill(one: RecordJournal, count: int = 5) -> None:
    for number in range(count):
        one.change(lambda _, number=number: Change([{"role": "user", "content": f"item {number}"}]))  # type: ignore[misc]


def changed(lines: Lines, at: int, old: bytes, new: bytes) -> Lines:
    assert old in lines[at]
    return [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]


def rehashed(lines: Lines) -> Lines:
    """The lines with a chain that was computed anew, as someone does who knows the format."""
    made = lines[:1]
    for number, line in enumerate(lines[1:], 1):
        record = json.loads(line) | {"n": number, "prev": sha256(made[-1]).hexdigest()}
        made.append(json.dumps(record, separators=(",", ":")).encode())
    return made


EDITS: dict[str, tuple[Edit, bool]] = {
    "T1 content": (lambda lines: changed(lines, 3, b"item 2", b"item 9"), True),
    "T1 content of the last record": (lambda lines: changed(lines, 5, b"item 4", b"item 9"), False),
    "T2 the end is cut off": (lambda lines: lines[:4], False),
    "T3 a record is deleted": (lambda lines: [*lines[:3], *lines[4:]], True),
    "T4 two records are swapped": (lambda lines: [*lines[:3], lines[4], lines[3], lines[5]], True),
    "T5 a record is inserted": (lambda lines: [*lines[:3], lines[3].replace(b"item", b"forged"), *lines[3:]], True),
    "T5 a record is inserted and the chain computed anew": (
        lambda lines: rehashed([*lines[:3], lines[2], *lines[3:]]),
        False,
    ),
    "T8 the time of a record": (lambda lines: changed(lines, 3, b'"at":"2', b'"at":"3'), True),
    "T8 the first record": (lambda lines: changed(lines, 0, b'"at":"2', b'"at":"3'), True),
    "the chain is turned off": (lambda lines: changed(lines, 0, b'"chain":true', b'"chain":false'), False),
}  # fmt: skip


def lines_of(path: Path) -> Lines:
    return path.read_bytes().split(b"\n")[:-1]


def codes(home: Path, kept: Any = None) -> set[str]:
    layout = RecordsLayout(home)
    problems, head = layout.check_chain(next(layout.discover()), kept)
    assert (head is None) == bool(problems)
    return {problem.code for problem in problems}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_shown(name: str, tmp_path: Path) -> None:
    edit, by_the_chain = EDITS[name]
    one = journal(tmp_path)
    fill(one)
    layout = RecordsLayout(tmp_path)
    problems, head = layout.check_chain(next(layout.discover()), None)
    assert (problems, head is not None) == ([], True)
    assert codes(tmp_path, head) == set()
    path = Path(one.path)
    path.write_bytes(b"".join(line + b"\n" for line in edit(lines_of(path))))
    assert bool(codes(tmp_path) - {"no_chain"}) == by_the_chain
    assert codes(tmp_path, head) & {"broken_chain", "changed_head", "rolled_back"}


def test_a_replay_from_another_session_is_shown(tmp_path: Path) -> None:
    """T6: a record, or the whole file, of another session."""
    one, other = journal(tmp_path), journal(tmp_path / "other", "two")
    fill(one)
    fill(other)
    path, lines = Path(one.path), lines_of(Path(one.path))
    path.write_bytes(
        b"".join(line + b"\n" for line in [*lines[:3], lines_of(Path(other.path))[3], *lines[4:]])
    )
    assert codes(tmp_path) == {"broken_chain"}
    path.write_bytes(Path(other.path).read_bytes())
    assert codes(tmp_path) == {"broken_chain"}


def test_a_rollback_is_shown_by_the_head_alone(tmp_path: Path) -> None:
    """T7: an older copy of the file, which was whole then; also if it has grown since."""
    one = journal(tmp_path)
    fill(one, 3)
    older = Path(one.path).read_bytes()
    fill(one, 2)
    layout = RecordsLayout(tmp_path)
    _, head = layout.check_chain(next(layout.discover()), None)
    Path(one.path).write_bytes(older)
    assert codes(tmp_path) == set()
    assert codes(tmp_path, head) == {"rolled_back"}
    journal(tmp_path).change(lambda _: Change(["another"]))
    fill(journal(tmp_path), 4)
    assert codes(tmp_path) == set()
    assert codes(tmp_path, head) == {"changed_head"}


def test_growth_rewinds_and_another_id_break_no_chain(tmp_path: Path) -> None:
    one = journal(tmp_path)
    fill(one)
    layout = RecordsSyncLayout(tmp_path)
    ref = next(layout.discover())
    _, head = layout.check_chain(ref, None)
    layout.rewind(ref, 1, dry_run=False)
    fill(one, 2)
    with open(one.path, "ab") as file:
        file.write(b'{"n":9,"at')
    assert codes(tmp_path, head) == set()
    fill(one, 1)
    moved = layout.place("openai-agents", "two")
    Path(one.path).rename(moved.locator)
    layout.set_parent(moved, "one", None)  # type: ignore[arg-type]
    fill(journal(tmp_path, "two"), 1)
    assert codes(tmp_path) == set()


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = tmp_path / "data"
    one, plain = journal(home), journal(home, "plain", chain=False)
    fill(one)
    fill(plain)
    check = ["check", "--chain", "--home", str(home)]

    def run(*more: str) -> tuple[int, set[str]]:
        code = main([*check, "--json", *more])
        return code, {problem["code"] for problem in json.loads(capsys.readouterr().out)["problems"]}

    assert run() == (0, {"no_chain"})
    assert not (tmp_path / "state").exists()
    assert run("--remember") == (0, {"no_chain"})
    heads = json.loads((tmp_path / "state" / "sessionary" / "chain-heads.json").read_bytes())
    assert list(heads) == [one.path]
    path, data = Path(one.path), Path(one.path).read_bytes()
    path.write_bytes(b"\n".join(data.split(b"\n")[:4]) + b"\n")
    assert run("--remember") == (13, {"no_chain", "rolled_back"})
    assert run() == (13, {"no_chain", "rolled_back"})  # the head of a damaged chain is not remembered
    assert main(["check", "--home", str(home)]) == 0
    capsys.readouterr()
    path.unlink()
    assert run() == (13, {"no_chain", "missing_session"})
    path.write_bytes(data)
    assert run("one") == (0, set())
    assert main(["check", "--remember", "--home", str(home)]) == 2


def test_a_session_in_the_trash_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = journal(tmp_path / "data")
    fill(one)
    workspace = Workspace(tmp_path / "data", cache=str(tmp_path / "cache"))

    def found(*, remember: bool = False) -> list[str]:
        chains = [row for ref in workspace.refs() for row in workspace.check_chain(ref, remember=remember)]
        return [problem.code for problem in (*chains, *workspace.check_remembered())]

    assert found(remember=True) == []
    there = Path(workspace.trash(workspace.find("one")))
    assert found() == []
    data = there.read_bytes()
    there.write_bytes(data.replace(b"item 0", b"item 7"))
    assert found() == ["missing_session"]
    there.write_bytes(data)
    fill(journal(tmp_path / "data"), 2)  # a program begins a new session under this id
    assert found() == []
    Path(one.path).write_bytes(b"".join(data.splitlines(keepends=True)[:2]))
    assert found() == ["rolled_back"]
    Path(one.path).unlink()
    there.rename(tmp_path / "aside")
    assert found() == ["missing_session"]
    (tmp_path / "aside").rename(there)
    assert workspace.empty_trash(workspace.trashed())
    assert found() == []


def test_a_session_that_was_restored_is_compared_with_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = journal(tmp_path / "data")
    fill(one)
    workspace = Workspace(tmp_path / "data", cache=str(tmp_path / "cache"))
    assert workspace.check_chain(workspace.find("one"), remember=True) == []
    there, path = Path(workspace.trash(workspace.find("one"))), Path(one.path)
    there.write_bytes(b"".join(there.read_bytes().splitlines(keepends=True)[:-1]))
    workspace.undo(next(iter(workspace.undoable(workspace.find_changed("one")))))
    assert path.exists()
    assert [problem.code for problem in workspace.check_chain(workspace.find("one"))] == ["rolled_back"]
