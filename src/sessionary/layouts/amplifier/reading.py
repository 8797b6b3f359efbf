"""The messages of a transcript, with damage and faults where they occur."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessionary.codec import for_strict_reader, read_lines
from sessionary.codec.seen import Duplicates, RisingTimes
from sessionary.disk.fs import Fs, descriptor, read_at, size_of
from sessionary.layouts.base import MayMatch
from sessionary.layouts.jsonl import WINDOW, Stored, by_windows, read_jsonl, read_windows
from sessionary.model import Cursor, Item, Message, Place, Problem, Record, Severity
from sessionary.transcript.diagnosis import Finding, shape_findings
from sessionary.transcript.fold import Fold
from sessionary.transcript.typed import message_of, typed_message


def read_transcript(
    fs: Fs,
    path: str,
    after: Cursor | None = None,
    may_match: MayMatch | None = None,
    times: RisingTimes | None = None,
) -> Iterator[Item]:
    """The messages of the transcript of a session; see `Layout.read`.

    Its agent refuses the file for one bad line, so each such line stops a resume.

    Args:
        after: as in `Layout.read`.
        may_match: as in `Layout.read`.
        times: is given the records, to find out whether `repeated_records` may find any.
    """
    windows = read_windows(fs, path, after, may_match)
    return by_windows(windows, lambda window: _items(window, path, times, fs))


def transcript_problems(data: bytes, path: str) -> list[Problem]:
    """The problems of the bytes of a transcript, in the order of the file."""
    fold, reading = Fold(), read_lines(data, path)
    for item in _items([*reading.problems, *reading.records()], path):
        fold.take(item)
    return sorted([*fold.problems, *conversation_problems(fold)], key=lambda problem: problem.byte or 0)


def _items(
    stored: Iterable[Stored], path: str, times: RisingTimes | None = None, fs: Fs | None = None
) -> Iterator[Item]:
    for item in stored:
        if isinstance(item, Record):
            place = Place(path, item.line, item.byte)
            if times is not None:
                times.take(item.value)
            for finding in shape_findings(item.value, place=place):
                yield _problem(finding, _repaired(finding))
            yield message_of(item.value, place)
        elif isinstance(item, Problem):
            if fs is None or not _is_empty_conversation(fs, item):
                yield from for_strict_reader([item])
        else:
            yield item


def _is_empty_conversation(fs: Fs, item: Problem) -> bool:
    """True for the blank line of a file of one newline, as our store writes an empty conversation."""
    if item.code != "blank_lines" or item.byte != 0:
        return False
    return size_of(fs, item.path) == 1


def conversation_problems(fold: Fold) -> list[Problem]:
    """The faults between the messages of a session."""
    return [_problem(finding, _repaired(finding)) for finding in fold.diagnosis.findings()]


def read_file(fs: Fs, path: str) -> Iterator[Message | Problem]:
    """The messages of any JSON Lines file; problems stand where they occur.

    Raises:
        NotFound: the file does not exist.
    """
    for item in read_jsonl(fs, path):
        if isinstance(item, Record):
            yield message_of(item.value, Place(path, item.line, item.byte))
        elif isinstance(item, Problem):
            yield item


def check_file(fs: Fs, path: str) -> list[Problem]:
    """The problems of any JSON Lines file of messages. Not every record of it must be a message.

    Raises:
        NotFound: the file does not exist.
    """
    fold, times = Fold(), RisingTimes()
    for item in read_jsonl(fs, path):
        if isinstance(item, Record):
            place = Place(path, item.line, item.byte)
            times.take(item.value)
            for finding in shape_findings(item.value, place=place):
                if finding.code != "no_role":
                    fold.take(_problem(finding, _REMEDIES[finding.code]))
            fold.take(typed_message(item.value, place))
        elif isinstance(item, Problem):
            fold.take(item)
    known = any(problem.code == "not_text" for problem in fold.problems)
    if fold.messages == 0 and fold.problems and not known:
        other = _not_json_lines(fs, path)
        if other is not None:
            return [other]  # once, and not for each of its lines
    repeated = [] if times.hold else repeated_records(fs, path)
    return [*fold.problems, *repeated, *(_problem(each, _remedy(each)) for each in fold.diagnosis.findings())]


def repeated_records(fs: Fs, path: str) -> list[Problem]:
    """A note for each record of a file that repeats an earlier one. Raises as `read_file`."""
    duplicates = Duplicates(path)
    records = (item for item in read_jsonl(fs, path) if isinstance(item, Record))
    return [note for record in records if (note := duplicates.take(record)) is not None]


def _not_json_lines(fs: Fs, path: str) -> Problem | None:
    """The problem of a file without any record that is not JSON Lines; None if it may be a damaged one.

    Most lines of a damaged file begin as a record does. Zeros in place of all bytes reveal nothing about the content.

    Raises:
        OSError: the file cannot be read.
    """
    with descriptor(fs, path) as fd:
        size = fs.fstat(fd).st_size
        lines = [line for line in read_at(fs, fd, WINDOW, 0).split(b"\n") if line.strip(b" \t\r\0")]
    like_records = sum(line.lstrip(b" \t\xef\xbb\xbf").startswith(b"{") for line in lines)
    if not lines or 2 * like_records >= len(lines):
        return None
    what = "the file is not JSON Lines: no line of it is a JSON object"
    remedy = "name a session, or a file with one JSON object per line"
    return Problem("not_text", Severity.hides_data, path, None, 0, what, remedy, size)


_REMEDIES = {
    "orphaned_call": "add a result, or drop the call; if its tool still runs, wait",
    "orphaned_result": "drop the result",
    "repeated_result": "drop one of the results",
    "repeated_call": "give one of the calls, and its result, an id of its own",
    "misplaced_result": "move the result directly after its call",
    "late_result": "move the result directly after its call, if your provider refuses it",
    "incomplete_turn": "add an agent message that the turn was interrupted",
    "null_tool_calls": "remove the field",
    "bad_tool_calls": "remove the field",
    "no_role": "set the role, or remove the message",
    "consecutive_users": "none needed: most providers accept it",
    "no_call_id": "none needed, unless your provider refuses it",
    "empty_thinking": "remove the block, if your provider refuses it",
}
_LAST_TURN = "none needed: the agent continues from there, or is running"


def _remedy(finding: Finding) -> str:
    if finding.code == "incomplete_turn" and not finding.stops:
        return _LAST_TURN
    return _REMEDIES[finding.code]


def _repaired(finding: Finding) -> str:
    """The remedy for a session, which `repair` can repair."""
    remedy = _remedy(finding)
    return f"run `sessionary repair` to {remedy}" if finding.stops else remedy


def _problem(finding: Finding, remedy: str) -> Problem:
    """A finding as a problem of the file."""
    place = finding.place
    return Problem(
        finding.code, finding.severity, place.path or "", place.line, place.byte, finding.message, remedy
    )
