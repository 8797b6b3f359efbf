"""Text that is not valid UTF-8 is refused by every parameter of every command; paths may be any bytes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sessionary import BrainstormStore, FeatureStore
from sessionary.cli import main
from sessionary.cli.app import cli
from sessionary.cli.lazy import takes_path
from sessionary.cli.maestro import maestro
from sessionary.cli.maestro import main as maestro_main
from tests.e2e.test_cli_sync import SESSION, Machine, begin, machines, of_s3

__all__ = ["machines"]  # a fixture

BAD = "caf\udce9"
HALF = "\ud83d"
PROGRAMS = {"sessionary": (cli, main), "maestro": (maestro, maestro_main)}


def commands(command: click.Command, words: list[str]) -> Iterator[tuple[list[str], click.Command]]:
    """Every command below a command, and the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command, help_option_names=["-h", "--help"])
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, [*words, name])


def takes_text(param: click.Parameter) -> bool:
    return not takes_path(param) and not getattr(param, "is_flag", False)


def filled(command: click.Command, param: click.Parameter, bad: str) -> list[str]:
    """The words of a call in which one parameter has the bad text; required ones have something good."""
    options: list[str] = []
    operands: list[str] = []
    for one in command.params:
        if one is param and isinstance(one, click.Option):
            options += [one.opts[0], bad]
        elif one is param:
            operands.append(bad)
        elif isinstance(one, click.Argument) and (one.required or param in command.params):
            operands.append(good(one))
        elif one.required:
            options += [one.opts[0], good(one)]
    return [*options, "--", *operands] if operands else options


def good(param: click.Parameter) -> str:
    if isinstance(param.type, click.Choice):
        return str(param.type.choices[0])
    return "1"


PARAMETERS = [
    pytest.param(program, words, command, param, id=" ".join([program, *words, param.opts[0]]))
    for program, (root, _) in PROGRAMS.items()
    for words, command in commands(root, [])
    for param in command.params
    if takes_text(param)
]


def test_the_walk_finds_the_parameters_that_take_text() -> None:
    found = {str(param.id) for param in PARAMETERS}
    assert {
        "sessionary fork --name",
        "sessionary rename name",
        "sessionary search words",
        "sessionary work breadcrumb add --prompt",
        "sessionary feature update --arguments",
        "sessionary feature log command",
        "sessionary brainstorm answer texts",
        "sessionary sync init --tenant",
        "maestro wsession start --purpose",
    } <= found
    assert not {"sessionary list --home", "sessionary show target", "sessionary mv newpath"} & found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("program", "words", "command", "param"), PARAMETERS)
