r"""state.yaml: read it fast, and write it.

Nearly every state file was written by us: seven lines of one form. That form is matched by one regular
expression, because each update reads the file, and a YAML parser takes longer than the rest of the work
without the flushes. Any other text is parsed as YAML: unknown keys, other notations and comments, all of
which are kept by an update.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from sessionary.codec.yaml_edit import edit_yaml, same
from sessionary.codec.yaml_faults import lines_of
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml, scalar_text
from sessionary.disk.fs import Fs, read_bytes
from sessionary.errors import Corrupt, NotFound, SchemaError, Unsupported
from sessionary.layouts.orchestrator.rules import MODELS
from sessionary.layouts.orchestrator.times import parse, stamp
from sessionary.model import Problem, Severity

VERSION: Final = "1.0"
CURRENT: Final = "current_state"
BEFORE_ITS_START: Final = f"{CURRENT}.last_updated: is before started_at"
"""The one fault that is caused by a wrong clock, and is not damage."""

_WORD = r'"([ !#-\[\]-~]*)"'
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
_FORM: Final = (
    'version: "1.0"\nfeature_id: "%s"\ncurrent_state:\n  active_task: %s\n'
    '  model_in_use: "%s"\n  started_at: "%s"\n  last_updated: "%s"\n'
)
_CANONICAL: Final = re.compile(
    f'version: "1\\.0"\nfeature_id: {_WORD}\ncurrent_state:\n  active_task: (?:null|{_WORD})\n'
    f"  model_in_use: {_WORD}\n  started_at: {_WORD}\n  last_updated: {_WORD}\n".encode()
)
_OUR_TIME: Final = re.compile(r"[\d-]+T[\d:]+\.\d{6}Z")
# What the contract's scripts make of the file when they set a status: a line with wrong indentation.
_STATUS_LINE: Final = re.compile(
    rb"^(feature_id:[^\n]*\n)[ \t]+status:[ \t]*\"?(\w+)\"?[ \t]*\n", re.MULTILINE
)


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


class StateFile(NamedTuple):
    """A state file, as read.

    Attributes:
        data: its bytes.
        document: its parsed content.
        state: the same as a value.
        problems: oddities.
        canonical: True if the bytes have exactly the form that we write.
    """

    data: bytes
    document: dict[str, Any]
    state: FeatureState
    problems: list[Problem]
    canonical: bool = False


def read_state(fs: Fs, folder: str, feature_id: str) -> StateFile:
    """Read the state of a feature.

    Raises:
        NotFound: the state file does not exist.
        Corrupt, SchemaError, Unsupported: as `parse_state`.
        StorageFailed: it cannot be read.
    """
    data = read_bytes_of(fs, folder, feature_id)
    return parse_state(data, f"{folder}/state.yaml", feature_id)


def read_bytes_of(fs: Fs, folder: str, feature_id: str) -> bytes:
    """The bytes of a state. Raises NotFound and StorageFailed as `read_state`."""
    path = f"{folder}/state.yaml"
    data = read_bytes(fs, path)
    if data is None:
        raise NotFound(
            f"{path} is missing",
            path=path,
            session=feature_id,
            hint=f"`sessionary feature repair {feature_id}` restores it from the history",
        )
    return data


def parse_state(data: bytes, path: str, feature_id: str) -> StateFile:
    """Parse the bytes of a state file.

    Raises:
        Corrupt: they are not valid YAML, or not the YAML of a state.
        SchemaError: a field has a value that the contract does not allow; `details["faults"]` lists all, and
        `details["lines"]` their lines.
        Unsupported: the file has a newer version of the contract.
    """
    found = _CANONICAL.fullmatch(data)
    if found is not None:
        named, model, began, updated = (found[number].decode("ascii") for number in (1, 3, 4, 5))
        task = None if found[2] is None else found[2].decode("ascii")
        if model in MODELS and named == feature_id and (last := parse(updated)) and (first := parse(began)):
            state = FeatureState(named, task, model, first, last)
            return StateFile(data, _document(named, task, model, began, updated), state, [], True)
    return _parse_slowly(data, path, feature_id)


def _document(named: str, task: str | None, model: str, began: str, updated: str) -> dict[str, Any]:
    current = {"active_task": task, "model_in_use": model, "started_at": began, "last_updated": updated}
    return {"version": VERSION, "feature_id": named, CURRENT: current}


def _parse_slowly(data: bytes, path: str, feature_id: str) -> StateFile:
    document, problems = _load(data, path, feature_id)
    check_version(document, path, feature_id)
    current = document.get(CURRENT)
    if not isinstance(current, dict):
        raise _corrupt(path, feature_id, f"{path} has no {CURRENT}")
    faults = faults_of(document)
    if faults:
        raise SchemaError(
            f"{path} breaks the contract: {faults[0]}"
            + (f", and {len(faults) - 1} more" if len(faults) > 1 else ""),
            faults=faults,
            path=path,
            session=feature_id,
            details={"lines": lines_of(data, faults)},
            hint=f"correct the file, or `sessionary feature repair {feature_id}`",
        )
    problems += _oddities(document, path, feature_id)
    state = FeatureState(
        feature_id,
        current.get("active_task"),
        current["model_in_use"],
        parse(current.get("started_at")),
        parse(current.get("last_updated")),
    )
    return StateFile(data, document, state, problems)


def _load(data: bytes, path: str, feature_id: str) -> tuple[dict[str, Any], list[Problem]]:
    problems: list[Problem] = []
    try:
        document = load_yaml(data, path=path)
    except Corrupt as error:
        healed, count = _STATUS_LINE.subn(rb"\1", data)
        if not count:
            raise _corrupt(path, feature_id, error.message, error) from None
        try:
            document = load_yaml(healed, path=path)
        except Corrupt:
            raise _corrupt(path, feature_id, error.message, error) from None
        problems.append(_status_line(path))
    if not isinstance(document, dict):
        raise _corrupt(path, feature_id, f"{path} is not a map")
    return document, problems


def faults_of(document: dict[str, Any]) -> list[str]:
    """All violations of the contract in a state, each with its field."""
    current = document.get(CURRENT)
    if not isinstance(current, dict):
        return [f"{CURRENT}: is missing, or not a map"]
    faults = []
    task, model = current.get("active_task"), current.get("model_in_use")
    if not isinstance(task, str | None):
        faults.append(f"{CURRENT}.active_task: {task!r} is neither a task id nor null")
    if model not in MODELS:
        faults.append(f"{CURRENT}.model_in_use: {model!r} is not one of {', '.join(MODELS)}")
    faults += [
        f"{CURRENT}.{name}: {current.get(name)!r} is not an ISO 8601 timestamp"
        for name in ("started_at", "last_updated")
        if parse(current.get(name)) is None
    ]
    began, updated = parse(current.get("started_at")), parse(current.get("last_updated"))
    if began is not None and updated is not None and updated < began:
        faults.append(BEFORE_ITS_START)
    return faults


def _oddities(document: dict[str, Any], path: str, feature_id: str) -> list[Problem]:
    problems = []
    version, named = document.get("version"), document.get("feature_id")
    if version is None:
        problems.append(_note("no_version", path, "the version is missing; 1.0 is assumed", "none needed"))
    elif version != VERSION:
        words = f"the version is written as {version!r}, not as text"
        problems.append(_note("odd_version", path, words, f"`sessionary feature migrate {feature_id}`"))
    if named != feature_id:
        words = f"feature_id is {named!r}, but the folder is {feature_id}, which is used"
        problems.append(_note("other_feature_id", path, words, "correct feature_id, or rename the folder"))
    return problems


def check_version(document: dict[str, Any], path: str, feature_id: str) -> None:
    """Refuse a state with an unknown newer version. A newer minor version is read, and its keys are kept.

    Raises:
        Unsupported: another major version, or an invalid one.
    """
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
    return dump_yaml(_document(feature_id, task, model, stamp(began), stamp(updated)))


def changed_state(found: StateFile, changes: dict[str, Any]) -> bytes:
    """The file with some of its current state changed, everything else unchanged, comments too."""
    document = {**found.document, CURRENT: {**found.document[CURRENT], **changes}}
    if found.canonical:
        return _in_form(document) or dump_yaml(document)
    return _patched(found.data, changes, document) or edit_yaml(found.data, document)


def known_state(found: StateFile, data: bytes, changes: dict[str, Any]) -> StateFile | None:
    """The result of `parse_state` for the bytes from `changed_state`; None if that is not trivial."""
    last = parse(changes.get("last_updated"))
    if not found.canonical or last is None:
        return None
    current = {**found.document[CURRENT], **changes}
    state = FeatureState(
        found.state.feature_id, current["active_task"], current["model_in_use"], found.state.started_at, last
    )
    return StateFile(
        data, {**found.document, CURRENT: current}, state, [], _CANONICAL.fullmatch(data) is not None
    )


def is_by_us(found: StateFile) -> bool:
    """True if the last write of the state was an update of ours: then the history has a line of it.

    The scripts log nothing when they set a state, and write whole seconds.
    """
    state, text = found.state, found.document[CURRENT].get("last_updated")
    changed = state.started_at and state.last_updated and state.last_updated > state.started_at
    return bool(changed) and _OUR_TIME.fullmatch(str(text)) is not None


def _in_form(document: dict[str, Any]) -> bytes | None:
    """As `dump_yaml` for a document of the usual form, in a tenth of the time; None if a value needs escapes."""
    task, *others = document[CURRENT].values()
    words = [document["feature_id"], "" if task is None else task, *others]
    if _PLAIN.fullmatch("".join(words)) is None:
        return None
    return (_FORM % (words[0], "null" if task is None else f'"{task}"', *others)).encode("ascii")


def _patched(data: bytes, changes: dict[str, Any], document: dict[str, Any]) -> bytes | None:
    """The file with some values replaced, each on its own line; None if the file is not that simple.

    Ten times faster than the editor, which parses the file with all its comments. The result is read back and compared.
    """
    for name, value in changes.items():
        line = re.compile(_LINE % re.escape(name.encode()), re.MULTILINE)
        text = scalar_text(value).encode()
        data, count = line.subn(lambda found, text=text: found[1] + text, data)  # type: ignore[misc]
        if count != 1:
            return None
    try:
        return data if same(load_yaml(data), document) else None
    except Corrupt:
        return None


_LINE: Final = rb"""^([ \t]+%b:[ \t]+)(?:"[^"\\\n]*"|'[^'\n]*'|[\w.:+-]+)(?=[ \t]*(?:[ \t]#[^\n]*)?\r?$)"""


def _corrupt(path: str, feature_id: str, message: str, cause: Corrupt | None = None) -> Corrupt:
    return Corrupt(
        message,
        path=path,
        session=feature_id,
        details=cause.details if cause else None,
        hint=f"`sessionary feature repair {feature_id}` restores it from the history and keeps these bytes",
    )


def _status_line(path: str) -> Problem:
    words = "an indented status below feature_id, as written by the contract's scripts, is not valid YAML"
    remedy = "`sessionary feature repair` removes the line and keeps the old file"
    return Problem("status_line", Severity.stops_resume, path, 3, None, words, remedy)


def _note(code: str, path: str, message: str, remedy: str | None) -> Problem:
    return Problem(code, Severity.note, path, None, None, message, remedy)
