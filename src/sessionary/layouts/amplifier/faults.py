"""Check the bytes of one file of a session, by the rules of `check`. Pure: no file is read."""

from __future__ import annotations

from sessionary.codec import for_strict_reader, read_lines
from sessionary.codec.problems import text_problems
from sessionary.layouts.amplifier.files import EVENTS, METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.recovery import object_in
from sessionary.model import Problem
from sessionary.transcript.diagnosis import shape_findings


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
    """Damage, and faults within one message. A compaction, or a tool that still runs, changes their sequence."""
    reading = read_lines(data, TRANSCRIPT)
    problems = for_strict_reader(reading.problems)
    for record in reading.records():
        place = TRANSCRIPT, record.line, record.byte
        for each in shape_findings(record.value):
            if each.stops:
                remedy = "`sessionary repair`"
                size = len(record.raw)
                problems.append(Problem(each.code, each.severity, *place, each.message, remedy, size))
    return problems