@pytest.mark.parametrize("bad", [BAD, HALF], ids=["byte", "half"])
def test_text_that_is_not_utf8_is_refused(
    program: str,
    words: list[str],
    command: click.Command,
    param: click.Parameter,
    bad: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = [*words, *filled(command, param, bad)]
    assert PROGRAMS[program][1](call) == 2, call
    shown = capsys.readouterr().err
    assert "\\xe9" in shown or "\\udce9" in shown or "\\ud83d" in shown
    if isinstance(param.type, click.types.StringParamType):
        assert "is not valid UTF-8." in shown
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("agent", [BAD, HALF])
def test_an_agent_beside_the_path_of_a_contract_is_text(
    place: Path, agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = place / f"contract-{BAD}"
    contract.write_text("v1")
    assert main(["feature", "ack", agent, str(contract)]) == 2
    assert "is not valid UTF-8." in capsys.readouterr().err
    assert list(place.iterdir()) == [contract]
    FeatureStore(place).create("one-thing-2026-01-01")
    assert main(["feature", "ack", "opus", str(contract)]) == 0
    assert main(["feature", "ack", "--verify", "opus", str(contract)]) == 0


LINES = b'{"role":"user","content":"hello there"}\n{"role":"assistant","content":"yes"}\n'


@pytest.fixture
def home(place: Path) -> Path:
    """A home whose folders all have names that are not UTF-8."""
    folder = place / f"home-{BAD}" / "projects" / f"-x-{BAD}" / "sessions" / f"s-{BAD}"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").write_bytes(LINES)
    (folder / "events.jsonl").write_bytes(b'{"ts":"2026-01-01T00:00:00Z","event":"prompt","lvl":"INFO"}\n')
    (folder / "metadata.json").write_text('{"session_id": "s", "bundle": "b"}')
    return place / f"home-{BAD}"


@pytest.fixture
def project(place: Path) -> Path:
    """A project whose path is not UTF-8, with sessions of the three other kinds, some of them named so."""
    root = place / f"app-{BAD}"
    root.mkdir()
    FeatureStore(root).create("one-thing-2026-01-01")
    BrainstormStore(root).create("idea")
    (root / ".ai-session" / "one-thing-2026-01-01" / "artifacts" / BAD).write_text("x")
    (root / ".ai-session" / f"{BAD}-2026-01-01").mkdir()
    (root / ".ai-session" / f"{BAD}-2026-01-01" / "history.jsonl").write_text("")
    ideas = root / ".project-memory" / "brainstorm-sessions"
    (ideas / f"{BAD}.yaml").write_bytes((ideas / "idea.yaml").read_bytes())
    (root / "docs" / "sessions").mkdir(parents=True)
    return root


S, T, P = "{session}", "{session}/transcript.jsonl", "x-" + BAD
AGENTS = [
    ["list"],
    ["list", "--project", P],
    ["list", "--project", f"/x/{BAD}"],
    ["show", S],
    ["show", f"s-{BAD}"],
    ["show", f"s-{BAD}:1"],
    ["show", T],
    ["search", "hello", "--project", P],
    ["search", "hello", "--session", f"s-{BAD}"],
    ["search", "hello", "--session", S],
    ["events", S],
    ["events", "{session}/events.jsonl"],
    ["tree"],
    ["tree", S],
    ["tree", f"s-{BAD}", "--project", P],
    ["stats", "--project", P],
    ["check"],
    ["check", S],
    ["check", f"s-{BAD}"],
    ["check", T],
    ["repair", S],
    ["rename", S, "new"],
    ["fork", S, "--id", "forked"],
    ["rewind", S, "0"],
    ["undo", f"s-{BAD}"],
    ["undo", "--list"],
    ["trash", S],
    ["trash", "--list"],
    ["undo", f"s-{BAD}"],
    ["mv", f"-x-{BAD}", f"/y/{BAD}", "--dry-run"],
    ["mv", f"/x/{BAD}", f"/y/{BAD}"],
]


def run_all(calls: list[list[str]], more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each command as text and as JSON, what comes second with what the first one has left."""
    for call in calls:
        for as_json in ([], ["--json"]):
            code = main([*call, *more, *as_json])
            out, err = capsys.readouterr()
            second = {10, 11, 12} if as_json else set()  # what it was to do may have been done
            assert code in {0, 13} | second, (call, as_json, out, err)
            out.encode()
            err.encode()
            if as_json and out:
                json.loads(out)


def test_commands_over_agents_take_paths_of_any_bytes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = next(home.glob("projects/*/sessions/*"))
    calls = [[word.replace(S, str(session)) for word in call] for call in AGENTS]
    run_all(calls, ["--home", str(home)], capsys)
    assert [path.name for path in (home / "projects").iterdir()] == [f"-y-{BAD}"]


@pytest.mark.parametrize(
    "kind",
    [
        [["list"], ["check"], ["stats"], ["tree"]],
        [
            ["feature", "list"],
            ["feature", "validate"],
            ["feature", "status", "one"],
            ["feature", "history", "one"],
            ["feature", "update", "one", "--model", "opus"],
            ["feature", "repair", "one"],
            ["feature", "plan", "one", "--from", "{root}/plan.yaml"],
        ],
        [
            ["brainstorm", "list"],
            ["brainstorm", "validate"],
            ["brainstorm", "show", "idea"],
            ["brainstorm", "answer", "idea", "yes"],
        ],
        [
            ["work", "start", "--type", "t"],
            ["work", "list"],
            ["work", "show", "latest", "--export-md", "{root}/report"],
            ["work", "tree"],
            ["work", "stats"],
            ["work", "consume", "latest"],
            ["work", "status", "latest"],
            ["work", "pending", "latest"],
            ["work", "ledger", "restore", "latest"],
        ],
    ],
    ids=["all", "feature", "brainstorm", "work"],
)
def test_commands_over_projects_take_paths_of_any_bytes(
    kind: list[list[str]], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "plan.yaml").write_text("phases: []\n")
    calls = [[word.replace("{root}", str(project)) for word in call] for call in kind]
    option = "--home" if len(kind[0]) == 1 else "--root"
    run_all(calls, [option, str(project)], capsys)


def test_a_list_of_features_is_written_without_a_folder_that_is_not_utf8(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".ai-session" / "active-features.yaml").unlink()
    assert main(["feature", "repair", "--rebuild-index", "--root", str(project)]) == 3
    assert "rename the folder" in " ".join(capsys.readouterr().err.split())
    assert [row.feature_id for row in FeatureStore(project).list_features()][:1] == ["one-thing-2026-01-01"]


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["utf8", "C", "ascii"],
)
def test_names_of_any_bytes_are_printed_in_any_locale(home: Path, environment: dict[str, str]) -> None:
    session = next(home.glob("projects/*/sessions/*"))
    for call in (["list"], ["show", str(session)], ["check", "--notes"], ["rename", str(session), "n"]):
        for as_json in ([], ["--json"]):
            words = [os.fsencode(word) for word in (*call, "--home", str(home), *as_json)]
            done = subprocess.run(
                [sys.executable, "-m", "sessionary", *words],
                capture_output=True,
                env={**os.environ, **environment},
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            assert b"Traceback" not in done.stderr
            if as_json:
                assert "caf\\udce9" in done.stdout.decode("ascii")


def test_a_printed_command_line_reaches_a_name_of_any_bytes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = next(home.glob("projects/*/sessions/*"))
    assert main(["rename", str(session), "it's new", "--home", str(home)]) == 0
    line = next(one for one in capsys.readouterr().err.splitlines() if one.startswith("undo: "))
    assert "caf\\xe9'" in line
    words = line.removeprefix("undo: sessionary ")
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m sessionary {words}"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((session / "metadata.json").read_bytes()).get("name") is None


@pytest.mark.lane("s3")
def test_sessions_and_projects_of_any_name_are_synchronised(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    for machine in machines:
        for part in ("home", "project"):
            setattr(machine, part, machine.root / f"{part}-{BAD}")
        (machine.project / ".git").mkdir(parents=True)
        (machine.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (machine.project / ".git" / "config").write_text('[remote "origin"]\n\turl = https://x.y/z.git\n')
    desk, laptop = begin(machines, place := of_s3())
    laptop.json("init", *place.words, "--tenant", "ada", "--project", str(laptop.project), "--replace")
    desk.say("one")
    desk.json("push")
    laptop.sessions.mkdir(exist_ok=True)
    laptop.say("mine", session="l")
    laptop.json("push")
    laptop.json("pull")
    assert laptop.texts() == ["one"]
    for command in ("status", "check", "project list"):
        assert desk.run(command).code == 0
        desk.json(command)
    desk.say("odd", session=f"s-{BAD}")
    FeatureStore(desk.project).create("one-thing-2026-01-01")
    (desk.project / ".ai-session" / "one-thing-2026-01-01" / "artifacts" / BAD).write_text("x")
    for command in ("push", "status"):
        done = desk.run(command, "--json")
        rows = {row["id"]: (row["standing"], row["note"]) for row in done.json["sessions"]}
        assert rows[SESSION][0] == "in_step", rows
        odd = [rows[name] for name in (f"s-{BAD}", "one-thing-2026-01-01")]
        assert {standing for standing, _ in odd} <= {"failed", "never"}, rows
        if command == "push":
            assert all("not UTF-8" in note for _, note in odd), rows
            assert done.code == 3
        assert desk.run(command).err.count("bug") == 0
    laptop.run("pull")
    assert laptop.names() == [SESSION, "l"]
