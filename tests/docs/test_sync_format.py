"""The page on the format of sync is enough to read a remote: with nothing but hashes, JSON and zstandard."""

import base64
import hashlib
import json
import re
from pathlib import Path

import zstandard

from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.redaction import MARK
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import KINDS, PolicyWorld, recipient

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats" / "sync.md").read_text("utf-8")
EXAMPLE = PAGE.split("## An example to the byte")[1]
FILES = re.findall(r"```text\n(.*?)```", EXAMPLE, re.DOTALL)[0]
HEAD = re.findall(r"```json\n(.*?)```", EXAMPLE, re.DOTALL)[0].strip()
BLOCKS = dict(re.findall(r"^([0-9a-f]{8}-[0-9]{8}-[0-9a-f]{32})\n(\S+)$", EXAMPLE, re.MULTILINE))


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def unfolded(name: str, stored: bytes) -> bytes:
    """The bytes of the only block of a part, by the words of the page."""
    line, _, frame = stored.partition(b"\n")
    header = json.loads(line)
    raw = zstandard.ZstdDecompressor().decompress(frame)
    start = sha(b"sessionary chain 1")
    chain = sha(start + sha(raw)).hex()
    key = sha(name.encode()).hex()[:8]
    assert header == {"v": 1, "prev": start.hex(), "raw": len(raw), "back": 0}
    assert f"{key}-00000000-{chain[:32]}" in BLOCKS
    return raw


def example_files() -> dict[str, bytes]:
    found = dict(line.split(maxsplit=1) for line in FILES.strip().splitlines())
    return {name: text.encode() + (b"\n" if name == "log.jsonl" else b"") for name, text in found.items()}


def test_the_example_can_be_read_by_the_words_of_the_page() -> None:
    head, files = json.loads(HEAD), example_files()
    place = b"\0".join((head["kind"].encode(), b"/" + head["project"].encode(), head["session"].encode()))
    assert sha(place).hex()[:40] == head["space"]
    assert f"`{head['space']}`" in EXAMPLE
    parts = {part["name"]: part for part in head["parts"]}
    blocks = [base64.b64decode(text) for text in BLOCKS.values()]
    bundle, log = (
        unfolded(name, data) for name, data in zip(("bundle.jsonl", "log.jsonl"), blocks, strict=True)
    )
    document = zstandard.ZstdDecompressor().decompress(base64.b64decode(parts["session.json"]["data"]))
    assert (document, log) == (files["session.json"], files["log.jsonl"])
    reported = json.loads(bundle)
    assert reported["text"].encode() == files[reported["name"]]
    for name, raw in (("bundle.jsonl", bundle), ("log.jsonl", log), ("session.json", document)):
        chain = sha(sha(b"sessionary chain 1") + sha(raw)).hex()
        assert (parts[name]["chain"], parts[name]["size"]) == (chain, len(raw))
        assert chain in EXAMPLE
    assert sha(log).hex() in EXAMPLE
    assert bundle.decode().strip() in EXAMPLE


def test_a_device_takes_the_example_as_it_stands(tmp_path: Path) -> None:
    server = MemoryServer()
    remote, head = server.remote(), json.loads(HEAD)
    for block, text in BLOCKS.items():
        remote.put_block(head["space"], block, base64.b64decode(text))
    assert remote.swap_head(head["space"], HEAD.encode(), None)
    (device,) = PolicyWorld(tmp_path, server.remote, 1, kinds=("work",)).devices
    engine = device.engine("work", remote)
    engine.projects.identity = lambda ref: head["project"]  # type: ignore[method-assign]
    engine.pull()
    found = {name: (device.work / "one" / name).read_bytes() for name in example_files()}
    assert found == example_files()
    assert (device.work / "one" / ".log.jsonl.owner").exists()


def layouts(root: Path) -> dict[str, SyncLayout]:
    return {"amplifier": AmplifierSyncLayout(root), **{kind: recipient(kind, root) for kind in KINDS}}


def test_the_table_of_policies_is_that_of_the_code(tmp_path: Path) -> None:
    table = PAGE.split("| layout | part | policy |")[1].split("\n\n")[0]
    kind, seen = "", set()
    for row in table.strip().splitlines()[1:]:
        first, names, policy = (cell.strip() for cell in row.strip("|").split("|", 2))
        kind = first.strip("`") or kind
        for name in re.findall(r"`([\w.<>/-]+\.(?:jsonl?|yaml|md))`", names):
            if name == "bundle.jsonl":
                continue
            concrete = name.replace("<consumer>", "audit").replace("<depth>", "0").replace("<name>", "x")
            rule = layouts(tmp_path)[kind].rule(concrete)
            word = re.match(r"[a-z]+", policy)
            assert word is not None
            assert rule.policy.value == word[0], name
            for text in (rule.time, rule.key):
                assert f"`{text}`" in policy or not text
            seen.add(rule.policy)
    assert seen == set(Policy)


def test_the_page_names_every_policy_and_the_mark() -> None:
    rows = re.findall(r"^\| ([a-z]+) \| ", PAGE.split("## Policies")[1], re.MULTILINE)
    assert {policy.value for policy in Policy} <= set(rows)
    assert f"`{MARK}`" in PAGE
