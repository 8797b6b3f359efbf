"""Sessions by other names than their id: by their name, and across projects of which one is unreadable."""

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from sessionary.disk.fs import OsFs
from sessionary.errors import AmbiguousId, NotFound, StorageFailed
from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.model import SessionRef
from sessionary.workspace import Workspace

FIRST = "3f0c81d2-0000-4000-8000-000000000001"
SECOND = "9a0c99aa-0000-4000-8000-000000000002"
SUB = "0000000000000000-9c1d2e3f4a5b6c7d_explorer"


def make(home: Path, session_id: str, *, project: str = "-p", said: str = "Hi", **metadata: str) -> Path:
    folder = home / "projects" / project / "sessions" / session_id
    folder.mkdir(parents=True)
    message = {"role": "user", "content": said}
    (folder / "transcript.jsonl").write_text(json.dumps(message) + "\n")
    (folder / "metadata.json").write_text(json.dumps({"session_id": session_id, **metadata}))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, cache=str(tmp_path / "cache"))


@pytest.mark.parametrize("word", ["The login race", "the LOGIN race", " the  login\trace "])
def test_a_name_in_any_case_names_its_session(tmp_path: Path, workspace: Workspace, word: str) -> None:
    make(tmp_path, FIRST, name="The login race")
    make(tmp_path, SECOND, project="-q", name="The login race, again")
    assert workspace.find(word).session_id == FIRST
    with pytest.raises(NotFound):
        workspace.find("The login")


def test_a_session_without_a_name_is_called_what_the_list_calls_it(
    tmp_path: Path, workspace: Workspace
) -> None:
    make(tmp_path, FIRST, said="Why is it slow?")
    assert workspace.find("why is it slow?").session_id == FIRST


def test_the_beginning_of_an_id_wins_over_a_name(tmp_path: Path, workspace: Workspace) -> None:
    make(tmp_path, FIRST, name="9a0c")
    make(tmp_path, SECOND)
    assert workspace.find("9a0c").session_id == SECOND


def test_a_name_means_the_session_of_a_user_before_that_of_a_sub_agent(
    tmp_path: Path, workspace: Workspace
) -> None:
    make(tmp_path, FIRST, name="Same")
    make(tmp_path, SUB, name="Same")
    assert workspace.find("same").session_id == FIRST


def test_two_of_a_name_are_distinguished_by_their_ids(tmp_path: Path, workspace: Workspace) -> None:
    make(tmp_path, FIRST, name="Same")
    make(tmp_path, SECOND, project="-q", name="Same")
    with pytest.raises(AmbiguousId) as caught:
        workspace.find("Same")
    assert caught.value.details["matches"] == [f"{FIRST}  -p", f"{SECOND}  -q"]


def test_one_id_in_two_projects_is_distinguished_by_the_folders(tmp_path: Path, workspace: Workspace) -> None:
    folders = [make(tmp_path, FIRST), make(tmp_path, FIRST, project="-q")]
    with pytest.raises(AmbiguousId) as caught:
        workspace.find("3f0c")
    assert caught.value.details["matches"] == list(map(str, folders))
    assert caught.value.hint == "give the path of its folder"
    assert workspace.find(str(folders[1])).project == "-q"


class _Closed(OsFs):
    """A file system on which one folder cannot be looked into, as one of another user."""

    def __init__(self, folder: Path) -> None:
        self._closed = str(folder)

    def listdir(self, path: str) -> list[str]:  # type: ignore[override]
        self._pass(path, path)
        return os.listdir(path)

    def stat(self, path: str) -> os.stat_result:  # type: ignore[override]
        self._pass(path, os.path.dirname(path))
        return os.stat(path)

    def _pass(self, path: str, folder: str) -> None:
        if f"{folder}/".startswith(f"{self._closed}/"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def test_a_closed_project_hides_none_of_the_others(tmp_path: Path) -> None:
    make(tmp_path, FIRST, name="Open")
    closed = make(tmp_path, SECOND, project="-q", name="Closed").parent
    workspace = Workspace(tmp_path, fs=_Closed(closed), cache=str(tmp_path / "cache"))
    assert workspace.find("3f0c").session_id == FIRST
    assert workspace.find("open").session_id == FIRST
    with pytest.raises(StorageFailed):
        workspace.find("9a0c")


def until_stopped(asked: Iterable[SessionRef]) -> tuple[list[str], list[str]]:
    """The ids that were found, and the folders that in the end were reported as closed."""
    found: list[str] = []
    with pytest.raises(StorageFailed) as caught:
        found.extend(ref.session_id for ref in asked)
    return found, caught.value.details["folders"]


def test_a_closed_project_hides_no_session_of_another_kind(tmp_path: Path) -> None:
    closed = make(tmp_path, FIRST).parent
    child = WorkStore(tmp_path / "docs" / "sessions").create("work_task", purpose="Open").session_id
    BrainstormStore(tmp_path).create("sign-in")
    feature = FeatureStore(tmp_path).create(name="Sign in")
    workspace = Workspace(tmp_path, fs=_Closed(closed), cache=str(tmp_path / "cache"))
    for asked in (workspace.refs(), (summary.ref for summary in workspace.summaries())):
        found, reported = until_stopped(asked)
        assert sorted(found) == sorted([child, "sign-in", feature])
        assert reported == [str(closed)]


@pytest.mark.parametrize(
    ("bar", "place", "named"),
    [
        ("docs", "docs/sessions", "docs"),
        ("docs/sessions", "docs/sessions", "docs/sessions"),
        (".project-memory", ".project-memory/brainstorm-sessions", ".project-memory/brainstorm-sessions"),
        (".ai-session", ".ai-session", ".ai-session"),
    ],
)
def test_a_closed_place_of_a_project_is_reported_once_and_hides_no_session(
    tmp_path: Path, bar: str, place: str, named: str
) -> None:
    make(tmp_path, FIRST)
    (tmp_path / place).mkdir(parents=True)
    workspace = Workspace(tmp_path, fs=_Closed(tmp_path / bar), cache=str(tmp_path / "cache"))
    for asked in (workspace.refs(), (summary.ref for summary in workspace.summaries())):
        found, reported = until_stopped(asked)
        assert found == [FIRST]
        assert reported == [str(tmp_path / named)]


def test_the_closed_folder_of_all_places_is_reported_once(tmp_path: Path) -> None:
    make(tmp_path, FIRST)
    for place in ("docs/sessions", ".project-memory/brainstorm-sessions", ".ai-session"):
        (tmp_path / place).mkdir(parents=True)
    workspace = Workspace(tmp_path, fs=_Closed(tmp_path), cache=str(tmp_path / "cache"))
    found, reported = until_stopped(workspace.refs())
    assert found == []
    assert reported == [str(tmp_path)]
