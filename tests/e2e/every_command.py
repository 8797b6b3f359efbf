"""Every command of the click tree, and a home with sessions of all four kinds to run them in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import click
import pytest

from sessionary import BrainstormStore, EventsLog, FeatureStore, SessionStore, WorkStore
from sessionary.cli import main
from sessionary.cli.app import cli
from sessionary.layouts.amplifier.ids import path_slug
from tests.e2e.driving import ROOT, Result
from tests.messages import message

FORK = "9c1d4e7f-0000-4000-8000-000000000002"
SLUG = "sign-in"
FEATURE = "login-2026-01-02"


def commands(group: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, with its words."""
    if not isinstance(group, click.Group):
        yield " ".join(path), group
        return
    context = click.Context(group, help_option_names=["-h", "--help"])
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield from commands(found, (*path, name))


def options(command: click.Command) -> set[str]:
    """The options of a command."""
    return {word for one in command.params if isinstance(one, click.Option) for word in one.opts}


def required(command: click.Command) -> list[str]:
    """Words that fill the required arguments and options of a command, so that it is not refused for them."""
    words = []
    for one in command.params:
        if one.required:
            words += [one.opts[0]] if isinstance(one, click.Option) else []
            words.append(_filler(one))
    return words


def _filler(one: click.Parameter) -> str:
    if isinstance(one.type, click.Choice):
        return str(one.type.choices[0])
    return "1" if isinstance(one.type, click.types.IntParamType) else "x"


ACK = "feature ack opus .ai-session/README.md"
STRAY = "0b0b0b0b-0000-4000-8000-000000000001"
STRAY_MADE = (
    f"! mkdir docs/sessions/{STRAY} ; ! cp -r docs/sessions/{{work}}/breadcrumbs docs/sessions/{STRAY}/"
)
REWOUND = "sync push ; rewind {agent} 1 ; sync push"

