"""A workspace holds the brainstorm sessions of its project beside the sessions of an agent."""

from pathlib import Path

import pytest

from sessionary import BrainstormStore
from sessionary.workspace import Workspace


def test_brainstorms_of_a_named_home(tmp_path: Path) -> None:
    store = BrainstormStore(tmp_path)
    store.create("sign-in", questions=["Who signs in?"])
    workspace = Workspace(tmp_path, cache=str(tmp_path / "cache"))
    for _ in range(2):
        (summary,) = workspace.summaries()
        assert (summary.ref.kind, summary.title, summary.health) == ("brainstorm", "Who signs in?", "ok")
    ref = workspace.find("sign")
    assert str(ref.path) == store.path("sign-in")
    assert workspace.layout_of(ref).name == "brainstorm"
    assert workspace.ref_for_path(ref.path) == ref


def test_without_a_home_those_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    BrainstormStore(tmp_path).create("sign-in")
    assert [ref.session_id for ref in Workspace(cache=str(tmp_path / "cache")).refs()] == ["sign-in"]


def test_a_search_passes_over_what_is_not_a_file_of_lines(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from sessionary.cli.app import cli

    BrainstormStore(tmp_path).create("sign-in", questions=["Who signs in?"])
    result = CliRunner().invoke(cli, ["search", "signs", "--home", str(tmp_path)])
    assert "damaged" not in result.output
