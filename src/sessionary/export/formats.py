"""The formats by name. A new one is a module with a function `write`, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import NamedTuple, cast

from sessionary.export.losses import Report
from sessionary.export.steps import Steps

Write = Callable[[Steps, Report], Iterator[str | bytes]]
"""Turns steps into lines without their newlines, as text or UTF-8. The report is complete once the steps have ended."""


class Format(NamedTuple):
    """A format.

    Attributes:
        module: the module in this package that writes it; loaded when it is used.
        whole_results: it carries tool results as they are stored, not only their text.
    """

    module: str
    suffix: str
    whole_results: bool

    def write(self, steps: Steps, report: Report) -> Iterator[str | bytes]:
        """The lines of an export."""
        module = import_module(f"sessionary.export.{self.module}")
        return cast("Write", module.write)(steps, report)


FORMATS: Mapping[str, Format] = {
    "md": Format("markdown", ".md", whole_results=False),
    "html": Format("html", ".html", whole_results=False),
    "json": Format("json_document", ".json", whole_results=True),
    "jsonl": Format("jsonl", ".jsonl", whole_results=True),
    "atif": Format("atif", ".atif.json", whole_results=True),
    "sts": Format("sts", ".sts.jsonl", whole_results=True),
    "otel": Format("otel", ".otlp.jsonl", whole_results=True),
}
"""The formats, by the word for `--format`."""

_SUFFIXES = {form.suffix: name for name, form in FORMATS.items()} | {".markdown": "md", ".htm": "html"}


def format_of(name: str) -> str:
    """The format of a file by the end of its name, the longest that matches; ``md`` for all others."""
    ends = [suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)]
    return _SUFFIXES[max(ends, key=len)] if ends else "md"
