"""The fields of a session file with their types and rules, and the check of a document.

The severity of a fault follows from its effect. The identity and the position of a session (`IDENTITY`) must
be present and valid, or it cannot be resumed. Other required fields have a default and a note, because the
format's own examples lack them; ``strict`` makes them errors. Other oddities are kept unchanged, and
reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sessionary.codec.yaml_faults import Faults
from sessionary.layouts.brainstorm.constants import (
    AXES,
    MODES,
    PANEL_PHASES,
    PERSONAS,
    PHASES,
    SOURCES,
    STATUSES,
    is_id,
    is_slug,
    is_whole,
    read_time,
    score_of,
)
from sessionary.model import Severity


class Rule(NamedTuple):
    """The rule of a field.

    Attributes:
        kind: ``text``, ``whole``, ``flag``, ``time``, ``texts`` (a list), ``counts`` (keys to whole numbers),
        ``map``, ``list`` (of maps) or ``any``.
        choices: the allowed texts.
        low: minimum.
        high: maximum.
        table: the rules of the map, or of each map of the list.
    """

    kind: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None
    table: dict[str, Rule] | None = None  # type: ignore[misc, unused-ignore]


Table = dict[str, Rule]

_TEXT, _TEXTS, _FLAG, _TIME = Rule("text"), Rule("texts"), Rule("flag"), Rule("time")
_SCORE = Rule("whole", high=100)
_ROUND = Rule("whole", low=1)

TECHNIQUE: Final[Table] = {
    "iteration": _ROUND,
    "technique_slug": _TEXT,
    "category": _TEXT,
    "suggested_reason": _TEXT,
    "applied": _FLAG,
    "source": Rule("text", SOURCES),
    "weak_axes": _TEXTS,
}
PARTY: Final[Table] = {
    "round": _ROUND,
    "topic": _TEXT,
    "personas_selected": _TEXTS,
    "contributions": Rule("list", table={"persona": _TEXT, "key_points": _TEXTS, "references": _TEXTS}),
    "synthesis": _TEXT,
    "user_question": _TEXT,
}
PANEL: Final[Table] = {
    "round": _ROUND,
    "topic": _TEXT,
    "phase": Rule("text", PANEL_PHASES),
    "experts_selected": _TEXTS,
    "contributions": Rule(
        "list", table={"expert": _TEXT, "framework": _TEXT, "position": _TEXT, "references": _TEXTS}
    ),
    "synthesis": Rule("map", table={"convergent": _TEXTS, "tensions": _TEXTS}),
}
IDEA: Final[Table] = {"id": _ROUND, "content": _TEXT, "score": Rule("whole", high=10)}
ENTRY: Final[Table] = {
    "iteration": _ROUND,
    "phase": Rule("text", PHASES),
    "ems": _SCORE,
    "ems_delta": Rule("whole", low=-100, high=100),
    "questions": _TEXTS,
    "responses": _TEXTS,
    "timestamp": _TIME,
    "duration": Rule("whole"),
    "superseded": _FLAG,
}
SESSION: Final[Table] = {
    "id": _TEXT,
    "slug": _TEXT,
    "status": Rule("text", STATUSES),
    "phase": Rule("text", PHASES),
    "mode": Rule("text", MODES),
    "ems": _SCORE,
    "ems_axes": Rule("map", table=dict.fromkeys(AXES, _SCORE)),
    "persona": Rule("text", PERSONAS),
    "iteration": _ROUND,
    "techniques_used": _TEXTS,
    "started_at": _TIME,
    "duration_minutes": Rule("whole"),
    "techniques_history": Rule("list", table=TECHNIQUE),
    "party_active": _FLAG,
    "party_history": Rule("list", table=PARTY),
    "panel_active": _FLAG,
    "panel_history": Rule("list", table=PANEL),
    "random_state": Rule("map", table={"last_category": _TEXT, "category_counts": Rule("counts")}),
    "progressive_state": Rule(
        "map",
        table={
            "divergent_completed": _FLAG,
            "transition_completed": _FLAG,
            "transition_summary": Rule("map"),
        },
    ),
    "ideas": Rule("list", table=IDEA),
    "history": Rule("list", table=ENTRY),
    "last_question": _TEXT,
    "created": _TIME,
    "updated": _TIME,
}

IDENTITY: Final = ("id", "slug", "status", "phase", "ems", "iteration")
"""Fields without which a session cannot be resumed."""

REQUIRED: Final = (*IDENTITY, "persona", "started_at", "duration_minutes", "mode")
"""Fields that the format's table requires."""

