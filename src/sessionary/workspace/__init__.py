"""The operations over all sessions of a home, whatever their layout; and how an id names a session.

A home that is named may be that of an agent, a project with `docs/sessions` in it, or such a folder itself: each layout
looks for its own. Without one they are the home of the agent and the work sessions of the current folder.

Ids are long, and people type the beginning. For a sub-session the beginning says nothing: it is the id of its parent,
or sixteen zeros. So each layout says by which part of an id its sessions are told apart (`Layout.short_key`), and a
beginning of that part is enough.
"""

from __future__ import annotations

import builtins
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sessionary.catalog import Catalog
from sessionary.disk.fs import OS_FS, Fs, not_found, storage_failed
from sessionary.errors import AmbiguousId, Invalid, NotFound, StorageFailed
from sessionary.layouts import registry
from sessionary.layouts.amplifier.ids import HOME, PROJECTS, project_slug
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import ChecksHome, Layout
from sessionary.layouts.clock import believed
from sessionary.layouts.session_ids import LATEST
from sessionary.layouts.sync import SyncLayout
from sessionary.model import Message, Problem, SessionRef, Severity, Summary, Usage
from sessionary.workspace.stores import IN_PROJECTS, KINDS, SYNC_LAYOUTS, check_folder, check_store, layout_in
from sessionary.xdg import cache_folder

if TYPE_CHECKING:
    from sessionary.search import Hit
    from sessionary.sync.bindings import Bindings
    from sessionary.sync.identity import Repositories


__all__ = ["KINDS", "Stats", "Workspace", "check_folder", "check_store", "layout_in", "short_name"]

SHORT = 8
# A UUID, with hyphens or without; the span that a sub-agent's session begins with.
_RANDOM = r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{16}(_.*)?"
_NO_HEX = dict.fromkeys(map(ord, "0123456789abcdefABCDEF"))
Found = TypeVar("Found")
_SHOWN = 20


@dataclass(slots=True)
class Stats:
    """What sessions add up to: counts, bytes, sessions by health, and usage by model where agents state it."""

    sessions: int = 0
    messages: int = 0
    turns: int = 0
    size: int = 0
    health: Counter[str] = field(default_factory=Counter)
    usage: dict[str, Usage] = field(default_factory=dict)


