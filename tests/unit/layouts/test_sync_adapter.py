"""What only the amplifier layout knows when sessions come from elsewhere."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionary import SessionStore
from sessionary.errors import Invalid, NotFound
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.layouts.files import PartKind
from sessionary.layouts.summary import summary_of

NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = SessionStore(tmp_path / "projects" / "-p" / "sessions")
    store.save("one", [{"role": "user", "content": "hello"}], {"session_id": "one", "bundle": "b"})
    return tmp_path


def test_a_session_belongs_where_the_store_would_put_it(home: Path) -> None:
    layout = AmplifierSyncLayout(home)
    ref = layout.place("-p", "one")
    assert ref == layout.ref_for_path(ref.path)


@pytest.mark.parametrize(
    "place", [("-p", "../one"), ("-p", ""), ("..", "one"), (".p", "one"), (None, "one"), ("a/b", "c")]
)
def test_a_place_that_leads_elsewhere_is_refused(home: Path, place: tuple[str | None, str]) -> None:
    with pytest.raises(Invalid):
        AmplifierSyncLayout(home).place(*place)


def test_only_the_files_of_a_session_are_its_parts(home: Path) -> None:
    layout = AmplifierSyncLayout(home)
    assert layout.part_kind("transcript.jsonl") is PartKind.JOURNAL
    assert layout.part_kind("events.jsonl") is PartKind.LOG
    assert [layout.part_kind(name) for name in ("../x", "a/transcript.jsonl", ".lock", "x.backup")] == [
        None
    ] * 4


def test_a_missing_session_cannot_be_locked(home: Path) -> None:
    layout = AmplifierSyncLayout(home)
    with pytest.raises(NotFound), layout.lock(layout.place("-p", "two")):
        pass


def test_a_moved_session_says_its_new_id_and_its_parent_once(home: Path) -> None:
    layout = AmplifierSyncLayout(home)
    ref, new = layout.place("-p", "one"), layout.place("-p", "new")
    ref.path.rename(new.path)
    with layout.lock(new):
        layout.set_parent(new, "one", NOW)
        first = (new.path / "metadata.json").read_bytes()
        layout.set_parent(new, "one", NOW.replace(year=2030))
    reported = json.loads(first)
    assert (reported["session_id"], reported["parent_id"], reported["bundle"]) == ("new", "one", "b")
    assert (new.path / "metadata.json").read_bytes() == first
    assert summary_of(layout, new).parent == "one"


def test_a_discarded_session_can_be_brought_back(home: Path) -> None:
    layout = AmplifierSyncLayout(home)
    ref = layout.place("-p", "one")
    with layout.lock(ref):
        layout.trash(ref, NOW)
    assert list(layout.discover()) == []
    store = SessionStore(home / "projects" / "-p" / "sessions")
    store.undo("one")
    assert store.load("one")[0][0]["content"] == "hello"


@pytest.mark.parametrize(
    ("metadata", "parent"),
    [
        ('{"session_id": "s", "parent_id": "p"}', "p"),
        ('{"session_id": "s"}', None),
        ('{"session_id": "s", "parent_id": 7}', None),
        ("{", None),
        (None, None),
    ],
)
def test_the_parent_is_what_the_metadata_says_whatever_the_conversation_is(
    metadata: str | None, parent: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "projects" / "-p" / "sessions" / "s"
    folder.mkdir(parents=True)
    (folder / "transcript.jsonl").mkdir()  # cannot be read at all
    if metadata is not None:
        (folder / "metadata.json").write_text(metadata)
    layout = AmplifierSyncLayout(tmp_path)
    assert layout.parent(layout.place("-p", "s")) == parent
