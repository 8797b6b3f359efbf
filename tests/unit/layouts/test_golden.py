"""The file examples of the specification, read and written back to the byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.amplifier.events import EventsLog
from sessionary.layouts.amplifier.store import SessionStore
from tests.support import original

GOLDEN = Path(__file__).parents[2] / "golden" / "amplifier"
ID = "3f0c1c52-7c1e-4b55-9d0e-6f1f5f0f9a11"


def test_the_examples_survive_a_save_to_the_byte(tmp_path: Any) -> None:
    transcript = [json.loads(line) for line in (GOLDEN / "transcript.jsonl").read_text().splitlines()]
    metadata = json.loads((GOLDEN / "metadata.json").read_text())
    store = SessionStore(tmp_path)
    store.save(ID, transcript, metadata)
    for name in ("transcript.jsonl", "metadata.json"):
        assert (tmp_path / ID / name).read_bytes() == (GOLDEN / name).read_bytes()
    assert store.load(ID) == (transcript, metadata)


def test_the_examples_are_read_in_place(tmp_path: Any) -> None:
    folder = tmp_path / ID
    folder.mkdir()
    for name in ("transcript.jsonl", "metadata.json"):
        (folder / name).write_bytes((GOLDEN / name).read_bytes())
    messages, metadata, report = SessionStore(tmp_path).load_with_report(ID)
    assert not report.problems
    assert (messages, metadata) == original.load(tmp_path, ID)
    SessionStore(tmp_path).save(ID, messages, metadata)
    assert (folder / "transcript.jsonl").read_bytes() == (GOLDEN / "transcript.jsonl").read_bytes()


@pytest.mark.parametrize("shuffled", [False, True])
def test_events_are_written_in_the_order_of_the_specification(tmp_path: Any, shuffled: Any) -> None:
    with EventsLog(tmp_path / "uuid") as log:
        for line in (GOLDEN / "events.jsonl").read_text().splitlines():
            event = json.loads(line)
            log.append(dict(reversed(event.items())) if shuffled else event)
    assert (tmp_path / "uuid" / "events.jsonl").read_bytes() == (GOLDEN / "events.jsonl").read_bytes()
