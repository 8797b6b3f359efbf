"""Markdown: each message under a heading, its text quoted, so that no text can pass for another message.

Thinking and tools are folded by ``<details>``, which GitHub and GitLab render.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from sessionary.escaping import harmless
from sessionary.export.losses import Report
from sessionary.export.markup import inert, markdown_parser
from sessionary.export.steps import Begin, Steps
from sessionary.export.wording import call_words, closing, facts, one_line, pretty_json, speaker, title_of
from sessionary.model import PERSON, Part, Problem, Text, Thinking, ToolCall, ToolResult
from sessionary.transcript.typed import Numbered

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    page = _Page()
    for step in steps:
        if isinstance(step, Begin):
            yield from page.begin(step)
        elif isinstance(step, Numbered):
            yield from page.message(step)
        elif isinstance(step, Problem):
            yield from ("", f"*{_plain(step.message)}*")
        elif step.depth:
            yield from ("", "</details>")
    if ends := list(closing(report)):
        yield from ("", "---", "", *(f"- {_plain(line)}" for line in ends))


class _Page:
    """Remembers the calls that wait for their results, to name the tools of these."""

    def __init__(self) -> None:
        self._parser = markdown_parser()
        self._tools: dict[str | None, str] = {}

    def begin(self, step: Begin) -> Iterator[str]:
        title = _plain(title_of(step.head))
        if step.depth:
            yield from ("", "<details>", f"<summary>Sub-agent: {escape(title_of(step.head))}</summary>", "")
        yield f"{'#' * min(step.depth + 1, 3)} {title}"
        yield ""
        yield from (f"- {name}: {_code(value)}" for name, value in facts(step.head))

    def message(self, numbered: Numbered) -> Iterator[str]:
        message = numbered.message
        about = [speaker(message)]
        if message.origin == PERSON:
            about.insert(0, f"{numbered.turn}.")
        about += [f"{message.time:%Y-%m-%d %H:%M:%S}"] if message.time else []
        about += ["(outside of the conversation)"] if numbered.outside else []
        yield from ("", f"{'##' if message.origin == PERSON else '###'} {_plain(' '.join(about))}")
        for part in message.parts:
            yield ""
            yield from self._part(part)

    def _part(self, part: Part) -> Iterator[str]:
        if isinstance(part, Text):
            yield _quoted(inert(part.text, self._parser))
        elif isinstance(part, Thinking):
            text = _quoted(inert(part.text, self._parser)) if part.text else "*only its signature is stored*"
            yield from _folded("Thinking", text)
        elif isinstance(part, ToolCall):
            self._tools[part.call_id] = part.name
            summary = f"Call <code>{escape(one_line(part.name))}</code> {escape(call_words(part))}"
            yield from _folded(summary.rstrip(), _fenced(pretty_json(part.arguments), "json"))
        elif isinstance(part, ToolResult):
            tool = self._tools.pop(part.call_id, "a call that is missing")
            failed = " failed" if part.is_error else ""
            summary = f"Result of <code>{escape(one_line(tool))}</code>{failed}"
            yield from _folded(summary, _fenced(harmless(part.text)))
        elif part.value is None:
            yield f"*{_plain(f'[{part.kind}]')}*"
        else:
            yield from _folded(escape(one_line(part.kind)), _fenced(pretty_json(part.value), "json"))


def _folded(summary: str, content: str) -> Iterator[str]:
    """Content below a line; the summary is HTML."""
    yield from ("<details>", f"<summary>{summary}</summary>", "", content, "", "</details>")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _fenced(text: str, language: str = "") -> str:
    """A block of code; the fence is longer than any in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    """A text on one line as a code span."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {text} {ticks}" if longest else f"`{text}`"


def _plain(text: str) -> str:
    """A text in which nothing is Markdown."""
    return _SPECIAL.sub(r"\\\1", one_line(text, 1000))
