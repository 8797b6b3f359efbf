"""Words that are not valid UTF-8, names in another encoding, and files that a merge left with markers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sessionary import BrainstormStore, FeatureStore
from sessionary.cli import main

BAD = "caf\udce9"
CONFLICT = "<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> laptop\n"


def transcript(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "transcript.jsonl"
    path.write_text('{"role":"user","content":"hello"}\n{"role":"assistant","content":"there"}\n')
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    transcript(tmp_path / "home" / "projects" / "-p" / "sessions" / "s1")
    return tmp_path / "home"


@pytest.mark.parametrize(
    "words",
    [
        ["fork", "s1", "--name", BAD],
        ["search", BAD],
        ["work", "breadcrumb", "add", "latest", "--cookie", BAD, "--prompt", "go"],
        ["work", "breadcrumb", "add", "latest", "--cookie", "x", "--prompt", BAD],
        ["feature", "log", "f", BAD],
        ["feature", "create", BAD],
        ["brainstorm", "start", BAD],
        ["sync", "init", "postgresql://x/y", "--tenant", BAD],
    ],
    ids=lambda words: " ".join(word for word in words[:3] if word != BAD),
)
def test_text_that_is_not_utf8_is_refused_by_every_command(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    assert "caf\\xe9 is not valid UTF-8." in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_path_may_be_any_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / BAD
    transcript(home / "projects" / "-p" / "sessions" / "s1")
    assert main(["list", "--home", str(home), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == "s1"
    assert main(["show", str(home / "projects" / "-p" / "sessions" / "s1")]) == 0


@pytest.mark.parametrize("first", ["utf8", "ascii"])
def test_the_cache_of_lists_survives_a_change_of_locale(first: str, tmp_path: Path) -> None:
    path = transcript(tmp_path / "home" / "projects" / "-日本" / "sessions" / "é1")
    long_ago = 1_600_000_000
    for place in (path, path.parent):
        os.utime(place, (long_ago, long_ago))
    command = [sys.executable, "-m", "sessionary", "list", "--json", "--home", str(tmp_path / "home")]
    utf8 = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    ascii_only = {**utf8, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    from sessionary.catalog import Catalog
    from sessionary.layouts.amplifier.layout import AmplifierLayout

    # Remembered as a list two seconds later would: a file that was changed just now is not.
    layout = AmplifierLayout(tmp_path / "home", now=lambda: 4e9)
    catalog = Catalog(str(tmp_path / "cache" / "sessionary"))
    assert [one.title for one in catalog.summaries(layout)] == ["hello"]
    assert len(catalog._load(layout)) == 1
    order = (utf8, ascii_only, utf8) if first == "utf8" else (ascii_only, utf8, ascii_only)
    for environment in order:
        done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        assert [one["title"] for one in json.loads(done.stdout)] == ["hello"]


def test_a_repair_says_last_what_it_could_not_bring_back(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "projects" / "-p" / "sessions" / "s1" / "transcript.jsonl"
    path.write_bytes(path.read_bytes().replace(b"hello", b"h\xffllo"))
    assert main(["repair", "--home", str(home), "s1"]) == 0
    reported = capsys.readouterr().out.splitlines()
    assert reported[-1].strip() == "could not be recovered: 1 B of line 1"
    assert "h\ufffdllo" in path.read_text()
    assert main(["undo", "--home", str(home), "s1"]) == 0
    assert main(["repair", "--home", str(home), "s1", "--bad-bytes", "drop", "--json"]) == 0
    assert "llo" not in path.read_text()


PLACES = {
    "transcript.jsonl": "home/projects/-p/sessions/s1",
    "metadata.json": "home/projects/-p/sessions/s1",
    "session.json": "docs/sessions/*",
    "log.jsonl": "docs/sessions/*",
    "2*.json": "docs/sessions/*/breadcrumbs/0",
    "*.yaml": ".project-memory/brainstorm-sessions",
    "state.yaml": ".ai-session/one-*",
    "history.jsonl": ".ai-session/one-*",
    "implementation-plan.yaml": ".ai-session/one-*",
    "active-features.yaml": ".ai-session",
}


@pytest.mark.parametrize("name", PLACES)
def test_markers_are_named_in_the_files_of_every_layout(
    name: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each by the same words and with its line, whatever the format and the layout."""
    FeatureStore(tmp_path).create("one-thing-2026-01-01")
    FeatureStore(tmp_path).update("one-thing-2026-01-01", model_in_use="opus")
    BrainstormStore(tmp_path).create("idea")
    (tmp_path / "docs" / "sessions").mkdir(parents=True)
    main(["work", "start", "--type", "t", "--root", str(tmp_path)])
    session = json.loads(next(tmp_path.glob("docs/sessions/*/session.json")).read_bytes())["session_id"]
    main(["work", "breadcrumb", "add", "--cookie", session, "--prompt", "p", "--root", str(tmp_path)])
    main(["work", "consume", session, "--root", str(tmp_path)])
    path = next(tmp_path.glob(f"{PLACES[name]}/{name}"), home / "projects/-p/sessions/s1" / name)
    text = path.read_text() if path.exists() else "{\n}\n"
    first, _, rest = text.partition("\n")
    sides = (first, first) if path.suffix == ".jsonl" else ('"a": 1,', '"a": 2,')
    path.write_text(first + "\n" + CONFLICT.format(*sides) + rest)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    place = home if path.is_relative_to(home) else tmp_path
    capsys.readouterr()
    assert main(["check", "--home", str(place), "--json"]) != 0
    found = [
        problem
        for problem in json.loads(capsys.readouterr().out)["problems"]
        if "a merge conflict marker (<<<<<<< HEAD)" in problem["message"]
    ]
    assert [problem["path"] for problem in found] == [str(path)]
    assert found[0]["line"] == 2 or "line 2" in found[0]["message"]
