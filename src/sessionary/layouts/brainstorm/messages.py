"""A brainstorm as a conversation: questions and answers, ideas, rounds of party and panel. Pure.

Questions are the agent's, answers the user's; an idea and a round have roles of their own. Entries that a branch has
superseded are messages too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionary.layouts.brainstorm.constants import read_time
from sessionary.layouts.brainstorm.fields import read_flag
from sessionary.layouts.brainstorm.navigation import list_in
from sessionary.model import AGENT, HARNESS, PERSON, Message, Place, Text

SPOKEN = ("party_history", "panel_history", "ideas", "history")
"""The lists of a session that become messages, in the order of the format."""


def messages_of(name: str, item: dict[str, Any], place: Place) -> list[Message]:
    """The messages of one item of the list `name`: at least one, even if it is empty."""
    if name == "ideas":
        return [Message("idea", HARNESS, (Text(_idea(item)),), place=place)]
    if name != "history":
        return [Message(name.removesuffix("_history"), HARNESS, (Text(_round(item)),), place=place)]
    time = read_time(item.get("timestamp"))
    found = [Message("assistant", AGENT, (Text(_asked(item)),), time, place=place)]
    if answers := _texts(item, "responses"):
        found.append(Message("user", PERSON, (Text("\n".join(answers)),), time, place=place))
    return found


def counted(session: dict[str, Any]) -> tuple[int, int]:
    """The number of messages of a session, and of answers of the user in it."""
    answered = sum(
        isinstance(item, dict) and bool(_texts(item, "responses")) for item in list_in(session, "history")
    )
    items = sum(isinstance(item, dict) for name in SPOKEN for item in list_in(session, name))
    return items + answered, answered


def _asked(entry: dict[str, Any]) -> str:
    facts = [
        f"Iteration {entry.get('iteration', '?')}",
        str(entry.get("phase", "?")),
        f"EMS {entry.get('ems', '?')}",
    ]
    if read_flag(entry.get("superseded")):
        facts.append("superseded by a branch")
    return "\n".join([", ".join(facts), *_texts(entry, "questions")])


def _idea(idea: dict[str, Any]) -> str:
    score = idea.get("score")
    return f"{idea.get('content', '')}" + ("" if score is None else f" ({score}/10)")


def _round(item: dict[str, Any]) -> str:
    given = (one for one in list_in(item, "contributions") if isinstance(one, dict))
    return "\n".join([str(item.get("topic", "")), *map(_contribution, given), *_upshot(item)])


def _contribution(given: dict[str, Any]) -> str:
    who = str(given.get("persona") or given.get("expert") or "?")
    points = _texts(given, "key_points") or [str(given.get("position", ""))]
    return f"{who}: " + "; ".join(points)


def _upshot(item: dict[str, Any]) -> Iterator[str]:
    synthesis = item.get("synthesis")
    if isinstance(synthesis, dict):
        yield from (*_texts(synthesis, "convergent"), *_texts(synthesis, "tensions"))
    elif synthesis:
        yield str(synthesis)
    if item.get("user_question"):
        yield str(item["user_question"])


def _texts(holder: dict[str, Any], name: str) -> list[str]:
    return [str(text) for text in list_in(holder, name)]
