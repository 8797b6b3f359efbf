"""The broken files of the public reports, each with what a reader must make of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sessionary.codec import original_accepts, read_lines
from sessionary.codec.seen import Duplicates
from sessionary.model import Severity
from tests.lanes import shared_folder

CASES = sorted(shared_folder().glob("cases/A*-plain"))

# What the words of a case come to in numbers: records kept, and damaged stretches.
IN_WORDS: dict[str, tuple[list[int] | None, int | None]] = {
    "A09": ([*range(29), 59], 3),
    "A14": (None, 1),
    "A15": (None, 1),
    "A18": ([], 1),
    "A24": (None, 5),
    "A25": (None, 1),
    "A28": ([], 1),
    "A31": ([], 1),
}


def _numbers(values: list[dict[str, Any]]) -> list[int]:
    found = [re.match(r"R(\d+)", str(value.get("content"))) for value in values]
    return sorted({int(match[1]) for match in found if match})


@pytest.mark.lane("samples")
@pytest.mark.parametrize("case", CASES or [None], ids=lambda case: case.name if case else "none")
def test_a_reported_file_is_read_as_it_should_be(case: Path | None) -> None:
    assert case is not None, "the sample sessions lack the cases"
    expect = json.loads((case / "CASE.json").read_text("utf-8"))["expect"]
    data = (case / "session.jsonl").read_bytes()
    reading = read_lines(data, "session.jsonl")
    keep, bad = IN_WORDS.get(case.name[:3], (None, None))
    assert _numbers(reading.values) == (expect["keep"] if keep is None else keep)
    damaged = [found for found in reading.problems if found.severity > Severity.note]
    if bad is not None or "bad" in expect:
        assert len(damaged) == (expect["bad"] if bad is None else bad)
    seen = Duplicates()
    again = [note.code for record in reading.records() if (note := seen.take(record)) is not None]
    assert again.count("duplicate_record") == expect.get("dup_exact", 0)
    assert again.count("changed_duplicate") == expect.get("dup_changed", 0)
    assert reading.strict is original_accepts(data)
    for found in reading.records():
        assert data[found.byte : found.byte + len(found.raw)] == found.raw
