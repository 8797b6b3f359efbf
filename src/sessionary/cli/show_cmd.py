"""`sessionary show`: read a session, or any file of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from sessionary.cli import options, output, phrases
from sessionary.cli.reading import Page
from sessionary.cli.targets import Target, resolve
from sessionary.cli.text import harmless, one_line, wrap
from sessionary.errors import Corrupt, Invalid, NotFound
from sessionary.layouts.amplifier.messages import parse_time, timestamp_of
from sessionary.model import Entry, Problem, Severity, Summary
from sessionary.turns import ToolCall, ToolResult, is_real_user, results, text_of, tool_calls
from sessionary.workspace import Workspace

_TURNS = re.compile(r"(?P<one>\d+)|(?P<first>\d*)\.\.(?P<last>\d*)")


class Said(NamedTuple):
    """One message as it is shown.

    Attributes:
        index: its place among the readable records, from 0.
        turn: the turn it belongs to, from 1; 0 before a person spoke.
        role: who speaks; None if the record does not say.
        person: True if a person does.
        text: the words.
        time: when, UTC; None if the record does not say.
        calls: the tools that are called.
        results: what tools answered.
        record: the whole record.
    """

    index: int
    turn: int
    role: str | None
    person: bool
    text: str
    time: datetime | None
    calls: list[ToolCall]
    results: list[ToolResult]
    record: dict[str, Any]
