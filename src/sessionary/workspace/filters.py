"""Which sessions a list is to have, by what their summaries say."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sessionary.model import Summary


class Filter(NamedTuple):
    """What sessions must have in common; the default holds for all of them.

    Attributes:
        kinds: their kind is one of these; empty for any.
        model: one of their models has this text in its name, in any case.
        branch: the git branch that they worked on.
        healths: their health is one of these; empty for any.
        tags: they have all of these tags, in any case.
        starred: they have a star.
    """

    kinds: Collection[str] = ()
    model: str | None = None
    branch: str | None = None
    healths: Collection[str] = ()
    tags: Collection[str] = ()
    starred: bool = False

    def holds(self, one: Summary) -> bool:
        """True for a session that is to be listed."""
        return (
            (not self.kinds or one.ref.kind in self.kinds)
            and (self.branch is None or one.branch == self.branch)
            and (not self.healths or one.health in self.healths)
            and (not self.starred or one.starred)
            and {tag.casefold() for tag in self.tags} <= {tag.casefold() for tag in one.tags}
            and (self.model is None or any(self.model.casefold() in name.casefold() for name in one.models))
        )


def is_within(time: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    """True for a time from `since` up to `until`; an unknown time is only in a range without bounds."""
    if time is None:
        return since is None and until is None
    return (since is None or time >= since) and (until is None or time < until)
