"""`Workspace`: the operations on the sessions of every kind."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sessionary.errors import NotFound, StorageFailed, Unsupported
from sessionary.layouts.abilities import ChecksChain
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.changing import Changes, Renames, Reverts, Trashed
from sessionary.layouts.changing import Undoable as Change
from sessionary.model import Aside, Inherited, Message, Place, Problem, SessionRef, Summary
from sessionary.workspace import changes
from sessionary.workspace.changes import ForkPreview, Repair
from sessionary.workspace.failures import gathered, readable
from sessionary.workspace.filters import HEALTHS, SORTS, Filter, by_recency, require_known
from sessionary.workspace.labels import tag_of
from sessionary.workspace.sessions import Sessions
from sessionary.workspace.stats import Stats
from sessionary.workspace.stores import KINDS

if TYPE_CHECKING:
    import threading

    from sessionary.catalog import Rows
    from sessionary.layouts.amplifier.event_reader import EventReader
    from sessionary.layouts.amplifier.forks import ForkResult
    from sessionary.layouts.amplifier.project_rename import Move
    from sessionary.layouts.amplifier.rewinding import Rewound
    from sessionary.layouts.amplifier.store import SessionStore
    from sessionary.layouts.amplifier.transactions import Restored, Undone
    from sessionary.layouts.brainstorm.scores import Score
    from sessionary.layouts.maestro.spans import WorkSpan
    from sessionary.layouts.orchestrator.board import FeatureBoard
    from sessionary.redaction import Redaction
    from sessionary.search import Query
    from sessionary.sync.report import Report
    from sessionary.transcript.typed import Numbered
    from sessionary.workspace.archive import Archive
    from sessionary.workspace.comparing import Comparison
    from sessionary.workspace.costs import Costs
    from sessionary.workspace.doctor import Doctor
    from sessionary.workspace.exporting import Export
    from sessionary.workspace.following import Follower
    from sessionary.workspace.imports.importing import Imported
    from sessionary.workspace.mended_copy import MendedCopy
    from sessionary.workspace.opening import Resume
    from sessionary.workspace.prices import Prices
    from sessionary.workspace.searching import Hits
    from sessionary.workspace.spending import SpendingReport
    from sessionary.workspace.tool_times import ToolTime

Target = SessionRef | Path
"""A session, or a file of messages or events in any folder."""


class Workspace(Sessions):
    """The sessions of this user, or those below one folder.

    Args:
        homes: where agents store their sessions: a folder or several for each kind of agent (see `KINDS`), by default
            the agent's own (`~/.amplifier`, `~/.claude`, …); or one folder or several, below which the sessions of all
            kinds are read. Of a session in two homes, that in the home that is named first counts.
        root: the folder of the project whose work sessions, brainstorms and features are read; by default the current
            folder, or `homes` if that is one folder.
        fs: the file system.
        cache: the folder of the catalogue; by default the cache folder of the user.

    Methods that change a session raise Unsupported if its layout does not grant the capability for it, NotFound if it
    is gone, and Locked or StorageFailed if it cannot be written; it is unchanged then.

    Raises:
        Invalid: `homes` names an unknown kind.
    """

    def list(
        self,
        *,
        kind: str | Collection[str] | None = None,
        project: str | None = None,
        model: str | None = None,
        branch: str | None = None,
        health: str | Collection[str] | None = None,
        tag: str | Collection[str] | None = None,
        starred: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        sort: str = "changed",
        summaries: Iterable[Summary] | None = None,
        failure: StorageFailed | None = None,
    ) -> builtins.list[Summary]:
        """Return the summaries of the sessions that match, in the order of `sort`; those of sub-agents included.

        Only sessions that changed since the last list are read. A damaged session is listed with its problems.

        Args:
            kind: only sessions of this kind, or of one of these, see `KINDS`.
            project: only sessions of this project, see `of_project`.
            model: only sessions in which a model with this text in its name wrote.
            branch: only sessions on this git branch.
            health: only sessions of this health, or of one of these. ``ok`` includes sessions with a note; ``damaged``
                selects all other healths.
            tag: only sessions with this tag, or with all of these.
            starred: only sessions with a star.
            since: only sessions that changed at this time or later; needs a time zone. Omits unknown times.
            until: only sessions that changed before, likewise.
            sort: ``changed``, or ``created``, ``size``, ``tokens``, ``messages``, ``turns`` (largest and newest first),
                ``title``, ``project`` (from A to Z); the newest of equals first.
            summaries: choose from these; None for all sessions.
            failure: the error that left sessions out of `summaries`, see `gathered`.

        Raises:
            Invalid: the kind, health or order is unknown.
            NotFound: no project matches.
            StorageFailed: a folder cannot be read; `summaries` yields all others first. Or `failure`, if no
                project matches.
        """
        kinds, healths, tags = map(_several, (kind, health, tag))
        require_known("kind", kinds, KINDS)
        require_known("health", healths, HEALTHS)
        require_known("order", (sort,), SORTS)
        wanted = Filter(kinds, model, branch, healths, tags, starred, since, until)
        found = self.summaries() if summaries is None else summaries
        if project is not None:
            found = self.of_project(project, found, failure)
        chosen = sorted(filter(wanted.holds, found), key=by_recency(), reverse=True)
        chosen.sort(key=SORTS[sort])
        return chosen

    # -- reading

    def read(self, target: Target) -> Iterator[Message | Aside | Inherited | Problem]:
        """Read the conversation of a session or a JSON Lines file, in one pass and bounded memory.

        Problems stand where they occur, and so do messages outside of the conversation. Messages of another session
        with which this one begins come before its own.

        Raises:
            NotFound: it is gone.
            StorageFailed: it cannot be read.
        """
        if isinstance(target, SessionRef):
            items = self.layout_of(target).read(target)
            return (one for one in items if isinstance(one, Message | Aside | Inherited | Problem))
        # Here and below: a list of the command line does not need it.
        from sessionary.layouts.amplifier.reading import read_file

        return read_file(self._fs, str(target))

    def messages(
        self,
        target: Target,
        first: int = 0,
        last: int | None = None,
        *,
        around: int | None = None,
        turns: tuple[int, int | None] | None = None,
        preceding: bool = False,
        asides: bool = False,
        inherited: bool = False,
        redaction: Redaction | None = None,
    ) -> Iterator[Numbered]:
        """The messages of `read`, each with its index from 0, as in a `Hit`, and its turn, from 1.

        Negative numbers count from the end: -1 is the last message, or turn. The session is read once more for them.

        Args:
            target: the session, or the file.
            first: the first index.
            last: the last index; None for all.
            around: the number of messages to yield before and after the one with index `first`.
            turns: the first and the last turn, None for the end; instead of `first` and `last`. Turn 0 is what comes
                before the first turn.
            preceding: also yield the messages before `first`, marked as such: later results may belong to their calls.
            asides: also yield the messages outside of the conversation.
            inherited: also yield the messages of another session, with which this one begins.
            redaction: apply these rules to each text, see `secret_rules`.

        Raises:
            Invalid: the message, with `around`, or the turn does not exist.
            Corrupt: no message can be read, because of a problem that is worse than a note.
            NotFound: the session or file is gone.
            StorageFailed: it cannot be read.
        """
        from sessionary.workspace.choosing import chosen

        def problems() -> Iterable[Problem]:
            return self.check(target) if isinstance(target, Path) else self.summary(target).problems

        def read() -> Iterator[Message | Aside | Inherited | Problem]:
            return readable(self.read(target), problems, "show")

        shown = {"asides": asides, "inherited": inherited}
        return chosen(read, first, last, around, turns, redaction, preceding=preceding, **shown)

    def follow(
        self,
        ref: SessionRef,
        first: int = 0,
        *,
        preceding: bool = False,
        interval: float = 1.0,
        stop: Callable[[], bool] | threading.Event | None = None,
        idle: Callable[[], object] = lambda: None,
    ) -> Iterator[Numbered]:
        """The messages of a session, then those that are added, as soon as they are stored; does not end by itself.

        Only what was added is read, of layouts that can go on from a cursor. A message that its agent extends or
        changes is yielded again, with those parts. Messages outside of the conversation are left out.

        Args:
            ref: the session.
            first, preceding: as in `messages`; negative numbers count from the present end.
            interval: seconds between two looks where no event of the file system announces a change.
            stop: ends the iteration when it is set, or returns True.
            idle: called whenever everything was yielded, before a wait.

        Raises:
            NotFound: it is gone.
            StorageFailed: it cannot be read.
        """
        from sessionary.workspace.choosing import between, resolve_indexes
        from sessionary.workspace.following import follow

        found = follow(self.layout_of(ref), ref, self._fs, interval=interval, stop=stop, idle=idle)
        return between(found, *resolve_indexes(lambda: self.read(ref), first), preceding=preceding)

    def raw(self, target: Target, place: Place) -> bytes:
        """The bytes of the stored record at the place of a message, with keys of encryption masked.

        Raises:
            NotFound: it is gone.
            StorageFailed: it cannot be read.
        """
        if isinstance(target, SessionRef):
            return self.layout_of(target).raw(target, place)
        from sessionary.layouts.jsonl import raw_line

        return raw_line(self._fs, str(target), place.byte or 0)

    def follower(self, ref: SessionRef) -> Follower:
        """As `follow`, for callers that wait by themselves: each `poll` yields what was added since the last one."""
        from sessionary.workspace.following import Follower

        return Follower(self.layout_of(ref), ref)

    def check(self, target: Target) -> Iterator[Problem]:
        """Every problem of a session, its mailbox included, or of a JSON Lines file of messages. Reads only.

        A session that cannot be read has the problem ``unreadable_file``.

        Raises:
            NotFound: the file is gone.
            StorageFailed: the file, which belongs to no session, cannot be read.
        """
        if isinstance(target, Path):
            from sessionary.layouts.amplifier.reading import check_file

            yield from check_file(self._fs, str(target))
            return
        if (fault := self.archived.fault(target)) is not None:
            yield fault
            return
        yield from self._check(target)
        if target.kind == "work":
            from sessionary.mailbox.consumers import mailbox_problems

            yield from mailbox_problems(target.locator)

    def _check(self, ref: SessionRef) -> Iterator[Problem]:
        from sessionary.layouts.summary import unreadable_file

        is_reported = False
        try:
            for problem in self.layout_of(ref).check(ref):
                is_reported |= problem.code == "unreadable_file"
                yield problem
        except StorageFailed as error:  # one file of many must not end the check of the others
            if not is_reported:
                yield unreadable_file(ref, error)

    def check_chain(self, target: Target, *, remember: bool = False) -> builtins.list[Problem]:
        """The problems of the hash chain of a session; none for a kind without chains.

        Args:
            target: the session.
            remember: keep the end of the chain in the state folder if nothing is wrong; later checks compare with it.

        Raises:
            Corrupt, StorageFailed: it, or the file of remembered ends, cannot be read or written.
        """
        if not isinstance(target, SessionRef) or not isinstance(
            layout := self.layout_of(target), ChecksChain
        ):
            return []
        from sessionary.workspace.chain_heads import in_trash, known_heads, remember_head

        path = os.path.realpath(target.locator)
        kept = known_heads(self._fs).get(path)
        problems, head = layout.check_chain(target, kept)
        if problems and kept is not None and in_trash(self.trashing(), path, kept) is not None:
            anew = layout.check_chain(target, None)
            if anew[1] is None or anew[1].first != kept.first:  # a new session in its place
                problems, head = anew
        if remember and head is not None:
            remember_head(self._fs, path, head)
        return problems

    def check_remembered(self) -> Iterator[Problem]:
        """A problem for each session below the homes whose chain was remembered, and whose file is gone.

        A session that was moved to the trash is not gone, unless it was changed or deleted there.
        """
        from sessionary.workspace.chain_heads import gone_sessions

        homes = [str(one.home) for one in self.layouts if isinstance(one, ChecksChain)]
        return gone_sessions(homes, self.trashing(), self._fs)

    def resume(self, ref: SessionRef) -> Resume:
        """Return the command that continues a session in its agent, its folder, and problems that the agent may refuse.

        Raises:
            Unsupported: no command continues it, it is the session of a sub-agent, or only the archive has it.
            InvalidId: its id cannot be an argument of a program.
            NotFound: the session is gone.
        """
        from sessionary.workspace.opening import refuse_archived, resume_of

        if self.archived.place_of(ref) is not None:
            raise refuse_archived(ref, in_place=self.archive().goes_back(ref.kind))
        layout = self.layout_of(ref)
        return resume_of(layout, self.summary(ref), builtins.list(self.check(ref)), self._fs)

    def export(
        self,
        target: Target,
        format: str = "md",  # noqa: A002 - the word for it
        *,
        redact: bool = False,
        rules: Path | None = None,
        branches: bool = False,
        strict: bool = False,
    ) -> Export:
        """A session, with the sessions of its sub-agents, in a format that other programs read.

        Nothing is read until the export is iterated or saved, but for the summaries of the sessions.

        Args:
            target: the session, or a JSON Lines file of messages.
            format: ``md``, ``html``, ``json``, ``jsonl``, ``atif``, ``sts`` or ``otel``.
            redact: mask secrets, home folders and user names in everything that is exported.
            rules: the rules file for that; by default the user's, if there is one.
            branches: include the messages outside of the conversation.
            strict: raise Unsupported at the end if something could not be carried.

        Raises:
            Invalid: the format is unknown, or the rules file is not valid.
            Corrupt: it is a file of which no message can be read.
            NotFound: the session or the rules file is gone.
            StorageFailed: a file cannot be read.
        """
        from sessionary.workspace.exporting import export_of

        return export_of(
            self,
            self,
            target,
            format,
            redact=redact,
            rules=rules,
            branches=branches,
            strict=strict,
            fs=self._fs,
        )

    def import_file(self, path: Path) -> Imported:
        """Take over the sessions of a file: a trajectory of ATIF, a trace in STS, or the database of a framework.

        They become sessions of the kind ``records``, below its folder in the home. The file is not changed. What an
        earlier import stored is not stored again; a session that differs from a stored one of the same id is left out.

        Durability: when this returns, what was added survives a power cut. After an interruption, import again.

        Raises:
            Invalid: the format of the file is unknown.
            Unsupported: it has a newer version, or needs a framework that is not installed.
            NotFound, StorageFailed, Corrupt: it is missing, cannot be read, or is damaged.
            Locked: another process holds one of the sessions.
        """
        from sessionary.workspace.imports.importing import import_file

        return import_file(path, self._of_kinds["records"][0].home, self._fs)

    def secret_rules(self) -> Redaction:
        """The rules that mask secrets: the kept ones, and those of the user's rules file.

        Raises:
            Invalid: the rules file of the user is not valid.
            StorageFailed: it cannot be read.
        """
        from sessionary.redaction import ALWAYS, Redaction
        from sessionary.redaction.personal import load_rules

        return Redaction({**load_rules(None, fs=self._fs), **ALWAYS})

    def diff(self, a: SessionRef, b: SessionRef, *, branch: int = 0, other_branch: int = 0) -> Comparison:
        """Two sessions beside each other, or branches of one: turns, tools, files, errors, tokens and cost.

        Args:
            a: the first session.
            b: the second session; may be the same.
            branch: of the first: 0 for its conversation, n for the nth branch that was left in it.
            other_branch: of the second.

        Raises:
            Invalid: there are not so many branches, or the price file of the user is not valid.
            NotFound: a session is gone.
            StorageFailed: a session cannot be read.
        """
        from sessionary.workspace.comparing import compare

        return compare((self.layout_of(a), a, branch), (self.layout_of(b), b, other_branch), self.prices())

    def tool_times(self, target: Target) -> builtins.list[ToolTime]:
        """The calls of tools in a session, each with the time until its result, as far as messages bear times.

        Raises:
            NotFound: the session is gone.
            StorageFailed: it cannot be read.
        """
        from sessionary.workspace.tool_times import tool_times

        return tool_times(self.read(target))

    def scores(self, ref: SessionRef) -> builtins.list[Score]:
        """The scores of a brainstorm over its history, entries that a branch replaced included.

        Raises:
            Unsupported: not a brainstorm, or one of an unknown version.
            NotFound, Corrupt, SchemaError, StorageFailed: it is gone, damaged, or cannot be read.
        """
        from sessionary.layouts.brainstorm.scores import scores_of

        self._require_kind(ref, "brainstorm")
        return scores_of(self._fs, ref.locator)

    def board(self, ref: SessionRef, *, now: datetime | None = None) -> FeatureBoard:
        """A feature with its status, the tasks of its plan by phase, its history, and the locks that are held.

        Damage of its files is in the problems of `status`.

        Args:
            ref: the feature.
            now: the time that its health is seen from; by default that of the clock.

        Raises:
            Unsupported: not a feature.
            NotFound: it is gone.
        """
        from sessionary.layouts.orchestrator.board import board_of

        self._require_kind(ref, "feature")
        return board_of(self._fs, ref.locator, now or datetime.now(UTC))

    def work_span(self, ref: SessionRef) -> WorkSpan:
        """The status of a work session, when it began and ended, and the times of its breadcrumbs.

        Raises:
            Unsupported: not a work session.
            StorageFailed: a folder of it cannot be read.
        """
        from sessionary.layouts.maestro.spans import span_of

        self._require_kind(ref, "work")
        return span_of(self._fs, os.path.abspath(self.layout_of(ref).home), ref.session_id, ref.locator)

    def _require_kind(self, ref: SessionRef, kind: str) -> None:
        """Refuse a session of another kind; one that only the archive has is restored."""
        if ref.kind != kind:
            raise Unsupported(
                f"{ref.session_id} is of the kind {ref.kind}",
                session=ref.session_id,
                path=ref.locator,
                hint=f"`sessionary list --kind {kind}` lists those of the kind {kind}",
            )
        self.layout_of(ref)

    def doctor(self, *, now: datetime | None = None, summaries: Iterable[Summary] | None = None) -> Doctor:
        """Return the state of each kind of sessions: places, numbers, health, versions, and sessions deleted soon.

        Args:
            now: the time at which is counted what agents will delete; by default that of the clock.
            summaries: the sessions, if they were listed a moment ago; None to list them.
        """
        from sessionary.workspace.doctor import Doctor, catalogue_state, state_of

        now = now or datetime.now(UTC)
        listed: dict[Layout, builtins.list[Summary]] = {}
        for summary in summaries or ():
            if not summary.archived:
                listed.setdefault(self._of_kind(summary.ref), []).append(summary)
        agents = [
            state_of(one, self.catalog.summaries(one) if summaries is None else listed.get(one, ()), now)
            for one in self.layouts
        ]
        for one in agents:
            one.unkept = len(self.archived.lacks(one.leaving))
        return Doctor(agents, catalogue_state(self.catalog))

    def search(
        self,
        query: str | Query,
        refs: Iterable[SessionRef] | None = None,
        *,
        case: bool = False,
        fold: bool = False,
        limit: int = 0,
        roles: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        redaction: Redaction | None = None,
        summaries: Iterable[Summary] | None = None,
    ) -> Hits:
        """Find the messages that match an expression, the newest sessions first.

        Hits are found while they are iterated. There is no index, so nothing can be out of date.

        Args:
            query: words, and phrases in double quotes, each anywhere in the message, with ``AND``, ``OR`` and ``NOT``
                between them; or a `search.Query`, which also selects roles, parts, tools and times, and has regular
                expressions.
            refs: the sessions to search; None for all.
            case: distinguish upper and lower case, of words.
            fold: ignore accents, of words.
            limit: stop after so many hits; 0 for no limit.
            roles: with words, only messages of these roles; ``person``: the user wrote it.
            since: with words, only messages of this time or later; needs a time zone.
            until: with words, only messages before.
            redaction: search the text that these rules leave, see `secret_rules`: no hit depends on a secret.
            summaries: search these sessions instead of `refs`. Nothing is read to order them, so the first hits come
                earlier; one that changed since is searched as it is now, in its old place.

        Raises:
            Invalid: there are no words, or an operator has none.
            StorageFailed: a folder cannot be read.
        """
        from sessionary.workspace.searching import asked_for, search_in

        wanted = asked_for(query, case=case, fold=fold, roles=roles, since=since, until=until)
        names = {key: one.name for key, one in self._labels.known().items() if one.name is not None}
        return search_in(self, wanted, refs, summaries, names, limit=limit, redaction=redaction)

    def stats(self, summaries: Iterable[Summary] | None = None) -> Stats:
        """Add up sessions: all of them, or those that are given. Raises StorageFailed as `list`."""
        return Stats.of(self.summaries() if summaries is None else summaries)

    def prices(self) -> Prices:
        """The prices of models: those of the user, and those of the package.

        Raises:
            Invalid: the price file of the user is not valid.
            StorageFailed: it cannot be read.
        """
        from sessionary.workspace.prices import load_prices

        return load_prices()

    def spending(
        self,
        summaries: Iterable[Summary] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        zone: tzinfo | None = None,
        model: str | None = None,
    ) -> SpendingReport:
        """Tokens and their cost by model, day, project and agent, sub-agents included.

        Costs are those of the list prices of the providers; tokens of models without a known price are counted apart.

        Args:
            summaries: the sessions; None for all.
            since: only responses of this time or later, rounded down to a quarter of an hour.
            until: only responses before, likewise.
            zone: the time zone of the days; None for the local one.
            model: only models with this text in their names.

        Raises:
            Invalid, StorageFailed: as `prices`.
        """
        from sessionary.workspace.spending import spending

        some = builtins.list(self.summaries() if summaries is None else summaries)
        project_of = self.project_of(some)
        return spending(some, self.prices(), project_of, since=since, until=until, zone=zone, model=model)

    def events(self, target: Target, passed: Callable[[int], object] | None = None) -> EventReader:
        """The event log of a session, or an event log in any folder.

        Args:
            target: the session, or the file.
            passed: called now and then with the offset reached, by methods that read the whole log.

        Raises:
            Unsupported: sessions of this kind have no event log.
        """
        from sessionary.layouts.amplifier.event_reader import EventReader

        path = target if isinstance(target, Path) else target.path
        with suppress(NotFound):
            owner = self.ref_for_path(path.absolute().parent) if isinstance(target, Path) else target
            self.require(owner, Capability.EVENTS, "events")
        return EventReader(path, self._fs, passed=passed)

    def costs(
        self,
        refs: Iterable[SessionRef],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        passed: Callable[[], object] = lambda: None,
    ) -> Costs:
        """Tokens and cost of the model responses in the event logs of sessions.

        A response that a fork copied from its parent counts once. Missing figures are not estimated.

        Args:
            refs: the sessions; those without an event log are passed over.
            since: only responses of this time or later.
            until: only responses before.
            passed: called after each log.
        """
        from sessionary.workspace.costs import costs

        logged = [ref for ref in refs if self.grants(ref, Capability.EVENTS)]
        return costs(logged, self._fs, since=since, until=until, passed=passed)

    def sql(self, statement: str, *, refresh: bool = True) -> Rows:
        """Query the catalogue of sessions with a SQL statement that only reads; see `catalog.query`.

        Args:
            statement: SELECT, WITH or VALUES.
            refresh: read the sessions that changed since the last list first. Folders that cannot be read are passed
                over.

        Raises:
            Invalid: the statement is not valid, or would change something.
            StorageFailed: there is no catalogue.
        """
        from sessionary.catalog import query

        if refresh:
            gathered(self.summaries())
        return query(self.catalog, statement)

    # -- changing

    def operations(self, ref: SessionRef) -> frozenset[str]:
        """The names of the operations that a session supports, besides reading.

        Those of ``repair``, ``rewind``, ``fork``, ``rename``, ``tag``, ``star``, ``export``, ``trash`` and
        ``archive`` that its layout supports; ``copy``: a repaired copy. For the kinds in projects, ``repair`` merges
        conflict copies, and is included if there are any.
        """
        return changes.operations(self, ref, self._fs)

    def _store(self, ref: SessionRef, operation: str, capability: Capability | None = None) -> SessionStore:
        """The store of a session that may be changed; the capability has the name of the operation, if not given."""
        self.require(ref, capability or Capability(operation), operation)
        return changes.store_of(ref, self._fs, operation)

    def repair(
        self,
        ref: SessionRef,
        *,
        orphans: str = "complete",
        close_last: bool = False,
        bad_bytes: str = "replace",
        dry_run: bool = False,
    ) -> Repair:
        """Merge the conflict copies of a session, then repair it so that its agent can resume it.

        Of a kind that has no other repair, only conflict copies are merged. `undo` takes the repair back, not the
        merge.

        Args:
            ref: the session.
            orphans: tool calls without a result: ``complete`` adds an error result, ``drop`` removes the call.
            close_last: also add a closing message if the conversation ends with a tool result.
            bad_bytes: messages with invalid UTF-8: ``replace`` keeps them with U+FFFD, ``drop`` sets them aside.
            dry_run: return what would be done, and write nothing.

        Raises:
            Corrupt: nothing of it can be read.
        """
        how = {"orphans": orphans, "close_last": close_last, "bad_bytes": bad_bytes}
        return changes.repair(self, ref, self._fs, dry_run=dry_run, **how)

    def mended_copy(self, ref: SessionRef, out: Path) -> MendedCopy:
        """Write a repaired copy of the session of another agent below a folder; the session itself stays unchanged.

        The copy has the place below `out` that the session has in the home of its agent, so `Workspace(out)` reads
        it. Records that nothing is wrong with are copied byte for byte. Holds the session in memory.

        Durability: when this returns, the copy survives a power cut. An interrupted copy may be partly repaired.

        Args:
            ref: the session.
            out: the folder; it is made if it is missing.

        Raises:
            Unsupported: not a session of JSON Lines, or Sessionary may repair it in place.
            Invalid: the folder is in the home of the agent.
            AlreadyExists: the folder has a file of the session; it is unchanged.
            Corrupt: no record of it can be read.
            NotFound: the session is gone.
            StorageFailed: a file cannot be read or written.
        """
        from sessionary.workspace.mended_copy import mended_copy

        return mended_copy(self.layout_of(ref), ref, out, self._fs)

    def rewind(self, ref: SessionRef, turn: int, *, dry_run: bool = False) -> Rewound:
        """Go back to the end of a turn, 0 meaning before the first. `undo` restores what was behind it.

        Later turns are removed. Those of a brainstorm, whose turns are its iterations, stay in its history.

        Raises:
            Invalid: the turn does not exist.
            TransitionError: the brainstorm has ended.
        """
        if isinstance(layout := self.layout_of(ref), Reverts):
            return changes.rewound(ref, layout.rewind(ref, turn, dry_run=dry_run), dry_run=dry_run)
        return self._store(ref, "rewind").rewind(ref.session_id, turn, dry_run=dry_run)

    def fork(
        self,
        ref: SessionRef,
        turn: int | None = None,
        *,
        session_id: str | None = None,
        name: str | None = None,
        on_incomplete: str = "complete",
        events: bool = True,
        unique: bool = True,
    ) -> ForkResult:
        """Create a new session from the first turns of another one, in the same project.

        Args:
            ref: the session.
            turn: the last turn to copy; None for all.
            session_id: the id of the new session; None for a new UUID.
            name: its name; None for that of its parent.
            on_incomplete: tool calls without a result: ``complete``, ``remove`` or ``error``.
            events: copy the events of those turns.
            unique: refuse an id that a session of another project has: neither could be found by it.

        Raises:
            Invalid: the turn does not exist.
            AlreadyExists: the id exists.
        """
        if isinstance(layout := self.layout_of(ref), Changes):
            made = layout.fork(ref, turn, session_id, dry_run=False)
            if name is not None and (new := layout.ref_for_path(Path(made.path))) is not None:
                self._set_label(new, name)
            return changes.forked(ref, made)
        store = self._store(ref, "fork")
        if session_id is not None:
            changes.refuse_known(self, ref, session_id, self._fs, unique)
        return store.fork(
            ref.session_id,
            turn,
            session_id,
            include_events=events,
            handle_orphaned_tools=on_incomplete,
            name=name,
        )

    def preview_fork(
        self,
        ref: SessionRef,
        turn: int | None = None,
        *,
        session_id: str | None = None,
        on_incomplete: str = "complete",
        unique: bool = True,
    ) -> ForkPreview:
        """Return a preview of `fork`. Raises as `fork`, and writes nothing."""
        if isinstance(layout := self.layout_of(ref), Changes):
            made = layout.fork(ref, turn, session_id, dry_run=True)
            return ForkPreview(made.turn, made.turns, made.messages, 0, "", "")
        self._store(ref, "fork")
        if session_id is not None:
            changes.refuse_known(self, ref, session_id, self._fs, unique)
        return changes.preview_fork(ref, self._fs, turn, on_incomplete)

    def restore_backup(
        self, ref: SessionRef, which: str = "transcript", *, dry_run: bool = False
    ) -> Restored:
        """Replace the ``transcript`` or the ``metadata`` of a session by its backup. `undo` takes it back.

        Raises:
            NotFound: the session, or the backup, does not exist.
            Corrupt: the backup cannot be read.
        """
        store = self._store(ref, "restore-backup", Capability.REPAIR)
        return store.restore_backup(ref.session_id, which, dry_run=dry_run)

    def rename(self, ref: SessionRef, name: str | None) -> str | None:
        """Set or remove the name of a session, which is its title in lists; return the name that it had.

        The name of a work session is its purpose, that of a feature is in its plan. Where the format has no place for a
        name, it is kept as tags are, and the store of the session stays unchanged.

        Durability: the new name survives a power cut when this returns; if it fails, the old one remains.

        Raises:
            Corrupt: what holds the name cannot be read.
        """
        if not self.grants(ref, Capability.RENAME):
            return self._set_label(ref, name)
        if isinstance(layout := self.layout_of(ref), Renames):
            return layout.set_name(ref, name)
        store = self._store(ref, "rename")
        before = store.get_metadata(ref.session_id).get("name")
        store.update_metadata(ref.session_id, {"name": name})
        return before if isinstance(before, str) and before.strip() else None

    def _set_label(self, ref: SessionRef, name: str | None) -> str | None:
        """Keep the name of a session whose store has no place for it; return the one that it had."""
        text = None if name is None else " ".join(name.split()) or None
        return self._labels.change(ref, lambda one: replace(one, name=text)).name

    def tag(self, ref: SessionRef, add: Iterable[str] = (), remove: Iterable[str] = ()) -> builtins.list[str]:
        """Add tags to a session of any kind and remove others; return the tags that it had.

        Tags are kept in the data folder of the user, and never written into the store of an agent.

        Durability: as `rename`.

        Raises:
            Invalid: a tag is empty, or has blanks or commas.
            Corrupt: the file of names and tags is damaged.
            Locked, StorageFailed: it cannot be written.
        """
        added, removed = set(map(tag_of, add)), set(map(tag_of, remove))
        return self._labels.change(
            ref, lambda one: replace(one, tags=sorted(set(one.tags) - removed | added))
        ).tags

    def star(self, ref: SessionRef, *, on: bool = True) -> bool:
        """Give a session of any kind a star, or take it away; return whether it had one. Raises as `tag`.

        Durability: as `rename`.
        """
        return self._labels.change(ref, lambda one: replace(one, starred=on)).starred

    def trash(self, ref: SessionRef) -> str:
        """Move a session to the trash; return its folder there. `undo` restores it.

        Raises:
            TransitionError: it is a brainstorm in progress.
        """
        self.require(ref, Capability.TRASH, "trash")
        (layout,) = self.trashing(ref)
        return layout.move_to_trash(ref, datetime.now(UTC))

    def trashed(self, before: datetime | None = None) -> Iterator[Trashed]:
        """The sessions in the trash of all projects, the last one first.

        Args:
            before: only those that were moved there before this time, which needs a time zone.

        Raises:
            StorageFailed: a trash cannot be read; after all others.
        """
        return changes.trashed(self.trashing(), before)

    def empty_trash(self, sessions: Iterable[Trashed]) -> builtins.list[Trashed]:
        """Permanently delete these sessions of the trash; return those that existed. This cannot be undone.

        The remembered ends of their hash chains are forgotten.

        Raises:
            Corrupt: the file of remembered ends is damaged; nothing is deleted.
            Locked, StorageFailed: one could not be deleted; the following ones still exist.
        """
        return changes.empty_trash(self, sessions, self._fs)

    def find_changed(self, name: str) -> SessionRef:
        """The session to undo a change of: as `find`, but also among the sessions in the trash.

        Raises:
            NotFound, AmbiguousId, StorageFailed: as `find`.
            Unsupported: sessions of this kind can only be read.
        """
        return changes.find_changed(self, name, self._fs)

    def undoable(self, ref: SessionRef | None = None) -> Iterator[Change]:
        """The changes of a session, or of all sessions, that can be undone, the last one first.

        Raises:
            StorageFailed: a folder cannot be read; after all others.
        """
        return changes.undoable(self.trashing(ref), ref)

    def undo(self, change: Change) -> Undone:
        """Undo the last change of a session, as `undoable` returned it. A second undo redoes it.

        Raises:
            NotFound: nothing to undo.
            AlreadyExists: a session with the id of the trashed one was created since.
        """
        return changes.undo(change, self.layout_of(change.ref), self._fs)

    def plan_move(self, project: str, path: Path) -> Move:
        """Plan the move of a project's sessions after its folder was renamed. Reads only.

        Args:
            project: the old path, the name of its folder of sessions, or the end of that.
            path: the new path.

        Raises:
            NotFound, AmbiguousId: no project matches, or several.
            Invalid: the path is that of the project already, or the old path is needed.
            AlreadyExists: the new project has sessions with the same ids.
            StorageFailed: a folder, or the metadata of a session, cannot be read.
        """
        from sessionary.layouts.amplifier.project_rename import plan

        slug, old = changes.project_to_move(self, project, self._fs)
        return plan(self.home, slug, os.path.realpath(path), old=old, fs=self._fs)

    def move(self, move: Move, *, passed: Callable[[], object] = lambda: None) -> None:
        """Carry out a plan. A session that is in use stays and is reported in its `problems`.

        Args:
            move: the plan.
            passed: called after each session.
        """
        from sessionary.layouts.amplifier.project_rename import carry_out

        carry_out(move, passed=passed, fs=self._fs)

    # -- archive and sync

    def archive(self, folder: Path | None = None) -> Archive:
        """The archive: byte-exact copies of sessions, before their agents delete them.

        Args:
            folder: its folder; by default the one that was chosen, else that of the user's data.

        Raises:
            Invalid: there is no place for it, or its settings are damaged.
        """
        from sessionary.workspace.archive import Archive

        return Archive(self, folder, self._fs)

    def sync_status(
        self, settings: Path | None = None, *, passed: Callable[[], None] = lambda: None
    ) -> Report:
        """The state of every session on this machine and on the remote. Changes nothing in either.

        Args:
            settings: the settings file; by default that of `sessionary sync init`.
            passed: called with each request to the remote.

        Raises:
            NotFound: no remote was set up.
            Corrupt, Invalid, Unsupported: the settings are damaged, or not supported.
            RemoteError: the remote does not answer.
            StorageFailed: a file cannot be read.
        """
        from sessionary.workspace.syncing import Local, chosen, connected, state_of_commands

        with connected(Local(self, chosen(settings), state_of_commands()), passed) as remote:
            return remote.status()


def _several(words: str | Collection[str] | None) -> Collection[str]:
    return (words,) if isinstance(words, str) else words or ()
