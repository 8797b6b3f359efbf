"""`sync push`, `sync pull` and `sync status`."""

from __future__ import annotations

from collections.abc import Callable

from sessionary.cli import options
from sessionary.cli.lazy import command
from sessionary.cli.sync import places
from sessionary.cli.sync.formatting import print_result


@command("push", "sessionary sync push", "sessionary sync push --json | jq .cost")
@places.local()
@options.flag("--many-deletions", help="Push deletions even if half of all sessions were deleted at once.")
@options.json_result
def push_command(select: Callable[[], places.Here], many_deletions: bool) -> int:
    """Upload new data, and again what the remote has lost.

    A session that was continued elsewhere in the meantime is not changed: `sync pull` reconciles both.
    Exit code 3: some sessions failed, or are held back because a file is damaged or behind a symbolic link.

    This cannot be undone: other machines may have downloaded it.
    """
    here = select()
    with places.connected(here, "pushing") as remote:
        places.finish_removal(here.settings, remote.remote)
        report = remote.report(map(remote.push, remote.engines(allow_many_deletions=many_deletions)))
    return print_result(report, here)


@command(
    "pull",
    "sessionary sync pull",
    "sessionary sync pull --root ~/code/shop     its work sessions, brainstorms and features, too",
)
@places.local(quiet=True)
@options.json_result
def pull_command(select: Callable[[], places.Here]) -> int:
    """Download new data from the remote.

    If a session was continued on two machines, both versions are kept: the local version becomes a sibling with
    a new id. A session that an agent has open is not changed, and sessions of a project that is missing on this
    machine are held back. Exit code 3: some sessions failed, or are held back because a file is
    damaged or behind a symbolic link.

    A whole pull cannot be undone; replaced versions are kept, and reported.
    """
    here = select()
    with places.connected(here, "pulling") as remote:
        places.finish_removal(here.settings, remote.remote)
        report = remote.report(map(remote.pull, remote.engines()), others=True)
    return print_result(report, here)


@command("status", "sessionary sync status", "sessionary sync status --all --json")
@places.local()
@options.flag("--all", "all_", help="Also print sessions that are in sync.")
@options.as_json("the sessions", "one session")
def status_command(select: Callable[[], places.Here], all_: bool) -> int:
    """Show which sessions are ahead, behind or diverged.

    Sessions may also be in step, never synced, or held back. Changes nothing, neither locally nor on the
    remote. Exit code 3: as for `sync push`.
    """
    here = select()
    with places.connected(here, "looking") as remote:
        report = remote.status()
    return print_result(report, here, all_=all_)
