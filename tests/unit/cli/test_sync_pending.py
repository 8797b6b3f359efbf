"""Which sessions count as two versions of one, and which of them a word names."""

import json
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest
from click.testing import CliRunner

from sessionary.cli.app import cli
from sessionary.errors import AmbiguousId, Corrupt, NotFound
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.brainstorm.sync_adapter import BrainstormSyncLayout
from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout
from sessionary.workspace.conflicts import UNKNOWN, Pair, pair_named, pairs

DERIVED = [str(uuid5(NAMESPACE_OID, word)) for word in "ab"]


def conversation(home: Path, session: str, parent: str | None) -> None:
    place = folder(home, session)
    place.mkdir(parents=True)
    (place / "transcript.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    (place / "metadata.json").write_text(json.dumps({"session_id": session, "parent_id": parent}))


def work(root: Path, session: str, parent: str | None) -> None:
    folder = root / (parent or "") / session
    folder.mkdir(parents=True)
    reported = {"session_id": session, "session_type": "work_task", "parent_session_id": parent}
    (folder / "session.json").write_text(json.dumps(reported))


def found(home: Path) -> list[Pair]:
    return pairs([AmplifierSyncLayout(home)])[0]


def unknown(home: Path) -> list[tuple[str, str]]:
    known, doubtful = pairs([AmplifierSyncLayout(home)])
    assert known == []
    return [(one.id, one.note) for one in doubtful]


def folder(home: Path, session: str) -> Path:
    return home / "projects" / "-work" / "sessions" / session


def test_a_derived_session_that_says_its_parent_is_the_version_that_gave_way(tmp_path: Path) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    conversation(tmp_path, "fork", "shop")
    conversation(tmp_path, DERIVED[1], "gone")
    assert [(pair.original.session_id, pair.sibling.session_id) for pair in found(tmp_path)] == [
        ("shop", DERIVED[0])
    ]


def test_sub_work_is_not_a_version_of_the_work_above_it(tmp_path: Path) -> None:
    work(tmp_path, "above", None)
    work(tmp_path, DERIVED[0], "above")
    layout = MaestroSyncLayout(tmp_path, project="app")
    assert {ref.session_id for ref in layout.discover()} == {"above", DERIVED[0]}
    assert pairs([layout]) == ([], [])


DAMAGED = "metadata.json cannot be read, so its origin is unknown: not a JSON document"


def test_a_session_whose_metadata_cannot_be_read_is_reported(tmp_path: Path) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    conversation(tmp_path, "fork", "shop")
    for name in (DERIVED[0], "fork"):
        (folder(tmp_path, name) / "metadata.json").write_text('{"session_id": ')
    ((name, note),) = unknown(tmp_path)  # no fork is a version of what it was forked from
    assert (name, note[: len(DAMAGED)]) == (DERIVED[0], DAMAGED)


def test_a_backup_from_before_it_gave_way_names_no_pair(tmp_path: Path) -> None:
    conversation(tmp_path, "above", None)
    conversation(tmp_path, "shop", "above")
    conversation(tmp_path, DERIVED[0], "shop")
    place = folder(tmp_path, DERIVED[0])
    (place / "metadata.json.backup").write_text(json.dumps({"session_id": "shop", "parent_id": "above"}))
    (place / "metadata.json").write_text("")
    assert [name for name, _ in unknown(tmp_path)] == [DERIVED[0]]  # `above` was never continued twice


def test_a_damaged_conversation_leaves_no_doubt_about_the_pair(tmp_path: Path) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    conversation(tmp_path, DERIVED[1], None)
    for name in DERIVED:
        (folder(tmp_path, name) / "transcript.jsonl").write_text("{no message\n")
    known, doubtful = pairs([AmplifierSyncLayout(tmp_path)])
    assert [(pair.original.session_id, pair.sibling.session_id) for pair in known] == [("shop", DERIVED[0])]
    assert doubtful == []


def test_a_brainstorm_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    layout = BrainstormSyncLayout(tmp_path, project="app")
    path = Path(layout.place("app", DERIVED[0]).locator)
    path.parent.mkdir(parents=True)
    path.write_text("session: [\n")
    known, (one,) = pairs([layout])
    assert (known, one.what, one.kind, one.id) == ([], UNKNOWN, "brainstorm", DERIVED[0])
    assert one.note.startswith(f"{path.name} cannot be read")


def test_a_whole_id_names_a_pair_though_others_begin_so(tmp_path: Path) -> None:
    for name, sibling in zip(("shop", "shop-2"), DERIVED, strict=True):
        conversation(tmp_path, name, None)
        conversation(tmp_path, sibling, name)
    layouts = [AmplifierSyncLayout(tmp_path)]
    for word, original in (("shop", "shop"), (DERIVED[1][:8], "shop-2")):
        named = pair_named(layouts, word)
        assert named is not None
        assert named.original.session_id == original
    assert pair_named(layouts, "other") is None
    with pytest.raises(AmbiguousId):
        pair_named(layouts, "sh")
    conversation(tmp_path, str(uuid5(NAMESPACE_OID, "c")), "shop")
    with pytest.raises(AmbiguousId, match="several pairs"):
        pair_named(layouts, "shop")


def resolve(home: Path, *words: str) -> Any:
    """`sync resolve` with a remote that cannot be opened."""
    settings = home / "sync.json"
    key = str(home / "no key")
    settings.write_text(json.dumps({"remote": "s3://b/c", "tenant": "t", "device": "d", "encrypt": key}))
    place = ["--home", str(home), "--root", str(home), "--settings", str(settings)]
    env = {"XDG_STATE_HOME": str(home / "state")}
    return CliRunner().invoke(cli, ["sync", "resolve", *words, *place], env=env)


def test_of_a_session_that_cannot_be_known_no_version_is_chosen(tmp_path: Path) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    (folder(tmp_path, DERIVED[0]) / "metadata.json").write_text("")
    error = resolve(tmp_path, DERIVED[0][:8], "--keep", "theirs").exception
    assert isinstance(error, Corrupt)
    assert (error.session, DAMAGED in error.message) == (DERIVED[0], True)
    assert sorted(path.name for path in folder(tmp_path, "").iterdir()) == sorted(["shop", DERIVED[0]])


def test_it_is_listed_though_the_remote_cannot_be_opened(tmp_path: Path) -> None:
    conversation(tmp_path, DERIVED[0], "shop")
    (folder(tmp_path, DERIVED[0]) / "metadata.json").write_text("")
    (row,) = json.loads(resolve(tmp_path, "--json").stdout)
    assert (row["what"], row["id"], row["project"]) == ("unknown", DERIVED[0], "-work")
    assert row["note"].startswith(DAMAGED)
    assert resolve(tmp_path).stdout.splitlines()[0] == f"✗ not known     {DERIVED[0]}"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_what_is_here_is_listed_though_the_remote_cannot_be_opened(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    done = resolve(tmp_path, *words)
    assert isinstance(done.exception, NotFound)
    if words:
        (row,) = json.loads(done.stdout)
        assert (row["id"], row["sibling"]) == ("shop", DERIVED[0])
    else:
        assert f"mine: {DERIVED[0]}, the sibling" in done.stdout
        assert f"sync resolve {DERIVED[0]} --keep theirs" in done.stdout


def test_where_nothing_is_stored_here_only_the_error_is_reported(tmp_path: Path) -> None:
    done = resolve(tmp_path)
    assert done.stdout == ""
    assert "nothing waits" not in done.stderr
    assert isinstance(done.exception, NotFound)
