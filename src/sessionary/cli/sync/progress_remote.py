"""The remote as the commands use it: each call shows that it goes on, and all heads are listed once for all layouts."""

from __future__ import annotations

from sessionary.cli.progress import Progress
from sessionary.sync.remote import BlockPage, HeadPage, HeadRecord, StatPage
from sessionary.sync.remotes import OpenRemote
from sessionary.sync.retry import Cost, must_collect


class Line:
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
        self._inner = inner
        self._progress = progress
        self._pages = {} if pages is None else pages
        self.spared = Cost()

    @property
    def ru(self) -> float:
        """The units that the remote was charged so far."""
        return float(getattr(self._inner, "ru", 0.0))

    @property
    def fetched(self) -> int:
        """How many bytes of blocks the remote has read to list them."""
        return int(getattr(self._inner, "fetched", 0))

    def put_block(self, space: str, block: str, data: bytes) -> bool:
        self._progress.advance()
        return self._inner.put_block(space, block, data)

    def read_range(self, space: str, first: str, stop: str, after: str | None = None) -> BlockPage:
        self._progress.advance()
        return self._inner.read_range(space, first, stop, after)

    def read_head(self, name: str) -> HeadRecord | None:
        self._progress.advance()
        return self._inner.read_head(name)

    def swap_head(self, name: str, data: bytes, etag: str | None) -> str | None:
        self._progress.advance()
        return self._inner.swap_head(name, data, etag)

    def list_heads(self, after: str | None = None) -> HeadPage:
        if after == "":  # whoever asks like this wants nothing that was kept
            self._pages.clear()
        if after in self._pages:
            self.spared.requests += 1
            self.spared.bytes_down += sum(len(head.data) for head in self._pages[after].heads)
        else:
            self._progress.advance()
            self._pages[after] = self._inner.list_heads(after)
        return self._pages[after]

    @property
    def settled_after(self) -> float | None:
        """As the remote inside; None if nothing can be removed from it."""
        return getattr(self._inner, "settled_after", None)

    def list_blocks(self, space: str, first: str, stop: str, after: str | None = None) -> StatPage:
        self._progress.advance()
        return must_collect(self._inner).list_blocks(space, first, stop, after)

    def delete_block(self, space: str, block: str, version: str) -> bool:
        self._progress.advance()
        return must_collect(self._inner).delete_block(space, block, version)
