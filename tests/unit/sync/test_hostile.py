"""A remote with any content: what no client writes is refused, nothing is written outside, no other session suffers."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from sessionary.errors import Corrupt
from sessionary.sync import bundles
from sessionary.sync.blocks import START, block_id, follow, pack, part_key, unpack
from sessionary.sync.heads import LARGEST_INLINE, Head, PartHead, decode, encode, head_name
from sessionary.sync.remote import Remote, heads_of
from sessionary.sync.report import SyncStatus
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, FEATURE, LIST, PROJECT, WORK, PolicyDevice, recipient

Change = Callable[[Head], Head]
LINE = b'{"timestamp": "2025-01-31T12:00:00Z"}\n'


class Lines:
    """Bytes as a file gives them."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, byte: int, length: int) -> bytes:
        return self._data[byte : byte + length]


@pytest.fixture
def remote() -> Remote:
    return MemoryServer().remote()


def device(tmp_path: Path, name: str, kind: str) -> PolicyDevice:
    return PolicyDevice(tmp_path / "machines", name, (kind,))


def begun(tmp_path: Path, remote: Remote, kind: str) -> tuple[PolicyDevice, PolicyDevice]:
    """Two devices that have one session."""
    one, two = device(tmp_path, "one", kind), device(tmp_path, "two", kind)
    if kind == WORK:
        one.begin("first")
        (one.work_folder("first") / "log.jsonl").write_text('{"breadcrumb_id": "x"}\n')
    else:
        one.plan("first")
        (one.features / "first" / "history.jsonl").write_bytes(LINE)
    one.engine(kind, remote).push()
    two.engine(kind, remote).pull()
    return one, two


def change(remote: Remote, how: Change) -> None:
    (record,) = heads_of(remote)
    head = decode(record.name, record.data)
    changed = how(msgspec.structs.replace(head, count=head.count + 1, device="another"))
    assert remote.swap_head(record.name, encode(changed), record.etag)


def everything(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    found = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return {
        name: data for name, data in found.items() if "/state/" not in name and not name.endswith(".lock")
    }


def inline(name: str, data: bytes) -> PartHead:
    body = zstandard.ZstdCompressor().compress(data)
    return PartHead(name, "document", len(data), 0, follow(START, data), body)


def in_block(remote: Remote, space: str, name: str, kind: str, data: bytes, stored: bytes = b"") -> PartHead:
    """A file in one block; with `stored` other bytes are there."""
    chain, body = pack(Lines(data), 0, len(data), START)
    remote.put_block(space, block_id(part_key(name), 0, chain), stored or body)
    return PartHead(name, kind, len(data), 1, chain)


@pytest.mark.parametrize("kind", [WORK, FEATURE])
@pytest.mark.parametrize(
    "ledger", ["../../../../../evil", "/tmp/evil", "a\0b", "session.json", "", "x" * 300]
)
def test_an_owner_is_written_beside_a_ledger_and_nowhere_else(
    ledger: str, kind: str, tmp_path: Path, remote: Remote
) -> None:
    devices = begun(tmp_path, remote, kind)
    change(remote, lambda head: msgspec.structs.replace(head, owners={ledger: "eve"}))
    for one, name in zip(devices, ("log.jsonl", "history.jsonl"), strict=True):
        for path in one.project.rglob(name):
            path.write_bytes(path.read_bytes() + b'{"more": 1}\n')
        before = everything(tmp_path)
        for verb in ("push", "pull", "push"):
            (outcome,) = getattr(one.engine(kind, remote), verb)().outcomes
            assert outcome.standing in (SyncStatus.FAILED, SyncStatus.IN_STEP)
        assert everything(tmp_path) == before
    assert not os.path.lexists("/tmp/.evil.owner")


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 0},
        {"count": -1},
        {"gen": 1 << 60},
        {"space": "../elsewhere"},
        {"parts": (PartHead("log.jsonl", "journal", -5, 0, START),)},
        {"parts": (PartHead("log.jsonl", "journal", 5, -5, START),)},
        {"parts": (PartHead("log.jsonl", "journal", 5, 1, "zz"),)},
        {"parts": (PartHead("log.jsonl", "journal", 0, 0, START),) * 2},
        {
            "parts": tuple(
                PartHead(f"a/{n}", "document", LARGEST_INLINE // 2, 0, START, b"bomb") for n in range(3)
            )
        },
    ],
    ids=str,
)
def test_a_head_that_no_client_writes_is_refused(changes: dict[str, Any]) -> None:
    name = head_name("work", PROJECT, "one")
    head = Head(1, "work", PROJECT, "one", name, 0, 1, "eve", "2025-01-31T12:00:00+00:00")
    assert decode(name, encode(head)) == head
    with pytest.raises(Corrupt):
        decode(name, encode(msgspec.structs.replace(head, **changes)))


