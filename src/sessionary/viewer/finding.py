"""The stream of a search: hits as they are found, until the page asks for something else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from threading import Event
from typing import Any

from sessionary.errors import SessionaryError
from sessionary.escaping import harmless
from sessionary.export.wording import one_line
from sessionary.search import Hit
from sessionary.viewer.library import Library, key_of
from sessionary.viewer.streams import event, failure, in_thread
from sessionary.workspace import documents
from sessionary.workspace.searching import Hits

MOST = 200
"""Hits of one search."""

_MARGIN = 60
"""Characters of an excerpt before its first mark."""


async def stream(library: Library, words: str) -> AsyncGenerator[bytes]:
    """The events of a search: ``hit`` for each, then ``done`` with what was searched.

    When the browser closes the connection, the search ends within the window of bytes that is being read.
    """
    begun: list[Hits] = []
    ended = Event()
    try:
        async for found in in_thread(_found(library, words, begun, ended)):
            yield found
        yield event("done", _report(begun))
    except SessionaryError as error:
        yield event("failed", failure(error))
    finally:
        ended.set()
        for hits in begun:
            hits.stop()


def _found(library: Library, words: str, begun: list[Hits], ended: Event) -> Iterator[bytes]:
    """The hits as events, home after home; in each the sessions that changed last are searched first."""
    left = MOST
    for workspace, summaries in library.by_workspace():
        if left <= 0:
            return
        hits = workspace.search(words, summaries=summaries, limit=left)
        begun.append(hits)
        if ended.is_set():  # before this search was among those that are stopped
            return
        for hit in hits:
            yield event("hit", _hit(hit))
        left -= hits.count


def _hit(hit: Hit) -> dict[str, Any]:
    """A hit with its excerpt in pieces: plain text and found text in turns."""
    start = max(hit.marks[0].start - _MARGIN, 0) if hit.marks else 0
    pieces, end = list[str](), start
    for mark in hit.marks:
        pieces += [hit.text[end : mark.start], hit.text[mark.start : mark.end]]
        end = mark.end
    pieces.append(hit.text[end:])
    pieces[0] = "…" + pieces[0] if start or hit.cut[0] else pieces[0]
    document = documents.of_hit(hit)
    kept = {name: document[name] for name in ("index", "person", "about", "part")}
    kept |= {name: document[name] and one_line(document[name]) for name in ("role", "tool")}
    return kept | {
        "key": key_of(hit.ref),
        "outside": hit.outside,
        "pieces": [harmless(piece) for piece in pieces],
    }


def _report(begun: list[Hits]) -> dict[str, Any]:
    return {
        "hits": sum(hits.count for hits in begun),
        "sessions": sum(hits.stats.sessions for hits in begun),
        "bytes": sum(hits.stats.bytes for hits in begun),
        "complete": all(hits.is_complete for hits in begun) and sum(hits.count for hits in begun) < MOST,
        "damaged": sum(len(hits.stats.damaged) for hits in begun),
    }
