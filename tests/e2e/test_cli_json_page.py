"""docs/cli-json.md against what every command prints: each key is documented, none is lost, each path is absolute."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.every_command import CALLS, READING, SYNC_CALLS, RunText, commands, options, running
from tests.e2e.test_cli_sync import of_s3

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cli-json.md").read_text("utf-8")

# The keys that the commands printed before their readers were rebuilt. None may be lost; new ones are documented.
KEYS: dict[str, str] = json.loads(
    (Path(__file__).parents[1] / "golden" / "json_keys.json").read_text("utf-8")
)

# What is stored is printed with the keys of its file, those of others too: its page documents these.
STORED = {"work": "maestro", "brainstorm": "brainstorm", "feature": "orchestrator"}
FREE = frozenset({
    "arguments", "costs", "counts", "data", "days", "document", "events", "facts", "fields", "health", "levels",
    "related_entity", "tokens", "tasks", "commands", "models", "agents", "artifacts", "relations", "failing",
    "metadata", "details",
})  # fmt: skip
"""What is keyed by data: names that a user or a program chose."""
AS_STORED = frozenset({"breadcrumbs_dir"})
PLACES = frozenset(
    {"path", "paths", "kept_in", "kept", "backup", "moved_to", "set_aside_in", "other", "sibling_path"}
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunText:
    return running(tmp_path, monkeypatch, capsys)


def documented(command: str) -> set[str]:
    """The words that the page puts in code marks in the sections of a command, and in those that it refers to."""
    group = command.split(maxsplit=1)[0]
    text = PAGE.partition("\n## ")[0] + _section("sessionary check") + _section("Failures")
    names = {f"sessionary {group}", "sessionary list", "Commands that change sessions"}
    text += "".join(map(_section, names))
    if group in STORED:
        text += (DOCS / "formats" / f"{STORED[group]}.md").read_text("utf-8")
    in_marks = {word for words in re.findall(r"`([\w.]+)`", text) for word in words.split(".")}
    return in_marks | set(re.findall(r'["{ ](\w+)"?:', text))


def _section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def keys(value: Any) -> Iterator[str]:
    """Every key of a document, but for those that are data."""
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in FREE or isinstance(inner, list):
                yield from keys(inner)


def key_paths(value: Any, path: str = "") -> Iterator[str]:
    """Every key with those around it, as in ``messages[].tools[].id``; none below data."""
    if isinstance(value, list):
        for one in value:
            yield from key_paths(one, f"{path}[]")
    elif isinstance(value, dict):
        for key, inner in value.items():
            where = f"{path}.{key}".lstrip(".")
            yield where
            if key not in FREE or isinstance(inner, list):
                yield from key_paths(inner, where)


def lost(call: str, document: Any) -> set[str]:
    """The keys that a command printed before, and does not print now."""
    return set(KEYS.get(call, "").split()) - set(key_paths(document))


def relative(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Paths that are not absolute: what a key calls a path, and all that is a file as seen from here."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from relative(inner, name)
    elif isinstance(value, list):
        for one in value:
            yield from relative(one, key)
    elif isinstance(value, str) and not os.path.isabs(value):
        if key in AS_STORED:
            return
        if key in PLACES or ("/" in value and os.path.exists(value)):
            yield key, value


def test_every_command_with_json_is_run_here() -> None:
    with_json = {name for name, command in commands() if "--json" in options(command)}
    assert with_json == CALLS.keys() | SYNC_CALLS.keys()


def test_every_call_whose_keys_are_kept_is_made_here() -> None:
    made = {call for calls in (*CALLS.values(), *SYNC_CALLS.values()) for call in calls}
    assert KEYS.keys() - made == set()


@pytest.mark.parametrize(
    ("command", "call"), [(name, call) for name, calls in CALLS.items() for call in calls]
)
def test_every_key_is_documented_and_every_path_is_absolute(run: RunText, command: str, call: str) -> None:
    done = run(call, "--json")
    assert done.code in (0, 3, 13), done.err
    assert done.out.count("\n") >= 1, done.err
    document = done.json
    assert set(keys(document)) - documented(command) == set()
    assert lost(call, document) == set()
    assert list(relative(document)) == []


@pytest.mark.lane("s3")
@pytest.mark.parametrize(
    ("command", "call"), [(name, call) for name, calls in SYNC_CALLS.items() for call in calls]
)
def test_every_key_of_sync_is_documented_and_every_path_is_absolute(
    run: RunText, monkeypatch: pytest.MonkeyPatch, command: str, call: str
) -> None:
    place = of_s3()
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    address = " ".join([*place.words, "--tenant", "ada", "--device", "desk"])
    assert run(f"sync init {address}", "--json").code == 0
    done = run(call.replace("{address}", address), "--json")
    assert done.code == 0, done.err
    document = done.json
    assert set(keys(document)) - documented(command) == set()
    assert lost(call, document) == set()
    assert list(relative(document)) == []


WITHOUT_LIST = {
    "stats", "doctor", "open", "diff",
    "work show", "work stats", "work subwork show", "brainstorm show", "brainstorm status", "feature status",
}  # fmt: skip
"""What reads, and prints one object that is about one thing."""


def test_every_command_that_reads_a_list_has_json_lines() -> None:
    without = {
        name
        for name, command in commands()
        if name in READING and not options(command) & {"--jsonl", "--export-json"}
    }
    assert without - {"demo", "sync demo"} == WITHOUT_LIST - {"work show"}


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (name, call)
        for name, calls in CALLS.items()
        for call in calls
        if name in READING - WITHOUT_LIST and not re.search(r"--(summary|cost|stats|new)", call)
    ],
)
def test_json_lines_are_the_items_of_the_list(run: RunText, command: str, call: str) -> None:
    document, lines = run(call, "--json"), run(call, "--jsonl")
    assert (lines.code, command) == (document.code, command), lines.err
    whole = document.json
    lists = [whole] if isinstance(whole, list) else [one for one in whole.values() if isinstance(one, list)]
    assert [set(row) for row in lines.rows] in [[set(row) for row in one] for one in lists if _objects(one)]


def _objects(found: list[Any]) -> bool:
    return all(isinstance(one, dict) for one in found)
