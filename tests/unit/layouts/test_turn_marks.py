"""The fast way to find turns says what the patient one says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec import read_lines
from sessionary.disk.fs import OS_FS
from sessionary.layouts.amplifier import turn_marks
from sessionary.layouts.amplifier.turn_marks import marks_of, read_marks
from sessionary.model import Severity
from tests.unit.layouts.surgery_samples import MESSAGES, lines

WORDS = st.sampled_from(["hi", '"user"', "{", "}\n{", "<system-reminder>x", "ü", ""])
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": WORDS},
    optional={
        "tool_call_id": st.sampled_from("abc"),
        "tool_calls": st.lists(st.fixed_dictionaries({"id": st.sampled_from("abc")}), max_size=2),
        "extra": st.dictionaries(WORDS, WORDS, max_size=2),
    },
)


def agree(path: Path) -> None:
    fast, patient = read_marks(OS_FS, str(path)), marks_of(path.read_bytes())
    assert [byte for byte, _ in fast.starts] == [byte for byte, _ in patient.starts]
    assert fast.size == patient.size
    if all(problem.severity == Severity.note for problem in read_lines(path.read_bytes()).problems):
        assert fast.starts == patient.starts
        assert fast.messages == patient.messages


@given(st.lists(MESSAGE, max_size=8), st.booleans())
def test_both_ways_agree(tmp_path_factory: pytest.TempPathFactory, said: list[Any], escaped: bool) -> None:
    path = tmp_path_factory.mktemp("marks") / "t"
    path.write_text("".join(json.dumps(message, ensure_ascii=escaped) + "\n" for message in said), "utf-8")
    agree(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        lines(MESSAGES)[:-1],
        lines(MESSAGES) + b'{"role": "us',
        lines(MESSAGES).replace(b'"user"', b'"\\u0075ser"'),
        lines(MESSAGES).replace(b'"user"', b'"us\\u0065r"'),
        lines(MESSAGES[:2]) + b"\0\0\n" + lines(MESSAGES[2:]),
        lines(MESSAGES[:2]) + lines(MESSAGES[2:4]).replace(b"\n", b"") + b"\n" + lines(MESSAGES[4:]),
        b"\xef\xbb\xbf" + lines(MESSAGES),
        lines(MESSAGES).replace(b"\n", b"\r\n"),
        b'{"role": "user", "content": "a}\n{"}\n',
        b'{"role": "user", "content": torn}\n' + lines(MESSAGES),
    ],
)
def test_they_agree_on_what_is_odd(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t").write_bytes(data)
    agree(tmp_path / "t")
    readable = read_lines(data).values
    assert [message.get("role") for message in readable].count("user") >= len(marks_of(data).starts)


@pytest.mark.parametrize("window", [1, 50, 200, 1 << 20])
def test_lines_longer_than_a_window(tmp_path: Path, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_marks, "WINDOW", window)
    (tmp_path / "t").write_bytes(lines(MESSAGES))
    agree(tmp_path / "t")
