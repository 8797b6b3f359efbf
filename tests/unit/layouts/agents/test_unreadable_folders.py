"""A folder or database of an agent that cannot be read hides no other session, and is named."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.disk.fs import OsFs
from sessionary.layouts import registry
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.model import SessionRef
from sessionary.workspace import Workspace
from sessionary.workspace.failures import gathered
from tests.support import agent_stores


class Closed(OsFs):
    """Denies the user one folder and everything in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def _check(self, path: str, *, itself: bool) -> None:
        if path.startswith(f"{self.folder}/") or (itself and path == self.folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def listdir(self, path: Any = None) -> list[str]:
        self._check(path, itself=True)
        return os.listdir(path)

    def stat(self, path: Any, **more: Any) -> os.stat_result:
        self._check(path, itself=False)
        return os.stat(path, **more)

    def lstat(self, path: Any, **more: Any) -> os.stat_result:
        self._check(path, itself=False)
        return os.lstat(path, **more)

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:  # type: ignore[override]
        self._check(path, itself=True)
        return os.open(path, flags, mode)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    agent_stores.enter(tmp_path, monkeypatch)
    agent_stores.make(tmp_path)
    return tmp_path


def found_by(layout: type[Any], fs: OsFs) -> tuple[set[SessionRef], list[str]]:
    """The sessions of a layout, and the places that could not be read."""
    refs, failure = gathered(layout(layout.default_home(), fs).discover())
    return set(refs), [] if failure is None else failure.details["folders"]


@pytest.mark.parametrize("kind", agent_stores.IDS)
def test_a_folder_that_cannot_be_read_is_named(home: Path, kind: str) -> None:
    (layout,) = [one for one in registry.LAYOUTS if one.name == kind]
    everything, _ = found_by(layout, OsFs())
    folders = {parent for ref in everything for parent in Path(ref.locator.partition("#")[0]).parents}
    hidden = 0
    for folder in sorted(folders - {home, *home.parents}):
        refs, places = found_by(layout, Closed(folder))
        inside = {ref for ref in everything if ref.locator.startswith(f"{folder}/")}
        if refs == everything:
            continue  # a session that is a folder is found by its name
        hidden += 1
        assert everything - refs <= inside
        assert places
        assert all(place == str(folder) or place.startswith(f"{folder}/") for place in places)
    assert hidden


def test_sessions_in_other_folders_are_searched_and_all_places_are_named(home: Path) -> None:
    whole = Workspace()
    closed = Workspace(fs=Closed(home / ".local" / "share" / "opencode"))
    refs, failure = gathered(closed.refs())
    assert failure is not None
    assert {one.kind for one in gathered(whole.refs())[0]} - {one.kind for one in refs} == {"opencode"}
    hits = list(closed.search("fix", refs))
    assert {one.ref.kind for one in hits} == {one.kind for one in refs}


def test_a_session_that_may_be_in_what_is_unreadable(home: Path) -> None:
    found = Workspace(fs=Closed(home / ".qwen" / "projects"))
    with pytest.raises(
        OSError, match=rf"no session is called {agent_stores.QWEN} .*\.qwen/projects cannot be read"
    ) as error:
        found.find(agent_stores.QWEN)
    assert "owner and mode" in str(getattr(error.value, "hint", ""))


@pytest.fixture
def broken(home: Path) -> Path:
    """A compressed session that cannot be decompressed, of which nothing is known but its name."""
    (path,) = home.glob(".codex/sessions/2026/03/01/*.zst")
    other = path.with_name(
        path.name.replace(agent_stores.CODEX, "0190a1b2-0000-7000-8000-0000000000ff").partition("_")[0]
        + ".jsonl.zst"
    )
    other.write_bytes(b"this is not zstd")
    return other


@pytest.mark.parametrize("command", ["list", "tree", "stats", "archive run"])
def test_a_file_that_cannot_be_decompressed_is_named(
    broken: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main(command.split()) == 3
    said = capsys.readouterr().err
    assert f"sessionary: {broken} cannot be read: its sessions are not " in said
    assert "restore the file from a backup or the archive" in said


def test_what_is_said_of_a_file_that_cannot_be_decompressed(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json"]) == 16
    (agent,) = [one for one in json.loads(capsys.readouterr().out)["agents"] if one["kind"] == "codex"]
    assert (agent["sessions"], agent["error"]) == (
        2,
        f"{broken}: it cannot be decompressed: zstd decompressor error: Unknown frame descriptor",
    )
    main(["doctor"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "cannot be read: " in shown
    assert "restore the file from a backup or the archive" in shown
    assert main(["check", "--json", "0190a1b2-0000-7000-8000-0000000000ff"]) == 13
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["repair"] == "restore the file from a backup or the archive"
    assert main(["repair", "0190a1b2-0000-7000-8000-0000000000ff", "--out", "out"]) == 13
    said = capsys.readouterr().err
    assert f"no record in {broken} can be read" in said
    assert problem["repair"] in said


@pytest.mark.parametrize("kind", [*agent_stores.IDS, "records"])
def test_a_file_that_cannot_be_read_hides_no_other_session(home: Path, kind: str) -> None:
    for name in ("one", "two"):
        folder = home / ".local" / "share" / "sessionary" / "openai-agents"
        journal = RecordJournal(folder, "openai-agents", name, (), durability="none")
        journal.change(lambda state: Change(add=[{"role": "user", "content": "Fix records"}]))
    whole = {one.ref: one for one in Workspace().list()}
    files = {ref: Path(ref.locator.partition("#")[0]) for ref in whole if ref.kind == kind}
    of_databases = {path for path in files.values() if path.suffix in (".db", ".vscdb")}
    assert set(files.values()) - of_databases
    for path in set(files.values()) - of_databases:  # SQLite opens those itself
        found, failure = gathered(Workspace(fs=Closed(path)).summaries())
        inside = {ref for ref, file in files.items() if file == path}
        listed = {one.ref: one for one in found}
        assert set(whole) - set(listed) <= inside
        for ref in inside & set(listed):
            assert "unreadable_file" in {one.code for one in listed[ref].problems}
        assert failure is not None or inside <= set(listed)


def test_an_archive_that_cannot_be_read_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["archive", "run"]) == 0
    capsys.readouterr()
    folder = home / ".local" / "share" / "sessionary" / "archive"
    found, failure = gathered(Workspace(fs=Closed(folder)).summaries())
    assert {one.ref.kind for one in found} == set(agent_stores.IDS)
    assert failure is not None
    assert (failure.path, failure.hint) == (
        str(folder / "index"),
        "permission denied: check owner and mode of the file and of its folder",
    )
    (home / ".config" / "sessionary").mkdir(parents=True, exist_ok=True)
    (home / ".config" / "sessionary" / "archive.json").write_text("{")
    assert main(["list"]) == 3
    said = capsys.readouterr().err
    assert f"{home}/.config/sessionary/archive.json cannot be read: its sessions are not listed" in said
    assert "archive add --replace" in said


def test_a_catalogue_that_cannot_be_looked_at(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(fs: object, path: str) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("sessionary.workspace.doctor.size_of", denied)
    assert main(["doctor"]) == 0
    assert "catalogue     ~/.cache/sessionary/catalogue.db: missing or unreadable" in capsys.readouterr().out
