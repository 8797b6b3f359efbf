"""The archive: every byte of every kind of session, through growth, truncation, rewrites, kills and loss of sources."""

import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from sessionary import Workspace
from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import AlreadyExists, Invalid, NotFound, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts.archiving import MOST_FILES, is_safe
from sessionary.layouts.fingerprints import MTIME_GRACE
from sessionary.model import Message
from sessionary.workspace import archive_index
from sessionary.workspace.archive import Archive, ArchiveReport
from sessionary.workspace.filters import of_project
from tests.support import agent_stores
from tests.support.agent_stores import CLAUDE, CODEX, CODEX_FORK, CREDENTIALS, IDS, OPENCODE, OPENCODE_FILES

LINE = b'{"type":"user","uuid":"u%d","cwd":"/home/u/app","message":{"role":"user","content":"Turn %d"}}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    agent_stores.enter(tmp_path / "home", monkeypatch)
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Path:
    """The home directory with the store of every agent."""
    agent_stores.make(home)
    return home


def run(fs: Fs = OS_FS) -> ArchiveReport:
    return Workspace(fs=fs).archive().run()


def archive() -> Archive:
    return Workspace().archive()


def claude(home: Path) -> Path:
    """The file of a session of Claude Code, which a test fills."""
    path = home / ".claude" / "projects" / "-home-u-app" / f"{CLAUDE}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    """The files below a folder, but for those of SQLite."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def restored(word: str, to: Path, version: int | None = None) -> dict[str, bytes]:
    """What the archive has of a session."""
    found = archive()
    found.restore(found.find(word), to, version=version)
    return tree(to)


# -- all kinds


HOMES = {
    "claude_code": ".claude",
    "codex": ".codex",
    "copilot_cli": ".copilot",
    "gemini": ".gemini",
    "pi": ".pi/agent",
    "qwen": ".qwen",
    "vscode_chat": ".config/Code",
}


@pytest.mark.parametrize("kind", HOMES)
def test_every_file_of_a_kind_is_kept_to_the_byte(kind: str, store: Path, tmp_path: Path) -> None:
    assert run().failed == []
    wanted = {
        name: data for name, data in tree(store / HOMES[kind]).items() if Path(name).name not in CREDENTIALS
    }
    found: dict[str, bytes] = {}
    for number, session in enumerate(IDS[kind]):
        found |= restored(session, tmp_path / str(number))
    assert found == wanted


def test_each_session_is_archived_once_with_those_of_its_sub_agents(store: Path) -> None:
    assert sorted(one.session_id for one in run().pushed) == sorted(
        one for some in IDS.values() for one in some
    )
    entries = {one.session_id: one for one in archive().entries()}
    assert [one.summary().ref.session_id for one in entries[CLAUDE].sessions] == [CLAUDE, "agent-x1"]


def test_credentials_are_nowhere_in_the_archive(store: Path) -> None:
    run()
    found = Workspace().archive()
    for entry in found.entries():
        files = [name for version in found.versions(entry) for name in version.files]
        assert not [name for name in files if Path(name).name in CREDENTIALS]
        found.restore(entry, store / "out" / entry.name)
    assert not [
        name for name, data in tree(store / "out").items() if any(one in data for one in agent_stores.SECRETS)
    ]


def test_rows_of_a_database_are_kept_value_for_value(store: Path, tmp_path: Path) -> None:
    run()
    files = restored(OPENCODE, tmp_path / "out")
    [database] = [name for name in files if name.endswith(".db")]
    with (
        closing(sqlite3.connect(store / ".local/share/opencode/opencode.db")) as source,
        closing(sqlite3.connect(tmp_path / "out" / database)) as again,
    ):
        for table in ("session", "message", "part"):
            names = [one[1] for one in source.execute(f"PRAGMA table_info({table})")]
            for columns in (names, [f"typeof({name})" for name in names]):
                query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY id"
                assert again.execute(query).fetchall() == source.execute(query).fetchall()
    [rows] = [data for name, data in files.items() if name.endswith(".rows.jsonl")]
    assert json.loads(rows.split(b"\n")[0])["session"] == OPENCODE
    listed = Workspace(tmp_path / "out").list()
    assert [(one.ref.session_id, one.title, one.messages) for one in listed] == [
        (OPENCODE, "Opencode title", 1)
    ]