CALLS = {
    "list": ["list", "list --all"],
    "show": ["show {agent}", "show {fork}", "show {slug}", "show {feature}", "show {work}", "show {agent}:1"],
    "search": ["search it", "search why --since 2020"],
    "export": ["export {agent} --output x.md", "export {fork} {slug} {feature} {work} --output all/ --redact"],
    "import": ["export {agent} --output x.atif.json ; import x.atif.json"],
    "diff": ["diff {agent} {fork}", "diff {work} {feature}"],
    "archive add": ["archive add", "archive add --kind claude_code"],
    "archive run": ["archive add --kind amplifier ; archive run"],
    "archive list": ["archive list", "archive add --kind amplifier ; archive run ; archive list"],
    "archive verify": ["archive add --kind amplifier ; archive run ; archive verify"],
    "archive restore": ["archive add --kind amplifier ; archive run ; archive restore {agent} --to restored"],
    "archive rm": ["archive add --kind amplifier ; archive run ; archive rm {agent} --yes"],
    "events": ["events {agent}", "events {agent} --summary", "events {agent} --cost", "events {agent} --fields data"],
    "tree": ["tree", "tree {agent}"],
    "stats": ["stats", "stats --events"],
    "sql": ["sql SELECT[id]FROM[sessions]"],
    "doctor": ["doctor"],
    "open": ["open {agent}"],
    "check": ["check", "check {fork}", "check {slug} {feature} {work} {agent}"],
    "repair": ["repair {fork} --dry-run", "repair {fork}"],
    "rename": ["rename {agent} New"],
    "tag": ["tag {agent} bug"],
    "star": ["star {agent}"],
    "fork": ["fork {agent} --dry-run", "fork {agent}"],
    "rewind": ["rewind {agent} 1 --dry-run", "rewind {agent} 1"],
    "restore-backup": ["restore-backup {agent} --dry-run", "restore-backup {agent}"],
    "trash": ["trash {fork}", "trash {fork} ; trash --list", "trash {fork} ; trash --empty --yes"],
    "undo": ["rewind {agent} 1 ; undo {agent}", "rewind {agent} 1 ; undo --list", "trash {fork} ; undo {fork}"],
    "mv": ["mv {project} {project}2 --dry-run", "mv {project} {project}2"],
    "work list": ["work list"],
    "work show": ["work show {work}", "work show {work} --export-json -"],
    "work tree": ["work tree", "work tree --show-breadcrumbs"],
    "work breadcrumbs": ["work breadcrumbs {work}", "work breadcrumbs {work} --summary"],
    "work breadcrumb add": ["work breadcrumb add --cookie {work} --prompt x"],
    "work breadcrumb move": [f"{STRAY_MADE} ; work breadcrumb move {STRAY} {{work}}"],
    "work timeline": ["work timeline {work} --include-children"],
    "work stats": ["work stats", "work stats {work}"],
    "work start": ["work start --purpose p", "work start --mode 2770"],
    "work pause": ["work pause {work}"],
    "work resume": ["work pause {work} ; work resume {work}"],
    "work interrupt": ["work interrupt {work} --reason r"],
    "work fail": ["work fail {child}"],
    "work close": ["work close {child}"],
    "work pending": ["work pending {work}"],
    "work status": ["work status {work}", "work consume {work} --exec false ; work status {work}"],
    "work consume": ["work consume {work} --dry-run", "work consume {work}", "work consume {work} --exec false"],
    "work watch": [],  # runs until it is stopped; one breadcrumb per line
    "work revive": [
        "work consume {work} --exec false --max-attempts 1 ; work status {work}",
        "work consume {work} --exec false --max-attempts 1 ; work revive {work}",
    ],
    "work quarantine": ["work quarantine {work}"],
    "work ledger restore": ["work consume {work} ; ! rm docs/sessions/{work}/log.jsonl ; work ledger restore {work}"],
    "work ledger accept": ["work consume {work} ; ! rm docs/sessions/{work}/log.jsonl ; work ledger accept {work}"],
    "work subwork start": ["work subwork start {work} --purpose p --context file:a.txt"],
    "work subwork list": ["work subwork list {work}"],
    "work subwork show": ["work subwork show {child}"],
    "work subwork close": ["work subwork close {child} --summary fine"],
    "work subwork resume-parent": ["work close {child} ; work pause {work} ; work subwork resume-parent {child}"],
    "brainstorm start": ["brainstorm start other", "brainstorm start {slug} --resume", "brainstorm start {slug} --new"],
    "brainstorm continue": ["brainstorm continue {slug}"],
    "brainstorm answer": ["brainstorm answer {slug} Staff"],
    "brainstorm back": ["brainstorm continue {slug} ; brainstorm back {slug}"],
    "brainstorm update": ["brainstorm update {slug} --ems 50"],
    "brainstorm status": ["brainstorm status {slug}"],
    "brainstorm technique": ["brainstorm technique {slug} six-hats"],
    "brainstorm party": ["brainstorm party {slug} Pay --says A=b", "brainstorm party {slug} --exit"],
    "brainstorm panel": ["brainstorm panel {slug} Pay --says A=b", "brainstorm panel {slug} --exit"],
    "brainstorm idea": ["brainstorm idea {slug} links --score 7"],
    "brainstorm save": ["brainstorm save {slug}"],
    "brainstorm finish": ["brainstorm finish {slug}"],
    "brainstorm reopen": ["brainstorm finish {slug} ; brainstorm reopen {slug}"],
    "brainstorm list": ["brainstorm list", "brainstorm start {slug} --new ; brainstorm list --archived"],
    "brainstorm show": ["brainstorm show {slug}"],
    "brainstorm validate": ["brainstorm validate"],
    "brainstorm cleanup": ["brainstorm finish {slug} ; brainstorm cleanup --days 0"],
    "brainstorm restore": ["brainstorm finish {slug} ; brainstorm cleanup --days 0 ; brainstorm restore {slug}"],
    "brainstorm migrate": ["brainstorm migrate", "brainstorm migrate --dry-run"],
    "feature create": ["feature create Other"],
    "feature plan": ["feature plan {feature}"],
    "feature task": ["feature task {feature} T1 in_progress"],
    "feature update": ["feature update {feature} --model opus"],
    "feature log": ["feature log {feature} build --duration 4"],
    "feature history": ["feature history {feature}", "feature history {feature} --stats"],
    "feature status": ["feature status {feature}"],
    "feature list": ["feature list"],
    "feature pause": ["feature pause {feature}"],
    "feature resume": ["feature pause {feature} ; feature resume {feature}"],
    "feature complete": ["feature complete {feature}"],
    "feature archive": ["feature complete {feature} ; feature archive {feature}"],
    "feature unarchive": ["feature complete {feature} ; feature archive {feature} ; feature unarchive {feature}"],
    "feature ack": [ACK, f"{ACK} ; feature ack --verify .ai-session/README.md"],
    "feature validate": ["feature validate"],
    "feature repair": [
        "! rm .ai-session/{feature}/state.yaml ; feature repair {feature}", "feature repair --rebuild-index"
    ],
    "feature migrate": ["feature migrate {feature}"],
}  # fmt: skip