class Workspace:
    """All sessions below one home.

    Args:
        home: the folder that holds `projects/`, or `docs/sessions`, or work sessions; by default that of the agent,
            `~/.amplifier`, and for work sessions the current folder.
        fs: the file system.
        cache: the folder where lists remember what they have read (see `catalog`); by default the person's own.
        root: the folder of the current project, if it is not `home`.
        own_homes: read the sessions of other agents in the folders of those agents, as `~/.claude`, and not below
            `home`; by default if no `home` is given.
    """

    def __init__(
        self,
        home: Path | None = None,
        fs: Fs = OS_FS,
        *,
        cache: str | None = None,
        root: Path | None = None,
        own_homes: bool | None = None,
    ) -> None:
        self.home: Path = Path(os.path.expanduser(HOME if home is None else home)).absolute()
        own_homes = home is None if own_homes is None else own_homes
        self._fs = fs
        self.catalog: Catalog = Catalog(cache or cache_folder())
        self._root = root or (Path.cwd() if home is None else self.home)
        self.layouts: Sequence[Layout] = (
            AmplifierLayout(self.home, fs),
            *(one(one.default_home() if own_homes else self.home, fs) for one in registry.AGENTS),
            *(one.made(self._root, fs) for one in IN_PROJECTS.values() if one.is_there(self._root, fs)),
        )
        self._by_kind = {layout.name: layout for layout in self.layouts}

    # -- the operations

    def list(self, *, kind: str | None = None, project: str | None = None) -> builtins.list[Summary]:
        """Return the summary of every session, the newest first; sub-agents' sessions included.

        Only sessions that changed since the last list are read. A session that is damaged is listed with its problems.

        Args:
            kind: only sessions of this kind, see `KINDS`.
            project: only sessions of this project, by `SessionRef.project`.

        Raises:
            StorageFailed: a folder cannot be looked into; `summaries` yields all others first.
        """
        found = [
            one
            for one in self.summaries()
            if kind in (None, one.ref.kind) and project in (None, one.ref.project)
        ]
        return sorted(found, key=lambda one: (believed(one.updated), one.ref.session_id), reverse=True)

    def read(self, ref: SessionRef) -> Iterator[Message | Problem]:
        """Read the conversation of a session, in one pass and bounded memory; problems stand where they occur.

        Raises:
            NotFound: the session is gone.
            StorageFailed: it cannot be read.
        """
        items = self.layout_of(ref).read(ref)
        return (one for one in items if isinstance(one, Message | Problem))

    def search(self, words: str, *, case: bool = False) -> Iterator[Hit]:
        """Find the messages that hold all words, each anywhere in the message, the newest sessions first.

        Hits are yielded as they are found. There is no index, so nothing can be out of date.

        Args:
            words: words between blanks.
            case: distinguish upper and lower case.

        Raises:
            Invalid: there are no words.
            StorageFailed: a folder cannot be looked into.
        """
        from sessionary.search import Needle, Query, Search
        from sessionary.search.places import places

        needles = tuple(Needle(word, case=case) for word in words.split())
        if not needles:
            raise Invalid("a search needs words", hint="give at least one word")
        return Search(Query(needles), self._fs).hits(places(self.layout_of, self.catalog, self.refs()))

    def stats(self, summaries: Iterable[Summary] | None = None) -> Stats:
        """Add up sessions: all of them, or those that are given. Raises StorageFailed as `list`."""
        stats = Stats()
        for one in self.summaries() if summaries is None else summaries:
            stats.sessions += 1
            stats.messages += one.messages
            stats.turns += one.turns
            stats.size += one.size
            stats.health[one.health] += 1
            for model, used in one.usage_by_model().items():
                stats.usage[model] = stats.usage.get(model, Usage()).plus(used)
        return stats

    # -- sessions and layouts

    def refs(self) -> Iterator[SessionRef]:
        """Every session of every layout, in no order; see `Layout.discover`."""
        return in_turn(layout.discover() for layout in self.layouts)

    def summaries(self) -> Iterator[Summary]:
        """The summary of every session, in no order. Reads only what has changed."""
        return in_turn(map(self.catalog.summaries, self.layouts))

    def layout_of(self, ref: SessionRef) -> Layout:
        """The layout to which a session belongs."""
        if ref.kind not in self._by_kind:  # it was found by its path, in a project elsewhere
            self._by_kind.update((layout.name, layout) for layout in self._all())
        return self._by_kind[ref.kind]

    def is_nested(self, ref: SessionRef) -> bool:
        """True for the session of a sub-agent; a fork is a session like any other."""
        return self.layout_of(ref).short_key(ref) != ref.session_id

    def find(self, name: str, *, kind: str | None = None) -> SessionRef:
        """The session of this id, or the one whose id begins so, or the one of this name, or the one in this folder.

        A whole id wins over a beginning, a session that the user began over the sub-sessions that carry its id in
        front of theirs, and a beginning of what tells a sub-session apart over a beginning of its id. The case of
        letters does not matter where no id has the name as it is written. Names count only where no id begins so, and
        as a whole: what `list` shows as the title, whatever its case.

        Args:
            name: an id, a beginning of one, the name of a session, or the absolute path of its folder; or ``latest``,
                the session that changed last, without those of sub-agents.
            kind: for ``latest``, the kind of session that is meant; None for any.

        Raises:
            NotFound: there is none.
            AmbiguousId: there are several; `details["matches"]` names them.
            StorageFailed: there is none, but not every folder could be looked into.
        """
        if os.path.isabs(name):
            return self.ref_for_path(Path(name))
        if not name.strip():
            raise Invalid("a session needs a name", hint="give an id, or the beginning of one")
        refs, failure = _gathered(self.refs())
        for found in self._found(name, refs, kind):
            if len(found) == 1:
                return found[0]
            if found:
                raise self._ambiguous(name, found)
        if failure is not None:  # what could not be looked into may hold it
            raise failure
        raise NotFound(
            f"no session is called {name}, and none begins so",
            session=name,
            path=self.home,
            hint=f"`sessionary list --all` shows those in {self.home}",
        )

    def ref_for_path(self, folder: Path) -> SessionRef:
        """The session in a folder.

        Raises:
            NotFound: no layout knows a session there.
        """
        for layout in self._all():
            ref = layout.ref_for_path(folder)
            if ref is not None:
                self._by_kind.setdefault(layout.name, layout)
                return ref
        raise NotFound(
            f"there is no session in {folder}",
            path=folder,
            hint="the folder of a session holds a transcript.jsonl, metadata.json or events.jsonl; "
            "`sessionary list --json` tells where sessions lie",
        )

    def _all(self) -> Iterator[Layout]:
        """Every layout, those without a folder here too: a path may lead anywhere."""
        yield from self.layouts
        for one in IN_PROJECTS.values():
            if not one.is_there(self._root, self._fs):
                yield one.made(self._root, self._fs)

    def check(self, ref: SessionRef) -> Iterator[Problem]:
        """Everything that is not as it should be with a session, its mailbox included. Reads only."""
        yield from self.layout_of(ref).check(ref)
        if ref.kind == "work":
            from sessionary.mailbox.consumers import mailbox_problems

            yield from mailbox_problems(ref.locator)

    def check_place(self) -> builtins.list[Problem]:
        """What is not as it should be with the disk below the home itself, and with what lies beside the sessions."""
        from sessionary.disk.mounts import weakness  # here, as only `check` asks

        found: builtins.list[Problem] = []
        if (why := weakness(self.home)) is not None:
            remedy = "keep sessions on a local disk, or do without the promises of docs/durability.md"
            place = str(self.home)
            found.append(Problem("weak_file_system", Severity.note, place, None, None, why, remedy))
        for layout in self.layouts:
            if isinstance(layout, ChecksHome):
                found += layout.check_home()
        return found

    def read_file(self, path: Path) -> Iterator[Message | Problem]:
        """The messages of any JSON Lines file.

        Raises:
            NotFound: there is no such file.
            StorageFailed: it cannot be read.
        """
        # Here and below, since a list needs neither.
        from sessionary.layouts.amplifier.conversation import read_entries
        from sessionary.transcript.typed import typed

        return typed(read_entries(self._fs, str(path), None), str(path))

    def check_file(self, path: Path) -> builtins.list[Problem]:
        """Everything that is not as it should be in any JSON Lines file of messages. Raises as `read_file`."""
        from sessionary.layouts.amplifier.conversation import not_json_lines, read_conversation

        try:
            found = read_conversation(self._fs, str(path), thorough=True)
            known = any(problem.code == "not_text" for problem in found.problems)
            if found.messages == 0 and found.problems and not known:
                other = not_json_lines(self._fs, str(path))
                if other is not None:
                    return [other]  # once, and not for each of its lines
            return found.problems
        except FileNotFoundError:
            raise not_found(str(path), f"there is no file {path}") from None
        except OSError as error:
            raise storage_failed(error, "read", str(path)) from error

    def handles(self, refs: Sequence[SessionRef]) -> builtins.list[str]:
        """By which part of its id each session is told apart: the whole id, but for the sessions of sub-agents."""
        known = self._by_kind
        return [(known.get(ref.kind) or self.layout_of(ref)).short_key(ref) for ref in refs]

    def short_ids(
        self, refs: Sequence[SessionRef], handles: builtins.list[str] | None = None
    ) -> builtins.list[str]:
        """For each session the shortest name, of eight characters or more, by which `find` knows it among `refs`.

        Only random ids are shortened. One that says something, as that of a feature, stays whole.

        Args:
            refs: the sessions.
            handles: their `handles`, if they are known.
        """
        handles = self.handles(refs) if handles is None else handles
        ids = [ref.session_id for ref in refs]
        if handles == ids:  # no session of a sub-agent among them
            heads = [name[:SHORT] for name in ids]
            if len(set(heads)) == len(heads):
                return heads if _are_uuids(ids) else list(map(_shown, ids, heads))
        of_all = _beginnings(handles)
        of_first = _beginnings([name for name, handle in zip(ids, handles, strict=True) if handle == name])
        return [
            _shown(handle, (of_first if handle == name else of_all)[handle])
            for name, handle in zip(ids, handles, strict=True)
        ]

    def sync_layouts(self) -> Iterator[SyncLayout]:
        """The layouts of this workspace as sync needs them.

        Those of a project too that has no session yet: a clone on another machine begins so.
        """
        from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout

        yield AmplifierSyncLayout(self.home, self._fs)
        for made in SYNC_LAYOUTS:
            yield made(self._root, self._fs)

    def project_paths(self, slugs: Iterable[str]) -> dict[str, str]:
        """Where projects lie, by the names that sessions have for them; what nothing tells is left out."""
        from sessionary.layouts.amplifier.project_paths import project_paths  # where names are shown

        wanted = set(slugs)
        here = {
            slug: path for path in (str(self._root.absolute()),) if (slug := project_slug(path)) in wanted
        }
        return here | project_paths(str(self.home), wanted - here.keys(), self._fs)

    def repositories(self, folders: Iterable[str] = (), bindings: Bindings | None = None) -> Repositories:
        """What the projects of this workspace are called on all machines.

        Args:
            folders: folders of projects that the names of their sessions' folders do not reveal.
            bindings: which projects the folders without a repository are.
        """
        from sessionary.layouts.amplifier.ids import folders_of
        from sessionary.layouts.maestro.layout import project_of, root_in
        from sessionary.sync.identity import Repositories, repository_of

        places = {project_slug(Path(folder)): folder for folder in folders}
        for slug in self._slugs():
            if slug not in places and (found := list(folders_of(slug, self._fs))):
                places[slug] = min(found, key=lambda folder: repository_of(folder, self._fs) is None)
        for place in (project_of(root_in(self._fs, self._root)), self._root):
            places[project_slug(place)] = str(place)
        return Repositories(places, bindings=bindings, fs=self._fs)

    def _slugs(self) -> builtins.list[str]:
        """The names of the projects whose sessions lie in the home."""
        try:
            return sorted(self._fs.listdir(str(self.home / PROJECTS)))
        except OSError:
            return []

    def _handle(self, ref: SessionRef) -> str:
        return self.layout_of(ref).short_key(ref)

    def _found(
        self, name: str, refs: builtins.list[SessionRef], kind: str | None
    ) -> Iterator[builtins.list[SessionRef]]:
        """The sessions that a name may mean, way after way, the strictest first."""
        folded = name.casefold()
        yield [ref for ref in refs if ref.session_id == name]
        yield [ref for ref in refs if ref.session_id.casefold() == folded]
        if name == LATEST:
            yield self._latest(kind)
        for fits in (*self._ways(name, str), *self._ways(folded, str.casefold)):
            yield [ref for ref in refs if fits(ref)]
        called = self._called(name)
        yield [ref for ref in called if not self.is_nested(ref)]
        yield called

    def _ambiguous(self, name: str, found: builtins.list[SessionRef]) -> AmbiguousId:
        """By whole ids; where two are equal, one having been copied to another project, by their folders."""
        ids = [ref.session_id for ref in found]
        told_apart = len(set(ids)) == len(ids)
        paths = self.project_paths(ref.project for ref in found if ref.project is not None)
        matches = sorted(
            f"{ref.session_id}  {paths.get(ref.project or '', ref.project or '')}".rstrip()
            if told_apart
            else ref.locator
            for ref in found
        )
        return AmbiguousId(
            f"{len(found)} sessions are called {name} or begin so",
            session=name,
            details={"matches": matches[:_SHOWN], "count": len(found)},
            hint=(
                "give more of the id, or the path of its folder"
                if told_apart
                else "give the path of its folder"
            )
            + (f"; the first {_SHOWN} are shown" if len(found) > _SHOWN else ""),
        )

    def _latest(self, kind: str | None) -> builtins.list[SessionRef]:
        """The one session that changed last; none if there is none."""
        found = [
            (summary.updated, summary.ref.session_id, summary.ref)
            for summary in _gathered(self.summaries())[0]
            if summary.updated is not None
            and kind in (None, summary.ref.kind)
            and not self.is_nested(summary.ref)
        ]
        return [max(found, key=lambda one: one[:2])[2]] if found else []

    def _called(self, name: str) -> builtins.list[SessionRef]:
        """The sessions that bear a name, whatever its case and its blanks."""
        wanted = " ".join(name.casefold().split())
        return [
            summary.ref
            for summary in _gathered(self.summaries())[0]
            if summary.title is not None and " ".join(summary.title.casefold().split()) == wanted
        ]

    def _ways(self, name: str, told: Callable[[str], str]) -> Iterator[Callable[[SessionRef], bool]]:
        """What it can mean that the id of a session, as `told`, begins so; the strictest first."""
        yield lambda ref: told(ref.session_id).startswith(name) and not self.is_nested(ref)
        yield lambda ref: told(self._handle(ref)).startswith(name)
        yield lambda ref: told(ref.session_id).startswith(name)


