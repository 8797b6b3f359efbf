"""state.yaml: read it, and write it. Unknown keys, other notations and comments are kept by an update."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, final

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_edit import edit_yaml
from sessionary.codec.yaml_faults import lines_of
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml, scalar_text
from sessionary.disk.fs import Fs, read_bytes
from sessionary.errors import Corrupt, NotFound, Unsupported
from sessionary.layouts.orchestrator.names import STATE
from sessionary.layouts.orchestrator.rules import MODELS, broken, note
from sessionary.layouts.orchestrator.times import parse, stamp
from sessionary.model import Problem, Severity

VERSION: Final = "1.0"
CURRENT: Final = "current_state"
BEFORE_ITS_START: Final = f"{CURRENT}.last_updated: is before started_at"
"""The one fault that is caused by a wrong clock, and is not damage."""

_OUR_TIME: Final = re.compile(r"[\d-]+T[\d:]+\.\d{6}Z")
# What the contract's scripts make of the file when they set a status: a line with wrong indentation.
_STATUS_LINE: Final = re.compile(
    rb"^(feature_id:[^\n]*\n)[ \t]+status:[ \t]*\"?(\w+)\"?[ \t]*\n", re.MULTILINE
)

# A value on a line of its own.
_LINE: Final = rb"""^([ \t]+%b:[ \t]+)(?:"[^"\\\n]*"|'[^'\n]*'|[\w.:+-]+)(?=[ \t]*(?:[ \t]#[^\n]*)?\r?$)"""


@final
@dataclass(frozen=True, slots=True)
class FeatureState:
    """The content of a state file.

    Attributes:
        feature_id: the feature.
        active_task: the active task, or None.
        model_in_use: ``gemini``, ``opus`` or ``sonnet``.
        started_at: when the feature began, UTC; None if missing.
        last_updated: when the state changed last, UTC; None if missing.
    """

    feature_id: str
    active_task: str | None
    model_in_use: str
    started_at: datetime | None
    last_updated: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """The same with the keys of the contract, as JSON."""
        return {
            "active_task": self.active_task,
            "model_in_use": self.model_in_use,
            "started_at": self.started_at and stamp(self.started_at),
            "last_updated": self.last_updated and stamp(self.last_updated),
        }


class StateFile(NamedTuple):
    """A state file, as read.

    Attributes:
        data: its bytes.
        document: its parsed content.
        state: the same as a value.
        problems: oddities.
    """

    data: bytes
    document: dict[str, Any]
    state: FeatureState
    problems: list[Problem]

    @property
    def is_by_us(self) -> bool:
        """True if the last write was an update of ours: then the history has a line of it.

        The scripts log nothing when they set a state, and write whole seconds.
        """
        state, text = self.state, self.document[CURRENT].get("last_updated")
        changed = state.started_at and state.last_updated and state.last_updated > state.started_at
        return bool(changed) and _OUR_TIME.fullmatch(str(text)) is not None


def read_state(fs: Fs, folder: str) -> StateFile:
    """Read the state of a feature.

    Raises:
        NotFound: the state file does not exist.
        Corrupt, SchemaError, Unsupported: as `parse_state`.
    """
    path, feature_id = f"{folder}/{STATE}", os.path.basename(folder)
    data = read_bytes(fs, path)
    if data is None:
        raise NotFound(
            f"{path} is missing",
            path=path,
            session=feature_id,
            hint=f"`sessionary feature repair {feature_id}` restores it from the history",
        )
    return parse_state(data, path, feature_id)


def parse_state(data: bytes, path: str, feature_id: str) -> StateFile:
    """Parse the bytes of a state file.

    Raises:
        Corrupt: they are not valid YAML, or not the YAML of a state.
        SchemaError: a field has a value that the contract does not allow; `details["faults"]` lists all, and
        `details["lines"]` their lines.
        Unsupported: the file has a newer version of the contract.
    """
    document, problems = _load(data, path, feature_id)
    _check_version(document, path, feature_id)
    current = document.get(CURRENT)
    if not isinstance(current, dict):
        raise _corrupt(path, feature_id, f"{path} has no {CURRENT}")
    if faults := _faults(current):
        raise broken(
            path,
            faults,
            path=path,
            session=feature_id,
            details={"lines": lines_of(data, faults)},
            hint=f"correct the file, or `sessionary feature repair {feature_id}`",
        )
    state = FeatureState(
        feature_id,
        current.get("active_task"),
        current["model_in_use"],
        parse(current.get("started_at")),
        parse(current.get("last_updated")),
    )
    return StateFile(data, document, state, problems + _oddities(document, path, feature_id))


