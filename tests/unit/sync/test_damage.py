"""What counts as a damaged copy of another version, layout by layout."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.files import PartKind
from sessionary.layouts.sync import SyncLayout
from sessionary.model import Problem
from sessionary.sync import damage
from sessionary.sync.bundles import Item
from sessionary.sync.damage import damage_of, damaged_items, of_bytes
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, FEATURE, KINDS, WORK, PolicyWorld, recipient

AMPLIFIER = "amplifier"
LINES = b"".join(json.dumps({"role": "user", "content": f"line {n}"}).encode() + b"\n" for n in range(6))
NONE = Path("/none")


def layout_of(kind: str) -> SyncLayout:
    return AmplifierSyncLayout(NONE) if kind == AMPLIFIER else recipient(kind, NONE)


def why(kind: str, name: str, before: bytes, after: bytes) -> str | None:
    layout = layout_of(kind)
    part = layout.part_kind(name)
    assert part is not None
    return damage_of(layout, name, part, lambda: of_bytes(before), of_bytes(after))


def without_line(data: bytes, number: int) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:number] + lines[number + 1 :])


def with_line(data: bytes, number: int, line: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:number], line, *lines[number + 1 :]])


JOURNALS = [
    (AMPLIFIER, "transcript.jsonl"),
    (AMPLIFIER, "events.jsonl"),
    (WORK, "log.jsonl"),
    (WORK, "attempts.work.jsonl"),
    (FEATURE, "history.jsonl"),
]


@pytest.mark.parametrize(("kind", "name"), JOURNALS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2 + 5],
        lambda data: data[:-1],
        lambda data: data[:60] + bytes(40) + data[100:],
        lambda data: with_line(data, 2, b'{"role": "user", \xff}\n'),
        lambda data: with_line(data, 2, b'"role": "user"}\n'),
    ],
    ids=["emptied", "torn", "without its last newline", "zeros", "no UTF-8", "no JSON"],
)
def test_a_journal_that_lost_a_line_and_is_damaged(
    kind: str, name: str, spoil: Callable[[bytes], bytes]
) -> None:
    assert why(kind, name, LINES, spoil(LINES)) is not None


@pytest.mark.parametrize(("kind", "name"), JOURNALS)
@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\n",
        lambda data: without_line(data, 2),
        lambda data: with_line(data, 0, b'{"role": "user", "content": "a summary"}\n'),
        lambda data: data + b'{"role": "us\n{"role": "user"}\n',
        lambda data: b'{"cut off\n' + data,
    ],
    ids=["rewound to nothing", "a line less", "compacted", "grown by damage", "all lines in another order"],
)
def test_a_journal_that_is_healthy_or_has_all_its_lines(
    kind: str, name: str, change: Callable[[bytes], bytes]
) -> None:
    assert why(kind, name, LINES, change(LINES)) is None


@pytest.mark.parametrize(("kind", "name"), JOURNALS)
def test_damage_that_the_older_version_has_is_not_new(kind: str, name: str) -> None:
    old = with_line(LINES, 4, b'{"cut off\n')
    assert why(kind, name, old, without_line(old, 1)) is None
    assert why(kind, name, old, with_line(old, 1, b'{"another\n')) is not None


def test_a_message_without_a_speaker_is_damage_and_an_open_call_is_not() -> None:
    assert why(AMPLIFIER, "transcript.jsonl", LINES, with_line(LINES, 1, b'{"roll": "user"}\n')) is not None
    called = b'{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {}}]}\n'
    assert why(AMPLIFIER, "transcript.jsonl", LINES, without_line(LINES, 0) + called) is None


def documents(tmp_path: Path) -> dict[str, dict[str, bytes]]:
    """A healthy document of each name."""
    device = PolicyWorld(tmp_path, MemoryServer().remote).devices[0]
    device.begin("one")
    device.plan("f-2025-01-31")
    device.storm("ideas", "an answer")
    device.drop("one", "id", "20250131_120000")
    feature = device.features / "f-2025-01-31"
    storm = (device.storms / "ideas.yaml").read_bytes()
    session = {
        "session_id": "one",
        "session_type": "work_task",
        "status": "running",
        "created": "2025-01-31T12:00:00+00:00",
        "modified": "2025-01-31T12:00:00+00:00",
    }
    index = (
        b'active_features:\n  - feature_id: "f-2025-01-31"\n    started_at: "2025-01-31T12:00:00Z"\n'
        b'    last_active: "2025-01-31T12:00:00Z"\n    status: "active"\n'
    )
    plan = b"feature:\n  id: f\n  name: f\n  description: d\n  created_at: 2025-01-31T12:00:00Z\nphases: []\n"
    return {
        AMPLIFIER: {"metadata.json": b'{"session_id": "one", "name": "n"}', "config.md": b"# text\n" * 9},
        WORK: {"session.json": json.dumps(session, indent=2).encode()},
        FEATURE: {
            "state.yaml": (feature / "state.yaml").read_bytes(),
            "implementation-plan.yaml": plan,
            "active-features.yaml": index,
            "artifacts/notes.md": b"some notes\n" * 9,
        },
        BRAINSTORM: {"session.yaml": storm},
    }


@pytest.mark.parametrize("kind", [AMPLIFIER, *KINDS])
def test_a_document_that_is_emptied_or_holds_zeros(kind: str, tmp_path: Path) -> None:
    for name, good in documents(tmp_path)[kind].items():
        assert why(kind, name, good, b"") is not None, name
        zeroed = good[:20] + bytes(len(good) - 30) + good[-10:]
        assert why(kind, name, good, zeroed) is not None, name
        assert why(kind, name, good, good) is None, name


@pytest.mark.parametrize(
    ("kind", "name"),
    [(AMPLIFIER, "metadata.json"), (WORK, "session.json"), (FEATURE, "state.yaml")],
)
def test_a_document_that_was_cut_off(kind: str, name: str, tmp_path: Path) -> None:
    good = documents(tmp_path)[kind][name]
    assert why(kind, name, good, good[: len(good) // 2]) is not None


def test_what_a_merge_left_in_a_document() -> None:
    good = b"active_features: []\n"
    left = b"<<<<<<< mine\nactive_features: []\n=======\nactive_features: []\n>>>>>>> theirs\n"
    assert why(FEATURE, "active-features.yaml", good, left) is not None


def test_a_document_that_is_not_worse_than_before() -> None:
    bad = b'{"session_id": "one"'
    assert why(WORK, "session.json", bad, b'{"session_id": "one"}') is None
    assert why(WORK, "session.json", b'{"session_id": "one"}', bad) is not None


def test_a_newer_version_and_a_wrong_clock_are_not_damage(tmp_path: Path) -> None:
    good = documents(tmp_path)[FEATURE]["state.yaml"]
    assert why(FEATURE, "state.yaml", good, good.replace(b"1.0", b"2.0")) is None
    assert why(FEATURE, "state.yaml", good, good.replace(b"2025-01-31", b"2024-01-31", 1)) is None


def test_files_that_are_made_once() -> None:
    layout = layout_of(WORK)
    name = "breadcrumbs/0/20250131_120000_000000.json"
    crumb = {"timestamp": "20250131_120000_000000", "breadcrumb_id": "b", "prompt": "go"}
    good, empty = Item(name, json.dumps(crumb).encode()), Item(name, b"")
    torn = Item(name, good.data[:-4])
    other = Item(name, json.dumps({**crumb, "prompt": "stop"}).encode())
    assert set(damaged_items(layout, [good], [empty])) == {empty}
    assert set(damaged_items(layout, [good], [torn])) == {torn}
    assert damaged_items(layout, [good], [other]) == {}
    assert damaged_items(layout, [good], [good, torn]) == {}
    assert damaged_items(layout, [], [torn]) == {}
    assert damaged_items(layout, [torn], [torn]) == {}


def test_long_journals_are_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "WINDOW", 100)
    long = LINES * 5
    seen: list[int] = []
    layout = layout_of(AMPLIFIER)
    real = layout.faults

    def faults(name: str, data: bytes) -> list[Problem]:
        seen.append(len(data))
        return real(name, data)

    monkeypatch.setattr(layout, "faults", faults)
    bad = with_line(long, 20, b'{"cut off\n')

    def pieces(data: bytes) -> damage.Version:
        return damage.Version(len(data), lambda: iter([data[n : n + 33] for n in range(0, len(data), 33)]))

    found = damage_of(layout, "transcript.jsonl", PartKind.JOURNAL, lambda: pieces(long), pieces(bad))
    assert found is not None
    assert max(seen) < 200 < sum(seen)
    assert damage_of(layout, "transcript.jsonl", PartKind.JOURNAL, lambda: pieces(bad), pieces(bad)) is None
