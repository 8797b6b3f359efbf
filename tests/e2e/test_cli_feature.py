"""`sessionary feature`: every command, its JSON, the contract's error block, its exit codes, and what it refuses."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from sessionary import FeatureStore
from sessionary.cli import main
from sessionary.cli.groups import feature_command
from sessionary.cli.text import cells
from tests.e2e.driving import Result, Run, Terminal, terminal_for

FEATURE = "sign-in-2025-01-09"
HOSTILE = "R\x1b[2J\x1b]0;t\x07\x9b31m\u202eabc"
PHASES: list[dict[str, Any]] = [
    {
        "phase_id": "P1",
        "name": "Build",
        "tasks": [
            {"task_id": "T1", "description": "The form", "agent": "opus"},
            {"task_id": "T2", "description": "The button", "agent": "opus"},
        ],
    }
]


@pytest.fixture
def store(tmp_path: Path) -> FeatureStore:
    return FeatureStore(tmp_path)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("COLUMNS", "SESSIONARY_REQUIRE_ACK"):
        monkeypatch.delenv(name, raising=False)

    def run(command: str, *arguments: str) -> Result:
        code = main(["feature", command, "--root", str(tmp_path), *arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def planned(store: FeatureStore) -> FeatureStore:
    store.create(FEATURE, name="Sign in", description="Log in with OAuth")
    store.save_plan(FEATURE, PHASES)
    return store


def files(store: FeatureStore) -> dict[str, bytes]:
    """All that is kept, locks left out: taking one is not a change."""
    return {
        str(path.relative_to(store.home)): path.read_bytes()
        for path in store.home.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    }


# -- the way of a feature


def test_create_prints_the_id_and_nothing_else(run: Run, store: FeatureStore) -> None:
    """Section "Creating a Session", 1: a unique feature ID."""
    made = run("create", "Sign in", "--description", "Log in")
    assert (made.code, made.err) == (0, "")
    (row,) = store.list_features()
    assert made.out == f"{row.feature_id}\n"
    assert row.feature_id.startswith("sign-in-")
    assert store.plan(row.feature_id)["feature"]["description"] == "Log in"


def test_create_takes_an_id_and_refuses_one_that_is_taken(run: Run) -> None:
    """Section "On Session Creation", no duplicate IDs."""
    assert run("create", "--id", FEATURE, "--json").json["feature_id"] == FEATURE
    again = run("create", "--id", FEATURE, "--json")
    assert again.code == 11
    assert again.block["operation"] == "create"
    assert again.block["feature_id"] == FEATURE


def test_a_plan_is_read_from_a_file_and_printed(run: Run, store: FeatureStore, tmp_path: Path) -> None:
    """Section "Implementation Plan Schema", form of a plan."""
    store.create(FEATURE)
    file = tmp_path / "plan.yaml"
    file.write_text(
        "phases:\n- phase_id: P1\n  name: Build\n  tasks:\n  - {task_id: T1, description: The form}\n"
    )
    assert run("plan", FEATURE, "--from", str(file)).code == 0
    assert "· T1  pending  The form" in run("plan", FEATURE).out
    assert run("plan", FEATURE, "--json").json["phases"][0]["tasks"][0]["task_id"] == "T1"


def test_every_fault_of_a_plan_is_reported_at_once(run: Run, store: FeatureStore, tmp_path: Path) -> None:
    store.create(FEATURE)
    before = files(store)
    file = tmp_path / "plan.json"
    file.write_text('[{"name": "Build", "tasks": [{"description": 7}]}]')
    said = run("plan", FEATURE, "--from", str(file))
    assert said.code == 12
    for fault in ("phases[0].phase_id", "phases[0].tasks[0].task_id", "phases[0].tasks[0].description"):
        assert fault in said.err
    file.write_text("just words")
    assert run("plan", FEATURE, "--from", str(file)).code == 12
    file.write_text("[")
    assert run("plan", FEATURE, "--from", str(file)).code == 13
    assert files(store) == before


@pytest.mark.parametrize(("text", "code"), [("phases: [", 13), ("phases: 5", 12), ("a: 1\na: 2", 13)])
def test_a_file_that_holds_no_plan_is_an_error_of_the_contract_too(
    run: Run, planned: FeatureStore, tmp_path: Path, text: str, code: int
) -> None:
    """Section "Required Error Information"."""
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    before = files(planned)
    refused = run("plan", FEATURE, "--from", str(path), "--json")
    assert refused.code == code
    block = refused.block
    assert (block["operation"], block["file"], block["feature_id"]) == ("update", str(path), FEATURE)
    assert block["details"] == refused.error["message"]
    assert files(planned) == before


def test_a_file_where_a_folder_is_wanted_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".ai-session").write_bytes(b"")
    said = run("create", "x")
    assert (said.code, "a file is in the place of a folder" in said.err) == (16, True)


def test_a_plan_without_end_is_refused(run: Run, store: FeatureStore) -> None:
    store.create(FEATURE)
    said = run("plan", FEATURE, "--from", "/dev/zero")
    assert said.code == 13
    assert "more than 33,554,432" in said.err


def test_an_error_about_a_plan_has_its_whole_path(
    run: Run, store: FeatureStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(FEATURE)
    (tmp_path / "plan.yaml").write_text("phases:\n\t- a\n")
    monkeypatch.chdir(tmp_path)
    error = json.loads(run("plan", FEATURE, "--from", "plan.yaml", "--json").err)
    assert error["path"] == error["error_context"]["file"] == str(tmp_path / "plan.yaml")
    assert "replace the tab by blanks" in error["hint"]


def test_tasks_move_as_the_contract_says(run: Run, planned: FeatureStore) -> None:
    """Section "Updating State", 4: transitions."""
    assert run("task", FEATURE, "T1", "in_progress", "--json").json["changed"] is True
    done = run("task", FEATURE, "T1", "completed", "--artifact", "form.py")
    assert done.out == "✓ task T1 is completed\n"
    assert run("task", FEATURE, "T1", "completed").out.endswith("nothing to do\n")
    refused = run("task", FEATURE, "T1", "in_progress", "--json")
    assert refused.code == 12
    assert refused.block["operation"] == "update"
    assert run("task", FEATURE, "T1", "in_progress", "--reopen").code == 0
    assert run("task", FEATURE, "T9", "in_progress").code == 10
    (first, _) = planned.plan(FEATURE)["phases"][0]["tasks"]
    assert (first["status"], first["artifacts"]) == ("in_progress", ["form.py"])


def test_an_update_sets_what_is_given_and_logs_one_line(run: Run, planned: FeatureStore) -> None:
    """Section "Updating State", 2: last_updated."""
    lines = len(planned.history(FEATURE))
    done = run("update", FEATURE, "--task", "T2", "--model", "opus", "--agent", "me", "--json").json
    assert (done["active_task"], done["model_in_use"]) == ("T2", "opus")
    assert run("update", FEATURE).code == 0
    assert planned.load(FEATURE).active_task == "T2"
    assert run("update", FEATURE, "--no-task", "--command", "rest").code == 0
    assert planned.load(FEATURE).active_task is None
    history = planned.history(FEATURE)
    assert len(history) == lines + 3
    assert (history[-3]["agent"], history[-1]["command"]) == ("me", "rest")


def test_a_feature_rests_continues_ends_and_is_put_away(run: Run, planned: FeatureStore) -> None:
    """Section "Session Cleanup", 1 to 3."""
    assert run("archive", FEATURE).code == 12
    assert run("pause", FEATURE).out == f"✓ {FEATURE} is paused\n"
    assert run("pause", FEATURE, "--json").json["changed"] is False
    assert run("resume", FEATURE, "--json").json["status"] == "active"
    assert run("complete", FEATURE).code == 0
    assert run("resume", FEATURE).code == 12
    assert run("resume", FEATURE, "--reopen").code == 0
    assert run("complete", FEATURE).code == 0
    place = run("archive", FEATURE, "--json").json["path"]
    assert Path(place, "state.yaml").is_file()
    assert run("list", "--json").json == []
    assert run("list", "--archived", "--json").json[0]["archived"] is True
    assert planned.list_features(archived=True)[0].status == "completed"


# -- reading


def test_status_reports_progress_and_counts(run: Run, planned: FeatureStore) -> None:
    planned.task(FEATURE, "T1", "in_progress")
    planned.task(FEATURE, "T1", "completed")
    planned.append(FEATURE, {"command": "build", "error": "no compiler", "duration_ms": 1500})
    said = run("status", FEATURE).out
    assert "progress   50 %  (pending 1, completed 1)" in said
    assert "failures   1" in said
    assert "no compiler" in said
    found = run("status", FEATURE, "--json").json
    assert (found["progress"], found["health"], found["stats"]["failures"]) == (50, "active", 1)


def test_the_history_is_filtered_and_summed_up(run: Run, planned: FeatureStore) -> None:
    """Section "History Log Format", filters and sums."""
    planned.update(FEATURE, model_in_use="opus", agent="one")
    planned.append(FEATURE, {"command": "build", "agent": "two", "error": "no compiler", "duration_ms": 40})
    planned.append(FEATURE, {"command": "build", "agent": "two", "timestamp": "2025-01-09T15:30:45Z"})

    def commands(*filters: str) -> list[str]:
        return [entry["command"] for entry in run("history", FEATURE, *filters, "--json").json]

    assert commands() == ["plan", "update-state", "build", "build"]
    assert commands("--command", "plan") == ["plan"]
    assert commands("--model", "opus") == ["update-state", "build", "build"]
    assert commands("--agent", "one") == ["update-state"]
    assert commands("--since", "1d", "--agent", "two") == ["build"]
    assert commands("--failed") == ["build"]
    assert commands("--failed", "--command", "plan") == []
    stats = run("history", FEATURE, "--stats", "--agent", "two", "--json").json
    assert (stats["commands"], stats["failures"], stats["total_ms"]) == ({"build": 2}, 1, 40)
    assert "failures   1" in run("history", FEATURE, "--stats").out
    assert "build: no compiler" not in run("history", FEATURE, "--command", "plan").out
    assert run("history", FEATURE, "--since", "never").code == 2


def test_list_filters_by_status(run: Run, planned: FeatureStore) -> None:
    """Section "Active Features Format", status."""
    planned.create("other-2025-01-10")
    planned.pause("other-2025-01-10")
    assert [row["feature_id"] for row in run("list", "--status", "active", "--json").json] == [FEATURE]
    head, first, _ = run("list").out.splitlines()
    assert head.split() == ["ID", "WHEN", "STATUS", "TASK", "MODEL"]
    assert first.split()[0] == "other-2025-01-10"
    assert first.split()[3] == "paused"
    assert [json.loads(line) for line in run("list", "--jsonl").out.splitlines()] == run(
        "list", "--json"
    ).json
    assert run("history", FEATURE, "--jsonl").rows == run("history", FEATURE, "--json").json


def test_nothing_that_a_terminal_obeys_is_printed(run: Run, store: FeatureStore) -> None:
    store.create(FEATURE, name=HOSTILE, description=HOSTILE)
    store.save_plan(
        FEATURE, [{"phase_id": "P", "name": HOSTILE, "tasks": [{"task_id": HOSTILE, "description": HOSTILE}]}]
    )
    store.append(FEATURE, {"command": HOSTILE, "agent": HOSTILE, "error": HOSTILE})
    store.update(FEATURE, active_task=HOSTILE)
    for command in (
        ("plan", FEATURE),
        ("status", FEATURE),
        ("history", FEATURE),
        ("list",),
        ("validate", "--notes"),
    ):
        said = run(*command)
        assert said.code == 0
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said.out + said.err)
        assert command[0] == "validate" or "\\x1b" in said.out


def test_no_line_is_wider_than_eighty_cells(run: Run, store: FeatureStore) -> None:
    name = "a" * 90 + "-2025-01-09"
    store.create(name, name="日本 " * 60, description="word " * 60)
    store.save_plan(
        name, [{"phase_id": "P", "name": "p" * 90, "tasks": [{"task_id": "t" * 90, "description": "x" * 90}]}]
    )
    store.update(name, active_task="t" * 90)
    with (store.home / name / "history.jsonl").open("a") as history:
        history.write("broken\n")
    for command in (("list",), ("plan", name), ("status", name), ("history", name), ("validate", "--notes")):
        said = run(*command)
        assert max(cells(line) for line in (said.out + said.err).splitlines()) <= 80, command


# -- mending


def test_a_destroyed_state_is_rebuilt_from_the_history(run: Run, planned: FeatureStore) -> None:
    """Section "Recovery Procedures", 1: corrupted state."""
    planned.update(FEATURE, active_task="T2", model_in_use="gemini")
    before = planned.load(FEATURE)
    state = planned.home / FEATURE / "state.yaml"
    state.write_bytes(b"garbage: [")
    assert run("update", FEATURE, "--task", "T1", "--json").code == 13
    assert run("validate", FEATURE, "--json").json["problems"][0]["code"] == "bad_state"
    assert run("validate").code == 13
    done = run("repair", FEATURE)
    assert done.code == 0
    assert "restored the state from 2 entries of the history" in done.out
    assert planned.load(FEATURE) == before
    (kept,) = state.parent.glob("state.yaml.corrupt-*")
    assert kept.read_bytes() == b"garbage: ["
    assert run("validate").code == 0
    assert run("repair", FEATURE).out == "✓ nothing to repair\n"


def test_a_missing_row_of_the_list_is_named_and_added(run: Run, planned: FeatureStore) -> None:
    """Section "Recovery Procedures", 2: missing files."""
    index = planned.home / "active-features.yaml"
    index.write_text(index.read_text()[: index.read_text().index("\n") + 1].replace(":", ": []"))
    found = run("validate", "--json")
    assert found.code == 13
    assert "missing_row" in [problem["code"] for problem in found.json["problems"]]
    assert run("repair", FEATURE, "--json").json["actions"]
    assert run("validate").code == 0


def test_a_list_with_a_conflict_is_refused_and_never_written_over(run: Run, planned: FeatureStore) -> None:
    """Section "Conflict Resolution", conflicts in active-features.yaml are resolved manually."""
    index = planned.home / "active-features.yaml"
    index.write_text("<<<<<<< ours\n" + index.read_text() + "=======\nother\n>>>>>>> theirs\n")
    before = index.read_bytes()
    refused = run("create", "New one", "--json")
    assert refused.code == 15
    assert refused.block["operation"] == "create"
    assert run("pause", FEATURE).code == 15
    assert [path.name for path in planned.home.iterdir() if path.is_dir()] == [FEATURE]
    said = run("list")
    assert FEATURE in said.out
    # Where the lines are broken depends on the path of the test, so blanks do not count.
    assert "resolveitbyhand" in "".join(said.err.split())
    assert run("repair", FEATURE)[:2] == (3, "")
    assert run("repair", "--rebuild-index").code == 3
    assert index.read_bytes() == before
    assert len(list(planned.home.glob("active-features.yaml.candidate-*"))) == 1


def test_a_newer_version_is_refused_and_left_untouched(run: Run, planned: FeatureStore) -> None:
    """Section "Version Detection", a migration path."""
    state = planned.home / FEATURE / "state.yaml"
    state.write_text(state.read_text().replace('"1.0"', '"9.0"'))
    before = files(planned)
    for command in ("update", "repair", "migrate", "pause"):
        said = run(command, FEATURE, "--json")
        assert (command, said.code) == (command, 18)
        assert set(said.block) == {"operation", "file", "feature_id", "timestamp", "details"}
    assert files(planned) == before


def test_the_newest_version_needs_no_migration(run: Run, planned: FeatureStore) -> None:
    """Section "Migration Strategy", never in place, new beside old, with a tool."""
    before = files(planned)
    assert run("migrate", FEATURE, "--json").json["path"] is None
    assert files(planned) == before


# -- the contract


def test_an_agent_acknowledges_and_has_to_again_after_a_change(
    run: Run, planned: FeatureStore, tmp_path: Path
) -> None:
    """Section "Modification Process", 3 and 4: version bump, re-acknowledgment."""
    contract = tmp_path / "contract.md"
    contract.write_text("# Contract\n")
    needed = ("update", FEATURE, "--agent", "opus", "--require-ack", str(contract))
    assert run(*needed).code == 12
    assert run("ack", "opus", str(contract)).code == 0
    assert run(*needed).code == 0
    assert run("ack", "--verify", str(contract), "--json").json == [
        {"agent": "opus", "holds": True, "reason": None}
    ]
    contract.write_text("# Contract, changed\n")
    assert run("ack", "--verify", "opus", str(contract)).code == 12
    assert run(*needed).code == 12
    assert planned.verify_acknowledgment("opus", spec_path=contract)[0].holds is False


def test_the_setting_can_come_from_the_surroundings(
    run: Run, planned: FeatureStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = tmp_path / "contract.md"
    contract.write_text("# Contract\n")
    monkeypatch.setenv("SESSIONARY_REQUIRE_ACK", str(contract))
    before = files(planned)
    assert run("task", FEATURE, "T1", "in_progress").code == 12
    assert files(planned) == before


# -- misuse


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", ""])
@pytest.mark.parametrize(
    "command", ["update", "status", "history", "plan", "pause", "archive", "repair", "migrate"]
)
def test_what_cannot_name_a_feature_is_refused(
    run: Run, store: FeatureStore, command: str, name: str
) -> None:
    store.home.mkdir()
    said = run(command, name, "--json")
    assert said.code == 12
    assert json.loads(said.err)["error"] == "InvalidId"
    assert not any(store.home.iterdir())


@pytest.mark.parametrize("name", ["Sign-in-2025-01-09", "sign-in", "sign-in-2025-02-30", "../x-2025-01-09"])
def test_an_id_against_the_contract_is_refused(run: Run, store: FeatureStore, name: str) -> None:
    """Section "Feature ID Format", slug and date."""
    assert run("create", "--id", name).code == 12
    assert not store.home.exists()


@pytest.mark.parametrize(
    ("words", "operation"),
    [
        (("update",), "update"),
        (("task", "T1", "completed"), "update"),
        (("pause",), "update"),
        (("resume",), "update"),
        (("complete",), "update"),
        (("archive",), "update"),
        (("repair",), "update"),
        (("migrate",), "update"),
        (("status",), "read"),
        (("history",), "read"),
        (("plan",), "read"),
        (("validate",), "read"),
    ],
)
def test_an_unknown_feature_is_not_found(
    run: Run, store: FeatureStore, words: tuple[str, ...], operation: str
) -> None:
    """Section "Required Error Information", all five fields."""
    store.home.mkdir()
    command, *rest = words
    said = run(command, FEATURE, *rest, "--json")
    assert (said.code, said.out) == (10, "")
    assert said.block["operation"] == operation
    assert said.block["feature_id"] == FEATURE
    assert said.block["file"]
    assert said.block["timestamp"]
    assert FEATURE in said.block["details"]


@pytest.mark.parametrize(
    "words",
    [
        ("create",),
        ("update", FEATURE, "--task", "T1", "--no-task"),
        ("update", FEATURE, "--model", "other"),
        ("task", FEATURE, "T1", "done"),
        ("plan", FEATURE, "--name", "x"),
        ("plan", FEATURE, "--from", "/nowhere/at/all"),
        ("repair",),
        ("repair", FEATURE, "--rebuild-index"),
        ("ack",),
        ("ack", "contract.md"),
        ("ack", "a", "b", "c"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_misuse(
    run: Run, planned: FeatureStore, words: tuple[str, ...]
) -> None:
    before = files(planned)
    assert run(*words).code == 2
    assert files(planned) == before


def test_every_command_has_an_example() -> None:
    context = click.Context(feature_command, help_option_names=["-h", "--help"])
    for name in feature_command.list_commands(context):
        command = feature_command.get_command(context, name)
        assert command is not None
        assert f"sessionary feature {name}" in (command.epilog or ""), name


def loads_yaml(folder: Path, *words: str) -> bool:
    """True if a command imports a library for YAML; asked of a process of its own."""
    program = (
        "import sys; from sessionary.cli import main; main(sys.argv[1:]);"
        "sys.exit(50 + bool({'yaml', 'ruamel', 'ruamel.yaml'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, *words]
    code = subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
    assert code in (50, 51)
    return code == 51


def test_other_commands_do_not_load_yaml(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("[]")
    assert loads_yaml(tmp_path, "feature", "plan", FEATURE, "--from", "plan.yaml")
    for words in (["--version"], ["-h"], ["list", "--home", "."], ["feature", "-h"], ["brainstorm", "-h"]):
        assert not loads_yaml(tmp_path, *words), words


# -- on a terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    with terminal_for("feature") as start:
        yield lambda command, *words, **surroundings: start(
            command, "--root", str(tmp_path), *words, **surroundings
        )


AGE = re.compile(r"\b\d s\b")


def test_a_terminal_shows_what_a_pipe_gets_within_its_width(
    planned: FeatureStore, run: Run, terminal: Callable[..., Terminal]
) -> None:
    planned.task(FEATURE, "T1", "in_progress")
    planned.append(FEATURE, {"command": "implement", "arguments": "日本 " * 60, "error": "no " * 80})
    for words in (
        ["list"],
        ["status", FEATURE],
        ["history", FEATURE],
        ["plan", FEATURE],
        ["history", FEATURE, "--stats"],
        ["validate"],
    ):
        screen = terminal(*words, NO_COLOR="1")
        assert screen.end() == 0, words
        assert AGE.sub("0 s", screen.shown) == AGE.sub("0 s", run(*words).out), words
        assert max(map(cells, screen.shown.splitlines())) <= 80, words


def test_a_long_history_and_a_long_list_go_through_the_pager(
    planned: FeatureStore, terminal: Callable[..., Terminal]
) -> None:
    for number in range(40):
        planned.append(FEATURE, {"command": f"run-{number}"})
        planned.create(f"f-{number}-2025-01-09")
    for command, words in (("history", [FEATURE]), ("list", [])):
        screen = terminal(command, *words, PAGER="sed s/^/P/", NO_COLOR="1")
        assert screen.end() == 0
        assert sum(line.startswith("P") for line in screen.shown.splitlines()) > 30
        assert "\nP" not in ended(terminal(command, *words, "--json", PAGER="sed s/^/P/"))


def ended(screen: Terminal) -> str:
    assert screen.end() == 0
    return screen.shown


def test_colours_can_be_turned_off(planned: FeatureStore, terminal: Callable[..., Terminal]) -> None:
    assert planned.load(FEATURE).model_in_use == "sonnet"
    for words in (["list"], ["status", FEATURE], ["plan", FEATURE]):
        assert "\x1b[" in ended(terminal(*words)), words
        assert "\x1b[" not in ended(terminal(*words, NO_COLOR="1")), words


@pytest.mark.parametrize(
    "words",
    [
        ("create",),
        ("update", FEATURE),
        ("task", FEATURE, "T1", "in_progress"),
        ("pause", FEATURE),
        ("resume", FEATURE),
        ("complete", FEATURE),
        ("archive", FEATURE),
        ("repair", FEATURE),
        ("migrate", FEATURE),
        ("ack", "opus"),
    ],
    ids=lambda words: words[0],
)
def test_no_command_asks_anything(
    words: tuple[str, ...], planned: FeatureStore, terminal: Callable[..., Terminal]
) -> None:
    assert planned.plan(FEATURE)["phases"]
    screen = terminal(*words, NO_COLOR="1")
    refused = {"create": 2, "ack": 2, "archive": 12}
    assert screen.end() == refused.get(words[0], 0)  # nothing was typed, and it has ended
    assert screen.shown


# -- logging, the archive, and the way back


def test_log_records_what_the_contract_asks_for(run: Run, planned: FeatureStore) -> None:
    """Section "History Log Format": nine fields, for agents that only have a shell."""
    planned.update(FEATURE, active_task="T1", model_in_use="opus")
    said = run("log", FEATURE, "make test", "--arguments", "-k form", "--duration", "5200", "--agent", "a1")
    assert (said.code, said.out) == (0, f"✓ {FEATURE}: logged make test, success\n")
    entry = planned.history(FEATURE)[-1]
    assert entry.pop("timestamp")
    assert entry == {
        "command": "make test",
        "arguments": "-k form",
        "model": "opus",
        "agent": "a1",
        "task_id": "T1",
        "status": "success",
        "duration_ms": 5200,
    }
    assert planned.status(FEATURE).stats.commands["make test"] == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [(["--failed"], "failed"), (["--error", "2 failed"], "2 failed"), (["--failed", "--error", "no"], "no")],
)
def test_log_records_a_failure(run: Run, planned: FeatureStore, options: list[str], error: str) -> None:
    made = run("log", FEATURE, "make test", *options, "--json").json["entry"]
    assert (made["status"], made["error"]) == ("failure", error)
    assert planned.history(FEATURE)[-1] == made


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["", "--json"], 12),
        (["x", "--task", "", "--json"], 12),
        (["x", "--duration", "nan"], 2),
        (["x", "--duration", "-1"], 2),
        (["x", "--duration", "9000000000", "--json"], 12),
        (["x", "--model", "gpt9"], 2),
    ],
)
def test_log_refuses_what_breaks_the_contract(
    run: Run, planned: FeatureStore, words: list[str], code: int
) -> None:
    before = files(planned)
    said = run("log", FEATURE, *words)
    assert said.code == code
    if code == 12:
        assert said.block["file"] == str(planned.home / FEATURE / "history.jsonl")
    assert files(planned) == before


def undo_of(said: Result) -> list[str]:
    """The words of the undo line behind `sessionary feature`, without the folder."""
    (line,) = [line for line in said.err.splitlines() if line.startswith("undo: ")]
    words = shlex.split(line.removeprefix("undo: "))
    assert words[:2] == ["sessionary", "feature"]
    place = words.index("--root")
    return words[2:place] + words[place + 2 :]


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ([], ["update", FEATURE, "--task", "T1"]),
        ([], ["update", FEATURE, "--model", "opus"]),
        ([["update", FEATURE, "--task", "T1", "--model", "opus"]], ["update", FEATURE, "--no-task"]),
        ([], ["task", FEATURE, "T1", "in_progress"]),
        ([["task", FEATURE, "T1", "in_progress"]], ["task", FEATURE, "T1", "completed"]),
        ([["task", FEATURE, "T1", "in_progress"]], ["task", FEATURE, "T1", "blocked"]),
        ([], ["pause", FEATURE]),
        ([["pause", FEATURE]], ["resume", FEATURE]),
        ([], ["complete", FEATURE]),
        ([["complete", FEATURE]], ["resume", FEATURE, "--reopen"]),
        ([["complete", FEATURE]], ["archive", FEATURE]),
        ([["complete", FEATURE], ["archive", FEATURE]], ["unarchive", FEATURE]),
    ],
    ids=lambda value: "-".join(value[:1]) if value and isinstance(value[0], str) else "",
)
def test_the_undo_line_leads_back(
    run: Run, planned: FeatureStore, before: list[list[str]], command: list[str]
) -> None:
    def seen() -> Any:
        (row,) = planned.list_features(archived=True)
        tasks = [task["status"] for phase in planned.plan(FEATURE)["phases"] for task in phase["tasks"]]
        assert row.state is not None
        return row.status, row.archived, row.state.active_task, row.state.model_in_use, tasks

    for words in before:
        assert run(*words).code == 0
    was = seen()
    said = run(*command)
    assert said.code == 0
    assert seen() != was
    assert run(*undo_of(said)).code == 0
    assert seen() == was


def test_what_has_no_undo_says_so_in_its_help(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("create", "log", "plan", "ack", "repair", "migrate"):
        with pytest.raises(SystemExit):
            feature_command.main([name, "--help"], prog_name="feature")
        assert "undo" in capsys.readouterr().out, name


def test_unarchive_brings_a_feature_back(run: Run, planned: FeatureStore) -> None:
    """Section "Session Cleanup", 2: archive or preserve."""
    planned.complete(FEATURE)
    planned.archive(FEATURE)
    refused = run("update", FEATURE)
    assert refused.code == 10
    assert f"sessionary feature unarchive {FEATURE}" in refused.err
    said = run("unarchive", FEATURE, "--reopen", "--json").json
    assert (said["path"], said["reopened"]) == (str(planned.home / FEATURE), True)
    assert planned.list_features()[0].status == "active"
    assert run("unarchive", FEATURE).code == 11


def test_a_repair_of_a_history_says_last_what_it_could_not_bring_back(
    run: Run, planned: FeatureStore
) -> None:
    history = planned.home / FEATURE / "history.jsonl"
    with open(history, "ab") as file:
        file.write(b'{"timestamp": "2025-01-09T10:00:00Z", "command": "caf\xe9"}\n')
    line = history.read_bytes().count(b"\n")
    reported = run("repair", FEATURE, "--rewrite-history")
    assert reported.code == 0
    assert reported.out.splitlines()[-1].strip() == f"could not be recovered: 1 B of line {line}"
    assert "--bad-bytes drop" in " ".join(reported.out.split())
    assert "caf\ufffd" in history.read_text()
    assert "not_recovered" in run("validate", FEATURE, "--notes").out
    with open(history, "ab") as file:
        file.write(b'{"timestamp": "2025-01-09T10:00:00Z", "command": "caf\xe9"}\n')
    dropped = run("repair", FEATURE, "--rewrite-history", "--bad-bytes", "drop", "--json").json
    assert [one["line"] for one in dropped["lost"]] == [line + 1]
    assert history.read_text().count("caf") == 1


def test_hint_message_and_exit_code_of_a_repair_agree(run: Run, planned: FeatureStore) -> None:
    """What `validate` names as the remedy is what mends it."""
    history = planned.home / FEATURE / "history.jsonl"
    with open(history, "a") as file:
        file.write('{"timestamp": "20')
    found = run("validate", FEATURE)
    assert found.code == 13
    remedy = f"sessionary feature repair {FEATURE} --rewrite-history"
    assert remedy in " ".join(found.out.split())
    reported = run("repair", FEATURE)
    assert reported.code == 3
    assert "nothing to repair" not in reported.out
    assert remedy in " ".join(reported.err.split())
    assert run("repair", FEATURE, "--rewrite-history").code == 0
    assert run("validate", FEATURE).code == 0
