"""Two machines and every kind of session: both get the changes of both, as the policies define."""

import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.codec.yaml_read import load_yaml
from sessionary.layouts.amplifier.presence import Presence
from sessionary.layouts.maestro.store import WorkStore
from tests.e2e.driving import documented
from tests.e2e.test_cli_sync import PLACES, SECRETS, SESSION, Machine, Result, begin, of_s3, standings

FEATURE = "sign-in-2025-01-09"
LIST = "active-features.yaml"
STORM = "feature-auth"
REFUSED, LOCKED, CORRUPT, INVALID = 15, 14, 13, 12

Machines = tuple[Machine, Machine]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machines:
    for name in (*SECRETS, "COLUMNS", "SESSIONARY_REQUIRE_ACK"):
        monkeypatch.setenv(name, "")  # so that it is put back, whatever a test makes of it
        monkeypatch.delenv(name)
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setenv("AMPLIFIER_SESSION_STATE_HOME", str(tmp_path / "no-agents"))
    return (
        Machine(tmp_path, "desk", monkeypatch, capsys.readouterr),
        Machine(tmp_path, "laptop", monkeypatch, capsys.readouterr),
    )


def do(machine: Machine, group: str, *words: str, code: int = 0) -> Result:
    """One command of another group, on the project of this machine."""
    place = work_folder(machine) if group == "work" else machine.project
    done = Result(main([group, *words, "--root", str(place)]), *machine._read())
    assert done.code == code, done.err + done.out
    return done


def work_folder(machine: Machine) -> Path:
    return machine.project / "docs" / "sessions"


def pull(machine: Machine) -> dict[str, str]:
    return standings(machine.json("pull", "--quiet", "0"))


def push(machine: Machine) -> dict[str, str]:
    return standings(machine.json("push"))


def carried(machine: Machine) -> dict[str, bytes]:
    """Every file that the policies want to be alike on both machines, wherever the clone is."""
    places = {"home": machine.sessions, "project": machine.project}
    aside = re.compile(
        r"\.(lock|owner|backup|(conflict|original)-\w+)\b|(^|/)\.(?!ai-session|project-memory)|README\.md$"
    )
    return {
        f"{place}/{name}": path.read_bytes()
        for place, root in places.items()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not aside.search(name := path.relative_to(root).as_posix())
    }


def listed(machine: Machine) -> dict[str, str | None]:
    """What `list` shows, with the session that each comes from."""
    machine._patch.chdir(machine.project)
    code = main(["list", "--json", "--home", str(machine.home)])
    shown = machine._read()
    assert code == 0, shown.err
    return {row["id"]: row["parent"] for row in json.loads(shown.out)}


def storms(machine: Machine) -> dict[str, list[str]]:
    """The answers in each brainstorm."""
    found = (machine.project / ".project-memory" / "brainstorm-sessions").glob("*.yaml")
    return {path.stem: re.findall(r"by the \w+", path.read_text()) for path in found}


def crumb(machine: Machine, work: str, text: str) -> None:
    do(machine, "work", "breadcrumb", "add", "--cookie", work, "--prompt", text)


def prompts(machine: Machine, work: str) -> list[str]:
    return [one["prompt"] for one in do(machine, "work", "breadcrumbs", work, "--json").json]


def consume(machine: Machine, work: str, *words: str) -> Any:
    return do(machine, "work", "consume", work, "--json", *words).json


def everything(desk: Machine, laptop: Machine) -> str:
    """One session of each kind at the desk, on both machines; returns the id of the work session."""
    desk.say("one")
    work = WorkStore(work_folder(desk)).create("work_task", purpose="Receipt").session_id
    crumb(desk, work, "begin")
    assert consume(desk, work)["applied"] == 1
    do(desk, "feature", "create", "Sign in", "--id", FEATURE)
    do(desk, "brainstorm", "start", STORM, "--question", "Who signs in?", "--lang", "en")
    assert push(desk) == dict.fromkeys((SESSION, work, FEATURE, LIST, STORM), "pushed")
    assert pull(laptop) == dict.fromkeys((SESSION, work, FEATURE, LIST, STORM), "pulled")
    assert carried(laptop) == carried(desk)
    return work


def go_on(machine: Machine, name: str, work: str) -> None:
    """What is done on one machine while the other does likewise."""
    machine.say(f"by the {name}")
    crumb(machine, work, f"by the {name}")
    field = ("--model", "opus") if name == "desk" else ("--task", "T1")
    do(machine, "feature", "update", FEATURE, *field, "--command", f"by the {name}")
    do(machine, "feature", "create", "Another", "--id", f"{name}-2025-01-10")
    do(machine, "brainstorm", "answer", STORM, f"by the {name}", "--lang", "en")


