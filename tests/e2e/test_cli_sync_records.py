"""Sessions of agent frameworks on two machines, by the commands of sync."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli import main
from sessionary.layouts.records.journal import Change, RecordJournal
from tests.e2e.test_cli_sync import SECRETS, Machine, begin, of_s3, standings

Machines = tuple[Machine, Machine]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machines:
    for name in SECRETS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("USER", "ada")
    desk, laptop = (Machine(tmp_path, name, monkeypatch, capsys.readouterr) for name in ("desk", "laptop"))
    return desk, laptop


def journal(machine: Machine, framework: str, session: str, *scope: str) -> RecordJournal:
    return RecordJournal(machine.home / framework, framework, session, scope, durability="none")


def say(one: RecordJournal, text: str) -> None:
    one.change(lambda state: Change(add=[{"role": "user", "content": text}]))


def listed(machine: Machine) -> list[dict[str, Any]]:
    assert main(["list", "--json", "--kind", "records", "--home", str(machine.home)]) == 0
    rows: list[dict[str, Any]] = json.loads(machine._read().out)
    return rows


def test_a_framework_session_syncs_both_ways(machines: Machines) -> None:
    desk, laptop = begin(machines, of_s3())
    say(journal(desk, "openai-agents", "customer-1"), "Fix the login race")
    say(journal(desk, "google-adk", "customer-1", "app", "ada"), "Another")
    assert standings(desk.json("status")) == {"customer-1": "never"}
    assert len(desk.json("push")["sessions"]) == 2
    pulled = laptop.json("pull", "--quiet", "0")
    assert sorted((one["project"], one["standing"]) for one in pulled["sessions"]) == [
        ("google-adk/app/ada", "pulled"),
        ("openai-agents", "pulled"),
    ]
    other = journal(laptop, "openai-agents", "customer-1")
    assert other.state().values() == [{"role": "user", "content": "Fix the login race"}]
    say(other, "And the tests")
    laptop.json("push")
    desk.json("pull", "--quiet", "0")
    one = journal(desk, "openai-agents", "customer-1")
    assert [item["content"] for item in one.state().values()] == ["Fix the login race", "And the tests"]
    assert {row["project"] for row in listed(laptop)} == {"openai-agents", "google-adk/app/ada"}


def test_both_versions_of_a_session_that_both_continued_are_listed(machines: Machines) -> None:
    desk, laptop = begin(machines, of_s3())
    say(journal(desk, "openai-agents", "one"), "Begin")
    desk.json("push")
    laptop.json("pull", "--quiet", "0")
    say(journal(desk, "openai-agents", "one"), "At the desk")
    say(journal(laptop, "openai-agents", "one"), "At the laptop")
    desk.json("push")
    (outcome,) = laptop.json("pull", "--quiet", "0")["sessions"]
    assert outcome["standing"] == "diverged"
    laptop.run("push")
    desk.run("pull --quiet 0")
    rows = {row["id"]: row for row in listed(desk)}
    assert rows.keys() == {"one", outcome["sibling"]}
    assert rows[outcome["sibling"]]["parent"] == "one"
    assert (
        journal(desk, "openai-agents", outcome["sibling"]).state().values()[-1]["content"] == "At the laptop"
    )
