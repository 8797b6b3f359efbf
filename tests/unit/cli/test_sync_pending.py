"""Which sessions count as two versions of one, and which of them a word names."""

import json
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest
from click.testing import CliRunner

from sessionary.cli.app import cli
from sessionary.cli.sync.pending import Pair, pairs
from sessionary.cli.sync.resolving import _named
from sessionary.errors import AmbiguousId, NotFound
from sessionary.layouts.amplifier.receiving import AmplifierRecipient
from sessionary.layouts.maestro.receiving import MaestroRecipient

DERIVED = [str(uuid5(NAMESPACE_OID, word)) for word in "ab"]


def conversation(home: Path, session: str, parent: str | None) -> None:
    folder = home / "projects" / "-work" / "sessions" / session
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    (folder / "metadata.json").write_text(json.dumps({"session_id": session, "parent_id": parent}))


def work(root: Path, session: str, parent: str | None) -> None:
    folder = root / (parent or "") / session
    folder.mkdir(parents=True)
    told = {"session_id": session, "session_type": "work_task", "parent_session_id": parent}
    (folder / "session.json").write_text(json.dumps(told))


def found(home: Path) -> list[Pair]:
    return list(pairs([AmplifierRecipient(home)]))


def test_a_derived_session_that_says_its_parent_is_the_version_that_gave_way(tmp_path: Path) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    conversation(tmp_path, "fork", "shop")
    conversation(tmp_path, DERIVED[1], "gone")
    assert [(pair.original.session_id, pair.sibling.session_id) for pair in found(tmp_path)] == [
        ("shop", DERIVED[0])
    ]


def test_sub_work_is_no_version_of_the_work_above_it(tmp_path: Path) -> None:
    work(tmp_path, "above", None)
    work(tmp_path, DERIVED[0], "above")
    layout = MaestroRecipient(tmp_path, project="app")
    assert {ref.session_id for ref in layout.discover()} == {"above", DERIVED[0]}
    assert list(pairs([layout])) == []


def test_a_whole_id_names_a_pair_though_others_begin_so(tmp_path: Path) -> None:
    for name, sibling in zip(("shop", "shop-2"), DERIVED, strict=True):
        conversation(tmp_path, name, None)
        conversation(tmp_path, sibling, name)
    both = found(tmp_path)
    named = _named(both, "shop")
    assert named is not None
    assert named.original.session_id == "shop"
    assert _named(both, DERIVED[1][:8]) == next(pair for pair in both if pair.original.session_id == "shop-2")
    assert _named(both, "other") is None
    with pytest.raises(AmbiguousId):
        _named(both, "sh")
    conversation(tmp_path, str(uuid5(NAMESPACE_OID, "c")), "shop")
    with pytest.raises(AmbiguousId, match="several pairs"):
        _named(found(tmp_path), "shop")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_what_lies_here_is_listed_though_the_remote_cannot_be_opened(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    conversation(tmp_path, "shop", None)
    conversation(tmp_path, DERIVED[0], "shop")
    settings = tmp_path / "sync.json"
    key = str(tmp_path / "no key")
    settings.write_text(json.dumps({"remote": "s3://b/c", "tenant": "t", "device": "d", "encrypt": key}))
    place = ["--home", str(tmp_path), "--root", str(tmp_path), "--settings", str(settings)]
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = CliRunner().invoke(cli, ["sync", "resolve", *place, *words], env=env)
    assert isinstance(done.exception, NotFound)
    if words:
        (row,) = json.loads(done.stdout)
        assert (row["id"], row["sibling"]) == ("shop", DERIVED[0])
    else:
        assert f"mine: {DERIVED[0]}, which gave way" in done.stdout
        assert f"sync resolve {DERIVED[0]} --keep theirs" in done.stdout


def test_where_nothing_lies_here_only_the_error_is_told(tmp_path: Path) -> None:
    settings = tmp_path / "sync.json"
    key = str(tmp_path / "no key")
    settings.write_text(json.dumps({"remote": "s3://b/c", "tenant": "t", "device": "d", "encrypt": key}))
    place = ["--home", str(tmp_path), "--root", str(tmp_path), "--settings", str(settings)]
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = CliRunner().invoke(cli, ["sync", "resolve", *place], env=env)
    assert done.stdout == ""
    assert "nothing waits" not in done.stderr
    assert isinstance(done.exception, NotFound)
