"""Sync engine: push, pull and status of the sessions of one layout, between this device and a remote.

The files are the truth and the only queue. A push reads them without a lock; a pull changes them under the lock of
the session, after checking them again. Every step may be interrupted: the swap of one head commits a push, the rename
of one file or folder commits a local change, and the sync state is written last.

If two devices continue one session, both versions are kept: a pull moves the local version to a sibling with its own
id, and puts the remote version in its place. A push only reports it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from sessionary.disk.fs import OS_FS, Fs, is_there, stat_or_none
from sessionary.disk.lock import TIMEOUT
from sessionary.errors import Conflict, Locked, NotFound, RemoteError, SessionaryError, Unsupported
from sessionary.escaping import is_utf8
from sessionary.layouts.sync import SyncLayout
from sessionary.model import SessionRef
from sessionary.sync import activity
from sessionary.sync.blocks import BLOCK
from sessionary.sync.checking import Checker
from sessionary.sync.conflicts import ConflictFinder, Decider, is_for_user, versions_beside
from sessionary.sync.context import Context, InUse, Step, parents_first
from sessionary.sync.gone import Gone
from sessionary.sync.guard import Guard, may_be_held_back
from sessionary.sync.heads import Head, decode, encode, head_name
from sessionary.sync.links import is_link
from sessionary.sync.local_files import Surveyor
from sessionary.sync.pulling import Puller, open_here
from sessionary.sync.pushing import Pusher
from sessionary.sync.remote import HeadRecord, Remote, heads_by_name
from sessionary.sync.report import (
    Hold,
    Outcome,
    Report,
    SyncStatus,
    no_text,
    outcome_for,
    outcome_of,
    with_holds,
)
from sessionary.sync.restoring import Earlier
from sessionary.sync.retry import Cost, RetryingRemote
from sessionary.sync.rules import Projects, Rules, SameNames
from sessionary.sync.shown import Shown, at_least, is_before, is_later, is_same, is_whole, shown, standing_of
from sessionary.sync.state import States, SyncedState

QUIET = 30.0
"""Seconds without a change after which a session counts as closed."""

GIVE_UP = 3
"""Number of consecutive sessions without an answer after which the others are not tried."""

FEW = 5
"""Number of sessions that may vanish at once without suspecting a missing disk."""

BOTH_CHANGED = "changed here and on the remote; a pull keeps both versions"


class Engine(Step):
    """Synchronises the sessions of one layout on this machine with a remote.

    Args:
        layout: the local sessions.
        remote: the remote; calls with passing failures are retried. A `RetryingRemote` may serve several engines.
        state_dir: folder of the agreed states, one for each remote and home. Disposable.
        rules: which projects and files are synchronised.
        projects: shared names of projects.
        in_use: returns whether a running agent has a session open, or the reason in a sentence; such a session is
            pushed but not changed.
        quiet: seconds without a change before a pull changes a session.
        allow_many_deletions: push deletions even if half of all sessions are gone at once.
        patience: seconds to wait for another synchronisation of this machine.
        block: bytes of a file in one block, at most `blocks.BLOCK`.
        sleep: waits for a remote, in seconds.
    """

    def __init__(
        self,
        layout: SyncLayout,
        remote: Remote,
        *,
        state_dir: str | os.PathLike[str],
        rules: Rules | None = None,
        projects: Projects | None = None,
        in_use: InUse = lambda ref: False,
        quiet: float = QUIET,
        allow_many_deletions: bool = False,
        patience: float = TIMEOUT,
        block: int = BLOCK,
        fs: Fs = OS_FS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.layout = layout
        self.remote = remote if isinstance(remote, RetryingRemote) else RetryingRemote(remote, sleep=sleep)
        self.states = States(os.fspath(state_dir), fs)
        self.projects = projects if projects is not None and layout.projects_are_folders else SameNames()
        rules = rules or Rules()
        surveyor, block = Surveyor(fs, layout, rules, self.states.folder), min(block, BLOCK)
        here = fs, layout, self.remote, self.states
        super().__init__(Context(*here, rules, self.projects, in_use, now, block, surveyor))
        self._quiet = quiet
        self._allow_many_deletions = allow_many_deletions
        self._patience = patience
        self._unanswered = 0
        self._conflicts = ConflictFinder(self._context)
        self._guard = Guard(self._context)

    # -- operations

    def push(
        self,
        only: Iterable[SessionRef] | None = None,
        *,
        look: bool = False,
        heads: Mapping[str, HeadRecord] | None = None,
    ) -> Report:
        """Send local changes.

        Args:
            only: the changed sessions, if the caller knows them; a missing one was deleted. By default all.
            look: list the heads first, and send again what the remote has lost. Otherwise that is detected only for
                sessions with changes.
            heads: a recent result of `listed`, instead of listing the heads.

        Durability: a session that is reported as pushed can be pulled from then on. If this does not return, the
        remote has each session in its old or its new state, never a mixture, and the next push does the rest.

        Raises:
            Locked: another synchronisation of this machine is running.
            RemoteError: the heads cannot be listed.
            StorageFailed: the sessions cannot be listed.
        """
        with self._working() as report:
            asked = None if only is None else self._named(only, report)
            here = self._here(report) if asked is None else self._there(asked)
            activity.forget_cleanups(self._fs, here.values())
            pusher, heads = Pusher(self._context), self.listed() if look and heads is None else heads
            for name in parents_first(here, lambda name: pusher.above(name, here[name])):
                work = partial(self._push, pusher, name, here[name], shown(heads, name))
                report.outcomes += self._guarded(here[name], work)
            gone = Gone(self._context)
            buried = (
                gone.of(asked.keys() - here.keys()) if asked is not None else self._gone(gone, here, report)
            )
            if asked is None and heads is not None:
                buried += gone.back_again(here, heads)
            for name, agreed in buried:
                work = partial(self._bury, pusher, name, agreed, shown(heads, name))
                report.outcomes += self._guarded(agreed.ref(), work)
            return report

    def listed(self) -> dict[str, HeadRecord]:
        """Return all heads on the remote, by name. Raises as `heads_of`."""
        return heads_by_name(self.remote)

    def pull(self, heads: Mapping[str, HeadRecord] | None = None) -> Report:
        """Fetch remote changes.

        Args:
            heads: a recent result of `listed`, instead of listing the heads.

        Durability: a session that is reported as pulled survives a power cut. If this does not return, each file is
        in its old or its new state, and the next pull does the rest.

        Raises:
            Locked: another synchronisation of this machine is running.
            RemoteError: the heads cannot be listed.
        """
        with self._working() as report:
            puller = Puller(self._context)
            for record, agreed, head in self._parents_first(
                (self.listed() if heads is None else heads).values(), report
            ):
                report.outcomes += self._pull(puller, record, agreed, head)
            return report

    def status(self, heads: Mapping[str, HeadRecord] | None = None) -> Report:
        """Return the status of every session, from heads and local files. Changes nothing.

        Args:
            heads: a recent result of `listed`, instead of listing the heads.
        """
        self.remote.cost = Cost()
        report = Report(cost=self.remote.cost)
        heads, here = self.listed() if heads is None else heads, self._here(report)
        linked = {one.session_id for one in report.outcomes if is_link(one.error)}
        for name in sorted({*here, *heads}):
            ref, record = here.get(name), heads.get(name)
            known = self.states.agreed(name)
            if ref is not None:
                report.outcomes += self._guarded(ref, partial(self._stands, ref, known, record))
            elif record is not None and (outcome := self._only_there(record, known)) is not None:
                is_reported = is_link(outcome.error) and outcome.session_id in linked
                report.outcomes += [] if is_reported else [outcome]
        return report

    def unsent(self) -> list[str]:
        """Return the ids of local sessions that are not known to be complete on the remote. Uses no network.

        Includes sessions that cannot be examined.

        Raises:
            StorageFailed: the sessions cannot be listed.
        """
        report = Report()
        here = self._here(report)
        linked = [one.session_id for one in report.outcomes if is_link(one.error)]
        return linked + [ref.session_id for name, ref in here.items() if not self._is_sent(name, ref)]

    def _is_sent(self, name: str, ref: SessionRef) -> bool:
        try:
            agreed = self.states.agreed(name)
            same = agreed is not None and is_same(self._fs, self._surveyor.survey(ref), agreed)
            return same and not self._surveyor.left_out(ref)
        except NotFound:
            return True  # it was deleted meanwhile
        except SessionaryError:
            return False

    def resolve(self, ref: SessionRef, keep: str) -> Report:
        """Decide which version of a file is kept, where only the user may decide, or where one is damaged.

        Args:
            ref: the session that is held back.
            keep: ``mine``: the local version, as it is or as merged by the user, becomes the version of all devices;
                or ``theirs``: that of the remote. The local one is then kept beside it.

        Durability: as `push`, or as `pull`.

        Raises:
            Invalid: `keep` is neither, or there is nothing to decide: of all other sessions a pull keeps both
                versions.
            RemoteError, StorageFailed, Locked: as `push` and `pull`.
        """
        with self._working() as report:
            name = head_name(self.layout.name, self.projects.identity(ref), ref.session_id)
            agreed, record = self._recovered(name), self.remote.read_head(name)
            report.outcomes.append(Decider(self._context).decide(name, ref, agreed, record, keep))
            return report

    @property
    def earlier(self) -> Earlier:
        """Earlier versions of sessions that the remote still has."""
        return Earlier(self._context, self._patience)

    @property
    def checker(self) -> Checker:
        """Checks and repairs the remote copies of local sessions."""
        return Checker(self._context, self._recovered, self._here, self._working)

    def forget_rebound(self) -> None:
        """Forget the agreed state of sessions whose folder was bound to another project since.

        Changes nothing else, here or on the remote: the next push sends them as sessions of the new project.

        Raises:
            Locked: another synchronisation of this machine is running.
            StorageFailed: the state cannot be changed.
        """
        with self._working():
            for name in list(self.states.names()):
                agreed = self.states.agreed(name)
                ref = self.layout.ref_for_path(Path(agreed.folder)) if agreed is not None else None
                if agreed is not None and ref is not None and not self._is_of(ref, agreed.head.project):
                    self.states.forget(name)

    def _is_of(self, ref: SessionRef, project: str | None) -> bool:
        """True if a session belongs to this project, or if that is unknown."""
        try:
            return self.projects.identity(ref) == project
        except (NotFound, RemoteError):
            return True

    def holds_back(self, ref: SessionRef) -> bool:
        """True if a damaged version of this session was held back at the last synchronisation. Uses no network."""
        name = head_name(self.layout.name, self.projects.identity(ref), ref.session_id)
        return may_be_held_back(self.states.agreed(name))

    def awaiting(self) -> Report:
        """Return the sessions that wait for a user decision, and those where it cannot be determined.

        Reads only the heads of sessions that may wait. Changes nothing, here or on the remote.
        """
        self.remote.cost = Cost()
        report = Report(cost=self.remote.cost)
        for name, ref in self._here(report).items():
            agreed = self.states.agreed(name)
            if is_for_user(self.layout, ref) or may_be_held_back(agreed):
                found = self._guarded(ref, partial(self._awaits, name, ref, agreed))
                report.outcomes += [one for one in found if one.standing is not SyncStatus.IN_STEP]
        return report

    def _awaits(self, name: str, ref: SessionRef, agreed: SyncedState | None) -> Outcome:
        """Return the status of a session of which a version may be held back."""
        record = self.remote.read_head(name)
        is_known = agreed is not None and (
            record is None or record.etag == agreed.etag or is_before(record, agreed)
        )
        held = None if is_known else self._conflicts.held(ref, agreed, record)
        if held is not None:
            return held
        holds = self._guard.find(ref, agreed, record) if may_be_held_back(agreed) else ()
        outcome = outcome_for(ref, self.projects.identity(ref), SyncStatus.IN_STEP)
        return with_holds(outcome, [hold for hold in holds if not hold.is_behind])

    # -- implementation

    @contextmanager
    def _working(self) -> Iterator[Report]:
        self.remote.cost = Cost()
        self._unanswered = 0
        with self.states.lock().once(self._patience, note="sync"):
            yield Report(cost=self.remote.cost)

    def _here(self, report: Report) -> dict[str, SessionRef]:
        """Return the local sessions that the rules admit, by head name."""
        return self._named(self.layout.discover(), report)

    def _there(self, asked: Mapping[str, SessionRef]) -> dict[str, SessionRef]:
        return {name: ref for name, ref in asked.items() if self.layout.ref_for_path(ref.path) is not None}

    def _named(self, refs: Iterable[SessionRef], report: Report) -> dict[str, SessionRef]:
        """Return those that the rules admit, by head name.

        Sessions of unknown projects, and those outside the store, are reported.
        """
        found = {}
        for ref in refs:
            try:
                project = self.projects.identity(ref)
                if self._rules.admits(project):
                    self._links.refuse(ref)
            except (NotFound, RemoteError, Unsupported) as error:
                report.outcomes.append(self._failed(ref.session_id, ref.project, error))
                continue
            if not is_utf8(ref.session_id):
                report.outcomes.append(self._failed(ref.session_id, project, no_text(ref)))
            elif self._rules.admits(project):
                found[head_name(self.layout.name, project, ref.session_id)] = ref
        return found

    def _guarded(self, ref: SessionRef, work: Callable[[], Outcome]) -> list[Outcome]:
        """Run the work for one session; its error is reported, and does not stop the others."""
        project = self._project_or_local(ref)
        if self._unanswered >= GIVE_UP:
            return [outcome_for(ref, project, SyncStatus.HELD_BACK, "the remote does not answer")]
        try:
            outcome = work()
        except UnicodeEncodeError:
            return [self._failed(ref.session_id, project, no_text(ref))]
        except SessionaryError as error:
            self._unanswered += isinstance(error, RemoteError) and error.retryable
            return [self._failed(ref.session_id, project, error)]
        self._unanswered = 0
        return [outcome]

    def _project_or_local(self, ref: SessionRef) -> str | None:
        try:
            return self.projects.identity(ref)
        except (NotFound, RemoteError):
            return ref.project

    def _failed(self, session: str, project: str | None, error: SessionaryError) -> Outcome:
        held = isinstance(error, Locked | NotFound | Conflict) or is_link(error)
        standing = SyncStatus.HELD_BACK if held else SyncStatus.FAILED
        return Outcome(session, project, standing, str(error), error=error, kind=self.layout.name)

    def _recovered(self, name: str) -> SyncedState | None:
        """Return the agreed state of a session, after resolving an interrupted push or move."""
        Puller(self._context).settle_move(name)
        intent = self.states.intents.get(name)
        if intent is not None:
            found = self.remote.read_head(name)
            # Others may continue from it, whether it was carried out or not.
            Pusher(self._context).assure(intent.ref(), intent, self.states.agreed(name))
            if found is not None and found.data == encode(intent.head):
                self.states.agree(name, msgspec.structs.replace(intent, etag=found.etag, unsure={}))
                self._settle_owners(intent.ref(), intent.head.owners)
            else:
                self.states.give_up(name, intent)
        return self.states.agreed(name)

    # -- push

    def _push(self, pusher: Pusher, name: str, ref: SessionRef, seen: Shown | None) -> Outcome:
        agreed = self._recovered(name)
        if agreed is not None and seen is not None and is_later(seen.record, agreed):
            seen = None  # if there are changes to send, the swap decides
        return pusher.push(name, ref, agreed, shown=seen)

    def _gone(
        self, gone: Gone, here: Mapping[str, SessionRef], report: Report
    ) -> list[tuple[str, SyncedState]]:
        """Return the sessions that have vanished, unless they are suspiciously many."""
        found, known = gone.since(here)
        if len(found) > FEW and 2 * len(found) > known and not self._allow_many_deletions:
            note = f"{len(found)} of {known} sessions are gone at once; they are kept on the remote"
            report.outcomes += [outcome_of(agreed.head, SyncStatus.HELD_BACK, note) for _, agreed in found]
            return []
        return found

    def _bury(self, pusher: Pusher, name: str, agreed: SyncedState, seen: Shown | None) -> Outcome:
        """Put a tombstone for a session that was trashed here, unless it exists again."""
        recovered = self._recovered(name)
        is_buried = recovered is not None and recovered.head.deleted and not agreed.head.deleted
        if recovered is None or is_buried or is_there(self._fs, agreed.folder):
            return outcome_of(agreed.head, SyncStatus.IN_STEP)
        return pusher.bury(name, recovered, seen)

    # -- pull

    def _parents_first(
        self, records: Iterable[HeadRecord], report: Report
    ) -> Iterator[tuple[HeadRecord, SyncedState | None, Head]]:
        """Yield the decoded heads of this layout, each after that of its parent session.

        Unchanged heads are not decoded again: the agreed state is returned with them.
        """
        found: dict[str, tuple[HeadRecord, SyncedState | None, Head]] = {}
        for record in records:
            try:
                agreed = self._recovered(record.name)
                newest = at_least(record, agreed)
                unchanged = (
                    agreed is not None
                    and agreed.etag == newest.etag
                    and is_whole(self._fs, self.layout, self._rules, agreed)
                )
                head = agreed.head if agreed is not None and unchanged else decode(newest.name, newest.data)
            except SessionaryError as error:
                report.outcomes.append(self._failed(error.session or record.name, None, error))
                continue
            if self._concerns(head):
                found[newest.name] = newest, agreed if unchanged else None, head
        for name in parents_first(found, lambda name: self._above(found[name][2])):
            yield found[name]

    def _above(self, head: Head) -> str:
        return head_name(head.kind, head.project, head.parent) if head.parent else ""

    def _pull(
        self, puller: Puller, record: HeadRecord, unchanged: SyncedState | None, head: Head
    ) -> list[Outcome]:
        try:
            if unchanged is not None:
                outcome = self._unchanged(record, unchanged)
                if outcome is not None:
                    return [outcome]
            ref = self._place(record.name, head)
            self._links.refuse(ref)
            if not head.deleted and self._stays_away(record.name, ref, head):
                return [outcome_of(head, SyncStatus.IN_STEP, activity.CLEANED_UP)]
            if (why := self._open_here(ref)) is not None:
                return [outcome_of(head, SyncStatus.HELD_BACK, why)]
            found = self._guarded(ref, partial(puller.pull, record, head, ref))
            return [puller.explained(record, head, one) for one in found]
        except SessionaryError as error:
            return [self._failed(head.session, head.project, error)]

    def _unchanged(self, record: HeadRecord, agreed: SyncedState) -> Outcome | None:
        """Return the outcome of a session whose head has not changed; None if there is more to do."""
        ref = agreed.ref()
        if not agreed.head.deleted:
            self._links.refuse(ref)
        outcome = self._surveyor.with_left_out(ref, outcome_of(agreed.head, SyncStatus.IN_STEP), agreed.head)
        if not may_be_held_back(agreed) and not self._guard.lacks_bytes(ref, agreed):
            return outcome
        holds = self._guard.find(ref, agreed, record)
        return None if any(hold.is_behind for hold in holds) else with_holds(outcome, holds)

    def _place(self, name: str, head: Head) -> SessionRef:
        """Return the local place of a session: one that was synchronised before stays in its clone."""
        agreed = self.states.agreed(name)
        ref = self.layout.ref_for_path(Path(agreed.folder)) if agreed is not None else None
        if ref is not None and ref.session_id == head.session:
            return ref
        only = self._only_project()
        if only is not None:
            self.projects.identity(only)  # raises if the folder of the project is not bound
        project = self.layout.project() or self.projects.local(head.project)
        return self.layout.place(project, head.session, head.parent)

    def _stays_away(self, name: str, ref: SessionRef, head: Head) -> bool:
        return activity.stays_away(self._fs, ref, head, self.states.agreed(name), self._now())

    def _open_here(self, ref: SessionRef) -> str | None:
        """Return why a session may not be changed now; None if it may."""
        if stat_or_none(self._fs, ref.locator) is None:
            return None
        if why := self._in_use(ref):
            return open_here(why)
        now = self._now().timestamp()
        newest = max((part.changed(now) for part in self._surveyor.survey(ref).values()), default=0.0)
        if self._quiet and newest > now - self._quiet:
            return "newer on the remote; here it was changed a moment ago"
        return None

    # -- status

    def _stands(self, ref: SessionRef, known: SyncedState | None, record: HeadRecord | None) -> Outcome:
        same = known is not None and is_same(self._fs, self._surveyor.survey(ref), known)
        whole = known is None or is_whole(self._fs, self.layout, self._rules, known)
        standing, note = standing_of(record, known, same=same, whole=whole)
        holds: tuple[Hold, ...] = ()
        if standing is not SyncStatus.IN_STEP or may_be_held_back(known):
            holds = self._guard.find(ref, known, record)
        if standing in (SyncStatus.BEHIND, SyncStatus.DIVERGED):
            held = self._conflicts.held(ref, known, record)
            if held is not None:
                return held
            note = self._open_here(ref) or (BOTH_CHANGED if standing is SyncStatus.DIVERGED else "")
        beside = tuple(versions_beside(self.layout, ref))
        outcome = outcome_for(ref, self.projects.identity(ref), standing, note, beside)
        return self._surveyor.with_left_out(
            ref, with_holds(outcome, holds), None if known is None else known.head
        )

    def _only_there(self, record: HeadRecord, known: SyncedState | None) -> Outcome | None:
        try:
            head = decode(record.name, record.data)
        except SessionaryError as error:
            return self._failed(error.session or record.name, None, error)
        if not self._concerns(head) or head.deleted:
            return None
        with suppress(SessionaryError):  # it may have no place here
            ref = self._place(record.name, head)
            try:
                self._links.refuse(ref)
            except Unsupported as error:
                return self._failed(head.session, head.project, error)
            if self._stays_away(record.name, ref, head):
                return outcome_of(head, SyncStatus.IN_STEP, activity.CLEANED_UP)
        trashed = known is not None and (known.etag == record.etag or is_before(record, known))
        return outcome_of(
            head, SyncStatus.AHEAD if trashed else SyncStatus.BEHIND, "trashed here" if trashed else ""
        )
