"""One HTML file without scripts and external resources, with stored text made inert.

All stored text is escaped, Markdown is rendered without HTML and images, and a policy in the page forbids scripts and
requests. Thinking and tools are folded by ``<details>``. The colours follow the settings of the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sessionary.escaping import harmless
from sessionary.export.losses import Report
from sessionary.export.markup import LONGEST, markdown_parser
from sessionary.export.steps import Begin, Steps
from sessionary.export.style import STYLE
from sessionary.export.wording import call_words, closing, facts, one_line, pretty_json, speaker, title_of
from sessionary.model import AGENT, PERSON, Part, Problem, Text, Thinking, ToolCall, ToolResult
from sessionary.transcript.typed import Numbered

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SCHEMES = ("http://", "https://", "mailto:")


def write(steps: Steps, report: Report) -> Iterator[str]:
    """The lines; see `Write`."""
    page = _Page()
    for step in steps:
        if isinstance(step, Begin):
            yield from page.begin(step)
        elif isinstance(step, Numbered):
            yield from page.message(step)
        elif isinstance(step, Problem):
            yield f'<p class="problem">{escape(one_line(step.message, 1000))}</p>'
        elif step.depth:
            yield "</details>"
    if ends := list(closing(report)):
        yield "<footer><ul>"
        yield from (f"<li>{escape(line)}</li>" for line in ends)
        yield "</ul></footer>"
    yield "</main></body></html>"


class _Page:
    """Remembers the calls that wait for their results, to name the tools of these."""

    def __init__(self) -> None:
        self._parser = _parser()
        self._tools: dict[str | None, str] = {}

    def begin(self, step: Begin) -> Iterator[str]:
        title = escape(title_of(step.head))
        if step.depth:
            yield f'<details class="sub"><summary>Sub-agent: <bdi>{title}</bdi></summary>'
        else:
            yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
            yield f"<title>{title}</title><style>{STYLE}</style></head><body><main>"
            yield f'<h1 dir="auto">{title}</h1>'
        yield "<dl>"
        yield from (f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts(step.head))
        yield "</dl>"

    def message(self, numbered: Numbered) -> Iterator[str]:
        message = numbered.message
        time = f"<time>{message.time:%Y-%m-%d %H:%M:%S}</time>" if message.time else ""
        turn = f"{numbered.turn}. " if message.origin == PERSON else ""
        outside = " (outside of the conversation)" if numbered.outside else ""
        kind = {PERSON: "user", AGENT: "agent"}.get(message.origin, "other")
        yield f'<section class="{kind}{" outside" if numbered.outside else ""}">'
        yield f"<header><h2>{turn}{escape(speaker(message))}{outside}</h2>{time}</header>"
        for part in message.parts:
            yield self._part(part)
        yield "</section>"

    def _part(self, part: Part) -> str:
        if isinstance(part, Text):
            return self._text(part.text)
        if isinstance(part, Thinking):
            return _folded("Thinking", self._text(part.text or "(only its signature is stored)"))
        if isinstance(part, ToolCall):
            self._tools[part.call_id] = part.name
            summary = f"<b>{escape(one_line(part.name))}</b> <code>{escape(call_words(part))}</code>"
            return _folded(summary, _pre(pretty_json(part.arguments)))
        if isinstance(part, ToolResult):
            tool = escape(one_line(self._tools.pop(part.call_id, "a call that is missing")))
            failed = ' <span class="failed">failed</span>' if part.is_error else ""
            return _folded(f"Result of <b>{tool}</b>{failed}", _pre(harmless(part.text)))
        if part.value is None:
            return f'<p class="problem">[{escape(one_line(part.kind))}]</p>'
        return _folded(escape(one_line(part.kind)), _pre(pretty_json(part.value)))

    def _text(self, text: str) -> str:
        if len(text) > LONGEST:
            return _pre(harmless(text))
        rendered: str = self._parser.render(harmless(text))
        return f'<div dir="auto">{rendered}</div>'


def _folded(summary: str, content: str) -> str:
    """Content below a line; both are HTML."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def _pre(text: str) -> str:
    return f"<pre>\n{escape(text)}</pre>"


def _parser() -> MarkdownIt:
    """A parser whose links lead to the web or to mail only, and say nothing about this page."""
    parser = markdown_parser()
    parser.validateLink = lambda url: url.lower().startswith(_SCHEMES)  # type: ignore[method-assign]

    def link(renderer: Any, tokens: Sequence[Token], at: int, options: Any, environment: Any) -> str:
        tokens[at].attrSet("rel", "noreferrer noopener nofollow")
        return str(renderer.renderToken(tokens, at, options, environment))

    parser.add_render_rule("link_open", link)
    return parser
