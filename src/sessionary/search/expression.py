"""Expressions: words with AND, OR and NOT between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sessionary.errors import Invalid
from sessionary.search.needle import Needle
from sessionary.search.pattern import Pattern

AND, OR, NOT = OPERATORS = ("AND", "OR", "NOT")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


class Alternative(NamedTuple):
    """The terms that a message must contain, and those that it must not."""

    wanted: tuple[Needle | Pattern, ...]
    unwanted: tuple[Needle | Pattern, ...] = ()


def parsed(words: Iterable[str], term: Callable[[str], Needle | Pattern]) -> tuple[Alternative, ...]:
    """Return the alternatives of an expression; none without words.

    ``NOT`` concerns the term behind it, and ``OR`` separates what terms without an operator or with ``AND`` form.

    Args:
        words: terms and operators; an operator is a word in capitals by itself.
        term: makes a term of a word.

    Raises:
        Invalid: an operator has no term, or a term is not valid.
    """
    found: list[tuple[list[Needle | Pattern], list[Needle | Pattern]]] = []
    before = None
    for word in words:
        if word == NOT or word not in OPERATORS:
            if before in (None, OR):
                found.append(([], []))
            if word != NOT:
                found[-1][before == NOT].append(term(word))
            elif before == NOT:
                raise _without_term(NOT)
        elif before in (None, *OPERATORS):
            raise _without_term(word)
        before = word if word in OPERATORS else ""
    if before in OPERATORS:
        raise _without_term(before)
    return tuple(Alternative(tuple(wanted), tuple(unwanted)) for wanted, unwanted in found)


def _without_term(operator: str | None) -> Invalid:
    return Invalid(
        f"{operator} has no word at one of its sides",
        operation="search",
        hint="AND, OR and NOT in capitals are operators; write the word itself in small letters",
    )


def split(text: str) -> Iterator[str]:
    """Yield the terms and operators of an expression in one text; double quotes make a phrase one term."""
    for found in _WORD.finditer(text):
        phrase, word = found.groups()
        # A phrase that is an operator is searched for: the blank is ignored in a term.
        yield word if phrase is None else f" {phrase}"
