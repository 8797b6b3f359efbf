"""Sessions in files of ATIF 1.0 to 1.8."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sessionary.errors import Invalid, Unsupported
from sessionary.export.atif import FACTS
from sessionary.export.atif_steps import At, Document, beyond_of, messages_of, usage_of
from sessionary.export.documents import of_usage
from sessionary.export.exact import OWN, own
from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.layouts.records.messages import stated_usage
from sessionary.layouts.records.names import IMPORT, file_name, parts_of
from sessionary.layouts.records.view import VIEW
from sessionary.model import Problem, Severity, Usage
from sessionary.transcript.ranges import spans_of
from sessionary.workspace.imports.taking_over import Source, Sources

NEWEST = 8
"""The newest minor version of ATIF that is read."""
BEYOND = "atif"
"""The table with what no message has: of the trajectory under ``root``, of its steps under their ids."""
_VERSION = re.compile(r"ATIF-v(\d+)\.(\d+)")
_MAPPED = frozenset(
    "schema_version session_id trajectory_id steps subagent_trajectories extra final_metrics".split()
)


def is_atif(document: Any) -> bool:
    """True for a document that calls itself a trajectory of ATIF."""
    return isinstance(document, dict) and str(document.get("schema_version")).startswith("ATIF-")


def atif_sources(document: Document, path: str, stem: str) -> Sources:
    """The sessions of a trajectory: its own, then those of its sub-agents.

    Raises:
        Unsupported: it has a newer version.
        Invalid: it has no steps.
    """
    version = str(document["schema_version"])
    found = _VERSION.fullmatch(version)
    if found is None or int(found[1]) != 1 or int(found[2]) > NEWEST:
        hint = f"versions 1.0 to 1.{NEWEST} are read; a newer Sessionary may read it"
        raise Unsupported(f"{path} has version {version}", operation="import", path=path, hint=hint)
    yield from _trajectory(document, path, stem, None)


def _trajectory(trajectory: Document, path: str, name: str, parent: str | None) -> Sources:
    if not isinstance(trajectory.get("steps"), list):
        raise Invalid(f"{path} has no list of steps", operation="import", path=path)
    stated = (trajectory.get("trajectory_id"), trajectory.get("session_id"))
    session_id = next(filter(None, map(text_or_none, stated)), name)
    agent, ours = object_of(trajectory.get("agent")), own(trajectory.get("extra"))
    read, beyond, total = list[At](), dict[str, Any](), len(trajectory["steps"])
    outside = set[int]()
    for number, step in enumerate(trajectory["steps"], 1):
        if not isinstance(step, dict):
            words = f"step {number} of {total} is not an object"
            yield Problem.of_file("bad_step", Severity.lost_data, path, words)
            continue
        at_first = len(read)
        read += messages_of(step)
        if own(step.get("extra")).get("outside"):
            outside.update(range(at_first, len(read)))
        if left := beyond_of(step):
            beyond[str(number)] = left
    items, spans = _in_order(read, outside)
    if OWN not in object_of(trajectory.get("extra")):
        _complete(items, agent)
    items += usage_items(items, trajectory, ours)
    root = {key: value for key, value in trajectory.items() if key not in _MAPPED and value is not None}
    extra = {key: value for key, value in object_of(trajectory.get("extra")).items() if key != OWN}
    view = _view(agent, ours, parent)
    if outside:
        view["items"] = spans
    tables = {VIEW: view, BEYOND: {**beyond, "root": {**root, "extra": extra}}}
    yield Source(IMPORT, session_id, items, tables=tables)
    for number, child in enumerate(list_of(trajectory.get("subagent_trajectories")), 1):
        yield from _trajectory(object_of(child), path, f"{session_id}-{number}", _shown(session_id))


def _shown(session_id: str) -> str:
    """The id by which readers know an imported session: a long one is shortened in the name of its file."""
    parts = parts_of(file_name((), session_id))
    return session_id if parts is None else parts[1]


def _in_order(read: list[At], outside: set[int]) -> tuple[list[Document], Any]:
    """The messages in the order of the session, and the ranges of those in its conversation."""
    numbers = list(range(len(read)))
    places = [at for at, _ in read]
    if None not in places:
        numbers.sort(key=lambda number: places[number] or 0)
    spans = spans_of(place for place, number in enumerate(numbers) if number not in outside)
    return [dict(read[number][1]) for number in numbers], spans


def _complete(items: list[Document], agent: Document) -> None:
    """Name the model in the steps of another program that leave it to the trajectory."""
    for item in items:
        if item.get("role") == "assistant" and item.get("model") is None:
            item["model"] = text_or_none(agent.get("model_name"))


def usage_items(items: Iterable[Document], trajectory: Document, ours: Document) -> list[Document]:
    """Items for models and usage that the session states beyond its messages."""
    models = [one for one in list_of(ours.get("models")) if isinstance(one, str)]
    none = of_usage(Usage())
    found: list[Document] = [{"model": model, "usage": none} for model in models]
    counted = [usage for item in items if (usage := stated_usage(item.get("usage"))) is not None]
    total = stated_usage(ours.get("usage"))
    if total is None and not counted:
        total = stated_usage(usage_of(trajectory.get("final_metrics"), "total_"))
    if total is not None:
        for one in counted:
            total = _less(total, one)
        if total.tokens or round(total.cost or 0.0, 9):
            found.append({"model": models[0] if len(models) == 1 else None, "usage": of_usage(total)})
    return found


def _less(total: Usage, one: Usage) -> Usage:
    counts = {
        name: max(getattr(total, name) - getattr(one, name), 0)
        for name in total.__struct_fields__
        if name != "cost"
    }
    cost = None if total.cost is None else max(total.cost - (one.cost or 0.0), 0.0)
    return Usage(**counts, cost=cost)


def _view(agent: Document, ours: Document, parent: str | None) -> dict[str, Any]:
    facts = {name: ours[name] for name in FACTS if isinstance(ours.get(name), str)}
    name, version = text_or_none(agent.get("name")), text_or_none(agent.get("version"))
    if name is not None:
        facts["agent"] = name
    if not ours and version is not None:
        facts["version"] = version
    if parent is not None:
        facts |= {"parent": parent, "nested": "yes"}
    return facts
