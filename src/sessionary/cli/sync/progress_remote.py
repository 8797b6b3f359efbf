"""The remote as the commands use it: each call shows that it goes on, and all heads are listed once for all layouts."""

from __future__ import annotations

from typing import Any

from sessionary.cli.progress import Progress
from sessionary.sync.remote import HeadPage, WrappedRemote
from sessionary.sync.remotes import OpenRemote
from sessionary.sync.retry import Cost


class Line(WrappedRemote):
    """A remote for one command.

    There is an engine for each layout, and each of them lists all heads. What the first has heard does for the others:
    a list may be a moment old, and a swap finds out.

    Args:
        inner: the remote.
        progress: told of each call.
        pages: a list of the heads that was taken a moment ago, page by page; what is listed here is put into it.

    Attributes:
        spared: what was answered without asking the remote.
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
        if after == "":  # whoever asks like this wants nothing that was kept
            self._pages.clear()
        if after in self._pages:
            self.spared.requests += 1
            self.spared.bytes_down += sum(len(head.data) for head in self._pages[after].heads)
        else:
            self._pages[after] = super().list_heads(after)
        return self._pages[after]
