"""A remote that reports progress and lists all heads only once for all layouts."""

from __future__ import annotations

from typing import Any

from sessionary.cli.progress import Progress
from sessionary.sync.remote import HeadPage, OpenRemote, WrappedRemote
from sessionary.sync.retry import Cost


class Line(WrappedRemote):
    """A remote for one command.

    Each layout has an engine, and each engine lists all heads. The first list serves the others too: it may
    be a moment old, which a compare-and-swap detects.

    Args:
        inner: the remote.
        progress: called for each call.
        pages: a recent list of the heads, page by page; new pages are stored in it.

    Attributes:
        spared: cost of the answers given without asking the remote.
    """

    def __init__(
        self, inner: OpenRemote, progress: Progress, pages: dict[str | None, HeadPage] | None = None
    ) -> None:
        super().__init__(inner)
        self._progress = progress
        self._pages = {} if pages is None else pages
        self.spared = Cost()

    def call(self, verb: str, *arguments: Any) -> Any:
        self._progress.advance()
        return super().call(verb, *arguments)

    def list_heads(self, after: str | None = None) -> HeadPage:
        if after == "":  # this caller wants a fresh list
            self._pages.clear()
        if after in self._pages:
            self.spared.requests += 1
            self.spared.bytes_down += sum(len(head.data) for head in self._pages[after].heads)
        else:
            self._pages[after] = super().list_heads(after)
        return self._pages[after]
