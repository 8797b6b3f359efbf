"""Results of `sync` and `pull`: counts, and the outcome of each session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessionary.errors import SessionaryError

if TYPE_CHECKING:  # a store without a remote does not load remote code
    from sessionary.sync.report import Outcome


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Result of a `sync`, in sessions.

    Attributes:
        pushed: sent, or deleted on the remote.
        unchanged: already up to date on the remote.
        diverged: also changed by another device; a `pull` keeps both versions.
        failed: not sent this time.
        bytes: bytes sent.
        requests: calls to the remote, including retries.
        errors: the errors.
        sessions: the outcome of each session.
        damaged: number of sessions with a damaged version that is held back, here or on another device; each names in
            `held` the file, the place and the reason. `HybridSessionStore.resolve` settles it.
    """

    pushed: int = 0
    unchanged: int = 0
    diverged: int = 0
    failed: int = 0
    bytes: int = 0
    requests: int = 0
    errors: list[SessionaryError] = field(default_factory=list)
    sessions: list[Outcome] = field(default_factory=list)
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class PullResult:
    """Result of a `pull`, in sessions.

    Attributes:
        pulled: brought here, or trashed here because they were trashed elsewhere.
        unchanged: already up to date here.
        diverged: continued here and elsewhere: the local version is now a session of its own, with the id ``sibling``
            in `sessions`.
        held_back: newer on the remote and unchanged here, because they are open or were written to a moment ago, or
            because the remote stopped answering.
        bytes: bytes fetched.
        errors: the errors.
        sessions: the outcome of each session.
        damaged: number of sessions with a damaged version that is held back, here or on another device; each names in
            `held` the file, the place and the reason. `HybridSessionStore.resolve` settles it.
    """

    pulled: int = 0
    unchanged: int = 0
    diverged: int = 0
    held_back: int = 0
    bytes: int = 0
    errors: list[SessionaryError] = field(default_factory=list)
    sessions: list[Outcome] = field(default_factory=list)
    damaged: int = 0