FLAGS: Final = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}
"""Words that older YAML readers parse as true and false."""

_KINDS: Final = {
    "text": "a text",
    "flag": "true or false",
    "time": "a time like 2026-01-09T10:30:00Z",
    "texts": "a list of texts",
    "counts": "a map of words to whole numbers",
    "map": "a map",
    "list": "a list of maps",
}


def faults_of(document: Any, *, slug: str | None, path: str, data: bytes | None, strict: bool) -> Faults:
    """All faults of a document of the current version.

    Args:
        slug: the name of its file; None if it has none yet.
        data: its bytes, for line numbers.
        strict: whether all required fields must be present.
    """
    faults = Faults(path, data)
    session = document.get("session") if isinstance(document, dict) else None
    if not isinstance(session, dict):
        faults.add("missing_field", ["session"], "the session is missing", "add the map `session`")
        return faults
    _missing(faults, session, strict)
    _map(faults, ["session"], SESSION, session, strict)
    _identity(faults, session, slug)
    _flags(faults, session)
    _history(faults, session)
    _numbers(faults, session)
    return faults


def _missing(faults: Faults, session: dict[str, Any], strict: bool) -> None:
    for name in REQUIRED:
        if session.get(name) is not None:
            continue
        keys, repair = ["session", name], f"add {name} below session"
        if strict or name in IDENTITY:
            faults.add("missing_field", keys, "is missing", repair)
        else:
            words, repair = "is missing; the default is used", f"{repair}, or leave it"
            faults.add("defaulted_field", keys, words, repair, Severity.note)


def _map(
    faults: Faults, keys: Sequence[str | int], table: Table, value: dict[str, Any], strict: bool
) -> None:
    for name, rule in table.items():
        found = value.get(name)
        if found is None:
            continue  # an absent field is read as empty or false, and so is null
        if _fits(rule, found):
            _inside(faults, [*keys, name], rule, found, strict)
        else:
            _misfit(faults, [*keys, name], rule, found, strict)


def _inside(faults: Faults, keys: Sequence[str | int], rule: Rule, value: Any, strict: bool) -> None:
    if rule.choices and value not in rule.choices:
        words = f"is {value!r}, not one of {', '.join(rule.choices)}"
        severity = Severity.stops_resume if strict else Severity.cosmetic
        faults.add("strange_word", keys, words, "correct the value, or leave it: it is kept", severity)
    if rule.kind == "flag" and isinstance(value, str):
        words = f"is the text {value!r}"
        faults.add("word_as_flag", keys, words, "write true or false instead", Severity.note)
    elif rule.table is not None and rule.kind == "map":
        _map(faults, keys, rule.table, value, strict)
    elif rule.table is not None:
        for place, item in enumerate(value):
            _map(faults, [*keys, place], rule.table, item, strict)


def _misfit(faults: Faults, keys: Sequence[str | int], rule: Rule, value: Any, strict: bool) -> None:
    # A list of another type, or a wrong identity field, stops; other faults are kept unchanged.
    grave = strict or rule.kind == "list" or (len(keys) == 2 and keys[-1] in IDENTITY)
    upper = "" if rule.high is None else f" to {rule.high}"
    wanted = _KINDS.get(rule.kind) or f"a whole number from {rule.low}{upper}"
    text = repr(value)
    words = f"must be {wanted}, not {text if len(text) <= 40 else text[:37] + '...'}"
    severity = Severity.stops_resume if grave else Severity.cosmetic
    faults.add("bad_field" if grave else "odd_value", keys, words, f"write {wanted}", severity)


