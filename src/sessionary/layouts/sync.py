"""The needs of sync: merge rules of the files of a session, and places, locks and moves of sessions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from sessionary.errors import Invalid
from sessionary.layouts.base import Layout
from sessionary.layouts.files import PartKind
from sessionary.model import Problem, SessionRef

if TYPE_CHECKING:
    from sessionary.layouts.fields import Merged  # a list, which never syncs, would load the codec


class Policy(Enum):
    """What becomes of a file that two devices have changed, each without knowing of the other's change.

    The set is closed: sync has one rule for each policy, and none for a layout.
    """

    FORK = "fork"
    """Both continue a conversation: the session is split in two, and both are kept."""

    KEEP_BOTH = "both"
    """One version wins, the other is kept beside it."""

    IMMUTABLE = "once"
    """The file is made once and never changed: both sides keep what either has."""

    UNION = "union"
    """The lines of both are kept, in the order of their times."""

    LEDGER = "ledger"
    """As UNION, but of the lines with equal keys only the earliest is kept. Only one device writes it."""

    FIELDS = "fields"
    """The layout merges both, field by field; see `SyncLayout.merged`."""

    MANUAL = "person"
    """Only the user may decide: nothing is changed, and the conflict is reported."""


class Rule(NamedTuple):
    """How one file of a session is merged with another version of it.

    Attributes:
        time: for `UNION` and `LEDGER`, the key of the time of a line, in ISO 8601.
        key: for `LEDGER`, the key of a line whose value no other line may have.
    """

    policy: Policy
    time: str = ""
    key: str = ""


class SyncLayout(Layout, Protocol):
    """A layout whose sessions can be synced: what sync must know of it, and no more.

    Sync writes the files itself, whole, through `disk`. `discover` MAY yield more than that of the layout: what is
    stored beside its sessions and is to be synced too. Subclass it: what most layouts share is implemented here.
    """

    projects_are_folders: ClassVar[bool] = True
    """True if a project is a folder of this machine, which has another name on others; else all use one name."""

    def project(self) -> str | None:
        """The one project here to which all of its sessions belong; None if each has a project of its own."""
        return None

    def refuse_other_project(self, project: str | None, session_id: str) -> None:
        """Refuse a session of another project than the one here. Raises Invalid."""
        if project != self.project():
            raise Invalid(
                f"the local sessions belong to {self.project()}, not to {project}", session=session_id
            )

    def place(self, project: str | None, session_id: str, parent: str | None = None) -> SessionRef:
        """Where a session of this id belongs, whether it exists or not; its present place, if it does.

        Raises:
            Invalid: no session of this layout can have that id, or belong to that project.
        """
        ...

    def path_of(self, ref: SessionRef, name: str) -> str:
        """The path of a file of a session. A session that is one file is at its own locator."""
        return ref.locator if self.single_file(ref.session_id) is not None else f"{ref.locator}/{name}"

    def single_file(self, session_id: str) -> str | None:
        """The one file that a session of this id consists of; None if it is a folder, with files of several names.

        MUST be the same on all devices. What a head says of other files of such a session is refused.
        """
        return None

    def part_kind(self, name: str) -> PartKind | None:
        """What a file of that name would be; None if no session of this layout has such a file.

        MUST be None for every name that leads out of the session's folder.
        """
        ...

    def rule(self, name: str) -> Rule:
        """The merge rule of a file of that name. MUST be the same on all devices, and for all time."""
        ...

    def merged(
        self, name: str, base: bytes | None, mine: bytes, theirs: bytes, *, ours_lead: bool = False
    ) -> Merged | None:
        """A file of the policy `FIELDS`, with what both sides changed in it; None if it cannot be merged.

        MUST be pure, and bring the result together with `theirs` to the same bytes again.

        Args:
            base: what both sides had last; None if that is not known.
            ours_lead: whether the conversation continued here. It decides about fields that both have changed where the
                document itself does not say which change came last.
        """
        return None

    def faults(self, name: str, data: bytes) -> list[Problem]:
        """What is wrong with a file of that name that has these bytes, by the rules of `check`.

        The files beside it say nothing here, and a file of a newer version is not at fault. Of a journal, `data` may
        be some whole lines. MUST be pure; the `path` of each problem is the name of the file.
        """
        ...

    def lock(self, ref: SessionRef) -> AbstractContextManager[None]:
        """Take a session that is there: no writer of this layout changes it until the end of the block.

        Raises:
            NotFound: it is not there.
        """
        ...

    def parent(self, ref: SessionRef) -> str | None:
        """The session that it says to come from, without a look at its conversation; None if it says none."""
        return None

    def backup_of(self, name: str) -> str | None:
        """The name under which the previous version of a file is kept when it is replaced; None for nowhere."""
        return None

    def set_parent(self, ref: SessionRef, parent: str, now: datetime) -> None:
        """Make a session that was moved to `ref` say its new id, and that it was forked from `parent`.

        MUST be safe to be repeated. Hold the session. Asked only of layouts that have a file of the policy `FORK`.

        Durability: when this returns, it survives a power cut; until then the old label does.
        """
        ...

    def trash(self, ref: SessionRef, now: datetime) -> None:
        """Move a session to the trash of this layout. Hold the session.

        Durability: when this returns, the move survives a power cut.
        """
        ...
