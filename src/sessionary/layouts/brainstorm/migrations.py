"""Convert older files to the current version. Pure: a document in, a document out; the caller stores it.

Two things make this more than one step from 1.0 to 1.2. The version is at the root of the document,
everything else below `session`. The migration that came with the format worked on one map: called with the
root, it put its new fields beside `session`; called with the session, it left the root at 1.0. **A file of
the second kind would be migrated again at the next load and lose what was written since.** Both are
recognised here and repaired. Existing values are never replaced: a migration only adds fields, so it is
idempotent.
"""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

from sessionary.errors import Unsupported
from sessionary.layouts.brainstorm.constants import MODES, READABLE, VERSION, read_time
from sessionary.layouts.brainstorm.fields import read_flag
from sessionary.layouts.brainstorm.navigation import duration, list_in

Document = dict[str, Any]

# Fields that belong below `session` and that the earlier migration may have left or put at the root.
_STRAY: Final[dict[str, Any]] = {
    "mode": "standard",
    "techniques_history": [],
    "party_active": False,
    "party_history": [],
    "panel_active": False,
    "panel_history": [],
}


class Migrated(NamedTuple):
    """The result for a document.

    Attributes:
        document: in the current version.
        was: its version, as text.
        healed: whether it had been migrated incompletely.
    """

    document: Document
    was: str
    healed: bool

    @property
    def changed(self) -> bool:
        """True if there is something to store."""
        return self.healed or self.was != VERSION


def version_of(value: Any) -> str:
    """A version as text: YAML reads an unquoted 1.2 as a number, and files without a version are the oldest."""
    if value is None:
        return READABLE[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{float(value)}"
    return str(value).strip()


def migrate(document: Document, *, path: str | None = None) -> Migrated:
    """Return the document in the current version; the given one is not changed.

    Raises:
        Unsupported: its version is unknown.
    """
    if document.get("format_version") == VERSION and not _looks_half_done(document):
        return Migrated(document, VERSION, False)
    new = copy.deepcopy(document)
    session = new.get("session")
    root = version_of(new.get("format_version"))
    inner = session.get("format_version") if isinstance(session, dict) else None
    if isinstance(session, dict) and inner is not None and version_of(inner) in READABLE:
        del session["format_version"]
    else:
        inner = None
    was = root
    if inner is not None and root == READABLE[0]:
        root = version_of(inner)  # the file is one with an old version at the root
    if root not in READABLE:
        raise Unsupported(
            f"{path or 'the document'} has version {root}; known are {' and '.join(READABLE)}",
            operation="load",
            path=path,
            details={"code": "unknown_version", "version": root},
            hint="update Sessionary; the file is unchanged",
        )
    healed = inner is not None
    if isinstance(session, dict):
        healed = _gather_stray(new, session) or healed
        if healed or root != VERSION:
            _from_1_0(session)  # after an incomplete migration for the fields that it left out
        _gather_stray(new, session)  # fields that the session now has too
    new["format_version"] = VERSION
    return Migrated(new, was, healed)


def _looks_half_done(document: Document) -> bool:
    session = document.get("session")
    return not _STRAY.keys().isdisjoint(document) or (
        isinstance(session, dict) and "format_version" in session
    )


def _gather_stray(document: Document, session: dict[str, Any]) -> bool:
    """Move fields beside `session` into it; True if there were any. Existing values of the session win."""
    gathered = False
    for name in [name for name in _STRAY if name in document]:
        value = document[name]
        if value == _STRAY[name] or session.get(name) == value:
            del document[name]  # it equals the value or the default of the session
            gathered = True
        elif session.get(name) is None:
            session[name] = document.pop(name)
            gathered = True
    return gathered


def _from_1_0(session: dict[str, Any]) -> None:
    """1.0 to 1.2. In 1.0 `mode` was the choice of techniques; that value is kept under another name."""
    mode = session.get("mode")
    if mode not in MODES:
        if mode is not None:
            session["legacy_mode"] = mode
        session["mode"] = _mode_of(session)
    if session.get("techniques_history") is None:
        session["techniques_history"] = [
            {
                "iteration": place,
                "technique_slug": slug,
                "category": "unknown",
                "suggested_reason": "migrated from v1.0",
                "applied": True,
                "source": "manual",
                "weak_axes": [],
            }
            for place, slug in enumerate(list_in(session, "techniques_used"), 1)
        ]
    for name in ("party", "panel"):
        for field, default in ((f"{name}_active", False), (f"{name}_history", [])):
            if session.get(field) is None:
                session[field] = default
    _fill_times(session)


def _mode_of(session: dict[str, Any]) -> str:
    for name in ("party", "panel"):
        if read_flag(session.get(f"{name}_active")):
            return name
    return MODES[0]


def _fill_times(session: dict[str, Any]) -> None:
    """The two fields that 1.2 requires and most older files lack."""
    if session.get("started_at") is None:
        first = next((entry for entry in list_in(session, "history") if isinstance(entry, dict)), {})
        started = session.get("created") or first.get("timestamp")
        if started is not None:
            session["started_at"] = started
    if session.get("duration_minutes") is None:
        updated = read_time(session.get("updated"))
        minutes = None if updated is None else duration(session, updated)
        if minutes is not None:
            session["duration_minutes"] = minutes