def settle(desk: Machine, laptop: Machine) -> None:
    for machine in (laptop, desk, laptop, desk):
        push(machine)
        pull(machine)
        push(machine)


@pytest.mark.parametrize("place", PLACES)
def test_two_machines_work_on_every_kind_of_session(machines: Machines, place: Any) -> None:
    desk, laptop = begin(machines, place())
    work = everything(desk, laptop)
    refused = do(laptop, "work", "consume", work, code=REFUSED)
    assert "--take-over" in refused.err

    go_on(desk, "desk", work)
    go_on(laptop, "laptop", work)
    settle(desk, laptop)

    for machine in machines:
        assert sorted(prompts(machine, work)) == ["begin", "by the desk", "by the laptop"]
        state = do(machine, "feature", "status", FEATURE, "--json").json["current_state"]
        assert (state["active_task"], state["model_in_use"]) == ("T1", "opus")
        history = do(machine, "feature", "history", FEATURE, "--json").json
        assert {"by the desk", "by the laptop"} <= {entry.get("command") for entry in history}
        talks = {name: parent for name, parent in listed(machine).items() if parent == SESSION}
        assert len(talks) == 1
        texts = sorted(machine.texts(name) for name in (SESSION, *talks))
        assert texts == [["one", "by the desk"], ["one", "by the laptop"]]
        assert sorted(storms(machine).values()) == [["by the desk"], ["by the laptop"]]
        assert STORM in storms(machine)
        features = {row["feature_id"] for row in do(machine, "feature", "list", "--json").json}
        assert features == {FEATURE, "desk-2025-01-10", "laptop-2025-01-10"}
    assert set(listed(laptop)) == set(listed(desk))

    by_the_desk = consume(desk, work)
    assert by_the_desk["applied"] == 2
    assert consume(desk, work)["applied"] == 0
    push(desk)
    assert pull(laptop)[work] == "pulled"
    do(laptop, "work", "consume", work, code=REFUSED)
    crumb(laptop, work, "later")
    assert consume(laptop, work, "--take-over")["applied"] == 1
    push(laptop)
    pull(desk)
    do(desk, "work", "consume", work, code=REFUSED)
    assert consume(laptop, work)["applied"] == 0
    ledger = (work_folder(desk) / work / "log.jsonl").read_text().splitlines()
    assert len({json.loads(line)["breadcrumb_id"] for line in ledger}) == len(ledger) == 4

    parted = [row for row in desk.json("resolve") if row["what"] == "sessions"]
    assert {(row["kind"], row["id"]) for row in parted} == {("amplifier", SESSION), ("brainstorm", STORM)}
    waits = {row["file"]: row for row in desk.json("resolve") if row["what"] == "held_back"}
    assert set(waits) == {LIST}
    assert standings(desk.json("status"))[LIST] == "held_back"
    mine, theirs = (Path(waits[LIST][name]) for name in ("path", "sibling_path"))
    rows = load_yaml(mine.read_bytes())["active_features"]
    others = load_yaml(theirs.read_bytes())["active_features"]
    assert {row["feature_id"] for row in rows} ^ {row["feature_id"] for row in others}
    do(desk, "feature", "repair", "--rebuild-index")
    assert standings(desk.json("resolve", LIST, "--keep", "mine")) == {LIST: "pushed"}
    assert pull(laptop)[LIST] == "pulled"
    assert [row for row in desk.json("resolve") if row["what"] == "held_back"] == []

    assert set(push(desk).values()) | set(push(laptop).values()) == {"in_step"}
    assert set(pull(desk).values()) | set(pull(laptop).values()) == {"in_step"}
    assert carried(laptop) == carried(desk)


# -- what waits for a person


@pytest.fixture
def both(machines: Machines) -> Machines:
    """Two machines around one object store."""
    return begin(machines, of_s3())


def part(desk: Machine, laptop: Machine) -> None:
    """Let both machines go on with one conversation; the desk comes second."""
    desk.say("one")
    push(desk)
    pull(laptop)
    desk.say("by the desk")
    laptop.say("by the laptop")
    push(laptop)
    pull(desk)


def follow(machine: Machine, words: str, code: int = 0) -> Result:
    """Run a command line as it was printed, which must be fit for a shell."""
    name, *arguments = shlex.split(words)
    if name != "sessionary":
        subprocess.run([name, *arguments], check=True)
        return Result(0, "", "")
    done = Result(main(arguments), *machine._read())
    assert done.code == code, done.err + done.out
    return done


def commands(row: Any) -> dict[str, str]:
    return {way["keeps"]: way["command"] for way in row["commands"]}


