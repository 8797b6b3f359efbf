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
CONFLICT = "    catalog = Catalog(str(tmp_path / "cache" / "sessionary"))
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
    told = capsys.readouterr().out.splitlines()
    assert told[-1].strip() == "could not be brought back: 1 B of line 1"
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
