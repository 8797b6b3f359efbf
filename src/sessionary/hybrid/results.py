"""What a `sync` and a `pull` say they did: counts to look at, and each session with its reason behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessionary.errors import SessionaryError

if TYPE_CHECKING:  # a store that has no other side does not load what speaks to one
    from sessionary.sync.report import Outcome


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a `sync` did, in sessions.

    Attributes:
        pushed: sent, or told to have been deleted.
        unchanged: the other side had them already.
        diverged: another device has changed them too; a `pull` brings both together.
        failed: not sent this time.
        bytes: what was sent.
        requests: calls to the other side, repeated ones included.
        errors: what went wrong.
        sessions: each session, with what became of it and why.
        damaged: of these, the sessions of which a damaged version is held back, here or on another device; each says
            in `held` which file, where and why. `HybridSessionStore.resolve` settles it.
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
    """What a `pull` did, in sessions.

    Attributes:
        pulled: brought here, or trashed here because they were trashed elsewhere.
        unchanged: what is there was here already.
        diverged: continued here and elsewhere: what was here is a session of its own now, whose id is the ``sibling``
            in `sessions`.
        held_back: newer on the other side and left as they are here, because somebody has them open or wrote to them a
            moment ago; or the other side did not answer any more.
        bytes: what was fetched.
        errors: what went wrong.
        sessions: each session, with what became of it and why.
        damaged: of these, the sessions of which a damaged version is held back, here or on another device; each says
            in `held` which file, where and why. `HybridSessionStore.resolve` settles it.
    """

    pulled: int = 0
    unchanged: int = 0
    diverged: int = 0
    held_back: int = 0
    bytes: int = 0
    errors: list[SessionaryError] = field(default_factory=list)
    sessions: list[Outcome] = field(default_factory=list)
    damaged: int = 0