SYNC_CALLS = {
    "sync init": ["sync init {address} --replace"],
    "sync push": ["sync push"],
    "sync pull": ["sync push ; sync pull"],
    "sync status": ["sync push ; sync status"],
    "sync resolve": ["sync push ; sync resolve"],
    "sync history": ["sync push ; sync history {agent}"],
    "sync restore": [f"{REWOUND} ; sync restore {{agent}} --generation 0 --quiet 0"],
    "sync project list": ["sync push ; sync project list"],
    "sync project bind": ["sync push ; sync project bind {project} --new"],
    "sync check": ["sync push ; sync check"],
    "sync gc": ["sync push ; sync gc"],
    "sync watch": [],  # runs until it is stopped; a document as of `push` per line
}

READING = frozenset({
    "list", "show", "search", "events", "tree", "stats", "sql", "doctor", "open", "diff", "check", "demo",
    "archive list",
    "work list", "work show", "work tree", "work breadcrumbs", "work timeline", "work stats", "work pending",
    "work status", "work subwork list", "work subwork show",
    "brainstorm list", "brainstorm show", "brainstorm status", "brainstorm validate",
    "feature history", "feature list", "feature status", "feature validate",
    "sync status", "sync check", "sync history", "sync project list", "sync demo",
})  # fmt: skip
"""What changes nothing that a user keeps."""
UNCHANGING = READING | {"export", "serve", "mcp", "archive verify"}
"""These, and what only writes files of its own or answers while it runs."""


class World:
    """A home and a project with a session of each kind; the current folder is the project."""

    def __init__(self, base: Path) -> None:
        self.home = base / ".amplifier"
        self.project = base / "code" / "app"
        self.project.mkdir(parents=True)
        os.chdir(self.project)
        self._agents(path_slug(str(self.project)))
        storms = BrainstormStore(self.project)
        storms.create(SLUG, questions=["Who signs in?"])
        storms.answer(SLUG, ["Customers"], ems=38)
        features = FeatureStore(self.project)
        features.create(FEATURE, name="Login", description="Let people in")
        plan = [{"phase_id": "P1", "name": "Build", "tasks": [{"task_id": "T1", "description": "Build it"}]}]
        features.save_plan(FEATURE, plan)
        features.append(FEATURE, {"command": "plan", "model": "opus", "duration_ms": 5, "status": "success"})
        works = WorkStore(self.project / "docs" / "sessions")
        self.work = works.create("work_task", purpose="Checkout").session_id
        works.write_breadcrumb(message("Do it"), self.work)
        self.child = works.create("work_task", self.work).session_id

    def _agents(self, slug: str) -> None:
        store = SessionStore(self.home / "projects" / slug / "sessions")
        said = [
            {"role": role, "content": text, "timestamp": f"2026-01-02T10:00:0{number}+00:00"}
            for number, (role, text) in enumerate([("user", "Why?"), ("assistant", "Its cache.")] * 2)
        ]
        metadata = {"session_id": ROOT, "name": "The build", "working_dir": str(self.project)}
        store.save(ROOT, said[:2], metadata)
        store.save(ROOT, [{**said[0], "content": "Why is it slow?"}, *said[1:]], metadata)
        with EventsLog(store.base_dir / ROOT) as log:
            log.prompt_submit("Why?")
            log.llm_response(model="m", usage={"input_tokens": 10, "output_tokens": 3})
        store.save(FORK, said, {**metadata, "session_id": FORK, "parent_id": ROOT})
        with open(store.base_dir / FORK / "transcript.jsonl", "ab") as file:
            file.write(b'{"role": "us')

    def words(self, text: str) -> list[str]:
        """The words of a command line in which the ids have names."""
        names = {"{work}": self.work, "{child}": self.child, "{feature}": FEATURE, "{slug}": SLUG}
        names |= {"{agent}": ROOT, "{fork}": FORK, "{project}": str(self.project)}
        for name, known in names.items():
            text = text.replace(name, known)
        return text.split()


class RunText(Protocol):
    """Runs commands that are separated by semicolons, the last one with more options; what the last one said."""

    def __call__(self, text: str, *options: str) -> Result: ...


def running(base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunText:
    """Build a world in a folder and run commands in it. A command behind ``!`` is one for the shell."""
    for name in ("COLUMNS", "SESSIONARY_HOME", "SESSIONARY_REQUIRE_ACK"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(base / name.lower()))
    monkeypatch.setenv("HOME", str(base))
    monkeypatch.chdir(base)
    world = World(base)

    def run(text: str, *options: str) -> Result:
        *before, last = text.split(" ; ")
        for one in before:
            words = world.words(one)
            if words[0] == "!":
                subprocess.run(words[1:], check=True)
            else:
                main(words)
        capsys.readouterr()
        return Result(main([*world.words(last), *options]), *capsys.readouterr())

    return run
