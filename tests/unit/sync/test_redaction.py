"""Secrets are blacked out before they are sent, and the local text is never replaced by the redacted copy."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.errors import Invalid
from sessionary.redaction import COMMON, MARK, Redaction
from sessionary.sync.engine import Engine
from sessionary.sync.heads import decode
from sessionary.sync.remote import blocks_of, heads_of
from sessionary.sync.report import SyncStatus
from sessionary.sync.rules import Rules
from tests.support.faults import Fault
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import EPOCH, FEATURE, WORK, PolicyWorld
from tests.support.sync_world import World, attempt

KEY = "sk-" + "a1B2" * 8
SAMPLES = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "AWS access key": "AKIA" + "ABCD" * 4,
    "GitHub token": "ghp_" + "a1" * 18,
    "GitLab token": "glpat-" + "x" * 20,
    "Slack token": "xoxb-1234567890-abc",
    "key of a model provider": KEY,
    "Google API key": "AIza" + "x" * 35,
    "Stripe key": "sk_live_" + "a" * 16,
    "npm token": "npm_" + "a" * 36,
    "JSON web token": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2Q",
    "bearer token": "Bearer abcdefghijklmnop",
    "account key": "AccountKey=" + "A" * 24,
    "password in an address": "postgres://me:hunter22@db/x",
    "assigned secret": "PASSWORD=hunter22",
    "Slack webhook": "https://hooks.slack.com/services/T0001/B0001/" + "x" * 24,
    "Google token": "ya29." + "a" * 24,
    "PyPI token": "pypi-" + "a" * 60,
    "authorization header": "Authorization: Basic bWU6cGFzcw==",
    "cookie": "Cookie: session=abcdef12",
    "secret in a query": "https://x.example/?sig=abcdef12",
    "environment variable": 'DB_PASS="two words"',
}


@pytest.mark.parametrize("name", COMMON)
def test_every_common_secret_is_found_and_found_once(name: str) -> None:
    black = Redaction({"one": COMMON[name]}, common=False)
    text = f"before {SAMPLES[name]} behind"
    once = black.text(text)
    assert MARK in once
    assert once.startswith("before ")
    assert once.endswith(" behind")
    assert Redaction().text(once) == once


@pytest.mark.parametrize(
    "text", ["the password is needed", "sk-learn and a task-based thing", "key: value", "Bearer of news"]
)
def test_plain_words_stay(text: str) -> None:
    assert Redaction().text(text) == text


def test_a_line_stays_json_and_one_without_secrets_keeps_its_bytes() -> None:
    plain = b'{"a":  "\\u00e9 nothing", "n": 1e3}'
    assert Redaction().line(plain) == plain
    black = Redaction().line(json.dumps({"text": f'say "{KEY}"', "password": "hunter22", "n": 1}).encode())
    assert json.loads(black) == {"text": f'say "{MARK}"', "password": MARK, "n": 1}


def test_a_secret_that_is_spelt_with_escapes_is_found() -> None:
    spelt = '{"t": "' + "".join(f"\\u{ord(char):04x}" for char in KEY) + '"}'
    assert json.loads(Redaction().line(spelt.encode())) == {"t": MARK}


def test_a_key_of_many_lines_is_one_secret_within_json_and_yaml() -> None:
    pem = SAMPLES["private key"]
    assert json.loads(Redaction().line(json.dumps({"k": pem}).encode())) == {"k": MARK}
    assert Redaction().document("s.yaml", f'key: "{KEY}"\n'.encode()) == f'key: "{MARK}"\n'.encode()


def test_a_file_that_would_break_is_refused_and_not_sent() -> None:
    broken = b'a: "-----BEGIN X PRIVATE KEY-----\n  abc"\nb: 1\n'
    with pytest.raises(Invalid, match=r"s\.yaml"):
        Redaction().document("s.yaml", broken)


@pytest.mark.parametrize("rule", ["(", ".*", r"\[red"])
def test_a_rule_that_cannot_work_is_refused(rule: str) -> None:
    with pytest.raises(Invalid):
        Redaction({"mine": rule})


words = st.sampled_from(["x", KEY, "password: hunter22", "a\nb", '"', "é", MARK, *SAMPLES.values()])
values = st.recursive(
    words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner)
)


@given(values)
def test_what_is_black_is_not_found_again(value: Any) -> None:
    black = Redaction().line(json.dumps({"v": value}).encode())
    assert Redaction().line(black) == black
    assert KEY.encode() not in black


# -- through the engine


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


def redacting(tmp_path: Path, server: MemoryServer) -> World:
    world = World(tmp_path, server.remote)
    for device in world.devices:
        device.rules = Rules(redact=Redaction())
    return world


def reported(world: World, at: int, verb: str) -> Any:
    return getattr(world.devices[at].engine(world.remote()), verb)()


def text_of(world: World, at: int) -> str:
    return (world.devices[at].sessions / "one" / "transcript.jsonl").read_text()


def test_the_remote_has_exactly_the_black_text(tmp_path: Path, server: MemoryServer) -> None:
    world = redacting(tmp_path, server)
    world.devices[0].write("one", [f"my key is {KEY}", "and no more"])
    reported(world, 0, "push")
    reported(world, 1, "pull")
    assert text_of(world, 1) == "".join(
        line.decode() + "\n" for line in map(Redaction().line, text_of(world, 0).encode().splitlines())
    )
    assert KEY in text_of(world, 0)
    (record,) = heads_of(world.remote())
    space = decode(*record[:2]).space
    stored = record.data + b"".join(block.data for block in blocks_of(world.remote(), space, "0", "g"))
    assert KEY.encode() not in stored
    assert reported(world, 0, "push").of(SyncStatus.IN_STEP)


def test_transcript_from_elsewhere_are_added_to_a_file_that_has_more(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = redacting(tmp_path, server)
    a, b = world.devices
    a.write("one", [f"my key is {KEY}"])
    reported(world, 0, "push")
    reported(world, 1, "pull")
    b.write("one", ["go on"])
    reported(world, 1, "push")
    (outcome,) = reported(world, 0, "pull").outcomes
    assert outcome.standing is SyncStatus.PULLED
    assert KEY in a.lines("one")[0]
    assert json.loads(a.lines("one")[1])["content"] == "go on"
    for _ in range(2):
        for at in (0, 1):
            reported(world, at, "push")
            reported(world, at, "pull")
    assert reported(world, 0, "push").of(SyncStatus.IN_STEP)
    assert reported(world, 1, "push").of(SyncStatus.IN_STEP)
    assert (len(a.lines("one")), len(b.lines("one"))) == (2, 2)
    assert b.names() == a.names() == ["one"]


def test_a_pull_into_a_file_that_has_more_can_be_cut_off_anywhere(tmp_path: Path) -> None:
    for n in range(1, 200):
        server = MemoryServer()
        world = redacting(tmp_path / str(n), server)
        a, b = world.devices
        a.write("one", [f"my key is {KEY}"])
        reported(world, 0, "push")
        reported(world, 1, "pull")
        b.write("one", ["go on"])
        reported(world, 1, "push")
        died = not attempt(a, world.remote(), Engine.pull, Fault("any", n, "kill"))
        reported(world, 0, "pull")
        assert [json.loads(line)["content"] for line in a.lines("one")] == [f"my key is {KEY}", "go on"]
        reported(world, 0, "push")
        reported(world, 1, "pull")
        assert (a.names(), b.names(), len(b.lines("one"))) == (["one"], ["one"], 2)
        if not died:
            assert n > 20
            return
    raise AssertionError("the pull never ends")


def test_a_document_gets_what_is_new_and_keeps_its_secrets(tmp_path: Path, server: MemoryServer) -> None:
    world = redacting(tmp_path, server)
    a, b = world.devices
    a.write("one", ["hello"])
    a.describe("one", title=f"about {KEY}")
    reported(world, 0, "push")
    reported(world, 1, "pull")
    b.write("one", ["more"])
    reported(world, 1, "push")
    reported(world, 0, "pull")
    found = json.loads((a.sessions / "one" / "metadata.json").read_text())
    assert (found["name"], found["turn_count"]) == (f"about {KEY}", 2)


def test_what_would_replace_a_secret_is_held_back(tmp_path: Path, server: MemoryServer) -> None:
    world = redacting(tmp_path, server)
    a, b = world.devices
    a.write("one", [f"my key is {KEY}", "second"])
    reported(world, 0, "push")
    reported(world, 1, "pull")
    b.rewind("one", 0)
    b.write("one", ["another beginning"])
    reported(world, 1, "push")
    before = text_of(world, 0)
    (outcome,) = reported(world, 0, "pull").outcomes
    assert outcome.standing is SyncStatus.HELD_BACK
    assert text_of(world, 0) == before


def test_a_device_without_rules_does_not_lose_its_text_to_the_black_one(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = World(tmp_path, server.remote)
    a, b = world.devices
    a.write("one", [f"my key is {KEY}"])
    reported(world, 0, "push")
    reported(world, 1, "pull")
    a.rules = Rules(redact=Redaction())
    reported(world, 0, "push")
    (outcome,) = reported(world, 1, "pull").outcomes
    assert outcome.standing is SyncStatus.HELD_BACK
    assert KEY in text_of(world, 1)
    assert "the same rules" in (outcome.error.hint if outcome.error else "")
    b.rules = a.rules
    assert reported(world, 1, "pull").of(SyncStatus.IN_STEP)
    assert KEY in text_of(world, 1)


def test_messages_are_blacked_out_and_stay_as_they_are_here(tmp_path: Path, server: MemoryServer) -> None:
    world = PolicyWorld(tmp_path, server.remote, kinds=(WORK,))
    a, b = world.devices
    a.rules = b.rules = Rules(redact=Redaction())
    a.begin("one")
    path = a.work_folder("one") / "breadcrumbs" / "0" / "20250131_120000_000000.json"
    path.write_text(json.dumps({"breadcrumb_id": "x", "prompt": KEY}))
    world.sync(a)
    world.sync(b)
    world.drop(b, "one", "20250131_110000")
    world.sync(b)
    world.sync(a)
    assert json.loads(path.read_text())["prompt"] == KEY
    there = b.work_folder("one") / "breadcrumbs" / "0" / path.name
    assert json.loads(there.read_text())["prompt"] == MARK
    assert sorted(a.crumbs("one")) == sorted(b.crumbs("one")) == ["word1", "x"]
    assert all(report.of(SyncStatus.IN_STEP) for device in (a, b) for report in world.sync(device))


def test_histories_of_both_sides_become_one_and_keep_their_secrets(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = PolicyWorld(tmp_path, server.remote, kinds=(FEATURE,))
    a, b = world.devices
    a.rules = b.rules = Rules(redact=Redaction())
    a.plan("f-2025-01-31")
    a.log("f-2025-01-31", f"with {KEY}", EPOCH)
    world.sync(a)
    world.sync(b)
    a.log("f-2025-01-31", f"again {KEY}", EPOCH + timedelta(seconds=2))
    a.log("f-2025-01-31", f"again {KEY}", EPOCH + timedelta(seconds=2))
    b.log("f-2025-01-31", "between", EPOCH + timedelta(seconds=1))
    world.sync(b)
    world.sync(a)
    world.sync(b)
    reported = [[json.loads(line)["command"] for line in device.history("f-2025-01-31")] for device in (a, b)]
    assert reported[0] == [f"with {KEY}", "between", f"again {KEY}", f"again {KEY}"]
    assert reported[1] == [f"with {MARK}", "between", f"again {MARK}", f"again {MARK}"]
    assert all(report.of(SyncStatus.IN_STEP) for device in (a, b) for report in world.sync(device))


def test_documents_of_both_sides_become_one_and_keep_their_secrets(
    tmp_path: Path, server: MemoryServer
) -> None:
    world = PolicyWorld(tmp_path, server.remote, kinds=(WORK,))
    a, b = world.devices
    a.rules = b.rules = Rules(redact=Redaction())
    a.begin("one")
    a.tell("one", purpose=f"about {KEY}")
    world.sync(a)
    world.sync(b)
    a.tell("one", EPOCH + timedelta(seconds=1), related_entity={"name": "x"})
    b.tell("one", EPOCH + timedelta(seconds=2), status="paused")
    world.sync(b)
    world.sync(a)
    world.sync(b)
    found = [json.loads((device.work / "one" / "session.json").read_text()) for device in (a, b)]
    assert [(one["status"], one["related_entity"]) for one in found] == [("paused", {"name": "x"})] * 2
    assert [one["purpose"] for one in found] == [f"about {KEY}", f"about {MARK}"]
