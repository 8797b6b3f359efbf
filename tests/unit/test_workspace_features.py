"""A workspace holds the features of its project beside the sessions of an agent."""

from pathlib import Path

import pytest

from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.workspace import Workspace

ID = "hello-world-2025-01-09"


def test_features_of_a_named_home(tmp_path: Path) -> None:
    FeatureStore(tmp_path).create(ID, name="Hello")
    workspace = Workspace(tmp_path, cache=str(tmp_path / "cache"))
    (summary,) = workspace.summaries()
    assert (summary.ref.kind, summary.title, summary.health) == ("feature", "Hello", "ok")
    ref = workspace.find("hello")
    assert ref.path == tmp_path / ".ai-session" / ID
    assert workspace.layout_of(ref).name == "feature"
    assert workspace.ref_for_path(ref.path) == ref


def test_without_a_home_those_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    FeatureStore(tmp_path).create(ID)
    assert [ref.session_id for ref in Workspace(cache=str(tmp_path / "cache")).refs()] == [ID]


def test_what_is_remembered_of_one_kind_is_not_mixed_with_another(tmp_path: Path) -> None:
    FeatureStore(tmp_path).create(ID)
    session = tmp_path / "projects" / "-p" / "sessions" / "one"
    session.mkdir(parents=True)
    (session / "transcript.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    workspace = Workspace(tmp_path, cache=str(tmp_path / "cache"))
    for _ in range(2):
        assert {summary.ref.kind for summary in workspace.summaries()} == {"amplifier", "feature"}
