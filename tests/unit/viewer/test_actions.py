"""What the page may change in a session, over HTTP."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sessionary import BrainstormStore, FeatureStore, WorkStore
from sessionary.layouts.records.journal import Change, RecordJournal
from sessionary.viewer import actions
from sessionary.viewer.app import viewer_app
from sessionary.viewer.library import Library
from sessionary.workspace import Workspace
from tests.unit.viewer.test_viewer import MESSAGES, TOKEN, client, events, key, library, listed, write

__all__ = ["client", "library"]  # fixtures


def act(client: TestClient, session: str, action: str, **given: Any) -> Any:
    return client.post(f"/api/session/{key(client, session)}/actions/{action}", json=given)


def granted(client: TestClient, session: str) -> Any:
    return client.get(f"/api/session/{key(client, session)}/actions").json()["names"]


def undo(client: TestClient, done: Any) -> None:
    assert client.post(f"/api/undo/{done['undo']}", json={}).status_code == 200


def page_of(tmp_path: Path) -> TestClient:
    library = Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])
    headers = {"authorization": f"Bearer {TOKEN}", "host": "localhost:80"}
    return TestClient(viewer_app(library, TOKEN, 80), headers=headers)


def test_a_repair_is_previewed_done_and_undone(client: TestClient, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES, tail=b'{"role": "us')
    before = (folder / "transcript.jsonl").read_bytes()
    preview = act(client, "one", "repair").json()
    assert (preview["changed"], preview["fixes"][0]["line"]) == (True, 5)
    assert "undo" not in preview
    assert (folder / "transcript.jsonl").read_bytes() == before
    done = act(client, "one", "repair", dry_run=False).json()
    assert done["remaining"] == []
    assert listed(client)[1][0]["health"] in ("ok", "note")
    assert client.post(f"/api/undo/{done['undo']}", json={}).json() == {"undone": True}
    assert (folder / "transcript.jsonl").read_bytes() == before
    assert client.post(f"/api/undo/{done['undo']}", json={}).status_code == 404


def test_a_session_is_renamed_rewound_and_moved_to_the_trash(client: TestClient, tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES + MESSAGES, name="Old")
    assert act(client, "one", "rename", name="New").json() == {"before": "Old"}
    assert listed(client)[1][0]["title"] == "Old"
    done = act(client, "one", "rename", name="New", dry_run=False).json()
    assert done["before"] == "Old"
    assert listed(client)[1][0]["title"] == "New"
    assert act(client, "one", "rewind", turn=1).json()["messages_dropped"] == 4
    assert act(client, "one", "rewind", turn=1, dry_run=False).json()["messages_kept"] == 4
    assert act(client, "one", "rewind").json() == {"turns": 1, "unit": "turn"}
    assert act(client, "one", "rewind", dry_run=False).status_code == 400
    assert act(client, "one", "trash").json()["messages"] == 4
    gone = act(client, "one", "trash", dry_run=False).json()
    assert not folder.exists()
    assert listed(client)[0]["total"] == 0
    assert client.post(f"/api/undo/{gone['undo']}", json={}).status_code == 200
    assert folder.exists()


def test_a_read_only_server_changes_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path, "one", MESSAGES, tail=b"{")
    library = Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))])
    headers = {"authorization": f"Bearer {TOKEN}", "host": "localhost:80"}
    client = TestClient(viewer_app(library, TOKEN, 80, read_only=True), headers=headers)
    assert granted(client, "one") == ["export"]
    names = list(actions.Actions(library, read_only=True)._named)
    assert {"repair", "copy", "rewind", "fork", "rename", "tag", "star", "archive", "trash"} == set(names)
    for name in names:
        refused = client.post(
            f"/api/session/{key(client, 'one')}/actions/{name}", json={"turn": 0, "dry_run": False}
        )
        assert refused.status_code == 409
        assert "--read-only" in refused.json()["hint"]
    assert client.post("/api/undo/0", json={}).status_code == 409
    assert (folder / "transcript.jsonl").read_bytes().endswith(b"{")


def test_sessions_of_other_agents_are_only_read(client: TestClient, tmp_path: Path) -> None:
    file = tmp_path / "projects" / "-p" / "0b3c8a52-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "u",
        "parentUuid": None,
        "sessionId": file.stem,
        "message": {"role": "user", "content": "hi"},
    }
    file.write_text(json.dumps(record) + "\n{")
    assert listed(client)[1][0]["kind"] == "claude_code"
    assert granted(client, file.stem) == ["copy", "rename", "tag", "star", "archive", "export"]
    assert act(client, file.stem, "trash", dry_run=False).status_code == 409
    assert file.exists()


def test_a_mended_copy_goes_to_a_new_folder_and_the_session_stays(client: TestClient, tmp_path: Path) -> None:
    file = tmp_path / "projects" / "-p" / "0b3c8a52-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    record = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": file.stem}
    file.write_text(json.dumps(record | {"message": {"role": "user", "content": "hi"}}) + "\n{")
    before = file.read_bytes()
    preview = act(client, file.stem, "copy").json()
    assert not Path(preview["folder"]).exists()
    done = act(client, file.stem, "copy", dry_run=False).json()
    assert Path(done["folder"]).parent.name == actions.MENDED
    assert done["folder"] == preview["folder"]
    assert act(client, file.stem, "copy").json()["folder"] != done["folder"]
    assert done["mends"][0]["line"] == 2
    assert done["remaining"] == []
    assert file.read_bytes() == before
    (copied,) = Workspace(Path(done["folder"])).list()
    assert (copied.messages, copied.health) == (1, "ok")


def test_a_fork_is_previewed_made_and_moved_to_the_trash_by_its_undo(
    client: TestClient, tmp_path: Path
) -> None:
    write(tmp_path, "one", MESSAGES + MESSAGES)
    assert act(client, "one", "fork", turn=1).json()["messages"] == 4
    assert listed(client)[0]["total"] == 1
    done = act(client, "one", "fork", turn=1, name="Other way", dry_run=False).json()
    rows = {row["key"]: row for row in listed(client)[1]}
    assert (rows[done["key"]]["title"], rows[done["key"]]["parent"]) == ("Other way", "one")
    undo(client, done)
    assert listed(client)[0]["total"] == 1
    assert act(client, "one", "fork", turn=9).status_code == 400


def test_tags_and_stars_are_given_and_taken_back(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES)

    def row() -> Any:
        return listed(client)[1][0]

    first = act(client, "one", "tag", tags=["bug", "login"], dry_run=False).json()
    assert row()["tags"] == ["bug", "login"]
    assert act(client, "one", "tag", tags=["bug"]).json() == {"before": ["bug", "login"]}
    second = act(client, "one", "tag", tags=["later"], dry_run=False).json()
    assert row()["tags"] == ["later"]
    undo(client, second)
    assert row()["tags"] == ["bug", "login"]
    undo(client, first)
    assert row()["tags"] == []
    assert act(client, "one", "tag", tags=["a b"], dry_run=False).status_code == 400
    assert act(client, "one", "tag", tags="bug", dry_run=False).status_code == 400
    star = act(client, "one", "star", on=True, dry_run=False).json()
    assert row()["starred"] is True
    undo(client, star)
    assert row()["starred"] is False


def test_a_name_is_taken_back(client: TestClient, tmp_path: Path) -> None:
    write(tmp_path, "one", MESSAGES, name="Old")
    undo(client, act(client, "one", "rename", name="New", dry_run=False).json())
    assert listed(client)[1][0]["title"] == "Old"


def test_one_session_is_archived_and_taken_out_again(
    client: TestClient, tmp_path: Path, library: Library
) -> None:
    for name in ("one", "two"):
        write(tmp_path, name, MESSAGES)
    assert act(client, "one", "archive").json()["archived"] is False
    done = act(client, "one", "archive", dry_run=False).json()
    archive = library.workspaces[0].archive()
    assert [entry.session_id for entry in archive.entries()] == ["one"]
    assert [found.faults for found in archive.verify()] == [[]]
    again = act(client, "one", "archive", dry_run=False).json()
    assert "undo" not in again  # it was archived before this page
    undo(client, done)
    assert archive.entries() == []


def test_an_export_is_streamed_with_what_it_lacks(client: TestClient, tmp_path: Path) -> None:
    secret = {"role": "user", "content": "the key is sk-ant-api03-" + "a" * 95}
    write(tmp_path, "one", [*MESSAGES, secret])
    for redact in (False, True):
        path = f"/api/session/{key(client, 'one')}/export?format=md&redact={int(redact)}"
        found = events(client.get(path).text)
        assert [name for name, _ in found] == ["piece", "done"]
        assert ("sk-ant" in found[0][1]) is not redact
        assert "fix the **parser**" in found[0][1]
        done = found[-1][1]
        assert (done["name"], done["messages"]) == ("amplifier-one.md", 5)
        assert bool(done["masked"]) is redact
    atif = events(client.get(f"/api/session/{key(client, 'one')}/export?format=atif").text)
    assert json.loads("".join(data for name, data in atif if name == "piece"))["session_id"]
    assert isinstance(atif[-1][1]["losses"], list)
    ((name, data),) = events(client.get(f"/api/session/{key(client, 'one')}/export?format=x").text)
    assert (name, "md" in data["hint"]) == ("failed", True)


def brainstorm(root: Path) -> str:
    BrainstormStore(root).create("idea", questions=["Who?"])
    return "brainstorm"


def ended(root: Path) -> str:
    brainstorm(root)
    BrainstormStore(root).finish("idea")
    return "brainstorm"


def feature(root: Path) -> str:
    FeatureStore(root / ".ai-session").create(name="Sign in")
    return "feature"


def work(root: Path) -> str:
    WorkStore(root / "docs" / "sessions").create("development")
    return "work"


def records(root: Path, framework: str = "openai-agents") -> str:
    with RecordJournal(root / framework, framework, "customer-1") as journal:
        for said in ("one", "two"):
            item = {"role": "user", "content": said}
            journal.change(lambda state, item=item: Change(add=[item]))  # type: ignore[misc]
    return "records"


def graph(root: Path) -> str:
    return records(root, "langgraph")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (brainstorm, ["rename", "tag", "star", "export"]),
        (ended, ["rename", "tag", "star", "trash", "export"]),
        (feature, ["rename", "tag", "star", "export"]),
        (work, ["rename", "tag", "star", "export"]),
        (records, ["repair", "rewind", "fork", "rename", "tag", "star", "trash", "export"]),
        (graph, ["repair", "rename", "tag", "star", "trash", "export"]),
    ],
)
def test_each_own_kind_allows_what_its_layout_grants(
    tmp_path: Path, make: Callable[[Path], str], names: list[str]
) -> None:
    kind = make(tmp_path)
    client = page_of(tmp_path)
    (row,) = listed(client)[1]
    assert row["kind"] == kind
    assert granted(client, row["id"]) == names
    for refused in {"repair", "rewind", "fork", "trash", "archive"} - set(names):
        answer = act(client, row["id"], refused, turn=0, dry_run=False)
        no_such_turn = (make, refused) == (brainstorm, "rewind")
        assert (refused, answer.status_code) == (refused, 400 if no_such_turn else 409)
    if kind == "records":
        assert act(client, row["id"], "repair").json()["changed"] is False
        gone = act(client, row["id"], "trash", dry_run=False).json()
        assert listed(client)[0]["total"] == 0
        undo(client, gone)
        assert listed(client)[0]["total"] == 1


def test_a_brainstorm_goes_back_and_to_the_trash_and_both_are_undone(tmp_path: Path) -> None:
    store, client = BrainstormStore(tmp_path), page_of(tmp_path)
    brainstorm(tmp_path)
    for _ in range(2):
        store.answer("idea", ["This"])
        store.continue_("idea", ["And?"])
    assert granted(client, "idea") == ["rewind", "rename", "tag", "star", "export"]
    assert act(client, "idea", "rewind").json() == {"turns": 3, "unit": "iteration"}
    preview = act(client, "idea", "rewind", turn=1).json()
    assert (preview["turn"], preview["turns"], preview["messages_dropped"]) == (1, 3, 0)
    assert store.load("idea").iteration == 3
    done = act(client, "idea", "rewind", turn=1, dry_run=False).json()
    assert (store.load("idea").iteration, store.load("idea").tip) == (1, 3)
    undo(client, done)
    assert store.load("idea").iteration == 3
    refused = act(client, "idea", "trash", dry_run=False)
    assert (refused.status_code, "brainstorm finish idea" in refused.json()["hint"]) == (409, True)
    store.finish("idea")
    assert granted(client, "idea") == ["rename", "tag", "star", "trash", "export"]
    gone = act(client, "idea", "trash", dry_run=False).json()
    assert (listed(client)[0]["total"], store.trashed()) == (0, ["idea"])
    undo(client, gone)
    assert (listed(client)[0]["total"], store.load("idea").status) == (1, "completed")


@pytest.mark.parametrize(("make", "before"), [(work, "Checkout"), (feature, "Sign in")])
def test_the_name_of_a_session_of_a_project_is_in_its_own_files(
    tmp_path: Path, make: Callable[[Path], str], before: str
) -> None:
    make(tmp_path)
    client = page_of(tmp_path)
    name = listed(client)[1][0]["id"]
    if make is work:
        WorkStore(tmp_path / "docs" / "sessions").update(name, lambda one: setattr(one, "purpose", before))
    done = act(client, name, "rename", name="  Another\nway ", dry_run=False).json()
    assert (done["before"], listed(client)[1][0]["title"]) == (before, "Another way")
    elsewhere = Workspace(tmp_path, cache=str(tmp_path / "other"))
    assert elsewhere.label(elsewhere.find(name)).name is None
    undo(client, done)
    assert listed(client)[1][0]["title"] == before


def test_the_page_says_which_commands_change_a_session_of_a_project(
    client: TestClient, tmp_path: Path
) -> None:
    brainstorm(tmp_path)
    write(tmp_path, "one", MESSAGES)
    answer = client.get(f"/api/session/{key(client, 'idea')}/actions").json()
    assert answer["otherwise"] == ["sessionary", "brainstorm", "-h"]
    assert client.get(f"/api/session/{key(client, 'one')}/actions").json()["otherwise"] is None


def test_a_session_of_a_framework_is_rewound_and_forked_and_both_are_undone(tmp_path: Path) -> None:
    records(tmp_path)
    client = page_of(tmp_path)
    name = listed(client)[1][0]["id"]
    assert act(client, name, "rewind", turn=1).json()["messages_dropped"] == 1
    done = act(client, name, "rewind", turn=1, dry_run=False).json()
    assert (done["messages_kept"], listed(client)[1][0]["messages"]) == (1, 1)
    undo(client, done)
    assert listed(client)[1][0]["messages"] == 2
    assert act(client, name, "fork", turn=1).json()["messages"] == 1
    made = act(client, name, "fork", turn=1, dry_run=False).json()
    assert (made["messages"], listed(client)[0]["total"]) == (1, 2)
    undo(client, made)
    assert listed(client)[0]["total"] == 1


def test_a_conflict_copy_of_a_kind_in_a_project_is_merged(tmp_path: Path) -> None:
    work(tmp_path)
    (document,) = tmp_path.rglob("session.json")
    copy = document.with_name("session.sync-conflict-20250131-120000-ABCDEFG.json")
    copy.write_bytes(document.read_bytes())
    client = page_of(tmp_path)
    (row,) = listed(client)[1]
    assert "repair" in granted(client, row["id"])
    preview = act(client, row["id"], "repair").json()
    assert [one["name"] for one in preview["copies"]] == [copy.name]
    assert copy.exists()
    assert act(client, row["id"], "repair", dry_run=False).json()["changed"] is True
    assert not copy.exists()
    assert "repair" not in granted(client, row["id"])
