"""Render a conversation: turns under rules, each tool call on one line, with the first and last lines of its result.

Lines are produced while messages are read, so that the first turn of a huge session appears at once. A tool
call waits for its result in a later message and is printed with it. If the agent continues before that, as while a
sub-agent works, the call is printed at once and again with its result. A call is marked that has no result when the
user speaks again, or at the end.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from sessionary import codec
from sessionary.cli.formatting import clock, count, stamp
from sessionary.cli.output import has_colours, paint
from sessionary.cli.text import cells, fit, harmless, one_line, wrap
from sessionary.export.markup import LONGEST, markdown_parser
from sessionary.model import PERSON, Message, Other, Text, Thinking, ToolCall, ToolResult
from sessionary.transcript.telling import telling_arguments
from sessionary.transcript.typed import Numbered

UNFOLDED = 20
HEAD = 8
TAIL = 4

_SPEAKERS = {
    "assistant": "Agent",
    "tool": "Tool",
    "system": "System",
    "developer": "Developer",
    "user": "Hook",
}
_PROMPTS = frozenset({"system", "developer"})
_LONG_PROMPT = 2_000
"""Characters from which on the prompt of a program is folded as a result is."""
_BAR = "  │ "
HUGE = 1_000_000
"""Longest result, in characters, whose folded lines are counted."""
BESIDE = 20_000
"""Characters of a message shown beside the requested one: one message may have a hundred megabytes."""


class _Open:
    """Calls without a result so far: those of the last message, and earlier ones, which were printed."""

    def __init__(self) -> None:
        self.last: dict[str | int | None, ToolCall] = {}
        self.earlier: dict[str | int | None, ToolCall] = {}

    def take(self, call_id: str | None) -> ToolCall | None:
        """Remove and return the call that a result belongs to; None if none waits for it."""
        return self.last.pop(call_id, None) or self.earlier.pop(call_id, None)

    def pass_on(self) -> list[ToolCall]:
        """Make the calls of the last message earlier ones, and return them."""
        calls = list(self.last.values())
        self.earlier |= {call.call_id: call for call in calls if call.call_id is not None}
        self.last = {}
        return calls


class Page:
    """Turns messages into lines.

    Args:
        width: cells per line.
        now: the present, for dates without a year.
        marked: the index of the message to mark and unfold, if those around it are shown.
    """

    def __init__(
        self,
        width: int,
        *,
        full: bool,
        now: datetime,
        marked: int | None = None,
        draw: bool = False,
    ) -> None:
        self._draw = draw
        self._width = width
        self._full = full
        self._marked = marked
        self._now = now
        self._open = _Open()
        self._speaker: str | None = None
        self._apart = ""
        self._open_elsewhere = _Open()
        self._last = -1

    def lines(self, messages: Iterable[Numbered]) -> Iterator[str]:
        """The lines of the messages, in order. Of preceding ones only the calls are kept, for their results."""
        full = self._full
        for message in messages:
            if message.preceding:
                if not _apart(message):
                    self._skip(message.message)
                continue
            if self._marked is not None:
                marked = message.index == self._marked and not _apart(message)
                self._full = full or marked
                yield from self._mark(message) if marked else ()
            if _apart(message) != self._apart:
                yield from self._switch(_apart(message))
            yield from self._message(message)
        self._full = full
        if self._marked is None:
            yield from self._unanswered()
            self._open = self._open_elsewhere
            yield from self._unanswered()

    def _switch(self, apart: str) -> Iterator[str]:
        """A line where messages that are not of the conversation begin or end; the calls of each wait for their own."""
        if self._apart:
            yield from self._unanswered()
        if bool(apart) != bool(self._apart):
            self._open, self._open_elsewhere = self._open_elsewhere, self._open
        self._apart, self._speaker = apart, None
        words = apart or "the conversation continues"
        yield ""
        yield paint(f"╌╌ {words} ".ljust(self._width, "╌"), "yellow")

    def _message(self, numbered: Numbered) -> Iterator[str]:
        message, is_more = numbered.message, numbered.index == self._last and not self._apart
        self._last = numbered.index
        own = _by_id(
            message.calls
        )  # what the user ran, and what the provider executes, has its result beside it
        for result in message.results:
            yield from self._call(self._open.take(result.call_id) or own.pop(result.call_id, None), result)
        if _only_answers(message):
            return
        if message.origin == PERSON:
            yield from self._unanswered()
            yield from self._person(message, numbered.turn)
        else:
            if is_more:  # further parts of a message that is being written
                own = {**self._open.last, **own}
            else:
                yield from (self._call_line(call, "") for call in self._open.pass_on())
            yield from self._other(message)
        self._open.last = own

    def _skip(self, message: Message) -> None:
        """Remember only which calls of a message that is not shown are still without a result."""
        for result in message.results:
            self._open.take(result.call_id)
        if not _only_answers(message):
            if message.origin == PERSON:
                self._open = _Open()
            self._open.pass_on()
            self._open.last = _by_id(message.calls)

    def _mark(self, numbered: Numbered) -> Iterator[str]:
        """A line that marks the requested message."""
        self._speaker = None
        yield ""
        line = numbered.message.place.line
        yield paint(f"▶ message {numbered.index}" + (f", line {line}" if line else ""), "yellow")

    def _person(self, message: Message, turn: int) -> Iterator[str]:
        time = f" {stamp(message.time, self._now)} ──" if message.time else ""
        yield ""
        speaker = f"── {turn} ── You " if turn else "── You "
        yield paint(speaker.ljust(self._width - cells(time), "─") + time, "cyan")
        yield from self._words(message.text or _kinds(message))
        self._speaker = "You"

    def _other(self, message: Message) -> Iterator[str]:
        if message.role is None:
            for part in message.parts:
                value = part.value if isinstance(part, Other) else part
                yield self._aside("record", codec.encode_line(codec.sanitize(value)).decode())
        elif message.role == "user":
            yield from self._folded("hook", message.text or _kinds(message))
        else:
            speaker = _SPEAKERS.get(message.role, message.role)
            if speaker != self._speaker or message.text:
                yield from self._label(speaker, message.time)
            for thought in message.thoughts:
                yield from self._folded("thinking", thought)
            is_prompt = message.role in _PROMPTS and len(message.text) > _LONG_PROMPT and not self._full
            yield from self._result(message.text) if is_prompt else self._drawn(message.text)
            for part in message.parts:
                if isinstance(part, Other) and part.kind == "error":
                    yield paint(fit(f"✗ {one_line(_words_of(part.value))}", self._width), "red")

    def _label(self, speaker: str, time: datetime | None) -> Iterator[str]:
        yield ""
        if speaker != self._speaker:
            name = one_line(speaker)
            room = self._width - cells(name)
            yield paint(name, "bold") + (paint(clock(time).rjust(room), "dim") if time else "")
        self._speaker = speaker

    def _words(self, text: str) -> Iterator[str]:
        beside = self._marked is not None and not self._full
        shown = text[:BESIDE] if beside else text
        yield from wrap(harmless(shown), self._width) if shown else ()
        if left := len(text) - len(shown):
            yield paint(f"… {left:,} more characters; show this message by its index to see them", "dim")

    def _drawn(self, text: str) -> Iterator[str]:
        """The text of an agent, rendered as Markdown on a terminal; unchanged elsewhere."""
        longest = LONGEST if self._marked is None or self._full else BESIDE
        if self._draw and text.strip() and len(text) <= longest:
            yield from markdown_lines(harmless(text), self._width, colours=has_colours())
        else:
            yield from self._words(text)

    def _folded(self, what: str, text: str) -> Iterator[str]:
        """Text of hooks and thinking: one line of it, or all with `full`."""
        if not self._full:
            yield self._aside(what, text)
        else:
            yield paint(f"{what}:", "dim")
            yield from (paint(_BAR + line, "dim") for line in wrap(harmless(text), self._width - len(_BAR)))

    def _aside(self, what: str, text: str) -> str:
        return paint(fit(f"{what}: {one_line(text)}", self._width), "dim")

    def _call(self, call: ToolCall | None, result: ToolResult) -> Iterator[str]:
        """A call with its result."""
        text, verdict = _answer(result)
        yield self._call_line(
            call or ToolCall(result.call_id, "?", "the result of a call that is missing"), verdict
        )
        yield from (paint(_BAR + line, "dim") for line in self._result(text))

    def _result(self, text: str) -> list[str]:
        """The lines of a tool's result: with `full` all, else the first and last of many."""
        width = self._width - len(_BAR)
        if len(text) > HUGE and not self._full:
            # Splitting a hundred megabytes into lines to count them would take minutes.
            head = islice(wrap(harmless(text[:BESIDE]), width), HEAD)
            tail = list(wrap(harmless(text[-BESIDE:]).rstrip("\n"), width))[-TAIL:]
            return [*head, f"… of {len(text):,} characters", *tail]
        lines = list(wrap(harmless(text).rstrip("\n"), width)) if text else []
        if len(lines) > UNFOLDED and not self._full:
            lines[HEAD:-TAIL] = [f"… {count(len(lines) - HEAD - TAIL, 'more line')}"]
        return lines

    def _unanswered(self) -> Iterator[str]:
        for call in (*self._open.earlier.values(), *self._open.last.values()):
            # Some stores keep neither ids of calls nor results: then nothing is missing.
            yield self._call_line(call, "" if call.call_id is None else "✗ no result")
        self._open = _Open()

    def _call_line(self, call: ToolCall, verdict: str) -> str:
        name = one_line(call.name)
        room = self._width - cells(name) - 4 - (cells(verdict) + 2 if verdict else 0)
        shown = fit(brief_arguments(call.arguments), max(room, 0))
        parts = ["▸ " + paint(name, "magenta"), shown, paint(verdict, "red") if verdict else ""]
        return "  ".join(filter(None, parts))