@pytest.mark.parametrize("line", [b"[" * 100_000, b"null", b'{"v":1,"prev":7,"raw":5,"back":0}'])
def test_a_block_of_nonsense_is_refused(line: bytes) -> None:
    with pytest.raises(Corrupt):
        unpack("block", line + b"\nbody")


@pytest.mark.parametrize("name", ["artifacts/" + "x" * 300, "state.yaml/below", "history.jsonl/below"])
def test_a_file_that_no_disk_can_hold_stops_no_other_session(
    name: str, tmp_path: Path, remote: Remote
) -> None:
    begun(tmp_path, remote, FEATURE)
    layout = recipient(FEATURE, tmp_path).name
    space = head_name(layout, PROJECT, "evil")
    head = Head(1, layout, PROJECT, "evil", space, 0, 1, "eve", "2025-01-31T12:00:00+00:00")
    state = inline("state.yaml", b"feature_id: evil\n")
    head = msgspec.structs.replace(head, parts=(state, inline(name, b"evil")))
    assert remote.swap_head(space, encode(head), None)
    fresh = device(tmp_path, "fresh", FEATURE)
    reported = {
        outcome.session_id: outcome.standing for outcome in fresh.engine(FEATURE, remote).pull().outcomes
    }
    assert reported == {"first": SyncStatus.PULLED, "evil": SyncStatus.FAILED}
    assert fresh.feature_names() == ["first"]


def damaged_document(remote: Remote, head: Head) -> PartHead:
    good = inline("state.yaml", b"version: '1.0'\nfeature_id: first\n")
    return msgspec.structs.replace(good, chain=follow(START, b"something else"))


def damaged_block(remote: Remote, head: Head) -> PartHead:
    said, lies = b"the bytes that the head says", b"other bytes, which are as long"[:28]
    _, other = pack(Lines(lies), 0, len(said), START)
    return in_block(remote, head.space, "implementation-plan.yaml", "document", said, other)


@pytest.mark.parametrize("damaged", [damaged_document, damaged_block])
def test_nothing_is_changed_for_a_head_of_which_one_file_is_damaged(
    damaged: Callable[[Remote, Head], PartHead], tmp_path: Path, remote: Remote
) -> None:
    _, two = begun(tmp_path, remote, FEATURE)

    def forge(head: Head) -> Head:
        longer = in_block(remote, head.space, "history.jsonl", "journal", LINE + LINE)
        parts = {part.name: part for part in (*head.parts, longer, damaged(remote, head))}
        return msgspec.structs.replace(head, parts=tuple(parts.values()))

    change(remote, forge)
    before = everything(tmp_path)
    (outcome,) = two.engine(FEATURE, remote).pull().outcomes
    assert (outcome.standing, type(outcome.error)) == (SyncStatus.FAILED, Corrupt)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["../../evil", "breadcrumbs/0/\ud800.json", "log.jsonl"])
