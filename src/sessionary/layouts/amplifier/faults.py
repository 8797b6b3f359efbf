"""Check the bytes of one file of a session, by the rules of `check`. Pure: no file is read."""

from __future__ import annotations

from sessionary.codec import for_strict_reader, read_lines
from sessionary.codec.problems import text_problems
from sessionary.layouts.amplifier.files import EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.recovery import object_in
from sessionary.model import Problem
from sessionary.transcript import diagnose

_OF_ONE_MESSAGE = frozenset({"no_role", "null_tool_calls", "bad_tool_calls"})
"""Findings within one message. The others concern the sequence of messages, which a compaction, or
a tool that still runs, changes without any damage.
"""


def faults_in(name: str, data: bytes) -> list[Problem]:
    """The problems of these bytes of a file; `data` may be some whole lines of a journal."""
    if name == TRANSCRIPT:
        return _of_transcript(data)
    if name == EVENTS:
        return read_lines(data, name).problems
    problems: list[Problem] = []
    if name == METADATA:
        object_in(data, name, problems)
        return problems
    return text_problems(data, name)


def _of_transcript(data: bytes) -> list[Problem]:
    reading = read_lines(data, TRANSCRIPT)
    found = for_strict_reader(reading.problems)
    findings = [each for each in diagnose(reading.values) if each.code in _OF_ONE_MESSAGE]
    records = list(reading.records()) if findings else []
    for each in findings:
        record = records[each.index]
        found.append(
            Problem(
                each.code,
                each.severity,
                TRANSCRIPT,
                record.line,
                record.byte,
                each.message,
                "`sessionary repair`",
                len(record.raw),
            )
        )
    return found
