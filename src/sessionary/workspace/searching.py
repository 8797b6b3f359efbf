"""Searches over the sessions of a workspace: which are searched, in which order, and their hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from sessionary.errors import Invalid
from sessionary.model import SessionRef, Summary
from sessionary.redaction import Redaction
from sessionary.search import Hit, Needle, Query, Search, SearchStats, Target, parsed
from sessionary.search.expression import split
from sessionary.search.targets import known_targets, targets
from sessionary.workspace.sessions import Sessions


class Hits:
    """The hits of a search, found while they are iterated.

    Attributes:
        sessions: the number of sessions to search.
        size: the bytes of their conversations.
        stats: what was searched so far, and what could not be read.
        limit: how many hits to find; 0 for all.
        passed: called with the bytes of each conversation that was searched.
        count: the number of hits so far.
        found_in: the sessions that they are in.
        is_complete: False once the limit has ended the search.
    """

    def __init__(self, search: Search, targets: list[Target], limit: int) -> None:
        self.sessions: int = len(targets)
        self.size: int = sum(target.size for target in targets)
        self.stats: SearchStats = search.stats
        self.limit: int = limit
        self.passed: Callable[[int], object] | None = None
        self.count: int = 0
        self.found_in: set[SessionRef] = set()
        self.is_complete: bool = True
        self._search: Search = search
        self._targets: list[Target] = targets

    def __iter__(self) -> Iterator[Hit]:
        for hit in self._search.hits(self._targets, passed=self.passed):
            if self.limit and self.count == self.limit:
                self.is_complete = False
                return
            self.count += 1
            self.found_in.add(hit.ref)
            yield hit

    def stop(self) -> None:
        """End the search soon, from any thread: the iteration ends within the window of bytes that is being read."""
        self.is_complete = False
        self._search.stop()


def asked_for(
    query: str | Query,
    *,
    case: bool,
    fold: bool,
    roles: Iterable[str],
    since: datetime | None,
    until: datetime | None,
) -> Query:
    """The conditions of a search; the arguments are those of `Workspace.search`.

    Raises:
        Invalid: there are no words, or an operator has none.
    """
    if isinstance(query, Query):
        return query
    alternatives = parsed(split(query), lambda word: Needle(word, case=case, fold=fold))
    if not alternatives or not all(one.wanted for one in alternatives):
        raise Invalid("a search needs words", hint="give at least one word that a message contains")
    return Query((), frozenset(roles), since=since, until=until, alternatives=alternatives)


def search_in(
    sessions: Sessions,
    query: Query,
    refs: Iterable[SessionRef] | None,
    summaries: Iterable[Summary] | None,
    names: Mapping[tuple[str, str], str],
    *,
    limit: int,
    redaction: Redaction | None,
) -> Hits:
    """Begin a search; the arguments are those of `Workspace.search`, and `names` the titles that the user gave."""
    search = Search(query, redaction)

    def can_be_read(ref: SessionRef) -> bool:
        fault = sessions.archived.fault(ref)
        if fault is not None:
            search.stats.damaged.append((ref, fault))
        return fault is None

    if summaries is not None:
        known = [one for one in summaries if can_be_read(one.ref)]
        return Hits(search, known_targets(sessions.layout_of, known, names), limit)
    asked = filter(can_be_read, sessions.refs() if refs is None else refs)
    return Hits(search, targets(sessions.layout_of, sessions.catalog, asked, names), limit)
