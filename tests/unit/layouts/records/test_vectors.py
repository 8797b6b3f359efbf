"""The test vectors of docs/formats/records.md, which programs in other languages can run too."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import Unsupported
from sessionary.layouts.records.checkpoints import BLOBS, places, values_at, writes_at
from sessionary.layouts.records.journal import RecordJournal
from sessionary.layouts.records.reading import read_records
from sessionary.layouts.records.values import decode_value, encode_value, unmarked
from sessionary.model import Message, SessionRef

DOCS = Path(__file__).resolve().parents[4] / "docs" / "formats"
VECTORS = json.loads((DOCS / "records.vectors.json").read_bytes())
JOURNALS = {one["name"]: one for one in VECTORS["journals"]}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_is_read_as_the_vector_says(name: str, tmp_path: Path) -> None:
    vector = JOURNALS[name]
    path = tmp_path / "openai-agents" / "one.records"
    path.parent.mkdir()
    path.write_bytes(vector["file"].encode())
    journal = RecordJournal(path.parent, "openai-agents", "one", durability="none")
    if vector.get("refused"):
        with pytest.raises(Unsupported):
            journal.state()
        return
    state = journal.state()
    assert [[number, json.loads(bytes(item))] for number, item in state.items.items()] == vector["items"]
    tables = {
        table: {key: json.loads(bytes(one)) for key, one in rows.items()}
        for table, rows in state.tables.items()
    }
    assert {table: rows for table, rows in tables.items() if rows} == vector["tables"]
    assert (state.keys, state.next_item) == (vector["keys"], vector["next_item"])
    read = read_records(OS_FS, SessionRef("records", "one", str(path)), None)
    texts = [one.text for one in read if isinstance(one, Message)]
    shown = vector.get("shown", [number for number, _ in vector["items"]])
    assert texts == [item["content"] for number, item in vector["items"] if number in shown]


@pytest.mark.parametrize("vector", VECTORS["checkpoints"], ids=lambda one: one["name"])
def test_checkpoints_are_read_as_the_vector_says(vector: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "one.records"
    path.write_bytes(vector["file"].encode())
    state = RecordJournal(tmp_path, "langgraph", "one", durability="none").state()
    for key, stored in state.tables[BLOBS].items():
        assert sha256(bytes(stored)).hexdigest() == key

    def loads(typed: tuple[str, bytes]) -> list[str]:
        return [typed[0], typed[1].decode()]

    values = [
        [*place, channel, value]
        for place in sorted(places(state))
        for channel, value in values_at(state, place, loads).items()
    ]
    writes = [
        [*place, *before, data.decode(), path]
        for place in sorted(places(state))
        for *before, data, path in writes_at(state, place)
    ]
    assert (values, writes) == (vector["values"], vector["writes"])


def _is(value: Any, vector: dict[str, Any]) -> bool:
    kind = vector["type"]
    if kind == "bytes":
        return bool(value == bytes.fromhex(vector["hex"]))
    if kind == "text":
        return bool(value == "".join(chr(int(unit, 16)) for unit in vector["utf16"]))
    if kind == "object":
        return isinstance(value, dict) and [[key, one] for key, one in value.items()] == vector["pairs"]
    wanted: Any = float(vector["is"]) if vector["is"].strip("-").isalpha() else int(vector["is"])
    return bool(value == wanted or (value != value and wanted != wanted))


@pytest.mark.parametrize("vector", VECTORS["values"], ids=lambda one: json.dumps(one["stored"])[:40])
def test_a_value_is_stored_as_the_vector_says(vector: dict[str, Any]) -> None:
    assert _is(unmarked(vector["stored"]), vector)
    assert _is(decode_value(json.dumps(vector["stored"]).encode()), vector)
    if "not base64" not in str(vector["stored"]):
        assert json.loads(encode_value(unmarked(vector["stored"]))) == vector["stored"]


def test_the_page_names_the_file() -> None:
    assert "(records.vectors.json)" in (DOCS / "records.md").read_text("utf-8")
