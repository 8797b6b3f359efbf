"""The messages of a chat of Aider: lines of Markdown, of which some begin a prompt or a notice.

What the user typed begins with `#### `, what the program says with `> `, and everything else is the response of the
model. A response may hold such lines too, in its code or as headings. Aider ends its own lines with two spaces: if the
first prompt of a chat has them, only lines that end so are prompts and notices. Else (an editor may have removed them)
those outside of fenced code are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from msgspec import Struct

from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    Fact,
    Item,
    Message,
    Place,
    Problem,
    Severity,
    Text,
    Usage,
    UsageEvent,
)

PROMPT, NOTICE, ANSWER = "prompt", "notice", "answer"

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_COMMAND = re.compile(r"!|/[a-z-]+(?:\s|$)|<blank>$")
_TO_THE_MODEL = re.compile(r"/(?:architect|ask|code|context|help)\s+\S")
_MODEL = re.compile(r"(?:Main model|Models?): (\S+?),?(?: with .*)?")
_VERSION = re.compile(r"Aider v(\S+)")
_TOKENS = re.compile(r"Tokens: .*\breceived\b.*")
_COUNT = re.compile(r"([\d.,]+)([kM]?) (sent|cache write|cache hit|received)")
_COST = re.compile(r"Cost: \$([\d.]+) message")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


class Continued(Exception):
    """The first line continues the last message before the cursor, which was yielded."""


class State(Struct, array_like=True):
    """The state of the parser at a line.

    Attributes:
        line: its number, from 1.
        block: what the last message is: a prompt, a notice, an answer; empty if there is none.
        is_apart: the line before is empty.
        fence: the marks of the fenced code that the line is in; empty if it is in none.
        spaced: whether the first prompt ends with two spaces; None before it.
    """

    line: int = 1
    block: str = ""
    is_apart: bool = True
    fence: str = ""
    spaced: bool | None = None
    model: str | None = None


def items_of(
    lines: Iterable[tuple[int, bytes]], path: str, state: State, started: datetime | None
) -> Iterator[Item]:
    """The messages in the lines of a chat, with the usage that they state.

    Args:
        lines: each line without its newline, with its offset in the file.
        state: what is known at the first of them; in the end what is known behind the last.
        started: when the chat was started. Messages have no times of their own.

    Raises:
        Continued: the lines cannot be read apart from those before. Raised before anything is yielded.
    """
    words, place = list[str](), Place(path)
    for offset, raw in lines:
        number, state.line = state.line, state.line + 1
        text = str(raw, "utf-8", "replace").rstrip("\r")
        if not text or text.isspace():
            state.is_apart = True
            if state.block == ANSWER and words:
                words.append("")
            continue
        before, kind = state.block, _kind(text, state)
        if kind == before and not (kind == PROMPT and state.is_apart):
            if not words:
                raise Continued
        else:
            yield from _messages(before, words, place, state, started)
            words, place = [], Place(path, number, offset)
        if "\ufffd" in text or "\0" in text:
            yield from _problems(raw, path, number, offset)
        words.append(text if kind == ANSWER else text[5 if kind == PROMPT else 2 :].rstrip())
        state.block, state.is_apart = kind, False
    yield from _messages(state.block, words, place, state, started)


def _kind(text: str, state: State) -> str:
    """The kind of a line. Keeps track of fenced code."""
    if text[0] not in "#>`~ ":
        return ANSWER
    ends_so = text.endswith("  ")
    is_own = ends_so if state.spaced else not state.fence
    if is_own and (text.startswith("#### ") or text.rstrip() == "####"):
        state.spaced = ends_so if state.spaced is None else state.spaced
        state.fence = ""
        return PROMPT
    if is_own and (text.startswith("> ") or text.rstrip() == ">"):
        state.fence = ""
        return NOTICE
    if found := _FENCE.match(text):
        marks, rest = found[1], found[2].strip()
        if not state.fence:
            state.fence = "" if "`" in rest else marks
        elif marks.startswith(state.fence) and not rest:
            state.fence = ""
    return ANSWER


def _messages(
    kind: str, words: list[str], place: Place, state: State, started: datetime | None
) -> Iterator[Item]:
    if not words:
        return
    text = "\n".join(words).strip("\n")
    if kind == PROMPT:
        is_command = _COMMAND.match(text) and not _TO_THE_MODEL.match(text)
        yield Message("user", HARNESS if is_command else PERSON, (Text(text),), place=place)
    elif kind == ANSWER:
        yield Message("assistant", AGENT, (Text(text),), model=state.model, place=place)
    else:
        for line in words:
            if model := _MODEL.fullmatch(line):
                state.model = model[1]
            elif version := _VERSION.fullmatch(line):
                yield Fact("version", version[1])
            elif _TOKENS.fullmatch(line):
                yield UsageEvent(_usage(line), state.model, started)
        yield Message("system", HARNESS, (Text(text),), place=place)


def _usage(line: str) -> Usage:
    """The usage of one response in a line, rounded as Aider rounds it. Sent tokens include cached ones."""
    counts = {what: _number(number) * _UNITS[unit] for number, unit, what in _COUNT.findall(line)}
    written, read = round(counts.get("cache write", 0)), round(counts.get("cache hit", 0))
    sent = max(round(counts.get("sent", 0)) - written - read, 0)
    cost = _COST.search(line)
    return Usage(
        sent, round(counts.get("received", 0)), read, written, cost=_number(cost[1]) if cost else None
    )


def _number(text: str) -> float:
    try:
        return min(float(text.replace(",", "")), 1e15)
    except ValueError:
        return 0.0


def _problems(raw: bytes, path: str, line: int, offset: int) -> Iterator[Problem]:
    """The damage in a line."""
    if b"\0" in raw:
        words = "zero bytes in place of text, as a power cut leaves them"
        yield Problem("nul_run", Severity.lost_data, path, line, offset + raw.index(b"\0"), words)
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        words = "bytes that are not UTF-8, shown as U+FFFD"
        yield Problem("bad_utf8", Severity.lost_data, path, line, offset + error.start, words)


def started_at(stamp: str | None) -> datetime | None:
    """The local time in a heading; None if it is not a time."""
    try:
        return (
            None
            if stamp is None
            else datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").astimezone().astimezone(UTC)
        )
    except (ValueError, OverflowError, OSError):
        return None
