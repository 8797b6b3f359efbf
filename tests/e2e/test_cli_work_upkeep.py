"""The way out of every state of a work session, on the command line."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.store import WorkStore
from tests.e2e.driving import Result, Run

ROOT = Path("docs", "sessions")


@pytest.fixture(autouse=True)
def _project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Result:
        code = main(list(arguments))
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def session() -> str:
    return WorkStore(ROOT).create("work_task").session_id


def lose(name: str) -> None:
    """A message in a folder that is not a session."""
    crumb = create_breadcrumb("lost", "", [], [], None, 0, "m", {})
    folder = ROOT / name / "breadcrumbs" / "0"
    folder.mkdir(parents=True)
    (folder / f"{crumb.timestamp}.json").write_text(json.dumps(vars(crumb)))


# breadcrumbs of no session


def test_check_reports_breadcrumbs_of_no_session_and_its_command_brings_them_in(
    run: Run, session: str
) -> None:
    lose("late night")
    code, out, _ = run("check", "--home", ".")
    assert code == 13
    assert "lost_breadcrumbs" in out
    assert "nothing is damaged" not in out
    problems = run("check", "--home", ".", "--json").json["problems"]
    (problem,) = [each for each in problems if each["code"] == "lost_breadcrumbs"]
    assert problem["session"] is None
    command = problem["repair"].split("`")[1].replace("ID", session)
    code, out, _ = run(*shlex.split(command)[1:])
    assert (code, out) == (0, f"✓ 1 breadcrumb moved into {session}\n")
    assert run("check", "--home", ".").code == 0
    assert [each["prompt"] for each in run("work", "breadcrumbs", session, "--json").json] == ["lost"]


def test_check_reports_the_project_of_lost_breadcrumbs(run: Run, session: str) -> None:
    lose("late")
    code, out, _ = run("check")
    lines = out.splitlines()
    assert (code, lines[0]) == (13, f"! {Path.cwd()}")
    assert "docs/sessions/late" in lines[1].split()


def test_moving_as_json_and_what_it_refuses(run: Run, session: str) -> None:
    lose("late")
    moved = run("work", "breadcrumb", "move", "late", "latest", "--json").json
    assert moved["session_id"] == session
    assert [Path(path).parent for path in moved["paths"]] == [
        Path.cwd() / ROOT / session / "breadcrumbs" / "0"
    ]
    code, _, err = run("work", "breadcrumb", "move", "late", session)
    assert code == 10
    assert "sessionary check" in err


# the inbox


def leave(session: str, prompt: str) -> str:
    crumb = create_breadcrumb(prompt, "", [], [], None, 0, "m", {})
    WorkStore(ROOT).write_breadcrumb(crumb, session)
    return crumb.breadcrumb_id


def spoil(session: str) -> Path:
    """A file that is not a message."""
    path = ROOT / session / "breadcrumbs" / "0" / "20260301_080000_000000.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"half')
    os.utime(path, (0, 0))
    return path


def test_what_waits_can_be_looked_at_without_applying_it(run: Run, session: str) -> None:
    first = leave(session, "one")
    leave(session, "two")
    before = sorted(Path.cwd().rglob("*"))
    for words in (["pending"], ["consume", "--dry-run"]):
        code, out, err = run("work", *words, "latest")
        assert (code, out.index("Prompt: one") < out.index("Prompt: two")) == (0, True)
        assert err == "work: 0 applied, 2 pending, 0 incomplete, 0 failed, 0 dead\n"
        found = run("work", *words, session, "--limit", "1", "--json").json
        assert [each["breadcrumb_id"] for each in found["messages"]] == [first]
        assert (found["session_id"], found["consumer"], found["pending"]) == (session, "work", 2)
    assert sorted(Path.cwd().rglob("*")) == before
    assert run("work", "consume", session).code == 0
    assert run("work", "pending", session, "--json").json["messages"] == []
    assert len(run("work", "pending", session, "--consumer", "audit", "--json").json["messages"]) == 2


def test_dead_letters_are_seen_everywhere_until_they_are_revived(run: Run, session: str) -> None:
    dead = leave(session, "poison")
    assert run("work", "consume", session, "--exec", "exit 3", "--max-attempts", "1").code == 3
    assert run("work", "consume", session).code == 0, "it is not tried again"
    assert f"dead: {dead}" in run("work", "show", session).out
    assert f"dead: {dead}" in run("work", "status", session).out
    (work,) = run("work", "status", session, "--json").json["consumers"]
    assert [(each["breadcrumb_id"], each["attempts"]) for each in work["dead"]] == [(dead, 1)]
    assert run("work", "show", session, "--json").json["consumers"] == [work]
    code, out, _ = run("check", session)
    assert (code, "dead_letter" in out) == (13, True)
    (problem,) = run("check", session, "--json").json["problems"]
    assert problem["path"].endswith(".json")
    assert Path(problem["path"]).exists()
    command = shlex.split(problem["repair"].split("`")[1])
    assert run("work", "revive", session, "no such").code == 10
    code, out, _ = run(*command[1:])
    assert (code, out) == (0, "✓ 1 message pending again\n")
    assert run("check", session).code == 0
    assert run("work", "consume", session).code == 0
    assert "No dead letters." in run("work", "revive", session).err


def test_one_of_several_dead_letters_is_revived_by_the_beginning_of_its_id(run: Run, session: str) -> None:
    ids = [leave(session, text) for text in ("a", "b")]
    run("work", "consume", session, "--exec", "exit 1", "--max-attempts", "1", "--consumer", "audit")
    revived = run("work", "revive", session, ids[1][:13], "--consumer", "audit", "--json").json
    assert revived == {"session_id": session, "consumer": "audit", "revived": [ids[1]]}
    statuses = run("work", "status", session, "--json").json["consumers"]
    assert [(each["consumer"], len(each["dead"]), each["pending"]) for each in statuses] == [("audit", 1, 1)]


@pytest.mark.parametrize("kind", ["message", "ledger"])
def test_what_cannot_be_read_gives_one_exit_code_and_is_reported_once(
    kind: str, run: Run, session: str
) -> None:
    leave(session, "fine")
    assert run("work", "consume", session).code == 0
    if kind == "message":
        spoil(session)
    else:
        with open(ROOT / session / "log.jsonl", "ab") as file:
            file.write(b'{"note": \0}\n')
    code, _, err = run("work", "consume", session)
    named = "bad_breadcrumb" if kind == "message" else "bad_ledger_line"
    assert (code, err.count(named)) == (13, 1)
    code, _, err = run("work", "consume", session)
    assert (code, err.count(named)) == (13, 0), "reported once; the sum goes on saying it"
    assert "invalid message" in err or "unreadable" in err
    report = run("work", "consume", session, "--json").json
    assert (len(report["bad"]), report["damaged"]) == ((1, 0) if kind == "message" else (0, 1))
    for words in (["work", "pending"], ["work", "status"], ["work", "show"], ["check"]):
        result = run(*words, session)
        assert result.code == 13, words
        assert (result.out + result.err).count(named) == 1, words
    for command in ("breadcrumbs", "timeline", "stats"):
        result = run("work", command, session)
        assert (result.code, result.err.count(named)) == (13, 1), command


def test_a_file_that_is_not_a_message_is_moved_away_on_request(run: Run, session: str) -> None:
    bad = spoil(session)
    assert "no invalid message file" in run("work", "quarantine", session).err.lower()
    run("work", "consume", session)
    code, out, _ = run("work", "quarantine", session)
    assert (code, out.strip()) == (0, str(ROOT / session / "breadcrumbs" / "error" / f"0-{bad.name}"))
    for words in (["work", "consume"], ["work", "breadcrumbs"], ["check"]):
        assert run(*words, session).code == 0
    assert run("work", "quarantine", session, "--json").json["paths"] == []


def test_a_file_that_is_being_written_is_counted(run: Run, session: str) -> None:
    path = spoil(session)
    os.utime(path)
    assert "1 incomplete" in run("work", "show", session).out
    assert run("work", "pending", session, "--json").json["unwritten"] == 1


# the ledger


@pytest.mark.parametrize("command", ["restore", "accept"])
def test_a_log_that_went_back_stops_until_it_is_restored_or_accepted(
    command: str, run: Run, session: str
) -> None:
    leave(session, "one")
    assert run("work", "consume", session).code == 0
    (ROOT / session / "log.jsonl").unlink()
    code, out, err = run("work", "consume", session)
    assert (code, out, "has lost lines" in err) == (15, "", True)
    assert f"work ledger {command} {session}" in err
    assert "ledger_went_back" in run("work", "status", session).err
    settled = run("work", "ledger", command, session, "--json").json
    damaged = {"damaged": 0} if command == "restore" else {}
    assert settled == {"session_id": session, "consumer": "work", "messages": 1, **damaged}
    assert run("work", "consume", session, "--json").json["applied"] == (command == "accept")
    assert run("check", session).code == 0
    assert "log is complete" in run("work", "ledger", command, session).err


def test_a_damaged_line_of_the_log_is_set_aside_by_the_command_that_its_remedy_names(
    run: Run, session: str
) -> None:
    leave(session, "one")
    run("work", "consume", session)
    log = ROOT / session / "log.jsonl"
    damaged = log.read_bytes().replace(b'"file"', b'"fi\0e"')
    log.write_bytes(damaged)
    assert (
        "work ledger restore"
        in run("work", "status", session, "--json").json["consumers"][0]["problems"][0]["repair"]
    )
    code, out, _ = run("work", "ledger", "restore", session)
    assert (code, out) == (
        0,
        f"✓ 1 message put back into the log of {session}\n✓ 1 damaged line quarantined\n",
    )
    (kept,) = log.parent.glob("log.jsonl.corrupt-*")
    assert kept.read_bytes().startswith(damaged)
    for words in (["work", "consume"], ["check"]):
        assert run(*words, session).code == 0
    assert len(log.read_bytes().splitlines()) == 1


def test_a_line_of_the_log_with_a_bad_byte_is_kept_without_it(run: Run, session: str) -> None:
    leave(session, "one")
    run("work", "consume", session)
    log = ROOT / session / "log.jsonl"
    line = json.loads(log.read_bytes())
    other = {**line, "breadcrumb_id": "by-hand", "file": "1/x?.json"}
    log.write_bytes(log.read_bytes() + json.dumps(other).encode().replace(b"?", b"\xff") + b"\n")
    assert run("work", "ledger", "restore", session, "--json").json["damaged"] == 1
    assert [json.loads(one) for one in log.read_bytes().splitlines()] == [
        line,
        {**other, "file": "1/x\ufffd.json"},
    ]
    checked = run("check", session, "--json")
    assert checked.code == 0
    (kept,) = log.parent.glob("log.jsonl.corrupt-*")
    (note,) = [one for one in checked.json["problems"] if one["code"] == "not_recovered"]
    assert (note["severity"], note["path"]) == ("note", str(kept.absolute()))
    assert "of line 2 of" in note["message"]


def test_check_reports_a_log_that_went_back_beside_another(run: Run, session: str) -> None:
    leave(session, "one")
    for name in ("work", "audit"):
        run("work", "consume", session, "--consumer", name)
    (ROOT / session / "log.jsonl").write_text("")
    code, out, _ = run("check", session)
    assert (code, out.count("ledger_went_back")) == (13, 1)


@pytest.mark.parametrize("consumer", ["work", "audit"])
def test_a_log_that_is_gone_altogether_is_reported_everywhere(
    consumer: str, run: Run, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `git stash -u` leaves it: nothing in the folder of the session names the consumer."""
    leave(session, "one")
    run("work", "consume", session, "--consumer", consumer)
    for path in (ROOT / session).glob("*.jsonl"):
        path.unlink()
    for words in (
        ["check"],
        ["work", "status"],
        ["work", "show"],
        ["work", "pending", "--consumer", consumer],
    ):
        code, out, err = run(*words, session)
        assert (code, (out + err).count("ledger_went_back")) == (13, 1), words
    project = Path.cwd()
    monkeypatch.chdir(tmp_path.parent)  # where the remedy needs the root
    (found,) = run("check", "--home", str(project), session, "--json").json["problems"]
    command = found["repair"].split("`")[1].split()
    assert command[:4] == ["sessionary", "work", "ledger", "restore"]
    assert run(*command[1:]).out == f"✓ 1 message put back into the log of {session}\n"
    assert run("check", "--home", str(project), session).code == 0


