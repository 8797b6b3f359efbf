"""A project is called by its repository, wherever it is; what is not known here is held back and reported."""

import subprocess
from pathlib import Path

import pytest

from sessionary.errors import NotFound
from sessionary.layouts.amplifier.ids import folders_of, path_slug
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine
from sessionary.sync.identity import Repositories, name_of, normal_address
from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryServer

GIT = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        [*GIT, "-C", str(folder), *words], check=True, capture_output=True, text=True
    ).stdout


def identity_of(folder: Path, **options: float) -> str:
    named = name_of(str(folder), **options)  # type: ignore[arg-type]
    return named.base + named.way


def repository(folder: Path, origin: str | None = None) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if origin:
        git(folder, "remote", "add", "origin", origin)
    return folder


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/Owner/Repo.git",
        "https://user:secret@github.com/owner/repo",
        "https://github.com:443/owner/repo/",
        "http://GitHub.com/owner//repo.git/",
        "git@github.com:owner/repo.git",
        "github.com:owner/repo",
        "ssh://git@github.com:22/owner/repo.git",
        "git://github.com/owner/repo",
        "git+ssh://git@github.com/owner/repo.git",
    ],
)
def test_all_spellings_of_an_address_are_one(url: str) -> None:
    assert normal_address(url) == "github.com/owner/repo"


@pytest.mark.parametrize(
    "url", ["/srv/git/repo.git", "../repo", "file:///srv/repo", "C:\\repo", "", None, "https://github.com/"]
)
def test_what_no_other_machine_can_reach_is_not_an_address(url: str | None) -> None:
    assert normal_address(url) is None


def test_case_counts_where_the_host_may_tell_names_apart_by_it() -> None:
    assert normal_address("https://git.example.org/A/b") == "git.example.org/A/b"


def test_no_secret_of_an_address_gets_into_a_name(tmp_path: Path) -> None:
    place = repository(tmp_path / "a", "https://user:ghp_secret@git.example.org/a/b.git")
    assert identity_of(place) == "git:git.example.org/a/b"


def test_clones_work_trees_and_folders_below_are_reported(tmp_path: Path) -> None:
    one = repository(tmp_path / "one", "git@github.com:o/r.git")
    git(one, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    (one / "packages" / "app").mkdir(parents=True)
    assert identity_of(one) == identity_of(tmp_path / "tree") == "git:github.com/o/r"
    assert identity_of(one / "packages" / "app") == "git:github.com/o/r//packages/app"


def test_without_origin_the_first_commit_counts_and_without_git_the_name_of_the_folder(
    tmp_path: Path,
) -> None:
    one = repository(tmp_path / "one")
    first = git(one, "rev-parse", "HEAD").strip()
    git(one, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", str(one), "two")
    assert identity_of(one) == identity_of(tmp_path / "two") == f"root:{first}"
    (tmp_path / "plain").mkdir()
    assert identity_of(tmp_path / "plain") == "folder:plain"


def test_a_shallow_clone_does_not_take_its_oldest_commit_for_the_first(tmp_path: Path) -> None:
    one = repository(tmp_path / "one")
    git(one, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{one}", "two")
    assert identity_of(tmp_path / "two") == "folder:two"


def test_a_git_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = repository(tmp_path / "one")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    assert identity_of(one, patience=0.1) == "folder:one"


def test_the_folder_of_a_project_is_found_by_its_name(tmp_path: Path) -> None:
    for place in ("a-b/c", "a/b-c", "a/x"):
        (tmp_path / place).mkdir(parents=True)
    found = set(folders_of(path_slug(f"{tmp_path}/a/b-c")))
    assert found == {f"{tmp_path}/a-b/c", f"{tmp_path}/a/b-c"}
    assert list(folders_of(path_slug(f"{tmp_path}/a/gone"))) == []


def test_sessions_follow_the_repository_to_where_it_is_elsewhere(tmp_path: Path) -> None:
    server = MemoryServer()
    homes = []
    for name, place in (("one", "deep/src/app"), ("two", "code/app-clone")):
        folder = repository(tmp_path / name / place, "https://github.com/o/app")
        homes.append((tmp_path / name / "home", path_slug(str(folder)), folder))

    def engine(at: int, *, knows: bool = True) -> Engine:
        home, project, folder = homes[at]
        projects = Repositories({project: folder} if knows else {})
        layout = AmplifierSyncLayout(home)
        return Engine(layout, server.remote(), state_dir=home / "state", projects=projects, quiet=0)

    here = homes[0][0] / "projects" / homes[0][1] / "sessions" / "s"
    here.mkdir(parents=True)
    (here / "transcript.jsonl").write_text('{"role":"user","content":"hi"}\n')
    engine(0).push()
    (held,) = engine(1, knows=False).pull().outcomes
    assert held.standing is SyncStatus.HELD_BACK
    assert "git:github.com/o/app is not known here" in held.note
    (pulled,) = engine(1).pull().outcomes
    assert (pulled.standing, pulled.project) == (SyncStatus.PULLED, "git:github.com/o/app")
    there = homes[1][0] / "projects" / homes[1][1] / "sessions" / "s" / "transcript.jsonl"
    assert there.read_text() == '{"role":"user","content":"hi"}\n'


def test_a_session_whose_project_is_gone_is_reported_and_not_pushed(tmp_path: Path) -> None:
    session = tmp_path / "projects" / "-gone-away" / "sessions" / "s"
    session.mkdir(parents=True)
    (session / "transcript.jsonl").write_text('{"role":"user","content":"hi"}\n')
    server = MemoryServer()
    engine = Engine(
        AmplifierSyncLayout(tmp_path),
        server.remote(),
        state_dir=tmp_path / "state",
        projects=Repositories({}, find=folders_of),
        quiet=0,
    )
    (outcome,) = engine.push().outcomes
    assert (outcome.standing, outcome.project) == (SyncStatus.HELD_BACK, "-gone-away")
    assert server.remote().list_heads().heads == ()


def test_a_project_that_is_not_here_has_no_identity() -> None:
    with pytest.raises(NotFound):
        Repositories({}).identity(SessionRef("amplifier", "s", "/x", "-gone"))
    assert Repositories({}).identity(SessionRef("amplifier", "s", "/x", None)) is None