def test_nothing_is_changed_for_a_bundle_that_holds_what_no_session_has(
    name: str, tmp_path: Path, remote: Remote
) -> None:
    _, two = begun(tmp_path, remote, WORK)

    def forge(head: Head) -> Head:
        line = json.dumps({"name": name, "text": "x"}).encode() + b"\n"
        bundle = in_block(remote, head.space, bundles.NAME, "bundle", line)
        attempts = in_block(remote, head.space, "attempts.one.jsonl", "journal", b"{}\n")
        return msgspec.structs.replace(head, parts=(*head.parts, attempts, bundle))

    change(remote, forge)
    before = everything(tmp_path)
    (outcome,) = two.engine(WORK, remote).pull().outcomes
    assert outcome.standing is SyncStatus.FAILED
    assert everything(tmp_path) == before


def forged(kind: str, session: str, *parts: PartHead) -> Head:
    """The head that no device here has pushed."""
    space = head_name(kind, PROJECT, session)
    return Head(1, kind, PROJECT, session, space, 0, 9, "eve", "2025-01-31T12:00:00+00:00", parts=parts)


def document(name: str) -> PartHead:
    return inline(name, b"evil: true\n")


ONLY = [
    ("nothing", ()),
    ("another file", ("state.yaml",)),
    ("a file beside it", (None, "state.yaml")),
    ("a history", ("history.jsonl",)),
    ("a plan", (None, "implementation-plan.yaml")),
]


@pytest.mark.parametrize(
    ("kind", "session", "only"), [(FEATURE, LIST, LIST), (BRAINSTORM, "storm", "session.yaml")]
)
@pytest.mark.parametrize("names", [names for _, names in ONLY], ids=[word for word, _ in ONLY])
@pytest.mark.parametrize("there", [True, False])
def test_what_is_one_file_is_never_written_from_another(
    kind: str,
    session: str,
    only: str,
    names: tuple[str | None, ...],
    there: bool,
    tmp_path: Path,
    remote: Remote,
) -> None:
    one = device(tmp_path, "one", kind)
    path = one.features / LIST if kind == FEATURE else one.storms / f"{session}.yaml"
    if there:
        path.write_text("active_features: []\n")
    head = forged(kind, session, *(document(name or only) for name in names))
    assert remote.swap_head(head.space, encode(head), None)
    before = everything(tmp_path)
    for verb in ("pull", "push", "pull"):
        (outcome,) = getattr(one.engine(kind, remote), verb)().outcomes or [None]
        assert outcome is None or outcome.standing is SyncStatus.FAILED
    assert everything(tmp_path) == before
    assert path.is_file() == there
    assert not list(path.parent.glob(".pull-*"))


@pytest.mark.parametrize("word", ["log", "of another kind"])
def test_what_is_one_file_is_not_replaced_by_an_empty_folder(
    word: str, tmp_path: Path, remote: Remote
) -> None:
    one = device(tmp_path, "one", FEATURE)
    head = forged(FEATURE, LIST, msgspec.structs.replace(document(LIST), kind=word))
    assert remote.swap_head(head.space, encode(head), None)
    (outcome,) = one.engine(FEATURE, remote).pull().outcomes
    assert outcome.standing is SyncStatus.FAILED
    assert not (one.features / LIST).exists()


def test_only_a_user_takes_the_list_of_features_away(tmp_path: Path, remote: Remote) -> None:
    one, two = device(tmp_path, "one", FEATURE), device(tmp_path, "two", FEATURE)
    (one.features / LIST).write_text("active_features: []\n")
    one.engine(FEATURE, remote).push()
    two.engine(FEATURE, remote).pull()
    change(remote, lambda head: msgspec.structs.replace(head, deleted=True))
    (outcome,) = two.engine(FEATURE, remote).pull().outcomes
    assert (outcome.standing, "only the user" in outcome.note) == (SyncStatus.HELD_BACK, True)
    assert (two.features / LIST).read_text() == "active_features: []\n"
    two.engine(FEATURE, remote).push()
    assert device(tmp_path, "three", FEATURE).engine(FEATURE, remote).pull().of(SyncStatus.PULLED)