def test_a_changed_row_is_a_new_version_and_an_added_one_is_kept(store: Path, tmp_path: Path) -> None:
    run()
    first = restored(OPENCODE, tmp_path / "1")
    with closing(
        sqlite3.connect(store / ".local/share/opencode/opencode.db", isolation_level=None)
    ) as connection:
        agent_stores.add_row(connection, 2)
    assert [one.session_id for one in run().pushed] == [OPENCODE]
    assert b"Fix opencode 2" in b"".join(restored(OPENCODE, tmp_path / "2").values())
    assert restored(OPENCODE, tmp_path / "3", version=1) == first


def test_a_session_in_many_files_is_kept_in_two_parts(home: Path, tmp_path: Path) -> None:
    path = claude(home)
    path.write_bytes(LINE % (1, 1))
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    for number in range(MOST_FILES):
        (folder / f"{number}.txt").write_bytes(b"\xff\n" * number)
    run()
    [entry] = archive().entries()
    assert [len(one.files) for one in archive().versions(entry)] == [2]
    assert restored(CLAUDE, tmp_path / "out") == tree(home / ".claude")


# -- changes


def test_nothing_is_done_where_nothing_changed(store: Path) -> None:
    run()
    time.sleep(MTIME_GRACE + 0.1)  # the change times are of a moment ago
    run()
    before = {
        path: path.stat().st_mtime_ns for path in Path(archive().folder).rglob("*") if path.name != ".lock"
    }
    report = run()
    assert (report.pushed, report.unchanged) == ([], sum(map(len, IDS.values())))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_growth_continues_a_version_and_sends_what_was_added(home: Path, tmp_path: Path) -> None:
    path = claude(home)
    path.write_bytes(b"".join(LINE % (n, n) for n in range(20_000)))
    run()
    folder = Path(archive().folder) / "blocks"
    before = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    with path.open("ab") as file:
        file.write(LINE % (20_000, 20_000) + b'{"torn')
    [entry] = run().pushed
    assert entry.sizes == {1: path.stat().st_size}
    assert sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) - before < 1000
    assert list(restored(CLAUDE, tmp_path / "out").values()) == [path.read_bytes()]


@pytest.mark.parametrize("cut", [0, 1, 150, 300, 5000])
def test_a_shorter_file_never_takes_the_place_of_a_longer_one(home: Path, cut: int, tmp_path: Path) -> None:
    path = claude(home)
    whole = b"".join(LINE % (n, n) for n in range(100))
    path.write_bytes(whole)
    run()
    path.write_bytes(whole[:cut])
    [entry] = run().pushed
    assert entry.sizes == {1: len(whole), 2: cut}
    assert list(restored(CLAUDE, tmp_path / "best").values()) == [whole]
    assert list(restored(CLAUDE, tmp_path / "2", version=2).values()) == [whole[:cut]]
    path.unlink()
    [summary] = Workspace().list()
    assert (summary.messages, summary.archived) == (100, True)
    assert len(list(Workspace().read(summary.ref))) == 100


def test_every_rewrite_is_a_version(home: Path, tmp_path: Path) -> None:
    path, contents = claude(home), []
    for number in range(12):  # more than a head of the sync keeps
        contents.append(LINE % (number, number) * (number % 3 + 1))
        path.write_bytes(contents[-1])
        assert len(run().pushed) == 1
    [entry] = archive().entries()
    assert entry.sizes == {number + 1: len(one) for number, one in enumerate(contents)}
    for number, content in enumerate(contents, 1):
        assert list(restored(CLAUDE, tmp_path / str(number), version=number).values()) == [content]
    assert [one.faults for one in archive().verify()] == [[]]