def _fits(rule: Rule, value: Any) -> bool:
    kind = rule.kind
    if kind == "text":
        return isinstance(value, str)
    if kind == "whole":
        return is_whole(value, rule.low, rule.high)
    if kind == "flag":
        return isinstance(value, bool) or (isinstance(value, str) and value.lower() in FLAGS)
    if kind == "time":
        return read_time(value) is not None
    if kind in ("list", "texts"):
        wanted = dict if kind == "list" else str
        return isinstance(value, list) and all(isinstance(item, wanted) for item in value)
    if kind == "counts":
        return isinstance(value, dict) and all(is_whole(number, 0, None) for number in value.values())
    return kind == "any" or isinstance(value, dict)


def _identity(faults: Faults, session: dict[str, Any], slug: str | None) -> None:
    own, ident = session.get("slug"), session.get("id")
    if not isinstance(own, str):
        return
    if not is_slug(own):
        repair = "use lower-case words with hyphens between"
        faults.add("bad_field", ["session", "slug"], f"is {own!r}", repair)
    elif slug is not None and own != slug:
        words = f"is {own}, but the file is named {slug}"
        faults.add("slug_differs", ["session", "slug"], words, "rename the file, or correct the slug")
    if isinstance(ident, str) and not is_id(ident, own):
        repair = f"write the slug and a day: {own}-2026-01-09"
        faults.add("bad_field", ["session", "id"], f"is {ident!r}", repair)


def _flags(faults: Faults, session: dict[str, Any]) -> None:
    mode = session.get("mode") or MODES[0]
    for name in ("party", "panel"):
        active = read_flag(session.get(f"{name}_active"))
        if mode in MODES and active is not None and active != (mode == name):
            words = f"is {str(active).lower()}, but the mode is {mode}, which is used"
            keys = ["session", f"{name}_active"]
            faults.add("mode_differs", keys, words, "correct one of them", Severity.cosmetic)


def _history(faults: Faults, session: dict[str, Any]) -> None:
    history, iteration = session.get("history"), session.get("iteration")
    if not isinstance(history, list) or not history:
        return
    live: dict[int, dict[str, Any]] = {}
    for place, entry in enumerate(history):
        number = entry.get("iteration") if isinstance(entry, dict) else None
        if type(number) is int and not read_flag(entry.get("superseded")):
            if number in live:
                _repeated(faults, "history", place, f"iteration {number}", "the later one is used")
            live[number] = entry
    if type(iteration) is not int:
        return
    if iteration not in live:
        words = f"is {iteration}, which the history lacks"
        repair = "nothing is lost; back and continue use the existing entries"
        faults.add("no_entry", ["session", "iteration"], words, repair, Severity.note)
        return
    for name in ("ems", "phase"):
        here, there = session.get(name), live[iteration].get(name)
        if here is not None and there is not None and here != there:
            words = f"is {here}, but {there} in the entry of iteration {iteration}"
            faults.add("cursor_differs", ["session", name], words, "correct one of them", Severity.note)


def _numbers(faults: Faults, session: dict[str, Any]) -> None:
    seen: set[int] = set()
    ideas = session.get("ideas")
    for place, idea in enumerate(ideas if isinstance(ideas, list) else ()):
        number = idea.get("id") if isinstance(idea, dict) else None
        if type(number) is int:
            if number in seen:
                _repeated(faults, "ideas", place, f"idea {number}", "the first one is used")
            seen.add(number)
    axes, ems = session.get("ems_axes"), session.get("ems")
    valid = isinstance(axes, dict) and all(is_whole(axes.get(name), 0, 100) for name in AXES)
    if isinstance(axes, dict) and valid and is_whole(ems, 0, 100) and ems != score_of(axes):
        words, repair = f"is {ems}, but the axes give {score_of(axes)}", "correct the score or the axes"
        faults.add("ems_differs", ["session", "ems"], words, repair, Severity.cosmetic)


def _repeated(faults: Faults, name: str, place: int, what: str, rule: str) -> None:
    words, repair = f"duplicate {what}; {rule}", "give each a number of its own"
    faults.add("repeated_number", ["session", name, place], words, repair, Severity.cosmetic)


def read_flag(value: Any) -> bool | None:
    """The boolean value of a flag; None if it is not one."""
    if isinstance(value, bool):
        return value
    return FLAGS.get(value.lower()) if isinstance(value, str) else None
