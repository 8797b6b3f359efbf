"""`sessionary list`: which sessions it shows, in which order, and how they are named."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import BrainstormStore, FeatureStore, WorkStore
from sessionary.cli import main
from sessionary.cli.text import cells
from sessionary.layouts.amplifier.ids import path_slug
from sessionary.layouts.amplifier.project_paths import project_paths
from tests.e2e.driving import Result, Run, lines, put
from tests.support import agent_stores

A, B, C = (f"{digit}0000000-0000-4000-8000-000000000001" for digit in "abc")
FEATURE = "a-feature-with-a-long-name-2026-01-02"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Three sessions of agents, the first one the newest, in two projects, and a feature."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SESSIONARY_HOME", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "code" / "app").mkdir(parents=True)
    session(tmp_path, A, f"{tmp_path}/code/app", 1, hours=1, name="b")
    session(tmp_path, B, f"{tmp_path}/code/app", 3, hours=2, name="c")
    session(tmp_path, C, f"{tmp_path}/code/gone", 2, hours=3, name="a", damaged=True)
    FeatureStore(tmp_path / "code" / "app").create(FEATURE, name="A feature")
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Result:
        return Result(main(list(words)), *capsys.readouterr())

    return run


def session(
    place: Path,
    session_id: str,
    path: str,
    messages: int,
    *,
    hours: int,
    damaged: bool = False,
    **fields: Any,
) -> None:
    said = lines(*[{"role": "user", "content": "x"}] * messages) + (b'{"role": "us' if damaged else b"")
    metadata = {"session_id": session_id, "working_dir": path, **fields}
    files = {"transcript.jsonl": said, "metadata.json": json.dumps(metadata).encode()}
    put(place / ".amplifier", session_id, path_slug(path), files, timedelta(hours=hours))


def ids(run: Run, *words: str) -> list[str]:
    """The first letters of the ids that a list shows, which must be those of its JSON, too."""
    shown = [line[0] for line in run("list", *words).out.splitlines()[1:]]
    assert [row["id"][0] for row in run("list", *words, "--json").json] == shown
    assert [row["id"][0] for row in run("list", *words, "--jsonl").rows] == shown
    return shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], "abc"),
        (["-n", "2"], "ab"),
        (["--limit", "0"], "abc"),
        (["--sort", "messages"], "bca"),
        (["--sort", "turns", "-n", "1"], "b"),
        (["--sort", "title"], "cab"),
        (["--health", "damaged"], "c"),
        (["--health", "ok", "--sort", "title"], "ab"),
        (["--health", "lost_data", "--health", "ok"], "abc"),
        (["--kind", "amplifier"], "abc"),
        (["--kind", "work"], ""),
    ],
)
def test_a_list_shows_what_is_asked_for_in_the_order_that_is_asked_for(
    run: Run, words: list[str], shown: str
) -> None:
    assert ids(run, *words) == list(shown)


def test_a_list_says_how_many_the_limit_leaves_out(run: Run) -> None:
    assert "1 more session: raise --limit to show them" in run("list", "-n", "2").err
    assert "No sessions match these filters (3 in total)." in run("list", "--kind", "work").err


def test_the_end_of_a_name_finds_every_project_that_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A project whose folder has just that name, as with Gemini CLI, does not hide the others."""
    agent_stores.enter(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert main(["list", "--project", "app"]) == 10
    assert "no session is in a project" in capsys.readouterr().err
    agent_stores.make(tmp_path)

    def kinds(word: str) -> set[str]:
        code = main(["list", "--project", word, "--json"])
        return {row["kind"] for row in json.loads(capsys.readouterr().out)} if code == 0 else set()

    everywhere = {"claude_code", "codex", "copilot_cli", "pi", "qwen", "vscode_chat"}
    assert kinds("app") >= everywhere | {"gemini"}
    assert kinds("u/app") >= everywhere
    assert "gemini" not in kinds("u/app")
    assert kinds("/home/u/app") >= everywhere
    assert main(["list", "--project", "nowhere"]) == 10
    err = capsys.readouterr().err
    assert "  /home/u/app\n" in err
    assert "give one of these, or the end of its name" in err


@pytest.mark.parametrize("kind", ["claude_code", "codex", "copilot_cli", "pi", "qwen", "vscode_chat"])
def test_the_hits_of_a_search_name_the_folder_that_the_session_states(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_stores.enter(tmp_path, monkeypatch)
    agent_stores.make(tmp_path)
    assert main(["search", "Fix", "--kind", kind, "--top-level"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line and line[0] != " "]
    assert headings
    assert {line.split()[-1] for line in headings} == {"/home/u/app"}


def test_projects_are_called_by_their_path(run: Run, tmp_path: Path) -> None:
    out = run("list").out.splitlines()
    assert [line.split()[3] for line in out[1:]] == ["~/code/app", "~/code/app", "~/code/gone"]
    assert run("show", A).out.splitlines()[2].startswith("~/code/app · ")
    assert {"~/code/app", "~/code/gone"} < set(run("tree").out.splitlines())
    assert "~/code/gone" in run("stats").out
    assert run("search", "x").out.splitlines()[0].endswith("  ~/code/app")
    assert [row["id"] for row in run("list", "--project", "~/code/gone", "--json").json] == [C]
    unknown = run("list", "--project", "nope")
    assert (unknown.code, unknown.err.splitlines()[1:3]) == (10, ["  ~/code/app", "  ~/code/gone"])


def test_two_folders_of_one_name_are_distinguished_by_the_sessions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code-app").mkdir()  # its sessions would lie in the folder of ~/code/app
    slug = path_slug(f"{tmp_path}/code/app")
    assert project_paths(str(tmp_path / ".amplifier"), [slug]) == {slug: f"{tmp_path}/code/app"}


def test_the_kind_is_named_where_there_are_several(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "KIND" not in run("list").out
    monkeypatch.chdir(Path.home() / "code" / "app")
    head, *rows = run("list").out.splitlines()
    assert head.split()[:2] == ["ID", "KIND"]
    assert {tuple(row.split()[:2]) for row in rows} == {
        (FEATURE, "feature"), *((one[:8], "amplifier") for one in (A, B, C))
    }  # fmt: skip
    assert [row["id"] for row in run("list", "--kind", "feature", "--json").json] == [FEATURE]


@pytest.mark.parametrize("width", [40, 50, 60, 80, 120])
def test_a_narrow_terminal_shows_fewer_columns_and_whole_lines(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.chdir(Path.home() / "code" / "app")
    monkeypatch.setenv("COLUMNS", str(width))
    head, *rows = run("list").out.splitlines()
    assert [line for line in (head, *rows) if cells(line) > width] == []
    end = width // 4 // 3
    short = FEATURE[: width // 4 - end - 1] + "…" + FEATURE[-end:]
    assert [row.partition(" ")[0] for row in rows if row.startswith("a-")] == [short]
    assert run("show", short).out == run("show", FEATURE).out
    assert ("HEALTH" in head, "KIND" in head, "TURNS" in head) == (True, width >= 50, width >= 120)
    monkeypatch.chdir(Path.home())
    head, *rows = run("list").out.splitlines()
    assert [line for line in (head, *rows) if cells(line) > width] == []
    assert "HEALTH" in head
    assert [row.split()[-1] for row in rows] == ["b", "c", "a"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_lists_of_a_project_name_their_sessions_whole_in_a_narrow_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    project = Path.home() / "code" / "app"
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", str(width))
    BrainstormStore(project).create("who-signs-in-where", questions=["Who?"])
    work = WorkStore(project / "docs" / "sessions").create("work_track", related_entity={"name": "x" * 99})
    named = {
        "feature": FEATURE[: width - 10],
        "brainstorm": "who-signs-in-where",
        "work": work.session_id[:12],
    }
    for group, name in named.items():
        head, row = run(group, "list").out.splitlines()
        assert name in row
        assert {"ID", "WHEN"} <= set(head.split())
        assert max(cells(head), cells(row)) <= width