@pytest.mark.lane("s3")
@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_the_reported_commands_settle_a_session_in_two_versions(both: Machines, keep: str) -> None:
    desk, laptop = both
    part(desk, laptop)
    [row] = desk.json("resolve")
    assert (row["what"], row["id"], row["file"]) == ("sessions", SESSION, None)
    assert [Path(row[name]).name for name in ("path", "sibling_path")] == [SESSION, row["sibling"]]
    done = follow(desk, commands(row)[keep])
    stays = row["sibling"] if keep == "mine" else SESSION
    assert desk.names() == [stays]
    assert desk.texts(stays)[-1] == ("by the desk" if keep == "mine" else "by the laptop")
    [undo] = [line.removeprefix("undo: ") for line in done.err.splitlines() if line.startswith("undo: ")]
    follow(desk, undo)
    assert desk.names() == sorted([SESSION, row["sibling"]])


@pytest.mark.lane("s3")
@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_a_version_that_an_agent_has_open_is_not_touched(both: Machines, keep: str) -> None:
    desk, laptop = both
    part(desk, laptop)
    [row] = desk.json("resolve")
    loser = Path(row["path"] if keep == "mine" else row["sibling_path"])
    agent = Presence()
    agent.enter(str(loser))
    before = carried(desk)
    refused = follow(desk, commands(row)[keep] + " --quiet 0", LOCKED)
    assert "a program has it open" in refused.err
    assert carried(desk) == before
    agent.leave(str(loser))
    with open(loser / "transcript.jsonl", "a") as file:
        file.write('{"role": "user", "content": "and on"}\n')
    os.utime(loser / "transcript.jsonl", (time.time() + 1,) * 2)  # one tick of the clock would do
    refused = follow(desk, commands(row)[keep], LOCKED)
    assert "changed a moment ago" in refused.err
    assert "--quiet 0" in refused.err
    assert loser.exists()
    follow(desk, commands(row)[keep] + " --quiet 0")
    assert not loser.exists()


@pytest.mark.lane("s3")
def test_resolve_keeps_one_brainstorm_and_undo_restores_the_other(both: Machines) -> None:
    desk, laptop = both
    do(desk, "brainstorm", "start", STORM, "--question", "Who signs in?", "--lang", "en")
    push(desk)
    pull(laptop)
    for machine, name in ((desk, "desk"), (laptop, "laptop")):
        do(machine, "brainstorm", "answer", STORM, f"by the {name}", "--lang", "en")
    push(laptop)
    pull(desk)
    [row] = desk.json("resolve")
    assert (row["what"], row["kind"], row["id"]) == ("sessions", "brainstorm", STORM)
    assert storms(desk) == {STORM: ["by the laptop"], row["sibling"]: ["by the desk"]}
    done = follow(desk, commands(row)["mine"])
    assert storms(desk) == {row["sibling"]: ["by the desk"]}
    [undo] = [line.removeprefix("undo: ") for line in done.err.splitlines() if line.startswith("undo: ")]
    follow(desk, undo)
    assert set(storms(desk)) == {STORM, row["sibling"]}


def change_plans(desk: Machine, laptop: Machine) -> Path:
    """Let both machines change the plan of one feature; returns it as it stands at the desk."""
    do(desk, "feature", "create", "Sign in", "--id", FEATURE)
    push(desk)
    pull(laptop)
    for machine in (desk, laptop):
        path = machine.project / ".ai-session" / FEATURE / "implementation-plan.yaml"
        path.write_text(path.read_text() + f"# by the {machine.root.name}\n")
    push(laptop)
    pull(desk)
    push(desk)
    return desk.project / ".ai-session" / FEATURE / "implementation-plan.yaml"


@pytest.mark.lane("s3")
@pytest.mark.parametrize(
    ("keeps", "words"), [("standing", "# by the laptop\n"), ("other", "# by the desk\n")]
)
def test_a_file_with_another_version_beside_it_is_reported_until_one_is_gone(
    both: Machines, keeps: str, words: str
) -> None:
    desk, laptop = both
    plan = change_plans(desk, laptop)
    [row] = desk.json("resolve")
    assert (row["what"], row["id"], row["file"], row["path"]) == (
        "kept_beside",
        FEATURE,
        plan.name,
        str(plan),
    )
    assert "by the desk" in Path(row["sibling_path"]).read_text()
    status = desk.run("status")
    assert f"! in step       {FEATURE}" in status.out
    assert Path(row["sibling_path"]).name in " ".join(status.out.split())
    [reported] = [one for one in desk.json("status")["sessions"] if one["id"] == FEATURE]
    assert reported["standing"] == "in_step"
    assert reported["beside"] == [{"file": plan.name, "path": str(plan), "other": row["sibling_path"]}]
    refused = desk.run("resolve", FEATURE, "--keep", "mine")
    assert refused.code == INVALID
    assert commands(row)[keeps] in refused.err
    follow(desk, commands(row)[keeps])
    assert desk.json("resolve") == []
    assert plan.read_text().endswith(words)
    push(desk)
    pull(laptop)
    assert carried(laptop) == carried(desk)