def _words_of(error: Any) -> str:
    """The words of an error that a model or its provider returned."""
    if isinstance(error, dict):
        inner = error.get("data")
        words = error.get("message") or (inner.get("message") if isinstance(inner, dict) else None)
        if isinstance(words, str):
            return words
    return error if isinstance(error, str) else codec.encode_line(codec.sanitize(error)).decode()


def _by_id(calls: Iterable[ToolCall]) -> dict[str | int | None, ToolCall]:
    """Calls by their ids; of several without one, the first has the id None, and the others their numbers."""
    found: dict[str | int | None, ToolCall] = {}
    for number, call in enumerate(calls):
        found[number if call.call_id is None and None in found else call.call_id] = call
    return found


def brief_arguments(arguments: Any) -> str:
    """The two most informative arguments, on one line."""
    return "  ".join(map(one_line, telling_arguments(arguments)))


def _answer(result: ToolResult) -> tuple[str, str]:
    """The text of a result, and a verdict if the call failed. Shell output is shown unchanged."""
    text, verdict = result.text, "✗ failed" if result.is_error else ""
    if not text.startswith("{"):
        return text, verdict
    try:
        value = codec.decode(text.encode("utf-8", "surrogatepass"))
    except codec.Undecodable:
        return text, verdict
    if not isinstance(value, dict) or not isinstance(value.get("stdout"), str):
        return text, verdict
    code = value.get("returncode")
    printed = "\n".join(
        part.rstrip("\n") for part in (value["stdout"], str(value.get("stderr") or "")) if part
    )
    return printed, f"✗ exit {code}" if isinstance(code, int) and code else verdict