def test_a_file_that_the_agent_removed_stays(store: Path, tmp_path: Path) -> None:
    run()
    before = restored(CLAUDE, tmp_path / "1")
    shutil.rmtree(claude(store).with_suffix(""))
    with claude(store).open("ab") as file:
        file.write(b"\n")
    run()
    assert restored(CLAUDE, tmp_path / "2").keys() == before.keys()


def test_lost_state_and_a_lost_index_are_made_again(home: Path, tmp_path: Path) -> None:
    path = claude(home)
    first, second = b"".join(LINE % (n, n) for n in range(3)), LINE % (2, 2)
    path.write_bytes(first)
    run()
    folder = Path(archive().folder)
    shutil.rmtree(folder / "state")
    (folder / "index").unlink()
    path.write_bytes(second)
    assert run().failed == []
    path.unlink()
    (folder / "index").write_bytes(b"damaged")
    assert run().failed == []
    [entry] = archive().entries()
    assert entry.sizes == {1: len(first), 2: len(second)}
    assert [(one.messages, one.archived) for one in Workspace().list()] == [(3, True)]
    assert list(restored(CLAUDE, tmp_path / "out", version=2).values()) == [second]


# -- the source is gone


def test_a_session_whose_source_is_gone_is_listed_read_and_found(store: Path) -> None:
    before = {
        one.ref.session_id: (one.ref.kind, one.title, one.messages, one.health, one.nested)
        for one in Workspace().list()
    }
    texts = {
        one.ref.session_id: [m.text for m in Workspace().read(one.ref) if isinstance(m, Message)]
        for one in Workspace().list()
    }
    run()
    for folder in (*HOMES.values(), ".local/share/opencode", ".cursor", ".config/Cursor"):
        shutil.rmtree(store / folder)
    workspace = Workspace()
    found = workspace.list()
    assert {
        one.ref.session_id: (one.ref.kind, one.title, one.messages, one.health, one.nested) for one in found
    } == before
    assert all(one.archived for one in found)
    for one in found:
        assert [m.text for m in workspace.read(one.ref) if isinstance(m, Message)] == texts[
            one.ref.session_id
        ]
        list(workspace.check(one.ref))
    assert {hit.ref.session_id for hit in workspace.search("zebra")} == {"agent-x1"}
    assert {hit.ref.session_id for hit in workspace.search("opencode")} == {OPENCODE}
    assert workspace.stats().sessions == len(before)
    for kind, hint in (("claude_code", "puts it back"), ("opencode", "--to DIR")):
        with pytest.raises(Unsupported, match="only the archive has") as failure:
            workspace.resume(workspace.find(IDS[kind][0]))
        assert hint in str(failure.value.hint)


def test_a_session_that_is_back_is_listed_once(store: Path) -> None:
    run()
    claude(store).rename(store / "away")
    assert [one.archived for one in Workspace().list() if one.ref.session_id == CLAUDE] == [True]
    (store / "away").rename(claude(store))
    assert [one.archived for one in Workspace().list() if one.ref.session_id == CLAUDE] == [False]
    other = Workspace(store / "work")
    assert other.list() == [], "another home has nothing of it"


def test_it_is_put_back_with_new_times_and_over_nothing(store: Path) -> None:
    run()
    before = tree(store / ".claude")
    found = archive()
    with pytest.raises(AlreadyExists):
        found.restore(found.find(CLAUDE))
    shutil.rmtree(claude(store).parent)
    done = found.restore(found.find(CLAUDE))
    assert tree(store / ".claude") == before
    assert len(done.paths) == 3
    assert done.listed == "Claude Code lists it in the folder of its project"
    assert claude(store).stat().st_mtime > os.stat(store / ".claude" / "auth.json").st_mtime + 1000
    with pytest.raises(AlreadyExists):
        found.restore(found.find(CLAUDE))


