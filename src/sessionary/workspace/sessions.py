"""Find sessions: all of them, or the one that a name means.

A home may be that of an agent, a project with `docs/sessions` in it, or such a folder itself: each layout looks for its
own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

from sessionary.catalog import Catalog, Unread, query
from sessionary.disk.fs import OS_FS, Fs
from sessionary.errors import AmbiguousId, Invalid, NotFound, SessionaryError, StorageFailed, Unsupported
from sessionary.layouts import registry
from sessionary.layouts.abilities import LooksInFolders
from sessionary.layouts.amplifier.ids import HOME, PROJECTS, project_slug
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.changing import Reverts, Trashes
from sessionary.layouts.clock import believed
from sessionary.layouts.session_ids import LATEST
from sessionary.model import SessionRef, Summary
from sessionary.workspace.archive_index import Key, key_of
from sessionary.workspace.archive_view import ArchiveView
from sessionary.workspace.failures import ending_in, gathered, in_turn
from sessionary.workspace.filters import of_project, projects_of
from sessionary.workspace.labels import Label, Labels, labelled, with_label
from sessionary.workspace.naming import is_project_path, is_short_for, short_ids
from sessionary.workspace.seen import Seen
from sessionary.workspace.stores import IN_PROJECTS, has_sessions, layout_in, sync_layout_in
from sessionary.xdg import cache_folder

if TYPE_CHECKING:
    from sessionary.layouts.sync import SyncLayout
    from sessionary.sync.bindings import Bindings
    from sessionary.sync.identity import Repositories
    from sessionary.workspace.family import Kin
    from sessionary.workspace.stored import StoredFile, StoredRecord

Homes = Path | Sequence[Path] | Mapping[str, Path | Sequence[Path]] | None
"""The homes of sessions: one folder or several for all kinds, or for some kinds others than their own."""
_Named = TypeVar("_Named", bound=SessionRef | Summary)
_SHOWN = 20


class Watch(Protocol):
    """Follows the reading of sessions."""

    def begin(self, total: int, known: Sequence[Summary]) -> None:
        """So many bytes are to be read; this is known before. What is not read yet is `Summary.unread`."""

    def advance(self, size: int) -> None:
        """So many further ones were read."""

    def goes_on(self) -> bool:
        """After Ctrl-C: True to get the sessions that are left as `Summary.unread`, False to stop."""
        ...


class Sessions:
    """The sessions of the homes, without the operations on them; the arguments are described at `Workspace`."""

    def __init__(
        self, homes: Homes = None, root: Path | None = None, *, fs: Fs = OS_FS, cache: str | None = None
    ) -> None:
        agents = (AmplifierLayout.name, *(one.name for one in registry.LAYOUTS))
        if isinstance(homes, Mapping) and (unknown := sorted(homes.keys() - set(agents))):
            raise Invalid(f"no agent of kind {unknown[0]}", hint=f"homes are given for {', '.join(agents)}")
        self.is_narrowed: bool = homes is not None and not isinstance(homes, Mapping)
        """True if all sessions are those of the given folders."""
        places = _homes_of(homes, AmplifierLayout.name, HOME)
        self.home: Path = places[0]
        """The home of amplifier, or the first of the folders."""
        self._fs = fs
        self._root = root or (self.home if self.is_narrowed else Path.cwd())
        roots = places if self.is_narrowed and root is None else [self._root]
        self.catalog: Catalog = Catalog(cache or cache_folder())
        self.layouts: Sequence[Layout] = (
            *(AmplifierLayout(place, fs) for place in places),
            *(
                one(place, fs)
                for one in registry.LAYOUTS
                for place in _homes_of(homes, one.name, one.default_home())
            ),
        )
        self._absent = [(kind, place) for kind in IN_PROJECTS for place in roots]
        self._labels = Labels(fs)
        self.seen: Seen = Seen(fs)
        """When the user had sessions open, and which changed since."""
        self._of_kinds: dict[str, list[Layout]] = {}
        for layout in self.layouts:
            self._of_kinds.setdefault(layout.name, []).append(layout)
        self.rediscover()
        self.archived: ArchiveView = ArchiveView(
            ((layout.name, str(layout.home)) for layout in self.layouts),
            {AmplifierLayout.name: AmplifierLayout, **{one.name: one for one in registry.LAYOUTS}},
            cache or cache_folder(),
            fs,
        )
        """The sessions that only the archive has any more."""
        for layout in self.layouts:
            if isinstance(layout, LooksInFolders) and not self.is_narrowed:
                layout.look_in(self._project_folders)

    def rediscover(self) -> None:
        """Include the kinds whose folders a project has now: for a program that runs on while they are created.

        The homes of agents need no such call: they are looked for whenever sessions are listed.
        """
        found = [one for one in self._absent if has_sessions(one[1], one[0], self._fs)]
        self._absent = [one for one in self._absent if one not in found]
        for kind, place in found:
            layout = layout_in(place, kind, self._fs)
            known = [one for one in self.layouts if one.name == kind]
            self.layouts = (*self.layouts, layout)
            self._of_kinds[kind] = [*known, layout]

    def _project_folders(self) -> Iterator[str]:
        """Possible folders of projects: this folder and those above it, and those that agents have worked in."""
        yield from map(str, (self._root.absolute(), *self._root.absolute().parents))
        try:
            rows = query(self.catalog, "SELECT DISTINCT cwd FROM sessions WHERE cwd IS NOT NULL").rows
        except SessionaryError:
            return  # the first list makes the catalogue
        yield from (cwd for (cwd,) in rows)

    def refs(self) -> Iterator[SessionRef]:
        """Every session of every layout, in no order, then those that only the archive has any more."""
        seen = dict[Key, int]()
        found = (_noted(one.discover(), seen, number) for number, one in enumerate(self.layouts))
        return in_turn(chain(found, [(one.ref for one in self.archived.summaries(seen))]))

    def summaries(self, watch: Watch | None = None) -> Iterator[Summary]:
        """As `refs`, the summary of each, with the names, tags and stars of the user. Reads only what has changed.

        Args:
            watch: follows the reading, which begins with the newest session; None if nothing does.

        Raises:
            Corrupt: the file of names and tags is damaged.
            KeyboardInterrupt: the user stopped the reading, and the watch does not go on without the rest.
        """
        seen = dict[Key, int]()
        each = map(self.catalog.summaries, self.layouts) if watch is None else self._watched(watch)
        found = (_noted(some, seen, number) for number, some in enumerate(each))
        return labelled(in_turn(chain(found, [self.archived.summaries(seen)])), self._labels.known())

    def _watched(self, watch: Watch) -> Iterator[Iterator[Summary]]:
        """The summaries of each layout."""
        surveyed = [gathered(self.catalog.survey(one)) for one in self.layouts]
        unread = [one for items, _ in surveyed for one in items if isinstance(one, Unread)]
        known_before = [one for items, _ in surveyed for one in items if isinstance(one, Summary)]
        read, broken = self._newest_first(unread, known_before, watch) if unread else ({}, None)
        for items, failure in surveyed:
            known = (read.get(one.ref) if isinstance(one, Unread) else one for one in items)
            yield ending_in((one for one in known if one is not None), failure)
        yield ending_in((), broken)

    def _newest_first(
        self, unread: list[Unread], known: list[Summary], watch: Watch
    ) -> tuple[dict[SessionRef, Summary], StorageFailed | None]:
        """The summaries of sessions that must be read, without those that are gone, and the files that are damaged."""
        pairs = [(one, header) for one in unread if (header := one.header()) is not None]
        pairs.sort(key=lambda pair: pair[1].updated.timestamp() if pair[1].updated else 0.0, reverse=True)
        headers = {header.ref: header for _, header in pairs}
        watch.begin(sum(header.size for header in headers.values()), [*headers.values(), *known])
        found: dict[SessionRef, Summary] = {}
        try:
            for summary in self.catalog.read(one for one, _ in pairs):
                found[summary.ref] = summary
                watch.advance(headers[summary.ref].size)
        except StorageFailed as error:
            return found, error
        except KeyboardInterrupt:
            if not watch.goes_on():
                raise
            return headers | found, None
        return found, None

    def summary(self, ref: SessionRef, *, at_most: int | None = None) -> Summary:
        """The summary of one session. Reads only what has changed.

        Args:
            at_most: as `Catalog.summary`.

        Raises:
            NotFound: the session is gone.
        """
        layout = self.layout_of(ref)
        if any(layout is one for one in self._of_kinds.get(ref.kind, ())):
            return with_label(self.catalog.summary(layout, ref, at_most=at_most), self._labels.of(ref))
        from sessionary.layouts.summary import summary_of  # here, since a list has the catalogue

        return with_label(summary_of(layout, ref), self._labels.of(ref))  # restored files are not kept

    def label(self, ref: SessionRef) -> Label:
        """The name, tags and star that the user gave to a session; see `labels`."""
        return self._labels.of(ref)

    def title(self, ref: SessionRef) -> str | None:
        """The title of one session; often cheaper than its summary. Raises NotFound if the session is gone."""
        from sessionary.layouts.summary import title_of  # here, since a list has the catalogue

        return self._labels.of(ref).name or title_of(self.layout_of(ref), ref)

    def folder(self, ref: SessionRef) -> str | None:
        """The folder that the agent of a session worked in, without reading the whole session; None if it is unknown.

        Raises:
            NotFound: the session is gone.
        """
        header = Unread(self.layout_of(ref), ref, b"", None).header()
        return None if header is None else header.cwd

    def find(
        self,
        name: str,
        *,
        able: Capability | None = None,
        trashed: Mapping[SessionRef, datetime | None] = MappingProxyType({}),
    ) -> SessionRef:
        """The session with this id, prefix of an id, name or folder.

        A whole id wins over a beginning, a session that the user began over the sub-sessions that carry its id in
        front of theirs, and a beginning of what distinguishes a sub-session over a beginning of its id. Case is
        ignored where no id matches as it is written. Names count only if no id has this prefix, and as a whole: the
        title that `list` returns, in any case.

        Args:
            name: an id, a beginning of one, a beginning and an end with ``…`` between them, as narrow tables print
                long ids, the name of a session, or the absolute path of its folder; or ``latest``, the session that
                changed last, without those of sub-agents.
            able: for ``latest``, what the layout of the session must grant; None for any session.
            trashed: sessions in the trash that may be meant too, and when they were moved there.

        Raises:
            NotFound: no session matches.
            AmbiguousId: several sessions match; `details["matches"]` names them.
            StorageFailed: no session matches, but not every folder could be read.
        """
        if os.path.isabs(name):
            return self.ref_for_path(Path(name))
        if not name.strip():
            raise Invalid("a session needs a name", hint="give an id, or the beginning of one")
        refs, failure = gathered(self.refs())
        here = {ref.session_id for ref in refs} if trashed else set()
        gone = {ref: when for ref, when in trashed.items() if ref.session_id not in here}
        for found in self._meanings(name, [*refs, *gone], able, gone):
            if len(found) == 1:
                return found[0]
            if found:
                raise self._ambiguous(name, found)
        if failure is not None:  # what could not be read may hold it
            raise _not_searched(name, failure)
        raise NotFound(
            f"no session is called {name}, and no id begins with it",
            session=name,
            path=self.home,
            hint=f"`sessionary list --all{f' --home {self.home}' if self.is_narrowed else ''}` shows all sessions",
        )

    def has_id(self, session_id: str) -> bool:
        """True if a session has exactly this id. Folders that cannot be read are passed over."""
        return any(ref.session_id == session_id for ref in gathered(self.refs())[0])

    def ref_for_path(self, folder: Path) -> SessionRef:
        """The session in a folder. Raises NotFound if no layout knows a session there."""
        if (kept := self.archived.ref_for_path(str(folder))) is not None:
            return kept
        for layout in self._all():
            ref = layout.ref_for_path(folder)
            if ref is not None:
                self._of_kinds.setdefault(layout.name, [layout])
                return ref
        raise NotFound(
            f"there is no session in {folder}",
            path=folder,
            hint="name the file or folder of one session, as `sessionary list --json` shows it; "
            "--home reads a folder of many",
        )

    def layout_of(self, ref: SessionRef) -> Layout:
        """The layout of a session; of one that only the archive has any more, that over its restored files.

        Raises:
            RemoteError, Corrupt, StorageFailed: it cannot be restored.
        """
        layout = self.archived.layout_of(ref)
        return self._of_kind(ref) if layout is None else layout

    def _of_kind(self, ref: SessionRef) -> Layout:
        if ref.kind not in self._of_kinds:  # it was found by its path, in a project elsewhere
            self._of_kinds[ref.kind] = [layout for layout in self._all() if layout.name == ref.kind]
        some = self._of_kinds[ref.kind]
        if len(some) == 1:
            return some[0]
        return next((one for one in some if ref.locator.startswith(f"{one.home}{os.sep}")), some[0])

    def _all(self) -> Iterator[Layout]:
        """Every layout, those without a folder here too: a path may lead anywhere."""
        yield from self.layouts
        for kind in IN_PROJECTS:
            if not has_sessions(self._root, kind, self._fs):
                yield layout_in(self._root, kind, self._fs)

    def grants(self, ref: SessionRef, capability: Capability) -> bool:
        """True if the layout of a session grants a capability."""
        return capability in self._of_kind(ref).capabilities

    def trashing(self, ref: SessionRef | None = None) -> list[Trashes]:
        """The layouts that trash their sessions; of a session its own, if it is one of these."""
        layouts = self.layouts if ref is None else [self._of_kind(ref)]
        return [layout for layout in layouts if isinstance(layout, Trashes)]

    def require(self, ref: SessionRef, capability: Capability, operation: str) -> None:
        """Refuse an operation on a session whose layout does not grant the capability for it. Raises Unsupported."""
        if self.grants(ref, capability):
            return
        own = f"`sessionary {ref.kind} -h` lists its commands"
        read = _only_read(operation)
        raise Unsupported(
            f"`sessionary {operation}` does not support sessions of kind {ref.kind}: {ref.session_id}",
            session=ref.session_id,
            path=ref.locator,
            hint=own if ref.kind in IN_PROJECTS else read,
        )

    def is_nested(self, ref: SessionRef) -> bool:
        """True for the session of a sub-agent; False for a fork."""
        return self._of_kind(ref).short_key(ref) != ref.session_id

    def short_ids(self, refs: Iterable[SessionRef]) -> dict[SessionRef, str]:
        """For each session the shortest name, of eight characters or more, by which `find` knows it among `refs`.

        Only random ids are shortened. One with a meaning, as that of a feature, stays whole.
        """
        return short_ids({ref: self._of_kind(ref).short_key(ref) for ref in refs})

    def _meanings(
        self,
        name: str,
        refs: list[SessionRef],
        able: Capability | None,
        gone: Mapping[SessionRef, datetime | None],
    ) -> Iterator[list[SessionRef]]:
        """The sessions that a name may mean, rule after rule, the strictest first."""
        folded = name.casefold()
        yield [ref for ref in refs if ref.session_id == name]
        yield [ref for ref in refs if ref.session_id.casefold() == folded]
        if name == LATEST:
            yield self._latest(able, gone)
        for fits in (*self._prefix_rules(name, str), *self._prefix_rules(folded, str.casefold)):
            yield [ref for ref in refs if fits(ref)]
        wanted = " ".join(folded.split())
        called = [
            one
            for one in gathered(self.summaries())[0]
            if one.title is not None and " ".join(one.title.casefold().split()) == wanted
        ]
        yield [one.ref for one in called if not one.nested]
        yield [one.ref for one in called]

    def _latest(
        self, able: Capability | None, gone: Mapping[SessionRef, datetime | None]
    ) -> list[SessionRef]:
        """The one session that changed or was moved to the trash last; none if there is none."""
        found = [
            (believed(one.updated), one.ref.session_id, one.ref)
            for one in gathered(self.summaries())[0]
            if one.updated is not None and (able is None or self.grants(one.ref, able)) and not one.nested
        ]
        found += [(when, ref.session_id, ref) for ref, when in gone.items() if when is not None]
        return [max(found, key=lambda one: one[:2])[2]] if found else []

    def _prefix_rules(self, name: str, fold: Callable[[str], str]) -> Iterator[Callable[[SessionRef], bool]]:
        """Rules by which a folded id begins with a name; the strictest first."""
        yield lambda ref: is_short_for(name, fold(ref.session_id)) and not self.is_nested(ref)
        yield lambda ref: is_short_for(name, fold(self._of_kind(ref).short_key(ref)))
        yield lambda ref: is_short_for(name, fold(ref.session_id))

    def _ambiguous(self, name: str, found: list[SessionRef]) -> AmbiguousId:
        """The error for several sessions of one name; those of equal ids are named by their folders."""
        ids = [ref.session_id for ref in found]
        differ = len(set(ids)) == len(ids)
        paths = self.project_paths(ref.project for ref in found if ref.project is not None)
        matches = sorted(
            f"{ref.session_id}  {paths.get(ref.project or '', ref.project or '')}".rstrip()
            if differ
            else ref.locator
            for ref in found
        )
        return AmbiguousId(
            f"{len(found)} sessions match {name}",
            session=name,
            details={"matches": matches[:_SHOWN], "count": len(found)},
            hint=(
                "give more of the id, or the path of its folder" if differ else "give the path of its folder"
            )
            + (f"; the first {_SHOWN} are shown" if len(found) > _SHOWN else ""),
        )

    def tree(self, summaries: Iterable[Summary]) -> list[Kin]:
        """The sessions without a parent, each with its forks and sub-agents below it; the last changed first."""
        from sessionary.workspace.family import families

        return families(summaries)

    def turns(self, ref: SessionRef) -> tuple[int, str]:
        """The turns that `rewind` counts in a session, and what they are: ``turn``, or ``iteration`` of a brainstorm.

        Raises:
            NotFound: it is gone.
        """
        summary, layout = self.summary(ref), self.layout_of(ref)
        unit = layout.turn_unit if isinstance(layout, Reverts) else "turn"
        return (summary.turns if unit == "turn" else summary.turn_count or 0), unit

    # -- stored records

    def stored_files(self, ref: SessionRef) -> list[StoredFile]:
        """The files of a session that hold text, that of the conversation or its database first.

        Raises:
            NotFound: it is gone.
            StorageFailed: it cannot be read.
        """
        from sessionary.workspace.stored import stored_files

        return stored_files(self.layout_of(ref), ref)

    def stored_records(
        self, ref: SessionRef, name: str = "", *, first: int = 1, width: int = 20_000, row: str = ""
    ) -> Iterator[StoredRecord]:
        """The records of a file as they are stored, those that are no message and damaged ones too.

        Args:
            ref: the session.
            name: the file, as `stored_files` names it; by default the first one.
            first: the number of the first record, from 1: of a file of lines the line.
            width: most bytes of each; a document comes in pieces of this size.
            row: of a session in a database: begin with this row, which the place of a message names.

        Of a session in a database the first rows are returned, `stored.MOST` at most.

        Raises:
            NotFound: the session has no such file.
            StorageFailed, Corrupt: it cannot be read.
        """
        from sessionary.workspace.stored import ROW, file_named, stored_records, stored_rows

        file, layout = file_named(self.stored_files(ref), name), self.layout_of(ref)
        if file.unit == ROW:
            return iter(stored_rows(layout, ref, first, width, row))
        return stored_records(self._fs, layout, file, first, width)

    # -- projects

    def projects(self, word: str, refs: Iterable[SessionRef]) -> set[str]:
        """The projects that a word names, by `SessionRef.project`.

        Args:
            word: the path of a project, the name of its folder of sessions, or the end of that name.
            refs: the sessions whose projects may be meant.

        Raises:
            NotFound: no project matches.
        """
        slugs = {ref.project for ref in refs if ref.project is not None}
        wanted = {word}
        if is_project_path(word):
            wanted.add(project_slug(os.path.expanduser(word)))
        end = "-" + word.casefold().strip("-")
        found = slugs & wanted or {slug for slug in slugs if slug.casefold().endswith(end)}
        if not found:
            paths = self.project_paths(slugs)
            raise _no_project(word, [paths.get(slug, slug) for slug in slugs])
        return found

    def of_project(
        self, word: str, summaries: Iterable[Summary], failure: StorageFailed | None = None
    ) -> list[Summary]:
        """The sessions of the projects that a word names.

        Args:
            word: the path of a project, the name of its folder of sessions, or the end of one of both.
            summaries: the sessions.
            failure: the error that left sessions out of `summaries`.

        Raises:
            NotFound: no session is of such a project.
            StorageFailed: `failure`, if there is one and no session matches.
        """
        some = list(summaries)
        found = of_project(some, word)
        if not found:
            raise failure or _no_project(word, filter(None, map(self.project_of(some), some)))
        return found

    def project_of(self, summaries: Iterable[Summary]) -> Callable[[Summary], str | None]:
        """A function that gives the project of each of these sessions.

        It is the path of the folder that its agent worked in; where that is unknown `SessionRef.project`; else None.
        """
        some = list(summaries)
        slugs = {one.ref.project for one in some}
        return projects_of(some, self.project_paths(slug for slug in slugs if slug is not None))

    def project_paths(self, slugs: Iterable[str]) -> dict[str, str]:
        """The paths of projects, by `SessionRef.project`; those that are unknown are left out."""
        from sessionary.layouts.amplifier.project_paths import project_paths

        wanted = set(slugs)
        here = {
            slug: path for path in (str(self._root.absolute()),) if (slug := project_slug(path)) in wanted
        }
        return here | project_paths(str(self.home), wanted - here.keys(), self._fs)

    # -- sync

    def sync_layouts(self) -> Iterator[SyncLayout]:
        """The layouts of this workspace as sync needs them.

        Those of a project too that has no session yet: a clone on another machine has none at first.
        """
        from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
        from sessionary.layouts.records.sync_adapter import RecordsSyncLayout

        yield AmplifierSyncLayout(self.home, self._fs)
        yield RecordsSyncLayout(self._of_kinds[RecordsSyncLayout.name][0].home, self._fs)
        for kind in IN_PROJECTS:
            yield sync_layout_in(self._root, kind, self._fs)

    def repositories(self, folders: Iterable[str] = (), bindings: Bindings | None = None) -> Repositories:
        """The names of the projects of this workspace on all machines.

        Args:
            folders: folders of projects that the names of their sessions' folders do not reveal.
            bindings: which projects the folders without a repository are.
        """
        from sessionary.layouts.amplifier.ids import folders_of
        from sessionary.layouts.maestro.layout import project_of, root_in
        from sessionary.sync.identity import Repositories, repository_of

        places = {project_slug(Path(folder)): folder for folder in folders}
        try:
            slugs = sorted(self._fs.listdir(str(self.home / PROJECTS)))
        except OSError:
            slugs = []
        for slug in slugs:
            if slug not in places and (found := list(folders_of(slug, self._fs))):
                places[slug] = min(found, key=lambda folder: repository_of(folder, self._fs) is None)
        for place in (project_of(root_in(self._fs, self._root)), self._root):
            places[project_slug(place)] = str(place)
        return Repositories(places, bindings=bindings, fs=self._fs)


def _only_read(operation: str) -> str:
    """The hint for an operation that sessions of agents do not support."""
    if operation == "events":
        return "only sessions of Amplifier have an event log; `sessionary show` prints the messages"
    if operation == "repair":
        return (
            "sessions of this kind can only be read: `sessionary repair ID --out DIR` writes a repaired copy"
        )
    return "sessions of this kind can only be read"


def _no_project(word: str, known: Iterable[str]) -> NotFound:
    matches = sorted(set(known))
    hint = "give one of these, or the end of its name" if matches else "no session is in a project"
    return NotFound(
        f"no project named {word}" if word else "a project has no empty name",
        details={"matches": matches[:_SHOWN], "count": len(matches)},
        hint=hint + (f"; the first {_SHOWN} of {len(matches):,} are shown" if matches[_SHOWN:] else ""),
    )


def _not_searched(name: str, failure: StorageFailed) -> StorageFailed:
    """The error for a session that may be in what could not be read."""
    places = failure.details.get("folders", [failure.path])
    message = f"no session is called {name} where sessions can be read; {', '.join(map(str, places))} cannot be read"
    return StorageFailed(
        message,
        path=failure.path,
        session=name,
        details=failure.details,
        hint=failure.hint,
        errno=failure.errno,
    )


def _noted(found: Iterator[_Named], seen: dict[Key, int], number: int) -> Iterator[_Named]:
    """The sessions of a layout without those of earlier ones; `seen` has the number of the first that has a session."""
    for one in found:
        ref = one if isinstance(one, SessionRef) else one.ref
        if seen.setdefault(key_of(ref), number) == number:
            yield one


def _homes_of(homes: Homes, kind: str, usual: Path) -> list[Path]:
    """The homes of a kind of agent: absolute, with ``~`` expanded, each once."""
    places = homes.get(kind, usual) if isinstance(homes, Mapping) else usual if homes is None else homes
    some = [places] if isinstance(places, Path) else list(places) or [usual]
    return list(dict.fromkeys(Path(os.path.expanduser(place)).absolute() for place in some))
