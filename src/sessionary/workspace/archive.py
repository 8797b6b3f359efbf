"""The archive: byte-exact copies of sessions, before their agents delete them.

It is a folder remote to which sessions are pushed by the sync engine and from which none is pulled. Sources are only
read. All operations on one archive exclude one another by its lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, is_there, make_folder, read_bytes
from sessionary.disk.lock import FileLock
from sessionary.errors import AmbiguousId, Invalid, NotFound, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts import registry
from sessionary.layouts.archiving import ArchiveLayout
from sessionary.layouts.base import Layout
from sessionary.layouts.session_ids import ids_named
from sessionary.model import SessionRef, Summary
from sessionary.sync import archive, bundles, heads
from sessionary.sync.archive import Version
from sessionary.sync.engine import Engine
from sessionary.sync.folder_remote import FolderRemote
from sessionary.sync.report import SyncStatus
from sessionary.sync.rules import SameNames
from sessionary.sync.state import States
from sessionary.workspace import archive_index
from sessionary.workspace.archive_files import head_of, written
from sessionary.workspace.archive_index import Archived, Choice, key_of, listed, load_choice, save_choice
from sessionary.workspace.failures import gathered, in_turn, joined
from sessionary.workspace.filters import is_of_project
from sessionary.workspace.naming import is_project_path, is_short_for
from sessionary.workspace.sessions import Sessions

AT_ONCE = 100
"""Sessions that are pushed before the index is written."""

FOREIGN = tuple(one.name for one in registry.AGENTS)
"""The kinds that are archived by default."""
ARCHIVABLE = ("amplifier", *FOREIGN)
"""The kinds that can be archived."""

_RELISTED = {one.name: one.relisted for one in registry.AGENTS if one.relisted is not None}


@dataclass(slots=True)
class ArchiveReport:
    """The result of a run.

    Attributes:
        pushed: the sessions that were new or had changed.
        unchanged: the number of the others.
        failed: the ids of the sessions that could not be archived, each with the reason.
        failure: a folder of sessions that could not be read; None if all could be.
    """

    pushed: list[Archived] = field(default_factory=list)
    unchanged: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    failure: StorageFailed | None = None


class Verified(NamedTuple):
    """An archived session that was read back: its id, the bytes that were read, and what is wrong, in sentences."""

    session_id: str
    kind: str
    size: int
    faults: list[str]


class ArchivedFiles(NamedTuple):
    """The files that were restored.

    Attributes:
        session_id: the session.
        paths: the files.
        listed: what its agent does with it; None if it was not restored into the home of the agent.
    """

    session_id: str
    paths: list[str]
    listed: str | None


class Archive:
    """The archive in a folder.

    Args:
        folder: the folder; None for the one that was chosen, else the usual one.

    Attributes:
        folder: its path.

    Every method but `choose` raises Locked if another process works with the archive for long, and RemoteError,
    Corrupt or StorageFailed if it cannot be read or written.

    Raises:
        Invalid: there is no place for it, or the settings are damaged.
    """

    def __init__(self, sessions: Sessions, folder: Path | None, fs: Fs) -> None:
        self._sessions = sessions
        self._fs = fs
        place = os.path.abspath(os.path.expanduser(folder)) if folder is not None else load_choice(fs).folder
        place = place or archive_index.usual_folder()
        if place is None:
            raise Invalid("no home directory for the archive", hint="use --folder DIR")
        self.folder: str = place
        self._remote = FolderRemote(place, fs)

    def choice(self) -> Choice:
        """The choice of sessions to archive."""
        return load_choice(self._fs)

    def choose(
        self, kinds: Iterable[str] = (), projects: Iterable[str] = (), *, replace: bool = False
    ) -> Choice:
        """Add kinds and projects to the choice of what is archived; create the folder of the archive.

        Args:
            kinds: kinds of sessions; without any, those of all other agents are archived.
            projects: projects, by path or name; without any, those of all projects are.
            replace: discard the earlier choice.

        Durability: the choice is on disk when this returns. After an error or a crash the earlier choice is complete.

        Raises:
            Unsupported: sessions of a kind cannot be archived.
            Invalid: a project is empty.
            Invalid, StorageFailed: the folder cannot be created, or the settings cannot be written.
        """
        known, kinds = Choice() if replace else load_choice(self._fs), tuple(kinds)
        for kind in kinds:
            if kind not in ARCHIVABLE:
                hint = f"kinds that can be: {', '.join(ARCHIVABLE)}"
                raise Unsupported(f"sessions of kind {kind} cannot be archived", hint=hint)
        usual = self.folder == archive_index.usual_folder()
        choice = Choice(
            tuple(dict.fromkeys((*known.kinds, *kinds))),
            tuple(dict.fromkeys((*known.projects, *map(_absolute, projects)))),
            None if usual else self.folder,
        )
        if not usual:  # from now on, a missing folder is an error: its disk is not mounted
            make_folder(self._fs, self.folder)
        save_choice(choice, self._fs)
        return choice

    def run(self, *, passed: Callable[[int], object] = lambda count: None) -> ArchiveReport:
        """Archive the chosen sessions that are new or have changed. Their files are only read.

        What does not continue the archived bytes becomes a new version; earlier ones are kept. A session whose source
        is gone stays.

        Args:
            passed: called with the number of sessions that were looked at since the last call.

        Durability: each session that is reported as pushed survives a power cut. If this does not return, each is in
        its old or its new state, and the next run does the rest.
        """
        report, choice = ArchiveReport(), load_choice(self._fs)
        kinds = choice.kinds or FOREIGN
        with self._locked("archive run"):
            index = archive_index.load(self.folder, self._fs)
            for layout in self._sessions.layouts:
                if layout.name in kinds:
                    self._run(layout, lambda group: _is_chosen(group[0], choice), index, report, passed)
            self._complete(index)
        return report

    def keep(self, ref: SessionRef) -> Archived:
        """Archive one session, chosen or not, with those of its sub-agents whose files belong to it.

        Durability: as `run`.

        Raises:
            Unsupported: sessions of its kind cannot be archived.
            NotFound: it has no content, or is gone.
        """
        if ref.kind not in ARCHIVABLE:
            hint = f"kinds that can be: {', '.join(ARCHIVABLE)}"
            raise Unsupported(f"sessions of kind {ref.kind} cannot be archived", hint=hint)
        report = ArchiveReport()
        with self._locked("archive keep"):
            index = archive_index.load(self.folder, self._fs)
            layout = self._sessions.layout_of(ref)
            self._run(layout, lambda group: any(one.ref == ref for one in group), index, report)
            self._complete(index)
        for _, reason in report.failed:
            raise StorageFailed(f"the session cannot be archived: {reason}", session=ref.session_id)
        found = self.entry_of(ref)
        if found is None:
            raise NotFound("the session has no content to archive", session=ref.session_id, path=ref.locator)
        return found

    def entry_of(self, ref: SessionRef) -> Archived | None:
        """The entry of a session, which may be that of the session that it belongs to; None if it has none."""
        home = str(self._sessions.layout_of(ref).home)
        for one in archive_index.load(self.folder, self._fs).values():
            if one.home == home and one.kind == ref.kind and one.project == ref.project:
                ids = {one.session_id, *(each.summary().ref.session_id for each in one.sessions)}
                if ref.session_id in ids:
                    return one
        return None

    def entries(self) -> list[Archived]:
        """The archived sessions, the last one first."""
        found = archive_index.load(self.folder, self._fs).values()
        return sorted(found, key=lambda one: (one.at, one.name), reverse=True)

    def find(self, word: str) -> Archived:
        """The archived session of an id, or of the beginning of one.

        Raises:
            NotFound: there is none.
            AmbiguousId: there are several.
        """
        entries = self.entries()
        ids = [one.session_id for one in entries]
        short = word.casefold()  # as a narrow list shows it
        named = set(ids_named(word, ids) or (one for one in ids if is_short_for(short, one.casefold())))
        found = [one for one in entries if one.session_id in named]
        if len(found) == 1:
            return found[0]
        if found:
            matches = sorted(f"{one.session_id}  {one.kind} of {one.home}" for one in found)
            raise AmbiguousId(
                f"{len(found)} archived sessions match {word}",
                session=word,
                details={"matches": matches},
                hint="give more of the id",
            )
        raise NotFound(
            f"no archived session is called {word}",
            session=word,
            path=self.folder,
            hint="`sessionary archive list` shows them; `sessionary archive run` archives what is new",
        )

    def versions(self, entry: Archived) -> list[Version]:
        """The versions of an archived session, the newest first."""
        return archive.versions(head_of(self.folder, entry.name, self._fs))

    def verify(self, entries: Iterable[Archived] | None = None) -> Iterator[Verified]:
        """Read sessions back, all of them by default, and compare each file of each version with its hash."""
        chosen = None if entries is None else [one.name for one in entries]
        for name in self._remote.names() if chosen is None else chosen:
            try:
                head = head_of(self.folder, name, self._fs)
            except SessionaryError as error:
                yield Verified(name, "", 0, [error.message])
                continue
            size, wrong = archive.faults(self._remote, head, self._fs)
            yield Verified(head.session, head.kind, size, wrong)

    def restore(
        self, entry: Archived, to: Path | None = None, *, version: int | None = None
    ) -> ArchivedFiles:
        """Write the files of an archived session, byte for byte, with new times. No file is ever replaced.

        Args:
            to: the folder to write below, under the names below the home of the agent; None for that home.
            version: the number of the version; None for the longest.

        Durability: the files survive a power cut when this returns. Each is whole or missing.

        Raises:
            AlreadyExists: the session exists, or one of its files does with other bytes; nothing was written.
            Unsupported: the agent has more than one file for a session: `to` is needed.
            NotFound: the version does not exist.
        """
        in_rows = entry.sessions and "#" in entry.sessions[0].locator
        if to is None and (in_rows or not self.goes_back(entry.kind)):
            raise Unsupported(
                f"a session of kind {entry.kind} cannot be put back into its store",
                session=entry.session_id,
                hint=f"`sessionary archive restore {entry.session_id} --to DIR` writes its files to a folder",
            )
        head = head_of(self.folder, entry.name, self._fs)
        target = entry.home if to is None else os.path.abspath(os.path.expanduser(to))
        main = entry.sessions[0].locator if entry.sessions else ""
        paths = written(self.folder, head, version or entry.best, target, self._fs, main=main)
        return ArchivedFiles(entry.session_id, paths, _RELISTED.get(entry.kind) if to is None else None)

    def goes_back(self, kind: str) -> bool:
        """True if sessions of a kind can be put back into the store of their agent: each is a file of its own."""
        return kind in _RELISTED

    def remove(self, entry: Archived) -> None:
        """Remove a session from the archive, with all of its versions. This cannot be undone.

        Durability: it is gone after a power cut, too, when this returns. If this does not return, the session is there
        or gone, and a second call removes the rest.
        """
        with self._locked("archive rm"):
            index = archive_index.load(self.folder, self._fs)
            States(self._state(entry.kind, entry.home), self._fs).forget(entry.name)
            self._remote.erase(entry.name)
            index.pop(entry.name, None)
            archive_index.save(self.folder, index.values(), self._fs)
            self._sessions.archived.forget(entry.name)

    def left(self) -> set[str]:
        """The names of the entries whose source is gone, or whose home is not in this workspace."""
        refs, _ = gathered(in_turn(layout.discover() for layout in self._sessions.layouts))
        here = set(map(key_of, refs))
        return {one.name for one in self.entries() if one.key not in here}

    # -- implementation

    def _locked(self, note: str) -> AbstractContextManager[None]:
        make_folder(self._fs, self.folder)
        return FileLock(os.path.join(self.folder, ".lock"), self._fs).once(note=note)

    def _state(self, kind: str, home: str) -> str:
        digest = sha256(home.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return os.path.join(self.folder, "state", f"{kind}-{digest}")

    def _run(
        self,
        layout: Layout,
        wanted: Callable[[list[Summary]], bool],
        index: dict[str, Archived],
        report: ArchiveReport,
        passed: Callable[[int], object] = lambda count: None,
    ) -> None:
        """Archive the wanted sessions of a layout; one is given with those of its sub-agents behind it."""
        state = self._state(layout.name, str(layout.home))
        scratch = os.path.join(state, "made")
        source = ArchiveLayout(layout, self._fs, scratch, self._packed)
        summaries, failure = gathered(self._sessions.catalog.summaries(layout))
        report.failure = joined(report.failure, failure)
        groups = list(filter(wanted, _groups(source, summaries)))
        names = _Homes(layout)
        engine = Engine(
            source, self._remote, state_dir=state, rules=archive.RULES, projects=names, fs=self._fs
        )
        pending = iter(groups)
        while some := list(islice(pending, AT_ONCE)):
            changed = dict[str, tuple[list[Summary], bytes]]()
            for group in some:
                ref, stamp = group[0].ref, source.stamp(group[0].ref)
                name = heads.head_name(layout.name, names.identity(ref), ref.session_id)
                known = index.get(name)
                if known is not None and stamp and known.stamp == stamp:
                    report.unchanged += 1
                else:
                    changed[name] = group, stamp
            self._push(engine, source, changed, index, report)
            passed(len(some))
        if is_there(self._fs, scratch):
            atomic.erase_tree(scratch, fs=self._fs)

    def _push(
        self,
        engine: Engine,
        source: ArchiveLayout,
        changed: dict[str, tuple[list[Summary], bytes]],
        index: dict[str, Archived],
        report: ArchiveReport,
    ) -> None:
        if not changed:
            return
        for name, (group, _) in list(changed.items()):
            try:
                self._recover(engine, name, group[0].ref)
            except SessionaryError as error:
                report.failed.append((group[0].ref.session_id, error.message))
                del changed[name]
        refs = source.keep(group[0].ref for group, _ in changed.values())
        for outcome in engine.push(refs).outcomes:
            name = heads.head_name(outcome.kind, outcome.project, outcome.session_id)
            if outcome.standing not in (SyncStatus.PUSHED, SyncStatus.IN_STEP) or name not in changed:
                if not isinstance(outcome.error, NotFound):  # else it was deleted a moment ago
                    reason = (
                        outcome.error.message if isinstance(outcome.error, SessionaryError) else outcome.note
                    )
                    report.failed.append((outcome.session_id, reason))
                continue
            group, stamp = changed[name]
            index[name] = entry = self._entry(name, source, group, stamp, index.get(name))
            if outcome.standing is SyncStatus.PUSHED:
                report.pushed.append(entry)
            else:
                report.unchanged += 1
        archive_index.save(self.folder, index.values(), self._fs)

    def _recover(self, engine: Engine, name: str, ref: SessionRef) -> None:
        """Make the state of a session anew if it was lost, or is older than the archive.

        Nothing else continues the sessions of an archive, so what it has is what was agreed.
        """
        record, agreed = self._remote.read_head(name), engine.states.agreed(name)
        if record is None or (agreed is not None and agreed.etag == record.etag):
            return
        make_folder(self._fs, engine.states.folder)
        engine.states.agree(name, archive.state_of(self._remote, record, ref.locator, self._fs))

    def _entry(
        self, name: str, source: ArchiveLayout, group: list[Summary], stamp: bytes, known: Archived | None
    ) -> Archived:
        """The entry of a session that was pushed; its summaries are those of its longest version."""
        record = self._remote.read_head(name)
        if record is None:
            raise NotFound("a session has vanished from the archive", path=self.folder)
        head, main = heads.decode(name, record.data), group[0].ref
        if known is None:
            sizes = archive.sizes(self._remote, head, self._fs)
        else:
            sizes = {**known.sizes, head.gen + 1: sum(part.size for part in head.parts)}
        by_path = {path: one for one, path in source.files(main).items()}
        places = [source.place_of_rows(one.ref) or _place(source, one.ref, by_path) for one in group]
        sessions = [listed(place, one) for place, one in zip(places, group, strict=True)]
        where = (main.project, str(source.home), record.etag, head.at)
        entry = Archived(name, main.kind, main.session_id, *where, sizes, stamp, sessions)
        if entry.best == head.gen + 1:
            return entry
        longest = self._sessions.archived.sessions_of(entry, self.folder) if known is None else known.sessions
        return structs.replace(entry, sessions=longest)

    def _complete(self, index: dict[str, Archived]) -> None:
        """Add entries for sessions of which a run was killed before the index was written, or the index was lost."""
        missing = [name for name in self._remote.names() if name not in index]
        for name in missing:
            record = self._remote.read_head(name)
            if record is None:
                continue
            try:
                head = heads.decode(name, record.data)
                home, project = json.loads(head.project or "")
                where = (project, home, record.etag, head.at)
                sizes = archive.sizes(self._remote, head, self._fs)
                bare = Archived(name, head.kind, head.session, *where, sizes, b"", [])
                sessions = self._sessions.archived.sessions_of(bare, self.folder)
                index[name] = structs.replace(bare, sessions=sessions)
            except (SessionaryError, ValueError):
                continue  # `verify` reports it
        if missing:
            archive_index.save(self.folder, index.values(), self._fs)

    def _packed(self, files: list[tuple[str, str]]) -> Iterator[bytes]:
        read = ((name, read_bytes(self._fs, path)) for name, path in files)
        return bundles.pack_items(bundles.Item(name, data) for name, data in read if data is not None)


class _Homes(SameNames):
    """Sessions of different homes are different ones: the shared name of a project is its home and its name."""

    def __init__(self, layout: Layout) -> None:
        self._home = str(layout.home)

    def identity(self, ref: SessionRef) -> str:
        return json.dumps([self._home, ref.project])


def _groups(source: ArchiveLayout, summaries: list[Summary]) -> list[list[Summary]]:
    """Each session with those of its sub-agents whose files belong to it behind it."""
    by_path = {one.ref.locator: one for one in summaries}
    below = {
        one.ref.locator: [by_path[path] for path in source.files(one.ref).values() if path in by_path]
        for one in summaries
    }
    side = {one.ref.locator for path, some in below.items() for one in some if one.ref.locator != path}
    return [
        [one, *(each for each in below[one.ref.locator] if each is not one)]
        for one in summaries
        if one.ref.locator not in side and source.has_content(one.ref)
    ]


def _place(source: ArchiveLayout, ref: SessionRef, names: dict[str, str]) -> str:
    """The locator that a session has below the home of its copy, given the names of its files by their paths."""
    path, _, name = ref.locator.rpartition("#")
    if path in names:
        return f"{names[path]}#{name}"
    return names.get(ref.locator, ref.locator.removeprefix(f"{source.home}/"))


def _absolute(project: str) -> str:
    """Make the path of a project absolute, since a later run may be in another folder; leave a name as it is."""
    if not project:
        raise Invalid("a project has no empty name", hint="without --project, all projects are archived")
    return os.path.abspath(os.path.expanduser(project)) if is_project_path(project) else project


def _is_chosen(summary: Summary, choice: Choice) -> bool:
    """True if a session belongs to a chosen project, or its agent worked in a folder below the path of one."""
    cwd = f"{summary.cwd}{os.sep}" if summary.cwd else ""
    for word in choice.projects:
        path = os.path.expanduser(word).rstrip(os.sep) + os.sep
        if cwd.startswith(path) or is_of_project(summary, word):
            return True
    return not choice.projects
