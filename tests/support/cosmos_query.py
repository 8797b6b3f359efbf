"""The few forms of SQL that the double of Cosmos DB answers; everything else is refused, as a mistake would be.

``SELECT [TOP n] * | VALUE COUNT(1) | c.a, c.b FROM c [WHERE c.a = @x AND ...] [ORDER BY c.a [DESC]]`` with the
comparisons ``= < <= > >=``. Text is compared by code points. A column may be ``LENGTH(c.b) AS size``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_SHAPE: Final = re.compile(
    r"SELECT\s+(?:TOP\s+(?P<top>\d+)\s+)?"
    r"(?P<what>\*|VALUE\s+COUNT\(1\)|c\.\w+(?:\s*,\s*(?:c\.\w+|LENGTH\(c\.b\) AS size))*)\s+FROM\s+c"
    r"(?:\s+WHERE\s+(?P<where>.+?))?(?:\s+ORDER\s+BY\s+c\.(?P<by>\w+)(?:\s+(?P<way>ASC|DESC))?)?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_TERM: Final = re.compile(r"\s*c\.(\w+)\s*(<=|>=|=|<|>)\s*(@\w+)\s*\Z")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Item = dict[str, Any]


class BadQuery(Exception):
    """The query is none that is understood."""


@dataclass(frozen=True)
class Query:
    """A query that was understood.

    Attributes:
        fields: what to return of each item; None for all of it.
        count: return only how many there are.
        terms: property, comparison and value of each condition.
        by: the property to sort by; None for none.
        down: from the largest.
        top: return so many at most; None for all.
    """

    fields: tuple[str, ...] | None
    count: bool
    terms: tuple[tuple[str, str, Any], ...]
    by: str | None
    down: bool
    top: int | None

    def matches(self, item: Item) -> bool:
        """Whether an item meets all conditions. Values of different kinds are never equal, less or greater."""
        for name, sign, value in self.terms:
            held = item.get(name)
            if name not in item or type(held) is not type(value) or not _COMPARE[sign](held, value):
                return False
        return True

    def sorted(self, items: Iterable[Item]) -> list[Item]:
        """The items that match, in the order that is asked for; those without the property are not returned."""
        found = [item for item in items if self.matches(item)]
        by = self.by
        if by is not None:
            found = [item for item in found if by in item]
            found.sort(key=lambda item: (item[by], item["id"]), reverse=self.down)
        return found[: self.top]

    def shown(self, item: Item) -> Item:
        """What of an item is returned."""
        if self.fields is None:
            return item
        length = {"size": len(item["b"])} if "size" in self.fields and "b" in item else {}
        return {name: item[name] for name in self.fields if name in item} | length


def parse(text: str, parameters: Iterable[Mapping[str, Any]]) -> Query:
    """Understand a query.

    Raises:
        BadQuery: it is of no form that is known, or names a parameter that is not given.
    """
    shape = _SHAPE.match(text.strip())
    if shape is None:
        raise BadQuery(f"syntax error in {text!r}")
    given = {one["name"]: one["value"] for one in parameters}
    what = shape["what"]
    count = what.upper().startswith("VALUE")
    fields = None if count or what == "*" else tuple(map(_field, what.split(",")))
    terms = tuple(_term(part, given) for part in re.split(r"\s+AND\s+", shape["where"] or "") if part)
    top = None if shape["top"] is None else int(shape["top"])
    return Query(fields, count, terms, shape["by"], (shape["way"] or "").upper() == "DESC", top)


def _field(text: str) -> str:
    """The name under which a column is returned."""
    return "size" if "AS size" in text else text.strip()[2:]


def _term(text: str, given: Mapping[str, Any]) -> tuple[str, str, Any]:
    found = _TERM.match(text)
    if found is None:
        raise BadQuery(f"syntax error near {text!r}")
    if found[3] not in given:
        raise BadQuery(f"the parameter {found[3]} is not given")
    return found[1], found[2], given[found[3]]