def _load(data: bytes, path: str, feature_id: str) -> tuple[dict[str, Any], list[Problem]]:
    problems: list[Problem] = []
    try:
        document = load_yaml(data, path=path)
    except Corrupt as error:
        healed, count = _STATUS_LINE.subn(rb"\1", data)
        try:
            document = load_yaml(healed, path=path) if count else None
        except Corrupt:
            document, count = None, 0
        if not count:
            raise _corrupt(path, feature_id, error.message, error.details) from None
        words = "an indented status below feature_id, as written by the contract's scripts, is not valid YAML"
        remedy = "`sessionary feature repair` removes the line and keeps the old file"
        problems = [Problem("status_line", Severity.stops_resume, path, 3, None, words, remedy)]
    if not isinstance(document, dict):
        raise _corrupt(path, feature_id, f"{path} is not a map")
    return document, problems


def _corrupt(path: str, feature_id: str, message: str, details: dict[str, Any] | None = None) -> Corrupt:
    hint = f"`sessionary feature repair {feature_id}` restores it from the history and keeps these bytes"
    return Corrupt(message, path=path, session=feature_id, details=details, hint=hint)


def _faults(current: dict[str, Any]) -> list[str]:
    """All violations of the contract in a state, each with its field."""
    faults = []
    task, model = current.get("active_task"), current.get("model_in_use")
    if not isinstance(task, str | None):
        faults.append(f"{CURRENT}.active_task: {task!r} is neither a task id nor null")
    if model not in MODELS:
        faults.append(f"{CURRENT}.model_in_use: {model!r} is not one of {', '.join(MODELS)}")
    began, updated = parse(current.get("started_at")), parse(current.get("last_updated"))
    faults += [
        f"{CURRENT}.{name}: {current.get(name)!r} is not an ISO 8601 timestamp"
        for name, moment in (("started_at", began), ("last_updated", updated))
        if moment is None
    ]
    if began is not None and updated is not None and updated < began:
        faults.append(BEFORE_ITS_START)
    return faults


def _oddities(document: dict[str, Any], path: str, feature_id: str) -> list[Problem]:
    problems = []
    version, named = document.get("version"), document.get("feature_id")
    if version is None:
        problems.append(note("no_version", path, "the version is missing; 1.0 is assumed", "none needed"))
    elif version != VERSION:
        words = f"the version is written as {version!r}, not as text"
        problems.append(note("odd_version", path, words, f"`sessionary feature migrate {feature_id}`"))
    if named != feature_id:
        words = f"feature_id is {named!r}, but the folder is {feature_id}, which is used"
        problems.append(note("other_feature_id", path, words, "correct feature_id, or rename the folder"))
    return problems


def _check_version(document: dict[str, Any], path: str, feature_id: str) -> None:
    """Refuse another major version, or an invalid one. A newer minor version is read, and its keys are kept."""
    version = document.get("version", VERSION)
    major = str(version).partition(".")[0]
    if isinstance(version, bool) or not major.isdigit() or int(major) != 1:
        raise Unsupported(
            f"{path} has version {version!r}; this program supports 1",
            path=path,
            session=feature_id,
            details={"version": str(version)},
            hint="use a newer version of Sessionary; nothing was changed",
        )


def new_state(feature_id: str, model: str, task: str | None, began: datetime, updated: datetime) -> bytes:
    """The bytes of a state file."""
    current = {
        "active_task": task,
        "model_in_use": model,
        "started_at": stamp(began),
        "last_updated": stamp(updated),
    }
    return dump_yaml({"version": VERSION, "feature_id": feature_id, CURRENT: current})


def changed_state(found: StateFile, changes: dict[str, Any]) -> bytes:
    """The file with some of its current state changed, everything else unchanged, comments and notation too."""
    document = {**found.document, CURRENT: {**found.document[CURRENT], **changes}}
    data = found.data
    for name, value in changes.items():
        text = scalar_text(value).encode()
        line = re.compile(_LINE % re.escape(name.encode()), re.MULTILINE)
        data, count = line.subn(lambda match, text=text: match[1] + text, data)  # type: ignore[misc]
        if count != 1:
            return edit_yaml(found.data, document)
    with suppress(Corrupt):
        if same(load_yaml(data), document):
            return data
    return edit_yaml(found.data, document)