def test_the_remedies_for_a_mailbox_elsewhere_work_as_they_are_printed(
    run: Run, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(session, "one")
    run("work", "consume", session, "--exec", "exit 1", "--max-attempts", "1")
    with open(ROOT / session / "log.jsonl", "ab") as file:
        file.write(b'{"note": \0}\n')
    project = Path.cwd()
    monkeypatch.chdir(tmp_path.parent)
    for _ in range(2):
        found = run("check", "--home", str(project), session, "--json").json["problems"]
        command = found[0]["repair"].split("`")[1].split()
        assert run(*command[1:]).code == 0
    assert run("check", "--home", str(project), session).code == 0


# the life of a session


def test_a_session_lives_on_the_command_line_alone(run: Run) -> None:
    code, out, err = run("work", "start", "--purpose", "Rewrite", "--entity", "track_id=T-1")
    top = out.strip()
    assert (code, err.strip()) == (0, str(Path.cwd() / ROOT / top))
    child = run(
        "work", "start", "--type", "fix", "--parent", top[:8], "--context", "file:a.py", "--json"
    ).json
    assert (child["parent_session_id"], child["context"]) == (top, {"kind": "file", "ref": "a.py"})
    for word, status in (
        ("pause", "paused"),
        ("resume", "running"),
        ("interrupt", "interrupted"),
        ("resume", "running"),
        ("fail", "failed"),
    ):
        reason = ["--reason", "power"] if word == "interrupt" else []
        code, out, _ = run("work", word, child["session_id"][:8], *reason)
        assert (code, out) == (0, f"✓ {child['session_id']} is {status}\n")
    assert run("work", "resume", child["session_id"]).code == 12
    assert run("work", "close", top, "--json").json["status"] == "completed"
    whole = run("work", "show", top, "--json").json
    assert (whole["purpose"], whole["related_entity"]) == ("Rewrite", {"track_id": "T-1"})


@pytest.mark.parametrize("words", [["--entity", "x"], ["--entity", "=x"], ["--context", "x"]])
def test_what_start_cannot_read_is_2(words: list[str], run: Run) -> None:
    assert run("work", "start", *words).code == 2
    assert not ROOT.exists()


def test_start_below_a_missing_session_exits_with_10(run: Run, session: str) -> None:
    assert run("work", "start", "--parent", "nobody").code == 10
    assert len(list(ROOT.iterdir())) == 1


def test_maestro_work_polls_the_latest_session(session: str) -> None:
    leave(session, "one")
    program = "import sys; from sessionary.cli.maestro import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program, "work"], stdout=subprocess.PIPE, text=True
    ) as polling:
        assert polling.stdout is not None
        said = [polling.stdout.readline() for _ in range(3)]
        assert "Prompt: one" in said[2]
        leave(session, "two")
        while "Prompt: two" not in polling.stdout.readline():
            assert polling.poll() is None
        log = ROOT / session / "log.jsonl"
        end = time.monotonic() + 60
        while not log.exists() or log.read_bytes().count(b"\n") < 2:  # printed first, acknowledged then
            assert time.monotonic() < end
            time.sleep(0.01)
        polling.send_signal(signal.SIGTERM)
        assert polling.wait(60) == 130
    assert len(run_json("pending", session)["messages"]) == 0


def run_json(*words: str) -> Any:
    command = [sys.executable, "-m", "maestro", "work", *words, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def test_the_module_of_the_commands_has_the_command() -> None:
    from maestro.commands import work_session

    from sessionary.cli.maestro import wsession_command

    assert work_session.wsession_command is wsession_command