def change_lists(desk: Machine, laptop: Machine) -> None:
    """Let both machines change the list of features, and the desk hear of it."""
    do(desk, "feature", "create", "Sign in", "--id", FEATURE)
    push(desk)
    pull(laptop)
    for machine in (desk, laptop):
        path = machine.project / ".ai-session" / LIST
        path.write_text(path.read_text() + f"# by the {machine.root.name}\n")
    push(laptop)


@pytest.mark.lane("s3")
@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_a_file_that_a_user_decides_about_is_reported_with_both_versions(both: Machines, keep: str) -> None:
    desk, laptop = both
    change_lists(desk, laptop)
    [row] = desk.json("resolve")
    assert (row["what"], row["kind"], row["id"], row["file"]) == ("held_back", "feature", LIST, LIST)
    assert row["sibling_path"] is None, "no pull has laid it beside yet"
    assert pull(desk)[LIST] == "held_back"
    [row] = desk.json("resolve")
    assert Path(row["sibling_path"]).read_text().endswith("# by the laptop\n")
    status = desk.run("status")
    assert f"! held back     {LIST}" in status.out
    assert Path(row["sibling_path"]).name in " ".join(status.out.split())
    follow(desk, commands(row)[keep])
    pull(laptop)
    last = "# by the desk\n" if keep == "mine" else "# by the laptop\n"
    for machine in both:
        assert (machine.project / ".ai-session" / LIST).read_text().endswith(last)
    assert desk.json("resolve") == []
    assert standings(desk.json("status"))[LIST] == "in_step"


@pytest.mark.lane("s3")
def test_what_waits_is_printed_for_people(both: Machines) -> None:
    desk, laptop = both
    assert desk.run("resolve") == Result(0, "", "no conflicts\n")
    part(desk, laptop)
    change_lists(desk, laptop)
    pull(desk)
    pair, held = desk.json("resolve")
    shown = desk.run("resolve")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        f"! two versions  {SESSION}",
        f"    theirs: {SESSION}, which was pushed first",
        f"    mine: {pair['sibling']}, the sibling",
        f"    to keep theirs: {commands(pair)['theirs']}",
        f"    to keep mine: {commands(pair)['mine']}",
        f"! held back     {LIST}",
        f"    mine: {held['path']}",
        f"    theirs: {held['sibling_path']}",
        f"    to keep mine (unchanged, or as you have merged both): {commands(held)['mine']}",
        f"    to keep theirs: {commands(held)['theirs']}",
    ]
    assert shown.err == "1 session continued on two machines, 1 file held back\n"


@pytest.mark.lane("s3")
def test_a_sibling_that_cannot_say_where_it_comes_from_is_reported(both: Machines) -> None:
    desk, laptop = both
    part(desk, laptop)
    [pair] = desk.json("resolve")
    document = desk.sessions / pair["sibling"] / "metadata.json"
    document.write_bytes(document.read_bytes()[:9])  # its backup is from before it gave way
    listed_now = desk.run("resolve", "--json")
    [row] = listed_now.json
    assert (listed_now.code, row["what"], row["id"]) == (3, "unknown", pair["sibling"])
    refused = desk.run("resolve", pair["sibling"], "--keep", "theirs")
    assert (refused.code, document.name in refused.err) == (CORRUPT, True)
    assert desk.names() == sorted([SESSION, pair["sibling"]])


@pytest.mark.lane("s3")
def test_status_reports_the_reason_of_each_state(both: Machines) -> None:
    desk, laptop = both
    desk.say("one")
    push(desk)
    pull(laptop)
    laptop.say("two")
    push(laptop)
    [reported] = desk.json("status")["sessions"]
    assert (reported["standing"], reported["note"]) == (
        "behind",
        "newer on the remote; here it was changed a moment ago",
    )
    desk.say("other two")
    for file in (desk.sessions / SESSION).iterdir():
        os.utime(file, (time.time() - 60,) * 2)
    [reported] = desk.json("status")["sessions"]
    assert (reported["standing"], "a pull keeps both versions" in reported["note"]) == ("diverged", True)


@pytest.mark.lane("s3")
def test_every_field_is_in_the_page(both: Machines) -> None:
    desk, laptop = both
    _, session, waiting = documented("sessionary sync")
    part(desk, laptop)
    [row] = desk.json("resolve")
    assert set(row) == waiting
    assert all(set(one) == session for one in desk.json("status")["sessions"])