def test_a_fork_of_codex_is_put_back_beside_the_page_that_it_continues(store: Path) -> None:
    run()
    [fork] = (store / ".codex" / "sessions").rglob(f"*{CODEX_FORK}*")
    data = fork.read_bytes()
    fork.unlink()
    done = archive().restore(archive().find(CODEX_FORK))
    assert (fork.read_bytes(), done.paths) == (data, [str(fork)])
    assert "does not list it" in str(done.listed)


@pytest.mark.parametrize("session", [OPENCODE, OPENCODE_FILES, agent_stores.COPILOT])
def test_several_files_or_a_database_are_not_put_back_in_place(store: Path, session: str) -> None:
    run()
    with pytest.raises(Unsupported, match="cannot be put back") as failure:
        archive().restore(archive().find(session))
    assert "--to DIR" in str(failure.value.hint)


def test_a_head_cannot_write_outside_of_the_folder() -> None:
    names = ("../a", "a/../../b", "/etc/x", "a//b", "", ".", "a/.", "a\0b")
    assert [name for name in names if is_safe(name)] == []
    assert is_safe("projects/a b/..c.jsonl")


# -- the archive itself


def test_damage_is_found_and_healed_by_removing(store: Path, tmp_path: Path) -> None:
    run()
    before = restored(CLAUDE, tmp_path / "1")
    found = archive()
    name = found.find(CLAUDE).name
    for block in sorted((Path(found.folder) / "blocks" / name).iterdir())[:1]:
        data = bytearray(block.read_bytes())
        data[-1] ^= 1
        block.chmod(0o600)
        block.write_bytes(data)
    damaged = [one for one in found.verify() if one.faults]
    assert [one.session_id for one in damaged] == [CLAUDE]
    with pytest.raises(SessionaryError):
        found.restore(found.find(CLAUDE), tmp_path / "2")
    found.remove(found.find(CLAUDE))
    with pytest.raises(NotFound):
        found.find(CLAUDE)
    assert not (Path(found.folder) / "blocks" / name).exists()
    run()
    assert restored(CLAUDE, tmp_path / "3") == before
    assert [one for one in archive().verify() if one.faults] == []


def test_a_damaged_session_hides_no_other(store: Path) -> None:
    run()
    folder = Path(archive().folder)
    shutil.rmtree(folder / "state")
    shutil.rmtree(folder / "blocks" / archive().find(CLAUDE).name)
    with claude(store).open("ab") as file:
        file.write(b"\n")
    report = run()
    assert [one for one, _ in report.failed] == [CLAUDE]
    assert report.unchanged == sum(map(len, IDS.values())) - 1


def test_what_cannot_be_restored_is_reported_and_hides_nothing(store: Path) -> None:
    run()
    shutil.rmtree(Path(archive().folder) / "blocks" / archive().find(CLAUDE).name)
    shutil.rmtree(store / ".claude")
    workspace = Workspace()
    hits = workspace.search("Fix")
    assert CODEX in {hit.ref.session_id for hit in hits}
    assert [(ref.session_id, one.code) for ref, one in hits.stats.damaged if ref.kind == "claude_code"] == [
        (CLAUDE, "not_restored"),
        ("agent-x1", "not_restored"),
    ]
    assert [one.code for one in workspace.check(workspace.find(CLAUDE))] == ["not_restored"]
    assert CLAUDE in {one.ref.session_id for one in workspace.list()}


def test_an_index_is_made_again_in_any_folder(store: Path, tmp_path: Path) -> None:
    other = Workspace().archive(tmp_path / "other")
    other.run()
    before = {one.name: len(one.sessions) for one in other.entries()}
    (tmp_path / "other" / "index").unlink()
    shutil.rmtree(store / ".claude")
    assert Workspace().archive(tmp_path / "other").run().failed == []
    assert {one.name: len(one.sessions) for one in other.entries()} == before