def _apart(numbered: Numbered) -> str:
    """The reason why a message is outside of the conversation; empty for one that is in it."""
    if numbered.inherited:
        return "of the session that this one was forked from"
    return "outside of the conversation" if numbered.outside else ""


def _only_answers(message: Message) -> bool:
    """True if a message says nothing beside the results that it holds."""
    return bool(message.results) and (message.role == "tool" or not message.text)


def _kinds(message: Message) -> str:
    """A description of a message without text."""
    kinds = [part.kind if isinstance(part, Other) else _KINDS.get(type(part), "") for part in message.parts]
    return " ".join(f"[{kind}]" for kind in kinds if kind) or "(no text)"


_KINDS = {ToolCall: "tool_use", ToolResult: "tool_result", Thinking: "thinking", Text: "text"}


def markdown_lines(text: str, width: int, *, colours: bool) -> Iterator[str]:
    """Return the lines of a Markdown text, each of at most `width` cells."""
    from rich.console import Console
    from rich.markdown import Markdown

    page = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    page.parsed = markdown_parser().parse(text)
    page.markup = text
    screen = io.StringIO()
    console = Console(
        file=screen,
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        legacy_windows=False,
        emoji=False,
        highlight=False,
    )
    console.print(page)
    for line in screen.getvalue().strip("\n").split("\n"):
        yield line.rstrip()
