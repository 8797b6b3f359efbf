"""Check for events that GitHub Copilot CLI refuses: those that fail the schema of the installed version.

Each version brings the schema of its events, and refuses a session with one event that fails it. Newer versions
required fields that older ones had not written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import Fs, read_bytes
from sessionary.disk.pid_file import is_running
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.fields import list_of, object_of
from sessionary.layouts.agents.log_check import LogCheck
from sessionary.layouts.base import mended_copy
from sessionary.model import Problem, Record, SessionRef, Severity

MOST_EVENTS = 20
"""Events that are reported of a session."""
_SCHEMAS = "pkg/universal"
_SCHEMA = "schemas/session-events.schema.json"
_LOCK = re.compile(r"inuse\.(\d{1,9})\.lock")

Validate = Callable[[dict[str, Any]], str | None]
"""Why an event fails the schema; None if it does not."""


class CopilotCliCheck(LogCheck):
    """The events that fail the schema of the newest version that is installed.

    Args:
        ref: the session.
        fs: the file system.
        home: the folder of the agent.
    """

    def __init__(self, ref: SessionRef, fs: Fs, home: str) -> None:
        super().__init__(ref)
        self._version, schema = _newest_schema(fs, home) or ("", None)
        self._validate = None if schema is None else _validator(schema)
        self._refused: list[Problem] = []

    def stored(self, found: Record) -> None:
        super().stored(found)
        if self._validate is None or len(self._refused) == MOST_EVENTS:
            return
        if (why := self._validate(found.value)) is not None:
            words = (
                f"an event {found.value.get('type')} fails the schema of Copilot CLI {self._version}: {why}"
            )
            at = (self.ref.locator, found.line, found.byte, words, mended_copy(self.ref))
            self._refused.append(Problem("refused_event", Severity.stops_resume, *at))

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from self._refused
        if self._version and self._validate is None:
            words = f"the events were not compared with the schema of Copilot CLI {self._version}"
            remedy = "install `sessionary[schema]`"
            yield Problem("not_validated", Severity.note, self.ref.locator, None, None, words, remedy)


def beside_problems(fs: Fs, ref: SessionRef) -> Iterator[Problem]:
    """Locks of processes that have ended, and documents that cannot be read, beside the events."""
    folder = os.path.dirname(ref.locator)
    try:
        names = sorted(fs.listdir(folder))
    except OSError:
        return
    for name in names:
        path = f"{folder}/{name}"
        if (lock := _LOCK.fullmatch(name)) and not is_running(int(lock[1])):
            words = f"a lock of the process {lock[1]}, which is not running"
            remedy = "remove the lock if no Copilot CLI on another machine uses the session"
            yield Problem("stale_lock", Severity.note, path, None, None, words, remedy)
        elif name.endswith(".json"):
            try:
                decode(read_bytes(fs, path) or b"{}")
            except (Undecodable, SessionaryError) as error:
                words = f"the document cannot be read: {error}"
                remedy = mended_copy(ref)
                yield Problem("bad_document", Severity.hides_data, path, None, None, words, remedy)


def _newest_schema(fs: Fs, home: str) -> tuple[str, dict[str, Any]] | None:
    try:
        versions = fs.listdir(f"{home}/{_SCHEMAS}")
    except OSError:
        return None
    for version in sorted(versions, key=_number_of, reverse=True):
        try:
            schema = decode(read_bytes(fs, f"{home}/{_SCHEMAS}/{version}/{_SCHEMA}") or b"null")
        except (Undecodable, SessionaryError):
            continue
        if isinstance(schema, dict):
            return version, schema
    return None


def _number_of(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _validator(schema: dict[str, Any]) -> Validate | None:
    """A validator of events; None without the library. A damaged schema accepts everything."""
    try:
        library, registry = import_module("jsonschema"), import_module("referencing").Registry()
    except ImportError:
        return None
    kind = library.validators.validator_for(schema, default=library.Draft7Validator)

    try:
        kind.check_schema(schema)
    except library.exceptions.SchemaError:
        return lambda event: None

    def of(part: dict[str, Any]) -> Any:
        definitions: dict[str, Any] = {
            key: schema[key] for key in ("$schema", "definitions", "$defs") if key in schema
        }
        return kind({**definitions, **part}, registry=registry)  # nothing is fetched from elsewhere

    whole = of(schema)
    by_type: dict[str, list[Any]] = {}
    for one in list_of(schema.get("anyOf") or schema.get("oneOf")):
        name = object_of(object_of(object_of(one).get("properties")).get("type")).get("const")
        if isinstance(name, str):
            by_type.setdefault(name, []).append(of(one))

    def validate(event: dict[str, Any]) -> str | None:
        whys = []
        for one in by_type.get(str(event.get("type"))) or [whole]:
            try:
                error = next(one.iter_errors(event), None)
            except missing_document:
                return None
            if error is None:
                return None
            whys.append(f"{error.json_path}: {error.message[:200]}")
        return whys[0]

    missing_document = import_module("referencing.exceptions").Unresolvable
    return validate