def test_what_is_archived_can_be_chosen(store: Path, tmp_path: Path) -> None:
    choice = archive().choose(["pi", "qwen"], ["/home/u"])
    assert (choice.kinds, choice.projects, choice.folder) == (("pi", "qwen"), ("/home/u",), None)
    assert sorted(one.kind for one in run().pushed) == ["pi", "qwen"]
    assert archive().choose(["codex"]).kinds == ("pi", "qwen", "codex")
    by_path = archive().choose([], ["./app", "~/shop"], replace=True).projects
    assert by_path == (os.path.abspath("app"), os.path.expanduser("~/shop"))
    assert archive().choose([], ["elsewhere"], replace=True).projects == ("elsewhere",)
    assert run().pushed == []
    other = Workspace().archive(tmp_path / "other")
    other.choose(replace=True)
    assert archive().folder == str(tmp_path / "other")
    assert len(run().pushed) == sum(map(len, IDS.values()))
    with pytest.raises(Unsupported, match="cannot be archived"):
        archive().choose(["work"])


@pytest.mark.parametrize("word", ["app", "APP", "-home-u-app", "/home/u/app", "pp", "/home/u/ap"])
def test_a_project_is_chosen_by_the_words_that_lists_take(store: Path, word: str) -> None:
    listed = [one for one in of_project(Workspace().list(kind="claude_code"), word) if not one.nested]
    archive().choose(["claude_code"], [word])
    assert {one.session_id for one in run().pushed} == {one.ref.session_id for one in listed}
    assert bool(listed) == (word not in ("pp", "/home/u/ap"))


def test_an_empty_project_does_not_choose_all_of_them(store: Path) -> None:
    with pytest.raises(Invalid, match="no empty name"):
        archive().choose(projects=[""])
    assert archive().entries() == []


def test_damaged_settings_are_reported(home: Path) -> None:
    path = archive_index.choice_file()
    assert path is not None
    archive().choose()
    Path(path).write_text('{"kinds": 1}')
    with pytest.raises(Invalid, match=r"archive\.json"):
        archive()
    with pytest.raises(StorageFailed, match=r"archive\.json") as failed:
        Workspace().list()
    assert "archive add --replace" in str(failed.value.hint)


def test_own_sessions_are_archived_on_request(home: Path, tmp_path: Path) -> None:
    folder = home / ".amplifier" / "projects" / "-p" / "sessions" / "one"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_bytes(b'{"role":"user","content":"Mine"}\n')
    (folder / "events.jsonl").write_bytes(b'{"event":"x"}\n{"torn')
    assert run().pushed == []
    archive().choose(["amplifier"])
    run()
    before = tree(folder)
    shutil.rmtree(folder)
    [one] = Workspace().list()
    assert (one.ref.kind, one.title, one.archived) == ("amplifier", "Mine", True)
    assert [one.text for one in Workspace().read(one.ref) if isinstance(one, Message)] == ["Mine"]
    assert restored("one", tmp_path / "out") == {
        f"projects/-p/sessions/one/{name}": d for name, d in before.items()
    }


# -- concurrency


def _run_in_process(home: str) -> int:
    os.environ["HOME"] = home
    return len(run().failed)


def test_two_runs_at_once_archive_everything_once(store: Path, tmp_path: Path) -> None:
    with get_context("spawn").Pool(2) as pool:
        assert pool.map(_run_in_process, [str(store)] * 2) == [0, 0]
    assert [one for one in archive().verify() if one.faults] == []
    assert {tuple(one.sizes) for one in archive().entries()} == {(1,)}
    assert len(archive().entries()) == sum(map(len, IDS.values()))


def digest(folder: Path) -> Iterator[tuple[str, int, int, str]]:
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        yield str(path), found.st_mtime_ns, found.st_size, data


def test_sources_are_only_read(store: Path) -> None:
    folders = [store / one for one in (*HOMES.values(), ".local/share/opencode", ".cursor", ".config/Cursor")]
    before = [list(digest(one)) for one in folders]
    run()
    list(archive().verify())
    assert [list(digest(one)) for one in folders] == before
    assert CODEX in {one.session_id for one in archive().entries()}
