"""The rule of layouts with cursors: reading in pieces equals reading as a whole."""

from collections.abc import Sequence

from sessionary.layouts.base import Layout
from sessionary.layouts.summary import Summarized, summarize
from sessionary.model import Cursor, Fact, Item, Reset, SessionRef
from sessionary.transcript.fold import Fold, Progress, resumed


class Reader:
    """Reads one session again and again from where it came to, and keeps what a fresh reader would have.

    Attributes:
        items: everything read that is still valid, without cursors.
        resets: how often it had to begin anew.
    """

    def __init__(self, layout: Layout, ref: SessionRef) -> None:
        self.items: list[Item] = []
        self.resets = 0
        self._layout, self._ref = layout, ref
        self._after: Cursor | None = None
        self._folded: Summarized | None = None

    def go_on(self) -> None:
        """Read what was added, and require that it is what a fresh reader has."""
        after = self._after
        if after is None:
            self.items = []
        self._after = None
        for item in self._layout.read(self._ref, after):
            if isinstance(item, Reset):
                self.items = []
                self.resets += 1
            elif isinstance(item, Cursor):
                self._after = item
            else:
                self.items.append(item)
        whole = [item for item in self._layout.read(self._ref) if not isinstance(item, Cursor)]
        assert _said(self.items) == _said(whole)
        assert _facts(self.items) == _facts(whole)
        require_equal_folds(whole)
        before = self._folded.progress if self._folded else None
        self._folded = summarize(self._layout, self._ref, before)
        assert self._folded.summary == summarize(self._layout, self._ref).summary
        if self._folded.progress is not None:
            assert resumed(self._folded.progress) is not None


def require_equal_folds(items: Sequence[Item]) -> None:
    """Store the fold of the first items at every cut, and require that going on from it is the fold of all."""
    whole, first = _folded(Fold(), items), Fold()
    for cut, item in enumerate(items):
        state = first.state()
        if state is not None:
            later = resumed(Progress(Cursor(b""), state, first.timed_usage()))
            assert later is not None
            assert _folded(later, items[cut:]) == whole
        first.take(item)


def _folded(fold: Fold, items: Sequence[Item]) -> Fold:
    for item in items:
        fold.take(item)
    return fold


def _said(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if not isinstance(item, Fact)]


def _facts(items: Sequence[Item]) -> dict[str, Fact]:
    """The facts that count: a document beside the messages is read each time, so they may come again."""
    return _folded(Fold(), [item for item in items if isinstance(item, Fact)]).facts
