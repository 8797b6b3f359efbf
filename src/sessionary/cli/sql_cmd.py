"""`sessionary sql`: the catalogue of sessions, read with SQL."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import click

from sessionary.catalog import Rows
from sessionary.catalog.store import schema
from sessionary.cli import formatting, homes, options, output, table
from sessionary.cli.lazy import command
from sessionary.cli.table import Column
from sessionary.cli.targets import all_summaries, report_failure
from sessionary.cli.text import fit, one_line

_LONGEST = 60
"""Width of a table column on a terminal, in cells; `--csv` and `--json` cut nothing."""


@command(
    "sql",
    'sessionary sql "SELECT project, count(*), sum(messages) FROM sessions GROUP BY 1"',
    "sessionary sql \"SELECT id, title FROM sessions WHERE health <> 'ok'\" --json",
    'sessionary sql "SELECT date(updated), count(*) FROM sessions GROUP BY 1" --csv',
    "sessionary sql --schema",
)
@click.argument("statement", metavar="STATEMENT", required=False)
@options.home
@options.flag("--schema", "schema_", help="Print the tables and the meaning of their columns.")
@options.flag("--csv", "csv_", help="Print the rows as CSV, with column names first.")
@options.as_json("the rows", "one row")
def sql_command(statement: str | None, schema_: bool, csv_: bool) -> int:
    """Query the catalogue of sessions with SQL.

    The catalogue is the SQLite file that caches what lists have read. It is refreshed first, for the sessions
    that `list` shows; it may also hold sessions of other homes (see the column `home`). It holds no messages.

    STATEMENT can only read: SELECT, WITH and VALUES. Times are in UTC, ISO 8601. Nothing is changed.
    """
    workspace = homes.workspace()
    if (statement is None) != schema_:
        raise click.UsageError("give a statement, or --schema")
    if csv_ + output.wants("json") + output.wants("jsonl") > 1:
        raise click.UsageError("--csv, --json and --jsonl exclude each other")
    if statement is None:
        output.lines(schema().splitlines())
        return 0
    _, failure = all_summaries(workspace)
    found = workspace.sql(statement, refresh=False)
    if csv_:
        output.lines(_csv(found))
    elif output.is_json():
        output.items(dict(zip(found.names, map(_plain, row), strict=True)) for row in found.rows)
    else:
        with output.paged():
            output.lines(_table(found))
        output.aside(formatting.count(len(found.rows), "row"))
    return report_failure(failure, "read")


def _plain(value: Any) -> Any:
    """A value as JSON has it: bytes in hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else value


def _csv(found: Rows) -> Iterator[str]:
    for row in (found.names, *found.rows):
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([_plain(value) for value in row])
        yield text.getvalue()


def _table(found: Rows) -> Iterator[str]:
    """The rows in columns; numbers are aligned right."""
    columns = []
    for at, name in enumerate(found.names):
        values = [row[at] for row in found.rows]
        are_numbers = bool(values) and all(isinstance(value, (int, float)) for value in values)
        columns.append(Column(one_line(name), list(map(_shown, values)), right=are_numbers))
    return table.lines(columns, None)


def _shown(value: Any) -> str:
    text = "" if value is None else one_line(str(_plain(value)))
    return fit(text, _LONGEST) if output.is_terminal() else text