def _are_uuids(ids: list[str]) -> bool:
    """True if all are, for nearly nothing: a list has ten thousand."""
    plain = "".join(ids)
    marks = all(len(name) == 36 and name[8:24:5] == "----" for name in ids)
    return marks and len(plain.translate(_NO_HEX)) == 4 * len(ids)


def _shown(handle: str, short: str) -> str:
    """What stands for a session in a list: the short name of a random id, any other id whole."""
    return short if re.fullmatch(_RANDOM, handle) else handle


def short_name(session_id: str, length: int = SHORT) -> str:
    """The beginning of a random id; any other id whole."""
    return _shown(session_id, session_id[:length])


def _beginnings(names: list[str]) -> dict[str, str]:
    """Beginnings that differ from one another, each about as short as that allows; where names are equal, the whole."""
    short: dict[str, str] = {}
    length, left = SHORT, names
    while left:
        heads = [name[:length] for name in left]
        short.update(zip(left, heads, strict=True))
        if len(set(heads)) == len(heads):
            break
        clashing = {head for head, count in Counter(heads).items() if count > 1}
        left = [name for name, head in zip(left, heads, strict=True) if head in clashing and name != head]
        length += 4
    return short


def in_turn(finders: Iterable[Iterator[Found]]) -> Iterator[Found]:
    """What each of them finds. A folder that one of them could not look into is told at the end: it hides no other.

    Raises:
        StorageFailed: the first that one of them raised; `details["folders"]` names what all of them did not see.
    """
    failures: list[StorageFailed] = []
    for found in finders:
        try:
            yield from found
        except StorageFailed as error:
            failures.append(error)
    if failures:
        first = failures[0]
        first.details["folders"] = [
            folder for error in failures for folder in error.details.get("folders", [error.path])
        ]
        raise first


def _gathered(found: Iterator[Found]) -> tuple[list[Found], StorageFailed | None]:
    """All there are, and what kept some of them from being found: a folder that is closed hides no other."""
    gathered: list[Found] = []
    try:
        gathered.extend(found)
    except StorageFailed as error:
        return gathered, error
    return gathered, None
