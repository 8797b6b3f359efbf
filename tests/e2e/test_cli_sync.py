"""`sessionary sync`: two homes that share their sessions through each kind of server, as two machines would."""

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest

from sessionary import CosmosConfig, FeatureStore, HybridSessionStore
from sessionary.cli import main
from sessionary.errors import RemoteError
from sessionary.layouts.amplifier.ids import project_slug
from sessionary.sync.gc.removed import Removed
from sessionary.sync.heads import decode, head_name
from sessionary.sync.remote import heads_of, stats_of
from sessionary.sync.remotes import open_remote
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.sync.remotes.objects import open_store
from sessionary.sync.settings import load_settings
from tests.servers import objects
from tests.servers.refusing import RefusingHttp, RefusingPostgres
from tests.support.cosmos_double import CosmosDouble
from tests.support.s3_server import S3Server

SESSION = "3f0c81d2-7a64-4b0e-9c55-1d2b7e90a1f3"
ORIGIN = "https://github.com/example/shop.git"
SECRETS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "SESSIONARY_COSMOS_KEY",
    "AMPLIFIER_COSMOS_KEY",
    "SESSIONARY_SYNC_SETTINGS",
)


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Machine:
    """One machine: a home, a clone of the repository somewhere else on each, settings and a memory of its own."""

    def __init__(self, root: Path, name: str, patch: pytest.MonkeyPatch, read: Callable[[], Any]) -> None:
        self.root = root / name
        self.project = self.root / f"code-{name}" / "shop"
        self.home = self.root / "home"
        self._patch = patch
        self._read = read
        self.home.mkdir(parents=True)
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (self.project / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {ORIGIN}\n')

    def run(self, command: str, *arguments: str) -> Result:
        """One command on this machine; its words are split as a shell does."""
        self._patch.setenv("XDG_CONFIG_HOME", str(self.root / "config"))
        self._patch.setenv("XDG_STATE_HOME", str(self.root / "state"))
        place = (
            []
            if command.split(maxsplit=1)[0] in ("init", "gc", "demo")
            else ["--home", str(self.home), "--root", str(self.project)]
        )
        code = main(["sync", *shlex.split(command), *place, *arguments])
        return Result(code, *self._read())

    def json(self, command: str, *arguments: str) -> Any:
        """The document that a command prints; it must end well."""
        result = self.run(command, "--json", *arguments)
        assert result.code == 0, result.err + result.out
        return result.json

    @property
    def sessions(self) -> Path:
        """Where the sessions of the project lie: the name of the folder is that of the project's path."""
        found = self.home / "projects" / project_slug(self.project) / "sessions"
        found.mkdir(parents=True, exist_ok=True)
        return found

    def say(self, *texts: str, session: str = SESSION) -> None:
        """Go on with a session, as an agent does that is closed for long since."""
        folder = self.sessions / session
        folder.mkdir(exist_ok=True)
        with open(folder / "transcript.jsonl", "a") as file:
            file.writelines(json.dumps({"role": "user", "content": text}) + "\n" for text in texts)
        (folder / "metadata.json").write_text(json.dumps({"session_id": session, "name": "The shop"}))

    def texts(self, session: str = SESSION) -> list[str]:
        """What was said in a session."""
        lines = (self.sessions / session / "transcript.jsonl").read_text().splitlines()
        return [json.loads(line)["content"] for line in lines]

    def names(self) -> list[str]:
        """The sessions that are there."""
        return sorted(path.name for path in self.sessions.iterdir() if path.name[0] != ".")

    def files(self) -> dict[str, bytes]:
        """The carried files."""
        return {
            f"{name}/{file}": (self.sessions / name / file).read_bytes()
            for name in self.names()
            for file in ("transcript.jsonl", "metadata.json")
        }


class Place(NamedTuple):
    """A remote: the words for `sync init`, and what the environment must say."""

    words: list[str]
    environment: dict[str, str]


def of_postgres() -> Place:
    from tests.servers.postgres import server

    words = dict(word.split("=", 1) for word in server().conninfo.split())
    address = f"postgresql://{words['user']}@/{words['dbname']}?host={quote(words['host'], safe='')}"
    return Place([address, "--tenant", uuid4().hex], {})


def of_cosmos() -> Place:
    from tests.servers.cosmos import Npm

    address = Npm().config.endpoint.replace("http://", "cosmos+http://")
    return Place([f"{address}db-{uuid4().hex}/box"], {})


def of_s3() -> Place:
    server = objects.moto()
    words = [
        objects.s3_address(),
        "--option",
        f"endpoint={server['endpoint']}",
        "--option",
        "region=us-east-1",
    ]
    return Place(words, {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"})


def of_azure() -> Place:
    server = objects.azurite()
    words = [objects.azure_address(), "--option", f"endpoint={server['endpoint']}"]
    return Place(words, {"AZURE_STORAGE_ACCOUNT_KEY": objects.KEY})


PLACES = [
    pytest.param(of_postgres, id="postgresql", marks=pytest.mark.lane("postgres")),
    pytest.param(of_cosmos, id="cosmos", marks=pytest.mark.lane("cosmos-npm")),
    pytest.param(of_s3, id="s3", marks=pytest.mark.lane("s3")),
    pytest.param(of_azure, id="azure", marks=pytest.mark.lane("azurite")),
]


@pytest.fixture
def machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Machine, Machine]:
    for name in (*SECRETS, "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "ada")
    return (
        Machine(tmp_path, "desk", monkeypatch, capsys.readouterr),
        Machine(tmp_path, "laptop", monkeypatch, capsys.readouterr),
    )


def begin(machines: tuple[Machine, Machine], place: Place, *more: str) -> tuple[Machine, Machine]:
    """Set up both machines for one remote."""
    os.environ.update(
        place.environment
    )  # the client of the store asks the process, and `machines` puts it back
    for machine, name in zip(machines, ("desk", "laptop"), strict=True):
        tenant = [] if "--tenant" in place.words else ["--tenant", "ada"]
        machine.json("init", *place.words, *tenant, "--device", name, *more)
    return machines


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture
def on_s3(machines: tuple[Machine, Machine]) -> tuple[Machine, Machine]:
    return begin(machines, of_s3())


def test_folders_of_one_name_without_a_repository_are_bound_by_the_user(
    on_s3: tuple[Machine, Machine],
) -> None:
    desk, laptop = on_s3
    for machine in on_s3:
        shutil.rmtree(machine.project / ".git")
    play = desk.root / "play" / "shop"
    play.mkdir(parents=True)
    desk.say("work")
    desk.json("push")
    work, desk.project = desk.project, play
    desk.say("play", session="p")
    desk.json("push")
    rows = {row["folder"]: row["identity"] for row in desk.json("project list")}
    first, second = rows[str(work)], rows[str(play)]
    assert (first, second[:12]) == ("folder:shop", "folder:shop#")
    laptop.say("mine", session="l")
    assert set(standings(laptop.json("pull")).values()) == {"held_back"}
    held = laptop.run("push")
    assert "sessionary sync project bind" in " ".join(held.out.split())
    (unbound,) = [row for row in laptop.json("project list") if row["folder"]]
    assert unbound == {"folder": str(laptop.project), "identity": None, "candidates": [first, second]}
    bound = laptop.run("project bind", str(laptop.project), second)
    assert (bound.code, "folder:shop#" in bound.out) == (0, True)
    assert standings(laptop.json("pull")) == {SESSION: "held_back", "p": "pulled"}
    assert laptop.names() == ["l", "p"]
    changed = laptop.run("project bind", str(laptop.project), "--new")
    assert changed.code == 0
    undo = next(line for line in changed.err.splitlines() if line.startswith("undo: "))
    assert laptop.run(shlex.join(shlex.split(undo)[3:])).code == 0
    (again,) = [row for row in laptop.json("project list") if row["folder"]]
    assert again["identity"] == second


def test_an_earlier_version_is_restored_from_the_remote(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("one", "two", "three")
    desk.json("push")
    whole = desk.texts()
    transcript = desk.sessions / SESSION / "transcript.jsonl"
    transcript.write_text(transcript.read_text().splitlines()[0] + "\n")
    desk.json("push")
    laptop.json("pull")
    assert laptop.texts() == ["one"]
    listed = laptop.json("history", SESSION[:6])
    assert [(one["first"], one["present"], one["gone"]) for one in listed["generations"]] == [
        (1, True, False),
        (0, False, False),
    ]
    shown = laptop.run("history", SESSION[:6])
    assert "transcript.jsonl" in shown.out
    restored = laptop.run("restore", SESSION[:6], "--generation", "0", "--quiet", "0")
    assert restored.code == 0, restored.err
    assert laptop.texts() == whole
    undo = next(line for line in restored.err.splitlines() if line.startswith("undo: "))
    back = laptop.run(shlex.join(shlex.split(undo)[3:]))
    assert back.code == 0, back.err
    assert laptop.texts() == ["one"]
    assert laptop.run("restore", SESSION, "--generation", "9", "--quiet", "0").code == 10
    assert laptop.run("restore", SESSION).code == 2
    assert laptop.run("history", "nosuch").code == 10


def test_only_a_project_of_a_folder_that_is_free_can_be_bound(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("work")
    desk.json("push")
    assert laptop.run("project bind", str(laptop.project), "--new").code == 12
    other = laptop.root / "other"
    other.mkdir()
    assert laptop.run("project bind", str(other), "git:github.com/example/shop").code == 12
    assert laptop.run("project bind", str(other), "folder:none").code == 10
    assert laptop.run("project bind", str(other)).code == 2
    assert laptop.run("project bind", str(other), "--new").code == 0
    third = laptop.root / "third"
    third.mkdir()
    assert laptop.run("project bind", str(third), "folder:other").code == 11


def standings(document: Any) -> dict[str, str]:
    return {one["id"]: one["standing"] for one in document["sessions"]}


@pytest.mark.parametrize("place", PLACES)
def test_two_machines_work_on_one_project(
    machines: tuple[Machine, Machine], place: Callable[[], Place]
) -> None:
    desk, laptop = begin(machines, place())
    desk.say("one", "two")
    assert standings(desk.json("status")) == {SESSION: "never"}
    pushed = desk.json("push")
    assert standings(pushed) == {SESSION: "pushed"}
    assert pushed["cost"]["requests"] > 0
    assert pushed["cost"]["bytes_up"] > 0
    assert standings(laptop.json("status")) == {SESSION: "behind"}
    assert standings(laptop.json("pull")) == {SESSION: "pulled"}
    assert laptop.files() == desk.files()
    laptop.say("three")
    assert standings(laptop.json("status")) == {SESSION: "ahead"}
    laptop.json("push")
    assert standings(desk.json("pull", "--quiet", "0")) == {SESSION: "pulled"}
    assert desk.texts() == ["one", "two", "three"]
    status = desk.json("status")
    assert standings(status) == {SESSION: "in_step"}
    assert status["cost"]["requests"] == 1  # one list of heads does for all kinds of sessions
    assert 0 < status["cost"]["bytes_down"] < pushed["cost"]["bytes_up"] * 2

    desk.say("the desk's")
    laptop.say("the laptop's")
    laptop.json("push")
    assert standings(desk.json("push")) == {SESSION: "diverged"}
    [parted] = desk.json("pull", "--quiet", "0")["sessions"]
    assert parted["standing"] == "diverged"
    desk.json("push")
    laptop.json("pull", "--quiet", "0")
    for machine in machines:
        assert machine.names() == sorted([SESSION, parted["sibling"]])
        assert machine.texts() == ["one", "two", "three", "the laptop's"]
        assert machine.texts(parted["sibling"]) == ["one", "two", "three", "the desk's"]
    assert laptop.files() == desk.files()


@pytest.mark.lane("s3")
def test_resolve_keeps_one_version_and_trashes_the_other(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("one")
    desk.json("push")
    laptop.json("pull")
    desk.say("the desk's")
    laptop.say("the laptop's")
    laptop.json("push")
    [parted] = desk.json("pull", "--quiet", "0")["sessions"]
    [pair] = desk.json("resolve")
    assert (pair["id"], pair["sibling"]) == (SESSION, parted["sibling"])
    done = desk.json("resolve", SESSION[:8], "--keep", "mine")
    assert done == {"kept": parted["sibling"], "trashed": SESSION}
    assert desk.names() == [parted["sibling"]]
    assert desk.texts(parted["sibling"]) == ["one", "the desk's"]
    assert list(desk.sessions.glob(f".trash/*/{SESSION}/transcript.jsonl"))
    assert desk.json("resolve") == []
    desk.json("push")
    laptop.json("pull", "--quiet", "0")
    assert laptop.names() == [parted["sibling"]]
    assert list(laptop.sessions.glob(f".trash/*/{SESSION}/transcript.jsonl"))


@pytest.mark.lane("s3")
def test_a_session_that_was_written_to_a_moment_ago_is_held_back(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("one")
    desk.json("push")
    laptop.json("pull")
    laptop.say("two")
    laptop.json("push")
    desk.say()
    assert standings(desk.json("pull")) == {SESSION: "held_back"}
    assert desk.texts() == ["one"]


@pytest.mark.lane("s3")
def test_sessions_of_a_project_that_is_not_here_wait(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("one")
    desk.json("push")
    config = laptop.project / ".git" / "config"
    config.write_text(config.read_text().replace("/shop", "/another"))
    pulled = laptop.json("pull")
    assert standings(pulled) == {SESSION: "held_back"}
    assert "git:github.com/example/shop" in pulled["sessions"][0]["note"]
    assert not laptop.sessions.joinpath(SESSION).exists()


@pytest.mark.lane("s3")
def test_what_is_excluded_stays_here(machines: tuple[Machine, Machine]) -> None:
    desk, _ = begin(machines, of_s3(), "--exclude", "git:github.com/example/*")
    desk.say("one")
    assert desk.json("push")["sessions"] == []


@pytest.mark.lane("s3")
def test_secrets_are_blacked_out_on_the_way_and_stay_here(machines: tuple[Machine, Machine]) -> None:
    desk, laptop = begin(machines, of_s3(), "--redact", "--redact-rule", "house=Villa [A-Z][a-z]+")
    desk.say("password: hunter2hunter2", "We meet at Villa Rosa")
    desk.json("push")
    laptop.json("pull")
    assert laptop.texts() == ["password: [redacted]", "We meet at [redacted]"]
    assert desk.texts() == ["password: hunter2hunter2", "We meet at Villa Rosa"]


@pytest.mark.lane("s3")
def test_what_is_encrypted_is_read_only_with_the_key(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    pytest.importorskip("pyrage", reason="the extra encryption is not installed")
    key = tmp_path / "keys" / "age.txt"
    place = of_s3()
    desk, laptop = begin(machines, place, "--encrypt", str(key))
    assert key.stat().st_mode & 0o777 == 0o600
    desk.say("one")
    desk.json("push")
    laptop.json("pull")
    assert laptop.texts() == ["one"]
    key.unlink()
    refused = laptop.run("pull", "--json")
    assert refused.code == 10
    assert "without it the remote cannot be decrypted" in refused.err


@pytest.mark.lane("s3")
def test_a_machine_that_does_not_encrypt_lays_nothing_between_what_is_encrypted(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    pytest.importorskip("pyrage", reason="the extra encryption is not installed")
    place, (desk, laptop) = of_s3(), machines
    os.environ.update(place.environment)
    words = [*place.words, "--tenant", "ada"]
    desk.json("init", *words, "--encrypt", str(tmp_path / "age.txt"))
    desk.say("one")
    refused = laptop.run("init", *words, "--json")
    assert refused.code != 0
    assert "the remote is encrypted" in refused.err
    assert "--encrypt FILE" in refused.err
    assert not (laptop.root / "config" / "sessionary" / "sync.json").exists()

    settings = desk.root / "config" / "sessionary" / "sync.json"
    as_chosen = settings.read_text()
    settings.write_text(json.dumps({**json.loads(as_chosen), "encrypt": None}))  # a person, by hand
    for command in ("push", "pull", "status", "gc"):
        refused = desk.run(command, "--json")
        assert refused.code != 0, command
        assert "the remote is encrypted" in refused.err + refused.out, command
    settings.write_text(as_chosen)
    assert standings(desk.json("push")) == {SESSION: "pushed"}
    assert desk.json("gc")["heads"] == 1, "nothing else was put there"


@pytest.mark.lane("s3")
def test_a_machine_that_encrypts_does_not_continue_what_is_plain(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    pytest.importorskip("pyrage", reason="the extra encryption is not installed")
    place, (desk, laptop) = of_s3(), machines
    os.environ.update(place.environment)
    words = [*place.words, "--tenant", "ada"]
    desk.json("init", *words)
    desk.say("one")
    desk.json("push")
    refused = laptop.run("init", *words, "--encrypt", str(tmp_path / "age.txt"), "--json")
    assert refused.code != 0
    assert "holds sessions that are not encrypted" in refused.err
    assert standings(desk.json("status")) == {SESSION: "in_step"}


@pytest.mark.lane("s3")
def test_a_pull_where_nothing_is_new_costs_one_request_of_a_process_that_has_just_begun(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with S3Server() as server:
        words = ["s3://sessions/x", "--option", f"endpoint={server.options['endpoint']}"]
        desk, laptop = begin(machines, Place([*words, "--option", "region=us-east-1"], {}))
        for number in range(3):
            desk.say("one", session=f"session-{number}")
        desk.json("push")
        laptop.json("pull")
        server.requests.clear()
        assert set(standings(laptop.json("pull")).values()) == {"in_step"}
        assert len(server.requests) == 1
        desk.say("two", session="session-1")
        desk.json("push")
        server.requests.clear()
        assert laptop.json("pull", "--quiet", "0")["counts"]["pulled"] == 1
        assert sum("/heads/" in path for _, path in server.requests) == 1
        for file in (laptop.root / "state" / "sessionary" / "sync").glob("heads-*"):
            file.write_bytes(b"damaged")
        server.requests.clear()
        assert set(standings(laptop.json("pull")).values()) == {"in_step"}
        assert sum("/heads/" in path for _, path in server.requests) == 3
    assert laptop.texts("session-1") == ["one", "two"]


@pytest.mark.lane("s3")
def test_leftovers_are_counted_and_left(on_s3: tuple[Machine, Machine]) -> None:
    desk, _ = on_s3
    desk.say("one", "two")
    desk.json("push")
    path = desk.sessions / SESSION / "transcript.jsonl"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    desk.json("push")
    found = desk.json("gc")
    assert found["heads"] == 1
    assert (found["blocks"], found["past_blocks"], found["lost_blocks"]) == (2, 1, 0)
    assert found["removed"] == 0
    assert desk.json("gc")["blocks"] == 2
    assert desk.json("gc", "--remove")["removed"] == 0, "all of it is younger than a month"
    reported = desk.run("gc", "--remove", "--days", "1")
    assert "removed 0 blocks" in reported.out
    assert desk.json("gc")["blocks"] == 2
    for days in ("0.5", "1e6", "inf", "nan", "many"):
        assert desk.run("gc", "--remove", "--days", days).code == 2, days


@pytest.mark.lane("postgres")
def test_gc_removes_old_blocks_and_the_next_pull_completes_an_interrupted_one(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sessionary.sync.gc import removal
    from sessionary.sync.remotes.postgres import PostgresRemote
    from tests.servers.postgres import server

    monkeypatch.setattr(PostgresRemote, "settled_after", 0.1)  # nothing else uses this server
    monkeypatch.setattr(removal, "REST", 0.0)
    place = of_postgres()
    desk, laptop = begin(machines, place)
    desk.say("one", "two")
    desk.json("push")
    conninfo, tenant, lost = server().conninfo, place.words[-1], "00000000-00000000-" + 32 * "f"
    remote = PostgresRemote(conninfo, tenant=tenant)
    with psycopg.connect(conninfo, autocommit=True) as raw:
        space, needed = raw.execute(
            "SELECT space, id FROM sessionary.blocks WHERE tenant = %s", [tenant]
        ).fetchone() or ("", "")
        remote.put_block(space, lost, b"left over")
        mine = "WHERE tenant = %s"
        raw.execute(f"UPDATE sessionary.blocks SET put_at = now() - interval '40 days' {mine}", [tenant])
        reported = desk.run("gc", "--remove")
        assert (reported.code, reported.out.splitlines()[-1]) == (0, "✓ removed 1 block (9 B)")
        (copy,) = (desk.root / "state").rglob(f"{lost}.*")
        assert copy.read_bytes() == b"left over"
        found = raw.execute(f"SELECT id, data FROM sessionary.blocks {mine}", [tenant]).fetchall()
        assert [name for name, _ in found] == [needed]
        # As if another block had been removed, and the process killed before it looked again.
        run = copy.parents[1]
        Removed(str(run.parent)).keep(run.name, space, needed, found[0][1])
        (run.parent / "open").write_text(run.name)
        raw.execute(f"DELETE FROM sessionary.blocks {mine}", [tenant])
    remote.close()
    assert laptop.run("pull", "--json").code == 3
    desk.json("pull")
    laptop.json("pull")
    assert laptop.texts() == ["one", "two"]
    assert not (copy.parents[2] / "open").exists()


@pytest.mark.lane("s3")
def test_what_is_printed_for_people(on_s3: tuple[Machine, Machine]) -> None:
    desk, _ = on_s3
    desk.say("one")
    pushed = desk.run("push")
    assert pushed.out.splitlines() == [
        f"  pushed        {SESSION}  git:github.com/example/shop",
        "✓ 1 pushed",
    ]
    assert "requests, " in pushed.err
    assert desk.run("push").out == "✓ 1 in step\n"
    assert desk.run("status", "--all").out.splitlines()[0].split() == [
        "in",
        "step",
        SESSION,
        "git:github.com/example/shop",
    ]


@pytest.mark.lane("s3")
def test_init_keeps_the_choice_and_no_secret(on_s3: tuple[Machine, Machine]) -> None:
    desk, _ = on_s3
    path = desk.root / "config" / "sessionary" / "sync.json"
    settings = load_settings(path)
    assert (settings.tenant, settings.device) == ("ada", "desk")
    assert set(settings.options) == {"endpoint", "region"}
    assert "testing" not in path.read_text()
    again = desk.run("init", "s3://other", "--tenant", "ada")
    assert again.code == 11
    assert "--replace" in again.err
    assert load_settings(path) == settings


@pytest.mark.lane("s3rver")
def test_init_refuses_a_store_that_ignores_conditions(machines: tuple[Machine, Machine]) -> None:
    server = objects.s3rver()
    os.environ.update({"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER"})
    words = [objects.s3_address(), "--tenant", "ada", "--option", f"endpoint={server['endpoint']}"]
    refused = machines[0].run("init", *words, "--option", "region=us-east-1")
    assert refused.code == 18
    assert "cannot hold sessions" in refused.err
    assert not (machines[0].root / "config").exists()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://ada:hunter2@db/sessions", "with a secret in it"),
        ("postgresql://db/sessions?password=hunter2", "with a secret in it"),
        ("https://a.documents.azure.com/d/c?AccountKey=hunter2", "must not contain ?"),
        ("s3://bucket/prefix?access_key=hunter2", "must not contain ?"),
        ("mysql://db/sessions", "not an address of a remote"),
        ("nonsense", "not an address of a remote"),
        ("https://a.documents.azure.com/only-a-database", "a database and a container"),
    ],
)
def test_init_refuses_an_address(machines: tuple[Machine, Machine], address: str, words: str) -> None:
    refused = machines[0].run("init", address, "--tenant", "ada")
    assert refused.code == 12
    assert words in refused.err
    assert "hunter2" not in refused.err


@pytest.mark.parametrize(
    "name",
    ["secret_access_key", "access_key", "azure_storage_master_key", "service_account_key", "sas_token"],
)
def test_init_refuses_to_keep_a_secret_as_an_option(name: str, machines: tuple[Machine, Machine]) -> None:
    refused = machines[0].run("init", "s3://b", "--tenant", "ada", "--option", f"{name}=hunter2")
    assert refused.code == 2
    assert "hunter2" not in refused.err


@pytest.mark.parametrize(
    ("address", "name"),
    [("s3://b", "tenant"), ("s3://b", "client_options"), ("postgresql://db/x", "region")],
)
def test_init_refuses_an_option_that_would_not_be_heeded(
    address: str, name: str, machines: tuple[Machine, Machine]
) -> None:
    refused = machines[0].run("init", address, "--tenant", "ada", "--option", f"{name}=eve")
    assert (refused.code, f"does not support the option {name}" in refused.err) == (12, True)


def test_nothing_is_carried_before_something_was_set_up(machines: tuple[Machine, Machine]) -> None:
    for command in ("push", "pull", "status", "watch", "resolve", "gc"):
        refused = machines[0].run(command)
        assert refused.code == 10
        assert "sync init" in refused.err


def test_damaged_settings_are_reported_with_their_place(machines: tuple[Machine, Machine]) -> None:
    desk = machines[0]
    path = desk.root / "config" / "sessionary" / "sync.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"remote": "s3://b", "tenant": "ada", "device": "x", "colour": "red"}')
    refused = desk.run("push")
    assert refused.code == 12
    assert str(path) in refused.err
    assert "colour" in refused.err


@pytest.mark.lane("s3")
@pytest.mark.lane("sigkill")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_watch_pushes_and_pulls_until_it_is_stopped(on_s3: tuple[Machine, Machine], number: int) -> None:
    desk, laptop = on_s3
    laptop.say("from there", session="another")
    laptop.json("push")
    words = ["sync", "watch", "--home", str(desk.home), "--root", str(desk.project), "--jsonl"]
    place = {"XDG_CONFIG_HOME": str(desk.root / "config"), "XDG_STATE_HOME": str(desk.root / "state")}
    child = subprocess.Popen(
        [Path(sys.executable).with_name("sessionary"), *words, "--settle", "0.1", "--interval", "1"],
        env=os.environ | place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert standings(json.loads(child.stdout.readline())) == {"another": "pulled"}
        desk.say("from here")
        sent = json.loads(child.stdout.readline())
        assert standings(sent)[SESSION] == "pushed"
        child.send_signal(number)
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0, err
    assert "Traceback" not in err + out
    laptop.json("pull")
    assert laptop.texts() == ["from here"]


def test_the_demo_keeps_its_promises(machines: tuple[Machine, Machine]) -> None:
    shown = machines[0].run("demo")
    assert shown.code == 0
    assert "A push is killed 4 times" in shown.out
    assert "No line is lost, none is doubled." in shown.out


def test_the_demo_needs_no_database(tmp_path: Path) -> None:
    without = "import sys; sys.modules['psycopg'] = None"
    code = f"{without}; from sessionary.cli import main; sys.exit(main(['sync', 'demo']))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Two machines, with a folder between them")
    assert "No line is lost, none is doubled." in done.stdout


@pytest.mark.lane("s3")
def test_what_is_in_the_project_is_carried_into_the_other_clone(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    feature = FeatureStore(desk.project).create(
        "sign-in-2025-01-09", name="Sign in", description="With OAuth"
    )
    desk.say("one")
    pushed = standings(desk.json("push"))
    assert pushed[SESSION] == pushed[feature] == "pushed"
    pulled = desk.json("status")["counts"]
    assert set(pulled) == {"in_step"}
    laptop.json("pull")
    state = Path(".ai-session", feature, "state.yaml")
    assert (laptop.project / state).read_bytes() == (desk.project / state).read_bytes()
    assert laptop.json("pull")["counts"] == laptop.json("status")["counts"]


@pytest.mark.lane("s3")
def test_all_layouts_of_one_command_share_one_list_of_heads(on_s3: tuple[Machine, Machine]) -> None:
    desk, _ = on_s3
    for n in range(30):
        desk.say("one", session=f"{n:08}-0000-4000-8000-000000000000")
    assert desk.json("push")["counts"] == {"pushed": 30}
    again = desk.json("push")
    assert (again["counts"], again["cost"]["requests"]) == ({"in_step": 30}, 1)
    pulled = desk.json("pull")
    assert pulled["counts"] == {"in_step": 30}
    assert pulled["cost"]["requests"] == 1
    assert desk.json("status")["cost"]["requests"] == 1


# -- without `sync init`: Cosmos DB as programs use it


@pytest.fixture
def cosmos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CosmosConfig]:
    """A container on a double; the person here has a home of their own."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in ("ENDPOINT", "DATABASE", "CONTAINER", "KEY", "AUTH_METHOD"):
        monkeypatch.delenv(f"AMPLIFIER_COSMOS_{name}", raising=False)
    monkeypatch.delenv("AMPLIFIER_ENABLE_SYNC", raising=False)
    with CosmosDouble() as double:
        config = CosmosConfig(double.endpoint, "amplifier-db", "sessionary", key=double.key)
        first = CosmosRemote(config, tenant="ada")
        first.prepare()
        first.close()
        yield config


def file_of(tmp_path: Path, mode: str, config: CosmosConfig) -> None:
    """The settings file of the agent."""
    place = tmp_path / "person" / ".amplifier"
    place.mkdir(parents=True, exist_ok=True)
    text = f"session_storage:\n  mode: {mode}\n  cosmos:\n    endpoint: {config.endpoint}\n    key: {config.key}\n"
    (place / "settings.yaml").write_text(text)


@pytest.mark.parametrize("by", ["environment", "file"])
def test_the_commands_use_the_database_of_the_programs(
    machines: tuple[Machine, Machine],
    cosmos: CosmosConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    if by == "environment":
        monkeypatch.setenv("AMPLIFIER_COSMOS_ENDPOINT", cosmos.endpoint)
    else:
        file_of(tmp_path, "hybrid", cosmos)
    desk, laptop = machines
    desk.say("hello")
    pushed = desk.json("push")
    assert standings(pushed) == {SESSION: "pushed"}
    assert (pushed["remote"], pushed["tenant"]) == (cosmos.address, "ada")
    assert standings(laptop.json("pull")) == {SESSION: "pulled"}
    assert laptop.files() == desk.files()
    assert laptop.run("gc").code == 0
    with HybridSessionStore(desk.sessions, cosmos, state_dir=tmp_path / "other") as store:
        assert asyncio.run(store.sync()).unchanged == 1, "what the commands sent is what programs see"


def test_init_of_that_database_makes_it_and_finds_the_key_of_the_file(
    machines: tuple[Machine, Machine], cosmos: CosmosConfig, tmp_path: Path
) -> None:
    fresh = CosmosConfig(cosmos.endpoint, cosmos.database, "made", key=cosmos.key)
    file_of(tmp_path, "hybrid", fresh)
    with open(tmp_path / "person" / ".amplifier" / "settings.yaml", "a") as file:
        file.write("    container: made\n")
    desk, laptop = machines
    desk.say("hello")
    assert desk.run("push").code == 17, "nothing makes a container but init"
    desk.json("init", fresh.address, "--tenant", "ada")
    assert standings(desk.json("push")) == {SESSION: "pushed"}
    assert standings(laptop.json("pull")) == {SESSION: "pulled"}


def test_the_remote_of_sync_init_has_precedence(
    machines: tuple[Machine, Machine], cosmos: CosmosConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_of(tmp_path, "hybrid", cosmos)
    desk, laptop = machines
    monkeypatch.setenv("SESSIONARY_COSMOS_KEY", str(cosmos.key))
    desk.json("init", cosmos.address + "-2", "--tenant", "ada")
    desk.say("hello")
    assert desk.json("push")["remote"] == cosmos.address + "-2"
    assert standings(laptop.json("pull")) == {}


@pytest.mark.parametrize(("mode", "code"), [("off", 10), ("Local", 10), ("hybird", 12)])
def test_the_commands_do_not_use_a_database_that_is_turned_off(
    machines: tuple[Machine, Machine], cosmos: CosmosConfig, tmp_path: Path, mode: str, code: int
) -> None:
    file_of(tmp_path, mode, cosmos)
    desk, _ = machines
    desk.say("hello")
    result = desk.run("push")
    assert result.code == code, result.err
    assert "settings.yaml" in result.err


def test_a_settings_file_that_was_named_must_be_there(
    machines: tuple[Machine, Machine], cosmos: CosmosConfig, tmp_path: Path
) -> None:
    file_of(tmp_path, "hybrid", cosmos)
    result = machines[0].run("push", "--settings", str(tmp_path / "typo.json"))
    assert result.code == 10
    assert "typo.json" in result.err


# -- what went wrong, and what leads out of it


def test_a_kind_of_session_that_this_version_does_not_know_is_reported(
    on_s3: tuple[Machine, Machine],
) -> None:
    desk, _ = on_s3
    desk.say("hello")
    desk.run("push")
    settings = load_settings(desk.root / "config" / "sessionary" / "sync.json")
    remote = open_remote(settings.remote, settings.tenant, options=settings.options)
    data = {"v": 1, "kind": "zed", "project": "folder:x", "session": "one", "space": "0" * 40}
    data |= {"gen": 0, "count": 1, "device": "d", "at": "2025-01-31T12:00:00Z"}
    remote.swap_head(head_name("zed", "folder:x", "one"), json.dumps(data).encode(), None)
    remote.close()
    for command in ("pull", "status"):
        document = desk.json(command)
        (stranger,) = [one for one in document["sessions"] if one["kind"] == "zed"]
        assert (stranger["id"], stranger["standing"]) == ("one", "held_back")
        assert "sessions of the kind 'zed' need a newer version" in stranger["note"]
        assert document["cost"]["requests"] > 0
    assert "newer version of Sessionary" in desk.run("pull").out


ASKING = [
    "push",
    "pull",
    "status",
    "check",
    "gc",
    "gc --remove",
    f"resolve {SESSION} --keep mine",
    f"history {SESSION}",
    f"restore {SESSION} --generation 0 --quiet 0",
]


def refusing(kind: str) -> tuple[Any, Callable[[Any], str], str]:
    """A server that knows no password, its address, and what the hint must name."""
    if kind == "postgres":
        return RefusingPostgres(), lambda server: f"postgresql://ada@127.0.0.1:{server.port}/db", "PGPASSWORD"
    if kind == "s3":
        return RefusingHttp(403, "InvalidAccessKeyId"), lambda server: "s3://bucket", "AWS_ACCESS_KEY_ID"
    address = "cosmos+http://127.0.0.1:{}/db/box"
    return (
        RefusingHttp(401, "Unauthorized"),
        lambda server: address.format(server.port),
        "SESSIONARY_COSMOS_KEY",
    )


@pytest.mark.parametrize("kind", ["postgres", "s3", "cosmos"])
def test_a_wrong_password_has_one_exit_code_and_one_hint_in_every_command(
    kind: str, on_s3: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, _ = on_s3
    desk.say("hello")
    desk.json("push")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    monkeypatch.setenv("SESSIONARY_COSMOS_KEY", "d3Jvbmc=")
    server, address, remedy = refusing(kind)
    settings = desk.root / "config" / "sessionary" / "sync.json"
    with server:
        reported = json.loads(settings.read_text()) | {"remote": address(server)}
        reported["options"] = {"endpoint": server.endpoint, "region": "us-east-1"} if kind == "s3" else {}
        settings.write_text(json.dumps(reported))
        found = {command: desk.run(command) for command in ASKING}
        init = desk.run(
            "init", reported["remote"], "--tenant", "ada", "--replace", *option_words(reported["options"])
        )
    for command, result in {**found, "init": init}.items():
        assert result.code == RemoteError.exit_code, (command, result)
        assert remedy in result.err, (command, result)
        assert result.out == "", (command, result)


def option_words(options: dict[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in ("--option", f"{name}={value}")]


@pytest.mark.lane("postgres")
def test_init_refuses_a_server_that_can_only_be_read(machines: tuple[Machine, Machine]) -> None:
    desk, laptop = begin(machines, of_postgres())
    path = desk.root / "config" / "sessionary" / "sync.json"
    address = json.loads(path.read_text())["remote"]
    reading = f"{address}&options={quote('-c default_transaction_read_only=on')}"
    refused = laptop.run("init", reading, "--tenant", "ada", "--replace")
    assert refused.code == 17
    assert "read-only" in refused.err
    assert "primary" in refused.err
    assert json.loads((laptop.root / "config" / "sessionary" / "sync.json").read_text())["remote"] == address


def test_damage_is_held_back_reported_on_both_machines_and_settled(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("one", "two", "three")
    desk.json("push")
    laptop.json("pull")
    transcript = desk.sessions / SESSION / "transcript.jsonl"
    good = transcript.read_bytes()
    transcript.with_name("transcript.jsonl.backup").write_bytes(good)
    os.truncate(transcript, 0)
    for machine, where, first in ((desk, "here", "push"), (laptop, "elsewhere", "pull")):
        for command in (first, "push", "pull", "status"):
            reported = machine.run(command, "--json", *(["--quiet", "0"] if command == "pull" else []))
            (session,) = reported.json["sessions"]
            assert (reported.code, session["standing"], reported.json["counts"]) == (
                3,
                "held_back",
                {"held_back": 1},
            )
            (held,) = session["held"]
            assert (held["file"], held["where"]) == ("transcript.jsonl", where)
            assert held["why"] in session["note"]
            assert session["error"]["hint"]
    assert laptop.texts() == ["one", "two", "three"]
    said = " ".join(desk.run("status").out.split())
    assert "it is empty; it had" in said
    assert "in step" not in said
    commands = [line for line in desk.run("push").out.splitlines() if "sessionary " in line]
    assert [line.split(":")[0].strip() for line in commands] == [
        "to repair it",
        "to keep theirs",
        "to keep mine",
    ]
    (waiting,) = desk.json("resolve")
    assert (waiting["what"], waiting["file"]) == ("held_back", "transcript.jsonl")
    assert [way["keeps"] for way in waiting["commands"]] == ["theirs", "mine"]
    theirs = shlex.split(waiting["commands"][0]["command"])
    assert main([*theirs[1:]]) == 0
    desk._read()
    assert transcript.read_bytes() == good
    laptop.json("pull", "--quiet", "0")
    for machine in on_s3:
        assert machine.json("status")["counts"] == {"in_step": 1}


def test_a_repair_that_is_printed_settles_what_is_held_back(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("one", "two", "three")
    desk.json("push")
    laptop.json("pull")
    transcript = desk.sessions / SESSION / "transcript.jsonl"
    data = transcript.read_bytes()
    transcript.write_bytes(data[:5] + b"\xff" + data[6:])
    (repair,) = [line for line in desk.run("push").out.splitlines() if "to repair it" in line]
    assert main(shlex.split(repair.partition(": ")[2])[1:]) == 0
    desk._read()
    pushed = desk.run("push")
    assert pushed.code == 0
    assert "rewound" in " ".join(pushed.out.split())
    pulled = laptop.run("pull", "--quiet", "0")
    undo = next(line for line in pulled.out.splitlines() if line.strip().startswith("undo: "))
    assert main([*shlex.split(undo.partition(": ")[2])[1:], "--quiet", "0"]) == 0
    desk._read()
    assert laptop.texts() == ["one", "two", "three"]


@pytest.mark.lane("s3")
def test_what_a_store_has_lost_is_found_and_put_again(on_s3: tuple[Machine, Machine]) -> None:
    desk, laptop = on_s3
    desk.say("hello")
    desk.json("push")
    found = desk.json("check")
    assert (found["counts"], found["blocks"], len(found["device"])) == ({"whole": 1}, 1, 8)
    assert desk.run("check").code == 0
    settings = load_settings(desk.root / "config" / "sessionary" / "sync.json")
    remote = open_remote(settings.remote, settings.tenant, options=settings.options)
    (head,) = heads_of(remote)
    (block,) = stats_of(remote, decode(head.name, head.data).space)
    assert remote.delete_block(decode(head.name, head.data).space, block.id, block.version)
    remote.close()
    assert "not on the remote yet" in laptop.run("pull").out
    counted = desk.run("gc")
    assert (counted.code, "1 block missing" in counted.out) == (3, True)
    reported = desk.run("check")
    assert reported.code == 13
    assert "missing: block 1 of 1 of transcript.jsonl" in reported.out
    assert "sessionary sync check --repair" in reported.out + reported.err
    (one,) = json.loads(desk.run("check", "--json").out)["sessions"]
    assert (one["state"], [fault["what"] for fault in one["faults"]]) == ("damaged", ["missing"])
    healed = desk.run("check", "--repair")
    assert (healed.code, "uploaded again" in healed.out) == (0, True)
    assert (desk.run("check").code, desk.run("gc").code) == (0, 0)
    assert standings(laptop.json("pull")) == {SESSION: "pulled"}


@pytest.mark.lane("s3")
def test_a_link_out_of_the_store_ends_with_a_code_of_its_own(on_s3: tuple[Machine, Machine]) -> None:
    desk, _ = on_s3
    desk.say("hello")
    desk.json("push")
    folder = desk.sessions / SESSION
    folder.rename(desk.root / "elsewhere")
    folder.symlink_to(desk.root / "elsewhere")
    for command in ("push", "pull", "status", "check"):
        result = desk.run(f"{command} --json")
        assert result.code == 3, command
        (one,) = result.json["sessions"]
        assert one.get("standing", "held_back") == "held_back"
        assert one["error"]["details"] == {"link": str(folder), "leads_to": str(desk.root / "elsewhere")}
        assert result.json["cost"]["requests"] == 1
    assert desk.run(f"history {SESSION}").code == 0, "it reads the remote only"
    assert desk.run(f"restore {SESSION} --generation 0 --quiet 0").code == 18


@pytest.mark.lane("s3")
def test_what_is_said_after_trash_is_true_though_the_store_was_emptied(
    on_s3: tuple[Machine, Machine],
) -> None:
    desk, laptop = on_s3
    for session in ("a", "b"):
        desk.say("hello", session=session)
    desk.json("push")
    laptop.json("pull")
    empty(desk)
    assert desk.json("status")["counts"] == {"never": 2}
    assert main(["trash", "--home", str(desk.home), "a"]) == 0
    desk._read()
    reported = desk.run("push")
    assert reported.code == 0
    assert [
        line.split()[:2] for line in reported.out.splitlines() if line.startswith("  ") and line[2] != " "
    ] == [
        ["pushed", "b"],
        ["trashed", "a"],
    ]
    assert "brings it back" not in reported.out
    assert standings(laptop.json("pull", "--quiet", "0")) == {"a": "trashed", "b": "in_step"}
    desk.json("pull")
    assert (desk.names(), laptop.names()) == (["b"], ["b"])


def empty(machine: Machine) -> None:
    """Delete every object below the address of a machine's remote."""
    import obstore

    settings = load_settings(machine.root / "config" / "sessionary" / "sync.json")
    store = open_store(settings.remote, **settings.options)
    for page in obstore.list(store):
        obstore.delete(store, [one["path"] for one in page])
