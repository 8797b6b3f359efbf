"""`sessionary mv`, and the filters of `sessionary list`, for users and scripts."""

import json
import os
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts.amplifier.ids import path_slug
from tests.e2e.driving import Result, Run, documented


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*words: str) -> Result:
        code = main([*words, "--home", str(tmp_path / "home")])
        return Result(code, *capsys.readouterr())

    return run


def make(
    tmp_path: Path, session_id: str, path: str, *, age: timedelta = timedelta(0), **metadata: Any
) -> Path:
    folder = tmp_path / "home" / "projects" / path_slug(path) / "sessions" / session_id
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_text('{"role": "user", "content": "Hi"}\n')
    (folder / "metadata.json").write_text(
        json.dumps({"session_id": session_id, "name": session_id, **metadata})
    )
    then = (datetime.now(UTC) - age).timestamp()
    for place in (*folder.iterdir(), folder):
        os.utime(place, (then, then))
    return folder


def test_mv_says_both_names_and_how_to_take_it_back(tmp_path: Path, run: Run) -> None:
    old, new = str(tmp_path / "app"), str(tmp_path / "shop")
    make(tmp_path, "s1", old, working_dir=f"{old}/src")
    make(tmp_path, "s2", old)
    planned = run("mv", old, new, "--dry-run")
    assert planned.code == 0
    assert "2 sessions would move" in planned.out
    assert "take it back" not in planned.err
    done = run("mv", old, new)
    assert done.code == 0
    for said in (
        path_slug(old)[-20:],
        path_slug(new)[-20:],
        "2 sessions moved",
        "working_dir changed in 1 of them",
    ):
        assert said in done.out
    assert f"folder {new} does not exist yet" in done.err
    label, _, command = done.err.splitlines()[-1].partition(": ")
    assert label == "undo"
    words = shlex.split(command)
    assert words[:2] == ["sessionary", "mv"]
    assert main(words[1:]) == 0
    folder = tmp_path / "home" / "projects" / path_slug(old) / "sessions" / "s1"
    assert json.loads((folder / "metadata.json").read_bytes())["working_dir"] == f"{old}/src"


def test_the_json_of_mv_is_as_documented(tmp_path: Path, run: Run) -> None:
    old, new = str(tmp_path / "app"), str(tmp_path / "shop")
    folder = make(tmp_path, "s1", old, working_dir=old)
    done = json.loads(run("mv", old, new, "--json").out)
    whole, step = documented("sessionary mv")
    assert set(done) == whole
    assert set(done["sessions"][0]) == step
    assert done["old"] == {"path": old, "project": path_slug(old)}
    assert done["new"] == {"path": new, "project": path_slug(new), "sessions": 0}
    assert done["sessions"] == [{
        "id": "s1",
        "from": str(folder),
        "to": str(folder).replace(path_slug(old), path_slug(new)),
        "trashed": False,
        "working_dir": {"old": old, "new": new},
    }]  # fmt: skip


def test_mv_by_the_end_of_the_name(tmp_path: Path, run: Run) -> None:
    make(tmp_path, "s1", "/home/u/app", working_dir="/home/u/app")
    make(tmp_path, "s2", "/srv/app", working_dir="/srv/app")
    make(tmp_path, "s3", "/srv/web", working_dir="/srv/web")
    several = run("mv", "app", "/srv/shop")
    assert (several.code, "2 projects are named app" in several.err) == (12, True)
    assert run("mv", "web", "/srv/shop").code == 0
    assert run("mv", "web", "/srv/shop").code == 10


@pytest.mark.parametrize("before", [(), ("--dry-run",)])
def test_mv_takes_the_folder_name_that_list_prints(tmp_path: Path, run: Run, before: tuple[str, ...]) -> None:
    make(tmp_path, "one", "/u/app")
    done = run("mv", *before, "-u-app", "/srv/shop")
    assert done.code == 0
    assert "sessions in -u-app" in done.out


def test_mv_refuses_what_would_collide(tmp_path: Path, run: Run) -> None:
    folder = make(tmp_path, "s1", "/home/u/app")
    make(tmp_path, "s1", "/home/u/shop")
    refused = run("mv", "/home/u/app", "/home/u/shop")
    assert refused.code == 11
    assert refused.err.splitlines()[1] == "  s1"
    assert folder.exists()


def test_mv_names_what_stays(tmp_path: Path, run: Run) -> None:
    make(tmp_path, "mine", "/u/a-b", working_dir="/u/a-b")
    make(tmp_path, "other", "/u/a-b", working_dir="/u/a/b")
    done = run("mv", "/u/a-b", "/u/new")
    assert "1 session moved" in done.out
    assert "other stays: it belongs to /u/a/b, which has the same folder name" in done.err


def ids(result: Result) -> list[str]:
    assert result.code == 0
    return [row["id"] for row in json.loads(result.out)]


def test_list_of_a_project_and_of_a_time(tmp_path: Path, run: Run) -> None:
    make(tmp_path, "new", "/u/app", age=timedelta(hours=1))
    make(tmp_path, "old", "/u/app", age=timedelta(days=40))
    make(tmp_path, "else", "/u/web", age=timedelta(days=2))
    assert ids(run("list", "--json")) == ["new", "else", "old"]
    assert ids(run("list", "--project", "app", "--json")) == ["new", "old"]
    assert ids(run("list", "--project", "/u/web", "--json")) == ["else"]
    assert ids(run("list", "--since", "3d", "--json")) == ["new", "else"]
    assert ids(run("list", "--until", "1d", "--json")) == ["else", "old"]
    assert ids(run("list", "--since", "3d", "--until", "1d", "--json")) == ["else"]
    assert run("list", "--project", "nothing").code == 10


def test_a_list_says_what_its_filters_hide(tmp_path: Path, run: Run) -> None:
    make(tmp_path, "new", "/u/app")
    make(tmp_path, "old", "/u/app", age=timedelta(days=40))
    some = run("list", "--since", "3d")
    assert [line.split()[0] for line in some.out.splitlines()] == ["ID", "new"]
    assert some.err == "1 session does not match these filters\n"
    none = run("list", "--until", "90d")
    assert (none.out, none.code) == ("", 0)
    assert none.err == "No sessions match these filters (2 in total).\n"


def test_short_ids_of_a_part_still_name_their_sessions_among_all(tmp_path: Path, run: Run) -> None:
    first, second = "3f0c81d2-0000-4000-8000-000000000001", "3f0c81d2-0000-4111-8000-000000000001"
    make(tmp_path, first, "/u/app")
    make(tmp_path, second, "/u/web")
    shown = run("list", "--project", "app").out.splitlines()[1].split()[0]
    assert first.startswith(shown)
    assert not second.startswith(shown)
