"""Tokens and cost as plots, and what will be deleted soon."""

import json
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessionary.viewer.library import Library
from sessionary.viewer.overview import overview
from sessionary.viewer.plots import DAYS, by_day, largest
from sessionary.workspace import Workspace

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def test_a_day_is_as_high_as_its_value() -> None:
    found = parsed(by_day("T", {"2026-03-14": 10.0, "2026-03-13": 5.0, "2020-01-01": 99.0}, str))
    bars = found.findall(f"{SVG}rect")
    assert [float(bar.get("height") or 0) for bar in bars] == [55.0, 110.0]
    assert [bar[0].text for bar in bars] == ["2026-03-13: 5.0", "2026-03-14: 10.0"]
    assert DAYS == 90


def test_names_cannot_act_in_a_plot() -> None:
    name = '</text><script>alert(1)</script>"\u202e'
    found = parsed(largest("T", {name: 1.0, "b": 2.0}, str))
    assert [one.tag for one in found.iter() if "script" in one.tag] == []
    texts = [one.text for one in found.iter(f"{SVG}text")]
    assert [one.get("data-name", "")[:8] for one in found] == ["b", "</text><"]
    assert "\u202e" not in str(found[1].get("data-name"))
    assert texts[0] == "b"
    assert str(texts[2]).startswith("</text><script>")
    assert not any("\u202e" in str(text) for text in texts)


def test_without_values_nothing_is_drawn() -> None:
    assert by_day("T", {}, str) == ""
    assert largest("T", {"a": 0.0}, str) == ""


def test_usage_and_what_will_be_deleted(tmp_path: Path) -> None:
    when = datetime.now(UTC) - timedelta(days=27)
    file = tmp_path / "projects" / "-p" / "0b3c8a52-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    usage = {"input_tokens": 100_000, "output_tokens": 0}
    message = {
        "id": "m",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "x"}],
        "usage": usage,
    }
    record = {
        "type": "assistant",
        "uuid": "u",
        "parentUuid": None,
        "sessionId": file.stem,
        "timestamp": when.isoformat(),
        "message": message,
    }
    file.write_text(json.dumps(record) + "\n")
    found = overview(Library([Workspace(tmp_path, cache=str(tmp_path / "cache"))]))
    assert (found["tokens"], found["cost"]) == (100_000, pytest.approx(0.3))
    assert [one["title"] for one in found["plots"]] == [
        "Tokens by day",
        "Cost by day",
        "Cost by project",
        "Cost by model",
        "Tokens by model",
        "Tokens by project",
    ]
    (leaving,) = found["leaving"]
    assert leaving["when"] - when == timedelta(days=30)
