"""Where commands look: the home and the project that are named, by default, and what is said where nothing is."""

import json
from pathlib import Path

import pytest

from sessionary import WorkStore
from sessionary.cli import main
from tests.e2e.driving import ROOT, Result, Run, put
from tests.e2e.every_command import commands, options, required


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("COLUMNS", "SESSIONARY_HOME"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Result:
        return Result(main(list(words)), *capsys.readouterr())

    return run


@pytest.mark.parametrize("command", ["check", "tree", "list"])
def test_without_any_sessions_the_doctor_is_named(
    run: Run, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SESSIONARY_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    result = run(command)
    assert (result.code, result.out) == (0, "")  # no sign that all is well: nothing was looked at
    assert result.err == "No sessions yet: `sessionary doctor` shows which folders were searched.\n"


def claude(home: Path, name: str, text: str) -> None:
    place = home / "projects" / "-app"
    place.mkdir(parents=True, exist_ok=True)
    record = {"type": "user", "uuid": "u1", "cwd": "/app", "message": {"role": "user", "content": text}}
    (place / f"{name}.jsonl").write_text(json.dumps(record) + "\n")


def test_several_homes_are_listed_together_and_a_session_in_two_is_one_row(run: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    claude(one, "aaaaaaaa-0000", "in both, first")
    claude(two, "aaaaaaaa-0000", "in both, second")
    claude(two, "bbbbbbbb-0000", "only in the second")
    places = ["--home", str(one), "--home", str(two)]
    rows = json.loads(run("list", *places, "--json").out)
    assert sorted(row["title"] for row in rows) == ["in both, first", "only in the second"]
    assert "only in the second" in run("show", "bbbbbbbb", *places).out
    assert "in both, first" in run("show", "aaaaaaaa", *places).out
    assert len(json.loads(run("search", "both", *places, "--json").out)["hits"]) == 1
    assert run("list", "--home", str(one), "--home", str(tmp_path / "missing")).code == 10


def test_homes_of_the_settings_are_read_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    claude(tmp_path / ".claude", "aaaaaaaa-0000", "usual")
    claude(tmp_path / "old", "bbbbbbbb-0000", "old")
    settings = tmp_path / "config" / "sessionary" / "homes.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"claude_code": [str(tmp_path / "old")]}))
    assert sorted(row["title"] for row in json.loads(run("list", "--json").out)) == ["old", "usual"]
    for wrong, words in (
        ("[1]", "is not an object"),
        ('{"x": []}', "no agent of kind x"),
        ('{"pi": "x"}', "needs a list"),
    ):
        settings.write_text(wrong)
        result = run("list")
        assert (result.code, words in result.err, str(settings) in result.err) == (12, True, True)


PLACED = [
    (name, option)
    for name, command in commands()
    for option in ("--home", "--root")
    if option in options(command)
]
BEGINNING = {"work start", "brainstorm start", "feature create", "feature ack"}
"""What may be the first of its kind in a folder."""
ANYWHERE = {"import"}
"""What makes its store below any folder."""
FILLED = {
    "brainstorm update": "x --ems 5",
    "brainstorm cleanup": "",
    "feature ack": "x x",
    "sync restore": "x --generation 1",
    "sync project bind": "x --new",
    "rename": "x y",
    "search": "x",
    "brainstorm start": "x",
    "feature create": "x",
    "undo": "x",
    "trash": "x",
}


def filled(name: str) -> list[str]:
    words = FILLED[name].split() if name in FILLED else required(dict(commands())[name])
    return [*name.split(), *words]


@pytest.mark.parametrize(("name", "option"), PLACED, ids=map(" ".join, PLACED))
def test_a_folder_that_was_named_and_is_missing_is_an_error_of_every_command(
    run: Run, tmp_path: Path, name: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = run(*filled(name), option, str(tmp_path / "gone"))
    assert (result.code, result.out) == (10, "")
    assert result.err.startswith(f"sessionary: {option}: there is no folder {tmp_path / 'gone'}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "option"),
    [
        pytest.param(name, option, id=f"{name} {option}")
        for name, option in PLACED
        if name not in BEGINNING | ANYWHERE and not name.startswith("sync ")
    ],
)
def test_a_folder_that_was_named_and_holds_no_store_is_an_error_of_every_command(
    run: Run, tmp_path: Path, name: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "empty").mkdir()
    result = run(*filled(name), option, str(tmp_path / "empty"))
    assert (result.code, result.out) == (10, "")
    assert f"sessionary: {option}: {tmp_path / 'empty'} holds no sessions" in result.err
    assert "it has no " in result.err or "`sessionary doctor` shows those known" in result.err
    assert max(map(len, result.err.replace(str(tmp_path), "").splitlines())) < 110
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]
    if option == "--home":
        monkeypatch.setenv("SESSIONARY_HOME", str(tmp_path / "empty"))
        assert run(*filled(name)).err.startswith(
            f"sessionary: SESSIONARY_HOME: {tmp_path / 'empty'} holds no"
        )


@pytest.mark.parametrize("name", sorted(BEGINNING))
def test_what_begins_a_store_makes_it_where_it_is_looked_for(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").touch()
    monkeypatch.chdir(tmp_path)
    words = ["feature", "ack", "opus", "README.md"] if name == "feature ack" else filled(name)
    assert run(*words, "--root", str(tmp_path)).code == 0
    store = {"work": "docs", "brainstorm": ".project-memory", "feature": ".ai-session"}[
        name.split(maxsplit=1)[0]
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", store}
    if name == "work start":  # the same project by its two names, and from inside
        for place in (str(tmp_path), str(tmp_path / "docs" / "sessions"), None):
            words = ["--root", place] if place else []
            assert len(run("work", "list", "--json", *words).json) == 1


def test_sessionary_home_takes_the_place_of_the_home_of_the_agent(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "home", ROOT, "-p", {"transcript.jsonl": b"\n"})
    WorkStore(tmp_path / "project" / "docs" / "sessions").create("pm")
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("SESSIONARY_HOME", str(tmp_path / "home"))
    assert {row["kind"] for row in run("list", "--json").json} == {"amplifier", "work"}
    assert {row["kind"] for row in run("list", "--json", "--home", str(tmp_path / "home")).json} == {
        "amplifier"
    }


@pytest.mark.parametrize(
    ("command", "looked_for"),
    [
        ("work list", "docs/sessions/"),
        ("work show x", "docs/sessions/"),
        ("work stats", "docs/sessions/"),
        ("brainstorm list", ".project-memory/brainstorm-sessions/"),
        ("brainstorm validate", ".project-memory/brainstorm-sessions/"),
        ("brainstorm cleanup", ".project-memory/brainstorm-sessions/"),
        ("feature list", ".ai-session/"),
        ("feature validate", ".ai-session/"),
        ("feature repair --rebuild-index", ".ai-session/"),
    ],
)
def test_a_root_that_was_named_and_holds_no_store_is_an_error(
    run: Run, tmp_path: Path, command: str, looked_for: str
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("gone", "empty"):
        result = run(*command.split(), "--root", str(tmp_path / name))
        assert (result.code, result.out) == (10, "")
        assert str(tmp_path / name) in result.err
    assert f"it has no {looked_for}" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("group", ["brainstorm", "feature"])
def test_a_check_of_nothing_shows_no_sign_that_all_is_well(
    run: Run, tmp_path: Path, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(group, "validate")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("Nothing to check in ")
    assert run(group, "validate", "--json").json["checked"] == 0
