"""Hypothesis strategies for real session data, and for data that breaks stores.

Every special value here has broken a session somewhere: Unicode line ends, NUL, lone surrogates from cut
emoji, integers beyond 64 bits, NaN, deep nesting.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

NASTY = (
    "\x85",  # ends a line for str.splitlines
    "\u2028",
    "\u2029",
    "\x00",
    "\x1b[31m",
    "\r\n",
    "\r",
    "\n",
    "\ud83d",  # half an emoji
    "\udc80",  # a byte that os.fsdecode could not decode
    "\U0001f600",
    "é",
    "é",
    "漢字",
    "\ufeff",
    "\u202e",
    '"',
    "\\",
    '{"role": "user"}',
    "<system-reminder>",
)
PLAIN = ("a", "word", " ", "Please list the files.")
HUGE: tuple[int | float, ...] = (2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, -(10**40))
NOT_JSON = (math.nan, math.inf, -math.inf)
ROLES = ("user", "assistant", "tool", "system", "developer")
EVENTS = (
    "session:start",
    "prompt:submit",
    "llm:request",
    "llm:response",
    "tool:pre",
    "tool:post",
    "session:end",
)


def text(*, max_size: int = 40) -> SearchStrategy[str]:
    """Text with any characters, including lone surrogates, with problematic ones more often than by chance."""
    nasty = st.lists(st.sampled_from(NASTY + PLAIN), max_size=5).map(
        lambda pieces: "".join(pieces)[:max_size]
    )
    return st.one_of(nasty, st.text(max_size=max_size), st.text(st.characters(), max_size=min(max_size, 4)))


def numbers(*, finite: bool = False) -> SearchStrategy[int | float]:
    """Integers of any size, floats, and unless `finite` also NaN and the infinities."""
    floats = st.floats(allow_nan=False, allow_infinity=False)
    strange = HUGE if finite else HUGE + NOT_JSON
    return st.one_of(st.integers(), floats, st.sampled_from(strange))


def json_values(*, finite: bool = False, max_leaves: int = 12) -> SearchStrategy[Any]:
    """Any JSON value, nested; with `finite`, nothing that strict JSON refuses."""
    leaves = st.one_of(st.none(), st.booleans(), numbers(finite=finite), text())

    def nested(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
        return st.one_of(st.lists(inner, max_size=4), st.dictionaries(text(max_size=10), inner, max_size=4))

    return st.recursive(leaves, nested, max_leaves=max_leaves)


def deep(depth: int = 60) -> SearchStrategy[Any]:
    """One value inside of nested lists and objects."""

    def nest(path: list[bool]) -> Any:
        value: Any = "the bottom"
        for as_list in path:
            value = [value] if as_list else {"in": value}
        return value

    return st.lists(st.booleans(), min_size=depth, max_size=depth).map(nest)


def timestamps() -> SearchStrategy[str]:
    """Times in the forms that the original programs have written."""
    return st.datetimes().flatmap(
        lambda time: st.sampled_from(
            [time.isoformat(timespec="milliseconds") + zone for zone in ("+00:00", "Z", "", "+05:30")]
        )
    )


def tool_calls() -> SearchStrategy[list[dict[str, Any]]]:
    """Calls in the format of amplifier and in that of OpenAI."""
    ids = st.from_regex(r"(toolu|call)_[A-Za-z0-9]{1,8}", fullmatch=True)
    arguments = st.dictionaries(text(max_size=10), json_values(max_leaves=4), max_size=3)
    ours = st.fixed_dictionaries({"id": ids, "tool": text(max_size=12), "arguments": arguments})
    function = st.fixed_dictionaries({"name": text(max_size=12), "arguments": text()})
    openai = st.fixed_dictionaries({"id": ids, "type": st.just("function"), "function": function})
    return st.lists(st.one_of(ours, openai), min_size=1, max_size=3)


def messages() -> SearchStrategy[dict[str, Any]]:
    """One message: a role, content as text, blocks or missing, and unknown fields."""
    blocks = st.lists(
        st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking", "tool_result"]), "text": text()}),
        max_size=3,
    )
    known = {
        "metadata": st.dictionaries(text(max_size=8), json_values(max_leaves=3), max_size=2),
        "timestamp": timestamps(),
        "tool_calls": tool_calls(),
        "tool_call_id": text(max_size=12),
        "thinking_text": text(),
        "name": text(max_size=12),
    }
    needed = {"role": st.sampled_from(ROLES), "content": st.one_of(text(), blocks, st.none())}
    message = st.fixed_dictionaries(needed, optional=known)
    strange = st.dictionaries(text(max_size=10), json_values(max_leaves=4), max_size=2)
    return st.tuples(strange, message).map(lambda both: {**both[0], **both[1]})


def transcripts(*, max_size: int = 8) -> SearchStrategy[list[dict[str, Any]]]:
    """A conversation."""
    return st.lists(messages(), max_size=max_size)


def metadata() -> SearchStrategy[dict[str, Any]]:
    """metadata.json: the fields of a session, any of them missing, and others."""
    known: dict[str, SearchStrategy[Any]] = {
        "session_id": session_ids(),
        "created": timestamps(),
        "bundle": text().map(lambda name: f"bundle:{name}"),
        "model": text(max_size=20),
        "turn_count": st.integers(0, 10_000),
        "name": text(),
        "parent_id": st.one_of(st.none(), session_ids()),
        "working_dir": text(),
    }
    strange = st.dictionaries(text(max_size=10), json_values(max_leaves=6), max_size=3)
    return st.tuples(strange, st.fixed_dictionaries({}, optional=known)).map(
        lambda both: {**both[0], **both[1]}
    )


def events() -> SearchStrategy[dict[str, Any]]:
    """One event, as passed by a caller."""
    return st.fixed_dictionaries(
        {"event": st.one_of(st.sampled_from(EVENTS), text(max_size=20).filter(bool))},
        optional={
            "ts": timestamps(),
            "lvl": st.sampled_from(["DEBUG", "INFO", "WARNING", "ERROR"]),
            "session_id": session_ids(),
            "duration_ms": st.integers(0, 10**7),
            "data": st.dictionaries(text(max_size=10), json_values(max_leaves=8), max_size=4),
        },
    )


def session_ids() -> SearchStrategy[str]:
    """Ids in all forms found on users' disks: roots, sub-sessions old and new, names given by users."""
    hexadecimal = st.text("0123456789abcdef", min_size=16, max_size=16)
    root = st.uuids(version=4).map(str)
    agent = st.sampled_from(["explorer", "foundation-session-analyst", "foundation:zen-architect"])
    child = st.tuples(st.one_of(root, hexadecimal), hexadecimal, agent).map(lambda t: f"{t[0]}-{t[1]}_{t[2]}")
    given = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
    return st.one_of(root, child, given)
