"""One brainstorm session, as read: the document with every foreign key, and typed access to it.

The document is a plain dict and may be changed by the caller; `BrainstormStore.save` stores it. The
properties apply the defaults of the format, so that missing fields need not be filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sessionary.layouts.brainstorm import navigation
from sessionary.layouts.brainstorm.constants import AXES, MODES, PERSONAS, WEAK, is_whole, read_time
from sessionary.model import Problem


@dataclass(slots=True, eq=False)
class Brainstorm:
    """A session in the current version.

    Attributes:
        document: the whole document: ``format_version`` and ``session``.
        path: its file; empty if it has none yet.
        problems: oddities, and notes of an operation.
        stored: the bytes from which it was read; None if it has no file yet.
        is_migrated: True if those bytes are of an older version.
    """

    document: dict[str, Any]
    path: str = ""
    problems: list[Problem] = field(default_factory=list)
    stored: bytes | None = None
    is_migrated: bool = False

    @property
    def session(self) -> dict[str, Any]:
        """The map below ``session``."""
        value: dict[str, Any] = self.document["session"]
        return value

    def _text(self, name: str, default: str = "") -> str:
        value = self.session.get(name)
        return value if isinstance(value, str) else default

    @property
    def id(self) -> str:
        """Slug and date of the start."""
        return self._text("id")

    @property
    def slug(self) -> str:
        """The name of the session and of its file."""
        return self._text("slug")

    @property
    def status(self) -> str:
        """``in_progress``, ``completed`` or ``abandoned``."""
        return self._text("status")

    @property
    def phase(self) -> str:
        """``divergent``, ``transition`` or ``convergent``."""
        return self._text("phase")

    @property
    def mode(self) -> str:
        """``standard``, ``party`` or ``panel``; if the flags differ, this is used."""
        return self._text("mode", MODES[0])

    @property
    def persona(self) -> str:
        """The facilitator."""
        return self._text("persona", PERSONAS[0])

    @property
    def ems(self) -> int:
        """The score, 0 to 100."""
        value: int = self.session["ems"]
        return value

    @property
    def iteration(self) -> int:
        """The current iteration, from 1."""
        value: int = self.session["iteration"]
        return value

    @property
    def tip(self) -> int:
        """The last iteration; after a step back the session is before it."""
        return navigation.tip(self.session)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The entries that are not superseded by a branch, by iteration."""
        return [entry for _, entry in sorted(navigation.live(self.session).items())]

    @property
    def superseded(self) -> list[dict[str, Any]]:
        """The superseded entries, in the order of the file."""
        counted = {id(entry) for entry in navigation.live(self.session).values()}
        history = navigation.list_in(self.session, "history")
        return [entry for entry in history if isinstance(entry, dict) and id(entry) not in counted]

    @property
    def ems_line(self) -> list[int]:
        """The scores of the iterations in order."""
        return [entry["ems"] for entry in self.history if is_whole(entry.get("ems"), 0, 100)]

    @property
    def weak_axes(self) -> list[str]:
        """The axes of the score below 50; none if the session has no axes."""
        axes = self.session.get("ems_axes")
        known = axes if isinstance(axes, dict) else {}
        return [name for name in AXES if is_whole(known.get(name), 0, WEAK - 1)]

    @property
    def ideas(self) -> list[dict[str, Any]]:
        """The ideas, in the order of the file."""
        return [idea for idea in navigation.list_in(self.session, "ideas") if isinstance(idea, dict)]

    @property
    def questions(self) -> list[str]:
        """The questions of the current iteration."""
        entry = navigation.live(self.session).get(self.iteration, {})
        return [str(question) for question in navigation.list_in(entry, "questions")]

    @property
    def created(self) -> datetime | None:
        """When the session began."""
        return read_time(self.session.get("created")) or read_time(self.session.get("started_at"))

    @property
    def updated(self) -> datetime | None:
        """When it last changed."""
        return read_time(self.session.get("updated")) or self.created

    @property
    def suggested_phase(self) -> str:
        """The phase that fits the score: convergent from 50. The phase itself is set, never derived."""
        return "convergent" if self.ems >= WEAK else "divergent"
