"""Check for events that GitHub Copilot CLI refuses, with the whole session.

Every version requires the same fields around the data of an event. The data must fit the schema that each version
brings; newer versions required fields that older ones had not written. Events of unknown types and unknown fields
are accepted, and so are lines that are not JSON.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib import import_module
from typing import Any

from sessionary.codec import Undecodable, decode
from sessionary.disk.fs import Fs, names_in, read_bytes
from sessionary.disk.pid_file import is_running
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.copilot_events import KNOWN
from sessionary.layouts.agents.fields import list_of, object_of
from sessionary.layouts.agents.log_check import LogCheck
from sessionary.layouts.files import mended_copy
from sessionary.model import Problem, Record, SessionRef, Severity

MOST_EVENTS = 20
"""Events that are reported of a session."""
CACHE = "COPILOT_CACHE_HOME"
_SCHEMA = "schemas/session-events.schema.json"
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)")
_LOCK = re.compile(r"inuse\.(\d{1,9})\.lock")

_UNKNOWN_FIELDS = "additionalProperties"
_MOST_REFERENCES = 8

Validate = Callable[[dict[str, Any]], str | None]
"""Why an event fails the schema; None if it does not."""


class CopilotCliCheck(LogCheck):
    """The events that every version refuses, and those that fail the schema of the newest one that is installed.

    Args:
        ref: the session.
        fs: the file system.
        home: the folder of the agent.
    """

    def __init__(self, ref: SessionRef, fs: Fs, home: str) -> None:
        super().__init__(ref)
        self._version, schema = _newest_schema(fs, home) or ("", None)
        self._validate = None if schema is None else _validator(schema)
        self._starts = False

    def stored(self, found: Record) -> None:
        super().stored(found)
        kind = found.value.get("type")
        self._starts = self._starts or kind == "session.start"
        if not isinstance(kind, str) or len(self._refused) == MOST_EVENTS:
            return
        if (why := envelope_fault(found.value)) is not None:
            words = f"Copilot CLI refuses an event {kind}: {why}"
            self.refuse("bad_event", Severity.stops_resume, found, words)
        elif self._validate is not None and (why := self._validate(found.value)) is not None:
            words = f"an event {kind} fails the schema of Copilot CLI {self._version}: {why}"
            self.refuse("refused_event", Severity.stops_resume, found, words)

    def problems(self) -> Iterator[Problem]:
        if not self._starts:
            words = "the events lack a session.start, without which Copilot CLI refuses the session"
            remedy = mended_copy(self.ref)
            first = Problem.of_file("no_header", Severity.stops_resume, self.ref.locator, words, remedy)
            self._refused.insert(0, first)
        yield from super().problems()
        if self._version and self._validate is None:
            words = f"the events were not compared with the schema of Copilot CLI {self._version}"
            remedy = "install `sessionary[schema]`"
            yield Problem.of_file("not_validated", Severity.note, self.ref.locator, words, remedy)


def envelope_fault(event: dict[str, Any]) -> str | None:
    """Why every version refuses an event, whatever its data; None if none does."""
    if event.get("type") not in KNOWN:
        return None
    if not is_uuid(event.get("id")):
        return "its `id` is not a UUID"
    if (parent := event.get("parentId", "")) is not None and not is_uuid(parent):
        return "its `parentId` is neither a UUID nor null"
    if not is_time(event.get("timestamp")):
        return "its `timestamp` is not a time with a zone"
    if not isinstance(event.get("agentId", ""), str):
        return "its `agentId` is not a text"
    if not isinstance(event.get("ephemeral", False), bool):
        return "its `ephemeral` is neither true nor false"
    return None


def is_uuid(value: Any) -> bool:
    """True for the text of a UUID with its hyphens."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def is_time(value: Any) -> bool:
    """True for the text of a time with a zone."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def beside_problems(fs: Fs, ref: SessionRef) -> Iterator[Problem]:
    """Locks of processes that have ended, and documents that cannot be read, beside the events."""
    folder = os.path.dirname(ref.locator)
    for name in sorted(names_in(fs, folder, []) or ()):
        path = f"{folder}/{name}"
        if (lock := _LOCK.fullmatch(name)) and not is_running(int(lock[1])):
            words = f"a lock of the process {lock[1]}, which is not running"
            remedy = "remove the lock if no Copilot CLI on another machine uses the session"
            yield Problem.of_file("stale_lock", Severity.note, path, words, remedy)
        elif name.endswith(".json"):
            try:
                decode(read_bytes(fs, path) or b"{}")
            except (Undecodable, SessionaryError) as error:
                words = f"the document cannot be read: {error}"
                remedy = mended_copy(ref)
                yield Problem.of_file("bad_document", Severity.hides_data, path, words, remedy)


def _newest_schema(fs: Fs, home: str) -> tuple[str, dict[str, Any]] | None:
    """The newest version that is installed, and its schema."""
    packages = [f"{home}/pkg", f"{_cache_folder()}/pkg"]
    kinds = [f"{package}/{name}" for package in packages for name in names_in(fs, package, []) or ()]
    versions = [(version, f"{kind}/{version}") for kind in kinds for version in names_in(fs, kind, []) or ()]
    for version, folder in sorted(versions, key=lambda one: _number_of(one[0]), reverse=True):
        try:
            schema = decode(read_bytes(fs, f"{folder}/{_SCHEMA}") or b"null")
        except (Undecodable, SessionaryError):
            continue
        if isinstance(schema, dict):
            return version, schema
    return None


def _cache_folder() -> str:
    """Where Copilot CLI unpacks its versions, if they are not below its home."""
    if stated := os.environ.get(CACHE):
        return stated
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/copilot")
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    return os.path.join(os.environ.get(variable) or os.path.expanduser("~/.cache"), "copilot")


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

    by_type: dict[str, list[Any]] = {}
    for name, one in _event_schemas(schema):
        by_type.setdefault(name, []).append(of(one))

    def validate(event: dict[str, Any]) -> str | None:
        whys = []
        for one in by_type.get(str(event.get("type")), ()):
            try:
                errors = (found for found in one.iter_errors(event) if found.validator != _UNKNOWN_FIELDS)
                error = next(errors, None)
            except missing_document:
                return None
            if error is None:
                return None
            whys.append(f"{error.json_path}: {error.message[:200]}")
        return whys[0] if whys else None

    missing_document = import_module("referencing.exceptions").Unresolvable
    return validate


def _event_schemas(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of each type of events."""
    events = _resolved(schema, schema)
    for one in list_of(events.get("anyOf") or events.get("oneOf")):
        event = _resolved(schema, one)
        name = _resolved(schema, object_of(event.get("properties")).get("type")).get("const")
        if isinstance(name, str):
            yield name, event


def _resolved(schema: dict[str, Any], part: Any) -> dict[str, Any]:
    """A part of the schema, or the one of the same document that it refers to."""
    for _ in range(_MOST_REFERENCES):
        path = object_of(part).get("$ref")
        if not isinstance(path, str) or not path.startswith("#/"):
            break
        part = schema
        for key in path[2:].split("/"):
            part = object_of(part).get(key)
    return object_of(part)
